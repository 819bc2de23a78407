"""Checks in the HITs of annotators: when, which, and how they stand among the items."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.crowd.registry import PLATFORMS
from app.database.session import Driver
from app.quality import checks
from app.quality.checks import CheckItem
from app.quality.mixed_in import MixedIn, numbers_shown, placed, presented
from app.serving.posterior_cache import PosteriorCache
from app.serving.proposal import Proposal
from app.serving.standing import Standing


async def due(connection: Driver, here: Standing, cache: PosteriorCache) -> Sequence[CheckItem]:
    """The checks that this annotator's next HIT shows: mostly none. Programs show none: they know their items by name.

    It is a matter of chance alone, so no number of HITs tells when the next one comes.
    """
    copy = cache.at_hand(here.id) or await cache.posteriors(connection, here)
    if not PLATFORMS[here.platform].has_page or copy.rng.random() >= (here.checks_percent or 0) / 100:
        return ()
    return await checks.unseen(connection, here, here.annotator_id, copy.rng)


def places_of(here: Standing, due_now: Sequence[CheckItem]) -> int:
    """How many places of a HIT's items these take; none where they are a HIT of their own."""
    return len(due_now) if len(due_now) < here.items_per_hit else 0


def into(here: Standing, cache: PosteriorCache, proposal: Proposal, due_now: Sequence[CheckItem]) -> Proposal | None:
    """The proposal with checks at random places, or in its place a HIT of checks; as it is where the campaign has too
    few items to lend them numbers. None where another revision has come meanwhile: it must be asked afresh.
    """
    copy, numbers = cache.at_hand(here.id), [check.number for check in due_now]
    if copy is None:
        return None
    own = not places_of(here, due_now)
    found = placed(numbers, [] if own else proposal.items, len(copy.index.score), copy.rng, here.seen)
    if found is None:
        return proposal
    if own:
        return Proposal(None, [], "checks", None, checks=found)
    return replace(proposal, checks=found)


def shown(
    items: Sequence[int],
    ids: Sequence[str] | None,
    texts: Sequence[str] | None,
    mixed: Sequence[MixedIn],
    of_checks: Mapping[int, CheckItem],
) -> tuple[list[int], list[str], list[str]]:
    """Numbers, ids and texts of all that a HIT shows, as presented."""
    return (
        numbers_shown(items, mixed),
        presented(ids or [], mixed, {number: check.external_id for number, check in of_checks.items()}),
        presented(texts or [], mixed, {number: check.shown for number, check in of_checks.items()}),
    )
