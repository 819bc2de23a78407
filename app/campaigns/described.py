"""What is in a file of items before anything is stored: its first rows, its columns matched, and what is wrong.

The rows are read as an import reads them, so what is said here is what an import would say.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar

from app.campaigns import outputs
from app.campaigns.checks_import import NewCheck, check_of, is_check
from app.campaigns.items import ItemReader, Matching, NewItem, no_items
from app.campaigns.named_media import NamedMedia
from app.campaigns.template import guess
from app.designs.content import Content
from app.designs.design import Design
from app.errors import Invalid
from app.inference.online.law import Law
from app.upload import Upload, UploadedRow, as_number, as_text, read

PREVIEW_ROWS = 5
LINES_NAMED = 10
ROW_NUMBERS = ":row numbers:"  # where a column is chosen
USUAL_IDS = ("id", "item_id", "itemid", "key", "identifier")
WHAT_IS_WRONG = {
    "id_missing": "without an id",
    "id_too_long": "with an id that is too long",
    "id_twice": "with an id of a row above",
    "id_taken": "with an id that the campaign has already",
    "shown_empty": "with nothing to show to annotators",
    "shown_too_long": "with too long a text",
    "check_unknown": "with something else than gold or attention in the column “check”",
    "expected_missing": "of checks that do not say in the column “expected” what is expected",
    "expected_unreadable": "of checks whose expected answer or tolerance cannot be read",
    "expected_impossible": "of checks that expect what nobody can answer",
    "prior_invalid": "with a prior that is not possible",
    "media_link_refused": "with a file that lies on another server",
    "system_missing": "without a system",
    "segment_missing": "without a segment",
    "output_empty": "without an output",
    "output_twice": "with an output of a row above, for the same segment",
    "source_differs": "with another source or reference than a row above",
}

T = TypeVar("T")


@dataclass
class WrongRows:
    """Rows of which the same is wrong: what, how many, and the lines of the first ones."""

    what: str
    count: int = 0
    lines: list[int] = field(default_factory=list)

    def note(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < LINES_NAMED:
            self.lines.append(line)


@dataclass(frozen=True)
class FirstRow:
    """One of the first rows, and what annotators would see of it; empty where something is wrong with it."""

    line: int
    values: Mapping[str, Any]
    text: str


@dataclass(frozen=True)
class Description:
    """What is in a file, as its columns are matched; how many rows are checks; of a table of systems' outputs, how many
    systems and segments.
    """

    format: str
    columns: tuple[str, ...]
    matching: Matching
    row_count: int
    first_rows: list[FirstRow]
    problems: list[WrongRows]
    checks: int = 0
    of_systems: bool = False
    systems: int = 0
    segments: int = 0


@dataclass(frozen=True)
class ChosenColumns:
    """What somebody said of the columns, None where they said nothing; `identifier` can be `ROW_NUMBERS`."""

    identifier: str | None = None
    shown: str | None = None
    template: str | None = None


def describe(
    file: BinaryIO,
    name: str,
    chosen: ChosenColumns,
    law: Law,
    *,
    content: Content,
    design: Design,
    taken: Collection[str] = (),
    max_mb: int,
) -> Description:
    """Read a whole file without importing it. Raises what `upload.read` and `ItemReader` raise, and `file_empty`."""
    upload = read(file, name, max_mb=max_mb)
    first = list(islice(upload.records, PREVIEW_ROWS))
    if not first:
        raise no_items()
    if outputs.are_in(upload.columns) and chosen.identifier is None:
        return described_outputs(upload, first, content)
    matching = matched(upload.columns, first, chosen)
    reader = ItemReader(upload.columns, matching, law, NamedMedia(content), taken)
    problems: dict[str, WrongRows] = {}
    shown: list[FirstRow] = []
    checks = 0
    for record in chain(first, upload.records):
        checks += is_check(record)
        found = read_or_note(partial(item_or_check, reader, design), record, problems)
        if len(shown) < len(first):
            shown.append(FirstRow(record.line, record.values, found.shown if found else ""))
    reader.shown.check_found()
    return Description(upload.format, upload.columns, matching, reader.rows, shown, list(problems.values()), checks)


def item_or_check(reader: ItemReader, design: Design, record: UploadedRow) -> NewItem | NewCheck:
    return check_of(record, *reader.check(record), design) if is_check(record) else reader.item(record)


def described_outputs(upload: Upload, first: Sequence[UploadedRow], content: Content) -> Description:
    """Of a table of systems' outputs, whose columns say what they are."""
    found, problems, count = outputs.Outputs(NamedMedia(content)), dict[str, WrongRows](), 0
    for record in chain(first, upload.records):
        count += 1
        read_or_note(found.add, record, problems)
    shown = [FirstRow(record.line, record.values, "") for record in first]
    told = upload.format, upload.columns, Matching(None), count, shown, list(problems.values())
    return Description(*told, of_systems=True, systems=len(found.systems), segments=len(found.segments))


def read_or_note(read_row: Callable[[UploadedRow], T], record: UploadedRow, problems: dict[str, WrongRows]) -> T | None:
    try:
        return read_row(record)
    except Invalid as refusal:
        what = WHAT_IS_WRONG.get(refusal.code, refusal.message)
        problems.setdefault(refusal.code, WrongRows(what)).note(record.line)
        return None


def matched(columns: Sequence[str], first: Sequence[UploadedRow], chosen: ChosenColumns) -> Matching:
    """As somebody said, and for the rest as is likely."""
    by_name = {name.casefold(): name for name in reversed(columns)}
    identifier = next((by_name[name] for name in USUAL_IDS if name in by_name), None)
    if chosen.identifier:
        identifier = column_of_ids(chosen.identifier)
    if chosen.template:
        return Matching(identifier, template=chosen.template)
    return Matching(identifier, chosen.shown or proposed(columns, first, identifier))


def column_of_ids(chosen: str) -> str | None:
    """The column that somebody chose; None for row numbers."""
    return None if chosen == ROW_NUMBERS else chosen


def proposed(columns: Sequence[str], first: Sequence[UploadedRow], identifier: str | None) -> str:
    """The column to show that is plain, else the first of words that is not the id, else the first besides the id."""
    others = [name for name in columns if name != identifier] or [*columns]
    of_words = (name for name in others if any(has_words(record.values.get(name)) for record in first))
    return guess(others) or next(of_words, others[0])


def has_words(value: Any) -> bool:
    """Whether a cell holds something else than a number."""
    return bool(as_text(value).strip()) and as_number(value) is None
