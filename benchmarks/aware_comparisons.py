"""Measure the benefit of annotator-aware comparisons: `python -m benchmarks.aware_comparisons [RUNS]`.

The default is 40 runs, ten minutes. Three methods read the same judgments: Bradley-Terry, Crowd-BT (Chen et al. 2013:
annotator k reverses a judgment with the probability 1 - eta_k) and annotator-aware Bradley-Terry. The table shows their
Spearman correlation with the truth.

Data are simulated campaigns of 100 items and 20 annotators with different discriminations (SD .3 of their logarithm),
and the UKP arguments (examples/data), with the published ranking as the truth. Some annotators answer at random
instead.

Bands contain 90 % of the runs. A mean hides losses of single campaigns, so the table also has the share of runs that
lose more than .005, and the worst run. The last columns show how many careful and how many random annotators are called
random with a probability of .99.
"""

import csv
import sys
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from app.experiments.amidei_2020 import ARGUMENT_JUDGMENTS, load_argument_judgment_columns
from app.inference.ground.metrics import spearman
from app.inference.online import trueskill, trueskill_aware
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.preferences import aware_bradley_terry, bradley_terry
from benchmarks.annotator_aware import format_band, format_gain

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

ITEMS, ANNOTATORS, SCORE_SD, SPREAD = 100, 20, 1.5, 0.3
BUDGETS = (5, 10, 20)
RANDOM_SHARES = (0.0, 0.15, 0.3)
MIN_RANDOM_PROBABILITY = 0.99
CHECKPOINTS, CHECKED_ITEMS, CHECKED_SPREAD = (20, 35, 60, 100), 40, 0.4
TOPICS_PER_RUN, REAL_ANNOTATORS = 4, 40
ETA_PRIOR = (10.0, 1.0)  # as in the paper: most annotators are good


class Comparisons(NamedTuple):
    """Comparisons by annotators; `at_random`, (A,), marks the random ones."""

    first: Numbers
    second: Numbers
    outcomes: Numbers
    annotators: Numbers
    at_random: npt.NDArray[np.bool_]
    items: int


class MethodFigures(NamedTuple):
    """Results of all methods in one campaign.

    Attributes:
        plain: Spearman of Bradley-Terry.
        mixture: Spearman of Crowd-BT.
        aware: Spearman of annotator-aware Bradley-Terry.
        false_alarms: Share of careful annotators who are called random.
        found: Share of random annotators who are called random.

    """

    plain: float
    mixture: float
    aware: float
    false_alarms: float
    found: float


def simulate_comparisons(
    per_item: int, random_share: float, rng: np.random.Generator, *, score_sd: float = SCORE_SD, n_reversed: int = 0
) -> tuple[Floats, Floats, Comparisons]:
    """Simulate comparisons of random pairs.

    Args:
        per_item: Comparisons per item.
        random_share: Share of annotators who answer at random.
        rng: Source of randomness.
        score_sd: Standard deviation of the true scores.
        n_reversed: Number of annotators, the last ones, who reverse their answers.

    Returns:
        True scores, discriminations of the annotators, and comparisons.

    """
    true_scores, judgments = rng.normal(0, score_sd, ITEMS), ITEMS * per_item // 2
    first = rng.integers(ITEMS, size=judgments)
    second = (first + rng.integers(1, ITEMS, size=judgments)) % ITEMS
    annotators = rng.permutation(np.arange(judgments) % ANNOTATORS)
    at_random = np.arange(ANNOTATORS) < round(random_share * ANNOTATORS)
    discrimination = np.where(at_random, 0.0, np.exp(rng.normal(0, SPREAD, ANNOTATORS)))
    discrimination[ANNOTATORS - n_reversed :] *= -1.0
    is_first_winner = rng.random(judgments) < expit(
        discrimination[annotators] * (true_scores[first] - true_scores[second])
    )
    return (
        true_scores,
        discrimination,
        Comparisons(first, second, np.where(is_first_winner, 1, -1), annotators, at_random, ITEMS),
    )


def fit_crowd_bt(comparisons: Comparisons) -> Floats:
    """Return the scores of Crowd-BT at the maximum of its posterior, with the weak prior of Bradley-Terry for
    scores.
    """
    count = int(comparisons.annotators.max()) + 1
    start = np.append(bradley_terry.fit(*comparisons[:3], n_items=comparisons.items).score, np.full(count, 2.0))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        score, eta = np.nan_to_num(parameters[: comparisons.items]), expit(parameters[comparisons.items :])
        probability = expit(comparisons.outcomes * (score[comparisons.first] - score[comparisons.second]))
        own_eta = eta[comparisons.annotators]
        likelihood = own_eta * probability + (1 - own_eta) * (1 - probability)
        slope = comparisons.outcomes * (2 * own_eta - 1) * probability * (1 - probability) / likelihood
        item_gradient = np.bincount(comparisons.first, slope, comparisons.items) - np.bincount(
            comparisons.second, slope, comparisons.items
        )
        eta_gradient = np.bincount(comparisons.annotators, (2 * probability - 1) / likelihood, count) * eta * (1 - eta)
        a, b = ETA_PRIOR
        value = np.log(likelihood).sum() - 0.05 * score @ score + (a * np.log(eta) + b * np.log(1 - eta)).sum()
        return -value, -np.append(item_gradient - 0.1 * score, eta_gradient + a * (1 - eta) - b * eta)

    scores: Floats = minimize(loss, np.nan_to_num(start), jac=True, method="L-BFGS-B").x[: comparisons.items]
    return scores


def compare_methods(comparisons: Comparisons, true_scores: Floats, topics: Numbers) -> MethodFigures:
    """Return the figures of all methods; Spearman is the mean over topics."""

    def mean_spearman(scores: Floats) -> float:
        rounded_scores = np.round(scores, 9)
        items_by_topic = [
            np.flatnonzero((topics == topic) & np.isfinite(rounded_scores) & np.isfinite(true_scores))
            for topic in np.unique(topics)
        ]
        return float(
            np.mean(
                [
                    spearman(rounded_scores[topic_items], true_scores[topic_items])
                    for topic_items in items_by_topic
                    if len(topic_items) > 2
                ]
            )
        )

    annotator_count = len(comparisons.at_random)
    fit = aware_bradley_terry.fit(*comparisons[:4], n_items=comparisons.items, n_annotators=annotator_count)
    plain = bradley_terry.fit(*comparisons[:3], n_items=comparisons.items).score
    is_called_random = fit.random >= MIN_RANDOM_PROBABILITY
    is_random = comparisons.at_random
    return MethodFigures(
        mean_spearman(plain),
        mean_spearman(np.where(np.isfinite(plain), fit_crowd_bt(comparisons), np.nan)),
        mean_spearman(fit.score),
        float(is_called_random[~is_random].mean()),
        float(is_called_random[is_random].mean()) if is_random.any() else np.nan,
    )


def sample_arguments(
    per_item: int, random_share: float, rng: np.random.Generator
) -> tuple[Floats, Comparisons, Numbers]:
    """Return published scores, comparisons and topics of a few random topics.

    The comparisons are by the annotators with most comparisons there, and up to `per_item` per item.
    """
    first, second, outcomes, annotators = load_argument_judgment_columns()
    with (ARGUMENT_JUDGMENTS.parent / "arguments.csv").open(encoding="utf-8", newline="") as file:
        arguments = list(csv.DictReader(file))
    topics = np.unique([argument["topic"] for argument in arguments], return_inverse=True)[1]
    kept_topics = rng.permutation(topics.max() + 1)[:TOPICS_PER_RUN]
    sampled = np.flatnonzero(np.isin(topics[first], kept_topics))
    most_active_annotators = np.argsort(-np.bincount(annotators[sampled]))[:REAL_ANNOTATORS]
    sampled = rng.permutation(sampled[np.isin(annotators[sampled], most_active_annotators)])
    sampled = sampled[: per_item * int(np.isin(topics, kept_topics).sum()) // 2]
    people = np.unique(annotators[sampled], return_inverse=True)[1]
    at_random = rng.permutation(people.max() + 1) < round(random_share * (people.max() + 1))
    sampled_outcomes = np.where(at_random[people], rng.choice([-1, 1], len(sampled)), outcomes[sampled])
    items, item_numbers = np.unique(np.append(first[sampled], second[sampled]), return_inverse=True)
    published = -np.array([float(arguments[item]["rank"]) for item in items.tolist()])
    count = len(sampled)
    return (
        published,
        Comparisons(item_numbers[:count], item_numbers[count:], sampled_outcomes, people, at_random, len(items)),
        topics[items],
    )


def print_method_table(name: str, results: dict[tuple[float, int], list[MethodFigures]]) -> None:
    """Print the figures of all methods, by share of random annotators and comparisons per item."""
    print(f"\n{name}\n")
    print(
        "| answer at random | comparisons per item | Bradley-Terry | Crowd-BT | annotator-aware | aware - plain "
        "| lost, worst | careful called random | random called random |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for (share, per_item), figures in results.items():
        columns = np.array(figures).T
        bands = " | ".join(format_band(column) for column in columns[:3])
        alarms = "" if share == 0 else f"{columns[4].mean():.0%}"
        print(
            f"| {share:.0%} | {per_item} | {bands} | {format_gain(columns[2] - columns[0])} "
            f"| {columns[3].mean():.1%} | {alarms} |",
            flush=True,
        )


def is_ever_called_random(
    annotator_count: int, random_share: float, score_sd: float, seed: int
) -> tuple[Floats, Floats]:
    """Return for careful and for random annotators whether they are called random at any checkpoint of a growing
    campaign.
    """
    rng = np.random.default_rng([seed, annotator_count, int(10 * score_sd)])
    truth = rng.normal(0, score_sd, CHECKED_ITEMS)
    at_random = np.arange(annotator_count) < round(random_share * annotator_count)
    discrimination = np.where(at_random, 0.0, np.exp(rng.normal(0, CHECKED_SPREAD, annotator_count)))
    first = rng.integers(CHECKED_ITEMS, size=max(CHECKPOINTS) * annotator_count)
    second = (first + rng.integers(1, CHECKED_ITEMS, size=len(first))) % CHECKED_ITEMS
    annotators = np.arange(len(first)) % annotator_count
    is_first_winner = rng.random(len(first)) < expit(discrimination[annotators] * (truth[first] - truth[second]))
    ever_random = np.zeros(annotator_count, np.bool_)
    for checkpoint in CHECKPOINTS:
        so_far = slice(checkpoint * annotator_count)
        columns = first[so_far], second[so_far], np.where(is_first_winner, 1, -1)[so_far], annotators[so_far]
        ever_random |= (
            aware_bradley_terry.fit(*columns, n_items=CHECKED_ITEMS, max_iterations=100, tolerance=0.01).random
            >= MIN_RANDOM_PROBABILITY
        )
    return ever_random[~at_random].astype(np.float64), ever_random[at_random].astype(np.float64)


def print_alarm_table(runs: int) -> None:
    """Print how many annotators are ever called random while a campaign grows."""
    print(f"\nEver called random in looks after {CHECKPOINTS} pairs each, {CHECKED_ITEMS} items, {runs} runs\n")
    print("| annotators | answer at random | SD of the scores | careful called random | random called random |")
    print("|---|---|---|---|---|")
    for annotator_count, share in ((6, 0.0), (20, 0.0), (6, 0.34), (20, 0.3)):
        for score_sd in (0.5, 1.5, 3.0):
            alarms = [is_ever_called_random(annotator_count, share, score_sd, seed) for seed in range(runs)]
            careful, at_random = (np.concatenate(is_random) for is_random in zip(*alarms, strict=True))
            cells = [f"{int(is_random.sum())} of {len(is_random)}" for is_random in (careful, at_random)]
            print(f"| {annotator_count} | {share:.0%} | {score_sd} | {cells[0]} | {cells[1]} |", flush=True)


def spearman_of_laws(per_item: int, random_share: float, seed: int) -> Floats:
    """Return Spearman of `trueskill` and of `trueskill-aware` after all judgments, with their default parameters."""
    rng = np.random.default_rng([seed, per_item, int(100 * random_share)])
    truth, _, comparisons = simulate_comparisons(per_item, random_share, rng)
    rows = zip(*(column.tolist() for column in comparisons[:4]), strict=True)
    hits = [
        AnsweredHit(annotator, [i, j], [float(outcome > 0), float(outcome < 0)]) for i, j, outcome, annotator in rows
    ]
    correlations = []
    for law in (trueskill.LAW, trueskill_aware.LAW):
        beliefs = law.initial_beliefs([np.full(ITEMS, number) for number in law.family.default_prior], LawParameters())
        beliefs.apply_hits(hits)
        correlations.append(spearman(law.family.score(*beliefs.state), truth))
    return np.array(correlations)


def print_law_table(runs: int) -> None:
    """Print the correlations of the laws `trueskill` and `trueskill-aware`."""
    print(f"\nUpdate laws, {ITEMS} items, {ANNOTATORS} annotators, {runs} runs\n")
    print("| answer at random | comparisons per item | trueskill | trueskill-aware | aware - plain | lost, worst |")
    print("|---|---|---|---|---|---|")
    for share in RANDOM_SHARES:
        for per_item in BUDGETS:
            correlations = np.array([spearman_of_laws(per_item, share, seed) for seed in range(runs)])
            bands = " | ".join(format_band(column) for column in correlations.T)
            print(
                f"| {share:.0%} | {per_item} | {bands} | {format_gain(correlations[:, 1] - correlations[:, 0])} |",
                flush=True,
            )


def main(runs: int) -> None:
    simulated: dict[tuple[float, int], list[MethodFigures]] = {}
    real: dict[tuple[float, int], list[MethodFigures]] = {}
    for share in RANDOM_SHARES:
        for per_item in BUDGETS:
            for seed in range(runs):
                rng = np.random.default_rng([seed, per_item, int(100 * share)])
                truth, _, comparisons = simulate_comparisons(per_item, share, rng)
                figures = compare_methods(comparisons, truth, np.zeros(ITEMS, np.int64))
                simulated.setdefault((share, per_item), []).append(figures)
                published, sampled, topics = sample_arguments(per_item, share, rng)
                real.setdefault((share, per_item), []).append(compare_methods(sampled, published, topics))
            print(f"{share:.0%} random, {per_item} per item: done", file=sys.stderr, flush=True)
    print_method_table(f"Simulated, {ITEMS} items, {ANNOTATORS} annotators, {runs} runs", simulated)
    print_method_table(
        f"UKP arguments, {TOPICS_PER_RUN} topics and up to {REAL_ANNOTATORS} annotators a run, {runs} runs", real
    )
    print_alarm_table(runs)
    print_law_table(runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
