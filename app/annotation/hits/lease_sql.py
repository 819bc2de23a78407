"""SQL that leases the items of a HIT while concurrent requests do the same.

Races, and how each is decided:
- Two requests of one assignment: a unique index allows one unclosed HIT; the loser reads the winner's.
- Two HITs that would put an item over the wanted judgments, show one person an item twice, or share a leader by
  accident: the posterior rows are locked in number order, then a second statement, whose snapshot is newer than the
  locks, counts open leases.
- Two visits of one person that would exceed the HITs per annotator, or two answers of an assignment that is one HIT:
  the annotator's row is locked first.
- A lease and an answer whose law updates other items again: both first lock the law's state of the campaign, because
  posteriors are then locked out of order.
- Several requests that find an iteration finished: the campaign's row is locked, and the first schedules the next one.
- A lease and a new revision of the posteriors: the right to store is taken first, so the revision stays until the end.
- A lease and a correction of a text: the same right is taken first, and a function with a snapshot of its own reads the
  texts afterwards.

The database's clock, read after the locks, decides whether a lease is open: the clocks of server machines may differ,
and time spent waiting counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import TextClause, text

from app.annotation.hits.assignment import DATABASE_TIME, HIT_IS_OPEN_IN_INDEX, HIT_IS_OPEN_OR_ANSWERED, AssignmentState
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.hits.lease_parameters import HoldParameters, RenewalParameters
from app.annotation.hits.shown_items_sql import (
    SHOWN_ITEMS_ARGUMENTS,
    SHOWN_OUTPUTS_ARGUMENTS,
    ShownItems,
    argument_declarations_of_function,
)
from app.annotation.platforms.visit_limit import Visitor
from app.database.campaign import is_open_sql
from app.database.session import (
    Driver,
    Record,
    array_text_of_integers,
    execute_statement,
    fetch_rows,
    fetch_value,
    sql_and_parameter_names_of_statement,
)
from app.quality.checks import CheckItem, placed_checks_json_or_none
from app.record import law_storage
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

# :capped are the items of a HIT that have a limit on judgments: all but those that every HIT shows.
LOCK_POSTERIORS_SQL = f"""
    SELECT p.subject FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:capped AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p"""

LOCK_HIT_POSTERIORS = text(LOCK_POSTERIORS_SQL)

LOCK_ANNOTATOR_SQL = """
    SELECT id FROM annotators WHERE campaign_id = :campaign AND id = :annotator FOR NO KEY UPDATE"""


def all_capped_items_meet_condition_sql(condition: str) -> str:
    """Return SQL that is true if `condition` holds for every item of :capped.

    The condition may read the item's posterior p, the number of its open leases except :hit as `held.leases`, and
    whether it leads one of them as `held.leading`.

    The lookup of leases is phrased so that it matches the index on items and no other: then its cost does not grow with
    the number of open HITs. It does grow with the number closed since the last VACUUM, so if open HITs are known to be
    few (:few_open), all of them are read instead.
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
    )"""


WANTED_MINUS_LEASES = ":wanted - coalesce(held.leases, 0)"

# Every item has room for one more judgment besides those stored and those held. This suffices for a late answer.
HAS_ROOM_IN_EVERY_ITEM = all_capped_items_meet_condition_sql(f"p.judgments < {WANTED_MINUS_LEASES}")

# Every item is also in the pool, so annotators may be asked about it.
ITEM_IS_OPEN_BEYOND_LEASES = is_open_sql("p", judgments_wanted=WANTED_MINUS_LEASES, unjudged_limit=":people")
EVERY_ITEM_IS_OPEN = all_capped_items_meet_condition_sql(ITEM_IS_OPEN_BEYOND_LEASES)

# The leader also leads no other open HIT.
EVERY_ITEM_AND_LEADER_IS_OPEN = all_capped_items_meet_condition_sql(f"""
    {ITEM_IS_OPEN_BEYOND_LEASES}
    AND (:shared_leader OR p.subject <> CAST(:leader AS int) OR held.leading IS NOT TRUE)""")

# The annotator has no other HIT with one of the items (for systems: the segment), unless items may be repeated, and
# fewer other HITs than the limit per annotator. An assignment that is one HIT has no other.
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
        AND h.id <> :hit AND (h.closed_at IS NULL OR {HIT_IS_OPEN_OR_ANSWERED})))"""

# No other HIT of the same place in an iteration's schedule is open or answered; always true for streaming (NULLs).
SCHEDULED_PLACE_IS_FREE = f"""
    NOT EXISTS (
        SELECT 1 FROM hits h WHERE h.campaign_id = :campaign AND h.id <> :hit
        AND h.iteration = CAST(:iteration AS int) AND h.ordinal = CAST(:ordinal AS int)
        AND {HIT_IS_OPEN_OR_ANSWERED})"""

INSERT_LEASE = f"""
    INSERT INTO hits
        (campaign_id, annotator_id, assignment_id, leader, items, iteration, ordinal, segment, shown_as, issued_at,
         expires_at, untouched_by, drawn_because, leader_probability)
    SELECT :campaign, CAST(:annotator AS bigint), CAST(:assignment AS bigint), CAST(:leader AS int),
           CAST(:items AS int[]), CAST(:iteration AS int), CAST(:ordinal AS int),
           CAST(:segment AS int), CAST(:shown_as AS int[]), :now,
           {DATABASE_TIME} + make_interval(mins => :lease_minutes), CAST(:visitor AS bytea),
           CAST(:reason AS text), CAST(:probability AS float8)
    WHERE {EVERY_ITEM_AND_LEADER_IS_OPEN} AND {ANNOTATOR_MAY_HOLD_HIT} AND {SCHEDULED_PLACE_IS_FREE}
    ON CONFLICT (campaign_id, assignment_id) WHERE closed_at IS NULL AND assignment_id IS NOT NULL DO NOTHING
    RETURNING id, expires_at"""

# The checks of a HIT that was just leased, each with its place, its number and the number under which it is shown.
INSERT_HIT_CHECKS = """
    INSERT INTO hit_checks (campaign_id, hit_id, place, check_number, number)
    SELECT :campaign, leased, (placed -> 0)::int, (placed -> 1)::int, (placed -> 2)::int
    FROM jsonb_array_elements(:checks) AS placed"""

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


# Leases one HIT. The database holds this function and the next one, so a change needs a migration; a test compares the
# two. Each condition is written once for leases, renewals and late answers. In a function, too, $1, $2, ... are the
# arguments.
INSERT_LEASE_BODY, LEASE_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    DECLARE time_after_locks timestamptz := clock_timestamp();
    BEGIN
        {INSERT_LEASE.replace(DATABASE_TIME, "time_after_locks")} INTO leased, until;
        IF :checks IS NOT NULL AND leased IS NOT NULL THEN
            {INSERT_HIT_CHECKS};
        END IF;
    END
    """)
)
INSERT_LEASE_FUNCTION = f"""
    CREATE FUNCTION easel_insert_lease(
        {argument_declarations_of_function(LEASE_ARGUMENTS, LEASE_PARAMETER_TYPES)},
        OUT leased bigint, OUT until timestamptz
    ) LANGUAGE plpgsql AS $${INSERT_LEASE_BODY}$$
"""

# Parameters of a batch of leases. Arrays have an entry for each HIT; arrays of arrays are texts.
LEASES_PARAMETER_TYPES = {
    "campaign": "bigint",
    "repeat_items": "boolean",
    "hits_per_annotator": "int",
    "wanted": "int",
    "people": "int",
    "few_open": "boolean",
    "counted": "bigint[]",
    "all_capped": "int[]",
    "annotators": "bigint[]",
    "assignments": "bigint[]",
    "one_hits": "boolean[]",
    "leaders": "int[]",
    "items": "text[]",
    "capped": "text[]",
    "shown_as": "text[]",
    "iterations": "int[]",
    "ordinals": "int[]",
    "segments": "int[]",
    "shared_leaders": "boolean[]",
    "times": "timestamptz[]",
    "lease_minutes": "int[]",
    "visitors": "bytea[]",
    "checks": "text[]",
    "reasons": "text[]",
    "probabilities": "float8[]",
}
# The arguments of `easel_insert_lease` for the HIT at `place`.
LEASE_ARGUMENTS_AT_PLACE = {
    "campaign": ":campaign",
    "annotator": ":annotators[place]",
    "assignment": ":assignments[place]",
    "leader": ":leaders[place]",
    "items": "CAST(:items[place] AS int[])",
    "capped": "CAST(:capped[place] AS int[])",
    "iteration": ":iterations[place]",
    "ordinal": ":ordinals[place]",
    "segment": ":segments[place]",
    "shown_as": "CAST(:shown_as[place] AS int[])",
    "shared_leader": ":shared_leaders[place]",
    "repeat_items": ":repeat_items",
    "hits_per_annotator": ":hits_per_annotator",
    "one_hit": ":one_hits[place]",
    "wanted": ":wanted",
    "people": ":people",
    "hit": "0",
    "few_open": ":few_open",
    "now": ":times[place]",
    "lease_minutes": ":lease_minutes[place]",
    "visitor": ":visitors[place]",
    "checks": "CAST(:checks[place] AS jsonb)",
    "reason": ":reasons[place]",
    "probability": ":probabilities[place]",
}

# Locks everything that a batch of leases needs, in the order of all locks, and leases one HIT after another. Statements
# of a function have snapshots of their own, so each lease sees the locked rows and the leases before it.
LEASE_HITS_BODY, LEASE_HITS_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    BEGIN
        PERFORM FROM ({law_storage.SHARE_STORE_LOCK.text}) AS locked;
        PERFORM FROM ({law_storage.LOCK_LAW_STATE.text}) AS locked;
        IF cardinality(:counted) > 0 THEN
            PERFORM FROM (SELECT annotator FROM unnest(:counted) AS annotator ORDER BY annotator) AS one, LATERAL (
                SELECT FROM annotators a WHERE a.campaign_id = :campaign AND a.id = one.annotator FOR NO KEY UPDATE OF a
            ) AS locked;
        END IF;
        PERFORM FROM ({LOCK_POSTERIORS_SQL.replace(":capped", ":all_capped")}) AS locked;
        FOR place IN 1 .. cardinality(:annotators) LOOP
            SELECT lease.leased, lease.until INTO id, expires_at
            FROM easel_insert_lease({", ".join(LEASE_ARGUMENTS_AT_PLACE[name] for name in LEASE_ARGUMENTS)}) AS lease;
            IF id IS NOT NULL THEN
                number := place;
                RETURN NEXT;
            END IF;
        END LOOP;
    END
    """)
)
LEASE_HITS_FUNCTION = f"""
    CREATE FUNCTION easel_lease_hits(
        {argument_declarations_of_function(LEASE_HITS_ARGUMENTS, LEASES_PARAMETER_TYPES)},
        OUT number int, OUT id bigint, OUT expires_at timestamptz
    ) RETURNS SETOF record LANGUAGE plpgsql AS $${LEASE_HITS_BODY}$$
"""


def lease_hits_statement(shown_sql: str) -> TextClause:
    """Return the statement that leases HITs and selects the columns of `shown_sql`, which may name `leased`."""
    return text(f"""
    SELECT leased.number, leased.id, leased.expires_at, shown.*
    FROM easel_lease_hits({", ".join(f":{name}" for name in LEASE_HITS_ARGUMENTS)}) AS leased,
         LATERAL ({shown_sql}) AS shown
""")


SHOWN_ARGUMENTS_OF_LEASED_HIT = {
    "campaign": ":campaign",
    "hit": "leased.id",
    "items": "CAST((CAST(:shown AS text[]))[leased.number] AS int[])",
    "shown": "CAST((CAST(:shown AS text[]))[leased.number] AS int[])",
    "segment": "(CAST(:segments AS int[]))[leased.number]",
}


def shown_of_leased_hit_sql(function: str, arguments: Sequence[str]) -> str:
    """Return SQL that calls a function for the HIT `leased`."""
    return f"SELECT * FROM {function}({', '.join(SHOWN_ARGUMENTS_OF_LEASED_HIT[name] for name in arguments)})"


LOCK_AND_LEASE = lease_hits_statement(shown_of_leased_hit_sql("easel_shown_items", SHOWN_ITEMS_ARGUMENTS))
LOCK_AND_LEASE_OUTPUTS = lease_hits_statement(shown_of_leased_hit_sql("easel_shown_outputs", SHOWN_OUTPUTS_ARGUMENTS))

LOCK_HIT = text("SELECT id FROM hits WHERE campaign_id = :campaign AND id = :hit FOR NO KEY UPDATE")

LOCK_ANNOTATOR_ROW = text(LOCK_ANNOTATOR_SQL)

RENEW_LEASE = text(f"""
    UPDATE hits SET expires_at = {DATABASE_TIME} + make_interval(mins => :lease_minutes)
    WHERE campaign_id = :campaign AND id = :hit AND closed_at IS NULL
      AND (SELECT barred IS NULL FROM annotators
           WHERE campaign_id = :campaign AND id = CAST(:annotator AS bigint))
      AND {EVERY_ITEM_IS_OPEN} AND {ANNOTATOR_MAY_HOLD_HIT} AND {SCHEDULED_PLACE_IS_FREE}
    RETURNING expires_at
""")


class LeasedHit(ShownItems):
    """A new HIT; `number` is its place in the batch, from 1."""

    number: int
    id: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ProposedLease:
    """A HIT to lease to an annotator, with the checks in it.

    Attributes:
        assignment: The annotator's assignment.
        proposal: The HIT.
        visitor: Origin of the request, if no platform vouches for the annotator.
        now: Time to store.
        checks: Checks of the HIT.

    """

    assignment: AssignmentState
    proposal: HitProposal
    visitor: Visitor | None
    now: datetime
    checks: Sequence[CheckItem] = ()


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


async def try_to_lease_hits(
    connection: Driver, campaign_id: int, leases: Sequence[ProposedLease], *, few_open: bool
) -> dict[int, LeasedHit]:
    """Lease the proposed items as new HITs of one campaign, and return these by their place in `leases`, from 1.

    A HIT is missing if another request took some of its items first.

    Args:
        connection: Connection in no transaction.
        campaign_id: Id of the campaign.
        leases: The HITs to lease, one at least.
        few_open: True if open HITs are known to be few.

    """
    assignments, proposals = [lease.assignment for lease in leases], [lease.proposal for lease in leases]
    campaign = assignments[0]
    capped = [items_with_judgment_limit(campaign, proposal.items) for proposal in proposals]
    counted = {
        assignment.annotator_id
        for assignment in assignments
        if assignment.hits_per_annotator is not None or assignment.one_hit
    }
    parameters = {
        "campaign": campaign_id,
        "repeat_items": campaign.repeat_items,
        "hits_per_annotator": campaign.hits_per_annotator,
        "wanted": campaign.judgments_per_item,
        "people": campaign.unjudged_people,
        "few_open": few_open,
        "counted": sorted(counted),
        "all_capped": sorted({item for items in capped for item in items}),
        "annotators": [assignment.annotator_id for assignment in assignments],
        "assignments": [assignment.assignment_id for assignment in assignments],
        "one_hits": [assignment.one_hit for assignment in assignments],
        "leaders": [proposal.leader for proposal in proposals],
        "items": [array_text_of_integers(proposal.items) for proposal in proposals],
        "capped": [array_text_of_integers(items) for items in capped],
        "shown_as": [proposal.shown_as and array_text_of_integers(proposal.shown_as) for proposal in proposals],
        "iterations": [proposal.iteration for proposal in proposals],
        "ordinals": [proposal.ordinal for proposal in proposals],
        "segments": [proposal.segment for proposal in proposals],
        "shared_leaders": [proposal.shared_leader for proposal in proposals],
        "times": [lease.now for lease in leases],
        "lease_minutes": [lease_minutes(lease.assignment, lease.visitor) for lease in leases],
        "visitors": [lease.visitor and lease.visitor.address_hash for lease in leases],
        "checks": [placed_checks_json_or_none(proposal.checks) for proposal in proposals],
        "reasons": [proposal.reason for proposal in proposals],
        "probabilities": [proposal.probability for proposal in proposals],
        "shown": [array_text_of_integers(proposal.visible_items) for proposal in proposals],
    }
    statement = LOCK_AND_LEASE if proposals[0].segment is None else LOCK_AND_LEASE_OUTPUTS
    return {row.number: row for row in await fetch_rows(connection, statement, parameters, LeasedHit)}


async def try_to_renew_lease(
    connection: Driver, assignment: AssignmentState | HeldHit, visitor: Visitor | None
) -> datetime | None:
    """Renew an expired lease and return its new end; None if another annotator has needed its items meanwhile.

    The HIT may then share its leader with a newer one: values that were entered are worth more than a distinct leader.
    """
    parameters = RenewalParameters(
        campaign=assignment.campaign_id,
        hit=assignment.hit_id,
        annotator=assignment.annotator_id,
        assignment=assignment.assignment_id,
        segment=assignment.hit_segment,
        capped=items_with_judgment_limit(assignment, assignment.hit_items),
        few_open=False,
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
        await lock_revision_and_law_state(connection, assignment.campaign_id)
        await execute_statement(connection, LOCK_HIT, parameters)
        await lock_annotator_and_posteriors(connection, parameters)
        expires_at: datetime | None = await fetch_value(connection, RENEW_LEASE, parameters)
    return expires_at


def items_with_judgment_limit(assignment: AssignmentState | HeldHit, items: Sequence[int]) -> list[int]:
    """Return the items of a HIT that have a limit on judgments, which items of every HIT do not."""
    return [item for item in items if item not in assignment.always_shown]


def lease_minutes(assignment: AssignmentState | HeldHit, visitor: Visitor | None) -> int:
    """Return the length of a lease. It is short for a `visitor`, whose first touch is still to come."""
    minutes = assignment.lease_minutes
    return min(minutes, visitor.limits.untouched_minutes) if visitor else minutes


async def lock_revision_and_law_state(connection: Driver, campaign_id: int) -> None:
    """Lock the right to store in the present revision, and the state of the campaign's law."""
    for statement in (law_storage.SHARE_STORE_LOCK, law_storage.LOCK_LAW_STATE):
        await execute_statement(connection, statement, {"campaign": campaign_id})


async def lock_annotator_and_posteriors(connection: Driver, parameters: HoldParameters) -> None:
    """Lock the posteriors of the capped items, and before them the annotator's row if their HITs are counted."""
    if parameters.hits_per_annotator is not None or parameters.one_hit:
        await execute_statement(connection, LOCK_ANNOTATOR_ROW, parameters)
    await execute_statement(connection, LOCK_HIT_POSTERIORS, parameters)
