"""Files that items name: each must exist and have the right type, and items must name every file of a zip."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.content import Content, ItemTexts, NamedFile
from app.errors import Conflict, join_names, pluralize, shorten_echo
from app.media import media_store
from app.media.content_types import can_show_as_kind
from app.media.match_file_names import casefolded_path
from app.media.media_zip import MediaZip, compare_names, join_quoted_names, unpack_media_pieces
from app.uploads import MAX_SHOWN_CHARACTERS, UploadedRow, format_cell, refuse_line

ITEMS_PER_MEDIA_CHECK = 5_000
STREAM_SHOWN_CELLS = text("""
    SELECT number, shown, fields ->> CAST(:source AS text) AS source, fields ->> CAST(:reference AS text) AS reference
    FROM items WHERE campaign_id = :campaign ORDER BY number
""")
PHRASE_BY_MEDIA_KIND = {"image": "an image", "audio": "a recording", "video": "a video"}


class MediaProblem(NamedTuple):
    """Reason why an item cannot show a file that it names."""

    code: str
    message: str


@dataclass
class NamedMedia:
    """The files that new items of a campaign name, each with the line that names it first.

    `zip_path_by_respelled_name`: names that are spelled differently in the zip, each with its path there.
    """

    content: Content
    first_line_by_file: dict[NamedFile, int] = field(default_factory=dict)
    zip_path_by_respelled_name: dict[str, str] = field(default_factory=dict)

    def add_files_of_row(self, row: UploadedRow, shown_text: str) -> None:
        """Collect the files of an item. Raises `Invalid`: `shown_empty`, `shown_too_long`, `media_link_refused`."""
        if not self.content.is_plain_text:
            self.add_files_of_cells(row.line, ItemTexts(shown_text, *self.source_and_reference(row)))

    def add_files_of_cells(self, line: int, cells: ItemTexts) -> None:
        """Collect the files that cells of a line name. Raises as `add_files_of_row` does."""
        if problem := problem_with_length(cells):
            refuse_line(problem.code, line, problem.message)
        if self.content.is_visually_empty(cells.shown):
            refuse_line("shown_empty", line, "there is nothing to show to annotators.")
        for file in self.content.named_files(cells):
            if problem := problem_with_link(self.content, file):
                refuse_line(problem.code, line, problem.message, file=shorten_echo(file.name))
            if not file.is_link:
                self.first_line_by_file.setdefault(file, line)

    def source_and_reference(self, row: UploadedRow) -> Iterator[str | None]:
        """Yield the cells of source and reference."""
        for name in (self.content.source, self.content.reference):
            yield format_cell(row.values.get(name)) if name else None

    async def store_media(self, connection: AsyncConnection, campaign_id: int, media_zip: MediaZip | None) -> None:
        """Store the files of a zip, if there is one.

        Raises what `unpack_media_pieces` raises, and `Invalid`: `media_missing`, `media_wrong_kind`.
        """
        stored_files = await media_store.load_campaign_files(connection, campaign_id)
        content_type_by_name = stored_files.content_type_by_name
        if media_zip is not None:
            names = {file.name for file in self.first_line_by_file}
            zip_pieces = unpack_media_pieces(
                media_zip,
                names,
                stored_files.content_type_by_name,
                stored_files.total_bytes,
                self.zip_path_by_respelled_name,
            )
            content_type_by_name = content_type_by_name | await media_store.store_media_files(
                connection, campaign_id, zip_pieces, stored_files.next_number
            )
        missing = {
            file: line for file, line in self.first_line_by_file.items() if file.name not in content_type_by_name
        }
        if len(missing) > 1:
            missing_names = [file.name for file in missing]
            message = (
                f"there are no files {join_quoted_names(missing_names)} in the zip, nor among those of the campaign."
            )
            details = {"file": shorten_echo(missing_names[0]), "missing": [*map(shorten_echo, missing_names)]}
            refuse_line("media_missing", next(iter(missing.values())), message, **details)
        for file, line in self.first_line_by_file.items():
            if problem := problem_with_stored_file(file, content_type_by_name):
                refuse_line(problem.code, line, problem.message, file=shorten_echo(file.name))


class FileReport(NamedTuple):
    """Sentences about the files that rows name: problems that an import refuses, and notes."""

    problems: list[str]
    notes: list[str]


def report_files(
    referenced_names: Collection[str], media_zip: MediaZip | None, existing_names: Collection[str]
) -> FileReport:
    """Return what an import would say of the files that rows name, with the zip that is sent or without one.

    Args:
        referenced_names: The names in the rows.
        media_zip: The zip; its list of files, at its end, is enough.
        existing_names: Names of the files that the campaign has.

    Raises:
        Invalid, TooLarge: What `compare_names` raises.

    """
    if media_zip is None:
        missing = [name for name in referenced_names if name not in existing_names]
        are = "is not here yet" if len(missing) == 1 else "are not here yet"
        problem = (
            f"{pluralize(len(missing), 'file')} that rows name {are}: {join_names(missing)}. Choose a zip with them."
        )
        return FileReport([problem] if missing else [], [])
    missing, unnamed = compare_names(media_zip, referenced_names, existing_names)
    problems = (
        [f"The zip lacks {pluralize(len(missing), 'file')} that rows name: {join_names(missing)}."] if missing else []
    )
    if unnamed and media_zip.skip_unnamed:
        are = "names is" if len(unnamed) == 1 else "names are"
        return FileReport(
            problems, [f"{pluralize(len(unnamed), 'file')} that no row {are} left out: {join_names(unnamed)}."]
        )
    surplus = f"It has {pluralize(len(unnamed), 'file')} that no row names: {join_names(unnamed)}."
    return FileReport([*problems, *([surplus] if unnamed else [])], [])


def problem_with_length(cells: ItemTexts) -> MediaProblem | None:
    """Return a problem if source or reference would take annotators long to read, and the server long to render."""
    if max(len(cell or "") for cell in cells) <= MAX_SHOWN_CHARACTERS:
        return None
    return MediaProblem(
        "shown_too_long", f"the source or the reference has more than {MAX_SHOWN_CHARACTERS:,} characters."
    )


def problem_with_link(content: Content, file: NamedFile) -> MediaProblem | None:
    """Return a problem if a file is on another server and items may not show such files."""
    if not file.is_link or (content.links and file.name.startswith("https://")):
        return None
    name = shorten_echo(file.name)
    if content.links:
        return MediaProblem("media_link_refused", f"“{name}” is no https:// address.")
    message = f"“{name}” is on another server. Put it into the zip, or allow links to media in the settings."
    return MediaProblem("media_link_refused", message)


def problem_with_stored_file(file: NamedFile, content_type_by_name: Mapping[str, str]) -> MediaProblem | None:
    """Return a problem if a file is missing or has the wrong type, by the content types of the stored files."""
    name = shorten_echo(file.name)
    if file.name not in content_type_by_name:
        base_name = casefolded_path(file.name).rpartition("/")[2]
        similar_names = [
            other for other in content_type_by_name if casefolded_path(other).rpartition("/")[2] == base_name
        ]
        hint = f" There is {join_names(similar_names)}." if similar_names else ""
        return MediaProblem(
            "media_missing", f"there is no file “{name}” in the zip, nor among those of the campaign.{hint}"
        )
    content_type = content_type_by_name[file.name]
    if not can_show_as_kind(file.kind, content_type):
        return MediaProblem(
            "media_wrong_kind",
            f"the file “{name}” is {content_type}, and is to be shown as {PHRASE_BY_MEDIA_KIND[file.kind]}.",
        )
    return None


async def check_media_of_items(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """Check at the launch that all items can be shown under the settings, which may have changed since the import.

    Raises `Conflict`: `column_unknown`, `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`.
    """
    content = Content.from_campaign(campaign)
    if content.is_plain_text:
        return
    stored_files = await media_store.load_campaign_files(connection, campaign.id)
    parameters = {"campaign": campaign.id, "source": content.source, "reference": content.reference}
    filled_columns: set[str] = set()
    async for rows in (await connection.stream(STREAM_SHOWN_CELLS, parameters)).partitions(ITEMS_PER_MEDIA_CHECK):
        await asyncio.to_thread(refuse_rows_with_media_problems, content, stored_files.content_type_by_name, rows)
        filled_columns |= {name for name in ("source", "reference") if any(getattr(row, name) for row in rows)}
    for name, column in (("source", content.source), ("reference", content.reference)):
        if column and name not in filled_columns:
            raise Conflict(
                f"No item has anything in the column “{shorten_echo(column)}”, which is to be the {name}. Change "
                "the settings, or import the items again.",
                code="column_unknown",
                column=shorten_echo(column),
            )


def refuse_rows_with_media_problems(
    content: Content, content_type_by_name: Mapping[str, str], rows: Sequence[Row[Any]]
) -> None:
    for row in rows:
        for problem in media_problems(content, content_type_by_name, ItemTexts(row.shown, row.source, row.reference)):
            message = f"Item number {row.number + 1}: {problem.message} Change the settings, or import the items again."
            raise Conflict(message, code=problem.code, item=row.number)


def media_problems(
    content: Content, content_type_by_name: Mapping[str, str], cells: ItemTexts
) -> Iterator[MediaProblem]:
    """Yield all problems of an item."""
    if problem := problem_with_length(cells):
        yield problem
        return
    for file in content.named_files(cells):
        if problem := problem_with_link(content, file) or (
            None if file.is_link else problem_with_stored_file(file, content_type_by_name)
        ):
            yield problem
