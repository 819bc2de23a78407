"""Measure the cost of a new HIT by the number of open HITs in the campaign: `python -m benchmarks.open_hits`.

Everything runs in this process and its PostgreSQL, without HTTP. Other annotators hold 0, 1,000 or 7,000 open HITs. The
table shows milliseconds until a new annotator gets a HIT; the same when every item in an open HIT has enough judgments;
and milliseconds until a new annotator is told to wait because open HITs contain all items.
"""

import argparse
import asyncio
import time
from collections.abc import Iterator
from itertools import count

import numpy as np
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.annotation.hits import assignment, leases
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.assignments import find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.database import tables
from app.database.session import borrow_autocommit_driver
from benchmarks.serving import NOW, open_engine
from benchmarks.temporary_database import run_temporary_database

OPEN_HIT_COUNTS = (0, 1_000, 7_000)
ITEMS_PER_HIT = 5
ARRIVALS = 60

INSERT_OPEN_HITS = text("""
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


async def create_campaign_with_open_hits(
    engine: AsyncEngine, open_hits: int, *, free_items: int, judgments_per_item: int
) -> int:
    """Create a running campaign in which other annotators hold open HITs, and return its ID.

    Args:
        engine: Database.
        open_hits: Number of open HITs.
        free_items: Number of items that are in no open HIT.
        judgments_per_item: Judgments per item that the campaign wants.

    """
    settings = CampaignSettings(
        name="Open",
        question="How much?",
        items_per_hit=ITEMS_PER_HIT,
        judgments_per_item=judgments_per_item,
        repeat_items=True,
    )
    async with engine.begin() as connection:
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=NOW)
        rows = [
            {"campaign_id": campaign.id, "number": k, "external_id": str(k), "shown": f"item {k}", "fields": {}}
            for k in range(ITEMS_PER_HIT * open_hits + free_items)
        ]
        for start in range(0, len(rows), 5000):
            await connection.execute(insert(tables.items), rows[start : start + 5000])
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
        await connection.execute(INSERT_OPEN_HITS, {"campaign": campaign.id, "many": open_hits, "n": ITEMS_PER_HIT})
        return int(campaign.id)


async def measure_lease_milliseconds(
    engine: AsyncEngine, campaign: int, annotator_numbers: Iterator[int]
) -> list[float]:
    """Return the milliseconds that each new annotator waits for a HIT, without the first five, which fill caches."""
    cache, milliseconds = PosteriorCache(), []
    for _ in range(ARRIVALS):
        async with borrow_autocommit_driver(engine) as connection:
            arrival = Arrival(f"me {next(annotator_numbers)}", "visit")
            annotator = await find_or_create_assignment(connection, campaign, "link", arrival, now=NOW)
            start = time.perf_counter()
            await leases.find_or_lease_next_hit(connection, cache, assignment.AssignmentQuery(annotator), now=NOW)
            milliseconds.append(1000 * (time.perf_counter() - start))
    return milliseconds[5:]


async def print_lease_costs(url: str) -> None:
    """Print how long a new annotator waits, by number of open HITs."""
    print("| open HITs | a new HIT, median / 95 %, ms | held items full | told to wait |\n|---|---|---|---|")
    annotator_numbers = count()
    async with open_engine(url) as engine:
        for open_hits in OPEN_HIT_COUNTS:
            cells = []
            for free_items, judgments_per_item in (
                ((ITEMS_PER_HIT * ARRIVALS, 10), (ITEMS_PER_HIT * ARRIVALS, 1), (0, 1))
                if open_hits
                else ((ITEMS_PER_HIT * ARRIVALS, 10),)
            ):
                campaign = await create_campaign_with_open_hits(
                    engine, open_hits, free_items=free_items, judgments_per_item=judgments_per_item
                )
                median, percentile_95 = np.percentile(
                    await measure_lease_milliseconds(engine, campaign, annotator_numbers), (50, 95)
                )
                cells.append(f"{median:.1f} / {percentile_95:.1f}")
            print(f"| {open_hits:,} | {' | '.join(cells + [''] * (3 - len(cells)))} |", flush=True)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with run_temporary_database() as database:
        asyncio.run(print_lease_costs(database.url))


if __name__ == "__main__":
    main()
