"""Verify: all responses applied again from the priors must give every posterior, bit for bit."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, numbers
from app.database.session import driver_of
from app.designs.criteria import criteria_of, number_of
from app.errors import Conflict
from app.inference.online.law import Beliefs, Kept, Law
from app.record import states, stream, unjudged
from app.record.law import hits_of, law_of, parameters_of
from app.record.states import Revision

RESPONSES_AT_ONCE = 5_000
# Difference, relative and near 0 absolute, up to which two numbers are the same but for rounding. Other arithmetic, of
# an earlier version or another system's mathematics library, gives about 1e-15, and after many answers 1e-12.
ROUNDING, ROUNDING_AT_ZERO = 1e-9, 1e-12
MISMATCHES_SHOWN = 20

# Of items that have none, NaN.
POSTERIORS = """
    SELECT {state}, coalesce(p.score, 'NaN'), coalesce(p.variance, 'NaN'), coalesce(p.judgments, -1),
           coalesce(p.unjudged, -1)
    FROM priors LEFT JOIN current_posteriors p
         ON p.campaign_id = priors.campaign_id AND p.number = priors.number AND p.criterion = $2
    WHERE priors.campaign_id = $1 ORDER BY priors.number
"""

PRIORS = "SELECT {state} FROM priors WHERE campaign_id = $1 ORDER BY number"

IDS = text("""
    SELECT number, external_id FROM items
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[])) ORDER BY number
""")


# Checks in answered HITs without an answer, and answers to checks that no answered HIT showed.
CHECKS_AMISS = text("""
    SELECT (SELECT count(*) FROM hit_checks h
            WHERE h.campaign_id = :campaign
            AND EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.hit_id)
            AND NOT EXISTS (SELECT 1 FROM check_answers a WHERE a.campaign_id = h.campaign_id
                            AND a.hit_id = h.hit_id AND a.check_number = h.check_number))
         + (SELECT count(*) FROM check_answers a
            WHERE a.campaign_id = :campaign AND NOT EXISTS (
                SELECT 1 FROM responses r JOIN hit_checks h ON h.campaign_id = r.campaign_id AND h.hit_id = r.hit_id
                WHERE r.campaign_id = a.campaign_id AND r.hit_id = a.hit_id AND h.check_number = a.check_number))
""")


@dataclass(frozen=True)
class Mismatch:
    """One stored number that is not what the responses lead to. criterion: by which, None where there are none."""

    number: int
    external_id: str
    column: str
    stored: float
    replayed: float
    criterion: str | None = None


@dataclass(frozen=True)
class Verification:
    """How many responses and items were compared, the number of mismatches, and the first 20 of them.

    checks_amiss: checks in answered HITs without an answer, and answers without such a check.
    beyond_rounding: mismatches of more than `ROUNDING`.
    """

    responses: int
    items: int
    mismatch_count: int
    mismatches: list[Mismatch]
    checks_amiss: int = 0
    beyond_rounding: int = 0

    @property
    def clean(self) -> bool:
        return self.mismatch_count == 0 and self.checks_amiss == 0

    @property
    def rounding_only(self) -> bool:
        """Whether everything is right but for the rounding of other arithmetic."""
        return self.mismatch_count > 0 and self.beyond_rounding == 0 and self.checks_amiss == 0


async def verify(connection: AsyncConnection, campaign: Row[Any]) -> Verification:
    """Replay a launched campaign and compare. Give it a `snapshot`, so that answers may come in meanwhile.

    Raises `Conflict`: `not_launched`, and `not_replayable` if stored responses cannot be applied at all.
    """
    if campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: there is nothing to verify yet.", code="not_launched")
    found = [await verified(connection, view) for view in criteria_of(campaign)]
    count = sum(one.mismatch_count for one in found)
    mismatches = [mismatch for one in found for mismatch in one.mismatches]
    amiss = (await connection.execute(CHECKS_AMISS, {"campaign": campaign.id})).scalar_one()
    beyond = sum(one.beyond_rounding for one in found)
    return Verification(found[0].responses, found[0].items, count, mismatches[:MISMATCHES_SHOWN], amiss, beyond)


async def verified(connection: AsyncConnection, campaign: Any) -> Verification:
    """By the criterion that the campaign is read by."""
    law, by = law_of(campaign), getattr(campaign, "criterion_name", None)
    names = law.family.parameter_names
    kinds = dict.fromkeys((*names, "score", "variance"), "f8") | dict.fromkeys(("judgments", "unjudged"), "i4")
    key = campaign.id, number_of(campaign)
    stored = await numbers(connection, POSTERIORS.format(state=columns(law, "p.state")), key, **kinds)
    beliefs, judgments, responses = await applied(connection, campaign)
    said = await unjudged.people(connection, campaign) if number_of(campaign) == 0 else {}
    again = await asyncio.to_thread(replayed, law, beliefs, judgments, said)
    count, beyond, found = await asyncio.to_thread(differences, stored, again)
    ids = await ids_of(connection, campaign.id, [number for number, *_ in found])
    mismatches = [Mismatch(number, ids[number], column, kept, anew, by) for number, column, kept, anew in found]
    if law.layout:
        otherwise = await kept_otherwise(connection, Revision.present(campaign), beliefs.kept(), by)
        count, mismatches = count + len(otherwise), mismatches + otherwise
        beyond += sum(not is_rounding(mismatch.stored, mismatch.replayed) for mismatch in otherwise)
    return Verification(responses, len(judgments), count, mismatches[:MISMATCHES_SHOWN], beyond_rounding=beyond)


def columns(law: Law, state: str) -> str:
    """SQL for the numbers of a state, one by one; NaN where there is none."""
    return ", ".join(f"coalesce({state}[{k}], 'NaN')" for k, _ in enumerate(law.family.parameter_names, start=1))


def replayed(law: Law, beliefs: Beliefs, judgments: Numbers, said: Mapping[int, int]) -> dict[str, Numbers]:
    """What the columns of the posteriors must be. said: by item, how many people could not judge it."""
    people = np.zeros_like(judgments)
    people[[*said]] = [*said.values()]
    state = dict(zip(law.family.parameter_names, beliefs.state, strict=True))
    score, variance = law.family.score(*beliefs.state), law.family.variance(*beliefs.state)
    return {**state, "score": score, "variance": variance, "judgments": judgments, "unjudged": people}


async def ids_of(connection: AsyncConnection, campaign_id: int, items: Sequence[int]) -> dict[int, str]:
    rows = await connection.execute(IDS, {"campaign": campaign_id, "numbers": items})
    return {row.number: row.external_id for row in rows}


async def priors(connection: AsyncConnection, campaign: Row[Any]) -> list[Numbers]:
    """What the items' posteriors begin with, as columns, (N,) each."""
    law = law_of(campaign)
    kinds = dict.fromkeys(law.family.parameter_names, "f8")
    return [*(await numbers(connection, PRIORS.format(state=columns(law, "state")), (campaign.id,), **kinds)).values()]


async def begun(connection: AsyncConnection, campaign: Row[Any]) -> Beliefs:
    """What the campaign's law believes before the first answer, by the criterion that the campaign is read by."""
    law = law_of(campaign)
    kept = await states.present(await driver_of(connection), campaign, layout=law.layout)
    return law.begin(await priors(connection, campaign), parameters_of(campaign), kept)


async def applied(
    connection: AsyncConnection, campaign: Row[Any], *, decided: int | None = None
) -> tuple[Beliefs, Numbers, int]:
    """All responses that count applied to the priors, the judgments of each item, and how many responses these are; by
    the criterion that the campaign is read by.

    decided: as in `stream.responses`.
    """
    beliefs, count = await begun(connection, campaign), 0
    judgments = np.zeros(beliefs.state.shape[1], np.int32)
    pieces = stream.in_pieces(
        connection, campaign.id, RESPONSES_AT_ONCE, decided=decided, criterion=number_of(campaign)
    )
    async for chunk in pieces:
        hits = hits_of(campaign, chunk)
        try:
            await asyncio.to_thread(beliefs.take, hits)
        except ValueError as problem:
            raise Conflict(
                f"Responses {chunk[0].seq} to {chunk[-1].seq} of “{campaign.name}” cannot be replayed: {problem}.",
                code="not_replayable",
            ) from problem
        np.add.at(judgments, [item for hit in hits for item in hit.items], 1)
        count += len(chunk)
    return beliefs, judgments, count


def differences(
    stored: Mapping[str, Numbers], again: Mapping[str, Numbers]
) -> tuple[int, int, list[tuple[int, str, float, float]]]:
    """Every stored number against the replayed one, by their bits: how many differ, how many by more than rounding, and
    the first of them by item, as (number, column, stored, replayed).
    """
    count, beyond, found = 0, 0, []
    for column, values in again.items():
        different = np.flatnonzero(bits(stored[column]) != bits(values))
        count += len(different)
        beyond += int(np.count_nonzero(~is_rounding(stored[column][different], values[different])))
        found += [(int(k), column, stored[column][k].item(), values[k].item()) for k in different[:MISMATCHES_SHOWN]]
    return count, beyond, sorted(found, key=lambda mismatch: mismatch[0])[:MISMATCHES_SHOWN]


def is_rounding(stored: Any, replayed: Any) -> Any:
    """Whether two different numbers are the same but for rounding; of counts, any difference is one. Elementwise."""
    if np.asarray(replayed).dtype.kind != "f":
        return np.zeros(np.shape(replayed), bool)
    return np.isclose(stored, replayed, rtol=ROUNDING, atol=ROUNDING_AT_ZERO, equal_nan=False)


async def kept_otherwise(
    connection: AsyncConnection, of: Revision, again: Kept, by: str | None = None
) -> list[Mismatch]:
    """Where what is kept besides posteriors is not what the responses teach, each at the first number that differs."""
    kept = await states.all_kept(await driver_of(connection), of)
    found = await asyncio.to_thread(lambda: [*otherwise(by_kind(kept), by_kind(again))])
    ids = await ids_of(connection, of.campaign, [number for kind, number, _ in found if kind == "item"])
    names: dict[str, Callable[[int], str]] = {
        "campaign": lambda _: "the campaign",
        "item": ids.__getitem__,
        "annotator": "annotator {}".format,
    }
    return [Mismatch(number, names[kind](number), "learned", *pair, by) for kind, number, pair in found]


def by_kind(kept: Kept) -> dict[str, Mapping[int, Sequence[Any]]]:
    """By kind and number: lists of floats, two of them of an item."""
    campaign = {} if kept.campaign is None else {0: kept.campaign}
    return {"campaign": campaign, "item": kept.items, "annotator": kept.annotators}


def otherwise(
    kept: Mapping[str, Mapping[int, Sequence[Any]]], again: Mapping[str, Mapping[int, Sequence[Any]]]
) -> Iterator[tuple[str, int, tuple[float, float]]]:
    """What differs: kind, number, and the first two floats that do, as stored and replayed."""
    for kind, known in again.items():
        for number in sorted(kept[kind].keys() | known.keys()):
            if pair := first_difference(kept[kind].get(number, ()), known.get(number, ())):
                yield kind, number, pair


def first_difference(stored: Any, replayed: Any) -> tuple[float, float] | None:
    """Return the first pair that differs in two lists of floats, or of lists: beyond rounding, if any pair does.
    Missing values of the shorter list are NaN, and NaN equals NaN.
    """
    one, other = np.hstack([(), *stored]), np.hstack([(), *replayed])
    pairs = np.full((2, max(len(one), len(other))), np.nan)
    pairs[0, : len(one)], pairs[1, : len(other)] = one, other
    differs = (pairs[0] != pairs[1]) & ~np.isnan(pairs).all(axis=0)
    beyond = differs & ~is_rounding(*pairs)
    different = np.flatnonzero(beyond if beyond.any() else differs)
    return (float(pairs[0, different[0]]), float(pairs[1, different[0]])) if len(different) else None


def bits(values: Numbers) -> Numbers:
    """Numbers by their bits, so that nothing is rounded away and a missing value equals nothing."""
    return np.ascontiguousarray(values).view(f"i{values.itemsize}")
