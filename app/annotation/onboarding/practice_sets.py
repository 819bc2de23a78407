"""Practice sets for training and qualification: a table of items with expected answers and explanations. Pure.

They are not HITs of the campaign: nothing leases them, and their answers are stored only with the onboarding steps. So
they never affect posteriors, the choice of the next HIT, or exports of scores.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from typing import NamedTuple

from app.annotation.onboarding.settings import VisitAndAnswerSettings
from app.designs.answer import Form
from app.designs.criteria import AskedCampaign, submission_of_each_criterion_or_refuse
from app.designs.design import Design
from app.designs.field_flags import is_blank
from app.errors import Invalid, join_names, pluralize
from app.quality.expected_answers import (
    ExpectedAnswer,
    Feedback,
    expected_answer_of_cells_or_none,
    feedback_on_check_answers,
)
from app.uploads import MAX_SHOWN_CHARACTERS, UploadedRow, format_cell, read_table

MAX_PRACTICE_ITEMS = 60
(
    PRACTICE_TEXT_COLUMN,
    PRACTICE_SET_COLUMN,
    PRACTICE_EXPECTED_COLUMN,
    PRACTICE_TOLERANCE_COLUMN,
    PRACTICE_EXPLANATION_COLUMN,
) = "text", "set", "expected", "tolerance", "explanation"
MAX_EXPLANATION_CHARACTERS = 2_000


class PracticeItem(NamedTuple):
    """Item of a practice set.

    Attributes:
        shown: Text that annotators see.
        expected: Expected answer by each criterion of the campaign; None if there is none.
        explanation: Reason for the expected answer, in Markdown; may be empty.

    """

    shown: str
    expected: tuple[ExpectedAnswer | None, ...]
    explanation: str


class GradedSet(NamedTuple):
    """Graded answer to a practice set.

    Attributes:
        values: Values by criterion and item, as stored; None if the item could not be judged.
        feedback: Expected answers by criterion, and whether the annotator gave them.

    """

    values: list[list[float | None]]
    feedback: list[list[Feedback]]

    @property
    def expected_answer_count(self) -> int:
        return sum(len(part) for part in self.feedback)

    @property
    def met_count(self) -> int:
        """Number of expected answers that the annotator gave."""
        return sum(item_feedback.met for part in self.feedback for item_feedback in part)


def parse_practice_sets(table: str, practice_format: "PracticeFormat") -> list[tuple[PracticeItem, ...]]:
    """Return the practice sets of a table.

    Its columns are `text`, `expected`, `tolerance`, `explanation` and `set`; only `text` is required. Adjacent rows
    with the same `set` form a set; without that column, each set has as many items as a HIT. If the campaign has
    several criteria, it has one pair of columns for each: `expected NAME` and `tolerance NAME`.

    Raises:
        Invalid: With the line: `column_unknown`, `shown_empty`, `hit_size`, and the refusals of `read_table` and
            `expected_answer_of_cells_or_none`.

    """
    if not table.strip():
        return []
    return [*parse_nonempty_practice_table(table, practice_format)]


class PracticeFormat(NamedTuple):
    """Settings of a campaign that its practice sets depend on. Hashable, so parsed tables can be cached."""

    designs: tuple[tuple[str, Design], ...]
    items_per_hit: int

    @classmethod
    def from_settings(cls, settings: VisitAndAnswerSettings) -> "PracticeFormat":
        designs = [(criterion.name, criterion.design) for criterion in settings.criteria]
        return cls(tuple(designs), settings.items_per_hit)


@lru_cache(maxsize=64)
def parse_nonempty_practice_table(table: str, practice_format: PracticeFormat) -> tuple[tuple[PracticeItem, ...], ...]:
    """Return the practice sets of a table that is not empty, as `parse_practice_sets` does."""
    upload = read_table(BytesIO(table.strip().encode()), "table.csv", max_mb=1)
    refuse_wrong_practice_columns(upload.columns, practice_format)
    rows = [
        (format_cell(row.values.get(PRACTICE_SET_COLUMN)).strip(), parse_practice_item_or_refuse(row, practice_format))
        for row in upload.rows
    ]
    if not rows:
        raise Invalid("The table has no items below its header.", code="file_empty")
    if len(rows) > MAX_PRACTICE_ITEMS:
        raise Invalid(f"The table has {len(rows)} items; the maximum is {MAX_PRACTICE_ITEMS}.", code="too_many_rows")
    practice_sets = [tuple(item for _, item in group) for _, group in groupby(rows, key=lambda row: row[0])]
    if PRACTICE_SET_COLUMN not in upload.columns:
        items, size = tuple(item for _, item in rows), practice_format.items_per_hit
        practice_sets = [items[start : start + size] for start in range(0, len(items), size)]
    refuse_wrong_practice_set_sizes(practice_sets, practice_format.designs[0][1])
    return tuple(practice_sets)


def refuse_wrong_practice_columns(columns: Sequence[str], practice_format: PracticeFormat) -> None:
    """Raise `Invalid` (`column_unknown`) if the columns are not those of a practice table."""
    known_columns = [
        PRACTICE_TEXT_COLUMN,
        *(
            f"{column} {name}".strip()
            for name, _ in practice_format.designs
            for column in (PRACTICE_EXPECTED_COLUMN, PRACTICE_TOLERANCE_COLUMN)
        ),
    ]
    known_columns += [PRACTICE_EXPLANATION_COLUMN, PRACTICE_SET_COLUMN]
    if PRACTICE_TEXT_COLUMN not in columns or (unknown := [name for name in columns if name not in known_columns]):
        wrong = "lacks the column text" if PRACTICE_TEXT_COLUMN not in columns else f"has {join_names(unknown)}, too"
        raise Invalid(
            f"The table {wrong}. Its columns can be: {join_names(known_columns)}.",
            code="column_unknown",
        )


def refuse_wrong_practice_set_sizes(sets: Sequence[Sequence[PracticeItem]], design: Design) -> None:
    """Raise `Invalid` (`hit_size`) for a set whose size the design does not accept."""
    min_items, max_items = design.items_per_hit[0], design.items_per_hit[-1]
    for number, items in enumerate(sets, start=1):
        if len(items) not in design.items_per_hit:
            takes = f"{min_items} to {max_items}" if max_items > min_items else f"{min_items}"
            raise Invalid(
                f"Practice task {number} has {pluralize(len(items), 'item')}; “{design.title}” takes {takes} at once.",
                code="hit_size",
            )


def parse_practice_item_or_refuse(row: UploadedRow, practice_format: PracticeFormat) -> PracticeItem:
    """Return the item of a row. Raises `Invalid`, with the line in its message."""
    cells = {name: format_cell(value).strip() for name, value in row.values.items()}
    shown, explanation = format_cell(row.values.get(PRACTICE_TEXT_COLUMN)), cells.get(PRACTICE_EXPLANATION_COLUMN, "")
    if is_blank(shown) or len(shown) > MAX_SHOWN_CHARACTERS or len(explanation) > MAX_EXPLANATION_CHARACTERS:
        limits = (
            f"a text needs visible characters, {MAX_SHOWN_CHARACTERS:,} at most, and an explanation has at most "
            f"{MAX_EXPLANATION_CHARACTERS:,}"
        )
        raise Invalid(f"Line {row.line}: {limits}.", code="shown_empty", line=row.line)
    try:
        expected = tuple(practice_expectation_or_none(cells, name, design) for name, design in practice_format.designs)
    except Invalid as refusal:
        raise Invalid(f"Line {row.line}: {refusal.message}", code=refusal.code, line=row.line) from None
    return PracticeItem(shown, expected, explanation)


def practice_expectation_or_none(cells: Mapping[str, str], criterion: str, design: Design) -> ExpectedAnswer | None:
    """Return the expected answer by a criterion (its name is empty if the campaign has only one question).

    Raises:
        Invalid: The refusals of `expected_answer_of_cells_or_none`.

    """
    expected_text, tolerance = (
        cells.get(f"{column} {criterion}".strip(), "")
        for column in (PRACTICE_EXPECTED_COLUMN, PRACTICE_TOLERANCE_COLUMN)
    )
    return expected_answer_of_cells_or_none(design, expected_text, tolerance)


def grade_practice_form_or_refuse(
    settings: AskedCampaign, items: Sequence[PracticeItem], form: Mapping[str, str]
) -> GradedSet:
    """Return the graded answer of a form, whose items are numbered from 0. Raises `Invalid`, as for any HIT."""
    numbers = range(len(items))
    parts = zip(settings.criteria, submission_of_each_criterion_or_refuse(Form(form, "form"), settings), strict=True)
    return grade_practice_values(
        settings, items, [criterion.parse_answer(part, numbers)[1] for criterion, part in parts]
    )


def grade_practice_values(
    settings: AskedCampaign, items: Sequence[PracticeItem], values: Sequence[Sequence[float | None]]
) -> GradedSet:
    """Return the graded answer of stored values."""
    values_with_nan = [[math.nan if value is None else value for value in row] for row in values]
    feedback_by_criterion = [
        feedback_on_check_answers(criterion.design, [item.expected[number] for item in items], values_with_nan[number])
        for number, criterion in enumerate(settings.criteria)
    ]
    return GradedSet(
        [[None if math.isnan(value) else value for value in row] for row in values_with_nan], feedback_by_criterion
    )
