"""The record of an arm, replayed in order: what its law knew after each judgment an item, and how sure that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from app.experiments.figures import Band
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ground.jackknife import correlation_band, jackknife_error
from app.inference.ground.metrics import correlate_scores
from app.inference.online.law import AnsweredHit, Law, LawBeliefs

SHOWN_FIGURES = ("spearman", "pearson")


@dataclass(frozen=True)
class ArmRecord:
    """HITs in the order in which they were answered, and what their law believed before. truth: (N,)."""

    law: Law
    initial_beliefs: LawBeliefs
    hits: Sequence[AnsweredHit]
    truth: Array

    @property
    def judgments(self) -> int:
        """Of all items."""
        return sum(len(hit.items) for hit in self.hits)

    @property
    def checkpoint_count(self) -> int:
        """How many judgments an item there are, in full."""
        return self.judgments // len(self.truth)

    @property
    def people(self) -> list[int]:
        """Those who answered."""
        return sorted({hit.annotator for hit in self.hits})


@dataclass(frozen=True)
class BandedArmResult:
    """How an arm went. figures: by name, after each look, (looks,). without: the same without each person in turn,
    (P, looks). there: whether they had answered by then, (P, looks). score: of the items after the last look, (N,).
    """

    figures: dict[str, Array]
    figures_without_person: dict[str, Array]
    has_answered: Mask
    score: Array

    @property
    def people(self) -> Integers:
        """How many had answered by each look, (looks,)."""
        count: Integers = self.has_answered.sum(axis=0)
        return count

    def band(self, figure: str) -> Band:
        """With 95 % for such experiments with other people; ends of NaN where one person alone had answered."""
        whole = self.figures[figure]
        return Band(whole, *correlation_band(whole, self.figures_without_person[figure], self.has_answered))

    def standard_error_of(self, figure: str) -> Array:
        """The standard error of a figure, (looks,)."""
        return jackknife_error(self.figures_without_person[figure], self.has_answered)


def replay_arm(record: ArmRecord, checkpoint_count: int) -> BandedArmResult:
    """Up to so many judgments an item, as many at most as there are."""
    ends = checkpoint_hit_counts(record, checkpoint_count)
    all_scores = list(replay_scores(record, ends))
    figures = partial(figures_by_checkpoint, record.truth)
    without = [figures(replay_scores(record, ends, excluded_person=person)) for person in record.people]
    has_answered = np.array([[first_hit_position(record, person) < end for end in ends] for person in record.people])
    return BandedArmResult(
        figures(all_scores),
        {name: np.array([one[name] for one in without]) for name in SHOWN_FIGURES},
        has_answered,
        all_scores[-1],
    )


def first_hit_position(record: ArmRecord, person: int) -> int:
    """The place of somebody's first HIT."""
    return next(k for k, hit in enumerate(record.hits) if hit.annotator == person)


def checkpoint_hit_counts(record: ArmRecord, checkpoint_count: int) -> list[int]:
    """After how many HITs each of the looks is, which has its judgments then."""
    cumulative_judgments = np.cumsum([len(hit.items) for hit in record.hits])
    return [
        int(end) + 1
        for end in np.searchsorted(cumulative_judgments, len(record.truth) * np.arange(1, checkpoint_count + 1))
    ]


def replay_scores(record: ArmRecord, ends: Sequence[int], excluded_person: int | None = None) -> Iterator[Array]:
    """Of the items at each look, (N,), with the answers of all, or of all but one."""
    beliefs = record.initial_beliefs.copy()
    for start, end in pairwise((0, *ends)):
        beliefs.apply_hits([hit for hit in record.hits[start:end] if hit.annotator != excluded_person])
        yield record.law.family.score(*beliefs.state)


def figures_by_checkpoint(truth: Array, scores: Iterator[Array] | Sequence[Array]) -> dict[str, Array]:
    """By name, (looks,); NaN where all items have one score."""
    metrics = [correlate_scores(truth, score) for score in scores]
    return {name: np.array([getattr(one, name) for one in metrics]) for name in SHOWN_FIGURES}
