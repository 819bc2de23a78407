"""Measure the cost of the campaign list and of finish checks: `python -m benchmarks.campaign_list [--items 1000000]`.

Campaigns have all their judgments except for a few items. Figures are processor seconds of PostgreSQL, the minimum over
repetitions.

`--running N` measures instead what the list loads for N running campaigns with some answers each: seconds by the clock,
and statements.
"""

import argparse
import asyncio
import io
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import event, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.hits.finish_check import FINISH_CHECK
from app.campaigns.lifecycle import change_campaign_status_or_refuse, create_draft_campaign_or_refuse
from app.campaigns.settings import CampaignSettings
from app.campaigns.summaries import load_campaigns_with_progress
from app.dashboard.campaign_list import load_campaign_pace_by_id
from app.dashboard.incremental import PrecisionReplay
from app.database.campaign import try_to_finish_complete_campaign
from app.database.session import create_engine, create_engine_without_limits, driver_of
from app.designs.campaign import Campaign
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from benchmarks.large import make_results_csv
from benchmarks.temporary_database import run_temporary_database

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
REPETITIONS = 5
OPEN_ITEMS = 5
ITEMS_OF_RUNNING_CAMPAIGN = 50
HITS_OF_RUNNING_CAMPAIGN = 20

INSERT_ITEMS = text("""
    INSERT INTO items (campaign_id, number, external_id, shown, fields)
    SELECT :campaign, k, 'v' || k, 'verb ' || k, '{}' FROM generate_series(0, CAST(:items AS int) - 1) AS k
""")
FINISH_ALL_BUT_OPEN_ITEMS = text("""
    UPDATE posteriors SET judgments = 3
    WHERE campaign_id = :campaign AND subject < CAST(:items AS int) - CAST(:open AS int)
""")


def processor_seconds_of_process(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK_TICKS_PER_SECOND


async def least_database_seconds(
    engine: AsyncEngine, work: Callable[[Any], Awaitable[object]], repetitions: int
) -> float:
    """Return the minimum processor time that PostgreSQL needs for some work in a transaction, over repetitions."""
    seconds = []
    async with engine.connect() as connection:
        pid = await connection.scalar(text("SELECT pg_backend_pid()"))
        await connection.rollback()
        for _ in range(repetitions):
            before = processor_seconds_of_process(pid)
            async with connection.begin():
                await work(connection)
            seconds.append(processor_seconds_of_process(pid) - before)
    return min(seconds)


async def create_campaigns(engine: AsyncEngine, campaign_count: int, item_count: int) -> Sequence[Campaign]:
    """Create running campaigns in which only a few items need judgments, and return them."""
    campaigns = []
    for k in range(campaign_count):
        async with engine.begin() as connection:
            settings = CampaignSettings(name=f"Verbs {k}", question="How frequent?", judgments_per_item=3)
            draft = await create_draft_campaign_or_refuse(connection, settings, now=NOW)
            await connection.execute(INSERT_ITEMS, {"campaign": draft.id, "items": item_count})
            campaigns.append(await change_campaign_status_or_refuse(connection, draft.slug, "launch", now=NOW))
            await connection.execute(
                FINISH_ALL_BUT_OPEN_ITEMS, {"campaign": draft.id, "items": item_count, "open": OPEN_ITEMS}
            )
    async with create_engine_without_limits(engine.url.render_as_string(hide_password=False)).connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("VACUUM ANALYZE posteriors"))
    return campaigns


async def print_list_and_finish_costs(url: str, campaign_count: int, item_count: int) -> None:
    """Print the database's processor time for the campaign list and for finish checks."""
    engine = create_engine(url, pool_size=2)
    campaigns = await create_campaigns(engine, campaign_count, item_count)
    print(f"{campaign_count} campaigns of {item_count:,} items, {OPEN_ITEMS} of them open; s of PostgreSQL's processor")

    async def finish(connection: AsyncConnection) -> None:
        await FINISH_CHECK.finish_if_complete(await driver_of(connection), campaigns[0].id, now=NOW)

    async def finish_reading_all_items(connection: AsyncConnection) -> None:
        await try_to_finish_complete_campaign(connection, campaigns[0].id, now=NOW)

    for name, work, repetitions in (
        ("list of campaigns, the first time", load_campaigns_with_progress, 1),
        ("list of campaigns, again", load_campaigns_with_progress, REPETITIONS),
        ("whether an answer was the last, the first time", finish, 1),
        ("whether an answer was the last, again", finish, REPETITIONS),
        ("whether an answer was the last, by all items", finish_reading_all_items, REPETITIONS),
    ):
        print(f"| {name} | {await least_database_seconds(engine, work, repetitions):.2f} |", flush=True)
    await engine.dispose()


async def create_answered_campaigns(engine: AsyncEngine, campaign_count: int) -> None:
    """Create running campaigns with the same few answers, given on their own pages in the last hour."""
    rng = np.random.default_rng(1)
    for campaign in await create_campaigns(engine, campaign_count, ITEMS_OF_RUNNING_CAMPAIGN):
        results = io.BytesIO(make_results_csv(HITS_OF_RUNNING_CAMPAIGN, ITEMS_OF_RUNNING_CAMPAIGN, rng, "v"))
        await import_responses_of_file_and_return_receipt(
            engine, campaign.slug, results, "results.csv", now=NOW, max_mb=64
        )
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE responses SET source = 'page'"))


async def print_costs_of_running_campaigns(url: str, campaign_count: int) -> None:
    """Print the seconds and the statements in which the list of campaigns loads what it shows of running ones."""
    engine = create_engine(url, pool_size=2)
    await create_answered_campaigns(engine, campaign_count)
    statements: list[str] = []
    event.listen(engine.sync_engine, "before_cursor_execute", lambda *arguments: statements.append(arguments[2]))
    precision_replay = PrecisionReplay()
    print(f"{campaign_count} running campaigns with {HITS_OF_RUNNING_CAMPAIGN} answers each: seconds, statements")
    for name in ("first", "second", "third", "fourth", "fifth"):
        async with engine.begin() as connection:
            campaigns = await load_campaigns_with_progress(connection)
            statements.clear()
            begin = time.perf_counter()
            paces = await load_campaign_pace_by_id(connection, precision_replay, campaigns, now=NOW)
            seconds = time.perf_counter() - begin
        unread = sum(pace.interval == "loading" for pace in paces.values())
        print(f"| {name} time | {seconds:.2f} | {len(statements)} | {unread} not read yet |", flush=True)
    await engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=2)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--running", type=int, help="measure what the list loads for so many running campaigns")
    options = parser.parse_args()
    with run_temporary_database() as database:
        if options.running:
            asyncio.run(print_costs_of_running_campaigns(database.url, options.running))
            return
        asyncio.run(print_list_and_finish_costs(database.url, options.campaigns, options.items))


if __name__ == "__main__":
    main()
