"""Verify: all responses applied again from the priors must give every posterior, bit for bit."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs import slider
from app.errors import Conflict
from app.inference.online import ONLINE, replay

RESPONSES_AT_ONCE = 5_000
MISMATCHES_SHOWN = 20

Column = npt.NDArray[Any]

POSTERIORS = text("""
    SELECT coalesce(array_agg(coalesce(i.prior_a, :prior_a) ORDER BY number), '{}') AS prior_a,
           coalesce(array_agg(coalesce(i.prior_b, :prior_b) ORDER BY number), '{}') AS prior_b,
           coalesce(array_agg(i.external_id ORDER BY number), '{}') AS ids,
           coalesce(array_agg(p.a ORDER BY number), '{}') AS a,
           coalesce(array_agg(p.b ORDER BY number), '{}') AS b,
           coalesce(array_agg(p.score ORDER BY number), '{}') AS score,
           coalesce(array_agg(p.variance ORDER BY number), '{}') AS variance,
           coalesce(array_agg(coalesce(p.judgments, -1) ORDER BY number), '{}') AS judgments
    FROM items i LEFT JOIN posteriors p USING (campaign_id, number) WHERE campaign_id = :campaign
""")

RESPONSES = text("SELECT seq, items, scores FROM responses WHERE campaign_id = :campaign ORDER BY seq")


@dataclass(frozen=True)
class Mismatch:
    """One stored number that is not what the responses lead to."""

    number: int
    external_id: str
    column: str
    stored: float
    replayed: float


@dataclass(frozen=True)
class Verification:
    """How many responses and items were compared, the number of mismatches, and the first 20 of them."""

    responses: int
    items: int
    mismatch_count: int
    mismatches: list[Mismatch]

    @property
    def clean(self) -> bool:
        return self.mismatch_count == 0


async def verify(connection: AsyncConnection, campaign: Row[Any]) -> Verification:
    """Replay a launched campaign and compare. Give it a `snapshot`, so that answers may come in meanwhile.

    Raises `Conflict`: `not_launched`, and `not_replayable` if stored responses cannot be applied at all.
    """
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: there is nothing to verify yet.", code="not_launched")
    priors = {"prior_a": campaign.prior_a, "prior_b": campaign.prior_b}
    stored = (await connection.execute(POSTERIORS, {"campaign": campaign.id} | priors)).one()
    a, b, judgments, count = await replayed(connection, campaign, stored)
    law = ONLINE[campaign.update_law]
    again = {"a": a, "b": b, "score": law.score(a, b), "variance": law.variance(a, b), "judgments": judgments}
    return await asyncio.to_thread(compare, stored, again, count)


async def replayed(
    connection: AsyncConnection, campaign: Row[Any], stored: Row[Any]
) -> tuple[Column, Column, Column, int]:
    """Both parameters and the judgments of each item after all responses, and how many responses these are."""
    law, parameters = ONLINE[campaign.update_law], slider.parameters(campaign)
    a, b = np.array(stored.prior_a, float), np.array(stored.prior_b, float)
    judgments, count = np.zeros(len(a), int), 0
    result = await connection.stream(RESPONSES, {"campaign": campaign.id})
    async for chunk in result.partitions(RESPONSES_AT_ONCE):
        hits = [(row.items, [score / slider.POINTS for score in row.scores]) for row in chunk]
        try:
            a, b = await asyncio.to_thread(replay, law, a, b, hits, parameters)
        except ValueError as problem:
            raise Conflict(
                f"Responses {chunk[0].seq} to {chunk[-1].seq} of “{campaign.name}” cannot be replayed: {problem}.",
                code="not_replayable",
            ) from problem
        np.add.at(judgments, [item for items, _ in hits for item in items], 1)
        count += len(chunk)
    return a, b, judgments, count


def compare(stored: Row[Any], again: Mapping[str, Column], responses: int) -> Verification:
    """Every stored number against the replayed one, by their bits."""
    found: list[Mismatch] = []
    total = 0
    for column, values in again.items():
        kept = np.array(getattr(stored, column), values.dtype)
        different = np.flatnonzero(bits(kept) != bits(values))
        total += len(different)
        found += [
            Mismatch(int(k), stored.ids[k], column, kept[k].item(), values[k].item())
            for k in different[:MISMATCHES_SHOWN]
        ]
    found.sort(key=lambda mismatch: mismatch.number)
    return Verification(responses, len(stored.ids), total, found[:MISMATCHES_SHOWN])


def bits(values: Column) -> npt.NDArray[np.int64]:
    """Numbers by their bits, so that nothing is rounded away and a missing value equals nothing."""
    return np.ascontiguousarray(values).view(np.int64)
