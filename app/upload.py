"""Uploaded tables, CSV, TSV or JSONL in UTF-8: read row by row, each with the line at which an editor shows it.

Pure: from an open binary file to values. Whatever is wrong raises `Invalid` with the line in its message and details.
"""

import codecs
import csv
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePath
from typing import Any, BinaryIO, NamedTuple, NoReturn

from app.errors import Invalid, TooLarge, shortened

LONGEST_ID = 200
LONGEST_SHOWN = 10_000
LONGEST_CELL = 100_000  # characters; below the csv module's own limit
MOST_COLUMNS = 500
MOST_ROWS = 1_000_000
READ_AT_ONCE = 2**20  # bytes
MOST_LEVELS = 50  # of lists and objects within each other; some readers of an export go no deeper than a few hundred
JSON_EXTENSIONS = (".jsonl", ".ndjson", ".json")
ZIP = b"PK\x03\x04"  # how an .xlsx begins, and no text
TAB_EXTENSIONS = (".tsv", ".tab")


class UploadedRow(NamedTuple):
    """One row: the line it starts at, and its values by column; JSONL may bring other values than text."""

    line: int
    values: dict[str, Any]


@dataclass(frozen=True)
class Upload:
    """A table whose rows are read while they are asked for, once. `columns` of JSONL are those of its first row."""

    format: str
    columns: tuple[str, ...]
    records: Iterator[UploadedRow]


def refuse(code: str, line: int, problem: str, **details: Any) -> NoReturn:
    raise Invalid(f"Line {line}: {problem} Nothing was imported.", code=code, line=line, **details)


def read(file: BinaryIO, name: str, *, max_mb: int) -> Upload:
    """The table in an open file; `name` is only looked at for its extension.

    Raises `TooLarge` (`file_too_large`, `too_many_rows`) and `Invalid`: `file_empty`, `excel_workbook`, `not_utf8`,
    `nul_byte`, `csv_unreadable`, `json_unreadable`, `ragged_row`, `column_unnamed`, `column_twice`, `too_many_columns`,
    `cell_too_long`; of these, what the rows bring while they are read.
    """
    check_size(file, max_mb)
    refuse_workbook(file)
    extension = PurePath(name).suffix.lower()
    first = next((line for line in decoded(file) if line.strip()), None)
    if first is None:
        raise Invalid("This file is empty. Nothing was imported.", code="file_empty")
    file.seek(0)
    if extension in JSON_EXTENSIONS or first.lstrip().startswith("{"):
        return json_upload(file)
    delimiter = delimiter_of(first, extension)
    return csv_upload(file, delimiter, "tsv" if delimiter == "\t" else "csv")


def check_size(file: BinaryIO, max_mb: int) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size > max_mb * 2**20:
        raise TooLarge(
            f"This file has {size / 2**20:.0f} MB, and {max_mb} MB is the most. Nothing was imported. "
            "Split it, or raise EASEL_MAX_UPLOAD_MB.",
            code="file_too_large",
        )


def refuse_workbook(file: BinaryIO) -> None:
    start = file.read(len(ZIP))
    file.seek(0)
    if start == ZIP:
        raise Invalid(
            "This is an Excel workbook. In Excel, save it as CSV UTF-8 and upload that. Nothing was imported.",
            code="excel_workbook",
        )


def delimiter_of(header: str, extension: str) -> str:
    """Of tab, comma and semicolon the one that is most frequent in the header; the extension decides a tie."""
    candidates = "\t,;" if extension in TAB_EXTENSIONS else ",\t;"
    return max(candidates, key=header.count)


def decoded(file: BinaryIO) -> Iterator[str]:
    """The lines of a UTF-8 file with their ends, without the mark that Excel puts at the start."""
    for number, raw in enumerate(lines_of(file), start=1):
        try:
            line = (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).decode()
        except UnicodeDecodeError:
            refuse("not_utf8", number, "this is not UTF-8 text. Save the file as UTF-8 and try again.")
        if "\0" in line:
            refuse("nul_byte", number, "there is a NUL character, so this is not a text file in UTF-8.")
        yield line


def lines_of(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file, many read at once.

    A thread that often waits for its file, and only for a moment, keeps Python's lock from all others: whoever asks for
    the lock begins to wait anew whenever it is given back.
    """
    while lines := file.readlines(READ_AT_ONCE):
        yield from lines


# CSV and TSV


def csv_upload(file: BinaryIO, delimiter: str, format_: str) -> Upload:
    rows = csv_rows(file, delimiter)
    line, header = next(rows)
    columns = tuple(name.strip() for name in header)
    check_columns(line, columns)
    return Upload(format_, columns, limited(csv_records(rows, columns)))


def csv_rows(file: BinaryIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not blank, each with the line it starts at: a quoted cell may go over several lines."""
    reader = csv.reader(decoded(file), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            refuse("csv_unreadable", line, in_words(problem))
        if cells:
            yield line, cells


def in_words(problem: csv.Error) -> str:
    said = str(problem)
    if "unexpected end of data" in said:
        return "a quotation mark opens in this row and is never closed."
    if "expected after" in said:
        return 'text follows a closing quotation mark. Inside a quoted cell write "" for each quotation mark.'
    if "field limit" in said:
        return f"a cell has more than {LONGEST_CELL:,} characters. Is a quotation mark not closed?"
    return f"this cannot be read ({said})."


def check_columns(line: int, columns: tuple[str, ...]) -> None:
    if len(columns) > MOST_COLUMNS:
        refuse("too_many_columns", line, f"there are {len(columns):,} columns, and {MOST_COLUMNS} is the most.")
    for place, name in enumerate(columns, start=1):
        if not name:
            refuse("column_unnamed", line, f"column {place} has no name. Name it, or remove it.")
        if name in columns[: place - 1]:
            twice = shortened(name)
            refuse("column_twice", line, f"two columns are named “{twice}”. Rename one.", column=twice)


def csv_records(rows: Iterable[tuple[int, list[str]]], columns: tuple[str, ...]) -> Iterator[UploadedRow]:
    for line, cells in rows:
        if len(cells) != len(columns):
            refuse(
                "ragged_row",
                line,
                f"this row has {len(cells)} cells, and the header has {len(columns)}.",
                cells=len(cells),
                columns=len(columns),
            )
        if max(map(len, cells)) > LONGEST_CELL:
            refuse("cell_too_long", line, f"a cell has more than {LONGEST_CELL:,} characters.")
        yield UploadedRow(line, dict(zip(columns, cells, strict=True)))


def limited(records: Iterator[UploadedRow]) -> Iterator[UploadedRow]:
    for count, record in enumerate(records, start=1):
        if count > MOST_ROWS:
            raise TooLarge(
                f"Line {record.line}: this file has more than {MOST_ROWS:,} rows. Nothing was imported.",
                code="too_many_rows",
                line=record.line,
            )
        yield record


# JSONL


def json_upload(file: BinaryIO) -> Upload:
    return json_lines_upload(enumerate(decoded(file), start=1))


def read_objects(objects: Iterable[tuple[int, Mapping[str, Any]]]) -> Upload:
    """A table whose rows stand in a file of another kind, each with its line there; one at least.

    Raises what `read` raises of JSONL, while the rows are read.
    """
    return json_lines_upload((line, json.dumps(values, ensure_ascii=False)) for line, values in objects)


def json_lines_upload(lines: Iterable[tuple[int, str]]) -> Upload:
    records = json_records(lines)
    first = next(records)
    return Upload("jsonl", tuple(first.values), limited(chain([first], records)))


def json_records(lines: Iterable[tuple[int, str]]) -> Iterator[UploadedRow]:
    for number, line in lines:
        if line.strip():
            values = json_object(number, line)
            check_columns(number, tuple(values))
            yield UploadedRow(number, values)


def json_object(number: int, line: str) -> dict[str, Any]:
    """The object on one line. Twice the same name, NaN, and what PostgreSQL cannot keep as text are refused."""
    try:
        value = json.loads(line, object_pairs_hook=without_doubles, parse_constant=no_such_number)
        check_levels(value)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError) as problem:
        reason = problem.msg if isinstance(problem, json.JSONDecodeError) else str(problem)
        refuse("json_unreadable", number, f"this is not one JSON object ({reason}).")
    if not isinstance(value, dict):
        refuse("json_unreadable", number, "this is not a JSON object. Put one object on each line.")
    for text in strings(value):
        if "\0" in text:
            refuse("nul_byte", number, "there is a NUL character in a value.")
        if len(text) > LONGEST_CELL:
            refuse("cell_too_long", number, f"a value has more than {LONGEST_CELL:,} characters.")
    return value


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise ValueError("a name stands there twice")
    return values


def check_levels(value: Any, left: int = MOST_LEVELS) -> None:
    if isinstance(value, dict | list):
        if left == 0:
            raise ValueError(f"more than {MOST_LEVELS} lists and objects within each other")
        for inner in value.values() if isinstance(value, dict) else value:
            check_levels(inner, left - 1)


def no_such_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def strings(value: Any) -> Iterator[str]:
    """All texts in a JSON value, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def as_number(value: Any) -> float | None:
    """A value that is a finite number, in JSON or in words; None for all others."""
    try:
        number = float(as_text(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def as_text(value: Any) -> str:
    """A value as a cell of a table: text as it is, nothing for null, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
