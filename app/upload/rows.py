"""Rows of uploaded tables, their limits, and how a refusal names the line at which an editor shows a mistake."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from app.errors import Invalid, TooLarge, shortened

LONGEST_ID = 200
LONGEST_SHOWN = LONGEST_CELL = 100_000  # characters; below the csv module's own limit
LONGEST_ROW = 5_000_000  # characters of a line, or of an object in JSON
MOST_COLUMNS = 500
MOST_ROWS = 1_000_000
INDEX = "index"  # the name of a first column that has none


class UploadedRow(NamedTuple):
    """One row: the line it starts at, and its values by column; JSON may bring other values than text."""

    line: int
    values: dict[str, Any]


@dataclass(frozen=True)
class ReadAs:
    """How a file is to be read where the file itself does not say.

    Attributes:
        encoding: One of `encodings.ENCODINGS`; None for Unicode.
        quotes: `cells` where quotation marks enclose cells, `text` where they are part of the text; None to decide by
            the file.

    """

    encoding: str | None = None
    quotes: str | None = None


@dataclass(frozen=True)
class Upload:
    """A table whose rows are read while they are asked for, once.

    Attributes:
        format: csv, tsv or jsonl.
        columns: All columns; of JSON those of any row.
        row_count: Number of rows.
        line_count: Number of lines of the file, blank ones included.
        notes: Sentences about how the file was read, where somebody may have expected something else.
        quotes: `cells` or `text`, as in `ReadAs`, if there are quotation marks in a CSV or TSV file.

    """

    format: str
    columns: tuple[str, ...]
    records: Iterator[UploadedRow]
    row_count: int = 0
    line_count: int = 0
    notes: tuple[str, ...] = ()
    quotes: str | None = None


def refuse(code: str, line: int, problem: str, **details: Any) -> NoReturn:
    raise Invalid(f"Line {line}: {problem} Nothing was imported.", code=code, line=line, **details)


def check_columns(line: int, columns: tuple[str, ...]) -> None:
    """Raises `Invalid` (`too_many_columns`, `column_unnamed`, `column_twice`)."""
    if len(columns) > MOST_COLUMNS:
        refuse("too_many_columns", line, f"there are {len(columns):,} columns, and {MOST_COLUMNS} is the most.")
    seen = set()
    for place, name in enumerate(columns, start=1):
        if not name:
            refuse("column_unnamed", line, f"column {place} has no name. Name it, or remove it.")
        if name in seen:
            twice = shortened(name)
            refuse("column_twice", line, f"two columns are named “{twice}”. Rename one.", column=twice)
        seen.add(name)


def limited(records: Iterator[UploadedRow]) -> Iterator[UploadedRow]:
    """Raises `TooLarge` (`too_many_rows`)."""
    for count, record in enumerate(records, start=1):
        if count > MOST_ROWS:
            raise TooLarge(
                f"Line {record.line}: this file has more than {MOST_ROWS:,} rows. Nothing was imported.",
                code="too_many_rows",
                line=record.line,
            )
        yield record


def as_number(value: Any) -> float | None:
    """A value that is a finite number, in JSON or in words; None for all others."""
    try:
        number = float(as_text(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_text(value: Any) -> str:
    """A value as a cell of a table: text as it is, nothing for null, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
