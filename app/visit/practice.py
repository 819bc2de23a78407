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
from app.designs.criteria import answer_of, criteria_of, parts_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Invalid, listed, plural
from app.fields import is_blank
from app.quality.expected import ExpectedAnswer, Feedback, feedback, from_cells
from app.upload import LONGEST_SHOWN, UploadedRow, as_text, read

MOST_ITEMS = 60
TEXT, SET, EXPECTED, TOLERANCE, EXPLANATION = "text", "set", "expected", "tolerance", "explanation"
LONGEST_EXPLANATION = 2_000


class PracticeItem(NamedTuple):
    """shown: as annotators see it. expected: by each criterion of the campaign, None where nothing is. explanation: in
    Markdown, why; may be empty.
    """

    shown: str
    expected: tuple[ExpectedAnswer | None, ...]
    explanation: str


class Marked(NamedTuple):
    """An answer to a set. values: by each criterion, of each item, as they are stored; None where one cannot be judged.
    told: by each criterion what was expected, and whether it is so.
    """

    values: list[list[float | None]]
    told: list[list[Feedback]]

    @property
    def expected(self) -> int:
        """Of how many things something was expected."""
        return sum(len(part) for part in self.told)

    @property
    def met(self) -> int:
        """How many of them are so."""
        return sum(one.met for part in self.told for one in part)


def sets_in(table: str, campaign: Any) -> list[tuple[PracticeItem, ...]]:
    """The sets of a table with the columns `text`, `expected`, `tolerance`, `explanation` and `set`, of which the first
    alone must be there: rows of the same `set` stand together, else as many as a HIT has. Where a campaign has several
    criteria, `expected` and `tolerance` of each are called so, a space, and its name.

    Raises `Invalid` with the line: what `upload.read` raises, `column_unknown`, `shown_empty`, `hit_size`, and what
    `expected.from_cells` does.
    """
    if not table.strip():
        return []
    return [*parsed_sets(table, WayOfPractice.of(campaign))]


class WayOfPractice(NamedTuple):
    """What of a campaign its sets depend on; can be looked up."""

    designs: tuple[tuple[str, Design], ...]
    items_per_hit: int

    @classmethod
    def of(cls, campaign: Any) -> "WayOfPractice":
        views = criteria_of(campaign)
        named = [(view.criterion_name if campaign.criteria else "", design_of(view)) for view in views]
        return cls(tuple(named), campaign.items_per_hit)


@lru_cache(maxsize=64)
def parsed_sets(table: str, way: WayOfPractice) -> tuple[tuple[PracticeItem, ...], ...]:
    """As `sets_in` gives them."""
    upload = read(BytesIO(table.strip().encode()), "table.csv", max_mb=1)
    refuse_columns(upload.columns, way)
    rows = [(as_text(row.values.get(SET)).strip(), item_in(row, way)) for row in upload.records]
    if not rows:
        raise Invalid("The table has no items below its header.", code="file_empty")
    if len(rows) > MOST_ITEMS:
        raise Invalid(f"The table has {len(rows)} items; {MOST_ITEMS} are the most.", code="too_many_rows")
    found = [tuple(item for _, item in group) for _, group in groupby(rows, key=lambda row: row[0])]
    if SET not in upload.columns:
        items, size = tuple(item for _, item in rows), way.items_per_hit
        found = [items[start : start + size] for start in range(0, len(items), size)]
    refuse_sizes(found, way.designs[0][1])
    return tuple(found)


def refuse_columns(columns: Sequence[str], way: WayOfPractice) -> None:
    """Raises `Invalid` (`column_unknown`)."""
    known = [TEXT, *(f"{one} {name}".strip() for name, _ in way.designs for one in (EXPECTED, TOLERANCE))]
    known += [EXPLANATION, SET]
    if TEXT not in columns or (unknown := [name for name in columns if name not in known]):
        wrong = "lacks the column text" if TEXT not in columns else f"has {listed(unknown)}, too"
        raise Invalid(f"The table {wrong}. Its columns can be: {listed(known)}.", code="column_unknown")


def refuse_sizes(sets: Sequence[Sequence[PracticeItem]], design: Design) -> None:
    """Raises `Invalid` (`hit_size`) for one that the design does not take."""
    fewest, most = design.items_per_hit[0], design.items_per_hit[-1]
    for number, items in enumerate(sets, start=1):
        if len(items) not in design.items_per_hit:
            takes = f"{fewest} to {most}" if most > fewest else f"{fewest}"
            raise Invalid(
                f"Set {number} has {plural(len(items), 'item')}; “{design.title}” takes {takes} at once.",
                code="hit_size",
            )


def item_in(row: UploadedRow, way: WayOfPractice) -> PracticeItem:
    """Raises `Invalid`, with the line in its message."""
    cells = {name: as_text(value).strip() for name, value in row.values.items()}
    shown, explanation = as_text(row.values.get(TEXT)), cells.get(EXPLANATION, "")
    if is_blank(shown) or len(shown) > LONGEST_SHOWN or len(explanation) > LONGEST_EXPLANATION:
        longest = (
            f"a text has something to see and {LONGEST_SHOWN:,} characters at most, "
            f"an explanation {LONGEST_EXPLANATION:,}"
        )
        raise Invalid(f"Line {row.line}: {longest}.", code="shown_empty", line=row.line)
    try:
        expected = tuple(expected_in(cells, name, design) for name, design in way.designs)
    except Invalid as refusal:
        raise Invalid(f"Line {row.line}: {refusal.message}", code=refusal.code, line=row.line) from None
    return PracticeItem(shown, expected, explanation)


def expected_in(cells: Mapping[str, str], criterion: str, design: Design) -> ExpectedAnswer | None:
    """What is expected by a criterion, which has no name where there is one alone. Raises what `from_cells` does."""
    said, tolerance = (cells.get(f"{column} {criterion}".strip(), "") for column in (EXPECTED, TOLERANCE))
    return from_cells(design, said, tolerance)


def marked(campaign: Any, items: Sequence[PracticeItem], form: Mapping[str, str]) -> Marked:
    """What a form says of a set, whose items are numbered from 0. Raises `Invalid`, as for any HIT."""
    numbers = range(len(items))
    parts = zip(criteria_of(campaign), parts_of(Form(form, "form"), campaign), strict=True)
    return marked_values(campaign, items, [answer_of(view, part, numbers)[1] for view, part in parts])


def marked_values(campaign: Any, items: Sequence[PracticeItem], values: Sequence[Sequence[float | None]]) -> Marked:
    """The same of values that were kept."""
    nan = float("nan")
    known = [[nan if value is None else value for value in row] for row in values]
    told = [
        feedback(design_of(view), [item.expected[number] for item in items], known[number])
        for number, view in enumerate(criteria_of(campaign))
    ]
    return Marked([[None if value != value else value for value in row] for row in known], told)  # noqa: PLR0124
