"""CSV and TSV files: cells between commas, semicolons or tabs.

A file is read twice: first to see what its quotation marks are for, which columns have anything in them and how many
rows there are, then for its rows.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, NoReturn
from unicodedata import normalize

from app.errors import Invalid, Refusal, plural
from app.upload.quoting import Evidence, Span
from app.upload.rows import INDEX, LONGEST_CELL, Upload, UploadedRow, check_columns, limited, refuse

TAB_EXTENSIONS = (".tsv", ".tab")
CELLS, TEXT = "cells", "text"  # what quotation marks enclose, or are part of
IN_MARKS = re.compile(r'"[^"]*"')
SEPARATOR_LINE = re.compile(r"sep=([,;\t])\s*", re.IGNORECASE)  # Excel's own first line
WIDEST = 20_000  # cells of a header, most of them without a name
WAY_OUT = (
    "Or say that quotation marks are part of the text (on the command line --quotes text, in the API quotes=text)."
)
MIXED_ENDS = "a carriage return stands within this row. Lines end in different ways here: save the file again."

Lines = Callable[[], Iterator[str]]


class WrittenRow(NamedTuple):
    """The line that a row starts at, its cells, and all of its lines as they are written."""

    line: int
    cells: list[str]
    written: Sequence[str]


@dataclass
class TableScan:
    """Findings about a table that is read in one of the two ways."""

    header: WrittenRow
    filled: dict[int, int] = field(default_factory=dict)  # place of a column: first line with something in it
    rows: int = 0
    empty_rows: int = 0
    evidence: Evidence | None = None
    refusal: Refusal | None = None


def delimited_upload(lines: Lines, extension: str, quotes: str | None) -> Upload:
    """Raises `Invalid`: `csv_unreadable`, `quotes_unclear`, `ragged_row`, `column_unnamed`, `column_twice`,
    `too_many_columns`, `quotes_unknown`; while rows are read `cell_too_long`, and `TooLarge` (`too_many_rows`).
    """
    if quotes not in (None, CELLS, TEXT):
        raise Invalid("`quotes` is cells or text. Nothing was imported.", code="quotes_unknown")
    line_count, marked = counted_lines(lines)
    delimiter = delimiter_of(lines, extension)
    tabs = delimiter == "\t"
    if not marked:
        scan, way = scan_rows(plain_rows(lines, delimiter), delimiter), None
    else:
        enclosed = scan_rows(enclosed_rows(lines, delimiter), delimiter, with_evidence=True)
        plain = scan_rows(plain_rows(lines, delimiter), delimiter, with_evidence=True)
        one_column = len(plain.header.cells) == 1 and extension in (*TAB_EXTENSIONS, ".txt")
        way = quotes or choose_reading(enclosed, plain, tabs=tabs or one_column)
        scan = enclosed if way == CELLS else plain
    if scan.refusal:
        raise scan.refusal
    columns, notes = named_columns(scan)
    rows = enclosed_rows(lines, delimiter) if way == CELLS else plain_rows(lines, delimiter)
    if way == TEXT:
        notes.append("Quotation marks are part of the text: they enclose no cells here.")
    elif way == CELLS and tabs:
        notes.append("Quotation marks enclose cells, and are no part of the text.")
    if scan.empty_rows:
        notes.append(f"{plural(scan.empty_rows, 'row')} without anything in a cell left out.")
    return Upload(
        "tsv" if tabs else "csv",
        tuple(columns.values()),
        limited(records_in(rows, columns)),
        row_count=scan.rows,
        line_count=line_count,
        notes=tuple(notes),
        quotes=way,
    )


def counted_lines(lines: Lines) -> tuple[int, bool]:
    """How many lines there are, and whether there are quotation marks."""
    total, marked = 0, False
    for line in lines():
        total += 1
        marked = marked or '"' in line
    return total, marked


def delimiter_of(lines: Lines, extension: str) -> str:
    """The one of tab, comma and semicolon that is most frequent in the header, outside quotation marks; the extension
    decides a tie. A first line such as `sep=;` names it.
    """
    first = next(line for line in lines() if line.strip())
    if named := SEPARATOR_LINE.fullmatch(first):
        return named[1]
    candidates = "\t,;" if extension in TAB_EXTENSIONS else ",\t;"
    header = next((line for line in lines() if line.strip(" \t,;\r\n")), first)
    return max(candidates, key=IN_MARKS.sub("", header).count)


# Rows, read in one of two ways


def plain_rows(lines: Lines, delimiter: str) -> Iterator[WrittenRow]:
    """One row for each line that is not blank; quotation marks are text. Raises `Invalid` (`csv_unreadable`)."""
    for number, line in enumerate(lines(), start=1):
        row = line.strip("\r\n")
        if "\r" in row:
            refuse("csv_unreadable", number, MIXED_ENDS)
        if row:
            yield WrittenRow(number, row.split(delimiter), (line,))


def enclosed_rows(lines: Lines, delimiter: str) -> Iterator[WrittenRow]:
    """Rows whose cells may be enclosed in quotation marks, and go over several lines then.

    Raises `Invalid` (`csv_unreadable`).
    """
    written: list[str] = []

    def keep_lines() -> Iterator[str]:
        for line in lines():
            written.append(line)
            yield line

    reader = csv.reader(keep_lines(), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        written.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            refuse("csv_unreadable", line, in_words(problem, line, reader.line_num))
        if cells:
            yield WrittenRow(line, cells, tuple(written))


def in_words(problem: csv.Error, first: int, last: int) -> str:
    said = str(problem)
    if "unexpected end of data" in said:
        return f"a quotation mark opens in this row and is never closed. {WAY_OUT}"
    if "expected after" in said:
        where = f"on line {last} text" if last > first else "text"
        return (
            f"a quotation mark opens a cell, and {where} follows the one that closes it. Inside a cell in quotation "
            f'marks write "" for each. {WAY_OUT}'
        )
    if "field limit" in said:
        return f"a cell has more than {LONGEST_CELL:,} characters. Is a quotation mark not closed?"
    if "new-line" in said:
        return MIXED_ENDS
    return f"this cannot be read ({said})."


def scan_rows(rows: Iterator[WrittenRow], delimiter: str, *, with_evidence: bool = False) -> TableScan:
    """Read all rows, up to the first one that is refused."""
    found: TableScan | None = None
    try:
        for row in rows:
            if found is None:
                if not is_header(row):
                    continue
                found = TableScan(row, evidence=Evidence(delimiter, len(row.cells)) if with_evidence else None)
                continue
            if not any(map(str.strip, row.cells)):
                found.empty_rows += 1
                continue
            check_width(row, len(found.header.cells))
            found.rows += 1
            note_filled(found, row)
            if found.evidence:
                found.evidence.note(row.line, row.cells, row.written)
    except Refusal as refusal:
        if found is None:
            raise
        found.refusal = refusal
    if found is None:
        raise Invalid("This file is empty. Nothing was imported.", code="file_empty")
    return found


def is_header(row: WrittenRow) -> bool:
    """Whether a row that comes first is the header: it names something, and is not Excel's line about separators."""
    if len(row.cells) > WIDEST:
        refuse("too_many_columns", row.line, f"there are {len(row.cells):,} columns.")
    return any(map(str.strip, row.cells)) and not SEPARATOR_LINE.fullmatch(row.written[0])


def note_filled(scan: TableScan, row: WrittenRow) -> None:
    if len(scan.filled) < len(row.cells):
        for place, cell in enumerate(row.cells):
            if place not in scan.filled and cell.strip():
                scan.filled[place] = row.line


def check_width(row: WrittenRow, width: int) -> None:
    """Raises `Invalid` (`ragged_row`); cells too many with nothing in them count for nothing."""
    found = len(row.cells)
    if found == width or (found > width and not any(map(str.strip, row.cells[width:]))):
        return
    hint = ""
    if found < width:
        hint = " Does a text go over several lines? Then put it in quotation marks."
    refuse(
        "ragged_row",
        row.line,
        f"this row has {plural(found, 'cell')}, and the header has {width}.{hint}",
        cells=found,
        columns=width,
    )


# What quotation marks are for


def choose_reading(enclosed: TableScan, plain: TableScan, *, tabs: bool) -> str:
    """Return `CELLS` or `TEXT`; the rule is in `quoting`. Raises `Invalid` (`quotes_unclear`, `csv_unreadable`,
    `ragged_row`).
    """
    cells, texts = enclosed.evidence, plain.evidence
    assert cells is not None and texts is not None  # noqa: S101, PT018 - the scans were made with it
    swallowing = cells.swallowing()
    if tabs and '"' not in enclosed.header.written[0]:
        if not plain.refusal:
            if enclosed.refusal:
                return CELLS if texts.doubled > texts.bare else TEXT
            return TEXT if swallowing or not (cells.has_spans or texts.encloses_cells()) else CELLS
        if enclosed.refusal and not (cells.doubled or cells.has_spans):
            return TEXT  # which has a refusal of its own, for the line that breaks it
    if swallowing:
        refuse_unclear(swallowing)
    return CELLS


def refuse_unclear(span: Span) -> NoReturn:
    refuse(
        "quotes_unclear",
        span.first_line,
        f"a quotation mark opens a cell here that ends on line {span.last_line}, and every line between looks like a "
        f"row of its own. If it is one cell, say that quotation marks enclose cells (--quotes cells, quotes=cells). "
        f"If not, take the quotation mark out, or double it and enclose its cell. {WAY_OUT}",
        last_line=span.last_line,
    )


# Columns and records


def named_columns(scan: TableScan) -> tuple[dict[int, str], list[str]]:
    """The columns that count, by their places, and notes on the others.

    Raises `Invalid` (`column_unnamed`, `column_twice`, `too_many_columns`).
    """
    names = [normalize("NFC", name.strip()) for name in scan.header.cells]
    notes = []
    if not names[0] and 0 in scan.filled:
        names[0] = next(name for name in free_names() if name not in names)
        notes.append(f"The first column has no name and is called “{names[0]}”. It can be chosen as the id.")
    unnamed = [place for place, name in enumerate(names) if not name]
    for place in unnamed:
        if place in scan.filled:
            refuse(
                "column_unnamed",
                scan.header.line,
                f"column {place + 1} has no name, and line {scan.filled[place]} has something in it. Name it, or "
                "remove it.",
            )
    if unnamed:
        notes.append(f"{plural(len(unnamed), 'column')} without a name or anything in a cell left out.")
    columns = {place: name for place, name in enumerate(names) if name}
    check_columns(scan.header.line, tuple(columns.values()))
    return columns, notes


def free_names() -> Iterator[str]:
    yield INDEX
    yield from (f"{INDEX}-{number}" for number in count(2))


def records_in(rows: Iterable[WrittenRow], columns: dict[int, str]) -> Iterator[UploadedRow]:
    """Raises `Invalid` (`ragged_row`, `cell_too_long`)."""
    header = False
    for row in rows:
        if not header:
            header = is_header(row)
        elif any(map(str.strip, row.cells)):
            if max(map(len, row.cells)) > LONGEST_CELL:
                refuse("cell_too_long", row.line, f"a cell has more than {LONGEST_CELL:,} characters.")
            yield UploadedRow(row.line, {name: row.cells[place] for place, name in columns.items()})
