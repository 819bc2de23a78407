"""Thumbnails of items that are images, for researchers' tables of items."""

from collections.abc import Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import Record, driver_of, fetch_rows
from app.designs.campaign import Campaign
from app.media.render_items import render_campaign_items

IMAGE_CONTENT = "image"

SELECT_ITEMS_BY_ID = text("""
    SELECT number, external_id, shown FROM items
    WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
""")


class NamedItem(Record):
    number: int
    external_id: str
    shown: str


def has_thumbnails(campaign: Campaign) -> bool:
    """Return whether the items are images; outputs of systems are listed by system."""
    return campaign.content == IMAGE_CONTENT and not campaign.segment_count


async def load_image_html_by_item_number(
    connection: AsyncConnection, campaign: Campaign, text_by_number: Mapping[int, str]
) -> dict[int, str]:
    """Return the images of items, by item number; empty for items of another kind."""
    if not has_thumbnails(campaign) or not text_by_number:
        return {}
    numbers, texts = [*text_by_number], [*text_by_number.values()]
    rendered = await render_campaign_items(await driver_of(connection), campaign, numbers, texts)
    return dict(zip(numbers, rendered.items, strict=True))


async def load_image_html_by_item_id(
    connection: AsyncConnection, campaign: Campaign, item_ids: Sequence[str]
) -> dict[str, str]:
    """Return the images of items, by the id that their table gave them; empty for items of another kind."""
    if not has_thumbnails(campaign) or not item_ids:
        return {}
    parameters = {"campaign": campaign.id, "ids": [*item_ids]}
    items = await fetch_rows(await driver_of(connection), SELECT_ITEMS_BY_ID, parameters, NamedItem)
    images = await load_image_html_by_item_number(connection, campaign, {item.number: item.shown for item in items})
    return {item.external_id: images[item.number] for item in items}
