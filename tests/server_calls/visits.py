"""Visits that end, a clock, and turns of the work that tells the platform."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.designs.campaign import Campaign
from app.server_calls.call_work import ServerCallWork
from app.server_calls.http_call import make_server_call
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.server_calls.fake_platform import FakePlatform


@dataclass
class Clock:
    """A clock that tests move."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def __call__(self) -> datetime:
        return self.now

    def advance(self, **time: float) -> None:
        self.now += timedelta(**time)


@dataclass
class Study:
    """A campaign whose platform is told of visits, and the work that tells it."""

    engine: AsyncEngine
    campaign: Campaign
    platform: FakePlatform
    clock: Clock
    work: ServerCallWork

    async def states(self) -> list[str]:
        return [state for (state,) in await fetch_rows(self.engine, "SELECT state FROM server_calls ORDER BY id")]

    async def problems(self) -> list[str]:
        return [text for (text,) in await fetch_rows(self.engine, "SELECT problem FROM server_calls ORDER BY id")]

    async def work_again(self, **time: float) -> None:
        self.clock.advance(**time)
        await self.work.make_due_calls()

    async def let_person_finish(self, name: str = "p1") -> None:
        """Let a person from the platform answer one HIT, the last one."""
        await let_person_finish(self.engine, self.campaign, name)


async def let_person_finish(engine: AsyncEngine, campaign: Campaign, name: str) -> None:
    assignment = await create_annotator(engine, campaign, name, "panel", assignment=name, id=name, who=name)
    await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    assert (await find_or_lease_next_hit(engine, assignment)).reason == "limit"


async def create_study(engine: AsyncEngine, platform: FakePlatform, **settings: Any) -> Study:
    defaults: dict[str, Any] = {
        "panel_title": "Lab pool",
        "panel_query": "who={{who}}",
        "call_completed": platform.address,
        "hits_per_annotator": 1,
        "judgments_per_item": 500,
    }
    campaign = await create_running_campaign(engine, **defaults | settings)
    clock = Clock()
    platform.counts_repeated_call_once = bool(settings.get("call_repeatable"))
    return Study(engine, campaign, platform, clock, make_work(engine, clock))


def make_work(engine: AsyncEngine, clock: Callable[[], Awaitable[datetime]]) -> ServerCallWork:
    return ServerCallWork(engine, clock, partial(make_server_call, allow_private=True))


async def change_crowd_settings(engine: AsyncEngine, changed: str) -> None:
    await execute_sql(
        engine, "UPDATE campaigns SET crowd_settings = crowd_settings || CAST(:changed AS jsonb)", changed=changed
    )
