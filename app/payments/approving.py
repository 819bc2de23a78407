"""Approve complete submissions at the platform, one after the other: each approval pays a reward of the ledger."""

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.service import (
    CallNotMade,
    CallRefused,
    PlatformService,
    ServiceFailure,
)
from app.payments.ledger import LOCK_ACCOUNT
from app.payments.review import SUBMISSION_IS_APPROVABLE
from app.payments.rewards import (
    RewardCall,
    mark_reward_as_sending,
    settle_rewards_by_status,
    store_outcome_of_failed_approval,
)
from app.payments.sending import MAX_UNREADABLE_SUBMISSIONS, Clock

LIST_APPROVABLE_SUBMISSIONS_AT_SERVICE = text(f"""
    SELECT u.external_id, u.study FROM submissions u
    JOIN annotators a ON a.campaign_id = u.campaign_id AND a.id = u.annotator_id
    JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
        AND s.external_id = u.external_id
    WHERE u.campaign_id = :campaign AND {SUBMISSION_IS_APPROVABLE} AND u.problem = ''
    AND u.external_id = coalesce(CAST(:submission AS text), u.external_id)
    AND EXISTS (
        SELECT 1 FROM payments p WHERE p.campaign_id = u.campaign_id AND p.submission = u.external_id
        AND p.kind = 'reward' AND p.state = 'prepared')
    ORDER BY u.external_id
""")
STORE_STATUS_OF_SUBMISSION = text("""
    UPDATE submissions SET status = :status, problem = :problem, seen_at = :now
    WHERE campaign_id = :campaign AND external_id = :submission AND status = 'awaiting'
""")


@dataclass(frozen=True)
class ApprovalContext:
    """Whose submissions are approved, and through what."""

    database: AsyncEngine
    service: PlatformService
    account: Row[Any]
    clock: Clock


async def approve_submissions_and_return_problems(context: ApprovalContext) -> list[str]:
    """Approve the submissions that may be and whose rewards are prepared. One that is refused waits for a person.

    If the refusal is not about the submission, the next turn tries again: the balance is too low, or the token may not
    approve in a study.

    Returns:
        Problems that are not about one submission.

    Raises:
        ServiceFailure: The service cannot be reached, does not accept the token, or did not reply to several calls.

    """
    problems: dict[str, str] = {}  # by study
    unclear = 0
    for submission, study in await list_approvable_submissions(context):
        if study in problems:
            continue
        call = RewardCall(context.account.campaign_id, secrets.token_hex(8))
        if not await begin_approval_if_still_possible(context, call, submission):
            continue  # the annotator was held, or a person approves it, meanwhile
        try:
            await context.service.approve_submission(submission)
        except CallRefused as refused:
            if problem := await settle_refused_approval(context, call, submission, study, refused):
                problems[study] = problem
        except ServiceFailure as failure:
            await store_outcome_of_failed_approval(context.database, call, failure, now=await context.clock())
            unclear += 1
            if isinstance(failure, CallNotMade) or unclear >= MAX_UNREADABLE_SUBMISSIONS:
                raise
            problems[""] = failure.message
        else:
            await store_status_of_submission(context, submission, "approved")
    return [*problems.values()]


async def list_approvable_submissions(context: ApprovalContext, submission: str | None = None) -> list[tuple[str, str]]:
    """Return the submissions that may be approved without a person, and their studies; of one, whether it may be."""
    async with context.database.begin() as connection:
        parameters = {"campaign": context.account.campaign_id, "submission": submission}
        rows = await connection.execute(LIST_APPROVABLE_SUBMISSIONS_AT_SERVICE, parameters)
        return [(row.external_id, row.study) for row in rows]


async def begin_approval_if_still_possible(context: ApprovalContext, call: RewardCall, submission: str) -> bool:
    """Commit that the reward is being sent. Return whether the submission may still be approved."""
    if not await list_approvable_submissions(context, submission):
        return False
    now = await context.clock()
    async with context.database.begin() as connection:
        return await mark_reward_as_sending(connection, call, submission, ["prepared"], now=now)


async def settle_refused_approval(
    context: ApprovalContext, call: RewardCall, submission: str, study: str, refused: CallRefused
) -> str:
    """Store what a refused approval means, as another may have decided about the submission.

    Returns:
        A problem that is not about this submission; empty if it is.

    Raises:
        CallRefused: The token is not accepted.

    """
    status = "awaiting" if refused.status == 401 else await load_submission_status_or_awaiting(context, submission)
    if status != "awaiting":
        await store_status_of_submission(context, submission, status)
        return ""
    is_final = refused.status not in (401, 403) and not await is_balance_known_to_be_too_low(context, study)
    now = await context.clock()
    await store_outcome_of_failed_approval(context.database, call, refused, is_final=is_final, now=now)
    if refused.status == 401:
        raise refused
    if not is_final:
        return f"Approvals in study {study} wait: {refused.message}"
    await store_status_of_submission(context, submission, "awaiting", refused.message)
    return ""


async def store_status_of_submission(context: ApprovalContext, submission: str, status: str, problem: str = "") -> None:
    """Store what became of a submission, with its reward."""
    now = await context.clock()
    parameters = {
        "campaign": context.account.campaign_id,
        "submission": submission,
        "status": status,
        "problem": problem,
        "now": now,
    }
    async with context.database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": context.account.campaign_id})
        await connection.execute(STORE_STATUS_OF_SUBMISSION, parameters)
        await settle_rewards_by_status(connection, context.account.campaign_id, now=now)


async def load_submission_status_or_awaiting(context: ApprovalContext, submission: str) -> str:
    """Return the status of a submission whose approval was refused; `awaiting` if it cannot be read."""
    try:
        return (await context.service.load_submission(submission)).status
    except ServiceFailure:
        return "awaiting"


async def is_balance_known_to_be_too_low(context: ApprovalContext, study: str) -> bool:
    """Return whether the workspace may lack the money for one reward of a study, with fees and taxes."""
    try:
        balance = await context.service.load_balance(context.account.workspace)
        return balance.available < 2 * (await context.service.load_study(study)).reward
    except ServiceFailure:
        return False
