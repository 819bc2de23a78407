"""Content of a campaign: its items and checks in a list with search, and the number of simulated answers."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.registry import simulated_platform_names
from app.database.campaign import number_of_items_sql
from app.database.session import driver_of
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.content import RenderedItems
from app.http.paging import AddressQuery, Page, PageNumber, SearchWords
from app.media.render_items import render_campaign_items
from app.record.responses import COUNTING_RESPONSES_CONDITION

MAX_LISTED_ITEM_CHARACTERS = 2_000
LISTED_ITEMS_PER_PAGE = 50
MAX_OWN_COLUMNS = 20

ItemFilter = Literal["all", "items", "checks", "retired"]

# Rows of the list: checks come first, so that a page of the many items is still a range of the primary key.
ITEM_ROW = """SELECT number, external_id, shown, fields, retired_at, CAST(NULL AS text) AS check_kind,
    CAST(NULL AS jsonb) AS expected, 1 AS part
    FROM items WHERE campaign_id = :campaign"""
CHECK_ROW = """SELECT number, external_id, shown, fields, CAST(NULL AS timestamptz) AS retired_at, kind AS check_kind,
    expected, 0 AS part
    FROM check_items WHERE campaign_id = :campaign"""

LIST_RANGE_OF_ITEMS_AND_CHECKS = text(f"""
    {CHECK_ROW} AND number BETWEEN :offset AND :offset + :limit - 1
    UNION ALL {ITEM_ROW} AND number BETWEEN :offset - :checks AND :offset - :checks + :limit - 1
    ORDER BY part, number
""")

HAS_WORDS = """(external_id ILIKE :pattern OR shown ILIKE :pattern
    OR EXISTS (SELECT FROM json_each_text(fields) AS cell WHERE cell.value ILIKE :pattern))"""
ITEM_CONDITIONS = {
    "all": HAS_WORDS,
    "items": HAS_WORDS,
    "checks": "false",
    "retired": f"retired_at IS NOT NULL AND {HAS_WORDS}",
}
CHECK_CONDITIONS = {"all": HAS_WORDS, "items": "false", "checks": HAS_WORDS, "retired": "false"}
LIST_FILTERED_ITEMS_AND_CHECKS = {
    name: text(f"""
        SELECT *, count(*) OVER () AS found FROM (
            {CHECK_ROW} AND {CHECK_CONDITIONS[name]} UNION ALL {ITEM_ROW} AND {condition}
        ) AS listed ORDER BY part, number OFFSET :offset LIMIT :limit
    """)
    for name, condition in ITEM_CONDITIONS.items()
}

HAS_ID = "external_id = ANY(CAST(:ids AS text[]))"
LIST_ITEMS_AND_CHECKS_BY_IDS = text(f"{CHECK_ROW} AND {HAS_ID} UNION ALL {ITEM_ROW} AND {HAS_ID} ORDER BY part, number")

COUNT_CHECKS_BY_KIND = text(
    "SELECT kind, count(*) AS checks FROM check_items WHERE campaign_id = :campaign GROUP BY kind"
)

COUNT_MEDIA_REPORTS_OF_ITEMS = text("""
    SELECT item, count(*) AS annotators FROM media_reports
    WHERE campaign_id = :campaign AND item = ANY(CAST(:numbers AS int[])) GROUP BY item
""")

LOAD_FIRST_OUTPUTS = text("""
    SELECT i.external_id AS system, s.external_id AS segment, o.shown AS output, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign ORDER BY o.item, o.segment LIMIT :limit
""")

# Joined from the annotators: simulated ones are few, and there are none in a campaign without a rehearsal.
COUNT_SIMULATED_HITS = text(f"""
    SELECT count(*) FROM annotators a JOIN responses r ON r.campaign_id = a.campaign_id AND r.annotator_id = a.id
    WHERE a.campaign_id = :campaign AND a.platform = ANY(:simulated) AND {COUNTING_RESPONSES_CONDITION}
""")


class ItemListView(AddressQuery):
    """Rows and columns of the list of items that a page shows, and for systems the criterion and the segment."""

    search: SearchWords = ""
    show: ItemFilter = "all"
    column: tuple[str, ...] = Field(default=(), max_length=MAX_OWN_COLUMNS)
    page: PageNumber = 1
    segment: str = Field(default="", max_length=1000)
    criterion: str = Field(default="", max_length=200)

    @property
    def is_filtered(self) -> bool:
        """Whether the list leaves out items or checks."""
        return bool(self.search) or self.show != "all"


async def load_item_list_page(
    connection: AsyncConnection, campaign_id: int, view: ItemListView, *, item_count: int, check_count: int
) -> Page[Row[Any]]:
    """Return the page of a view of all items and checks; beyond the last page, the last one of the
    whole list or the first one of a filtered list.
    """
    page: Page[Row[Any]] = Page(view.page, LISTED_ITEMS_PER_PAGE, item_count + check_count)
    parameters: dict[str, Any] = {"campaign": campaign_id, "limit": page.size}
    if not view.is_filtered:
        parameters |= {"offset": page.offset, "checks": check_count}
        return replace(page, rows=(await connection.execute(LIST_RANGE_OF_ITEMS_AND_CHECKS, parameters)).all())
    parameters["pattern"] = f"%{escape_for_sql_like(view.search)}%"
    statement = LIST_FILTERED_ITEMS_AND_CHECKS[view.show]
    offset = (view.page - 1) * page.size
    rows = (await connection.execute(statement, parameters | {"offset": offset})).all()
    if not rows and view.page > 1:
        return await load_item_list_page(
            connection, campaign_id, view.model_copy(update={"page": 1}), item_count=item_count, check_count=check_count
        )
    return Page(view.page, page.size, rows[0].found if rows else 0, rows=rows)


def escape_for_sql_like(words: str) -> str:
    """Return a pattern of LIKE that matches exactly these words."""
    return re.sub(r"([\\%_])", r"\\\1", words)


async def count_checks_by_kind(connection: AsyncConnection, campaign_id: int) -> dict[str, int]:
    """Return the number of checks of each kind that the campaign has."""
    return {row.kind: row.checks for row in await connection.execute(COUNT_CHECKS_BY_KIND, {"campaign": campaign_id})}


def uploaded_column_names_of_rows(rows: Sequence[Row[Any]], chosen_columns: Sequence[str]) -> list[str]:
    """Return the names of uploaded columns that a list of these rows can show, the chosen ones included."""
    return list(dict.fromkeys([name for row in rows for name in row.fields or ()] + [*chosen_columns]))


async def load_item_total_and_page(
    connection: AsyncConnection, campaign_id: int, *, offset: int, limit: int
) -> tuple[int, Sequence[Row[Any]]]:
    """Return the number of items, and one page of them in the order of their numbers."""
    total = (await connection.execute(select(number_of_items_sql(campaign_id)))).scalar_one()
    # Numbers have no gaps, so any page is a range of the primary key.
    is_on_page = items.c.number.between(offset, offset + limit - 1)
    statement = select(items).where(items.c.campaign_id == campaign_id, is_on_page).order_by(items.c.number)
    return total, (await connection.execute(statement)).all()


async def load_item_rows_of_ids(
    connection: AsyncConnection, campaign_id: int, external_ids: Sequence[str]
) -> Sequence[Row[Any]]:
    """Return items and checks by the researcher's ids, as rows of the list."""
    return (
        await connection.execute(LIST_ITEMS_AND_CHECKS_BY_IDS, {"campaign": campaign_id, "ids": [*external_ids]})
    ).all()


async def render_items_and_count_media_reports(
    connection: AsyncConnection, campaign: Campaign, rows: Sequence[Row[Any]]
) -> tuple[RenderedItems, dict[int, int]]:
    """Return items as annotators see them, long ones shortened, and the annotators who could not open an item.

    The latter are counted by item number, for items with at least one.
    """
    # A check has no row in `items`, so no item number may stand for it.
    numbers = [-1 if row.check_kind else row.number for row in rows]
    texts = [shorten_listed_text(row.shown) for row in rows]
    drawn_items = await render_campaign_items(await driver_of(connection), campaign, numbers, texts)
    if not drawn_items.loads_media:
        return drawn_items, {}
    report_rows = await connection.execute(COUNT_MEDIA_REPORTS_OF_ITEMS, {"campaign": campaign.id, "numbers": numbers})
    return drawn_items, {row.item: row.annotators for row in report_rows}


def shorten_listed_text(text: str) -> str:
    """Return a text as short as a list of many items needs it."""
    return text if len(text) <= MAX_LISTED_ITEM_CHARACTERS else text[:MAX_LISTED_ITEM_CHARACTERS] + " …"


async def load_first_output_rows(connection: AsyncConnection, campaign_id: int, *, limit: int) -> Sequence[Row[Any]]:
    """Return the first outputs of a campaign of systems, as they are uploaded."""
    return (await connection.execute(LOAD_FIRST_OUTPUTS, {"campaign": campaign_id, "limit": limit})).all()


async def count_simulated_hits(connection: AsyncConnection, campaign_id: int) -> int:
    """Return how many HITs `easel simulate` answered."""
    return int(
        (
            await connection.execute(
                COUNT_SIMULATED_HITS, {"campaign": campaign_id, "simulated": simulated_platform_names()}
            )
        ).scalar_one()
    )
