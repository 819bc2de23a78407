"""Rows in JSON: an object on each line, a list of objects, or an object with one list of objects.

A file is read twice, since any row may bring a column: first all of it is checked, then its rows are read.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn
from unicodedata import normalize

from app.errors import Invalid, listed, shortened, some_of
from app.upload.json_values import DECODER, JsonText, check_object, in_words, named_kind
from app.upload.rows import MOST_COLUMNS, Upload, UploadedRow, check_columns, limited, refuse

LINE_EXTENSIONS = (".jsonl", ".ndjson")
JSON_EXTENSIONS = (*LINE_EXTENSIONS, ".json")
TASK = "data"  # of Label Studio: its texts
PARTS_OF_TASKS = {
    *("id", "inner_id", "project", "data", "meta", "file_upload", "overlap", "state", "is_labeled", "target_storage"),
    *("annotations", "predictions", "completions", "drafts", "reviews", "annotators", "reviewers", "comment_authors"),
    *("created_at", "updated_at", "updated_by", "last_comment_updated_at", "allow_skip", "precomputed_agreement"),
    *("total_annotations", "cancelled_annotations", "total_predictions", "comment_count", "unresolved_comment_count"),
}

Chunks = Callable[[], Iterator[str]]
Values = Callable[[], Iterator[tuple[int, Any]]]


class Place(NamedTuple):
    """Where the rows of a file are.

    Attributes:
        values: The rows, each with its line.
        note: A sentence, where it is not plain.

    """

    values: Values
    note: str | None = None


@dataclass
class Columns:
    """The columns of all rows, in the order in which they first come."""

    places: dict[str, None] = field(default_factory=dict)
    rows: int = 0
    tasks: int = 0

    def note(self, line: int, values: Mapping[str, Any]) -> None:
        """Raises `Invalid` (`too_many_columns`, `column_unnamed`, `column_twice`)."""
        self.rows += 1
        if values.keys() <= self.places.keys():
            return
        check_columns(line, tuple(values))
        self.places.update(dict.fromkeys(values))
        if len(self.places) > MOST_COLUMNS:
            words = f"with this row there are more than {MOST_COLUMNS} columns, which is the most."
            refuse("too_many_columns", line, words)


def json_upload(chunks: Chunks, lines: Chunks, extension: str) -> Upload:
    """Raises `Invalid`: `json_unreadable`, `json_no_rows`, `json_several_lists`, `nul_byte`, `cell_too_long`,
    `row_too_long`, `column_unnamed`, `column_twice`, `too_many_columns`; `TooLarge`: `too_many_rows`.
    """
    place = place_of_rows(chunks, lines, extension)
    return upload_of(place, line_count(chunks))


def line_count(chunks: Chunks) -> int:
    feeds, returns, last = 0, 0, ""
    for chunk in chunks():
        feeds, returns, last = feeds + chunk.count("\n"), returns + chunk.count("\r"), chunk[-1]
    return (feeds or returns) + (last not in "\r\n")


def read_objects(objects: Iterable[tuple[int, Mapping[str, Any]]]) -> Upload:
    """A table whose rows are in a file of another kind, each with its line there; one at least. Raises what
    `json_upload` raises.
    """
    rows = [(line, dict(values)) for line, values in objects]
    return upload_of(Place(lambda: iter(rows)), 0)


def upload_of(place: Place, lines: int) -> Upload:
    columns = Columns()
    for record in limited(flat_rows(place.values, columns)):
        columns.note(record.line, check_object(record.line, record.values))
    notes = [place.note] if place.note else []
    if columns.tasks:
        notes.append("The values in “data” of each task were read as columns.")
    return Upload(
        "jsonl",
        tuple(columns.places),
        flat_rows(place.values, Columns()),
        row_count=columns.rows,
        line_count=lines,
        notes=tuple(notes),
    )


def flat_rows(values: Values, columns: Columns) -> Iterator[UploadedRow]:
    """Raises `Invalid` (`json_unreadable`)."""
    for line, value in values():
        if not isinstance(value, dict):
            check_object(line, value)
        row = flattened(value)
        columns.tasks += row is not value
        yield UploadedRow(line, row)


def flattened(values: dict[str, Any]) -> dict[str, Any]:
    """A row; of a task as Label Studio keeps it, with the values of its `data` as columns."""
    inner = values.get(TASK)
    row = values
    if isinstance(inner, dict) and values.keys() <= PARTS_OF_TASKS:
        own = {name: value for name, value in values.items() if name != TASK}
        first = {"id": own["id"]} if "id" in own else {}
        row = first | {f"{TASK}.{name}" if name in own else name: value for name, value in inner.items()} | own
    if not all(name.isascii() for name in row):
        composed = {normalize("NFC", name.strip()): value for name, value in row.items()}
        return composed if len(composed) == len(row) and [*composed] != [*row] else row
    return row


# Where the rows are


def place_of_rows(chunks: Chunks, lines: Chunks, extension: str) -> Place:
    text = JsonText(chunks())
    if text.peek() == "[":
        return Place(lambda: elements_of(chunks))
    if are_lines(lines, extension):
        return Place(lambda: objects_on_lines(lines))
    return place_in_document(chunks)


def are_lines(lines: Chunks, extension: str) -> bool:
    """Whether there is an object on each line, by the first one."""
    filled = (line for line in lines() if line.strip())
    try:
        first = next(filled, "")
    except Invalid:  # all of the file is one long line
        return False
    try:
        DECODER.decode(first)
    except json.JSONDecodeError as problem:
        return problem.pos < len(first.rstrip()) and extension in LINE_EXTENSIONS
    except (ValueError, RecursionError):
        return True
    return extension in LINE_EXTENSIONS or next(filled, None) is not None


def objects_on_lines(lines: Chunks) -> Iterator[tuple[int, Any]]:
    """Raises `Invalid` (`json_unreadable`)."""
    for number, line in enumerate(lines(), start=1):
        if line.strip():
            try:
                yield number, DECODER.decode(line)
            except (ValueError, RecursionError) as problem:
                refuse("json_unreadable", number, in_words(problem))


def elements_of(chunks: Chunks) -> Iterator[tuple[int, Any]]:
    """The elements of the list that a text is. Raises `Invalid` (`json_unreadable`, `row_too_long`)."""
    text = JsonText(chunks())
    yield from elements(text)
    if text.peek():
        refuse("json_unreadable", text.line, "something follows the end of the list.")


def elements(text: JsonText) -> Iterator[tuple[int, Any]]:
    """The elements of the list that comes next."""
    text.expect("[", "what is before it")
    if text.take("]"):
        return
    while True:
        text.peek()
        yield text.line, text.value()
        if text.take("]"):
            return
        text.expect(",", "a row of the list")


def objects_in_turn(chunks: Chunks) -> Iterator[tuple[int, Any]]:
    """Objects that follow each other, over as many lines as they like."""
    text = JsonText(chunks())
    while text.peek():
        yield text.line, text.value()


def place_in_document(chunks: Chunks) -> Place:
    """Raises `Invalid` (`json_unreadable`, `json_no_rows`, `json_several_lists`)."""
    text = JsonText(chunks())
    kinds = dict[str, str]()
    for name in members(text):
        kinds[name] = kind_of_next(text)
    if text.peek():
        return Place(lambda: objects_in_turn(chunks))
    lists = [name for name, kind in kinds.items() if kind == "a list of objects"]
    if len(lists) > 1:
        raise Invalid(
            f"This object has several lists of objects: {listed(lists)}. Save the one that holds the rows by itself. "
            "Nothing was imported.",
            code="json_several_lists",
            lists=some_of(lists),
        )
    if lists:
        return Place(lambda: elements_in(chunks, lists[0]), f"The rows are the list “{shortened(lists[0])}”.")
    if kinds and set(kinds.values()) <= {"an object", "a list"}:
        refuse_no_rows(list(kinds))
    return Place(lambda: objects_in_turn(chunks))


def refuse_no_rows(names: list[str]) -> NoReturn:
    raise Invalid(
        f"This is one object with {listed(names)} and without a list of rows. Save a list of objects, one for each row "
        '(in pandas to_json(…, orient="records")). Nothing was imported.',
        code="json_no_rows",
    )


def members(text: JsonText) -> Iterator[str]:
    """The names in the object that comes next; its user reads the value of each before the next one."""
    text.expect("{", "what is before it")
    if text.take("}"):
        return
    while True:
        text.peek()
        name = text.value()
        if not isinstance(name, str):
            refuse("json_unreadable", text.line, f"{named_kind(name)} is where a name should be.")
        text.expect(":", "a name")
        yield name
        if text.take("}"):
            return
        text.expect(",", "a value")


def kind_of_next(text: JsonText) -> str:
    """Go over the next value, and say what it is."""
    if text.peek() != "[" or not text.begins("[{"):
        value = text.value()
        return "an object" if isinstance(value, dict) else named_kind(value)
    objects = [isinstance(value, dict) for _, value in elements(text)]
    return "a list of objects" if objects and objects[0] else "a list"


def elements_in(chunks: Chunks, chosen: str) -> Iterator[tuple[int, Any]]:
    """The elements of a list in the object that a text is."""
    text = JsonText(chunks())
    for name in members(text):
        if name == chosen:
            yield from elements(text)
            return
        kind_of_next(text)
