"""What laws keep besides posteriors, in its table: lists of floats of a campaign, its items and its annotators.

Whoever changes it holds the campaign's row here, and takes it before locks of other rows: HITs are learned from one by
one.

An item has two lists: a long one, which most HITs leave as it is, and a short one. PostgreSQL keeps a long value aside
and writes it anew only when it changes, so a HIT costs the same however many judgments its items have.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database.session import Driver, Record, execute, fetch, fetch_one
from app.designs.criteria import number_of
from app.errors import Conflict
from app.inference.online.law import Kept, State

Floats = npt.NDArray[np.float64]
FLOAT = np.dtype("<f8")
AT_ONCE = 1_000  # items

# The right to store. Whoever stores an answer or leases a HIT shares this lock first, until the transaction ends, and
# whoever makes another revision the present one has it alone: who waits for it is not passed by, as who waits for a row
# would be by those who share the row.
SHARE = text("SELECT pg_advisory_xact_lock_shared(hashtext('campaign.switch'), CAST(:campaign AS int))")
LOCK_OUT_HOLDERS = text("SELECT pg_advisory_xact_lock(hashtext('campaign.switch'), CAST(:campaign AS int))")

# What the present revision has learned of the campaign by the first criterion: who changes what it knows by another
# holds this.
LOCK = text("""
    SELECT 1 FROM states WHERE campaign_id = :campaign AND kind = 'campaign' AND criterion = 0
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign) FOR NO KEY UPDATE
""")

PRESENT = text("""
    SELECT state, layout FROM states WHERE campaign_id = :campaign AND kind = 'campaign' AND criterion = :criterion
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign)
""")

OF = "campaign_id = :campaign AND revision = :revision AND criterion = :criterion"

OF_CAMPAIGN = text(f"SELECT state, layout FROM states WHERE {OF} AND kind = 'campaign'")  # noqa: S608  (constants)

STATES = text(f"""
    SELECT number, state FROM states
    WHERE {OF} AND kind = :kind AND number = ANY(CAST(:numbers AS bigint[]))
""")  # noqa: S608  (constants)

# Of items: `state` is what was looked at, perhaps long, so only its length is told; `since` is short.
ITEMS = text(f"""
    SELECT number, since, octet_length(state) AS length FROM states
    WHERE {OF} AND kind = 'item' AND number = ANY(CAST(:numbers AS bigint[]))
""")  # noqa: S608  (constants)

# The items of which something has been learned, from the one after :last on and around to it.
FOLLOWING = text(f"""
    SELECT number, since, length FROM (
        (SELECT number, since, octet_length(state) AS length, 1 AS part FROM states
         WHERE {OF} AND kind = 'item' AND number > :last ORDER BY number LIMIT :limit)
        UNION ALL
        (SELECT number, since, octet_length(state) AS length, 2 AS part FROM states
         WHERE {OF} AND kind = 'item' AND number <= :last ORDER BY number LIMIT :limit)
    ) AS following
    ORDER BY part, number LIMIT :limit
""")  # noqa: S608  (constants)

ALL = text(f"SELECT kind, number, state, since FROM states WHERE {OF}")  # noqa: S608  (constants)

# What :items of :campaign began with, in that order.
PRIORS = text("""
    SELECT state FROM priors WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))
    ORDER BY array_position(CAST(:items AS int[]), number)
""")

KEEP = text(f"""
    WITH longer AS (
        UPDATE states l SET since = new.since
        FROM unnest(CAST(:longer AS bigint[]), CAST(:longer_since AS bytea[])) AS new (number, since)
        WHERE {OF} AND l.kind = 'item' AND l.number = new.number
    )
    INSERT INTO states (campaign_id, revision, criterion, layout, kind, number, state, since)
    SELECT :campaign, :revision, :criterion, :layout, *
    FROM unnest(CAST(:kinds AS text[]), CAST(:numbers AS bigint[]), CAST(:states AS bytea[]),
                                    CAST(:since AS bytea[]))
    ON CONFLICT (campaign_id, revision, criterion, kind, number) DO UPDATE
    SET state = excluded.state, since = excluded.since
""")  # noqa: S608  (constants)


class KeptList(Record):
    """What is kept of an annotator, or the long list of an item."""

    number: int
    state: bytes


class ShortList(Record):
    """The short list of an item, and how long the other one is."""

    number: int
    since: bytes
    length: int  # in bytes


class OfAnything(Record):
    """All that is kept of something; of an annotator and of the campaign `since` is empty."""

    kind: str
    number: int
    state: bytes
    since: bytes


class KeptOfCampaign(Record):
    """What is kept of the whole campaign."""

    state: bytes
    layout: int


class PriorOfItem(Record):
    """What an item's posterior begins with."""

    state: list[float]


class Revision(NamedTuple):
    """Which posteriors and states: a campaign's, of one of its revisions, by one of its criteria."""

    campaign: int
    revision: int
    criterion: int = 0

    @classmethod
    def present(cls, campaign: Any) -> "Revision":
        """The one that a campaign's row says, by the criterion that it is read by."""
        return cls(campaign.id, campaign.revision, number_of(campaign))

    @property
    def parameters(self) -> dict[str, int]:
        return self._asdict()


async def annotators(connection: Driver, of: Revision, numbers: Iterable[int]) -> dict[int, State]:
    """What is kept of these annotators; without those of whom nothing is."""
    rows = await fetch(connection, STATES, {**of.parameters, "kind": "annotator", "numbers": list(numbers)}, KeptList)
    return {row.number: in_floats(row.state).tolist() for row in rows}


async def items(connection: Driver, of: Revision, numbers: Iterable[int]) -> dict[int, tuple[State, int]]:
    """The short lists of these items, and how many floats are in the long ones; without those nothing is kept of."""
    rows = await fetch(connection, ITEMS, {**of.parameters, "numbers": list(numbers)}, ShortList)
    return {row.number: (in_floats(row.since).tolist(), row.length // FLOAT.itemsize) for row in rows}


async def long_of_items(connection: Driver, of: Revision, numbers: Iterable[int]) -> dict[int, Floats]:
    """The long lists of these items; without those nothing is kept of."""
    parameters = {**of.parameters, "kind": "item", "numbers": list(numbers)}
    return {row.number: in_floats(row.state) for row in await fetch(connection, STATES, parameters, KeptList)}


async def items_after(connection: Driver, of: Revision, last: int, limit: int) -> list[tuple[int, State, int]]:
    """The next `limit` items after number `last`, and then from the first on: number, short list, length of long."""
    parameters = {**of.parameters, "last": last, "limit": limit}
    rows = await fetch(connection, FOLLOWING, parameters, ShortList)
    return [(row.number, in_floats(row.since).tolist(), row.length // FLOAT.itemsize) for row in rows]


async def priors(connection: Driver, campaign_id: int, items: Sequence[int]) -> list[tuple[float, ...]]:
    """The numbers that each item began with."""
    rows = await fetch(connection, PRIORS, {"campaign": campaign_id, "items": items}, PriorOfItem)
    return [tuple(row.state) for row in rows]


async def of_campaign(connection: Driver, of: Revision, *, layout: int) -> State | None:
    """What is kept of the whole campaign. Raises what `present` raises."""
    return readable(await fetch_one(connection, OF_CAMPAIGN, of.parameters, KeptOfCampaign), layout)


async def present(connection: Driver, campaign: Any, *, layout: int) -> Kept:
    """What the present revision keeps of the whole campaign. Raises `Conflict` (`states_of_another_version`)."""
    parameters = {"campaign": campaign.id, "criterion": number_of(campaign)}
    return Kept(readable(await fetch_one(connection, PRESENT, parameters, KeptOfCampaign), layout))


def readable(row: KeptOfCampaign | None, layout: int) -> State | None:
    if row is not None and row.layout != layout:
        raise Conflict(
            f"What was learned of annotators is stored as version {row.layout}, and this Easel reads version {layout}. "
            "Nothing was changed.",
            code="states_of_another_version",
        )
    return None if row is None else in_floats(row.state).tolist()


async def all_kept(connection: Driver, of: Revision) -> Kept:
    """All of it."""
    rows = await fetch(connection, ALL, of.parameters, OfAnything)
    campaign = [in_floats(row.state).tolist() for row in rows if row.kind == "campaign"]
    return Kept(
        campaign[0] if campaign else None,
        {row.number: in_floats(row.state).tolist() for row in rows if row.kind == "annotator"},
        {row.number: (in_floats(row.since).tolist(), in_floats(row.state)) for row in rows if row.kind == "item"},
    )


def pieces(kept: Kept) -> Iterator[Kept]:
    """What is kept in parts that can each be sent at once, the campaign's in the first."""
    numbers = list(kept.items)
    yield Kept(kept.campaign, kept.annotators, {number: kept.items[number] for number in numbers[:AT_ONCE]})
    for start in range(AT_ONCE, len(numbers), AT_ONCE):
        yield Kept(None, {}, {number: kept.items[number] for number in numbers[start : start + AT_ONCE]})


async def keep(connection: Driver, of: Revision, kept: Kept, *, layout: int) -> None:
    """Store what is new."""
    rows = [("campaign", 0, in_bytes(kept.campaign), b"")] if kept.campaign is not None else []
    rows += [("annotator", number, in_bytes(state), b"") for number, state in kept.annotators.items()]
    rows += [
        ("item", k, in_bytes(long), in_bytes(short)) for k, (short, long) in kept.items.items() if long is not None
    ]
    kinds, numbers, values, since = zip(*rows, strict=True) if rows else ((), (), (), ())
    longer = {number: in_bytes(short) for number, (short, long) in kept.items.items() if long is None}
    parameters = {**of.parameters, "layout": layout, "kinds": kinds, "numbers": numbers, "states": values}
    parameters |= {"since": since, "longer": [*longer], "longer_since": [*longer.values()]}
    await execute(connection, KEEP, parameters)


def in_floats(stored: bytes) -> Floats:
    return np.frombuffer(stored, FLOAT)


def in_bytes(state: npt.ArrayLike) -> bytes:
    return np.asarray(state, FLOAT).tobytes()
