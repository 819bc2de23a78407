"""Measure the benefit of annotator-aware scores: `python -m benchmarks.annotator_aware [RUNS]`, 100 runs by default.

Three methods read the same judgments: the plain mean (the score of EASL), the fit to all judgments, and the law that is
updated after every HIT. The tables show their Spearman correlation with the truth.

The data are simulated campaigns; RankME (examples/data/rankme), with the means of the other arms as the truth of each
arm; and MLQE (examples/data/mlqe), with three of an item's six judgments as data and the mean of the other three as the
truth. For real data, *fully* is the fit with full trust in what it learned about annotators, and *known* is the mean
without the random annotators.

Bands contain 90 % of the runs. A mean hides losses of single campaigns, so the tables also have the share of runs that
lose more than .005 compared with the plain mean, and the worst run.
"""

import csv
import gzip
import os
import sys
from collections.abc import Iterator, Sequence
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
REPLACED_SHARE = 0.3  # of the annotators of real data, by random ones
LOSS_LIMIT = 0.005  # in Spearman, compared with the plain mean
FULL_TRUST = 0.99  # almost 1; every judgment keeps some weight
ITEMS, ANNOTATORS, ITEMS_PER_HIT = 150, 30, 5
BUDGETS = (1, 2, 3, 4, 5, 10)
RANDOM_SHARES = (0.0, 0.15, 0.3)
METHODS = ("mean", "fit", "online")
GAINS = "fit - mean | lost, worst | online - mean | lost, worst"
MLQE = "et-en", "ro-en"


class Crowd(NamedTuple):
    """Parameters of annotators who answer 0.5 + bias + scale (truth - 0.5) + noise, rounded to 101 steps of a slider.

    Attributes:
        bias: Standard deviation of biases.
        scale: Standard deviation of log scales.
        noise: Standard deviation of the noise of a typical annotator.
        noise_spread: Standard deviation of the noise's logarithm.
        neutral: Share of items whose true value is the middle.
        always: Answer of annotators who do not read; None for random answers.

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


def simulate_campaign(crowd: Crowd, random_share: float, rng: np.random.Generator) -> tuple[Floats, list[AnsweredHit]]:
    """Return true scores, and answered HITs in rounds that show every item once."""
    true_scores = np.where(np.arange(ITEMS) < crowd.neutral * ITEMS, 0.5, rng.beta(2, 2, ITEMS))
    bias, scale = rng.normal(0, crowd.bias, ANNOTATORS), np.exp(rng.normal(0, crowd.scale, ANNOTATORS))
    noise = crowd.noise * np.exp(rng.normal(0, crowd.noise_spread, ANNOTATORS))
    at_random = rng.permutation(ANNOTATORS) < random_share * ANNOTATORS
    seen_items: list[set[int]] = [set() for _ in range(ANNOTATORS)]
    hits = []
    for _ in range(max(BUDGETS)):
        for hit_items in rng.permutation(ITEMS).reshape(-1, ITEMS_PER_HIT):
            items = hit_items.tolist()
            annotator = min(rng.permutation(ANNOTATORS).tolist(), key=lambda j: len(seen_items[j].intersection(items)))
            seen_items[annotator].update(items)
            scores = (
                0.5
                + bias[annotator]
                + scale[annotator] * (true_scores[items] - 0.5)
                + noise[annotator] * rng.normal(size=ITEMS_PER_HIT)
            )
            if at_random[annotator]:
                scores = rng.random(ITEMS_PER_HIT) if crowd.always is None else np.full(ITEMS_PER_HIT, crowd.always)
            hits.append(AnsweredHit(annotator, items, np.round(scores.clip(0, 1), 2).tolist()))
    return true_scores, hits


def judgment_columns(hits: Sequence[AnsweredHit]) -> tuple[Numbers, Numbers, Floats]:
    """Return items, annotators and scores of all judgments, (judgments,) each."""
    items = np.array([item for hit in hits for item in hit.items], np.int64)
    annotators = np.array([hit.annotator for hit in hits for _ in hit.items], np.int64)
    return items, annotators, np.array([score for hit in hits for score in hit.values], np.float64)


def mean_scores(items: Numbers, scores: Floats, n_items: int) -> Floats:
    """Return the mean score of each item, (n_items,); 0 without judgments."""
    return np.bincount(items, scores, n_items) / np.maximum(np.bincount(items, minlength=n_items), 1)


def iterate_online_scores(hits: list[AnsweredHit], n_items: int, hit_counts: tuple[int, ...]) -> Iterator[Floats]:
    """Yield the scores of the online law after the given numbers of HITs."""
    beliefs = LAW.initial_beliefs([np.ones(n_items)] * 2, LawParameters())
    for hit_number, hit in enumerate(hits, start=1):
        beliefs.apply_hit_and_return_change(hit)
        if hit_number in hit_counts:
            yield beta.score(*beliefs.state)


def spearman_of_rounded_scores(scores: Floats, truth: Floats) -> float:
    """Return Spearman's correlation; scores that differ only by rounding errors are ties."""
    return spearman(np.round(scores, 9), truth)


def correlations_of_simulated_campaign(crowd: Crowd, share: float, seed: int) -> Floats:
    """Return Spearman of each method at each budget, (3, 6)."""
    rng = np.random.default_rng([seed, int(100 * share)])
    true_scores, hits = simulate_campaign(crowd, share, rng)
    counts = tuple(budget * ITEMS // ITEMS_PER_HIT for budget in BUDGETS)
    plain, fitted = [], []
    for count in counts:
        items, annotators, scores = judgment_columns(hits[:count])
        plain.append(spearman_of_rounded_scores(mean_scores(items, scores, ITEMS), true_scores))
        fitted.append(
            spearman_of_rounded_scores(annotator_aware.fit(items, annotators, scores, n_items=ITEMS).score, true_scores)
        )
    return np.array(
        [
            plain,
            fitted,
            [spearman_of_rounded_scores(scores, true_scores) for scores in iterate_online_scores(hits, ITEMS, counts)],
        ]
    )


def format_band(values: Floats) -> str:
    """Return the mean and the band with 90 % of the values as text."""
    low, high = np.percentile(values, (5, 95))
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def format_gain(differences: Floats) -> str:
    """Return the mean gain over the plain mean, the share of runs with a loss above the limit, and the worst run as
    text.
    """
    return f"{differences.mean():+.4f} | {(differences < -LOSS_LIMIT).mean():.0%}, {differences.min():+.3f}"


def print_simulated_table(name: str, crowd: Crowd, runs: int, pool: ProcessPoolExecutor) -> None:
    """Print the methods' correlations for a simulated crowd, by share of random annotators and budget."""
    print(f"\n{ITEMS} items, {ANNOTATORS} annotators, {name}: {crowd}; {runs} runs\n")
    print(f"| do not read | judgments per item | mean | fit | online | {GAINS} |")
    print("|---|---|---|---|---|---|---|---|---|")
    for share in RANDOM_SHARES:
        correlations = np.array(list(pool.map(partial(correlations_of_simulated_campaign, crowd, share), range(runs))))
        for k, budget in enumerate(BUDGETS):
            cells = " | ".join(format_band(correlations[:, method, k]) for method in range(len(METHODS)))
            gains = " | ".join(format_gain(correlations[:, method, k] - correlations[:, 0, k]) for method in (1, 2))
            print(f"| {share:.0%} | {budget} | {cells} | {gains} |", flush=True)


class StudyArm(NamedTuple):
    """Judgments of an arm, and the true values.

    Attributes:
        items: Item of each judgment.
        annotators: Annotator of each judgment.
        scores: Scores, 0 to 1.
        true_values: True value of each item.
        annotator_count: Number of annotators.

    """

    items: Numbers
    annotators: Numbers
    scores: Floats
    true_values: Floats
    annotator_count: int


def load_judgment_rows(folder: str) -> list[dict[str, str]]:
    """Return the rows of a data set in examples/data."""
    with gzip.open(DATA / folder / "judgments.csv.gz", "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def load_rankme_arms() -> dict[tuple[str, str], StudyArm]:
    """Return the arms by criterion and name; all arms judge the same items."""
    rows = load_judgment_rows("rankme")
    n_items = 1 + max(int(row["item"]) for row in rows)
    arms = {}
    for key in sorted({(row["criterion"], row["arm"]) for row in rows}):
        arm_rows = [row for row in rows if (row["criterion"], row["arm"]) == key]
        points = np.array([float(row["score"]) for row in arm_rows])
        scores = (points - 1) / 5 if "likert" in key[1] else np.clip(points / 100, 0, 1)
        items = np.array([int(row["item"]) for row in arm_rows])
        annotators = np.unique([row["annotator"] for row in arm_rows], return_inverse=True)[1]
        arms[key] = StudyArm(items, annotators, scores, mean_scores(items, scores, n_items), int(annotators.max()) + 1)
    return {key: arm._replace(true_values=mean_of_other_arms(arms, key)) for key, arm in arms.items()}


def mean_of_other_arms(arms: dict[tuple[str, str], StudyArm], key: tuple[str, str]) -> Floats:
    """Return the mean of the other arms' means, each centred."""
    others = [
        arm.true_values - arm.true_values.mean() for other, arm in arms.items() if other[0] == key[0] and other != key
    ]
    means: Floats = np.mean(others, axis=0)
    return means


def correlations_of_sampled_judgments(arm: StudyArm, random_share: float, per_item: int, seed: int) -> Floats:
    """Return `correlations_with_random_annotators` for `per_item` random judgments of each item."""
    rng = np.random.default_rng([seed, per_item])
    order = rng.permutation(len(arm.items))
    earlier_judgments = np.array([np.count_nonzero(arm.items[order[:k]] == arm.items[j]) for k, j in enumerate(order)])
    kept = order[earlier_judgments < per_item]
    return correlations_with_random_annotators(
        arm._replace(items=arm.items[kept], annotators=arm.annotators[kept], scores=arm.scores[kept]), random_share, rng
    )


def correlations_with_random_annotators(arm: StudyArm, random_share: float, rng: np.random.Generator) -> Floats:
    """Replace some annotators by random ones and return the methods' correlations with the true values, (5,).

    The order is mean, fit, online law, fit with full trust, and mean without random annotators. The online law reads
    the judgments one after another.
    """
    items, annotators, true_values = arm.items, arm.annotators, arm.true_values
    is_replaced = rng.permutation(arm.annotator_count) < round(random_share * arm.annotator_count)
    scores = np.where(is_replaced[annotators], rng.random(len(items)).round(2), arm.scores)
    hits = [AnsweredHit(int(j), [int(i)], [float(y)]) for i, j, y in zip(items, annotators, scores, strict=True)]
    fit = partial(annotator_aware.fit, items, annotators, scores, n_items=len(true_values))
    return np.array(
        [
            spearman_of_rounded_scores(mean_scores(items, scores, len(true_values)), true_values),
            spearman_of_rounded_scores(fit().score, true_values),
            *(
                spearman_of_rounded_scores(scores, true_values)
                for scores in iterate_online_scores(hits, len(true_values), (len(hits),))
            ),
            spearman_of_rounded_scores(fit(trust=FULL_TRUST).score, true_values),
            spearman_of_rounded_scores(
                mean_without_random_annotators(items, scores, is_replaced[annotators], len(true_values)),
                true_values,
            ),
        ]
    )


def mean_without_random_annotators(
    items: Numbers, scores: Floats, is_random: npt.NDArray[np.bool_], n_items: int
) -> Floats:
    """Return the mean of an item's judgments that are not random; without any, the mean of all such judgments."""
    is_kept = ~is_random
    is_judged = np.bincount(items[is_kept], minlength=n_items) > 0
    return np.where(is_judged, mean_scores(items[is_kept], scores[is_kept], n_items), scores[is_kept].mean())


def correlations_of_arms(arms: list[StudyArm], per_item: int, seed: int) -> Floats:
    """Return correlations, (arms, without and with random annotators, methods)."""
    return np.array(
        [
            [correlations_of_sampled_judgments(arm, share, per_item, seed) for share in (0.0, REPLACED_SHARE)]
            for arm in arms
        ]
    )


def format_recovered_shares(correlations: Floats) -> str:
    """Return the share of the loss by random annotators that each method recovers, as text.

    Args:
        correlations: Correlations without and with random annotators, (2, 5).

    """
    loss = correlations[0, 0] - correlations[1, 0]
    return " | ".join(f"{(correlations[1, method] - correlations[1, 0]) / loss:.0%}" for method in (1, 2, 3, 4))


HEADINGS = (
    "| mean | fit | online | fully | mean, 30 % | fit | online | fully | known "
    "| fit recovers | online | fully | known |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
)


def format_row(name: str, correlations: Floats) -> str:
    """Return a table row of correlations, (2, 5)."""
    values = " | ".join(f"{value:.3f}" for value in (*correlations[0, :4], *correlations[1]))
    return f"| {name} | {values} | {format_recovered_shares(correlations)} |"


def print_losses(name: str, correlations: Floats) -> None:
    """Print the losses of single runs without and with random annotators; correlations are (runs, 2, 5)."""
    print(f"\n{name}: {len(correlations)} runs\n\n| replaced | {GAINS} |\n|---|---|---|---|---|")
    for share, runs in zip((0.0, REPLACED_SHARE), correlations.transpose(1, 0, 2), strict=True):
        gains = " | ".join(format_gain(runs[:, method] - runs[:, 0]) for method in (1, 2))
        print(f"| {share:.0%} | {gains} |", flush=True)


def print_rankme_tables(runs: int, pool: ProcessPoolExecutor) -> None:
    """Print the methods' correlations and losses for all arms of RankME."""
    arms = load_rankme_arms()
    for per_item in (3, 2):
        print(f"\nRankME, {per_item} judgments per item in random order, {runs} runs; 30 % of annotators replaced\n")
        print(f"| arm {HEADINGS}")
        correlations_of_runs = np.array(
            list(pool.map(partial(correlations_of_arms, list(arms.values()), per_item), range(runs)))
        )
        means = correlations_of_runs.mean(axis=0)
        names = [" ".join(key) for key in arms]
        groups = {"all arms": slice(None)} | {
            criterion: [number for number, arm_name in enumerate(names) if criterion in arm_name]
            for criterion in {number[0] for number in arms}
        }
        averages = [(f"**{name}**", means[arm_numbers].mean(axis=0)) for name, arm_numbers in sorted(groups.items())]
        for name, arm_means in [*zip(names, means, strict=True), *averages]:
            print(format_row(name, arm_means), flush=True)
        print_losses(
            f"RankME, {per_item} judgments per item",
            correlations_of_runs.reshape(-1, 2, correlations_of_runs.shape[-1]),
        )


def correlations_on_mlqe(languages: str, seed: int) -> Floats:
    """Return correlations of three judgments per item with the mean of the other three, (2, 5).

    The first row is without random annotators, the second with them.
    """
    rows = [row for row in load_judgment_rows("mlqe") if row["languages"] == languages]
    items, annotators = (np.array([int(row[name]) for row in rows]) for name in ("item", "annotator"))
    scores = np.array([float(row["score"]) / 100 for row in rows])
    order = np.random.default_rng(seed).permutation(len(rows))
    by_item = order[np.argsort(items[order], kind="stable")].reshape(-1, 6)
    given_judgments, held_out = by_item[:, :3], by_item[:, 3:]
    kept_judgments = order[np.isin(order, given_judgments)]
    arm = StudyArm(
        items[kept_judgments],
        annotators[kept_judgments],
        scores[kept_judgments],
        scores[held_out].mean(axis=1),
        annotators.max() + 1,
    )
    return np.array(
        [
            correlations_with_random_annotators(arm, share, np.random.default_rng([seed, 3]))
            for share in (0.0, REPLACED_SHARE)
        ]
    )


def print_mlqe_tables(runs: int, pool: ProcessPoolExecutor) -> None:
    """Print the methods' correlations and losses for both language pairs of MLQE."""
    print(f"\nMLQE, 3 judgments per item in random order, {runs} runs; 30 % of annotators replaced\n")
    print(f"| languages {HEADINGS}")
    correlations_by_languages = {
        languages: np.array(list(pool.map(partial(correlations_on_mlqe, languages), range(runs)))) for languages in MLQE
    }
    for languages, correlations in correlations_by_languages.items():
        print(format_row(languages, correlations.mean(axis=0)), flush=True)
    for languages, correlations in correlations_by_languages.items():
        print_losses(f"MLQE {languages}", correlations)


def make_process_pool() -> ProcessPoolExecutor:
    """Return a pool with a process per core; each uses one thread, because OpenBLAS mostly waits with more threads
    than cores.
    """
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    return ProcessPoolExecutor(mp_context=get_context("spawn"))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    with make_process_pool() as pool:
        for name, crowd in CROWDS.items():
            print_simulated_table(name, crowd, runs, pool)
        print_rankme_tables(max(runs // 10, 1), pool)
        print_mlqe_tables(max(runs // 10, 1), pool)


if __name__ == "__main__":
    main()
