"""Rows as text: CSV, CSV for spreadsheet programs, JSON lines.

Text is written unchanged, so that it matches what was uploaded and can be read back. A spreadsheet program takes a
cell that starts with = + - @ for a formula, and changes ids such as 001; `format_spreadsheet_rows` puts an apostrophe
before such text (see `app.text.spreadsheets`) and never before numbers.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from app.text.spreadsheets import ID_COLUMNS, protect_cell_from_spreadsheet

RowCells = Sequence[Any]
EXPORT_ROWS_PER_BATCH = 2_000


@dataclass(frozen=True)
class TableStream:
    """Named columns and their rows, many at a time."""

    columns: Sequence[str]
    chunks: AsyncIterator[list[RowCells]]


FLOAT_CELL_TYPES, FLAG_CELL_TYPES = frozenset({float, type(None)}), frozenset({bool, type(None)})
TIME_CELL_TYPES = frozenset({datetime, type(None)})
FLAG_CELL_TEXTS = {True: "true", False: "false", None: ""}
NEEDS_CSV_QUOTES = re.compile('[",\r\n]')  # a cell with one of these is put in quotation marks
EMPTY_CSV_LINE = '""'
BYTE_ORDER_MARK = "\ufeff"  # by it Excel knows that a CSV file is UTF-8


def format_csv_rows(_columns: Sequence[str], rows: Iterable[RowCells]) -> str:
    """Return rows as the module `csv` writes them, but faster: `csv` looks at every character."""
    columns = [format_csv_column(cells) for cells in zip(*rows, strict=True)]
    # Otherwise a row of one empty cell would be no row.
    return "".join([f"{line or EMPTY_CSV_LINE}\r\n" for line in map(",".join, zip(*columns, strict=True))])


def format_csv_column(cells: RowCells) -> list[str]:
    kinds = set(map(type, cells))
    if kinds <= FLAG_CELL_TYPES:
        return [FLAG_CELL_TEXTS[cell] for cell in cells]
    if kinds <= FLOAT_CELL_TYPES:
        # Few values are distinct, and formatting is the slowest step. But 0.0 and -0.0 are equal.
        text_by_number = {cell: repr(cell) for cell in set(cells) if cell}
        return [text_by_number[cell] if cell else format_csv_cell(cell) for cell in cells]
    if kinds <= TIME_CELL_TYPES:
        text_by_time = {cell: format_csv_cell(cell) for cell in set(cells)}
        return [text_by_time[cell] for cell in cells]
    return list(map(format_csv_cell, cells))


def format_spreadsheet_rows(columns: Sequence[str], rows: Iterable[RowCells]) -> str:
    is_id_column = [name in ID_COLUMNS for name in columns]
    return format_csv_rows(
        columns,
        (
            tuple(
                protect_cell_from_spreadsheet(cell, is_identifier=is_id) if isinstance(cell, str) else cell
                for cell, is_id in zip(row, is_id_column, strict=True)
            )
            for row in rows
        ),
    )


def format_json_lines(columns: Sequence[str], rows: Iterable[RowCells]) -> str:
    return "".join(
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=format_utc_time) + "\n"
        for row in rows
    )


def format_csv_cell(cell: Any) -> str:
    """Return a cell as CSV: empty for None, numbers with all their digits, booleans and lists as JSON."""
    if isinstance(cell, str):
        return '"' + cell.replace('"', '""') + '"' if NEEDS_CSV_QUOTES.search(cell) else cell
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return format_utc_time(cell)
    return format_csv_cell(json.dumps(cell, ensure_ascii=False)) if isinstance(cell, bool | list | dict) else str(cell)


def format_utc_time(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


EXPORT_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson", "json": "application/json"}


ExportFormat = Literal["csv", "jsonl", "json"]


async def stream_table_text(
    table: TableStream, format_: ExportFormat, *, spreadsheet: bool
) -> AsyncGenerator[str, None]:
    format_rows = (
        format_json_lines if format_ == "jsonl" else format_spreadsheet_rows if spreadsheet else format_csv_rows
    )
    if format_ == "csv":
        yield BYTE_ORDER_MARK * spreadsheet + format_rows(table.columns, [table.columns])
    async for rows in table.chunks:
        yield await asyncio.to_thread(format_rows, table.columns, rows)
