"""Measure how often 95 % intervals of models contain the truth: `python -m benchmarks.coverage_of_models [RUNS]`.

40 runs take five minutes. `benchmarks.coverage` has means, medians, laws and Elo, with the same crowds.

The truth is the result of a method for very many answers by the same annotators: 200 times as many for scores of items,
and 5,000 items for coefficients of agreement. Scores from pairs are centred on their mean.
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
from benchmarks.annotator_aware import Crowd, make_process_pool
from benchmarks.coverage import CROWDS, Z95, CoverageRow, print_coverage_table

ITEMS, ANNOTATORS, SYSTEMS, SEGMENTS = 50, 30, 10, 100
JUDGMENTS_PER_ITEM = (5, 10, 20)
TRUTH_ANSWERS_FACTOR = 200  # times as many answers, for the truth
TRUTH_ITEMS = 5_000
ITEMS_PER_HIT = 4
BOOTSTRAP_DRAWS = 300
TIE_MARGIN = 0.05


class UnroundedAnnotators(coverage.CrowdAnnotators):
    """Annotators of a crowd, with any number of items. Scores are not rounded, so pairs tie only by their margin."""

    def __init__(self, crowd: Crowd, random_share: float, items: int, rng: np.random.Generator) -> None:
        super().__init__(crowd, random_share, rng, items)
        self.rng, self.items = rng, items

    def draw_scores_of_both(self, items: Integers, annotators: Integers) -> Array:
        """Return unrounded scores, in the shape of both arrays."""
        return self.draw_unrounded_scores(items, annotators, self.rng)

    def draw_hits(self, hits: int, n: int) -> tuple[Integers, Integers, Array]:
        """Return items, annotators and scores of HITs with n different items each, (hits, n)."""
        items = np.argsort(self.rng.random((hits, self.items)), axis=1)[:, :n]
        annotators = np.repeat(self.rng.integers(ANNOTATORS, size=(hits, 1)), n, axis=1)
        return items, annotators, self.draw_scores_of_both(items, annotators)

    def draw_pairs(self, number: int) -> tuple[Integers, Integers, Integers]:
        """Return first items, second items and outcomes of comparisons, (number,) each."""
        items, _, scores = self.draw_hits(number, 2)
        differences = scores[:, 0] - scores[:, 1]
        return (
            items[:, 0],
            items[:, 1],
            np.where(np.abs(differences) < TIE_MARGIN, 0, np.sign(differences)).astype(np.int64),
        )

    def draw_judgments_of_all_items(self, times: int) -> tuple[Integers, Integers, Array]:
        """Return items, annotators and scores, (items * times,) each; different annotators judge each item `times`
        times.
        """
        annotators = np.argsort(self.rng.random((self.items, ANNOTATORS)), axis=1)[:, :times]
        items = np.repeat(np.arange(self.items)[:, None], times, axis=1)
        return items.ravel(), annotators.ravel(), self.draw_scores_of_both(items, annotators).round(2).ravel()


class Case(NamedTuple):
    """Settings and seed of a simulated campaign."""

    crowd: Crowd
    random_share: float
    judgments_per_item: int
    seed: int

    def make_annotators(self, items: int, name: str) -> UnroundedAnnotators:
        """Return new annotators for a method."""
        seed = [self.seed, self.judgments_per_item, *name.encode()]
        return UnroundedAnnotators(self.crowd, self.random_share, items, np.random.default_rng(seed))


def centre_scores(score: Array) -> Array:
    """Return scores minus their mean."""
    centred: Array = score - np.nanmean(score)
    return centred


def coverage_of_known_intervals(low: Array, high: Array, truth: Array) -> CoverageRow:
    """Return coverage and mean width of the intervals that are known."""
    is_known = np.isfinite(low) & np.isfinite(high) & np.isfinite(truth)
    if not is_known.any():
        return (np.nan,) * 4
    low, high, truth = low[is_known], high[is_known], truth[is_known]
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean()), np.nan, np.nan


def coverage_of_standard_errors(score: Array, error: Array, truth: Array) -> CoverageRow:
    """Return the coverage of scores -+ 1.96 standard errors."""
    return coverage_of_known_intervals(score - Z95 * error, score + Z95 * error, truth)


class FitWithStandardErrors(Protocol):
    """Result of a fit that has scores and standard errors."""

    @property
    def score(self) -> Array: ...

    @property
    def standard_error(self) -> Array: ...


def coverage_of_pairs_method(name: str, fit: Callable[..., FitWithStandardErrors], case: Case) -> CoverageRow:
    """Return the coverage of a method for comparisons; scores are centred unless they are Expected Wins."""
    annotators = case.make_annotators(ITEMS, name)
    number = ITEMS * case.judgments_per_item // 2  # a pair is a judgment of both
    truth = fit(*annotators.draw_pairs(TRUTH_ANSWERS_FACTOR * number), n_items=ITEMS)
    fitted = fit(*annotators.draw_pairs(number), n_items=ITEMS)
    is_relative = name != "Expected Wins"
    scores = [
        centre_scores(fit_or_truth.score) if is_relative else fit_or_truth.score for fit_or_truth in (fitted, truth)
    ]
    return coverage_of_standard_errors(scores[0], fitted.standard_error, scores[1])


def coverage_of_best_worst_counts(answers: int, case: Case) -> CoverageRow:
    """Return the coverage if `answers` annotators answer each tuple; the truth comes from different tuples only."""
    annotators = case.make_annotators(ITEMS, "best-worst")
    hits = ITEMS * case.judgments_per_item // ITEMS_PER_HIT
    fitted, truth = (
        fit_best_worst_counts(annotators, hits // answers, answers),
        fit_best_worst_counts(annotators, TRUTH_ANSWERS_FACTOR * hits, 1),
    )
    low, high = (np.clip(fitted.score + side * Z95 * fitted.standard_error, -1, 1) for side in (-1, 1))
    return coverage_of_known_intervals(low, high, truth.score)


def fit_best_worst_counts(
    annotators: UnroundedAnnotators, tuples: int, answers: int
) -> best_worst_counts.BestWorstCounts:
    """Simulate answers to tuples and return their best-worst counts."""
    items = np.repeat(annotators.draw_hits(tuples, ITEMS_PER_HIT)[0], answers, axis=0)
    hits = len(items)
    hit_annotators = np.repeat(annotators.rng.integers(ANNOTATORS, size=(hits, 1)), ITEMS_PER_HIT, axis=1)
    scores = annotators.draw_scores_of_both(items, hit_annotators)
    return best_worst_counts.fit(
        np.repeat(np.arange(hits), ITEMS_PER_HIT), items.ravel(), scores.ravel(), n_items=ITEMS
    )


def coverage_of_magnitudes(case: Case) -> CoverageRow:
    """Return the coverage for ratios whose logarithm to base 10 is twice the score's distance from the middle."""
    annotators = case.make_annotators(ITEMS, "magnitude")
    items, judging_annotators, scores = annotators.draw_judgments_of_all_items(case.judgments_per_item)
    fitted = geometric_mean.fit(
        items, judging_annotators, 10 ** (2 * scores - 1), n_items=ITEMS, n_annotators=ANNOTATORS
    )
    items, judging_annotators = np.meshgrid(np.arange(ITEMS), np.arange(ANNOTATORS))
    true_scores = np.mean(
        [annotators.draw_scores_of_both(items, judging_annotators).mean(axis=0) for _ in range(TRUTH_ANSWERS_FACTOR)],
        axis=0,
    )
    return coverage_of_known_intervals(np.log10(fitted.low), np.log10(fitted.high), 2 * true_scores - 1)


def coverage_of_graded_response(case: Case) -> CoverageRow:
    """Return the coverage for 10 systems and a baseline in the middle of them."""
    annotators = case.make_annotators(SYSTEMS + 1, "graded")
    annotators.true_scores = np.append(np.linspace(0.35, 0.65, SYSTEMS), 0.5)
    output_effects = annotators.rng.normal(0, 0.1, (SEGMENTS, SYSTEMS + 1))
    number = 10 * SYSTEMS * case.judgments_per_item
    fitted = fit_judgments_against_baseline(annotators, output_effects, number, with_errors=True)
    truth = fit_judgments_against_baseline(annotators, output_effects, 20 * number, with_errors=False)
    return coverage_of_standard_errors(fitted.score, fitted.standard_error, truth.score)


def fit_judgments_against_baseline(
    annotators: UnroundedAnnotators, output_effects: Array, number: int, *, with_errors: bool
) -> graded_response.GradedResponse:
    """Fit judgments of random systems against the baseline, by random annotators on random segments."""
    rng = annotators.rng
    systems, segments = rng.integers(SYSTEMS, size=number), rng.integers(SEGMENTS, size=number)
    judges = rng.integers(ANNOTATORS, size=number)
    system_scores, baseline_scores = (
        annotators.draw_scores_of_both(np.full(number, first_system) if first_system == SYSTEMS else systems, judges)
        for first_system in (0, SYSTEMS)
    )
    differences = (
        system_scores - baseline_scores + output_effects[segments, systems] - output_effects[segments, SYSTEMS]
    )
    differences = np.where(annotators.at_random[judges], system_scores - baseline_scores, differences)
    outcomes = np.where(np.abs(differences) < TIE_MARGIN, 0, np.sign(differences)).astype(np.int64)
    return graded_response.fit(systems, judges, segments, outcomes, n_items=SYSTEMS, with_errors=with_errors)


Measure = Callable[[Integers, Integers, Array, np.random.Generator, int], Agreement]


def krippendorff_alpha(
    items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int
) -> Agreement:
    return krippendorff.fit(items, annotators, scores, metric="interval", draws=draws, rng=rng)


def mean_spearman(
    items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int
) -> Agreement:
    return score_agreement.mean_annotator_correlation(items, annotators, scores, draws=draws, rng=rng)


def split_half_reliability(
    items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int
) -> Agreement:
    return score_agreement.split_half_reliability(items, annotators, scores, draws=draws, rng=rng)


def one_way_icc(
    items: Integers, annotators: Integers, scores: Array, rng: np.random.Generator, draws: int
) -> Agreement:
    return intraclass.one_way_icc(items, annotators, scores, draws=draws, rng=rng)


def coverage_of_agreement(name: str, measure: Measure, case: Case) -> CoverageRow:
    """Return the coverage of a coefficient of agreement, with three times as many items as elsewhere."""
    rng = np.random.default_rng([case.seed, 1])
    annotators = case.make_annotators(3 * ITEMS, name)
    fitted = measure(*annotators.draw_judgments_of_all_items(case.judgments_per_item), rng, BOOTSTRAP_DRAWS)
    annotators.items, annotators.true_scores = TRUTH_ITEMS, annotators.rng.beta(2, 2, TRUTH_ITEMS)
    truth = measure(*annotators.draw_judgments_of_all_items(case.judgments_per_item), rng, 0)
    return coverage_of_known_intervals(np.array([fitted.low]), np.array([fitted.high]), np.array([truth.value]))


COVERAGE_FUNCTIONS_BY_INTERVAL: dict[str, Callable[[Case], CoverageRow]] = {
    "Bradley-Terry": partial(coverage_of_pairs_method, "Bradley-Terry", bradley_terry.fit),
    "Thurstone": partial(coverage_of_pairs_method, "Thurstone", thurstone.fit),
    "Hopkins & May": partial(coverage_of_pairs_method, "Hopkins & May", hopkins_may.fit),
    "Expected Wins": partial(coverage_of_pairs_method, "Expected Wins", expected_wins.fit),
    "best-worst counts": partial(coverage_of_best_worst_counts, 1),
    "best-worst counts, three answers to a tuple": partial(coverage_of_best_worst_counts, 3),
    "geometric mean (magnitude, in powers of ten)": coverage_of_magnitudes,
    "graded response (ten times the judgments)": coverage_of_graded_response,
    "Krippendorff's alpha": partial(coverage_of_agreement, "alpha", krippendorff_alpha),
    "Spearman of two annotators": partial(coverage_of_agreement, "spearman", mean_spearman),
    "two halves": partial(coverage_of_agreement, "halves", split_half_reliability),
    "intraclass correlation": partial(coverage_of_agreement, "icc", one_way_icc),
}


def coverage_by_interval(crowd: Crowd, random_share: float, per_item: int, seed: int) -> dict[str, CoverageRow]:
    """Return the coverage of every interval, each in its own campaign."""
    case = Case(crowd, random_share, per_item, seed)
    return {name: coverage_of_interval(case) for name, coverage_of_interval in COVERAGE_FUNCTIONS_BY_INTERVAL.items()}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with make_process_pool() as pool:
        for name, (crowd, random_share) in CROWDS.items():
            title = f"{ITEMS} items, {ANNOTATORS} annotators, {name}"
            print_coverage_table(
                title,
                partial(coverage_by_interval, crowd, random_share),
                JUDGMENTS_PER_ITEM,
                runs,
                pool,
                columns="held, width",
            )


if __name__ == "__main__":
    main()
