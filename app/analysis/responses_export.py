"""The export of responses: one row per item of an answered HIT, in the order in which responses were applied."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import numpy as np
from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import ROWS_AT_ONCE, Cells, TableFile, guarded
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.scale import ranks
from app.designs.unjudged import EXTRA
from app.record.stream import Response

RESPONSE_COLUMNS = (
    *("seq", "annotator", "name", "source", "hit", "iteration", "position", "item", "leader", "score", "rank"),
    *("issued_at", "received_at", "first_touch_ms", "changes", "input_kind", "viewport", "not_applicable"),
)
OF_SEGMENTS = ("segment", "shown_as")
LABEL = "label"
REASON = "reason"  # why an item cannot be judged


async def responses_table(connection: AsyncConnection, campaign: Row[Any]) -> TableFile:
    """One row per item of an answered HIT, in the order in which responses were applied; positions and ranks count from
    1. An item that cannot be judged has no score, but a reason where the campaign asks for one; HITs that were imported
    with all of theirs marked so come last. A score that is a class, counted from 0, has its label beside it; without an
    order there are no ranks. Of systems also the segment, and under which system an output was shown that several have.
    """
    design, of_systems = design_of(campaign), campaign.segment_count > 0

    async def chunks() -> AsyncIterator[list[Cells]]:
        for statement in RESPONSES[of_systems]:
            result = await connection.stream(statement, {"campaign": campaign.id})
            async for rows in result.partitions(ROWS_AT_ONCE):
                yield [cells[:width] for row in rows for cells in answered_items(row, design)]

    columns = response_columns(design, of_systems=of_systems, reasons=campaign.cannot_be_judged)
    width = len(columns)
    return TableFile(columns, chunks())


def response_columns(design: Design, *, of_systems: bool, reasons: bool) -> tuple[str, ...]:
    """`RESPONSE_COLUMNS`, with the label of a score where scores are classes, of systems with `OF_SEGMENTS`, and
    reasons where there can be any.
    """
    after = RESPONSE_COLUMNS.index("score") + 1
    label, reason = [LABEL] if design.classes else [], [REASON] if reasons else []
    segment = OF_SEGMENTS if of_systems else ()
    return (*RESPONSE_COLUMNS[:after], *label, *RESPONSE_COLUMNS[after:], *segment, *reason)


def answered_items(row: Row[Any], design: Design) -> Iterable[Cells]:
    """An answered HIT as `response_columns` with all of them, one tuple per item."""
    known, nothing = row.telemetry or {}, [None] * len(row.items)
    touches = (known.get(name, nothing) for name in ("first_touch_ms", "changes", "input_kinds"))
    viewport = known.get("viewport")
    said, reasons = Response.of(0, 0, row.items, row.scores), (row.extra or {}).get(EXTRA, {})
    places = ranks(design.points(np.array(said.values, np.float64)).tolist()) if design.ordered else nothing
    judged = dict(zip(said.items, zip(said.values, places, strict=False), strict=True))
    told = {item: [*judged.get(item, (None, None)), *rest] for item, *rest in zip(row.items, *touches, strict=True)}
    ids = dict(zip(row.shown, row.ids, strict=True))
    for position, (number, item) in enumerate(zip(row.shown, row.ids, strict=True), start=1):
        leader = None if row.leader is None else number == row.leader
        score, rank, *touch = told.get(number, [None] * 5)
        label = [None if score is None else design.classes[int(score)]] if design.classes else []
        yield (
            *(row.seq, row.pseudonym, row.name, row.source, row.hit_id, row.iteration),
            *(position, item, leader, score, *label, rank),
            *(row.issued_at, row.received_at, *touch, viewport and guarded(viewport)),
            number not in told or str(number) in reasons,
            *(segment_cells(row, ids, position - 1) if row.segment else ()),
            reasons.get(str(number)),
        )


def segment_cells(row: Row[Any], ids: Mapping[int, str], place: int) -> Cells:
    """The cells of `OF_SEGMENTS` of the item at a place."""
    return row.segment, ids[(row.shown_as or row.shown)[place]]


# What the items of a HIT are called, in the order in which they were shown.
IDS = """
           ARRAY(SELECT i.external_id FROM unnest(h.items) WITH ORDINALITY AS shown (number, place)
                 JOIN items i ON i.campaign_id = h.campaign_id AND i.number = shown.number ORDER BY place) AS ids"""

# Of a HIT of systems, its segment, and the items under which outputs were shown.
SEGMENT = """
           (SELECT s.external_id FROM segments s WHERE s.campaign_id = :campaign AND s.number = h.segment) AS segment,
           h.shown_as"""


def responses_of(segment: str) -> TextClause:
    """SQL for the responses of a campaign."""
    return text(f"""
    SELECT r.seq, r.source, r.hit_id, r.items, r.values AS scores, r.extra, r.telemetry, r.received_at,
           a.pseudonym, a.name, h.leader, h.iteration, h.issued_at, h.items AS shown,{IDS},{segment}
    FROM responses r JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = r.annotator_id
    JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id
    WHERE r.campaign_id = :campaign ORDER BY r.seq
""")  # noqa: S608  (made of constants)


def without_score(segment: str) -> TextClause:
    """SQL for the HITs in which every item was marked N/A."""
    return text(f"""
    SELECT NULL AS seq, a.pseudonym, a.name, 'import' AS source, h.id AS hit_id, h.iteration, h.leader,
           h.items AS shown,{IDS},{segment},
           CAST('{{}}' AS int[]) AS items, CAST('{{}}' AS float8[]) AS scores, NULL AS extra, NULL AS telemetry,
           h.issued_at, h.closed_at AS received_at
    FROM hits h JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = h.annotator_id
    WHERE h.campaign_id = :campaign AND h.not_applicable IS NOT NULL
      AND NOT EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = h.id)
    ORDER BY h.id
""")  # noqa: S608  (made of constants)


# Of items, and of systems.
RESPONSES = [(responses_of(segment), without_score(segment)) for segment in (" NULL AS segment", SEGMENT)]
