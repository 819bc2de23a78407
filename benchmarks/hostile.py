"""The memory of a server under requests that mean it no good: `python -m benchmarks.hostile [--requests 670000]`.

One server process and 16 connections that ask without a pause, each request from another of 4,096 addresses: for pages
that are not there, under names of 8 kB, with methods that nobody takes, bodies that are neither JSON nor a form, tokens
made up, logins that fail, visits to a campaign's link, answers to HITs that are not theirs; and every hundredth is
dropped halfway. Resident memory is noted on the way. It is bounded when it stops growing; `--plot FILE` draws it (SVG).
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import secrets
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import quote, urlencode

import uvloop

from app.database import embedded
from app.database.migrate import upgrade_schema
from benchmarks.large import MB, memory, server_processes
from benchmarks.serving import Task, prepare, server

CONNECTIONS = 16
ADDRESSES = 4096
NOTES = 40
FORM = "application/x-www-form-urlencoded"
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 260, 64, 44, 20


class Attack(NamedTuple):
    method: str
    path: str
    body: bytes = b""
    kind: str = "text/plain"
    header: str = ""


def long_name(rng: Random, size: int = 8000) -> str:
    return "".join(rng.choices("abcdefghij-", k=size))


def attacks(task: Task, rng: Random) -> Iterator[Attack]:
    """Requests without end, no two alike."""
    link = f"/link/{task.link_key}"
    for k in count():
        name = long_name(rng, rng.choice((10, 100, 8000)))
        token = secrets.token_urlsafe(rng.choice((8, 60, 4000)))
        yield Attack("GET", f"/{name}")
        yield Attack("GET", f"/admin/campaigns/{name}/analysis?{urlencode({'method': name})}")
        yield Attack("GET", f"/link/{name}")
        yield Attack("GET", link, header=f"Cookie: easel_visitor={token}\r\n")
        yield Attack("GET", f"{link}?{urlencode({'t': token})}")
        yield Attack("POST", link, urlencode({"token": token, "hit": k, "score-1": name}).encode(), FORM)
        yield Attack("POST", link, rng.randbytes(rng.choice((10, 3000, 60_000))), FORM)
        if k % 10 == 0:  # takes as long as 50 of the others
            yield Attack("POST", "/login", urlencode({"name": name, "password": token}).encode(), FORM)
        yield Attack("POST", "/api/v1/campaigns", b"[" * rng.choice((1, 2000)), "application/json")
        yield Attack("GET", f"/api/v1/campaigns/{name}", header=f"Authorization: Bearer {token}\r\n")
        yield Attack("POST", f"/api/v1/hits/{k}/response", json.dumps({name: token}).encode(), "application/json")
        yield Attack(rng.choice(("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW")), link)
        yield Attack("GET", f"/static/{quote(name)}?v={k}")
        yield Attack("GET", "/", header=f"{name[:200]}: {token}\r\n" * rng.choice((1, 3, 90)))


async def asking(task: Task, seed: int, asked: "Synchronized[int]", most: int) -> None:
    """One connection after another, each as long as the server keeps it, until all have asked so much together."""
    rng = Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", task.port)
    for attack in attacks(task, rng):
        address = f"10.0.{rng.randrange(ADDRESSES // 256)}.{rng.randrange(256)}"
        head = (
            f"{attack.method} {attack.path} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: {address}\r\n{attack.header}"
            f"Content-Type: {attack.kind}\r\nContent-Length: {len(attack.body)}\r\n\r\n"
        )
        writer.write(head.encode() + attack.body)
        asked.value += 1  # all of them in one thread
        dropped, over = asked.value % 100 == 0, asked.value >= most
        if over or dropped or not await answered(reader):
            writer.close()
            if over:
                return
            reader, writer = await asyncio.open_connection("127.0.0.1", task.port)


async def answered(reader: asyncio.StreamReader) -> bool:
    """Return whether the connection is still open after the reply."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        if length is None:
            return False
        await reader.readexactly(int(length[1]))
    except (OSError, asyncio.IncompleteReadError):
        return False
    return b"connection: close" not in head.lower()


def ask(task: Task, asked: "Synchronized[int]", most: int) -> None:
    """In a process of its own."""

    async def all_connections() -> None:
        await asyncio.gather(*(asking(task, seed, asked, most) for seed in range(CONNECTIONS)))

    uvloop.run(all_connections())


def drawn(notes: list[tuple[int, float]]) -> str:
    """Memory over requests, as SVG."""
    last, most = notes[-1][0], 100 * (1 + max(size for _, size in notes) // 100)

    def x(requests: float) -> float:
        return LEFT + (WIDTH - LEFT - TOP) * requests / last

    def y(size: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * size / most

    points = " ".join(f"{x(requests):.1f},{y(size):.1f}" for requests, size in notes)
    ticks = [
        f'<text x="{LEFT - 8}" y="{y(size) + 4:.1f}" text-anchor="end">{size:.0f}</text>'
        f'<line x1="{LEFT}" x2="{WIDTH - TOP}" y1="{y(size):.1f}" y2="{y(size):.1f}" stroke="#ddd"/>'
        for size in (0, most / 2, most)
    ]
    ticks += [
        f'<text x="{x(at):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="{anchor}">{at:,.0f}</text>'
        for at, anchor in ((0, "start"), (last / 2, "middle"), (last, "end"))
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
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        with server(url, options.port, 1):
            task = asyncio.run(prepare(url, options.port, items=1000, way="page", clients=1, seconds=0))
            processes = server_processes()
            spawn = multiprocessing.get_context("spawn")
            asked = spawn.Value("q", 0)
            told = spawn.Process(target=ask, args=(task, asked, options.requests))
            told.start()
            began, notes = time.perf_counter(), [(0, sum(map(memory, processes)) / MB)]
            print("| requests | MB | seconds |\n|---|---|---|")
            while told.is_alive():
                told.join(0.2)
                if asked.value - notes[-1][0] >= options.requests / NOTES or not told.is_alive():
                    notes.append((asked.value, sum(map(memory, processes)) / MB))
                    print(f"| {notes[-1][0]:,} | {notes[-1][1]:.0f} | {time.perf_counter() - began:.0f} |", flush=True)
            assert told.exitcode == 0
    if options.plot:
        options.plot.write_text(drawn(notes))


if __name__ == "__main__":
    main()
