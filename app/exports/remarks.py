"""The export of comments and flags: one row for each item, or HIT, on which an annotator left a remark."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.record.remarks import FIND_ALL_REMARKS
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import EXPORT_ROWS_PER_BATCH, RowCells, TableStream

REMARK_EXPORT_COLUMNS = (
    *("seq", "annotator", "name", "received_at", "hit", "segment", "item", "check", "flagged", "flag", "comment"),
    "counts",
)


async def export_remarks(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export remarks in the order of the answers.

    A comment on the HIT has no item; `check` is true if the item is a gold or attention item. Text from annotators is
    guarded against spreadsheet programs.
    """

    async def chunks() -> AsyncIterator[list[RowCells]]:
        result = await connection.stream(FIND_ALL_REMARKS, {"campaign": campaign.id})
        async for rows in result.partitions(EXPORT_ROWS_PER_BATCH):
            yield [remark_row_cells(row) for row in rows]

    return TableStream(REMARK_EXPORT_COLUMNS, chunks())


def remark_row_cells(row: Row[Any]) -> RowCells:
    return (
        *(row.seq, row.pseudonym, row.name, row.received_at, row.hit_id, row.segment, row.item, row.of_check),
        *(row.flag is not None, guard_against_formula(row.flag), guard_against_formula(row.comment), row.counts),
    )
