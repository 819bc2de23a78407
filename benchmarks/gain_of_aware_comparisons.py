"""Measure the gain of annotator-aware comparisons, and its bound.

Run `python -m benchmarks.gain_of_aware_comparisons [RUNS]`; the default is 500 runs, a quarter of an hour. The
simulated campaigns are those of `aware_comparisons`, with 10 comparisons per item. The gain is Spearman's correlation
of annotator-aware Bradley-Terry with the truth minus that of Bradley-Terry, with its standard error over the runs.

No method can learn more about annotators than everything. So two more columns have the gain of the same model, with the
true spread of the scores, if it is told which annotators answer at random, or the discrimination of each annotator. The
last column is the share of campaigns in which the annotator-aware correlation is lower by more than .005.
"""

import sys
from typing import NamedTuple

import numpy as np

from app.inference.ground.metrics import spearman
from app.inference.preferences import aware_bradley_terry, bradley_terry
from benchmarks.aware_comparisons import ANNOTATORS, ITEMS, Comparisons, Floats, simulate_comparisons
from benchmarks.coverage_of_aware_comparisons import SCORE_SDS

COMPARISONS_PER_ITEM = 10
RANDOM_SHARES = (0.0, 0.15)
FIRST_SEED, SEED = 910_000, 777
LOSS = 0.005
MAX_NEWTON_STEPS, MAX_STEP, TOLERANCE = 50, 1.0, 1e-8


class Gains(NamedTuple):
    """Correlation with the truth minus that of Bradley-Terry.

    Attributes:
        aware: Of annotator-aware Bradley-Terry.
        random_known: Of Bradley-Terry without the annotators who answer at random.
        discriminations_known: Of Bradley-Terry with the true discriminations.

    """

    aware: float
    random_known: float
    discriminations_known: float


def fit_with_known_annotators(comparisons: Comparisons, discrimination: Floats, score_sd: float) -> Floats:
    """Return the likeliest scores under Normal scores of this standard deviation, (items,), by Newton's method.

    `discrimination` is (annotators,).
    """
    first, second, count = comparisons.first, comparisons.second, comparisons.items
    a, scores = discrimination[comparisons.annotators], np.zeros(count)
    for _ in range(MAX_NEWTON_STEPS):
        chance = 1.0 / (1.0 + np.exp(-a * (scores[first] - scores[second])))
        gradient = sum_of_each_item(comparisons, a * ((comparisons.outcomes > 0) - chance)) - scores / score_sd**2
        precision = np.zeros((count, count))
        bend = a * a * chance * (1.0 - chance)
        np.add.at(precision, (first, second), -bend)
        precision += precision.T
        precision[np.diag_indices(count)] = np.bincount(first, bend, count) + np.bincount(second, bend, count)
        step = np.linalg.solve(precision + np.eye(count) / score_sd**2, gradient)
        largest = float(np.abs(step).max())
        scores += step * min(1.0, MAX_STEP / max(largest, MAX_STEP))
        if largest < TOLERANCE:
            break
    return scores


def sum_of_each_item(comparisons: Comparisons, values: Floats) -> Floats:
    """Return the sum of the values of an item's comparisons, negative where it is the second one, (items,)."""
    first_sums, second_sums = (
        np.bincount(items, values, comparisons.items) for items in (comparisons.first, comparisons.second)
    )
    return np.asarray(first_sums - second_sums, np.float64)


def simulate_gains(score_sd: float, random_share: float, seed: int) -> Gains:
    """Simulate a campaign and return the gains."""
    keys = seed, COMPARISONS_PER_ITEM, int(100 * random_share), int(100 * score_sd), SEED
    truth, discrimination, comparisons = simulate_comparisons(
        COMPARISONS_PER_ITEM, random_share, np.random.default_rng(keys), score_sd=score_sd
    )
    plain = bradley_terry.fit(*comparisons[:3], n_items=ITEMS).score
    compared = np.flatnonzero(np.isfinite(plain))
    aware = aware_bradley_terry.fit(*comparisons[:4], n_items=ITEMS, n_annotators=ANNOTATORS).score
    is_careful = np.where(comparisons.at_random, 0.0, 1.0)
    known = (fit_with_known_annotators(comparisons, known, score_sd) for known in (is_careful, discrimination))
    correlations = [spearman(np.round(scores, 9)[compared], truth[compared]) for scores in (plain, aware, *known)]
    return Gains(*(correlation - correlations[0] for correlation in correlations[1:]))


def main(runs: int) -> None:
    print(f"{ITEMS} items, {ANNOTATORS} annotators, {COMPARISONS_PER_ITEM} comparisons per item, {runs} runs\n")
    print("| spread | answer at random | annotator-aware | random ones known | discriminations known | losing |")
    print("|---|---|---|---|---|---|")
    for score_sd in SCORE_SDS:
        for share in RANDOM_SHARES:
            gains = np.array([simulate_gains(score_sd, share, FIRST_SEED + run) for run in range(runs)])
            means, errors = gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(runs)
            cells = [f"{mean:+.4f} ± {error:.4f}" for mean, error in zip(means, errors, strict=True)]
            losing = (gains[:, 0] < -LOSS).mean()
            print(f"| {score_sd} | {share:.0%} | {' | '.join(cells)} | {losing:.0%} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
