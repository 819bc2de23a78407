"""Builders with keyword defaults for campaigns, annotators and answers."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits import leases, submission
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.next_hit import HitOnPage, NextHit
from app.annotation.platforms.assignments import AssignmentId, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import tables
from app.database.session import Driver, borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.campaign import Campaign, pack_section_settings_into_columns

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


async def create_running_campaign(
    engine: AsyncEngine, *, items: int = 12, launched: bool = True, **settings: Any
) -> Campaign:
    """A campaign with `items` items, launched. One annotator may judge an item again unless the settings differ."""
    defaults = {"name": "Verbs", "question": "How frequent?", "judgments_per_item": 3, "welcome": False}
    defaults["repeat_items"] = True
    chosen = CampaignSettings.model_validate(defaults | settings)
    async with engine.begin() as connection:
        draft = await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=NOW)
        rows = [
            {"campaign_id": draft.id, "number": i, "external_id": f"v{i}", "shown": f"verb {i}", "fields": {}}
            for i in range(items)
        ]
        await connection.execute(insert(tables.items), rows)
        return (
            await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=NOW)
            if launched
            else draft
        )


async def create_annotator(
    engine: AsyncEngine, campaign: Campaign, name: str = "ann", platform: str = "link", **more: Any
) -> AssignmentId:
    """The assignment of someone who arrives."""
    arrival = Arrival(name, more.pop("assignment", "visit"), more)
    async with borrow_autocommit_driver(engine) as connection:
        return await find_or_create_assignment(connection, campaign.id, platform, arrival, now=NOW)


@asynccontextmanager
async def begin_session_with_short_lock_timeout(engine: AsyncEngine) -> AsyncIterator[Driver]:
    """A connection whose statements give up a lock soon."""
    async with borrow_autocommit_driver(engine) as connection:
        await connection.execute("SET lock_timeout = '200ms'")
        try:
            yield connection
        finally:
            await connection.execute("RESET lock_timeout")


async def find_or_lease_next_hit(
    engine: AsyncEngine, assignment: AssignmentId, *, now: datetime = NOW, cache: PosteriorCache | None = None
) -> NextHit:
    async with borrow_autocommit_driver(engine) as connection:
        return await leases.find_or_lease_next_hit(
            connection, cache or PosteriorCache(), AssignmentQuery(assignment), now=now
        )


async def try_to_lease_hit(
    engine: AsyncEngine, assignment: AssignmentId, *, now: datetime = NOW, cache: PosteriorCache | None = None
) -> HitOnPage:
    work = await find_or_lease_next_hit(engine, assignment, now=now, cache=cache)
    assert work.hit is not None, work.reason
    return work.hit


async def submit_scores(
    engine: AsyncEngine,
    assignment: AssignmentId,
    hit: HitOnPage,
    *,
    now: datetime = NOW,
    scores: list[float] | None = None,
) -> AnswerReceipt:
    chosen = scores or [float(10 * (i + 1) % 101) for i in hit.items]
    async with borrow_autocommit_driver(engine) as connection:
        answer = Answer(dict(zip(hit.items, chosen, strict=True)))
        return await submission.store_answer_of_hit_and_return_receipt(connection, assignment, hit.id, answer, now=now)


def form_fields(html: str) -> dict[str, str]:
    """Return the fields that the form on a page sends, with a score for every item."""
    ((token, hit),) = re.findall(r'name="token" value="([^"]+)".*?name="hit" value="(\d+)"', html, re.DOTALL)
    items = re.findall(r'name="score-(\d+)"', html)
    return {"token": token, "hit": hit} | {f"score-{item}": str(10 * k) for k, item in enumerate(items)}


async def expire_leases(engine: AsyncEngine, hit: HitOnPage | None = None, *, seconds_ago: float = 1) -> None:
    """Let the leases of a HIT, or of all, have ended so long ago, by the clock that counts: the database's."""
    ended = text("""
        UPDATE hits SET expires_at = clock_timestamp() - make_interval(secs => :seconds_ago)
        WHERE closed_at IS NULL AND id = coalesce(:hit, id)
    """)
    async with engine.begin() as connection:
        await connection.execute(ended, {"hit": hit and hit.id, "seconds_ago": seconds_ago})


async def fetch_rows(engine: AsyncEngine, statement: str, **parameters: Any) -> list[Any]:
    async with engine.connect() as connection:
        return [tuple(row) for row in await connection.execute(text(statement), parameters)]


async def execute_sql(engine: AsyncEngine, statement: str, **parameters: Any) -> None:
    async with engine.begin() as connection:
        await connection.execute(text(statement), parameters)


async def store_settings(engine: AsyncEngine, **settings: Any) -> None:
    """Change settings that are stored in sections, of all campaigns."""
    for section, values in pack_section_settings_into_columns(settings).items():
        statement = f"UPDATE campaigns SET {section} = {section} || CAST(:values AS jsonb)"
        await execute_sql(engine, statement, values=json.dumps(values))


async def fetch_value(engine: AsyncEngine, statement: str, **parameters: Any) -> Any:
    (row,) = await fetch_rows(engine, statement, **parameters)
    return row[0]


# Nobody gets a HIT, or a lease back, until the transaction that has this lock ends.
LOCK_ROOM_OF_EACH_CAMPAIGN = (
    "SELECT pg_advisory_xact_lock(hashtext('campaign.room'), CAST(id AS int)) FROM campaigns ORDER BY id"
)


def requests_are_waiting_sql(requests: int) -> str:
    """SQL that is true when so many requests wait for a lock."""
    return (
        f"SELECT count(*) >= {requests} FROM pg_stat_activity "
        "WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )


async def wait_until(engine: AsyncEngine, statement: str) -> None:
    """Wait for what others do to the database, as its clock or its locks tell."""
    async with asyncio.timeout(30):
        while not await fetch_value(engine, statement):  # noqa: ASYNC110  (another connection changes it)
            await asyncio.sleep(0.01)
