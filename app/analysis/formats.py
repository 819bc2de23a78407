"""Rows as text: CSV, CSV for spreadsheet programs, JSON lines.

Text is written as it came, so that it can be matched with what was uploaded and read back. A spreadsheet program takes
a cell that starts with = + - @ for a formula, and changes ids such as 001; for those there is `spreadsheet_lines`, with
an apostrophe before such text (see `app.spreadsheets`) and never before numbers.
"""

import json
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.spreadsheets import ID_COLUMNS, protect

Cells = Sequence[Any]
ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class TableFile:
    """Named columns and their rows, many at a time."""

    columns: Sequence[str]
    chunks: AsyncIterator[list[Cells]]


FLOATS, FLAGS = frozenset({float, type(None)}), frozenset({bool, type(None)})
WRITTEN_FLAGS = {True: "true", False: "false", None: ""}
QUOTED = re.compile('[",\r\n]')  # a cell with one of these stands in quotation marks
EMPTY = '""'
BYTE_ORDER_MARK = "\ufeff"  # by it Excel knows that a CSV file is UTF-8


def csv_lines(_columns: Sequence[str], rows: Iterable[Cells]) -> str:
    """As the module `csv` writes them, and faster: that one looks at every character."""
    columns = [csv_column(cells) for cells in zip(*rows, strict=True)]
    # A row of one empty cell would else be no row.
    return "".join([f"{line or EMPTY}\r\n" for line in map(",".join, zip(*columns, strict=True))])


def csv_column(cells: Cells) -> list[str]:
    kinds = set(map(type, cells))
    if kinds <= FLAGS:
        return [WRITTEN_FLAGS[cell] for cell in cells]
    if kinds <= FLOATS:
        # Few are different, and to write one takes longest of all. But 0.0 and -0.0 are equal.
        written = {cell: repr(cell) for cell in set(cells) if cell}
        return [written[cell] if cell else in_csv(cell) for cell in cells]
    return list(map(in_csv, cells))


def spreadsheet_lines(columns: Sequence[str], rows: Iterable[Cells]) -> str:
    ids = [name in ID_COLUMNS for name in columns]
    return csv_lines(
        columns,
        (
            tuple(
                protect(cell, identifier=is_id) if isinstance(cell, str) else cell
                for cell, is_id in zip(row, ids, strict=True)
            )
            for row in rows
        ),
    )


def json_lines(columns: Sequence[str], rows: Iterable[Cells]) -> str:
    return "".join(
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=as_text) + "\n" for row in rows
    )


def in_csv(cell: Any) -> str:
    """A cell as CSV: nothing for None, numbers with all their digits, booleans and lists as JSON."""
    if isinstance(cell, str):
        return in_quotation_marks(cell) if QUOTED.search(cell) else cell
    if cell is None:
        return ""
    if isinstance(cell, datetime):
        return as_text(cell)
    return in_csv(json.dumps(cell, ensure_ascii=False)) if isinstance(cell, bool | list | dict) else str(cell)


def in_quotation_marks(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def as_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
