"""Storage of locked answers together with the posteriors that they change.

The update laws are applied in memory, answer after answer in the order of their numbers, so a replay of the record
gives the same bits.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.annotation.hits import remarks
from app.annotation.hits.answer_leases import AnswerLeases
from app.annotation.hits.answer_parameters import AnswerKey, ResponseParameters, build_response_parameters
from app.annotation.hits.answer_parsing import parse_answers_or_refuse
from app.annotation.hits.finish_check import FINISH_CHECK
from app.annotation.hits.locked_answers import LockedAnswers, LockedHit, SubmittedAnswer
from app.annotation.hits.served_campaign import ServedCampaign
from app.annotation.hits.store_answers_sql import (
    CLOSE_HITS,
    INSERT_RESPONSES,
    STORE_ANSWERS,
    StoredAnswers,
    StoredResponse,
)
from app.database.session import Driver, execute_statement, fetch_rows, leads_to_citus
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
from app.record.posterior_storage import UPDATE_POSTERIORS
from app.record.responses import Response


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
    shown_values: Sequence[list[float]]


def lease_lost_error() -> Gone:
    return Gone(
        "Your time for these items had run out, and they are no longer yours to answer, so this answer was not "
        "stored. Your earlier answers are safe.",
        code="lease_expired",
    )


async def store_answers_returning_outcome_by_locked_hit(
    connection: Driver,
    locked: LockedAnswers,
    answers: Sequence[SubmittedAnswer],
    *,
    are_late: bool = False,
    leases: AnswerLeases | None = None,
) -> dict[int, AnswerReceipt | Exception]:
    """Store the answers to locked HITs and the updated posteriors, and return a receipt or a refusal by HIT.

    An answer of an excluded annotator is stored, but changes no posterior.

    Args:
        connection: The connection whose transaction has the locks.
        locked: The locked HITs.
        answers: One answer for each of them.
        are_late: True if the items were checked for room: then an answer may complete the judgments of an item.
        leases: Next HITs to lease together with the answers.

    """
    placed_checks_by_hit = (
        await checks.load_placed_checks_by_hit(connection, locked.campaign.id, [*locked.hits])
        if locked.campaign.has_checks
        else {}
    )
    laws = await lock_posteriors_and_make_law_runners(connection, locked)
    judgments, excluded = locked.judgments.copy(), locked.excluded
    refusals: dict[int, Refusal] = {}
    accepted_answers: list[AcceptedAnswer] = []
    for answer in answers:
        hit = locked.hits[answer.hit_id]
        try:
            if not are_late:
                refuse_as_lease_lost_if_item_is_fully_judged(locked.campaign, hit, judgments)
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
        await store_responses_and_posteriors_and_return_seq_by_hit(connection, locked, laws, accepted_answers, leases)
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
            may_be_complete |= all(judgments[item] >= locked.campaign.judgments_per_item for item in judged_items)
    if may_be_complete:
        await FINISH_CHECK.finish_if_complete(connection, locked.campaign.id, now=answers[0].now)
    return {**refusals, **{hit_id: AnswerReceipt(hit_id, seq) for hit_id, seq in seq_by_hit.items()}}


def refuse_as_lease_lost_if_item_is_fully_judged(
    campaign: ServedCampaign, hit: LockedHit, judgments: Mapping[int, int]
) -> None:
    """Refuse an answer about an item that has all wanted judgments. An import brought them, or a clock went back.

    Raises:
        Gone: `lease_expired`.

    """
    if any(
        judgments[item] >= campaign.judgments_per_item and item not in campaign.always_shown for item in hit.hit_items
    ):
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
        refuse_form_with_unplayed_items(locked.campaign.must_play, submitted, len(hit.hit_items) + len(placed_checks))
    parsed = parse_answers_or_refuse(locked.campaign, hit, submitted, placed_checks)
    answers = parsed.answers
    first = await remarks.drop_or_refuse_unoffered_remarks(connection, locked.campaign.id, answers[0], placed_checks)
    key = AnswerKey(**answer.assignment.parameters, hit=hit.id, now=answer.now)
    return AcceptedAnswer(
        hit=hit,
        assignment_id=answer.assignment.assignment_id,
        columns=build_response_parameters(key, locked.campaign, hit, [first, *answers[1:]], parsed.stored_values),
        responses=[
            Response.from_stored(0, hit.annotator_id, hit.hit_items, item_values) for item_values in parsed.item_values
        ],
        unjudged_items=[*answers[0].unjudged],
        has_remarks=bool(first.remarks),
        placed_checks=placed_checks,
        shown_values=parsed.shown_values,
    )


async def lock_posteriors_and_make_law_runners(connection: Driver, locked: LockedAnswers) -> list[LawRunner]:
    """Return a runner of the campaign's law for each criterion, with the posteriors of the locked items."""
    states_by_criterion = [locked.states]
    for criterion in locked.campaign.criteria[1:]:
        revision = Revision(locked.campaign.id, locked.campaign.revision, criterion.number)
        rows = await fetch_rows(
            connection,
            LOCK_ITEM_POSTERIORS,
            {**revision.sql_parameters, "numbers": [*locked.states]},
            LockedPosterior,
        )
        states_by_criterion.append({row.subject: row.state for row in rows})
    return [
        LawRunner(
            connection, Revision(locked.campaign.id, locked.campaign.revision, criterion.number), criterion.law, states
        )
        for criterion, states in zip(locked.campaign.criteria, states_by_criterion, strict=True)
    ]


async def apply_answer_by_all_laws(locked: LockedAnswers, laws: Sequence[LawRunner], accepted: AcceptedAnswer) -> None:
    """Apply the answer in memory, by all criteria."""
    for criterion, law, response in zip(locked.campaign.criteria, laws, accepted.responses, strict=True):
        await law.apply_hits(convert_judging_responses_to_hits_of_law(criterion, [response]), criterion.law_parameters)


async def store_responses_and_posteriors_and_return_seq_by_hit(
    connection: Driver,
    locked: LockedAnswers,
    laws: Sequence[LawRunner],
    accepted_answers: Sequence[AcceptedAnswer],
    leases: AnswerLeases | None,
) -> dict[int, int]:
    """Store the responses, the laws' state and the posteriors, and return the number of each response by HIT.

    The next HITs are leased by the same statement, unless an item may leave the pool because of one of the answers.
    """
    posteriors, *posteriors_by_others = [await law.store_law_state_and_return_posterior_parameters() for law in laws]
    parameters = sql_parameters_of_responses(locked, accepted_answers)
    if leads_to_citus(connection):
        closing = {name: parameters[name] for name in ("campaign", "hits", "assignments", "times")}
        await execute_statement(connection, CLOSE_HITS, closing)
        responses = await fetch_rows(connection, INSERT_RESPONSES, parameters, StoredResponse)
        await execute_statement(connection, UPDATE_POSTERIORS, posteriors)
        seq_by_hit = {row.hit_id: row.seq for row in responses}
    else:
        if leases is not None and not any(accepted.unjudged_items for accepted in accepted_answers):
            accepted_hits = [(accepted.assignment_id, accepted.hit) for accepted in accepted_answers]
            leases.propose_leases(locked, accepted_hits, posteriors)
        stored = await store_answers_and_lease_proposed_hits(connection, parameters | posteriors, leases)
        seq_by_hit = dict(zip(stored.answered_hits, stored.seqs, strict=True))
    for parameters in posteriors_by_others:
        await execute_statement(connection, UPDATE_POSTERIORS, parameters)
    return seq_by_hit


async def store_answers_and_lease_proposed_hits(
    connection: Driver, parameters: Mapping[str, Any], leases: AnswerLeases | None
) -> StoredAnswers:
    """Store the answers by one statement, which also leases the proposed HITs, if there are any."""
    if leases is not None and leases.proposed:
        return await leases.store_answers_and_lease(connection, parameters)
    stored_parameters = {f"stored_{name}": value for name, value in parameters.items()}
    (stored,) = await fetch_rows(connection, STORE_ANSWERS, stored_parameters, StoredAnswers)
    return stored


def sql_parameters_of_responses(locked: LockedAnswers, accepted_answers: Sequence[AcceptedAnswer]) -> dict[str, Any]:
    """Return the parameters of `easel_store_answers` for the responses."""
    columns = [accepted.columns for accepted in accepted_answers]
    item_starts, item_ends, items = first_and_last_positions_and_concatenation([column.items for column in columns])
    value_starts, value_ends, values = first_and_last_positions_and_concatenation([column.values for column in columns])
    return {
        "campaign": locked.campaign.id,
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
        "item_values": values,
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
        await remarks.store_alert_of_each_item_that_reaches_flag_limit(connection, locked.campaign.id, seq)
    if accepted.placed_checks:
        await checks.store_first_check_answers(
            connection,
            locked.campaign.id,
            hit.id,
            accepted.placed_checks,
            accepted.shown_values,
            annotator_id=hit.annotator_id,
            now=accepted.columns.now,
        )
    if not accepted.unjudged_items or not does_count or hit.segment is not None:
        return False
    unable_annotators = await unjudged.add_unjudged_and_return_highest_count(
        connection, locked.campaign.id, hit.annotator_id, seq, accepted.unjudged_items
    )
    return unable_annotators >= locked.campaign.unjudged_people
