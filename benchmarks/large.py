"""Time of large campaigns and imports, and delay of other requests: `python -m benchmarks.large [--items 1000000]`.

One PostgreSQL and one server process on this machine's cores, and meanwhile annotators who work through pages, in a
process of their own: those of another campaign all the time, and those of the campaign whose results are imported. The
longest of their requests is how long anybody waited. Files go over HTTP, as a researcher's browser sends them.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import numpy as np

from app.database import embedded
from app.database.migrate import upgrade_schema
from benchmarks.serving import HIT, HITS_EACH, SCORE, Http, Task, prepare, server

ANNOTATORS = 3  # of each campaign at once
THINKING_SECONDS = 0.05
ROWS, RESULT_ITEMS = 3_500, 5  # of the result file under `easl-aware`
ANOTHER, RESULTS = 150, 200_000
MB = 2**20
PATIENCE_SECONDS = 7200


@dataclass(frozen=True)
class Program:
    """A researcher's program that asks the server."""

    port: int
    bearer: str

    def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> bytes:
        headers = {"Authorization": f"Bearer {self.bearer}", "Content-Type": kind}
        asked = Request(f"http://127.0.0.1:{self.port}/api/v1{path}", body or None, headers, method=method)
        with urlopen(asked, timeout=PATIENCE_SECONDS) as reply:
            content: bytes = reply.read()
        return content

    def campaign(self, **settings: object) -> str:
        settings = {"question": "How much?", "judgments_per_item": 10_000} | settings
        slug: str = json.loads(self.ask("POST", "/campaigns", json.dumps(settings).encode()))["slug"]
        return slug


# Annotators


async def at_work(task: Task, names: Sequence[str], until: Callable[[], bool]) -> float:
    """The longest request of an annotator who gives answer after answer until then, in seconds."""
    longest, waiting = 0.0, list(names)
    path = f"/link/{task.link_key}"
    kind = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    while not until():
        http = Http(*await asyncio.open_connection("127.0.0.1", task.port))
        token = waiting.pop()
        html = await http.call("GET", f"{path}?{urlencode({'t': token})}")
        for _ in range(HITS_EACH):
            if until():
                break
            fields = {"token": token, "hit": HIT.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
            fields |= {f"score-{item.decode()}": 50 for item in SCORE.findall(html)}
            began = time.perf_counter()
            html = await http.call("POST", path, urlencode(fields).encode(), kind)
            longest = max(longest, time.perf_counter() - began)
            await asyncio.sleep(THINKING_SECONDS)
        http.writer.close()
    return longest


def everybody_at_work(told: Connection, tasks: Sequence[Task]) -> None:
    """In another process: annotators of all tasks work until something is told; then each task's longest wait is."""

    async def all_tasks() -> list[float]:
        shares = [[task.annotators[k::ANNOTATORS] for k in range(ANNOTATORS)] for task in tasks]
        works = [
            asyncio.gather(*(at_work(task, names, told.poll) for names in share))
            for task, share in zip(tasks, shares, strict=True)
        ]
        return [max(longest) for longest in await asyncio.gather(*works)]

    told.send("at work")
    told.send(asyncio.run(all_tasks()))


@contextmanager
def watched(waits: list[float], *tasks: Task) -> Iterator[None]:
    """Annotators work meanwhile; then `waits` holds each task's longest wait."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=everybody_at_work, args=(there, tasks))
    process.start()
    there.close()  # so that its end is heard of
    here.recv()
    time.sleep(1)  # for the first of them to have come in
    yield
    here.send("enough")
    waits += here.recv()
    process.join()


def working(url: str, port: int, *, items: int, **settings: object) -> Coroutine[Any, Any, Task]:
    """A campaign whose annotators never run out of work."""
    settings |= {"repeat_items": True}
    return prepare(url, port, items=items, way="page", clients=1, seconds=0, settings=settings)


# What is measured


def measured(what: str, wanted: str, action: Callable[[], object], *tasks: Task) -> None:
    """One line of the table."""
    waits: list[float] = []
    with watched(waits, *tasks):
        began = time.perf_counter()
        action()
        took = time.perf_counter() - began
    said = ", ".join(f"{1000 * wait:.0f}" for wait in waits)
    print(f"| {what} | {took:.1f} s | {said} ms | {wanted} |", flush=True)


def items_file(count: int) -> bytes:
    rows = (f's{k},"Sentence number {k} of many, and it says something"\n' for k in range(count))
    return ("id,sentence\n" + "".join(rows)).encode()


def results_file(rows: int, items: int, rng: np.random.Generator, prefix: str = "") -> bytes:
    places = range(1, RESULT_ITEMS + 1)
    columns = [*(f"Input.id{k}" for k in places), *(f"Answer.range{k}" for k in places)]
    order = np.concatenate([rng.permutation(items) for _ in range(-(-rows * RESULT_ITEMS // items))])
    numbers = order[: rows * RESULT_ITEMS].reshape(rows, RESULT_ITEMS).tolist()
    scores = rng.integers(0, 101, (rows, RESULT_ITEMS)).tolist()
    lines = [
        ",".join([f"A{k}", f"W{k % 100}", *(f"{prefix}{number}" for number in numbers[k]), *map(str, scores[k])])
        for k in range(rows)
    ]
    return "\n".join([",".join(["AssignmentId", "WorkerId", *columns]), *lines]).encode()


def memory(pid: str) -> int:
    """Bytes that a process holds now."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def server_processes() -> list[str]:
    """The processes below this one whose command is Easel's or one of its workers'."""
    ours, found = {str(os.getpid())}, []
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = path.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if parent in ours and b"python" in path.joinpath("cmdline").read_bytes():
                ours.add(path.name)
                found.append(path.name)
        except OSError:
            continue
    return found


def exported(program: Program, slug: str, peaks: list[float]) -> None:
    """Download the items, and note by how many MB the server has grown at its largest."""
    processes = server_processes()
    before = sum(map(memory, processes))
    headers = {"Authorization": f"Bearer {program.bearer}"}
    asked = Request(f"http://127.0.0.1:{program.port}/api/v1/campaigns/{slug}/export/items", headers=headers)
    peak = before
    with urlopen(asked, timeout=PATIENCE_SECONDS) as reply:
        while reply.read(4 * MB):
            peak = max(peak, sum(map(memory, processes)))
    peaks.append((peak - before) / MB)


def verified(url: str, slug: str) -> None:
    """Seconds and peak memory of `easel verify`, which does not run in the server."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "app.cli", "verify", slug]
    process = subprocess.Popen(command, env=os.environ | {"DATABASE_URL": url}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    took = time.perf_counter() - began
    print(f"| verify, peak memory {usage.ru_maxrss / 1024:.0f} MB | {took:.1f} s | | below 833 MB |", flush=True)


def large_campaign(url: str, program: Program, others: Task, items: int) -> None:
    slug = program.campaign(name="Large")
    content, results = items_file(items), results_file(min(RESULTS, items // 5), items, np.random.default_rng(1), "s")
    path, csv = f"/campaigns/{slug}", "text/csv"
    scale = items / 1_000_000
    shown = f"{path}/items?shown=sentence"
    action = json.dumps({"action": "launch"}).encode()
    peaks: list[float] = []
    measured(
        f"import of {items:,} items",
        f"{25 * scale:.1f} s, 200 ms",
        lambda: program.ask("POST", shown, content, csv),
        others,
    )
    measured(
        f"launch of {items:,} items",
        f"{10 * scale:.1f} s, 200 ms",
        lambda: program.ask("POST", f"{path}/transitions", action),
        others,
    )
    measured(
        f"import of {len(results.splitlines()) - 1:,} results on {items:,} items",
        "200 ms",
        lambda: program.ask("POST", f"{path}/responses", results, csv),
        others,
    )
    measured(
        f"export of {items:,} items",
        f"{20 * scale:.1f} s, 200 ms",
        lambda: exported(program, slug, peaks),
        others,
    )
    print(f"| the same, growth of the server's memory at most {peaks[0]:.0f} MB | | | flat |", flush=True)
    verified(url, slug)


def huge_campaign(program: Program, others: Task, items: int) -> None:
    """Import, launch, the first HIT and the following ones, and the campaign's page."""
    slug = program.campaign(name="Huge")
    path, scale = f"/campaigns/{slug}", items / 1_000_000
    action = json.dumps({"action": "launch"}).encode()
    measured(
        f"import of {items:,} items",
        f"{25 * scale:.1f} s, 200 ms",
        partial(program.ask, "POST", f"{path}/items?shown=sentence", items_file(items), "text/csv"),
        others,
    )
    measured(
        f"launch of {items:,} items",
        f"{10 * scale:.1f} s, 200 ms",
        lambda: program.ask("POST", f"{path}/transitions", action),
        others,
    )
    asks = iter(range(1_000))

    def next_hit() -> None:
        program.ask("POST", f"{path}/hits", json.dumps({"annotator": f"W{next(asks)}"}).encode())

    before = sum(map(memory, server_processes()))
    measured(f"first HIT of {items:,} items", "200 ms", next_hit, others)
    grown = (sum(map(memory, server_processes())) - before) / items
    print(f"| the same, growth of the server's memory {grown:.0f} bytes an item | | | 60 bytes |", flush=True)

    def further_hits() -> None:
        for _ in range(100):
            next_hit()

    measured("100 further HITs", "200 ms", further_hits, others)
    for which in ("first", "again"):
        measured(f"state of {items:,} items, {which}", "200 ms", lambda: program.ask("GET", path), others)


def results_while_people_work(url: str, program: Program, others: Task, law: str) -> None:
    for rows in (ROWS // 4, ROWS):
        own = asyncio.run(working(url, program.port, items=RESULT_ITEMS, update_law=law))
        results = results_file(rows, RESULT_ITEMS, np.random.default_rng(2))
        path = f"/campaigns/{own.slug}/responses"
        measured(
            f"import of {rows:,} results on {RESULT_ITEMS} items, {law}",
            "linear; 200 ms, own campaign 1000 ms",
            partial(program.ask, "POST", path, results, "text/csv"),
            others,
            own,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--port", type=int, default=8918)
    parser.add_argument(
        "--only", choices=("results", "items", "serving"), help="one half of it; or import, launch and HITs alone"
    )
    options = parser.parse_args()
    os.environ["EASEL_MAX_UPLOAD_MB"] = str(max(256, options.items // 12_000))
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        with server(url, options.port, 1):
            others = asyncio.run(working(url, options.port, items=ANOTHER))
            program = Program(options.port, others.bearer)
            print("| what | took | longest wait of annotators of another campaign, of this one | wanted |")
            print("|---|---|---|---|")
            measured("nothing, for five seconds", "", lambda: time.sleep(5), others)
            for law in ("easl", "easl-aware") if options.only in (None, "results") else ():
                results_while_people_work(url, program, others, law)
            if options.only == "serving":
                huge_campaign(program, others, options.items)
            elif options.only != "results":
                large_campaign(url, program, others, options.items)


if __name__ == "__main__":
    main()
