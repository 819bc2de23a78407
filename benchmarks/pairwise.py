"""Compare Bradley-Terry with evalica, and analyse real comparisons: `python -m benchmarks.pairwise [llmfao.csv]`.

The first table times Bradley-Terry on a million simulated judgments, with evalica (Rust) in the same run. The second
has figures of the arguments in examples/data/ukp_convarg1. llmfao.csv is not part of Easel; it is in the repository of
evalica (<https://github.com/dustalov/evalica>, commit 2ebe79e). If its path is given, both implementations are compared
on it, too.
"""

import csv
import sys
import time
from collections.abc import Callable
from typing import Any

import evalica
import numpy as np
import numpy.typing as npt
import pandas as pd

from app.experiments.amidei_2020 import ARGUMENT_JUDGMENTS, load_argument_judgment_columns
from app.inference.ground import metrics
from app.inference.preferences import bradley_terry, transitivity

JUDGMENTS, TOLERANCE = 1_000_000, 1e-6
EVALICA_WINNERS_BY_OUTCOME = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}
Numbers = npt.NDArray[np.int64]


def simulate_comparisons_with_ties(items: int, rng: np.random.Generator) -> tuple[Numbers, Numbers, Numbers]:
    """Return first items, second items and outcomes of a million comparisons of random pairs.

    15 % are ties; the others follow Bradley-Terry with standard Normal scores.
    """
    scores = rng.normal(size=items)
    first = rng.integers(items, size=JUDGMENTS)
    second = (first + rng.integers(1, items, size=JUDGMENTS)) % items
    is_first_winner = rng.random(JUDGMENTS) < 1.0 / (1.0 + np.exp(scores[second] - scores[first]))
    return first, second, np.where(rng.random(JUDGMENTS) < 0.15, 0, np.where(is_first_winner, 1, -1))


def fastest_seconds_and_result(action: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Run an action several times and return the seconds of the fastest run, and the last result."""
    seconds, result = [], None
    for _ in range(times):
        start = time.perf_counter()
        result = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def compare_with_evalica(
    items: int, first: Numbers, second: Numbers, outcomes: Numbers, times: int
) -> tuple[float, ...]:
    """Return the seconds of Easel (with standard errors) and of evalica, and the largest difference in log odds."""
    winners = [EVALICA_WINNERS_BY_OUTCOME[outcome] for outcome in outcomes.tolist()]
    index = pd.RangeIndex(items)
    easel_seconds, fit = fastest_seconds_and_result(
        lambda: bradley_terry.fit(first, second, outcomes, n_items=items, prior=0, tolerance=TOLERANCE), times
    )
    evalica_seconds, evalica_result = fastest_seconds_and_result(
        lambda: evalica.bradley_terry(first, second, winners, index=index, tolerance=TOLERANCE, limit=1000), times
    )
    return (
        easel_seconds,
        evalica_seconds,
        float(np.abs(np.log(evalica_result.scores.sort_index().to_numpy()) - fit.score).max()),
    )


def print_speed() -> None:
    """Print the seconds of Bradley-Terry in Easel and in evalica."""
    print(f"Bradley-Terry, {JUDGMENTS:,} judgments, without a prior, to {TOLERANCE}; ours with standard errors\n")
    print("| items | Easel, s | evalica, s | ratio | largest difference |")
    print("|---:|---:|---:|---:|---:|")
    for items, times in ((100, 5), (1000, 5), (2500, 3), (10_000, 1)):
        easel_seconds, evalica_seconds, largest_difference = compare_with_evalica(
            items, *simulate_comparisons_with_ties(items, np.random.default_rng(items)), times
        )
        print(
            f"| {items:,} | {easel_seconds:.3f} | {evalica_seconds:.3f} | {easel_seconds / evalica_seconds:.2f} "
            f"| {largest_difference:.1e} |"
        )


def print_argument_figures() -> None:
    """Print transitivity and correlations with the published ranking for the arguments."""
    first, second, outcomes, annotators = load_argument_judgment_columns()
    with (ARGUMENT_JUDGMENTS.parent / "arguments.csv").open(encoding="utf-8", newline="") as file:
        arguments = list(csv.DictReader(file))
    topic = np.unique([argument["topic"] for argument in arguments], return_inverse=True)[1]
    published_scores = -np.array([float(argument["rank"]) for argument in arguments])
    seconds, fit = fastest_seconds_and_result(lambda: transitivity.fit(first, second, outcomes, annotators), 3)
    triads, without_ties = int(fit.triads.sum()), int(fit.triads_without_ties.sum())
    print(f"\nukp_convarg1, {first.size:,} judgments of {len(arguments):,} arguments in {topic.max() + 1} topics\n")
    print("| figure | value |")
    print("|---|---:|")
    print(f"| kappa of transitivity over {triads:,} triads ({seconds:.2f} s) | {fit.pooled_kappa:.3f} |")
    print(f"| over the {without_ties:,} without ties | {fit.pooled_kappa_without_ties:.3f} |")
    for name, fit_method in (("Bradley-Terry", bradley_terry.fit), ("Rao-Kupper", bradley_terry.fit_rao_kupper)):
        scores = fit_method(first, second, outcomes, n_items=len(arguments)).score
        correlations = [
            metrics.spearman(published_scores[topic == k], scores[topic == k]) for k in range(topic.max() + 1)
        ]
        print(
            f"| {name} with the published ranking, Spearman per topic: mean; least to most "
            f"| {np.mean(correlations):.3f}; {min(correlations):.3f} to {max(correlations):.3f} |"
        )


def print_llmfao_difference(path: str) -> None:
    """Print how much Easel and evalica differ on llmfao.csv."""
    table = pd.read_csv(path)
    numbers, index = pd.factorize(pd.concat([table["left"], table["right"]]))
    first, second = numbers[: len(table)], numbers[len(table) :]
    outcomes = table["winner"].map({"left": 1, "tie": 0, "right": -1}).to_numpy()
    easel_fit = bradley_terry.fit(first, second, outcomes, prior=0)
    winners = [EVALICA_WINNERS_BY_OUTCOME[outcome] for outcome in outcomes.tolist()]
    evalica_fit = evalica.bradley_terry(
        first, second, winners, index=pd.RangeIndex(len(index)), tolerance=1e-12, limit=1000
    )
    strength = evalica_fit.scores.sort_index().to_numpy()
    largest_difference = np.abs(np.exp(easel_fit.score) / strength - 1.0).max()
    print(
        f"\nllmfao, {len(table):,} judgments of {len(index)} items: "
        f"largest relative difference {largest_difference:.1e}"
    )


def main(paths: list[str]) -> None:
    print_speed()
    print_argument_figures()
    for path in paths:
        print_llmfao_difference(path)


if __name__ == "__main__":
    main(sys.argv[1:])
