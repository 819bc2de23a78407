"""Text files with one text on each line, whose commas and quotation marks mean nothing."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator

from app.uploads.rows import (
    MAX_UPLOADED_CELL_CHARACTERS,
    READ_AS_AUTO,
    READ_AS_LINES,
    TEXT_COLUMN,
    ReadOptions,
    UploadedRow,
    UploadedTable,
    raise_upload_refusal_at_line,
)

COLUMN_NAME = re.compile(r"[\w .:/()%#-]{1,40}")
JSON_START = re.compile(r"\s*[{\[]\s*(?:[{\[\"}\]]|$)")
HOW_TO_READ_A_TABLE = (
    "To use it as the name of the column, read the file as a table with a header (on the command line --read-as table, "
    "in the API read_as=table)."
)
HOW_TO_READ_LINES = "choose one text per line (on the command line --read-as lines, in the API read_as=lines)."

LineReader = Callable[[], Iterator[str]]


def is_read_as_lines(read_lines: LineReader, extension: str, read_options: ReadOptions) -> bool:
    """Return whether each line of a file is a text of its own: as chosen, or because the file is named .txt and is
    neither JSON nor a table.
    """
    if read_options.read_as != READ_AS_AUTO or extension != ".txt":
        return read_options.read_as == READ_AS_LINES
    first_line = next(line for line in read_lines() if line.strip())
    names = read_options.header_names
    return not (
        JSON_START.match(first_line)
        or are_columns_between_tabs(read_lines(), names)
        or any(are_columns_below_known_name(read_lines(), separator, names) for separator in ",;")
    )


def are_columns_between_tabs(lines: Iterable[str], header_names: frozenset[str]) -> bool:
    """Return whether tabs make a table of lines: a header with a known name, or names above rows with as many cells."""
    rows = (line.rstrip("\r\n").split("\t") for line in lines if line.strip())
    header = [cell.strip() for cell in next(rows, [])]
    if len(header) == 1:
        return False
    if any(cell.lower() in header_names for cell in header):
        return True
    has_names = len(set(header)) == len(header) and all(map(COLUMN_NAME.fullmatch, header))
    return has_names and all(len(row) == len(header) for row in rows)


def are_columns_below_known_name(lines: Iterable[str], separator: str, header_names: frozenset[str]) -> bool:
    """Return whether commas or semicolons make a table of lines: names, one of them known, above as many cells in each
    row. Sentences have such marks, too, so this asks for more than tabs do.
    """
    rows = csv.reader((line for line in lines if line.strip()), delimiter=separator, strict=True)
    try:
        header = [cell.strip() for cell in next(rows, [])]
        has_names = len(set(header)) == len(header) > 1 and all(map(COLUMN_NAME.fullmatch, header))
        has_known_name = any(cell.lower() in header_names for cell in header)
        return has_names and has_known_name and all(len(row) == len(header) for row in rows)
    except csv.Error:
        return False


def read_text_lines(read_lines: LineReader, read_options: ReadOptions) -> UploadedTable:
    """Return the table of a file with a text on each line that is not blank.

    Raises `Invalid` (`cell_too_long`) while the rows are read.
    """
    line_count, row_count, first_text = 0, 0, ""
    for line in read_lines():
        line_count += 1
        text = line.strip()
        row_count += bool(text)
        first_text = first_text or text
    notes = ["Every line is one text. Commas and quotation marks are part of it."]
    if first_text.lower() in read_options.header_names:
        notes.append(f"The first line, “{first_text}”, is an item, too. {HOW_TO_READ_A_TABLE}")
    return UploadedTable(
        "txt",
        (TEXT_COLUMN,),
        iterate_text_lines(read_lines),
        row_count=row_count,
        line_count=line_count,
        notes=tuple(notes),
        has_header=False,
    )


def iterate_text_lines(read_lines: LineReader) -> Iterator[UploadedRow]:
    for line_number, line in enumerate(read_lines(), start=1):
        if text := line.strip():
            if len(text) > MAX_UPLOADED_CELL_CHARACTERS:
                raise_upload_refusal_at_line(
                    "cell_too_long", line_number, f"a text has more than {MAX_UPLOADED_CELL_CHARACTERS:,} characters."
                )
            yield UploadedRow(line_number, {TEXT_COLUMN: text})
