"""Measure the server's memory under malicious requests: `python -m benchmarks.hostile [--requests 670000]`.

16 connections send requests to one server process without a pause, each from another of 4,096 addresses: unknown pages,
names of 8 kB, unknown methods, bodies that are neither JSON nor a form, made-up tokens, failing logins, visits to a
campaign's link, and answers to other annotators' HITs. Every hundredth request is dropped halfway. The table shows
resident memory over time; memory is bounded if it stops growing. `--plot FILE` draws it as SVG.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import secrets
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import quote, urlencode

import uvloop

from benchmarks.large import list_server_processes
from benchmarks.processes import MB, resident_bytes
from benchmarks.serving import LoadTask, create_load_task, run_server
from benchmarks.temporary_database import run_temporary_database

CONNECTIONS = 16
ADDRESSES = 4096
TABLE_ROWS = 40
FORM = "application/x-www-form-urlencoded"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 64, 44, 20


class MaliciousRequest(NamedTuple):
    """A request that should not use up the server's memory."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = "text/plain"
    header: str = ""


def long_name(rng: Random, size: int = 8000) -> str:
    return "".join(rng.choices("abcdefghij-", k=size))


def iterate_malicious_requests(task: LoadTask, rng: Random) -> Iterator[MaliciousRequest]:
    """Yield different malicious requests without end."""
    link = f"/link/{task.link_key}"
    for k in count():
        name = long_name(rng, rng.choice((10, 100, 8000)))
        token = secrets.token_urlsafe(rng.choice((8, 60, 4000)))
        yield MaliciousRequest("GET", f"/{name}")
        yield MaliciousRequest("GET", f"/admin/campaigns/{name}/analysis?{urlencode({'method': name})}")
        yield MaliciousRequest("GET", f"/link/{name}")
        yield MaliciousRequest("GET", link, header=f"Cookie: easel_visitor={token}\r\n")
        yield MaliciousRequest("GET", f"{link}?{urlencode({'t': token})}")
        yield MaliciousRequest("POST", link, urlencode({"token": token, "hit": k, "score-1": name}).encode(), FORM)
        yield MaliciousRequest("POST", link, rng.randbytes(rng.choice((10, 3000, 60_000))), FORM)
        if k % 10 == 0:  # takes as long as 50 of the others
            yield MaliciousRequest("POST", "/login", urlencode({"name": name, "password": token}).encode(), FORM)
        yield MaliciousRequest("POST", "/api/v1/campaigns", b"[" * rng.choice((1, 2000)), "application/json")
        yield MaliciousRequest("GET", f"/api/v1/campaigns/{name}", header=f"Authorization: Bearer {token}\r\n")
        yield MaliciousRequest(
            "POST", f"/api/v1/hits/{k}/response", json.dumps({name: token}).encode(), "application/json"
        )
        yield MaliciousRequest(rng.choice(("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")), link)
        yield MaliciousRequest("GET", f"/static/{quote(name)}?v={k}")
        yield MaliciousRequest("GET", "/", header=f"{name[:200]}: {token}\r\n" * rng.choice((1, 3, 90)))


async def send_requests(task: LoadTask, seed: int, sent_count: "Synchronized[int]", max_requests: int) -> None:
    """Send requests, reconnecting as needed, until all connections together have sent `most` of them."""
    rng = Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", task.port)
    for request in iterate_malicious_requests(task, rng):
        address = f"10.0.{rng.randrange(ADDRESSES // 256)}.{rng.randrange(256)}"
        head = (
            f"{request.method} {request.path} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: {address}\r\n{request.header}"
            f"Content-Type: {request.content_type}\r\nContent-Length: {len(request.body)}\r\n\r\n"
        )
        writer.write(head.encode() + request.body)
        sent_count.value += 1  # all of them in one thread
        is_dropped, is_over = sent_count.value % 100 == 0, sent_count.value >= max_requests
        if is_over or is_dropped or not await is_open_after_reply(reader):
            writer.close()
            if is_over:
                return
            reader, writer = await asyncio.open_connection("127.0.0.1", task.port)


async def is_open_after_reply(reader: asyncio.StreamReader) -> bool:
    """Read a reply and return whether the connection is still open."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length is None:
            return False
        await reader.readexactly(int(length[1]))
    except (OSError, asyncio.IncompleteReadError):
        return False
    return b"connection: close" not in head.lower()


def send_requests_on_all_connections(task: LoadTask, sent_count: "Synchronized[int]", max_requests: int) -> None:
    """Send requests on all connections, in a new process."""

    async def all_connections() -> None:
        await asyncio.gather(*(send_requests(task, seed, sent_count, max_requests) for seed in range(CONNECTIONS)))

    uvloop.run(all_connections())


def memory_plot_svg(measurements: list[tuple[int, float]]) -> str:
    """Return a plot of memory over requests, as SVG."""
    last_request, highest_mb = measurements[-1][0], 100 * (1 + max(size for _, size in measurements) // 100)

    def x(requests: float) -> float:
        return LEFT + (WIDTH - LEFT - TOP) * requests / last_request

    def y(size: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * size / highest_mb

    points = " ".join(f"{x(requests):.1f},{y(size):.1f}" for requests, size in measurements)
    ticks = [
        f'<text x="{LEFT - 8}" y="{y(size) + 4:.1f}" text-anchor="end">{size:.0f}</text>'
        f'<line x1="{LEFT}" x2="{WIDTH - TOP}" y1="{y(size):.1f}" y2="{y(size):.1f}" stroke="#ddd"/>'
        for size in (0, highest_mb / 2, highest_mb)
    ]
    ticks += [
        f'<text x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}">{at:,.0f}</text>'
        for at, anchor in ((0, "start"), (last_request / 2, "middle"), (last_request, "end"))
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
        f'font-size="12" fill="#555"><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(ticks)}'
        f'<polyline points="{points}" fill="none" stroke="#3a5fcd" stroke-width="2"/>'
        f'<text x="{LEFT}" y="14">MB in memory</text>'
        f'<text x="{WIDTH - TOP}" y="{HEIGHT - 6}" text-anchor="end">hostile requests</text></svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=670_000)
    parser.add_argument("--port", type=int, default=8919)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    os.environ["EASEL_PROXIES"] = "127.0.0.1"
    with run_temporary_database() as database, run_server(database.url, options.port, 1):
        task = asyncio.run(create_load_task(database.url, options.port, items=1000, way="page", clients=1, seconds=0))
        processes = list_server_processes()
        spawn = multiprocessing.get_context("spawn")
        sent_count = spawn.Value("q", 0)
        sender = spawn.Process(target=send_requests_on_all_connections, args=(task, sent_count, options.requests))
        sender.start()
        start, measurements = time.perf_counter(), [(0, sum(map(resident_bytes, processes)) / MB)]
        print("| requests | MB | seconds |\n|---|---|---|")
        while sender.is_alive():
            sender.join(0.2)
            if sent_count.value - measurements[-1][0] >= options.requests / TABLE_ROWS or not sender.is_alive():
                measurements.append((sent_count.value, sum(map(resident_bytes, processes)) / MB))
                print(
                    f"| {measurements[-1][0]:,} | {measurements[-1][1]:.0f} | {time.perf_counter() - start:.0f} |",
                    flush=True,
                )
        assert sender.exitcode == 0
    if options.plot:
        options.plot.write_text(memory_plot_svg(measurements))


if __name__ == "__main__":
    main()
