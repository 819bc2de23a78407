"""Where an assignment stands: its annotator, their campaign, the HIT it holds, and what others hold and answered.

A HIT is open as long as the database's clock says so: the machines that serve need not agree on the time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import TextClause, text

from app.crowd.annotators import ARRIVED_THEN, AssignmentId
from app.crowd.doors import Visitor
from app.crowd.registry import PLATFORMS
from app.database.session import Driver, columns, fetch_one
from app.designs.remarks import RemarkOn
from app.designs.unjudged import EXTRA
from app.errors import NotFound
from app.record.news import NEWS, changes
from app.serving.posterior_cache import Followed, Heard, PosteriorCache, ask_more

# Of the database, when it got the statement: in one that is sent after a wait for a lock, the time after the wait.
CLOCK = "statement_timestamp()"

OPEN = f"h.closed_at IS NULL AND h.expires_at > {CLOCK}"

# For whoever goes through all of a campaign that are open. Nobody else may use the index that this is for.
ALL_OPEN = f"{OPEN} AND h.leader IS NOT NULL"

# Platforms whose assignments are one HIT each. Elsewhere one may go on in another visit with the HIT of an earlier one.
ONE_HIT = f"""platform = ANY('{{{",".join(name for name, it in PLATFORMS.items() if it.one_hit_per_assignment)}}}')"""

# The HIT is for :assignment to answer.
THEIRS = f"""
    EXISTS (SELECT 1 FROM assignments s JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
            WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN} AND a.id = h.annotator_id
            AND (s.id = h.assignment_id OR NOT {ONE_HIT}))"""  # noqa: S608  (constants)

# One of each answered HIT, however often it was changed.
FIRST_ANSWER = "r.replaces IS NULL"

# The HIT is answered. Asked by EXISTS, PostgreSQL may go through all of the campaign's responses.
ANSWERED = f"""
    (SELECT true FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id AND {FIRST_ANSWER})"""  # noqa: S608  (constants)

# The HIT is open or answered.
TAKEN = f"({OPEN} OR EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = h.campaign_id AND r.hit_id = h.id))"  # noqa: S608  (made of constants)

ASKS_WHAT_OTHERS_HOLD = "mine.id IS NULL AND c.selection = 'streaming' AND copy.remembered IS NOT TRUE"


OF_COPY = {"campaign": "c.id", "revision": "c.revision", "people": "c.unjudged_people", "since": "copy.since"}


SEEN_ITEMS = """
    ARRAY(SELECT DISTINCT item FROM responses r, unnest(r.items) AS item
          WHERE r.campaign_id = c.id AND r.annotator_id = a.id)"""

SEEN = f"""
    CASE WHEN c.segment_count = 0 THEN {SEEN_ITEMS}
    ELSE ARRAY(SELECT DISTINCT r.segment FROM responses r
               WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND r.segment IS NOT NULL)
    END"""  # noqa: S608  (constants)

NOT_JUDGED = f"""
    CASE WHEN NOT c.cannot_be_judged OR NOT c.repeat_items THEN NULL
    WHEN c.segment_count = 0 THEN
        ARRAY(SELECT DISTINCT shown.item FROM responses r, unnest(r.items, r.values) AS shown (item, value)
              WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND shown.value = 'NaN'
              AND shown.item IS NOT NULL
              AND r.extra -> '{EXTRA}' ?| (CAST(shown.item AS text) || CAST(c.always_shown AS text[])))
    ELSE ARRAY(SELECT DISTINCT r.segment FROM responses r
               WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND r.extra -> '{EXTRA}' IS NOT NULL)
    END"""  # noqa: S608  (constants)

HELD_SEGMENTS = f"""
    CASE WHEN c.segment_count > 0 AND {ASKS_WHAT_OTHERS_HOLD} THEN
        ARRAY(SELECT segment FROM hits h WHERE h.campaign_id = c.id AND h.segment IS NOT NULL AND {ALL_OPEN})
    END"""  # noqa: S608  (constants)


class ServedCampaign(Followed):
    """What annotators' pages and the serving of HITs ask of a campaign's row."""

    link_key: str
    status: str
    design: str
    design_settings: dict[str, Any]
    name: str
    question: str
    instructions: str
    language: str
    low_label: str
    middle_label: str | None
    high_label: str
    criteria: list[dict[str, Any]]
    criteria_shown: str
    asked_criterion: int | None
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
    comment_on: RemarkOn
    flag_on: RemarkOn
    flag_reasons: list[str]
    has_checks: bool
    checks_percent: float | None
    gold_feedback: bool
    iteration: int
    revision: int


CAMPAIGN = f"{columns(Followed, 'c')}, {columns(ServedCampaign, 'c')}"


class Standing(ServedCampaign, Heard):
    """Where an assignment stands in its campaign.

    seen, held_elsewhere: the items that its annotator was asked about, or holds in other assignments; where the items
    are systems, which many HITs show, the segments. not_judged: where items may be shown again, those that they could
    not judge, and those of which their answer says nothing since they could not judge an item that every HIT shows; the
    segments of which they could not judge an output. hit_...: of the HIT that it holds, None if it holds none.
    ..._elsewhere: of the annotator's other assignments. admitted: whether they have passed all steps before the work.
    held_back: whether they get no further HIT.
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


def standing_where(condition: str, *, more: bool) -> TextClause:
    """The statement that tells where the assignment stands of which `condition` holds.

    What others hold is only for who gets a new HIT, by `streaming`, from a process that does not remember it.
    more: for campaigns that `ask_more`. Most do not, and what nobody reads takes time even so.
    """
    of_more = {"segments": "c.segment_count", "asked": "c.asked_criterion"} if more else {}
    news = changes(**OF_COPY, **of_more)
    return text(f"""
    SELECT {CAMPAIGN}, s.id AS assignment_id, s.arrived_at, s.arrival, a.id AS annotator_id,
           a.platform, a.{ONE_HIT} AS one_hit,
           a.admitted >= c.visit_version AS admitted,
           a.barred IS NOT NULL AS held_back,
           (SELECT count(*) FROM responses r WHERE r.campaign_id = c.id AND r.annotator_id = a.id AND {FIRST_ANSWER})
           AS hits_answered,
           EXISTS (SELECT 1 FROM hits h WHERE h.campaign_id = c.id AND h.assignment_id = s.id AND {ANSWERED})
           AS answered_here,
           elsewhere.open_elsewhere, elsewhere.held_elsewhere,
           EXISTS (SELECT 1 FROM hits h WHERE h.campaign_id = c.id AND h.annotator_id = a.id
                   AND h.assignment_id IS DISTINCT FROM s.id AND h.closed_at IS NULL) AS begun_elsewhere,
           {SEEN if more else SEEN_ITEMS} AS seen, {NOT_JUDGED if more else "CAST(NULL AS int[])"} AS not_judged,
           CASE WHEN {ASKS_WHAT_OTHERS_HOLD} THEN
               ARRAY(SELECT item FROM hits h, unnest(h.items) AS item WHERE h.campaign_id = c.id AND {ALL_OPEN})
           END AS held,
           CASE WHEN {ASKS_WHAT_OTHERS_HOLD} THEN
               ARRAY(SELECT leader FROM hits h WHERE h.campaign_id = c.id AND {ALL_OPEN})
           END AS leading,
           {HELD_SEGMENTS if more else "CAST(NULL AS int[])"} AS held_segments,
           mine.id AS hit_id, mine.items AS hit_items, mine.draft, mine.expires_at,
           mine.expires_at > {CLOCK} AS hit_is_open, mine.iteration AS hit_iteration, mine.ordinal AS hit_ordinal,
           mine.segment AS hit_segment, mine.shown_as AS hit_shown_as, mine.untouched_by IS NOT NULL AS hit_untouched,
           untouched.here AS untouched_here, untouched.everywhere AS untouched_everywhere, copy.since,
           {", ".join(f"news.{name}" for name in NEWS)}
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id
    LEFT JOIN hits mine ON mine.campaign_id = s.campaign_id AND mine.assignment_id = s.id AND mine.closed_at IS NULL
    LEFT JOIN LATERAL (
        SELECT count(DISTINCT h.id) AS open_elsewhere, coalesce(array_agg(coalesce(h.segment, item)), '{{}}')
               AS held_elsewhere
        FROM hits h, unnest(h.items) AS item
        WHERE h.campaign_id = c.id AND h.annotator_id = a.id AND h.assignment_id IS DISTINCT FROM s.id AND {OPEN}
    ) AS elsewhere ON true
    LEFT JOIN unnest(CAST(:copied AS bigint[]), CAST(:watermarks AS text[]), CAST(:remembered AS boolean[]))
         AS copy (campaign_id, since, remembered) ON copy.campaign_id = c.id
    LEFT JOIN LATERAL (
        SELECT count(*) FILTER (WHERE h.untouched_by = CAST(:visitor AS bytea)) AS here, count(*) AS everywhere
        FROM hits h WHERE h.campaign_id = c.id AND h.untouched_by IS NOT NULL AND {OPEN}
    ) AS untouched ON CAST(:visitor AS bytea) IS NOT NULL AND (mine.id IS NULL OR mine.expires_at <= {CLOCK})
    LEFT JOIN LATERAL ({news}) AS news ON true
    WHERE {condition}
    """)  # noqa: S608  (made of constants)


BY_ID = f"""
    s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN}
    AND a.id = (SELECT annotator_id FROM assignments WHERE campaign_id = :campaign AND id = :assignment)"""  # noqa: S608  (constants)
STANDING_BY_ID = standing_where(BY_ID, more=False)
MORE_BY_ID = standing_where(BY_ID, more=True)


@dataclass(frozen=True)
class AssignmentKey:
    """Which assignment: the statement that tells where it stands, that for a campaign that asks more, and what these
    need to find it. campaign: its id or slug.

    `visitor`: from where they come, when nobody vouches for them.
    """

    campaign: int | str
    statement: TextClause
    more: TextClause
    parameters: Mapping[str, Any]
    visitor: Visitor | None = None


def by_id(assignment: AssignmentId, visitor: Visitor | None = None) -> AssignmentKey:
    return AssignmentKey(assignment.campaign, STANDING_BY_ID, MORE_BY_ID, assignment.parameters, visitor)


async def standing(connection: Driver, cache: PosteriorCache, key: AssignmentKey, *, anew: bool = False) -> Standing:
    """The assignment with its annotator, campaign, unclosed HIT, and what the copy of its posteriors does not know yet.

    anew: with what others hold, whatever is remembered of that.

    Raises `NotFound` (`assignment_not_found`).
    """
    visitor = key.visitor.address if key.visitor else None
    parameters = {**key.parameters, **cache.watermarks(key.campaign, anew=anew), "visitor": visitor}
    known = key.campaign in cache.asking_more
    row = await fetch_one(connection, key.more if known else key.statement, parameters, Standing)
    if row is not None and not known and ask_more(row):
        cache.asking_more.add(key.campaign)
        row = await fetch_one(connection, key.more, parameters, Standing)
    if row is None:
        raise NotFound("This task no longer exists.", code="assignment_not_found")
    cache.hear(row)
    return row
