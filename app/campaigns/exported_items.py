"""An export of items that serves as a table of items again: with its ids and texts as they were uploaded."""

from dataclasses import replace

from app.spreadsheets import unprotect
from app.upload import Upload, UploadedRow

EXPORTED = frozenset(("id", "shown", "low_95", "high_95", "judgments"))


def as_uploaded(upload: Upload) -> Upload:
    """Return a table; of an export for spreadsheet programs without the apostrophes that keep ids such as 001."""
    if not set(upload.columns) >= EXPORTED:
        return upload
    records = (
        UploadedRow(record.line, {name: plain_value(value) for name, value in record.values.items()})
        for record in upload.records
    )
    return replace(upload, records=records)


def plain_value(value: object) -> object:
    return unprotect(value) if isinstance(value, str) else value
