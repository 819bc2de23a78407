"""Benefit of annotator-aware scores: `python -m benchmarks.annotator_aware [RUNS]`, default 100.

Spearman with the truth of the plain mean (which is EASL's score), of the fit to all judgments and of the law that is
updated after every HIT, on the same judgments: simulated campaigns; the RankME judgments (examples/data/rankme), each
arm scored against the means of the other arms; and the MLQE judgments (examples/data/mlqe), three of an item's six
scored against the mean of the other three. Beside them, for real data, the fit that acts on all it has learned, sure
that this helps or not, and the mean of somebody who knows which annotators are random. Bands hold 90 % of the runs.
An average hides what a single campaign may lose: how many runs lose more than .005 against the plain mean, and the
worst of them, stand beside it.
"""

import csv
import gzip
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.inference.ground.metrics import spearman
from app.inference.online import beta
from app.inference.online.annotator_aware_law import LAW
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.ratings import annotator_aware

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

DATA = Path(__file__).parents[1] / "examples" / "data"
RANDOM = 0.3  # of the annotators of real data are replaced
LOST = 0.005  # of Spearman, below the plain mean of the same judgments
FULLY = 0.99  # as good as 1, but every judgment counts for something
ITEMS, ANNOTATORS, N = 150, 30, 5
BUDGETS = (1, 2, 3, 4, 5, 10)
RANDOM_SHARES = (0.0, 0.15, 0.3)
METHODS = ("mean", "fit", "online")
GAINS = "fit - mean | lost, worst | online - mean | lost, worst"
MLQE = "et-en", "ro-en"


class Crowd(NamedTuple):
    """Parameters of the annotators: y = 0.5 + bias + scale (truth - 0.5) + noise, cut to the slider's 101 steps.

    Standard deviations: of biases, of log scales, of the noise of a typical annotator, and of its logarithm. neutral:
    the share of items whose truth is the middle. always: what those who do not read answer; None: at random, evenly
    over the slider.
    """

    bias: float
    scale: float
    noise: float
    noise_spread: float
    neutral: float = 0.0
    always: float | None = None


CROWDS = {
    "biases .15": Crowd(0.15, 0.3, 0.15, 0.4),
    "biases .1": Crowd(0.1, 0.3, 0.15, 0.4),
    "all alike": Crowd(0.0, 0.0, 0.15, 0.0),
    "70 % of items neutral, noise .3, who does not read says 50": Crowd(0.0, 0.0, 0.3, 0.0, 0.7, 0.5),
}


def campaign(crowd: Crowd, random_share: float, rng: np.random.Generator) -> tuple[Floats, list[AnsweredHit]]:
    """True scores, and HITs in rounds that show every item once."""
    truth = np.where(np.arange(ITEMS) < crowd.neutral * ITEMS, 0.5, rng.beta(2, 2, ITEMS))
    bias, scale = rng.normal(0, crowd.bias, ANNOTATORS), np.exp(rng.normal(0, crowd.scale, ANNOTATORS))
    noise = crowd.noise * np.exp(rng.normal(0, crowd.noise_spread, ANNOTATORS))
    at_random = rng.permutation(ANNOTATORS) < random_share * ANNOTATORS
    seen: list[set[int]] = [set() for _ in range(ANNOTATORS)]
    hits = []
    for _ in range(max(BUDGETS)):
        for shown in rng.permutation(ITEMS).reshape(-1, N):
            items = shown.tolist()
            who = min(rng.permutation(ANNOTATORS).tolist(), key=lambda j: len(seen[j].intersection(items)))
            seen[who].update(items)
            y = 0.5 + bias[who] + scale[who] * (truth[items] - 0.5) + noise[who] * rng.normal(size=N)
            if at_random[who]:
                y = rng.random(N) if crowd.always is None else np.full(N, crowd.always)
            hits.append(AnsweredHit(who, items, np.round(y.clip(0, 1), 2).tolist()))
    return truth, hits


def flat(hits: list[AnsweredHit]) -> tuple[Numbers, Numbers, Floats]:
    """Items, annotators and scores, one entry per judgment."""
    items = np.array([item for _, shown, _ in hits for item in shown])
    annotators = np.repeat([who for who, _, _ in hits], [len(shown) for _, shown, _ in hits])
    return items, annotators, np.array([score for _, _, scores in hits for score in scores])


def mean(items: Numbers, scores: Floats, n_items: int) -> Floats:
    return np.bincount(items, scores, n_items) / np.maximum(np.bincount(items, minlength=n_items), 1)


def online(hits: list[AnsweredHit], n_items: int, snapshots: tuple[int, ...]) -> Iterator[Floats]:
    """The scores after so many HITs."""
    learned = LAW.initial_beliefs([np.ones(n_items)] * 2, LawParameters())
    for done, hit in enumerate(hits, start=1):
        learned.apply_hit_and_return_change(hit)
        if done in snapshots:
            yield beta.score(*learned.state)


def agreement(scores: Floats, truth: Floats) -> float:
    """Spearman; scores that differ by less than rounding are tied."""
    return spearman(np.round(scores, 9), truth)


def simulated(crowd: Crowd, share: float, seed: int) -> Floats:
    """Spearman of each method at each budget, (3, 6)."""
    rng = np.random.default_rng([seed, int(100 * share)])
    truth, hits = campaign(crowd, share, rng)
    counts = tuple(budget * ITEMS // N for budget in BUDGETS)
    plain, fitted = [], []
    for count in counts:
        items, annotators, scores = flat(hits[:count])
        plain.append(agreement(mean(items, scores, ITEMS), truth))
        fitted.append(agreement(annotator_aware.fit(items, annotators, scores, n_items=ITEMS).score, truth))
    return np.array([plain, fitted, [agreement(scores, truth) for scores in online(hits, ITEMS, counts)]])


def band(values: Floats) -> str:
    low, high = np.percentile(values, (5, 95))
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def gain(differences: Floats) -> str:
    """The mean of the differences from the plain mean; the share of runs that lose more than `LOST`, and the worst."""
    return f"{differences.mean():+.4f} | {(differences < -LOST).mean():.0%}, {differences.min():+.3f}"


def show_simulated(name: str, crowd: Crowd, runs: int, pool: ProcessPoolExecutor) -> None:
    print(f"\n{ITEMS} items, {ANNOTATORS} annotators, {name}: {crowd}; {runs} runs\n")
    print(f"| do not read | judgments per item | mean | fit | online | {GAINS} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for share in RANDOM_SHARES:
        found = np.array(list(pool.map(partial(simulated, crowd, share), range(runs))))
        for k, budget in enumerate(BUDGETS):
            cells = " | ".join(band(found[:, method, k]) for method in range(len(METHODS)))
            gains = " | ".join(gain(found[:, method, k] - found[:, 0, k]) for method in (1, 2))
            print(f"| {share:.0%} | {budget} | {cells} | {gains} |", flush=True)


class Arm(NamedTuple):
    """Judgments, scores in [0, 1], by so many people; and what they are held against, a value per item."""

    items: Numbers
    annotators: Numbers
    scores: Floats
    oracle: Floats
    people: int


def judgments(folder: str) -> list[dict[str, str]]:
    with gzip.open(DATA / folder / "judgments.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rankme() -> dict[tuple[str, str], Arm]:
    """Arms by criterion and name; all judge the same items."""
    rows = judgments("rankme")
    n_items = 1 + max(int(row["item"]) for row in rows)
    arms = {}
    for key in sorted({(row["criterion"], row["arm"]) for row in rows}):
        own = [row for row in rows if (row["criterion"], row["arm"]) == key]
        points = np.array([float(row["score"]) for row in own])
        scores = (points - 1) / 5 if "likert" in key[1] else np.clip(points / 100, 0, 1)
        items = np.array([int(row["item"]) for row in own])
        annotators = np.unique([row["annotator"] for row in own], return_inverse=True)[1]
        arms[key] = Arm(items, annotators, scores, mean(items, scores, n_items), int(annotators.max()) + 1)
    return {key: arm._replace(oracle=oracle(arms, key)) for key, arm in arms.items()}


def oracle(arms: dict[tuple[str, str], Arm], key: tuple[str, str]) -> Floats:
    """The mean of the other arms' means, each moved to mean 0."""
    others = [arm.oracle - arm.oracle.mean() for other, arm in arms.items() if other[0] == key[0] and other != key]
    means: Floats = np.mean(others, axis=0)
    return means


def on_arm(arm: Arm, random_share: float, per_item: int, seed: int) -> Floats:
    """`with_random` on `per_item` judgments of each item."""
    rng = np.random.default_rng([seed, per_item])
    order = rng.permutation(len(arm.items))
    nth = np.array([np.count_nonzero(arm.items[order[:k]] == arm.items[j]) for k, j in enumerate(order)])
    kept = order[nth < per_item]
    return with_random(
        arm._replace(items=arm.items[kept], annotators=arm.annotators[kept], scores=arm.scores[kept]), random_share, rng
    )


def with_random(arm: Arm, random_share: float, rng: np.random.Generator) -> Floats:
    """Spearman of each method, of the fit that acts on everything, and of the mean without the random ones, (5,): some
    annotators replaced by random ones; the online law takes the judgments one by one.
    """
    items, annotators, oracle = arm.items, arm.annotators, arm.oracle
    replaced = rng.permutation(arm.people) < round(random_share * arm.people)
    scores = np.where(replaced[annotators], rng.random(len(items)).round(2), arm.scores)
    hits = [AnsweredHit(int(j), [int(i)], [float(y)]) for i, j, y in zip(items, annotators, scores, strict=True)]
    fit = partial(annotator_aware.fit, items, annotators, scores, n_items=len(oracle))
    return np.array(
        [
            agreement(mean(items, scores, len(oracle)), oracle),
            agreement(fit().score, oracle),
            *(agreement(scores, oracle) for scores in online(hits, len(oracle), (len(hits),))),
            agreement(fit(trust=FULLY).score, oracle),
            agreement(without(items, scores, replaced[annotators], len(oracle)), oracle),
        ]
    )


def without(items: Numbers, scores: Floats, random: npt.NDArray[np.bool_], n_items: int) -> Floats:
    """The mean of the judgments that are not random; where there are none, the mean of all such judgments."""
    kept = ~random
    judged = np.bincount(items[kept], minlength=n_items) > 0
    return np.where(judged, mean(items[kept], scores[kept], n_items), scores[kept].mean())


def on_arms(arms: list[Arm], per_item: int, seed: int) -> Floats:
    """(arms, without and with random annotators, methods)."""
    return np.array([[on_arm(arm, share, per_item, seed) for share in (0.0, RANDOM)] for arm in arms])


def recovered(found: Floats) -> str:
    """Share of the loss by 30 % random annotators that each method recovers; found (2, 5)."""
    lost = found[0, 0] - found[1, 0]
    return " | ".join(f"{(found[1, method] - found[1, 0]) / lost:.0%}" for method in (1, 2, 3, 4))


HEADINGS = (
    "| mean | fit | online | fully | mean, 30 % | fit | online | fully | known "
    "| fit recovers | online | fully | known |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def line(name: str, found: Floats) -> str:
    """A row of a table; found (2, 5)."""
    values = " | ".join(f"{value:.3f}" for value in (*found[0, :4], *found[1]))
    return f"| {name} | {values} | {recovered(found)} |"


def show_losses(name: str, found: Floats) -> None:
    """Losses of single runs, without and with random annotators; found (runs, 2, 5)."""
    print(f"\n{name}: {len(found)} runs\n\n| replaced | {GAINS} |\n|---|---|---|---|---|")
    for share, runs in zip((0.0, RANDOM), found.transpose(1, 0, 2), strict=True):
        gains = " | ".join(gain(runs[:, method] - runs[:, 0]) for method in (1, 2))
        print(f"| {share:.0%} | {gains} |", flush=True)


def show_rankme(runs: int, pool: ProcessPoolExecutor) -> None:
    arms = rankme()
    for per_item in (3, 2):
        print(f"\nRankME, {per_item} judgments per item in random order, {runs} runs; 30 % of annotators replaced\n")
        print(f"| arm {HEADINGS}")
        every = np.array(list(pool.map(partial(on_arms, list(arms.values()), per_item), range(runs))))
        found = every.mean(axis=0)
        names = [" ".join(key) for key in arms]
        groups = {"all arms": slice(None)} | {
            c: [k for k, n in enumerate(names) if c in n] for c in {k[0] for k in arms}
        }
        averages = [(f"**{name}**", found[chosen].mean(axis=0)) for name, chosen in sorted(groups.items())]
        for name, row in [*zip(names, found, strict=True), *averages]:
            print(line(name, row), flush=True)
        show_losses(f"RankME, {per_item} judgments per item", every.reshape(-1, 2, every.shape[-1]))


def on_mlqe(languages: str, seed: int) -> Floats:
    """(without and with random annotators, methods): three judgments of each item, in random order, against the mean
    of the other three.
    """
    rows = [row for row in judgments("mlqe") if row["languages"] == languages]
    items, annotators = (np.array([int(row[name]) for row in rows]) for name in ("item", "annotator"))
    scores = np.array([float(row["score"]) / 100 for row in rows])
    order = np.random.default_rng(seed).permutation(len(rows))
    by_item = order[np.argsort(items[order], kind="stable")].reshape(-1, 6)
    given, held_out = by_item[:, :3], by_item[:, 3:]
    kept = order[np.isin(order, given)]
    arm = Arm(items[kept], annotators[kept], scores[kept], scores[held_out].mean(axis=1), annotators.max() + 1)
    return np.array([with_random(arm, share, np.random.default_rng([seed, 3])) for share in (0.0, RANDOM)])


def show_mlqe(runs: int, pool: ProcessPoolExecutor) -> None:
    print(f"\nMLQE, 3 judgments per item in random order, {runs} runs; 30 % of annotators replaced\n")
    print(f"| languages {HEADINGS}")
    found = {languages: np.array(list(pool.map(partial(on_mlqe, languages), range(runs)))) for languages in MLQE}
    for languages, every in found.items():
        print(line(languages, every.mean(axis=0)), flush=True)
    for languages, every in found.items():
        show_losses(f"MLQE {languages}", every)


def a_process_per_core() -> ProcessPoolExecutor:
    """With more threads than cores OpenBLAS spends most of the time on waiting."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    return ProcessPoolExecutor(mp_context=get_context("spawn"))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with a_process_per_core() as pool:
        for name, crowd in CROWDS.items():
            show_simulated(name, crowd, runs, pool)
        show_rankme(max(runs // 10, 1), pool)
        show_mlqe(max(runs // 10, 1), pool)


if __name__ == "__main__":
    main()
