"""The export of responses: one row per item of an answered HIT, in the order in which responses were applied."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

import numpy as np
from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import ROWS_AT_ONCE, Cells, TableFile
from app.crowd.files import ENTRY_ANSWER_PREFIX
from app.designs import criteria
from app.designs.criteria import criteria_of, number_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.remarks import EXTRA as SAID_BESIDE
from app.designs.remarks import HIT
from app.designs.scale import ranks
from app.designs.unjudged import EXTRA
from app.record import remarks as said_beside
from app.record.stream import COUNTING, DECIDED, LEFT_OUT, Response
from app.spreadsheets import guarded
from app.visit.asked_once import parse_question_lines
from app.visit.groups import load_entry_answers

RESPONSE_COLUMNS = (
    *("seq", "annotator", "name", "source", "hit", "iteration", "position", "item", "leader", "score", "rank"),
    *("issued_at", "received_at", "first_touch_ms", "changes", "input_kind", "viewport", "not_applicable", "counts"),
    *("replaces", "drawn_because", "leader_probability", "left_out", "left_out_reason", "left_out_at", "barred"),
    "revision",
)
OF_SEGMENTS = ("segment", "shown_as")
CRITERION = "criterion"
CRITERION_POSITION = "criterion_position"  # which of the criteria was asked first, 1, and so on
LABEL = "label"
REASON = "reason"  # why an item cannot be judged
REMARKS = ("flag", "comment", "hit_flag", "hit_comment")  # what was said of the item, and of the HIT
TOUCHES = ("first_touch_ms", "changes", "input_kinds")  # lists of the telemetry, a place for each value


async def responses_table(connection: AsyncConnection, campaign: Row[Any]) -> TableFile:
    """One row per item of an answered HIT, in the order in which responses came; positions and ranks count from 1;
    `counts` is false where the response is left out, `left_out` then says why (`annotator_excluded`, `answer_excluded`,
    `replaced`, or `not_yet`: the answer that it replaces still counts), with the decision's reason and time; `barred`
    says whether its annotator is held or excluded, and `revision` at which revision of the posteriors all this is true.
    `replaces` is the number of the one in whose place its annotator gave it; `drawn_because` and `leader_probability`
    say why its HIT was drawn (`selection.rule.Draw`).

    An item that cannot be judged has no score, but a reason where the campaign asks for one; HITs that were imported
    with all of theirs marked so come last. A score that is a class, counted from 0, has its label beside it; without an
    order there are no ranks. Of systems also the segment, and under which system an output was shown that several have.
    Of several criteria, a row per item by the first, then by the next, with the place in which it was asked. What was
    said beside it, where that is asked for or there is any. At the end what its annotator answered to questions that
    were asked once.
    """
    designs, of_systems = [(one, design_of(one)) for one in criteria_of(campaign)], campaign.segment_count > 0

    async def chunks() -> AsyncIterator[list[Cells]]:
        for statement in RESPONSES[of_systems]:
            result = await connection.stream(statement, {"campaign": campaign.id})
            async for rows in result.partitions(ROWS_AT_ONCE):
                yield [
                    (*cells[:width], *(said.get(row.annotator_id, {}).get(name) for name in asked))
                    for row in rows
                    for by in designs
                    for cells in answered_items(row, *by, remarks=remarked)
                ]

    remarked = await said_beside.are_there(connection, campaign)
    columns = response_columns(campaign, of_systems=of_systems, remarks=remarked, reasons=campaign.cannot_be_judged)
    width, asked = len(columns), [one.name for one in parse_question_lines(campaign.questions)]
    answered = await load_entry_answers(connection, campaign.id) if asked else {}
    said = {number: {name: guarded(text) for name, text in told.items()} for number, told in answered.items()}
    return TableFile((*columns, *(ENTRY_ANSWER_PREFIX + name for name in asked)), chunks())


def response_columns(campaign: Any, *, of_systems: bool, remarks: bool, reasons: bool) -> tuple[str, ...]:
    """`RESPONSE_COLUMNS`, with the label of a score where scores are classes, the criterion where there are several, of
    systems with `OF_SEGMENTS`, and remarks and reasons where there can be any.
    """
    place, after = (RESPONSE_COLUMNS.index(name) + 1 for name in ("item", "score"))
    label, reason = [LABEL] if design_of(campaign).classes else [], [REASON] if reasons else []
    criterion = [CRITERION, CRITERION_POSITION] if campaign.criteria else []
    segment, rest = OF_SEGMENTS if of_systems else (), RESPONSE_COLUMNS[after:]
    return (
        *(*RESPONSE_COLUMNS[:place], *criterion, *RESPONSE_COLUMNS[place:after]),
        *(*label, *rest, *segment, *(REMARKS if remarks else ()), *reason),
    )


def answered_items(row: Row[Any], campaign: Any, design: Design, *, remarks: bool) -> Iterable[Cells]:
    """An answered HIT by one criterion as `response_columns` with all of them, one tuple per item."""
    first = number_of(campaign) * len(row.items)
    of_criterion = slice(first, first + len(row.items))
    known, nothing, extra = row.telemetry or {}, [None] * len(row.items), row.extra or {}
    touches = (known[name][of_criterion] if name in known else nothing for name in TOUCHES)
    viewport, criterion = known.get("viewport"), criterion_cells(campaign, extra)
    said, reasons = Response.of(0, 0, row.items, row.scores[of_criterion]), extra.get(EXTRA, {})
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
            *(position, item, *criterion, leader, score, *label, rank),
            *(row.issued_at, row.received_at, *touch, viewport and guarded(viewport)),
            number not in told or str(number) in reasons,
            row.counts,
            row.replaces,
            *(row.drawn_because, row.leader_probability),
            *(row.left_out, guarded(row.left_out_reason), row.left_out_at, row.barred, row.revision),
            *(segment_cells(row, ids, position - 1) if row.segment else ()),
            *(remark_cells(extra, str(number)) if remarks else ()),
            reasons.get(str(number)),
        )


def criterion_cells(campaign: Any, extra: Mapping[str, Any]) -> Cells:
    """The name of the criterion by which a campaign is read, and its place among those asked, if that is known."""
    if not campaign.criteria:
        return ()
    order = extra.get(criteria.EXTRA, ())
    name = campaign.criterion_name
    return name, order.index(name) + 1 if name in order else None


def remark_cells(extra: Mapping[str, Any], item: str) -> Cells:
    """The cells of `REMARKS`, guarded against spreadsheet programs; a flag without a reason is an empty text."""
    said = extra.get(SAID_BESIDE, {})
    return tuple(guarded(said.get(about, {}).get(name)) for about in (item, HIT) for name in ("flag", "comment"))


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


def left_out_of(annotator: str, response: str) -> str:
    """Return SQL that joins to a response (or HIT) the decision that leaves it out; of several the one about the
    response itself.
    """
    decided = DECIDED.format(campaign=":campaign")
    return f"""
    LEFT JOIN LATERAL (
        SELECT d.kind, d.reason, d.decided_at, d.response_seq FROM decisions d
        WHERE d.campaign_id = :campaign AND d.seq <= {decided} AND d.kind <> 'include'
          AND (d.annotator_id = {annotator} OR d.response_seq = {response})
          AND NOT EXISTS (
              SELECT FROM decisions later WHERE later.campaign_id = :campaign AND later.seq > d.seq
              AND later.seq <= {decided} AND later.annotator_id IS NOT DISTINCT FROM d.annotator_id
              AND later.response_seq IS NOT DISTINCT FROM d.response_seq)
        ORDER BY d.response_seq, d.seq DESC LIMIT 1
    ) AS left_out ON NOT r.counts"""  # noqa: S608  (made of constants)


# In words, and the decision's reason and time.
LEFT_OUT_CELLS = """
           CASE WHEN r.counts THEN NULL WHEN left_out.kind IS NULL THEN 'not_yet'
                WHEN left_out.response_seq IS NULL THEN 'annotator_excluded'
                WHEN left_out.kind = 'withdraw' THEN 'replaced' ELSE 'answer_excluded' END AS left_out,
           left_out.reason AS left_out_reason, left_out.decided_at AS left_out_at,
           (SELECT barred FROM annotators b WHERE b.campaign_id = :campaign AND b.id = r.annotator_id) AS barred,
           (SELECT revision FROM campaigns WHERE id = :campaign) AS revision"""


def responses_of(segment: str) -> TextClause:
    """SQL for the responses of a campaign."""
    return text(f"""
    SELECT r.seq, r.annotator_id, r.source, r.hit_id, r.items, r.values AS scores, r.extra, r.telemetry, r.received_at,
           r.counts, r.replaces, a.pseudonym, a.name, h.leader, h.iteration, h.issued_at,
           h.drawn_because, h.leader_probability,{LEFT_OUT_CELLS},
           h.items AS shown,{IDS},{segment}
    FROM (SELECT *, {COUNTING} AS counts FROM responses WHERE campaign_id = :campaign) AS r
    JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = r.annotator_id
    JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id
    {left_out_of("r.annotator_id", "r.seq")}
    ORDER BY r.seq
""")  # noqa: S608  (made of constants)


def without_score(segment: str) -> TextClause:
    """SQL for the HITs in which every item was marked N/A."""
    return text(f"""
    SELECT NULL AS seq, r.annotator_id, a.pseudonym, a.name, 'import' AS source, h.id AS hit_id, h.iteration,
           h.leader, h.items AS shown,{IDS},{segment},
           CAST('{{}}' AS int[]) AS items, CAST('{{}}' AS float8[]) AS scores, NULL AS extra, NULL AS telemetry,
           h.issued_at, h.closed_at AS received_at, r.counts, NULL AS replaces,
           NULL AS drawn_because, NULL AS leader_probability,{LEFT_OUT_CELLS}
    FROM hits h JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = h.annotator_id
    CROSS JOIN LATERAL (SELECT a.id AS annotator_id, a.id NOT IN ({LEFT_OUT.text}) AS counts) AS r
    {left_out_of("r.annotator_id", "NULL")}
    WHERE h.campaign_id = :campaign AND h.not_applicable IS NOT NULL
      AND NOT EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = h.id)
    ORDER BY h.id
""")  # noqa: S608  (made of constants)


# Of items, and of systems.
RESPONSES = [(responses_of(segment), without_score(segment)) for segment in (" NULL AS segment", SEGMENT)]
