"""Comparisons of systems by judges, and the scores that methods give systems by them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.metrics import correlate_scores
from app.inference.observations.baseline import select_baseline_judgments
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
        """Some of them."""
        columns = self.first, self.second, self.judge, self.segment, self.outcome
        return JudgedPairs(*(column[rows] for column in columns))

    def randomise_judges(self, place: Array, share: float, rng: np.random.Generator) -> "JudgedPairs":
        """The same, but that a share of the judges gives each answer equally often: those whose place is below it.
        place: (judges,), from 0 to 1.
        """
        careless, answers = place[self.judge] < share, rng.integers(-1, 2, size=len(self.outcome))
        outcome = np.where(careless, answers, self.outcome)
        return JudgedPairs(self.first, self.second, self.judge, self.segment, outcome)


class ScoringMethod(NamedTuple):
    """How systems are scored. fit: of comparisons, a baseline and the number of systems; of_baseline: whether it is
    shown comparisons with the baseline alone.
    """

    title: str
    fit: Callable[[JudgedPairs, int, int], Array]
    uses_baseline_only: bool = False


def graded_response_columns(pairs: JudgedPairs, baseline: int) -> tuple[Integers, Integers, Integers, Integers]:
    """System, judge, segment and outcome of the comparisons with a baseline, as `graded_response.fit` reads them."""
    rows, items, outcomes = select_baseline_judgments(baseline, pairs.first, pairs.second, pairs.outcome)
    return items, pairs.judge[rows], pairs.segment[rows], outcomes


def score_graded_response(pairs: JudgedPairs, baseline: int, systems: int) -> Array:
    """(systems,), by the comparisons with a baseline, which itself gets no score."""
    return graded_response.fit(*graded_response_columns(pairs, baseline), n_items=systems, with_errors=False).score


def score_hopkins_may(pairs: JudgedPairs, _baseline: int, systems: int) -> Array:
    return hopkins_may.fit(pairs.first, pairs.second, pairs.outcome, n_items=systems).score


def score_expected_wins(pairs: JudgedPairs, _baseline: int, systems: int) -> Array:
    return expected_wins.fit(pairs.first, pairs.second, pairs.outcome, n_items=systems).score


def score_trueskill(comparisons: JudgedPairs, _baseline: int, systems: int) -> Array:
    """By TrueSkill, which learns of one comparison after another."""
    beliefs = trueskill.LAW.initial_beliefs(
        [np.full(systems, number) for number in trueskill.TRUESKILL_DEFAULT_PRIOR], LawParameters()
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
        "Hopkins and May, shown the baseline alone", score_hopkins_may, uses_baseline_only=True
    ),
}


def agreement_with_truth(truth: Array, score: Array, baseline: int) -> dict[str, float]:
    """On the systems other than the baseline; both (systems,)."""
    others = np.arange(len(truth)) != baseline
    metrics = correlate_scores(truth[others], score[others])
    return {"pearson": metrics.pearson, "ndcg": metrics.ndcg}
