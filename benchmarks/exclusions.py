"""Annotators at work while others are excluded and restored: `python -m benchmarks.exclusions [--answers 10000 ...]`.

One PostgreSQL and one server process on this machine's cores. 32 annotators work through pages, in a process of their
own, in a campaign that has so many answers already; in turns, nothing is decided, and a program excludes and restores
some of those whose answers these are, one after another. Two figures say how far serving stopped: the longest request
of an annotator, and the longest time in which none of them was answered; both beside those of the turns in which
nothing was decided, since the machine has others to serve. At the end every answer that was acknowledged must be there,
and `easel verify` clean.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database import embedded
from app.database.migrate import upgrade_schema
from app.record.revisions import block_writers_until_transaction_ends, rebuild_present_revision
from benchmarks.large import Program, working
from benchmarks.serving import HIT, HITS_EACH, SCORE, Http, Task, engine_on, server

AT_WORK = 32
OTHERS = 100  # annotators whose answers are there already
THINKING_SECONDS = 0.25, 0.75
TURNS = 5
CALM_SECONDS = 5.0

ANNOTATORS = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT :campaign, 'link', 'other' || k, 'other' || k, now() FROM generate_series(1, :others) AS k
""")
ASSIGNMENTS = text("""
    INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
    SELECT campaign_id, id, 'visit', '{}', now() FROM annotators
    WHERE campaign_id = :campaign AND worker_id LIKE 'other%'
""")
# Five items that lie far from each other, each as often as all others.
HITS = text("""
    INSERT INTO hits (campaign_id, annotator_id, assignment_id, items, issued_at, expires_at, closed_at)
    SELECT :campaign, of[1 + k % :others], assignments[1 + k % :others],
           ARRAY[5 * k * 7919 % :items, (5 * k + 1) * 7919 % :items, (5 * k + 2) * 7919 % :items,
                 (5 * k + 3) * 7919 % :items, (5 * k + 4) * 7919 % :items], now(), now(), now()
    FROM generate_series(CAST(0 AS bigint), CAST(:answers - 1 AS bigint)) AS k,
         (SELECT array_agg(annotator_id ORDER BY id) AS of, array_agg(id ORDER BY id) AS assignments
          FROM assignments WHERE campaign_id = :campaign AND external_id = 'visit'
          AND annotator_id IN (SELECT id FROM annotators WHERE campaign_id = :campaign AND worker_id LIKE 'other%')
         ) AS everybody
""")
RESPONSES = text("""
    INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at)
    SELECT campaign_id, id, annotator_id, 'import', items,
           ARRAY[floor(101 * random()), floor(101 * random()), floor(101 * random()), floor(101 * random()),
                 floor(101 * random())], now()
    FROM hits WHERE campaign_id = :campaign AND leader IS NULL ORDER BY id
""")
OTHERS_NAMED = text("""
    SELECT pseudonym FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
    WHERE c.slug = :slug AND a.worker_id LIKE 'other%' ORDER BY a.id
""")
STORED = text("""
    SELECT count(*) FROM responses r JOIN campaigns c ON c.id = r.campaign_id
    WHERE c.slug = :slug AND r.source <> 'import'
""")


async def at_work(
    task: Task, names: Sequence[str], rng: Random, until: Callable[[], bool]
) -> list[tuple[float, float]]:
    """When each answer of an annotator was acknowledged, and how long that took, in seconds."""
    acknowledged = []
    path, waiting = f"/link/{task.link_key}", cycle(names)
    kind = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    while not until():
        http = Http(*await asyncio.open_connection("127.0.0.1", task.port))
        token = next(waiting)
        html = await http.call("GET", f"{path}?{urlencode({'t': token})}")
        for _ in range(HITS_EACH):
            await asyncio.sleep(rng.uniform(*THINKING_SECONDS))
            if until():
                break
            fields = {"token": token, "hit": HIT.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
            fields |= {f"score-{item.decode()}": 50 for item in SCORE.findall(html)}
            began = time.perf_counter()
            html = await http.call("POST", path, urlencode(fields).encode(), kind)
            ended = time.perf_counter()
            acknowledged.append((ended, ended - began))
        http.writer.close()
    return acknowledged


def everybody_at_work(told: Connection, task: Task) -> None:
    """In another process: annotators work until something is told; then what came of it is."""

    async def everyone() -> list[list[tuple[float, float]]]:
        shares = [task.annotators[k::AT_WORK] for k in range(AT_WORK)]
        return await asyncio.gather(*(at_work(task, names, Random(k), told.poll) for k, names in enumerate(shares)))

    told.send("at work")
    found = asyncio.run(everyone())
    told.send(np.array(sorted(one for share in found for one in share)))


@dataclass
class Course:
    """Times of acknowledged answers and their durations, (A, 2), and the times of the turns."""

    answers: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    calm: list[tuple[float, float]] = field(default_factory=list)
    deciding: list[tuple[float, float]] = field(default_factory=list)
    took: list[float] = field(default_factory=list)

    def waits(self, turns: Sequence[tuple[float, float]]) -> str:
        """Median and longest duration of answers in these turns, and the longest time without one, in ms."""
        those = [self.answers[(self.answers[:, 0] >= began) & (self.answers[:, 0] < ended)] for began, ended in turns]
        silent = max(np.diff(one[:, 0]).max() for one in those)
        took = np.concatenate(those)[:, 1]
        return f"{1000 * np.median(took):.0f} / {1000 * took.max():.0f} / {1000 * silent:.0f}"


@contextmanager
def working_meanwhile(course: Course, task: Task) -> Iterator[None]:
    """Annotators work meanwhile; then the course has their answers."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=everybody_at_work, args=(there, task))
    process.start()
    there.close()
    here.recv()
    time.sleep(3)
    yield
    here.send("enough")
    course.answers = here.recv()
    process.join()


@contextmanager
def timed(turns: list[tuple[float, float]]) -> Iterator[None]:
    began = time.perf_counter()
    yield
    turns.append((began, time.perf_counter()))


def decide(program: Program, slug: str, name: str, action: str) -> None:
    body = json.dumps({"reason": "a benchmark"}).encode()
    program.ask("POST", f"/campaigns/{slug}/annotators/{name}/{action}", body)


async def answered(url: str, slug: str, answers: int, items: int) -> list[str]:
    """Store so many answers of others, and what follows from them; their pseudonyms."""
    async with engine_on(url) as engine:
        async with engine.begin() as connection:
            for name in ("seqscan", "hashjoin", "mergejoin"):
                await connection.execute(text(f"SET LOCAL enable_{name} = on"))
            campaign = await connection.scalar(text("SELECT id FROM campaigns WHERE slug = :slug"), {"slug": slug})
            given = {"campaign": campaign, "others": OTHERS, "answers": answers, "items": items}
            await block_writers_until_transaction_ends(connection, campaign)
            for statement in (ANNOTATORS, ASSIGNMENTS, HITS, RESPONSES):
                await connection.execute(statement, given)
            await rebuild_present_revision(connection, campaign)
        async with engine.connect() as connection:
            await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(text("VACUUM ANALYZE"))
            return list((await connection.execute(OTHERS_NAMED, {"slug": slug})).scalars())


async def stored(url: str, slug: str) -> int:
    """How many answers annotators gave on pages."""
    async with engine_on(url) as engine, engine.connect() as connection:
        return int((await connection.execute(STORED, {"slug": slug})).scalar_one())


def taken(program: Program, task: Task, others: Sequence[str], rounds: int) -> Course:
    """Turns without and with decisions, while annotators work."""
    course = Course()
    with working_meanwhile(course, task):
        for turn in range(TURNS):
            with timed(course.calm):
                time.sleep(CALM_SECONDS)
            with timed(course.deciding):
                for name in others[turn:rounds:TURNS]:
                    for action in ("exclude", "restore"):
                        began = time.perf_counter()
                        decide(program, task.slug, name, action)
                        course.took.append(time.perf_counter() - began)
    return course


def measured(url: str, port: int, answers: int, items: int, rounds: int, **settings: str) -> None:
    """One line of the table."""
    task = asyncio.run(working(url, port, items=items, **settings))
    others = asyncio.run(answered(url, task.slug, answers, items))
    course = taken(Program(port, task.bearer), task, others, rounds)
    lost = len(course.answers) - asyncio.run(stored(url, task.slug))
    command = [sys.executable, "-m", "app.cli", "verify", task.slug]
    environment = os.environ | {"DATABASE_URL": url}
    clean = subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL).returncode == 0
    print(
        f"| {answers:,} | {items:,} | {settings['update_law']} | {len(course.took)} | {np.median(course.took):.2f} s "
        f"| {course.waits(course.calm)} | {course.waits(course.deciding)} | {len(course.answers):,} | {lost} "
        f"| {'clean' if clean else 'NOT CLEAN'} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answers", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--law", default="easl")
    parser.add_argument("--rounds", type=int, default=10, help="of an exclusion and a restoration each")
    parser.add_argument("--rules", default="off", help="the setting quality_preset")
    parser.add_argument("--port", type=int, default=8921)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        with server(url, options.port, 1):
            print(
                "| answers before | items | law | decisions | each took | calm: a request, ms p50 / longest / longest "
                "silence | while deciding | answers | lost | verify |"
            )
            print("|---|---|---|---|---|---|---|---|---|---|")
            for answers in options.answers:
                settings = {"update_law": options.law, "quality_preset": options.rules}
                measured(url, options.port, answers, options.items, options.rounds, **settings)


if __name__ == "__main__":
    main()
