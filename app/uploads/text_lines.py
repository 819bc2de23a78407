"""Files of one text per line, without a header: what `.txt` files of items usually are."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator

from app.errors import shorten_echo
from app.uploads.rows import (
    MAX_UPLOADED_CELL_CHARACTERS,
    UploadedRow,
    UploadedTable,
    raise_upload_refusal_at_line,
)

TEXT_EXTENSION = ".txt"
LINES_EXTENSION = ".lines"  # given to the name of a file that an uploader declares to have one text per line
LINES_FORMAT = "lines"
TEXT_COLUMN = "text"
HEADER_NAMES = frozenset({"id", TEXT_COLUMN, "item", "sent", "sentence", "system", "segment", "output"})
MIN_TABLE_COLUMNS = 2
HEADER_CELL = re.compile(r"[\w .:/()%#-]{1,40}")


def has_one_text_per_line(read_lines: Callable[[], Iterator[str]], extension: str) -> bool:
    """Return whether a file is to be read as one text per line."""
    return extension == LINES_EXTENSION or (extension == TEXT_EXTENSION and not looks_like_table(read_lines))


def looks_like_table(read_lines: Callable[[], Iterator[str]]) -> bool:
    """Return whether a text has tabs or known names in its first line, or a header and rows with as many cells."""
    first_line = next((line.strip() for line in read_lines() if line.strip()), "")
    names = {cell.strip().strip('"').casefold() for cell in first_line.replace(";", ",").split(",")}
    if "\t" in first_line or names & HEADER_NAMES:
        return True
    return any(has_header_with_equal_rows(read_lines(), separator) for separator in ",;")


def has_header_with_equal_rows(lines: Iterable[str], separator: str) -> bool:
    rows = csv.reader((line for line in lines if line.strip()), delimiter=separator, strict=True)
    try:
        header = [cell.strip() for cell in next(rows, [])]
        has_names = len(set(header)) == len(header) and all(HEADER_CELL.fullmatch(cell) for cell in header)
        if not has_names or len(header) < MIN_TABLE_COLUMNS or (first_row := next(rows, None)) is None:
            return False
        return len(first_row) == len(header) and all(len(row) == len(header) for row in rows)
    except csv.Error:
        return False


def read_lines_as_table(read_lines: Callable[[], Iterator[str]]) -> UploadedTable:
    """Return a table with the column `text` and a row for each line that is not blank.

    Raises `Invalid` (`cell_too_long`) while rows are read.
    """
    texts = [(number, text) for number, line in enumerate(read_lines(), start=1) if (text := line.strip())]
    note = f"One text per line, from the first line on: “{shorten_echo(texts[0][1])}”."
    return UploadedTable(
        LINES_FORMAT, (TEXT_COLUMN,), iterate_text_rows(texts), len(texts), sum(1 for _ in read_lines()), (note,)
    )


def iterate_text_rows(texts: Iterable[tuple[int, str]]) -> Iterator[UploadedRow]:
    """Yield a row for each line. Raises `Invalid` (`cell_too_long`)."""
    for number, text in texts:
        if len(text) > MAX_UPLOADED_CELL_CHARACTERS:
            raise_upload_refusal_at_line(
                "cell_too_long", number, f"a cell has more than {MAX_UPLOADED_CELL_CHARACTERS:,} characters."
            )
        yield UploadedRow(number, {TEXT_COLUMN: text})
