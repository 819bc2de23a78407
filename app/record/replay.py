"""Verify: all responses applied again from the priors must give every posterior, bit for bit."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, numbers
from app.database.session import driver_of
from app.designs.registry import design_of
from app.errors import Conflict
from app.inference.online.annotator_aware_learned import Learned
from app.inference.online.laws import Replay
from app.record import states, stream
from app.record.law import law_of, parameters_of
from app.record.states import Revision

RESPONSES_AT_ONCE = 5_000
MISMATCHES_SHOWN = 20

POSTERIORS = """
    SELECT coalesce(p.a, 'NaN'), coalesce(p.b, 'NaN'),
           coalesce(p.score, 'NaN'), coalesce(p.variance, 'NaN'), coalesce(p.judgments, -1)
    FROM priors LEFT JOIN current_posteriors p USING (campaign_id, number) WHERE campaign_id = $1 ORDER BY number
"""

PRIORS = "SELECT a, b FROM priors WHERE campaign_id = $1 ORDER BY number"

IDS = text("""
    SELECT number, external_id FROM items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[])) ORDER BY number
""")

States = Mapping[states.Kind, Mapping[int, Sequence[Any]]]
"""What is known, by kind and number: lists of floats, two of them of an item."""


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
    kinds = dict.fromkeys(("a", "b", "score", "variance"), "f8") | {"judgments": "i4"}
    stored = await numbers(connection, POSTERIORS, (campaign.id,), **kinds)
    replay, judgments, responses = await applied(connection, campaign)
    law, a, b = replay.law, replay.a, replay.b
    again = {"a": a, "b": b, "score": law.score(a, b), "variance": law.variance(a, b), "judgments": judgments}
    count, found = await asyncio.to_thread(differences, stored, again)
    ids = await ids_of(connection, campaign.id, [number for number, *_ in found])
    mismatches = [Mismatch(number, ids[number], column, kept, replayed) for number, column, kept, replayed in found]
    if replay.learned is not None:
        otherwise = await learned_otherwise(connection, Revision.present(campaign), replay.learned)
        count, mismatches = count + len(otherwise), mismatches + otherwise
    return Verification(responses, len(judgments), count, mismatches[:MISMATCHES_SHOWN])


async def ids_of(connection: AsyncConnection, campaign_id: int, items: Sequence[int]) -> dict[int, str]:
    rows = await connection.execute(IDS, {"campaign": campaign_id, "numbers": items})
    return {row.number: row.external_id for row in rows}


async def applied(
    connection: AsyncConnection, campaign: Row[Any], *, decided: int | None = None
) -> tuple[Replay, Numbers, int]:
    """All responses that count applied to the priors, the judgments of each item, and how many responses these are.

    decided: as in `stream.responses`.
    """
    priors = await numbers(connection, PRIORS, (campaign.id,), a="f8", b="f8")
    replay = Replay(law_of(campaign), priors["a"], priors["b"], parameters_of(campaign))
    if replay.learned is not None:
        driver = await driver_of(connection)
        replay.learned = replay.learned.begun_like(await states.present_of_campaign(driver, campaign.id))
    judgments, count, design = np.zeros(len(replay.a), np.int32), 0, design_of(campaign)
    async for chunk in stream.in_pieces(connection, campaign.id, RESPONSES_AT_ONCE, decided=decided):
        hits = [response.hit(design) for response in chunk]
        try:
            await asyncio.to_thread(replay.take, hits, [response.annotator for response in chunk])
        except ValueError as problem:
            raise Conflict(
                f"Responses {chunk[0].seq} to {chunk[-1].seq} of “{campaign.name}” cannot be replayed: {problem}.",
                code="not_replayable",
            ) from problem
        np.add.at(judgments, [item for items, _ in hits for item in items], 1)
        count += len(chunk)
    return replay, judgments, count


def differences(
    stored: Mapping[str, Numbers], again: Mapping[str, Numbers]
) -> tuple[int, list[tuple[int, str, float, float]]]:
    """Every stored number against the replayed one, by their bits: how many differ, and the first of them by item, as
    (number, column, stored, replayed).
    """
    count, found = 0, []
    for column, values in again.items():
        different = np.flatnonzero(bits(stored[column]) != bits(values))
        count += len(different)
        found += [(int(k), column, stored[column][k].item(), values[k].item()) for k in different[:MISMATCHES_SHOWN]]
    return count, sorted(found, key=lambda mismatch: mismatch[0])[:MISMATCHES_SHOWN]


async def learned_otherwise(connection: AsyncConnection, of: Revision, again: Learned) -> list[Mismatch]:
    """Where stored knowledge of annotators is not what the responses teach, each at the first number that differs."""
    driver = await driver_of(connection)
    kept: States = {
        "campaign": {0: await states.of_campaign(driver, of)},
        "item": await states.all_items(driver, of),
        "annotator": await states.states(driver, of, "annotator"),
    }
    found = await asyncio.to_thread(states_otherwise, kept, again)
    ids = await ids_of(connection, of.campaign, [number for kind, number, _ in found if kind == "item"])
    names: dict[states.Kind, Callable[[int], str]] = {
        "campaign": lambda _: "the campaign",
        "item": ids.__getitem__,
        "annotator": "annotator {}".format,
    }
    return [Mismatch(number, names[kind](number), "learned", *pair) for kind, number, pair in found]


def states_otherwise(kept: States, again: Learned) -> list[tuple[states.Kind, int, tuple[float, float]]]:
    """The states that differ: kind, number, and the first two floats that do, as stored and replayed."""
    expected: States = {
        "campaign": {0: again.totals},
        "item": {
            number: (item.since, np.empty(0) if item.looked is None else item.looked)
            for number, item in enumerate(again.items)
            if item.judgments
        },
        "annotator": again.annotators,
    }
    return [
        (kind, number, pair)
        for kind, known in expected.items()
        for number in sorted(kept[kind].keys() | known.keys())
        if (pair := first_difference(kept[kind].get(number, ()), known.get(number, ())))
    ]


def first_difference(stored: Any, replayed: Any) -> tuple[float, float] | None:
    """Of two lists of floats, or two of lists; NaN where one has ended, and NaN is no difference to NaN."""
    one, other = np.hstack([(), *stored]), np.hstack([(), *replayed])
    pairs = np.full((2, max(len(one), len(other))), np.nan)
    pairs[0, : len(one)], pairs[1, : len(other)] = one, other
    different = np.flatnonzero((pairs[0] != pairs[1]) & ~np.isnan(pairs).all(axis=0))
    return (float(pairs[0, different[0]]), float(pairs[1, different[0]])) if len(different) else None


def bits(values: Numbers) -> Numbers:
    """Numbers by their bits, so that nothing is rounded away and a missing value equals nothing."""
    return np.ascontiguousarray(values).view(f"i{values.itemsize}")
