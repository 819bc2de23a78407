"""Benefit of annotator-aware comparisons: `python -m benchmarks.aware_comparisons [RUNS]`, default 40, ten minutes.

Spearman with the truth of Bradley-Terry, of Crowd-BT (Chen et al. 2013: annotator k reverses a judgment with the
probability 1 - eta_k) and of annotator-aware Bradley-Terry on the same judgments: simulated campaigns of 100 items
and 20 annotators whose discriminations differ (SD .3 of their logarithm), and the UKP arguments (examples/data), with
the published ranking as the truth. Some annotators answer at random instead. Bands hold 90 % of the runs. An average
hides what a single campaign may lose, so the share of runs that lose more than .005 and the worst run are printed too;
then how many careful annotators are called random with a probability of .99, and how many random ones.
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
from benchmarks.annotator_aware import band, gain

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

ITEMS, ANNOTATORS, SCORE_SD, SPREAD = 100, 20, 1.5, 0.3
BUDGETS = (5, 10, 20)
RANDOM_SHARES = (0.0, 0.15, 0.3)
SURE = 0.99
LOOKS, ALARM_ITEMS, ALARM_SPREAD = (20, 35, 60, 100), 40, 0.4
TOPICS_PER_RUN, REAL_ANNOTATORS = 4, 40
ETA_PRIOR = (10.0, 1.0)  # as in the paper: most people are good


class Judged(NamedTuple):
    """Judgments of pairs by annotators, some of whom answer at random, (A,)."""

    first: Numbers
    second: Numbers
    outcomes: Numbers
    annotators: Numbers
    at_random: npt.NDArray[np.bool_]
    items: int


class Compared(NamedTuple):
    """Spearman of each method; the share of careful and of random annotators who are called random."""

    plain: float
    mixture: float
    aware: float
    false_alarms: float
    found: float


def simulate(
    per_item: int, random_share: float, rng: np.random.Generator, *, score_sd: float = SCORE_SD, n_reversed: int = 0
) -> tuple[Floats, Floats, Judged]:
    """Return the scores, the discriminations of annotators, the last of whom reverse answers, and their judgments."""
    truth, judgments = rng.normal(0, score_sd, ITEMS), ITEMS * per_item // 2
    first = rng.integers(ITEMS, size=judgments)
    second = (first + rng.integers(1, ITEMS, size=judgments)) % ITEMS
    annotators = rng.permutation(np.arange(judgments) % ANNOTATORS)
    at_random = np.arange(ANNOTATORS) < round(random_share * ANNOTATORS)
    discrimination = np.where(at_random, 0.0, np.exp(rng.normal(0, SPREAD, ANNOTATORS)))
    discrimination[ANNOTATORS - n_reversed :] *= -1.0
    won = rng.random(judgments) < expit(discrimination[annotators] * (truth[first] - truth[second]))
    return truth, discrimination, Judged(first, second, np.where(won, 1, -1), annotators, at_random, ITEMS)


def crowd_bt(judged: Judged) -> Floats:
    """Scores of Crowd-BT at the maximum of its posterior, with Bradley-Terry's weak prior of scores."""
    count = int(judged.annotators.max()) + 1
    start = np.append(bradley_terry.fit(*judged[:3], n_items=judged.items).score, np.full(count, 2.0))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        score, eta = np.nan_to_num(parameters[: judged.items]), expit(parameters[judged.items :])
        chance = expit(judged.outcomes * (score[judged.first] - score[judged.second]))
        own = eta[judged.annotators]
        likelihood = own * chance + (1 - own) * (1 - chance)
        slope = judged.outcomes * (2 * own - 1) * chance * (1 - chance) / likelihood
        items = np.bincount(judged.first, slope, judged.items) - np.bincount(judged.second, slope, judged.items)
        of_eta = np.bincount(judged.annotators, (2 * chance - 1) / likelihood, count) * eta * (1 - eta)
        a, b = ETA_PRIOR
        value = np.log(likelihood).sum() - 0.05 * score @ score + (a * np.log(eta) + b * np.log(1 - eta)).sum()
        return -value, -np.append(items - 0.1 * score, of_eta + a * (1 - eta) - b * eta)

    scores: Floats = minimize(loss, np.nan_to_num(start), jac=True, method="L-BFGS-B").x[: judged.items]
    return scores


def compare(judged: Judged, truth: Floats, topics: Numbers) -> Compared:
    """Compare the methods, by the mean Spearman over topics where items have some."""

    def agreement(scores: Floats) -> float:
        found = np.round(scores, 9)
        rows = [
            np.flatnonzero((topics == topic) & np.isfinite(found) & np.isfinite(truth)) for topic in np.unique(topics)
        ]
        return float(np.mean([spearman(found[own], truth[own]) for own in rows if len(own) > 2]))

    people = len(judged.at_random)
    fit = aware_bradley_terry.fit(*judged[:4], n_items=judged.items, n_annotators=people)
    plain = bradley_terry.fit(*judged[:3], n_items=judged.items).score
    sure = fit.random >= SURE
    is_random = judged.at_random
    return Compared(
        agreement(plain),
        agreement(np.where(np.isfinite(plain), crowd_bt(judged), np.nan)),
        agreement(fit.score),
        float(sure[~is_random].mean()),
        float(sure[is_random].mean()) if is_random.any() else np.nan,
    )


def sample_arguments(per_item: int, random_share: float, rng: np.random.Generator) -> tuple[Floats, Judged, Numbers]:
    """Judgments of a few topics by the annotators with most judgments there: so many per item, where there are."""
    first, second, outcomes, annotators = load_argument_judgment_columns()
    with (ARGUMENT_JUDGMENTS.parent / "arguments.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    topics = np.unique([row["topic"] for row in rows], return_inverse=True)[1]
    kept_topics = rng.permutation(topics.max() + 1)[:TOPICS_PER_RUN]
    inside = np.flatnonzero(np.isin(topics[first], kept_topics))
    by_work = np.argsort(-np.bincount(annotators[inside]))[:REAL_ANNOTATORS]
    inside = rng.permutation(inside[np.isin(annotators[inside], by_work)])
    inside = inside[: per_item * int(np.isin(topics, kept_topics).sum()) // 2]
    people = np.unique(annotators[inside], return_inverse=True)[1]
    at_random = rng.permutation(people.max() + 1) < round(random_share * (people.max() + 1))
    drawn = np.where(at_random[people], rng.choice([-1, 1], len(inside)), outcomes[inside])
    items, places = np.unique(np.append(first[inside], second[inside]), return_inverse=True)
    published = -np.array([float(rows[item]["rank"]) for item in items.tolist()])
    half = len(inside)
    return published, Judged(places[:half], places[half:], drawn, people, at_random, len(items)), topics[items]


def show(name: str, results: dict[tuple[float, int], list[Compared]]) -> None:
    print(f"\n{name}\n")
    print(
        "| answer at random | comparisons per item | Bradley-Terry | Crowd-BT | annotator-aware | aware - plain "
        "| lost, worst | careful called random | random called random |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for (share, per_item), found in results.items():
        columns = np.array(found).T
        bands = " | ".join(band(column) for column in columns[:3])
        alarms = "" if share == 0 else f"{columns[4].mean():.0%}"
        print(
            f"| {share:.0%} | {per_item} | {bands} | {gain(columns[2] - columns[0])} "
            f"| {columns[3].mean():.1%} | {alarms} |",
            flush=True,
        )


def careless_ever_sure(people: int, random_share: float, score_sd: float, seed: int) -> tuple[Floats, Floats]:
    """Return whether careful and random annotators are ever called random, in looks at growing campaigns."""
    rng = np.random.default_rng([seed, people, int(10 * score_sd)])
    truth = rng.normal(0, score_sd, ALARM_ITEMS)
    at_random = np.arange(people) < round(random_share * people)
    discrimination = np.where(at_random, 0.0, np.exp(rng.normal(0, ALARM_SPREAD, people)))
    first = rng.integers(ALARM_ITEMS, size=max(LOOKS) * people)
    second = (first + rng.integers(1, ALARM_ITEMS, size=len(first))) % ALARM_ITEMS
    annotators = np.arange(len(first)) % people
    won = rng.random(len(first)) < expit(discrimination[annotators] * (truth[first] - truth[second]))
    ever = np.zeros(people, np.bool_)
    for look in LOOKS:
        seen = slice(look * people)
        columns = first[seen], second[seen], np.where(won, 1, -1)[seen], annotators[seen]
        ever |= (
            aware_bradley_terry.fit(*columns, n_items=ALARM_ITEMS, max_iterations=100, tolerance=0.01).random >= SURE
        )
    return ever[~at_random].astype(np.float64), ever[at_random].astype(np.float64)


def show_alarms(runs: int) -> None:
    print(f"\nEver called random in looks after {LOOKS} pairs each, {ALARM_ITEMS} items, {runs} runs\n")
    print("| annotators | answer at random | SD of the scores | careful called random | random called random |")
    print("|---|---|---|---|---|")
    for people, share in ((6, 0.0), (20, 0.0), (6, 0.34), (20, 0.3)):
        for score_sd in (0.5, 1.5, 3.0):
            found = [careless_ever_sure(people, share, score_sd, seed) for seed in range(runs)]
            careful, at_random = (np.concatenate(each) for each in zip(*found, strict=True))
            cells = [f"{int(each.sum())} of {len(each)}" for each in (careful, at_random)]
            print(f"| {people} | {share:.0%} | {score_sd} | {cells[0]} | {cells[1]} |", flush=True)


def compare_laws(per_item: int, random_share: float, seed: int) -> Floats:
    """Return Spearman of `trueskill` and of `trueskill-aware` after all judgments, with their default parameters."""
    rng = np.random.default_rng([seed, per_item, int(100 * random_share)])
    truth, _, judged = simulate(per_item, random_share, rng)
    rows = zip(*(column.tolist() for column in judged[:4]), strict=True)
    hits = [AnsweredHit(who, [i, j], [float(won > 0), float(won < 0)]) for i, j, won, who in rows]
    found = []
    for law in (trueskill.LAW, trueskill_aware.LAW):
        beliefs = law.initial_beliefs([np.full(ITEMS, number) for number in law.family.default_prior], LawParameters())
        beliefs.apply_hits(hits)
        found.append(spearman(law.family.score(*beliefs.state), truth))
    return np.array(found)


def show_laws(runs: int) -> None:
    print(f"\nUpdate laws, {ITEMS} items, {ANNOTATORS} annotators, {runs} runs\n")
    print("| answer at random | comparisons per item | trueskill | trueskill-aware | aware - plain | lost, worst |")
    print("|---|---|---|---|---|---|")
    for share in RANDOM_SHARES:
        for per_item in BUDGETS:
            found = np.array([compare_laws(per_item, share, seed) for seed in range(runs)])
            bands = " | ".join(band(column) for column in found.T)
            print(f"| {share:.0%} | {per_item} | {bands} | {gain(found[:, 1] - found[:, 0])} |", flush=True)


def main(runs: int) -> None:
    simulated: dict[tuple[float, int], list[Compared]] = {}
    real: dict[tuple[float, int], list[Compared]] = {}
    for share in RANDOM_SHARES:
        for per_item in BUDGETS:
            for seed in range(runs):
                rng = np.random.default_rng([seed, per_item, int(100 * share)])
                truth, _, judged = simulate(per_item, share, rng)
                found = compare(judged, truth, np.zeros(ITEMS, np.int64))
                simulated.setdefault((share, per_item), []).append(found)
                published, sampled, topics = sample_arguments(per_item, share, rng)
                real.setdefault((share, per_item), []).append(compare(sampled, published, topics))
            print(f"{share:.0%} random, {per_item} per item: done", file=sys.stderr, flush=True)
    show(f"Simulated, {ITEMS} items, {ANNOTATORS} annotators, {runs} runs", simulated)
    show(f"UKP arguments, {TOPICS_PER_RUN} topics and up to {REAL_ANNOTATORS} annotators a run, {runs} runs", real)
    show_alarms(runs)
    show_laws(runs)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
