"""What a launch makes of a draft's items: their posteriors before the first answer."""

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import always_shown, named_media, systems
from app.database.bulk import Numbers
from app.database.campaign import item_count
from app.designs.criteria import criteria_of
from app.errors import Conflict
from app.goals.settings import why_all_are_best
from app.inference.ground.arrays import distinct
from app.inference.online.law import Beliefs, Law, Parameters
from app.quality.checks import refuse_impossible, refuse_where_none_fit
from app.record import replay, store
from app.record.law import law_of, parameters_of
from app.record.states import Revision
from app.selection.registry import rule_of

SETTLE_PRIOR = text("UPDATE campaigns SET prior = CAST(:prior AS float8[]) WHERE id = :campaign AND prior IS NULL")


async def start_posteriors(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """Give every item its posterior before the first answer: its own prior if it came with one, else the campaign's."""
    count = await connection.scalar(select(item_count(campaign.id))) or 0
    if count < campaign.fewest_items:
        lacks = (
            f"has {count} of the {campaign.fewest_items} items that one answer needs" if count else "has no items yet"
        )
        raise Conflict(
            f"“{campaign.name}” {lacks}. Upload them, then launch.",
            code="too_few_items" if count else "no_items",
            campaign=campaign.slug,
        )
    refuse_all_best(campaign, count)
    await always_shown.settle(connection, campaign)
    if campaign.checks_percent is not None:
        refuse_where_none_fit(campaign)
        await refuse_impossible(connection, campaign)
    if campaign.segment_count:
        await systems.check(connection, campaign, count)
    else:
        refuse_rule_of_systems(campaign)
        await named_media.check(connection, campaign)
    law = law_of(campaign)
    await connection.execute(SETTLE_PRIOR, {"campaign": campaign.id, "prior": law.family.default_prior})
    priors = await replay.priors(connection, campaign)
    # A thread, because a million items take a while and answers to other campaigns keep coming in.
    for view in criteria_of(campaign):
        by_it = law_of(view)
        beliefs = await asyncio.to_thread(begun, by_it, priors, parameters_of(view))
        await store.begin(connection, Revision.present(view), by_it, beliefs)
    # A large table that nobody has counted yet would be read in the wrong way until autovacuum comes round.
    await connection.execute(text("ANALYZE items, posteriors"))


def refuse_all_best(campaign: Row[Any], count: int) -> None:
    """Raise `Conflict` (`all_are_best`) where the goal is to settle the best ones, and would count all of so many items
    among them.
    """
    if why := why_all_are_best(campaign, count):
        raise Conflict(why, code="all_are_best", campaign=campaign.slug, setting="goal")


def refuse_rule_of_systems(campaign: Row[Any]) -> None:
    """Raise `Conflict` (`rule_needs_systems`) where items are not systems, and the rule of selection is for these."""
    if rule_of(campaign).of_systems:
        raise Conflict(
            f"The rule of selection {campaign.rule} tells systems apart, and “{campaign.name}” has plain items. Choose "
            "another rule, or upload outputs of systems.",
            code="rule_needs_systems",
        )


def begun(law: Law, priors: Sequence[Numbers], parameters: Parameters) -> Beliefs:
    """What a law believes of items with these priors, as columns. Raises `Conflict` (`impossible_prior`)."""
    first, which = distinct(priors)
    different = zip(*(column[first].tolist() for column in priors), strict=True)
    possible = np.array([law.family.valid_prior(*prior) for prior in different])
    impossible = np.flatnonzero(~possible[which]).tolist()
    if impossible:
        raise Conflict(
            f"The prior of item number {impossible[0] + 1} is not possible with the update law {law.name}.",
            code="impossible_prior",
            items=impossible[:20],
        )
    return law.begin(priors, parameters)
