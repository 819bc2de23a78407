"""Files that items name: they must be there, be what the items take them for, and all that come must be named."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.content import Cells, Content, NamedFile
from app.errors import Conflict, listed, plural, shortened
from app.media import archive, store
from app.media.file_names import folded_path
from app.media.signatures import suits
from app.upload import LONGEST_SHOWN, UploadedRow, as_text, refuse

ROWS_AT_ONCE = 5_000
CELLS = text("""
    SELECT number, shown, fields ->> CAST(:source AS text) AS source, fields ->> CAST(:reference AS text) AS reference
    FROM items WHERE campaign_id = :campaign ORDER BY number
""")
AS = {"image": "an image", "audio": "a recording", "video": "a video"}


class Trouble(NamedTuple):
    """Why an item cannot show what it names."""

    code: str
    words: str


@dataclass
class NamedMedia:
    """The files that new items of a campaign name, each with the line where it is named first.

    respelled: the names that are spelled in another way in the zip, each with its path there.
    """

    content: Content
    lines: dict[NamedFile, int] = field(default_factory=dict)
    respelled: dict[str, str] = field(default_factory=dict)

    def note(self, record: UploadedRow, shown: str) -> None:
        """Note the files of an item. Raises `Invalid`: `shown_empty`, `shown_too_long`, `media_link_refused`."""
        if not self.content.plain:
            self.note_cells(record.line, Cells(shown, *self.beside(record)))

    def note_cells(self, line: int, cells: Cells) -> None:
        """Note the files that cells name, in whichever line. Raises the same."""
        if trouble := too_long(cells):
            refuse(trouble.code, line, trouble.words)
        if self.content.looks_empty(cells.shown):
            refuse("shown_empty", line, "there is nothing to show to annotators.")
        for file in self.content.files(cells):
            if trouble := trouble_with_link(self.content, file):
                refuse(trouble.code, line, trouble.words, file=shortened(file.name))
            if not file.is_link:
                self.lines.setdefault(file, line)

    def beside(self, record: UploadedRow) -> Iterator[str | None]:
        """The cells of source and reference."""
        for name in (self.content.source, self.content.reference):
            yield as_text(record.values.get(name)) if name else None

    async def keep(self, connection: AsyncConnection, campaign_id: int, packed: archive.Packed | None) -> None:
        """Store what a zip brings, if there is one. Raises what `archive.pieces` raises, and `Invalid`:
        `media_missing`, `media_wrong_kind`.
        """
        known = await store.known_files(connection, campaign_id)
        types = known.types
        if packed is not None:
            names = {file.name for file in self.lines}
            found = archive.pieces(packed, names, known.types, known.size, self.respelled)
            types = types | await store.keep(connection, campaign_id, found, known.next_number)
        missing = {file: line for file, line in self.lines.items() if file.name not in types}
        if len(missing) > 1:
            lacking = [file.name for file in missing]
            words = f"there are no files {archive.quoted(lacking)} in the zip, nor among those of the campaign."
            told = {"file": shortened(lacking[0]), "missing": [*map(shortened, lacking)]}
            refuse("media_missing", next(iter(missing.values())), words, **told)
        for file, line in self.lines.items():
            if trouble := trouble_with(file, types):
                refuse(trouble.code, line, trouble.words, file=shortened(file.name))


class FileReport(NamedTuple):
    """Sentences about the files that rows name: those for which an import would be refused, and others."""

    problems: list[str]
    notes: list[str]


def report_files(wanted: Collection[str], packed: archive.Packed | None, taken: Collection[str]) -> FileReport:
    """Return what an import would say of the files that rows name, with the zip that is sent or without one.

    Args:
        wanted: The names in the rows.
        packed: The zip; its list of files, at its end, is enough.
        taken: Names of the files that the campaign has.

    Raises:
        Invalid, TooLarge: What `archive.compare_names` raises.

    """
    if packed is None:
        missing = [name for name in wanted if name not in taken]
        are = "is not here yet" if len(missing) == 1 else "are not here yet"
        problem = f"{plural(len(missing), 'file')} that rows name {are}: {listed(missing)}. Choose a zip with them."
        return FileReport([problem] if missing else [], [])
    missing, unnamed = archive.compare_names(packed, wanted, taken)
    problems = [f"The zip lacks {plural(len(missing), 'file')} that rows name: {listed(missing)}."] if missing else []
    if unnamed and packed.skip_unnamed:
        are = "names is" if len(unnamed) == 1 else "names are"
        return FileReport(problems, [f"{plural(len(unnamed), 'file')} that no row {are} left out: {listed(unnamed)}."])
    surplus = f"It has {plural(len(unnamed), 'file')} that no row names: {listed(unnamed)}."
    return FileReport([*problems, *([surplus] if unnamed else [])], [])


def too_long(cells: Cells) -> Trouble | None:
    """Of what stands beside an item, if it would take annotators long to read, and the server to draw."""
    if max(len(cell or "") for cell in cells) <= LONGEST_SHOWN:
        return None
    return Trouble("shown_too_long", f"the source or the reference has more than {LONGEST_SHOWN:,} characters.")


def trouble_with_link(content: Content, file: NamedFile) -> Trouble | None:
    """Of a file that lies elsewhere, if items may not show that."""
    if not file.is_link or (content.links and file.name.startswith("https://")):
        return None
    name = shortened(file.name)
    if content.links:
        return Trouble("media_link_refused", f"“{name}” is no https:// address.")
    words = f"“{name}” lies on another server. Put it into the zip, or allow links to media in the settings."
    return Trouble("media_link_refused", words)


def trouble_with(file: NamedFile, types: Mapping[str, str]) -> Trouble | None:
    """Of a file that lies here; types: the content types of those that are there."""
    name = shortened(file.name)
    if file.name not in types:
        last = folded_path(file.name).rpartition("/")[2]
        near = [other for other in types if folded_path(other).rpartition("/")[2] == last]
        hint = f" There is {listed(near)}." if near else ""
        return Trouble("media_missing", f"there is no file “{name}” in the zip, nor among those of the campaign.{hint}")
    type_ = types[file.name]
    if not suits(file.kind, type_):
        return Trouble("media_wrong_kind", f"the file “{name}” is {type_}, and is to be shown as {AS[file.kind]}.")
    return None


async def check(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """At the launch: all items can be shown as the settings say, which were perhaps changed after they came.

    Raises `Conflict`: `column_unknown`, `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`.
    """
    content = Content.of(campaign)
    if content.plain:
        return
    known = await store.known_files(connection, campaign.id)
    asked = {"campaign": campaign.id, "source": content.source, "reference": content.reference}
    filled: set[str] = set()
    async for rows in (await connection.stream(CELLS, asked)).partitions(ROWS_AT_ONCE):
        await asyncio.to_thread(check_rows, content, known.types, rows)
        filled |= {name for name in ("source", "reference") if any(getattr(row, name) for row in rows)}
    for name, column in (("source", content.source), ("reference", content.reference)):
        if column and name not in filled:
            raise Conflict(
                f"No item has anything in the column “{shortened(column)}”, which is to be the {name}. Change the "
                "settings, or import the items again.",
                code="column_unknown",
                column=shortened(column),
            )


def check_rows(content: Content, types: Mapping[str, str], rows: Sequence[Row[Any]]) -> None:
    for row in rows:
        for trouble in troubles(content, types, Cells(row.shown, row.source, row.reference)):
            words = f"Item number {row.number + 1}: {trouble.words} Change the settings, or import the items again."
            raise Conflict(words, code=trouble.code, item=row.number)


def troubles(content: Content, types: Mapping[str, str], cells: Cells) -> Iterator[Trouble]:
    """All that is wrong with an item."""
    if trouble := too_long(cells):
        yield trouble
        return
    for file in content.files(cells):
        if trouble := trouble_with_link(content, file) or (None if file.is_link else trouble_with(file, types)):
            yield trouble
