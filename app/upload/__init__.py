"""Uploaded tables: CSV, TSV and JSON as programs save them, read row by row, each with its line in an editor.

Pure: from an open binary file to values. Whatever is wrong raises `Invalid` with the line in its message and details.
"""

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO

from app.errors import Invalid, TooLarge
from app.upload import containers, encodings
from app.upload.containers import ZIP
from app.upload.delimited import delimited_upload
from app.upload.encodings import ENCODINGS
from app.upload.json_rows import JSON_EXTENSIONS, json_upload, read_objects
from app.upload.rows import (
    INDEX,
    LONGEST_CELL,
    LONGEST_ID,
    LONGEST_SHOWN,
    MOST_ROWS,
    ReadAs,
    Upload,
    UploadedRow,
    as_number,
    as_text,
    limited,
    refuse,
)

__all__ = [
    "ENCODINGS",
    "INDEX",
    "LONGEST_CELL",
    "LONGEST_ID",
    "LONGEST_SHOWN",
    "MOST_ROWS",
    "UNICODE",
    "ZIP",
    "ReadAs",
    "Upload",
    "UploadedRow",
    "as_number",
    "as_text",
    "can_be_read",
    "check_size",
    "limited",
    "read",
    "read_objects",
    "refuse",
]

UNICODE = ReadAs()


def read(file: BinaryIO, name: str, *, max_mb: int, read_as: ReadAs = UNICODE) -> Upload:
    """The table in an open file, which may be packed by gzip or zip.

    Args:
        file: At its beginning; it is kept open until all rows are read.
        name: Its extension counts where the text can be read in two ways.
        max_mb: Limit of the file, and of what is unpacked from it.
        read_as: How to read it where it does not say so itself.

    Raises:
        TooLarge: `file_too_large`, `too_many_rows`.
        Invalid: `file_empty`; what `containers.unpacked` and `encodings.chunks_of` raise, and of the format
            `delimited_upload` or `json_upload`; `cell_too_long` while the rows are read.

    """
    check_size(file, max_mb)
    table = containers.unpacked(file, name, max_mb=max_mb)
    encoded = encodings.encoding_of(table.file, read_as.encoding)
    extension = PurePath(table.name).suffix.lower()

    def lines() -> Iterator[str]:
        return encodings.lines_of(table.file, encoded)

    first = next((chunk for chunk in encodings.chunks_of(table.file, encoded) if chunk.strip()), None)
    if first is None:
        raise Invalid("This file is empty. Nothing was imported.", code="file_empty")
    containers.refuse_markup(first[:100])
    if extension in JSON_EXTENSIONS or begins_as_json(first):
        upload = json_upload(lambda: encodings.chunks_of(table.file, encoded), lines, extension)
    else:
        upload = delimited_upload(lines, extension, read_as.quotes)
    notes = [table.note, *encodings.notes_on(encoded), *upload.notes]
    return Upload(
        upload.format,
        upload.columns,
        upload.records,
        upload.row_count,
        upload.line_count,
        tuple(note for note in notes if note),
        upload.quotes,
    )


def can_be_read(refusal: Invalid) -> bool:
    """Return whether the table that was refused can be read if a person says how: in which encoding, or what its
    quotation marks are for.
    """
    ways = {"not_utf8": "encodings", "quotes_unclear": "line", "csv_unreadable": "line"}
    return bool(refusal.details.get(ways.get(refusal.code, "")))


def begins_as_json(text: str) -> bool:
    """Whether a text without a telling extension is JSON."""
    start = text.lstrip()[:1000]
    return start.startswith("{") or (start.startswith("[") and start[1:].lstrip()[:1] in ("{", "[", "]", '"', ""))


def check_size(file: BinaryIO, max_mb: int) -> None:
    """Raises `TooLarge` (`file_too_large`)."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > max_mb * 2**20:
        raise TooLarge(
            f"This file has {size / 2**20:.0f} MB, and {max_mb} MB is the most. Nothing was imported. "
            "Split it, or raise EASEL_MAX_UPLOAD_MB.",
            code="file_too_large",
        )
