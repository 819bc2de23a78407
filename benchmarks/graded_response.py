"""Measure how well methods for pairwise judgments tolerate random judges, and the speed of graded response.

Run `python -m benchmarks.graded_response [FOLDER]`. FOLDER contains llmfao.csv from the repository dustalov/evalica
(commit 2ebe79e), which is not part of Easel; without it, its table is skipped. Methods that Easel does not offer are in
`benchmarks/systems`.

The first table is that of `easel experiment random-judges --comparisons` with more methods: section 6.4 and Table 1 of
Otani et al. 2016. The graded response model and the two-stage model read judgments against the baseline only; the
others read as many judgments of any pairs. The rows below show the other methods with the same judgments against the
baseline. Gold scores are Bradley-Terry's for all judgments without random judges, so methods that read all pairs are
closer to the gold by construction.
"""

import csv
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.experiments import judged_pairs
from app.experiments.comparison_file import ComparisonFile
from app.experiments.judged_pairs import (
    JudgedPairs,
    ScoringMethod,
    score_expected_wins,
    score_trueskill,
    system_judge_segment_and_outcome_arrays,
)
from app.experiments.otani_2016 import AGREEMENT_FIGURES, RANDOM_JUDGE_PERCENTS, RandomJudgesExperiment
from app.experiments.runs import figure_array_by_arm
from app.inference.ground import metrics
from app.inference.ground.inestimable import NotConverged
from app.inference.systems import graded_response
from benchmarks.systems import graded_response_online, two_stage

BASELINE = "Weaver 12k"
OUTCOMES = {"left": 1, "tie": 0, "right": -1}
RUNS, BUDGET, SEED = 50, 1600, 2016

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def load_comparisons(path: Path) -> ComparisonFile:
    """Return the comparisons of llmfao.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names, system = np.unique([[row["left"], row["right"]] for row in rows], return_inverse=True)
    judge, segment = (np.unique([row[key] for row in rows], return_inverse=True)[1] for key in ("worker", "prompt"))
    outcome = np.array([OUTCOMES[row["winner"]] for row in rows])
    first, second = system.reshape(-1, 2).T
    pairs = JudgedPairs(first, second, judge, segment, outcome)
    return ComparisonFile(names.tolist(), pairs, names.tolist().index(BASELINE), BUDGET)


def score_graded_response_online(judged: JudgedPairs, baseline: int, systems: int) -> Floats:
    return graded_response_online.fit(*system_judge_segment_and_outcome_arrays(judged, baseline), n_items=systems).score


def score_two_stage(judged: JudgedPairs, baseline: int, systems: int) -> Floats:
    return two_stage.fit(*system_judge_segment_and_outcome_arrays(judged, baseline), n_items=systems).score


METHODS = judged_pairs.SCORING_METHODS | {
    "graded-online": ScoringMethod("Graded response, online", score_graded_response_online, uses_baseline_only=True),
    "two-stage": ScoringMethod("Two-stage", score_two_stage, uses_baseline_only=True),
    "wins-same": ScoringMethod("Expected Wins, shown the baseline alone", score_expected_wins, uses_baseline_only=True),
    "trueskill-same": ScoringMethod("TrueSkill, shown the baseline alone", score_trueskill, uses_baseline_only=True),
}


def print_robustness(comparisons: ComparisonFile) -> None:
    """Print how well each method agrees with the gold scores by share of random judges."""
    advice = comparisons.advice_on_system(comparisons.baseline).sentence
    print(f"{BASELINE} as baseline, {RUNS} runs of {BUDGET:,} judgments. {advice}\n")
    experiment = RandomJudgesExperiment(comparisons, SEED, METHODS)
    runs = [experiment.run(k) for k in range(RUNS)]
    for name, title in AGREEMENT_FIGURES.items():
        print_agreement_table(title.replace("truth", "gold scores"), figure_array_by_arm(runs, name))


def print_agreement_table(title: str, figures: dict[str, Floats]) -> None:
    """Print means, bands of 95 % of the runs, and the loss at 50 % random judges.

    Args:
        title: Name of the figure.
        figures: Figure by method, (runs, shares) each.

    """
    print(
        f"| {title}, random judges: | "
        + " | ".join(f"{share} %" for share in RANDOM_JUDGE_PERCENTS)
        + " | lost at 50 % |"
    )
    print("|---|" + "---|" * (len(RANDOM_JUDGE_PERCENTS) + 1))
    for arm, values in figures.items():
        mean, low, high = values.mean(axis=0), *np.quantile(values, (0.025, 0.975), axis=0)
        cells = (
            f"{run_mean:.3f} ({run_low:.2f} to {run_high:.2f})"
            for run_mean, run_low, run_high in zip(mean, low, high, strict=True)
        )
        loss = values[:, 0] - values[:, -1]
        error = loss.std(ddof=1) / np.sqrt(len(loss))
        print(f"| {METHODS[arm].title} | " + " | ".join(cells) + f" | {loss.mean():.3f} +- {error:.3f} |")
    print()


def simulate_judgments(n: int, systems: int, judges: int, segments: int, seed: int) -> tuple[list[Integers], Floats]:
    """Return items, judges, segments and outcomes of n judgments with known parameters, and the true performances."""
    rng = np.random.default_rng(seed)
    performances, a = rng.normal(0, np.sqrt(2), systems), rng.lognormal(np.log(1.7), 0.7, judges)
    centre, width = rng.normal(0, 1, segments), rng.lognormal(0, 0.4, segments)
    i, k, j = (rng.integers(count, size=n) for count in (systems, judges, segments))
    return [i, k, j, draw_outcomes(a[k], performances[i] - centre[j], width[j], rng)], performances


def draw_outcomes(a: Floats, distance: Floats, width: Floats, rng: np.random.Generator) -> Integers:
    """Return outcomes of judgments by the model.

    Args:
        a: Sensitivity of the judge.
        distance: Performance minus the centre of the segment's difficulties.
        width: Difference between the segment's difficulties.
        rng: Source of randomness.

    """
    chances = np.stack([1.0 / (1.0 + np.exp(-a * (distance + side * width / 2))) for side in (1, -1)])
    outcomes: Integers = (rng.random(distance.shape) < chances).sum(axis=0) - 1
    return outcomes


def print_speed() -> None:
    """Print the seconds of graded response fits, and their correlation with the truth."""
    print("| Graded response | seconds | Pearson with the truth |")
    print("|---|---|---|")
    columns, performances = simulate_judgments(100_000, 30, 1000, 1000, seed=1)
    for name, action in (
        ("100,000 judgments, 30 systems, 1,000 judges, 1,000 segments", lambda: graded_response.fit(*columns)),
        ("the same without standard errors of a and b", lambda: graded_response.fit(*columns, with_errors=False)),
        (
            "the same, nodes in common as in the paper",
            lambda: graded_response.fit(*columns, with_errors=False, adaptive=False),
        ),
        ("the same, online, one judgment after another", lambda: graded_response_online.fit(*columns)),
    ):
        start = time.perf_counter()
        score = action().score
        print(f"| {name} | {time.perf_counter() - start:.1f} | {metrics.pearson(performances, score):.4f} |")
    print()


def print_active_choice(runs: int = 20, systems: int = 20, judges: int = 20, segments: int = 100) -> None:
    """Print how many judgments the online form needs if it chooses them, and if they are random."""
    budgets = (50, 100, 200, 400, 800)
    sizes = systems, judges, segments
    figures = {
        is_active: np.array(
            [correlations_at_budgets(budgets, seed, sizes, is_active=is_active) for seed in range(runs)]
        )
        for is_active in (False, True)
    }
    print(
        f"| Pearson with the truth after, {runs} runs: | "
        + " | ".join(f"{budget} judgments" for budget in budgets)
        + " |"
    )
    print("|---|" + "---|" * len(budgets))
    for is_active, name in ((False, "asked at random"), (True, "asked by expected information")):
        spread = np.quantile(figures[is_active], (0.025, 0.975), axis=0)
        means = figures[is_active].mean(axis=0)
        cells = (f"{mean:.3f} ({low:.2f} to {high:.2f})" for mean, low, high in zip(means, *spread, strict=True))
        print(f"| {systems} systems, {judges} judges, {segments} segments, {name} | " + " | ".join(cells) + " |")


def correlations_at_budgets(
    budgets: tuple[int, ...], seed: int, sizes: tuple[int, int, int], *, is_active: bool
) -> list[float]:
    """Simulate judges who take turns and never judge a system on a segment twice; return Pearson at each budget."""
    systems, judges, segments = sizes
    rng = np.random.default_rng(seed)
    performances, a = rng.normal(0, np.sqrt(2), systems), rng.lognormal(np.log(1.7), 0.7, judges)
    centre, width = rng.normal(0, 1, segments), rng.lognormal(0, 0.4, segments)
    posterior = graded_response_online.start(n_items=systems, n_annotators=judges, n_segments=segments)
    allowed = np.ones((judges, systems, segments), dtype=bool)
    correlations = []
    for judgment in range(max(budgets)):
        k = judgment % judges
        chosen_pair = graded_response_online.choose(posterior, k, rng, allowed=allowed[k]) if is_active else None
        i, j = chosen_pair or divmod(int(rng.choice(np.flatnonzero(allowed[k]))), segments)
        allowed[k, i, j] = False
        outcome = int(draw_outcomes(a[k], performances[i] - centre[j], width[j], rng))
        graded_response_online.learn(posterior, i, k, j, outcome)
        if judgment + 1 in budgets:
            correlations.append(metrics.pearson(performances, posterior.score))
    return correlations


def simulate_judgments_from_prior(
    n: int, systems: int, judges: int, segments: int, seed: int
) -> tuple[list[Integers], Floats]:
    """Return judgments like `simulate_judgments`, with parameters from the prior of the fit, and the true
    performances.
    """
    rng, prior = np.random.default_rng(seed), graded_response.Prior()
    performances, a = rng.normal(0, prior.tau, systems), rng.lognormal(prior.mu_a, prior.sigma_a, judges)
    b = np.sort(rng.normal(prior.mu_b, prior.sigma_b, (segments, 2)), axis=1)
    i, k, j = (rng.integers(count, size=n) for count in (systems, judges, segments))
    return [i, k, j, draw_outcomes(a[k], performances[i] - b[j].mean(axis=1), np.ptp(b, axis=1)[j], rng)], performances


COVERAGE_CASES = ((5, 400), (10, 300), (10, 600), (10, 1200), (25, 1500))  # systems, judgments


class Recovery(NamedTuple):
    """How well a fit recovers performances.

    Attributes:
        held: Share of intervals that contain the performance, with all errors.
        held_as_known: The same share if judges, segments and the unit are taken as known.
        slope: Slope of scores on performances; 1 if the unit is right.
        pearson: Correlation with the performances.

    """

    held: float
    held_as_known: float
    slope: float
    pearson: float


def measure_recovery(
    fit: graded_response.GradedResponse, as_known: graded_response.GradedResponse, performances: Floats
) -> Recovery:
    """Return how well a fit recovers the performances."""
    contained_shares = [
        np.mean(np.abs(graded_fit.score - performances) <= 1.96 * graded_fit.standard_error)
        for graded_fit in (fit, as_known)
    ]
    slope, _ = np.polyfit(performances, fit.score, 1)
    return Recovery(*map(float, (*contained_shares, slope, metrics.pearson(performances, fit.score))))


def print_coverage(runs: int = 20, judges: int = 15, segments: int = 50) -> None:
    """Print how often intervals contain the performances of simulations, and whether scores have the right unit."""
    print(f"| {judges} judges, {segments} segments, {runs} runs | systems | judgments | intervals that hold |", end="")
    print(" if the rest is taken as known | slope | Pearson |\n|---|---|---|---|---|---|---|")
    for name, simulate in (
        ("segments closer than the prior", simulate_judgments),
        ("drawn from the prior", simulate_judgments_from_prior),
    ):
        for systems, budget in COVERAGE_CASES:
            recoveries = []
            for seed in range(runs):
                columns, performances = simulate(budget, systems, judges, segments, seed)
                with suppress(NotConverged):
                    fit = graded_response.fit(*columns, n_items=systems)
                    as_known = graded_response.fit(*columns, n_items=systems, with_errors=False)
                    recoveries.append(measure_recovery(fit, as_known, performances))
            cells = " | ".join(f"{figure:.3f}" for figure in np.mean(recoveries, axis=0))
            print(f"| {name} | {systems} | {budget:,} | {cells} |", flush=True)
    print()


def main(folder: Path | None = None) -> None:
    if folder is not None:
        print_robustness(load_comparisons(folder / "llmfao.csv"))
    print_speed()
    print_coverage()
    print_active_choice()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
