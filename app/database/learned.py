"""What the law `easl-aware` has learned, in its table: lists of floats of a campaign, its items and its annotators.

Whoever changes it holds the campaign's row, and takes it before any other lock: HITs are learned from one by one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from sqlalchemy import text

from app.database.session import Driver, fetch

Kind = Literal["campaign", "item", "annotator"]
State = list[float]
FLOAT = np.dtype("<f8")

LOCK = text("SELECT 1 FROM learned WHERE campaign_id = :campaign AND kind = 'campaign' FOR NO KEY UPDATE")

STATES = text("""
    SELECT number, state FROM learned
    WHERE campaign_id = :campaign AND kind = :kind AND number = ANY(CAST(:numbers AS bigint[]))
""")

# The items of which something has been learned, from the one after :last on and around to it.
FOLLOWING = text("""
    SELECT number, octet_length(state) AS bytes FROM (
        (SELECT number, state, 1 AS part FROM learned
         WHERE campaign_id = :campaign AND kind = 'item' AND number > :last ORDER BY number LIMIT :limit)
        UNION ALL
        (SELECT number, state, 2 AS part FROM learned
         WHERE campaign_id = :campaign AND kind = 'item' AND number <= :last ORDER BY number LIMIT :limit)
    ) AS following
    ORDER BY part, number LIMIT :limit
""")

ALL_STATES = text("SELECT number, state FROM learned WHERE campaign_id = :campaign AND kind = :kind")

# What :items of :campaign began with, in that order.
PRIORS = text("""
    SELECT coalesce(i.prior_a, c.prior_a) AS a, coalesce(i.prior_b, c.prior_b) AS b
    FROM unnest(CAST(:items AS int[])) WITH ORDINALITY AS shown (number, place)
    JOIN items i ON i.campaign_id = :campaign AND i.number = shown.number
    JOIN campaigns c ON c.id = i.campaign_id
    ORDER BY shown.place
""")

KEEP = text("""
    INSERT INTO learned (campaign_id, kind, number, state)
    SELECT :campaign, * FROM unnest(CAST(:kinds AS text[]), CAST(:numbers AS bigint[]), CAST(:states AS bytea[]))
    ON CONFLICT (campaign_id, kind, number) DO UPDATE SET state = excluded.state
""")


async def states(
    connection: Driver, campaign_id: int, kind: Kind, numbers: Iterable[int] | None = None
) -> dict[int, State]:
    """The states of these numbers, or of all; those that nothing has been learned of are left out."""
    parameters = {"campaign": campaign_id, "kind": kind, "numbers": None if numbers is None else list(numbers)}
    rows = await fetch(connection, ALL_STATES if numbers is None else STATES, parameters)
    return {row.number: np.frombuffer(row.state, FLOAT).tolist() for row in rows}


async def of_campaign(connection: Driver, campaign_id: int) -> State:
    """What the whole campaign has learned."""
    return (await states(connection, campaign_id, "campaign"))[0]


async def following(connection: Driver, campaign_id: int, last: int, limit: int) -> list[tuple[int, int]]:
    """Number and length of the states of the next `limit` items after number `last`, and then from the first on."""
    parameters = {"campaign": campaign_id, "last": last, "limit": limit}
    return [(row.number, row.bytes // FLOAT.itemsize) for row in await fetch(connection, FOLLOWING, parameters)]


async def priors(connection: Driver, campaign_id: int, items: Sequence[int]) -> list[tuple[float, float]]:
    """Both parameters that each item began with."""
    return [(row.a, row.b) for row in await fetch(connection, PRIORS, {"campaign": campaign_id, "items": items})]


async def keep(connection: Driver, campaign_id: int, changed: Mapping[Kind, Mapping[int, State]]) -> None:
    """Store new states, by kind and number."""
    rows = [(kind, number, state) for kind, of_kind in changed.items() for number, state in of_kind.items()]
    parameters = {
        "campaign": campaign_id,
        "kinds": [kind for kind, _, _ in rows],
        "numbers": [number for _, number, _ in rows],
        "states": [np.array(state, FLOAT).tobytes() for _, _, state in rows],
    }
    await fetch(connection, KEEP, parameters)
