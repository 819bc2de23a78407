"""Verify: all responses applied again from the priors must give every posterior, bit for bit."""

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import learned
from app.database.session import driver_of
from app.designs import slider
from app.errors import Conflict
from app.inference.annotator_aware_online import Learned
from app.inference.online import ONLINE, Replay

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

RESPONSES = text("SELECT seq, annotator_id, items, scores FROM responses WHERE campaign_id = :campaign ORDER BY seq")


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
    replay, judgments, count = await replayed(connection, campaign, stored)
    law, a, b = replay.law, replay.a, replay.b
    again = {"a": a, "b": b, "score": law.score(a, b), "variance": law.variance(a, b), "judgments": judgments}
    found = await asyncio.to_thread(differences, stored, again)
    if replay.learned is not None:
        found += await learned_otherwise(connection, campaign.id, replay.learned, stored.ids)
    return Verification(count, len(stored.ids), len(found), found[:MISMATCHES_SHOWN])


async def replayed(connection: AsyncConnection, campaign: Row[Any], stored: Row[Any]) -> tuple[Replay, Column, int]:
    """All responses applied, the judgments of each item, and how many responses these are."""
    a, b = np.array(stored.prior_a, float), np.array(stored.prior_b, float)
    replay = Replay(ONLINE[campaign.update_law], a, b, slider.parameters(campaign))
    judgments, count = np.zeros(len(a), int), 0
    result = await connection.stream(RESPONSES, {"campaign": campaign.id})
    async for chunk in result.partitions(RESPONSES_AT_ONCE):
        hits = [(row.items, [score / slider.POINTS for score in row.scores]) for row in chunk]
        try:
            await asyncio.to_thread(replay.take, hits, [row.annotator_id for row in chunk])
        except ValueError as problem:
            raise Conflict(
                f"Responses {chunk[0].seq} to {chunk[-1].seq} of “{campaign.name}” cannot be replayed: {problem}.",
                code="not_replayable",
            ) from problem
        np.add.at(judgments, [item for items, _ in hits for item in items], 1)
        count += len(chunk)
    return replay, judgments, count


def differences(stored: Row[Any], again: Mapping[str, Column]) -> list[Mismatch]:
    """Every stored number against the replayed one, by their bits; by item."""
    found: list[Mismatch] = []
    for column, values in again.items():
        kept = np.array(getattr(stored, column), values.dtype)
        found += [
            Mismatch(int(k), stored.ids[k], column, kept[k].item(), values[k].item())
            for k in np.flatnonzero(bits(kept) != bits(values))
        ]
    return sorted(found, key=lambda mismatch: mismatch.number)


async def learned_otherwise(
    connection: AsyncConnection, campaign_id: int, again: Learned, ids: Sequence[str]
) -> list[Mismatch]:
    """Where stored knowledge of annotators is not what the responses teach, each at the first number that differs."""
    driver = await driver_of(connection)
    expected: dict[learned.Kind, tuple[dict[int, list[float]], Callable[[int], str]]] = {
        "campaign": ({0: again.totals}, lambda _: "the campaign"),
        "item": ({number: state for number, state in enumerate(again.items) if state}, lambda number: ids[number]),
        "annotator": (again.annotators, lambda number: f"annotator {number}"),
    }
    found = []
    for kind, (states, name) in expected.items():
        kept = await learned.states(driver, campaign_id, kind)
        for number in sorted(kept.keys() | states.keys()):
            pairs = zip_longest(kept.get(number, []), states.get(number, []), fillvalue=math.nan)
            different = [pair for pair in pairs if pair[0] != pair[1]]
            if different:
                found.append(Mismatch(number, name(number), "learned", *different[0]))
    return found


def bits(values: Column) -> npt.NDArray[np.int64]:
    """Numbers by their bits, so that nothing is rounded away and a missing value equals nothing."""
    return np.ascontiguousarray(values).view(np.int64)
