"""Comparisons of systems by judges, and the scores that several methods compute from them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.metrics import correlate_scores
from app.inference.observations.baseline import positions_opponents_and_outcomes_of_baseline
from app.inference.online import trueskill
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.preferences import expected_wins, hopkins_may
from app.inference.systems import graded_response


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """Comparisons of a first system with a second by judges on segments, (n,) each, from 0; outcomes +1, 0, -1."""

    first: Integers
    second: Integers
    judge: Integers
    segment: Integers
    outcome: Integers

    def select_rows(self, rows: Integers) -> "JudgedPairs":
        columns = self.first, self.second, self.judge, self.segment, self.outcome
        return JudgedPairs(*(column[rows] for column in columns))

    def with_random_answers_of_judges(
        self, random_place_of_judge: Array, random_judge_share: float, rng: np.random.Generator
    ) -> "JudgedPairs":
        """Return the comparisons with random answers by a share of the judges.

        Args:
            random_place_of_judge: Random places of the judges, (judges,), from 0 to 1; judges below
                `random_judge_share` give each answer equally often.
            random_judge_share: Share of these judges, 0 to 1.
            rng: Source of randomness.

        """
        is_careless, random_outcomes = (
            random_place_of_judge[self.judge] < random_judge_share,
            rng.integers(-1, 2, size=len(self.outcome)),
        )
        outcome = np.where(is_careless, random_outcomes, self.outcome)
        return JudgedPairs(self.first, self.second, self.judge, self.segment, outcome)


class ScoringMethod(NamedTuple):
    """A method that scores systems.

    Attributes:
        fit: Computes scores from comparisons, a baseline and the number of systems.
        uses_baseline_only: True if the method gets only comparisons with the baseline.

    """

    title: str
    fit: Callable[[JudgedPairs, int, int], Array]
    uses_baseline_only: bool = False


def system_judge_segment_and_outcome_arrays(
    pairs: JudgedPairs, baseline: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return system, judge, segment and outcome of the comparisons with a baseline, for `graded_response.fit`."""
    rows, items, outcomes = positions_opponents_and_outcomes_of_baseline(
        baseline, pairs.first, pairs.second, pairs.outcome
    )
    return items, pairs.judge[rows], pairs.segment[rows], outcomes


def score_graded_response(pairs: JudgedPairs, baseline: int, system_count: int) -> Array:
    """Return scores, (systems,), from the comparisons with a baseline, which itself gets no score."""
    return graded_response.fit(
        *system_judge_segment_and_outcome_arrays(pairs, baseline), n_items=system_count, with_errors=False
    ).score


def score_hopkins_may(pairs: JudgedPairs, _baseline: int, system_count: int) -> Array:
    return hopkins_may.fit(pairs.first, pairs.second, pairs.outcome, n_items=system_count).score


def score_expected_wins(pairs: JudgedPairs, _baseline: int, system_count: int) -> Array:
    return expected_wins.fit(pairs.first, pairs.second, pairs.outcome, n_items=system_count).score


def score_trueskill(comparisons: JudgedPairs, _baseline: int, system_count: int) -> Array:
    """Return TrueSkill scores; TrueSkill learns from one comparison after another."""
    beliefs = trueskill.LAW.initial_beliefs(
        [np.full(system_count, number) for number in trueskill.TRUESKILL_DEFAULT_PRIOR], LawParameters()
    )
    pairs = zip(comparisons.first.tolist(), comparisons.second.tolist(), strict=True)
    judgments = zip(comparisons.judge.tolist(), pairs, ((comparisons.outcome + 1) / 2).tolist(), strict=True)
    beliefs.apply_hits([AnsweredHit(judge, pair, (score, 1.0 - score)) for judge, pair, score in judgments])
    mu: Array = beliefs.state[0]
    return mu


GRADED_METHOD, HOPKINS_METHOD, WINS_METHOD, TRUESKILL_METHOD, HOPKINS_BASELINE_METHOD = (
    "graded",
    "hopkins",
    "wins",
    "trueskill",
    "hopkins-same",
)
SCORING_METHODS = {
    GRADED_METHOD: ScoringMethod("Graded response", score_graded_response, uses_baseline_only=True),
    HOPKINS_METHOD: ScoringMethod("Hopkins and May", score_hopkins_may),
    WINS_METHOD: ScoringMethod("Expected Wins", score_expected_wins),
    TRUESKILL_METHOD: ScoringMethod("TrueSkill", score_trueskill),
    HOPKINS_BASELINE_METHOD: ScoringMethod(
        "Hopkins and May, comparisons with the baseline only", score_hopkins_may, uses_baseline_only=True
    ),
}


def pearson_and_ndcg_without_baseline(truth: Array, score: Array, baseline: int) -> dict[str, float]:
    """Return the agreement of scores with the truth, (systems,) each, for the systems other than the baseline."""
    others = np.arange(len(truth)) != baseline
    metrics = correlate_scores(truth[others], score[others])
    return {"pearson": metrics.pearson, "ndcg": metrics.ndcg}
