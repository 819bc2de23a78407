"""Measure the processor time of an open dashboard while no answers arrive: `python -m benchmarks.idle_dashboard [--hits
N]`.

There is one PostgreSQL. This process takes the role of the server and streams the states of one campaign to one viewer.
"""

import argparse
import asyncio
import io
from contextlib import aclosing
from datetime import UTC, datetime

import numpy as np

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns.lifecycle import change_campaign_status_or_refuse, create_draft_campaign_or_refuse
from app.campaigns.settings import CampaignSettings
from app.dashboard.live import LiveDashboards
from app.database.session import create_engine
from app.imports.items import import_items_and_return_receipt
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from benchmarks.large import make_items_csv, make_results_csv
from benchmarks.processes import processor_seconds_of_this_process
from benchmarks.temporary_database import TemporaryDatabase, run_temporary_database

ITEMS = 1_000


async def utc_now() -> datetime:
    return datetime.now(UTC)


async def measure_idle_stream(database: TemporaryDatabase, hits: int, seconds: int) -> None:
    """Print the processor time per second that a connected dashboard costs after all answers are read."""
    engine = create_engine(database.url, pool_size=4)
    now = datetime.now(UTC)
    settings = CampaignSettings(name="Watched", question="How much?", judgments_per_item=10_000)
    async with engine.begin() as connection:
        campaign = await create_draft_campaign_or_refuse(connection, settings, now=now)
        await import_items_and_return_receipt(
            connection, campaign.slug, io.BytesIO(make_items_csv(ITEMS)), "items.csv", max_mb=64
        )
        await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=now)
    results = io.BytesIO(make_results_csv(hits, ITEMS, np.random.default_rng(1), "s"))
    await import_responses_of_file_and_return_receipt(
        engine, campaign.slug, results, "results.csv", now=now, max_mb=512
    )
    postgresql = database.find_processes()
    dashboards = LiveDashboards(engine, PosteriorCache(), utc_now)
    async with aclosing(dashboards.stream_states(campaign.slug)) as states:
        async for state in states:
            if state is not None and not state.unread_answer_count:
                break
        await asyncio.sleep(5)
        own_seconds, database_seconds = processor_seconds_of_this_process(), postgresql.processor_seconds()
        await asyncio.sleep(seconds)
        own_seconds, database_seconds = (
            processor_seconds_of_this_process() - own_seconds,
            postgresql.processor_seconds() - database_seconds,
        )
    print(
        f"{hits:,} HITs of 5: {1000 * own_seconds / seconds:.1f} ms of the server and "
        f"{1000 * database_seconds / seconds:.1f} ms of PostgreSQL a second"
    )
    await dashboards.stop()
    await engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hits", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=45)
    options = parser.parse_args()
    with run_temporary_database() as database:
        asyncio.run(measure_idle_stream(database, options.hits, options.seconds))


if __name__ == "__main__":
    main()
