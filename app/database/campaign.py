"""Operations on a campaign's row that every room may use: find it by the name in a URL, and finish it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, ScalarSelect, TextClause, exists, func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.alerts import store_new_alerts_sql
from app.database.audit_log import SERVER_ACTOR
from app.database.bulk import begin_transaction_returning_driver
from app.database.quality_tables import check_items
from app.database.session import (
    Driver,
    Record,
    ServingConnections,
    fetch_first_row_or_none,
    fetch_first_value_or_none,
)
from app.database.tables import campaigns, items
from app.database.visit_tables import personal_links
from app.errors import NotFound, shorten_echo


def is_judgeable_sql(posterior: str, *, unjudged_limit_sql: str) -> str:
    """Return SQL that is true if too few annotators were unable to judge the item to take it out of the pool."""
    return f"{posterior}.unjudged < {unjudged_limit_sql}"


def is_item_open_sql(posterior: str, *, judgments_wanted_sql: str, unjudged_limit_sql: str) -> str:
    """Return SQL that is true if an item is open: it lacks judgments, can be judged, and is not settled."""
    is_judgeable = is_judgeable_sql(posterior, unjudged_limit_sql=unjudged_limit_sql)
    return f"{posterior}.judgments < {judgments_wanted_sql} AND NOT {posterior}.settled AND {is_judgeable}"


FINISHED_ALERT_SOURCE = """(SELECT id AS campaign_id, 'finished' AS kind, CAST(finished_at AS text) AS occasion,
    '' AS about, 'Nothing is left to ask.' AS because FROM finished)"""


def finish_campaign_if_statement(condition: str) -> TextClause:
    """Return a statement that finishes :campaign if its row meets a condition, logs that and raises an alert."""
    return text(f"""
        WITH finished AS (
            UPDATE campaigns SET status = 'finished', finished_at = :now
            WHERE id = :campaign AND status IN ('running', 'paused') AND {condition} RETURNING id, slug, finished_at
        ), {store_new_alerts_sql(FINISHED_ALERT_SOURCE)}
        INSERT INTO audit_log (who, way, campaign_id, campaign, action, after)
        SELECT '{SERVER_ACTOR.name}', '{SERVER_ACTOR.way}', id, slug, 'campaign.finish',
               jsonb_build_object('status', 'finished')
        FROM finished RETURNING 1
    """)


# A campaign is complete when fewer items are open than an answer needs: one item alone cannot be compared with another.
# Items that are always shown do not count as open.
# Two concurrent last answers do not see each other, so neither finishes the campaign; the next HIT request does.
FIND_SETTINGS_IF_COMPLETE = text(f"""
    SELECT c.revision, c.releases, c.judgments_per_item, c.unjudged_people, c.fewest_items, c.always_shown
    FROM campaigns c WHERE c.id = :campaign AND c.status IN ('running', 'paused') AND NOT EXISTS (
        SELECT 1 FROM posteriors p
        WHERE p.campaign_id = :campaign AND p.revision = c.revision AND p.criterion = 0
        AND {is_item_open_sql("p", judgments_wanted_sql="c.judgments_per_item", unjudged_limit_sql="c.unjudged_people")}
        AND p.subject <> ALL(c.always_shown) OFFSET c.fewest_items - 1)
""")
FINISH_WITH_SAME_SETTINGS = finish_campaign_if_statement("""
    revision = :revision AND releases = :releases AND judgments_per_item = :judgments_per_item
    AND unjudged_people = :unjudged_people AND fewest_items = :fewest_items
    AND always_shown = CAST(:always_shown AS int[])""")


# By the name of the path parameter.
FIND_CAMPAIGN_BY_ADDRESS_PART = {
    "link_key": text("SELECT id FROM campaigns WHERE link_key = :name"),
    "slug": text("SELECT id FROM campaigns WHERE slug = :name"),
}


@dataclass
class CampaignNames:
    """Cache of campaign ids by slug and link key, which never change."""

    ids_by_name: dict[tuple[str, str], int] = field(default_factory=dict)

    async def find_campaign_id_in_path_or_none(
        self, connections: ServingConnections, path_parts: Mapping[str, str]
    ) -> int | None:
        """Return the id of the campaign that a URL's path names, or None if there is no such campaign."""
        name_key = next(
            ((part, path_parts[part]) for part in FIND_CAMPAIGN_BY_ADDRESS_PART if part in path_parts), None
        )
        if name_key is not None and name_key not in self.ids_by_name:
            async with connections.borrow_autocommit_connection() as connection:
                campaign_id: int | None = await fetch_first_value_or_none(
                    connection, FIND_CAMPAIGN_BY_ADDRESS_PART[name_key[0]], {"name": name_key[1]}
                )
            if campaign_id is not None:
                self.ids_by_name[name_key] = campaign_id
        return self.ids_by_name.get(name_key) if name_key else None


def has_personal_links_sql(campaign_id: int) -> ColumnElement[bool]:
    """Return SQL that is true if any annotator of a campaign has a personal link."""
    return exists().where(personal_links.c.campaign_id == campaign_id)


async def find_campaign_id_or_refuse(connection: AsyncConnection, slug: str) -> int:
    """Return the id of the campaign with this slug. Raises `NotFound` (code `campaign_not_found`)."""
    campaign_id: int | None = await connection.scalar(select(campaigns.c.id).where(campaigns.c.slug == slug))
    if campaign_id is None:
        raise unknown_campaign_slug_error(slug)
    return campaign_id


def number_of_items_sql(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """Return SQL for the number of items. Their numbers have no gaps, so only the last one is read."""
    last = func.max(items.c.number)
    return select(func.coalesce(last + 1, 0)).where(items.c.campaign_id == campaign_id).scalar_subquery()


def retired_count_sql(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """Return SQL for the number of items that a researcher has retired."""
    condition = (items.c.campaign_id == campaign_id) & items.c.retired_at.is_not(None)
    return select(func.count()).select_from(items).where(condition).scalar_subquery()


def gold_and_attention_item_count_sql(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """Return SQL for the number of gold and attention items."""
    condition = check_items.c.campaign_id == campaign_id
    return select(func.count()).select_from(check_items).where(condition).scalar_subquery()


def gold_count_sql(campaign_id: int | ColumnElement[int]) -> ScalarSelect[int]:
    """Return SQL for the number of gold items."""
    condition = (check_items.c.campaign_id == campaign_id) & (check_items.c.kind == "gold")
    return select(func.count()).select_from(check_items).where(condition).scalar_subquery()


async def load_item_number_by_external_id(
    connection: AsyncConnection, campaign_id: int, external_ids: Sequence[str]
) -> dict[str, int]:
    """Return the numbers of items by the researcher's ids, without ids that do not exist."""
    if not external_ids:
        return {}
    statement = select(items.c.external_id, items.c.number).where(
        items.c.campaign_id == campaign_id, items.c.external_id.in_(external_ids)
    )
    return {row.external_id: row.number for row in await connection.execute(statement)}


def unknown_campaign_slug_error(slug: str) -> NotFound:
    slug = shorten_echo(slug)
    return NotFound(f"There is no campaign “{slug}”.", code="campaign_not_found", campaign=slug)


async def try_to_finish_complete_campaign(
    connection: "AsyncConnection | Driver", campaign_id: int, *, now: datetime
) -> bool:
    """Finish a campaign whose items all have the judgments wanted, and return whether it did.

    A concurrent finish by hand wins, and so does a concurrent change of what is wanted.
    """
    driver = (
        await begin_transaction_returning_driver(connection) if isinstance(connection, AsyncConnection) else connection
    )
    settings = await fetch_first_row_or_none(driver, FIND_SETTINGS_IF_COMPLETE, {"campaign": campaign_id}, Record)
    if settings is None:
        return False
    parameters = {"campaign": campaign_id, "now": now, **settings}
    return await fetch_first_value_or_none(driver, FINISH_WITH_SAME_SETTINGS, parameters) is not None
