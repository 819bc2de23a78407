"""Campaigns, items and annotators that match the words of the palette; each list is short and stops early."""

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from sqlalchemy import or_, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.access import SHARING_CAMPAIGN_ID, Access, visible_campaigns_sql_condition
from app.accounts.members import member_role_sql
from app.campaigns.item_list import escape_for_sql_like
from app.database.tables import campaigns, items
from app.designs.campaign import Campaign
from app.palette.entry import MAX_ENTRIES_PER_GROUP, PaletteEntry

MAX_TITLE_CHARACTERS = 120

# Annotators are named by their place among all, as on their pages.
FIND_ANNOTATORS = text("""
    SELECT name, pseudonym, platform FROM (
        SELECT 'A' || row_number() OVER (ORDER BY id) AS name, pseudonym, platform
        FROM annotators WHERE campaign_id = :campaign
    ) AS a
    WHERE name ILIKE :beginning OR pseudonym ILIKE :beginning ORDER BY length(name), name LIMIT :limit
""")


async def load_visible_campaign_and_access_or_none(
    connection: AsyncConnection, slug: str, access: Access
) -> tuple[Campaign, Access] | None:
    """Return a campaign and the access in it; None if the access does not let see it, or it does not exist."""
    statement = select(campaigns, member_role_sql(SHARING_CAMPAIGN_ID, access)).where(
        campaigns.c.slug == slug, visible_campaigns_sql_condition(access)
    )
    row = (await connection.execute(statement)).mappings().one_or_none()
    return None if row is None else (Campaign.from_columns(row), access.with_member_role(row["member"]))


async def find_matching_campaign_entries(
    connection: AsyncConnection, words: str, access: Access
) -> Sequence[PaletteEntry]:
    """Return the visible campaigns whose name or slug contains the words, newest first, archived ones last."""
    columns = campaigns.c
    statement = (
        select(columns.name, columns.slug, columns.status, columns.archived_at)
        .where(
            columns.rehearsal_of.is_(None),
            visible_campaigns_sql_condition(access),
            or_(columns.name.icontains(words, autoescape=True), columns.slug.icontains(words, autoescape=True)),
        )
        .order_by(columns.archived_at.is_not(None), columns.id.desc())
        .limit(MAX_ENTRIES_PER_GROUP)
    )
    return [
        PaletteEntry(
            "Campaigns", row.name, "archived" if row.archived_at else row.status, f"/admin/campaigns/{row.slug}"
        )
        for row in await connection.execute(statement)
    ]


async def find_matching_item_entries(
    connection: AsyncConnection, campaign: Campaign, words: str
) -> Sequence[PaletteEntry]:
    """Return the items whose id or text contains the words. A draft's open in its list, others on the overview."""
    columns = items.c
    statement = (
        select(columns.external_id, columns.shown)
        .where(
            columns.campaign_id == campaign.id,
            or_(columns.external_id.icontains(words, autoescape=True), columns.shown.icontains(words, autoescape=True)),
        )
        .order_by(columns.number)
        .limit(MAX_ENTRIES_PER_GROUP)
    )
    address = f"/admin/campaigns/{campaign.slug}"
    is_draft = campaign.status == "draft"
    return [
        PaletteEntry(
            "Items",
            shorten_title(row.shown) or row.external_id,
            row.external_id,
            f"{address}/items?{urlencode({'search': row.external_id[:200]})}"
            if is_draft
            else f"{address}?{urlencode({'item': row.external_id})}#item",
        )
        for row in await connection.execute(statement)
    ]


async def find_matching_annotator_entries(
    connection: AsyncConnection, campaign: Campaign, words: str
) -> Sequence[PaletteEntry]:
    """Return the annotators whose name or pseudonym begins with the words."""
    parameters = {
        "campaign": campaign.id,
        "beginning": f"{escape_for_sql_like(words)}%",
        "limit": MAX_ENTRIES_PER_GROUP,
    }
    address = f"/admin/campaigns/{campaign.slug}/annotators/"
    return [
        PaletteEntry("Annotators", row.name, f"{row.pseudonym}, {row.platform}", address + quote(row.name))
        for row in await connection.execute(FIND_ANNOTATORS, parameters)
    ]


def shorten_title(title: str) -> str:
    """Return a text on one line, cut to the length of a row."""
    line = " ".join(title[: 4 * MAX_TITLE_CHARACTERS].split())
    return line if len(line) <= MAX_TITLE_CHARACTERS else line[: MAX_TITLE_CHARACTERS - 1] + "…"
