"""Replay of an arm's answers: the scores of its law after each judgment per item, with bands by the jackknife."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from app.experiments.figures import Band
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ground.jackknife import ends_of_jackknife_correlation_band, jackknife_error
from app.inference.ground.metrics import correlate_scores
from app.inference.online.law import AnsweredHit, Law, LawBeliefs

SHOWN_FIGURES = ("spearman", "pearson")


@dataclass(frozen=True)
class ArmRecord:
    """HITs of an arm in the order of their answers.

    Attributes:
        initial_beliefs: Its beliefs before the first HIT.
        truth: True values, (N,).

    """

    law: Law
    initial_beliefs: LawBeliefs
    hits: Sequence[AnsweredHit]
    truth: Array

    @property
    def judgments(self) -> int:
        """Number of judgments of all items."""
        return sum(len(hit.items) for hit in self.hits)

    @property
    def checkpoint_count(self) -> int:
        """Number of complete rounds of one judgment per item."""
        return self.judgments // len(self.truth)

    @property
    def people(self) -> list[int]:
        """Numbers of the annotators who answered."""
        return sorted({hit.annotator for hit in self.hits})


@dataclass(frozen=True)
class BandedArmResult:
    """Figures of an arm at L checkpoints, with P people.

    Attributes:
        figures: Figures by name, (L,).
        figures_without_person: Figures without each person in turn, (P, L).
        has_answered: Whether the person had answered by then, (P, L).
        score: Scores of the items at the last checkpoint, (N,).

    """

    figures: dict[str, Array]
    figures_without_person: dict[str, Array]
    has_answered: Mask
    score: Array

    @property
    def people(self) -> Integers:
        """Number of people who had answered by each checkpoint, (L,)."""
        count: Integers = self.has_answered.sum(axis=0)
        return count

    def band(self, figure: str) -> Band:
        """Return the band that holds 95 % of such experiments with other people; NaN where only one person had
        answered.
        """
        whole = self.figures[figure]
        return Band(
            whole, *ends_of_jackknife_correlation_band(whole, self.figures_without_person[figure], self.has_answered)
        )

    def standard_errors_at_each_checkpoint(self, figure: str) -> Array:
        """Return the standard error of a figure, (L,)."""
        return jackknife_error(self.figures_without_person[figure], self.has_answered)


def replay_arm(record: ArmRecord, checkpoint_count: int) -> BandedArmResult:
    """Replay an arm up to `checkpoint_count` judgments per item, at most as many as it has."""
    ends = hit_count_at_each_checkpoint(record, checkpoint_count)
    all_scores = list(iterate_scores_at_checkpoints(record, ends))
    figures = partial(truth_correlation_series_by_metric_name, record.truth)
    without_person = [
        figures(iterate_scores_at_checkpoints(record, ends, excluded_person=person)) for person in record.people
    ]
    has_answered = np.array([[first_hit_position(record, person) < end for end in ends] for person in record.people])
    return BandedArmResult(
        figures(all_scores),
        {name: np.array([by_name[name] for by_name in without_person]) for name in SHOWN_FIGURES},
        has_answered,
        all_scores[-1],
    )


def first_hit_position(record: ArmRecord, person: int) -> int:
    return next(k for k, hit in enumerate(record.hits) if hit.annotator == person)


def hit_count_at_each_checkpoint(record: ArmRecord, checkpoint_count: int) -> list[int]:
    """Return after how many HITs each checkpoint has its judgments."""
    cumulative_judgments = np.cumsum([len(hit.items) for hit in record.hits])
    return [
        int(end) + 1
        for end in np.searchsorted(cumulative_judgments, len(record.truth) * np.arange(1, checkpoint_count + 1))
    ]


def iterate_scores_at_checkpoints(
    record: ArmRecord, ends: Sequence[int], excluded_person: int | None = None
) -> Iterator[Array]:
    """Yield the scores of the items at each checkpoint, (N,), from all answers or without those of one person."""
    beliefs = record.initial_beliefs.copy()
    for start, end in pairwise((0, *ends)):
        beliefs.apply_hits([hit for hit in record.hits[start:end] if hit.annotator != excluded_person])
        yield record.law.family.score(*beliefs.state)


def truth_correlation_series_by_metric_name(
    truth: Array, score_vectors: Iterator[Array] | Sequence[Array]
) -> dict[str, Array]:
    """Return each correlation with the truth by its name, one value per score vector, (L,); NaN where all items have
    the same score.
    """
    metrics = [correlate_scores(truth, score) for score in score_vectors]
    return {name: np.array([getattr(metric, name) for metric in metrics]) for name in SHOWN_FIGURES}
