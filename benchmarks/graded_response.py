"""How methods for pairwise judgments bear random judges, and how long the graded response model takes.

The methods that it is compared with and that Easel does not offer are in `benchmarks/systems`.

`python -m benchmarks.graded_response [FOLDER]`: FOLDER holds llmfao.csv and llmfao-golden.csv of the repository
dustalov/evalica (commit 2ebe79e); they are not shipped, and without them their table is left out.

The table follows section 6.4 and Table 1 of Otani et al. 2016. In every run a share of the judges answers at random,
each of the three answers equally often. The graded response model and the two-stage model see judgments against the
baseline alone, the others as many judgments of any pairs; below these, what the others make of the same judgments
against the baseline. The gold scores are the logarithms of the published Bradley-Terry scores of all judgments as they
are, so the methods that see all kinds of pairs are nearer to the gold by their making.
"""

import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.inference.ground import metrics
from app.inference.observations.baseline import against, baseline_advice
from app.inference.online import trueskill
from app.inference.online.law import Hit, Parameters
from app.inference.preferences import expected_wins, hopkins_may
from app.inference.systems import graded_response
from benchmarks.systems import graded_response_online, two_stage

BASELINE = "Weaver 12k"
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
RUNS, BUDGET = 50, 1600

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Judgments(NamedTuple):
    """Of pairs of systems: (n,) each; gold (systems,)."""

    first: Integers
    second: Integers
    judge: Integers
    segment: Integers
    outcome: Integers
    gold: Floats
    baseline: int

    def only(self, rows: npt.NDArray[np.generic]) -> "Judgments":
        first, second, judge, segment, outcome = (column[rows] for column in self[:5])
        return Judgments(first, second, judge, segment, outcome, self.gold, self.baseline)


def load(folder: Path) -> Judgments:
    with (folder / "llmfao-golden.csv").open(newline="", encoding="utf-8") as file:
        gold = {row["item"]: float(row["score"]) for row in csv.DictReader(file) if row["algorithm"] == "bradley_terry"}
    with (folder / "llmfao.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = sorted(gold)
    number = {name: n for n, name in enumerate(names)}
    outcome = np.array([{"left": 1, "tie": 0, "right": -1}[row["winner"]] for row in rows])
    judge, segment = (np.unique([row[key] for row in rows], return_inverse=True)[1] for key in ("worker", "prompt"))
    first, second = (np.array([number[row[side]] for row in rows]) for side in ("left", "right"))
    return Judgments(first, second, judge, segment, outcome, np.log([gold[n] for n in names]), number[BASELINE])


def with_random_judges(judgments: Judgments, share: float, rng: np.random.Generator) -> Judgments:
    judges = int(judgments.judge.max()) + 1
    careless = rng.permutation(judges) < round(share * judges)
    answers = rng.integers(-1, 2, len(judgments.outcome))
    return judgments._replace(outcome=np.where(careless[judgments.judge], answers, judgments.outcome))


def graded(judgments: Judgments) -> Floats:
    return graded_response.fit(*columns(judgments), n_items=len(judgments.gold), errors=False).score


def graded_live(judgments: Judgments) -> Floats:
    return graded_response_online.fit(*columns(judgments), n_items=len(judgments.gold)).score


def staged(judgments: Judgments) -> Floats:
    return two_stage.fit(*columns(judgments), n_items=len(judgments.gold)).score


def columns(judgments: Judgments) -> tuple[Integers, Integers, Integers, Integers]:
    rows, items, outcomes = against(judgments.baseline, *judgments[:2], judgments.outcome)
    return items, judgments.judge[rows], judgments.segment[rows], outcomes


def hopkins(judgments: Judgments) -> Floats:
    return hopkins_may.fit(*judgments[:2], judgments.outcome, n_items=len(judgments.gold)).score


def wins(judgments: Judgments) -> Floats:
    return expected_wins.fit(*judgments[:2], judgments.outcome, n_items=len(judgments.gold)).score


def skilled(judgments: Judgments) -> Floats:
    priors = [np.full(len(judgments.gold), number) for number in trueskill.DEFAULT_PRIOR]
    beliefs = trueskill.LAW.begin(priors, Parameters())
    pairs = zip(*(column.tolist() for column in judgments[:2]), strict=True)
    judged = zip(judgments.judge.tolist(), pairs, ((judgments.outcome + 1) / 2).tolist(), strict=True)
    beliefs.take([Hit(judge, pair, (score, 1.0 - score)) for judge, pair, score in judged])
    mu: Floats = beliefs.state[0]
    return mu


METHODS: dict[str, tuple[Callable[[Judgments], Floats], bool]] = {
    "Graded response": (graded, True),
    "Graded response, online": (graded_live, True),
    "Two-stage": (staged, True),
    "Hopkins & May": (hopkins, False),
    "Expected Wins": (wins, False),
    "TrueSkill": (skilled, False),
    "Hopkins & May, baseline only": (hopkins, True),
    "Expected Wins, baseline only": (wins, True),
    "TrueSkill, baseline only": (skilled, True),
}


def robustness(judgments: Judgments) -> None:
    with_baseline = np.flatnonzero((judgments.first == judgments.baseline) != (judgments.second == judgments.baseline))
    advice = baseline_advice(columns(judgments)[3])
    print(f"{BASELINE} as baseline, {RUNS} runs of {BUDGET:,} judgments. {advice.sentence}\n")
    figures = np.array([run(judgments, with_baseline, seed) for seed in range(RUNS)])
    for position, figure in enumerate(("Correlation (Pearson) with the gold scores", "nDCG")):
        table(figure, figures[..., position])


def run(judgments: Judgments, with_baseline: Integers, seed: int) -> list[list[tuple[float, float]]]:
    """Pearson and nDCG by share and method."""
    answer = []
    for share in SHARES:
        rng = np.random.default_rng(seed)  # the same judges turn careless in a row of the table as its share grows
        noisy = with_random_judges(judgments, share, rng)
        samples = {
            True: noisy.only(rng.choice(with_baseline, BUDGET, replace=False)),
            False: noisy.only(rng.choice(len(noisy.first), BUDGET, replace=False)),
        }
        answer.append([agreement(judgments, method(samples[only])) for method, only in METHODS.values()])
    return answer


def agreement(judgments: Judgments, score: Floats) -> tuple[float, float]:
    """On the systems other than the baseline, which the graded response model gives no score."""
    others = np.arange(len(score)) != judgments.baseline
    found = metrics.compare(judgments.gold[others], score[others])
    return found.pearson, found.ndcg


def table(title: str, figures: Floats) -> None:
    """figures: (runs, shares, methods). Mean and the band of 95 % of the runs; last what 50 % random judges cost."""
    mean, low, high = figures.mean(axis=0), *np.quantile(figures, (0.025, 0.975), axis=0)
    loss = figures[:, 0] - figures[:, -1]
    print(f"| {title}, random judges: | " + " | ".join(f"{share:.0%}" for share in SHARES) + " | lost at 50% |")
    print("|---|" + "---|" * (len(SHARES) + 1))
    for m, name in enumerate(METHODS):
        cells = (f"{mean[s, m]:.3f} ({low[s, m]:.2f} to {high[s, m]:.2f})" for s in range(len(SHARES)))
        error = loss[:, m].std(ddof=1) / np.sqrt(len(loss))
        print(f"| {name} | " + " | ".join(cells) + f" | {loss[:, m].mean():.3f} +- {error:.3f} |")
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
        ("the same without standard errors of a and b", lambda: graded_response.fit(*data, errors=False)),
        ("the same, nodes in common as in the paper", lambda: graded_response.fit(*data, errors=False, adaptive=False)),
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


def main(folder: Path | None = None) -> None:
    if folder is not None:
        robustness(load(folder))
    speed()
    active()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
