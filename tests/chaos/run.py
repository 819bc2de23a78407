"""A run: rounds of work under faults, each checked once the faults are over."""

import asyncio
import signal
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import asyncpg
import httpx
from sqlalchemy import make_url

from app.accounts.tokens import issue_token_or_refuse
from app.accounts.users import find_oldest_user_or_create_admin
from app.database.migrate import upgrade_schema
from app.database.session import create_engine
from tests.chaos.crowd import Annotator, Caller, LaunchedCampaign
from tests.chaos.history import History
from tests.chaos.injected_faults import FaultInjector
from tests.chaos.invariants import check_round, have_revisions_to_make, verify_by_command, watch_record
from tests.chaos.owner import Owner
from tests.chaos.posterior_log import (
    CREATE_LOG,
    SECONDS_BETWEEN_CHECKS,
    find_posterior_violations_and_empty_log,
    watch_posteriors,
)
from tests.chaos.processes import Cluster, GivenDatabase, ServerProcess, make_secret_key, small_disk
from tests.chaos.rush import rush_to_campaign
from tests.chaos.server import SIGNS, count_before_first_fault, count_file, ignore_cap_sql
from tests.proxies import Proxy

TABS = 20
NAMES_PER_CAMPAIGN = 9  # fewer than tabs, so that some people have several
LAUNCHES_AT_ONCE = 3
PEOPLE_IN_RUSH = 6
ROUND_SECONDS = 90
# A deliberate fault of 1 of 500 answers may need so many, which a busy machine does not store in two minutes.
MIN_ANSWERS_FOR_FAULT, MAX_SECONDS_FOR_ANSWERS = 600, 900
SECONDS_BETWEEN_CHECKS_FOR_FAULT = 3  # the first deliberate fault comes early


@dataclass(frozen=True)
class Plan:
    """Length, seed and faults of a run.

    Attributes:
        seconds: How long the crowd works, from the time when the servers answer; longer if too few answers came.
        seed: Of all draws of the run; what the machine does in between is not repeated.
        faults: Deliberate faults of the product by their names in `server`.
        injects: Whether faults of the machine are injected.
        min_answers: How many acknowledged answers are enough; more if a deliberate fault is looked for.
        database_url: A database without campaigns to use instead of one of the run's own; it is then not injured.

    """

    seconds: float
    seed: int
    faults: Sequence[str] = ()
    injects: bool = True
    min_answers: int = 0
    database_url: str = ""


@dataclass
class Report:
    """Findings of a run, and how much it did.

    Attributes:
        violations: Empty if nothing is wrong.
        seconds: How long the rounds took.
        seconds_to_first: Until the first violation was seen; None if there is none.

    """

    plan: Plan
    violations: list[str] = field(default_factory=list)
    rounds: int = 0
    campaigns: int = 0
    acknowledged: int = 0
    decisions: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    injected: Counter[str] = field(default_factory=Counter)
    has_small_disk: bool = False
    seconds: float = 0.0
    seconds_to_first: float | None = None

    def missing_faults(self) -> list[str]:
        """Return the deliberate faults that no violation shows."""
        return [fault for fault in self.plan.faults if not any(SIGNS[fault] in one for one in self.violations)]

    def is_enough(self) -> bool:
        """Return whether all deliberate faults were found; without any, whether anything is wrong."""
        return not self.missing_faults() if self.plan.faults else bool(self.violations)

    def work_line(self) -> str:
        """Return how much was done."""
        work = f"{self.acknowledged} acknowledged answers, {self.decisions} acknowledged decisions"
        return (
            f"seed {self.plan.seed}: {self.rounds} rounds, {self.campaigns} campaigns, {work} in {self.seconds:.0f} s"
        )

    def lines(self) -> list[str]:
        """Return the report as lines of text."""
        statuses = ", ".join(f"{count} x {status or 'no reply'}" for status, count in sorted(self.statuses.items()))
        injected = ", ".join(f"{count} x {name}" for name, count in sorted(self.injected.items())) or "none"
        first = "" if self.seconds_to_first is None else f"; the first after {self.seconds_to_first:.0f} s"
        return [
            self.work_line(),
            f"replies: {statuses}",
            f"faults: {injected}" + ("" if self.has_small_disk else " (no full disk: mounting one takes root)"),
            f"violations: {len(self.violations)}{first}",
            *(f"  {violation}" for violation in self.violations[:20]),
        ]


async def run_chaos(plan: Plan, after_round: Callable[[Report], None] = lambda _report: None) -> Report:
    """Run rounds until the time is over or enough is wrong, and return what was found.

    `after_round` gets the report after each round, also of a run that is interrupted later.
    """
    rng, report = Random(plan.seed), Report(plan)
    async with open_machine(plan, report) as machine:
        began = time.monotonic()
        while not report.is_enough() and needs_more_rounds(report, time.monotonic() - began):
            seconds = round_seconds(plan.seconds - (time.monotonic() - began))
            history = await machine.run_round(report, seconds, Random(rng.random()))
            if history.first_violation_time is not None:
                report.seconds_to_first = history.first_violation_time - began
            report.seconds = time.monotonic() - began
            after_round(report)
    return report


def needs_more_rounds(report: Report, seconds: float) -> bool:
    """Return whether the time is not over, or too few answers were stored."""
    min_answers = MIN_ANSWERS_FOR_FAULT if report.plan.faults else report.plan.min_answers
    has_too_few_answers = report.acknowledged < min_answers and seconds < MAX_SECONDS_FOR_ANSWERS
    return seconds < report.plan.seconds or has_too_few_answers


def round_seconds(seconds_left: float) -> float:
    """Return the length of the next round: all that is left, if that is less than a round and a half."""
    return seconds_left if 0 < seconds_left < 1.5 * ROUND_SECONDS else ROUND_SECONDS


@dataclass(frozen=True)
class Machine:
    """PostgreSQL, the proxy and the servers of a run; `disk` is PostgreSQL's if it can be filled."""

    cluster: Cluster | GivenDatabase
    proxy: Proxy | None
    servers: Sequence[ServerProcess]
    disk: Path | None
    bearer: str
    plan: Plan

    def bases(self) -> list[str]:
        """Return the addresses of the servers that a load balancer would send requests to."""
        return [server.base for server in self.servers if server.base]

    @property
    def direct_url(self) -> str:
        """The address of the database past the proxy, for asyncpg."""
        url = make_url(self.cluster.url).set(drivername="postgresql").difference_update_query(["cluster"])
        return url.render_as_string(hide_password=False)

    async def run_round(self, report: Report, seconds: float, rng: Random) -> History:
        """Let the crowd work so long under faults, check the record, and return the round's history."""
        history = History(awaited=[SIGNS[fault] for fault in report.missing_faults()])
        caller = Caller(self.bases, self.bearer, history, rng)
        campaigns: list[LaunchedCampaign] = []
        owner = Owner(caller, campaigns, Random(rng.random()))
        is_over = asyncio.Event()
        injector = None
        if self.plan.injects and self.proxy is not None and isinstance(self.cluster, Cluster):
            injector = FaultInjector(self.cluster, self.proxy, self.servers, self.disk, rng)
        work = [
            *(self.work_in_tab(caller, campaigns, is_over, Random(rng.random())) for _ in range(TABS)),
            *(owner.launch_until(is_over) for _ in range(LAUNCHES_AT_ONCE)),
            self.rush_to_new_campaigns(caller, campaigns, is_over, Random(rng.random())),
            owner.decide_until(is_over),
            watch_record(self.direct_url, campaigns, history, is_over),
            *([] if self.plan.database_url else [self.watch_posteriors(campaigns, history, is_over)]),
            *([injector.inject_until(is_over)] if injector is not None else []),
        ]
        async with asyncio.TaskGroup() as tasks:
            for one_job in work:
                tasks.create_task(one_job)
            with suppress(TimeoutError):
                await asyncio.wait_for(history.is_enough.wait(), seconds)
            is_over.set()
        if not (self.plan.faults and history.is_enough.is_set()):  # a deliberate fault is found once
            await self.check_record(caller, campaigns, history, rng)
        await caller.client.aclose()
        report.rounds += 1
        report.campaigns += len(campaigns)
        report.acknowledged += history.acknowledged
        report.decisions += sum(decision.outcome == "acknowledged" for decision in history.decisions)
        report.statuses.update(history.statuses)
        if injector is not None:
            report.injected.update(injector.injected)
        report.violations += history.violations
        return history

    async def check_record(
        self, caller: Caller, campaigns: Sequence[LaunchedCampaign], history: History, rng: Random
    ) -> None:
        """Check all campaigns of a round, once the faults of the machine are over."""
        self.cluster.start_again_if_lost()
        await self.wait_until_ready(caller)
        if await have_revisions_to_make(self.direct_url, campaigns):
            await self.servers[0].restart(signal.SIGTERM)  # at its start it makes those that are due
            await self.wait_until_ready(caller)
        await check_round(self.direct_url, caller, campaigns, history)
        if not self.plan.database_url:
            slugs = [campaign.slug for campaign in campaigns]
            history.note_violations(await find_posterior_violations_and_empty_log(self.cluster.url, slugs))
        if campaigns:  # on a busy machine, faults may interrupt all launches of a round
            found = await asyncio.to_thread(verify_by_command, self.cluster.url, rng.choice(campaigns).slug)
            history.note_violations([found] if found else [])

    async def watch_posteriors(
        self, campaigns: Sequence[LaunchedCampaign], history: History, is_over: asyncio.Event
    ) -> None:
        pause = SECONDS_BETWEEN_CHECKS_FOR_FAULT if self.plan.faults else SECONDS_BETWEEN_CHECKS
        await watch_posteriors(self.cluster.url, campaigns, history, is_over, pause)

    async def work_in_tab(
        self, caller: Caller, campaigns: Sequence[LaunchedCampaign], is_over: asyncio.Event, rng: Random
    ) -> None:
        while not is_over.is_set():
            await asyncio.sleep(0.02)
            if running := [campaign for campaign in campaigns if not campaign.is_over]:
                name = f"p{rng.randrange(NAMES_PER_CAMPAIGN)}"
                await Annotator(caller, rng.choice(running), name, rng).answer_hits(rng.randrange(1, 8))

    async def rush_to_new_campaigns(
        self, caller: Caller, campaigns: Sequence[LaunchedCampaign], is_over: asyncio.Event, rng: Random
    ) -> None:
        """Let several people open each new campaign at the same moment, so that servers race for the same items."""
        opened = 0
        while not is_over.is_set():
            await asyncio.sleep(0.05)
            for campaign in campaigns[opened:]:
                opened += 1
                people = [
                    Annotator(caller, campaign, f"p{number}", Random(rng.random())) for number in range(PEOPLE_IN_RUSH)
                ]
                if self.plan.database_url:
                    await asyncio.gather(*(person.answer_hits(1) for person in people))
                else:
                    await rush_to_campaign(people, campaign.slug, self.direct_url)

    async def wait_until_ready(self, caller: Caller) -> None:
        """Wait until each server says that it is ready, after the last fault."""
        async with asyncio.timeout(120):
            for base in self.bases():
                while True:
                    try:
                        if (await caller.client.get(f"{base}/ready")).status_code == 200:
                            break
                    except httpx.HTTPError:
                        pass
                    await asyncio.sleep(0.2)


@asynccontextmanager
async def open_machine(plan: Plan, report: Report) -> AsyncIterator[Machine]:
    """Start everything on a folder of its own, and end it afterwards."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="easel-chaos-", dir="/tmp")))
        cluster: Cluster | GivenDatabase
        if plan.database_url:
            cluster, disk = GivenDatabase(plan.database_url), None
        else:
            report.has_small_disk = stack.enter_context(small_disk(disk := folder / "disk"))
            cluster = Cluster(disk / "data")
            stack.callback(cluster.stop)
            cluster.start()
            await asyncio.to_thread(upgrade_schema, cluster.url)
        bearer = await issue_token_of_program(cluster.url)
        if not plan.database_url:
            await prepare_database(cluster.url, plan.faults)
        proxy = None if plan.database_url else await stack.enter_async_context(Proxy(cluster.url))
        url, key = cluster.url if proxy is None else proxy.url, make_secret_key()
        for fault in plan.faults:
            count_file(folder, fault).write_text(str(count_before_first_fault(fault, Random(plan.seed))))
        servers = [ServerProcess(name, folder, url, key, plan.faults) for name in ("one", "two")]
        for server in servers:
            stack.callback(server.stop)
        await asyncio.gather(*(server.start() for server in servers))
        yield Machine(cluster, proxy, servers, disk if report.has_small_disk else None, bearer, plan)


async def issue_token_of_program(url: str) -> str:
    engine = create_engine(url, pool_size=1)
    now = datetime.now(UTC)
    async with engine.begin() as connection:
        owner = await find_oldest_user_or_create_admin(connection, now=now)
        bearer = await issue_token_or_refuse(connection, owner.id, "chaos", now=now)
    await engine.dispose()
    return bearer


async def prepare_database(url: str, faults: Sequence[str]) -> None:
    """Create the log of posteriors. For `ignored-cap`, change the function that leases HITs, too."""
    driver = await asyncpg.connect(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False))
    await driver.execute(CREATE_LOG)
    if "ignored-cap" in faults:
        definition = await driver.fetchval("SELECT pg_get_functiondef('easel_lease_hits'::regproc)")
        await driver.execute(ignore_cap_sql(definition))
    await driver.close()
