"""Retired items: a researcher decided that no HIT asks about them.

`items.retired_at` has the decision, and `settled` of the present posteriors follows from it: leases read only that.
"""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION


def is_retired_sql(campaign: str) -> str:
    """Return SQL that is true if the item of a posterior `p` of this campaign is retired."""
    return f"""EXISTS (
    SELECT FROM items i WHERE i.campaign_id = {campaign} AND i.number = p.subject AND i.retired_at IS NOT NULL)"""


IS_RETIRED_SQL = is_retired_sql(":campaign")

LIST_RETIRED_ITEMS = text("""
    SELECT number FROM items WHERE campaign_id = :campaign AND retired_at IS NOT NULL ORDER BY number
""")

SETTLE_RETIRED_ITEMS = text(f"""
    UPDATE posteriors p SET settled = true
    FROM items i WHERE i.campaign_id = :campaign AND i.retired_at IS NOT NULL
    AND {PRESENT_POSTERIORS_CONDITION} AND p.subject = i.number
""")


async def load_retired_item_numbers(connection: AsyncConnection, campaign_id: int) -> list[int]:
    """Return the numbers of the retired items, in order."""
    return list(await connection.scalars(LIST_RETIRED_ITEMS, {"campaign": campaign_id}))


async def mark_retired_items_as_settled(connection: AsyncConnection, campaign_id: int) -> None:
    """Mark retired items as settled in a revision that has just become the present one."""
    await connection.execute(SETTLE_RETIRED_ITEMS, {"campaign": campaign_id})
