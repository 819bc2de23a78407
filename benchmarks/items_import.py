"""Measure memory and time of importing items from a file: `python -m benchmarks.items_import [--items N ...]`.

There is one PostgreSQL. Each import runs in its own process, so that its peak memory belongs to this import. *growth*
is the peak minus the memory before the import.
"""

import argparse
import asyncio
import multiprocessing
import os
import time
from datetime import UTC, datetime
from pathlib import Path

from app.campaigns.lifecycle import create_draft_campaign_or_refuse
from app.campaigns.settings import CampaignSettings
from app.database.session import create_engine
from app.imports.items import import_items_and_return_receipt
from benchmarks.processes import MB, peak_mb_of_this_process, processor_seconds_of_this_process, resident_bytes
from benchmarks.temporary_database import run_temporary_database

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAX_FILE_MB = 4_096
FORMATS = ("csv", "jsonl", "json")
TABLE_LINE = "| {:,} items, {} | {:.1f} | {:.1f} | {:,.0f} | {:.0f} | {:.0f} |"


def write_items_file(path: Path, count: int) -> None:
    """Write a file with `count` items in the format of the file name's extension."""
    with path.open("w") as file:
        file.write({".csv": "id,sentence\n", ".json": "["}.get(path.suffix, ""))
        for number in range(count):
            text = f"Sentence number {number} of many, and it says something"
            if path.suffix == ".csv":
                file.write(f's{number},"{text}"\n')
            else:
                separator = ",\n" if path.suffix == ".json" and number else ""
                file.write(f'{separator}{{"id": "s{number}", "sentence": "{text}"}}')
                file.write("\n" if path.suffix == ".jsonl" else "")
        file.write("]\n" if path.suffix == ".json" else "")


async def import_file(url: str, path: Path, count: int) -> None:
    """Import a file into a new campaign and print a table row."""
    engine = create_engine(url, pool_size=2)
    settings = CampaignSettings(name="Large", question="How much?")
    async with engine.begin() as connection:
        campaign = await create_draft_campaign_or_refuse(connection, settings, now=NOW)
    mb_before = resident_bytes(os.getpid()) / MB
    processor_seconds, wall_seconds = processor_seconds_of_this_process(), time.perf_counter()
    with path.open("rb") as file:
        async with engine.begin() as connection:
            receipt = await import_items_and_return_receipt(
                connection, campaign.slug, file, path.name, max_mb=MAX_FILE_MB
            )
    assert receipt.imported == count, receipt
    wall_seconds = time.perf_counter() - wall_seconds
    processor_seconds = processor_seconds_of_this_process() - processor_seconds
    peak_mb = peak_mb_of_this_process()
    file_format = path.suffix.removeprefix(".")
    print(
        TABLE_LINE.format(
            count, file_format, wall_seconds, processor_seconds, count / wall_seconds, peak_mb, peak_mb - mb_before
        ),
        flush=True,
    )
    await engine.dispose()


def run_import(url: str, path: Path, count: int) -> None:
    """Import a file, in a new process."""
    asyncio.run(import_file(url, path, count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--formats", choices=FORMATS, nargs="+", default=["csv"])
    options = parser.parse_args()
    print("| what | wall s | own CPU s | items a second | peak MB | growth MB |\n|---|---|---|---|---|---|")
    with run_temporary_database() as database:
        for count in options.items:
            for file_format in options.formats:
                path = database.folder / f"items-{count}.{file_format}"
                write_items_file(path, count)
                process = multiprocessing.get_context("spawn").Process(
                    target=run_import, args=(database.url, path, count)
                )
                process.start()
                process.join()
                path.unlink()


if __name__ == "__main__":
    main()
