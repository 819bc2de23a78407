"""Measure annotators' waits while others are excluded and restored.

Run `python -m benchmarks.exclusions [--answers 10000 ...]`.

One PostgreSQL and one server process run on this machine. 32 annotators, in another process, work through pages of a
campaign that already has answers from others. In calm turns they only work; in the other turns, a program excludes and
restores the other annotators, one after another. The table compares both kinds of turns by the longest request and the
longest time without any reply, because the machine may have other load. At the end, every acknowledged answer must be
stored, and `easel verify` must find no errors.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from multiprocessing.connection import Connection
from random import Random
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.record.revisions import block_writers_until_transaction_ends, switch_to_new_revision_from_same_answers
from benchmarks.large import ApiClient, create_campaign_without_end
from benchmarks.serving import (
    HIT_FIELD,
    HITS_PER_ANNOTATOR,
    SCORE_FIELD,
    HttpConnection,
    LoadTask,
    open_engine,
    run_server,
)
from benchmarks.temporary_database import run_temporary_database

WORKING_ANNOTATORS = 32
OTHER_ANNOTATORS = 100  # whose answers are stored before
THINKING_SECONDS = 0.25, 0.75
TURNS = 5
CALM_SECONDS = 5.0

INSERT_OTHER_ANNOTATORS = text("""
    INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
    SELECT :campaign, 'link', 'other' || k, 'other' || k, now() FROM generate_series(1, :others) AS k
""")
INSERT_OTHER_ASSIGNMENTS = text("""
    INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
    SELECT campaign_id, id, 'visit', '{}', now() FROM annotators
    WHERE campaign_id = :campaign AND worker_id LIKE 'other%'
""")
# Five items far from each other; all items are equally frequent.
INSERT_OTHER_HITS = text("""
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
INSERT_OTHER_RESPONSES = text("""
    INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at)
    SELECT campaign_id, id, annotator_id, 'import', items,
           ARRAY[floor(101 * random()), floor(101 * random()), floor(101 * random()), floor(101 * random()),
                 floor(101 * random())], now()
    FROM hits WHERE campaign_id = :campaign AND leader IS NULL ORDER BY id
""")
FIND_OTHER_PSEUDONYMS = text("""
    SELECT pseudonym FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
    WHERE c.slug = :slug AND a.worker_id LIKE 'other%' ORDER BY a.id
""")
COUNT_PAGE_ANSWERS = text("""
    SELECT count(*) FROM responses r JOIN campaigns c ON c.id = r.campaign_id
    WHERE c.slug = :slug AND r.source <> 'import'
""")


async def answer_hits_and_time_them(
    task: LoadTask, names: Sequence[str], rng: Random, should_stop: Callable[[], bool]
) -> list[tuple[float, float]]:
    """Answer HITs until told to stop, and return when each answer was acknowledged and its duration, in seconds."""
    acknowledged = []
    path, unused_tokens = f"/link/{task.link_key}", cycle(names)
    form_headers = "X-Easel: fetch\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    while not should_stop():
        http = HttpConnection(*await asyncio.open_connection("127.0.0.1", task.port))
        token = next(unused_tokens)
        html = await http.request("GET", f"{path}?{urlencode({'t': token})}")
        for _ in range(HITS_PER_ANNOTATOR):
            await asyncio.sleep(rng.uniform(*THINKING_SECONDS))
            if should_stop():
                break
            fields = {"token": token, "hit": HIT_FIELD.search(html)[1].decode()}  # type: ignore[index]  # fails loudly
            fields |= {f"score-{item.decode()}": 50 for item in SCORE_FIELD.findall(html)}
            start = time.perf_counter()
            html = await http.request("POST", path, urlencode(fields).encode(), form_headers)
            end = time.perf_counter()
            acknowledged.append((end, end - start))
        http.writer.close()
    return acknowledged


def work_until_message(pipe: Connection, task: LoadTask) -> None:
    """Let annotators work, in a new process, until a message arrives; then send the times of their answers."""

    async def work_together() -> list[list[tuple[float, float]]]:
        shares = [task.annotators[k::WORKING_ANNOTATORS] for k in range(WORKING_ANNOTATORS)]
        return await asyncio.gather(
            *(answer_hits_and_time_them(task, names, Random(k), pipe.poll) for k, names in enumerate(shares))
        )

    pipe.send("at work")
    answers_by_annotator = asyncio.run(work_together())
    pipe.send(np.array(sorted(answer for answers in answers_by_annotator for answer in answers)))


@dataclass
class WorkTimes:
    """Times of answers and of turns.

    Attributes:
        answers: Time of each acknowledgement and duration of the request, (A, 2).
        calm: Start and end of turns without decisions.
        deciding: Start and end of turns with decisions.
        decision_seconds: Seconds of each decision.

    """

    answers: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 2)))
    calm: list[tuple[float, float]] = field(default_factory=list)
    deciding: list[tuple[float, float]] = field(default_factory=list)
    decision_seconds: list[float] = field(default_factory=list)

    def format_waits(self, turns: Sequence[tuple[float, float]]) -> str:
        """Return the median and longest request, and the longest time without an answer, in these turns, in ms."""
        answers_by_turn = [
            self.answers[(self.answers[:, 0] >= start) & (self.answers[:, 0] < end)] for start, end in turns
        ]
        longest_silence = max(np.diff(turn_answers[:, 0]).max() for turn_answers in answers_by_turn)
        durations = np.concatenate(answers_by_turn)[:, 1]
        return f"{1000 * np.median(durations):.0f} / {1000 * durations.max():.0f} / {1000 * longest_silence:.0f}"


@contextmanager
def record_work_meanwhile(times: WorkTimes, task: LoadTask) -> Iterator[None]:
    """Let annotators work during a `with` block and record their answers."""
    own_end, worker_end = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=work_until_message, args=(worker_end, task))
    process.start()
    worker_end.close()
    own_end.recv()
    time.sleep(3)
    yield
    own_end.send("enough")
    times.answers = own_end.recv()
    process.join()


@contextmanager
def record_turn(turns: list[tuple[float, float]]) -> Iterator[None]:
    """Record the start and end of a `with` block."""
    start = time.perf_counter()
    yield
    turns.append((start, time.perf_counter()))


def post_decision(program: ApiClient, slug: str, name: str, action: str) -> None:
    """Exclude or restore an annotator."""
    body = json.dumps({"reason": "a benchmark"}).encode()
    program.request("POST", f"/campaigns/{slug}/annotators/{name}/{action}", body)


async def store_answers_of_others(url: str, slug: str, answers: int, items: int) -> list[str]:
    """Store answers of other annotators and update the posteriors, and return the annotators' pseudonyms."""
    async with open_engine(url) as engine:
        async with engine.begin() as connection:
            for name in ("seqscan", "hashjoin", "mergejoin"):
                await connection.execute(text(f"SET LOCAL enable_{name} = on"))
            campaign = await connection.scalar(text("SELECT id FROM campaigns WHERE slug = :slug"), {"slug": slug})
            parameters = {"campaign": campaign, "others": OTHER_ANNOTATORS, "answers": answers, "items": items}
            await block_writers_until_transaction_ends(connection, campaign)
            for statement in (
                INSERT_OTHER_ANNOTATORS,
                INSERT_OTHER_ASSIGNMENTS,
                INSERT_OTHER_HITS,
                INSERT_OTHER_RESPONSES,
            ):
                await connection.execute(statement, parameters)
            await switch_to_new_revision_from_same_answers(connection, campaign)
        async with engine.connect() as connection:
            await (await connection.execution_options(isolation_level="AUTOCOMMIT")).execute(text("VACUUM ANALYZE"))
            return list((await connection.execute(FIND_OTHER_PSEUDONYMS, {"slug": slug})).scalars())


async def count_page_answers(url: str, slug: str) -> int:
    """Return how many answers from pages are stored."""
    async with open_engine(url) as engine, engine.connect() as connection:
        return int((await connection.execute(COUNT_PAGE_ANSWERS, {"slug": slug})).scalar_one())


def run_turns(program: ApiClient, task: LoadTask, others: Sequence[str], rounds: int) -> WorkTimes:
    """Run turns with and without decisions while annotators work, and return the times."""
    times = WorkTimes()
    with record_work_meanwhile(times, task):
        for turn in range(TURNS):
            with record_turn(times.calm):
                time.sleep(CALM_SECONDS)
            with record_turn(times.deciding):
                for name in others[turn:rounds:TURNS]:
                    for action in ("exclude", "restore"):
                        start = time.perf_counter()
                        post_decision(program, task.slug, name, action)
                        times.decision_seconds.append(time.perf_counter() - start)
    return times


def measure_and_print_waits(
    url: str, port: int, answers: int, items: int, decision_rounds: int, **settings: str
) -> None:
    """Measure one campaign and print a table row."""
    task = asyncio.run(create_campaign_without_end(url, port, items=items, **settings))
    others = asyncio.run(store_answers_of_others(url, task.slug, answers, items))
    times = run_turns(ApiClient(port, task.bearer), task, others, decision_rounds)
    lost_answers = len(times.answers) - asyncio.run(count_page_answers(url, task.slug))
    command = [sys.executable, "-m", "app.cli", "verify", task.slug]
    environment = os.environ | {"DATABASE_URL": url}
    is_clean = subprocess.run(command, check=False, env=environment, stdout=subprocess.DEVNULL).returncode == 0
    print(
        f"| {answers:,} | {items:,} | {settings['update_law']} | {len(times.decision_seconds)} "
        f"| {np.median(times.decision_seconds):.2f} s | {times.format_waits(times.calm)} "
        f"| {times.format_waits(times.deciding)} | {len(times.answers):,} | {lost_answers} "
        f"| {'clean' if is_clean else 'NOT CLEAN'} |",
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
    with run_temporary_database() as database, run_server(database.url, options.port, 1):
        print(
            "| answers before | items | law | decisions | each took | calm: a request, ms p50 / longest / longest "
            "silence | while deciding | answers | lost | verify |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|")
        for answers in options.answers:
            settings = {"update_law": options.law, "quality_preset": options.rules}
            measure_and_print_waits(database.url, options.port, answers, options.items, options.rounds, **settings)


if __name__ == "__main__":
    main()
