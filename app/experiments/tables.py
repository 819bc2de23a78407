"""Tables that an experiment takes its material from."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from app import upload
from app.errors import Invalid

MOST_MB = 64


def columns_of(path: Path, columns: Sequence[str]) -> Iterator[upload.UploadedRow]:
    """The rows of a table, CSV, TSV or JSONL, which has these columns.

    Raises as `upload.read`, and `Invalid` (`column_missing`).
    """
    table = upload.read(io.BytesIO(path.read_bytes()), path.name, max_mb=MOST_MB)
    if missing := [name for name in columns if name not in table.columns]:
        raise Invalid(f"{path} has no column “{missing[0]}”, but {', '.join(table.columns)}.", code="column_missing")
    for row in table.records:
        yield row._replace(values={name: row.values.get(name, "") for name in columns})


def between(row: upload.UploadedRow, column: str, low: float, high: float) -> float:
    """A value as a share of the way between two ends.

    Raises `Invalid` (`not_two_ends`, `not_a_value`).
    """
    if not low < high:
        raise Invalid(f"The lower end, {low:g}, must be below the upper one, {high:g}.", code="not_two_ends")
    said: Any = row.values[column]
    try:
        share = (float(said) - low) / (high - low)
    except (TypeError, ValueError):
        share = np.nan
    if not 0 <= share <= 1:
        words = f"Line {row.line}: “{column}” must be a number from {low:g} to {high:g}, not “{said}”."
        raise Invalid(words, code="not_a_value", line=row.line)
    return share
