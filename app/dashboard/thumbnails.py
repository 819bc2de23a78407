"""Thumbnails of items that are images, for the table of scores."""

from collections.abc import Sequence

from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.table import ItemRow
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.media.render_items import render_campaign_items

IMAGE_CONTENT = "image"


async def load_image_html_by_item_number(
    connection: AsyncConnection, campaign: Campaign, rows: Sequence[ItemRow]
) -> dict[int, str]:
    """Return the images of items, by item number; empty for items of another kind."""
    if campaign.content != IMAGE_CONTENT or campaign.segment_count or not rows:
        return {}
    numbers, texts = [row.item.number for row in rows], [row.item.shown for row in rows]
    rendered = await render_campaign_items(await driver_of(connection), campaign, numbers, texts)
    return dict(zip(numbers, rendered.items, strict=True))
