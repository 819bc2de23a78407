"""Uploaded tables (CSV, TSV, TXT, JSON, XLSX) as other programs save them, read row by row, with line numbers.

`read_table` turns an open file into an `UploadedTable` of `UploadedRow`s. `containers.py` unpacks gzip and zip,
`encodings.py` decodes the bytes, `delimited.py`, `json_rows.py`, `workbooks.py` and `text_lines.py` read the formats,
`quote_mode.py` decides what quotation marks mean, and `rows.py` has the types and limits.

Pure: reads an open binary file and returns values. Bad files raise `Invalid`, whose message and details give the line.
Open `__init__.py` first.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath
from typing import BinaryIO

from app.errors import Invalid, TooLarge
from app.uploads import containers, encodings, workbooks
from app.uploads.containers import ZIP_SIGNATURE
from app.uploads.delimited import read_delimited_table
from app.uploads.encodings import ENCODINGS
from app.uploads.json_rows import JSON_EXTENSIONS, read_json_table, table_from_objects
from app.uploads.rows import (
    INDEX_COLUMN,
    MAX_ID_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    MAX_UPLOAD_ROWS,
    MAX_UPLOADED_CELL_CHARACTERS,
    READ_AS_AUTO,
    READ_AS_LINES,
    READ_AS_TABLE,
    TEXT_COLUMN,
    ReadOptions,
    UploadedRow,
    UploadedTable,
    format_cell,
    iterate_rows_up_to_limit,
    parse_finite_number_or_none,
    raise_upload_refusal_at_line,
)
from app.uploads.text_lines import is_read_as_lines, read_text_lines

__all__ = [
    "ENCODINGS",
    "INDEX_COLUMN",
    "MAX_ID_CHARACTERS",
    "MAX_SHOWN_CHARACTERS",
    "MAX_UPLOADED_CELL_CHARACTERS",
    "MAX_UPLOAD_ROWS",
    "READ_AS_AUTO",
    "READ_AS_LINES",
    "READ_AS_TABLE",
    "TEXT_COLUMN",
    "UNICODE_OPTIONS",
    "ZIP_SIGNATURE",
    "ReadOptions",
    "UploadedRow",
    "UploadedTable",
    "can_choices_make_table_readable",
    "format_cell",
    "iterate_rows_up_to_limit",
    "parse_finite_number_or_none",
    "raise_upload_refusal_at_line",
    "read_table",
    "read_table_of_any_length",
    "refuse_too_large_upload",
    "table_from_objects",
]

UNICODE_OPTIONS = ReadOptions()


def read_table(
    file: BinaryIO,
    file_name: str,
    *,
    max_mb: int,
    read_options: ReadOptions = UNICODE_OPTIONS,
) -> UploadedTable:
    """Return the table that `read_table_of_any_length` returns, up to `MAX_UPLOAD_ROWS` rows.

    Raises what that function raises, and `TooLarge` (`too_many_rows`) while the rows are read.
    """
    upload = read_table_of_any_length(file, file_name, max_mb=max_mb, read_options=read_options)
    return replace(upload, rows=iterate_rows_up_to_limit(upload.rows, MAX_UPLOAD_ROWS))


def read_table_of_any_length(
    file: BinaryIO, file_name: str, *, max_mb: int, read_options: ReadOptions = UNICODE_OPTIONS
) -> UploadedTable:
    """Return the table in an open file, which may be packed by gzip or zip.

    Args:
        file: At its beginning; the caller keeps it open until all rows are read.
        file_name: Its extension decides if the text can be read in two ways.
        max_mb: Limit of the file, and of its unpacked content, in MB.
        read_options: How to read the file if it does not say so itself.

    Raises:
        TooLarge: `file_too_large`.
        Invalid: `file_empty`, `read_as_unknown`; what `open_table_in_uploaded_file_or_refuse`,
            `iterate_decoded_chunks`, and `read_delimited_table`, `read_json_table` or `read_workbook_table` raise;
            `cell_too_long` while the rows are read.

    """
    refuse_too_large_upload(file, max_mb)
    if read_options.read_as not in (None, READ_AS_AUTO, READ_AS_TABLE, READ_AS_LINES):
        raise Invalid("`read_as` must be auto, table or lines. Nothing was imported.", code="read_as_unknown")
    if workbooks.is_excel_workbook_refusing_huge_zip(file):
        return workbooks.read_workbook_table(file, max_mb=max_mb, read_options=read_options)
    table = containers.open_table_in_uploaded_file_or_refuse(file, file_name, max_mb=max_mb)
    text_encoding = encodings.detect_encoding(table.file, read_options.encoding)
    extension = PurePath(table.name).suffix.lower()

    def read_lines() -> Iterator[str]:
        return encodings.iterate_decoded_lines_with_ends_or_refuse(table.file, text_encoding)

    first_text = next(
        (chunk for chunk in encodings.iterate_decoded_chunks(table.file, text_encoding) if chunk.strip()), None
    )
    if first_text is None:
        raise Invalid("This file is empty. Nothing was imported.", code="file_empty")
    is_lines = is_read_as_lines(read_lines, extension, read_options)
    if not is_lines:
        containers.refuse_html_or_xml_table(first_text[:100])
    if is_lines:
        upload = read_text_lines(read_lines, read_options)
    elif extension in JSON_EXTENSIONS or is_beginning_of_json(first_text):
        upload = read_json_table(
            lambda: encodings.iterate_decoded_chunks(table.file, text_encoding), read_lines, extension
        )
    else:
        upload = read_delimited_table(read_lines, extension, read_options)
    notes = [table.note, *encodings.notes_on_encoding(text_encoding), *upload.notes]
    return replace(upload, notes=tuple(note for note in notes if note))


def can_choices_make_table_readable(refusal: Invalid) -> bool:
    """Return whether the uploader can make a refused table readable by choosing its encoding, the use of its quotation
    marks or, where the refusal offers it, another way of reading.
    """
    ways = {"not_utf8": "encodings", "quotes_unclear": "line", "csv_unreadable": "line"}
    return bool(refusal.details.get(ways.get(refusal.code, "read_as")))


def is_beginning_of_json(text: str) -> bool:
    """Return whether a text without a known extension is JSON."""
    start = text.lstrip()[:1000]
    return start.startswith("{") or (start.startswith("[") and start[1:].lstrip()[:1] in ("{", "[", "]", '"', ""))


def refuse_too_large_upload(file: BinaryIO, max_mb: int) -> None:
    """Raise `TooLarge` (`file_too_large`) if the file exceeds the limit."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > max_mb * 2**20:
        raise TooLarge(
            f"This file has {size / 2**20:.0f} MB; the maximum is {max_mb} MB. Nothing was imported. Split it, or "
            "raise EASEL_MAX_UPLOAD_MB.",
            code="file_too_large",
        )
