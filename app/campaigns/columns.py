"""Columns of a table: found by their names, and what those with a meaning of their own are taken for.

No column is taken for something without a word. `check`, `source` and others are taken unless an uploader declines
them; columns of priors, which every export of Easel has, are taken only if an uploader asks for them.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from unicodedata import normalize

from app.designs.content import Above, Content
from app.errors import Invalid, listed, plural, shortened, some_of
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE
from app.spreadsheets import unprotect
from app.upload import Upload, UploadedRow

ROW_NUMBERS = ":row numbers:"  # in the place of a column of ids
CHECK_COLUMNS = ("check", "expected", "tolerance")
SYSTEM_COLUMNS = ("system", "segment", "output")
EXPORTED_COLUMNS = frozenset(("id", "shown", "low_95", "high_95", "judgments"))  # an export of items has these
PRIORS, CHECKS, SYSTEMS = "priors", "check", "system"  # meanings, as they are declined or asked for


@dataclass(frozen=True)
class Matching:
    """The use of the columns of a table.

    Attributes:
        identifier: The column of ids; None where items are called by their numbers, from 1 on.
        shown: The column that annotators see.
        template: Words around columns instead, as `template.shown_by` takes them.
        priors: Whether columns with the names of the update law's parameters are each item's prior.
        ignored: Meanings that are declined: `check`, `system`, `source`, `reference`.

    """

    identifier: str | None = "id"
    shown: str | None = None
    template: str | None = None
    priors: bool = False
    ignored: frozenset[str] = frozenset()


class Meaning(NamedTuple):
    """A meaning of columns besides being kept.

    Attributes:
        name: As it is declined or asked for; empty where the settings of the campaign decide.
        columns: Their names.
        words: What they are taken for, as it goes on after the names.
        taken: Whether they are taken for that now.

    """

    name: str
    columns: tuple[str, ...]
    words: str
    taken: bool

    @property
    def sentence(self) -> str:
        """Sentence about these columns in the receipt of an import."""
        names = listed_with_and(self.columns)
        if self.taken:
            return f"{names}: {self.words}."
        if self.name == PRIORS:
            return f"{names} could be {self.words}, and were not taken for that. {HOW_TO_TAKE_PRIORS}"
        return f"{names}: not taken for {self.words}, as you said."


HOW_TO_TAKE_PRIORS = (
    "To begin with these priors, import the items again and say so (a tick on the page, --priors on the command line, "
    "priors=true in the API)."
)


def listed_with_and(names: Sequence[str]) -> str:
    quoted = [f"“{shortened(name)}”" for name in names]
    return " and ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)


def column_of_ids(chosen: str) -> str | None:
    """Return the column that was chosen; None for row numbers."""
    return None if chosen == ROW_NUMBERS else chosen


def fold_name(name: str) -> str:
    return normalize("NFC", name).strip().casefold()


def column_called(columns: Iterable[str], name: str) -> str | None:
    """Return the column of this name, or the only one that differs from it in capitals alone."""
    names = list(columns)
    if name in names:
        return name
    alike = [column for column in names if fold_name(column) == fold_name(name)]
    return alike[0] if len(alike) == 1 else None


def known_column(columns: Sequence[str], name: str) -> str:
    """Return what `column_called` does. Raises `Invalid` (`column_unknown`) if there is none."""
    found = column_called(columns, name)
    if found is None:
        alike = [column for column in columns if fold_name(column) == fold_name(name)]
        several = f" Several differ from it in capitals alone: {listed(alike)}." if alike else ""
        raise Invalid(
            f"There is no column “{shortened(name)}”.{several} The columns are: {listed(columns)}. Nothing was "
            "imported.",
            code="column_unknown",
            column=shortened(name),
            columns=some_of(columns),
        )
    return found


def identifier_in(columns: Sequence[str], name: str | None) -> str | None:
    """Return the column of ids. Raises `Invalid` (`column_unknown`), with what else can name items."""
    if name is None:
        return None
    try:
        return known_column(columns, name)
    except Invalid as problem:
        words = (
            f"{problem.message} Choose the column of ids, or let the rows be numbered (on the command line "
            f"--id '{ROW_NUMBERS}', in the API identifier={ROW_NUMBERS})."
        )
        raise Invalid(words, code=problem.code, **problem.details) from None


def with_usual_names(upload: Upload, names: Iterable[str]) -> Upload:
    """A table in which columns that differ from these names in capitals alone have these names, which is noted."""
    found = {name: column_called(upload.columns, name) for name in names if name not in upload.columns}
    renamed = {column: name for name, column in found.items() if column is not None}
    if not renamed:
        return upload
    notes = [f"The column “{shortened(column)}” is taken for “{name}”." for column, name in renamed.items()]
    columns = tuple(renamed.get(column, column) for column in upload.columns)
    records = renamed_rows(upload.records, renamed)
    return replace(upload, columns=columns, records=records, notes=(*upload.notes, *notes))


def renamed_rows(records: Iterable[UploadedRow], renamed: dict[str, str]) -> Iterator[UploadedRow]:
    for row in records:
        yield row._replace(values={renamed.get(name, name): value for name, value in row.values.items()})


def without_columns(upload: Upload, names: Collection[str]) -> Upload:
    """Return a table without some of its columns."""
    if not set(names) & set(upload.columns):
        return upload
    rows = (
        row._replace(values={name: value for name, value in row.values.items() if name not in names})
        for row in upload.records
    )
    return replace(upload, columns=tuple(name for name in upload.columns if name not in names), records=rows)


def has_systems(columns: Collection[str], matching: Matching) -> bool:
    """Whether a table is one of systems' outputs: a table of items has an `id`."""
    named = {fold_name(name) for name in columns}
    is_one = set(SYSTEM_COLUMNS) <= named and "id" not in named
    return is_one and matching.identifier == Matching.identifier and SYSTEMS not in matching.ignored


def as_uploaded(upload: Upload) -> Upload:
    """Return a table; an export of items for spreadsheet programs without the apostrophes that keep ids such as 001."""
    if not set(upload.columns) >= EXPORTED_COLUMNS:
        return upload
    records = (
        UploadedRow(record.line, {name: plain_value(value) for name, value in record.values.items()})
        for record in upload.records
    )
    return replace(upload, records=records)


def plain_value(value: object) -> object:
    return unprotect(value) if isinstance(value, str) else value


def prepare_upload(upload: Upload, content: Content, law: Law, matching: Matching) -> Upload:
    """Return a table whose columns with a meaning have the names that Easel looks for; an export as it was uploaded."""
    upload = as_uploaded(upload)
    if has_systems(upload.columns, matching):
        usual = with_usual_names(upload, (*SYSTEM_COLUMNS, *Above._fields))
        return without_columns(usual, matching.ignored & {*Above._fields})
    names = [] if CHECKS in matching.ignored else [*CHECK_COLUMNS]
    names += [name for name in content.columns if name]
    return with_usual_names(upload, [*names, *(law.family.parameter_names if matching.priors else ())])


def prior_columns_of(columns: Collection[str], law: Law) -> tuple[str, ...] | None:
    """Return the columns of each item's prior. Raises `Invalid` (`prior_of_another_law`, `priors_missing`)."""
    own = law.family.parameter_names
    if set(own) <= set(columns):
        return own
    for names in {other.family.parameter_names for other in ONLINE.values()}:
        if set(names) <= set(columns):
            raise Invalid(
                f"This file brings priors as {' and '.join(names)}, and the update law {law.name} takes "
                f"{' and '.join(own)}. Do not take them, or choose another law. Nothing was imported.",
                code="prior_of_another_law",
                columns=list(names),
            )
    raise Invalid(
        f"There are no columns {' and '.join(own)}, which hold each item’s prior. The columns are: "
        f"{listed([*columns])}. Nothing was imported.",
        code="priors_missing",
    )


def meanings_of_items(
    columns: Sequence[str], content: Content, law: Law, matching: Matching, checks: int
) -> list[Meaning]:
    """Return the meanings that columns of a table of items have, or could have. checks: number of rows with a check."""
    found = []
    own = law.family.parameter_names
    if set(own) <= set(columns):
        words = "the prior that each item begins with"
        found.append(Meaning(PRIORS, own, words, matching.priors))
    if CHECKS in columns:
        names = tuple(name for name in CHECK_COLUMNS if name in columns)
        words = f"gold or attention items, and what is expected of them ({plural(checks, 'row')})"
        found.append(Meaning(CHECKS, names, words, CHECKS not in matching.ignored))
    for kind, column in zip(Above._fields, (content.source, content.reference), strict=True):
        if column and column in columns:
            found.append(Meaning("", (column,), f"the {kind} above the items, as the settings say", taken=True))
    return found


def meanings_of_outputs(columns: Sequence[str], ignored: Collection[str]) -> list[Meaning]:
    """Return the meanings that columns of a table of systems' outputs have, or could have."""
    words = "outputs of systems for segments; each system gets a score"
    found = [Meaning(SYSTEMS, SYSTEM_COLUMNS, words, taken=True)]
    found += [
        Meaning(kind, (kind,), f"the {kind} of the segment, above its outputs", kind not in ignored)
        for kind in Above._fields
        if kind in columns or kind in ignored
    ]
    return found
