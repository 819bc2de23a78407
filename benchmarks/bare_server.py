"""Measure the bound of the server stack: `python -m benchmarks.bare_server`.

Two processes of FastAPI on uvicorn run nothing but the writes of `benchmarks.pgbench`, through asyncpg, and
reply with a page as large as Easel's. The load generator and the machine are those of `benchmarks.serving`.

`each statement` sends the statements of pgbench one by one, in two transactions. `one statement` calls a function of
the database that runs all of them: the least that can be sent without batches. `batches` gathers the requests that wait
in a process in Easel's queue, and calls a function that makes the writes of all of them: the least that a server of
this stack can do for an answer.
"""

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import asyncpg
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from sqlalchemy import make_url

from app.database.batch_queue import BatchQueue
from app.database.session import Driver, ServingConnections, create_engine
from benchmarks.pgbench import run_pgbench
from benchmarks.processes import ProcessGroup
from benchmarks.serving import (
    LoadTask,
    MeasuredProcesses,
    create_load_task,
    measure_task,
    wait_until_server_answers,
)
from benchmarks.temporary_database import run_temporary_database

SETTINGS = "EASEL_BENCHMARK_BARE_SERVER"  # environment variable of the server's processes, JSON
PAGE_BYTES = 9_400  # of a page with a HIT of Easel, uncompressed
CONNECTIONS_PER_PROCESS = 8
RETURNS_OF_ANNOTATORS = 20  # this server does not look who answers
ITEMS_PER_HIT = 5
WAYS = ("each statement", "one statement", "batches")

LOCK_ITEMS = """
    SELECT subject FROM posteriors
    WHERE campaign_id = $1 AND revision = 0 AND criterion = 0 AND subject BETWEEN $2 AND $2 + 4
    ORDER BY subject FOR NO KEY UPDATE"""
INSERT_HIT = """
    INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at, closed_at)
    VALUES ($1, $2, $3, $4, ARRAY[$4, $4+1, $4+2, $4+3, $4+4], now(), now(), now()) RETURNING id"""
CLOSE_HIT = "UPDATE hits SET closed_at = now() WHERE campaign_id = $1 AND id = $2"
INSERT_RESPONSE = """
    INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at)
    VALUES ($1, $2, $3, 'bench', ARRAY[$4, $4+1, $4+2, $4+3, $4+4], ARRAY[1, 2, 3, 4, 5], now())"""
UPDATE_POSTERIORS = """
    UPDATE posteriors SET state[1] = state[1] + 0.5, judgments = judgments + 1
    WHERE campaign_id = $1 AND revision = 0 AND criterion = 0 AND subject BETWEEN $2 AND $2 + 4"""
BARE_WRITES_FUNCTION = f"""
    CREATE FUNCTION bare_writes(campaign bigint, annotator bigint, assignment bigint, item int) RETURNS bigint
    LANGUAGE plpgsql AS $$
    DECLARE
        hit bigint;
    BEGIN
        PERFORM FROM ({LOCK_ITEMS.replace("$2", "$4")}) AS locked;
        {INSERT_HIT} INTO hit;
        {CLOSE_HIT.replace("$2", "hit")};
        {INSERT_RESPONSE.replace("$2", "hit").replace("$3", "$2")};
        {UPDATE_POSTERIORS.replace("$2", "$4")};
        RETURN hit;
    END $$
"""
# The same for several answers at once. Places with the same items follow each other, as the answers of a batch do.
BATCH_OF_BARE_WRITES_FUNCTION = """
    CREATE FUNCTION batch_of_bare_writes(campaign bigint, annotator bigint, assignment bigint, first_items int[])
    RETURNS bigint[] LANGUAGE plpgsql AS $$
    DECLARE
        new_hits bigint[];
    BEGIN
        PERFORM FROM (
            SELECT subject FROM posteriors
            WHERE campaign_id = campaign AND revision = 0 AND criterion = 0 AND subject = ANY (ARRAY(
                SELECT first + place FROM unnest(first_items) AS first, generate_series(0, 4) AS place))
            ORDER BY subject FOR NO KEY UPDATE
        ) AS locked;
        WITH leased AS (
            INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at, closed_at)
            SELECT campaign, annotator, assignment, first, ARRAY[first, first+1, first+2, first+3, first+4],
                   now(), now(), now()
            FROM unnest(first_items) AS first RETURNING id
        )
        SELECT array_agg(id) INTO new_hits FROM leased;
        UPDATE hits SET closed_at = now() WHERE campaign_id = campaign AND id = ANY (new_hits);
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, received_at)
        SELECT campaign, hit, annotator, 'bench', ARRAY[first, first+1, first+2, first+3, first+4],
               ARRAY[1, 2, 3, 4, 5], now()
        FROM unnest(new_hits, first_items) AS answered (hit, first);
        UPDATE posteriors p SET state[1] = state[1] + 0.5 * answered.answers, judgments = judgments + answered.answers
        FROM (
            SELECT first + place AS item, CAST(count(*) AS int) AS answers
            FROM unnest(first_items) AS first, generate_series(0, 4) AS place GROUP BY item
        ) AS answered
        WHERE p.campaign_id = campaign AND p.revision = 0 AND p.criterion = 0 AND p.subject = answered.item;
        RETURN new_hits;
    END $$
"""


@dataclass
class BareWrites:
    """Writes of answers to HITs whose first items are given, in one of the WAYS; each returns the new HIT.

    Attributes:
        way: One of the WAYS.
        campaign: Id of the campaign.
        annotator: Id of the annotator of all HITs.
        assignment: Id of the annotator's assignment.
        pool: Connections for answers that are stored alone.
        connections: Connections for answers that are stored together.

    """

    way: str
    campaign: int
    annotator: int
    assignment: int
    pool: "asyncpg.Pool[asyncpg.Record]"
    connections: ServingConnections

    @cached_property
    def queue(self) -> BatchQueue[int, int]:
        """Queue of answers that are stored together."""
        return BatchQueue(self.connections, self.write_batch)

    async def write(self, item: int) -> int:
        if self.way == "batches":
            return await self.queue.submit_and_await_reply(self.campaign, item)
        async with self.pool.acquire() as connection:
            if self.way == "each statement":
                return await self.write_each_statement(connection, item)
            hit: int = await connection.fetchval(
                "SELECT bare_writes($1, $2, $3, $4)", self.campaign, self.annotator, self.assignment, item
            )
            return hit

    async def write_each_statement(self, connection: Any, item: int) -> int:
        async with connection.transaction():
            await connection.fetch(LOCK_ITEMS, self.campaign, item)
            hit: int = await connection.fetchval(INSERT_HIT, self.campaign, self.annotator, self.assignment, item)
        async with connection.transaction():
            await connection.execute(CLOSE_HIT, self.campaign, hit)
            await connection.fetch(LOCK_ITEMS, self.campaign, item)
            await connection.execute(INSERT_RESPONSE, self.campaign, hit, self.annotator, item)
            await connection.execute(UPDATE_POSTERIORS, self.campaign, item)
        return hit

    async def write_batch(self, connection: Driver, campaign_id: int, items: Sequence[int]) -> list[int]:
        rows = await connection.fetch(
            "SELECT batch_of_bare_writes($1, $2, $3, $4) AS hits",
            campaign_id,
            self.annotator,
            self.assignment,
            [*items],
        )
        hits: list[int] = rows[0]["hits"]
        return hits


def create_app() -> FastAPI:
    """Return the application of one process."""
    settings = json.loads(os.environ[SETTINGS])
    campaign, annotator, assignment, items = settings["numbers"]
    padding = "<p>" + "x" * PAGE_BYTES
    fields = "".join(f'<input name="score-{item:02d}">' for item in range(ITEMS_PER_HIT))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        engine = create_engine(settings["url"], pool_size=CONNECTIONS_PER_PROCESS)
        connections = ServingConnections(engine, CONNECTIONS_PER_PROCESS)
        async with asyncpg.create_pool(**settings["address"], min_size=1, max_size=CONNECTIONS_PER_PROCESS) as pool:
            app.state.writes = BareWrites(settings["way"], campaign, annotator, assignment, pool, connections)
            yield
        await connections.close()
        await engine.dispose()

    app = FastAPI(lifespan=lifespan)

    @app.get("/ready")
    async def ready() -> str:
        return "ready"

    @app.get("/link/{key}", response_class=HTMLResponse)
    async def first_page(key: str) -> str:  # noqa: ARG001  (the load generator sends it)
        return f'<input name="hit" value="1">{fields}{padding}'

    @app.post("/link/{key}", response_class=HTMLResponse)
    async def answer(key: str, request: Request) -> str:  # noqa: ARG001  (the load generator sends it)
        await request.form()
        hit = await app.state.writes.write(random.randrange(items - ITEMS_PER_HIT))
        return f'<input name="hit" value="{hit}">{fields}{padding}'

    return app


@contextmanager
def run_bare_server(settings: dict[str, Any], port: int, workers: int) -> Iterator[ProcessGroup]:
    """Run the bare server during a `with` block, and yield its processes."""
    command = [sys.executable, "-m", "uvicorn", "benchmarks.bare_server:create_app", "--factory", "--no-access-log"]
    command += ["--log-level", "warning", "--loop", "uvloop", "--http", "httptools"]
    command += ["--port", str(port), "--workers", str(workers)]
    process = subprocess.Popen(command, env=os.environ | {SETTINGS: json.dumps(settings)})
    try:
        for _ in range(10 * workers):  # enough that each worker has answered; connections are spread randomly
            wait_until_server_answers(port, process)
        yield ProcessGroup(process.pid)
    finally:
        process.terminate()
        process.wait(20)


async def load_numbers(address: dict[str, Any], task: LoadTask) -> list[int]:
    """Return the ids of the campaign, an annotator and an assignment, and the number of items."""
    connection = await asyncpg.connect(**address)
    row = await connection.fetchrow(
        "SELECT c.id, a.id, s.id, (SELECT count(*) FROM items WHERE campaign_id = c.id) FROM campaigns c "
        "JOIN annotators a ON a.campaign_id = c.id JOIN assignments s ON s.annotator_id = a.id "
        "WHERE c.slug = $1 LIMIT 1",
        task.slug,
    )
    await connection.close()
    return list(row)


async def create_bare_writes_functions(address: dict[str, Any]) -> None:
    connection = await asyncpg.connect(**address)
    await connection.execute(BARE_WRITES_FUNCTION)
    await connection.execute(BATCH_OF_BARE_WRITES_FUNCTION)
    await connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0, help="length of each measurement")
    parser.add_argument("--workers", type=int, default=2, help="processes of the server")
    parser.add_argument("--port", type=int, default=8918)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 32])
    options = parser.parse_args()
    print("| way | clients | pairs/s | share of pgbench | p50 / p95 ms | CPU ms of server / PostgreSQL |")
    print("|---|---|---|---|---|---|")
    with run_temporary_database() as database:
        url = make_url(database.url)
        address: dict[str, Any] = {
            "host": str(url.query["host"]),
            "user": str(url.username),
            "database": str(url.database),
        }
        asyncio.run(create_bare_writes_functions(address))
        for clients in options.clients:
            size = {"items": options.items, "way": "page", "clients": clients, "seconds": options.seconds}
            task = asyncio.run(create_load_task(database.url, options.port, **size))
            task = replace(task, annotators=task.annotators * RETURNS_OF_ANNOTATORS)
            pgbench_rate = run_pgbench(database.url, task.slug, clients, min(options.seconds, 5))
            print(f"| pgbench | {clients} | {pgbench_rate:.0f} | 1 | | |", flush=True)
            for way in WAYS:
                numbers = asyncio.run(load_numbers(address, task))
                settings = {"url": database.url, "address": address, "way": way, "numbers": numbers}
                with run_bare_server(settings, options.port, options.workers) as server:
                    processes = MeasuredProcesses(server, database.find_processes())
                    measured = measure_task(task, processes)
                share, times = measured.pairs_per_second / pgbench_rate, measured.format_submit_times()
                print(
                    f"| {way} | {clients} | {measured.pairs_per_second:.0f} | {share:.2f} | {times} "
                    f"| {measured.format_processor_times()} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
