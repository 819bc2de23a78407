"""What is in a file of items before anything is stored: its first rows, its columns matched, and what is wrong.

The rows are read as an import reads them, so what is said here is what an import would say.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, TypeVar

from app.campaigns import outputs
from app.campaigns.checks_import import NewCheck, check_of, is_check
from app.campaigns.columns import (
    CHECKS,
    Matching,
    Meaning,
    column_called,
    column_of_ids,
    has_systems,
    meanings_of_items,
    meanings_of_outputs,
    prepare_upload,
)
from app.campaigns.items import ItemReader, NewItem, no_items
from app.campaigns.named_media import NamedMedia
from app.campaigns.template import guess
from app.designs.content import Content
from app.designs.design import Design
from app.errors import Invalid
from app.inference.online.law import Law
from app.upload import INDEX, UNICODE, ReadAs, Upload, UploadedRow, as_number, as_text, read

PREVIEW_ROWS = 5
LINES_NAMED = 10
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
    systems and segments. files: the names of those that rows name.
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
    line_count: int = 0
    notes: tuple[str, ...] = ()
    meanings: tuple[Meaning, ...] = ()
    read_as: ReadAs = UNICODE
    quotes: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChosenColumns:
    """Columns that an uploader chose, None where they chose none; `identifier` can be `ROW_NUMBERS`."""

    identifier: str | None = None
    shown: str | None = None
    template: str | None = None
    priors: bool = False
    ignored: frozenset[str] = frozenset()


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
    read_as: ReadAs = UNICODE,
) -> Description:
    """Read a whole file without importing it. Raises what `upload.read` and `ItemReader` raise, and `file_empty`."""
    said = Matching(
        Matching.identifier if chosen.identifier is None else column_of_ids(chosen.identifier),
        priors=chosen.priors,
        ignored=chosen.ignored,
    )
    upload = prepare_upload(read(file, name, max_mb=max_mb, read_as=read_as), content, law, said)
    first = list(islice(upload.records, PREVIEW_ROWS))
    if not first:
        raise no_items()
    rest = replace(upload, records=chain(first, upload.records))
    if has_systems(upload.columns, said):
        found = described_outputs(rest, len(first), content, said)
    else:
        matching = replace(matched(upload.columns, first, chosen), priors=said.priors, ignored=said.ignored)
        found = described_items(
            rest, len(first), ItemReader(upload.columns, matching, law, NamedMedia(content), taken), matching, design
        )
    return replace(found, line_count=upload.line_count, notes=upload.notes, read_as=read_as, quotes=upload.quotes)


def described_items(
    upload: Upload, previewed: int, reader: ItemReader, matching: Matching, design: Design
) -> Description:
    problems: dict[str, WrongRows] = {}
    shown: list[FirstRow] = []
    checks = 0
    takes_checks = CHECKS not in matching.ignored
    for record in upload.records:
        checks += is_check(record)
        read_row = partial(item_or_check, reader, design) if takes_checks else reader.item
        found = read_or_note(read_row, record, problems)
        if len(shown) < previewed:
            shown.append(FirstRow(record.line, record.values, found.shown if found else ""))
    reader.shown.check_found()
    meanings = meanings_of_items(upload.columns, reader.named.content, reader.law, matching, checks)
    told = upload.format, upload.columns, matching, reader.rows, shown, list(problems.values())
    files = files_named(reader.named)
    return Description(*told, checks=checks if takes_checks else 0, meanings=tuple(meanings), files=files)


def files_named(named: NamedMedia) -> tuple[str, ...]:
    return tuple(dict.fromkeys(file.name for file in named.lines))


def item_or_check(reader: ItemReader, design: Design, record: UploadedRow) -> NewItem | NewCheck:
    return check_of(record, *reader.check(record), design) if is_check(record) else reader.item(record)


def described_outputs(upload: Upload, previewed: int, content: Content, said: Matching) -> Description:
    """Of a table of systems' outputs, whose columns say what they are."""
    found, problems, count = outputs.Outputs(NamedMedia(content)), dict[str, WrongRows](), 0
    shown: list[FirstRow] = []
    for record in upload.records:
        count += 1
        read_or_note(found.add, record, problems)
        if len(shown) < previewed:
            shown.append(FirstRow(record.line, record.values, ""))
    told = upload.format, upload.columns, Matching(None), count, shown, list(problems.values())
    meanings = tuple(meanings_of_outputs(upload.columns, said.ignored))
    systems, segments = len(found.systems), len(found.segments)
    files = files_named(found.named)
    return Description(*told, of_systems=True, systems=systems, segments=segments, meanings=meanings, files=files)


def read_or_note(read_row: Callable[[UploadedRow], T], record: UploadedRow, problems: dict[str, WrongRows]) -> T | None:
    try:
        return read_row(record)
    except Invalid as refusal:
        what = WHAT_IS_WRONG.get(refusal.code, refusal.message)
        problems.setdefault(refusal.code, WrongRows(what)).note(record.line)
        return None


def matched(columns: Sequence[str], first: Sequence[UploadedRow], chosen: ChosenColumns) -> Matching:
    """Return the columns as an uploader chose them, and the likeliest for the rest."""
    usual = (column_called(columns, name) for name in USUAL_IDS)
    identifier = next((name for name in usual if name), None)
    if chosen.identifier:
        identifier = column_of_ids(chosen.identifier)
    if chosen.template:
        return Matching(identifier, template=chosen.template)
    return Matching(identifier, chosen.shown or proposed(columns, first, identifier))


def proposed(columns: Sequence[str], first: Sequence[UploadedRow], identifier: str | None) -> str:
    """The column to show that is plain, else the first of words that is not the id, else the first besides the id."""
    others = [name for name in columns if name not in (identifier, INDEX)] or [*columns]
    of_words = (name for name in others if any(has_words(record.values.get(name)) for record in first))
    return guess(others) or next(of_words, others[0])


def has_words(value: Any) -> bool:
    """Whether a cell holds something else than a number."""
    return bool(as_text(value).strip()) and as_number(value) is None
