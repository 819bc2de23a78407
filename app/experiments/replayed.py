"""The record of an arm, replayed in order: what its law knew after each judgment an item, and how sure that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from app.experiments.figures import Band
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ground.jackknife import correlation_band, standard_error
from app.inference.ground.metrics import compare
from app.inference.online.law import Beliefs, Hit, Law

SHOWN = ("spearman", "pearson")


@dataclass(frozen=True)
class ArmRecord:
    """HITs in the order in which they were answered, and what their law believed before. truth: (N,)."""

    law: Law
    begun: Beliefs
    hits: Sequence[Hit]
    truth: Array

    @property
    def judgments(self) -> int:
        """Of all items."""
        return sum(len(hit.items) for hit in self.hits)

    @property
    def looks(self) -> int:
        """How many judgments an item there are, in full."""
        return self.judgments // len(self.truth)

    @property
    def people(self) -> list[int]:
        """Those who answered."""
        return sorted({hit.annotator for hit in self.hits})


@dataclass(frozen=True)
class BandedCourse:
    """How an arm went. figures: by name, after each look, (looks,). without: the same without each person in turn,
    (P, looks). there: whether they had answered by then, (P, looks). score: of the items after the last look, (N,).
    """

    figures: dict[str, Array]
    without: dict[str, Array]
    there: Mask
    score: Array

    @property
    def people(self) -> Integers:
        """How many had answered by each look, (looks,)."""
        count: Integers = self.there.sum(axis=0)
        return count

    def band(self, figure: str) -> Band:
        """With 95 % for such experiments with other people; ends of NaN where one person alone had answered."""
        whole = self.figures[figure]
        return Band(whole, *correlation_band(whole, self.without[figure], self.there))

    def error(self, figure: str) -> Array:
        """The standard error of a figure, (looks,)."""
        return standard_error(self.without[figure], self.there)


def course(record: ArmRecord, looks: int) -> BandedCourse:
    """Up to so many judgments an item, as many at most as there are."""
    ends = ends_of(record, looks)
    whole = list(scores(record, ends))
    figures = partial(figures_of, record.truth)
    without = [figures(scores(record, ends, without=person)) for person in record.people]
    there = np.array([[begins(record, person) < end for end in ends] for person in record.people])
    return BandedCourse(
        figures(whole), {name: np.array([one[name] for one in without]) for name in SHOWN}, there, whole[-1]
    )


def begins(record: ArmRecord, person: int) -> int:
    """The place of somebody's first HIT."""
    return next(k for k, hit in enumerate(record.hits) if hit.annotator == person)


def ends_of(record: ArmRecord, looks: int) -> list[int]:
    """After how many HITs each of the looks is, which has its judgments then."""
    given = np.cumsum([len(hit.items) for hit in record.hits])
    return [int(end) + 1 for end in np.searchsorted(given, len(record.truth) * np.arange(1, looks + 1))]


def scores(record: ArmRecord, ends: Sequence[int], without: int | None = None) -> Iterator[Array]:
    """Of the items at each look, (N,), with the answers of all, or of all but one."""
    beliefs = record.begun.copy()
    for start, end in pairwise((0, *ends)):
        beliefs.take([hit for hit in record.hits[start:end] if hit.annotator != without])
        yield record.law.family.score(*beliefs.state)


def figures_of(truth: Array, looked: Iterator[Array] | Sequence[Array]) -> dict[str, Array]:
    """By name, (looks,); NaN where all items have one score."""
    found = [compare(truth, score) for score in looked]
    return {name: np.array([getattr(one, name) for one in found]) for name in SHOWN}
