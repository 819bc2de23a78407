"""Disk of a judgment, memory of an item, and processor time of an answer: `python -m benchmarks.sizes`.

One server process with and without metrics, and one PostgreSQL. Processor time hardly depends on what else the machine
does; the number of annotators per core follows from it.
"""

import argparse
import asyncio
import multiprocessing
import os
import re
import tempfile
from pathlib import Path

from sqlalchemy import text

from app.database import embedded
from app.database.migrate import upgrade_schema
from benchmarks.serving import ProcessGroup, engine_on, load, prepare, server

ITEMS_PER_HIT = 5
GROWING_TABLES = ("responses", "hits", "annotators", "assignments", "posteriors")
SUM_SIZES = text("""
    SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(CAST(:names AS text[])) AS name
""")
TOKEN = "EASEL_METRICS_TOKEN"


async def bytes_of_tables(url: str) -> int:
    async with engine_on(url) as engine, engine.connect() as connection:
        return int(await connection.scalar(SUM_SIZES, {"names": list(GROWING_TABLES)}) or 0)


def resident_bytes(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return 1024 * int(found[1])


def processor_ms_per_hit(
    url: str, port: int, postgresql: ProcessGroup, *, seconds: float, metrics: bool
) -> tuple[int, float, float, float]:
    """Answers, processor time of server and PostgreSQL for each with its next HIT, and bytes of a judgment."""
    os.environ.pop(TOKEN, None)
    if metrics:
        os.environ[TOKEN] = "7f3a9c01d2e4b5860f1c2d3e4a5b6978"
    with server(url, port, 1) as serving:
        task = asyncio.run(prepare(url, port, items=1000, way="page", clients=8, seconds=seconds))
        size = asyncio.run(bytes_of_tables(url))
        before = serving.processor_seconds(), postgresql.processor_seconds()
        with multiprocessing.get_context("spawn").Pool(1) as elsewhere:
            _, hits, _ = elsewhere.apply(load, (task,))
        after = serving.processor_seconds(), postgresql.processor_seconds()
    in_server, in_postgresql = (1000 * (end - begin) / hits for begin, end in zip(before, after, strict=True))
    grown = asyncio.run(bytes_of_tables(url)) - size
    return hits, in_server, in_postgresql, grown / (hits * ITEMS_PER_HIT)


def bytes_per_item(url: str, port: int, items: int) -> float:
    """Growth of a server process that gives its first HIT of a campaign with so many items."""
    with server(url, port, 1) as serving:
        small, large = (
            asyncio.run(prepare(url, port, items=number, way="page", clients=1, seconds=3)) for number in (1000, items)
        )
        with multiprocessing.get_context("spawn").Pool(1) as elsewhere:
            elsewhere.apply(load, (small,))
            before = resident_bytes(serving.pid)
            elsewhere.apply(load, (large,))
            return (resident_bytes(serving.pid) - before) / items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each measurement")
    parser.add_argument("--items", type=int, default=200_000, help="items of the large campaign")
    parser.add_argument("--port", type=int, default=8929)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        postgresql = ProcessGroup(int((Path(directory) / "postgresql" / "postmaster.pid").read_text().split()[0]))
        print("| metrics | answers | CPU ms of server / PostgreSQL per answer and next HIT | bytes of a judgment |")
        print("|---|---|---|---|")
        for metrics in (False, True, False, True):
            answers, in_server, in_postgresql, size = processor_ms_per_hit(
                url, options.port, postgresql, seconds=options.seconds, metrics=metrics
            )
            figures = f"{in_server:.2f} / {in_postgresql:.2f} | {size:.0f}"
            print(f"| {'on' if metrics else 'off'} | {answers:,} | {figures} |", flush=True)
        print(f"\nMemory of a process per item: {bytes_per_item(url, options.port, options.items):.0f} bytes")


if __name__ == "__main__":
    main()
