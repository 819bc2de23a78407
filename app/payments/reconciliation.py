"""Read the submissions of a campaign's studies from the platform's service, and act on them.

Open HITs of submissions that ended at the platform go to other annotators; their answers stay. Submissions that wait
for a review are approved if all answers are here and the annotator is in good standing, and if the campaign says so.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.service import (
    ENDED_STATUSES,
    CallRefused,
    PlatformService,
    ServiceOfPlatform,
    Submission,
)
from app.payments.review import SUBMISSION_IS_APPROVABLE
from app.payments.sending import Clock
from app.privacy.erasure_list import load_person_hashes, person_hash

SUBMISSIONS_PER_STATEMENT = 500

# After the ids were erased, the service's ids would bring people back.
WERE_IDENTIFIERS_ERASED = text("""
    SELECT EXISTS (SELECT 1 FROM retention_runs WHERE campaign_id = :campaign AND kind = 'identifiers')
""")
LOAD_LINK_KEY = text("SELECT link_key FROM campaigns WHERE id = :campaign")
LIST_ARRIVALS = text("""
    SELECT DISTINCT s.arrival FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    WHERE s.campaign_id = :campaign AND a.platform = :platform
""")

# A submission belongs to the annotator who came with it, and otherwise to the one with the platform's id of the person.
STORE_SUBMISSIONS = text("""
    INSERT INTO submissions (campaign_id, external_id, annotator_id, study, status, seen_at)
    SELECT :campaign, given.id, a.id, given.study, given.status, :now
    FROM unnest(CAST(:ids AS text[]), CAST(:people AS text[]), CAST(:studies AS text[]), CAST(:statuses AS text[]))
        AS given (id, person, study, status)
    LEFT JOIN annotators a ON a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.person
    ORDER BY given.id
    ON CONFLICT (campaign_id, external_id) DO UPDATE SET annotator_id = excluded.annotator_id,
        status = excluded.status, study = excluded.study, seen_at = excluded.seen_at
""")

# Others get these HITs. A person who takes the study again gets a HIT with the new submission.
FREE_HITS_OF_ENDED_SUBMISSIONS = text("""
    UPDATE hits SET expires_at = statement_timestamp()
    WHERE campaign_id = :campaign AND id = ANY(ARRAY(
        SELECT h.id FROM submissions u
        JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
            AND s.external_id = u.external_id
        JOIN hits h ON h.campaign_id = s.campaign_id AND h.assignment_id = s.id
        WHERE u.campaign_id = :campaign AND u.status = ANY(CAST(:ended AS text[]))
        AND h.closed_at IS NULL AND h.expires_at > statement_timestamp() ORDER BY h.id FOR NO KEY UPDATE OF h))
""")

LIST_APPROVABLE_SUBMISSIONS_AT_SERVICE = text(f"""
    SELECT u.external_id FROM submissions u
    JOIN annotators a ON a.campaign_id = u.campaign_id AND a.id = u.annotator_id
    JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
        AND s.external_id = u.external_id
    WHERE u.campaign_id = :campaign AND {SUBMISSION_IS_APPROVABLE} AND u.problem = ''
    AND u.external_id = coalesce(CAST(:submission AS text), u.external_id) ORDER BY u.external_id
""")
STORE_STATUS_OF_SUBMISSION = text("""
    UPDATE submissions SET status = :status, problem = :problem, seen_at = :now
    WHERE campaign_id = :campaign AND external_id = :submission
""")


async def reconcile_submissions(
    database: AsyncEngine, service: PlatformService, platform: ServiceOfPlatform, account: Row[str], clock: Clock
) -> None:
    """Read all submissions, free HITs of those that ended, and approve those that may be. Raises `ServiceFailure`."""
    campaign_id = account.campaign_id
    async with database.begin() as connection:
        if (await connection.execute(WERE_IDENTIFIERS_ERASED, {"campaign": campaign_id})).scalar_one():
            return
        studies = await list_studies(connection, platform, account)
    for study in studies:
        now = await clock()  # before the call: a change after it is seen the next time
        submissions = [submission async for submission in service.iterate_submissions(study)]
        await store_submissions(database, account, submissions, now=now)
    async with database.begin() as connection:
        parameters = {"campaign": campaign_id, "ended": [*ENDED_STATUSES]}
        await connection.execute(FREE_HITS_OF_ENDED_SUBMISSIONS, parameters)
    if account.approves:
        await approve_submissions(database, service, campaign_id, clock)


async def list_studies(connection: AsyncConnection, platform: ServiceOfPlatform, account: Row[str]) -> list[str]:
    """Return the studies that people came from, and the one in the settings."""
    parameters = {"campaign": account.campaign_id, "platform": account.platform}
    arrivals = (await connection.execute(LIST_ARRIVALS, parameters)).scalars()
    return sorted({account.study, *map(platform.study_of_arrival, arrivals)} - {""})


async def store_submissions(
    database: AsyncEngine, account: Row[str], submissions: Sequence[Submission], *, now: datetime
) -> None:
    """Store what the service says of each submission, but for people who were erased from the campaign."""
    async with database.begin() as connection:
        key = {"campaign": account.campaign_id}
        erased = await load_person_hashes(connection, account.campaign_id)
        link_key = (await connection.execute(LOAD_LINK_KEY, key)).scalar_one()
        kept = [
            submission
            for submission in submissions
            if person_hash(link_key, account.platform, submission.participant) not in erased
        ]
        for start in range(0, len(kept), SUBMISSIONS_PER_STATEMENT):
            part = kept[start : start + SUBMISSIONS_PER_STATEMENT]
            parameters = {
                **key,
                "platform": account.platform,
                "now": now,
                "ids": [submission.id for submission in part],
                "people": [submission.participant for submission in part],
                "studies": [submission.study for submission in part],
                "statuses": [submission.status for submission in part],
            }
            await connection.execute(STORE_SUBMISSIONS, parameters)


async def approve_submissions(database: AsyncEngine, service: PlatformService, campaign_id: int, clock: Clock) -> None:
    """Approve the submissions that may be, one after the other. A refused one goes to the review list with the reason.

    A second approval is refused by the service, so an interrupted one can be repeated. Raises `ServiceFailure`.
    """
    for submission in await list_approvable_submissions(database, campaign_id):
        if not await list_approvable_submissions(database, campaign_id, submission):
            continue  # the annotator was held meanwhile
        status, problem = "approved", ""
        try:
            await service.approve_submission(submission)
        except CallRefused as refused:
            if refused.status == 401:
                raise
            status, problem = "awaiting", refused.message
        async with database.begin() as connection:
            parameters = {
                "campaign": campaign_id,
                "submission": submission,
                "status": status,
                "problem": problem,
                "now": await clock(),
            }
            await connection.execute(STORE_STATUS_OF_SUBMISSION, parameters)


async def list_approvable_submissions(
    database: AsyncEngine, campaign_id: int, submission: str | None = None
) -> list[str]:
    """Return the submissions that may be approved without a person; of one submission, whether it may be."""
    async with database.begin() as connection:
        parameters = {"campaign": campaign_id, "submission": submission}
        return [*(await connection.execute(LIST_APPROVABLE_SUBMISSIONS_AT_SERVICE, parameters)).scalars()]
