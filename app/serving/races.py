"""Taking items for a HIT while others do the same: whoever locks the items' posteriors first decides."""

import re
from collections.abc import Mapping
from typing import Any
from weakref import WeakSet

from sqlalchemy import text

from app.database.session import Driver, Record, fetch, fetch_one

# The researcher's ids and the texts of :items of :campaign, in that order.
SHOWN = """
    SELECT array_agg(i.external_id ORDER BY place.place) AS ids, array_agg(i.shown ORDER BY place.place) AS texts
    FROM unnest(CAST(:items AS int[])) WITH ORDINALITY AS place (number, place)
    JOIN items i ON i.campaign_id = :campaign AND i.number = place.number"""

LOCK = """
    SELECT number FROM posteriors WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))
    ORDER BY number FOR NO KEY UPDATE"""

LOCK_POSTERIORS = text(LOCK)

# Every item wants a judgment beyond those taken and those that open leases (other than :hit) hold.
STILL_WANTED = """
    NOT EXISTS (
        SELECT 1 FROM posteriors p WHERE p.campaign_id = :campaign AND p.number = ANY(CAST(:items AS int[]))
        AND p.judgments + (SELECT count(*) FROM hits h WHERE h.campaign_id = :campaign AND h.closed_at IS NULL
                           AND h.expires_at > :now AND p.number = ANY(h.items) AND h.id <> :hit) >= :wanted
    )"""

# No other HIT of the same place in an iteration's plan is open or answered; always true for streaming (NULLs).
PLAN_IS_FREE = """
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.id <> :hit
        AND h.iteration = CAST(:iteration AS int) AND h.ordinal = CAST(:ordinal AS int)
        AND (h.closed_at IS NULL AND h.expires_at > :now OR EXISTS (SELECT 1 FROM responses WHERE hit_id = h.id))
    )"""

LEASE = f"""
    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, issued_at, expires_at)
    SELECT :campaign, CAST(:annotator AS bigint), CAST(:assignment AS bigint), CAST(:leader AS int),
           CAST(:items AS int[]), CAST(:iteration AS int), CAST(:ordinal AS int), :now, CAST(:expires_at AS timestamptz)
    WHERE {STILL_WANTED} AND {PLAN_IS_FREE}
      AND (:shared_leader OR NOT EXISTS (
          SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.closed_at IS NULL AND h.expires_at > :now
          AND h.leader = CAST(:leader AS int)))
    ON CONFLICT (assignment_id) WHERE closed_at IS NULL DO NOTHING
    RETURNING id"""  # noqa: S608  (made of constants of this module)

LEASE_TAKES = {
    "campaign": "bigint",
    "annotator": "bigint",
    "assignment": "bigint",
    "leader": "int",
    "items": "int[]",
    "iteration": "int",
    "ordinal": "int",
    "shared_leader": "boolean",
    "wanted": "int",
    "hit": "bigint",
    "now": "timestamptz",
    "expires_at": "timestamptz",
}


def in_function(sql: str) -> str:
    """With the parameters of a function in the place of a statement's."""
    return re.sub(r":(\w+)", r"its_\1", sql)


# Locks and lease are two statements, the second with a snapshot newer than the locks, in one round trip. Every
# connection makes this function for itself when it first needs it, so it is always the one that this code means.
MAKE_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION pg_temp.lease({", ".join(f"its_{name} {kind}" for name, kind in LEASE_TAKES.items())})
    RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE leased bigint;
    BEGIN
        PERFORM FROM ({in_function(LOCK)}) AS locked;
        {in_function(LEASE)} INTO leased;
        RETURN leased;
    END $$
"""

MADE: WeakSet[Driver] = WeakSet()  # connections that have the function

LOCK_AND_LEASE = text(f"""
    SELECT leased.id, ids, texts
    FROM pg_temp.lease({", ".join(f"CAST(:{name} AS {kind})" for name, kind in LEASE_TAKES.items())}) AS leased (id),
         ({SHOWN}) AS shown
    WHERE leased.id IS NOT NULL
""")  # noqa: S608  (made of constants of this module)

LOCK_HIT = text("SELECT id FROM hits WHERE id = :hit FOR NO KEY UPDATE")

RENEW = text(f"""
    UPDATE hits SET expires_at = CAST(:expires_at AS timestamptz)
    WHERE id = :hit AND closed_at IS NULL AND {STILL_WANTED} AND {PLAN_IS_FREE}
    RETURNING id
""")  # noqa: S608  (made of constants of this module)


async def lease(connection: Driver, parameters: Mapping[str, Any]) -> Record | None:
    """A new HIT of `LEASE_TAKES`: `id`, `ids`, `texts`; None when another request took some of its items first."""
    if connection not in MADE:
        await connection.execute(MAKE_FUNCTION)
        MADE.add(connection)
    return await fetch_one(connection, LOCK_AND_LEASE, parameters)


async def renew(connection: Driver, parameters: Mapping[str, Any]) -> bool:
    """Whether an expired lease could be taken up again, because nobody needed its items meanwhile."""
    async with connection.transaction():
        await fetch(connection, LOCK_HIT, parameters)
        await fetch(connection, LOCK_POSTERIORS, parameters)
        return await fetch_one(connection, RENEW, parameters) is not None
