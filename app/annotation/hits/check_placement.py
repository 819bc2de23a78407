"""Checks in the HITs of annotators: when, which, and how they stand among the items."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.platforms.registry import PLATFORMS
from app.database.session import Driver
from app.quality import checks
from app.quality.check_positions import PlacedCheck, place_checks, presented_numbers, presented_sequence
from app.quality.checks import CheckItem


async def checks_for_next_hit(
    connection: Driver, assignment: AssignmentState, cache: PosteriorCache
) -> Sequence[CheckItem]:
    """The checks that this annotator's next HIT shows: mostly none. Programs show none: they know their items by name.

    It is a matter of chance alone, so no number of HITs tells when the next one comes.
    """
    campaign_index = cache.index_if_loaded(assignment.id) or await cache.load_current_index(connection, assignment)
    if (
        not PLATFORMS[assignment.platform].has_page
        or campaign_index.rng.random() >= (assignment.checks_percent or 0) / 100
    ):
        return ()
    return await checks.draw_unseen_checks(connection, assignment, assignment.annotator_id, campaign_index.rng)


def count_check_slots(assignment: AssignmentState, next_checks: Sequence[CheckItem]) -> int:
    """How many places of a HIT's items these take; none where they are a HIT of their own."""
    return len(next_checks) if len(next_checks) < assignment.items_per_hit else 0


def insert_checks(
    assignment: AssignmentState, cache: PosteriorCache, proposal: HitProposal, next_checks: Sequence[CheckItem]
) -> HitProposal | None:
    """The proposal with checks at random places, or in its place a HIT of checks; as it is where the campaign has too
    few items to lend them numbers. None where another revision has come meanwhile: it must be asked afresh.
    """
    campaign_index, numbers = cache.index_if_loaded(assignment.id), [check.number for check in next_checks]
    if campaign_index is None:
        return None
    is_own_hit = not count_check_slots(assignment, next_checks)
    placed_checks = place_checks(
        numbers,
        [] if is_own_hit else proposal.items,
        len(campaign_index.index.score),
        campaign_index.rng,
        assignment.seen,
    )
    if placed_checks is None:
        return proposal
    if is_own_hit:
        return HitProposal(None, [], "checks", None, checks=placed_checks)
    return replace(proposal, checks=placed_checks)


def items_with_checks(
    items: Sequence[int],
    ids: Sequence[str] | None,
    texts: Sequence[str] | None,
    placed_checks: Sequence[PlacedCheck],
    checks_by_number: Mapping[int, CheckItem],
) -> tuple[list[int], list[str], list[str]]:
    """Numbers, ids and texts of all that a HIT shows, as presented."""
    return (
        presented_numbers(items, placed_checks),
        presented_sequence(
            ids or [], placed_checks, {number: check.external_id for number, check in checks_by_number.items()}
        ),
        presented_sequence(
            texts or [], placed_checks, {number: check.shown for number, check in checks_by_number.items()}
        ),
    )
