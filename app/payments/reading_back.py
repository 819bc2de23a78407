"""Ask the platform's service what became of unclear payments."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.service import CallOutcomeUnknown, CallRefused, PlatformService
from app.payments.sending import MAX_UNREADABLE_SUBMISSIONS, Clock, load_bonus_amounts

LIST_SUBMISSIONS_OF_UNCLEAR_PAYMENTS = text("""
    SELECT DISTINCT submission FROM payments
    WHERE campaign_id = :campaign AND state = 'unknown' AND kind = 'bonus' AND NOT starts_with(submission, 'erased:')
    ORDER BY 1
""")

LOCK_PAYMENTS_OF_SUBMISSION = text("""
    SELECT id, amount, state, paid_before FROM payments WHERE campaign_id = :campaign AND submission = :submission
    AND kind = 'bonus' AND state IN ('sent', 'unknown') ORDER BY id FOR NO KEY UPDATE
""")

MARK_PAYMENTS_AS_FOUND = text("""
    UPDATE payments SET state = 'sent', settled_at = :now, problem = ''
    WHERE campaign_id = :campaign AND id = ANY(CAST(:ids AS bigint[]))
""")

STORE_AMOUNTS_SEEN = text("""
    UPDATE payments SET looked_at = :now, amounts_seen = CAST(:amounts AS int[])
    WHERE campaign_id = :campaign AND submission = :submission AND kind = 'bonus' AND state = 'unknown'
""")

STORE_PROBLEM_OF_UNCLEAR_BONUSES = text("""
    UPDATE payments SET problem = :problem
    WHERE campaign_id = :campaign AND submission = :submission AND kind = 'bonus' AND state = 'unknown'
""")
SUBMISSION_IS_NOT_SHOWN = "The platform does not show this submission to this token."
BONUSES_ARE_NOT_SHOWN = "The platform’s reply about this submission could not be read."


async def read_back_unclear_payments(
    database: AsyncEngine, service: PlatformService, clock: Clock, campaign_id: int
) -> None:
    """Mark unclear payments as sent if the service's list has them, and store the list for those that it lacks.

    A submission that the service does not show is no evidence: its payments stay as they are.
    A list that is paid by hand is never settled by itself: what the submission was paid before is not known.
    Raises `ServiceFailure`.
    """
    async with database.begin() as connection:
        rows = await connection.execute(LIST_SUBMISSIONS_OF_UNCLEAR_PAYMENTS, {"campaign": campaign_id})
        submissions = [*rows.scalars()]
    unreadable = 0
    for submission in submissions:
        now = await clock()  # before the call: what the service does after it, it has not told
        try:
            amounts = await load_bonus_amounts(service, submission)
        except CallRefused as refused:
            if refused.status == 401:
                raise
            await store_that_service_showed_no_bonuses(database, campaign_id, submission, SUBMISSION_IS_NOT_SHOWN)
        except CallOutcomeUnknown:
            await store_that_service_showed_no_bonuses(database, campaign_id, submission, BONUSES_ARE_NOT_SHOWN)
            unreadable += 1
            if unreadable >= MAX_UNREADABLE_SUBMISSIONS:
                raise
        else:
            await resolve_unclear_payments_by_bonuses_seen(database, campaign_id, submission, amounts, now=now)


async def store_that_service_showed_no_bonuses(
    database: AsyncEngine, campaign_id: int, submission: str, problem: str
) -> None:
    async with database.begin() as connection:
        parameters = {"campaign": campaign_id, "submission": submission, "problem": problem}
        await connection.execute(STORE_PROBLEM_OF_UNCLEAR_BONUSES, parameters)


async def resolve_unclear_payments_by_bonuses_seen(
    database: AsyncEngine, campaign_id: int, submission: str, amounts: Sequence[int], *, now: datetime
) -> None:
    """Settle the unclear payments of a submission by the bonuses that the service says it has."""
    key = {"campaign": campaign_id, "submission": submission}
    async with database.begin() as connection:
        rows = (await connection.execute(LOCK_PAYMENTS_OF_SUBMISSION, key)).all()
        found = ids_of_unclear_payments_surely_made(rows, amounts)
        await connection.execute(MARK_PAYMENTS_AS_FOUND, {"campaign": campaign_id, "ids": found, "now": now})
        await connection.execute(STORE_AMOUNTS_SEEN, {**key, "now": now, "amounts": [*amounts]})


def ids_of_unclear_payments_surely_made(rows: Sequence[Row[Any]], amounts: Sequence[int]) -> list[int]:
    """Return the ids of unclear payments that must be among the bonuses of a submission: those of an amount that is
    there more often than others paid it before and than Easel knows to have paid it.
    """
    found = []
    for amount in {row.amount for row in rows}:
        same = [row for row in rows if row.amount == amount]
        unclear = [row for row in same if row.state == "unknown" and row.paid_before is not None]
        explained = sum(row.state == "sent" for row in same) + max((row.paid_before for row in unclear), default=0)
        surplus = max(0, amounts.count(amount) - explained)
        found += [row.id for row in unclear[:surplus]]
    return found
