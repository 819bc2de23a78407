"""A campaign whose annotators left all that Easel can store about people, in words that a dump can be searched for."""

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.onboarding.personal_links import create_missing_links_and_count_them
from app.annotation.platforms.assignments import AssignmentId
from app.database.bulk import open_snapshot
from app.designs.campaign import Campaign
from app.maintenance.postgres_programs import find_postgres_program_or_raise, run_postgres_program
from app.privacy.erasures import Erasure, erase_person_and_return_erasure
from app.privacy.person_search import load_only_person_or_refuse
from app.quality import decisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import verify_by_replay_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)

TRACES = [
    "5f3a9c0d1e2b4a6f8c7d9e0b",  # the platform's id of the person
    "session-6e1f",  # of the submission
    "study-77aa",
    "Ada Lovelace",
    "my own comment",
    "my mother tongue",
    "an unsent comment",
    "typed by a researcher",
    "1280x720",
]
WORKER_ID, SUBMISSION_ID = TRACES[0], TRACES[1]

ADD_FREE_TEXT = """
    UPDATE responses SET telemetry = '{"viewport": "1280x720"}',
        extra = '{"remarks": {"hit": {"comment": "my own comment", "flag": "Another reason"}},
                  "cannot_be_judged": {"0": "my own comment"}}'
    WHERE annotator_id = :annotator
"""


async def answer_hits(engine: AsyncEngine, assignment: AssignmentId, count: int) -> None:
    for _ in range(count):
        await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))


async def annotator_id_of(engine: AsyncEngine, assignment: AssignmentId) -> int:
    found: int = await fetch_value(
        engine, "SELECT annotator_id FROM assignments WHERE id = :id", id=assignment.assignment_id
    )
    return found


async def create_answered_campaign(engine: AsyncEngine, **settings: Any) -> tuple[Campaign, AssignmentId]:
    """Create a campaign with answers of two people; the first, A1, left the traces and holds a HIT."""
    campaign = await create_running_campaign(engine, cannot_be_judged=True, comment_on="both", **settings)
    person = await create_annotator(
        engine, campaign, WORKER_ID, "prolific", assignment=SUBMISSION_ID, STUDY_ID="study-77aa"
    )
    other = await create_annotator(engine, campaign, "ben", "prolific", assignment="another session")
    for assignment in (person, other, person):
        await answer_hits(engine, assignment, 1)
    await leave_traces(engine, campaign, await annotator_id_of(engine, person))
    await try_to_lease_hit(engine, person)
    await execute_sql(
        engine, """UPDATE hits SET draft = '{"comment-hit": "an unsent comment"}' WHERE closed_at IS NULL"""
    )
    return campaign, person


async def leave_traces(engine: AsyncEngine, campaign: Campaign, annotator: int) -> None:
    await execute_sql(engine, ADD_FREE_TEXT, annotator=annotator)
    await execute_sql(
        engine,
        "UPDATE posteriors SET unjudged = CASE subject WHEN 0 THEN 1 ELSE 0 END WHERE campaign_id = :campaign",
        campaign=campaign.id,
    )
    await execute_sql(
        engine,
        """INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at) VALUES
           (:campaign, :annotator, 'questions', 1, 'passed', '{"language": "my mother tongue"}', :now),
           (:campaign, :annotator, 'consent', 1, 'passed', '{}', :now)""",
        campaign=campaign.id,
        annotator=annotator,
        now=NOW,
    )
    async with engine.begin() as connection:
        await decisions.hold_annotator(connection, campaign, annotator, reason="typed by a researcher", now=NOW)
        await decisions.release_held_annotator(connection, campaign, annotator, reason="typed by a researcher", now=NOW)


async def create_person_with_link(engine: AsyncEngine, campaign: Campaign, name: str) -> AssignmentId:
    """Create a person who opened a personal link, and return the assignment."""
    async with engine.begin() as connection:
        await create_missing_links_and_count_them(connection, campaign, [name], now=NOW)
    number = await fetch_value(engine, "SELECT number FROM personal_links WHERE name = :name", name=name)
    return await create_annotator(engine, campaign, str(number), "personal")


async def erase_found(engine: AsyncEngine, campaign: Campaign, term: str, rule: str, *, now: datetime) -> Erasure:
    """Erase the one person whom a term names, as the page does after a search."""
    async with engine.begin() as connection:
        person = await load_only_person_or_refuse(connection, campaign, term)
    return await erase_person_and_return_erasure(engine, campaign.slug, person.name, rule, now=now)


async def dump_database(engine: AsyncEngine, folder: Path) -> str:
    """Return all rows of the database, as written by PostgreSQL's own program."""
    version = int(await fetch_value(engine, "SHOW server_version_num")) // 10_000
    url = engine.url.render_as_string(hide_password=False)
    dump = folder / "dump.sql"
    await run_postgres_program(
        await asyncio.to_thread(find_postgres_program_or_raise, "pg_dump", version),
        url,
        "--data-only",
        f"--file={dump}",
    )
    return dump.read_text()


async def posterior_rows(engine: AsyncEngine) -> list[object]:
    return await fetch_rows(
        engine,
        "SELECT number, criterion, state, score, variance, judgments, unjudged FROM current_posteriors ORDER BY 1, 2",
    )


async def verification_is_clean(engine: AsyncEngine, campaign: Campaign) -> bool:
    async with open_snapshot(engine) as connection:
        present = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return (await verify_by_replay_or_refuse(connection, present)).has_no_mismatches
