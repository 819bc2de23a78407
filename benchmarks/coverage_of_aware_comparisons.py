"""Measure how often intervals of annotator-aware comparisons contain the truth.

Run `python -m benchmarks.coverage_of_aware_comparisons [RUNS]`; the default is 24 runs, half an hour.

The simulated campaigns are those of `aware_comparisons`: 100 items and 20 annotators with different discriminations (SD
.3 of their logarithm), some of them random; in one crowd, two reverse their answers. Pairs are random, or
chosen by a selection rule under the law `trueskill-aware`. The truth is the item's score in log odds for a typical
careful annotator, centred on the mean, and the discriminations of the annotators. `known spread` is the fit without
draws, which the quality rules use. The band of the careful annotators contains 90 % of resampled sets of runs.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from app.inference.ground.metrics import spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.preferences import aware_bradley_terry, bradley_terry
from app.inference.preferences.aware_bradley_terry_draws import fit_with_sampled_errors
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import make_process_pool
from benchmarks.aware_comparisons import (
    ANNOTATORS,
    BUDGETS,
    ITEMS,
    RANDOM_SHARES,
    SCORE_SD,
    SPREAD,
    Comparisons,
    Floats,
    simulate_comparisons,
)
from benchmarks.coverage import Z95

LEADING_ITEMS, REVERSED_ANNOTATORS = 10, 2
SCORE_SDS = (0.75, SCORE_SD)
RULES = ("best", "information")
SEED, DRAWS_SEED = 2027, 35
RESAMPLES = 1000


class Coverage(NamedTuple):
    """Result of one campaign.

    Attributes:
        items: Share of items whose interval contains their score.
        leading: Share of the ten items with the highest scores whose interval contains their score.
        annotators: Share of careful annotators whose interval contains their discrimination.
        other_annotators: The same of annotators with random or reversed answers; NaN without any.
        annotator_width: Mean width of the intervals of careful annotators.
        known_spread_annotators: `annotators` of the fit without draws.
        width: Mean width of the items' intervals, in log odds.
        known_spread_items: `items` of the fit without draws.
        known_spread_width: `width` of the fit without draws.
        plain_width: `width` of Bradley-Terry.
        slope: Slope of scores on the truth.
        gain: Spearman with the truth minus that of Bradley-Terry.

    """

    items: float
    leading: float
    annotators: float
    other_annotators: float
    annotator_width: float
    known_spread_annotators: float
    width: float
    known_spread_items: float
    known_spread_width: float
    plain_width: float
    slope: float
    gain: float


def coverage_of_campaign(true_scores: Floats, discrimination: Floats, comparisons: Comparisons) -> Coverage:
    """Fit one campaign and return how often its intervals contain the truth."""
    fit = fit_with_sampled_errors(
        *comparisons[:4], n_items=ITEMS, n_annotators=ANNOTATORS, rng=np.random.default_rng(DRAWS_SEED)
    )
    known_spread = aware_bradley_terry.fit(*comparisons[:4], n_items=ITEMS, n_annotators=ANNOTATORS)
    plain = bradley_terry.fit(*comparisons[:3], n_items=ITEMS)
    compared = fit.group == 0
    centred_scores = true_scores - true_scores[compared].mean()
    contains_score, known_spread_contains_score = (
        (np.abs(one_fit.score - centred_scores) <= Z95 * one_fit.standard_error)[compared]
        for one_fit in (fit, known_spread)
    )
    is_careful = fit.annotator_estimable & (discrimination > 0.0)
    is_other = fit.annotator_estimable & (discrimination <= 0.0)
    contains_discrimination, known_spread_contains_discrimination = (
        (one_fit.discrimination_low <= discrimination) & (discrimination <= one_fit.discrimination_high)
        for one_fit in (fit, known_spread)
    )
    annotator_width = fit.discrimination_high - fit.discrimination_low
    width, known_spread_width, plain_width = (
        float(2 * Z95 * one_fit.standard_error[compared].mean()) for one_fit in (fit, known_spread, plain)
    )
    return Coverage(
        float(contains_score.mean()),
        float(contains_score[np.argsort(-fit.score[compared])[:LEADING_ITEMS]].mean()),
        float(contains_discrimination[is_careful].mean()),
        float(contains_discrimination[is_other].mean()) if is_other.any() else np.nan,
        float(annotator_width[is_careful].mean()),
        float(known_spread_contains_discrimination[is_careful].mean()),
        width,
        float(known_spread_contains_score.mean()),
        known_spread_width,
        plain_width,
        float(np.polyfit(true_scores[compared], fit.score[compared], 1)[0]),
        spearman(fit.score[compared], true_scores[compared]) - spearman(plain.score[compared], true_scores[compared]),
    )


def simulate_random_pairs(per_item: int, random_share: float, score_sd: float, n_reversed: int, seed: int) -> Coverage:
    """Simulate a campaign with random pairs and return its coverage."""
    rng = np.random.default_rng([SEED, seed, per_item, int(100 * random_share), int(100 * score_sd), n_reversed])
    return coverage_of_campaign(
        *simulate_comparisons(per_item, random_share, rng, score_sd=score_sd, n_reversed=n_reversed)
    )


class ComparingAnnotators:
    """Annotators who compare two items by the items' scores, (N,), and their own discriminations, (K,)."""

    def __init__(self, truth: Floats, discrimination: Floats) -> None:
        self.truth, self.discrimination = truth, discrimination
        self.number = len(discrimination)

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Floats:
        """Return the scores of both items: 1 for the preferred one, 0 for the other."""
        first, second = items
        chance = expit(self.discrimination[annotator] * (self.truth[first] - self.truth[second]))
        return np.array([1.0, 0.0] if rng.random() < chance else [0.0, 1.0])


def simulate_pairs_of_rule(rule: str, per_item: int, random_share: float, seed: int) -> Coverage:
    """Simulate a campaign under a selection rule and return its coverage."""
    rng = np.random.default_rng([SEED, seed, per_item, int(100 * random_share), RULES.index(rule)])
    true_scores = rng.normal(0, SCORE_SD, ITEMS)
    at_random = np.arange(ANNOTATORS) < round(random_share * ANNOTATORS)
    discrimination = np.where(at_random, 0.0, np.exp(rng.normal(0, SPREAD, ANNOTATORS)))
    settings = SelectionSettings(
        judgments_per_item=10**6, items_per_hit=2, min_items=2, gamma=0.1, best_count=LEADING_ITEMS
    )
    law = ONLINE_LAWS["trueskill-aware"]
    campaign = SimulatedCampaign(SELECTION_RULES[rule], law, settings, LawParameters(), ITEMS, rng)
    annotators = ComparingAnnotators(true_scores, discrimination)
    hits = [*islice(campaign.iterate_hits_while_answering_them(annotators), ITEMS * per_item // 2)]
    first, second = np.array([hit.items for hit in hits]).T
    outcomes = np.array([1 if hit.values[0] > hit.values[1] else -1 for hit in hits])
    hit_annotators = np.array([hit.annotator for hit in hits])
    return coverage_of_campaign(
        true_scores, discrimination, Comparisons(first, second, outcomes, hit_annotators, at_random, ITEMS)
    )


def list_rows() -> list[tuple[str, Callable[[int], Coverage]]]:
    """Return the first cells of each row, and a function that simulates the campaign with a given run number."""
    rows: list[tuple[str, Callable[[int], Coverage]]] = [
        (f"random | {sd:g} | {share:.0%} | {per_item}", partial(simulate_random_pairs, per_item, share, sd, 0))
        for sd in SCORE_SDS
        for share in RANDOM_SHARES
        for per_item in BUDGETS
    ]
    rows += [
        (
            f"random | {SCORE_SD:g} | 10% and {REVERSED_ANNOTATORS} reversed | {per_item}",
            partial(simulate_random_pairs, per_item, 0.1, SCORE_SD, REVERSED_ANNOTATORS),
        )
        for per_item in BUDGETS
    ]
    return rows + [
        (f"{rule} | {SCORE_SD:g} | 15% | {per_item}", partial(simulate_pairs_of_rule, rule, per_item, 0.15))
        for rule in RULES
        for per_item in BUDGETS
    ]


def format_mean(figures: Floats) -> str:
    """Return the mean of the figures of runs, (runs,), or a dash if a run has none."""
    return "-" if np.isnan(figures).any() else f"{figures.mean():.3f}"


def format_mean_with_band(figures: Floats) -> str:
    """Return the mean of the figures of runs, (runs,), with a band that contains 90 % of the means of resamples."""
    resamples = np.random.default_rng(1).integers(len(figures), size=(RESAMPLES, len(figures)))
    low, high = np.percentile(figures[resamples].mean(axis=1), (5, 95))
    return f"{figures.mean():.3f} ({low:.3f} to {high:.3f})"


def main(runs: int) -> None:
    print(f"{ITEMS} items, {ANNOTATORS} annotators, {runs} runs\n")
    columns = ("pairs", "spread", "answer at random", "comparisons per item", *Coverage._fields, "lowest run")
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    with make_process_pool() as pool:
        for name, simulate_run in list_rows():
            coverages = np.array(list(pool.map(simulate_run, range(runs))))
            by_figure = dict(zip(Coverage._fields, coverages.T, strict=True))
            means = " | ".join(
                (format_mean_with_band if figure == "annotators" else format_mean)(figures)
                for figure, figures in by_figure.items()
            )
            print(f"| {name} | {means} | {by_figure['items'].min():.2f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 24)
