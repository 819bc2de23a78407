"""Cells of a row of a table of systems' outputs."""

from collections.abc import Collection

from app.designs.content import SourceAndReference
from app.designs.field_flags import is_blank
from app.errors import join_names, shorten_echo, shortened_names_that_message_shows
from app.imports.columns import SYSTEM_COLUMNS
from app.uploads import (
    MAX_ID_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    UploadedRow,
    format_cell,
    raise_upload_refusal_at_line,
)


def refuse_unknown_output_columns(columns: Collection[str], line: int, check_columns: Collection[str] = ()) -> None:
    """Raise `Invalid` (`column_unknown`) if a column is no column of outputs, nor of the checks among them."""
    known_columns = [*SYSTEM_COLUMNS, *SourceAndReference._fields]
    if unknown := [name for name in columns if name not in known_columns and name not in check_columns]:
        message = (
            f"a table of systems has the columns {join_names(known_columns)}, but this one has {join_names(unknown)} "
            "as well. Remove these columns, or give each row an id to import it as an item."
        )
        raise_upload_refusal_at_line(
            "column_unknown", line, message, columns=shortened_names_that_message_shows(unknown)
        )


def name_in_cell_or_refuse(row: UploadedRow, column: str) -> str:
    """Return the name of a system or segment. Raises `Invalid` (`system_missing`, `segment_missing`, `id_too_long`)."""
    name = format_cell(row.values.get(column)).strip()
    if is_blank(name):
        raise_upload_refusal_at_line(f"{column}_missing", row.line, f"the {column} is empty.")
    if len(name) > MAX_ID_CHARACTERS:
        raise_upload_refusal_at_line(
            "id_too_long", row.line, f"the {column} has more than {MAX_ID_CHARACTERS} characters."
        )
    return name


def output_text_or_refuse(row: UploadedRow) -> str:
    """Return the output. Raises `Invalid` (`output_empty`, `shown_too_long`)."""
    shown_text = text_of_cell_or_none(row, "output")
    if shown_text is None:
        raise_upload_refusal_at_line(
            "output_empty", row.line, "the output is empty, so there is nothing to show to annotators."
        )
    return shown_text


def source_and_reference_of_row(row: UploadedRow) -> SourceAndReference:
    """Return source and reference, None where they look empty. Raises `Invalid` (`shown_too_long`)."""
    return SourceAndReference(*(text_of_cell_or_none(row, column) for column in SourceAndReference._fields))


def text_of_cell_or_none(row: UploadedRow, column: str) -> str | None:
    """Return a cell unchanged; None if it looks empty. Raises `Invalid` (`shown_too_long`)."""
    cell_text = format_cell(row.values.get(column))
    if len(cell_text) > MAX_SHOWN_CHARACTERS:
        raise_upload_refusal_at_line(
            "shown_too_long", row.line, f"the {column} has more than {MAX_SHOWN_CHARACTERS:,} characters."
        )
    return None if is_blank(cell_text) else cell_text


def refuse_different_source_or_reference(
    line: int, segment_name: str, known_cells: SourceAndReference, new_cells: SourceAndReference
) -> None:
    """Raise `Invalid` (`source_differs`) for another text than the segment has; empty cells are ignored."""
    for column, before, now in zip(SourceAndReference._fields, known_cells, new_cells, strict=True):
        if now not in (None, before):
            message = f"the {column} of the segment “{shorten_echo(segment_name)}” differs from an earlier row."
            raise_upload_refusal_at_line("source_differs", line, message, column=column)
