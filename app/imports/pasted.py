"""Items pasted into a text field, as the file that they would have been."""

from io import StringIO

from app.uploads.text_lines import LINES_EXTENSION, TEXT_COLUMN, has_header_with_equal_rows

PASTED_FORMATS = {
    "auto": "what it looks like",
    "table": "a table with a header",
    "lines": "one text per line",
}


def pasted_text_as_named_file(pasted_text: str, read_as: str = "auto") -> tuple[str, bytes]:
    """Return a file name and the content of the table in a pasted text; an unknown `read_as` means auto."""
    if read_as == "lines" or (read_as != "table" and not looks_like_table_or_json(pasted_text)):
        return f"pasted{LINES_EXTENSION}", pasted_text.encode()
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
    if len(lines) == 1 and lines[0].strip().lower() == TEXT_COLUMN:
        return True
    return any(has_header_with_equal_rows(StringIO(pasted_text), separator) for separator in ",;")
