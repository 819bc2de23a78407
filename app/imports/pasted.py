"""Items pasted into a text field, as the file that they would have been."""

import csv
import json
import re
from collections.abc import Sequence

PASTED_FORMATS = {
    "auto": "what it looks like",
    "table": "a table with a header",
    "lines": "one text per line",
}
PASTED_LINES_COLUMN = "text"
PASTED_LINES_FILE = "pasted.jsonl"
MIN_TABLE_COLUMNS = 2
HEADER_CELL = re.compile(r"[\w .:/()%#-]{1,40}")


def pasted_text_as_named_file(pasted_text: str, read_as: str = "auto") -> tuple[str, bytes]:
    """Return a file name and the content of the table in a pasted text; an unknown `read_as` means auto."""
    if read_as == "lines" or (read_as != "table" and not looks_like_table_or_json(pasted_text)):
        lines = [line.strip() for line in pasted_text.splitlines()]
        return PASTED_LINES_FILE, json_lines_bytes([{PASTED_LINES_COLUMN: line} for line in lines if line])
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
    if len(lines) == 1 and lines[0].strip().lower() == PASTED_LINES_COLUMN:
        return True
    return any(has_header_with_equal_rows(lines, separator) for separator in ",;")


def has_header_with_equal_rows(lines: Sequence[str], separator: str) -> bool:
    try:
        rows = list(csv.reader(lines, delimiter=separator, strict=True))
    except csv.Error:
        return False
    if not rows or len(rows[0]) < MIN_TABLE_COLUMNS:
        return False
    header = [cell.strip() for cell in rows[0]]
    has_names = len(set(header)) == len(header) and all(HEADER_CELL.fullmatch(cell) for cell in header)
    return has_names and len(rows) > 1 and all(len(row) == len(header) for row in rows)


def json_lines_bytes(rows: Sequence[dict[str, str]]) -> bytes:
    """Return rows as JSON, one on each line: unlike in CSV, no mark in a text can mean anything."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
