"""Options of an import of answers, shared by the page, the API and the command line."""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, StringConstraints, ValidationError

from app.annotation.platforms.cell_reading import DateOrder, DecimalMark, ReadingOptions
from app.annotation.platforms.column_mapping import COLUMN_ROLES
from app.designs.number_parsing import parse_strict_decimal
from app.errors import Invalid
from app.uploads import ReadOptions

MAX_COLUMN_NAME_CHARACTERS = 1_000
ScaleEnd = Annotated[str, StringConstraints(strip_whitespace=True, max_length=30)]
OptionalColumnName = Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_COLUMN_NAME_CHARACTERS)]


class AnswerFileOptions(BaseModel):
    """How to read a file whose columns, numbers or dates are not written as Easel writes them."""

    item_column: OptionalColumnName = Field(
        "", description="Column with the item: its id or its text. `Input.text*` stands for Input.text1, 2, ..."
    )
    value_column: OptionalColumnName = Field(
        "", description="Column with the answer. `Answer.q*` stands for Answer.q1, 2, ..."
    )
    annotator_column: OptionalColumnName = Field("", description="Column with the annotator.")
    hit_column: OptionalColumnName = Field(
        "", description="Column that identifies the task; `-` if each row is a task."
    )
    issued_at_column: OptionalColumnName = Field(
        "", description="Column with the time when the task was issued; `-` for none."
    )
    submitted_at_column: OptionalColumnName = Field("", description="Column with the time of the answer; `-` for none.")
    position_column: OptionalColumnName = Field(
        "", description="Column with the item's position in the task, starting at 1."
    )
    segment_column: OptionalColumnName = Field("", description="Column with the segment, in campaigns of systems.")
    criterion_column: OptionalColumnName = Field(
        "", description="Column with the criterion, in campaigns with criteria."
    )
    not_applicable_column: OptionalColumnName = Field(
        "", description="Column that is true if an item cannot be judged."
    )
    reason_column: OptionalColumnName = Field("", description="Column with the reason why an item cannot be judged.")
    scale_from: ScaleEnd = Field(
        "",
        description="The file’s value that means the campaign’s lowest one, such as 1 if the file has 1 to 7.",
    )
    scale_to: ScaleEnd = Field("", description="The file’s value that means the campaign’s highest one, such as 7.")
    decimal: DecimalMark = Field(
        "", description="Decimal sign: point or comma. Empty: detected from the file, or refused if it is unclear."
    )
    date_order: DateOrder = Field(
        "",
        description=(
            "Order of dates such as 1/2/2026: day_first or month_first. Empty: detected from the file, or refused if "
            "it is unclear."
        ),
    )
    time_zone: Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)] = Field(
        "UTC", description="Time zone of times without one, such as Europe/Berlin."
    )
    encoding: Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)] = Field(
        "", description="Encoding of the file if it is not Unicode, such as windows-1252."
    )
    quotes: Literal["", "cells", "text"] = Field(
        "", description="Whether quotation marks enclose cells or are part of the text. Empty: detected from the file."
    )
    sheet: Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)] = Field(
        "", description="Sheet of an Excel workbook. Empty: the first visible one with content."
    )
    rejected: Literal["leave_out", "count"] = Field(
        "leave_out", description="What to do with results whose AssignmentStatus is Rejected: leave_out or count."
    )

    @property
    def reading_options(self) -> ReadingOptions:
        """Return these options in the form that the file reader takes. Raises `Invalid` (`scale_unusable`)."""
        columns = {role: str(getattr(self, f"{role}_column")) for role in COLUMN_ROLES}
        return ReadingOptions(
            columns={role: name for role, name in columns.items() if name},
            decimal=self.decimal,
            date_order=self.date_order,
            time_zone=self.time_zone or "UTC",
            scale=self.file_scale_ends_or_none(),
            count_rejected=self.rejected == "count",
            read_as=ReadOptions(self.encoding or None, self.quotes or None, self.sheet or None),
        )

    def file_scale_ends_or_none(self) -> tuple[float, float] | None:
        """Return the ends of the file's scale, None if it is that of the campaign. Raises `Invalid`
        (`scale_unusable`).
        """
        if not (self.scale_from or self.scale_to):
            return None
        try:
            first, last = parse_strict_decimal(self.scale_from), parse_strict_decimal(self.scale_to)
        except ValueError:
            first = last = 0.0
        if first == last or not math.isfinite(last - first):
            raise Invalid(
                "scale_from and scale_to are two different numbers, such as 1 and 7. Give both or none. Nothing was "
                "imported.",
                code="scale_unusable",
            )
        return first, last

    @classmethod
    def from_form_or_refuse(cls, form: Mapping[str, object]) -> Self:
        """Return the options in a form; its other fields are ignored. Raises `Invalid` (`invalid`)."""
        values = {name: form[name] for name in cls.model_fields if isinstance(form.get(name), str)}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            message = f"{name.replace('_', ' ')} has a value that is not possible. Nothing was imported."
            raise Invalid(message, code="invalid", fields={name: message}) from None
