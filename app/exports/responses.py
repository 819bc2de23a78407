"""The export of responses: one row per item of an answered HIT, in the order in which responses were applied."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.entry_questions import parse_question_lines
from app.annotation.onboarding.profile_answers import load_entry_answers_by_annotator
from app.annotation.platforms.easel_results import ENTRY_ANSWER_PREFIX
from app.designs import criteria
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.remarks import REMARKS_KEY as SAID_BESIDE
from app.designs.remarks import WHOLE_HIT
from app.designs.scale import competition_ranks_best_first
from app.designs.unjudged import UNJUDGED_KEY
from app.exports.condition_cells import CONDITION_COLUMNS, load_condition_cells_or_none
from app.record import remarks as said_beside
from app.record.responses import COUNTING_RESPONSES_CONDITION, FIND_EXCLUDED_ANNOTATORS, LAST_DECISION_SQL, Response
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import EXPORT_ROWS_PER_BATCH, RowCells, TableStream

RESPONSE_EXPORT_COLUMNS = (
    *("seq", "annotator", "name", "source", "hit", "iteration", "position", "item", "leader", "score", "rank"),
    *("issued_at", "received_at", "first_touch_ms", "changes", "input_kind", "viewport", "not_applicable", "counts"),
    *("replaces", "drawn_because", "leader_probability", "left_out", "left_out_reason", "left_out_at", "barred"),
    "revision",
)
SEGMENT_USE_COLUMNS = ("segment", "shown_as")
CRITERION_COLUMN = "criterion"
CRITERION_POSITION_COLUMN = "criterion_position"  # which of the criteria was asked first, 1, and so on
LABEL_COLUMN = "label"
UNJUDGED_REASON_COLUMN = "reason"  # why an item cannot be judged
VERSION_COLUMN = "item_version"  # which version of a corrected text the HIT showed, from 1
REMARK_TEXT_COLUMNS = ("flag", "comment", "hit_flag", "hit_comment")  # what was said of the item, and of the HIT
PLAYBACK_COLUMNS = ("plays", "seconds_heard", "switches")
TELEMETRY_COLUMNS = ("first_touch_ms", "changes", "input_kinds", *PLAYBACK_COLUMNS)  # lists, a place for each value


async def open_responses_export_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per item of an answered HIT, in the order of the responses; positions and ranks count from 1.

    `counts` is false if the response is excluded. `left_out` then says why (`annotator_excluded`, `answer_excluded`,
    `replaced`, or `not_yet`: the answer that it replaces still counts), with the decision's reason and time. `barred`
    says whether the annotator is held or excluded, and `revision` at which revision of the posteriors all this is
    true. `replaces` is the number of the response that the annotator replaced with this one. `drawn_because` and
    `leader_probability` say why the HIT was drawn (`selection.rule.Draw`).

    An item that cannot be judged has no score, but a reason if the campaign asks for one. Imported HITs in which all
    items are marked so come last. A score that is a class, counted from 0, has its label in the next column; without
    an order there are no ranks. For systems there is also the segment, and the system under which a shared output was
    shown. With several criteria, there is a row per item by the first, then by the next, with the place in which it
    was asked. If a text was corrected, `item_version` is 1 for its first text. Remarks are included if the campaign
    asks for them or has any, and plays if its items are recordings or videos or must be played. If items have
    conditions, there are the condition, its block and the annotator's list. The last columns hold the annotator's
    answers to profile questions.
    """
    has_systems = campaign.segment_count > 0

    async def chunks() -> AsyncIterator[list[RowCells]]:
        for statement in FIND_RESPONSES_TO_EXPORT[has_systems]:
            result = await connection.stream(statement, {"campaign": campaign.id})
            async for rows in result.partitions(EXPORT_ROWS_PER_BATCH):
                yield [
                    (
                        *cells[:width],
                        *(
                            conditions.cells_of_judgment(
                                row.annotator_id, cells[item_place], cells[position_place], row.extra
                            )
                            if conditions
                            else ()
                        ),
                        *(guarded_answers.get(row.annotator_id, {}).get(name) for name in question_names),
                    )
                    for row in rows
                    for criterion in campaign.criteria
                    for cells in iterate_response_export_rows(
                        row, criterion, has_remarks=has_remarks, last_hits=last_hits
                    )
                ]

    has_remarks = await said_beside.are_remarks_asked_or_stored(connection, campaign)
    last_hits = await load_last_hits_of_former_texts_by_item(connection, campaign.id)
    columns = response_columns(
        campaign,
        has_systems=has_systems,
        has_remarks=has_remarks,
        has_reasons=campaign.cannot_be_judged,
        has_versions=bool(last_hits),
    )
    conditions = await load_condition_cells_or_none(connection, campaign)
    item_place, position_place = columns.index("item"), columns.index("position")
    width, question_names = len(columns), [question.name for question in parse_question_lines(campaign.questions)]
    entry_answers = await load_entry_answers_by_annotator(connection, campaign.id) if question_names else {}
    guarded_answers = {
        number: {name: guard_against_formula(text) for name, text in given.items()}
        for number, given in entry_answers.items()
    }
    condition_columns = CONDITION_COLUMNS if conditions else ()
    return TableStream(
        (*columns, *condition_columns, *(ENTRY_ANSWER_PREFIX + name for name in question_names)), chunks()
    )


async def load_last_hits_of_former_texts_by_item(
    connection: AsyncConnection, campaign_id: int
) -> dict[tuple[int | None, int], list[int]]:
    """Return the last HITs that showed each former text, in order, by the segment (None for items) and the item."""
    last_hits: dict[tuple[int | None, int], list[int]] = {}
    for row in await connection.execute(LIST_LAST_HITS_OF_VERSIONS, {"campaign": campaign_id}):
        last_hits.setdefault((row.segment, row.item), []).append(row.last_hit)
    return last_hits


def response_columns(
    campaign: Campaign, *, has_systems: bool, has_remarks: bool, has_reasons: bool, has_versions: bool = False
) -> tuple[str, ...]:
    """Return `RESPONSE_COLUMNS` with those that the campaign adds.

    These are the label of a score that is a class, the criterion if there are several, the version of corrected texts,
    and the columns of segments, remarks, playback and reasons.
    """
    place, after = (RESPONSE_EXPORT_COLUMNS.index(name) + 1 for name in ("item", "score"))
    label, reason = (
        [LABEL_COLUMN] if campaign.design.classes else [],
        [UNJUDGED_REASON_COLUMN] if has_reasons else [],
    )
    criterion = [CRITERION_COLUMN, CRITERION_POSITION_COLUMN] if campaign.has_criteria else []
    version = [VERSION_COLUMN] if has_versions else []
    segment, rest = SEGMENT_USE_COLUMNS if has_systems else (), RESPONSE_EXPORT_COLUMNS[after:]
    playback = PLAYBACK_COLUMNS if campaign.are_playbacks_reported else ()
    return (
        *(*RESPONSE_EXPORT_COLUMNS[:place], *criterion, *RESPONSE_EXPORT_COLUMNS[place:after]),
        *(*label, *rest, *version, *segment),
        *(*(REMARK_TEXT_COLUMNS if has_remarks else ()), *playback, *reason),
    )


def iterate_response_export_rows(
    row: Row[Any],
    criterion: Criterion[Campaign],
    *,
    has_remarks: bool,
    last_hits: Mapping[tuple[int | None, int], Sequence[int]],
) -> Iterable[RowCells]:
    """Yield one tuple per item of an answered HIT by one criterion, with all of `response_columns`."""
    design, first = criterion.design, criterion.number * len(row.items)
    value_slice = slice(first, first + len(row.items))
    telemetry, nothing, extra = row.telemetry or {}, [None] * len(row.items), row.extra or {}
    touches = (telemetry[name][value_slice] if name in telemetry else nothing for name in TELEMETRY_COLUMNS)
    viewport, name_and_place = telemetry.get("viewport"), criterion_cells_or_empty(criterion, extra)
    response, reasons = Response.from_stored(0, 0, row.items, row.scores[value_slice]), extra.get(UNJUDGED_KEY, {})
    places = (
        competition_ranks_best_first(design.values_to_points(np.array(response.values, np.float64)).tolist())
        if design.is_ordered
        else nothing
    )
    value_and_rank = dict(zip(response.items, zip(response.values, places, strict=False), strict=True))
    cells_by_item = {
        item: [*value_and_rank.get(item, (None, None)), *rest] for item, *rest in zip(row.items, *touches, strict=True)
    }
    ids, no_cells = dict(zip(row.shown, row.ids, strict=True)), [None] * (2 + len(TELEMETRY_COLUMNS))
    # Cells of the whole HIT, made once for all of its items.
    leader, segment, classes, plays_media = (
        row.leader,
        row.segment,
        design.classes,
        criterion.campaign.are_playbacks_reported,
    )
    cells_before = row.seq, row.pseudonym, row.name, row.source, row.hit_id, row.iteration
    times, screen = (row.issued_at, row.received_at), viewport and guard_against_formula(viewport)
    cells_after = (
        *(row.counts, row.replaces, row.drawn_because, row.leader_probability),
        *(row.left_out, guard_against_formula(row.left_out_reason), row.left_out_at, row.barred, row.revision),
    )
    for position, (number, item) in enumerate(zip(row.shown, row.ids, strict=True), start=1):
        score, rank, *told = cells_by_item.get(number, no_cells)
        label = (None if score is None else classes[int(score)],) if classes else ()
        is_leader = None if leader is None else number == leader
        yield (
            *cells_before,
            *(position, item, *name_and_place, is_leader, score, *label, rank),
            *(*times, *told[: -len(PLAYBACK_COLUMNS)], screen),
            number not in cells_by_item or str(number) in reasons,
            *cells_after,
            *([1 + bisect_left(last_hits.get((row.segment_number, number), ()), row.hit_id)] if last_hits else ()),
            *(segment_and_output_id_cells(row, ids, position - 1) if segment else ()),
            *(remark_cells(extra, str(number)) if has_remarks else ()),
            *(told[-len(PLAYBACK_COLUMNS) :] if plays_media else ()),
            reasons.get(str(number)) if reasons else None,
        )


def criterion_cells_or_empty(criterion: Criterion[Campaign], extra: Mapping[str, Any]) -> RowCells:
    """Return the name of the criterion, if it has one, and its place among the criteria asked, if known."""
    name = criterion.name
    if not name:
        return ()
    order = extra.get(criteria.CRITERIA_ORDER_KEY, ())
    return name, order.index(name) + 1 if name in order else None


def remark_cells(extra: Mapping[str, Any], item: str) -> RowCells:
    """Return the cells of remarks, guarded against spreadsheet programs; a flag without a reason is an empty text."""
    remarks_by_subject = extra.get(SAID_BESIDE, {})
    return tuple(
        guard_against_formula(remarks_by_subject.get(about, {}).get(name))
        for about in (item, WHOLE_HIT)
        for name in ("flag", "comment")
    )


def segment_and_output_id_cells(row: Row[Any], ids: Mapping[int, str], position: int) -> RowCells:
    """Return the segment's cells of the item at a place."""
    return row.segment, ids[(row.shown_as or row.shown)[position]]


LIST_LAST_HITS_OF_VERSIONS = text("""
    SELECT CAST(NULL AS int) AS segment, item, version, last_hit FROM item_versions WHERE campaign_id = :campaign
    UNION ALL SELECT segment, item, version, last_hit FROM output_versions WHERE campaign_id = :campaign
    ORDER BY segment, item, version
""")

# Ids of the items of a HIT, in the order in which they were shown.
SHOWN_ITEM_IDS_COLUMN = """
           ARRAY(SELECT i.external_id FROM unnest(h.items) WITH ORDINALITY AS shown (number, place)
                 JOIN items i ON i.campaign_id = :campaign AND i.number = shown.number ORDER BY place) AS ids"""

# The segment of a HIT of systems, and the items under which outputs were shown.
HIT_SEGMENT_COLUMNS = """
           (SELECT s.external_id FROM segments s WHERE s.campaign_id = :campaign AND s.number = h.segment) AS segment,
           h.shown_as, h.segment AS segment_number"""


def join_of_excluding_decision_sql(annotator_sql: str, response_sql: str) -> str:
    """Return SQL that joins the decision that excludes a response (or HIT).

    If there are several, it is the decision about the response itself.
    """
    decided = LAST_DECISION_SQL.format(campaign=":campaign")
    return f"""
    LEFT JOIN LATERAL (
        SELECT d.kind, d.reason, d.decided_at, d.response_seq FROM decisions d
        WHERE d.campaign_id = :campaign AND d.seq <= {decided} AND d.kind <> 'include'
          AND (d.annotator_id = {annotator_sql} OR d.response_seq = {response_sql})
          AND NOT EXISTS (
              SELECT FROM decisions later WHERE later.campaign_id = :campaign AND later.seq > d.seq
              AND later.seq <= {decided} AND later.annotator_id IS NOT DISTINCT FROM d.annotator_id
              AND later.response_seq IS NOT DISTINCT FROM d.response_seq)
        ORDER BY d.response_seq, d.seq DESC LIMIT 1
    ) AS left_out ON NOT r.counts"""


# In words, and the decision's reason and time.
EXCLUSION_COLUMNS = """
           CASE WHEN r.counts THEN NULL WHEN left_out.kind IS NULL THEN 'not_yet'
                WHEN left_out.kind = 'erased' THEN 'erased' WHEN left_out.response_seq IS NULL THEN 'annotator_excluded'
                WHEN left_out.kind = 'withdraw' THEN 'replaced' ELSE 'answer_excluded' END AS left_out,
           left_out.reason AS left_out_reason, left_out.decided_at AS left_out_at,
           (SELECT barred FROM annotators b WHERE b.campaign_id = :campaign AND b.id = r.annotator_id) AS barred,
           (SELECT revision FROM campaigns WHERE id = :campaign) AS revision"""


def responses_to_export_statement(segment_columns: str) -> TextClause:
    return text(f"""
    SELECT r.seq, r.annotator_id, r.source, r.hit_id, r.items, r.values AS scores, r.extra, r.telemetry, r.received_at,
           r.counts, r.replaces, a.pseudonym, a.name, h.leader, h.iteration, h.issued_at,
           h.drawn_because, h.leader_probability,{EXCLUSION_COLUMNS},
           h.items AS shown,{SHOWN_ITEM_IDS_COLUMN},{segment_columns}
    FROM (SELECT *, {COUNTING_RESPONSES_CONDITION} AS counts FROM responses WHERE campaign_id = :campaign) AS r
    JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = r.annotator_id
    JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id
    {join_of_excluding_decision_sql("r.annotator_id", "r.seq")}
    ORDER BY r.seq
""")


def wholly_unjudged_hits_statement(segment_columns: str) -> TextClause:
    """Return SQL for the HITs in which every item was marked N/A."""
    return text(f"""
    SELECT NULL AS seq, r.annotator_id, a.pseudonym, a.name, 'import' AS source, h.id AS hit_id, h.iteration,
           h.leader, h.items AS shown,{SHOWN_ITEM_IDS_COLUMN},{segment_columns},
           CAST('{{}}' AS int[]) AS items, CAST('{{}}' AS float8[]) AS scores, NULL AS extra, NULL AS telemetry,
           h.issued_at, h.closed_at AS received_at, r.counts, NULL AS replaces,
           NULL AS drawn_because, NULL AS leader_probability,{EXCLUSION_COLUMNS}
    FROM hits h JOIN named_annotators a ON a.campaign_id = :campaign AND a.id = h.annotator_id
    CROSS JOIN LATERAL (SELECT a.id AS annotator_id, a.id NOT IN ({FIND_EXCLUDED_ANNOTATORS.text}) AS counts) AS r
    {join_of_excluding_decision_sql("r.annotator_id", "NULL")}
    WHERE h.campaign_id = :campaign AND h.not_applicable IS NOT NULL
      AND NOT EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = h.id)
    ORDER BY h.id
""")


# For campaigns of items, and of systems.
FIND_RESPONSES_TO_EXPORT = [
    (responses_to_export_statement(segment), wholly_unjudged_hits_statement(segment))
    for segment in (" NULL AS segment, CAST(NULL AS int) AS segment_number", HIT_SEGMENT_COLUMNS)
]
