"""Compare the platform's submissions with ours, and approve or reject them as a person says."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.service import (
    MIN_REJECTION_CHARACTERS,
    CallOutcomeUnknown,
    CallRefused,
    ServiceFailure,
    ServiceOfPlatform,
    SubmissionStatus,
)
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import BadGateway, Conflict, Invalid, NotFound, shorten_echo
from app.payments.connections import (
    ID_PATTERN,
    ServiceConnector,
    has_token,
    load_account,
    parse_studies,
    service_of_account,
    studies_of_account,
)

MAX_REJECTION_CHARACTERS = 2_000
MAX_HOOK_SECRET_CHARACTERS = 500
SUBMISSIONS_SHOWN = 500
UNREAD_STUDIES_SHOWN = 5

# SQL of a submission u: a person drafted or entered its study.
STUDY_IS_READ = """u.study IN (SELECT unnest(c.study || c.other_studies) FROM payment_accounts c
    WHERE c.campaign_id = u.campaign_id)"""
# SQL of a submission u, its assignment s and its annotator a: all answers are here, and nobody held the annotator.
SUBMISSION_IS_APPROVABLE = f"""u.status = 'awaiting' AND s.completed_at IS NOT NULL AND a.barred IS NULL
    AND {STUDY_IS_READ}"""

# What is to do about a submission, by its finding; the most urgent first.
FINDING_SENTENCES = {
    "missing_here": "It waits for a review at the platform, but no such visit came here. Ask the person what happened.",
    "unfinished_here": "It waits for a review at the platform, but not all answers are here.",
    "ended_there": "All answers are here, but it was returned or timed out at the platform, so it is not paid.",
    "rejected_there": "All answers are here and nobody held the annotator, but it was rejected at the platform.",
    "open_there": "All answers are here, but the person has not entered the code at the platform yet.",
    "held": "The annotator is held or excluded. Decide yourself.",
    "approvable": "All answers are here. It can be approved.",
    "agrees": "",
}

LIST_SUBMISSIONS = text(f"""
    SELECT compared.*, n.name FROM (
        SELECT u.campaign_id, u.external_id, u.annotator_id, u.study, u.status, u.seen_at, u.problem, s.completed_at,
            (SELECT count(*) FROM hits h JOIN responses r ON r.campaign_id = h.campaign_id AND r.hit_id = h.id
             WHERE h.campaign_id = s.campaign_id AND h.assignment_id = s.id AND r.replaces IS NULL) AS answers,
            CASE
                WHEN u.status = 'awaiting' AND s.id IS NULL THEN 'missing_here'
                WHEN u.status = 'awaiting' AND a.barred IS NOT NULL THEN 'held'
                WHEN u.status = 'awaiting' AND s.completed_at IS NULL THEN 'unfinished_here'
                WHEN u.status IN ('returned', 'timed_out') AND s.completed_at IS NOT NULL THEN 'ended_there'
                WHEN u.status = 'rejected' AND s.completed_at IS NOT NULL AND a.barred IS NULL THEN 'rejected_there'
                WHEN u.status IN ('reserved', 'active') AND s.completed_at IS NOT NULL THEN 'open_there'
                WHEN {SUBMISSION_IS_APPROVABLE} THEN 'approvable'
                ELSE 'agrees'
            END AS finding
        FROM submissions u
        LEFT JOIN annotators a ON a.campaign_id = u.campaign_id AND a.id = u.annotator_id
        LEFT JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
            AND s.external_id = u.external_id
        WHERE u.campaign_id = :campaign) AS compared
    LEFT JOIN named_annotators n ON n.campaign_id = compared.campaign_id AND n.id = compared.annotator_id
    ORDER BY array_position(CAST(:findings AS text[]), compared.finding), compared.external_id LIMIT :limit
""")

LOAD_SUBMISSION = text(f"""
    SELECT u.external_id, u.status, u.annotator_id, n.name FROM submissions u
    LEFT JOIN named_annotators n ON n.campaign_id = u.campaign_id AND n.id = u.annotator_id
    WHERE u.campaign_id = :campaign AND u.external_id = :submission AND {STUDY_IS_READ}
""")
STORE_DECIDED_STATUS = text("""
    UPDATE submissions SET status = :status, problem = '', seen_at = :now
    WHERE campaign_id = :campaign AND external_id = :submission
""")

STORE_REVIEW_SETTINGS = text("""
    UPDATE payment_accounts SET study = :study, other_studies = :other_studies, approves = :approves,
        hook_secret = coalesce(CAST(:hook_secret AS bytea), hook_secret),
        due_at = CASE WHEN due_at IS NOT NULL THEN CAST(:now AS timestamptz) END
    WHERE campaign_id = :campaign
""")

DELETE_SUBMISSIONS_OF_OTHER_STUDIES = text("""
    DELETE FROM submissions WHERE campaign_id = :campaign AND study <> ALL(CAST(:studies AS text[]))
    AND NOT starts_with(external_id, 'erased:')
""")
LIST_ARRIVALS = text("""
    SELECT DISTINCT s.arrival FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE s.campaign_id = :campaign AND a.platform = :platform
""")

ReviewDecision = Literal["approve", "reject"]
STATUS_BY_DECISION: dict[str, SubmissionStatus] = {"approve": "approved", "reject": "rejected"}


async def list_submissions(
    connection: AsyncConnection, campaign_id: int, limit: int | None = SUBMISSIONS_SHOWN
) -> Sequence[Row[Any]]:
    """Return the platform's submissions with ours: those that differ first. None: all of them."""
    parameters = {"campaign": campaign_id, "findings": [*FINDING_SENTENCES], "limit": limit}
    return (await connection.execute(LIST_SUBMISSIONS, parameters)).all()


async def store_review_settings(
    connection: AsyncConnection,
    connector: ServiceConnector,
    campaign: Campaign,
    *,
    study: str | None,
    approves: bool,
    hook_secret: str,
    now: datetime,
) -> None:
    """Store which studies are read, whether complete submissions are approved, and the secret of the service's notices.

    Args:
        connection: A connection in a transaction.
        connector: Connector to the service.
        campaign: The campaign.
        study: Ids of the studies, with blanks or commas between them; the first one is the campaign's own. Submissions
            of other studies are forgotten. None: they stay.
        approves: Whether submissions whose answers are all here are approved.
        hook_secret: Secret of the service's notices; empty: it stays.
        now: The time.

    Raises:
        Conflict: `no_budget`.
        Invalid: `service_id_unreadable`, `studies_many`, `hook_secret_unreadable`.

    """
    if len(hook_secret) > MAX_HOOK_SECRET_CHARACTERS or not hook_secret.isprintable():
        raise Invalid(
            f"The secret of notices must be one line of at most {MAX_HOOK_SECRET_CHARACTERS} characters. Copy it "
            "again. Nothing was changed.",
            code="hook_secret_unreadable",
        )
    account = await load_account(connection, campaign)
    before = studies_of_account(account)
    studies = before if study is None else parse_studies(study)
    parameters = {
        "campaign": campaign.id,
        "study": studies[0] if studies else "",
        "other_studies": studies[1:],
        "approves": approves,
        "hook_secret": connector.cipher.encrypt(hook_secret) if hook_secret else None,
        "now": now,
    }
    await connection.execute(STORE_REVIEW_SETTINGS, parameters)
    if study is not None:
        await connection.execute(DELETE_SUBMISSIONS_OF_OTHER_STUDIES, {"campaign": campaign.id, "studies": studies})
    await log_change(
        connection,
        "payments.reviewing",
        campaign,
        before={"study": " ".join(before), "approves": account.approves},
        after={"study": " ".join(studies), "approves": approves}
        | ({"secret of notices": "stored"} if hook_secret else {}),
    )


async def list_unread_studies(connection: AsyncConnection, account: Row[Any]) -> list[str]:
    """Return studies that links of arrivals name, but no person entered, for a person to judge."""
    parameters = {"campaign": account.campaign_id, "platform": account.platform}
    arrivals = (await connection.execute(LIST_ARRIVALS, parameters)).scalars()
    named = {*map(service_of_account(account).study_of_arrival, arrivals)} - {"", *studies_of_account(account)}
    return sorted(study for study in named if ID_PATTERN.fullmatch(study))[:UNREAD_STUDIES_SHOWN]


async def decide_on_submission(
    database: AsyncEngine,
    connector: ServiceConnector,
    campaign: Campaign,
    submission_id: str,
    decision: str,
    *,
    category: str = "",
    message: str = "",
    now: datetime,
) -> None:
    """Approve or reject a submission at the platform, as a person says. The call is made outside any transaction.

    Raises:
        NotFound: `submission_not_found`.
        Conflict: `no_budget`, `no_token`, `submission_decided`, `service_refused`.
        Invalid: `invalid`, `rejection_category`, `rejection_short`.
        BadGateway: `service_unavailable`: whether the platform did it is seen when Easel reads it next.

    """
    async with database.begin() as connection:
        key = {"campaign": campaign.id, "submission": submission_id}
        submission = (await connection.execute(LOAD_SUBMISSION, key)).one_or_none()
        if submission is None:
            name = shorten_echo(submission_id)
            raise NotFound(f"“{campaign.name}” has no submission “{name}”.", code="submission_not_found")
        account = await load_account(connection, campaign)
    if decision not in STATUS_BY_DECISION:
        raise Invalid(f"“{shorten_echo(decision)}” is no decision: approve or reject.", code="invalid")
    if not has_token(account):
        raise Conflict("Easel has no token to call the platform with. Nothing was changed.", code="no_token")
    if submission.status != "awaiting":
        raise Conflict("This submission does not wait for a review. Nothing was changed.", code="submission_decided")
    if decision == "reject":
        refuse_incomplete_rejection(service_of_account(account), category, message)
    name_of_person = submission.name or "an unknown person"
    try:
        service = connector.connect_account(account)
        if decision == "approve":
            await service.approve_submission(submission_id)
        else:
            await service.reject_submission(submission_id, category, message.strip())
    except CallRefused as refused:
        raise Conflict(f"{refused.message} Nothing was changed.", code="service_refused") from None
    except ServiceFailure as failure:
        if isinstance(failure, CallOutcomeUnknown):
            async with database.begin() as connection:
                await log_change(connection, f"payments.{decision}_tried", campaign, about=name_of_person)
        raise BadGateway(
            f"{failure.message} Reload the page in 10 minutes to see whether it took effect.",
            code="service_unavailable",
        ) from None
    async with database.begin() as connection:
        await connection.execute(STORE_DECIDED_STATUS, {**key, "status": STATUS_BY_DECISION[decision], "now": now})
        after = {"category": category} if decision == "reject" else None
        action = "payments.approved" if decision == "approve" else "payments.rejected"
        await log_change(connection, action, campaign, about=name_of_person, after=after)


def refuse_incomplete_rejection(platform: ServiceOfPlatform, category: str, message: str) -> None:
    """Raise `Invalid` (`rejection_category`, `rejection_short`) unless a rejection has all that the platform wants."""
    if category not in platform.rejection_categories:
        raise Invalid("Choose why the submission is rejected. Nothing was changed.", code="rejection_category")
    if not MIN_REJECTION_CHARACTERS <= len(message.strip()) <= MAX_REJECTION_CHARACTERS:
        raise Invalid(
            f"Explain the rejection to the person in {MIN_REJECTION_CHARACTERS} to {MAX_REJECTION_CHARACTERS:,} "
            f"characters; these are {len(message.strip()):,}. Nothing was changed.",
            code="rejection_short",
        )
