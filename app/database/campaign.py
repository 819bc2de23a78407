"""What every room may ask of a campaign's row: find it by the name in addresses, and finish it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, ScalarSelect, Select, TextClause, exists, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.alerts import raised_from
from app.database.audit_log import SERVER
from app.database.pool import wants
from app.database.session import Id, ServingConnections, fetch_one
from app.database.tables import campaigns, items
from app.database.visit_tables import personal_links
from app.errors import NotFound, shortened

ALL_DONE = """(SELECT id AS campaign_id, 'finished' AS kind, CAST(finished_at AS text) AS occasion, '' AS about,
    'Nothing is left to ask.' AS because FROM finished)"""


def finish_where(condition: str) -> TextClause:
    """The statement by which the server finishes :campaign if a condition holds of its row, notes it
    and raises an alert.
    """
    return text(f"""
        WITH finished AS (
            UPDATE campaigns SET status = 'finished', finished_at = :now
            WHERE id = :campaign AND status IN ('running', 'paused') AND {condition} RETURNING id, slug, finished_at
        ), {raised_from(ALL_DONE)}
        INSERT INTO audit_log (who, way, campaign_id, campaign, action, after)
        SELECT '{SERVER.name}', '{SERVER.way}', id, slug, 'campaign.finish', jsonb_build_object('status', 'finished')
        FROM finished
    """)  # noqa: S608  (made of constants)


# It is complete when fewer items want judgments than an answer needs: one alone cannot be compared with anything. Items
# that are always shown want none.
# Two answers that complete the last items at once do not see each other, so neither finishes the campaign; then whoever
# asks for a HIT next does.
FINISH = finish_where(f"""
    NOT EXISTS (
        SELECT 1 FROM posteriors p
        WHERE p.campaign_id = :campaign AND p.revision = campaigns.revision AND p.criterion = 0
        AND {wants("p", judgments="judgments_per_item", people="unjudged_people")}
        AND p.subject <> ALL(always_shown) OFFSET fewest_items - 1)
""")  # noqa: S608  (made of constants)


# By the parts of addresses.
NAMED = {
    "link_key": text("SELECT id FROM campaigns WHERE link_key = :name"),
    "slug": text("SELECT id FROM campaigns WHERE slug = :name"),
}


@dataclass
class Names:
    """Which campaign a name in an address means, asked once: neither a slug nor a link key changes."""

    known: dict[tuple[str, str], int] = field(default_factory=dict)

    async def campaign(self, connections: ServingConnections, address: Mapping[str, str]) -> int | None:
        """The id of the row that an address names by one of its parts; None if there is no such campaign."""
        named = next(((part, address[part]) for part in NAMED if part in address), None)
        if named is not None and named not in self.known:
            async with connections.borrow() as connection:
                found = await fetch_one(connection, NAMED[named[0]], {"name": named[1]}, Id)
            if found is not None:
                self.known[named] = found.id
        return self.known.get(named) if named else None


# Whether anybody has a link of their own.
HAS_PEOPLE = exists().where(personal_links.c.campaign_id == campaigns.c.id).label("has_people")


async def campaign_by_slug(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    return await only(connection, select(campaigns), slug)


async def campaign_of_page(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The same with `item_count` and `has_people`, which the checklist of a draft's pages shows."""
    return await only(connection, select(campaigns, item_count(campaigns.c.id).label("item_count"), HAS_PEOPLE), slug)


async def only(connection: AsyncConnection, statement: Select[Any], slug: str) -> Row[Any]:
    row: Row[Any] | None = (await connection.execute(statement.where(campaigns.c.slug == slug))).one_or_none()
    if row is None:
        raise no_campaign(slug)
    return row


def item_count(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """SQL for the number of items. Theirs run from 0 without gaps, so the last one tells, without reading them all."""
    last = func.max(items.c.number)
    return select(func.coalesce(last + 1, 0)).where(items.c.campaign_id == campaign_id).scalar_subquery()


async def item_numbers(connection: AsyncConnection, campaign_id: int, names: Sequence[str]) -> dict[str, int]:
    """The numbers of the items that the researcher calls so, by these names; without those that are not there."""
    if not names:
        return {}
    those = select(items.c.external_id, items.c.number).where(
        items.c.campaign_id == campaign_id, items.c.external_id.in_(names)
    )
    return {row.external_id: row.number for row in await connection.execute(those)}


def no_campaign(slug: str) -> NotFound:
    slug = shortened(slug)
    return NotFound(f"There is no campaign “{slug}”.", code="campaign_not_found", campaign=slug)


async def finish_if_complete(connection: AsyncConnection, campaign_id: int, *, now: datetime) -> bool:
    """Close a campaign whose items all have the judgments wanted; whether it did. A finish by hand at once wins."""
    return (await connection.execute(FINISH, {"campaign": campaign_id, "now": now})).rowcount == 1
