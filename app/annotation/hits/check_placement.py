"""Checks (gold and attention items) in HITs: when to show them, which ones, and where among the items."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

from sqlalchemy import text

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.hit_proposal import HitProposal, items_seen_or_held_in_other_visit
from app.annotation.platforms.registry import PLATFORMS
from app.database.session import Driver, Record, fetch_first_column, fetch_rows
from app.quality import checks
from app.quality.check_draws import UnseenCheck, draw_unseen_checks_or_empty
from app.quality.check_positions import (
    PlacedCheck,
    draw_check_placements_for_hit_or_none,
    entries_with_checks_inserted,
    shown_numbers_of_items_and_checks,
)
from app.quality.checks import CheckItem
from app.quality.workload import count_of_hits_with_checks_of_annotator, mean_count_of_hits_with_checks

COUNT_CHECKS_AND_ANSWERED_ONES = text("""
    SELECT (SELECT count(*) FROM check_items WHERE campaign_id = :campaign) AS checks,
           (SELECT count(DISTINCT check_number) FROM check_answers
            WHERE campaign_id = :campaign AND annotator_id = :annotator) AS answered
""")


LIST_SEGMENTS_WITH_UNSEEN_CHECKS = text("""
    SELECT DISTINCT i.segment FROM check_items i WHERE i.campaign_id = :campaign AND i.segment IS NOT NULL
    AND NOT EXISTS (
        SELECT 1 FROM check_answers a
        WHERE a.campaign_id = :campaign AND a.annotator_id = :annotator AND a.check_number = i.number)
""")


class CheckCounts(Record):
    """The number of a campaign's checks, and of those that an annotator has answered."""

    checks: int
    answered: int


async def draw_next_checks_and_set_items_met_as_checks(
    connection: Driver, assignment: AssignmentState, cache: PosteriorCache
) -> Sequence[UnseenCheck]:
    """Return the checks for this annotator's next HIT, usually none. Programs get none: they know their items by name.
    Simulated annotators get them as people do. If the items are systems, the checks belong to one segment.

    Only chance decides which HITs have checks. A check may be a copy of an item: an annotator who has seen the item
    never gets the copy, and one who met the copy counts as one who has seen the item.
    """
    platform = PLATFORMS[assignment.platform]
    if not (platform.has_page or platform.is_simulated):
        return ()
    campaign_index = await set_items_met_as_checks_and_return_index(connection, assignment, cache)
    assignment.segments_left_for_checks = frozenset()
    item_by_copy = campaign_index.item_by_copy or {}
    chance = await chance_that_next_hit_shows_checks(
        connection, assignment, max_hits_without_repeats(assignment, campaign_index)
    )
    if campaign_index.rng.random() >= chance:
        if campaign_index.segments is not None and not assignment.repeat_items:
            await leave_segments_for_checks_if_all_are_needed(
                connection, assignment, chance * count_hits_left(assignment, campaign_index.segments.segment_count)
            )
        return ()
    items_met = {*items_seen_or_held_in_other_visit(assignment), *assignment.always_shown}
    segments_seen = set[int]() if campaign_index.segments is None else items_seen_or_held_in_other_visit(assignment)
    drawn_checks = await draw_unseen_checks_or_empty(
        connection,
        assignment.campaign_id,
        assignment.annotator_id,
        design=assignment.design,
        count=checks.number_of_checks_per_hit(assignment),
        barred_numbers={number for number, item in item_by_copy.items() if item in items_met},
        barred_segments=(assignment.not_judged or ()) if assignment.repeat_items else segments_seen,
        segments_seen=segments_seen,
        rng=campaign_index.rng,
    )
    if item_by_copy:
        items_of_drawn = {item_by_copy[check.number] for check in drawn_checks if check.number in item_by_copy}
        assignment.items_met_as_checks = {*assignment.items_met_as_checks, *items_of_drawn}
    return drawn_checks


async def leave_segments_for_checks_if_all_are_needed(
    connection: Driver, assignment: AssignmentState, expected_checks: float
) -> None:
    """Let the next HIT, which shows no check, show another segment than those with checks that the annotator may meet.

    An annotator sees no segment twice. So a segment that is shown without its check is lost for it, which matters if
    the annotator's HITs to come need all of them: then `expected_checks`, the mean number of these, is not lower.
    """
    parameters = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    segments = {*await fetch_first_column(connection, LIST_SEGMENTS_WITH_UNSEEN_CHECKS, parameters)}
    segments_left = segments - items_seen_or_held_in_other_visit(assignment)
    if len(segments_left) <= expected_checks:
        assignment.segments_left_for_checks = frozenset(segments_left)


def count_hits_left(assignment: AssignmentState, hits_without_repeats: int) -> int:
    """Return how many HITs the annotator can still get if none shows anything twice."""
    limit = assignment.hits_per_annotator
    max_hits = hits_without_repeats if limit is None else min(limit, hits_without_repeats)
    return max_hits - assignment.hits_answered - assignment.open_elsewhere


def max_hits_without_repeats(assignment: AssignmentState, campaign_index: CampaignIndex) -> int:
    """Return how many HITs show everything once: all items, or all segments if the items are systems."""
    if campaign_index.segments is not None:
        return campaign_index.segments.segment_count
    return ceil(len(campaign_index.index.score) / assignment.items_per_hit)


async def chance_that_next_hit_shows_checks(
    connection: Driver, assignment: AssignmentState, hits_without_repeats: int
) -> float:
    """Return the probability that this annotator's next HIT shows checks.

    If the HITs of one person are limited, the chosen share of them shows checks, up to all checks, and every place in
    the visit is as likely: the probability is the number of HITs with checks that are still wanted, divided by the HITs
    that are left. The number for the whole visit is decided once, since rounding it at each HIT would show more checks.
    """
    percent, max_hits = assignment.checks_percent or 0.0, assignment.hits_per_annotator
    if not percent or max_hits is None:
        return percent / 100
    if not assignment.repeat_items:
        max_hits = min(max_hits, hits_without_repeats)
    parameters = {"campaign": assignment.campaign_id, "annotator": assignment.annotator_id}
    [counts] = await fetch_rows(connection, COUNT_CHECKS_AND_ANSWERED_ONES, parameters, CheckCounts)
    per_hit = checks.number_of_checks_per_hit(assignment)
    mean = mean_count_of_hits_with_checks(max_hits, percent, counts.checks // per_hit)
    wanted = count_of_hits_with_checks_of_annotator(mean, assignment.seed, assignment.annotator_id)
    hits_left = max_hits - assignment.hits_answered - assignment.open_elsewhere
    return (wanted - counts.answered // per_hit) / max(1, hits_left)


async def set_items_met_as_checks_and_return_index(
    connection: Driver, assignment: AssignmentState, cache: PosteriorCache
) -> CampaignIndex:
    """Note the items whose copies the annotator was shown as checks, also in an open HIT, and return the index."""
    campaign_index = cache.loaded_index_or_none(assignment.campaign_id) or await cache.load_current_index(
        connection, assignment
    )
    # Checks can be added after the launch, without a new revision.
    if campaign_index.item_by_copy is None or campaign_index.copies_version != assignment.campaign_version:
        campaign_index.item_by_copy = await checks.load_copied_item_number_by_check_number(
            connection, assignment.campaign_id
        )
        campaign_index.copies_version = assignment.campaign_version
    if item_by_copy := campaign_index.item_by_copy:
        shown_numbers = await checks.load_shown_check_numbers_of_annotator(
            connection, assignment.campaign_id, assignment.annotator_id
        )
        assignment.items_met_as_checks = {item_by_copy[number] for number in shown_numbers if number in item_by_copy}
    return campaign_index


def may_get_hit_without_checks(
    assignment: AssignmentState, cache: PosteriorCache, drawn_checks: Sequence[UnseenCheck]
) -> bool:
    """Return whether an annotator without a HIT so far may get one without the drawn checks.

    The checks may copy the last items that are left; the annotator can then be asked about these. Or the outputs for
    the segment of the checks cannot be compared, and those for others can. Or no other segments are left than those
    that are kept for checks.
    """
    campaign_index = cache.loaded_index_or_none(assignment.campaign_id)
    item_by_copy = (campaign_index and campaign_index.item_by_copy) or {}
    items_of_drawn = {item_by_copy[check.number] for check in drawn_checks if check.number in item_by_copy}
    assignment.items_met_as_checks = {*assignment.items_met_as_checks} - items_of_drawn
    segments_left, assignment.segments_left_for_checks = assignment.segments_left_for_checks, frozenset()
    return bool(items_of_drawn or segments_left) or segment_of_next_hit_or_none(assignment, drawn_checks) is not None


def count_check_slots(assignment: AssignmentState, next_checks: Sequence[CheckItem]) -> int:
    """Return how many of a HIT's item places the checks take; 0 if they are a HIT of their own."""
    return len(next_checks) if len(next_checks) < assignment.items_per_hit else 0


def segment_of_next_hit_or_none(assignment: AssignmentState, next_checks: Sequence[UnseenCheck]) -> int | None:
    """Return the segment that the HIT must show because checks of it are among its outputs; None if there is none."""
    return next_checks[0].segment if count_check_slots(assignment, next_checks) else None


def proposal_with_checks_or_none(
    assignment: AssignmentState, cache: PosteriorCache, proposal: HitProposal, next_checks: Sequence[UnseenCheck]
) -> HitProposal | None:
    """Return the proposal with checks at random places, or a HIT of checks instead of it.

    A proposal without room for checks is returned unchanged: the campaign has too few items to lend them numbers. So is
    one with an item that a check copies: no others were left.
    The result is None if another revision has come meanwhile; then the caller must draw again.
    """
    campaign_index, numbers = (
        cache.loaded_index_or_none(assignment.campaign_id),
        [check.number for check in next_checks],
    )
    if campaign_index is None:
        return None
    item_by_copy = campaign_index.item_by_copy or {}
    if any(item_by_copy.get(number) in proposal.items for number in numbers):
        return proposal
    is_own_hit = not count_check_slots(assignment, next_checks)
    placed_checks = draw_check_placements_for_hit_or_none(
        numbers,
        [] if is_own_hit else proposal.items,
        # Systems are few, and a HIT may show all of them: further numbers keep a place for the checks.
        len(campaign_index.index.score) + (len(numbers) if campaign_index.segments is not None else 0),
        campaign_index.rng,
        assignment.seen if campaign_index.segments is None else (),
        hidden_item_count=0 if is_own_hit else len(proposal.items) - len(proposal.visible_items),
    )
    if placed_checks is None:
        return proposal
    if is_own_hit:
        return HitProposal(None, [], "checks", None, segment=next_checks[0].segment, checks=placed_checks)
    return replace(proposal, checks=placed_checks)


def presented_numbers_ids_and_texts(
    items: Sequence[int],
    ids: Sequence[str] | None,
    texts: Sequence[str] | None,
    placed_checks: Sequence[PlacedCheck],
    checks_by_number: Mapping[int, CheckItem],
) -> tuple[list[int], list[str], list[str]]:
    """Return numbers, ids and texts of all items and checks of a HIT, as presented."""
    return (
        shown_numbers_of_items_and_checks(items, placed_checks),
        entries_with_checks_inserted(
            ids or [], placed_checks, {number: check.external_id for number, check in checks_by_number.items()}
        ),
        entries_with_checks_inserted(
            texts or [], placed_checks, {number: check.shown for number, check in checks_by_number.items()}
        ),
    )
