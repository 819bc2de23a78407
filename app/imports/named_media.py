"""Files that items name: each must exist and have the right type, and items must name every file of a zip."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.content import Content, ItemTexts, NamedFile
from app.errors import join_names, pluralize, shorten_echo
from app.media import media_store
from app.media.media_problems import (
    problem_with_external_file_or_none,
    problem_with_missing_or_wrong_file_or_none,
    problem_with_too_long_texts_or_none,
)
from app.media.media_zip import (
    MediaZip,
    iterate_unpacked_media_pieces_or_refuse,
    join_names_in_quotation_marks,
    missing_and_unreferenced_names_of_zip,
)
from app.uploads import UploadedRow, format_cell, raise_upload_refusal_at_line


@dataclass
class NamedMedia:
    """The files that new items of a campaign name, each with the line that names it first.

    `zip_path_by_respelled_name`: names that are spelled differently in the zip, each with its path there.
    """

    content: Content
    first_line_by_file: dict[NamedFile, int] = field(default_factory=dict)
    zip_path_by_respelled_name: dict[str, str] = field(default_factory=dict)

    def collect_media_names_of_row_or_refuse(self, row: UploadedRow, shown_text: str) -> None:
        """Collect the files of an item. Raises `Invalid`: `shown_empty`, `shown_too_long`, `media_link_refused`."""
        if not self.content.is_plain_text:
            self.collect_media_names_of_cells_or_refuse(
                row.line, ItemTexts(shown_text, *self.source_and_reference(row))
            )

    def collect_media_names_of_cells_or_refuse(self, line: int, cells: ItemTexts) -> None:
        """Collect the files that cells of a line name. Raises as `collect_media_names_of_row_or_refuse` does."""
        if problem := problem_with_too_long_texts_or_none(cells):
            raise_upload_refusal_at_line(problem.code, line, problem.message)
        if self.content.renders_to_nothing_visible(cells.shown):
            raise_upload_refusal_at_line("shown_empty", line, "there is nothing to show to annotators.")
        for file in self.content.find_media_files_in_cells(cells):
            if problem := problem_with_external_file_or_none(self.content, file):
                raise_upload_refusal_at_line(problem.code, line, problem.message, file=shorten_echo(file.name))
            if not file.is_link:
                self.first_line_by_file.setdefault(file, line)

    def source_and_reference(self, row: UploadedRow) -> Iterator[str | None]:
        for name in (self.content.source, self.content.reference):
            yield format_cell(row.values.get(name)) if name else None

    async def store_media_of_zip_or_refuse(
        self, connection: AsyncConnection, campaign_id: int, media_zip: MediaZip | None
    ) -> None:
        """Store the files of a zip, if there is one.

        Raises what `iterate_unpacked_media_pieces_or_refuse` raises, and `Invalid`: `media_missing`,
        `media_wrong_kind`.
        """
        stored_files = await media_store.load_file_types_total_size_and_next_number(connection, campaign_id)
        content_type_by_name = stored_files.content_type_by_name
        if media_zip is not None:
            names = {file.name for file in self.first_line_by_file}
            zip_pieces = iterate_unpacked_media_pieces_or_refuse(
                media_zip,
                names,
                stored_files.content_type_by_name,
                stored_files.total_bytes,
                self.zip_path_by_respelled_name,
            )
            content_type_by_name = content_type_by_name | await media_store.store_media_files_and_return_type_by_name(
                connection, campaign_id, zip_pieces, stored_files.next_number
            )
        missing = {
            file: line for file, line in self.first_line_by_file.items() if file.name not in content_type_by_name
        }
        if len(missing) > 1:
            missing_names = [file.name for file in missing]
            message = (
                f"there are no files {join_names_in_quotation_marks(missing_names)} in the zip or in the campaign."
            )
            details = {
                "file": shorten_echo(missing_names[0]),
                "missing": [*map(shorten_echo, missing_names)],
            }
            raise_upload_refusal_at_line("media_missing", next(iter(missing.values())), message, **details)
        for file, line in self.first_line_by_file.items():
            if problem := problem_with_missing_or_wrong_file_or_none(file, content_type_by_name):
                raise_upload_refusal_at_line(problem.code, line, problem.message, file=shorten_echo(file.name))


class FileReport(NamedTuple):
    """Sentences about the files that rows name: problems that an import refuses, and notes."""

    problems: list[str]
    notes: list[str]


def missing_and_unnamed_files_report(
    referenced_names: Collection[str], media_zip: MediaZip | None, existing_names: Collection[str]
) -> FileReport:
    """Report media files that rows name but the zip and the campaign lack, and files in the zip that no row names.

    Args:
        referenced_names: The names in the rows.
        media_zip: The zip; its list of files, at its end, is enough.
        existing_names: Names of the files that the campaign has.

    Raises:
        Invalid, TooLarge: What `missing_and_unreferenced_names_of_zip` raises.

    """
    if media_zip is None:
        missing = [name for name in referenced_names if name not in existing_names]
        are = "has not been uploaded yet" if len(missing) == 1 else "have not been uploaded yet"
        problem = (
            f"{pluralize(len(missing), 'file')} that rows name {are}: {join_names(missing)}. Choose a zip with them."
        )
        return FileReport([problem] if missing else [], [])
    missing, unnamed = missing_and_unreferenced_names_of_zip(media_zip, referenced_names, existing_names)
    problems = (
        [f"The zip lacks {pluralize(len(missing), 'file')} that rows name: {join_names(missing)}."] if missing else []
    )
    if unnamed and media_zip.skip_unnamed:
        are = "names is" if len(unnamed) == 1 else "names are"
        return FileReport(
            problems,
            [f"{pluralize(len(unnamed), 'file')} that no row {are} left out: {join_names(unnamed)}."],
        )
    surplus = f"It has {pluralize(len(unnamed), 'file')} that no row names: {join_names(unnamed)}."
    return FileReport([*problems, *([surplus] if unnamed else [])], [])
