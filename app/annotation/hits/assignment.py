"""State of an assignment: its annotator, its campaign, the HIT it holds, and what the annotator holds and answered.

The database's clock decides whether a HIT is open, so the clocks of server machines may differ.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from inspect import get_annotations
from operator import attrgetter
from typing import Any

from sqlalchemy import TextClause, text

from app.annotation.hits.campaign_index import (
    AnnotatorHistory,
    CampaignIndex,
    ChangesAndOpenHits,
    IndexSettings,
    PosteriorCache,
    needs_extended_query,
)
from app.annotation.hits.item_audiences import NO_ITEMS_OF_OTHERS
from app.annotation.hits.item_conditions import NO_BLOCKS
from app.annotation.hits.served_campaign import (
    CAMPAIGN_VERSION,
    SELECT_SERVED_CAMPAIGN,
    ServedCampaign,
    VersionedCampaign,
)
from app.annotation.platforms.assignments import ARRIVED_THEN, AssignmentId
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, fetch_rows
from app.designs.unjudged import UNJUDGED_KEY
from app.errors import NotFound
from app.record.changes import POSTERIOR_CHANGE_COLUMNS, changed_items_and_watermark_sql

# The database's time when it received the statement. In a statement sent after a wait for a lock: the time after it.
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


NO_ITEMS_MET_AS_CHECKS: Collection[int] = frozenset()


class AssignmentState(ServedCampaign, ChangesAndOpenHits):
    """State of an assignment in its campaign.

    Its row has no columns of the campaign but `revision` and `releases`, which belong to the changes. The others are
    those of `campaign`, which this process remembers as long as `campaign_version` stays the same.

    Columns that begin with `hit_`, `draft` and `expires_at` describe the HIT that it holds; they are None if it holds
    none. Columns that end in `_elsewhere` describe the annotator's other assignments.

    Only one row of a statement has the changes and what open HITs hold.

    Attributes:
        own_hits: HITs that the annotator answered; None if this process remembers the annotator's history.
        own_items: Items in them; if the items are systems, which many HITs show, the segments.
        held_elsewhere: Items (or segments) that the annotator holds in other assignments.
        not_judged: If items may be shown again, those without evidence from this annotator: they could not judge the
            item, or an item that every HIT shows. For systems: segments with an output that they could not judge.
        admitted: True if the annotator has passed all steps before the work.
        held_back: True if the annotator gets no further HIT.
        square_row: Row of the square of conditions that the annotator has; None before the first HIT.
        items_of_others: Items that are only for other people, or outside the annotator's block; they are read before a
            draw, and for a held HIT.
        place_in_blocks: Where the annotator is in the blocks of conditions, read together with these.
        items_met_as_checks: Items whose copies the annotator was shown as gold or attention items; they are read before
            a draw, and for a held HIT.

    """

    items_of_others = NO_ITEMS_OF_OTHERS  # without an annotation: no column
    place_in_blocks = NO_BLOCKS
    items_met_as_checks = NO_ITEMS_MET_AS_CHECKS
    place: int
    campaign_version: str
    assignment_id: int
    arrived_at: datetime
    arrival: dict[str, str]
    annotator_id: int
    platform: str
    one_hit: bool
    admitted: bool
    held_back: bool
    square_row: int | None
    own_hits: list[int] | None
    own_items: list[int] | None
    answered_here: bool
    open_elsewhere: int
    held_elsewhere: list[int]
    begun_elsewhere: bool
    not_judged: list[int] | None
    hit_id: int | None
    hit_items: list[int]
    draft: dict[str, Any] | None
    expires_at: datetime
    hit_is_open: bool
    hit_iteration: int | None
    hit_ordinal: int | None
    hit_segment: int | None
    hit_shown_as: list[int] | None
    hit_untouched: bool
    untouched_here: int
    untouched_everywhere: int

    @cached_property
    def campaign(self) -> ServedCampaign:
        """The campaign. The reader of the row sets it."""
        raise AttributeError("campaign")

    @cached_property
    def history(self) -> AnnotatorHistory:
        """The annotator's answers. The reader of the row sets it if this process remembers them."""
        return AnnotatorHistory({*(self.own_hits or ())}, {*(self.own_items or ())})

    @property
    def hits_answered(self) -> int:
        """Number of HITs that the annotator answered."""
        return len(self.history.answered_hits)

    @property
    def seen(self) -> set[int]:
        """Items that the annotator was asked about (for systems: the segments). Callers must not change the set."""
        return self.history.seen

    @property
    def seen_or_met_as_checks(self) -> set[int]:
        """Those, and the items that the annotator met as checks. Callers must not change the set."""
        return {*self.seen, *self.items_met_as_checks} if self.items_met_as_checks else self.seen

    @property
    def campaign_id(self) -> int:
        """Row id of the campaign, whose columns the assignment has."""
        return self.id

    @property
    def key(self) -> AssignmentId:
        """Ids of the assignment and its campaign."""
        return AssignmentId(self.campaign_id, self.assignment_id, self.arrived_at)


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


# The campaign's settings, and what follows from them, are read and computed once for each version of its row.
CAMPAIGN_ATTRIBUTES = (
    {*get_annotations(ServedCampaign), *get_annotations(IndexSettings)} - {"revision", "releases"}
) | {"design", "criteria", "rule", "selection_settings"}
for name in CAMPAIGN_ATTRIBUTES:
    setattr(AssignmentState, name, property(attrgetter(f"campaign.{name}")))

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


@dataclass(frozen=True, slots=True)
class AssignmentQuery:
    """Query for an assignment.

    Attributes:
        assignment: Id of the assignment.
        visitor: Origin of the request, if no platform vouches for the annotator.

    """

    assignment: AssignmentId
    visitor: Visitor | None = None


async def load_assignment_updating_posteriors_or_refuse(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, refresh: bool = False
) -> AssignmentState:
    """Return the state of one assignment, as `load_assignments_updating_posteriors` does.

    Raises:
        NotFound: `assignment_not_found`.

    """
    campaign_id = query.assignment.campaign_id
    rows = await load_assignments_updating_posteriors(connection, cache, campaign_id, [query], refresh=refresh)
    if not rows:
        raise assignment_not_found_error()
    return rows[query.assignment.assignment_id]


def assignment_not_found_error() -> NotFound:
    return NotFound("This study no longer exists.", code="assignment_not_found")


async def load_assignments_updating_posteriors(
    connection: Driver,
    cache: PosteriorCache,
    campaign_id: int,
    queries: Sequence[AssignmentQuery],
    *,
    refresh: bool = False,
) -> dict[int, AssignmentState]:
    """Return the states of assignments by id, and apply to the cache the posteriors that changed since its last read.

    Assignments that do not exist are left out. The first row has what was read of open HITs.

    Args:
        connection: Connection of the request.
        cache: Posteriors of this process.
        campaign_id: The campaign of all assignments.
        queries: The assignments, all different.
        refresh: Read what open HITs hold, even if this process remembers it.

    """
    campaign_index = cache.indexes.get(campaign_id)
    is_extended = campaign_id in cache.extended_campaigns
    histories = remembered_histories_by_assignment(campaign_index, queries)
    parameters = {
        **assignments_query_parameters(cache, campaign_id, queries, histories, refresh=refresh),
        "hits": [],
        "answering": [],
    }
    statement = SELECT_EXTENDED_ASSIGNMENTS if is_extended else SELECT_ASSIGNMENTS
    rows = await fetch_rows(connection, statement, parameters, AssignmentState)
    if not rows:
        return {}
    rows.sort(key=attrgetter("place"))
    campaign = await remembered_or_loaded_campaign_of_version(connection, cache, campaign_id, rows[0].campaign_version)
    if campaign.campaign_version != rows[0].campaign_version:  # it was changed between the two statements
        return await load_assignments_updating_posteriors(connection, cache, campaign_id, queries, refresh=refresh)
    for row in rows:
        row.campaign = campaign
    if not is_extended and needs_extended_query(rows[0]):
        cache.extended_campaigns.add(campaign_id)
        return await load_assignments_updating_posteriors(connection, cache, campaign_id, queries, refresh=refresh)
    cache.merge_changes_of_row_unless_stale(rows[0])
    if histories and cache.indexes.get(campaign_id) is not campaign_index:  # the histories went with the copy
        return await load_assignments_updating_posteriors(connection, cache, campaign_id, queries, refresh=refresh)
    set_or_remember_history_of_each_row(rows, histories, None if is_extended else campaign_index)
    return {row.assignment_id: row for row in rows}


def remembered_histories_by_assignment(
    campaign_index: CampaignIndex | None, queries: Sequence[AssignmentQuery]
) -> dict[int, AnnotatorHistory]:
    """Return the histories of annotators that this process remembers, by assignment."""
    return {
        query.assignment.assignment_id: history
        for query in queries
        if campaign_index is not None
        and (history := campaign_index.remembered_history_or_none(query.assignment.assignment_id)) is not None
    }


def assignments_query_parameters(
    cache: PosteriorCache,
    campaign_id: int,
    queries: Sequence[AssignmentQuery],
    histories: Mapping[int, AnnotatorHistory],
    *,
    refresh: bool = False,
) -> dict[str, Any]:
    """Return the parameters of `SELECT_ASSIGNMENTS`, without the answers that are about to be stored."""
    return {
        "campaign": campaign_id,
        "assignments": [query.assignment.assignment_id for query in queries],
        "arrivals": [query.assignment.arrived_at for query in queries],
        "visitors": [query.visitor and query.visitor.address_hash for query in queries],
        "known": [query.assignment.assignment_id in histories for query in queries],
        **cache.watermark_query_parameters(campaign_id, refresh=refresh),
    }


def set_or_remember_history_of_each_row(
    rows: Sequence[AssignmentState],
    histories: Mapping[int, AnnotatorHistory],
    campaign_index: CampaignIndex | None,
) -> None:
    """Give rows the remembered histories, and remember those that were read, if the copy is as new as the rows."""
    for row in rows:
        if row.assignment_id in histories:
            row.history = histories[row.assignment_id]
        elif campaign_index is not None and campaign_index.watermark == rows[0].watermark:
            campaign_index.remember_history(row.assignment_id, row.annotator_id, row.history)


async def remembered_or_loaded_campaign_of_version(
    connection: Driver, cache: PosteriorCache, campaign_id: int, version: str
) -> VersionedCampaign:
    """Return the campaign, read again if this process remembers another version."""
    campaign: VersionedCampaign | None = cache.campaigns.get(campaign_id)
    if campaign is None or campaign.campaign_version != version:
        (campaign,) = await fetch_rows(connection, SELECT_SERVED_CAMPAIGN, {"campaign": campaign_id}, VersionedCampaign)
        cache.campaigns[campaign_id] = campaign
    return campaign


async def load_changes_updating_posteriors(
    connection: Driver, cache: PosteriorCache, campaign_id: int
) -> ChangesAndOpenHits:
    """Return what open HITs hold now, and apply to the cache the posteriors that changed since its last read."""
    statement = SELECT_EXTENDED_CHANGES if campaign_id in cache.extended_campaigns else SELECT_CHANGES
    since = cache.watermark_query_parameters(campaign_id)["since"]
    (row,) = await fetch_rows(connection, statement, {"campaign": campaign_id, "since": since}, ChangesAndOpenHits)
    cache.merge_changes_of_row_unless_stale(row)
    return row
