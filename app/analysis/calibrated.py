"""The calibrated intervals of all items of a campaign, from every stored judgment."""

import asyncio
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.findings import rows_of
from app.database.bulk import numbers
from app.designs.slider import POINTS
from app.inference.law import Array
from app.inference.moderated import Moderated, moderated
from app.inference.tally import Tally

COLUMNS = ("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95")  # for programs
HITS_AT_ONCE = 50_000  # about 20 MB of numbers; kept of them is what `Tally` says

COUNT = text("SELECT count(*) FROM items WHERE campaign_id = :campaign")

# BETWEEN instead of =: so the order can only come from the index that has campaign and number.
JUDGMENTS = """
    SELECT r.seq, r.annotator_id, shown.number, shown.score FROM (
        SELECT seq, annotator_id, items, scores FROM responses
        WHERE campaign_id BETWEEN $1 AND $1 AND seq > $2 ORDER BY campaign_id, seq LIMIT $3
    ) r, unnest(r.items, r.scores) AS shown (number, score)
"""


def columns(of_some: Moderated) -> tuple[Array, ...]:
    """The `COLUMNS` of these items, NaN where there is nothing to say."""
    return of_some.mean, of_some.standard_error, *of_some.interval()


def cells(of_some: Moderated) -> list[tuple[Any, ...]]:
    """Each item's `COLUMNS`."""
    return rows_of(*columns(of_some))


async def intervals(connection: AsyncConnection, campaign_id: int) -> Moderated:
    """By item number, on 0 to 1; give it a `snapshot`. Time: some microseconds a judgment, in a thread."""
    tally = Tally.nothing((await connection.execute(COUNT, {"campaign": campaign_id})).scalar_one())
    last = 0
    while True:
        rows = await numbers(
            *(connection, JUDGMENTS, (campaign_id, last, HITS_AT_ONCE)), seq="i8", annotator="i8", item="i4", score="f8"
        )
        if not len(rows["seq"]):
            return await asyncio.to_thread(moderated, tally)
        order, last = np.argsort(rows["seq"], kind="stable"), int(rows["seq"].max())
        tally = await asyncio.to_thread(
            tally.after, rows["item"][order], rows["annotator"][order], rows["score"][order] / POINTS
        )
