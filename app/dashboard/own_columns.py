"""Columns that researchers uploaded with their items: which there are, and their values to filter by."""

from collections.abc import Sequence

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.table import uploaded_column_text_expression
from app.database.tables import items
from app.imports.columns import names_of_check_columns

MAX_VALUES_OFFERED = 50  # a column of more values is filtered by typing one

# By the first items: all rows of an upload have the same columns. Without the columns that repeat the id or the text.
LIST_OWN_COLUMNS = text("""
    SELECT f.key, bool_and(coalesce(f.value, '') = '') AS is_empty
    FROM items i, json_each_text(i.fields) WITH ORDINALITY AS f (key, value, place)
    WHERE i.campaign_id = :campaign AND i.number < 50
    GROUP BY f.key HAVING NOT bool_and(f.value IS NOT DISTINCT FROM i.shown)
                      AND NOT bool_and(f.value IS NOT DISTINCT FROM i.external_id)
    ORDER BY min(f.place), f.key
""")


async def load_names_of_uploaded_columns(connection: AsyncConnection, campaign_id: int) -> Sequence[str]:
    """Return the names of the columns of a campaign's items, as they were uploaded, without those about checks."""
    columns = (await connection.execute(LIST_OWN_COLUMNS, {"campaign": campaign_id})).all()
    check_columns = names_of_check_columns([column.key for column in columns if column.is_empty])
    return [column.key for column in columns if column.key not in check_columns]


async def load_column_values_or_empty_if_many(
    connection: AsyncConnection, campaign_id: int, column: str
) -> Sequence[str]:
    """Return the values of a column, the most frequent first; empty if there are more than `MAX_VALUES_OFFERED`."""
    value = uploaded_column_text_expression(column).label("value")
    statement = (
        select(value)
        .where(items.c.campaign_id == campaign_id, uploaded_column_text_expression(column) != "")
        .group_by(value)
        .order_by(func.count().desc(), value)
        .limit(MAX_VALUES_OFFERED + 1)
    )
    values = (await connection.scalars(statement)).all()
    return values if len(values) <= MAX_VALUES_OFFERED else ()
