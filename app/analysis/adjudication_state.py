"""State of adjudication: the queue of a campaign's items with their final labels, and which item comes next."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from pydantic import Field
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.adjudicated_item import QueueRow, build_queue_row
from app.analysis.fit_cache import FitCache
from app.analysis.label_queue import LabelQueue, build_label_queue
from app.analysis.queue_filter import QueueFilter
from app.analysis.result_types import Answers
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.http.paging import AddressQuery, PageNumber
from app.inference.ground.arrays import Integers
from app.quality.adjudications import (
    Adjudication,
    drop_items_after,
    labels_in_force,
    load_latest_adjudications_by_item,
    refuse_criterion_that_cannot_be_adjudicated,
)
from app.record.campaign import load_campaign_for_page_or_refuse
from app.uploads import MAX_ID_CHARACTERS

MAX_QUEUE_AGE_SECONDS = 60.0  # while a researcher goes from item to item
QUEUE_RESULT_KEY = "label_queue"


class AdjudicationQuery(AddressQuery):
    """Fields of the page's address: which items are listed, and which of them is open.

    Attributes:
        blind: Whether votes, estimates and comments are hidden until a label is chosen.
        item: Id of the item that is open; the next unsettled one if empty.
        after: Id of the item after which the next one is looked for.
        decision: Id of the adjudication just made on that item, which can be undone; 0 without one.

    """

    criterion: str = Field(default="", max_length=200)
    show: QueueFilter = "disputed"
    blind: bool = False
    item: str = Field(default="", max_length=MAX_ID_CHARACTERS)
    after: str = Field(default="", max_length=MAX_ID_CHARACTERS)
    decision: int = Field(default=0, ge=0, lt=10**18)
    page: PageNumber = 1


@dataclass(frozen=True)
class AnnotatorAgreement:
    """How many of the settled items an annotator judged, and how often their label is the final one."""

    name: str
    judged: int
    agreed: int


@dataclass(frozen=True)
class AdjudicationState:
    """All items of a campaign by a criterion, and what was decided about them."""

    criterion: Criterion[Campaign]
    answers: Answers
    queue: LabelQueue
    adjudication_by_item: Mapping[int, Adjudication]

    @cached_property
    def settled_items(self) -> set[int]:
        """Numbers of the items whose label is chosen."""
        return set(labels_in_force(self.adjudication_by_item))

    @property
    def disputed_and_settled_counts(self) -> tuple[int, int]:
        """Number of items without a majority, and how many of these are settled."""
        return self.queue.count_disputed_and_settled(self.settled_items)

    def agreement_with_final_labels(self) -> list[AnnotatorAgreement]:
        """Return the annotators who judged settled items, those who agree least often with the final labels first."""
        answers, final_class = self.answers, np.full(self.answers.n_items, -1)
        for item, label in labels_in_force(self.adjudication_by_item).items():
            final_class[item] = answers.classes.index(label)
        expected = final_class[answers.item]
        judged = np.bincount(answers.annotator[expected >= 0], minlength=answers.n_annotators)
        agreed = np.bincount(answers.annotator[expected == answers.value], minlength=answers.n_annotators)
        found = [
            AnnotatorAgreement(answers.names[who], int(judged[who]), int(agreed[who]))
            for who in np.flatnonzero(judged).tolist()
        ]
        return sorted(found, key=lambda one: one.agreed / one.judged)

    def item_numbers(self, shown: QueueFilter) -> Integers:
        """Return the numbers of the items of a list, the worst first."""
        return self.queue.item_numbers(shown, self.settled_items)

    def rows(self, item_numbers: Sequence[int] | Integers) -> list[QueueRow]:
        return [
            build_queue_row(self.answers, self.queue, int(number), self.adjudication_by_item) for number in item_numbers
        ]

    def number_of_id_or_none(self, item_id: str) -> int | None:
        """Return the number of the item with this id, None if there is none."""
        return self.queue.number_by_id.get(item_id)

    def next_open_item_or_none(self, shown: QueueFilter, after_id: str = "") -> int | None:
        """Return the next unsettled item of a list after another, from the start again at its end; None if all are
        settled.
        """
        return self.queue.next_open_item_or_none(shown, self.settled_items, self.number_of_id_or_none(after_id))


async def load_adjudication_state(
    fits: FitCache,
    engine: AsyncEngine,
    reading_engine: AsyncEngine,
    slug: str,
    criterion_name: str,
    *,
    may_lag: bool = False,
) -> AdjudicationState:
    """Load the queue of a campaign, with the adjudications of now.

    If the queue may lag, one that was built less than a minute ago is taken: while annotators work, a researcher who
    goes from item to item would wait for a new fit each time.

    Raises:
        NotFound: `campaign_not_found`, `criterion_not_found`.
        Conflict: `no_labels`, `not_launched`.

    """
    async with engine.connect() as connection:
        campaign = await load_campaign_for_page_or_refuse(connection, slug)
    criterion = campaign.find_criterion_or_refuse(criterion_name)
    refuse_criterion_that_cannot_be_adjudicated(criterion)
    answers, queue = (may_lag and kept_answers_and_queue_or_none(fits, criterion)) or await fits.load_answers_and_fit(
        reading_engine, slug, QUEUE_RESULT_KEY, build_label_queue, criterion=criterion_name
    )
    async with engine.connect() as connection:  # after the fit, which may take seconds
        adjudication_by_item = await load_latest_adjudications_by_item(connection, criterion)
    return AdjudicationState(criterion, answers, queue, drop_items_after(adjudication_by_item, answers.n_items))


def kept_answers_and_queue_or_none(fits: FitCache, criterion: Criterion[Campaign]) -> tuple[Answers, LabelQueue] | None:
    """Return a queue that was built less than a minute ago and its answers; None without one, or if the campaign has
    changed since.
    """
    kept = fits.fits_by_criterion.get(criterion.campaign.id, {}).get(criterion.number)
    queue = kept.results.get(QUEUE_RESULT_KEY) if kept else None
    if kept is None or not isinstance(queue, LabelQueue) or has_changed(kept.campaign, criterion.campaign):
        return None
    return (kept.answers, queue) if time.monotonic() - queue.built_at < MAX_QUEUE_AGE_SECONDS else None


def has_changed(before: Campaign, now: Campaign) -> bool:
    """Return whether a column of a campaign's row differs; a page adds counts to it."""
    names = [column.name for column in fields(Campaign)]
    return any(getattr(before, name) != getattr(now, name) for name in names)
