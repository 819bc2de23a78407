"""Cost of a new HIT by the number of open HITs of the campaign: `python -m benchmarks.open_hits`.

In this process and its PostgreSQL, without HTTP: milliseconds until somebody who has just arrived holds a HIT, where
others hold 0, 1,000 and 7,000 HITs; the same where no item that is held may be asked again; and until somebody is told
to wait, because these are all items.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits import assignment, leases
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.assignments import find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import embedded, tables
from app.database.migrate import upgrade_schema
from app.database.session import borrow_autocommit_driver
from benchmarks.serving import NOW, engine_on

OPEN = (0, 1_000, 7_000)
N = 5
ASKED = 60

OTHERS = text("""
    WITH people AS (
        INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
        SELECT :campaign, 'link', 'other ' || k, k, now() FROM generate_series(1, CAST(:many AS int)) AS k RETURNING id
    ), visits AS (
        INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
        SELECT :campaign, id, 'visit', '{}', now() FROM people RETURNING id, annotator_id
    ), numbered AS (SELECT *, :n * (row_number() OVER () - 1) AS first FROM visits)
    INSERT INTO hits (campaign_id, annotator_id, assignment_id, leader, items, issued_at, expires_at)
    SELECT :campaign, annotator_id, id, first, ARRAY(SELECT generate_series(first, first + :n - 1)), now(),
           now() + interval '1 day' FROM numbered
""")


async def campaign_with(engine: AsyncEngine, open_hits: int, *, free: int, judgments: int) -> int:
    """A campaign of so many judgments per item, whose items others hold but for so many."""
    settings = CampaignSettings(name="Open", question="How much?", items_per_hit=N, judgments_per_item=judgments)
    async with engine.begin() as connection:
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=NOW)
        rows = [
            {"campaign_id": campaign.id, "number": k, "external_id": str(k), "shown": f"item {k}", "fields": {}}
            for k in range(N * open_hits + free)
        ]
        for start in range(0, len(rows), 5000):
            await connection.execute(insert(tables.items), rows[start : start + 5000])
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
        await connection.execute(OTHERS, {"campaign": campaign.id, "many": open_hits, "n": N})
        return int(campaign.id)


async def asked(engine: AsyncEngine, campaign: int, names: Iterator[int]) -> list[float]:
    """Milliseconds of each who asks, the first few left out: these find nothing in memory."""
    cache, times = PosteriorCache(), []
    for _ in range(ASKED):
        async with borrow_autocommit_driver(engine) as connection:
            arrival = Arrival(f"me {next(names)}", "visit")
            me = await find_or_create_assignment(connection, campaign, "link", arrival, now=NOW)
            began = time.perf_counter()
            await leases.find_or_lease_next_hit(connection, cache, assignment.AssignmentQuery(me), now=NOW)
            times.append(1000 * (time.perf_counter() - began))
    return times[5:]


async def measure(url: str) -> None:
    print("| open HITs | a new HIT, median / 95 %, ms | held items full | told to wait |\n|---|---|---|---|")
    names = count()
    async with engine_on(url) as engine:
        for open_hits in OPEN:
            cells = []
            for free, judgments in ((N * ASKED, 10), (N * ASKED, 1), (0, 1)) if open_hits else ((N * ASKED, 10),):
                campaign = await campaign_with(engine, open_hits, free=free, judgments=judgments)
                median, most = np.percentile(await asked(engine, campaign, names), (50, 95))
                cells.append(f"{median:.1f} / {most:.1f}")
            print(f"| {open_hits:,} | {' | '.join(cells + [''] * (3 - len(cells)))} |", flush=True)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="easel-bench-") as directory,
        embedded.run_postgres_and_yield_url(Path(directory)) as url,
    ):
        upgrade_schema(url)
        asyncio.run(measure(url))


if __name__ == "__main__":
    main()
