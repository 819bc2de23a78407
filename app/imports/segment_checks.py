"""Gold and attention items among the outputs of systems: rows with `gold` or `attention` in the column `check`.

Such a check is one more output for a segment, and no system's. The column `system` names it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import Row

from app.designs.content import ItemTexts, SourceAndReference
from app.errors import Invalid, shorten_echo
from app.imports.checks_import import (
    CHECK_COLUMN,
    EXPLANATION_COLUMN,
    NewCheck,
    kind_of_check_in_row_or_default,
    parse_check_of_row,
    refuse_too_many_checks,
)
from app.imports.columns import CHECK_COLUMN_PREFIXES, CHECK_COLUMNS
from app.imports.named_media import NamedMedia
from app.imports.output_cells import (
    name_in_cell_or_refuse,
    output_text_or_refuse,
    refuse_different_source_or_reference,
    refuse_unknown_output_columns,
    source_and_reference_of_row,
)
from app.quality.check_expectations import EXPECTED_COLUMN, SET_COLUMN, CriterionDesigns, expectation_cells
from app.uploads import UploadedRow, format_cell, raise_upload_refusal_at_line


class NumberedSegment(NamedTuple):
    """A segment: its number, and the source and reference above its outputs (None if empty)."""

    number: int
    source_and_reference: SourceAndReference


class CheckRow(NamedTuple):
    """A check of a table, before its segment is found: that may be in a later row."""

    line: int
    segment_name: str
    source_and_reference: SourceAndReference
    check: NewCheck


@dataclass
class CollectedChecks:
    """The checks in a table of outputs.

    Attributes:
        designs: Names and designs of the campaign's criteria.
        default_kind: Kind of the rows that name none; empty if these are outputs of systems.
        line_by_id: Line of each check in the file, by its id; 0 for checks stored before.
        rows: The new checks.

    """

    designs: CriterionDesigns
    default_kind: str = ""
    line_by_id: dict[str, int] = field(default_factory=dict)
    rows: list[CheckRow] = field(default_factory=list)

    def kind_of_row_or_empty(self, row: UploadedRow) -> str:
        """Return the kind of check in a row; empty if it is a system's output.

        Raises `Invalid`: `column_unknown`, and `expected_without_check` for a system's output with an expected answer.
        """
        refuse_unknown_output_columns(row.values, row.line, self.column_names(row.values))
        kind = kind_of_check_in_row_or_default(row, self.default_kind)
        if not kind and any(
            format_cell(cell).strip() for name, cell in row.values.items() if name.startswith(EXPECTED_COLUMN)
        ):
            raise_upload_refusal_at_line(
                "expected_without_check",
                row.line,
                "an output of a system has no expected answer. Write gold or attention into the column “check”.",
            )
        return kind

    def column_names(self, columns: Collection[str]) -> list[str]:
        """Return the columns that describe checks: none if no row can be one."""
        if not (self.default_kind or CHECK_COLUMN in columns):
            return []
        own_columns = (*CHECK_COLUMNS, EXPLANATION_COLUMN)
        return [name for name in columns if name in own_columns or name.startswith(CHECK_COLUMN_PREFIXES)]

    def add_row(self, row: UploadedRow, kind: str, named_media: NamedMedia) -> None:
        """Add the check in a row.

        Raises `Invalid`: `system_missing`, `segment_missing`, `id_too_long`, `output_empty`, `shown_too_long`,
        `media_link_refused`, `output_twice`, and what `parse_check_of_row` and `refuse_too_many_checks` raise.
        """
        name, segment_name = (name_in_cell_or_refuse(row, column) for column in ("system", "segment"))
        shown_text, source_and_reference = output_text_or_refuse(row), source_and_reference_of_row(row)
        named_media.collect_media_names_of_cells_or_refuse(row.line, ItemTexts(shown_text))
        check_id = id_of_segment_check(name, segment_name)
        first_line = self.line_by_id.setdefault(check_id, row.line)
        if first_line != row.line:
            place_phrase = f"was already on line {first_line}" if first_line else "is already in the campaign"
            message = f"the check “{shorten_echo(check_id)}” {place_phrase}."
            raise_upload_refusal_at_line("output_twice", row.line, message, first_line=first_line or None)
        check = parse_check_of_row(row, kind, check_id, shown_text, self.designs)
        self.rows.append(CheckRow(row.line, segment_name, source_and_reference, check))
        refuse_too_many_checks(len(self.rows))

    def checks_with_segments_or_refuse(
        self, segment_by_id: Mapping[str, NumberedSegment], system_names: Collection[str]
    ) -> list[NewCheck]:
        """Return the new checks with the numbers of their segments, once all rows of the table are read.

        Raises `Invalid`: `segment_unknown`, `source_differs`, `id_taken`.
        """
        checks: list[NewCheck] = []
        for line, segment_name, source_and_reference, check in self.rows:
            segment = segment_by_id.get(segment_name)
            if segment is None:
                message = f"no system has an output for the segment “{shorten_echo(segment_name)}” of this check."
                raise_upload_refusal_at_line("segment_unknown", line, message)
            refuse_different_source_or_reference(line, segment_name, segment.source_and_reference, source_and_reference)
            if check.external_id in system_names:
                message = f"the campaign already has “{shorten_echo(check.external_id)}”."
                raise_upload_refusal_at_line("id_taken", line, message)
            checks.append(check._replace(segment=segment.number))
        return checks


def id_of_segment_check(name: str, segment_name: str) -> str:
    """Return the id of a check in a campaign of systems."""
    return f"{name} / {segment_name}"


def refuse_checks_without_segments(columns: Collection[str], default_kind: str) -> None:
    """Raise `Invalid` (`check_needs_segment`) if a table of items for a campaign of systems has checks."""
    if default_kind or CHECK_COLUMN in columns:
        raise Invalid(
            "This campaign compares systems, so each check belongs to a segment. Use a table with the columns system "
            "(a name of the check), segment, output, check and expected, without ids. Nothing was imported.",
            code="check_needs_segment",
        )


def table_row_of_segment_check(check: Row[Any]) -> dict[str, Any]:
    """Return the row of the table of outputs that describes a check, as `load_check_items` returns it."""
    names = ("system", SET_COLUMN, EXPLANATION_COLUMN)
    uploaded = {name: check.fields[name] for name in names if format_cell(check.fields.get(name)).strip()}
    check_cells = {CHECK_COLUMN: check.kind} | expectation_cells(check.expected)
    return {"system": uploaded["system"], "segment": check.segment, "output": check.shown} | uploaded | check_cells
