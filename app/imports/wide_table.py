"""Wide tables of systems: a row for each segment, and a column with the outputs of each system."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.designs.content import Content, SourceAndReference
from app.designs.field_flags import is_blank
from app.errors import Invalid, join_names, shorten_echo
from app.imports.columns import (
    SYSTEM_COLUMNS,
    ColumnMapping,
    column_ignoring_case_or_refuse,
    find_column_ignoring_case_or_none,
    normalize_column_name_for_comparison,
    table_with_standard_column_names,
)
from app.imports.item_text import COMMON_SHOWN_COLUMN_NAMES
from app.inference.online.law import Law
from app.uploads import UploadedRow, UploadedTable, format_cell

SEGMENT_COLUMN = "segment"
MIN_SYSTEM_COLUMNS = 3  # of a table that looks like one with a column for each system
MIN_CANDIDATES = 2
WIDE_TABLE_NOTE = (
    "This table seems to have a column for each of several systems. To compare them, tick their columns under “These "
    "columns are systems”. Otherwise each row is an item."
)


@dataclass(frozen=True)
class WideColumns:
    """Use of the columns of a wide table.

    Attributes:
        systems: The columns of outputs, whose names are those of the systems.
        segment: The column that names the segments; None if they are named by the numbers of their rows.
        shared: The columns of sources and references, by `source` and `reference`.

    """

    systems: tuple[str, ...]
    segment: str | None
    shared: dict[str, str]

    def unused_columns(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that are left out."""
        used = {*self.systems, self.segment, *self.shared.values()}
        return [name for name in columns if name not in used]


@dataclass(frozen=True)
class SystemChoice:
    """Choice of the columns that are systems, as an uploader can make it.

    Attributes:
        columns: All columns of the file.
        candidates: The columns that may be systems.
        segment: The column that names the segments; None if they are numbered.
        is_likely: Whether the table looks like one with a column for each system.

    """

    columns: tuple[str, ...]
    candidates: tuple[str, ...]
    segment: str | None
    is_likely: bool


def wide_columns_or_refuse(columns: Sequence[str], mapping: ColumnMapping) -> WideColumns:
    """Return the use of the columns of a table in which the uploader named the systems.

    Raises `Invalid`: `column_unknown`, `system_column_used`.
    """
    systems = tuple(dict.fromkeys(column_ignoring_case_or_refuse(columns, name) for name in mapping.systems))
    segment = segment_column_or_none_or_refuse(columns, mapping.identifier)
    found = {
        kind: find_column_ignoring_case_or_none(columns, kind)
        for kind in SourceAndReference._fields
        if kind not in mapping.ignored
    }
    shared = {kind: column for kind, column in found.items() if column is not None}
    if twice := [name for name in systems if name == segment or name in shared.values()]:
        raise Invalid(
            f"{join_names(twice)} cannot be a system: the column has the segments, sources or references. Nothing was "
            "imported.",
            code="system_column_used",
            columns=[shorten_echo(name) for name in twice],
        )
    return WideColumns(systems, segment, shared)


def segment_column_or_none_or_refuse(columns: Sequence[str], identifier: str | None) -> str | None:
    """Return the column that names the segments: the chosen one, else `segment` or `id` if there is one.

    Raises `Invalid` (`column_unknown`) if the chosen column is missing.
    """
    if identifier is None:
        return None
    if identifier != ColumnMapping.identifier:
        return column_ignoring_case_or_refuse(columns, identifier)
    names = (SEGMENT_COLUMN, identifier)
    return next(filter(None, (find_column_ignoring_case_or_none(columns, name) for name in names)), None)


def outputs_table_of_wide_table(upload: UploadedTable, mapping: ColumnMapping) -> UploadedTable:
    """Return the table of outputs that a wide table holds: a row for each output, and a note on unused columns.

    Empty cells are no outputs. Raises what `wide_columns_or_refuse` raises.
    """
    wide = wide_columns_or_refuse(upload.columns, mapping)
    notes = [f"Each of these columns is a system: {join_names(list(wide.systems))}."]
    if unused := wide.unused_columns(upload.columns):
        notes.append(f"Left out: {join_names(unused)}.")
    return replace(
        upload,
        columns=(*SYSTEM_COLUMNS, *wide.shared),
        rows=iterate_output_rows(upload.rows, wide),
        notes=(*upload.notes, *notes),
    )


def standard_table_of_upload(
    upload: UploadedTable, content: Content, law: Law, mapping: ColumnMapping
) -> UploadedTable:
    """Return a table with Easel's names for known columns; a wide table becomes one with a row for each output."""
    if mapping.systems:
        return outputs_table_of_wide_table(upload, mapping)
    return table_with_standard_column_names(upload, content, law, mapping)


def possible_system_columns(columns: Sequence[str], segment: str | None) -> tuple[str, ...]:
    """Return the columns that may be systems: all but those of segments, sources and references."""
    others = {SEGMENT_COLUMN, ColumnMapping.identifier, *SourceAndReference._fields}
    return tuple(
        name for name in columns if name != segment and normalize_column_name_for_comparison(name) not in others
    )


def iterate_output_rows(rows: Iterator[UploadedRow], wide: WideColumns) -> Iterator[UploadedRow]:
    """Yield a row for each output; for a segment without a name or outputs, one row that an import refuses."""
    for number, row in enumerate(rows, start=1):
        segment = number if wide.segment is None else row.values.get(wide.segment)
        shared = {kind: row.values.get(column) for kind, column in wide.shared.items()}
        filled = [name for name in wide.systems if not is_blank(format_cell(row.values.get(name)))]
        systems = wide.systems[:1] if not filled or is_blank(format_cell(segment)) else filled
        for system in systems:
            values = {"system": system, "segment": segment, "output": row.values.get(system)}
            yield UploadedRow(row.line, values | shared)


def system_choice_or_none(columns: Sequence[str], mapping: ColumnMapping, *, is_likely: bool) -> SystemChoice | None:
    """Return the choice of systems among the columns of a file; None if there are too few."""
    chosen = mapping.identifier if mapping.systems else ColumnMapping.identifier
    segment = segment_column_or_none_or_refuse(columns, chosen)
    candidates = possible_system_columns(columns, segment)
    if len(candidates) < MIN_CANDIDATES:
        return None
    return SystemChoice(tuple(columns), candidates, segment, is_likely or bool(mapping.systems))


def notes_on_columns_of_systems(columns: Sequence[str]) -> tuple[str, ...]:
    """Return a note if a table of items seems to have a column for each of several systems."""
    names = {normalize_column_name_for_comparison(name) for name in columns}
    about_segments = names & {"segment", *SourceAndReference._fields}
    others = names - about_segments - {"id", "name"}
    has_text = names & set(COMMON_SHOWN_COLUMN_NAMES)
    return (WIDE_TABLE_NOTE,) if about_segments and len(others) >= MIN_SYSTEM_COLUMNS and not has_text else ()
