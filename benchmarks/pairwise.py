"""Judgments of pairs, beside the usual tools and on real data: `python -m benchmarks.pairwise [llmfao.csv]`.

Bradley-Terry on a million simulated judgments, with evalica (Rust) in the same run; then what the methods say about
the arguments of examples/data/ukp_convarg1. llmfao.csv is not part of Easel: it lies in the repository of evalica
(<https://github.com/dustalov/evalica>, commit 2ebe79e), and with its path the two are compared on it too.
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
WINNER = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}
Numbers = npt.NDArray[np.int64]


def judged(items: int, rng: np.random.Generator) -> tuple[Numbers, Numbers, Numbers]:
    """A million judgments of random pairs, 15 % ties, the rest by Bradley-Terry on scores that are Normal(0, 1)."""
    score = rng.normal(size=items)
    first = rng.integers(items, size=JUDGMENTS)
    second = (first + rng.integers(1, items, size=JUDGMENTS)) % items
    won = rng.random(JUDGMENTS) < 1.0 / (1.0 + np.exp(score[second] - score[first]))
    return first, second, np.where(rng.random(JUDGMENTS) < 0.15, 0, np.where(won, 1, -1))


def fastest(action: Callable[[], Any], times: int) -> tuple[float, Any]:
    """Seconds of the fastest run, and what the last one gave."""
    seconds, answer = [], None
    for _ in range(times):
        start = time.perf_counter()
        answer = action()
        seconds.append(time.perf_counter() - start)
    return min(seconds), answer


def beside_evalica(items: int, first: Numbers, second: Numbers, outcomes: Numbers, times: int) -> tuple[float, ...]:
    """Seconds of ours (with standard errors) and of evalica, and the largest difference of a score in log odds."""
    winners = [WINNER[outcome] for outcome in outcomes.tolist()]
    index = pd.RangeIndex(items)
    ours, fit = fastest(
        lambda: bradley_terry.fit(first, second, outcomes, n_items=items, prior=0, tolerance=TOLERANCE), times
    )
    theirs, answer = fastest(
        lambda: evalica.bradley_terry(first, second, winners, index=index, tolerance=TOLERANCE, limit=1000), times
    )
    return ours, theirs, float(np.abs(np.log(answer.scores.sort_index().to_numpy()) - fit.score).max())


def speed() -> None:
    print(f"Bradley-Terry, {JUDGMENTS:,} judgments, without a prior, to {TOLERANCE}; ours with standard errors\n")
    print("| items | Easel, s | evalica, s | ratio | largest difference |")
    print("|---:|---:|---:|---:|---:|")
    for items, times in ((100, 5), (1000, 5), (2500, 3), (10_000, 1)):
        ours, theirs, apart = beside_evalica(items, *judged(items, np.random.default_rng(items)), times)
        print(f"| {items:,} | {ours:.3f} | {theirs:.3f} | {ours / theirs:.2f} | {apart:.1e} |")


def of_arguments() -> None:
    first, second, outcomes, annotators = load_argument_judgment_columns()
    with (ARGUMENT_JUDGMENTS.parent / "arguments.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    topic = np.unique([row["topic"] for row in rows], return_inverse=True)[1]
    published = -np.array([float(row["rank"]) for row in rows])
    seconds, fit = fastest(lambda: transitivity.fit(first, second, outcomes, annotators), 3)
    triads, without_ties = int(fit.triads.sum()), int(fit.triads_without_ties.sum())
    print(f"\nukp_convarg1, {first.size:,} judgments of {len(rows):,} arguments in {topic.max() + 1} topics\n")
    print("| figure | value |")
    print("|---|---:|")
    print(f"| kappa of transitivity over {triads:,} triads ({seconds:.2f} s) | {fit.pooled_kappa:.3f} |")
    print(f"| over the {without_ties:,} without ties | {fit.pooled_kappa_without_ties:.3f} |")
    for name, method in (("Bradley-Terry", bradley_terry.fit), ("Rao-Kupper", bradley_terry.fit_rao_kupper)):
        score = method(first, second, outcomes, n_items=len(rows)).score
        rho = [metrics.spearman(published[topic == k], score[topic == k]) for k in range(topic.max() + 1)]
        print(
            f"| {name} with the published ranking, Spearman per topic: mean; least to most "
            f"| {np.mean(rho):.3f}; {min(rho):.3f} to {max(rho):.3f} |"
        )


def llmfao(path: str) -> None:
    table = pd.read_csv(path)
    numbers, index = pd.factorize(pd.concat([table["left"], table["right"]]))
    first, second = numbers[: len(table)], numbers[len(table) :]
    outcomes = table["winner"].map({"left": 1, "tie": 0, "right": -1}).to_numpy()
    ours = bradley_terry.fit(first, second, outcomes, prior=0)
    winners = [WINNER[outcome] for outcome in outcomes.tolist()]
    theirs = evalica.bradley_terry(first, second, winners, index=pd.RangeIndex(len(index)), tolerance=1e-12, limit=1000)
    strength = theirs.scores.sort_index().to_numpy()
    apart = np.abs(np.exp(ours.score) / strength - 1.0).max()
    print(f"\nllmfao, {len(table):,} judgments of {len(index)} items: largest relative difference {apart:.1e}")


def main(paths: list[str]) -> None:
    speed()
    of_arguments()
    for path in paths:
        llmfao(path)


if __name__ == "__main__":
    main(sys.argv[1:])
