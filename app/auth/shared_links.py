"""Read-only links: who has one sees a campaign as a viewer does, without an account."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth.access import Access
from app.auth.invitations import noted_words
from app.auth.login import Session
from app.auth.roles import VIEWER
from app.auth.secret import csrf_token, digest, new_secret
from app.database.audit_log import note
from app.database.sharing_tables import campaign_links
from app.database.tables import campaigns
from app.errors import NotFound

VISITOR = "read-only link"  # in the place of a login name


async def make_link(connection: AsyncConnection, campaign: Row[Any], words: str, *, by: str, now: datetime) -> str:
    """The secret of a link, shown this once. Raises `Invalid` (`note_invalid`)."""
    words, secret = noted_words(words), new_secret()
    values = {"campaign_id": campaign.id, "token_hash": digest(secret), "words": words, "made_by": by, "made_at": now}
    await connection.execute(insert(campaign_links).values(values))
    await note(connection, "link.made", campaign, about=words)
    return secret


async def listed_links(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Those that work, oldest first."""
    those = select(campaign_links).where(campaign_links.c.campaign_id == campaign_id)
    return (await connection.execute(those.order_by(campaign_links.c.id))).all()


async def withdraw_link(connection: AsyncConnection, campaign: Row[Any], number: int) -> None:
    """Raises `NotFound` (`link_not_found`) for one that was withdrawn, or is to another campaign."""
    its = campaign_links.c.campaign_id == campaign.id, campaign_links.c.id == number
    row = (await connection.execute(delete(campaign_links).where(*its).returning(campaign_links.c.words))).one_or_none()
    if row is None:
        raise NotFound("This link was withdrawn already.", code="link_not_found")
    await note(connection, "link.withdrawn", campaign, about=row.words)


async def slug_by_link(connection: AsyncConnection, secret: str) -> str | None:
    """The campaign to which a link leads, by its slug; None if there is none any more."""
    statement = select(campaigns.c.slug).join(campaign_links, campaign_links.c.campaign_id == campaigns.c.id)
    found = await connection.execute(statement.where(campaign_links.c.token_hash == digest(secret)))
    slug: str | None = found.scalar_one_or_none()
    return slug


async def session_by_link(connection: AsyncConnection, secret: str, slug: str) -> Session | None:
    """What whoever came to a campaign by a link may do there, and nowhere else."""
    if not secret or await slug_by_link(connection, secret) != slug:
        return None
    access = Access(0, "", VIEWER)
    return Session(access, VISITOR, has_password=False, must_confirm=True, csrf=csrf_token(secret), digest=b"")
