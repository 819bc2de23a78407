"""Measure HITs per second over HTTP, and the bare transactions with pgbench: `python -m benchmarks.serving`.

One PostgreSQL and two server processes run on this machine, together with the load generator. Each client is an
annotator who never pauses: get a HIT, answer it, get the next one. After 30 HITs another annotator takes over, with a
new browser and connection. The campaigns have the settings of new ones, so an annotator sees each item once; with
`--repeat-items` they show items again.

`page` is what a browser does: one POST stores the answer and returns the next HIT as HTML. `two calls` is the JSON API,
where both are separate calls. pgbench runs the minimum that a pair must write, in two transactions without the
mathematics: a lease, an answer and five posteriors. `--ways designs` measures the two calls of every annotation design.

The last column is the processor time of a pair in the processes of the server and of PostgreSQL. It depends less on
other load than the rates.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import uvloop
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts.tokens import issue_token_or_refuse
from app.accounts.users import find_oldest_user_or_create_admin
from app.annotation.onboarding.visit_progress import (
    load_visited_campaign_or_refuse,
    visit_version_to_admit_on_arrival_or_zero,
)
from app.annotation.platforms.assignments import WorkerTokens, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.registry import PLATFORMS
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import tables
from app.database.session import create_engine, driver_of
from app.designs.design import Design
from app.designs.registry import DESIGNS
from benchmarks.pgbench import run_pgbench
from benchmarks.processes import ProcessGroup
from benchmarks.temporary_database import run_temporary_database

SECRET_KEY = secrets.token_hex(32)
# All annotators come from one address, and leave an untouched HIT behind.
UNLIMITED_VISITS_ENVIRONMENT = {f"EASEL_UNTOUCHED_PER_{what}": "1000000" for what in ("ADDRESS", "CAMPAIGN")}
HITS_PER_ANNOTATOR = 30
MIN_ITEMS = 5 * HITS_PER_ANNOTATOR  # for annotators who see each item once
PREPARED_ANNOTATORS = 400  # per measurement, enough that none returns
HIT_FIELD = re.compile(rb'name="hit" value="(\d+)"')
SCORE_FIELD = re.compile(rb'name="score-(\d+)"')
NOW = datetime.now(UTC)


@dataclass(frozen=True)
class LoadTask:
    """Parameters of a measurement, which another process receives."""

    port: int
    way: str
    clients: int
    seconds: float
    slug: str
    link_key: str
    bearer: str
    annotators: list[str]
    design: Design


class HttpConnection:
    """A minimal HTTP client with one open connection; a complete one would take as long as the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def request(self, method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
        """Send a request and return the body of the reply."""
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]  # fails loudly
        content = await self.reader.readexactly(length)
        status = int(answer[9:12])
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]!r}")
        return content


async def answer_pages(http: HttpConnection, task: LoadTask, token: str) -> AsyncIterator[tuple[float, float]]:
    """Answer the HITs of a page and yield seconds of (next, submit); here one POST is both, and both are its time."""
    path = f"/link/{task.link_key}"
    html = await http.request("GET", f"{path}?{urlencode({'t': token})}")
    form_headers = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    for _ in range(HITS_PER_ANNOTATOR):
        if not HIT_FIELD.search(html):
            raise RuntimeError(f"a page without a HIT: {html.decode()[:1000]}")
        fields = {"token": token, "hit": HIT_FIELD.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
        fields |= {f"score-{item.decode()}": secrets.randbelow(101) for item in SCORE_FIELD.findall(html)}
        start = time.perf_counter()
        html = await http.request("POST", path, urlencode(fields).encode(), form_headers)
        seconds = time.perf_counter() - start
        yield seconds, seconds


async def answer_through_api(
    http: HttpConnection, task: LoadTask, annotator: str
) -> AsyncIterator[tuple[float, float]]:
    """Answer HITs through the API and yield seconds of (next, submit)."""
    headers = f"Authorization: Bearer {task.bearer}\r\nContent-Type: application/json\r\n"
    annotator_json = json.dumps({"annotator": annotator}).encode()
    for _ in range(HITS_PER_ANNOTATOR):
        start = time.perf_counter()
        hit = json.loads(await http.request("POST", f"/api/v1/campaigns/{task.slug}/hits", annotator_json, headers))[
            "hit"
        ]
        lease_end = time.perf_counter()
        scores = task.design.simulate_answer_values([secrets.randbelow(1001) / 1000 for _ in hit["items"]])
        answer = json.dumps({"annotator": annotator, "values": scores}).encode()
        await http.request("POST", f"/api/v1/hits/{hit['id']}/response", answer, headers)
        yield lease_end - start, time.perf_counter() - lease_end


ANSWER_BY_WAY = {"page": answer_pages, "two calls": answer_through_api}
ALL_DESIGNS = "designs"
REQUIRED_DESIGN_SETTINGS = {"baseline": {"baseline": "75"}}  # settings without a default


def answer_with_clients(task: LoadTask) -> tuple[float, int, list[tuple[float, float]]]:
    """Answer HITs with concurrent clients.

    The first second is a warm-up, which only the number of all pairs includes.

    Returns:
        Pairs per second, number of all pairs, and seconds of each (next, submit).

    """

    async def answer_as_client(
        unused_names: list[str], times: list[tuple[float, float, float]], measured_until: float
    ) -> None:
        while time.perf_counter() < measured_until:
            http = HttpConnection(*await asyncio.open_connection("127.0.0.1", task.port))
            async for seconds in ANSWER_BY_WAY[task.way](http, task, unused_names.pop()):
                times.append((time.perf_counter(), *seconds))
                if time.perf_counter() >= measured_until:
                    break
            http.writer.close()

    async def answer_as_all_clients() -> tuple[float, int, list[tuple[float, float]]]:
        times: list[tuple[float, float, float]] = []
        measured_from = time.perf_counter() + 1.0
        measured_until = measured_from + task.seconds
        unused_names = list(task.annotators)
        await asyncio.gather(*(answer_as_client(unused_names, times, measured_until) for _ in range(task.clients)))
        measured = [seconds for end, *seconds in times if measured_from <= end < measured_until]
        return len(measured) / task.seconds, len(times), measured  # type: ignore[return-value]  # without the time: pairs

    return uvloop.run(answer_as_all_clients())


@dataclass(frozen=True)
class MeasuredProcesses:
    """The processes of the server and of PostgreSQL."""

    server: ProcessGroup
    postgresql: ProcessGroup

    def processor_milliseconds(self) -> tuple[float, float]:
        """Return the processor time of the server and of PostgreSQL."""
        return 1000 * self.server.processor_seconds(), 1000 * self.postgresql.processor_seconds()


@contextmanager
def run_server(url: str, port: int, workers: int) -> Iterator[ProcessGroup]:
    """Run a server during a `with` block, and yield its processes once each worker has answered.

    Raises OSError if another program listens on the port: its answers would be measured instead.
    """
    socket.create_server(("127.0.0.1", port)).close()
    environment = os.environ | UNLIMITED_VISITS_ENVIRONMENT | {"DATABASE_URL": url, "EASEL_SECRET_KEY": SECRET_KEY}
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(10 * workers):  # enough that each worker has answered; connections are spread randomly
            wait_until_server_answers(port, process)
        yield ProcessGroup(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def wait_until_server_answers(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers a new connection, or raise RuntimeError."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/ready", timeout=60):
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


@asynccontextmanager
async def open_engine(url: str) -> AsyncIterator[AsyncEngine]:
    """Open an engine during a `with` block."""
    engine = create_engine(url, pool_size=2)
    yield engine
    await engine.dispose()


async def create_load_task(
    url: str, port: int, *, items: int, way: str, clients: int, seconds: float, settings: Mapping[str, object] = {}
) -> LoadTask:
    """Create and launch a campaign with all annotators, and return a task for it; `settings` replace the defaults."""
    defaults = {"name": f"bench {items}", "question": "How much?", "judgments_per_item": 10_000}
    campaign_settings = CampaignSettings.model_validate({**defaults, **settings})
    worker_tokens = WorkerTokens(SECRET_KEY, hours=1)
    async with open_engine(url) as engine, engine.begin() as connection:
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, campaign_settings, now=NOW)
        rows = [
            {"campaign_id": campaign.id, "number": i, "external_id": str(i), "shown": f"item {i}", "fields": {}}
            for i in range(items)
        ]
        for start in range(0, items, 5000):
            await connection.execute(insert(tables.items), rows[start : start + 5000])
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
        names = [f"{way}-{clients}-{k}" for k in range(PREPARED_ANNOTATORS)]
        if way == "page":
            driver = await driver_of(connection)
            visited = await load_visited_campaign_or_refuse(driver, campaign.link_key)
            admitted = visit_version_to_admit_on_arrival_or_zero(visited, PLATFORMS["link"])  # as the start button does
            visits = [
                await find_or_create_assignment(
                    driver, campaign.id, "link", Arrival(name, "visit"), now=NOW, admitted_visit_version=admitted
                )
                for name in names
            ]
            names = [worker_tokens.issue_or_reuse_token("link", campaign.link_key, visit) for visit in visits]
        bearer = await issue_token_or_refuse(
            connection, (await find_oldest_user_or_create_admin(connection, now=NOW)).id, "bench", now=NOW
        )
    return LoadTask(port, way, clients, seconds, campaign.slug, campaign.link_key, bearer, names, campaign.design)


@dataclass(frozen=True)
class Measurement:
    """Rates and times of a load task.

    Attributes:
        pairs_per_second: Rate of pairs.
        percentiles: Milliseconds of (next, submit), for the percentiles 50 and 95.
        processor_times: Processor milliseconds of a pair in the server and in PostgreSQL.

    """

    pairs_per_second: float
    percentiles: tuple[tuple[float, float], tuple[float, float]]
    processor_times: tuple[float, float]

    def format_next_times(self) -> str:
        return " / ".join(f"{milliseconds:.1f}" for milliseconds, _ in self.percentiles)

    def format_submit_times(self) -> str:
        return " / ".join(f"{milliseconds:.1f}" for _, milliseconds in self.percentiles)

    def format_processor_times(self) -> str:
        return " / ".join(f"{milliseconds:.2f}" for milliseconds in self.processor_times)


def measure_task(task: LoadTask, processes: MeasuredProcesses) -> Measurement:
    """Let another process answer HITs, and return what was measured."""
    with multiprocessing.get_context("spawn").Pool(1) as load_process:
        load_process.apply(os.getpid)  # wait for its start
        before = processes.processor_milliseconds()
        pairs, pairs_in_all, times = load_process.apply(answer_with_clients, (task,))
        after = processes.processor_milliseconds()
    median, high = (np.percentile(times, percentage, axis=0) * 1000 for percentage in (50, 95))
    return Measurement(
        pairs,
        ((median[0], median[1]), (high[0], high[1])),
        ((after[0] - before[0]) / pairs_in_all, (after[1] - before[1]) / pairs_in_all),
    )


def format_serving_row(
    url: str,
    port: int,
    processes: MeasuredProcesses,
    *,
    items: int,
    way: str,
    clients: int,
    seconds: float,
    settings: Mapping[str, object] = {},
    title: str | None = None,
) -> str:
    """Measure one way of answering and return a table row, whose first cell is the title, by default the way."""
    size = {"items": items, "clients": clients}
    task = asyncio.run(create_load_task(url, port, way=way, seconds=seconds, settings=settings, **size))
    measured = measure_task(task, processes)
    calls = f"{measured.format_next_times()} | {measured.format_submit_times()}"
    rate, processor = measured.pairs_per_second, measured.format_processor_times()
    return f"| {title or way} | {items:,} | {clients} | {rate:.0f} | {calls} | {processor} |"


def format_pgbench_row(url: str, postgresql: ProcessGroup, *, items: int, clients: int, seconds: float) -> str:
    """Measure the bare transactions and return a table row."""
    task = asyncio.run(create_load_task(url, 0, items=items, way="page", clients=clients, seconds=seconds))
    before = postgresql.processor_seconds()
    pairs = run_pgbench(url, task.slug, clients, seconds)
    time.sleep(0.5)  # until PostgreSQL has counted the time of the backends that ended
    in_postgresql = 1000 * (postgresql.processor_seconds() - before) / (pairs * seconds)
    return f"| pgbench | {items:,} | {clients} | {pairs:.0f} | | | {in_postgresql:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--port", type=int, default=8917)
    parser.add_argument("--ways", nargs="*", default=list(ANSWER_BY_WAY), choices=[*ANSWER_BY_WAY, ALL_DESIGNS])
    parser.add_argument("--items", type=int, nargs="*", default=[150, 10_000])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--repeat-items", action="store_true", help="show items again, as new campaigns do not")
    options = parser.parse_args()
    if not options.repeat_items and min(options.items, default=MIN_ITEMS) < MIN_ITEMS:
        parser.error(
            f"with fewer than {MIN_ITEMS} items, add --repeat-items: an annotator answers {HITS_PER_ANNOTATOR} HITs"
        )
    repeats = {"repeat_items": True} if options.repeat_items else {}
    sizes = [(items, clients) for items in options.items for clients in options.clients]
    processor = "CPU ms of server / PostgreSQL"
    print(f"| way | items | clients | pairs/s | next p50 / p95 ms | submit p50 / p95 ms | {processor} |")
    print("|---|---|---|---|---|---|---|")
    with run_temporary_database() as database:
        url = database.url
        postgresql = database.find_processes()
        with run_server(url, options.port, options.workers) as server_processes:
            processes = MeasuredProcesses(server_processes, postgresql)
            # Each worker compiles templates and prepares statements at its first requests.
            for way in (way for way in ANSWER_BY_WAY if way in options.ways):
                format_serving_row(
                    url,
                    options.port,
                    processes,
                    items=MIN_ITEMS,
                    way=way,
                    clients=4 * options.workers,
                    seconds=3,
                    settings=repeats,
                )
            if ALL_DESIGNS in options.ways:
                size = {"items": 150, "clients": 8, "seconds": options.seconds}
                for name in DESIGNS:
                    design_settings = {
                        "design": name,
                        "design_settings": REQUIRED_DESIGN_SETTINGS.get(name, {}),
                        **repeats,
                    }
                    print(
                        format_serving_row(
                            url,
                            options.port,
                            processes,
                            way="two calls",
                            settings=design_settings,
                            title=name,
                            **size,
                        ),
                        flush=True,
                    )
            for way in (way for way in ANSWER_BY_WAY if way in options.ways):
                for items, clients in sizes:
                    size = {"items": items, "clients": clients, "seconds": options.seconds}
                    print(
                        format_serving_row(url, options.port, processes, way=way, settings=repeats, **size), flush=True
                    )
        # Last, because it leaves dead rows and an annotator with all answers, which would slow down the servers.
        for items, clients in sizes if {*options.ways} != {ALL_DESIGNS} else ():
            seconds = min(options.seconds, 5)
            print(format_pgbench_row(url, postgresql, items=items, clients=clients, seconds=seconds), flush=True)


if __name__ == "__main__":
    main()
