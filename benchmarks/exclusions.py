"""Annotators at work while others are excluded and restored: `python -m benchmarks.exclusions [--answers 10000 ...]`.

One PostgreSQL and one server process on this machine's cores. 32 annotators work through pages, in a process of their
own, in a campaign that has so many answers already; meanwhile a program excludes and restores some of those whose
answers these are, one after another. The longest request of an annotator is how long serving stopped. At the end every
answer that was acknowledged must be there, and `easel verify` clean.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
from sqlalchemy import text

from app.database import embedded
from app.database.migrate import upgrade
from benchmarks.large import Program, results_file, working
from benchmarks.serving import HIT, HITS_EACH, SCORE, Http, Task, engine_on, server

AT_WORK = 32
ITEMS = 10_000
ROUNDS = 20
THINKING_SECONDS = 0.5


async def at_work(task: Task, names: list[str], until: Callable[[], bool]) -> tuple[int, list[float]]:
    """How many answers of an annotator were acknowledged, and how long each request took, in seconds."""
    acknowledged, took = 0, [0.0]
    path = f"/link/{task.link_key}"
    kind = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    while not until():
        http = Http(*await asyncio.open_connection("127.0.0.1", task.port))
        token = names.pop()
        html = await http.call("GET", f"{path}?{urlencode({'t': token})}")
        for _ in range(HITS_EACH):
            if until():
                break
            fields = {"token": token, "hit": HIT.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
            fields |= {f"score-{item.decode()}": 50 for item in SCORE.findall(html)}
            began = time.perf_counter()
            html = await http.call("POST", path, urlencode(fields).encode(), kind)
            took.append(time.perf_counter() - began)
            acknowledged += 1
            await asyncio.sleep(THINKING_SECONDS)
        http.writer.close()
    return acknowledged, took


def everybody_at_work(told: Connection, task: Task) -> None:
    """In another process: annotators work until something is told; then what came of it is."""

    async def everyone() -> list[tuple[int, list[float]]]:
        shares = [task.annotators[k::AT_WORK] for k in range(AT_WORK)]
        return await asyncio.gather(*(at_work(task, names, told.poll) for names in shares))

    told.send("at work")
    found = asyncio.run(everyone())
    told.send((sum(count for count, _ in found), [one for _, took in found for one in took]))


@contextmanager
def working_meanwhile(found: list[tuple[int, list[float]]], task: Task) -> Iterator[None]:
    """Annotators work meanwhile; then `found` says how many answers were acknowledged, and how long each took."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=everybody_at_work, args=(there, task))
    process.start()
    there.close()
    here.recv()
    time.sleep(3)
    yield
    here.send("enough")
    found.append(here.recv())
    process.join()


def decide(program: Program, slug: str, name: str, action: str) -> None:
    body = json.dumps({"reason": "a benchmark"}).encode()
    program.ask("POST", f"/campaigns/{slug}/annotators/{name}/{action}", body)


def pseudonyms(url: str, slug: str) -> list[str]:
    """Of those whose answers were imported, who has most first."""

    async def read() -> list[str]:
        async with engine_on(url) as engine, engine.connect() as connection:
            statement = text("""
                SELECT a.pseudonym FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
                JOIN responses r ON r.campaign_id = a.campaign_id AND r.annotator_id = a.id
                WHERE c.slug = :slug GROUP BY a.id, a.pseudonym ORDER BY count(*) DESC
            """)
            return list((await connection.execute(statement, {"slug": slug})).scalars())

    return asyncio.run(read())


def stored(url: str, slug: str) -> int:
    """How many answers annotators gave on pages."""

    async def read() -> int:
        async with engine_on(url) as engine, engine.connect() as connection:
            statement = text("""
                SELECT count(*) FROM responses r JOIN campaigns c ON c.id = r.campaign_id
                WHERE c.slug = :slug AND r.source <> 'import'
            """)
            return int((await connection.execute(statement, {"slug": slug})).scalar_one())

    return asyncio.run(read())


def measured(url: str, port: int, answers: int, rounds: int, **settings: str) -> None:
    """One line of the table."""
    task = asyncio.run(working(url, port, items=ITEMS, **settings))
    program = Program(port, task.bearer)
    results = results_file(answers, ITEMS, np.random.default_rng(1))
    program.ask("POST", f"/campaigns/{task.slug}/responses", results, "text/csv")
    calm: list[tuple[int, list[float]]] = []
    found: list[tuple[int, list[float]]] = []
    with working_meanwhile(calm, Task(**vars(task) | {"annotators": task.annotators[: AT_WORK * 4]})):
        time.sleep(5)
    others, revisions = pseudonyms(url, task.slug)[:rounds], []
    with working_meanwhile(found, Task(**vars(task) | {"annotators": task.annotators[AT_WORK * 4 :]})):
        for name in others:
            for action in ("exclude", "restore"):
                began = time.perf_counter()
                decide(program, task.slug, name, action)
                revisions.append(time.perf_counter() - began)
    acknowledged = calm[0][0] + found[0][0]
    lost = acknowledged - stored(url, task.slug)
    command = [sys.executable, "-m", "app.cli", "verify", task.slug]
    environment = os.environ | {"DATABASE_URL": url}
    clean = subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL).returncode == 0
    before, after = (1000 * np.percentile(took, [50, 99, 100]) for ((_, took),) in (calm, found))
    said = [" / ".join(f"{one:.0f}" for one in ms) for ms in (before, after)]
    print(
        f"| {answers:,} | {settings['update_law']} | {len(revisions)} | {np.median(revisions):.2f} s "
        f"| {said[0]} | {said[1]} | "
        f"{found[0][0]:,} | {lost} | {'clean' if clean else 'NOT CLEAN'} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--law", default="easl")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of an exclusion and a restoration each")
    parser.add_argument("--rules", default="off", help="the setting quality_preset")
    parser.add_argument("--port", type=int, default=8921)
    options = parser.parse_args()
    os.environ["EASEL_MAX_UPLOAD_MB"] = "256"
    with tempfile.TemporaryDirectory(prefix="easel-bench-") as directory, embedded.start(Path(directory)) as url:
        upgrade(url)
        with server(url, options.port, 1):
            print(
                "| answers before | law | decisions | each took | a request before, ms p50 / p99 / longest "
                "| meanwhile | answers meanwhile | lost | verify |"
            )
            print("|---|---|---|---|---|---|---|---|---|")
            for answers in options.answers:
                settings = {"update_law": options.law, "quality_preset": options.rules}
                measured(url, options.port, answers, options.rounds, **settings)


if __name__ == "__main__":
    main()
