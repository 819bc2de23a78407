"""Measure disk per judgment, memory per item and processor time per answer: `python -m benchmarks.sizes`.

One server process runs with and without metrics, against one PostgreSQL. Processor time hardly depends on other load on
the machine; from it follows how many annotators a core can serve.
"""

import argparse
import asyncio
import multiprocessing
import os

from sqlalchemy import text

from benchmarks.processes import ProcessGroup, resident_bytes
from benchmarks.serving import answer_with_clients, create_load_task, open_engine, run_server
from benchmarks.temporary_database import run_temporary_database

ITEMS_PER_HIT = 5
SETTINGS = {"repeat_items": True}
GROWING_TABLES = ("responses", "hits", "annotators", "assignments", "posteriors")
SUM_SIZES = text("""
    SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(CAST(:names AS text[])) AS name
""")
METRICS_TOKEN_VARIABLE = "EASEL_METRICS_TOKEN"


async def load_total_table_bytes(url: str) -> int:
    """Return the disk space of all tables that grow with answers, including their indexes."""
    async with open_engine(url) as engine, engine.connect() as connection:
        return int(await connection.scalar(SUM_SIZES, {"names": list(GROWING_TABLES)}) or 0)


def measure_answer_costs(
    url: str, port: int, postgresql: ProcessGroup, *, seconds: float, metrics: bool
) -> tuple[int, float, float, float]:
    """Let annotators answer for some seconds and measure the costs of their answers.

    Returns:
        Number of answers; processor milliseconds of the server and of PostgreSQL for an answer and the next HIT; and
        disk bytes per judgment.

    """
    os.environ.pop(METRICS_TOKEN_VARIABLE, None)
    if metrics:
        os.environ[METRICS_TOKEN_VARIABLE] = "7f3a9c01d2e4b5860f1c2d3e4a5b6978"
    with run_server(url, port, 1) as serving:
        task = asyncio.run(
            create_load_task(url, port, items=1000, way="page", clients=8, seconds=seconds, settings=SETTINGS)
        )
        bytes_before = asyncio.run(load_total_table_bytes(url))
        before = serving.processor_seconds(), postgresql.processor_seconds()
        with multiprocessing.get_context("spawn").Pool(1) as load_process:
            _, hits, _ = load_process.apply(answer_with_clients, (task,))
        after = serving.processor_seconds(), postgresql.processor_seconds()
    in_server, in_postgresql = (1000 * (end - begin) / hits for begin, end in zip(before, after, strict=True))
    grown_bytes = asyncio.run(load_total_table_bytes(url)) - bytes_before
    return hits, in_server, in_postgresql, grown_bytes / (hits * ITEMS_PER_HIT)


def measure_memory_bytes_per_item(url: str, port: int, items: int) -> float:
    """Return how much a server process grows per item when it hands out the first HIT of a large campaign."""
    with run_server(url, port, 1) as serving:
        small, large = (
            asyncio.run(
                create_load_task(url, port, items=item_count, way="page", clients=1, seconds=3, settings=SETTINGS)
            )
            for item_count in (1000, items)
        )
        with multiprocessing.get_context("spawn").Pool(1) as load_process:
            load_process.apply(answer_with_clients, (small,))
            before = resident_bytes(serving.pid)
            load_process.apply(answer_with_clients, (large,))
            return (resident_bytes(serving.pid) - before) / items


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0, help="length of each measurement")
    parser.add_argument("--items", type=int, default=200_000, help="items of the large campaign")
    parser.add_argument("--port", type=int, default=8929)
    options = parser.parse_args()
    with run_temporary_database() as database:
        url = database.url
        postgresql = database.find_processes()
        print("| metrics | answers | CPU ms of server / PostgreSQL per answer and next HIT | bytes of a judgment |")
        print("|---|---|---|---|")
        for metrics in (False, True, False, True):
            answers, in_server, in_postgresql, judgment_bytes = measure_answer_costs(
                url, options.port, postgresql, seconds=options.seconds, metrics=metrics
            )
            figures = f"{in_server:.2f} / {in_postgresql:.2f} | {judgment_bytes:.0f}"
            print(f"| {'on' if metrics else 'off'} | {answers:,} | {figures} |", flush=True)
        item_bytes = measure_memory_bytes_per_item(url, options.port, options.items)
        print(f"\nMemory of a process per item: {item_bytes:.0f} bytes")


if __name__ == "__main__":
    main()
