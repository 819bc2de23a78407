"""Read the submissions of a campaign's studies from the platform's service, and act on them.

Only studies that a person drafted or entered are read: an annotator's link can name any study. Open HITs of
submissions that ended at the platform go to other annotators; their answers stay. Submissions that wait for a review
are approved if all answers are here and the annotator is in good standing, and if the campaign says so.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.service import (
    ENDED_STATUSES,
    CallNotMade,
    PlatformService,
    ServiceFailure,
    Submission,
)
from app.database import payment_tables, tables
from app.database.statistics import analyze_tables_with_many_new_rows, flush_table_statistics_at_commit
from app.payments.approving import ApprovalContext, approve_submissions_and_add_problems
from app.payments.connections import DELETE_SUBMISSIONS_OF_STRANGERS, STUDY_IS_READ, study_ids_of_account
from app.payments.review import list_studies_also_read_by_other_campaigns
from app.payments.rewards import book_rewards_and_return_problems, reward_of_submission_or_none
from app.payments.sending import Clock
from app.privacy.erasure_list import load_person_hashes, person_hash

SUBMISSIONS_PER_STATEMENT = 500
# Without statistics, PostgreSQL compares each submission with each reward.
TABLES_OF_REWARDS = (tables.annotators, tables.assignments, payment_tables.submissions, payment_tables.payments)
SubmissionHash = Callable[[str, str], bytes]

# After the ids were erased, the service's ids would bring people back.
WERE_IDENTIFIERS_ERASED = text("""
    SELECT EXISTS (SELECT 1 FROM retention_runs WHERE campaign_id = :campaign AND kind = 'identifiers')
""")

# Retention and erasures wait for these locks. One that came first is seen by the statements after them.
LOCK_CAMPAIGN = text("SELECT link_key FROM campaigns WHERE id = :campaign FOR KEY SHARE")
LOCK_STUDIES = text("SELECT study, other_studies FROM payment_accounts WHERE campaign_id = :campaign FOR SHARE")
LOCK_ANNOTATORS = text("""
    SELECT 1 FROM annotators WHERE campaign_id = :campaign AND platform = :platform
    AND worker_id = ANY(CAST(:people AS text[])) ORDER BY id FOR KEY SHARE
""")

# A submission belongs to the annotator with the platform's id of the person. What was decided after the service was
# asked is newer than its reply.
STORE_SUBMISSIONS = text("""
    INSERT INTO submissions AS u (campaign_id, external_id, annotator_id, study, status, seen_at, reward,
        submission_hash)
    SELECT :campaign, given.id, a.id, :study, given.status, :now, given.reward, given.hash
    FROM unnest(CAST(:ids AS text[]), CAST(:people AS text[]), CAST(:statuses AS text[]), CAST(:rewards AS int[]),
        CAST(:hashes AS bytea[])) AS given (id, person, status, reward, hash)
    LEFT JOIN annotators a ON a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.person
    ORDER BY given.id
    ON CONFLICT (campaign_id, external_id) DO UPDATE SET annotator_id = excluded.annotator_id,
        status = excluded.status, study = excluded.study, seen_at = excluded.seen_at,
        submission_hash = excluded.submission_hash,
        reward = coalesce(excluded.reward, CASE WHEN u.status = excluded.status THEN u.reward END),
        problem = CASE WHEN u.status IN (excluded.status, 'other') THEN u.problem ELSE '' END
    WHERE u.seen_at <= excluded.seen_at
""")
# One read may miss a submission. What a person or the service said about it must still be known when it is back, or it
# would be approved without a person. So must a decision without a reply.
SUBMISSION_HAS_NOTE = "(return_requested_at IS NOT NULL OR decision_pending_since IS NOT NULL OR problem <> '')"
ABSENT_SUBMISSIONS = """campaign_id = :campaign AND study = :study AND seen_at <= :now
    AND external_id <> ALL(CAST(:ids AS text[])) AND NOT starts_with(external_id, 'erased:')"""
DELETE_ABSENT_SUBMISSIONS = text(f"DELETE FROM submissions WHERE {ABSENT_SUBMISSIONS} AND NOT {SUBMISSION_HAS_NOTE}")
SET_STATUS_OF_ABSENT_SUBMISSIONS_WITH_NOTE = text(f"""
    UPDATE submissions SET status = 'other', seen_at = :now WHERE {ABSENT_SUBMISSIONS} AND status <> 'other'
""")

# Others get these HITs. A person who takes the study again gets a HIT with the new submission.
FREE_HITS_OF_ENDED_SUBMISSIONS = text(f"""
    UPDATE hits SET expires_at = statement_timestamp()
    WHERE campaign_id = :campaign AND id = ANY(ARRAY(
        SELECT h.id FROM submissions u
        JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
            AND s.external_id = u.external_id
        JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id
        WHERE u.campaign_id = :campaign AND u.status = ANY(CAST(:ended AS text[])) AND {STUDY_IS_READ}
        AND h.closed_at IS NULL AND h.expires_at > statement_timestamp() ORDER BY h.id FOR NO KEY UPDATE OF h))
""")


async def reconcile_submissions_and_add_problems(
    database: AsyncEngine,
    service: PlatformService,
    account: Row[Any],
    clock: Clock,
    problems: list[str],
    *,
    submission_hash: SubmissionHash,
) -> None:
    """Read all submissions, free HITs of those that ended, book rewards, and approve those that may be.

    Args:
        database: The database.
        service: The service.
        account: The campaign's account.
        clock: The clock.
        problems: Gets those that do not hold up the rest, such as of single studies, also if this raises.
        submission_hash: Hash of a submission by its platform and id.

    Raises:
        ServiceFailure: The service cannot be reached, or does not accept the token.

    """
    if await forget_strangers_if_identifiers_were_erased(database, account.campaign_id):
        return
    for study in study_ids_of_account(account):
        now = await clock()  # before the call: a change after it is seen the next time
        try:
            submissions = [submission async for submission in service.iterate_submissions(study)]
            study_reward = (await service.load_study_state(study)).reward if submissions else None
            currency = await load_study_currency_or_empty(service, study) if submissions else ""
        except ServiceFailure as failure:
            if is_about_whole_account(failure):
                raise
            problems.append(f"Study {study}: {failure.message}")
            continue
        if currency and currency != account.currency:
            study_reward = None
            submissions = [replace(submission, reward=None) for submission in submissions]
            problems.append(
                f"Study {study} pays in {currency}, but this campaign pays in {account.currency}: Easel "
                "neither books nor approves its rewards."
            )
        await store_and_prune_submissions_of_study(
            database, account, study, submissions, study_reward, submission_hash=submission_hash, now=now
        )
    async with database.begin() as connection:
        await analyze_tables_with_many_new_rows(connection, TABLES_OF_REWARDS, added_count=0)
        parameters = {"campaign": account.campaign_id, "ended": [*ENDED_STATUSES]}
        await connection.execute(FREE_HITS_OF_ENDED_SUBMISSIONS, parameters)
        shared = await list_studies_also_read_by_other_campaigns(connection, account, study_ids_of_account(account))
    problems += [
        f"Another campaign reads study {study}, too. Neither approves its submissions by itself, as a person may be in "
        "both. Remove it from one of them."
        for study in shared
    ]
    problems += await book_rewards_and_return_problems(database, account.campaign_id, now=await clock())
    if account.approves:
        await approve_submissions_and_add_problems(ApprovalContext(database, service, account, clock, shared), problems)


async def load_study_currency_or_empty(service: PlatformService, study: str) -> str:
    """Return the currency in which a study pays; empty if the service does not say.

    Raises:
        ServiceFailure: Every other call would fail, too.

    """
    try:
        return (await service.load_study_cost(study)).currency
    except ServiceFailure as failure:
        if is_about_whole_account(failure):
            raise
        return ""


def is_about_whole_account(failure: ServiceFailure) -> bool:
    """Return whether every other call would fail, too: there is no connection, or the token is not accepted."""
    return isinstance(failure, CallNotMade) or failure.status == 401


async def forget_strangers_if_identifiers_were_erased(database: AsyncEngine, campaign_id: int) -> bool:
    """Return whether the campaign's ids were erased; if so, delete the submissions of people who never came."""
    async with database.begin() as connection:
        key = {"campaign": campaign_id}
        were_erased = bool((await connection.execute(WERE_IDENTIFIERS_ERASED, key)).scalar_one())
        if were_erased:
            await connection.execute(DELETE_SUBMISSIONS_OF_STRANGERS, key)
        return were_erased


async def store_and_prune_submissions_of_study(
    database: AsyncEngine,
    account: Row[Any],
    study: str,
    submissions: Sequence[Submission],
    study_reward: int | None,
    *,
    submission_hash: SubmissionHash,
    now: datetime,
) -> None:
    """Store all submissions of a study, but for people who were erased, and delete those that are no longer there.

    Absent ones with a note stay, with the status `other`.

    Nothing is stored if the study was taken out of the settings, or the campaign's ids were erased, meanwhile.
    """
    async with database.begin() as connection:
        key = {"campaign": account.campaign_id, "platform": account.platform, "study": study, "now": now}
        link_key = await lock_study_and_return_link_key_or_none(connection, key)
        if link_key is None:
            return
        people = [submission.participant for submission in submissions]
        await connection.execute(LOCK_ANNOTATORS, key | {"people": people})
        erased = await load_person_hashes(connection, account.campaign_id)
        kept = [
            submission
            for submission in submissions
            if submission.study == study
            and person_hash(link_key, account.platform, submission.participant) not in erased
        ]
        for start in range(0, len(kept), SUBMISSIONS_PER_STATEMENT):
            part = kept[start : start + SUBMISSIONS_PER_STATEMENT]
            parameters = key | {
                "ids": [submission.id for submission in part],
                "people": [submission.participant for submission in part],
                "statuses": [submission.status for submission in part],
                "rewards": [reward_of_submission_or_none(submission, study_reward) for submission in part],
                "hashes": [submission_hash(account.platform, submission.id) for submission in part],
            }
            await connection.execute(STORE_SUBMISSIONS, parameters)
        absent = key | {"ids": [submission.id for submission in kept]}
        await connection.execute(DELETE_ABSENT_SUBMISSIONS, absent)
        await connection.execute(SET_STATUS_OF_ABSENT_SUBMISSIONS_WITH_NOTE, absent)
        await flush_table_statistics_at_commit(connection)


async def lock_study_and_return_link_key_or_none(connection: AsyncConnection, key: Mapping[str, Any]) -> str | None:
    """Lock the campaign and its studies, and return the campaign's key; None if the study is no longer read, or the
    campaign's ids were erased.
    """
    link_key = (await connection.execute(LOCK_CAMPAIGN, key)).scalar_one_or_none()
    studies = (await connection.execute(LOCK_STUDIES, key)).one_or_none()
    if link_key is None or studies is None or key["study"] not in study_ids_of_account(studies):
        return None
    were_erased = (await connection.execute(WERE_IDENTIFIERS_ERASED, key)).scalar_one()
    return None if were_erased else str(link_key)
