"""Choice of the next HIT: a draw from the newest posteriors (`streaming`) or a place in a schedule (`iterations`)."""

from collections import Counter
from datetime import datetime
from itertools import chain

import numpy as np

from app.annotation.hits.assigned_items import load_items_reserved_for_others
from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex, ChangesAndOpenHits, PosteriorCache
from app.annotation.hits.condition_blocks import set_place_in_blocks_of_assignment
from app.annotation.hits.draw_context import (
    load_implied_pair_filter_or_none,
    update_comparisons_if_rule_reads_them,
    update_label_counts_if_rule_reads_them,
)
from app.annotation.hits.draw_systems import SystemsDraw
from app.annotation.hits.fixed_set import (
    choose_fixed_items,
    proposal_filled_up_from_fixed_set_or_none,
    proposal_with_fixed_items,
)
from app.annotation.hits.hit_proposal import (
    HitProposal,
    items_seen_or_held_in_other_visit,
    shuffled_items_with_always_shown,
)
from app.annotation.hits.iteration_schedule import propose_scheduled_hit_or_extend_schedule
from app.annotation.hits.served_campaign import ServedCampaign
from app.database.session import Driver
from app.selection.item_sets import ItemSet, MaskedItems
from app.selection.rule import PairFilter, read_only_union_of_sets


def draw_reads_database(campaign: ServedCampaign) -> bool:
    """Return whether a draw reads more than the posteriors, open HITs and own answers that it is given.

    `propose_hit_or_none` reads the database only if this is true: a feature that is not listed here works nowhere.
    """
    return bool(
        campaign.selection != "streaming"
        or campaign.assigned_column
        or campaign.condition_column
        or campaign.implied_asked_percent is not None
        or campaign.rule.reads_labels
        or campaign.rule.reads_comparisons
    )


async def propose_hit_or_none(
    connection: Driver,
    assignment: AssignmentState,
    cache: PosteriorCache,
    open_hits_row: ChangesAndOpenHits,
    *,
    now: datetime,
    check_count: int = 0,
    segment: int | None = None,
) -> HitProposal | None:
    """Return the items to ask this annotator next; None if there are none right now.

    Args:
        connection: Connection of the request.
        assignment: State of the annotator's assignment.
        cache: Posteriors of this process.
        open_hits_row: What open HITs hold, if it was read.
        now: Time of the request.
        check_count: Item places that checks take.
        segment: Segment that the HIT must show, if the items are systems.

    """
    campaign_index = cache.loaded_index_or_none(
        assignment.campaign_id, chain(open_hits_row.held or (), assignment.seen)
    ) or await cache.load_current_index(connection, assignment)
    pair_filter: PairFilter | None = None
    if draw_reads_database(assignment):
        if assignment.selection == "iterations":
            return await propose_scheduled_hit_or_extend_schedule(
                connection, assignment, campaign_index, cache, now=now
            )
        if assignment.assigned_column:
            assignment.items_of_others = await load_items_reserved_for_others(connection, assignment, campaign_index)
        elif assignment.condition_column:
            await set_place_in_blocks_of_assignment(connection, assignment, campaign_index, now=now)
        await update_label_counts_if_rule_reads_them(connection, assignment, campaign_index)
        await update_comparisons_if_rule_reads_them(connection, assignment, campaign_index)
        pair_filter = await load_implied_pair_filter_or_none(connection, assignment, campaign_index)
    return draw_streaming_hit_or_none(
        assignment,
        campaign_index,
        cache,
        open_hits_row,
        pair_filter=pair_filter,
        check_count=check_count,
        segment=segment,
    )


def draw_streaming_hit_or_none(
    assignment: AssignmentState,
    campaign_index: CampaignIndex,
    cache: PosteriorCache,
    open_hits_row: ChangesAndOpenHits,
    *,
    pair_filter: PairFilter | None,
    check_count: int = 0,
    segment: int | None = None,
) -> HitProposal | None:
    """Draw a HIT by the campaign's rule from the newest posteriors; None if nothing can be asked right now."""
    n = assignment.selection_settings.items_per_hit - check_count
    fixed_items = choose_fixed_items(assignment, n, campaign_index.rng) if assignment.has_fixed_set else []
    if len(fixed_items) == n > 0:
        return proposal_filled_up_from_fixed_set_or_none(assignment, fixed_items, n, campaign_index.rng)
    open_hits = cache.open_hits_of_row_or_remembered(open_hits_row, campaign_index)
    if open_hits.nothing_left:
        return proposal_of_fixed_items_alone_or_none(assignment, fixed_items, n, campaign_index.rng)
    # Items that this process is about to lease count as leased: a second request would only lose the race for them.
    leases_pending = cache.pending_leases(assignment.campaign_id)
    full_items = open_hits.full_items_after_leasing(
        chain.from_iterable(lease.items for lease in leases_pending), campaign_index.index
    )
    leading_items = read_only_union_of_sets(open_hits.leading, {lease.leader for lease in leases_pending})
    if campaign_index.segments is not None:
        leases_by_segment = open_hits.segments + Counter(
            lease.segment for lease in leases_pending if lease.segment is not None
        )
        return SystemsDraw(
            assignment,
            campaign_index,
            full_items=full_items,
            leading_items=leading_items,
            leases_by_segment=leases_by_segment,
            segments_seen=items_seen_or_held_in_other_visit(assignment) | assignment.segments_left_for_checks,
            hit_size=n,
            wanted_segment=segment,
            rng=campaign_index.rng,
        ).propose_hit_or_none()
    seen = items_seen_or_held_in_other_visit(assignment)
    items_not_drawn: ItemSet = full_items
    if (mask := assignment.items_of_others.mask) is not None:
        # One union for the whole draw: these may be most items of a large campaign.
        own = {*(assignment.not_judged or ()), *(() if assignment.repeat_items else seen)}
        items_not_drawn = MaskedItems(mask) | full_items.union(own)
        seen = seen if assignment.repeat_items else set()
    elif assignment.not_judged:
        items_not_drawn = full_items.union(assignment.not_judged)
    draw = campaign_index.index.draw_hit_or_none(
        n - len(fixed_items),
        seen=seen,
        full=items_not_drawn,
        leaders_to_avoid=leading_items,
        seen_as_last_resort=assignment.repeat_items,
        pair_filter=pair_filter,
        rng=campaign_index.rng,
    )
    if draw is None:
        open_hits.nothing_left = (
            items_not_drawn is open_hits.full and pair_filter is None and (assignment.repeat_items or not seen)
        )
        return proposal_of_fixed_items_alone_or_none(assignment, fixed_items, n, campaign_index.rng)
    if fixed_items:
        return proposal_with_fixed_items(
            draw, fixed_items, campaign_index.rng, shared_leader=draw.leader in leading_items
        )
    items = shuffled_items_with_always_shown(assignment, draw.items, campaign_index.rng)
    return HitProposal(draw.leader, items, draw.reason, draw.probability, shared_leader=draw.leader in leading_items)


def proposal_of_fixed_items_alone_or_none(
    assignment: AssignmentState, fixed_items: list[int], hit_size: int, rng: np.random.Generator
) -> HitProposal | None:
    """Return a HIT of items that are left of a fixed set, for an annotator who can be asked about nothing else."""
    return (
        proposal_filled_up_from_fixed_set_or_none(assignment, fixed_items, hit_size, rng)
        if assignment.has_fixed_set
        else None
    )
