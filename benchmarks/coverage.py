"""Measure how often 95 % intervals contain the truth, and how wide they are: `python -m benchmarks.coverage [RUNS]`.

40 runs take four minutes. `benchmarks.coverage_under_rules` measures intervals under rules that select or release items
by their scores.

Three simulated crowds of 30 annotators (those of `annotator_aware`) judge 150 items, each 2, 5 or 10 times. The truth
is the average over all 30 annotators: the mean score, the median, or the mean of z-scores; for Elo, the mean rating
over campaigns of that size. For update laws, the last two figures are estimates from the judgments alone, which the
campaign page shows: the share of intervals that contain the truth, and their width relative to calibrated intervals.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.observations import comparisons
from app.inference.observations.judgment_kinds import can_law_read_answers
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.preferences import elo
from app.inference.ratings import annotator_aware, direct_assessment
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from benchmarks.annotator_aware import ANNOTATORS, ITEMS, ITEMS_PER_HIT, Crowd, make_process_pool

CROWDS = {
    "all alike": (Crowd(0.0, 0.0, 0.15, 0.0), 0.0),
    "biases .15": (Crowd(0.15, 0.3, 0.15, 0.4), 0.0),
    "the same, 15 % random": (Crowd(0.15, 0.3, 0.15, 0.4), 0.15),
}
JUDGMENTS_PER_ITEM = (2, 5, 10)
Z95 = 1.959964
FULL_JUDGMENT_ROUNDS = 40  # in which all annotators judge all items, for the truth
ELO_CAMPAIGNS, RESAMPLES = 60, 200
SCALE = (0.0, 1.0)


class CrowdAnnotators:
    """Annotators of a crowd; an answer is 0.5 + bias + scale (true score - 0.5) + noise, clipped to the scale."""

    def __init__(self, crowd: Crowd, random_share: float, rng: np.random.Generator, items: int = ITEMS) -> None:
        self.true_scores = rng.beta(2, 2, items)
        self.bias, self.scale = rng.normal(0, crowd.bias, ANNOTATORS), np.exp(rng.normal(0, crowd.scale, ANNOTATORS))
        self.noise = crowd.noise * np.exp(rng.normal(0, crowd.noise_spread, ANNOTATORS))
        self.at_random = rng.permutation(ANNOTATORS) < random_share * ANNOTATORS

    def draw_scores(self, items: Integers, annotators: Integers, rng: np.random.Generator) -> Array:
        """Return scores on a slider with 101 steps."""
        return self.draw_unrounded_scores(items, annotators, rng).round(2)

    def draw_unrounded_scores(self, items: Integers, annotators: Integers, rng: np.random.Generator) -> Array:
        """Return scores between 0 and 1 before they are rounded to steps."""
        expected_scores = 0.5 + self.bias[annotators] + self.scale[annotators] * (self.true_scores[items] - 0.5)
        scores = expected_scores + self.noise[annotators] * rng.normal(size=expected_scores.shape)
        clipped_scores: Array = np.where(self.at_random[annotators], rng.random(expected_scores.shape), scores).clip(
            0, 1
        )
        return clipped_scores

    def draw_scores_of_all_pairs(self, rng: np.random.Generator) -> Array:
        """Return scores of all annotators for all items, (rounds, items, annotators)."""
        items, annotators = np.meshgrid(np.arange(ITEMS), np.arange(ANNOTATORS), indexing="ij")
        return np.array([self.draw_scores(items, annotators, rng) for _ in range(FULL_JUDGMENT_ROUNDS)])


class Judgments(NamedTuple):
    """Judgments in HITs of N items, (T,) each; each HIT goes to the annotator who has seen the fewest of its items."""

    hits: Integers
    items: Integers
    annotators: Integers
    scores: Array


def simulate_judgments(annotators_of_crowd: CrowdAnnotators, per_item: int, rng: np.random.Generator) -> Judgments:
    """Simulate a campaign in which all items get the same number of judgments."""
    seen_counts = np.zeros((ANNOTATORS, ITEMS), np.intp)
    items_of_hits = np.concatenate([rng.permutation(ITEMS) for _ in range(per_item)]).reshape(-1, ITEMS_PER_HIT)
    annotator_of_hit = np.zeros(len(items_of_hits), np.intp)
    for hit, items in enumerate(items_of_hits):
        annotator_of_hit[hit] = min(rng.permutation(ANNOTATORS).tolist(), key=lambda j: seen_counts[j, items].sum())
        seen_counts[annotator_of_hit[hit], items] += 1
    items, annotators = items_of_hits.ravel(), np.repeat(annotator_of_hit, ITEMS_PER_HIT)
    return Judgments(
        np.repeat(np.arange(len(items_of_hits)), ITEMS_PER_HIT),
        items,
        annotators,
        annotators_of_crowd.draw_scores(items, annotators, rng),
    )


def bootstrap_interval(judgments: Judgments, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the percentile bootstrap interval of each item's mean, for comparison."""
    by_item = judgments.scores[np.argsort(judgments.items, kind="stable")].reshape(ITEMS, -1)
    draws = rng.integers(by_item.shape[1], size=(1000, *by_item.shape))
    means = np.take_along_axis(by_item[None], draws, axis=2).mean(axis=2)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low, high


def own_standard_error_interval(judgments: Judgments) -> tuple[Array, Array]:
    """Return mean -+ 1.96 standard errors, computed from each item's own judgments, for comparison."""
    by_item = judgments.scores[np.argsort(judgments.items, kind="stable")].reshape(ITEMS, -1)
    half_width = Z95 * by_item.std(axis=1, ddof=1) / by_item.shape[1] ** 0.5
    return by_item.mean(axis=1) - half_width, by_item.mean(axis=1) + half_width


def law_posterior_interval(name: str, judgments: Judgments) -> tuple[Array, Array]:
    """Return the intervals of a law after these judgments."""
    family = ONLINE_LAWS[name].family
    beliefs = ONLINE_LAWS[name].initial_beliefs(
        [np.full(ITEMS, number) for number in family.default_prior], LawParameters()
    )
    columns = (
        judgments.annotators[::ITEMS_PER_HIT],
        judgments.items.reshape(-1, ITEMS_PER_HIT),
        judgments.scores.reshape(-1, ITEMS_PER_HIT),
    )
    beliefs.apply_hits(
        [AnsweredHit(*hit_values) for hit_values in zip(*(column.tolist() for column in columns), strict=True)]
    )
    return family.interval(*beliefs.state)


def annotator_aware_interval(judgments: Judgments) -> tuple[Array, Array]:
    """Return scores -+ 1.96 standard errors of the annotator-aware fit to all judgments."""
    fit = annotator_aware.fit(
        judgments.items, judgments.annotators, judgments.scores, n_items=ITEMS, n_annotators=ANNOTATORS
    )
    return fit.score - Z95 * fit.standard_error, fit.score + Z95 * fit.standard_error


def fit_elo(judgments: Judgments, resamples: int = 0, rng: np.random.Generator | None = None) -> elo.EloRatings:
    """Return Elo ratings by the comparisons within HITs."""
    first, second, outcomes, hits = comparisons.pair_outcome_columns_from_hits(
        judgments.hits, judgments.items, judgments.scores, tie_margin=0.0
    )
    return elo.fit(first, second, outcomes, n_items=ITEMS, dependence_blocks=hits, resamples=resamples, rng=rng)


CoverageRow = tuple[float, float, float, float]  # coverage, mean width, a law's estimated coverage and width ratio


def coverage_row(
    low: Array, high: Array, truth: Array, law_estimates: tuple[float, float] = (np.nan, np.nan)
) -> CoverageRow:
    """Return the coverage and mean width of intervals, followed by a law's estimates of its own."""
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean()), *law_estimates


def coverage_by_interval(crowd: Crowd, random_share: float, per_item: int, seed: int) -> dict[str, CoverageRow]:
    """Simulate one campaign and return the coverage of every kind of interval."""
    rng = np.random.default_rng([seed, per_item])
    annotators = CrowdAnnotators(crowd, random_share, rng)
    all_scores = annotators.draw_scores_of_all_pairs(rng)
    judgments = simulate_judgments(annotators, per_item, rng)
    judgment_columns = judgments.items, judgments.annotators, judgments.scores
    truth = all_scores.mean(axis=(0, 2))
    means: ModeratedMeans = moderated_means_of_tally(Tally.empty(ITEMS).with_judgments_added(*judgment_columns))
    coverage = {
        "mean, bootstrap": coverage_row(*bootstrap_interval(judgments, rng), truth),
        "mean -+ 1.96 errors of its own": coverage_row(*own_standard_error_interval(judgments), truth),
        "mean, calibrated": coverage_row(*means.interval(), truth),
    }
    points = np.rint(100 * judgments.scores).astype(np.intp)
    median = direct_assessment.mean_and_median_labels(judgments.items, judgments.annotators, points, n_labels=101)
    true_medians = 100 * np.median(all_scores.transpose(1, 0, 2).reshape(ITEMS, -1), axis=1)
    coverage["median, calibrated"] = coverage_row(median.low / 100, median.high / 100, true_medians / 100)
    true_z_scores = (all_scores - all_scores.mean(axis=(0, 1))) / all_scores.std(axis=(0, 1))
    standardised = direct_assessment.assess_standardised_scores(*judgment_columns, n_items=ITEMS).scores
    coverage["z-scores, calibrated (in standard deviations)"] = coverage_row(
        standardised.low, standardised.high, true_z_scores.mean(axis=(0, 2))
    )
    true_ratings = np.mean(
        [fit_elo(simulate_judgments(annotators, per_item, rng)).score for _ in range(ELO_CAMPAIGNS)], axis=0
    )
    elo_ratings = fit_elo(judgments, RESAMPLES, rng)
    coverage["Elo, HITs drawn again (in rating points)"] = coverage_row(elo_ratings.low, elo_ratings.high, true_ratings)
    for name in (law.name for law in ONLINE_LAWS.values() if can_law_read_answers(law.reads, "points", 0)):
        ends = law_posterior_interval(name, judgments)
        coverage[f"{name}, posterior"] = coverage_row(*ends, truth, means.expected_coverage_and_width_ratio(*ends))
    coverage["easl-aware, fit to all judgments"] = coverage_row(*annotator_aware_interval(judgments), truth)
    return coverage


def print_coverage_table(
    title: str,
    run: Callable[[int, int], dict[str, CoverageRow]],
    per_items: Sequence[int],
    runs: int,
    pool: ProcessPoolExecutor,
    *,
    columns: str,
) -> None:
    """Simulate runs and print their mean coverage.

    Args:
        title: Title of the table.
        run: Function of judgments per item and seed that returns the coverage of each interval.
        per_items: Judgments per item, a column each.
        runs: Number of runs.
        pool: Processes for the runs.
        columns: Contents of a cell.

    """
    print(f"\n{title}; {runs} runs\n")
    headings = [f"{per_item} an item: {columns}" for per_item in per_items]
    print("| interval | " + " | ".join(headings) + " |\n" + "|---" * (1 + len(per_items)) + "|")
    runs_by_column = [list(pool.map(partial(run, per_item), range(runs))) for per_item in per_items]
    for interval in runs_by_column[0][0]:
        print(
            f"| {interval} | "
            + " | ".join(format_cell([run[interval] for run in runs_of_column]) for runs_of_column in runs_by_column)
            + " |",
            flush=True,
        )


def format_cell(rows: list[CoverageRow]) -> str:
    """Return the mean of the rows as text, with a law's estimates if there are any."""
    coverage, width, estimated_coverage, width_ratio = np.mean(rows, axis=0)
    estimates = "" if np.isnan(estimated_coverage) else f", {estimated_coverage:.2f} and {width_ratio:.1f} times"
    return f"{coverage:.3f}, {width:.3g}{estimates}"


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
                columns="held, width, said",
            )


if __name__ == "__main__":
    main()
