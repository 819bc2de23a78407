"""The locks of a batch of answers, and what they guard: the HITs, their posteriors and their campaign.

Locks are always taken in the same order: the turn (only by a process that has lost a HIT, for answers with next HITs,
see `answer_leases`), the right to store (which a new revision of the posteriors blocks for a moment), the law's state
of the campaign (a row that not every law has), the rows of the HITs by id, the annotator's row (for a lease, its
renewal or a late answer, not for an answer in time), the posterior rows by item number (for answers), then the room of
the campaign (for a lease, its renewal, a late answer, or items that leave the pool), and at last the campaign's row. So
two batches that share items, two posts of one HIT, and a concurrent renewal of a lease wait for each other instead of
deadlocking. A lease in the transaction of answers comes after their posteriors, so it waits for no annotator: one whose
row others have locked gets no HIT by it. With several criteria the posteriors by the first one are locked first, and
their locks also protect those by the others.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.annotation.hits.assignment import remembered_or_loaded_campaign_of_version
from app.annotation.hits.assignment_sql import hit_belongs_to_assignment_sql
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.served_campaign import CAMPAIGN_VERSION, VERSIONED_CAMPAIGN_SOURCE, VersionedCampaign
from app.annotation.hits.shown_items_sql import sql_argument_declarations
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import (
    Driver,
    Record,
    columns_of_row_class_sql,
    fetch_rows,
    integers_of_array,
    sql_and_parameter_names_of_statement,
)
from app.designs.criteria import Submission
from app.record import law_storage
from app.record.exclusions import excluded_annotators_and_responses_sql
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

LOCK_PARAMETER_TYPES = {
    "campaign": "bigint",
    "hits": "bigint[]",
    "answering": "bigint[]",
    "answering_since": "timestamptz[]",
    "late": "boolean",
}

# The HITs :hits, each answered by an assignment that was created at the time in :answering_since. Only HITs whose lease
# goes on once all locks are held are returned, or with :late also the others. Every statement of a function has a
# snapshot of its own, so those after the locks read what the locks guard. Each HIT is found by its key (OFFSET 0),
# whatever PostgreSQL knows about the table when it plans this. The database holds this function, so a change needs a
# migration; a test compares the two.
#
# The lease of an answer in time must go on for longer than its transaction takes after the locks: other leases do not
# wait for it, and count the HIT as open until its items have the judgments. Later answers lock the campaign's room.
# After the locks only the statement that stores and the COMMIT may take long, and `SERVING_LIMITS` end each.
MIN_LEASE_LEFT_SECONDS = 30
LEASE_GOES_ON = f"h.expires_at > clock_timestamp() + interval '{MIN_LEASE_LEFT_SECONDS} seconds'"
HIT_IS_ANSWERABLE = f"(:late OR h.closed_at IS NULL AND {LEASE_GOES_ON})"
LOCK_ANSWERS_BODY, LOCK_ANSWERS_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    DECLARE
        last_decision bigint;  -- up to which decisions about answers count
    BEGIN
        PERFORM FROM ({law_storage.SHARE_STORE_LOCK.text}) AS locked;
        PERFORM FROM ({law_storage.LOCK_LAW_STATE.text}) AS locked;
        PERFORM FROM (SELECT hit FROM unnest(:hits) AS hit ORDER BY hit) AS answered, LATERAL (
            SELECT FROM hits h WHERE h.campaign_id = :campaign AND h.id = answered.hit FOR NO KEY UPDATE OF h
        ) AS locked;
        SELECT array_agg(locked.subject), array_agg(locked.state), array_agg(locked.judgments)
        INTO numbers, states, judgments
        FROM (
            SELECT p.subject, p.state, p.judgments FROM posteriors p
            WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(ARRAY(
                SELECT item FROM unnest(:hits) AS hit, LATERAL (
                    SELECT h.items FROM hits h
                    WHERE h.campaign_id = :campaign AND h.id = hit AND {HIT_IS_ANSWERABLE} OFFSET 0
                ) AS h, unnest(h.items) AS item))
            ORDER BY p.subject FOR NO KEY UPDATE OF p
        ) AS locked;
        SELECT array_agg(h.id), array_agg(h.annotator_id), array_agg(CAST(h.items AS text)), array_agg(h.segment),
               array_agg(CAST(h.shown_as AS text))
        INTO hit_ids, annotator_ids, items_of_hits, segments, shown_as_of_hits
        FROM unnest(:hits, :answering, :answering_since) AS answered (hit, assignment, arrived_at), LATERAL (
            SELECT h.* FROM hits h
            WHERE h.campaign_id = :campaign AND h.id = answered.hit AND {HIT_IS_ANSWERABLE} OFFSET 0
        ) AS h
        WHERE {hit_belongs_to_assignment_sql(assignment="answered.assignment", arrived_at="answered.arrived_at")};
        SELECT {CAMPAIGN_VERSION}, c.decided INTO campaign_version, last_decision {VERSIONED_CAMPAIGN_SOURCE};
        IF last_decision > 0 THEN
            excluded := ARRAY(
                SELECT x.annotator_id
                FROM ({excluded_annotators_and_responses_sql(":campaign", "last_decision")}) AS x
                WHERE x.annotator_id = ANY(annotator_ids));
        END IF;
    END
    """)
)
LOCK_ANSWERS_FUNCTION = f"""
    CREATE FUNCTION easel_lock_answers(
        {sql_argument_declarations(LOCK_ANSWERS_ARGUMENTS, LOCK_PARAMETER_TYPES)},
        OUT hit_ids bigint[], OUT annotator_ids bigint[], OUT items_of_hits text[], OUT segments int[],
        OUT shown_as_of_hits text[], OUT excluded bigint[], OUT numbers int[], OUT states float8[],
        OUT judgments int[], OUT campaign_version text
    ) LANGUAGE plpgsql AS $${LOCK_ANSWERS_BODY}$$
"""


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """An answer to store.

    Args:
        assignment: The annotator's assignment.
        hit_id: Id of the HIT.
        submitted: The answer, or a form with one.
        now: Time to store. The database's clock decides whether the lease is over.

    """

    assignment: AssignmentId
    hit_id: int
    submitted: Submission
    now: datetime


@dataclass(frozen=True, slots=True)
class LockedHit:
    """A HIT that this transaction has locked; see `AnswerableHit`."""

    id: int
    annotator_id: int
    hit_items: list[int]
    segment: int | None
    shown_as: list[int] | None


class LockRow(Record):
    """Row of `easel_lock_answers`; arrays without entries are None.

    `states` and `judgments` are the posteriors by the first criterion, in the order of `numbers`. `excluded` are the
    annotators whose answers do not count.
    """

    lock_version: str
    hit_ids: list[int] | None
    annotator_ids: list[int] | None
    items_of_hits: list[str] | None
    segments: list[int | None] | None
    shown_as_of_hits: list[str | None] | None
    excluded: list[int] | None
    numbers: list[int] | None
    states: list[list[float]] | None
    judgments: list[int] | None


@dataclass(frozen=True, slots=True)
class LockedAnswers:
    """The locked HITs of a campaign, with the posteriors of their items by the first criterion.

    Attributes:
        campaign: The campaign.
        hits: The HITs by id.
        excluded: Annotators whose answers do not count.
        states: States of the posteriors by item.
        judgments: Number of judgments by item.

    """

    campaign: VersionedCampaign
    hits: dict[int, LockedHit]
    excluded: set[int]
    states: dict[int, list[float]]
    judgments: Counter[int]

    @classmethod
    def from_row(cls, campaign: VersionedCampaign, row: LockRow) -> "LockedAnswers":
        """Return what a row says of a campaign."""
        hits = zip(
            row.hit_ids or (),
            row.annotator_ids or (),
            row.items_of_hits or (),
            row.segments or (),
            row.shown_as_of_hits or (),
            strict=True,
        )
        return cls(
            campaign=campaign,
            hits={
                hit_id: LockedHit(
                    hit_id,
                    annotator_id,
                    integers_of_array(items),
                    segment,
                    None if shown_as is None else integers_of_array(shown_as),
                )
                for hit_id, annotator_id, items, segment, shown_as in hits
            },
            excluded={*(row.excluded or ())},
            states=dict(zip(row.numbers or (), row.states or (), strict=True)),
            judgments=Counter(dict(zip(row.numbers or (), row.judgments or (), strict=True))),
        )


LOCK_ANSWERS_SOURCE = f"easel_lock_answers({', '.join(f':{name}' for name in LOCK_ANSWERS_ARGUMENTS)}) AS locked"
LOCK_ANSWERS = text(f"""
    SELECT {columns_of_row_class_sql(LockRow, "locked", lock_version="campaign_version")} FROM {LOCK_ANSWERS_SOURCE}
""")


async def lock_hits_of_answers_and_return_locked_answers(
    connection: Driver,
    cache: PosteriorCache,
    campaign_id: int,
    answers: Sequence[SubmittedAnswer],
    *,
    are_late: bool = False,
) -> LockedAnswers:
    """Lock the HITs of these answers, all different, and what an answer to them changes, and return them.

    Args:
        connection: A connection in a transaction.
        cache: Settings of campaigns that this process remembers.
        campaign_id: Id of the campaign of all HITs.
        answers: The answers.
        are_late: Also return HITs whose lease is over; else they are left out.

    """
    parameters = lock_query_parameters(campaign_id, answers, are_late=are_late)
    (row,) = await fetch_rows(connection, LOCK_ANSWERS, parameters, LockRow)
    campaign = await remembered_or_loaded_campaign_of_version(connection, cache, campaign_id, row.lock_version)
    return LockedAnswers.from_row(campaign, row)


def lock_query_parameters(
    campaign_id: int, answers: Sequence[SubmittedAnswer], *, are_late: bool = False
) -> dict[str, Any]:
    """Return the parameters of `LOCK_ANSWERS`."""
    return {
        "campaign": campaign_id,
        "hits": [answer.hit_id for answer in answers],
        "answering": [answer.assignment.assignment_id for answer in answers],
        "answering_since": [answer.assignment.arrived_at for answer in answers],
        "late": are_late,
    }
