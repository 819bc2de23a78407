"""Statements and conditions about the state of assignments and their HITs.

The database's clock decides whether a HIT is open, so the clocks of server machines may differ.
"""

from sqlalchemy import TextClause, text

from app.annotation.hits.served_campaign import CAMPAIGN_VERSION
from app.annotation.platforms.assignments import ARRIVED_THEN
from app.annotation.platforms.registry import PLATFORMS
from app.designs.unjudged import UNJUDGED_KEY
from app.record.changes import POSTERIOR_CHANGE_COLUMNS, changed_items_and_watermark_sql

# The database's time when it received the statement. A statement that waits for locks reads the time before them; where
# that matters, a function takes `clock_timestamp()` after its locks instead.
DATABASE_TIME = "statement_timestamp()"

HIT_IS_OPEN = f"h.closed_at IS NULL AND h.expires_at > {DATABASE_TIME}"

# Open HITs of a whole campaign. Phrased so that only these queries match the partial index `hits_open_idx`.
HIT_IS_OPEN_IN_INDEX = f"{HIT_IS_OPEN} AND h.leader IS NOT NULL"

# SQL: the platform's assignments are one HIT each. On other platforms a later visit may continue an earlier one's HIT.
ONE_HIT_PLATFORM_NAMES = ",".join(name for name, platform in PLATFORMS.items() if platform.one_hit_per_assignment)
IS_ONE_HIT_PLATFORM = f"platform = ANY('{{{ONE_HIT_PLATFORM_NAMES}}}')"


def hit_belongs_to_assignment_sql(*, assignment: str, arrived_at: str) -> str:
    """Return SQL that is true if an assignment, created at that time, may answer the HIT h.

    `OFFSET 0` keeps PostgreSQL from reading all assignments of the campaign for it.
    """
    arrived_then = ARRIVED_THEN.replace(":arrived_at", arrived_at)
    return f"""
    EXISTS (SELECT 1 FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
            WHERE s.campaign_id = :campaign AND s.id = {assignment} AND {arrived_then} AND a.id = h.annotator_id
            AND (s.id = h.assignment_id OR NOT {IS_ONE_HIT_PLATFORM}) OFFSET 0)"""


HIT_BELONGS_TO_ASSIGNMENT = hit_belongs_to_assignment_sql(assignment=":assignment", arrived_at=":arrived_at")

# SQL: true of exactly one response per answered HIT, however often the answer was changed.
IS_FIRST_RESPONSE = "r.replaces IS NULL"

# SQL: the HIT h is answered. No EXISTS: with it PostgreSQL may scan all responses of the campaign.
HIT_IS_ANSWERED = f"""
    (SELECT true FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = h.id AND {IS_FIRST_RESPONSE})"""

HIT_IS_OPEN_OR_ANSWERED = f"""
    ({HIT_IS_OPEN}
     OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = h.id OFFSET 0))"""

CAMPAIGN_SETTING = "(SELECT {} FROM campaigns WHERE id = :campaign)"

SEEN_ITEMS_SQL = """
    ARRAY(SELECT DISTINCT item FROM responses r, unnest(r.items) AS item
          WHERE r.campaign_id = :campaign AND r.annotator_id = a.id)"""

SEEN_ITEMS_OR_SEGMENTS_SQL = f"""
    CASE WHEN c.segment_count = 0 THEN {SEEN_ITEMS_SQL}
    ELSE ARRAY(SELECT DISTINCT r.segment FROM responses r
               WHERE r.campaign_id = :campaign AND r.annotator_id = a.id AND r.segment IS NOT NULL)
    END"""

UNJUDGED_ITEMS_SQL = f"""
    CASE WHEN NOT c.cannot_be_judged OR NOT c.repeat_items THEN NULL
    WHEN c.segment_count = 0 THEN
        ARRAY(SELECT DISTINCT shown.item FROM responses r, unnest(r.items, r.values) AS shown (item, value)
              WHERE r.campaign_id = :campaign AND r.annotator_id = a.id AND shown.value = 'NaN'
              AND shown.item IS NOT NULL
              AND r.extra -> '{UNJUDGED_KEY}' ?| (CAST(shown.item AS text) || CAST(c.always_shown AS text[])))
    ELSE ARRAY(SELECT DISTINCT r.segment FROM responses r
               WHERE r.campaign_id = :campaign AND r.annotator_id = a.id AND r.extra -> '{UNJUDGED_KEY}' IS NOT NULL)
    END"""


# SQL: the HIT h is not among those whose answers are about to be stored.
IS_NOT_BEING_ANSWERED = "h.id <> ALL(CAST(:hits AS bigint[]))"


def open_hits_columns_sql(
    condition_sql: str, *, with_extended_columns: bool, hit_is_open: str = HIT_IS_OPEN_IN_INDEX
) -> str:
    """Return SQL for what the campaign's open HITs hold, as columns that are NULL unless `condition_sql` holds.

    None of it depends on a row, so a statement reads it once however many rows it has.
    """
    segments_needed = f"{condition_sql} AND {CAMPAIGN_SETTING.format('segment_count')} > 0"
    held_segments = f"""
           CASE WHEN {segments_needed} THEN
               ARRAY(SELECT segment FROM hits h
                     WHERE h.campaign_id = :campaign AND h.segment IS NOT NULL AND {hit_is_open})
           END"""
    return f"""
           CASE WHEN {condition_sql} THEN
               ARRAY(SELECT item FROM hits h, unnest(h.items) AS item
                     WHERE h.campaign_id = :campaign AND {hit_is_open})
           END AS held,
           CASE WHEN {condition_sql} THEN
               ARRAY(SELECT leader FROM hits h WHERE h.campaign_id = :campaign AND {hit_is_open})
           END AS leading,
           {held_segments if with_extended_columns else "CAST(NULL AS int[])"} AS held_segments"""


def changes_since_watermark_sql(*, with_extended_columns: bool) -> str:
    """Return SQL for the items of the campaign that changed since the process's watermark."""
    extended_columns = {
        "segments": CAMPAIGN_SETTING.format("segment_count"),
        "asked": CAMPAIGN_SETTING.format("asked_criterion"),
    }
    return changed_items_and_watermark_sql(
        campaign=":campaign",
        revision=CAMPAIGN_SETTING.format("revision"),
        unjudged_people=CAMPAIGN_SETTING.format("unjudged_people"),
        since=":since",
        **(extended_columns if with_extended_columns else {}),
    )


def select_assignments_statement(*, with_extended_columns: bool) -> TextClause:
    """Return the statement that selects the `AssignmentState` of each of the :assignments, created at :arrivals.

    The open HITs :hits count as answered by the assignments :answering.

    OFFSET 0 keeps PostgreSQL from joining tables in another order: each row finds its rows by a whole key, whatever the
    statistics are.

    It reads what open HITs hold only if an annotator needs a new HIT by `streaming` and this process does not remember
    it; and answers of annotators only if they are not :known.

    Args:
        with_extended_columns: Also read segments and unjudged items (see `needs_extended_query`). Most campaigns need
            neither, and reading them takes time.

    """
    open_hits_needed = f"""
        (SELECT bool_or(hit_id IS NULL) FROM standing) AND :remembered IS NOT TRUE
        AND {CAMPAIGN_SETTING.format("selection")} = 'streaming'"""
    open_hits = open_hits_columns_sql(
        open_hits_needed,
        with_extended_columns=with_extended_columns,
        hit_is_open=f"{HIT_IS_OPEN_IN_INDEX} AND {IS_NOT_BEING_ANSWERED}",
    )
    return text(f"""
    WITH standing AS MATERIALIZED (
        SELECT asked.place, asked.visitor, asked.known, s.id AS assignment_id, s.arrived_at, s.arrival, s.annotator_id,
               held_hit.*
        FROM unnest(CAST(:assignments AS bigint[]), CAST(:arrivals AS timestamptz[]), CAST(:visitors AS bytea[]),
                    CAST(:known AS boolean[]))
             WITH ORDINALITY AS asked (assignment, arrived_at, visitor, known, place)
        CROSS JOIN LATERAL (
            SELECT s.* FROM assignments s WHERE s.campaign_id = :campaign AND s.id = asked.assignment OFFSET 0
        ) AS s
        LEFT JOIN LATERAL (
            SELECT h.id AS hit_id, h.items AS hit_items, h.draft, h.expires_at,
                   h.expires_at > {DATABASE_TIME} AS hit_is_open, h.iteration AS hit_iteration,
                   h.ordinal AS hit_ordinal, h.segment AS hit_segment, h.shown_as AS hit_shown_as,
                   h.untouched_by IS NOT NULL AS hit_untouched
            FROM hits h
            WHERE h.campaign_id = :campaign AND h.assignment_id = asked.assignment AND h.closed_at IS NULL
            AND {IS_NOT_BEING_ANSWERED} OFFSET 0
        ) AS held_hit ON true
        WHERE {ARRIVED_THEN.replace(":arrived_at", "asked.arrived_at")}
    ), changes AS MATERIALIZED (
        SELECT news.*, {open_hits}
        FROM ({changes_since_watermark_sql(with_extended_columns=with_extended_columns)}) AS news
    ), untouched AS MATERIALIZED (
        SELECT h.untouched_by, count(*) AS hits FROM hits h
        WHERE h.campaign_id = :campaign AND h.untouched_by IS NOT NULL AND {HIT_IS_OPEN}
        AND {IS_NOT_BEING_ANSWERED} GROUP BY h.untouched_by
    )
    SELECT {CAMPAIGN_VERSION} AS campaign_version, c.revision, c.releases, standing.*, a.platform,
           a.{IS_ONE_HIT_PLATFORM} AS one_hit, a.admitted >= c.visit_version AS admitted,
           a.barred IS NOT NULL AS held_back, a.square_row,
           CASE WHEN NOT standing.known THEN
               ARRAY(SELECT r.hit_id FROM responses r
                     WHERE r.campaign_id = :campaign AND r.annotator_id = a.id AND {IS_FIRST_RESPONSE})
           END AS own_hits,
           CASE WHEN NOT standing.known THEN {SEEN_ITEMS_OR_SEGMENTS_SQL if with_extended_columns else SEEN_ITEMS_SQL}
           END AS own_items,
           {UNJUDGED_ITEMS_SQL if with_extended_columns else "CAST(NULL AS int[])"} AS not_judged,
           standing.assignment_id = ANY(CAST(:answering AS bigint[]))
           OR coalesce((SELECT true FROM hits h
                     WHERE h.campaign_id = :campaign AND h.assignment_id = standing.assignment_id
                     AND {HIT_IS_ANSWERED} LIMIT 1), false) AS answered_here,
           elsewhere.*,
           CASE WHEN counts_untouched THEN
               (SELECT CAST(coalesce(sum(hits), 0) AS int) FROM untouched WHERE untouched_by = standing.visitor)
           END AS untouched_here,
           CASE WHEN counts_untouched THEN (SELECT CAST(coalesce(sum(hits), 0) AS int) FROM untouched) END
           AS untouched_everywhere,
           CAST(:since AS text) AS since, changes.held, changes.leading, changes.held_segments,
           {", ".join(f"changes.{name}" for name in POSTERIOR_CHANGE_COLUMNS)}
    FROM standing
    CROSS JOIN LATERAL (
        SELECT a.* FROM annotators a WHERE a.campaign_id = :campaign AND a.id = standing.annotator_id OFFSET 0
    ) AS a
    JOIN campaigns c ON c.id = :campaign
    LEFT JOIN changes ON standing.place = (SELECT min(place) FROM standing)
    CROSS JOIN LATERAL (
        SELECT standing.visitor IS NOT NULL AND (standing.hit_id IS NULL OR standing.hit_is_open IS NOT TRUE)
    ) AS visit (counts_untouched)
    LEFT JOIN LATERAL (
        SELECT count(h.id) > 0 AS begun_elsewhere,
               count(DISTINCT h.id) FILTER (WHERE {HIT_IS_OPEN} AND item IS NOT NULL) AS open_elsewhere,
               coalesce(array_agg(coalesce(h.segment, item)) FILTER (WHERE {HIT_IS_OPEN} AND item IS NOT NULL), '{{}}')
               AS held_elsewhere
        FROM (
            SELECT o.id FROM assignments o
            WHERE o.campaign_id = :campaign AND o.annotator_id = a.id AND o.id <> standing.assignment_id OFFSET 0
        ) AS other
        CROSS JOIN LATERAL (
            SELECT h.* FROM hits h
            WHERE h.campaign_id = :campaign AND h.assignment_id = other.id AND h.closed_at IS NULL
            AND {IS_NOT_BEING_ANSWERED} OFFSET 0
        ) AS h
        LEFT JOIN LATERAL unnest(h.items) AS item ON true
    ) AS elsewhere ON true
    """)


SELECT_ASSIGNMENTS = select_assignments_statement(with_extended_columns=False)
SELECT_EXTENDED_ASSIGNMENTS = select_assignments_statement(with_extended_columns=True)


def select_changes_statement(*, with_extended_columns: bool) -> TextClause:
    """Return the statement that selects `ChangesAndOpenHits`, for annotators whose proposed HIT was taken by others."""
    is_streaming = f"{CAMPAIGN_SETTING.format('selection')} = 'streaming'"
    return text(f"""
    SELECT c.id, c.judgments_per_item, c.revision, c.releases, CAST(:since AS text) AS since, news.*,
           {open_hits_columns_sql(is_streaming, with_extended_columns=with_extended_columns)}
    FROM campaigns c, ({changes_since_watermark_sql(with_extended_columns=with_extended_columns)}) AS news WHERE c.id =
    :campaign
    """)


SELECT_CHANGES = select_changes_statement(with_extended_columns=False)
SELECT_EXTENDED_CHANGES = select_changes_statement(with_extended_columns=True)
