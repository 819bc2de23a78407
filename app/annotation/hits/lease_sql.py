"""Taking items for a HIT while others do the same.

The races, and who decides them:
- two requests of one assignment: a unique index allows one unclosed HIT; the loser reads the winner's;
- two HITs that would put an item over the wanted judgments, show one person an item twice, or share a leader by
  accident: the posterior rows are locked in number order, then open leases are counted in a second statement, whose
  snapshot is newer than the locks;
- two visits of one person that would give them more HITs than one person may have, or two answers of one assignment
  that is one HIT: the person's row is locked first;
- a lease and an answer whose law looks at other items again: both lock what the campaign has learned first, because
  posteriors are then locked out of order;
- an iteration that several requests find finished: the campaign's row is locked, the first plans the next one;
- a lease and a new revision of the posteriors: the right to store is taken first, so the revision stays until the end.

Whether a lease is open is for the database's clock to say, after the locks: the machines that serve need not agree on
the time, and a wait counts.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from weakref import WeakSet

from sqlalchemy import TextClause, text

from app.annotation.hits.assignment import DATABASE_TIME, HIT_IS_OPEN_IN_INDEX, HIT_IS_OPEN_OR_ANSWERED, AssignmentState
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.hits.open_hits import MANY_OPEN_HITS
from app.annotation.platforms.visit_limit import Visitor
from app.database.open_items import is_open_sql
from app.database.session import Driver, Record, execute_statement, fetch_first_row
from app.designs.content import SourceAndReference
from app.quality.checks import placed_checks_json
from app.record import law_storage
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

# The researcher's ids and the texts of :items of :campaign, in that order.
SELECT_SHOWN_ITEMS = """
    SELECT array_agg(external_id ORDER BY place) AS ids, array_agg(shown ORDER BY place) AS texts
    FROM items, array_position(CAST(:items AS int[]), number) AS place
    WHERE campaign_id = :campaign AND number = ANY(CAST(:items AS int[]))"""

# The same of outputs for :segment, with what stands above them; :shown are those of the HIT's items that are shown.
SELECT_SHOWN_OUTPUTS = """
    SELECT told.ids, told.texts, s.source, s.reference FROM segments s, LATERAL (
        SELECT array_agg(i.external_id ORDER BY place) AS ids, array_agg(o.shown ORDER BY place) AS texts
        FROM items i JOIN outputs o ON o.campaign_id = :campaign AND o.segment = s.number AND o.item = i.number,
             array_position(CAST(:shown AS int[]), i.number) AS place
        WHERE i.campaign_id = :campaign AND i.number = ANY(CAST(:shown AS int[]))
    ) AS told
    WHERE s.campaign_id = :campaign AND s.number = CAST(:segment AS int)"""

# :capped are the items of a HIT but those that every HIT shows, which nobody counts or waits for.
LOCK_POSTERIORS_SQL = f"""
    SELECT p.subject FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p"""  # noqa: S608  (made of constants)

LOCK_HIT_POSTERIORS = text(LOCK_POSTERIORS_SQL)

LOCK_ANNOTATOR_SQL = """
    SELECT id FROM annotators WHERE campaign_id = :campaign AND id = :annotator FOR NO KEY UPDATE"""


def every_capped_item_sql(condition: str) -> str:
    """SQL: whether a condition holds of every item, p, with its open leases but :hit, held.leases, and whether it leads
    one, held.leading.

    Who holds an item is asked in the words of the index on items, and of no other, so that what it costs does not grow
    with what else is open. It grows with what was closed since the last VACUUM, though; so all open HITs are gone
    through where they are known to be few, :few_open.
    """
    return f"""
    NOT EXISTS (
        WITH open AS (
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE NOT :few_open AND ARRAY[h.campaign_id] && ARRAY[CAST(:campaign AS bigint)]
              AND h.items && CAST(:capped AS int[]) AND num_nonnulls(h.closed_at) = 0
            UNION ALL
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE :few_open AND h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX}
        ), held AS MATERIALIZED (
            SELECT item, count(*) AS leases, bool_or(leader = item) AS leading FROM open, unnest(items) AS item
            WHERE expires_at > {DATABASE_TIME} AND id <> :hit
            GROUP BY item
        )
        SELECT 1 FROM posteriors p LEFT JOIN held ON held.item = p.subject
        WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
        AND NOT ({condition})
    )"""  # noqa: S608  (made of constants of this module)


WANTED_MINUS_LEASES = ":wanted - coalesce(held.leases, 0)"

# Every item has room for a judgment beyond those taken and those that are held: enough for a late answer, which is
# there already.
HAS_ROOM_IN_EVERY_ITEM = every_capped_item_sql(f"p.judgments < {WANTED_MINUS_LEASES}")

# It is also in the pool, so that somebody may be asked about it.
ITEM_IS_OPEN_BEYOND_LEASES = is_open_sql("p", judgments_wanted=WANTED_MINUS_LEASES, unjudged_limit=":people")
EVERY_ITEM_IS_OPEN = every_capped_item_sql(ITEM_IS_OPEN_BEYOND_LEASES)

# And the leader, which is one of these, leads no other.
EVERY_ITEM_AND_LEADER_IS_OPEN = every_capped_item_sql(f"""
    {ITEM_IS_OPEN_BEYOND_LEASES} AND (:shared_leader OR p.subject <> CAST(:leader AS int) OR held.leading IS NOT TRUE)""")

# This annotator has no other HIT with one of the items, where nobody is to see an item twice (where the items are
# systems: a segment), and fewer other HITs than one person may have. An assignment that is one HIT has no other.
ANNOTATOR_MAY_HOLD_HIT = f"""
    (:repeat_items OR NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.annotator_id = CAST(:annotator AS bigint)
        AND h.id <> :hit AND h.segment IS NOT DISTINCT FROM CAST(:segment AS int)
        AND (h.segment IS NOT NULL OR h.items && CAST(:capped AS int[])) AND {HIT_IS_OPEN_OR_ANSWERED}))
    AND (CAST(:hits_per_annotator AS int) IS NULL OR :hits_per_annotator > (
        SELECT count(*) FROM hits h WHERE h.campaign_id = :campaign AND h.annotator_id = CAST(:annotator AS bigint)
        AND h.id <> :hit AND {HIT_IS_OPEN_OR_ANSWERED}))
    AND (NOT :one_hit OR NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.assignment_id = CAST(:assignment AS bigint)
        AND h.id <> :hit AND (h.closed_at IS NULL OR {HIT_IS_OPEN_OR_ANSWERED})))"""  # noqa: S608  (made of constants of this module)

# No other HIT of the same place in an iteration's plan is open or answered; always true for streaming (NULLs).
PLANNED_PLACE_IS_FREE = f"""
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.id <> :hit
        AND h.iteration = CAST(:iteration AS int) AND h.ordinal = CAST(:ordinal AS int)
        AND {HIT_IS_OPEN_OR_ANSWERED})"""  # noqa: S608  (made of constants of this module)

INSERT_LEASE = f"""
    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
         expires_at, untouched_by, drawn_because, leader_probability)
    SELECT :campaign, CAST(:annotator AS bigint), CAST(:assignment AS bigint), CAST(:leader AS int),
           CAST(:items AS int[]), CAST(:iteration AS int), CAST(:ordinal AS int),
           CAST(:segment AS int), CAST(:shown_as AS int[]), :now,
           {DATABASE_TIME} + make_interval(mins => :lease_minutes), CAST(:visitor AS bytea),
           CAST(:reason AS text), CAST(:probability AS float8)
    WHERE {EVERY_ITEM_AND_LEADER_IS_OPEN} AND {ANNOTATOR_MAY_HOLD_HIT} AND {PLANNED_PLACE_IS_FREE}
    ON CONFLICT (campaign_id, assignment_id) WHERE closed_at IS NULL AND assignment_id IS NOT NULL DO NOTHING
    RETURNING id, expires_at"""

# The checks of a HIT that was just leased, each with its place, its number and that under which it stands.
INSERT_HIT_CHECKS = """
    INSERT INTO hit_checks (campaign_id, hit_id, place, check_number, number)
    SELECT :campaign, leased, (one -> 0)::int, (one -> 1)::int, (one -> 2)::int
    FROM jsonb_array_elements(:checks) AS one"""

LEASE_PARAMETER_TYPES = {
    "campaign": "bigint",
    "annotator": "bigint",
    "assignment": "bigint",
    "leader": "int",
    "items": "int[]",
    "capped": "int[]",
    "iteration": "int",
    "ordinal": "int",
    "segment": "int",
    "shown_as": "int[]",
    "shared_leader": "boolean",
    "repeat_items": "boolean",
    "hits_per_annotator": "int",
    "one_hit": "boolean",
    "wanted": "int",
    "people": "int",
    "hit": "bigint",
    "few_open": "boolean",
    "now": "timestamptz",
    "lease_minutes": "int",
    "visitor": "bytea",
    "checks": "jsonb",
    "reason": "text",
    "probability": "float8",
}


def to_function_sql(sql: str) -> str:
    """With the parameters of a function in the place of a statement's, and its own reading of the clock.

    So each condition stands once, for leases, renewals and late answers, and its plan can be looked at.
    """
    return re.sub(r"(?<!:):(\w+)", r"its_\1", sql.replace(DATABASE_TIME, "time_after_locks"))


# Locks and lease are two statements, the second with a snapshot newer than the locks, in one round trip. Every
# connection makes this function for itself when it first needs it, so it is always the one that this code means.
CREATE_LEASE_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION pg_temp.lease(
        {", ".join(f"its_{name} {kind}" for name, kind in LEASE_PARAMETER_TYPES.items())},
        OUT leased bigint, OUT until timestamptz
    ) LANGUAGE plpgsql AS $$
    DECLARE time_after_locks timestamptz;
    BEGIN
        PERFORM FROM ({to_function_sql(law_storage.SHARE_STORE_LOCK.text)}) AS locked;
        PERFORM FROM ({to_function_sql(law_storage.LOCK_LAW_STATE.text)}) AS locked;
        IF its_hits_per_annotator IS NOT NULL OR its_one_hit THEN
            PERFORM FROM ({to_function_sql(LOCK_ANNOTATOR_SQL)}) AS locked;
        END IF;
        PERFORM FROM ({to_function_sql(LOCK_POSTERIORS_SQL)}) AS locked;
        time_after_locks := clock_timestamp();
        {to_function_sql(INSERT_LEASE)} INTO leased, until;
        IF its_checks IS NOT NULL AND leased IS NOT NULL THEN
            {to_function_sql(INSERT_HIT_CHECKS)};
        END IF;
    END $$
"""

CONNECTIONS_WITH_LEASE_FUNCTION: WeakSet[Driver] = WeakSet()  # connections that have the function


def lock_and_lease_sql(shown_sql: str) -> TextClause:
    """The lease, with what is shown of it."""
    return text(f"""
    SELECT leased.id, leased.expires_at, shown.*
    FROM pg_temp.lease({", ".join(f":{name}" for name in LEASE_PARAMETER_TYPES)}) AS leased (id, expires_at), ({shown_sql}) AS shown
    WHERE leased.id IS NOT NULL
""")  # noqa: S608  (made of constants of this module)


LOCK_AND_LEASE = lock_and_lease_sql(SELECT_SHOWN_ITEMS)
LOCK_AND_LEASE_OUTPUTS = lock_and_lease_sql(SELECT_SHOWN_OUTPUTS)

LOCK_HIT = text("SELECT id FROM hits WHERE campaign_id = :campaign AND id = :hit FOR NO KEY UPDATE")

LOCK_ANNOTATOR_ROW = text(LOCK_ANNOTATOR_SQL)

RENEW_LEASE = text(f"""
    UPDATE hits SET expires_at = {DATABASE_TIME} + make_interval(mins => :lease_minutes)
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL
      AND (SELECT barred IS NULL FROM annotators
           WHERE campaign_id = :campaign AND id = CAST(:annotator AS bigint))
      AND {EVERY_ITEM_IS_OPEN} AND {ANNOTATOR_MAY_HOLD_HIT} AND {PLANNED_PLACE_IS_FREE}
    RETURNING expires_at
""")  # noqa: S608  (made of constants of this module)


class ShownItems(Record):
    """The researcher's ids of a HIT's items, and their texts, as presented; of outputs also what stands above them."""

    ids: list[str]
    texts: list[str]

    @property
    def source_and_reference(self) -> SourceAndReference | None:
        """What stands above outputs; None above other items."""
        return SourceAndReference(self["source"], self["reference"]) if "source" in self else None


class LeasedHit(ShownItems):
    """A new HIT."""

    id: int
    expires_at: datetime


class RenewedLease(Record):
    """Until when a HIT is held."""

    expires_at: datetime


class LeaseLimits(Record):
    """What a campaign allows."""

    repeat_items: bool
    hits_per_annotator: int | None
    judgments_per_item: int
    unjudged_people: int
    lease_minutes: int
    always_shown: list[int]


class HeldHitLimits(LeaseLimits):
    """A HIT, whose it is, and what its campaign, `id`, allows."""

    id: int
    annotator_id: int
    assignment_id: int
    one_hit: bool
    hit_id: int | None
    hit_items: list[int]
    hit_iteration: int | None
    hit_ordinal: int | None
    hit_segment: int | None


async def lease_hit(
    connection: Driver, assignment: AssignmentState, proposal: HitProposal, visitor: Visitor | None, *, now: datetime
) -> LeasedHit | None:
    """A new HIT of the proposed items; None when another request took some first.

    `connection` is in no transaction: a rollback would take back the function, and nobody would know.
    """
    parameters = {
        "leader": proposal.leader,
        "items": proposal.items,
        "capped": capped_items(assignment, proposal.items),
        "iteration": proposal.iteration,
        "ordinal": proposal.ordinal,
        "segment": proposal.segment,
        "shown_as": proposal.shown_as,
        "shown": proposal.visible_items,
        "shared_leader": proposal.shared_leader,
        "hit": 0,
        "few_open": assignment.leading is not None and len(assignment.leading) < MANY_OPEN_HITS,
        "now": now,
        "visitor": visitor and visitor.address_hash,
        "checks": placed_checks_json(proposal.checks),
        "reason": proposal.reason,
        "probability": proposal.probability,
    }
    if connection not in CONNECTIONS_WITH_LEASE_FUNCTION:
        await connection.execute(CREATE_LEASE_FUNCTION)
        CONNECTIONS_WITH_LEASE_FUNCTION.add(connection)
    statement = LOCK_AND_LEASE if proposal.segment is None else LOCK_AND_LEASE_OUTPUTS
    return await fetch_first_row(connection, statement, parameters | lease_parameters(assignment, visitor), LeasedHit)


async def renew_lease(
    connection: Driver, assignment: AssignmentState | HeldHitLimits, visitor: Visitor | None
) -> datetime | None:
    """The new `expires_at` of an expired lease, None if somebody has needed its items meanwhile.

    It may then share its leader with a newer HIT: what this annotator has entered is worth more than another leader.
    """
    parameters = {
        "hit": assignment.hit_id,
        "few_open": False,
        "capped": capped_items(assignment, assignment.hit_items),
        "iteration": assignment.hit_iteration,
        "ordinal": assignment.hit_ordinal,
        "segment": assignment.hit_segment,
    } | lease_parameters(assignment, visitor)
    async with connection.transaction():
        await lock_revision(connection, parameters)
        await execute_statement(connection, LOCK_HIT, parameters)
        await lock_annotator_and_posteriors(connection, parameters)
        row = await fetch_first_row(connection, RENEW_LEASE, parameters, RenewedLease)
    return None if row is None else row.expires_at


def capped_items(assignment: AssignmentState | HeldHitLimits, items: Sequence[int]) -> list[int]:
    """Of the items of a HIT those that want only so many judgments."""
    return [item for item in items if item not in assignment.always_shown]


def lease_parameters(assignment: AssignmentState | HeldHitLimits, visitor: Visitor | None = None) -> dict[str, Any]:
    """Whose HIT of which campaign it is to be, and what that campaign allows, as parameters.

    `visitor`: when it is somebody whose first touch is waited for. Their lease is short.
    """
    minutes = assignment.lease_minutes
    return {
        "campaign": assignment.id,
        "annotator": assignment.annotator_id,
        "assignment": assignment.assignment_id,
        "repeat_items": assignment.repeat_items,
        "hits_per_annotator": assignment.hits_per_annotator,
        "one_hit": assignment.one_hit,
        "wanted": assignment.judgments_per_item,
        "people": assignment.unjudged_people,
        "lease_minutes": min(minutes, visitor.limits.untouched_minutes) if visitor else minutes,
    }


async def lock_revision(connection: Driver, parameters: Mapping[str, Any]) -> None:
    """The right to store in the present revision, and what the campaign's law keeps."""
    await execute_statement(connection, law_storage.SHARE_STORE_LOCK, parameters)
    await execute_statement(connection, law_storage.LOCK_LAW_STATE, parameters)


async def lock_annotator_and_posteriors(connection: Driver, parameters: Mapping[str, Any]) -> None:
    """The annotator only where their HITs are counted."""
    if parameters["hits_per_annotator"] is not None or parameters["one_hit"]:
        await execute_statement(connection, LOCK_ANNOTATOR_ROW, parameters)
    await execute_statement(connection, LOCK_HIT_POSTERIORS, parameters)
