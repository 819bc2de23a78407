"""What every room may ask of a campaign's row: find it by the name in addresses, and finish it."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, Select, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns, items
from app.errors import NotFound, shortened

# Two answers that complete the last items at once do not see each other, so neither finishes the campaign; then whoever
# asks for a HIT next does.
FINISH = text("""
    UPDATE campaigns SET status = 'finished', finished_at = :now
    WHERE id = :campaign AND status IN ('running', 'paused') AND NOT EXISTS (
        SELECT 1 FROM posteriors WHERE campaign_id = :campaign AND judgments < judgments_per_item)
""")


async def campaign_by_slug(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    return await only(connection, select(campaigns), slug)


async def campaign_of_page(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The same with `item_count`, which the checklist of a draft's pages shows."""
    return await only(connection, select(campaigns, item_count(campaigns.c.id).label("item_count")), slug)


async def only(connection: AsyncConnection, statement: Select[Any], slug: str) -> Row[Any]:
    row: Row[Any] | None = (await connection.execute(statement.where(campaigns.c.slug == slug))).one_or_none()
    if row is None:
        raise no_campaign(slug)
    return row


def item_count(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """SQL for the number of items. Theirs run from 0 without gaps, so the last one tells, without reading them all."""
    last = func.max(items.c.number)
    return select(func.coalesce(last + 1, 0)).where(items.c.campaign_id == campaign_id).scalar_subquery()


def no_campaign(slug: str) -> NotFound:
    slug = shortened(slug)
    return NotFound(f"There is no campaign “{slug}”.", code="campaign_not_found", campaign=slug)


async def finish_if_complete(connection: AsyncConnection, campaign_id: int, *, now: datetime) -> bool:
    """Close a campaign whose items all have the judgments wanted; whether it did. A finish by hand at once wins."""
    return (await connection.execute(FINISH, {"campaign": campaign_id, "now": now})).rowcount == 1
