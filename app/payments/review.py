"""Compare the platform's submissions with ours, and set how they are read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid
from app.payments.connections import (
    ID_PATTERN,
    STUDY_IS_READ,
    ServiceConnector,
    load_account_or_refuse,
    parse_study_ids_or_refuse,
    platform_service_of_account,
    study_ids_of_account,
)
from app.payments.rewards import update_rewards_to_submission_statuses

MAX_HOOK_SECRET_CHARACTERS = 500
SUBMISSIONS_SHOWN = 500
UNREAD_STUDIES_SHOWN = 5

# SQL of a submission u, its assignment s and its annotator a: all answers are here, nobody held the annotator, they
# were not asked to return it, and no rejection of it is without a reply.
SUBMISSION_IS_APPROVABLE = f"""u.status = 'awaiting' AND s.completed_at IS NOT NULL AND a.barred IS NULL
    AND u.return_requested_at IS NULL AND u.decision_pending_since IS NULL AND {STUDY_IS_READ}"""

# What is to do about a submission, by its finding; the most urgent first.
FINDING_SENTENCES = {
    "missing_here": "It waits for a review at the platform, but Easel has no such visit. Ask the person what happened.",
    "unfinished_here": "It waits for a review at the platform, but not all answers are here.",
    "ended_there": "All answers are here, but it was returned or timed out at the platform, so it is not paid.",
    "rejected_there": "All answers are here and nobody held the annotator, but it was rejected at the platform.",
    "open_there": "All answers are here, but the person has not entered the code at the platform yet.",
    "decision_unclear": "The platform has not replied to the rejection or the request to return it. Check there.",
    "return_requested": "You asked the person to return it. If they do not, approve or reject it.",
    "held": "The annotator is held or excluded. Decide yourself.",
    "approvable": "All answers are here. It can be approved.",
    "agrees": "",
}

LIST_SUBMISSIONS = text(f"""
    SELECT compared.*, n.name FROM (
        SELECT u.campaign_id, u.external_id, u.annotator_id, u.study, u.status, u.seen_at, u.problem,
            u.return_requested_at, u.reward, s.completed_at,
            (SELECT count(*) FROM hits h JOIN responses r ON r.campaign_id = h.campaign_id AND r.hit_id = h.id
             WHERE h.campaign_id = s.campaign_id AND h.assignment_id = s.id AND r.replaces IS NULL) AS answers,
            CASE
                WHEN u.status = 'awaiting' AND u.decision_pending_since IS NOT NULL THEN 'decision_unclear'
                WHEN u.status = 'awaiting' AND u.return_requested_at IS NOT NULL THEN 'return_requested'
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


STORE_REVIEW_SETTINGS = text("""
    UPDATE payment_accounts SET study = :study, other_studies = :other_studies, approves = :approves,
        hook_secret = coalesce(CAST(:hook_secret AS bytea), hook_secret),
        due_at = CASE WHEN due_at IS NOT NULL THEN CAST(:now AS timestamptz) END
    WHERE campaign_id = :campaign
""")

# Two campaigns that approve in one study would pay for each other's annotators. A workspace was checked with its token,
# so only its own campaigns count.
LIST_STUDIES_OF_OTHER_CAMPAIGNS = text("""
    SELECT DISTINCT named.study FROM payment_accounts c, unnest(c.study || c.other_studies) AS named (study)
    WHERE c.campaign_id <> :campaign AND c.platform = :platform AND c.workspace = :workspace AND c.workspace <> ''
    AND (c.token IS NOT NULL OR c.token_variable IS NOT NULL)
    AND named.study = ANY(CAST(:studies AS text[])) ORDER BY 1
""")

# Submissions of people who are here, or about which a person noted or decided something, and that still wait.
COUNT_WAITING_SUBMISSIONS_OF_OTHER_STUDIES = text("""
    SELECT count(*) FROM submissions WHERE campaign_id = :campaign AND study <> ALL(CAST(:studies AS text[]))
    AND NOT starts_with(external_id, 'erased:') AND status = 'awaiting'
    AND (annotator_id IS NOT NULL OR problem <> '' OR return_requested_at IS NOT NULL
         OR decision_pending_since IS NOT NULL)
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


async def list_submissions(
    connection: AsyncConnection, campaign_id: int, limit: int | None = SUBMISSIONS_SHOWN
) -> Sequence[Row[Any]]:
    """Return the platform's submissions with ours: those that differ first. None: all of them."""
    parameters = {"campaign": campaign_id, "findings": [*FINDING_SENTENCES], "limit": limit}
    return (await connection.execute(LIST_SUBMISSIONS, parameters)).all()


async def store_review_settings_or_refuse(
    connection: AsyncConnection,
    connector: ServiceConnector,
    campaign: Campaign,
    *,
    study: str | None,
    approves: bool,
    hook_secret: str,
    forgets_waiting: bool = False,
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
        forgets_waiting: Whether submissions that wait for a decision may be forgotten with their study.
        now: The time.

    Raises:
        Conflict: `no_budget`, `study_taken`, `submissions_wait`.
        Invalid: `service_id_unreadable`, `studies_many`, `hook_secret_unreadable`.

    """
    if len(hook_secret) > MAX_HOOK_SECRET_CHARACTERS or not hook_secret.isprintable():
        raise Invalid(
            f"The secret of notices must be one line of at most {MAX_HOOK_SECRET_CHARACTERS} characters. Copy it "
            "again. Nothing was changed.",
            code="hook_secret_unreadable",
        )
    account = await load_account_or_refuse(connection, campaign)
    before = study_ids_of_account(account)
    studies = before if study is None else parse_study_ids_or_refuse(study)
    await refuse_studies_of_other_campaigns(connection, account, [name for name in studies if name not in before])
    if study is not None and not forgets_waiting:
        await refuse_to_forget_waiting_submissions(connection, campaign, studies)
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
        await update_rewards_to_submission_statuses(connection, campaign.id, now=now)
    await log_change(
        connection,
        "payments.reviewing",
        campaign,
        old_values={"study": " ".join(before), "approves": account.approves},
        new_values={"study": " ".join(studies), "approves": approves}
        | ({"secret of notices": "stored"} if hook_secret else {}),
    )


async def refuse_to_forget_waiting_submissions(
    connection: AsyncConnection, campaign: Campaign, kept_studies: Sequence[str]
) -> None:
    """Raise `Conflict` (`submissions_wait`) if submissions of other studies wait for a decision."""
    parameters = {"campaign": campaign.id, "studies": [*kept_studies]}
    if count := await connection.scalar(COUNT_WAITING_SUBMISSIONS_OF_OTHER_STUDIES, parameters):
        raise Conflict(
            f"Submissions of a study that you are removing still wait for a decision: {count:,}. These people are not "
            "paid yet. Approve or reject them first, or confirm that Easel may forget them. Nothing was changed.",
            code="submissions_wait",
            waiting=count,
        )


async def list_studies_also_read_by_other_campaigns(
    connection: AsyncConnection, account: Row[Any], studies: Sequence[str]
) -> Sequence[str]:
    """Return those of the studies that another connected campaign of the same workspace reads."""
    parameters = {
        "campaign": account.campaign_id,
        "platform": account.platform,
        "workspace": account.workspace,
        "studies": [*studies],
    }
    return (await connection.execute(LIST_STUDIES_OF_OTHER_CAMPAIGNS, parameters)).scalars().all()


async def refuse_studies_of_other_campaigns(
    connection: AsyncConnection, account: Row[Any], added_studies: Sequence[str]
) -> None:
    """Raise `Conflict` (`study_taken`) if another connected campaign of the same workspace reads one of the studies."""
    if taken := await list_studies_also_read_by_other_campaigns(connection, account, added_studies):
        raise Conflict(
            f"Another campaign already reads the study {taken[0]}. Remove it there first: only one campaign approves "
            "the submissions of a study. Nothing was changed.",
            code="study_taken",
        )


async def list_unread_studies(connection: AsyncConnection, account: Row[Any]) -> list[str]:
    """Return studies that links of arrivals name, but no person entered, for a person to judge."""
    parameters = {"campaign": account.campaign_id, "platform": account.platform}
    arrivals = (await connection.execute(LIST_ARRIVALS, parameters)).scalars()
    named = {*map(platform_service_of_account(account).study_of_arrival, arrivals)} - {
        "",
        *study_ids_of_account(account),
    }
    return sorted(study for study in named if ID_PATTERN.fullmatch(study))[:UNREAD_STUDIES_SHOWN]
