"""Rows in JSON: an object on each line, a list of objects, or an object with one list of objects.

A file is read twice, since any row may add a column: the first pass checks all of it, the second reads the rows.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from unicodedata import normalize

from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows
from app.uploads.json_values import (
    STRICT_JSON_DECODER,
    JsonValueReader,
    json_type_with_article,
    reason_json_is_unreadable,
    row_from_object_or_refuse,
)
from app.uploads.rows import (
    MAX_UPLOAD_COLUMNS,
    UploadedRow,
    UploadedTable,
    raise_upload_refusal_at_line,
    refuse_impossible_column_names,
)

JSON_LINES_EXTENSIONS = (".jsonl", ".ndjson")
JSON_EXTENSIONS = (*JSON_LINES_EXTENSIONS, ".json")
TASK_DATA_FIELD = "data"  # holds the texts of a task of Label Studio
LABEL_STUDIO_TASK_FIELDS = {
    *("id", "inner_id", "project", "data", "meta", "file_upload", "overlap", "state", "is_labeled", "target_storage"),
    *("annotations", "predictions", "completions", "drafts", "reviews", "annotators", "reviewers", "comment_authors"),
    *("created_at", "updated_at", "updated_by", "last_comment_updated_at", "allow_skip", "precomputed_agreement"),
    *("total_annotations", "cancelled_annotations", "total_predictions", "comment_count", "unresolved_comment_count"),
}

ChunkReader = Callable[[], Iterator[str]]
NumberedValueReader = Callable[[], Iterator[tuple[int, Any]]]


class JsonRowSource(NamedTuple):
    """The place of the rows in a file.

    Attributes:
        read_values: Yields the rows, each with its line.
        note: A sentence if the place is not obvious.

    """

    read_values: NumberedValueReader
    note: str | None = None


@dataclass
class JsonColumns:
    """The columns of all rows, in the order of their first occurrence."""

    names: dict[str, None] = field(default_factory=dict)
    row_count: int = 0
    task_count: int = 0

    def add_row(self, line_number: int, values: Mapping[str, Any]) -> None:
        """Add the columns of a row. Raises `Invalid` (`too_many_columns`, `column_unnamed`, `column_twice`)."""
        self.row_count += 1
        if values.keys() <= self.names.keys():
            return
        refuse_impossible_column_names(line_number, tuple(values))
        self.names.update(dict.fromkeys(values))
        if len(self.names) > MAX_UPLOAD_COLUMNS:
            message = f"with this row, the file has more than the maximum of {MAX_UPLOAD_COLUMNS} columns."
            raise_upload_refusal_at_line("too_many_columns", line_number, message)


def read_json_table(read_chunks: ChunkReader, read_lines: ChunkReader, extension: str) -> UploadedTable:
    """Return the table in a JSON file.

    Raises `Invalid`: `json_unreadable`, `json_no_rows`, `json_several_lists`, `nul_byte`, `cell_too_long`,
    `row_too_long`, `column_unnamed`, `column_twice`, `too_many_columns`.
    """
    row_source = find_row_source_of_json(read_chunks, read_lines, extension)
    return table_from_row_source(row_source, count_lines_of_chunks(read_chunks))


def count_lines_of_chunks(read_chunks: ChunkReader) -> int:
    line_feeds, carriage_returns, last_character = 0, 0, ""
    for chunk in read_chunks():
        line_feeds, carriage_returns, last_character = (
            line_feeds + chunk.count("\n"),
            carriage_returns + chunk.count("\r"),
            chunk[-1],
        )
    return (line_feeds or carriage_returns) + (last_character not in "\r\n")


def table_from_objects(numbered_objects: Iterable[tuple[int, Mapping[str, Any]]]) -> UploadedTable:
    """Return a table of rows, at least one, from a file of another kind, each with its line there.

    Raises what `read_json_table` raises.
    """
    rows = [(line, dict(values)) for line, values in numbered_objects]
    return table_from_row_source(JsonRowSource(lambda: iter(rows)), 0)


def table_from_row_source(row_source: JsonRowSource, line_count: int) -> UploadedTable:
    columns = JsonColumns()
    for record in iterate_rows_and_add_columns(row_source.read_values, columns):
        columns.add_row(record.line, row_from_object_or_refuse(record.line, record.values))
    notes = [row_source.note] if row_source.note else []
    if columns.task_count:
        notes.append("The values in “data” of each task were read as columns.")
    return UploadedTable(
        "jsonl",
        tuple(columns.names),
        iterate_rows_and_add_columns(row_source.read_values, JsonColumns()),
        row_count=columns.row_count,
        line_count=line_count,
        notes=tuple(notes),
    )


def iterate_rows_and_add_columns(read_values: NumberedValueReader, columns: JsonColumns) -> Iterator[UploadedRow]:
    """Yield the rows, and add their columns. Raises `Invalid` (`json_unreadable`)."""
    for line, value in read_values():
        if not isinstance(value, dict):
            row_from_object_or_refuse(line, value)
        row = row_with_task_data_as_columns(value)
        columns.task_count += row is not value
        yield UploadedRow(line, row)


def row_with_task_data_as_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Return a row; for a task in Label Studio's format, with the values of its `data` as columns."""
    data_values = values.get(TASK_DATA_FIELD)
    row = values
    if isinstance(data_values, dict) and values.keys() <= LABEL_STUDIO_TASK_FIELDS:
        task_values = {name: value for name, value in values.items() if name != TASK_DATA_FIELD}
        id_column = {"id": task_values["id"]} if "id" in task_values else {}
        row = (
            id_column
            | {
                f"{TASK_DATA_FIELD}.{name}" if name in task_values else name: value
                for name, value in data_values.items()
            }
            | task_values
        )
    if not all(name.isascii() for name in row):
        normalised_row = {normalize("NFC", name.strip()): value for name, value in row.items()}
        return normalised_row if len(normalised_row) == len(row) and [*normalised_row] != [*row] else row
    return row


# Finding the rows


def find_row_source_of_json(read_chunks: ChunkReader, read_lines: ChunkReader, extension: str) -> JsonRowSource:
    json_reader = JsonValueReader(read_chunks())
    if json_reader.skip_white_space_and_peek() == "[":
        return JsonRowSource(lambda: iterate_numbered_json_list_elements(read_chunks))
    if is_json_lines(read_lines, extension):
        return JsonRowSource(lambda: iterate_numbered_json_line_values(read_lines))
    return find_row_source_in_object_or_refuse(read_chunks)


def is_json_lines(read_lines: ChunkReader, extension: str) -> bool:
    """Return whether the first line holds a whole object."""
    filled_lines = (line for line in read_lines() if line.strip())
    try:
        first_line = next(filled_lines, "")
    except Invalid:  # the whole file is one long line
        return False
    try:
        STRICT_JSON_DECODER.decode(first_line)
    except json.JSONDecodeError as problem:
        return problem.pos < len(first_line.rstrip()) and extension in JSON_LINES_EXTENSIONS
    except (ValueError, RecursionError):
        return True
    return extension in JSON_LINES_EXTENSIONS or next(filled_lines, None) is not None


def iterate_numbered_json_line_values(read_lines: ChunkReader) -> Iterator[tuple[int, Any]]:
    """Yield the value on each line. Raises `Invalid` (`json_unreadable`)."""
    for line_number, line in enumerate(read_lines(), start=1):
        if line.strip():
            try:
                yield line_number, STRICT_JSON_DECODER.decode(line)
            except (ValueError, RecursionError) as problem:
                raise_upload_refusal_at_line("json_unreadable", line_number, reason_json_is_unreadable(problem))


def iterate_numbered_json_list_elements(read_chunks: ChunkReader) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a text that is a list. Raises `Invalid` (`json_unreadable`, `row_too_long`)."""
    json_reader = JsonValueReader(read_chunks())
    yield from iterate_numbered_elements_of_next_list(json_reader)
    if json_reader.skip_white_space_and_peek():
        raise_upload_refusal_at_line("json_unreadable", json_reader.line, "something follows the end of the list.")


def iterate_numbered_elements_of_next_list(json_reader: JsonValueReader) -> Iterator[tuple[int, Any]]:
    """Yield the elements of the next value, a list."""
    json_reader.skip_required_character_or_refuse("[", "what is before it")
    if json_reader.skip_character_if_next("]"):
        return
    while True:
        json_reader.skip_white_space_and_peek()
        yield json_reader.line, json_reader.read_value()
        if json_reader.skip_character_if_next("]"):
            return
        json_reader.skip_required_character_or_refuse(",", "a row of the list")


def iterate_numbered_concatenated_objects(read_chunks: ChunkReader) -> Iterator[tuple[int, Any]]:
    """Yield objects that follow each other, each on any number of lines."""
    json_reader = JsonValueReader(read_chunks())
    while json_reader.skip_white_space_and_peek():
        yield json_reader.line, json_reader.read_value()


def find_row_source_in_object_or_refuse(read_chunks: ChunkReader) -> JsonRowSource:
    """Find the list of rows in an object.

    Raises `Invalid` (`json_unreadable`, `json_no_rows`, `json_several_lists`).
    """
    json_reader = JsonValueReader(read_chunks())
    type_by_name = dict[str, str]()
    for name in iterate_names_of_next_object(json_reader):
        type_by_name[name] = skip_value_and_return_kind_with_article(json_reader)
    if json_reader.skip_white_space_and_peek():
        return JsonRowSource(lambda: iterate_numbered_concatenated_objects(read_chunks))
    list_names = [name for name, kind in type_by_name.items() if kind == "a list of objects"]
    if len(list_names) > 1:
        raise Invalid(
            f"This object has several lists of objects: {join_names(list_names)}. Save the one that holds the rows by "
            "itself. Nothing was imported.",
            code="json_several_lists",
            lists=shortened_names_that_message_shows(list_names),
        )
    if list_names:
        return JsonRowSource(
            lambda: iterate_numbered_elements_of_named_list(read_chunks, list_names[0]),
            f"The rows are the list “{shorten_echo(list_names[0])}”.",
        )
    if type_by_name and set(type_by_name.values()) <= {"an object", "a list"}:
        raise_object_without_rows_refusal(list(type_by_name))
    return JsonRowSource(lambda: iterate_numbered_concatenated_objects(read_chunks))


def raise_object_without_rows_refusal(names: list[str]) -> NoReturn:
    raise Invalid(
        f"This is one object with {join_names(names)} and without a list of rows. Save a list of objects, one for "
        "each row "
        '(in pandas to_json(…, orient="records")). Nothing was imported.',
        code="json_no_rows",
    )


def iterate_names_of_next_object(json_reader: JsonValueReader) -> Iterator[str]:
    """Yield the names in the next object; the caller reads the value of each before it takes the next name."""
    json_reader.skip_required_character_or_refuse("{", "what is before it")
    if json_reader.skip_character_if_next("}"):
        return
    while True:
        json_reader.skip_white_space_and_peek()
        name = json_reader.read_value()
        if not isinstance(name, str):
            raise_upload_refusal_at_line(
                "json_unreadable", json_reader.line, f"there is {json_type_with_article(name)} where a name should be."
            )
        json_reader.skip_required_character_or_refuse(":", "a name")
        yield name
        if json_reader.skip_character_if_next("}"):
            return
        json_reader.skip_required_character_or_refuse(",", "a value")


def skip_value_and_return_kind_with_article(json_reader: JsonValueReader) -> str:
    """Skip the next value, and return its kind."""
    if json_reader.skip_white_space_and_peek() != "[" or not json_reader.is_followed_by("[{"):
        value = json_reader.read_value()
        return "an object" if isinstance(value, dict) else json_type_with_article(value)
    objects = [isinstance(value, dict) for _, value in iterate_numbered_elements_of_next_list(json_reader)]
    return "a list of objects" if objects and objects[0] else "a list"


def iterate_numbered_elements_of_named_list(read_chunks: ChunkReader, list_name: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a list in a text that is an object."""
    json_reader = JsonValueReader(read_chunks())
    for name in iterate_names_of_next_object(json_reader):
        if name == list_name:
            yield from iterate_numbered_elements_of_next_list(json_reader)
            return
        skip_value_and_return_kind_with_article(json_reader)
