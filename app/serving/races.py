"""Taking items for a HIT while others do the same.

The races, and who decides them:
- two requests of one assignment: a unique index allows one unclosed HIT; the loser reads the winner's;
- two HITs that would put an item over the wanted judgments, or share a leader by accident: the posterior rows are
  locked in number order, then open leases are counted in a second statement, whose snapshot is newer than the locks;
- an iteration that several requests find finished: the campaign's row is locked, the first plans the next one.
"""

import re
from datetime import datetime
from weakref import WeakSet

from sqlalchemy import text

from app.database.session import Driver, Record, fetch, fetch_one
from app.serving.proposals import Proposal

# The researcher's ids and the texts of :items of :campaign, in that order.
SHOWN = """
    SELECT array_agg(external_id ORDER BY place) AS ids, array_agg(shown ORDER BY place) AS texts
    FROM items, array_position(CAST(:items AS int[]), number) AS place
    WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))"""

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
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, issued_at, expires_at,
         untouched_by)
    SELECT :campaign, CAST(:annotator AS bigint), CAST(:assignment AS bigint), CAST(:leader AS int),
           CAST(:items AS int[]), CAST(:iteration AS int), CAST(:ordinal AS int), :now,
           CAST(:expires_at AS timestamptz), CAST(:visitor AS bytea)
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
    "visitor": "bytea",
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
    FROM pg_temp.lease({", ".join(f":{name}" for name in LEASE_TAKES)}) AS leased (id),
         ({SHOWN}) AS shown
    WHERE leased.id IS NOT NULL
""")  # noqa: S608  (made of constants of this module)

LOCK_HIT = text("SELECT id FROM hits WHERE id = :hit FOR NO KEY UPDATE")

RENEW = text(f"""
    UPDATE hits SET expires_at = CAST(:expires_at AS timestamptz)
    WHERE id = :hit AND closed_at IS NULL AND {STILL_WANTED} AND {PLAN_IS_FREE}
    RETURNING id
""")  # noqa: S608  (made of constants of this module)


async def lease(
    connection: Driver,
    here: Record,
    proposal: Proposal,
    *,
    now: datetime,
    expires_at: datetime,
    visitor: bytes | None,
) -> Record | None:
    """A new HIT of the proposed items: `id`, `ids`, `texts`; None when another request took some of them first.

    `visitor`: from where a person asks whose first touch is waited for.

    `connection` is in no transaction: a rollback would take back the function, and nobody would know.
    """
    parameters = {
        "campaign": here.id,
        "annotator": here.annotator_id,
        "assignment": here.assignment_id,
        "leader": proposal.leader,
        "items": proposal.items,
        "iteration": proposal.iteration,
        "ordinal": proposal.ordinal,
        "shared_leader": proposal.shared_leader,
        "hit": 0,
        "wanted": here.judgments_per_item,
        "now": now,
        "expires_at": expires_at,
        "visitor": visitor,
    }
    if connection not in MADE:
        await connection.execute(MAKE_FUNCTION)
        MADE.add(connection)
    return await fetch_one(connection, LOCK_AND_LEASE, parameters)


async def renew(connection: Driver, here: Record, *, now: datetime, expires_at: datetime) -> bool:
    """Whether an expired lease could be taken up again, because nobody needed its items meanwhile.

    It may then share its leader with a newer HIT: what this annotator has entered is worth more than another leader.
    """
    parameters = {
        "campaign": here.id,
        "hit": here.hit_id,
        "items": here.hit_items,
        "iteration": here.hit_iteration,
        "ordinal": here.hit_ordinal,
        "wanted": here.judgments_per_item,
        "now": now,
        "expires_at": expires_at,
    }
    async with connection.transaction():
        await fetch(connection, LOCK_HIT, parameters)
        await fetch(connection, LOCK_POSTERIORS, parameters)
        return await fetch_one(connection, RENEW, parameters) is not None
