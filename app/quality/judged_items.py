"""Items or outputs that an annotator judged, each answer beside the others' answers to the same one."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, NamedTuple

import numpy as np
from markupsafe import Markup
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.content import SourceAndReference
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.media.render_items import render_campaign_items
from app.quality.value_histograms import HISTOGRAM_BINS
from app.record.responses import COUNTING_RESPONSES_CONDITION, values_by_criterion

ItemOrder = Literal["disagreement", "time"]

MAX_ANSWERS_COMPARED = 500  # of the annotator, the newest ones

LIST_OWN_JUDGMENTS = text(f"""
    SELECT seq, items, segment, values, received_at, {COUNTING_RESPONSES_CONDITION} AS counts
    FROM responses r WHERE campaign_id = :campaign AND annotator_id = :annotator ORDER BY seq DESC LIMIT :limit
""")

# No index holds the items of a response, so this reads all answers of the campaign (30 ms in 200,000).
# A system is in the answers for all segments, so these are left out unless they are about the same outputs.
LIST_OTHERS_JUDGMENTS = text(f"""
    SELECT seq, items, segment, values FROM responses r
    WHERE campaign_id = :campaign AND annotator_id <> :annotator AND items && CAST(:items AS int[])
    AND (segment IS NULL OR segment = ANY(CAST(:segments AS int[])))
    AND {COUNTING_RESPONSES_CONDITION}
""")

LIST_ITEM_TEXTS = text("""
    SELECT number, CAST(NULL AS int) AS segment, external_id, shown FROM items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))
""")

LIST_OUTPUT_TEXTS = text("""
    SELECT o.item AS number, o.segment, s.external_id || ' · ' || i.external_id AS external_id, o.shown
    FROM unnest(CAST(:segments AS int[]), CAST(:items AS int[])) AS judged (segment, item)
    JOIN outputs o ON o.campaign_id = :campaign AND o.segment = judged.segment AND o.item = judged.item
    JOIN segments s ON s.campaign_id = :campaign AND s.number = o.segment
    JOIN items i ON i.campaign_id = :campaign AND i.number = o.item
""")


class JudgedKey(NamedTuple):
    """Number of an item, or of a system and of the segment whose output was judged."""

    item: int
    segment: int | None


@dataclass(frozen=True)
class JudgedItem:
    """A judgment of an item or an output by one criterion, beside the others' judgments.

    Attributes:
        name: The researcher's id of the item, or of segment and system.
        content: The item or output as annotators see it.
        criterion: Name of the criterion; empty with one question.
        seq: Number of the answer.
        answer_text: The judgment in words.
        position: Place of the judgment on the scale, 0 to 1.
        others: Number of the others' judgments in each part of the scale, or of each class.
        labels: Names of the classes; empty for a scale without labels.
        disagreement: Distance from the others' mean, in points; for unordered classes the share of the others with
            another class, in percent. None without others.
        is_share: Whether `disagreement` is such a share.
        counts: Whether the answer counts.

    """

    number: int
    name: str
    content: Markup | str
    criterion: str
    seq: int
    received_at: datetime
    answer_text: str
    position: float
    others: Sequence[int]
    labels: Sequence[str]
    disagreement: float | None
    is_share: bool
    counts: bool


@dataclass(frozen=True)
class JudgmentPlace:
    """A judgment's item or output, with its place on the scale from 0 to 1, or its class."""

    key: JudgedKey
    seq: int
    place: float


@dataclass(frozen=True)
class CriterionComparison:
    """An annotator's judgments by a criterion, by answer and item, and the others' judgments of the same items."""

    criterion: Criterion[Campaign]
    place_by_judgment: Mapping[tuple[int, JudgedKey], float]
    others: Mapping[JudgedKey, Sequence[float]]

    def disagreement_or_none(self, judgment: tuple[int, JudgedKey]) -> float | None:
        """Return how far the annotator's judgment is from the others'; None if there is none."""
        if judgment not in self.place_by_judgment:
            return None
        return disagreement_of_place_with_others_or_none(
            self.criterion.design, self.place_by_judgment[judgment], self.others.get(judgment[1], ())
        )


async def load_judged_items_and_total(
    connection: AsyncConnection,
    campaign: Campaign,
    annotator_id: int,
    *,
    order: ItemOrder = "disagreement",
    limit: int,
    offset: int = 0,
) -> tuple[list[JudgedItem], int]:
    """Return a page of the items that an annotator judged, and the number of all of them.

    An item has a row for each criterion; `limit` and `offset` count items. The largest disagreements by any criterion
    come first, or the newest answers. Only the newest `MAX_ANSWERS_COMPARED` are read.
    """
    key = {"campaign": campaign.id, "annotator": annotator_id}
    rows = (await connection.execute(LIST_OWN_JUDGMENTS, key | {"limit": MAX_ANSWERS_COMPARED})).all()
    others_key = key | {
        "items": list({item for row in rows for item in row.items}),
        "segments": list({row.segment for row in rows if row.segment is not None}),
    }
    other_rows = (await connection.execute(LIST_OTHERS_JUDGMENTS, others_key)).all()
    comparisons, judgments = await asyncio.to_thread(compare_and_order_judgments, campaign, rows, other_rows, order)
    page = judgments[offset : offset + limit]
    contents = await load_name_and_content_by_key(connection, campaign, list({judged for _, judged in page}))
    row_by_seq = {row.seq: row for row in rows}
    return [
        build_judged_item_for_page(one, judged, row_by_seq[seq], contents[judged])
        for seq, judged in page
        for one in comparisons
        if (seq, judged) in one.place_by_judgment
    ], len(judgments)


def compare_and_order_judgments(
    campaign: Campaign, rows: Sequence[Row[Any]], other_rows: Sequence[Row[Any]], order: ItemOrder
) -> tuple[list[CriterionComparison], list[tuple[int, JudgedKey]]]:
    """Return the comparison by each criterion, and the judgments of the annotator's rows in the order of the page."""
    comparisons = [compare_by_criterion(criterion, rows, other_rows) for criterion in campaign.criteria]
    judgments = list(dict.fromkeys(judgment for one in comparisons for judgment in one.place_by_judgment))
    judgments.sort(key=lambda judgment: -judgment[0])
    if order == "disagreement":
        judgments.sort(key=lambda judgment: -max(one.disagreement_or_none(judgment) or -1.0 for one in comparisons))
    return comparisons, judgments


def compare_by_criterion(
    criterion: Criterion[Campaign], rows: Sequence[Row[Any]], other_rows: Sequence[Row[Any]]
) -> CriterionComparison:
    """Return the judgments of an annotator's rows and of the others' rows by a criterion."""
    others: dict[JudgedKey, list[float]] = defaultdict(list)
    for other in scale_places_of_judgments(criterion, other_rows):
        others[other.key].append(other.place)
    own = scale_places_of_judgments(criterion, rows)
    return CriterionComparison(criterion, {(one.seq, one.key): one.place for one in own}, others)


def scale_places_of_judgments(criterion: Criterion[Campaign], rows: Sequence[Row[Any]]) -> list[JudgmentPlace]:
    """Return the place of each judgment; items that could not be judged are left out."""
    if not rows:
        return []
    design = criterion.design
    items = np.concatenate([np.asarray(row.items, np.intp) for row in rows])
    values = np.concatenate([np.asarray(values_by_criterion(row, criterion.number), np.float64) for row in rows])
    hit = np.repeat(np.arange(len(rows)), [len(row.items) for row in rows])
    judged = ~np.isnan(values)
    items, values, hit = items[judged], values[judged], hit[judged]
    places = values if design.value_kind == "classes" else design.values_to_points(values, hit) / 100.0
    return [
        JudgmentPlace(JudgedKey(item, rows[number].segment), rows[number].seq, place)
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


async def load_name_and_content_by_key(
    connection: AsyncConnection, campaign: Campaign, judged: Sequence[JudgedKey]
) -> Mapping[JudgedKey, tuple[str, Markup | str]]:
    """Return the researcher's id and the content of items, or those of segment and system with the output."""
    parameters = {"campaign": campaign.id, "items": [key.item for key in judged]}
    if campaign.segment_count:
        segments = [key.segment for key in judged]
        rows = (await connection.execute(LIST_OUTPUT_TEXTS, parameters | {"segments": segments})).all()
    else:
        rows = (await connection.execute(LIST_ITEM_TEXTS, parameters)).all()
    rendered = await render_campaign_items(
        await driver_of(connection),
        campaign,
        [row.number for row in rows],
        [row.shown for row in rows],
        SourceAndReference() if campaign.segment_count else None,
    )
    return {
        JudgedKey(row.number, row.segment): (row.external_id, content)
        for row, content in zip(rows, rendered.items, strict=True)
    }


def build_judged_item_for_page(
    comparison: CriterionComparison, judged: JudgedKey, row: Row[Any], named_content: tuple[str, Markup | str]
) -> JudgedItem:
    """Return a judgment with everything that the page shows of it."""
    name, content = named_content
    criterion, design = comparison.criterion, comparison.criterion.design
    place = comparison.place_by_judgment[row.seq, judged]
    values = values_by_criterion(row, criterion.number)
    judged_values = [(item, value) for item, value in zip(row.items, values, strict=True) if not np.isnan(value)]
    place_in_hit = [item for item, _ in judged_values].index(judged.item)
    is_label = design.value_kind == "classes"
    bin_count = len(design.classes) or HISTOGRAM_BINS
    counts = [0] * bin_count
    for other in comparison.others.get(judged, ()):
        counts[histogram_bin_of_place(other, bin_count, is_label=is_label)] += 1
    own_bin = histogram_bin_of_place(place, bin_count, is_label=is_label)
    return JudgedItem(
        number=judged.item,
        name=name,
        content=content,
        criterion=criterion.name,
        seq=row.seq,
        received_at=row.received_at,
        answer_text=design.format_value_at_position([value for _, value in judged_values], place_in_hit),
        position=(own_bin + 0.5) / bin_count if design.classes else place,
        others=counts,
        labels=design.classes,
        disagreement=comparison.disagreement_or_none((row.seq, judged)),
        is_share=is_label,
        counts=row.counts,
    )


def histogram_bin_of_place(place: float, bin_count: int, *, is_label: bool) -> int:
    """Return the part of the scale, or the class, in which a place is."""
    return int(place) if is_label else min(int(place * bin_count), bin_count - 1)
