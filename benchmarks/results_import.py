"""Measure processor time and memory of importing and exporting answers: `python -m benchmarks.results_import [--hits
N]`.

There is one PostgreSQL. This process takes the role of the server, whose garbage collections skip what was loaded at
its start, too. The first export follows the import directly; the next one repeats it.
"""

import argparse
import asyncio
import gc
import io
import time
from datetime import UTC, datetime

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns.lifecycle import change_campaign_status_or_refuse, create_draft_campaign_or_refuse
from app.campaigns.settings import CampaignSettings
from app.database.session import create_engine
from app.exports.registry import open_export_or_refuse
from app.imports.items import import_items_and_return_receipt
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from benchmarks.large import make_items_csv, make_results_csv
from benchmarks.processes import ProcessGroup, peak_mb_of_this_process, processor_seconds_of_this_process
from benchmarks.temporary_database import TemporaryDatabase, run_temporary_database

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class MeasuredRow:
    """A `with` block that prints its costs as a table row."""

    def __init__(self, title: str, count: int, postgresql: ProcessGroup) -> None:
        self.title, self.count, self.postgresql = title, count, postgresql

    def __enter__(self) -> None:
        self.wall_before, self.own_before, self.database_before = (
            time.perf_counter(),
            processor_seconds_of_this_process(),
            self.postgresql.processor_seconds(),
        )

    def __exit__(self, *_: object) -> None:
        own, database = (
            processor_seconds_of_this_process() - self.own_before,
            self.postgresql.processor_seconds() - self.database_before,
        )
        wall = time.perf_counter() - self.wall_before
        peak = peak_mb_of_this_process()
        columns = f"{own:.1f} | {database:.1f} | {wall:.1f} | {self.count / (own + database):,.0f}"
        print(f"| {self.title} | {columns} | {self.count / wall:,.0f} | {peak:.0f} |", flush=True)


async def export_responses(engine: AsyncEngine, slug: str) -> None:
    """Read an export of all answers to its end."""
    file = await open_export_or_refuse(engine, slug, "responses")
    async for _ in file.chunks:
        pass


async def measure_import_and_exports(
    engine: AsyncEngine, postgresql: ProcessGroup, item_count: int, hit_count: int, law: str
) -> None:
    """Import items, launch the campaign, import answers and export them, with a table row for each step."""
    settings = CampaignSettings(name="Large", question="How much?", judgments_per_item=10_000, update_law=law)
    async with engine.begin() as connection:
        campaign = await create_draft_campaign_or_refuse(connection, settings, now=NOW)
    with MeasuredRow(f"import of {item_count:,} items", item_count, postgresql):
        async with engine.begin() as connection:
            await import_items_and_return_receipt(
                connection, campaign.slug, io.BytesIO(make_items_csv(item_count)), "items.csv", max_mb=512
            )
    with MeasuredRow(f"launch of {item_count:,} items", item_count, postgresql):
        async with engine.begin() as connection:
            await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    results = io.BytesIO(make_results_csv(hit_count, item_count, np.random.default_rng(1), "s"))
    with MeasuredRow(f"import of {hit_count:,} HITs of 5, {law}", hit_count, postgresql):
        await import_responses_of_file_and_return_receipt(
            engine, campaign.slug, results, "results.csv", now=NOW, max_mb=512
        )
    for which in ("first", "next"):
        with MeasuredRow(f"{which} export of the answers", hit_count, postgresql):
            await export_responses(engine, campaign.slug)
    async with engine.connect() as connection:
        row_estimate = await connection.scalar(text("SELECT reltuples FROM pg_class WHERE oid = 'responses'::regclass"))
    print(f"\nThe planner knows of {row_estimate:,.0f} responses.\n", flush=True)


async def measure_with_engine(database: TemporaryDatabase, options: argparse.Namespace) -> None:
    """Measure with an engine that is closed afterwards."""
    engine = create_engine(database.url, pool_size=4)
    try:
        postgresql = database.find_processes()
        await measure_import_and_exports(engine, postgresql, options.items, options.hits, options.law)
    finally:
        await engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--hits", type=int, default=50_000)
    parser.add_argument("--law", default="easl")
    options = parser.parse_args()
    print("| what | own CPU s | PostgreSQL's CPU s | wall s | a CPU second | a wall second | peak MB |")
    print("|---|---|---|---|---|---|---|")
    gc.freeze()
    with run_temporary_database() as database:
        asyncio.run(measure_with_engine(database, options))


if __name__ == "__main__":
    main()
