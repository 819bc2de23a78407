"""How methods for pairwise judgments bear random judges, and how long the graded response model takes.

The methods that it is compared with and that Easel does not offer are in `benchmarks/systems`.

`python -m benchmarks.graded_response [FOLDER]`: FOLDER holds llmfao.csv of the repository dustalov/evalica (commit
2ebe79e); it is not shipped, and without it its table is left out.

The table is that of `easel experiment random-judges --comparisons`, with more methods: section 6.4 and Table 1 of Otani
et al. 2016. The graded response model and the two-stage model see judgments against the baseline alone, the others as
many judgments of any pairs; below these, what the others make of the same judgments against the baseline. The gold
scores are Bradley-Terry's by all judgments as they are, so the methods that see all kinds of pairs are nearer to the
gold by their making.
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
    system_judge_segment_outcome_arrays,
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


def load(path: Path) -> ComparisonFile:
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names, system = np.unique([[row["left"], row["right"]] for row in rows], return_inverse=True)
    judge, segment = (np.unique([row[key] for row in rows], return_inverse=True)[1] for key in ("worker", "prompt"))
    outcome = np.array([OUTCOMES[row["winner"]] for row in rows])
    first, second = system.reshape(-1, 2).T
    pairs = JudgedPairs(first, second, judge, segment, outcome)
    return ComparisonFile(names.tolist(), pairs, names.tolist().index(BASELINE), BUDGET)


def graded_live(judged: JudgedPairs, baseline: int, systems: int) -> Floats:
    return graded_response_online.fit(*system_judge_segment_outcome_arrays(judged, baseline), n_items=systems).score


def staged(judged: JudgedPairs, baseline: int, systems: int) -> Floats:
    return two_stage.fit(*system_judge_segment_outcome_arrays(judged, baseline), n_items=systems).score


METHODS = judged_pairs.SCORING_METHODS | {
    "graded-online": ScoringMethod("Graded response, online", graded_live, uses_baseline_only=True),
    "two-stage": ScoringMethod("Two-stage", staged, uses_baseline_only=True),
    "wins-same": ScoringMethod("Expected Wins, shown the baseline alone", score_expected_wins, uses_baseline_only=True),
    "trueskill-same": ScoringMethod("TrueSkill, shown the baseline alone", score_trueskill, uses_baseline_only=True),
}


def robustness(of: ComparisonFile) -> None:
    print(f"{BASELINE} as baseline, {RUNS} runs of {BUDGET:,} judgments. {of.advice_on_system(of.baseline).sentence}\n")
    experiment = RandomJudgesExperiment(of, SEED, METHODS)
    found = [experiment.run(k) for k in range(RUNS)]
    for name, title in AGREEMENT_FIGURES.items():
        table(title.replace("truth", "gold scores"), figure_array_by_arm(found, name))


def table(title: str, figures: dict[str, Floats]) -> None:
    """figures: (runs, shares) by method. Mean and the band of 95 % of the runs; last what 50 % random judges cost."""
    print(
        f"| {title}, random judges: | "
        + " | ".join(f"{share} %" for share in RANDOM_JUDGE_PERCENTS)
        + " | lost at 50 % |"
    )
    print("|---|" + "---|" * (len(RANDOM_JUDGE_PERCENTS) + 1))
    for arm, values in figures.items():
        mean, low, high = values.mean(axis=0), *np.quantile(values, (0.025, 0.975), axis=0)
        cells = (f"{m:.3f} ({below:.2f} to {above:.2f})" for m, below, above in zip(mean, low, high, strict=True))
        loss = values[:, 0] - values[:, -1]
        error = loss.std(ddof=1) / np.sqrt(len(loss))
        print(f"| {METHODS[arm].title} | " + " | ".join(cells) + f" | {loss.mean():.3f} +- {error:.3f} |")
    print()


def drawn(n: int, systems: int, judges: int, segments: int, seed: int) -> tuple[list[Integers], Floats]:
    """Judgments from known parameters: items, judges, segments, outcomes; and theta."""
    rng = np.random.default_rng(seed)
    theta, a = rng.normal(0, np.sqrt(2), systems), rng.lognormal(np.log(1.7), 0.7, judges)
    centre, width = rng.normal(0, 1, segments), rng.lognormal(0, 0.4, segments)
    i, k, j = (rng.integers(count, size=n) for count in (systems, judges, segments))
    return [i, k, j, answers(a[k], theta[i] - centre[j], width[j], rng)], theta


def answers(a: Floats, distance: Floats, width: Floats, rng: np.random.Generator) -> Integers:
    chances = np.stack([1.0 / (1.0 + np.exp(-a * (distance + side * width / 2))) for side in (1, -1)])
    given: Integers = (rng.random(distance.shape) < chances).sum(axis=0) - 1
    return given


def speed() -> None:
    print("| Graded response | seconds | Pearson with the truth |")
    print("|---|---|---|")
    data, theta = drawn(100_000, 30, 1000, 1000, seed=1)
    for name, action in (
        ("100,000 judgments, 30 systems, 1,000 judges, 1,000 segments", lambda: graded_response.fit(*data)),
        ("the same without standard errors of a and b", lambda: graded_response.fit(*data, with_errors=False)),
        (
            "the same, nodes in common as in the paper",
            lambda: graded_response.fit(*data, with_errors=False, adaptive=False),
        ),
        ("the same, online, one judgment after another", lambda: graded_response_online.fit(*data)),
    ):
        start = time.perf_counter()
        score = action().score
        print(f"| {name} | {time.perf_counter() - start:.1f} | {metrics.pearson(theta, score):.4f} |")
    print()


def active(runs: int = 20, systems: int = 20, judges: int = 20, segments: int = 100) -> None:
    """Simulated: how many judgments the online form needs when it chooses what to ask, and when chance does."""
    budgets = (50, 100, 200, 400, 800)
    sizes = systems, judges, segments
    figures = {
        choosing: np.array([curve(budgets, seed, sizes, choosing=choosing) for seed in range(runs)])
        for choosing in (False, True)
    }
    print(f"| Pearson with the truth after, {runs} runs: | " + " | ".join(f"{b} judgments" for b in budgets) + " |")
    print("|---|" + "---|" * len(budgets))
    for choosing, name in ((False, "asked at random"), (True, "asked by expected information")):
        spread = np.quantile(figures[choosing], (0.025, 0.975), axis=0)
        means = figures[choosing].mean(axis=0)
        cells = (f"{m:.3f} ({low:.2f} to {high:.2f})" for m, low, high in zip(means, *spread, strict=True))
        print(f"| {systems} systems, {judges} judges, {segments} segments, {name} | " + " | ".join(cells) + " |")


def curve(budgets: tuple[int, ...], seed: int, sizes: tuple[int, int, int], *, choosing: bool) -> list[float]:
    """Judges take turns; nobody judges a system on a segment twice."""
    systems, judges, segments = sizes
    rng = np.random.default_rng(seed)
    theta, a = rng.normal(0, np.sqrt(2), systems), rng.lognormal(np.log(1.7), 0.7, judges)
    centre, width = rng.normal(0, 1, segments), rng.lognormal(0, 0.4, segments)
    posterior = graded_response_online.start(n_items=systems, n_annotators=judges, n_segments=segments)
    allowed = np.ones((judges, systems, segments), dtype=bool)
    reached = []
    for judgment in range(max(budgets)):
        k = judgment % judges
        chosen = graded_response_online.choose(posterior, k, rng, allowed=allowed[k]) if choosing else None
        i, j = chosen or divmod(int(rng.choice(np.flatnonzero(allowed[k]))), segments)
        allowed[k, i, j] = False
        outcome = int(answers(a[k], theta[i] - centre[j], width[j], rng))
        graded_response_online.learn(posterior, i, k, j, outcome)
        if judgment + 1 in budgets:
            reached.append(metrics.pearson(theta, posterior.score))
    return reached


def drawn_from_prior(n: int, systems: int, judges: int, segments: int, seed: int) -> tuple[list[Integers], Floats]:
    """Judgments as `drawn` has them, from parameters that are drawn from the prior of the fit."""
    rng, prior = np.random.default_rng(seed), graded_response.Prior()
    theta, a = rng.normal(0, prior.tau, systems), rng.lognormal(prior.mu_a, prior.sigma_a, judges)
    b = np.sort(rng.normal(prior.mu_b, prior.sigma_b, (segments, 2)), axis=1)
    i, k, j = (rng.integers(count, size=n) for count in (systems, judges, segments))
    return [i, k, j, answers(a[k], theta[i] - b[j].mean(axis=1), np.ptp(b, axis=1)[j], rng)], theta


COVERAGE_CASES = ((5, 400), (10, 300), (10, 600), (10, 1200), (25, 1500))  # systems, judgments


class Recovery(NamedTuple):
    """How well a fit recovers performances.

    Attributes:
        held: Share of the performances that their intervals hold, with all errors.
        held_as_known: The same if judges, segments and the unit are taken as known.
        slope: Slope of scores on performances; 1 if the unit is right.
        pearson: Correlation with the performances.

    """

    held: float
    held_as_known: float
    slope: float
    pearson: float


def recovery(fit: graded_response.GradedResponse, as_known: graded_response.GradedResponse, theta: Floats) -> Recovery:
    held = [np.mean(np.abs(one.score - theta) <= 1.96 * one.standard_error) for one in (fit, as_known)]
    slope, _ = np.polyfit(theta, fit.score, 1)
    return Recovery(*map(float, (*held, slope, metrics.pearson(theta, fit.score))))


def coverage(runs: int = 20, judges: int = 15, segments: int = 50) -> None:
    """Simulated from the model: how often intervals hold performances, and whether these have the right unit."""
    print(f"| {judges} judges, {segments} segments, {runs} runs | systems | judgments | intervals that hold |", end="")
    print(" if the rest is taken as known | slope | Pearson |\n|---|---|---|---|---|---|---|")
    for name, draw in (("segments closer than the prior", drawn), ("drawn from the prior", drawn_from_prior)):
        for systems, budget in COVERAGE_CASES:
            found = []
            for seed in range(runs):
                data, theta = draw(budget, systems, judges, segments, seed)
                with suppress(NotConverged):
                    fit = graded_response.fit(*data, n_items=systems)
                    as_known = graded_response.fit(*data, n_items=systems, with_errors=False)
                    found.append(recovery(fit, as_known, theta))
            cells = " | ".join(f"{figure:.3f}" for figure in np.mean(found, axis=0))
            print(f"| {name} | {systems} | {budget:,} | {cells} |", flush=True)
    print()


def main(folder: Path | None = None) -> None:
    if folder is not None:
        robustness(load(folder / "llmfao.csv"))
    speed()
    coverage()
    active()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
