"""What the law `easl-aware` has learned, in its table: lists of floats of a campaign, its items and its annotators.

Whoever changes it holds the campaign's row, and takes it before any other lock: HITs are learned from one by one.

An item has two lists: a long one, which most HITs leave as it is, and a short one. PostgreSQL keeps a long value aside
and writes it anew only when it changes, so a HIT costs the same however many judgments its items have.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import text

from app.database.session import Driver, fetch

Kind = Literal["campaign", "item", "annotator"]
State = list[float]
Floats = npt.NDArray[np.float64]
FLOAT = np.dtype("<f8")
LAYOUT = 1  # of the floats; another number says that they mean something else

# Until the transaction ends, nobody makes another revision the present one. Comes before all other locks.
HOLD = text("SELECT revision FROM campaigns WHERE id = :campaign FOR KEY SHARE")

# What the present revision has learned of the campaign.
LOCK = text("""
    SELECT 1 FROM states WHERE campaign_id = :campaign AND kind = 'campaign'
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign) FOR NO KEY UPDATE
""")

# The same, to be read only.
PRESENT = text("""
    SELECT state FROM states WHERE campaign_id = :campaign AND kind = 'campaign'
    AND revision = (SELECT revision FROM campaigns WHERE id = :campaign)
""")

OF = "campaign_id = :campaign AND revision = :revision"

STATES = text(f"""
    SELECT number, state FROM states
    WHERE {OF} AND kind = :kind AND number = ANY(CAST(:numbers AS bigint[]))
""")  # noqa: S608  (constants)

# Of items: `state` is what was looked at, perhaps long, so only its length is told; `since` is short.
ITEMS = text(f"""
    SELECT number, since, octet_length(state) AS bytes FROM states
    WHERE {OF} AND kind = 'item' AND number = ANY(CAST(:numbers AS bigint[]))
""")  # noqa: S608  (constants)

ALL_ITEMS = text(f"SELECT number, since, state FROM states WHERE {OF} AND kind = 'item'")  # noqa: S608  (constants)

# The items of which something has been learned, from the one after :last on and around to it.
FOLLOWING = text(f"""
    SELECT number, since, bytes FROM (
        (SELECT number, since, octet_length(state) AS bytes, 1 AS part FROM states
         WHERE {OF} AND kind = 'item' AND number > :last ORDER BY number LIMIT :limit)
        UNION ALL
        (SELECT number, since, octet_length(state) AS bytes, 2 AS part FROM states
         WHERE {OF} AND kind = 'item' AND number <= :last ORDER BY number LIMIT :limit)
    ) AS following
    ORDER BY part, number LIMIT :limit
""")  # noqa: S608  (constants)

ALL_STATES = text(f"SELECT number, state FROM states WHERE {OF} AND kind = :kind")  # noqa: S608  (constants)

# What :items of :campaign began with, in that order.
PRIORS = text("""
    SELECT a, b FROM unnest(CAST(:items AS int[])) WITH ORDINALITY AS shown (number, place)
    JOIN priors ON priors.campaign_id = :campaign AND priors.number = shown.number
    ORDER BY place
""")

KEEP = text(f"""
    WITH longer AS (
        UPDATE states l SET since = new.since
        FROM unnest(CAST(:longer AS bigint[]), CAST(:longer_since AS bytea[])) AS new (number, since)
        WHERE {OF} AND l.kind = 'item' AND l.number = new.number
    )
    INSERT INTO states (campaign_id, revision, layout, kind, number, state, since)
    SELECT :campaign, :revision, {LAYOUT}, *
    FROM unnest(CAST(:kinds AS text[]), CAST(:numbers AS bigint[]), CAST(:states AS bytea[]),
                                    CAST(:since AS bytea[]))
    ON CONFLICT (campaign_id, revision, kind, number) DO UPDATE SET state = excluded.state, since = excluded.since
""")  # noqa: S608  (constants)


class Revision(NamedTuple):
    """Which posteriors and states: a campaign's, of one of its revisions."""

    campaign: int
    revision: int

    @classmethod
    def present(cls, campaign: Any) -> "Revision":
        """The one that a campaign's row says."""
        return cls(campaign.id, campaign.revision)

    @property
    def parameters(self) -> dict[str, int]:
        return self._asdict()


async def states(
    connection: Driver, of: Revision, kind: Kind, numbers: Iterable[int] | None = None
) -> dict[int, State]:
    """The states of these numbers, or of all; those that nothing has been learned of are left out."""
    parameters = {**of.parameters, "kind": kind, "numbers": None if numbers is None else list(numbers)}
    rows = await fetch(connection, ALL_STATES if numbers is None else STATES, parameters)
    return {row.number: in_floats(row.state).tolist() for row in rows}


async def items(connection: Driver, of: Revision, numbers: Iterable[int]) -> dict[int, tuple[State, int]]:
    """The short lists of these items, and how many floats are in the long ones; without those nothing is known of."""
    rows = await fetch(connection, ITEMS, {**of.parameters, "numbers": list(numbers)})
    return {row.number: (in_floats(row.since).tolist(), row.bytes // FLOAT.itemsize) for row in rows}


async def looked(connection: Driver, of: Revision, numbers: Iterable[int]) -> dict[int, Floats]:
    """The long lists of these items; without those nothing is known of."""
    parameters = {**of.parameters, "kind": "item", "numbers": list(numbers)}
    return {row.number: in_floats(row.state) for row in await fetch(connection, STATES, parameters)}


async def all_items(connection: Driver, of: Revision) -> dict[int, tuple[Floats, Floats]]:
    """Both lists of all items of which something is known, the short ones first."""
    rows = await fetch(connection, ALL_ITEMS, of.parameters)
    return {row.number: (in_floats(row.since), in_floats(row.state)) for row in rows}


async def of_campaign(connection: Driver, of: Revision) -> State:
    """What the whole campaign has learned."""
    return (await states(connection, of, "campaign"))[0]


async def present_of_campaign(connection: Driver, campaign_id: int) -> State:
    """The same of the present revision, whichever that is."""
    (row,) = await fetch(connection, PRESENT, {"campaign": campaign_id})
    state: State = in_floats(row.state).tolist()
    return state


async def following(connection: Driver, of: Revision, last: int, limit: int) -> list[tuple[int, State, int]]:
    """The next `limit` items after number `last`, and then from the first on: number, short list, length of long."""
    parameters = {**of.parameters, "last": last, "limit": limit}
    rows = await fetch(connection, FOLLOWING, parameters)
    return [(row.number, in_floats(row.since).tolist(), row.bytes // FLOAT.itemsize) for row in rows]


async def priors(connection: Driver, campaign_id: int, items: Sequence[int]) -> list[tuple[float, float]]:
    """Both parameters that each item began with."""
    return [(row.a, row.b) for row in await fetch(connection, PRIORS, {"campaign": campaign_id, "items": items})]


async def keep(
    connection: Driver,
    of: Revision,
    *,
    campaign: Sequence[float],
    annotators: Mapping[int, Sequence[float]] | None = None,
    items: Mapping[int, tuple[Sequence[float], Floats | None]] | None = None,
) -> None:
    """Store new states; of items both lists, or only the short one where the long one is as it was."""
    items = items or {}
    rows = [("campaign", 0, in_bytes(campaign), b"")]
    rows += [("annotator", number, in_bytes(state), b"") for number, state in (annotators or {}).items()]
    rows += [("item", k, in_bytes(long), in_bytes(since)) for k, (since, long) in items.items() if long is not None]
    kinds, numbers, values, since = zip(*rows, strict=True)
    longer = {number: in_bytes(since) for number, (since, long) in items.items() if long is None}
    parameters = {**of.parameters, "kinds": kinds, "numbers": numbers, "states": values, "since": since}
    await fetch(connection, KEEP, parameters | {"longer": [*longer], "longer_since": [*longer.values()]})


def in_floats(stored: bytes) -> Floats:
    return np.frombuffer(stored, FLOAT)


def in_bytes(state: npt.ArrayLike) -> bytes:
    return np.asarray(state, FLOAT).tobytes()
