"""Rehearsals: a simulated crowd answers a copy of a campaign in a background task of this process.

A copy is a campaign like any other but for its mark, `rehearsal_of`: lists leave it out, people cannot enter it, and it
can be removed with all its answers. One process leads a crowd; if it dies, the next process that is asked to continues.
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
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.background.tasks import KeyedTasks
from app.campaigns import lifecycle, summaries
from app.campaigns.summaries import CampaignWithProgress
from app.database.audit_log import log_change
from app.database.campaign import finish_campaign_if_statement
from app.database.session import DATABASE_ERRORS
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Conflict, Refusal
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.deletion import delete_campaign_and_all_its_data_or_refuse
from app.record.revisions import block_answers_until_transaction_ends
from app.simulation.annotators import Population
from app.simulation.crowd import (
    answer_hits_by_simulated_annotators_and_count,
    has_answers_of_people,
    load_or_draw_true_values,
)
from app.simulation.rehearsal_offer import load_rehearsal_of_campaign_or_none

log = logging.getLogger(__name__)

MAX_REHEARSALS = 10  # per installation, so that copies do not fill its disk
MAX_REHEARSAL_ITEMS = 10_000
MAX_REHEARSAL_OUTPUTS = 100_000
MAX_REHEARSAL_BYTES = 100_000_000  # items, outputs and files of one rehearsal
MAX_REHEARSAL_HITS = 2_000
MAX_CROWDS_PER_PROCESS = 3
CROWD_PAUSE_SECONDS = 0.1  # between two answers of a crowd: slow enough to watch, and other requests get the processor

LOAD_COPY_SIZE = text("""
    SELECT (SELECT count(*) FROM outputs WHERE campaign_id = :campaign) AS outputs,
           (SELECT coalesce(sum(pg_column_size(shown) + pg_column_size(fields)), 0)
            FROM items WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(coalesce(pg_column_size(source), 0) + coalesce(pg_column_size(reference), 0)), 0)
              FROM segments WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(pg_column_size(shown)), 0) FROM outputs WHERE campaign_id = :campaign)
           + (SELECT coalesce(sum(size), 0) FROM media WHERE campaign_id = :campaign) AS bytes
""")

# By the id, not by the slug: another process may have created another rehearsal with the same slug.
FINISH_REHEARSAL = finish_campaign_if_statement("rehearsal_of IS NOT NULL")

# The process that leads a crowd renews its lead regularly. If the lead expires, by the database's clock, the process
# has died, and any process may take over the crowd.
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
    """The crowd of a rehearsal.

    Attributes:
        annotators: Number of annotators.
        population: Distribution of their habits.
        truth_column: Column of the items with their true values; None for random values.
        led_until: Until when this process leads the crowd, as of its last renewal.

    """

    annotators: int
    population: Population
    truth_column: str | None
    led_until: datetime | None = None

    @property
    def to_json(self) -> str:
        """The crowd as JSON, from which `from_description` makes the same one."""
        return json.dumps({"annotators": self.annotators, "truth_column": self.truth_column} | asdict(self.population))

    @classmethod
    def from_description(cls, description: dict[str, Any], led_until: datetime) -> Self:
        """Return the crowd of a stored description."""
        population_fields = {
            name: value for name, value in description.items() if name not in ("annotators", "truth_column")
        }
        return cls(description["annotators"], Population(**population_fields), description["truth_column"], led_until)


async def create_or_find_rehearsal_and_take_crowd_lead(
    connection: AsyncConnection, slug: str, crowd: RehearsalCrowd, *, now: datetime
) -> tuple[Campaign, RehearsalCrowd | None]:
    """Return the launched copy of a campaign, and the crowd that this process is to lead.

    The crowd is the existing one if the process that led it has died. It is None if another process leads it, or the
    rehearsal has finished: of two simultaneous clicks, the second finds the rehearsal of the first.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`is_a_rehearsal`, `too_large_to_rehearse`,
    `too_many_rehearsals`, and what keeps a campaign from its launch) and `Invalid` for a truth column that cannot be
    used.
    """
    await lifecycle.lock_campaign_creation(connection)
    campaign = await summaries.load_campaign_with_progress_or_refuse(connection, slug)
    is_running_rehearsal = campaign.rehearsal_of is not None and campaign.status == "running"
    if is_running_rehearsal and (led_crowd := await take_crowd_lead_or_none(connection, campaign, crowd)):
        return campaign, led_crowd
    if rehearsal := await load_rehearsal_of_campaign_or_none(connection, campaign.id):
        return rehearsal, await take_crowd_lead_or_none(
            connection, rehearsal, crowd
        ) if rehearsal.status == "running" else None
    await refuse_unless_rehearsable(connection, campaign)
    copied = await lifecycle.create_copy_of_campaign(connection, slug, now=now, is_rehearsal=True)
    launched = await lifecycle.change_campaign_status_or_refuse(connection, copied.slug, "launch", now=now)
    await load_or_draw_true_values(connection, launched.id, crowd.truth_column, np.random.default_rng())  # raises early
    return launched, await take_crowd_lead_or_none(connection, launched, crowd)


async def take_crowd_lead_or_none(
    connection: AsyncConnection, rehearsal: Campaign, crowd: RehearsalCrowd
) -> RehearsalCrowd | None:
    """Take the lead of a rehearsal's crowd, or of this one if it has none; None while another process has the lead."""
    parameters = {"campaign": rehearsal.id, "described": crowd.to_json, "seconds": CROWD_LEAD_SECONDS}
    row = (await connection.execute(TAKE_CROWD_LEAD, parameters)).one_or_none()
    return None if row is None else RehearsalCrowd.from_description(row.described, row.led_until)


async def refuse_unless_rehearsable(connection: AsyncConnection, campaign: CampaignWithProgress) -> None:
    if campaign.rehearsal_of is not None:
        raise Conflict(
            f"“{campaign.name}” is a rehearsal. Rehearse the original campaign instead.", code="is_a_rehearsal"
        )
    size = (await connection.execute(LOAD_COPY_SIZE, {"campaign": campaign.id})).one()
    if (
        campaign.item_count > MAX_REHEARSAL_ITEMS
        or size.outputs > MAX_REHEARSAL_OUTPUTS
        or size.bytes > MAX_REHEARSAL_BYTES
    ):
        raise Conflict(
            f"“{campaign.name}” is too large: a rehearsal has at most {MAX_REHEARSAL_ITEMS:,} items, "
            f"{MAX_REHEARSAL_OUTPUTS:,} outputs of systems and {MAX_REHEARSAL_BYTES // 10**6} MB with all files. "
            "Rehearse a campaign with fewer items.",
            code="too_large_to_rehearse",
        )
    count_rehearsals = select(func.count()).select_from(campaigns).where(campaigns.c.rehearsal_of.is_not(None))
    if (await connection.execute(count_rehearsals)).scalar_one() >= MAX_REHEARSALS:
        raise Conflict(
            f"There are already {MAX_REHEARSALS} rehearsals, which is the limit. Remove one from the list of "
            "campaigns first.",
            code="too_many_rehearsals",
        )


async def delete_and_return_rehearsal_or_refuse(connection: AsyncConnection, slug: str) -> Campaign:
    """Delete a rehearsal with its items and answers, and return it. An answer under way is waited for.

    Raises `NotFound` (`campaign_not_found`) and `Conflict` (`not_a_rehearsal`, `people_have_answered`,
    `revision_running`).
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if campaign.rehearsal_of is None:
        raise Conflict(f"“{campaign.name}” is not a rehearsal. Nothing was removed.", code="not_a_rehearsal")
    if await has_answers_of_people(connection, campaign):  # people cannot enter; if one did, keep the answers
        raise Conflict(
            f"“{campaign.name}” has answers from people, so it was not removed.", code="people_have_answered"
        )
    await block_answers_until_transaction_ends(connection, campaign.id)
    await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
    await log_change(connection, "campaign.rehearsal_removed", campaign, old_values={"name": campaign.name})
    return campaign


class CrowdLeadLost(Exception):
    """Another process leads the crowd, since this one did not renew its lead in time."""


class RehearsalCrowds:
    """The crowds that answer in this process, by the id of their campaign's row."""

    def __init__(
        self,
        database: AsyncEngine,
        clock: Callable[[], datetime],
        on_answer: Callable[[int], None] = lambda _campaign_id: None,
        *,
        pause: float = CROWD_PAUSE_SECONDS,
    ) -> None:
        """Create no crowd yet; `on_answer` is called with the campaign's id after each answer, as after one by a
        person.
        """
        self.database = database
        self.clock = clock
        self.on_answer = on_answer
        self.pause = pause
        self.tasks = KeyedTasks[int]("rehearsals")

    def refuse_if_crowds_are_busy(self) -> None:
        """Raise `Conflict` (`too_many_crowds`) if this process leads the most crowds that it may."""
        if len(self.tasks) >= MAX_CROWDS_PER_PROCESS:
            raise Conflict(
                f"{MAX_CROWDS_PER_PROCESS} simulated crowds are answering now, which is the limit. Try again in a "
                "minute.",
                code="too_many_crowds",
            )

    def start_crowd_of_rehearsal(self, campaign: Campaign, crowd: RehearsalCrowd) -> None:
        """Let a crowd answer a rehearsal until no HIT is left, or the rehearsal is removed."""
        self.tasks.start(campaign.id, partial(self.answer_hits_and_finish_rehearsal, campaign, crowd))

    async def answer_hits_and_finish_rehearsal(self, campaign: Campaign, crowd: RehearsalCrowd) -> None:
        rng = np.random.default_rng(campaign.seed)
        led_until, renewal_due = crowd.led_until, time.monotonic() + LEAD_RENEWAL_SECONDS

        async def renew_lead_and_count_answer() -> None:
            nonlocal led_until, renewal_due
            self.on_answer(campaign.id)
            if led_until is not None and time.monotonic() > renewal_due:
                led_until, renewal_due = (
                    await self.renew_crowd_lead_and_return_its_end(campaign.id, led_until),
                    time.monotonic() + LEAD_RENEWAL_SECONDS,
                )
            await asyncio.sleep(self.pause)

        try:
            await answer_hits_by_simulated_annotators_and_count(
                self.database,
                campaign,
                hits=MAX_REHEARSAL_HITS,
                annotators=crowd.annotators,
                population=crowd.population,
                truth_column=crowd.truth_column,
                rng=rng,
                clock=self.clock,
                on_answer=renew_lead_and_count_answer,
            )
        except CrowdLeadLost:
            log.warning("another process now leads the crowd of “%s”", campaign.name)
            return
        except (Refusal, *DATABASE_ERRORS) as problem:  # also when another process removed the rehearsal
            log.warning("the crowd of “%s” ended: %s", campaign.name, problem)
        except BaseException:
            await self.finish_rehearsal(campaign.id)
            raise
        await self.finish_rehearsal(campaign.id)

    async def renew_crowd_lead_and_return_its_end(self, campaign_id: int, led_until: datetime) -> datetime:
        """Renew the lead of this process. Raises `CrowdLeadLost` if another process took it meanwhile."""
        key = {"campaign": campaign_id, "led_until": led_until, "seconds": CROWD_LEAD_SECONDS}
        async with self.database.begin() as connection:
            until: datetime | None = (await connection.execute(EXTEND_CROWD_LEAD, key)).scalar_one_or_none()
        if until is None:
            raise CrowdLeadLost
        return until

    async def finish_rehearsal(self, campaign_id: int) -> None:
        """Finish a rehearsal after its crowd has ended for any reason: it does not come back."""
        with suppress(*DATABASE_ERRORS):
            async with self.database.begin() as connection:
                await connection.execute(FINISH_REHEARSAL, {"campaign": campaign_id, "now": self.clock()})

    async def end_crowd(self, campaign_id: int) -> None:
        """End the crowd of a campaign, if it answers in this process."""
        await self.tasks.cancel(campaign_id)

    async def stop(self) -> None:
        """End all crowds."""
        await self.tasks.stop()
