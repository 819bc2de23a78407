"""Storage of answers: all that wait in a process in one transaction, each with a receipt or a refusal of its own.

One answer alone is a batch of one. An answer whose lease is over, or ends within half a minute, is stored after the
batch, in a transaction of its own. If the lease is over, other annotators must not have needed the items.
"""

import logging
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime

from asyncpg import InterfaceError
from sqlalchemy import text

from app.annotation.hits.answer_leases import AnswerLeases, can_lease_with_answers
from app.annotation.hits.answer_parameters import AnswerKey
from app.annotation.hits.answer_storage import (
    AnswerReceipt,
    lease_lost_error,
    store_answers_returning_outcome_by_locked_hit,
)
from app.annotation.hits.assignment_sql import HIT_BELONGS_TO_ASSIGNMENT, IS_FIRST_RESPONSE, IS_ONE_HIT_PLATFORM
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.lease_parameters import HoldParameters
from app.annotation.hits.lease_sql import (
    ANNOTATOR_MAY_HOLD_HIT,
    HAS_ROOM_IN_EVERY_ITEM,
    LOCK_ANNOTATOR_ROW,
    LOCK_HIT_POSTERIORS,
    LOCK_ROOM,
    take_shared_store_lock_and_lock_law_state,
)
from app.annotation.hits.leases import PendingRequest
from app.annotation.hits.locked_answers import SubmittedAnswer, lock_hits_of_answers_and_return_locked_answers
from app.annotation.platforms.assignments import AssignmentId
from app.background.metrics import PROCESS_METRICS
from app.database.batch_queue import Unserved
from app.database.session import (
    DATABASE_ERRORS,
    Driver,
    Record,
    close_driver_if_ruined,
    execute_statement,
    fetch_first_row_or_none,
    fetch_first_value_or_none,
    leads_to_citus,
)
from app.designs.criteria import Submission
from app.errors import NotFound

log = logging.getLogger(__name__)

LOCK_LATE_HIT = text(f"""
    SELECT h.annotator_id, h.items AS hit_items, c.judgments_per_item,
           ARRAY(SELECT item FROM unnest(h.items) AS item WHERE item <> ALL(c.always_shown)) AS capped,
           h.segment, c.repeat_items, c.hits_per_annotator,
           (SELECT {IS_ONE_HIT_PLATFORM} FROM annotators o
            WHERE o.campaign_id = :campaign AND o.id = h.annotator_id) AS one_hit
    FROM hits h JOIN campaigns c ON c.id = h.campaign_id
    WHERE h.campaign_id = :campaign AND h.id = :hit AND {HIT_BELONGS_TO_ASSIGNMENT} FOR NO KEY UPDATE OF h
""")

# SQL: annotator a left, and another person got the place in a quota (`onboarding.quotas`).
HAS_LOST_PLACE_IN_QUOTA = """
    EXISTS (SELECT FROM visits v WHERE v.campaign_id = :campaign AND v.annotator_id = a.id AND v.outcome = 'lapsed')
    AND NOT EXISTS (SELECT FROM visits v WHERE v.campaign_id = :campaign AND v.annotator_id = a.id
                    AND v.step = 'questions' AND v.outcome = 'passed')"""

SELECT_IF_LEASE_IS_OPEN = text("""
    SELECT 1 FROM hits
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL AND expires_at > clock_timestamp()
""")

SELECT_IF_LATE_ANSWER_FITS = text(f"""
    SELECT 1 WHERE EXISTS (SELECT 1 FROM campaigns WHERE id = :campaign AND status IN ('running', 'paused'))
    AND {HAS_ROOM_IN_EVERY_ITEM} AND {ANNOTATOR_MAY_HOLD_HIT} AND NOT EXISTS (
        SELECT FROM annotators a WHERE a.campaign_id = :campaign AND a.id = CAST(:annotator AS bigint)
        AND (a.barred = 'erased' OR {HAS_LOST_PLACE_IN_QUOTA}))
""")

SELECT_FIRST_RESPONSE = text(f"""
    SELECT r.seq FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = :hit AND {IS_FIRST_RESPONSE}
""")


class LateHit(Record):
    """A HIT whose lease is over, or soon, with its campaign's limits; `capped` items have a limit on judgments."""

    annotator_id: int
    hit_items: list[int]
    judgments_per_item: int
    capped: list[int]
    segment: int | None
    repeat_items: bool
    hits_per_annotator: int | None
    one_hit: bool


async def store_answer_of_hit_and_return_receipt(
    connection: Driver,
    assignment: AssignmentId,
    hit_id: int,
    submitted: Submission,
    *,
    now: datetime,
    cache: PosteriorCache | None = None,
) -> AnswerReceipt:
    """Store one answer as `store_answers_and_return_outcomes` does, and return its receipt.

    Without a `cache`, the settings of the campaign are read.

    Raises:
        NotFound: `hit_not_found`.
        Gone: `lease_expired`: other annotators needed the items meanwhile, or this one may answer no more HITs.
        Invalid: The design refuses the answer.

    """
    answer = SubmittedAnswer(assignment, hit_id, submitted, now)
    (outcome,) = await store_answers_and_return_outcomes(
        connection, assignment.campaign_id, [answer], cache=cache or PosteriorCache()
    )
    if isinstance(outcome, Unserved):
        raise outcome.problem
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def store_answers_and_return_outcomes(
    connection: Driver,
    campaign_id: int,
    answers: Sequence[SubmittedAnswer],
    *,
    cache: PosteriorCache,
    next_hits: Sequence[PendingRequest] = (),
) -> list[AnswerReceipt | Exception | Unserved[SubmittedAnswer]]:
    """Close the leases, store the answers and update the posteriors; all is committed when this returns.

    The first valid answer to a HIT wins. Another one changes nothing and gets the receipt of the first. An answer that
    fails does not affect the others.

    Args:
        connection: Connection in no transaction.
        campaign_id: The campaign of all answers.
        answers: The answers.
        cache: Posteriors of this process.
        next_hits: Requests for HITs, which get their outcome if a HIT is leased together with the answers.

    Returns:
        A receipt for each answer, or what `store_answer_of_hit_and_return_receipt` raises. Answers are unserved if the
        connection was lost after others were stored.

    Raises:
        Exception: None of the answers could be processed, or it is not known which of them are stored. All of them can
            be sent again, together or one by one.

    """
    outcomes: dict[int, AnswerReceipt | Exception | Unserved[SubmittedAnswer]] = {}
    places = [*range(len(answers))]
    while places:
        first_places = {answers[place].hit_id: place for place in reversed(places)}
        try:
            outcome_by_hit = await store_answers_in_time_and_return_outcome_by_hit(
                connection, cache, campaign_id, [answers[place] for place in sorted(first_places.values())], next_hits
            )
        except Exception as problem:
            if not outcomes:
                raise
            await close_driver_if_ruined(connection, problem)
            return [outcomes.get(place, Unserved(answer, problem)) for place, answer in enumerate(answers)]
        outcomes |= {first_places[hit_id]: outcome for hit_id, outcome in outcome_by_hit.items()}
        # After a refused answer the lease is still open, and the next answer to the HIT is in time.
        refused_hits = {hit_id for hit_id, outcome in outcome_by_hit.items() if isinstance(outcome, Exception)}
        places = [place for place in places if place not in outcomes and answers[place].hit_id in refused_hits]
        next_hits = ()
    for place, answer in enumerate(answers):
        if place not in outcomes:
            outcomes[place] = await store_late_answer_or_return_problem(connection, cache, answer)
    return [outcomes[place] for place in range(len(answers))]


async def store_answers_in_time_and_return_outcome_by_hit(
    connection: Driver,
    cache: PosteriorCache,
    campaign_id: int,
    answers: Sequence[SubmittedAnswer],
    next_hits: Sequence[PendingRequest] = (),
) -> dict[int, AnswerReceipt | Exception]:
    """Store the answers to HITs whose lease goes on, and return the outcome of each by HIT; of others there is none.

    Next HITs are leased in the same transaction. If that fails, the answers are stored in one without next HITs.
    """
    if next_hits and can_lease_with_answers(connection, cache, campaign_id):
        requests = {pending.request.query.assignment.assignment_id: pending for pending in reversed(next_hits)}
        leases = AnswerLeases(cache, requests)
        try:
            return await store_answers_in_one_transaction(connection, cache, campaign_id, answers, leases)
        except Exception as problem:
            await close_driver_if_ruined(connection, problem)
            if connection.is_closed() or (
                isinstance(problem, DATABASE_ERRORS) and not leases.may_fail_because_of_leases
            ):
                raise
            log.warning("campaign %s: answers are stored without next HITs: %r", campaign_id, problem)
    return await store_answers_in_one_transaction(connection, cache, campaign_id, answers)


async def store_answers_in_one_transaction(
    connection: Driver,
    cache: PosteriorCache,
    campaign_id: int,
    answers: Sequence[SubmittedAnswer],
    leases: AnswerLeases | None = None,
) -> dict[int, AnswerReceipt | Exception]:
    """Lock the HITs and store the answers, as `store_answers_in_time_and_return_outcome_by_hit` does."""
    with leases.assumed if leases is not None else nullcontext():
        async with connection.transaction():
            locked = (
                await leases.lock_answers_and_load_states(connection, campaign_id, answers)
                if leases is not None
                else await lock_hits_of_answers_and_return_locked_answers(connection, cache, campaign_id, answers)
            )
            answers_in_time = [answer for answer in answers if answer.hit_id in locked.hits]
            # A late answer needs its items until it is stored: then the next HITs come after the commit.
            usable_leases = leases if len(answers_in_time) == len(answers) else None
            outcomes = (
                await store_answers_returning_outcome_by_locked_hit(
                    connection, locked, answers_in_time, leases=usable_leases
                )
                if answers_in_time
                else {}
            )
    if leases is not None:
        leases.set_outcomes_after_commit()
    stored_count = sum(isinstance(outcome, AnswerReceipt) for outcome in outcomes.values())
    PROCESS_METRICS.count("easel_answers_total", locked.campaign.design_name, amount=stored_count)
    return outcomes


async def store_late_answer_or_return_problem(
    connection: Driver, cache: PosteriorCache, answer: SubmittedAnswer
) -> AnswerReceipt | Exception | Unserved[SubmittedAnswer]:
    """Store a late answer, or return why it is not stored; it is unserved if an earlier one lost the connection."""
    if connection.is_closed():
        return Unserved(answer, InterfaceError("an earlier answer lost the connection"))
    try:
        async with connection.transaction():
            return await store_late_answer_or_refuse(connection, cache, answer)
    except Exception as problem:  # noqa: BLE001  (answers before it are stored, and keep their receipts)
        await close_driver_if_ruined(connection, problem)
        return problem


async def store_late_answer_or_refuse(
    connection: Driver, cache: PosteriorCache, answer: SubmittedAnswer
) -> AnswerReceipt:
    """Store a late answer if no other annotator has needed the items and this one has not reached their limit.

    It takes the locks of a renewal of the lease and of an answer. Until the commit, no other lease takes its items.

    Raises:
        NotFound, Gone, Invalid: As `store_answer_of_hit_and_return_receipt`.

    """
    key = AnswerKey(**answer.assignment.parameters, hit=answer.hit_id, now=answer.now)
    await take_shared_store_lock_and_lock_law_state(connection, key.campaign)
    hit = await fetch_first_row_or_none(connection, LOCK_LATE_HIT, key, LateHit)
    if hit is None:
        raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
    if first_seq := await fetch_first_value_or_none(connection, SELECT_FIRST_RESPONSE, key):
        return AnswerReceipt(key.hit, first_seq, repeated=True)
    parameters = HoldParameters(
        campaign=key.campaign,
        hit=key.hit,
        annotator=hit.annotator_id,
        assignment=key.assignment,
        segment=hit.segment,
        capped=hit.capped,
        few_open=leads_to_citus(connection),
        repeat_items=hit.repeat_items,
        hits_per_annotator=hit.hits_per_annotator,
        one_hit=hit.one_hit,
        wanted=hit.judgments_per_item,
    )
    await execute_statement(connection, LOCK_ANNOTATOR_ROW, parameters)
    # All items, not only those with a limit: an answer in time locks them in this order, too.
    await execute_statement(connection, LOCK_HIT_POSTERIORS, {"campaign": key.campaign, "items": hit.hit_items})
    await execute_statement(connection, LOCK_ROOM, parameters)
    is_in_time = await fetch_first_value_or_none(connection, SELECT_IF_LEASE_IS_OPEN, parameters) is not None
    if not is_in_time and not await fetch_first_value_or_none(connection, SELECT_IF_LATE_ANSWER_FITS, parameters):
        raise lease_lost_error()
    locked = await lock_hits_of_answers_and_return_locked_answers(
        connection, cache, key.campaign, [answer], are_late=True
    )
    (outcome,) = (
        await store_answers_returning_outcome_by_locked_hit(connection, locked, [answer], are_late=not is_in_time)
    ).values()
    if isinstance(outcome, Exception):
        raise outcome
    PROCESS_METRICS.count("easel_answers_total", locked.campaign.design_name)
    return outcome
