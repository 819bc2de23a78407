"""HITs per second over HTTP, and beside them the bare transactions by pgbench: `python -m benchmarks.serving`.

One PostgreSQL and two server processes on this machine's cores, which the load generator shares. Every client is an
annotator without a moment's thought: they get a HIT, answer it, and get the next one, and after 30 HITs someone else
takes their place, with a browser and a connection of their own. Two ways: `page` is what a browser does, one POST that
stores the answer and brings the next HIT as HTML; `two calls` is the JSON API, where next and submit are separate.
pgbench runs what one pair must write at the least: a lease, an answer, five posteriors, in two transactions, with the
mathematics left out. `--ways designs` measures the same two calls of every way of asking.

The last column is the processor time of a pair in the server's processes and in PostgreSQL's. It depends less than the
rates on what else the machine does.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import uvloop
from sqlalchemy import insert, make_url
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts.tokens import issue_token_or_refuse
from app.accounts.users import find_oldest_user_or_create_admin
from app.annotation.platforms.assignments import WorkerTokens, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import embedded, tables
from app.database.migrate import upgrade_schema
from app.database.session import create_engine, driver_of
from app.designs.design import Design
from app.designs.registry import DESIGNS

SECRET = secrets.token_hex(32)
# All come from one address, and leave a HIT untouched when they go.
UNLIMITED = {f"EASEL_UNTOUCHED_PER_{what}": "1000000" for what in ("ADDRESS", "CAMPAIGN")}
HITS_EACH = 30
TURNS = 400  # annotators prepared per measurement: enough that none comes back
HIT = re.compile(rb'name="hit" value="(\d+)"')
SCORE = re.compile(rb'name="score-(\d+)"')
NOW = datetime.now(UTC)

PGBENCH = """
\\set item random(0, :items - 5)
BEGIN;
SELECT subject FROM posteriors
    WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject BETWEEN :item AND :item + 4
    ORDER BY subject FOR NO KEY UPDATE;
INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at, closed_at)
    VALUES (:campaign, :annotator, :assignment, :item, ARRAY[:item, :item+1, :item+2, :item+3, :item+4],
            now(), now(), now())
    RETURNING id \\gset
COMMIT;
BEGIN;
UPDATE hits SET closed_at = now() WHERE campaign_id = :campaign AND id = :id;
SELECT state FROM posteriors
    WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject BETWEEN :item AND :item + 4
    ORDER BY subject FOR NO KEY UPDATE;
INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at)
    VALUES (:campaign, :id, :annotator, 'bench', ARRAY[:item, :item+1, :item+2, :item+3, :item+4],
            ARRAY[1, 2, 3, 4, 5], now());
UPDATE posteriors SET state[1] = state[1] + 0.5, judgments = judgments + 1
    WHERE campaign_id = :campaign AND revision = 0 AND criterion = 0 AND subject BETWEEN :item AND :item + 4;
COMMIT;
"""


@dataclass(frozen=True)
class Task:
    """Parameters of one measurement, sent to another process."""

    port: int
    way: str
    clients: int
    seconds: float
    slug: str
    link_key: str
    bearer: str
    annotators: list[str]
    design: Design


class Http:
    """The least of an HTTP client: one connection, kept open. A full one would take as long as the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def call(self, method: str, path: str, body: bytes = b"", headers: str = "") -> bytes:
        head = f"{method} {path} HTTP/1.1\r\nHost: bench\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(re.search(rb"content-length: (\d+)", answer, re.IGNORECASE)[1])  # type: ignore[index]  # fails loudly
        content = await self.reader.readexactly(length)
        status = int(answer[9:12])
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {content[:300]!r}")
        return content


async def page(http: Http, task: Task, token: str) -> AsyncIterator[tuple[float, float]]:
    """Seconds of (next, submit) per HIT: here one POST is both, and the time of each is that of the POST."""
    path = f"/link/{task.link_key}"
    html = await http.call("GET", f"{path}?{urlencode({'t': token})}")
    form_headers = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    for _ in range(HITS_EACH):
        if not HIT.search(html):
            raise RuntimeError(f"a page without a HIT: {html.decode()[:1000]}")
        fields = {"token": token, "hit": HIT.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
        fields |= {f"score-{item.decode()}": secrets.randbelow(101) for item in SCORE.findall(html)}
        began = time.perf_counter()
        html = await http.call("POST", path, urlencode(fields).encode(), form_headers)
        took = time.perf_counter() - began
        yield took, took


async def two_calls(http: Http, task: Task, annotator: str) -> AsyncIterator[tuple[float, float]]:
    """Seconds of (next, submit) per HIT through the API."""
    headers = f"Authorization: Bearer {task.bearer}\r\nContent-Type: application/json\r\n"
    who = json.dumps({"annotator": annotator}).encode()
    for _ in range(HITS_EACH):
        began = time.perf_counter()
        hit = json.loads(await http.call("POST", f"/api/v1/campaigns/{task.slug}/hits", who, headers))["hit"]
        leased = time.perf_counter()
        scores = task.design.simulate_answer_values([secrets.randbelow(1001) / 1000 for _ in hit["items"]])
        answer = json.dumps({"annotator": annotator, "values": scores}).encode()
        await http.call("POST", f"/api/v1/hits/{hit['id']}/response", answer, headers)
        yield leased - began, time.perf_counter() - leased


WAYS = {"page": page, "two calls": two_calls}
DESIGNS_TOO = "designs"
NEEDS = {"baseline": {"baseline": "75"}}  # settings of designs that cannot do without


def load(task: Task) -> tuple[float, int, list[tuple[float, float]]]:
    """(pairs per second, all pairs, seconds of each next and submit) of `task.clients` clients.

    The first second is for warming up: only the number of all pairs includes it.
    """

    async def client(waiting: list[str], times: list[tuple[float, float, float]], ends: float) -> None:
        while time.perf_counter() < ends:
            http = Http(*await asyncio.open_connection("127.0.0.1", task.port))
            async for took in WAYS[task.way](http, task, waiting.pop()):
                times.append((time.perf_counter(), *took))
                if time.perf_counter() >= ends:
                    break
            http.writer.close()

    async def everyone() -> tuple[float, int, list[tuple[float, float]]]:
        times: list[tuple[float, float, float]] = []
        begins = time.perf_counter() + 1.0
        ends = begins + task.seconds
        waiting = list(task.annotators)
        await asyncio.gather(*(client(waiting, times, ends) for _ in range(task.clients)))
        counted = [took for at, *took in times if begins <= at < ends]
        return len(counted) / task.seconds, len(times), counted  # type: ignore[return-value]  # without the time: pairs

    return uvloop.run(everyone())


@dataclass(frozen=True)
class ProcessGroup:
    """A process and its descendants."""

    pid: int

    def processor_seconds(self) -> float:
        """Return the processor time that the processes have taken, including those that have ended and were awaited."""
        fields_by_pid: dict[int, list[str]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields_by_pid[int(stat.parent.name)] = stat.read_text().rpartition(")")[2].split()
        group = {self.pid}
        while children := {pid for pid, fields in fields_by_pid.items() if int(fields[1]) in group} - group:
            group |= children
        ticks = sum(sum(map(int, fields_by_pid[pid][11:15])) for pid in group if pid in fields_by_pid)
        return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Machine:
    """The processes whose processor time is measured."""

    server: ProcessGroup
    postgresql: ProcessGroup

    def processor_milliseconds(self) -> tuple[float, float]:
        return 1000 * self.server.processor_seconds(), 1000 * self.postgresql.processor_seconds()


@contextmanager
def server(url: str, port: int, workers: int) -> Iterator[ProcessGroup]:
    environment = os.environ | UNLIMITED | {"DATABASE_URL": url, "EASEL_SECRET_KEY": SECRET}
    command = [sys.executable, "-m", "app.cli", "serve", "--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    try:
        for _ in range(10 * workers):  # connections are spread by chance: until then each worker has answered
            answers(port, process)
        yield ProcessGroup(process.pid)
    finally:
        process.terminate()
        process.wait(20)


def answers(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers a new connection."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), urlopen(f"http://127.0.0.1:{port}/ready", timeout=60):
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not start")


@asynccontextmanager
async def engine_on(url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(url, pool_size=2)
    yield engine
    await engine.dispose()


async def prepare(
    url: str, port: int, *, items: int, way: str, clients: int, seconds: float, settings: Mapping[str, object] = {}
) -> Task:
    """A fresh campaign with everyone who will arrive; `settings` that are not those of the others."""
    usual = {"name": f"bench {items}", "question": "How much?", "judgments_per_item": 10_000}
    chosen = CampaignSettings.model_validate({**usual, **settings})
    worker_tokens = WorkerTokens(SECRET, hours=1)
    async with engine_on(url) as engine, engine.begin() as connection:
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=NOW)
        rows = [
            {"campaign_id": campaign.id, "number": i, "external_id": str(i), "shown": f"item {i}", "fields": {}}
            for i in range(items)
        ]
        for start in range(0, items, 5000):
            await connection.execute(insert(tables.items), rows[start : start + 5000])
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
        names = [f"{way}-{clients}-{k}" for k in range(TURNS)]
        if way == "page":
            driver = await driver_of(connection)
            visits = [
                await find_or_create_assignment(driver, campaign.id, "link", Arrival(name, "visit"), now=NOW)
                for name in names
            ]
            names = [worker_tokens.issue_token("link", campaign.link_key, visit) for visit in visits]
        bearer = await issue_token_or_refuse(
            connection, (await find_oldest_user_or_create_admin(connection, now=NOW)).id, "bench", now=NOW
        )
    return Task(port, way, clients, seconds, campaign.slug, campaign.link_key, bearer, names, campaign.design)


def pgbench(url: str, slug: str, clients: int, seconds: float) -> float:
    """Pairs per second of the bare transactions on the campaign's own rows."""
    address = make_url(url)
    binaries = next(embedded.iterate_binary_folders())
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(PGBENCH)
        script.flush()
        connect = ["-h", str(address.query["host"]), "-U", str(address.username), str(address.database)]
        find = (
            "SELECT c.id, a.id, s.id, (SELECT count(*) FROM items WHERE campaign_id = c.id) FROM campaigns c "
            f"JOIN annotators a ON a.campaign_id = c.id JOIN assignments s ON s.annotator_id = a.id "
            f"WHERE c.slug = '{slug}' LIMIT 1"
        )
        psql = [str(binaries / "psql"), "-AtF", " ", "-c", find, *connect]
        found = subprocess.run(psql, check=True, capture_output=True, text=True).stdout.split()
        given = zip(("campaign", "annotator", "assignment", "items"), found, strict=True)
        command = [str(binaries / "pgbench"), "-n", "-M", "prepared", "-c", str(clients), "-T", str(round(seconds))]
        for name, number in given:
            command += ["-D", f"{name}={number}"]
        output = subprocess.run([*command, "-f", script.name, *connect], check=True, capture_output=True, text=True)
    return float(re.search(r"tps = ([\d.]+)", output.stdout)[1])  # type: ignore[index]  # fails loudly


def measure(
    url: str,
    port: int,
    machine: Machine,
    *,
    items: int,
    way: str,
    clients: int,
    seconds: float,
    settings: Mapping[str, object] = {},
    called: str | None = None,
) -> str:
    """One line of the table, in which the way is `called` something else if need be."""
    size = {"items": items, "clients": clients}
    task = asyncio.run(prepare(url, port, way=way, seconds=seconds, settings=settings, **size))
    with multiprocessing.get_context("spawn").Pool(1) as elsewhere:
        elsewhere.apply(os.getpid)  # it has started
        before = machine.processor_milliseconds()
        pairs, pairs_in_all, times = elsewhere.apply(load, (task,))
        after = machine.processor_milliseconds()
    in_server, in_postgresql = ((end - begin) / pairs_in_all for begin, end in zip(before, after, strict=True))
    next_p50, submit_p50 = np.percentile(times, 50, axis=0) * 1000
    next_p95, submit_p95 = np.percentile(times, 95, axis=0) * 1000
    calls = f"{next_p50:.1f} / {next_p95:.1f} | {submit_p50:.1f} / {submit_p95:.1f}"
    processor = f"{in_server:.2f} / {in_postgresql:.2f}"
    return f"| {called or way} | {items:,} | {clients} | {pairs:.0f} | {calls} | {processor} |"


def measure_bare(url: str, postgresql: ProcessGroup, *, items: int, clients: int, seconds: float) -> str:
    """The same line for pgbench."""
    task = asyncio.run(prepare(url, 0, items=items, way="page", clients=clients, seconds=seconds))
    before = postgresql.processor_seconds()
    pairs = pgbench(url, task.slug, clients, seconds)
    time.sleep(0.5)  # until PostgreSQL has counted the time of the backends that ended
    in_postgresql = 1000 * (postgresql.processor_seconds() - before) / (pairs * seconds)
    return f"| pgbench | {items:,} | {clients} | {pairs:.0f} | | | {in_postgresql:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--port", type=int, default=8917)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=[*WAYS, DESIGNS_TOO])
    parser.add_argument("--items", type=int, nargs="*", default=[150, 10_000])
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    options = parser.parse_args()
    sizes = [(items, clients) for items in options.items for clients in options.clients]
    processor = "CPU ms of server / PostgreSQL"
    print(f"| way | items | clients | pairs/s | next p50 / p95 ms | submit p50 / p95 ms | {processor} |")
    print("|---|---|---|---|---|---|---|")
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        postgresql = ProcessGroup(int((Path(directory) / "postgresql" / "postmaster.pid").read_text().split()[0]))
        with server(url, options.port, options.workers) as serving:
            machine = Machine(serving, postgresql)
            # Each worker compiles templates and prepares statements at its first requests.
            for way in (way for way in WAYS if way in options.ways):
                measure(url, options.port, machine, items=150, way=way, clients=4 * options.workers, seconds=3)
            if DESIGNS_TOO in options.ways:
                size = {"items": 150, "clients": 8, "seconds": options.seconds}
                for name in DESIGNS:
                    asks = {"design": name, "design_settings": NEEDS.get(name, {})}
                    print(
                        measure(url, options.port, machine, way="two calls", settings=asks, called=name, **size),
                        flush=True,
                    )
            for way in (way for way in WAYS if way in options.ways):
                for items, clients in sizes:
                    size = {"items": items, "clients": clients, "seconds": options.seconds}
                    print(measure(url, options.port, machine, way=way, **size), flush=True)
        # Last, because what it leaves behind (an annotator with all answers, dead rows) would be in the servers' way.
        for items, clients in sizes if {*options.ways} != {DESIGNS_TOO} else ():
            seconds = min(options.seconds, 5)
            print(measure_bare(url, postgresql, items=items, clients=clients, seconds=seconds), flush=True)


if __name__ == "__main__":
    main()
