"""Rows of uploaded tables, their limits, and how a refusal names the line at which an editor shows a mistake."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from app.errors import Invalid, TooLarge, shorten_echo

MAX_ID_CHARACTERS = 200
MAX_SHOWN_CHARACTERS = MAX_UPLOADED_CELL_CHARACTERS = 100_000  # characters; below the csv module's own limit
MAX_ROW_CHARACTERS = 5_000_000  # characters of a line, or of an object in JSON
MAX_UPLOAD_COLUMNS = 500
MAX_UPLOAD_ROWS = 1_000_000
INDEX_COLUMN = "index"  # the name of a first column that has none


class UploadedRow(NamedTuple):
    """One row: the line it starts at, and its values by column; JSON may bring other values than text."""

    line: int
    values: dict[str, Any]


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read where the file itself does not say.

    Attributes:
        encoding: One of `encodings.ENCODINGS`; None for Unicode.
        quotes: `cells` where quotation marks enclose cells, `text` where they are part of the text; None to decide by
            the file.

    """

    encoding: str | None = None
    quotes: str | None = None


@dataclass(frozen=True)
class UploadedTable:
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
    rows: Iterator[UploadedRow]
    row_count: int = 0
    line_count: int = 0
    notes: tuple[str, ...] = ()
    quotes: str | None = None


def refuse_line(error_code: str, line_number: int, problem: str, **details: Any) -> NoReturn:
    raise Invalid(f"Line {line_number}: {problem} Nothing was imported.", code=error_code, line=line_number, **details)


def check_column_names(line_number: int, column_names: tuple[str, ...]) -> None:
    """Raises `Invalid` (`too_many_columns`, `column_unnamed`, `column_twice`)."""
    if len(column_names) > MAX_UPLOAD_COLUMNS:
        refuse_line(
            "too_many_columns",
            line_number,
            f"there are {len(column_names):,} columns, and {MAX_UPLOAD_COLUMNS} is the most.",
        )
    seen_names = set()
    for position, name in enumerate(column_names, start=1):
        if not name:
            refuse_line("column_unnamed", line_number, f"column {position} has no name. Name it, or remove it.")
        if name in seen_names:
            duplicate = shorten_echo(name)
            refuse_line(
                "column_twice", line_number, f"two columns are named “{duplicate}”. Rename one.", column=duplicate
            )
        seen_names.add(name)


def limit_rows(records: Iterator[UploadedRow]) -> Iterator[UploadedRow]:
    """Raises `TooLarge` (`too_many_rows`)."""
    for count, record in enumerate(records, start=1):
        if count > MAX_UPLOAD_ROWS:
            raise TooLarge(
                f"Line {record.line}: this file has more than {MAX_UPLOAD_ROWS:,} rows. Nothing was imported.",
                code="too_many_rows",
                line=record.line,
            )
        yield record


def parse_finite_number(value: Any) -> float | None:
    """A value that is a finite number, in JSON or in words; None for all others."""
    try:
        number = float(format_cell(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def format_cell(value: Any) -> str:
    """A value as a cell of a table: text as it is, nothing for null, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
