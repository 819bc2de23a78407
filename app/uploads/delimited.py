"""CSV and TSV files: cells between commas, semicolons or tabs.

A file is read twice: first to decide the use of its quotation marks, find the columns that are not empty and count the
rows, then for its rows.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, NoReturn
from unicodedata import normalize

from app.errors import Invalid, Refusal, pluralize, shorten_echo
from app.uploads.quote_mode import MultilineRow, QuoteEvidence
from app.uploads.rows import (
    INDEX_COLUMN,
    MAX_UPLOADED_CELL_CHARACTERS,
    READ_AS_AUTO,
    TEXT_COLUMN,
    ReadOptions,
    UploadedRow,
    UploadedTable,
    raise_upload_refusal_at_line,
    refuse_impossible_column_names,
)
from app.uploads.text_lines import HOW_TO_READ_A_TABLE, HOW_TO_READ_LINES

TAB_EXTENSIONS = (".tsv", ".tab")
QUOTES_ENCLOSE_CELLS, QUOTES_ARE_TEXT = "cells", "text"  # quotation marks enclose cells, or are part of texts
QUOTED_PART = re.compile(r'"[^"]*"')
SEPARATOR_LINE = re.compile(r"sep=([,;\t])\s*", re.IGNORECASE)  # first line that only Excel writes and reads
MAX_HEADER_CELLS = 20_000  # most of them may have no name
QUOTES_TEXT_ADVICE = (
    "Or choose that quotation marks are part of the text (on the command line --quotes text, in the API quotes=text)."
)
MIXED_LINE_ENDS_SENTENCE = (
    "there is a carriage return within this row. The file mixes different line endings: save it again."
)

LineReader = Callable[[], Iterator[str]]


class DelimitedRow(NamedTuple):
    """The first line of a row, its cells, and all of its lines as they are written."""

    line: int
    cells: list[str]
    source_lines: Sequence[str]


@dataclass
class TableScan:
    """Findings about a table that is read in one of the two ways."""

    header: DelimitedRow
    first_filled_lines: dict[int, int] = field(default_factory=dict)  # position of a column: first line with a value
    row_count: int = 0
    empty_row_count: int = 0
    evidence: QuoteEvidence | None = None
    refusal: Refusal | None = None


def read_delimited_table(read_lines: LineReader, extension: str, read_options: ReadOptions) -> UploadedTable:
    """Return the table in a CSV or TSV file.

    Raises `Invalid`: `csv_unreadable`, `quotes_unclear`, `ragged_row`, `column_unnamed`, `column_twice`,
    `too_many_columns`, `quotes_unknown`; while rows are read `cell_too_long`.
    """
    quotes = read_options.quotes
    if quotes not in (None, QUOTES_ENCLOSE_CELLS, QUOTES_ARE_TEXT):
        raise Invalid("`quotes` must be cells or text. Nothing was imported.", code="quotes_unknown")
    line_count, has_quotes = line_count_and_has_quotes(read_lines)
    delimiter = detect_delimiter(read_lines, extension)
    is_tsv = delimiter == "\t"
    if not has_quotes:
        scan, quote_mode = (
            scan_all_rows_up_to_refusal(iterate_rows_with_literal_quotes(read_lines, delimiter), delimiter),
            None,
        )
    else:
        quoted_scan = scan_all_rows_up_to_refusal(
            iterate_rows_with_quoted_cells(read_lines, delimiter), delimiter, collect_quote_evidence=True
        )
        plain_scan = scan_all_rows_up_to_refusal(
            iterate_rows_with_literal_quotes(read_lines, delimiter), delimiter, collect_quote_evidence=True
        )
        is_one_column = len(plain_scan.header.cells) == 1 and extension in (*TAB_EXTENSIONS, ".txt")
        quote_mode = quotes or choose_quote_mode_or_refuse(quoted_scan, plain_scan, is_tsv=is_tsv or is_one_column)
        scan = quoted_scan if quote_mode == QUOTES_ENCLOSE_CELLS else plain_scan
    if scan.refusal:
        raise scan.refusal
    has_header = read_options.has_header_in(scan.header.cells)
    columns, notes = column_names_by_position_and_notes(scan, read_options)
    rows = (
        iterate_rows_with_quoted_cells(read_lines, delimiter)
        if quote_mode == QUOTES_ENCLOSE_CELLS
        else iterate_rows_with_literal_quotes(read_lines, delimiter)
    )
    if quote_mode == QUOTES_ARE_TEXT:
        notes.append("Quotation marks are part of the text and do not enclose cells.")
    elif quote_mode == QUOTES_ENCLOSE_CELLS and is_tsv:
        notes.append("Quotation marks enclose cells and are not part of the text.")
    if scan.empty_row_count:
        notes.append(f"Skipped {pluralize(scan.empty_row_count, 'row')} without any content.")
    return UploadedTable(
        "tsv" if is_tsv else "csv",
        tuple(columns.values()),
        iterate_uploaded_rows(rows, columns, has_header=has_header),
        row_count=scan.row_count + (not has_header),
        line_count=line_count,
        notes=tuple(notes),
        quotes=quote_mode,
        has_header=has_header,
    )


def line_count_and_has_quotes(read_lines: LineReader) -> tuple[int, bool]:
    """Return the number of lines, and whether there are quotation marks."""
    line_count, has_quotes = 0, False
    for line in read_lines():
        line_count += 1
        has_quotes = has_quotes or '"' in line
    return line_count, has_quotes


def detect_delimiter(read_lines: LineReader, extension: str) -> str:
    """Return the delimiter (tab, comma or semicolon) that is most frequent in the header outside quotation marks.

    The extension decides a tie. A first line such as `sep=;` names the delimiter.
    """
    first_line = next(line for line in read_lines() if line.strip())
    if match := SEPARATOR_LINE.fullmatch(first_line):
        return match[1]
    candidates = "\t,;" if extension in TAB_EXTENSIONS else ",\t;"
    header = next((line for line in read_lines() if line.strip(" \t,;\r\n")), first_line)
    return max(candidates, key=QUOTED_PART.sub("", header).count)


# Rows, read in one of two ways


def iterate_rows_with_literal_quotes(read_lines: LineReader, delimiter: str) -> Iterator[DelimitedRow]:
    """Yield one row for each line that is not blank; quotation marks are text. Raises `Invalid` (`csv_unreadable`)."""
    for line_number, line in enumerate(read_lines(), start=1):
        row = line.strip("\r\n")
        if "\r" in row:
            raise_upload_refusal_at_line("csv_unreadable", line_number, MIXED_LINE_ENDS_SENTENCE)
        if row:
            yield DelimitedRow(line_number, row.split(delimiter), (line,))


def iterate_rows_with_quoted_cells(read_lines: LineReader, delimiter: str) -> Iterator[DelimitedRow]:
    """Yield rows whose cells may be enclosed in quotation marks, and then span several lines.

    Raises `Invalid` (`csv_unreadable`).
    """
    source_lines: list[str] = []

    def record_lines() -> Iterator[str]:
        for line in read_lines():
            source_lines.append(line)
            yield line

    reader = csv.reader(record_lines(), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        source_lines.clear()
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            raise_upload_refusal_at_line("csv_unreadable", line, sentence_on_csv_error(problem, line, reader.line_num))
        if cells:
            yield DelimitedRow(line, cells, tuple(source_lines))


def sentence_on_csv_error(problem: csv.Error, first_line: int, last_line: int) -> str:
    message = str(problem)
    if "unexpected end of data" in message:
        return f"a quotation mark opens in this row and is never closed. {QUOTES_TEXT_ADVICE}"
    if "expected after" in message:
        where = f"on line {last_line} text" if last_line > first_line else "text"
        return (
            f"a quotation mark opens a cell, and {where} follows the one that closes it. Inside a cell in quotation "
            f'marks write "" for each. {QUOTES_TEXT_ADVICE}'
        )
    if "field limit" in message:
        return f"a cell has more than {MAX_UPLOADED_CELL_CHARACTERS:,} characters. Is a closing quotation mark missing?"
    if "new-line" in message:
        return MIXED_LINE_ENDS_SENTENCE
    return f"this cannot be read ({message})."


def scan_all_rows_up_to_refusal(
    rows: Iterator[DelimitedRow], delimiter: str, *, collect_quote_evidence: bool = False
) -> TableScan:
    """Read all rows, up to the first refused one."""
    scan: TableScan | None = None
    try:
        for row in rows:
            if scan is None:
                if not is_header_row(row):
                    continue
                scan = TableScan(
                    row, evidence=QuoteEvidence(delimiter, len(row.cells)) if collect_quote_evidence else None
                )
                continue
            if not any(map(str.strip, row.cells)):
                scan.empty_row_count += 1
                continue
            refuse_ragged_row(row, len(scan.header.cells))
            scan.row_count += 1
            record_first_filled_line_of_columns(scan, row)
            if scan.evidence:
                scan.evidence.add_row(row.line, row.cells, row.source_lines)
    except Refusal as refusal:
        if scan is None:
            raise
        scan.refusal = refusal
    if scan is None:
        raise Invalid("This file is empty. Nothing was imported.", code="file_empty")
    return scan


def is_header_row(row: DelimitedRow) -> bool:
    """Return whether the first row is the header: it has a name, and is not Excel's line about separators."""
    if len(row.cells) > MAX_HEADER_CELLS:
        raise_upload_refusal_at_line("too_many_columns", row.line, f"there are {len(row.cells):,} columns.")
    return any(map(str.strip, row.cells)) and not SEPARATOR_LINE.fullmatch(row.source_lines[0])


def record_first_filled_line_of_columns(scan: TableScan, row: DelimitedRow) -> None:
    if len(scan.first_filled_lines) < len(row.cells):
        for position, cell in enumerate(row.cells):
            if position not in scan.first_filled_lines and cell.strip():
                scan.first_filled_lines[position] = row.line


def refuse_ragged_row(row: DelimitedRow, column_count: int) -> None:
    """Raise `Invalid` (`ragged_row`) for a row of another length than the header; extra empty cells are allowed."""
    cell_count = len(row.cells)
    if cell_count == column_count or (cell_count > column_count and not any(map(str.strip, row.cells[column_count:]))):
        return
    hint = ""
    if cell_count < column_count:
        hint = " If a text spans several lines, put it in quotation marks."
    raise_upload_refusal_at_line(
        "ragged_row",
        row.line,
        f"this row has {pluralize(cell_count, 'cell')}, and the header has {column_count}.{hint}",
        cells=cell_count,
        columns=column_count,
    )


# Use of quotation marks


def choose_quote_mode_or_refuse(quoted_scan: TableScan, plain_scan: TableScan, *, is_tsv: bool) -> str:
    """Return `QUOTES_ENCLOSE_CELLS` or `QUOTES_ARE_TEXT` by the rule in `quote_mode`.

    Raises `Invalid` (`quotes_unclear`, `csv_unreadable`, `ragged_row`).
    """
    quoted_evidence, plain_evidence = quoted_scan.evidence, plain_scan.evidence
    assert quoted_evidence is not None and plain_evidence is not None  # noqa: S101, PT018 - the scans were made with it
    swallowing_span = quoted_evidence.first_row_that_contains_whole_rows_or_none()
    if is_tsv and '"' not in quoted_scan.header.source_lines[0]:
        if not plain_scan.refusal:
            if quoted_scan.refusal:
                return (
                    QUOTES_ENCLOSE_CELLS
                    if plain_evidence.doubled_quote_count > plain_evidence.stray_quote_count
                    else QUOTES_ARE_TEXT
                )
            return (
                QUOTES_ARE_TEXT
                if swallowing_span or not (quoted_evidence.has_multiline_rows or plain_evidence.has_enclosing_quotes())
                else QUOTES_ENCLOSE_CELLS
            )
        if quoted_scan.refusal and not (quoted_evidence.doubled_quote_count or quoted_evidence.has_multiline_rows):
            return QUOTES_ARE_TEXT  # reading it so raises a refusal for its own line
    if swallowing_span:
        raise_unclear_quotes_refusal(swallowing_span)
    return QUOTES_ENCLOSE_CELLS


def raise_unclear_quotes_refusal(span: MultilineRow) -> NoReturn:
    raise_upload_refusal_at_line(
        "quotes_unclear",
        span.first_line,
        f"a quotation mark opens a cell here that ends on line {span.last_line}, and every line between looks like a "
        f"row of its own. If it is one cell, choose that quotation marks enclose cells (--quotes cells, quotes=cells). "
        f"If not, take the quotation mark out, or double it and enclose its cell. {QUOTES_TEXT_ADVICE}",
        last_line=span.last_line,
    )


# Columns and records


def column_names_by_position_and_notes(scan: TableScan, read_options: ReadOptions) -> tuple[dict[int, str], list[str]]:
    """Return the columns that count, by their positions, and notes on the others.

    Raises `Invalid` (`column_unnamed`, `column_twice`, `too_many_columns`).
    """
    if len(scan.header.cells) == 1 and read_options.read_as == READ_AS_AUTO:
        first_cell = shorten_echo(scan.header.cells[0].strip())
        if not read_options.has_header_in(scan.header.cells):
            note = f"The first line, “{first_cell}”, is an item: it is not like the name of a column."
            return {0: TEXT_COLUMN}, [f"{note} {HOW_TO_READ_A_TABLE}"]
        note = f"The first line, “{first_cell}”, is the name of the column. If it is an item, {HOW_TO_READ_LINES}"
        return {0: normalize("NFC", scan.header.cells[0].strip())}, [note]
    if not read_options.has_header_in(scan.header.cells):
        return {0: TEXT_COLUMN}, []
    names = [normalize("NFC", name.strip()) for name in scan.header.cells]
    notes = []
    if not names[0] and 0 in scan.first_filled_lines:
        names[0] = next(name for name in iterate_candidate_names_of_index_column() if name not in names)
        notes.append(f"The first column has no name and is called “{names[0]}”. It can be chosen as the id.")
    unnamed_positions = [position for position, name in enumerate(names) if not name]
    for position in unnamed_positions:
        if position in scan.first_filled_lines:
            raise_upload_refusal_at_line(
                "column_unnamed",
                scan.header.line,
                f"column {position + 1} has no name, but line {scan.first_filled_lines[position]} has a value in it. "
                "Name it, or remove it.",
            )
    if unnamed_positions:
        notes.append(f"Skipped {pluralize(len(unnamed_positions), 'column')} without a name or content.")
    columns = {position: name for position, name in enumerate(names) if name}
    refuse_impossible_column_names(scan.header.line, tuple(columns.values()))
    return columns, notes


def iterate_candidate_names_of_index_column() -> Iterator[str]:
    yield INDEX_COLUMN
    yield from (f"{INDEX_COLUMN}-{number}" for number in count(2))


def iterate_uploaded_rows(
    rows: Iterable[DelimitedRow], name_by_position: dict[int, str], *, has_header: bool = True
) -> Iterator[UploadedRow]:
    """Yield the rows with their cells by column. Raises `Invalid` (`ragged_row`, `cell_too_long`)."""
    is_header_read = False
    for row in rows:
        is_first_row = not is_header_read
        if is_first_row:
            is_header_read = is_header_row(row)
        if is_first_row and (has_header or not is_header_read):
            continue
        if any(map(str.strip, row.cells)):
            if max(map(len, row.cells)) > MAX_UPLOADED_CELL_CHARACTERS:
                raise_upload_refusal_at_line(
                    "cell_too_long", row.line, f"a cell has more than {MAX_UPLOADED_CELL_CHARACTERS:,} characters."
                )
            yield UploadedRow(row.line, {name: row.cells[position] for position, name in name_by_position.items()})
