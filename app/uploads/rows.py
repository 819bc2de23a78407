"""Rows of uploaded tables, their limits, and refusals that name the line of a mistake as an editor shows it."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from unicodedata import normalize

from app.errors import Invalid, TooLarge, shorten_echo

MAX_ID_CHARACTERS = 200
MAX_SHOWN_CHARACTERS = MAX_UPLOADED_CELL_CHARACTERS = 100_000  # below the csv module's own limit
MAX_ROW_CHARACTERS = 5_000_000  # of a line, or of an object in JSON
MAX_UPLOAD_COLUMNS = 500
MAX_UPLOAD_ROWS = 1_000_000  # of tables that are held in memory
INDEX_COLUMN = "index"  # given to a first column without a name
TEXT_COLUMN = "text"  # given to the only column of a table without a header
NAME_OF_ONE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,39}")
READ_AS_AUTO, READ_AS_TABLE, READ_AS_LINES = "auto", "table", "lines"


class UploadedRow(NamedTuple):
    """A row: its first line, and its values by column, which are texts or, from JSON, any values."""

    line: int
    values: dict[str, Any]


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file if the file itself does not say.

    Attributes:
        encoding: One of `encodings.ENCODINGS`; None for Unicode.
        quotes: `cells` if quotation marks enclose cells, `text` if they are part of the text; None to let the file
            decide.
        sheet: Name of the sheet of a workbook; None for the first one with content, and rather a visible one.
        read_as: `table` (also None) if the first row names the columns, `lines` if every line is a text of its own,
            `auto` to decide: a file named .txt has lines, unless tabs divide it into columns, and the only column of
            another table has a header only if its first cell is one word or one of `header_names`.
        header_names: Names of a single column, in lower case; only for `auto`.

    """

    encoding: str | None = None
    quotes: str | None = None
    sheet: str | None = None
    read_as: str | None = None
    header_names: frozenset[str] = field(default=frozenset(), kw_only=True)

    def has_header_in(self, cells: Sequence[str]) -> bool:
        """Return whether the first row of a table names its columns and is not the first text of its only column."""
        if len(cells) != 1 or self.read_as in (None, READ_AS_TABLE):
            return True
        first_cell = normalize("NFC", cells[0].strip())
        is_like_name = first_cell.lower() in self.header_names or NAME_OF_ONE_WORD.fullmatch(first_cell) is not None
        return self.read_as == READ_AS_AUTO and is_like_name


@dataclass(frozen=True)
class UploadedTable:
    """A table whose rows are read lazily, and once.

    Attributes:
        format: csv, tsv, jsonl, xlsx, or txt for a text on each line.
        columns: All columns; from JSON, those of any row.
        line_count: Number of lines of the file, including blank ones.
        notes: Sentences about how the file was read, if an uploader may have expected something else.
        quotes: `cells` or `text`, as in `ReadOptions`, if a CSV or TSV file has quotation marks.
        sheet: Name of the sheet that was read, if the file is a workbook.
        sheets: Names of all sheets of the workbook.
        has_header: Whether the file names its columns. If not, its only column is called `TEXT_COLUMN`.

    """

    format: str
    columns: tuple[str, ...]
    rows: Iterator[UploadedRow]
    row_count: int = 0
    line_count: int = 0
    notes: tuple[str, ...] = ()
    quotes: str | None = None
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    has_header: bool = True


def raise_upload_refusal_at_line(error_code: str, line_number: int, problem: str, **details: Any) -> NoReturn:
    raise Invalid(f"Line {line_number}: {problem} Nothing was imported.", code=error_code, line=line_number, **details)


def refuse_impossible_column_names(line_number: int, column_names: tuple[str, ...]) -> None:
    """Raise `Invalid` (`too_many_columns`, `column_unnamed`, `column_twice`) for impossible columns."""
    if len(column_names) > MAX_UPLOAD_COLUMNS:
        raise_upload_refusal_at_line(
            "too_many_columns",
            line_number,
            f"there are {len(column_names):,} columns; the maximum is {MAX_UPLOAD_COLUMNS}.",
        )
    seen_names = set()
    for position, name in enumerate(column_names, start=1):
        if not name:
            raise_upload_refusal_at_line(
                "column_unnamed", line_number, f"column {position} has no name. Name it, or remove it."
            )
        if name in seen_names:
            duplicate = shorten_echo(name)
            raise_upload_refusal_at_line(
                "column_twice", line_number, f"two columns are named “{duplicate}”. Rename one.", column=duplicate
            )
        seen_names.add(name)


def iterate_rows_up_to_limit(records: Iterator[UploadedRow], max_rows: int) -> Iterator[UploadedRow]:
    """Yield the rows. Raises `TooLarge` (`too_many_rows`) beyond the limit."""
    for count, record in enumerate(records, start=1):
        if count > max_rows:
            raise TooLarge(
                f"Line {record.line}: this file has more than {max_rows:,} rows. Nothing was imported.",
                code="too_many_rows",
                line=record.line,
            )
        yield record


def parse_finite_number_or_none(value: Any) -> float | None:
    """Return the finite number in a value, which may be a text; None for all others."""
    try:
        number = float(format_cell(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def format_cell(value: Any) -> str:
    """Return a value as a cell of a table: text unchanged, empty for null, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


ROW_NUMBERS_AS_IDS = ":row numbers:"  # stands for a column of ids
