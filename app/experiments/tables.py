"""Tables that an experiment takes its material from."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app import upload
from app.errors import Invalid, listed, shortened

MOST_MB = 64


def columns_of(path: Path, columns: Sequence[str]) -> Iterator[upload.UploadedRow]:
    """The rows of a table, CSV, TSV or JSONL, which has these columns: a text in each, without space around it.

    Raises as `upload.read`, and `Invalid` (`column_missing`, `value_missing`).
    """
    table = upload.read(io.BytesIO(path.read_bytes()), path.name, max_mb=MOST_MB)
    if missing := [name for name in columns if name not in table.columns]:
        raise Invalid(f"{path} has no column “{missing[0]}”, but {listed(table.columns)}.", code="column_missing")
    for row in table.records:
        said = {name: upload.as_text(row.values.get(name)).strip() for name in columns}
        if missing := [name for name, value in said.items() if not value]:
            raise Invalid(f"Line {row.line}: “{missing[0]}” is empty.", code="value_missing", line=row.line)
        yield row._replace(values=said)


def between(row: upload.UploadedRow, column: str, low: float, high: float) -> float:
    """A value as a share of the way between two ends.

    Raises `Invalid` (`not_two_ends`, `not_a_value`).
    """
    if not 0 < high - low < np.inf:
        raise Invalid(f"The lower end, {low:g}, must be below the upper one, {high:g}.", code="not_two_ends")
    number = upload.as_number(said := row.values[column])
    share = np.nan if number is None else (number - low) / (high - low)
    if not 0 <= share <= 1:
        words = f"Line {row.line}: “{column}” must be a number from {low:g} to {high:g}, not “{shortened(said)}”."
        raise Invalid(words, code="not_a_value", line=row.line)
    return share
