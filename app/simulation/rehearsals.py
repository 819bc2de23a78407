"""Rehearsals: a made-up crowd answers a copy of a campaign, in this process and beside everything else.

A copy is a campaign like any other but for its mark, `rehearsal_of`: lists leave it out, no person can come in, and it
can be removed with all its answers. A crowd is led by one process; when that has died, the next that is asked to leads
it on.
"""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any, Self

import numpy as np
from sqlalchemy import Row, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.background.tasks import KeyedTasks
from app.campaigns import counted, lifecycle
from app.campaigns.rehearsed import rehearsal_of
from app.database.audit_log import note
from app.database.campaign import finish_where
from app.database.session import TROUBLE
from app.database.tables import campaigns
from app.errors import Conflict, Refusal
from app.simulation.annotators import Population
from app.simulation.crowd import answered_by_people, simulate, truth_of

log = logging.getLogger(__name__)

MOST = 10  # on one installation, so that nobody fills its disk
MOST_ITEMS = 10_000  # of one
MOST_OUTPUTS = 100_000  # of systems, in one
MOST_BYTES = 100_000_000  # of the items, outputs and files of one
MOST_HITS = 2_000  # that a crowd answers
AT_ONCE = 3  # crowds in one process
PAUSE_SECONDS = 0.1  # between two answers of a crowd: slow enough to watch, and it leaves the processor to others

# What a copy of a campaign takes beside the number of its items.
SIZE = text("""
    SELECT (SELECT count(*) FROM outputs WHERE campaign_id = :campaign) AS outputs,
           (SELECT coalesce(sum(pg_column_size(shown) + pg_column_size(fields)), 0)
            FROM items WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(coalesce(pg_column_size(source), 0) + coalesce(pg_column_size(reference), 0)), 0)
              FROM segments WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(pg_column_size(shown)), 0) FROM outputs WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(size), 0) FROM media WHERE campaign_id = :campaign) AS bytes
""")

# By the row, not by the slug: another process may have put another rehearsal in its place.
FINISH = finish_where("rehearsal_of IS NOT NULL")


# The process that leads a crowd says so again and again. When it has not for so long, by the database's clock, it has
# died, and any process may lead the crowd on.
LEAD_SECONDS, LEAD_AGAIN_SECONDS = 45, 10

LEAD = text("""
    INSERT INTO crowds AS c (campaign_id, described, led_until)
    VALUES (:campaign, CAST(:described AS jsonb), clock_timestamp() + make_interval(secs => :seconds))
    ON CONFLICT (campaign_id) DO UPDATE SET led_until = excluded.led_until WHERE c.led_until < clock_timestamp()
    RETURNING described, led_until
""")

LEAD_ON = text("""
    UPDATE crowds SET led_until = clock_timestamp() + make_interval(secs => :seconds)
    WHERE campaign_id = :campaign AND led_until = :led_until RETURNING led_until
""")


@dataclass(frozen=True)
class MadeUpCrowd:
    """How many annotators, what they are like, and the column of the items that those who look believe; None for random
    values. led_until: until when this process leads it, as it has said last.
    """

    annotators: int
    population: Population
    truth_column: str | None
    led_until: datetime | None = None

    @property
    def described(self) -> str:
        """Return the crowd as JSON, from which `from_description` makes the same one."""
        return json.dumps({"annotators": self.annotators, "truth_column": self.truth_column} | asdict(self.population))

    @classmethod
    def from_description(cls, described: dict[str, Any], led_until: datetime) -> Self:
        """Return the crowd that `described` describes."""
        people = {name: value for name, value in described.items() if name not in ("annotators", "truth_column")}
        return cls(described["annotators"], Population(**people), described["truth_column"], led_until)


async def begin(
    connection: AsyncConnection, slug: str, crowd: MadeUpCrowd, *, now: datetime
) -> tuple[Row[Any], MadeUpCrowd | None]:
    """The launched copy of a campaign, and the crowd that this process is to lead to it: the one that it had, where the
    process that led it has died. None where another process leads it, or it has finished: of two clicks at once the
    second finds the first's.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`is_a_rehearsal`, `too_large_to_rehearse`,
    `too_many_rehearsals`, and what keeps a campaign from its launch) and `Invalid` for a truth that cannot be.
    """
    await lifecycle.wait_in_line(connection)
    campaign = await counted.find_counted(connection, slug)
    on_its_page = campaign.rehearsal_of is not None and campaign.status == "running"
    if on_its_page and (led := await lead(connection, campaign, crowd)):
        return campaign, led
    if there := await rehearsal_of(connection, campaign.id):
        return there, await lead(connection, there, crowd) if there.status == "running" else None
    await refuse_unless_small(connection, campaign)
    copied = await lifecycle.copy(connection, slug, now=now, rehearsal=True)
    launched = await lifecycle.transition(connection, copied.slug, "launch", now=now)
    await truth_of(connection, launched.id, crowd.truth_column, np.random.default_rng())  # refused here, if it must be
    return launched, await lead(connection, launched, crowd)


async def lead(connection: AsyncConnection, rehearsal: Row[Any], crowd: MadeUpCrowd) -> MadeUpCrowd | None:
    """Take the lead of a rehearsal's crowd: of the one that it has, else of this one. None while another process has
    the lead.
    """
    wanted = {"campaign": rehearsal.id, "described": crowd.described, "seconds": LEAD_SECONDS}
    row = (await connection.execute(LEAD, wanted)).one_or_none()
    return None if row is None else MadeUpCrowd.from_description(row.described, row.led_until)


async def refuse_unless_small(connection: AsyncConnection, campaign: Row[Any]) -> None:
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal itself. Rehearse its campaign.", code="is_a_rehearsal")
    size = (await connection.execute(SIZE, {"campaign": campaign.id})).one()
    if campaign.item_count > MOST_ITEMS or size.outputs > MOST_OUTPUTS or size.bytes > MOST_BYTES:
        raise Conflict(
            f"“{campaign.name}” is too large: a rehearsal has {MOST_ITEMS:,} items, {MOST_OUTPUTS:,} outputs of "
            f"systems and {MOST_BYTES // 10**6} MB with all files at most. Rehearse a campaign with some of its items.",
            code="too_large_to_rehearse",
        )
    there = select(func.count()).select_from(campaigns).where(campaigns.c.rehearsal_of.is_not(None))
    if (await connection.execute(there)).scalar_one() >= MOST:
        raise Conflict(
            f"There are {MOST} rehearsals here, which is the most. Remove one from the list of campaigns first.",
            code="too_many_rehearsals",
        )


async def remove(connection: AsyncConnection, slug: str) -> Row[Any]:
    """Delete a rehearsal with its items and answers; its row as it was. An answer under way is waited for.

    Raises `NotFound` (`campaign_not_found`) and `Conflict` (`not_a_rehearsal`, `people_have_answered`).
    """
    campaign = await lifecycle.find(connection, slug)
    if campaign.rehearsal_of is None:
        raise Conflict(f"“{campaign.name}” is no rehearsal. Nothing was removed.", code="not_a_rehearsal")
    if await answered_by_people(connection, campaign):  # nobody lets them, and theirs are never deleted
        raise Conflict(f"“{campaign.name}” holds answers of people, so it stays.", code="people_have_answered")
    await lifecycle.erase(connection, campaign.id)
    await note(connection, "campaign.rehearsal_removed", campaign, before={"name": campaign.name})
    return campaign


class LeadLost(Exception):
    """Another process leads the crowd, since this one did not say for long that it does."""


class Rehearsals:
    """The crowds that answer in this process, by the row's id of their campaign."""

    def __init__(
        self,
        database: AsyncEngine,
        clock: Callable[[], datetime],
        look: Callable[[int], None] = lambda _campaign_id: None,
        *,
        pause: float = PAUSE_SECONDS,
    ) -> None:
        """look: is told after each answer, as after one of people."""
        self.database = database
        self.clock = clock
        self.look = look
        self.pause = pause
        self.tasks = KeyedTasks[int]("rehearsals")

    def refuse_unless_free(self) -> None:
        """Raises `Conflict` (`too_many_crowds`)."""
        if len(self.tasks) >= AT_ONCE:
            raise Conflict(
                f"{AT_ONCE} made-up crowds are answering now, which is the most at once. Try again in a minute.",
                code="too_many_crowds",
            )

    def start(self, campaign: Row[Any], crowd: MadeUpCrowd) -> None:
        """Let a crowd answer a rehearsal until nothing is left, or somebody removes it."""
        self.tasks.start(campaign.id, partial(self.answer, campaign, crowd))

    async def answer(self, campaign: Row[Any], crowd: MadeUpCrowd) -> None:
        rng = np.random.default_rng(campaign.seed)
        led_until, due = crowd.led_until, time.monotonic() + LEAD_AGAIN_SECONDS

        async def answered() -> None:
            nonlocal led_until, due
            self.look(campaign.id)
            if led_until is not None and time.monotonic() > due:
                led_until, due = await self.lead_on(campaign.id, led_until), time.monotonic() + LEAD_AGAIN_SECONDS
            await asyncio.sleep(self.pause)

        try:
            await simulate(
                self.database,
                campaign,
                hits=MOST_HITS,
                annotators=crowd.annotators,
                population=crowd.population,
                truth_column=crowd.truth_column,
                rng=rng,
                clock=self.clock,
                answered=answered,
            )
        except LeadLost:
            log.warning("another process leads the crowd of “%s” now", campaign.name)
            return
        except (Refusal, *TROUBLE) as problem:  # also when it was removed through another process
            log.warning("the crowd of “%s” went away: %s", campaign.name, problem)
        except BaseException:
            await self.finish(campaign.id)
            raise
        await self.finish(campaign.id)

    async def lead_on(self, campaign_id: int, led_until: datetime) -> datetime:
        """Say that this process still leads the crowd. Raises `LeadLost` if another one took the lead meanwhile."""
        key = {"campaign": campaign_id, "led_until": led_until, "seconds": LEAD_SECONDS}
        async with self.database.begin() as connection:
            until: datetime | None = (await connection.execute(LEAD_ON, key)).scalar_one_or_none()
        if until is None:
            raise LeadLost
        return until

    async def finish(self, campaign_id: int) -> None:
        """Finish a rehearsal whose crowd has gone: whatever ended it, it does not come back."""
        with suppress(*TROUBLE):
            async with self.database.begin() as connection:
                await connection.execute(FINISH, {"campaign": campaign_id, "now": self.clock()})

    async def end(self, campaign_id: int) -> None:
        """Send the crowd of a campaign away, if it answers in this process."""
        await self.tasks.end(campaign_id)

    async def stop(self) -> None:
        """Send all crowds away."""
        await self.tasks.stop()
