"""Items that every HIT of a campaign shows."""

from sqlalchemy import ARRAY, Integer, bindparam, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.campaign import load_item_number_by_external_id, number_of_items_sql
from app.designs.campaign import Campaign
from app.errors import Conflict

STORE_ALWAYS_SHOWN = text("UPDATE campaigns SET always_shown = :numbers WHERE id = :campaign").bindparams(
    bindparam("numbers", type_=ARRAY(Integer))
)


async def store_numbers_of_always_shown_items(connection: AsyncConnection, campaign: Campaign) -> None:
    """Store the numbers of these items at the launch.

    Raises `Conflict` (`no_items`) if the campaign has no other items, and what the design raises for an unknown item.
    """
    design = campaign.design
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
