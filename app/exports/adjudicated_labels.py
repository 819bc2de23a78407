"""Final labels in exports: the table of all adjudications, and columns of the tables of items."""

from collections.abc import AsyncIterator, Mapping, Sequence

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.method_types import LazyTable
from app.analysis.result_types import Cell
from app.designs.campaign import Campaign
from app.quality.adjudications import no_item_labels_error
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import RowCells, TableStream

LABEL_COLUMN_NAME = "label"
ADJUDICATED_COLUMN, LABEL_SOURCE_COLUMN = "adjudicated", "label_source"
FROM_RESEARCHER, FROM_ANSWERS = "adjudicated", "answers"

# One row per adjudication, in order. Researchers who decided are not named.
FIND_ADJUDICATIONS = text("""
    SELECT a.id, i.external_id, a.criterion, a.label, a.reason, a.decided_at, a.replaces,
           NOT EXISTS (SELECT FROM adjudications later
                       WHERE later.campaign_id = :campaign AND later.criterion = a.criterion AND later.item = a.item
                       AND coalesce(later.replaces, 0) = a.id) AS latest
    FROM adjudications a JOIN items i ON i.campaign_id = :campaign AND i.number = a.item
    WHERE a.campaign_id = :campaign ORDER BY a.id
""")


def refuse_campaign_without_item_labels(campaign: Campaign) -> None:
    """Raise `Conflict` (`no_labels`) if annotators choose no labels for items."""
    if not campaign.has_item_labels:
        raise no_item_labels_error(campaign)


async def open_adjudications_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per adjudication: what was chosen for which item, why and when, and what it replaced."""
    criterion = ("criterion",) if campaign.has_criteria else ()

    async def chunks() -> AsyncIterator[list[RowCells]]:
        stream = await connection.stream(FIND_ADJUDICATIONS, {"campaign": campaign.id})
        async for rows in stream.partitions(1_000):
            yield [
                (
                    row.id,
                    row.external_id,
                    *([campaign.criteria[row.criterion].name] if criterion else []),
                    row.label,
                    guard_against_formula(row.reason),
                    row.decided_at,
                    row.replaces,
                    row.latest,
                )
                for row in rows
            ]

    columns = ("adjudication", "item", *criterion, LABEL_COLUMN_NAME, "reason", "decided_at", "replaces", "latest")
    return TableStream(columns, chunks())


def label_source_or_none(label: Cell, adjudicated: str | None) -> str | None:
    """Return where an item's label is from; None for an item without a label."""
    if adjudicated is not None:
        return FROM_RESEARCHER
    return None if label is None else FROM_ANSWERS


def table_with_final_labels(table: LazyTable, adjudicated_by_item_id: Mapping[str, str]) -> LazyTable:
    """Return a table of items with their final labels: the column of labels, and two more after it."""
    id_at, label_at = table.columns.index("id"), table.columns.index(LABEL_COLUMN_NAME)

    def make_rows(start: int, stop: int) -> list[tuple[Cell, ...]]:
        return [
            row_with_final_label(row, label_at, adjudicated_by_item_id.get(str(row[id_at])))
            for row in table.make_rows(start, stop)
        ]

    columns = [*table.columns]
    columns[label_at + 1 : label_at + 1] = [ADJUDICATED_COLUMN, LABEL_SOURCE_COLUMN]
    return LazyTable(columns, table.row_count, make_rows)


def judgments_with_final_labels(table: LazyTable, adjudicated_by_item_id: Mapping[str, str]) -> LazyTable:
    """Return a table of judgments with one more column: the label that a researcher chose for the item."""
    item_at = table.columns.index("item")

    def make_rows(start: int, stop: int) -> list[tuple[Cell, ...]]:
        return [(*row, adjudicated_by_item_id.get(str(row[item_at]))) for row in table.make_rows(start, stop)]

    return LazyTable([*table.columns, ADJUDICATED_COLUMN], table.row_count, make_rows)


def row_with_final_label(row: Sequence[Cell], label_at: int, adjudicated: str | None) -> tuple[Cell, ...]:
    label = row[label_at]
    final = label if adjudicated is None else adjudicated
    return (*row[:label_at], final, adjudicated, label_source_or_none(label, adjudicated), *row[label_at + 1 :])
