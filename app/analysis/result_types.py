"""What the methods of analysis take and give: a campaign's answers as arrays; scores of items, tables, comparisons.

Pure: no SQL, no HTTP. Inside, what could not be estimated is NaN in arrays; in the cells of a table, which people and
programs read, it is None. `contracts` says what a method is, and `methods` which there are.
"""

import math
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
    """All judgments of a campaign, (J,) each, in the order of the responses; N items, A annotators, H HITs.

    seq: the number of each response, (H,); hit: its place among them, 0 to H - 1, never falling. item: 0 to N - 1;
    annotator: 0 to A - 1; score: 0 to 100; value: as the campaign's design has it, what that is, and what its
    classes are called. criteria: the scores of the same judgments by each criterion, (J,), its own among them, by name;
    none where there is only one.
    ids, shown: what items are called and what was shown, N each. systems, segments: the uploaded columns `system` and
    `segment`, N each, None where an item has no such column. annotators: pseudonyms, A of them; names: what
    pages call them, A1, A2, ... by their first arrival. always_shown: items that are in every HIT, as a baseline is.
    compares_pairs: whether every HIT compares two items, any two of which it may be.
    unjudged: (A,) how many items each annotator could not judge, None where the campaign does not offer to say so;
    judged_nothing: the names of those who said so of all that they were shown, and who are no annotators here.
    asked: of each question with choices that annotators were asked once, by its name, their answers, A of them; None
    where one gave none.
    law: the campaign's update law; prior: the numbers of each item's first posterior under it, (numbers, N); state: the
    stored ones, or None before the launch. parameters: gamma, epsilon and the tie margin. seed: of the campaign, so
    that the same answers get the same bootstrap intervals.
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
    always_shown: Sequence[int] = ()
    compares_pairs: bool = False
    unjudged_counts: Integers | None = None
    names_without_judgment: Sequence[str] = ()
    scores_by_criterion: Mapping[str, Array] = field(default_factory=dict)
    profile_answers: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    @property
    def n_items(self) -> int:
        """How many items there are, judged or not."""
        return len(self.ids)

    @property
    def n_annotators(self) -> int:
        """How many annotators there are; each has answered at least once."""
        return len(self.annotators)

    @property
    def n_hits(self) -> int:
        """How many HITs were answered."""
        return len(self.seq)

    @property
    def first_judgment_of_hit(self) -> Integers:
        """(H,) where each HIT's judgments begin."""
        return np.flatnonzero(np.diff(self.hit, prepend=-1))

    @property
    def annotator_of_hit(self) -> Integers:
        """(H,) who answered it."""
        return self.annotator[self.first_judgment_of_hit]

    @property
    def unit_score(self) -> Array:
        """(J,) the scores on 0 to 1."""
        return self.score / MAX_POINTS

    @property
    def judgment_counts(self) -> Integers:
        """(N,) how many judgments each item has."""
        return np.bincount(self.item, minlength=self.n_items)

    @property
    def has_judgments(self) -> Mask:
        """(N,) which items have a judgment."""
        return self.judgment_counts > 0

    def seeded_rng(self) -> np.random.Generator:
        """A fresh generator that starts the same for the same campaign."""
        return np.random.default_rng(self.seed)


Result = TypeVar("Result")
Choice = TypeVar("Choice", bound=Hashable)


def cache_last_result(fit: Callable[[Answers, Choice], Result]) -> Callable[[Answers, Choice], Result]:
    """`fit`, where several tables are made from one: the last result for each `Answers`, kept as long as they are."""
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
    """What a researcher can choose.

    classes: into how many labels of equal width scores are cut, 2 to `MOST_CLASSES`. baseline: the system that others
    are compared with; None for the one that is compared most.
    """

    classes: int = 2
    baseline: str | None = None


@dataclass(frozen=True)
class Scores:
    """A score for each of N items, (N,) each; NaN where it could not be estimated, and `notes` say why.

    low, high: 95 % interval, or None if the method has none; standard_error: likewise. judged: items with a judgment.
    """

    values: Array
    has_judgments: Mask
    low: Array | None = None
    high: Array | None = None
    standard_error: Array | None = None
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class Column:
    """name: for programs; title: for people, with the unit; kind: `sentence` is text of some length."""

    name: str
    title: str
    kind: ColumnKind = "number"


@dataclass(frozen=True)
class ResultTable:
    """Rows with one cell per column; None where there is no figure, and `notes` say why. verdict: what the figures say
    together, in a sentence, where there is one.
    """

    columns: tuple[Column, ...]
    rows: list[tuple[Cell, ...]]
    notes: tuple[Note, ...] = ()
    verdict: str = ""


@dataclass(frozen=True)
class Figure:
    """A number and its 95 % interval; None where it could not be estimated."""

    name: str
    title: str
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Comparison:
    """Two sets of scores side by side. figures: Pearson, Spearman, Kendall, nDCG (`one` is the reference) over the `n`
    items that both have a score for. refusal: why there are no figures, or "".
    """

    one: Scores
    other: Scores
    n: int
    figures: tuple[Figure, ...]
    notes: tuple[Note, ...]
    refusal: str = ""


def to_cell(value: Any) -> Cell:
    """A number or text of NumPy or Python as a cell: None for NaN and infinities."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def to_cells(values: Iterable[Any]) -> list[Cell]:
    """A column of cells."""
    if isinstance(values, np.ndarray) and values.dtype == np.float64:
        finite = np.isfinite(values)
        column: list[Cell] = (values if finite.all() else np.where(finite, values, np.array(None))).tolist()
        return column
    return [to_cell(value) for value in (values.tolist() if isinstance(values, np.ndarray) else values)]


def to_cell_columns(*columns: Iterable[Any]) -> list[list[Cell]]:
    """Columns of cells."""
    return [to_cells(column) for column in columns]


def to_cell_rows(*columns: Iterable[Any]) -> list[tuple[Cell, ...]]:
    """Rows from columns of equal length."""
    return list(zip(*to_cell_columns(*columns), strict=True))
