"""Excel workbooks for tests."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import openpyxl


def workbook_bytes(rows_by_sheet: Mapping[str, Sequence[Sequence[Any]]]) -> bytes:
    """Return a workbook with these rows in its sheets."""
    book = openpyxl.Workbook(write_only=True)
    for title, rows in rows_by_sheet.items():
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    saved = io.BytesIO()
    book.save(saved)
    return saved.getvalue()
