"""State of an assignment: its annotator, its campaign, the HIT it holds, and what the annotator holds and answered.

The database's clock decides whether a HIT is open, so the clocks of server machines may differ.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text

from app.annotation.hits.campaign_index import ChangesAndOpenHits, IndexSettings, PosteriorCache, needs_extended_query
from app.annotation.platforms.assignments import ARRIVED_THEN, AssignmentId
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, columns_of_row_class_sql, fetch_first_row
from app.designs.criteria import ComparingCampaign, LabelledCampaign
from app.designs.criteria_settings import CriterionSettings
from app.designs.remarks import RemarkTarget
from app.designs.unjudged import UNJUDGED_KEY
from app.errors import NotFound
from app.record.changes import POSTERIOR_CHANGE_COLUMNS, posterior_changes_sql

# The database's time when it received the statement. In a statement sent after a wait for a lock: the time after it.
DATABASE_TIME = "statement_timestamp()"

HIT_IS_OPEN = f"h.closed_at IS NULL AND h.expires_at > {DATABASE_TIME}"

# Open HITs of a whole campaign. Phrased so that only these queries match the partial index `hits_open_idx`.
HIT_IS_OPEN_IN_INDEX = f"{HIT_IS_OPEN} AND h.leader IS NOT NULL"

# SQL: the platform's assignments are one HIT each. On other platforms a later visit may continue an earlier one's HIT.
ONE_HIT_PLATFORM_NAMES = ",".join(name for name, platform in PLATFORMS.items() if platform.one_hit_per_assignment)
IS_ONE_HIT_PLATFORM = f"platform = ANY('{{{ONE_HIT_PLATFORM_NAMES}}}')"


def hit_belongs_to_assignment_sql(*, assignment: str, arrived_at: str) -> str:
    """Return SQL that is true if an assignment, created at that time, may answer the HIT h."""
    arrived_then = ARRIVED_THEN.replace(":arrived_at", arrived_at)
    return f"""
    EXISTS (SELECT 1 FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
            WHERE s.campaign_id = h.campaign_id AND s.id = {assignment} AND {arrived_then} AND a.id = h.annotator_id
            AND (s.id = h.assignment_id OR NOT {IS_ONE_HIT_PLATFORM}))"""


HIT_BELONGS_TO_ASSIGNMENT = hit_belongs_to_assignment_sql(assignment=":assignment", arrived_at=":arrived_at")

# SQL: true of exactly one response per answered HIT, however often the answer was changed.
IS_FIRST_RESPONSE = "r.replaces IS NULL"

# SQL: the HIT h is answered. No EXISTS: with it PostgreSQL may scan all responses of the campaign.
HIT_IS_ANSWERED = f"""
    (SELECT true FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id AND {IS_FIRST_RESPONSE})"""

HIT_IS_OPEN_OR_ANSWERED = (
    f"({HIT_IS_OPEN} OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id))"
)

NEEDS_OPEN_HITS = "held_hit.id IS NULL AND c.selection = 'streaming' AND copy.remembered IS NOT TRUE"


CHANGES_QUERY_COLUMNS = {
    "campaign": "c.id",
    "revision": "c.revision",
    "unjudged_people": "c.unjudged_people",
    "since": "copy.since",
}


SEEN_ITEMS_SQL = """
    ARRAY(SELECT DISTINCT item FROM responses r, unnest(r.items) AS item
          WHERE r.campaign_id = c.id AND r.annotator_id = a.id)"""

SEEN_ITEMS_OR_SEGMENTS_SQL = f"""
    CASE WHEN c.segment_count = 0 THEN {SEEN_ITEMS_SQL}
    ELSE ARRAY(SELECT DISTINCT r.segment FROM responses r
               WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND r.segment IS NOT NULL)
    END"""

UNJUDGED_ITEMS_SQL = f"""
    CASE WHEN NOT c.cannot_be_judged OR NOT c.repeat_items THEN NULL
    WHEN c.segment_count = 0 THEN
        ARRAY(SELECT DISTINCT shown.item FROM responses r, unnest(r.items, r.values) AS shown (item, value)
              WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND shown.value = 'NaN'
              AND shown.item IS NOT NULL
              AND r.extra -> '{UNJUDGED_KEY}' ?| (CAST(shown.item AS text) || CAST(c.always_shown AS text[])))
    ELSE ARRAY(SELECT DISTINCT r.segment FROM responses r
               WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND r.extra -> '{UNJUDGED_KEY}' IS NOT NULL)
    END"""

HELD_SEGMENTS_SQL = f"""
    CASE WHEN c.segment_count > 0 AND {NEEDS_OPEN_HITS} THEN
        ARRAY(SELECT segment FROM hits h
              WHERE h.campaign_id = c.id AND h.segment IS NOT NULL AND {HIT_IS_OPEN_IN_INDEX})
    END"""


class ServedCampaign(LabelledCampaign, ComparingCampaign, IndexSettings):
    """Columns of a campaign that annotators' pages and the serving of HITs read."""

    link_key: str
    status: str
    design_name: str
    design_settings: dict[str, Any]
    name: str
    question: str
    instructions: str
    language: str
    low_label: str
    middle_label: str | None
    high_label: str
    criteria_settings: list[CriterionSettings]
    criteria_shown: str
    asked_criterion: int | None
    tie_margin_points: int
    show_numbers: bool
    content: str
    source_column: str | None
    reference_column: str | None
    differences: str
    https_media: bool
    latex: bool
    minutes_per_hit: float | None
    pay: str | None
    pay_per_hit: float | None
    currency: str
    in_short: str
    leave_early: bool
    undo: bool
    break_minutes: int | None
    people_per_address: int | None
    selection: str
    hits_per_annotator: int | None
    repeat_items: bool
    implied_asked_percent: int | None
    lease_minutes: int
    cannot_be_judged: bool
    unjudged_reasons: list[str]
    unjudged_people: int
    comment_on: RemarkTarget
    flag_on: RemarkTarget
    flag_reasons: list[str]
    has_checks: bool
    checks_percent: float | None
    gold_feedback: bool
    must_play: str | None
    items_language: str | None
    source_language: str | None
    max_plays: str | None
    loop: bool
    switch_sounds: str | None
    iteration: int
    revision: int


SERVED_CAMPAIGN_COLUMNS = ", ".join(
    (
        columns_of_row_class_sql(IndexSettings, "c", rule_name="rule"),
        columns_of_row_class_sql(
            ServedCampaign,
            "c",
            design_name="design",
            criteria_settings="criteria",
            must_play="general_settings ->> 'must_play'",
            items_language="general_settings ->> 'items_language'",
            source_language="general_settings ->> 'source_language'",
            max_plays="general_settings ->> 'max_plays'",
            switch_sounds="general_settings ->> 'switch_sounds'",
            loop="""general_settings @> '{"loop": true}'""",
        ),
    )
)


class AssignmentState(ServedCampaign, ChangesAndOpenHits):
    """State of an assignment in its campaign.

    Columns that begin with `hit_`, `draft` and `expires_at` describe the HIT that it holds; they are None if it holds
    none. Columns that end in `_elsewhere` describe the annotator's other assignments.

    Attributes:
        seen: Items that the annotator was asked about; if the items are systems, which many HITs show, the segments.
        held_elsewhere: Items (or segments) that the annotator holds in other assignments.
        not_judged: If items may be shown again, those without evidence from this annotator: they could not judge the
            item, or an item that every HIT shows. For systems: segments with an output that they could not judge.
        admitted: True if the annotator has passed all steps before the work.
        held_back: True if the annotator gets no further HIT.

    """

    assignment_id: int
    arrived_at: datetime
    arrival: dict[str, str]
    annotator_id: int
    platform: str
    one_hit: bool
    admitted: bool
    held_back: bool
    hits_answered: int
    answered_here: bool
    open_elsewhere: int
    held_elsewhere: list[int]
    begun_elsewhere: bool
    seen: list[int]
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

    @property
    def campaign_id(self) -> int:
        """Row id of the campaign, whose columns the assignment has."""
        return self.id

    @property
    def key(self) -> AssignmentId:
        """Ids of the assignment and its campaign."""
        return AssignmentId(self.campaign_id, self.assignment_id, self.arrived_at)


def select_assignment_statement(condition: str, *, extended: bool) -> TextClause:
    """Return the statement that selects the `AssignmentState` that satisfies `condition`.

    It reads what open HITs hold only if this annotator needs a new HIT by `streaming` and this process does not
    remember it.

    Args:
        condition: SQL on the campaign c, the assignment s and the annotator a.
        extended: Also read segments and unjudged items (see `needs_extended_query`). Most campaigns need neither, and
            reading them takes time.

    """
    extended_columns = {"segments": "c.segment_count", "asked": "c.asked_criterion"} if extended else {}
    changes_sql = posterior_changes_sql(**CHANGES_QUERY_COLUMNS, **extended_columns)
    return text(f"""
    SELECT {SERVED_CAMPAIGN_COLUMNS}, s.id AS assignment_id, s.arrived_at, s.arrival, a.id AS annotator_id,
           a.platform, a.{IS_ONE_HIT_PLATFORM} AS one_hit,
           a.admitted >= c.visit_version AS admitted,
           a.barred IS NOT NULL AS held_back,
           (SELECT count(*) FROM responses r
            WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND {IS_FIRST_RESPONSE}) AS hits_answered,
           EXISTS (SELECT 1 FROM hits h WHERE h.campaign_id = c.id AND h.assignment_id = s.id AND {HIT_IS_ANSWERED})
           AS answered_here,
           elsewhere.open_elsewhere, elsewhere.held_elsewhere,
           EXISTS (SELECT 1 FROM hits h WHERE h.campaign_id = c.id AND h.annotator_id = a.id
                   AND h.assignment_id IS DISTINCT FROM s.id AND h.closed_at IS NULL) AS begun_elsewhere,
           {SEEN_ITEMS_OR_SEGMENTS_SQL if extended else SEEN_ITEMS_SQL} AS seen,
           {UNJUDGED_ITEMS_SQL if extended else "CAST(NULL AS int[])"} AS not_judged,
           CASE WHEN {NEEDS_OPEN_HITS} THEN
               ARRAY(SELECT item FROM hits h, unnest(h.items) AS item
                     WHERE h.campaign_id = c.id AND {HIT_IS_OPEN_IN_INDEX})
           END AS held,
           CASE WHEN {NEEDS_OPEN_HITS} THEN
               ARRAY(SELECT leader FROM hits h WHERE h.campaign_id = c.id AND {HIT_IS_OPEN_IN_INDEX})
           END AS leading,
           {HELD_SEGMENTS_SQL if extended else "CAST(NULL AS int[])"} AS held_segments,
           held_hit.id AS hit_id, held_hit.items AS hit_items, held_hit.draft, held_hit.expires_at,
           held_hit.expires_at > {DATABASE_TIME} AS hit_is_open,
           held_hit.iteration AS hit_iteration, held_hit.ordinal AS hit_ordinal, held_hit.segment AS hit_segment,
           held_hit.shown_as AS hit_shown_as, held_hit.untouched_by IS NOT NULL AS hit_untouched,
           untouched.here AS untouched_here, untouched.everywhere AS untouched_everywhere, copy.since,
           {", ".join(f"changes.{name}" for name in POSTERIOR_CHANGE_COLUMNS)}
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id
    LEFT JOIN hits held_hit
        ON held_hit.campaign_id = s.campaign_id AND held_hit.assignment_id = s.id AND held_hit.closed_at IS NULL
    LEFT JOIN LATERAL (
        SELECT count(DISTINCT h.id) AS open_elsewhere, coalesce(array_agg(coalesce(h.segment, item)), '{{}}')
               AS held_elsewhere
        FROM hits h, unnest(h.items) AS item
        WHERE h.campaign_id = c.id AND h.annotator_id = a.id AND h.assignment_id IS DISTINCT FROM s.id AND {HIT_IS_OPEN}
    ) AS elsewhere ON true
    LEFT JOIN unnest(CAST(:copied AS bigint[]), CAST(:watermarks AS text[]), CAST(:remembered AS boolean[]))
         AS copy (campaign_id, since, remembered) ON copy.campaign_id = c.id
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE h.untouched_by = CAST(:visitor AS bytea)) AS here, count(*) AS everywhere
        FROM hits h WHERE h.campaign_id = c.id AND h.untouched_by IS NOT NULL AND {HIT_IS_OPEN}
    ) AS untouched
        ON CAST(:visitor AS bytea) IS NOT NULL AND (held_hit.id IS NULL OR held_hit.expires_at <= {DATABASE_TIME})
    LEFT JOIN LATERAL ({changes_sql}) AS changes ON true
    WHERE {condition}
    """)


ASSIGNMENT_BY_ID_CONDITION = f"""
    s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN}
    AND a.id = (SELECT annotator_id FROM assignments WHERE campaign_id = :campaign AND id = :assignment)"""
SELECT_ASSIGNMENT_BY_ID = select_assignment_statement(ASSIGNMENT_BY_ID_CONDITION, extended=False)
SELECT_EXTENDED_ASSIGNMENT_BY_ID = select_assignment_statement(ASSIGNMENT_BY_ID_CONDITION, extended=True)


@dataclass(frozen=True)
class AssignmentQuery:
    """Query for one assignment: the statement, its extended variant, and their parameters.

    Attributes:
        campaign: Id or slug of the campaign.
        statement: Statement for most campaigns.
        extended_statement: Statement for campaigns that satisfy `needs_extended_query`.
        parameters: Parameters of both statements.
        visitor: Origin of the request, if no platform vouches for the annotator.

    """

    campaign: int | str
    statement: TextClause
    extended_statement: TextClause
    parameters: Mapping[str, Any]
    visitor: Visitor | None = None


def assignment_query_by_id(assignment: AssignmentId, visitor: Visitor | None = None) -> AssignmentQuery:
    return AssignmentQuery(
        assignment.campaign_id,
        SELECT_ASSIGNMENT_BY_ID,
        SELECT_EXTENDED_ASSIGNMENT_BY_ID,
        assignment.parameters,
        visitor,
    )


async def load_assignment_and_update_cache(
    connection: Driver, cache: PosteriorCache, query: AssignmentQuery, *, refresh: bool = False
) -> AssignmentState:
    """Return the state of the assignment, and apply to the cache the posteriors that changed since its last read.

    Args:
        connection: Connection of the request.
        cache: Posteriors of this process.
        query: The assignment to load.
        refresh: Read what open HITs hold, even if this process remembers it.

    Raises:
        NotFound: `assignment_not_found`.

    """
    visitor = query.visitor.address_hash if query.visitor else None
    parameters = {
        **query.parameters,
        **cache.watermark_query_parameters(query.campaign, refresh=refresh),
        "visitor": visitor,
    }
    is_extended = query.campaign in cache.extended_campaigns
    row = await fetch_first_row(
        connection, query.extended_statement if is_extended else query.statement, parameters, AssignmentState
    )
    if row is not None and not is_extended and needs_extended_query(row):
        cache.extended_campaigns.add(query.campaign)
        row = await fetch_first_row(connection, query.extended_statement, parameters, AssignmentState)
    if row is None:
        raise NotFound("This task no longer exists.", code="assignment_not_found")
    cache.apply_changes(row)
    return row
