"""How often 95 % intervals of models hold the truth: `python -m benchmarks.coverage_of_models [RUNS]`; 40 runs take
five minutes. Means, medians, laws and Elo are in `benchmarks.coverage`, which has the same crowds.

The truth is what a method says of very many answers by the same people: of scores of items those that it gives after
200 times as many, of coefficients of agreement those of 5,000 items. Scores of pairs are compared around their mean.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from app.inference.agreement import intraclass, krippendorff, score_agreement
from app.inference.agreement.agreement_measure import Agreement
from app.inference.ground.arrays import Array, Integers
from app.inference.preferences import best_worst_counts, bradley_terry, expected_wins, hopkins_may, thurstone
from app.inference.ratings import geometric_mean
from app.inference.systems import graded_response
from benchmarks import coverage
from benchmarks.annotator_aware import Crowd, a_process_per_core
from benchmarks.coverage import CROWDS, Z95, Row, show

ITEMS, ANNOTATORS, SYSTEMS, SEGMENTS = 50, 30, 10, 100
PER_ITEM = (5, 10, 20)
AS_MANY = 200  # times the answers, for the truth
MANY_ITEMS = 5_000
IN_A_HIT = 4
DRAWS = 300
TIE = 0.05


class People(coverage.People):
    """Annotators of a crowd, and items of any number. Scores are not cut to steps, so that pairs tie by their margin
    alone.
    """

    def __init__(self, crowd: Crowd, random_share: float, items: int, rng: np.random.Generator) -> None:
        super().__init__(crowd, random_share, rng, items)
        self.rng, self.items = rng, items

    def say(self, items: Integers, annotators: Integers) -> Array:
        """Scores, in the shape of both."""
        return self.seen(items, annotators, self.rng)

    def shown(self, hits: int, n: int) -> tuple[Integers, Integers, Array]:
        """Hits of n different items each, shown to anybody: items, annotators and scores, (hits, n)."""
        items = np.argsort(self.rng.random((hits, self.items)), axis=1)[:, :n]
        annotators = np.repeat(self.rng.integers(ANNOTATORS, size=(hits, 1)), n, axis=1)
        return items, annotators, self.say(items, annotators)

    def pairs(self, number: int) -> tuple[Integers, Integers, Integers]:
        """First, second, outcome: (number,)."""
        items, _, scores = self.shown(number, 2)
        apart = scores[:, 0] - scores[:, 1]
        return items[:, 0], items[:, 1], np.where(np.abs(apart) < TIE, 0, np.sign(apart)).astype(np.int64)

    def each_item(self, times: int) -> tuple[Integers, Integers, Array]:
        """Every item by so many different annotators: (items * times,) each."""
        annotators = np.argsort(self.rng.random((self.items, ANNOTATORS)), axis=1)[:, :times]
        items = np.repeat(np.arange(self.items)[:, None], times, axis=1)
        return items.ravel(), annotators.ravel(), self.say(items, annotators).round(2).ravel()


class Case(NamedTuple):
    crowd: Crowd
    random_share: float
    per_item: int
    seed: int

    def people(self, items: int, name: str) -> People:
        """New ones for each method."""
        seed = [self.seed, self.per_item, *name.encode()]
        return People(self.crowd, self.random_share, items, np.random.default_rng(seed))


def centred(score: Array) -> Array:
    around: Array = score - np.nanmean(score)
    return around


def row(low: Array, high: Array, truth: Array) -> Row:
    """Share and width of the intervals, where there is one."""
    known = np.isfinite(low) & np.isfinite(high) & np.isfinite(truth)
    if not known.any():
        return (np.nan,) * 4
    low, high, truth = low[known], high[known], truth[known]
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean()), np.nan, np.nan


def between(score: Array, error: Array, truth: Array) -> Row:
    return row(score - Z95 * error, score + Z95 * error, truth)


class Scored(Protocol):
    @property
    def score(self) -> Array: ...

    @property
    def standard_error(self) -> Array: ...


def of_pairs(name: str, fit: Callable[..., Scored], case: Case) -> Row:
    people = case.people(ITEMS, name)
    number = ITEMS * case.per_item // 2  # a pair is a judgment of both
    truth = fit(*people.pairs(AS_MANY * number), n_items=ITEMS)
    found = fit(*people.pairs(number), n_items=ITEMS)
    level = name != "Expected Wins"
    scores = [centred(one.score) if level else one.score for one in (found, truth)]
    return between(scores[0], found.standard_error, scores[1])


def of_best_worst(answers: int, case: Case) -> Row:
    """Intervals if so many annotators answer each tuple; the truth is from different tuples alone."""
    people = case.people(ITEMS, "best-worst")
    hits = ITEMS * case.per_item // IN_A_HIT
    found, truth = counted(people, hits // answers, answers), counted(people, AS_MANY * hits, 1)
    low, high = (np.clip(found.score + side * Z95 * found.standard_error, -1, 1) for side in (-1, 1))
    return row(low, high, truth.score)


def counted(people: People, tuples: int, answers: int) -> best_worst_counts.BestWorstCounts:
    items = np.repeat(people.shown(tuples, IN_A_HIT)[0], answers, axis=0)
    hits = len(items)
    annotators = np.repeat(people.rng.integers(ANNOTATORS, size=(hits, 1)), IN_A_HIT, axis=1)
    scores = people.say(items, annotators)
    return best_worst_counts.fit(np.repeat(np.arange(hits), IN_A_HIT), items.ravel(), scores.ravel(), n_items=ITEMS)


def of_magnitude(case: Case) -> Row:
    """Ratios whose logarithm to the base 10 is twice what a score is above the middle."""
    people = case.people(ITEMS, "magnitude")
    items, annotators, scores = people.each_item(case.per_item)
    found = geometric_mean.fit(items, annotators, 10 ** (2 * scores - 1), n_items=ITEMS, n_annotators=ANNOTATORS)
    items, annotators = np.meshgrid(np.arange(ITEMS), np.arange(ANNOTATORS))
    everything = np.mean([people.say(items, annotators).mean(axis=0) for _ in range(AS_MANY)], axis=0)
    return row(np.log10(found.low), np.log10(found.high), 2 * everything - 1)


def of_graded(case: Case) -> Row:
    """10 systems against a baseline in the middle of them."""
    people = case.people(SYSTEMS + 1, "graded")
    people.worth = np.append(np.linspace(0.35, 0.65, SYSTEMS), 0.5)
    output = people.rng.normal(0, 0.1, (SEGMENTS, SYSTEMS + 1))
    number = 10 * SYSTEMS * case.per_item
    found = against_baseline(people, output, number, with_errors=True)
    truth = against_baseline(people, output, 20 * number, with_errors=False)
    return between(found.score, found.standard_error, truth.score)


def against_baseline(
    people: People, output: Array, number: int, *, with_errors: bool
) -> graded_response.GradedResponse:
    """So many judgments of a system and the baseline, by anybody on any segment."""
    rng = people.rng
    systems, segments = rng.integers(SYSTEMS, size=number), rng.integers(SEGMENTS, size=number)
    judges = rng.integers(ANNOTATORS, size=number)
    theirs, baseline = (people.say(np.full(number, one) if one == SYSTEMS else systems, judges) for one in (0, SYSTEMS))
    apart = theirs - baseline + output[segments, systems] - output[segments, SYSTEMS]
    apart = np.where(people.at_random[judges], theirs - baseline, apart)
    outcomes = np.where(np.abs(apart) < TIE, 0, np.sign(apart)).astype(np.int64)
    return graded_response.fit(systems, judges, segments, outcomes, n_items=SYSTEMS, with_errors=with_errors)


Measure = Callable[[Integers, Integers, Array, np.random.Generator, int], Agreement]


def alpha(items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int) -> Agreement:
    return krippendorff.fit(items, annotators, scores, metric="interval", draws=draws, rng=rng)


def spearman(items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int) -> Agreement:
    return score_agreement.mean_annotator_correlation(items, annotators, scores, draws=draws, rng=rng)


def halves(items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int) -> Agreement:
    return score_agreement.split_half_reliability(items, annotators, scores, draws=draws, rng=rng)


def icc(items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int) -> Agreement:
    return intraclass.one_way_icc(items, annotators, scores, draws=draws, rng=rng)


def of_agreement(name: str, measure: Measure, case: Case) -> Row:
    """On three times as many items as elsewhere, where it is about items."""
    rng = np.random.default_rng([case.seed, 1])
    people = case.people(3 * ITEMS, name)
    found = measure(*people.each_item(case.per_item), rng, DRAWS)
    people.items, people.worth = MANY_ITEMS, people.rng.beta(2, 2, MANY_ITEMS)
    truth = measure(*people.each_item(case.per_item), rng, 0)
    return row(np.array([found.low]), np.array([found.high]), np.array([truth.value]))


INTERVALS: dict[str, Callable[[Case], Row]] = {
    "Bradley-Terry": partial(of_pairs, "Bradley-Terry", bradley_terry.fit),
    "Thurstone": partial(of_pairs, "Thurstone", thurstone.fit),
    "Hopkins & May": partial(of_pairs, "Hopkins & May", hopkins_may.fit),
    "Expected Wins": partial(of_pairs, "Expected Wins", expected_wins.fit),
    "best-worst counts": partial(of_best_worst, 1),
    "best-worst counts, three answers to a tuple": partial(of_best_worst, 3),
    "geometric mean (magnitude, in powers of ten)": of_magnitude,
    "graded response (ten times the judgments)": of_graded,
    "Krippendorff's alpha": partial(of_agreement, "alpha", alpha),
    "Spearman of two annotators": partial(of_agreement, "spearman", spearman),
    "two halves": partial(of_agreement, "halves", halves),
    "intraclass correlation": partial(of_agreement, "icc", icc),
}


def one_run(crowd: Crowd, random_share: float, per_item: int, seed: int) -> dict[str, Row]:
    """Every interval, each on a campaign of its own."""
    case = Case(crowd, random_share, per_item, seed)
    return {name: interval(case) for name, interval in INTERVALS.items()}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with a_process_per_core() as pool:
        for name, (crowd, random_share) in CROWDS.items():
            title = f"{ITEMS} items, {ANNOTATORS} annotators, {name}"
            show(title, partial(one_run, crowd, random_share), PER_ITEM, runs, pool, columns="held, width")


if __name__ == "__main__":
    main()
