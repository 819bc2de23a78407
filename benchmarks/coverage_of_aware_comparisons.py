"""How often intervals of annotator-aware comparisons hold the truth.

`python -m benchmarks.coverage_of_aware_comparisons [RUNS]`, 20 runs by default.

Simulated campaigns of `aware_comparisons`: 100 items and 20 annotators whose discriminations differ (SD .3 of their
logarithm), of whom some answer at random. The truth are the scores in log odds of a typical careful annotator, around
their mean. Beside it the slope of the scores on the truth: below 1 where scores are drawn together.
"""

import sys
from typing import NamedTuple

import numpy as np

from app.inference.preferences import aware_bradley_terry
from benchmarks.aware_comparisons import ANNOTATORS, BUDGETS, ITEMS, RANDOM_SHARES, simulate
from benchmarks.coverage import Z95


class Coverage(NamedTuple):
    """Result of one campaign.

    Attributes:
        items: Share of the items whose interval holds their score.
        leading: The same of the ten items with the highest scores.
        annotators: Share of the careful annotators whose interval holds their discrimination.
        width: Mean width of the items' intervals, in log odds.
        slope: Slope of scores on the truth.

    """

    items: float
    leading: float
    annotators: float
    width: float
    slope: float


LEADING = 10


def coverage_of_campaign(per_item: int, random_share: float, seed: int) -> Coverage:
    rng = np.random.default_rng([seed, per_item, int(100 * random_share), 5])
    truth, discrimination, judged = simulate(per_item, random_share, rng)
    fit = aware_bradley_terry.fit(*judged[:4], n_items=ITEMS, n_annotators=ANNOTATORS)
    compared = fit.group == 0
    apart = fit.score - truth + truth[compared].mean()
    held = (np.abs(apart) <= Z95 * fit.standard_error)[compared]
    known = fit.annotator_estimable & ~judged.at_random
    held_annotators = np.abs(fit.discrimination - discrimination) <= Z95 * fit.discrimination_error
    return Coverage(
        float(held.mean()),
        float(held[np.argsort(-fit.score[compared])[:LEADING]].mean()),
        float(held_annotators[known].mean()),
        float(2 * Z95 * fit.standard_error[compared].mean()),
        float(np.polyfit(truth[compared], fit.score[compared], 1)[0]),
    )


def main(runs: int) -> None:
    print(f"{ITEMS} items, {ANNOTATORS} annotators, {runs} runs\n")
    print("| answer at random | comparisons per item | items | leading 10 | careful annotators | width | slope |")
    print("|---|---|---|---|---|---|---|")
    for share in RANDOM_SHARES:
        for per_item in BUDGETS:
            mean = np.mean([coverage_of_campaign(per_item, share, seed) for seed in range(runs)], axis=0)
            print(f"| {share:.0%} | {per_item} | {' | '.join(f'{figure:.3f}' for figure in mean)} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
