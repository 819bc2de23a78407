"""SQL that leases the items of a HIT while concurrent requests do the same.

Races, and how each is decided:
- Two requests of one assignment: a unique index allows one unclosed HIT; the loser reads the winner's.
- Two HITs that would put an item over the wanted judgments, share a place in an iteration, or share a leader by
  accident: the campaign's room is locked last, then a statement whose snapshot is newer than the lock counts open
  leases. An answer in time needs no such lock: it turns a lease into a judgment.
- Two visits of one person that would exceed the HITs per annotator, or two answers of an assignment that is one HIT:
  the annotator's row is locked first.
- A lease and an erasure, a withdrawal or a block of its annotator: each locks the annotator's row, and the lease then
  reads whether they are blocked. A block that comes second releases the lease.
- A lease and the loss of a place in a quota (`onboarding.quotas`): each locks the annotator's row. The lease then reads
  whether they are still admitted, and the loss whether they hold a HIT.
- A late answer or a lease in the transaction of answers, and an answer whose law updates other items again: both first
  lock the law's state of the campaign, because posteriors are then locked out of order. Other leases lock none.
- A lease and the retirement or release of an item: each locks the campaign's room, so the one that comes second sees
  the other.
- Several requests that find an iteration finished: the campaign's row is locked, and the first schedules the next one.
- A lease and a new revision of the posteriors: the right to store is taken first, so the revision stays until the end.
- A lease and a pause: the statement that leases or renews reads the campaign's status once more, after its locks.
- A lease and a correction of a text: the same right is taken first, and a function with a snapshot of its own reads the
  texts afterwards.

The database's clock, read after the locks, decides whether a lease is open: the clocks of server machines may differ,
and time spent waiting counts.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import DATABASE_TIME, HIT_IS_OPEN_IN_INDEX, HIT_IS_OPEN_OR_ANSWERED
from app.annotation.hits.lease_parameters import RenewalParameters
from app.annotation.platforms.visit_limit import Visitor
from app.database.campaign import is_item_open_sql
from app.database.session import (
    Driver,
    Record,
    execute_statement,
    fetch_first_value_or_none,
    leads_to_citus,
)
from app.record import law_storage
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

LOCK_HIT_POSTERIORS = text(f"""
    SELECT p.subject FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:items AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p
""")

# The right to decide how much room the items of a campaign have for further HITs, and to take items out of the
# pool: the last lock before the campaign's row. Leases of other processes wait for it until the commit.
LOCK_ROOM = text("SELECT pg_advisory_xact_lock(hashtext('campaign.room'), CAST(:campaign AS int))")

LOCK_ANNOTATOR_ROW = text(
    "SELECT id FROM annotators WHERE campaign_id = :campaign AND id = :annotator FOR NO KEY UPDATE"
)


def open_leases_sql(items: str) -> str:
    """Return SQL for the open HITs that hold one of `items`, or for all open HITs.

    The lookup is phrased so that it matches the index on items and no other: then its cost does not grow with the
    number of open HITs. It does grow with the number closed since the last VACUUM, so if open HITs are known to be few
    (:few_open), all of them are read instead. Citus would look for the items on all servers, so there open HITs always
    count as few.
    """
    return f"""
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE NOT :few_open AND ARRAY[h.campaign_id] && ARRAY[CAST(:campaign AS bigint)]
              AND h.items && CAST({items} AS int[]) AND num_nonnulls(h.closed_at) = 0
            UNION ALL
            SELECT h.id, h.items, h.leader, h.expires_at FROM hits h
            WHERE :few_open AND h.campaign_id = :campaign AND {HIT_IS_OPEN_IN_INDEX}"""


def all_capped_items_meet_condition_sql(condition: str) -> str:
    """Return SQL that is true if `condition` holds for every item of :capped.

    The condition may read the item's posterior p and the number of its open leases except :hit as `held.leases`.
    """
    return f"""
    NOT EXISTS (
        WITH open AS ({open_leases_sql(":capped")}
        ), held AS MATERIALIZED (
            SELECT each.item, count(*) AS leases FROM open, unnest(open.items) AS each (item)
            WHERE expires_at > {DATABASE_TIME} AND id <> :hit
            GROUP BY each.item
        )
        SELECT 1 FROM posteriors p LEFT JOIN held ON held.item = p.subject
        WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
        AND NOT ({condition})
    )"""


WANTED_MINUS_LEASES = ":wanted - coalesce(held.leases, 0)"

# Every item has room for one more judgment besides those stored and those held. This suffices for a late answer.
HAS_ROOM_IN_EVERY_ITEM = all_capped_items_meet_condition_sql(f"p.judgments < {WANTED_MINUS_LEASES}")

# Every item is also in the pool, so annotators may be asked about it.
ITEM_IS_OPEN_BEYOND_LEASES = is_item_open_sql(
    "p", judgments_wanted_sql=WANTED_MINUS_LEASES, unjudged_limit_sql=":people"
)
EVERY_ITEM_IS_OPEN = all_capped_items_meet_condition_sql(ITEM_IS_OPEN_BEYOND_LEASES)

# For each of :all_capped, in order of their numbers: how many more HITs may hold the item, 0 if it is not in the pool,
# and whether it leads an open HIT. Leases and posteriors are counted by one aggregate, whose cost does not grow with
# the product of both.
COUNT_ROOM_OF_ITEMS = f"""
    WITH open AS ({open_leases_sql(":all_capped")}
    )
    SELECT array_agg(counted.room ORDER BY counted.item) AS rooms,
           array_agg(counted.leads ORDER BY counted.item) AS leads
    FROM (
        SELECT each.item, CAST(max(each.free) - sum(each.leases) AS int) AS room, bool_or(each.leads) AS leads
        FROM (
            SELECT p.subject AS item, 0 AS leases, false AS leads,
                   CASE WHEN {is_item_open_sql("p", judgments_wanted_sql=":wanted", unjudged_limit_sql=":people")}
                   THEN :wanted - p.judgments ELSE 0 END AS free
            FROM posteriors p
            WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:all_capped AS int[]))
            UNION ALL
            SELECT item, 1, open.leader = item, NULL FROM open, unnest(open.items) AS item
            WHERE open.expires_at > {DATABASE_TIME}
        ) AS each
        GROUP BY each.item HAVING count(each.free) > 0
    ) AS counted"""

# Conditions of a HIT for its annotator, each with the case in which it matters: no other HIT of theirs has one of the
# items (for systems: the segment), unless items may be repeated; other HITs of theirs are fewer than the limit; an
# assignment that is one HIT has no other.
ANNOTATOR_CONDITIONS = (
    (
        "NOT :repeat_items",
        f"""
        NOT EXISTS (
            SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.annotator_id = CAST(:annotator AS bigint)
            AND h.id <> :hit AND h.segment IS NOT DISTINCT FROM CAST(:segment AS int)
            AND (h.segment IS NOT NULL OR h.items && CAST(:capped AS int[])) AND {HIT_IS_OPEN_OR_ANSWERED})""",
    ),
    (
        "CAST(:hits_per_annotator AS int) IS NOT NULL",
        f"""
        :hits_per_annotator > (
            SELECT count(*) FROM hits h
            WHERE h.campaign_id = :campaign AND h.annotator_id = CAST(:annotator AS bigint)
            AND h.id <> :hit AND {HIT_IS_OPEN_OR_ANSWERED})""",
    ),
    (
        ":one_hit",
        f"""
        NOT EXISTS (
            SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.assignment_id = CAST(:assignment AS bigint)
            AND h.id <> :hit AND (h.closed_at IS NULL OR {HIT_IS_OPEN_OR_ANSWERED}))""",
    ),
)
ANNOTATOR_MAY_HOLD_HIT = " AND ".join(f"(NOT {case} OR {condition})" for case, condition in ANNOTATOR_CONDITIONS)

# No other HIT of the same place in an iteration's schedule is open or answered; always true for streaming (NULLs).
SCHEDULED_PLACE_IS_FREE = f"""
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.id <> :hit
        AND h.iteration = CAST(:iteration AS int) AND h.ordinal = CAST(:ordinal AS int)
        AND {HIT_IS_OPEN_OR_ANSWERED})"""

# The conditions of a new HIT besides room for its items, each with the case in which it matters.
NEW_HIT_CONDITIONS = (
    *ANNOTATOR_CONDITIONS,
    ("CAST(:iteration AS int) IS NOT NULL", SCHEDULED_PLACE_IS_FREE),
)

CAMPAIGN_IS_RUNNING = "EXISTS (SELECT 1 FROM campaigns WHERE id = :campaign AND status = 'running')"

# Another request for the same assignment was first. Citus cannot leave out a row in a function by ON CONFLICT alone.
ASSIGNMENT_HOLDS_NO_HIT = """
    NOT EXISTS (
        SELECT 1 FROM hits h
        WHERE h.campaign_id = :campaign AND h.assignment_id = CAST(:assignment AS bigint) AND h.closed_at IS NULL)"""

INSERT_LEASE = f"""
    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
         expires_at, untouched_by, drawn_because, leader_probability)
    SELECT :campaign, CAST(:annotator AS bigint), CAST(:assignment AS bigint), CAST(:leader AS int),
           CAST(:items AS int[]), CAST(:iteration AS int), CAST(:ordinal AS int),
           CAST(:segment AS int), CAST(:shown_as AS int[]), :now,
           {DATABASE_TIME} + make_interval(mins => :lease_minutes), CAST(:visitor AS bytea),
           CAST(:reason AS text), CAST(:probability AS float8)
    WHERE {ASSIGNMENT_HOLDS_NO_HIT}
    ON CONFLICT (campaign_id, assignment_id) WHERE closed_at IS NULL AND assignment_id IS NOT NULL DO NOTHING
    RETURNING id, expires_at"""

LOCK_HIT = text("SELECT id FROM hits WHERE campaign_id = :campaign AND id = :hit FOR NO KEY UPDATE")

RENEW_LEASE = text(f"""
    UPDATE hits SET expires_at = {DATABASE_TIME} + make_interval(mins => :lease_minutes)
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL
      AND (SELECT a.barred IS NULL AND a.admitted >= c.visit_version
           FROM annotators a JOIN campaigns c ON c.id = a.campaign_id
           WHERE a.campaign_id = :campaign AND a.id = CAST(:annotator AS bigint))
      AND {CAMPAIGN_IS_RUNNING}
      AND {EVERY_ITEM_IS_OPEN} AND {ANNOTATOR_MAY_HOLD_HIT} AND {SCHEDULED_PLACE_IS_FREE}
    RETURNING expires_at
""")


class LeaseLimits(Record):
    repeat_items: bool
    hits_per_annotator: int | None
    judgments_per_item: int
    unjudged_people: int
    lease_minutes: int
    always_shown: list[int]


class HeldHit(LeaseLimits):
    campaign_id: int
    annotator_id: int
    assignment_id: int
    one_hit: bool
    hit_id: int | None
    hit_items: list[int]
    hit_iteration: int | None
    hit_ordinal: int | None
    hit_segment: int | None


async def renew_lease_and_return_its_end_or_none(
    connection: Driver, assignment: AssignmentState | HeldHit, visitor: Visitor | None
) -> datetime | None:
    """Renew an expired lease and return its new end, or None if another annotator now holds its items.

    The HIT may then share its leader with a newer one: values that were entered are worth more than a distinct leader.
    """
    parameters = RenewalParameters(
        campaign=assignment.campaign_id,
        hit=assignment.hit_id,
        annotator=assignment.annotator_id,
        assignment=assignment.assignment_id,
        segment=assignment.hit_segment,
        capped=items_with_judgment_limit(assignment, assignment.hit_items),
        few_open=leads_to_citus(connection),
        repeat_items=assignment.repeat_items,
        hits_per_annotator=assignment.hits_per_annotator,
        one_hit=assignment.one_hit,
        wanted=assignment.judgments_per_item,
        people=assignment.unjudged_people,
        iteration=assignment.hit_iteration,
        ordinal=assignment.hit_ordinal,
        lease_minutes=lease_minutes(assignment, visitor),
    )
    async with connection.transaction():
        for statement in (law_storage.SHARE_STORE_LOCK, LOCK_HIT, LOCK_ANNOTATOR_ROW, LOCK_ROOM):
            await execute_statement(connection, statement, parameters)
        expires_at: datetime | None = await fetch_first_value_or_none(connection, RENEW_LEASE, parameters)
    return expires_at


def items_with_judgment_limit(assignment: AssignmentState | HeldHit, items: Sequence[int]) -> list[int]:
    """Return the items of a HIT that have a limit on judgments, which items of every HIT do not."""
    return [item for item in items if item not in assignment.always_shown]


def lease_minutes(assignment: AssignmentState | HeldHit, visitor: Visitor | None) -> int:
    """Return the length of a lease. It is short for a `visitor`, whose first touch is still to come."""
    minutes = assignment.lease_minutes
    return min(minutes, visitor.limits.untouched_minutes) if visitor else minutes


async def take_shared_store_lock_and_lock_law_state(connection: Driver, campaign_id: int) -> None:
    """Lock the right to store in the present revision, and the state of the campaign's law."""
    for statement in (law_storage.SHARE_STORE_LOCK, law_storage.LOCK_LAW_STATE):
        await execute_statement(connection, statement, {"campaign": campaign_id})
