"""Sets to learn by and to be tested with: a table of items with what is expected of each, and why. Pure.

They are no HITs of the campaign: nothing leases them, and their answers are kept with the steps of the visit alone. So
they are never in posteriors, in what is asked next, or in exports of scores.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from itertools import groupby
from typing import Any, NamedTuple

from app.designs.answer import Form
from app.designs.criteria import criterion_views, parse_criterion_answer, split_submission
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Invalid, join_names, pluralize
from app.field_flags import is_blank
from app.quality.expected_answers import ExpectedAnswer, Feedback, feedback, parse_expected_cells
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
    """shown: as annotators see it. expected: by each criterion of the campaign, None where nothing is. explanation: in
    Markdown, why; may be empty.
    """

    shown: str
    expected: tuple[ExpectedAnswer | None, ...]
    explanation: str


class GradedSet(NamedTuple):
    """An answer to a set. values: by each criterion, of each item, as they are stored; None where one cannot be judged.
    told: by each criterion what was expected, and whether it is so.
    """

    values: list[list[float | None]]
    feedback: list[list[Feedback]]

    @property
    def expected_count(self) -> int:
        """Of how many things something was expected."""
        return sum(len(part) for part in self.feedback)

    @property
    def met_count(self) -> int:
        """How many of them are so."""
        return sum(one.met for part in self.feedback for one in part)


def parse_practice_sets(table: str, campaign: Any) -> list[tuple[PracticeItem, ...]]:
    """The sets of a table with the columns `text`, `expected`, `tolerance`, `explanation` and `set`, of which the first
    alone must be there: rows of the same `set` stand together, else as many as a HIT has. Where a campaign has several
    criteria, `expected` and `tolerance` of each are called so, a space, and its name.

    Raises `Invalid` with the line: what `upload.read` raises, `column_unknown`, `shown_empty`, `hit_size`, and what
    `expected.from_cells` does.
    """
    if not table.strip():
        return []
    return [*parse_practice_table(table, PracticeFormat.from_campaign(campaign))]


class PracticeFormat(NamedTuple):
    """What of a campaign its sets depend on; can be looked up."""

    designs: tuple[tuple[str, Design], ...]
    items_per_hit: int

    @classmethod
    def from_campaign(cls, campaign: Any) -> "PracticeFormat":
        views = criterion_views(campaign)
        designs = [(view.criterion_name if campaign.criteria else "", design_of(view)) for view in views]
        return cls(tuple(designs), campaign.items_per_hit)


@lru_cache(maxsize=64)
def parse_practice_table(table: str, practice_format: PracticeFormat) -> tuple[tuple[PracticeItem, ...], ...]:
    """As `sets_in` gives them."""
    upload = read_table(BytesIO(table.strip().encode()), "table.csv", max_mb=1)
    check_practice_columns(upload.columns, practice_format)
    rows = [
        (format_cell(row.values.get(PRACTICE_SET_COLUMN)).strip(), parse_practice_item(row, practice_format))
        for row in upload.rows
    ]
    if not rows:
        raise Invalid("The table has no items below its header.", code="file_empty")
    if len(rows) > MAX_PRACTICE_ITEMS:
        raise Invalid(f"The table has {len(rows)} items; {MAX_PRACTICE_ITEMS} are the most.", code="too_many_rows")
    practice_sets = [tuple(item for _, item in group) for _, group in groupby(rows, key=lambda row: row[0])]
    if PRACTICE_SET_COLUMN not in upload.columns:
        items, size = tuple(item for _, item in rows), practice_format.items_per_hit
        practice_sets = [items[start : start + size] for start in range(0, len(items), size)]
    check_set_sizes(practice_sets, practice_format.designs[0][1])
    return tuple(practice_sets)


def check_practice_columns(columns: Sequence[str], practice_format: PracticeFormat) -> None:
    """Raises `Invalid` (`column_unknown`)."""
    known_columns = [
        PRACTICE_TEXT_COLUMN,
        *(
            f"{one} {name}".strip()
            for name, _ in practice_format.designs
            for one in (PRACTICE_EXPECTED_COLUMN, PRACTICE_TOLERANCE_COLUMN)
        ),
    ]
    known_columns += [PRACTICE_EXPLANATION_COLUMN, PRACTICE_SET_COLUMN]
    if PRACTICE_TEXT_COLUMN not in columns or (unknown := [name for name in columns if name not in known_columns]):
        wrong = "lacks the column text" if PRACTICE_TEXT_COLUMN not in columns else f"has {join_names(unknown)}, too"
        raise Invalid(f"The table {wrong}. Its columns can be: {join_names(known_columns)}.", code="column_unknown")


def check_set_sizes(sets: Sequence[Sequence[PracticeItem]], design: Design) -> None:
    """Raises `Invalid` (`hit_size`) for one that the design does not take."""
    min_items, max_items = design.items_per_hit[0], design.items_per_hit[-1]
    for number, items in enumerate(sets, start=1):
        if len(items) not in design.items_per_hit:
            takes = f"{min_items} to {max_items}" if max_items > min_items else f"{min_items}"
            raise Invalid(
                f"Set {number} has {pluralize(len(items), 'item')}; “{design.title}” takes {takes} at once.",
                code="hit_size",
            )


def parse_practice_item(row: UploadedRow, practice_format: PracticeFormat) -> PracticeItem:
    """Raises `Invalid`, with the line in its message."""
    cells = {name: format_cell(value).strip() for name, value in row.values.items()}
    shown, explanation = format_cell(row.values.get(PRACTICE_TEXT_COLUMN)), cells.get(PRACTICE_EXPLANATION_COLUMN, "")
    if is_blank(shown) or len(shown) > MAX_SHOWN_CHARACTERS or len(explanation) > MAX_EXPLANATION_CHARACTERS:
        longest = f"a text has something to see and {MAX_SHOWN_CHARACTERS:,} characters at most, an explanation {MAX_EXPLANATION_CHARACTERS:,}"
        raise Invalid(f"Line {row.line}: {longest}.", code="shown_empty", line=row.line)
    try:
        expected = tuple(parse_practice_expectation(cells, name, design) for name, design in practice_format.designs)
    except Invalid as refusal:
        raise Invalid(f"Line {row.line}: {refusal.message}", code=refusal.code, line=row.line) from None
    return PracticeItem(shown, expected, explanation)


def parse_practice_expectation(cells: Mapping[str, str], criterion: str, design: Design) -> ExpectedAnswer | None:
    """What is expected by a criterion, which has no name where there is one alone. Raises what `from_cells` does."""
    expected_text, tolerance = (
        cells.get(f"{column} {criterion}".strip(), "")
        for column in (PRACTICE_EXPECTED_COLUMN, PRACTICE_TOLERANCE_COLUMN)
    )
    return parse_expected_cells(design, expected_text, tolerance)


def grade_practice_form(campaign: Any, items: Sequence[PracticeItem], form: Mapping[str, str]) -> GradedSet:
    """What a form says of a set, whose items are numbered from 0. Raises `Invalid`, as for any HIT."""
    numbers = range(len(items))
    parts = zip(criterion_views(campaign), split_submission(Form(form, "form"), campaign), strict=True)
    return grade_practice_values(
        campaign, items, [parse_criterion_answer(view, part, numbers)[1] for view, part in parts]
    )


def grade_practice_values(
    campaign: Any, items: Sequence[PracticeItem], values: Sequence[Sequence[float | None]]
) -> GradedSet:
    """The same of values that were kept."""
    nan = float("nan")
    values_with_nan = [[nan if value is None else value for value in row] for row in values]
    feedback_by_criterion = [
        feedback(design_of(view), [item.expected[number] for item in items], values_with_nan[number])
        for number, view in enumerate(criterion_views(campaign))
    ]
    return GradedSet(
        [[None if value != value else value for value in row] for row in values_with_nan], feedback_by_criterion
    )
