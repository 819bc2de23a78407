"""One item as a researcher sees it while settling its label: text, votes, comments, estimate and earlier decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.label_queue import LabelQueue
from app.analysis.result_types import Answers
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.content import RenderedItems
from app.designs.criteria import Criterion
from app.http.paging import Page
from app.media.render_items import render_campaign_items
from app.quality.adjudications import Adjudication
from app.record import remarks

MAX_REMARKS_OF_ITEM = 20
MAX_DIGIT_KEY = 9  # labels after the ninth have no key

FIND_CURRENT_TEXTS = text("SELECT number, shown FROM items WHERE campaign_id = :campaign AND number = ANY(:numbers)")


@dataclass(frozen=True)
class LabelChoice:
    """One of the labels that can be chosen for an item.

    Attributes:
        key: Digit that chooses it; empty after the ninth label.
        votes: Number of annotators who gave it.
        annotators: Their names, A1, A2, ...

    """

    label: str
    description: str
    key: str
    votes: int
    annotators: Sequence[str]


@dataclass(frozen=True)
class QueueRow:
    """An item of the queue.

    Attributes:
        votes: Pairs of a label and its number of votes, the most frequent first; labels without votes are left out.
        label: Most probable label by Dawid and Skene's model; None where there is none.
        confidence: Probability that it is right; None where it is unknown.
        adjudication: The latest adjudication; None if there was none.

    """

    number: int
    id: str
    shown: str
    votes: Sequence[tuple[str, int]]
    label: str | None
    confidence: float | None
    is_disputed: bool
    adjudication: Adjudication | None

    @property
    def final_label(self) -> str | None:
        """Label that a researcher chose; None without one."""
        return self.adjudication.label if self.adjudication else None


@dataclass(frozen=True)
class ItemView:
    """An item with all that helps to settle its label."""

    row: QueueRow
    rendered: RenderedItems
    choices: Sequence[LabelChoice]
    remarks: Page[Row[Any]] | None


def build_queue_row(
    answers: Answers, queue: LabelQueue, number: int, adjudication_by_item: Mapping[int, Adjudication]
) -> QueueRow:
    """Return an item of the queue."""
    votes, label, confidence = queue.votes[number], int(queue.label[number]), float(queue.confidence[number])
    return QueueRow(
        number,
        answers.ids[number],
        answers.shown[number],
        [(answers.classes[k], int(votes[k])) for k in np.argsort(-votes, kind="stable") if votes[k]],
        answers.classes[label] if label >= 0 else None,
        confidence if label >= 0 and np.isfinite(confidence) else None,
        bool(queue.is_disputed[number]),
        adjudication_by_item.get(number),
    )


def build_label_choices(criterion: Criterion[Campaign], answers: Answers, item_number: int) -> list[LabelChoice]:
    """Return the labels in their order, with the annotators who gave each of them to an item."""
    is_about_item = answers.item == item_number
    annotators, values = answers.annotator[is_about_item].tolist(), answers.value[is_about_item].astype(int).tolist()
    description_by_label = {
        option.label: option.description for option in getattr(criterion.design, "options", ()) if option.description
    }
    return [
        LabelChoice(
            label,
            description_by_label.get(label, ""),
            str(k + 1) if k < MAX_DIGIT_KEY else "",
            values.count(k),
            [answers.names[who] for who, value in zip(annotators, values, strict=True) if value == k],
        )
        for k, label in enumerate(criterion.design.classes)
    ]


async def load_rows_with_current_texts(
    connection: AsyncConnection, campaign: Campaign, rows: Sequence[QueueRow]
) -> list[QueueRow]:
    """Return the rows with the items' texts as of now: one may have been corrected since the answers were read."""
    parameters = {"campaign": campaign.id, "numbers": [row.number for row in rows]}
    found = await connection.execute(FIND_CURRENT_TEXTS, parameters)
    text_by_number = {item.number: item.shown for item in found}
    return [replace(row, shown=text_by_number.get(row.number, row.shown)) for row in rows]


async def load_item_view(
    connection: AsyncConnection, criterion: Criterion[Campaign], answers: Answers, row: QueueRow
) -> ItemView:
    """Load what is shown of an item, with its newest comments."""
    campaign = criterion.campaign
    (row,) = await load_rows_with_current_texts(connection, campaign, [row])
    rendered = await render_campaign_items(await driver_of(connection), campaign, [row.number], [row.shown])
    item_remarks = None
    if await remarks.are_remarks_asked_or_stored(connection, campaign):
        item_remarks = await remarks.load_remarks_page(
            connection, campaign.id, remarks.RemarksQuery(item=row.id), page_size=MAX_REMARKS_OF_ITEM
        )
    return ItemView(row, rendered, build_label_choices(criterion, answers, row.number), item_remarks)
