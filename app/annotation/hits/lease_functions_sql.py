"""The database function that leases the HITs of a batch of annotators; `lease_sql` has the conditions of a lease."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.assignment_sql import DATABASE_TIME
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.hits.lease_sql import (
    CAMPAIGN_IS_RUNNING,
    COUNT_ROOM_OF_ITEMS,
    INSERT_LEASE,
    LOCK_ROOM,
    NEW_HIT_CONDITIONS,
    items_with_judgment_limit,
    lease_minutes,
)
from app.annotation.hits.shown_items_sql import (
    SHOWN_ITEMS_ARGUMENTS,
    SHOWN_OUTPUTS_ARGUMENTS,
    ShownItems,
    sql_argument_declarations,
)
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, array_text_of_integers, fetch_rows, sql_and_parameter_names_of_statement
from app.quality.checks import CheckItem, placed_checks_json_or_none
from app.record import law_storage

# The checks of a HIT that was just leased, each with its place, its number and the number under which it is shown.
INSERT_HIT_CHECKS = """
    INSERT INTO hit_checks (campaign_id, hit_id, place, check_number, number)
    SELECT :campaign, leased, (placed -> 0)::int, (placed -> 1)::int, (placed -> 2)::int
    FROM jsonb_array_elements(CAST(:checks[place] AS jsonb)) AS placed"""

# Parameters of a batch of leases. Arrays have an entry for each HIT; arrays of arrays are texts.
LEASES_PARAMETER_TYPES = {
    "campaign": "bigint",
    "repeat_items": "boolean",
    "hits_per_annotator": "int",
    "wanted": "int",
    "people": "int",
    "few_open": "boolean",
    "waits": "boolean",
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
# The parameters of `INSERT_LEASE` for the HIT at `place`.
LEASE_PARAMETERS_AT_PLACE = {
    "annotator": ":annotators[place]",
    "assignment": ":assignments[place]",
    "leader": ":leaders[place]",
    "items": ":items[place]",
    "capped": ":capped[place]",
    "iteration": ":iterations[place]",
    "ordinal": ":ordinals[place]",
    "segment": ":segments[place]",
    "shown_as": ":shown_as[place]",
    "one_hit": ":one_hits[place]",
    "hit": "0",
    "now": ":times[place]",
    "lease_minutes": ":lease_minutes[place]",
    "visitor": ":visitors[place]",
    "reason": ":reasons[place]",
    "probability": ":probabilities[place]",
}
LEASE_PARAMETER_PATTERN = re.compile(rf"(?<!:):({'|'.join(LEASE_PARAMETERS_AT_PLACE)})\b")


def at_place(sql: str) -> str:
    """Return SQL of a lease, with the parameters of the HIT at `place` in a batch."""
    with_parameters = LEASE_PARAMETER_PATTERN.sub(lambda name: LEASE_PARAMETERS_AT_PLACE[name[1]], sql)
    return with_parameters.replace(DATABASE_TIME, "time_after_locks")


# A statement alone for each condition: most campaigns need few of them, and what is not run costs nothing.
REQUIRE_CONDITIONS = "".join(
    f"""
            IF {at_place(case)} THEN
                PERFORM 1 WHERE {at_place(condition)};
                CONTINUE WHEN NOT FOUND;
            END IF;"""
    for case, condition in NEW_HIT_CONDITIONS
)


def lock_annotators_sql(locking: str) -> str:
    """Return SQL that locks the rows of :annotators in order and selects the ids of those who may get a HIT."""
    return f"""
        SELECT a.id FROM (
            SELECT each.id, each.barred, each.admitted
            FROM (SELECT DISTINCT annotator FROM unnest(:annotators) AS annotator ORDER BY annotator) AS one, LATERAL (
                SELECT a.id, a.barred, a.admitted FROM annotators a
                WHERE a.campaign_id = :campaign AND a.id = one.annotator {locking}
            ) AS each
        ) AS a
        WHERE a.barred IS NULL AND a.admitted >= (SELECT visit_version FROM campaigns WHERE id = :campaign)"""


# Takes the locks that a batch of leases needs, in the order of all locks, counts once what items have room for, and
# leases one HIT after another. Statements of a function have snapshots of their own, so they see what the locks guard
# and the leases before them. In a function, too, $1, $2, ... are the arguments. The database holds this function, so a
# change needs a migration; a test compares the two.
LEASE_HITS_BODY, LEASE_HITS_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    DECLARE
        admitted bigint[];  -- annotators who may get a HIT, and have no step to pass first
        time_after_locks timestamptz;
        rooms int[];  -- for each of the capped items: how many more HITs may hold it
        leads boolean[];  -- for each of the capped items: whether it leads an open HIT
        spots int[];  -- places of the items of a HIT among them
        spot int;
        leader_spot int;
        has_room boolean;
        leased bigint;
    BEGIN
        PERFORM FROM ({law_storage.SHARE_STORE_LOCK.text}) AS locked;
        IF :waits THEN
            SELECT array_agg(locked.id) INTO admitted FROM ({lock_annotators_sql("FOR NO KEY UPDATE OF a")}) AS locked;
        ELSE
            SELECT array_agg(locked.id) INTO admitted
            FROM ({lock_annotators_sql("FOR NO KEY UPDATE OF a SKIP LOCKED")}) AS locked;
        END IF;
        PERFORM FROM ({LOCK_ROOM.text}) AS locked;
        time_after_locks := clock_timestamp();
        IF NOT {CAMPAIGN_IS_RUNNING} THEN
            RETURN;
        END IF;
        SELECT counted.rooms, counted.leads INTO rooms, leads
        FROM ({COUNT_ROOM_OF_ITEMS.replace(DATABASE_TIME, "time_after_locks")}) AS counted;
        IF coalesce(cardinality(rooms), 0) <> cardinality(:all_capped) THEN
            RETURN;
        END IF;
        FOR place IN 1 .. cardinality(:annotators) LOOP
            CONTINUE WHEN array_position(admitted, :annotators[place]) IS NULL;
            leader_spot := array_position(:all_capped, :leaders[place]);
            CONTINUE WHEN leads[leader_spot] AND NOT :shared_leaders[place];
            spots := '{{}}';
            has_room := true;
            FOREACH spot IN ARRAY CAST(:capped[place] AS int[]) LOOP
                spot := array_position(:all_capped, spot);
                spots := spots || spot;
                has_room := has_room AND rooms[spot] > 0;
            END LOOP;
            CONTINUE WHEN NOT has_room;
            {REQUIRE_CONDITIONS}
            {at_place(INSERT_LEASE)} INTO leased, expires_at;
            CONTINUE WHEN leased IS NULL;
            IF :checks[place] IS NOT NULL THEN
                {INSERT_HIT_CHECKS};
            END IF;
            FOREACH spot IN ARRAY spots LOOP
                rooms[spot] := rooms[spot] - 1;
            END LOOP;
            IF leader_spot IS NOT NULL THEN
                leads[leader_spot] := true;
            END IF;
            number := place;
            id := leased;
            RETURN NEXT;
        END LOOP;
    END
    """)
)
LEASE_HITS_FUNCTION = f"""
    CREATE FUNCTION easel_lease_hits(
        {sql_argument_declarations(LEASE_HITS_ARGUMENTS, LEASES_PARAMETER_TYPES)},
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


async def try_to_lease_hits_and_return_them_by_place(
    connection: Driver, campaign_id: int, leases: Sequence[ProposedLease], *, few_open: bool
) -> dict[int, LeasedHit]:
    """Lease the proposed items as new HITs of one campaign, and return these by their place in `leases`, from 1.

    A HIT is missing if another request took some of its items first, or if its annotator was blocked or lost
    the place in a quota meanwhile.

    Args:
        connection: Connection in no transaction.
        campaign_id: Id of the campaign.
        leases: The HITs to lease, one at least.
        few_open: True if open HITs are known to be few.

    """
    statement = LOCK_AND_LEASE if leases[0].proposal.segment is None else LOCK_AND_LEASE_OUTPUTS
    parameters = lease_query_parameters(campaign_id, leases, few_open=few_open, waits=True)
    return {row.number: row for row in await fetch_rows(connection, statement, parameters, LeasedHit)}


def lease_query_parameters(
    campaign_id: int, leases: Sequence[ProposedLease], *, few_open: bool, waits: bool
) -> dict[str, Any]:
    """Return the parameters of `LOCK_AND_LEASE`.

    Args:
        campaign_id: Id of the campaign.
        leases: The HITs to lease, one at least.
        few_open: True if open HITs are known to be few.
        waits: True to wait for annotators whose rows others have locked; else these get no HIT.

    """
    assignments, proposals = [lease.assignment for lease in leases], [lease.proposal for lease in leases]
    campaign = assignments[0]
    capped = [items_with_judgment_limit(campaign, proposal.items) for proposal in proposals]
    return {
        "campaign": campaign_id,
        "repeat_items": campaign.repeat_items,
        "hits_per_annotator": campaign.hits_per_annotator,
        "wanted": campaign.judgments_per_item,
        "people": campaign.unjudged_people,
        "few_open": few_open,
        "waits": waits,
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
