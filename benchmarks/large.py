"""Measure the time of large campaigns and imports, and the delay of other requests: `python -m benchmarks.large`.

`--items` sets the size of the large campaign, 1,000,000 by default. One PostgreSQL and one server process run on this
machine. Meanwhile annotators in another process work through pages of a second campaign, and of the campaign whose
results are imported. Their longest request shows how long an annotator had to wait. Files are sent over HTTP, as a
browser sends them.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
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

from benchmarks.processes import MB, resident_bytes
from benchmarks.serving import (
    HIT_FIELD,
    HITS_PER_ANNOTATOR,
    SCORE_FIELD,
    HttpConnection,
    LoadTask,
    create_load_task,
    run_server,
)
from benchmarks.temporary_database import run_temporary_database

ANNOTATORS = 3  # at work in each campaign
THINKING_SECONDS = 0.05
RESULT_ROWS, RESULT_ITEMS = 3_500, 5  # of the result file for a small campaign
OTHER_CAMPAIGN_ITEMS, MAX_RESULT_ROWS = 150, 200_000
TIMEOUT_SECONDS = 7200


@dataclass(frozen=True)
class ApiClient:
    """A researcher's program that uses the API."""

    port: int
    bearer: str

    def request(self, method: str, path: str, body: bytes = b"", content_type: str = "application/json") -> bytes:
        """Send a request and return the body of the reply."""
        headers = {"Authorization": f"Bearer {self.bearer}", "Content-Type": content_type}
        api_request = Request(f"http://127.0.0.1:{self.port}/api/v1{path}", body or None, headers, method=method)
        with urlopen(api_request, timeout=TIMEOUT_SECONDS) as reply:
            content: bytes = reply.read()
        return content

    def create_campaign(self, **settings: object) -> str:
        """Create a campaign and return its slug."""
        settings = {"question": "How much?", "judgments_per_item": 10_000} | settings
        slug: str = json.loads(self.request("POST", "/campaigns", json.dumps(settings).encode()))["slug"]
        return slug


# Annotators


async def answer_hits_and_return_longest_request(
    task: LoadTask, names: Sequence[str], should_stop: Callable[[], bool]
) -> float:
    """Answer HITs until told to stop, and return the longest request in seconds."""
    longest, unused_tokens = 0.0, list(names)
    path = f"/link/{task.link_key}"
    form_headers = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    while not should_stop():
        http = HttpConnection(*await asyncio.open_connection("127.0.0.1", task.port))
        token = unused_tokens.pop()
        html = await http.request("GET", f"{path}?{urlencode({'t': token})}")
        for _ in range(HITS_PER_ANNOTATOR):
            if should_stop():
                break
            fields = {"token": token, "hit": HIT_FIELD.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
            fields |= {f"score-{item.decode()}": 50 for item in SCORE_FIELD.findall(html)}
            start = time.perf_counter()
            html = await http.request("POST", path, urlencode(fields).encode(), form_headers)
            longest = max(longest, time.perf_counter() - start)
            await asyncio.sleep(THINKING_SECONDS)
        http.writer.close()
    return longest


def work_until_message(pipe: Connection, tasks: Sequence[LoadTask]) -> None:
    """Let annotators of all tasks work, in a new process, until a message arrives; then send each task's longest
    request.
    """

    async def all_tasks() -> list[float]:
        names_by_task = [[task.annotators[k::ANNOTATORS] for k in range(ANNOTATORS)] for task in tasks]
        works = [
            asyncio.gather(*(answer_hits_and_return_longest_request(task, names, pipe.poll) for names in names_of_task))
            for task, names_of_task in zip(tasks, names_by_task, strict=True)
        ]
        return [max(longest) for longest in await asyncio.gather(*works)]

    pipe.send("at work")
    pipe.send(asyncio.run(all_tasks()))


@contextmanager
def record_longest_requests(waits: list[float], *tasks: LoadTask) -> Iterator[None]:
    """Let annotators work during a `with` block, and then add each task's longest request to `waits`."""
    own_end, worker_end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=work_until_message, args=(worker_end, tasks))
    process.start()
    worker_end.close()  # so that a crash of the worker ends `recv`
    own_end.recv()
    time.sleep(1)  # until the first annotators have arrived
    yield
    own_end.send("enough")
    waits += own_end.recv()
    process.join()


def create_campaign_without_end(
    url: str, port: int, *, items: int, **settings: object
) -> Coroutine[Any, Any, LoadTask]:
    """Create a campaign whose annotators never run out of work."""
    settings |= {"repeat_items": True}
    return create_load_task(url, port, items=items, way="page", clients=1, seconds=0, settings=settings)


# Measurements


def measure_and_print_row(title: str, goals: str, action: Callable[[], object], *tasks: LoadTask) -> None:
    """Run an action while annotators work, and print a table row.

    Args:
        title: Title of the row.
        goals: Goals for time and delay, as text.
        action: Action to measure.
        tasks: Campaigns with annotators at work.

    """
    waits: list[float] = []
    with record_longest_requests(waits, *tasks):
        start = time.perf_counter()
        action()
        seconds = time.perf_counter() - start
    delays = ", ".join(f"{1000 * wait:.0f}" for wait in waits)
    print(f"| {title} | {seconds:.1f} s | {delays} ms | {goals} |", flush=True)


def make_items_csv(count: int) -> bytes:
    """Return a file of items."""
    rows = (f's{k},"Sentence number {k} of many, and it says something"\n' for k in range(count))
    return ("id,sentence\n" + "".join(rows)).encode()


def make_results_csv(row_count: int, item_count: int, rng: np.random.Generator, item_id_prefix: str = "") -> bytes:
    """Return a file of random results of HITs of 5 items, as MTurk exports it."""
    places = range(1, RESULT_ITEMS + 1)
    columns = [*(f"Input.id{k}" for k in places), *(f"Answer.range{k}" for k in places)]
    order = np.concatenate([rng.permutation(item_count) for _ in range(-(-row_count * RESULT_ITEMS // item_count))])
    numbers = order[: row_count * RESULT_ITEMS].reshape(row_count, RESULT_ITEMS).tolist()
    scores = rng.integers(0, 101, (row_count, RESULT_ITEMS)).tolist()
    lines = [
        ",".join(
            [f"A{k}", f"W{k % 100}", *(f"{item_id_prefix}{number}" for number in numbers[k]), *map(str, scores[k])]
        )
        for k in range(row_count)
    ]
    return "\n".join([",".join(["AssignmentId", "WorkerId", *columns]), *lines]).encode()


def list_server_processes() -> list[int]:
    """Return the numbers of the server's processes: all Python processes below this one."""
    own_pids, server_pids = {os.getpid()}, []
    for path in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = path.joinpath("stat").read_text().rpartition(")")[2].split()[1]
            if int(parent) in own_pids and b"python" in path.joinpath("cmdline").read_bytes():
                own_pids.add(int(path.name))
                server_pids.append(int(path.name))
        except OSError:
            continue
    return server_pids


def export_items_and_record_growth(program: ApiClient, slug: str, peaks: list[float]) -> None:
    """Download the items, and add the server's largest memory growth in MB to `peaks`."""
    processes = list_server_processes()
    bytes_before = sum(map(resident_bytes, processes))
    headers = {"Authorization": f"Bearer {program.bearer}"}
    export_request = Request(f"http://127.0.0.1:{program.port}/api/v1/campaigns/{slug}/export/items", headers=headers)
    peak_bytes = bytes_before
    with urlopen(export_request, timeout=TIMEOUT_SECONDS) as reply:
        while reply.read(4 * MB):
            peak_bytes = max(peak_bytes, sum(map(resident_bytes, processes)))
    peaks.append((peak_bytes - bytes_before) / MB)


def print_verify_row(url: str, slug: str) -> None:
    """Print seconds and peak memory of `easel verify`, which runs outside the server."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "app.cli", "verify", slug]
    process = subprocess.Popen(command, env=os.environ | {"DATABASE_URL": url}, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    seconds = time.perf_counter() - start
    print(f"| verify, peak memory {usage.ru_maxrss / 1024:.0f} MB | {seconds:.1f} s | | below 833 MB |", flush=True)


def measure_large_campaign(url: str, program: ApiClient, other_task: LoadTask, items: int) -> None:
    """Measure import, launch, results, export and verification of a large campaign."""
    slug = program.create_campaign(name="Large")
    items_csv, results_csv = (
        make_items_csv(items),
        make_results_csv(min(MAX_RESULT_ROWS, items // 5), items, np.random.default_rng(1), "s"),
    )
    path, csv = f"/campaigns/{slug}", "text/csv"
    scale = items / 1_000_000
    shown = f"{path}/items?shown=sentence"
    action = json.dumps({"action": "launch"}).encode()
    peaks: list[float] = []
    measure_and_print_row(
        f"import of {items:,} items",
        f"{25 * scale:.1f} s, 200 ms",
        lambda: program.request("POST", shown, items_csv, csv),
        other_task,
    )
    measure_and_print_row(
        f"launch of {items:,} items",
        f"{10 * scale:.1f} s, 200 ms",
        lambda: program.request("POST", f"{path}/transitions", action),
        other_task,
    )
    measure_and_print_row(
        f"import of {len(results_csv.splitlines()) - 1:,} results on {items:,} items",
        "200 ms",
        lambda: program.request("POST", f"{path}/responses", results_csv, csv),
        other_task,
    )
    measure_and_print_row(
        f"export of {items:,} items",
        f"{20 * scale:.1f} s, 200 ms",
        lambda: export_items_and_record_growth(program, slug, peaks),
        other_task,
    )
    print(f"| the same, growth of the server's memory at most {peaks[0]:.0f} MB | | | flat |", flush=True)
    print_verify_row(url, slug)


def measure_huge_campaign(program: ApiClient, other_task: LoadTask, items: int) -> None:
    """Measure import, launch, the first and further HITs, and the campaign's page."""
    slug = program.create_campaign(name="Huge")
    path, scale = f"/campaigns/{slug}", items / 1_000_000
    action = json.dumps({"action": "launch"}).encode()
    measure_and_print_row(
        f"import of {items:,} items",
        f"{25 * scale:.1f} s, 200 ms",
        partial(program.request, "POST", f"{path}/items?shown=sentence", make_items_csv(items), "text/csv"),
        other_task,
    )
    measure_and_print_row(
        f"launch of {items:,} items",
        f"{10 * scale:.1f} s, 200 ms",
        lambda: program.request("POST", f"{path}/transitions", action),
        other_task,
    )
    annotator_numbers = iter(range(1_000))

    def next_hit() -> None:
        program.request("POST", f"{path}/hits", json.dumps({"annotator": f"W{next(annotator_numbers)}"}).encode())

    bytes_before = sum(map(resident_bytes, list_server_processes()))
    measure_and_print_row(f"first HIT of {items:,} items", "200 ms", next_hit, other_task)
    growth_per_item = (sum(map(resident_bytes, list_server_processes())) - bytes_before) / items
    print(f"| the same, growth of the server's memory {growth_per_item:.0f} bytes an item | | | 60 bytes |", flush=True)

    def further_hits() -> None:
        for _ in range(100):
            next_hit()

    measure_and_print_row("100 further HITs", "200 ms", further_hits, other_task)
    for which in ("first", "again"):
        measure_and_print_row(
            f"state of {items:,} items, {which}", "200 ms", lambda: program.request("GET", path), other_task
        )


def measure_results_import(url: str, program: ApiClient, other_task: LoadTask, law: str) -> None:
    """Measure the import of results into a small campaign whose annotators are at work."""
    for rows in (RESULT_ROWS // 4, RESULT_ROWS):
        own_task = asyncio.run(create_campaign_without_end(url, program.port, items=RESULT_ITEMS, update_law=law))
        results_csv = make_results_csv(rows, RESULT_ITEMS, np.random.default_rng(2))
        path = f"/campaigns/{own_task.slug}/responses"
        measure_and_print_row(
            f"import of {rows:,} results on {RESULT_ITEMS} items, {law}",
            "linear; 200 ms, own campaign 1000 ms",
            partial(program.request, "POST", path, results_csv, "text/csv"),
            other_task,
            own_task,
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
    with run_temporary_database() as database, run_server(database.url, options.port, 1):
        other_task = asyncio.run(create_campaign_without_end(database.url, options.port, items=OTHER_CAMPAIGN_ITEMS))
        program = ApiClient(options.port, other_task.bearer)
        print("| what | took | longest wait of annotators of another campaign, of this one | wanted |")
        print("|---|---|---|---|")
        measure_and_print_row("nothing, for five seconds", "", lambda: time.sleep(5), other_task)
        for law in ("easl", "easl-aware") if options.only in (None, "results") else ():
            measure_results_import(database.url, program, other_task, law)
        if options.only == "serving":
            measure_huge_campaign(program, other_task, options.items)
        elif options.only != "results":
            measure_large_campaign(database.url, program, other_task, options.items)


if __name__ == "__main__":
    main()
