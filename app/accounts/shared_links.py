"""Read-only links: a visitor with one sees a campaign as a viewer does, without an account."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.access import Access
from app.accounts.invitations import strip_note_or_refuse
from app.accounts.login import LoginSession
from app.accounts.roles import VIEWER
from app.accounts.secrets import csrf_token_of_session, new_secret, secret_digest
from app.database.audit_log import log_change
from app.database.sharing_tables import campaign_links
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import NotFound

LINK_VISITOR_NAME = "read-only link"  # shown instead of a login name


async def create_shared_link_and_return_secret(
    connection: AsyncConnection, campaign: Campaign, note: str, *, maker_name: str, now: datetime
) -> str:
    """Create a link and return its secret; only the digest is stored. Raises `Invalid` (`note_invalid`)."""
    note, secret = strip_note_or_refuse(note), new_secret()
    values = {
        "campaign_id": campaign.id,
        "token_hash": secret_digest(secret),
        "words": note,
        "made_by": maker_name,
        "made_at": now,
    }
    await connection.execute(insert(campaign_links).values(values))
    await log_change(connection, "link.made", campaign, about=note)
    return secret


async def list_shared_links(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return the links of a campaign, oldest first."""
    statement = select(campaign_links).where(campaign_links.c.campaign_id == campaign_id)
    return (await connection.execute(statement.order_by(campaign_links.c.id))).all()


async def withdraw_shared_link_or_refuse(connection: AsyncConnection, campaign: Campaign, link_number: int) -> None:
    """Withdraw a link. Raises `NotFound` (`link_not_found`) if it was withdrawn already or is for another campaign."""
    conditions = campaign_links.c.campaign_id == campaign.id, campaign_links.c.id == link_number
    row = (
        await connection.execute(delete(campaign_links).where(*conditions).returning(campaign_links.c.words))
    ).one_or_none()
    if row is None:
        raise NotFound("This link was already withdrawn.", code="link_not_found")
    await log_change(connection, "link.withdrawn", campaign, about=row.words)


async def load_slug_of_shared_link_or_none(connection: AsyncConnection, secret: str) -> str | None:
    """Return the slug of the link's campaign; None if the link does not work any more."""
    statement = select(campaigns.c.slug).join(campaign_links, campaign_links.c.campaign_id == campaigns.c.id)
    result = await connection.execute(statement.where(campaign_links.c.token_hash == secret_digest(secret)))
    slug: str | None = result.scalar_one_or_none()
    return slug


async def load_session_for_shared_link_or_none(
    connection: AsyncConnection, secret: str, slug: str
) -> LoginSession | None:
    """Return the session of a visitor with a link; it is valid for this campaign only."""
    if not secret or await load_slug_of_shared_link_or_none(connection, secret) != slug:
        return None
    access = Access(0, "", VIEWER)
    return LoginSession(
        access, LINK_VISITOR_NAME, has_password=False, must_confirm=True, csrf=csrf_token_of_session(secret), digest=b""
    )
