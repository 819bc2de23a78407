"""A process that ends at any moment while it tells a platform: every person is credited, and none twice."""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import pytest
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.platform import ServerCall
from app.server_calls.call_work import ServerCallWork
from app.server_calls.http_call import CallResult
from app.server_calls.ledger import (
    list_server_calls,
    repeat_server_calls_and_count_them,
    store_decision_on_server_call_or_refuse,
)
from tests.annotation.hits.campaigns import execute_sql
from tests.server_calls.visits import Study, change_crowd_settings, create_study

PARTS = 4  # for as many processes of a test run
SCHEDULES_PER_PART = int(os.environ.get("CALL_SCHEDULES", "240")) // PARTS
PEOPLE = 3
MOST_STEPS = 24  # of a turn that makes three calls


class ProcessEnded(asyncio.CancelledError):
    """The process ends here: nothing after it runs."""


@dataclass
class Process:
    """Counts what a process does, and ends it at one step."""

    steps_left: int | None

    def step(self) -> None:
        if self.steps_left is not None:
            self.steps_left -= 1
            if self.steps_left < 0:
                raise ProcessEnded


class EndingEngine:
    """An engine whose process may end before or after each commit."""

    def __init__(self, engine: AsyncEngine, process: Process) -> None:
        self.engine = engine
        self.process = process

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        async with self.engine.begin() as connection:
            yield connection
            self.process.step()
        self.process.step()


@dataclass
class Credits:
    """The platform's side: credits by person. Each call fails before or after its effect, or not at all."""

    chance: random.Random
    counts_repeated_call_once: bool
    is_calm: bool = False
    by_person: Counter[str] = field(default_factory=Counter)

    async def receive(self, process: Process, call: ServerCall) -> CallResult:
        kind = "ok" if self.is_calm else self.chance.choice(["ok", "ok", "refused", "busy", "before", "after"])
        process.step()
        await asyncio.sleep(0)
        if kind in ("ok", "after"):
            person = call.url.rpartition("who=")[2]
            if not (self.counts_repeated_call_once and self.by_person[person]):
                self.by_person[person] += 1
        await asyncio.sleep(0)
        process.step()
        if kind in ("before", "after"):
            return CallResult("unclear", "no reply")
        return {
            "ok": CallResult("accepted"),
            "refused": CallResult("refused", "status 404"),
            "busy": CallResult("not_made", "status 429"),
        }[kind]


def process_that_ends(study: Study, credit: Credits, last_step: int | None) -> ServerCallWork:
    process = Process(last_step)
    engine = cast("AsyncEngine", EndingEngine(study.engine, process))
    return ServerCallWork(engine, study.clock, partial(credit.receive, process))


async def run_processes(study: Study, credit: Credits) -> None:
    """Let one or two processes take a turn each, and end anywhere."""
    processes = [
        process_that_ends(study, credit, None if credit.is_calm else credit.chance.choice([None, *range(MOST_STEPS)]))
        for _ in range(credit.chance.choice([1, 1, 2]))
    ]
    await asyncio.gather(*(process.make_due_calls() for process in processes), return_exceptions=True)
    for process in processes:
        await process.calling.wait()
    study.clock.advance(minutes=credit.chance.choice([0, 1, 6, 400]))


async def decide_by_what_the_platform_shows(study: Study, credit: Credits) -> None:
    """Let a person compare both sides and settle what is unclear or failed."""
    async with study.engine.begin() as connection:
        for row in await list_server_calls(connection, study.campaign.id):
            if row.state in ("unknown", "failed"):
                decision = "sent" if credit.by_person[f"p{row.annotator[1:]}"] else "again"
                await store_decision_on_server_call_or_refuse(connection, study.campaign, row.id, decision)


async def run_schedule(study: Study, seed: int) -> None:
    chance = random.Random(seed)
    is_repeatable = chance.random() < 0.5
    await change_crowd_settings(study.engine, f'{{"call_repeatable": {str(is_repeatable).lower()}}}')
    await execute_sql(
        study.engine,
        """UPDATE server_calls SET state = 'prepared', tries = 0, due_at = NULL, attempt = NULL, settled_at = NULL,
        sending_at = NULL""",
    )
    credit = Credits(chance, is_repeatable)
    for _ in range(chance.randint(1, 6)):
        await run_processes(study, credit)
        if chance.random() < 0.3:
            await decide_by_what_the_platform_shows(study, credit)
        if is_repeatable and chance.random() < 0.3:
            async with study.engine.begin() as connection:
                await repeat_server_calls_and_count_them(connection, study.campaign, "unknown")
        assert is_repeatable or max(credit.by_person.values(), default=0) <= 1, f"seed {seed}"
    credit.is_calm = True
    while {*await study.states()} != {"sent"}:
        study.clock.advance(minutes=400)
        await run_processes(study, credit)
        await decide_by_what_the_platform_shows(study, credit)
    assert await study.states() == ["sent"] * PEOPLE, f"seed {seed}"
    assert credit.by_person == {f"p{number}": 1 for number in range(1, PEOPLE + 1)}, f"seed {seed}"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
async def test_whenever_a_process_ends_each_person_is_credited_and_none_twice(engine, platform, part):
    study = await create_study(engine, platform)
    for number in range(1, PEOPLE + 1):
        await study.let_person_finish(f"p{number}")
    first = int(os.environ.get("CALL_SEED", random.SystemRandom().randrange(10**9))) + part * SCHEDULES_PER_PART
    print(f"seeds {first} to {first + SCHEDULES_PER_PART - 1}")  # noqa: T201  (pytest shows it with a failure)
    for seed in range(first, first + SCHEDULES_PER_PART):
        await run_schedule(study, seed)
