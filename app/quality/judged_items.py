"""Items that an annotator judged, each answer beside the others' answers to the same item."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import numpy as np
from markupsafe import Markup
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.media.render_items import render_campaign_items
from app.quality.value_histograms import HISTOGRAM_BINS
from app.record.responses import COUNTING_RESPONSES_CONDITION, criterion_values_sql

ItemOrder = Literal["disagreement", "time"]

MAX_ANSWERS_COMPARED = 500  # of the annotator, the newest ones

LIST_OWN_JUDGMENTS = text(f"""
    SELECT seq, items, {criterion_values_sql("0", "r")} AS values, received_at, {COUNTING_RESPONSES_CONDITION} AS counts
    FROM responses r WHERE campaign_id = :campaign AND annotator_id = :annotator ORDER BY seq DESC LIMIT :limit
""")

# No index holds the items of a response, so this reads all answers of the campaign (30 ms in 200,000).
LIST_OTHERS_JUDGMENTS = text(f"""
    SELECT seq, items, {criterion_values_sql("0", "r")} AS values FROM responses r
    WHERE campaign_id = :campaign AND annotator_id <> :annotator AND items && CAST(:items AS int[])
    AND {COUNTING_RESPONSES_CONDITION}
""")

LIST_ITEM_TEXTS = text("""
    SELECT number, external_id, shown FROM items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))
""")


@dataclass(frozen=True)
class JudgedItem:
    """A judgment of an item, beside the others' judgments.

    Attributes:
        name: The researcher's id of the item.
        content: The item as annotators see it.
        seq: Number of the answer.
        answer_text: The judgment in words.
        position: Place of the judgment on the scale, 0 to 1.
        others: Number of the others' judgments in each part of the scale, or of each class.
        disagreement: Distance from the others' mean, in points; for unordered classes the share of the others with
            another class, in percent. None without others.
        counts: Whether the answer counts.

    """

    number: int
    name: str
    content: Markup | str
    seq: int
    received_at: datetime
    answer_text: str
    position: float
    others: Sequence[int]
    disagreement: float | None
    counts: bool


@dataclass(frozen=True)
class JudgmentPlace:
    """A judgment's item, with its place on the scale from 0 to 1, or its class."""

    item: int
    seq: int
    place: float


async def load_judged_items_and_total(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    order: ItemOrder = "disagreement",
    limit: int,
    offset: int = 0,
) -> tuple[list[JudgedItem], int]:
    """Return a page of the items that an annotator judged, by the first criterion, and the number of all of them.

    The largest disagreements come first, or the newest answers. Only the newest `MAX_ANSWERS_COMPARED` are read.
    """
    design, key = campaign.criteria[0].design, {"campaign": campaign.id, "annotator": annotator_id}
    rows = (await connection.execute(LIST_OWN_JUDGMENTS, key | {"limit": MAX_ANSWERS_COMPARED})).all()
    own = scale_places_of_judgments(design, rows)
    items = sorted({judgment.item for judgment in own})
    others: dict[int, list[float]] = defaultdict(list)
    for other in scale_places_of_judgments(
        design, (await connection.execute(LIST_OTHERS_JUDGMENTS, key | {"items": items})).all()
    ):
        others[other.item].append(other.place)
    disagreements = {
        (judgment.seq, judgment.item): disagreement_of_place_with_others_or_none(
            design, judgment.place, others[judgment.item]
        )
        for judgment in own
    }
    ordered = sorted(own, key=lambda judgment: -judgment.seq)
    if order == "disagreement":
        ordered.sort(key=lambda judgment: -(disagreements[judgment.seq, judgment.item] or -1.0))
    page = ordered[offset : offset + limit]
    contents = await load_item_id_and_content_by_number(
        connection, campaign, sorted({judgment.item for judgment in page})
    )
    row_by_seq = {row.seq: row for row in rows}
    return [
        build_judged_item_for_page(
            design,
            judgment,
            row_by_seq[judgment.seq],
            contents[judgment.item],
            others[judgment.item],
            disagreement=disagreements[judgment.seq, judgment.item],
        )
        for judgment in page
    ], len(own)


def scale_places_of_judgments(design: Design, rows: Sequence[Row[Any]]) -> list[JudgmentPlace]:
    """Return the place of each judgment; items that could not be judged are left out."""
    if not rows:
        return []
    items = np.concatenate([np.asarray(row.items, np.intp) for row in rows])
    values = np.concatenate([np.asarray(row.values, np.float64) for row in rows])
    hit = np.repeat(np.arange(len(rows)), [len(row.items) for row in rows])
    judged = ~np.isnan(values)
    items, values, hit = items[judged], values[judged], hit[judged]
    places = values if design.value_kind == "classes" else design.values_to_points(values, hit) / 100.0
    return [
        JudgmentPlace(item, rows[number].seq, place)
        for item, number, place in zip(items.tolist(), hit.tolist(), places.tolist(), strict=True)
    ]


def disagreement_of_place_with_others_or_none(
    design: Design, place: float, other_places: Sequence[float]
) -> float | None:
    """Return how far a judgment is from the others', in points or percent; None without others."""
    if not other_places:
        return None
    if design.value_kind == "classes":
        return 100.0 * sum(other != place for other in other_places) / len(other_places)
    return 100.0 * abs(place - sum(other_places) / len(other_places))


async def load_item_id_and_content_by_number(
    connection: AsyncConnection, campaign: Campaign, numbers: Sequence[int]
) -> Mapping[int, tuple[str, Markup | str]]:
    """Return the researcher's id and the content of items, by number."""
    parameters = {"campaign": campaign.id, "items": [*numbers]}
    rows = (await connection.execute(LIST_ITEM_TEXTS, parameters)).all()
    driver = await driver_of(connection)
    rendered = await render_campaign_items(driver, campaign, [row.number for row in rows], [row.shown for row in rows])
    return {row.number: (row.external_id, content) for row, content in zip(rows, rendered.items, strict=True)}


def build_judged_item_for_page(
    design: Design,
    judgment: JudgmentPlace,
    row: Row[Any],
    named_content: tuple[str, Markup | str],
    other_places: Sequence[float],
    *,
    disagreement: float | None,
) -> JudgedItem:
    """Return a judgment with everything that the page shows of it."""
    name, content = named_content
    judged = [(item, value) for item, value in zip(row.items, row.values, strict=True) if not np.isnan(value)]
    place_in_hit = [item for item, _ in judged].index(judgment.item)
    is_label = design.value_kind == "classes"
    bin_count = len(design.classes) or HISTOGRAM_BINS
    counts = [0] * bin_count
    for other in other_places:
        counts[histogram_bin_of_place(other, bin_count, is_label=is_label)] += 1
    own_bin = histogram_bin_of_place(judgment.place, bin_count, is_label=is_label)
    return JudgedItem(
        number=judgment.item,
        name=name,
        content=content,
        seq=judgment.seq,
        received_at=row.received_at,
        answer_text=design.format_value_at_position([value for _, value in judged], place_in_hit),
        position=(own_bin + 0.5) / bin_count if design.classes else judgment.place,
        others=counts,
        disagreement=disagreement,
        counts=row.counts,
    )


def histogram_bin_of_place(place: float, bin_count: int, *, is_label: bool) -> int:
    """Return the part of the scale, or the class, in which a place is."""
    return int(place) if is_label else min(int(place * bin_count), bin_count - 1)
