"""Tables with the material of an experiment."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from app import uploads
from app.errors import Invalid, join_names, shorten_echo

MAX_TABLE_MB = 64


def iterate_table_rows_with_columns(path: Path, columns: Sequence[str]) -> Iterator[uploads.UploadedRow]:
    """Yield the rows of a CSV, TSV or JSONL table with these columns: a text in each, stripped of white space.

    Raises as `uploads.read_table`, and `Invalid` (`column_missing`, `value_missing`).
    """
    table = uploads.read_table(io.BytesIO(path.read_bytes()), path.name, max_mb=MAX_TABLE_MB)
    if missing := [name for name in columns if name not in table.columns]:
        message = f"{path} has no column “{missing[0]}”. Its columns are {join_names(table.columns)}."
        raise Invalid(message, code="column_missing")
    for row in table.rows:
        values = {name: uploads.format_cell(row.values.get(name)).strip() for name in columns}
        if missing := [name for name, value in values.items() if not value]:
            raise Invalid(f"Line {row.line}: “{missing[0]}” is empty.", code="value_missing", line=row.line)
        yield row._replace(values=values)


def parse_value_as_share_of_range_or_refuse(row: uploads.UploadedRow, column: str, low: float, high: float) -> float:
    """Return a value as a share of the way between two ends.

    Raises `Invalid` (`not_two_ends`, `not_a_value`).
    """
    if not 0 < high - low < np.inf:
        raise Invalid(f"The lower end, {low:g}, must be below the upper one, {high:g}.", code="not_two_ends")
    number = uploads.parse_finite_number_or_none(text := row.values[column])
    share = np.nan if number is None else (number - low) / (high - low)
    if not 0 <= share <= 1:
        problem = f"Line {row.line}: “{column}” must be a number from {low:g} to {high:g}, not “{shorten_echo(text)}”."
        raise Invalid(problem, code="not_a_value", line=row.line)
    return share
