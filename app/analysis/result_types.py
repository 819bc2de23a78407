"""Input and results of analysis methods: a campaign's answers as arrays; scores of items, tables and comparisons.

Pure: no SQL, no HTTP. A figure that could not be estimated is NaN in arrays, and None in the cells of a table, which
people and programs read. `method_types` defines what a method is, and `methods` lists them.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from app.designs.design import ValueKind
from app.designs.scale import MAX_POINTS
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.notes import Note
from app.inference.online.law import LawParameters

Mask = npt.NDArray[np.bool_]
AnyArray = npt.NDArray[Any]
Cell = str | int | float | None
ColumnKind = Literal["text", "sentence", "count", "number"]

MAX_CLASSES = 10  # labels that scores are cut into


@dataclass(frozen=True, eq=False)
class Answers:
    """All judgments of a campaign, in the order of the responses: J judgments, N items, A annotators, H HITs.

    Attributes:
        seq: Number of each response, (H,).
        hit: Index of each judgment's HIT, 0 to H - 1, (J,), never falling.
        item: Index of each judgment's item, 0 to N - 1, (J,).
        annotator: Index of each judgment's annotator, 0 to A - 1, (J,).
        score: Scores from 0 to 100, (J,).
        value: Values as the campaign's design stores them, (J,).
        value_kind: Kind of these values.
        ids: Ids of the N items.
        shown: Texts that annotators saw, N.
        systems: Uploaded column `system`, N; None where an item has none.
        segments: Uploaded column `segment`, N; None where an item has none.
        annotators: Pseudonyms of the A annotators.
        names: Their names on pages, A1, A2, ... by first arrival.
        law: Name of the campaign's update law.
        prior: Numbers of each item's first posterior under the law, (numbers, N).
        state: Numbers of the stored posteriors, or None before the launch.
        parameters: Gamma, epsilon and the tie margin.
        seed: Seed of the campaign, so that the same answers get the same bootstrap intervals.
        classes: Names of the classes.
        hit_segments: Segment of each HIT, (H,), if the items are systems; else None.
        always_shown: Items that are in every HIT, as a baseline is.
        fixed_items: Items that every annotator judges once.
        compares_pairs: Whether every HIT compares two items, which may be any two.
        matches_by_score: Whether the selection rule puts items with similar scores together.
        seconds: Seconds from getting each HIT to its answer, (H,); NaN for imported answers. None if they were not
            read.
        unjudged_counts: How many items each annotator could not judge, (A,); None if the campaign does not offer this.
        names_without_judgment: Names of annotators who could judge no item; they are not among the A annotators.
        scores_by_criterion: Scores of the same judgments by each criterion, (J,), by name; empty for a single
            criterion.
        yes_or_no_criteria: Names of those whose answers are no and yes, as labels that are ticked have.
        profile_answers: A answers to each profile question with choices, by the question's name; None for no answer.

    """

    seq: Integers
    hit: Integers
    item: Integers
    annotator: Integers
    score: Array
    value: Array
    value_kind: ValueKind
    ids: Sequence[str]
    shown: Sequence[str]
    systems: Sequence[str | None]
    segments: Sequence[str | None]
    annotators: Sequence[str]
    names: Sequence[str]
    law: str
    prior: Array
    state: Array | None
    parameters: LawParameters
    seed: int
    classes: Sequence[str] = ()
    hit_segments: Integers | None = None
    always_shown: Sequence[int] = ()
    fixed_items: Sequence[int] = ()
    compares_pairs: bool = False
    matches_by_score: bool = False
    seconds: Array | None = None
    unjudged_counts: Integers | None = None
    names_without_judgment: Sequence[str] = ()
    scores_by_criterion: Mapping[str, Array] = field(default_factory=dict)
    yes_or_no_criteria: Sequence[str] = ()
    profile_answers: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    @property
    def n_items(self) -> int:
        """Number of items, judged or not."""
        return len(self.ids)

    @property
    def items_are_systems(self) -> bool:
        """Whether the items are systems, whose judgments are of different segments."""
        return self.hit_segments is not None

    @property
    def n_annotators(self) -> int:
        """Number of annotators; each has answered at least once."""
        return len(self.annotators)

    @property
    def n_hits(self) -> int:
        """Number of answered HITs."""
        return len(self.seq)

    @property
    def first_judgment_index_of_each_hit(self) -> Integers:
        """Index of the first judgment of each HIT, (H,)."""
        return np.flatnonzero(np.diff(self.hit, prepend=-1))

    @property
    def annotator_index_of_each_hit(self) -> Integers:
        """Annotator of each HIT, (H,)."""
        return self.annotator[self.first_judgment_index_of_each_hit]

    @property
    def scores_between_0_and_1(self) -> Array:
        """Scores on 0 to 1, (J,)."""
        return self.score / MAX_POINTS

    @property
    def judgment_counts(self) -> Integers:
        """Number of judgments of each item, (N,)."""
        return np.bincount(self.item, minlength=self.n_items)

    def judged_units_and_their_count(self) -> tuple[Integers, int]:
        """Return what each judgment is about, (J,), and how many of these there are: items, or the outputs of systems
        that were judged.
        """
        if self.hit_segments is None:
            return self.item, self.n_items
        outputs, units = np.unique(self.hit_segments[self.hit] * self.n_items + self.item, return_inverse=True)
        return units, len(outputs)

    @property
    def has_judgments(self) -> Mask:
        """Whether each item has a judgment, (N,)."""
        return self.judgment_counts > 0

    def seeded_rng(self) -> np.random.Generator:
        """Return a new generator that starts the same for the same campaign."""
        return np.random.default_rng(self.seed)


Result = TypeVar("Result")
Choice = TypeVar("Choice", bound=Hashable)


def cache_last_result(fit: Callable[[Answers, Choice], Result]) -> Callable[[Answers, Choice], Result]:
    """Cache the last result of `fit` for each `Answers`, as long as these exist.

    Several tables are made from one fit.
    """
    last_results: WeakKeyDictionary[Answers, tuple[Choice, Result]] = WeakKeyDictionary()

    @wraps(fit)
    def fitted(answers: Answers, choice: Choice) -> Result:
        last = last_results.get(answers)
        if last is None or last[0] != choice:
            last = last_results[answers] = choice, fit(answers, choice)
        return last[1]

    return fitted


@dataclass(frozen=True)
class Options:
    """Choices of a researcher.

    Attributes:
        classes: Number of labels of equal width into which scores are cut, 2 to `MAX_CLASSES`.
        baseline: System with which others are compared; None for the one with most comparisons.

    """

    classes: int = 2
    baseline: str | None = None


@dataclass(frozen=True)
class Scores:
    """A score for each of N items, (N,) each; NaN if it could not be estimated, and `notes` say why.

    Attributes:
        has_judgments: Items with a judgment.
        low: Lower end of the 95 % interval, or None if the method has none.
        high: Its upper end.
        standard_error: Standard errors, or None if the method has none.

    """

    values: Array
    has_judgments: Mask
    low: Array | None = None
    high: Array | None = None
    standard_error: Array | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: For programs.
        title: For people, with the unit.
        kind: `text`, `count`, `number`, or `sentence` for longer text.

    """

    name: str
    title: str
    kind: ColumnKind = "number"


@dataclass(frozen=True)
class ResultTable:
    """Rows with one cell per column; None if there is no figure, and `notes` say why.

    `verdict` is a sentence on what the figures say together; it may be empty.
    """

    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    notes: tuple[Note, ...] = ()
    verdict: str = ""


@dataclass(frozen=True)
class Figure:
    """A number and its 95 % interval; None if it could not be estimated."""

    name: str
    title: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Comparison:
    """Two sets of scores side by side.

    `figures` holds Pearson, Spearman, Kendall and nDCG (the first method is the reference) over the `n` items with
    both scores. `refusal` says why there are no figures, or is empty.
    """

    one: Scores
    other: Scores
    n: int
    figures: tuple[Figure, ...]
    notes: tuple[Note, ...]
    refusal: str = ""


def cell_or_none_if_not_finite(value: Any) -> Cell:
    """Return a number or text of NumPy or Python as a cell: None for NaN and infinities."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def to_cells(values: Iterable[Any]) -> list[Cell]:
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        finite = np.isfinite(values)
        column: list[Cell] = (values if finite.all() else np.where(finite, values, np.array(None))).tolist()
        return column
    return [
        cell_or_none_if_not_finite(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)
    ]


def to_cell_columns(*columns: Iterable[Any]) -> list[list[Cell]]:
    return [to_cells(column) for column in columns]


def columns_to_cell_rows(*columns: Iterable[Any]) -> list[tuple[Cell, ...]]:
    """Return rows from columns of equal length."""
    return list(zip(*to_cell_columns(*columns), strict=True))


def natural_sort_key(name: str) -> tuple[float, str]:
    """Return a key that sorts whole numbers first and as numbers, then other names without regard to case."""
    return (float(name) if re.fullmatch(r"-?\d+", name) else math.inf, name.casefold())
