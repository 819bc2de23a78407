"""Items pasted into a text field, as the file that they would have been."""

import csv
import re
from collections.abc import Sequence

from app.imports.item_files import ITEM_HEADER_NAMES
from app.uploads import READ_AS_AUTO, READ_AS_LINES, READ_AS_TABLE

PASTED_LINES_FILE = "pasted.txt"
MIN_TABLE_COLUMNS = 2
HEADER_CELL = re.compile(r"[\w .:/()%#-]{1,40}")


def file_name_and_bytes_of_pasted_text(pasted_text: str, read_as: str = READ_AS_AUTO) -> tuple[str, bytes]:
    """Return the name that a pasted text would have as a file, and its content; an unknown `read_as` means auto."""
    is_table = read_as == READ_AS_TABLE or looks_like_table_or_json(pasted_text)
    if read_as == READ_AS_LINES or not is_table:
        return PASTED_LINES_FILE, pasted_text.encode()
    if starts_like_json(pasted_text):
        return "pasted.json", pasted_text.encode()
    first_line = pasted_text.lstrip("\r\n").partition("\n")[0]
    return ("pasted.tsv" if "\t" in first_line else "pasted.csv"), pasted_text.encode()


def starts_like_json(pasted_text: str) -> bool:
    return pasted_text.lstrip()[:1] in ("{", "[")


def looks_like_table_or_json(pasted_text: str) -> bool:
    """Return whether a pasted text is JSON, has tabs, or is CSV: a header of names and rows with as many cells."""
    lines = [line for line in pasted_text.splitlines() if line.strip()]
    if starts_like_json(pasted_text) or (lines and "\t" in lines[0]):
        return True
    if lines and lines[0].strip().lower() in ITEM_HEADER_NAMES:
        return not any(separator in line for line in lines for separator in ",;")
    return any(has_header_and_rows_with_as_many_cells(lines, separator) for separator in ",;")


def has_header_and_rows_with_as_many_cells(lines: Sequence[str], separator: str) -> bool:
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error:
        return False
    if not rows or len(rows[0]) < MIN_TABLE_COLUMNS:
        return False
    header = [cell.strip() for cell in rows[0]]
    has_names = len(set(header)) == len(header) and all(HEADER_CELL.fullmatch(cell) for cell in header)
    return has_names and len(rows) > 1 and all(len(row) == len(header) for row in rows)
