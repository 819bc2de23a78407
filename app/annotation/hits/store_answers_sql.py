"""The database function that stores answers, alone or followed by the lease of the next HITs in the same statement."""

from collections.abc import Sequence

from sqlalchemy import text

from app.annotation.hits.lease_functions_sql import LEASE_HITS_ARGUMENTS, LeasedHit, shown_of_leased_hit_sql
from app.annotation.hits.shown_items_sql import SHOWN_ITEMS_ARGUMENTS, sql_argument_declarations
from app.database.session import Record, sql_and_parameter_names_of_statement
from app.record.posterior_storage import UPDATE_POSTERIORS_SQL

# Items and values of all responses follow each other; each response has those from its start to its end.
INSERT_RESPONSES_SQL = """
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, segment, extra, telemetry,
                               received_at)
        SELECT :campaign, hit, annotator, source, (CAST(:items AS int[]))[item_start : item_end],
               (CAST(:item_values AS float8[]))[value_start : value_end], segment, CAST(extra AS jsonb),
               CAST(telemetry AS jsonb), answered_at
        FROM {answered} ORDER BY place
        RETURNING seq, hit_id"""
ANSWERED_SQL = """unnest(
            CAST(:hits AS bigint[]), CAST(:assignments AS bigint[]), CAST(:annotators AS bigint[]),
            CAST(:sources AS text[]), CAST(:segments AS int[]), CAST(:extras AS text[]), CAST(:telemetries AS text[]),
            CAST(:times AS timestamptz[]), CAST(:item_starts AS int[]), CAST(:item_ends AS int[]),
            CAST(:value_starts AS int[]), CAST(:value_ends AS int[])
        ) WITH ORDINALITY AS answered (
            hit, assignment, annotator, source, segment, extra, telemetry, answered_at, item_start, item_end,
            value_start, value_end, place)"""

STORE_ANSWERS_PARAMETER_TYPES = {
    "campaign": "bigint",
    "hits": "bigint[]",
    "assignments": "bigint[]",
    "annotators": "bigint[]",
    "sources": "text[]",
    "segments": "int[]",
    "extras": "text[]",
    "telemetries": "text[]",
    "times": "timestamptz[]",
    "item_starts": "int[]",
    "item_ends": "int[]",
    "value_starts": "int[]",
    "value_ends": "int[]",
    "items": "int[]",
    "item_values": "float8[]",
    "numbers": "int[]",
    "states": "float8[]",
    "width": "int",
    "score": "float8[]",
    "variance": "float8[]",
    "more": "int[]",
    "revision": "int",
    "criterion": "int",
}

# Close the HITs, store one response for each, in the order of :hits, and the posteriors. All locks are held when this
# is called. The annotator may have continued a HIT in another visit; it counts for the visit that answers. The database
# holds this function, so a change needs a migration; a test compares the two.
STORE_ANSWERS_BODY, STORE_ANSWERS_ARGUMENTS = sql_and_parameter_names_of_statement(
    text(f"""
    #variable_conflict use_column
    BEGIN
        stored_campaign := :campaign;
        WITH answered AS MATERIALIZED (
            SELECT * FROM {ANSWERED_SQL}
        ), closed AS (
            UPDATE hits h
            SET closed_at = answered.answered_at, assignment_id = answered.assignment, untouched_by = NULL
            FROM answered, LATERAL (
                SELECT t.ctid AS place_in_table FROM hits t
                WHERE t.campaign_id = :campaign AND t.id = answered.hit OFFSET 0  -- so that each is found by its key
            ) AS found
            WHERE h.ctid = found.place_in_table
        ), response AS (
            {INSERT_RESPONSES_SQL.format(answered="answered")}
        ), changed AS (
            {UPDATE_POSTERIORS_SQL}
        )
        SELECT array_agg(seq), array_agg(hit_id) INTO seqs, answered_hits FROM response;
    END
    """)
)
STORE_ANSWERS_FUNCTION = f"""
    CREATE FUNCTION easel_store_answers(
        {sql_argument_declarations(STORE_ANSWERS_ARGUMENTS, STORE_ANSWERS_PARAMETER_TYPES)},
        OUT seqs bigint[], OUT answered_hits bigint[], OUT stored_campaign bigint
    ) LANGUAGE plpgsql AS $${STORE_ANSWERS_BODY}$$
"""
STORE_ANSWERS_CALL = f"easel_store_answers({', '.join(f':stored_{name}' for name in STORE_ANSWERS_ARGUMENTS)})"

STORE_ANSWERS = text(f"SELECT stored.seqs, stored.answered_hits FROM {STORE_ANSWERS_CALL} AS stored")

# The second function is called with a result of the first, so it comes after it. A row for each HIT, one row at least.
STORE_ANSWERS_AND_LEASE = text(f"""
    SELECT stored.seqs, stored.answered_hits, leased.number, leased.id, leased.expires_at, shown.*
    FROM {STORE_ANSWERS_CALL} AS stored
    LEFT JOIN LATERAL easel_lease_hits({
    ", ".join("stored.stored_campaign" if name == "campaign" else f":{name}" for name in LEASE_HITS_ARGUMENTS)
}) AS leased ON true
    LEFT JOIN LATERAL ({shown_of_leased_hit_sql("easel_shown_items", SHOWN_ITEMS_ARGUMENTS)}) AS shown
    ON leased.id IS NOT NULL
""")

# The same for Citus, which stores rows of several tables only by several statements.
CLOSE_HITS = text("""
    UPDATE hits h SET closed_at = answered.answered_at, assignment_id = answered.assignment, untouched_by = NULL
    FROM unnest(CAST(:hits AS bigint[]), CAST(:assignments AS bigint[]), CAST(:times AS timestamptz[]))
        AS answered (hit, assignment, answered_at)
    WHERE h.campaign_id = :campaign AND h.id = answered.hit
""")
INSERT_RESPONSES = text(INSERT_RESPONSES_SQL.format(answered=ANSWERED_SQL))


class StoredResponse(Record):
    """Number of a response to a HIT."""

    seq: int
    hit_id: int


class StoredAnswers(Record):
    """Numbers of the responses to HITs."""

    seqs: Sequence[int]
    answered_hits: Sequence[int]


class StoredAnswersAndLeasedHit(StoredAnswers, LeasedHit):
    """Numbers of the responses, and one of the leased HITs; its columns are None if there is none."""
