"""Columns of a table: found by their names, and what columns with a meaning of their own are used for.

No column is used for something without telling the uploader. `check`, `source` and others are used unless the uploader
declines them; columns of priors, which every export of Easel has, are used only if the uploader asks for them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from unicodedata import normalize

from app.designs.content import Content, SourceAndReference
from app.errors import (
    Invalid,
    join_names,
    pluralize,
    shorten_echo,
    shortened_names_that_message_shows,
)
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE_LAWS
from app.text.spreadsheets import unprotect_spreadsheet_cell
from app.uploads import UploadedRow, UploadedTable
from app.uploads.rows import ROW_NUMBERS_AS_IDS

CHECK_COLUMNS = ("check", "expected", "tolerance", "check_set")
CHECK_COLUMN_PREFIXES = ("expected ", "tolerance ")  # before the name of a criterion
SYSTEM_COLUMNS = ("system", "segment", "output")
ITEM_EXPORT_MARKER_COLUMNS = frozenset(
    ("id", "shown", "low_95", "high_95", "judgments")
)  # columns of an export of items
PRIORS_MEANING, CHECKS_MEANING, SYSTEMS_MEANING = (
    "priors",
    "check",
    "system",
)  # names of meanings, as forms and requests send them


@dataclass(frozen=True)
class ColumnMapping:
    """The use of the columns of a table.

    Attributes:
        identifier: The column of ids; None if items are named by their numbers, from 1 on.
        shown: The column that annotators see.
        template: Words around columns instead, as `item_text.build_text_maker_of_template` takes them.
        priors: Whether columns with the names of the update law's parameters are each item's prior.
        ignored: Meanings that are declined: `check`, `system`, `source`, `reference`.
        check_kind: The kind of check of rows that name none, `gold` or `attention`; empty if they are items.
        systems: Columns that hold the outputs of a system each, by whose names the systems go; `identifier` then names
            the segments. Empty for tables of items, and for tables with a row for each output.

    """

    identifier: str | None = "id"
    shown: str | None = None
    template: str | None = None
    priors: bool = False
    ignored: frozenset[str] = frozenset()
    check_kind: str = ""
    systems: tuple[str, ...] = ()


DEFAULT_COLUMN_MAPPING = ColumnMapping()


class ColumnMeaning(NamedTuple):
    """A meaning of columns, in addition to being kept.

    Attributes:
        name: Its name when it is declined or asked for; empty if the campaign's settings decide.
        description: What they are used for; continues a sentence that begins with the names.
        is_used: Whether they are used for that now.

    """

    name: str
    columns: tuple[str, ...]
    description: str
    is_used: bool

    @property
    def column_use_sentence(self) -> str:
        """Return the sentence about these columns in the receipt of an import."""
        names = join_names_with_and(self.columns)
        if self.is_used:
            return f"{names}: {self.description}."
        if self.name == PRIORS_MEANING:
            return f"{names} could be {self.description}, but were not used. {HOW_TO_USE_PRIORS}"
        return f"{names}: not used as {self.description}, as you chose."


HOW_TO_USE_PRIORS = (
    "To use these priors, import the items again and turn them on (a checkbox on the page, --priors on the command "
    "line, priors=true in the API)."
)


def join_names_with_and(names: Sequence[str]) -> str:
    quoted = [f"“{shorten_echo(name)}”" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def id_column_or_none(chosen_column: str) -> str | None:
    """Return the chosen column of ids; None for row numbers."""
    return None if chosen_column == ROW_NUMBERS_AS_IDS else chosen_column


def normalize_column_name_for_comparison(name: str) -> str:
    return normalize("NFC", name).strip().casefold()


def find_column_ignoring_case_or_none(columns: Iterable[str], name: str) -> str | None:
    """Return the column of this name, or the only one that differs from it in capitals alone."""
    names = list(columns)
    if name in names:
        return name
    similar_columns = [
        column
        for column in names
        if normalize_column_name_for_comparison(column) == normalize_column_name_for_comparison(name)
    ]
    return similar_columns[0] if len(similar_columns) == 1 else None


def column_ignoring_case_or_refuse(columns: Sequence[str], name: str) -> str:
    """Return the column that `find_column_ignoring_case_or_none` finds.

    Raises `Invalid` (`column_unknown`) if there is none.
    """
    matching_column = find_column_ignoring_case_or_none(columns, name)
    if matching_column is None:
        similar_columns = [
            column
            for column in columns
            if normalize_column_name_for_comparison(column) == normalize_column_name_for_comparison(name)
        ]
        several = (
            f" Several columns differ from it only in capital letters: {join_names(similar_columns)}."
            if similar_columns
            else ""
        )
        raise Invalid(
            f"There is no column “{shorten_echo(name)}”.{several} The columns are: {join_names(columns)}. Nothing was "
            "imported.",
            code="column_unknown",
            column=shorten_echo(name),
            columns=shortened_names_that_message_shows(columns),
        )
    return matching_column


def id_column_or_none_or_refuse(columns: Sequence[str], name: str | None) -> str | None:
    """Return the column of ids. Raises `Invalid` (`column_unknown`), which lists other columns that can name items."""
    if name is None:
        return None
    try:
        return column_ignoring_case_or_refuse(columns, name)
    except Invalid as problem:
        message = (
            f"{problem.message} Choose the column of ids, or number the rows (on the command line "
            f"--id '{ROW_NUMBERS_AS_IDS}', in the API identifier={ROW_NUMBERS_AS_IDS})."
        )
        raise Invalid(message, code=problem.code, **problem.details) from None


def rename_columns_differing_in_case(upload: UploadedTable, known_names: Iterable[str]) -> UploadedTable:
    """Rename columns that differ from a known name only in capital letters, and add a note for each."""
    column_by_known_name = {
        name: find_column_ignoring_case_or_none(upload.columns, name)
        for name in known_names
        if name not in upload.columns
    }
    known_name_by_column = {column: name for name, column in column_by_known_name.items() if column is not None}
    if not known_name_by_column:
        return upload
    notes = [
        f"The column “{shorten_echo(column)}” is used as “{name}”." for column, name in known_name_by_column.items()
    ]
    columns = tuple(known_name_by_column.get(column, column) for column in upload.columns)
    rows = iterate_rows_with_renamed_columns(upload.rows, known_name_by_column)
    return replace(upload, columns=columns, rows=rows, notes=(*upload.notes, *notes))


def iterate_rows_with_renamed_columns(rows: Iterable[UploadedRow], new_names: dict[str, str]) -> Iterator[UploadedRow]:
    for row in rows:
        yield row._replace(values={new_names.get(name, name): value for name, value in row.values.items()})


def table_without_columns(upload: UploadedTable, names: Collection[str]) -> UploadedTable:
    if not set(names) & set(upload.columns):
        return upload
    rows = (
        row._replace(values={name: value for name, value in row.values.items() if name not in names})
        for row in upload.rows
    )
    return replace(upload, columns=tuple(name for name in upload.columns if name not in names), rows=rows)


def is_outputs_table(columns: Collection[str], mapping: ColumnMapping) -> bool:
    """Return whether a table holds outputs of systems: a table of items has an `id`."""
    if mapping.systems:
        return True
    folded_names = {normalize_column_name_for_comparison(name) for name in columns}
    has_output_columns = set(SYSTEM_COLUMNS) <= folded_names and "id" not in folded_names
    return (
        has_output_columns and mapping.identifier == ColumnMapping.identifier and SYSTEMS_MEANING not in mapping.ignored
    )


def table_without_apostrophes_if_item_export(upload: UploadedTable) -> UploadedTable:
    """Return a table; for exports to spreadsheet programs, without the apostrophes that keep ids such as 001."""
    if not set(upload.columns) >= ITEM_EXPORT_MARKER_COLUMNS:
        return upload
    rows = (
        UploadedRow(
            record.line, {name: cell_without_spreadsheet_protection(value) for name, value in record.values.items()}
        )
        for record in upload.rows
    )
    return replace(upload, rows=rows)


def cell_without_spreadsheet_protection(value: object) -> object:
    return unprotect_spreadsheet_cell(value) if isinstance(value, str) else value


def table_with_standard_column_names(
    upload: UploadedTable, content: Content, law: Law, mapping: ColumnMapping
) -> UploadedTable:
    """Rename known columns to Easel's names, and restore an Easel export to the table that was uploaded."""
    upload = table_without_apostrophes_if_item_export(upload)
    if is_outputs_table(upload.columns, mapping):
        renamed_upload = rename_columns_differing_in_case(
            upload, (*SYSTEM_COLUMNS, *SourceAndReference._fields, *CHECK_COLUMNS)
        )
        ignored_columns = mapping.ignored & {*SourceAndReference._fields}
        if CHECKS_MEANING in mapping.ignored:
            ignored_columns |= {*names_of_check_columns(renamed_upload.columns)}
        return table_without_columns(renamed_upload, ignored_columns)
    known_names = [] if CHECKS_MEANING in mapping.ignored else [*CHECK_COLUMNS]
    known_names += [name for name in content.context_columns if name]
    return rename_columns_differing_in_case(
        upload, [*known_names, *(law.family.parameter_names if mapping.priors else ())]
    )


def prior_column_names_or_none_refusing_other_laws(columns: Collection[str], law: Law) -> tuple[str, ...] | None:
    """Return the columns of each item's prior. Raises `Invalid` (`prior_of_another_law`, `priors_missing`)."""
    parameter_names = law.family.parameter_names
    if set(parameter_names) <= set(columns):
        return parameter_names
    for names in {other.family.parameter_names for other in ONLINE_LAWS.values()}:
        if set(names) <= set(columns):
            raise Invalid(
                f"This file has priors as {' and '.join(names)}, but the update law {law.name} takes "
                f"{' and '.join(parameter_names)}. Import without them, or choose another law. Nothing was imported.",
                code="prior_of_another_law",
                columns=list(names),
            )
    raise Invalid(
        f"There are no columns {' and '.join(parameter_names)}, which hold each item’s prior. The columns are: "
        f"{join_names([*columns])}. Nothing was imported.",
        code="priors_missing",
    )


def possible_meanings_of_item_columns(
    columns: Sequence[str], content: Content, law: Law, mapping: ColumnMapping, check_count: int
) -> list[ColumnMeaning]:
    """Return the meanings that columns of a table of items have, or could have; `check_count` rows have a check."""
    meanings = []
    parameter_names = law.family.parameter_names
    if set(parameter_names) <= set(columns):
        description = "the prior of each item"
        meanings.append(ColumnMeaning(PRIORS_MEANING, parameter_names, description, mapping.priors))
    if CHECKS_MEANING in columns:
        meanings.append(meaning_of_check_columns(columns, mapping.ignored, check_count))
    for kind, column in zip(SourceAndReference._fields, (content.source, content.reference), strict=True):
        if column and column in columns:
            meanings.append(
                ColumnMeaning("", (column,), f"the {kind} above the items, as the settings say", is_used=True)
            )
    return meanings


def names_of_check_columns(columns: Collection[str]) -> tuple[str, ...]:
    """Return the columns that say which rows are checks, and what is expected of them."""
    by_criterion = [name for name in columns if name.startswith(CHECK_COLUMN_PREFIXES)]
    return tuple(name for name in (*CHECK_COLUMNS, *by_criterion) if name in columns)


def meaning_of_check_columns(
    columns: Collection[str], ignored_meanings: Collection[str], check_count: int
) -> ColumnMeaning:
    names = names_of_check_columns(columns) or (CHECKS_MEANING,)
    description = f"gold or attention items and their expected answers ({pluralize(check_count, 'row')})"
    return ColumnMeaning(CHECKS_MEANING, names, description, CHECKS_MEANING not in ignored_meanings)


def possible_meanings_of_output_columns(
    columns: Sequence[str], mapping: ColumnMapping, check_count: int
) -> list[ColumnMeaning]:
    """Return the meanings that columns of a table of systems' outputs have, or could have; `check_count` rows have a
    check.
    """
    description = "outputs of systems for segments; each system gets a score"
    meanings = [] if mapping.systems else [ColumnMeaning(SYSTEMS_MEANING, SYSTEM_COLUMNS, description, is_used=True)]
    meanings += [
        ColumnMeaning(kind, (kind,), f"the {kind} of the segment, above its outputs", kind not in mapping.ignored)
        for kind in SourceAndReference._fields
        if kind in columns or kind in mapping.ignored
    ]
    if CHECKS_MEANING in columns or CHECKS_MEANING in mapping.ignored:
        meanings.append(meaning_of_check_columns(columns, mapping.ignored, check_count))
    return meanings
