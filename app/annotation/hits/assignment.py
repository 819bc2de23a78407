"""State of an assignment: its annotator, its campaign, the HIT it holds, and what the annotator holds and answered."""

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from inspect import get_annotations
from operator import attrgetter
from typing import Any

from app.annotation.hits import assignment_sql
from app.annotation.hits.campaign_index import AnnotatorHistory, CampaignIndex, ChangesAndOpenHits, PosteriorCache
from app.annotation.hits.index_settings import IndexSettings, needs_extended_query
from app.annotation.hits.item_audiences import NO_ITEMS_OF_OTHERS
from app.annotation.hits.item_conditions import NO_BLOCKS
from app.annotation.hits.served_campaign import (
    SELECT_SERVED_CAMPAIGN,
    ServedCampaign,
    VersionedCampaign,
)
from app.annotation.platforms.assignments import AssignmentId
from app.annotation.platforms.visit_limit import Visitor
from app.database.session import Driver, fetch_rows
from app.errors import NotFound

NO_ITEMS_MET_AS_CHECKS: Collection[int] = frozenset()
NO_SEGMENTS: AbstractSet[int] = frozenset()


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
        segments_left_for_checks: Segments that the next HIT leaves for later ones, which show them with their checks.

    """

    items_of_others = NO_ITEMS_OF_OTHERS  # without an annotation: no column
    place_in_blocks = NO_BLOCKS
    items_met_as_checks = NO_ITEMS_MET_AS_CHECKS
    segments_left_for_checks = NO_SEGMENTS
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


# The campaign's settings, and what follows from them, are read and computed once for each version of its row.
CAMPAIGN_ATTRIBUTES = (
    {*get_annotations(ServedCampaign), *get_annotations(IndexSettings)} - {"revision", "releases"}
) | {"design", "criteria", "rule", "selection_settings"}
for name in CAMPAIGN_ATTRIBUTES:
    setattr(AssignmentState, name, property(attrgetter(f"campaign.{name}")))


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
    statement = assignment_sql.SELECT_EXTENDED_ASSIGNMENTS if is_extended else assignment_sql.SELECT_ASSIGNMENTS
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
    """Return the parameters of `assignment_sql.SELECT_ASSIGNMENTS`, without the answers that are about to be stored."""
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
    statement = (
        assignment_sql.SELECT_EXTENDED_CHANGES
        if campaign_id in cache.extended_campaigns
        else assignment_sql.SELECT_CHANGES
    )
    since = cache.watermark_query_parameters(campaign_id)["since"]
    (row,) = await fetch_rows(connection, statement, {"campaign": campaign_id, "since": since}, ChangesAndOpenHits)
    cache.merge_changes_of_row_unless_stale(row)
    return row
