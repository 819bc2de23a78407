"""Items outside the pool: those that every HIT of a campaign shows, or the fixed set that every annotator judges."""

import numpy as np
from sqlalchemy import ARRAY, Integer, bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import load_item_number_by_external_id, number_of_items_sql
from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize, shorten_echo

STORE_ALWAYS_SHOWN = text("UPDATE campaigns SET always_shown = :numbers WHERE id = :campaign").bindparams(
    bindparam("numbers", type_=ARRAY(Integer))
)


async def store_numbers_of_always_shown_items(connection: AsyncConnection, campaign: Campaign) -> None:
    """Store the numbers of these items at the launch.

    Raises `Conflict` (`no_items`) if the campaign has no other items, and what the design raises for an unknown item.
    """
    design = campaign.design
    if campaign.has_fixed_set:
        await store_numbers_of_fixed_set(connection, campaign)
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
            code="no_items",
            campaign=campaign.slug,
        )
    await connection.execute(STORE_ALWAYS_SHOWN, {"campaign": campaign.id, "numbers": sorted(number_by_name.values())})


HAS_ASSIGNED_ITEM = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign AND fields ->> CAST(:column AS text) IS NOT NULL)
""")


async def refuse_missing_assigned_column(connection: AsyncConnection, campaign: Campaign) -> None:
    """Refuse a launch in which no item has the column that says who judges it.

    Raises:
        Conflict: `assigned_column_missing`; `not_for_systems`.

    """
    if campaign.assigned_column is None:
        return
    if campaign.segment_count:
        raise Conflict(
            f"“{campaign.name}” compares systems, which everyone judges. Empty the column of groups, then launch.",
            code="not_for_systems",
        )
    key = {"campaign": campaign.id, "column": campaign.assigned_column}
    if not await connection.scalar(HAS_ASSIGNED_ITEM, key):
        raise Conflict(
            f"No item has the column “{shorten_echo(campaign.assigned_column)}”, which says who judges it. Upload the "
            "items with this column, or empty the setting, then launch.",
            code="assigned_column_missing",
            setting="assigned_column",
        )


async def store_numbers_of_fixed_set(connection: AsyncConnection, campaign: Campaign) -> None:
    """Store the numbers of the fixed set at the launch: the named items, and random others by the campaign's seed.

    Raises:
        Conflict: `fixed_item_unknown`, `fixed_set_too_large` if no other items are left, `not_for_systems`.

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
    named = sorted({*number_by_name.values()})
    item_count = await connection.scalar(select(number_of_items_sql(campaign.id))) or 0
    if item_count - len(named) - campaign.fixed_random < campaign.fewest_items:
        raise Conflict(
            f"The fixed set takes {len(named) + campaign.fixed_random} of {pluralize(item_count, 'item')}, so too few "
            "are left for the rest. Make the set smaller, or upload more items.",
            code="fixed_set_too_large",
            setting="fixed_items",
        )
    others = np.setdiff1d(np.arange(item_count), named)
    drawn = np.random.default_rng(campaign.seed).choice(others, campaign.fixed_random, replace=False).tolist()
    await connection.execute(STORE_ALWAYS_SHOWN, {"campaign": campaign.id, "numbers": [*named, *sorted(drawn)]})
