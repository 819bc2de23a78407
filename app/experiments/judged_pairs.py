"""Comparisons of systems by judges, and the scores that methods give systems by them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.metrics import compare
from app.inference.observations.baseline import against
from app.inference.online import trueskill
from app.inference.online.law import Hit, Parameters
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

    def only(self, rows: Integers) -> "JudgedPairs":
        """Some of them."""
        columns = self.first, self.second, self.judge, self.segment, self.outcome
        return JudgedPairs(*(column[rows] for column in columns))

    def at_random(self, place: Array, share: float, rng: np.random.Generator) -> "JudgedPairs":
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
    of_baseline: bool = False


def graded_columns(judged: JudgedPairs, baseline: int) -> tuple[Integers, Integers, Integers, Integers]:
    """System, judge, segment and outcome of the comparisons with a baseline, as `graded_response.fit` reads them."""
    rows, items, outcomes = against(baseline, judged.first, judged.second, judged.outcome)
    return items, judged.judge[rows], judged.segment[rows], outcomes


def graded(judged: JudgedPairs, baseline: int, systems: int) -> Array:
    """(systems,), by the comparisons with a baseline, which itself gets no score."""
    return graded_response.fit(*graded_columns(judged, baseline), n_items=systems, errors=False).score


def hopkins(judged: JudgedPairs, _baseline: int, systems: int) -> Array:
    return hopkins_may.fit(judged.first, judged.second, judged.outcome, n_items=systems).score


def wins(judged: JudgedPairs, _baseline: int, systems: int) -> Array:
    return expected_wins.fit(judged.first, judged.second, judged.outcome, n_items=systems).score


def skilled(judged: JudgedPairs, _baseline: int, systems: int) -> Array:
    """By TrueSkill, which learns of one comparison after another."""
    beliefs = trueskill.LAW.begin([np.full(systems, number) for number in trueskill.DEFAULT_PRIOR], Parameters())
    pairs = zip(judged.first.tolist(), judged.second.tolist(), strict=True)
    told = zip(judged.judge.tolist(), pairs, ((judged.outcome + 1) / 2).tolist(), strict=True)
    beliefs.take([Hit(judge, pair, (score, 1.0 - score)) for judge, pair, score in told])
    mu: Array = beliefs.state[0]
    return mu


GRADED, HOPKINS, WINS, SKILL, SAME = "graded", "hopkins", "wins", "trueskill", "hopkins-same"
METHODS = {
    GRADED: ScoringMethod("Graded response", graded, of_baseline=True),
    HOPKINS: ScoringMethod("Hopkins and May", hopkins),
    WINS: ScoringMethod("Expected Wins", wins),
    SKILL: ScoringMethod("TrueSkill", skilled),
    SAME: ScoringMethod("Hopkins and May, shown the baseline alone", hopkins, of_baseline=True),
}


def agreement_with(truth: Array, score: Array, baseline: int) -> dict[str, float]:
    """On the systems other than the baseline; both (systems,)."""
    others = np.arange(len(truth)) != baseline
    found = compare(truth[others], score[others])
    return {"pearson": found.pearson, "ndcg": found.ndcg}
