"""Rows as text: CSV, CSV for spreadsheet programs, JSON lines.

Text is written as it came, so that it can be matched with what was uploaded and read back. A spreadsheet program takes
a cell that starts with = + - @ for a formula; for those there is `spreadsheet_lines`, with an apostrophe before such
text and never before numbers.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

Cells = Sequence[Any]


@dataclass(frozen=True)
class Table:
    """Named columns and their rows, many at a time."""

    columns: Sequence[str]
    chunks: AsyncIterator[list[Cells]]


PLAIN = frozenset({str, int, float, type(None)})  # what `csv` writes as it should be
FLOATS = frozenset({float, type(None)})
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
BYTE_ORDER_MARK = "\ufeff"  # by it Excel knows that a CSV file is UTF-8


def csv_lines(_columns: Sequence[str], rows: Iterable[Cells]) -> str:
    text_file = io.StringIO()
    columns = [csv_column(cells) for cells in zip(*rows, strict=True)]
    csv.writer(text_file).writerows(zip(*columns, strict=True))
    return text_file.getvalue()


def csv_column(cells: Cells) -> Cells:
    kinds = set(map(type, cells))
    if float in kinds and kinds <= FLOATS:
        # Few are different, and to write one takes longest of all. But 0.0 and -0.0 are equal.
        written = {cell: repr(cell) for cell in set(cells) if cell}
        return [written.get(cell, cell) for cell in cells]
    return cells if kinds <= PLAIN else [cell if type(cell) in PLAIN else in_csv(cell) for cell in cells]


def spreadsheet_lines(columns: Sequence[str], rows: Iterable[Cells]) -> str:
    return csv_lines(columns, (tuple(map(guarded, row)) for row in rows))


def json_lines(columns: Sequence[str], rows: Iterable[Cells]) -> str:
    return "".join(
        json.dumps(dict(zip(columns, row, strict=True)), ensure_ascii=False, default=as_text) + "\n" for row in rows
    )


def in_csv(cell: Any) -> Any:
    """A cell as CSV: numbers with all their digits (as `csv` writes them), booleans and lists as JSON."""
    if isinstance(cell, datetime):
        return as_text(cell)
    return json.dumps(cell, ensure_ascii=False) if isinstance(cell, bool | list | dict) else cell


def as_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()


def guarded(cell: Any) -> Any:
    """Text that a spreadsheet would take for a formula, with an apostrophe before it; numbers stay numbers."""
    if not (isinstance(cell, str) and cell.startswith(FORMULA_STARTS)):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell
