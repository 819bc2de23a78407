"""Approve complete submissions at the platform, one after the other: each approval pays a reward of the ledger."""

import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.platforms.service import (
    CallNotMade,
    CallRefused,
    PlatformService,
    ServiceFailure,
    SubmissionStatus,
)
from app.payments.ledger import LOCK_ACCOUNT
from app.payments.review import SUBMISSION_IS_APPROVABLE
from app.payments.rewards import (
    AMOUNT_IS_CURRENT,
    RewardCall,
    store_outcome_of_failed_approval,
    store_reward_state_after_call,
    update_rewards_to_submission_statuses,
)
from app.payments.sending import MAX_UNREADABLE_SUBMISSIONS, Clock

MAX_REFUSALS_PER_STUDY = 3  # of one turn, if they are not about the submission

# SQL of a payment p, a submission u, its annotator a and its assignment s: Easel may approve it without a person.
REWARD_MAY_BE_SENT = f"""u.campaign_id = p.campaign_id AND u.external_id = p.submission AND u.problem = ''
    AND a.campaign_id = u.campaign_id AND a.id = u.annotator_id
    AND s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id AND s.external_id = u.external_id
    AND p.campaign_id = :campaign AND p.kind = 'reward' AND p.state = 'prepared' AND {AMOUNT_IS_CURRENT}
    AND {SUBMISSION_IS_APPROVABLE}"""

# Those that were tried come last, so that refused ones do not keep others waiting.
LIST_APPROVABLE_SUBMISSIONS_AT_SERVICE = text(f"""
    SELECT u.external_id, u.study FROM payments p, submissions u, annotators a, assignments s
    WHERE {REWARD_MAY_BE_SENT} ORDER BY p.sending_at NULLS FIRST, u.external_id
""")

# A turn lasts minutes, in which a person may hold the annotator, reject the submission, or end the approvals.
MARK_REWARD_AS_SENDING_IF_APPROVABLE = text(f"""
    UPDATE payments p SET state = 'sending', batch = :batch, sending_at = :now, settled_at = NULL, problem = ''
    FROM payment_accounts account, submissions u, annotators a, assignments s
    WHERE {REWARD_MAY_BE_SENT} AND u.external_id = :submission
    AND account.campaign_id = p.campaign_id AND account.approves RETURNING p.id
""")
STORE_STATUS_OF_SUBMISSION = text("""
    UPDATE submissions SET status = :status, problem = :problem, seen_at = :now
    WHERE campaign_id = :campaign AND external_id = :submission AND status = 'awaiting'
""")


@dataclass(frozen=True)
class ApprovalContext:
    """Whose submissions are approved, and through what. Submissions of `studies_left_to_people` are not."""

    database: AsyncEngine
    service: PlatformService
    account: Row[Any]
    clock: Clock
    studies_left_to_people: Sequence[str] = ()


async def approve_submissions_and_add_problems(context: ApprovalContext, problems: list[str]) -> None:
    """Approve the submissions that may be and whose rewards are prepared. One that is refused waits for a person.

    If the refusal is not about the submission, the next turn tries again: money is missing, the token may not approve
    in a study, or the submission cannot be read.

    Args:
        context: Whose submissions.
        problems: Gets those that are not about one submission, also if this raises.

    Raises:
        ServiceFailure: The service cannot be reached, does not accept the token, got too many calls, or did not reply
            to several.

    """
    refusals_by_study: Counter[str] = Counter()
    unclear = 0
    for submission, study in await list_approvable_submissions_with_studies(context):
        if refusals_by_study[study] >= MAX_REFUSALS_PER_STUDY:
            continue
        call = RewardCall(context.account.campaign_id, secrets.token_hex(8))
        if not await try_to_begin_approval(context, call, submission):
            continue
        try:
            await context.service.approve_submission(submission)
        except CallRefused as refused:
            if problem := await store_refused_approval_and_return_problem(context, call, submission, study, refused):
                problems.append(problem)
                refusals_by_study[study] += MAX_REFUSALS_PER_STUDY if refused.is_about_balance else 1
        except ServiceFailure as failure:
            await store_outcome_of_failed_approval(context.database, call, failure, now=await context.clock())
            unclear += 1
            if isinstance(failure, CallNotMade) or unclear >= MAX_UNREADABLE_SUBMISSIONS:
                raise
            problems.append(failure.message)
        else:
            await store_outcome_of_submission(context, call, submission, "approved", reward_state="sent")


async def list_approvable_submissions_with_studies(context: ApprovalContext) -> list[tuple[str, str]]:
    """Return the submissions that may be approved without a person, and their studies."""
    async with context.database.begin() as connection:
        parameters = {"campaign": context.account.campaign_id}
        rows = await connection.execute(LIST_APPROVABLE_SUBMISSIONS_AT_SERVICE, parameters)
        return [(row.external_id, row.study) for row in rows if row.study not in context.studies_left_to_people]


async def try_to_begin_approval(context: ApprovalContext, call: RewardCall, submission: str) -> bool:
    """Commit that the reward is being sent, and return True, if the submission may still be approved without a person.

    The account is locked, as by a person who decides about the submission, so that one of the two sees the other.
    """
    now = await context.clock()
    parameters = {"campaign": call.campaign_id, "batch": call.batch, "submission": submission, "now": now}
    async with context.database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": call.campaign_id})
        marked = await connection.execute(MARK_REWARD_AS_SENDING_IF_APPROVABLE, parameters)
        return marked.one_or_none() is not None


async def store_refused_approval_and_return_problem(
    context: ApprovalContext, call: RewardCall, submission: str, study: str, refused: CallRefused
) -> str:
    """Store what a refused approval means, as another may have decided about the submission.

    Returns:
        A problem that is not about this submission; empty if it is.

    Raises:
        CallRefused: The token is not accepted.

    """
    status = None if refused.status == 401 else await load_submission_status_or_none(context, submission)
    if status is not None and status != "awaiting":
        reward_state = "sent" if status == "approved" else "prepared"
        await store_outcome_of_submission(context, call, submission, status, reward_state=reward_state)
        return ""
    if status is None or refused.status == 403 or refused.is_about_balance:
        await store_outcome_of_failed_approval(context.database, call, refused, now=await context.clock())
        if refused.status == 401:
            raise refused
        return f"Approvals in study {study} wait: {refused.message}"
    await store_outcome_of_submission(
        context, call, submission, "awaiting", reward_state="failed", problem=refused.message
    )
    return ""


async def store_outcome_of_submission(
    context: ApprovalContext, call: RewardCall, submission: str, status: str, *, reward_state: str, problem: str = ""
) -> None:
    """Store what became of a submission and its reward. The reward is found by its call: the submission may be renamed
    by an erasure, or forgotten with its study.
    """
    now = await context.clock()
    parameters = {
        "campaign": call.campaign_id,
        "submission": submission,
        "status": status,
        "problem": problem,
        "now": now,
    }
    async with context.database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": call.campaign_id})
        await store_reward_state_after_call(connection, call, reward_state, problem=problem, now=now)
        await connection.execute(STORE_STATUS_OF_SUBMISSION, parameters)
        await update_rewards_to_submission_statuses(connection, call.campaign_id, now=now)


async def load_submission_status_or_none(context: ApprovalContext, submission: str) -> SubmissionStatus | None:
    """Return the status of a submission whose approval was refused; None if it cannot be read."""
    try:
        return (await context.service.load_submission(submission)).status
    except ServiceFailure:
        return None
