"""Storage of locked answers together with the posteriors that they change.

The update laws are applied in memory, answer after answer in the order of their numbers, so a replay of the record
gives the same bits.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from app.annotation.hits import remarks
from app.annotation.hits.answer_parameters import AnswerKey, ResponseParameters, build_response_parameters
from app.annotation.hits.answer_parsing import (
    parse_answer_without_checks_and_shown_values,
    parse_answers_and_values_of_all_criteria,
)
from app.annotation.hits.finish_check import FINISH_CHECK
from app.annotation.hits.locked_answers import LockedAnswers, LockedHit, SubmittedAnswer
from app.database.session import Driver, Record, execute_statement, fetch_rows, leads_to_citus
from app.designs.answer import Form
from app.designs.playback import refuse_form_with_unplayed_items
from app.errors import Gone, Refusal
from app.quality import checks
from app.quality.check_positions import PlacedCheck
from app.record import unjudged
from app.record.bulk_update import LOCK_ITEM_POSTERIORS, LockedPosterior
from app.record.campaign_law import convert_judging_responses_to_hits_of_law
from app.record.law_runner import LawRunner
from app.record.law_storage import Revision
from app.record.posterior_storage import UPDATE_POSTERIORS, UPDATE_POSTERIORS_SQL
from app.record.responses import Response

# Close the HITs, store one response for each, in the order of :hits, and the posteriors. All locks are held when this
# is sent. Items and values of all responses follow each other; each response has those from its start to its end. The
# annotator may have continued a HIT in another visit; it counts for the visit that answers.
INSERT_RESPONSES_SQL = """
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, segment, extra, telemetry,
                               received_at)
        SELECT :campaign, hit, annotator, source, (CAST(:items AS int[]))[item_start : item_end],
               (CAST(:values AS float8[]))[value_start : value_end], segment, CAST(extra AS jsonb),
               CAST(telemetry AS jsonb), answered_at
        FROM {answered} ORDER BY place
        RETURNING seq, hit_id"""
ANSWERED_SQL = """unnest(
            CAST(:hits AS bigint[]), CAST(:assignments AS bigint[]), CAST(:annotators AS bigint[]),
            CAST(:sources AS text[]), CAST(:segments AS int[]), CAST(:extras AS text[]), CAST(:telemetries AS text[]),
            CAST(:times AS timestamptz[]), CAST(:item_starts AS int[]), CAST(:item_ends AS int[]),
            CAST(:value_starts AS int[]), CAST(:value_ends AS int[])
        ) WITH ORDINALITY AS answered (
            hit, assignment, annotator, source, segment, extra, telemetry, answered_at, item_start, item_end,
            value_start, value_end, place)"""
STORE_RESPONSES = text(f"""
    WITH answered AS MATERIALIZED (
        SELECT * FROM {ANSWERED_SQL}
    ), closed AS (
        UPDATE hits h SET closed_at = answered.answered_at, assignment_id = answered.assignment, untouched_by = NULL
        FROM answered, LATERAL (
            SELECT t.ctid AS place_in_table FROM hits t
            WHERE t.campaign_id = :campaign AND t.id = answered.hit OFFSET 0  -- so that each is found by its key
        ) AS found
        WHERE h.ctid = found.place_in_table
    ), response AS (
{INSERT_RESPONSES_SQL.format(answered="answered")}
    ), changed AS (
        {UPDATE_POSTERIORS_SQL}
    )
    SELECT seq, hit_id FROM response
""")

# The same for Citus, which stores rows of several tables only by several statements.
CLOSE_HITS = text("""
    UPDATE hits h SET closed_at = answered.answered_at, assignment_id = answered.assignment, untouched_by = NULL
    FROM unnest(CAST(:hits AS bigint[]), CAST(:assignments AS bigint[]), CAST(:times AS timestamptz[]))
        AS answered (hit, assignment, answered_at)
    WHERE h.campaign_id = :campaign AND h.id = answered.hit
""")
INSERT_RESPONSES = text(INSERT_RESPONSES_SQL.format(answered=ANSWERED_SQL))


class StoredResponse(Record):
    """Number of a response to a HIT."""

    seq: int
    hit_id: int


@dataclass(frozen=True)
class AnswerReceipt:
    """Receipt of an answer: its number, and whether the HIT had an answer already."""

    hit_id: int
    seq: int
    repeated: bool = False


@dataclass(frozen=True)
class AcceptedAnswer:
    """An answer that the campaign's design accepts.

    Attributes:
        hit: The answered HIT.
        assignment_id: Id of the assignment that answers.
        columns: Columns of the response.
        responses: What the laws learn from, one for each criterion.
        unjudged_items: Items that the annotator could not judge.
        has_remarks: True if the answer has comments or flags.
        placed_checks: Checks of the HIT.
        shown_values: Values of all items and checks as shown, by each criterion, if there are checks.

    """

    hit: LockedHit
    assignment_id: int
    columns: ResponseParameters
    responses: list[Response]
    unjudged_items: list[int]
    has_remarks: bool
    placed_checks: Sequence[PlacedCheck]
    shown_values: list[list[float]]


def lease_lost_error() -> Gone:
    return Gone(
        "Your time for these items had run out, and they are no longer yours to answer, so this answer was not "
        "stored. Your earlier answers are safe.",
        code="lease_expired",
    )


async def store_answers_returning_outcome_by_locked_hit(
    connection: Driver, locked: LockedAnswers, answers: Sequence[SubmittedAnswer], *, are_late: bool = False
) -> dict[int, AnswerReceipt | Exception]:
    """Store the answers to locked HITs and the updated posteriors, and return a receipt or a refusal by HIT.

    An answer of an excluded annotator is stored, but changes no posterior.

    Args:
        connection: The connection whose transaction has the locks.
        locked: The locked HITs.
        answers: One answer for each of them.
        are_late: True if the items were checked for room: then an answer may complete the judgments of an item.

    """
    placed_checks_by_hit = (
        await checks.load_placed_checks_by_hit(connection, locked.id, [*locked.hits]) if locked.has_checks else {}
    )
    laws = await lock_posteriors_and_make_law_runners(connection, locked)
    judgments = Counter(dict(zip(locked.numbers or (), locked.judgments or (), strict=True)))
    excluded = {*(locked.excluded or ())}
    refusals: dict[int, Refusal] = {}
    accepted_answers: list[AcceptedAnswer] = []
    for answer in answers:
        hit = locked.hits[answer.hit_id]
        try:
            if not are_late:
                refuse_as_lease_lost_if_item_is_fully_judged(locked, hit, judgments)
            accepted = await accepted_answer_or_refuse(
                connection, locked, hit, answer, placed_checks_by_hit.get(hit.id, ())
            )
        except Refusal as refusal:
            refusals[answer.hit_id] = refusal
            continue
        accepted_answers.append(accepted)
        if hit.annotator_id not in excluded:
            judgments.update(accepted.responses[0].items)
            await apply_answer_by_all_laws(locked, laws, accepted)
    seq_by_hit = (
        await store_responses_and_posteriors_and_return_seq_by_hit(connection, locked, laws, accepted_answers)
        if accepted_answers
        else {}
    )
    may_be_complete = False
    for accepted in accepted_answers:
        does_count, judged_items = accepted.hit.annotator_id not in excluded, accepted.responses[0].items
        may_be_complete |= await store_details_and_return_if_item_leaves_pool(
            connection, locked, accepted, seq_by_hit[accepted.hit.id], does_count=does_count
        )
        if does_count and judged_items:
            may_be_complete |= all(judgments[item] >= locked.judgments_per_item for item in judged_items)
    if may_be_complete:
        await FINISH_CHECK.finish_if_complete(connection, locked.id, now=answers[0].now)
    return {**refusals, **{hit_id: AnswerReceipt(hit_id, seq) for hit_id, seq in seq_by_hit.items()}}


def refuse_as_lease_lost_if_item_is_fully_judged(
    locked: LockedAnswers, hit: LockedHit, judgments: Mapping[int, int]
) -> None:
    """Refuse an answer about an item that has all wanted judgments. An import brought them, or a clock went back.

    Raises:
        Gone: `lease_expired`.

    """
    if any(judgments[item] >= locked.judgments_per_item and item not in locked.always_shown for item in hit.hit_items):
        raise lease_lost_error()


async def accepted_answer_or_refuse(
    connection: Driver,
    locked: LockedAnswers,
    hit: LockedHit,
    answer: SubmittedAnswer,
    placed_checks: Sequence[PlacedCheck],
) -> AcceptedAnswer:
    """Return the answer as it is stored. Raises `Invalid`."""
    submitted = answer.submitted
    if isinstance(submitted, Form):
        refuse_form_with_unplayed_items(locked.must_play, submitted, len(hit.hit_items) + len(placed_checks))
    submitted_items, shown_values = (
        parse_answer_without_checks_and_shown_values(locked, hit, submitted, placed_checks)
        if placed_checks
        else (submitted, [])
    )
    parsed_answers = parse_answers_and_values_of_all_criteria(locked, hit, submitted_items)
    answers = [criterion_answer for criterion_answer, _ in parsed_answers]
    first = await remarks.drop_or_refuse_unoffered_remarks(connection, locked.id, answers[0], placed_checks)
    values = [value for _, item_values in parsed_answers for value in item_values]
    key = AnswerKey(**answer.assignment.parameters, hit=hit.id, now=answer.now)
    return AcceptedAnswer(
        hit=hit,
        assignment_id=answer.assignment.assignment_id,
        columns=build_response_parameters(key, locked, hit, [first, *answers[1:]], values),
        responses=[
            Response.from_stored(0, hit.annotator_id, hit.hit_items, item_values) for _, item_values in parsed_answers
        ],
        unjudged_items=[*answers[0].unjudged],
        has_remarks=bool(first.remarks),
        placed_checks=placed_checks,
        shown_values=shown_values,
    )


async def lock_posteriors_and_make_law_runners(connection: Driver, locked: LockedAnswers) -> list[LawRunner]:
    """Return a runner of the campaign's law for each criterion, with the posteriors of the locked items."""
    states_by_criterion = [dict(zip(locked.numbers or (), locked.states or (), strict=True))]
    for criterion in locked.criteria[1:]:
        revision = Revision(locked.id, locked.revision, criterion.number)
        rows = await fetch_rows(
            connection,
            LOCK_ITEM_POSTERIORS,
            {**revision.sql_parameters, "numbers": locked.numbers or []},
            LockedPosterior,
        )
        states_by_criterion.append({row.subject: row.state for row in rows})
    return [
        LawRunner(connection, Revision(locked.id, locked.revision, criterion.number), criterion.law, states)
        for criterion, states in zip(locked.criteria, states_by_criterion, strict=True)
    ]


async def apply_answer_by_all_laws(locked: LockedAnswers, laws: Sequence[LawRunner], accepted: AcceptedAnswer) -> None:
    """Apply the answer in memory, by all criteria."""
    for criterion, law, response in zip(locked.criteria, laws, accepted.responses, strict=True):
        await law.apply_hits(convert_judging_responses_to_hits_of_law(criterion, [response]), criterion.law_parameters)


async def store_responses_and_posteriors_and_return_seq_by_hit(
    connection: Driver, locked: LockedAnswers, laws: Sequence[LawRunner], accepted_answers: Sequence[AcceptedAnswer]
) -> dict[int, int]:
    """Store the responses, the laws' state and the posteriors, and return the number of each response by HIT."""
    posteriors, *posteriors_by_others = [await law.store_law_state_and_return_posterior_parameters() for law in laws]
    parameters = sql_parameters_of_responses(locked, accepted_answers)
    if leads_to_citus(connection):
        closing = {name: parameters[name] for name in ("campaign", "hits", "assignments", "times")}
        await execute_statement(connection, CLOSE_HITS, closing)
        rows = await fetch_rows(connection, INSERT_RESPONSES, parameters, StoredResponse)
        await execute_statement(connection, UPDATE_POSTERIORS, posteriors)
    else:
        rows = await fetch_rows(connection, STORE_RESPONSES, parameters | posteriors, StoredResponse)
    for parameters in posteriors_by_others:
        await execute_statement(connection, UPDATE_POSTERIORS, parameters)
    return {row.hit_id: row.seq for row in rows}


def sql_parameters_of_responses(locked: LockedAnswers, accepted_answers: Sequence[AcceptedAnswer]) -> dict[str, Any]:
    """Return the parameters of `STORE_RESPONSES` for the responses."""
    columns = [accepted.columns for accepted in accepted_answers]
    item_starts, item_ends, items = first_and_last_positions_and_concatenation([column.items for column in columns])
    value_starts, value_ends, values = first_and_last_positions_and_concatenation([column.values for column in columns])
    return {
        "campaign": locked.id,
        "hits": [column.hit for column in columns],
        "assignments": [accepted.assignment_id for accepted in accepted_answers],
        "annotators": [column.annotator for column in columns],
        "sources": [column.source for column in columns],
        "segments": [column.segment for column in columns],
        "extras": [column.extra for column in columns],
        "telemetries": [column.telemetry for column in columns],
        "times": [column.now for column in columns],
        "item_starts": item_starts,
        "item_ends": item_ends,
        "items": items,
        "value_starts": value_starts,
        "value_ends": value_ends,
        "values": values,
    }


def first_and_last_positions_and_concatenation(
    lists: Sequence[Sequence[Any]],
) -> tuple[list[int], list[int], list[Any]]:
    """Return the first and last position of each list in all lists together, counted from 1, and these together."""
    starts: list[int] = []
    ends: list[int] = []
    together: list[Any] = []
    for entries in lists:
        starts.append(len(together) + 1)
        together.extend(entries)
        ends.append(len(together))
    return starts, ends, together


async def store_details_and_return_if_item_leaves_pool(
    connection: Driver, locked: LockedAnswers, accepted: AcceptedAnswer, seq: int, *, does_count: bool
) -> bool:
    """Store what follows from a stored answer besides posteriors, and return whether an item now leaves the pool.

    An annotator who could not judge an output gives no evidence about its system.
    """
    hit = accepted.hit
    if accepted.has_remarks:
        await remarks.store_alert_of_each_item_that_reaches_flag_limit(connection, locked.id, seq)
    if accepted.placed_checks:
        await checks.store_first_check_answers(
            connection,
            locked.id,
            hit.id,
            accepted.placed_checks,
            accepted.shown_values,
            annotator_id=hit.annotator_id,
            now=accepted.columns.now,
        )
    if not accepted.unjudged_items or not does_count or hit.segment is not None:
        return False
    unable_annotators = await unjudged.add_unjudged_and_return_highest_count(
        connection, locked.id, hit.annotator_id, seq, accepted.unjudged_items
    )
    return unable_annotators >= locked.unjudged_people
