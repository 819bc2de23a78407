"""Memory and time of importing items from a file on disk: `python -m benchmarks.items_import [--items N ...]`.

One PostgreSQL. Each import runs in a process of its own, so its memory is that of this import alone: the largest that
the process held while it imported, less what it held before.
"""

import argparse
import asyncio
import multiprocessing
import resource
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from app.campaigns.lifecycle import create_draft_campaign_or_refuse
from app.campaigns.settings import CampaignSettings
from app.database import embedded
from app.database.migrate import upgrade_schema
from app.database.session import create_engine
from app.imports.items import import_items_and_return_receipt

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MB = 2**20
MAX_FILE_MB = 4_096
FORMATS = ("csv", "jsonl", "json")
TABLE_LINE = "| {:,} items, {} | {:.1f} | {:.1f} | {:,.0f} | {:.0f} | {:.0f} |"


def write_items_file(path: Path, count: int) -> None:
    """Write `count` items; the ending of the file is its format."""
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


def memory_now_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / MB


async def import_file(url: str, path: Path, count: int) -> None:
    engine = create_engine(url, pool_size=2)
    settings = CampaignSettings(name="Large", question="How much?")
    async with engine.begin() as connection:
        campaign = await create_draft_campaign_or_refuse(connection, settings, now=NOW)
    memory_before = memory_now_mb()
    usage, wall = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
    with path.open("rb") as file:
        async with engine.begin() as connection:
            receipt = await import_items_and_return_receipt(
                connection, campaign.slug, file, path.name, max_mb=MAX_FILE_MB
            )
    assert receipt.imported == count, receipt
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_SELF)
    own = after.ru_utime + after.ru_stime - usage.ru_utime - usage.ru_stime
    peak = after.ru_maxrss / 1024
    kind = path.suffix.removeprefix(".")
    print(TABLE_LINE.format(count, kind, wall, own, count / wall, peak, peak - memory_before), flush=True)
    await engine.dispose()


def run_import(url: str, path: Path, count: int) -> None:
    asyncio.run(import_file(url, path, count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--formats", choices=FORMATS, nargs="+", default=["csv"])
    options = parser.parse_args()
    print("| what | wall s | own CPU s | items a second | peak MB | growth MB |\n|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        for count in options.items:
            for kind in options.formats:
                path = Path(directory) / f"items-{count}.{kind}"
                write_items_file(path, count)
                process = multiprocessing.get_context("spawn").Process(target=run_import, args=(url, path, count))
                process.start()
                process.join()
                path.unlink()


if __name__ == "__main__":
    main()
