"""The export of comments and flags: one line for each item, or HIT, of which an annotator said something."""

from collections.abc import AsyncIterator
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.formats import ROWS_AT_ONCE, Cells, TableFile
from app.record.remarks import ALL
from app.spreadsheets import guarded

REMARK_COLUMNS = (
    *("seq", "annotator", "name", "received_at", "hit", "segment", "item", "check", "flagged", "flag", "comment"),
    "counts",
)


async def remarks_table(connection: AsyncConnection, campaign: Row[Any]) -> TableFile:
    """In the order in which answers came. A comment on the HIT has no item; `check` is true where the item is a gold or
    attention item. What people typed is guarded against spreadsheet programs.
    """

    async def chunks() -> AsyncIterator[list[Cells]]:
        result = await connection.stream(ALL, {"campaign": campaign.id})
        async for rows in result.partitions(ROWS_AT_ONCE):
            yield [line_cells(row) for row in rows]

    return TableFile(REMARK_COLUMNS, chunks())


def line_cells(row: Row[Any]) -> Cells:
    return (
        *(row.seq, row.pseudonym, row.name, row.received_at, row.hit_id, row.segment, row.item, row.of_check),
        *(row.flag is not None, guarded(row.flag), guarded(row.comment), row.counts),
    )
