"""Approve or reject a submission at the platform, or ask the person to return it, as a person says."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.accounts.access import Access, visible_campaigns_sql_condition
from app.annotation.platforms.service import (
    MIN_REJECTION_CHARACTERS,
    CallOutcomeUnknown,
    CallRefused,
    PlatformService,
    ServiceFailure,
    ServiceOfPlatform,
)
from app.database.audit_log import log_change
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import BadGateway, Conflict, Invalid, NotFound, shorten_echo
from app.payments.connections import (
    STUDY_IS_READ,
    ServiceConnector,
    has_token,
    load_account_or_refuse,
    platform_service_of_account,
)
from app.payments.ledger import LOCK_ACCOUNT, load_ledger_totals, over_budget_error
from app.payments.rewards import (
    RewardCall,
    find_other_campaign_with_reward_or_none,
    reserve_rewards_and_count_those_beyond_budget,
    store_outcome_of_failed_approval,
    store_reward_state_after_call,
    try_to_mark_reward_as_sending,
    update_rewards_to_submission_statuses,
)
from app.payments.sending import TIME_FOR_CALL_THAT_PAYS, Clock

MAX_MESSAGE_CHARACTERS = 2_000
MIN_RETURN_REASON_CHARACTERS = 10
APPROVAL_IS_UNDER_WAY = "Easel is approving this submission, or has approved it. Nothing was changed: reload the page."

LOAD_SUBMISSION = text(f"""
    SELECT u.external_id, u.status, u.annotator_id, u.reward, u.decision_pending_since, n.name,
        p.state AS reward_state
    FROM submissions u
    LEFT JOIN named_annotators n ON n.campaign_id = u.campaign_id AND n.id = u.annotator_id
    LEFT JOIN payments p ON p.campaign_id = u.campaign_id AND p.submission = u.external_id AND p.kind = 'reward'
    WHERE u.campaign_id = :campaign AND u.external_id = :submission AND {STUDY_IS_READ}
""")
STORE_PENDING_DECISION = text("""
    UPDATE submissions SET decision_pending_since = :since WHERE campaign_id = :campaign AND external_id = :submission
""")
TAKE_PENDING_DECISION_BACK = text("""
    UPDATE submissions SET decision_pending_since = :before
    WHERE campaign_id = :campaign AND external_id = :submission AND decision_pending_since = :since
""")
STORE_DECISION = text("""
    UPDATE submissions SET problem = '', decision_pending_since = NULL,
        status = CASE CAST(:decision AS text)
            WHEN 'approve' THEN 'approved' WHEN 'reject' THEN 'rejected' ELSE status END,
        seen_at = CASE WHEN CAST(:decision AS text) = 'request_return' THEN seen_at ELSE :now END,
        return_requested_at = CASE WHEN CAST(:decision AS text) = 'request_return' THEN CAST(:now AS timestamptz)
            ELSE return_requested_at END
    WHERE campaign_id = :campaign AND external_id = :submission
""")

ReviewDecision = Literal["approve", "reject", "request_return"]
ACTION_BY_DECISION = {
    "approve": "payments.approved",
    "reject": "payments.rejected",
    "request_return": "payments.return_requested",
}


@dataclass(frozen=True)
class SubmissionDecision:
    """Decision of a person about a submission.

    Attributes:
        submission: The platform's id of it.
        decision: approve, reject or request_return.
        category: Category of a rejection, as the platform names it.
        message: Words to the annotator: why it is rejected, or why they should return it.

    """

    submission: str
    decision: str
    category: str = ""
    message: str = ""


async def carry_out_submission_decision_or_refuse(
    database: AsyncEngine,
    connector: ServiceConnector,
    campaign: Campaign,
    decided: SubmissionDecision,
    *,
    clock: Clock,
    access: Access | None = None,
) -> None:
    """Approve or reject a submission at the platform, or ask the annotator to return it.

    The call is made outside any transaction, after it was committed that the reward of an approval is being sent, or
    that another decision is pending. Until its outcome is known, Easel does not approve the submission by itself. A
    refusal names another campaign only if `access` may see it; None: it may see all.

    Raises:
        NotFound: `submission_not_found`.
        Conflict: `no_budget`, `no_token`, `submission_decided`, `over_budget`, `reward_elsewhere`, `reward_unknown`,
            `service_refused`.
        Invalid: `invalid`, `rejection_category`, `rejection_short`, `return_reason`.
        BadGateway: `service_unavailable`: whether the platform did it is seen when Easel reads it next.

    """
    key = {"campaign": campaign.id, "submission": decided.submission}
    async with database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
        begun_at = await clock()
        submission = (await connection.execute(LOAD_SUBMISSION, key)).one_or_none()
        if submission is None:
            name = shorten_echo(decided.submission)
            raise NotFound(f"“{campaign.name}” has no submission “{name}”.", code="submission_not_found")
        account = await load_account_or_refuse(connection, campaign)
        refuse_decision_on_submission_unless_possible(account, submission, decided, now=begun_at)
        call = RewardCall(campaign.id, secrets.token_hex(8), submission.reward_state or "cancelled")
        if decided.decision == "approve":
            await begin_approval_or_refuse(connection, account, submission, call, access=access, now=begun_at)
        else:
            await connection.execute(STORE_PENDING_DECISION, {**key, "since": begun_at})
    about = submission.name or "an unknown person"
    try:
        await call_service_about_submission(connector.service_with_token_of_account(account), decided)
    except ServiceFailure as failure:
        async with database.begin() as connection:
            if isinstance(failure, CallOutcomeUnknown):
                await log_change(connection, f"payments.{decided.decision}_tried", campaign, about=about)
            else:
                before = {"since": begun_at, "before": submission.decision_pending_since}
                await connection.execute(TAKE_PENDING_DECISION_BACK, key | before)
        await store_outcome_of_failed_approval(database, call, failure, now=await clock())
        if isinstance(failure, CallRefused):
            raise Conflict(f"{failure.message} Nothing was changed.", code="service_refused") from None
        raise BadGateway(
            f"{failure.message} Reload the page in 10 minutes to see whether it took effect.",
            code="service_unavailable",
        ) from None
    now = await clock()  # after the call: what a turn read before it is older
    async with database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
        if decided.decision == "approve":
            await store_reward_state_after_call(connection, call, "sent", now=now)
        await connection.execute(STORE_DECISION, {**key, "decision": decided.decision, "now": now})
        await update_rewards_to_submission_statuses(connection, campaign.id, now=now)
        after = {"category": decided.category} if decided.decision == "reject" else None
        await log_change(connection, ACTION_BY_DECISION[decided.decision], campaign, about=about, new_values=after)


def refuse_decision_on_submission_unless_possible(
    account: Row[Any], submission: Row[Any], decided: SubmissionDecision, *, now: datetime
) -> None:
    """Raise a refusal if the decision is unknown or incomplete, the submission does not wait for one, or another one is
    under way.
    """
    if decided.decision not in ACTION_BY_DECISION:
        raise Invalid(
            f"Choose approve, reject or request_return, not “{shorten_echo(decided.decision)}”.", code="invalid"
        )
    if not has_token(account):
        raise Conflict("Easel has no token to call the platform with. Nothing was changed.", code="no_token")
    if submission.status != "awaiting":
        raise Conflict("This submission does not wait for a review. Nothing was changed.", code="submission_decided")
    if submission.reward_state == "sending":
        raise Conflict(APPROVAL_IS_UNDER_WAY, code="submission_decided")
    pending_since = submission.decision_pending_since
    if pending_since is not None and now - pending_since < TIME_FOR_CALL_THAT_PAYS:
        raise Conflict(
            "A decision about this submission waits for the platform’s reply. Nothing was changed: reload the page in "
            "5 minutes.",
            code="submission_decided",
        )
    if decided.decision == "reject":
        refuse_incomplete_rejection(platform_service_of_account(account), decided.category, decided.message)
    if decided.decision == "request_return":
        refuse_unusable_return_reason(decided.message)


async def call_service_about_submission(service: PlatformService, decided: SubmissionDecision) -> None:
    """Tell the platform the decision. Raises `ServiceFailure`."""
    if decided.decision == "approve":
        await service.approve_submission(decided.submission)
    elif decided.decision == "reject":
        await service.reject_submission(decided.submission, decided.category, decided.message.strip())
    else:
        await service.request_return(decided.submission, decided.message.strip())


async def begin_approval_or_refuse(
    connection: AsyncConnection,
    account: Row[Any],
    submission: Row[Any],
    call: RewardCall,
    *,
    access: Access | None,
    now: datetime,
) -> None:
    """Reserve the reward of a submission, and mark it as being sent. One of a person who never came here has none.

    Its caller holds the account.

    Raises:
        Conflict: `over_budget`, `reward_elsewhere`, `reward_unknown`, `submission_decided`: it was approved.

    """
    if submission.annotator_id is None:
        return
    if not submission.reward:
        raise Conflict(
            "Easel has not read the reward of this submission yet. Try again in 10 minutes. Nothing was changed.",
            code="reward_unknown",
        )
    if await reserve_rewards_and_count_those_beyond_budget(
        connection, call.campaign_id, submission=submission.external_id, now=now
    ):
        totals = await load_ledger_totals(connection, call.campaign_id, account)
        raise over_budget_error(account, submission.reward, totals.left)
    other = await find_other_campaign_with_reward_or_none(connection, call.campaign_id, submission.external_id)
    if other is not None:
        visible = select(campaigns.c.name).where(campaigns.c.id == other, visible_campaigns_sql_condition(access))
        name = (await connection.execute(visible)).scalar_one_or_none()
        named = f", “{name}”," if name else ""
        raise Conflict(
            f"Another campaign{named} has this submission, too, and the reward is in its budget. Decide there, or on "
            "the platform’s own page. Nothing was changed.",
            code="reward_elsewhere",
        )
    if not await try_to_mark_reward_as_sending(connection, call, submission.external_id, now=now):
        raise Conflict(APPROVAL_IS_UNDER_WAY, code="submission_decided")


def refuse_incomplete_rejection(platform: ServiceOfPlatform, category: str, message: str) -> None:
    """Raise `Invalid` (`rejection_category`, `rejection_short`) unless a rejection has all that the platform wants."""
    if category not in platform.rejection_categories:
        raise Invalid("Choose why the submission is rejected. Nothing was changed.", code="rejection_category")
    if not MIN_REJECTION_CHARACTERS <= len(message.strip()) <= MAX_MESSAGE_CHARACTERS:
        raise Invalid(
            f"Explain the rejection to the person in {MIN_REJECTION_CHARACTERS} to {MAX_MESSAGE_CHARACTERS:,} "
            f"characters; these are {len(message.strip()):,}. Nothing was changed.",
            code="rejection_short",
        )


def refuse_unusable_return_reason(reason: str) -> None:
    """Raise `Invalid` (`return_reason`) unless the annotator can read why they are asked to return the submission."""
    if not MIN_RETURN_REASON_CHARACTERS <= len(reason.strip()) <= MAX_MESSAGE_CHARACTERS:
        raise Invalid(
            f"Explain to the person in {MIN_RETURN_REASON_CHARACTERS} to {MAX_MESSAGE_CHARACTERS:,} characters why you "
            f"ask for the return; these are {len(reason.strip()):,}. Nothing was changed.",
            code="return_reason",
        )
