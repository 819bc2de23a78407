"""Send prepared payments through the platform's service, so that a process may end at any moment.

1. Read what each submission was paid before, so that an unclear payment can be told from others of the same amount.
2. Take the workspace's call and mark the payments as `sending`; commit.
3. Register the bonuses at the service. This pays nothing.
4. Store the service's id of them; commit. Without it, nothing was paid.
5. Make the call that pays, once, unless the process slept since 4.
6. Store the outcome and give the workspace's call back; commit.

A process that ends between 2 and 4 has paid nothing: the payments are prepared again after the deadline. One that ends
between 4 and 6 may have paid: the payments become `unknown`, and are never sent again by themselves.
"""

import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Row, TextClause, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.service import (
    Bonus,
    CallNotMade,
    CallOutcomeUnknown,
    CallRefused,
    PlatformService,
    ServiceFailure,
)

Clock = Callable[[], Awaitable[datetime]]

# Two calls, each with a limit of its own, take far less.
TIME_FOR_CALL_THAT_PAYS = timedelta(minutes=5)
MAX_TIME_OF_CALL = timedelta(minutes=1)
MAX_TIME_UNTIL_CALL = timedelta(seconds=20)  # after it, a process that slept makes no call
MAX_UNREADABLE_SUBMISSIONS = 3  # of one turn: more of them are a failure of the whole service
STATE_AFTER_FAILED_CALL: dict[type[ServiceFailure], str] = {
    CallRefused: "failed",
    CallNotMade: "prepared",
    CallOutcomeUnknown: "unknown",
}

# One payment of each submission at a time. One of an amount whose fate is unclear waits, because the service's list
# could not tell the two apart.
FIND_PAYMENTS_TO_SEND = text("""
    SELECT DISTINCT ON (p.submission) p.id, p.submission, p.study, p.amount FROM payments p
    WHERE p.campaign_id = :campaign AND p.kind = 'bonus' AND p.state = 'prepared' AND p.id <= :through
    AND p.id <> ALL(CAST(:waiting AS bigint[])) AND NOT starts_with(p.submission, 'erased:') AND p.study = (
        SELECT o.study FROM payments o WHERE o.campaign_id = :campaign AND o.kind = 'bonus' AND o.state = 'prepared'
        AND o.id <= :through AND o.id <> ALL(CAST(:waiting AS bigint[])) AND NOT starts_with(o.submission, 'erased:')
        AND NOT EXISTS (
            SELECT 1 FROM payments u WHERE u.campaign_id = o.campaign_id AND u.submission = o.submission
            AND u.kind = 'bonus' AND u.amount = o.amount AND u.state IN ('sending', 'unknown'))
        ORDER BY o.id LIMIT 1)
    AND NOT EXISTS (
        SELECT 1 FROM payments u WHERE u.campaign_id = p.campaign_id AND u.submission = p.submission
        AND u.kind = 'bonus' AND u.amount = p.amount AND u.state IN ('sending', 'unknown'))
    ORDER BY p.submission, p.id LIMIT :most
""")

COUNT_SENT_PAYMENTS = text("""
    SELECT count(*) AS ours, coalesce(max(paid_before), 0) AS others FROM payments
    WHERE campaign_id = :campaign AND submission = :submission AND amount = :amount AND state = 'sent'
    AND kind = 'bonus'
""")
EARLIER_PAYMENT_IS_NOT_LISTED = "An earlier payment of this amount is not in the platform’s list yet."
LET_PAYMENT_WAIT = text("""
    UPDATE payments SET problem = :problem
    WHERE campaign_id = :campaign AND id = :id AND state = 'prepared'
""")

TAKE_CALL_OF_WORKSPACE = text("""
    INSERT INTO payment_calls AS c (workspace, batch, held_until) VALUES (:workspace, :batch, :until)
    ON CONFLICT (workspace) DO UPDATE SET batch = excluded.batch, held_until = excluded.held_until
    WHERE c.held_until <= :now RETURNING batch
""")
GIVE_CALL_OF_WORKSPACE_BACK = text("DELETE FROM payment_calls WHERE batch = :batch")

MARK_PAYMENTS_AS_SENDING = text("""
    UPDATE payments p SET state = 'sending', batch = :batch, bulk_id = NULL, sending_at = :now, problem = '',
        paid_before = given.paid_before, looked_at = NULL, amounts_seen = NULL
    FROM unnest(CAST(:ids AS bigint[]), CAST(:paid_before AS int[]), CAST(:ours AS int[]))
        AS given (id, paid_before, ours)
    WHERE p.campaign_id = :campaign AND p.id = given.id AND p.state = 'prepared' AND given.ours = (
        SELECT count(*) FROM payments o WHERE o.campaign_id = p.campaign_id AND o.submission = p.submission
        AND o.kind = 'bonus' AND o.amount = p.amount AND o.state IN ('sending', 'sent', 'unknown'))
    AND p.id <= (SELECT send_through FROM payment_accounts WHERE campaign_id = :campaign)
    AND NOT starts_with(p.submission, 'erased:')
    RETURNING p.id, p.submission, p.amount
""")

STORE_BULK_ID = text("""
    UPDATE payments SET bulk_id = :bulk_id
    WHERE campaign_id = :campaign AND batch = :batch AND state = 'sending' AND bulk_id IS NULL AND EXISTS (
        SELECT 1 FROM payment_calls WHERE workspace = :workspace AND batch = :batch AND held_until > :call_ends_before)
    RETURNING id
""")

# Also for payments that another process has already taken for unclear; not for those that a person decided about.
SETTLE_BATCH = text("""
    UPDATE payments SET state = :state, problem = :problem, settled_at = :settled_at,
        bulk_id = CASE WHEN CAST(:state AS text) <> 'prepared' THEN bulk_id END
    WHERE campaign_id = :campaign AND batch = :batch AND state IN ('sending', 'unknown')
""")

FAIL_PAYMENT = text("""
    UPDATE payments SET state = 'failed', problem = :problem, settled_at = :now
    WHERE campaign_id = :campaign AND id = :id AND state = 'prepared'
""")

SETTLE_INTERRUPTED_PAYMENTS = text("""
    UPDATE payments SET state = CASE WHEN bulk_id IS NULL AND kind = 'bonus' THEN 'prepared' ELSE 'unknown' END,
        problem = 'Easel was interrupted while it sent this payment.'
    WHERE campaign_id = :campaign AND state = 'sending' AND sending_at <= CAST(:began_before AS timestamptz)
""")

CANCEL_PAYMENTS_OF_ERASED_PEOPLE = text("""
    UPDATE payments SET state = 'cancelled', settled_at = :now, problem = 'The ids of this person were erased.'
    WHERE campaign_id = :campaign AND state = 'prepared' AND starts_with(submission, 'erased:')
""")


@dataclass(frozen=True)
class SendingContext:
    """Whose payments are sent, and through what.

    Attributes:
        through: Id of the last payment that a person told to send.
        workspace: Key of the money that is spent: one call at a time.
        max_bonuses: Most bonuses of one call.

    """

    database: AsyncEngine
    service: PlatformService
    clock: Clock
    campaign_id: int
    workspace: str
    through: int
    max_bonuses: int


async def resolve_interrupted_payments(database: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Prepare payments again that an ended process has certainly not made, mark the others as unclear, and cancel those
    of people whose ids were erased.
    """
    async with database.begin() as connection:
        parameters = {"campaign": campaign_id, "began_before": now - TIME_FOR_CALL_THAT_PAYS}
        await connection.execute(SETTLE_INTERRUPTED_PAYMENTS, parameters)
        await cancel_payments_of_erased_people(connection, campaign_id, now=now)


async def cancel_payments_of_erased_people(connection: AsyncConnection, campaign_id: int, *, now: datetime) -> None:
    """Cancel prepared payments that can never be made, because the ids of their people were erased."""
    await connection.execute(CANCEL_PAYMENTS_OF_ERASED_PEOPLE, {"campaign": campaign_id, "now": now})


async def load_bonus_amounts(service: PlatformService, submission: str) -> tuple[int, ...]:
    """Return the bonuses of a submission in hundredths. Raises `ServiceFailure`, also if the reply has none."""
    amounts = (await service.load_submission(submission)).bonus_amounts
    if amounts is None:
        raise CallOutcomeUnknown("The platform’s reply does not have the bonuses of this submission.")
    return amounts


async def send_prepared_payments(context: SendingContext) -> None:
    """Send all payments that a person told to send, in calls of at most `max_bonuses`.

    Raises:
        ServiceFailure: The service cannot be reached or does not accept the token; payments wait for the next try.

    """
    waiting: set[int] = set()
    while found := await find_payments_to_send(context, waiting):
        if await send_one_batch_returning_whether_to_stop(context, found, waiting):
            return


async def find_payments_to_send(context: SendingContext, waiting_ids: set[int]) -> Sequence[Row[Any]]:
    async with context.database.begin() as connection:
        parameters = {
            "campaign": context.campaign_id,
            "through": context.through,
            "most": context.max_bonuses,
            "waiting": sorted(waiting_ids),
        }
        return (await connection.execute(FIND_PAYMENTS_TO_SEND, parameters)).all()


async def send_one_batch_returning_whether_to_stop(
    context: SendingContext, payments: Sequence[Row[Any]], waiting_ids: set[int]
) -> bool:
    """Send payments of one study, and add those that have to wait to `waiting_ids`. Return whether to stop: another
    call is under way, or this one failed.
    """
    earlier = await load_earlier_payments_and_add_waiting_ids(context, payments, waiting_ids)
    if not earlier:
        return False  # all of them failed for good or wait, so that others are found next
    parts = [earlier]
    while parts:
        part = parts.pop()
        batch = secrets.token_hex(8)
        sending = await take_call_and_commit_payments_as_sending(context, batch, part)
        if not sending:
            return True
        outcome = await register_and_pay_batch_or_none(context, batch, payments[0].study, sending)
        if outcome is None:
            return True
        await store_outcome_of_batch(context, batch, outcome.state, outcome.problem)
        if outcome.is_to_be_halved:
            rows = [*part.items()]
            parts += [dict(rows[len(rows) // 2 :]), dict(rows[: len(rows) // 2])]
        elif not outcome.lets_others_go_on:
            return True
    return False


class BatchOutcome(NamedTuple):
    """Outcome of a batch of payments.

    Attributes:
        state: State of its payments.
        problem: Why they were not sent; empty if they were.
        is_to_be_halved: Whether the service refused it for one of its payments, so that parts of it may be accepted.
        lets_others_go_on: Whether other batches may be sent after it.

    """

    state: str
    problem: str = ""
    is_to_be_halved: bool = False
    lets_others_go_on: bool = False


async def register_and_pay_batch_or_none(
    context: SendingContext, batch_id: str, study: str, sending: Sequence[Row[Any]]
) -> BatchOutcome | None:
    """Make the two calls. Return what became of the payments; None if they are no longer this process's to send."""
    try:
        bonuses = [Bonus(row.submission, row.amount) for row in sending]
        bulk_id = await context.service.register_bonuses_and_return_bulk_id(study, bonuses)
    except ServiceFailure as failure:
        return outcome_of_failed_registration(failure, len(sending))
    stored_at = await context.clock()
    if not await store_bulk_id_returning_if_payable(context, batch_id, bulk_id, len(sending), now=stored_at):
        return None
    if await context.clock() - stored_at > MAX_TIME_UNTIL_CALL:
        return BatchOutcome("prepared", "Easel was interrupted before it sent this payment.")
    try:
        await context.service.pay_bonuses(bulk_id)
    except ServiceFailure as failure:
        state = "prepared" if failure.status == 401 else STATE_AFTER_FAILED_CALL[type(failure)]
        return BatchOutcome(state, failure.message)
    return BatchOutcome("sent", lets_others_go_on=True)


def outcome_of_failed_registration(failure: ServiceFailure, count: int) -> BatchOutcome:
    """Return what becomes of payments whose registration failed, which pays nothing."""
    if not isinstance(failure, CallRefused) or failure.status == 401:
        return BatchOutcome("prepared", failure.message)
    if failure.status == 403:
        return BatchOutcome("failed", failure.message)  # the whole study: halves would be refused, too
    if count > 1:
        return BatchOutcome("prepared", failure.message, is_to_be_halved=True)
    return BatchOutcome("failed", failure.message, lets_others_go_on=True)


class EarlierPayments(NamedTuple):
    """How often Easel and how often others paid an amount to a submission before."""

    ours: int
    others: int


async def load_earlier_payments_and_add_waiting_ids(
    context: SendingContext, payments: Sequence[Row[Any]], waiting_ids: set[int]
) -> dict[int, EarlierPayments]:
    """Return the earlier payments of the same amount to the same submission, by payment.

    A payment waits while the service's list lacks an earlier one of Easel: otherwise one that others made could be
    mistaken for it. A payment to a submission that the service does not show fails. Raises `ServiceFailure`.
    """
    earlier: dict[int, EarlierPayments] = {}
    unreadable = 0
    for row in payments:
        key = {"campaign": context.campaign_id, "id": row.id}
        async with context.database.begin() as connection:  # before the call: see MARK_PAYMENTS_AS_SENDING
            same = {"campaign": context.campaign_id, "submission": row.submission, "amount": row.amount}
            known = (await connection.execute(COUNT_SENT_PAYMENTS, same)).one()
        try:
            amounts = await load_bonus_amounts(context.service, row.submission)
        except CallRefused as refused:
            if refused.status == 401:
                raise
            await store_reason_of_unsent_payments(
                context, FAIL_PAYMENT, {**key, "problem": refused.message, "now": await context.clock()}
            )
            continue
        except CallOutcomeUnknown as failure:
            waiting_ids.add(row.id)
            await store_reason_of_unsent_payments(context, LET_PAYMENT_WAIT, {**key, "problem": failure.message})
            unreadable += 1
            if unreadable < MAX_UNREADABLE_SUBMISSIONS:
                continue
            if earlier:
                break
            raise
        except CallNotMade:
            if earlier:
                break  # these can be sent now, so that a limit of calls does not hold up all of them
            raise
        listed = amounts.count(row.amount)
        if listed < known.ours + known.others:
            waiting_ids.add(row.id)
            await store_reason_of_unsent_payments(
                context, LET_PAYMENT_WAIT, {**key, "problem": EARLIER_PAYMENT_IS_NOT_LISTED}
            )
            continue
        earlier[row.id] = EarlierPayments(known.ours, listed - known.ours)
    return earlier


async def store_reason_of_unsent_payments(
    context: SendingContext, statement: TextClause, parameters: dict[str, Any]
) -> None:
    """Store why a payment is not sent."""
    async with context.database.begin() as connection:
        await connection.execute(statement, parameters)


async def take_call_and_commit_payments_as_sending(
    context: SendingContext, batch_id: str, earlier: dict[int, EarlierPayments]
) -> Sequence[Row[Any]]:
    """Take the workspace's call, and commit that these payments are being sent. Return them; none if the call is taken
    or they, or others of the same amount, were changed meanwhile.
    """
    now = await context.clock()
    parameters = {
        "campaign": context.campaign_id,
        "workspace": context.workspace,
        "batch": batch_id,
        "now": now,
        "until": now + TIME_FOR_CALL_THAT_PAYS,
        "ids": [*earlier],
        "paid_before": [payments.others for payments in earlier.values()],
        "ours": [payments.ours for payments in earlier.values()],
    }
    async with context.database.begin() as connection:
        if (await connection.execute(TAKE_CALL_OF_WORKSPACE, parameters)).one_or_none() is None:
            return []
        sending = (await connection.execute(MARK_PAYMENTS_AS_SENDING, parameters)).all()
        if not sending:
            await connection.execute(GIVE_CALL_OF_WORKSPACE_BACK, {"batch": batch_id})
        return sending


async def store_bulk_id_returning_if_payable(
    context: SendingContext, batch_id: str, bulk_id: str, count: int, *, now: datetime
) -> bool:
    """Commit the service's id of the bonuses. Return whether they may be paid now: neither has another process taken
    them back, nor could it do so before the next call ends.
    """
    parameters = {
        "campaign": context.campaign_id,
        "workspace": context.workspace,
        "batch": batch_id,
        "bulk_id": bulk_id,
        "call_ends_before": now + MAX_TIME_OF_CALL,
    }
    async with context.database.begin() as connection:
        stored = (await connection.execute(STORE_BULK_ID, parameters)).all()
        if len(stored) != count:
            await connection.rollback()
    return len(stored) == count


async def store_outcome_of_batch(context: SendingContext, batch_id: str, new_state: str, problem: str) -> None:
    """Store the outcome of a call. After an unclear one, the workspace's call stays taken until its deadline."""
    now = await context.clock()
    parameters = {
        "campaign": context.campaign_id,
        "batch": batch_id,
        "state": new_state,
        "problem": problem,
        "settled_at": now if new_state in ("sent", "failed") else None,
    }
    async with context.database.begin() as connection:
        await connection.execute(SETTLE_BATCH, parameters)
        if new_state != "unknown":
            await connection.execute(GIVE_CALL_OF_WORKSPACE_BACK, {"batch": batch_id})
