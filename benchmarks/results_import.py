"""Processor time and memory of importing answers and exporting them: `python -m benchmarks.results_import [--hits N]`.

One PostgreSQL, and this process in the place of the server. The first export comes directly after the import, the next
one after that.
"""

import argparse
import asyncio
import io
import os
import resource
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns.lifecycle import change_campaign_status_or_refuse, create_draft_campaign_or_refuse
from app.campaigns.settings import CampaignSettings
from app.database import embedded
from app.database.migrate import upgrade_schema
from app.database.session import create_engine
from app.exports.registry import open_export_or_refuse
from app.imports.items import import_items_and_return_receipt
from app.imports.responses_import import import_responses_of_file_and_return_receipt
from benchmarks.large import items_file, results_file

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MB = 2**20


def own_processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def database_processor_seconds() -> float:
    """Processor time of all PostgreSQL processes below this one, also of those that ended."""
    own, ticks = str(os.getpid()), 0
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[path.parent.name] = fields[1], sum(map(int, fields[11:15]))
    for number, (_, used) in parents.items():
        ancestor = number
        while ancestor in parents and ancestor != own:
            ancestor = parents[ancestor][0]
        ticks += used if ancestor == own and number != own else 0
    return ticks / os.sysconf("SC_CLK_TCK")


class Measurement:
    """One line of the table, from the beginning to the end of a `with` block."""

    def __init__(self, what: str, count: int) -> None:
        self.what, self.count = what, count

    def __enter__(self) -> None:
        self.wall, self.own, self.database = time.perf_counter(), own_processor_seconds(), database_processor_seconds()

    def __exit__(self, *_: object) -> None:
        own, database = own_processor_seconds() - self.own, database_processor_seconds() - self.database
        wall = time.perf_counter() - self.wall
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rate = self.count / (own + database)
        print(f"| {self.what} | {own:.1f} | {database:.1f} | {wall:.1f} | {rate:,.0f} | {peak:.0f} |", flush=True)


async def export_responses(engine: AsyncEngine, slug: str) -> None:
    file = await open_export_or_refuse(engine, slug, "responses")
    async for _ in file.chunks:
        pass


async def measure(engine: AsyncEngine, item_count: int, hit_count: int, law: str) -> None:
    settings = CampaignSettings(name="Large", question="How much?", judgments_per_item=10_000, update_law=law)
    async with engine.begin() as connection:
        campaign = await create_draft_campaign_or_refuse(connection, settings, now=NOW)
    with Measurement(f"import of {item_count:,} items", item_count):
        async with engine.begin() as connection:
            await import_items_and_return_receipt(
                connection, campaign.slug, io.BytesIO(items_file(item_count)), "items.csv", max_mb=512
            )
    with Measurement(f"launch of {item_count:,} items", item_count):
        async with engine.begin() as connection:
            await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    results = io.BytesIO(results_file(hit_count, item_count, np.random.default_rng(1), "s"))
    with Measurement(f"import of {hit_count:,} HITs of 5, {law}", hit_count):
        await import_responses_of_file_and_return_receipt(
            engine, campaign.slug, results, "results.csv", now=NOW, max_mb=512
        )
    for which in ("first", "next"):
        with Measurement(f"{which} export of the answers", hit_count):
            await export_responses(engine, campaign.slug)
    async with engine.connect() as connection:
        known = await connection.scalar(text("SELECT reltuples FROM pg_class WHERE oid = 'responses'::regclass"))
    print(f"\nThe planner knows of {known:,.0f} responses.\n", flush=True)


async def run(url: str, options: argparse.Namespace) -> None:
    engine = create_engine(url, pool_size=4)
    try:
        await measure(engine, options.items, options.hits, options.law)
    finally:
        await engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--hits", type=int, default=50_000)
    parser.add_argument("--law", default="easl")
    options = parser.parse_args()
    print("| what | own CPU s | PostgreSQL's CPU s | wall s | a CPU second | peak MB |\n|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        asyncio.run(run(url, options))


if __name__ == "__main__":
    main()
