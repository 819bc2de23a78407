"""Compare serving in several checkouts, measured in turn: `python -m benchmarks.checkouts FOLDER FOLDER`.

Each checkout runs a PostgreSQL and two server processes of its own. In each round every checkout is measured once with
each number of items and clients, in alternating order, so that a machine whose speed varies treats all of them alike.
The table shows medians over the rounds, for the way `page` of `benchmarks.serving`, and pgbench of the first checkout.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from benchmarks import serving
from benchmarks.pgbench import run_pgbench
from benchmarks.temporary_database import run_temporary_database

FIRST_PORT = 8940


class Order(NamedTuple):
    """The next measurement of a checkout; `way` is page or pgbench."""

    way: str
    items: int
    clients: int
    seconds: float


class Checkout:
    """A process that runs the server of a checkout and measures it on request."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        environment = os.environ | {"PYTHONPATH": str(folder), "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, str(Path(__file__).resolve()), "--measure", str(port)]
        self.process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def receive(self) -> list[float]:
        """Return the next line of numbers. Raises RuntimeError if the process has ended."""
        assert self.process.stdout is not None  # it is a pipe
        if not (line := self.process.stdout.readline()):
            raise RuntimeError(f"{self.folder}: the measuring process has ended")
        numbers: list[float] = json.loads(line)
        return numbers

    def measure(self, order: Order) -> list[float]:
        """Return pairs per second; for pages also milliseconds of the percentiles 50 and 95, and processor times."""
        assert self.process.stdin is not None  # it is a pipe
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return self.receive()

    def stop(self) -> None:
        self.process.communicate(timeout=60)  # the end of its input ends it


def measure_on_request(port: int) -> None:
    """Run a server of the present checkout; measure what each line of the input orders, and print the results."""
    with run_temporary_database() as database:
        url, postgresql = database.url, database.find_processes()
        with serving.run_server(url, port, workers=2) as server:
            processes = serving.MeasuredProcesses(server, postgresql)
            serving.format_serving_row(
                url, port, processes, items=serving.MIN_ITEMS, way="page", clients=8, seconds=3.0
            )
            print("[]", flush=True)
            for line in sys.stdin:
                order = Order(*json.loads(line))
                task = asyncio.run(
                    serving.create_load_task(
                        url, port, items=order.items, way="page", clients=order.clients, seconds=order.seconds
                    )
                )
                if order.way == "pgbench":
                    numbers = [float(run_pgbench(url, task.slug, order.clients, order.seconds))]
                else:
                    measured = serving.measure_task(task, processes)
                    (median, _), (high, _) = measured.percentiles
                    numbers = [measured.pairs_per_second, float(median), float(high), *measured.processor_times]
                print(json.dumps(numbers), flush=True)


def compare_checkouts(folders: list[Path], orders: list[Order], rounds: int) -> None:
    """Measure all checkouts and print the table."""
    checkouts = [Checkout(folder, FIRST_PORT + place) for place, folder in enumerate(folders)]
    results: defaultdict[tuple[Order, str], list[list[float]]] = defaultdict(list)
    try:
        for checkout in checkouts:
            checkout.receive()
        for number in range(rounds):
            for order in orders:
                for checkout in checkouts if number % 2 == 0 else checkouts[::-1]:
                    results[order, str(checkout.folder)].append(checkout.measure(order))
                results[order, "pgbench"].append(checkouts[0].measure(order._replace(way="pgbench")))
    finally:
        for checkout in checkouts:
            checkout.stop()
    print("| items | clients | checkout | pairs/s | p50 / p95 ms | CPU ms of server / PostgreSQL |")
    print("|---|---|---|---|---|---|")
    for (order, name), rows in sorted(results.items(), key=lambda entry: (entry[0][0], entry[0][1] == "pgbench")):
        rate, *others = (statistics.median(column) for column in zip(*rows, strict=True))
        times, processor = others[:2], others[2:]
        cells = [" / ".join(f"{time:.1f}" for time in times), " / ".join(f"{time:.2f}" for time in processor)]
        print(f"| {order.items:,} | {order.clients} | {name} | {rate:.0f} | {cells[0]} | {cells[1]} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="*", help="checkouts, each with an environment like this one's")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each measurement")
    parser.add_argument("--items", type=int, nargs="*", default=[150, 10_000])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure_on_request(options.measure)
        return
    orders = [Order("page", items, clients, options.seconds) for items in options.items for clients in options.clients]
    compare_checkouts([folder.resolve() for folder in options.folders], orders, options.rounds)


if __name__ == "__main__":
    main()
