"""Items outside the pool: those that every HIT of a campaign shows, or the fixed set that every annotator judges."""

import numpy as np
from sqlalchemy import ARRAY, Integer, bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.assigned_items_check import load_item_numbers_reserved_for_people
from app.database.campaign import load_item_number_by_external_id, number_of_items_sql
from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize, shorten_echo

STORE_ALWAYS_SHOWN = text("UPDATE campaigns SET always_shown = :numbers WHERE id = :campaign").bindparams(
    bindparam("numbers", type_=ARRAY(Integer))
)


async def store_always_shown_item_numbers_or_refuse(connection: AsyncConnection, campaign: Campaign) -> None:
    """Store the numbers of these items at the launch.

    Raises `Conflict` (`no_drawn_items`) if the campaign has no other items, and what the design raises for an unknown
    item.
    """
    design = campaign.design
    if campaign.has_fixed_set:
        await draw_and_store_fixed_set_or_refuse(connection, campaign)
        return
    if not design.always_shown:
        return
    number_by_name = await load_item_number_by_external_id(connection, campaign.id, design.always_shown)
    for name in design.always_shown:
        if name not in number_by_name:
            raise design.unknown_always_shown_item_error(name)
    if await connection.scalar(select(number_of_items_sql(campaign.id))) == len(number_by_name):
        raise Conflict(
            f"“{campaign.name}” has only the items that every task shows. Upload other items, then launch.",
            code="no_drawn_items",
            campaign=campaign.slug,
        )
    await connection.execute(STORE_ALWAYS_SHOWN, {"campaign": campaign.id, "numbers": sorted(number_by_name.values())})


async def draw_and_store_fixed_set_or_refuse(connection: AsyncConnection, campaign: Campaign) -> None:
    """Store the numbers of the fixed set at the launch: the named items, and random others by the campaign's seed.

    Raises:
        Conflict: `fixed_item_unknown`, `fixed_item_assigned`, `fixed_set_too_large` if no other items are left,
            `not_for_systems`.

    """
    if campaign.segment_count:
        raise Conflict(
            f"“{campaign.name}” compares systems, which have no fixed set. Set the fixed set to none, then launch.",
            code="not_for_systems",
        )
    number_by_name = await load_item_number_by_external_id(connection, campaign.id, campaign.fixed_items)
    for name in campaign.fixed_items:
        if name not in number_by_name:
            raise Conflict(
                f"The fixed set has the item “{shorten_echo(name)}”, but there is no such item. Correct its id, then "
                "launch.",
                code="fixed_item_unknown",
                setting="fixed_items",
            )
    assigned = {*await load_item_numbers_reserved_for_people(connection, campaign)}
    for name in campaign.fixed_items:
        if number_by_name[name] in assigned:
            raise Conflict(
                f"The fixed set has the item “{shorten_echo(name)}”, which is only for some people, but everyone "
                "judges the set. Take it out of the set, or empty its cell in the column of groups, then launch.",
                code="fixed_item_assigned",
                setting="fixed_items",
            )
    named = sorted({*number_by_name.values()})
    item_count = await connection.scalar(select(number_of_items_sql(campaign.id))) or 0
    others = np.setdiff1d(np.arange(item_count), [*named, *assigned])
    left_count = item_count - len(named) - campaign.fixed_random
    if left_count < campaign.fewest_items or len(others) < campaign.fixed_random:
        raise Conflict(
            f"The fixed set takes {len(named) + campaign.fixed_random} of {pluralize(item_count, 'item')}, so too few "
            "are left for the rest. Make the set smaller, or upload more items.",
            code="fixed_set_too_large",
            setting="fixed_items",
        )
    drawn = np.random.default_rng(campaign.seed).choice(others, campaign.fixed_random, replace=False).tolist()
    await connection.execute(STORE_ALWAYS_SHOWN, {"campaign": campaign.id, "numbers": [*named, *sorted(drawn)]})
