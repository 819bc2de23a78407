"""Delete a campaign with its whole record."""

from sqlalchemy import delete, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns
from app.record.law_storage import TAKE_STORE_LOCK


async def delete_campaign_and_all_its_data(connection: AsyncConnection, campaign_id: int) -> None:
    """Delete a campaign, its rehearsal and all of their data. Waits for answers that are being stored."""
    conditions = campaigns.c.id == campaign_id, campaigns.c.rehearsal_of == campaign_id
    for erased_id in list(
        await connection.scalars(select(campaigns.c.id).where(or_(*conditions)).order_by(campaigns.c.id))
    ):
        await connection.execute(TAKE_STORE_LOCK, {"campaign": erased_id})
    await connection.execute(delete(campaigns).where(campaigns.c.id == campaign_id))
