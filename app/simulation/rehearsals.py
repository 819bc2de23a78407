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
from app.campaigns import lifecycle, summaries
from app.campaigns.rehearsal_offer import find_rehearsal_of_campaign
from app.database.audit_log import log_change
from app.database.campaign import finish_campaign_statement
from app.database.session import DATABASE_ERRORS
from app.database.tables import campaigns
from app.errors import Conflict, Refusal
from app.simulation.annotators import Population
from app.simulation.crowd import has_answers_of_people, load_true_values, simulate

log = logging.getLogger(__name__)

MAX_REHEARSALS = 10  # on one installation, so that nobody fills its disk
MAX_REHEARSAL_ITEMS = 10_000  # of one
MAX_REHEARSAL_OUTPUTS = 100_000  # of systems, in one
MAX_REHEARSAL_BYTES = 100_000_000  # of the items, outputs and files of one
MAX_REHEARSAL_HITS = 2_000  # that a crowd answers
MAX_CROWDS_PER_PROCESS = 3  # crowds in one process
CROWD_PAUSE_SECONDS = 0.1  # between two answers of a crowd: slow enough to watch, and it leaves the processor to others

# What a copy of a campaign takes beside the number of its items.
LOAD_COPY_SIZE = text("""
    SELECT (SELECT count(*) FROM outputs WHERE campaign_id = :campaign) AS outputs,
           (SELECT coalesce(sum(pg_column_size(shown) + pg_column_size(fields)), 0)
            FROM items WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(coalesce(pg_column_size(source), 0) + coalesce(pg_column_size(reference), 0)), 0)
              FROM segments WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(pg_column_size(shown)), 0) FROM outputs WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(size), 0) FROM media WHERE campaign_id = :campaign) AS bytes
""")

# By the row, not by the slug: another process may have put another rehearsal in its place.
FINISH_REHEARSAL = finish_campaign_statement("rehearsal_of IS NOT NULL")


# The process that leads a crowd says so again and again. When it has not for so long, by the database's clock, it has
# died, and any process may lead the crowd on.
CROWD_LEAD_SECONDS, LEAD_RENEWAL_SECONDS = 45, 10

TAKE_CROWD_LEAD = text("""
    INSERT INTO crowds AS c (campaign_id, described, led_until)
    VALUES (:campaign, CAST(:described AS jsonb), clock_timestamp() + make_interval(secs => :seconds))
    ON CONFLICT (campaign_id) DO UPDATE SET led_until = excluded.led_until WHERE c.led_until < clock_timestamp()
    RETURNING described, led_until
""")

EXTEND_CROWD_LEAD = text("""
    UPDATE crowds SET led_until = clock_timestamp() + make_interval(secs => :seconds)
    WHERE campaign_id = :campaign AND led_until = :led_until RETURNING led_until
""")


@dataclass(frozen=True)
class RehearsalCrowd:
    """How many annotators, what they are like, and the column of the items that those who look believe; None for random
    values. led_until: until when this process leads it, as it has said last.
    """

    annotators: int
    population: Population
    truth_column: str | None
    led_until: datetime | None = None

    @property
    def to_json(self) -> str:
        """Return the crowd as JSON, from which `from_description` makes the same one."""
        return json.dumps({"annotators": self.annotators, "truth_column": self.truth_column} | asdict(self.population))

    @classmethod
    def from_description(cls, description: dict[str, Any], led_until: datetime) -> Self:
        """Return the crowd that `described` describes."""
        population_fields = {
            name: value for name, value in description.items() if name not in ("annotators", "truth_column")
        }
        return cls(description["annotators"], Population(**population_fields), description["truth_column"], led_until)


async def begin_rehearsal(
    connection: AsyncConnection, slug: str, crowd: RehearsalCrowd, *, now: datetime
) -> tuple[Row[Any], RehearsalCrowd | None]:
    """The launched copy of a campaign, and the crowd that this process is to lead to it: the one that it had, where the
    process that led it has died. None where another process leads it, or it has finished: of two clicks at once the
    second finds the first's.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`is_a_rehearsal`, `too_large_to_rehearse`,
    `too_many_rehearsals`, and what keeps a campaign from its launch) and `Invalid` for a truth that cannot be.
    """
    await lifecycle.lock_campaign_creation(connection)
    campaign = await summaries.find_campaign_with_progress(connection, slug)
    is_running_rehearsal = campaign.rehearsal_of is not None and campaign.status == "running"
    if is_running_rehearsal and (led_crowd := await take_crowd_lead(connection, campaign, crowd)):
        return campaign, led_crowd
    if rehearsal := await find_rehearsal_of_campaign(connection, campaign.id):
        return rehearsal, await take_crowd_lead(connection, rehearsal, crowd) if rehearsal.status == "running" else None
    await refuse_unless_rehearsable(connection, campaign)
    copied = await lifecycle.create_copy_of_campaign(connection, slug, now=now, rehearsal=True)
    launched = await lifecycle.apply_transition(connection, copied.slug, "launch", now=now)
    await load_true_values(
        connection, launched.id, crowd.truth_column, np.random.default_rng()
    )  # refused here, if it must be
    return launched, await take_crowd_lead(connection, launched, crowd)


async def take_crowd_lead(
    connection: AsyncConnection, rehearsal: Row[Any], crowd: RehearsalCrowd
) -> RehearsalCrowd | None:
    """Take the lead of a rehearsal's crowd: of the one that it has, else of this one. None while another process has
    the lead.
    """
    parameters = {"campaign": rehearsal.id, "described": crowd.to_json, "seconds": CROWD_LEAD_SECONDS}
    row = (await connection.execute(TAKE_CROWD_LEAD, parameters)).one_or_none()
    return None if row is None else RehearsalCrowd.from_description(row.described, row.led_until)


async def refuse_unless_rehearsable(connection: AsyncConnection, campaign: Row[Any]) -> None:
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal itself. Rehearse its campaign.", code="is_a_rehearsal")
    size = (await connection.execute(LOAD_COPY_SIZE, {"campaign": campaign.id})).one()
    if (
        campaign.item_count > MAX_REHEARSAL_ITEMS
        or size.outputs > MAX_REHEARSAL_OUTPUTS
        or size.bytes > MAX_REHEARSAL_BYTES
    ):
        raise Conflict(
            f"“{campaign.name}” is too large: a rehearsal has {MAX_REHEARSAL_ITEMS:,} items, {MAX_REHEARSAL_OUTPUTS:,} outputs of "
            f"systems and {MAX_REHEARSAL_BYTES // 10**6} MB with all files at most. Rehearse a campaign with some of its items.",
            code="too_large_to_rehearse",
        )
    count_rehearsals = select(func.count()).select_from(campaigns).where(campaigns.c.rehearsal_of.is_not(None))
    if (await connection.execute(count_rehearsals)).scalar_one() >= MAX_REHEARSALS:
        raise Conflict(
            f"There are {MAX_REHEARSALS} rehearsals here, which is the most. Remove one from the list of campaigns first.",
            code="too_many_rehearsals",
        )


async def delete_rehearsal(connection: AsyncConnection, slug: str) -> Row[Any]:
    """Delete a rehearsal with its items and answers; its row as it was. An answer under way is waited for.

    Raises `NotFound` (`campaign_not_found`) and `Conflict` (`not_a_rehearsal`, `people_have_answered`).
    """
    campaign = await lifecycle.find_campaign(connection, slug)
    if campaign.rehearsal_of is None:
        raise Conflict(f"“{campaign.name}” is no rehearsal. Nothing was removed.", code="not_a_rehearsal")
    if await has_answers_of_people(connection, campaign):  # nobody lets them, and theirs are never deleted
        raise Conflict(f"“{campaign.name}” holds answers of people, so it stays.", code="people_have_answered")
    await lifecycle.erase_campaign(connection, campaign.id)
    await log_change(connection, "campaign.rehearsal_removed", campaign, before={"name": campaign.name})
    return campaign


class CrowdLeadLost(Exception):
    """Another process leads the crowd, since this one did not say for long that it does."""


class RehearsalCrowds:
    """The crowds that answer in this process, by the row's id of their campaign."""

    def __init__(
        self,
        database: AsyncEngine,
        clock: Callable[[], datetime],
        on_answer: Callable[[int], None] = lambda _campaign_id: None,
        *,
        pause: float = CROWD_PAUSE_SECONDS,
    ) -> None:
        """look: is told after each answer, as after one of people."""
        self.database = database
        self.clock = clock
        self.on_answer = on_answer
        self.pause = pause
        self.tasks = KeyedTasks[int]("rehearsals")

    def refuse_if_crowds_are_busy(self) -> None:
        """Raises `Conflict` (`too_many_crowds`)."""
        if len(self.tasks) >= MAX_CROWDS_PER_PROCESS:
            raise Conflict(
                f"{MAX_CROWDS_PER_PROCESS} made-up crowds are answering now, which is the most at once. Try again in a minute.",
                code="too_many_crowds",
            )

    def start(self, campaign: Row[Any], crowd: RehearsalCrowd) -> None:
        """Let a crowd answer a rehearsal until nothing is left, or somebody removes it."""
        self.tasks.start(campaign.id, partial(self.run_crowd, campaign, crowd))

    async def run_crowd(self, campaign: Row[Any], crowd: RehearsalCrowd) -> None:
        rng = np.random.default_rng(campaign.seed)
        led_until, renewal_due = crowd.led_until, time.monotonic() + LEAD_RENEWAL_SECONDS

        async def after_answer() -> None:
            nonlocal led_until, renewal_due
            self.on_answer(campaign.id)
            if led_until is not None and time.monotonic() > renewal_due:
                led_until, renewal_due = (
                    await self.extend_lead(campaign.id, led_until),
                    time.monotonic() + LEAD_RENEWAL_SECONDS,
                )
            await asyncio.sleep(self.pause)

        try:
            await simulate(
                self.database,
                campaign,
                hits=MAX_REHEARSAL_HITS,
                annotators=crowd.annotators,
                population=crowd.population,
                truth_column=crowd.truth_column,
                rng=rng,
                clock=self.clock,
                on_answer=after_answer,
            )
        except CrowdLeadLost:
            log.warning("another process leads the crowd of “%s” now", campaign.name)
            return
        except (Refusal, *DATABASE_ERRORS) as problem:  # also when it was removed through another process
            log.warning("the crowd of “%s” went away: %s", campaign.name, problem)
        except BaseException:
            await self.finish_rehearsal(campaign.id)
            raise
        await self.finish_rehearsal(campaign.id)

    async def extend_lead(self, campaign_id: int, led_until: datetime) -> datetime:
        """Say that this process still leads the crowd. Raises `LeadLost` if another one took the lead meanwhile."""
        key = {"campaign": campaign_id, "led_until": led_until, "seconds": CROWD_LEAD_SECONDS}
        async with self.database.begin() as connection:
            until: datetime | None = (await connection.execute(EXTEND_CROWD_LEAD, key)).scalar_one_or_none()
        if until is None:
            raise CrowdLeadLost
        return until

    async def finish_rehearsal(self, campaign_id: int) -> None:
        """Finish a rehearsal whose crowd has gone: whatever ended it, it does not come back."""
        with suppress(*DATABASE_ERRORS):
            async with self.database.begin() as connection:
                await connection.execute(FINISH_REHEARSAL, {"campaign": campaign_id, "now": self.clock()})

    async def end_crowd(self, campaign_id: int) -> None:
        """Send the crowd of a campaign away, if it answers in this process."""
        await self.tasks.cancel(campaign_id)

    async def stop(self) -> None:
        """Send all crowds away."""
        await self.tasks.stop()
