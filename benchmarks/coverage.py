"""How often 95 % intervals hold the truth, and how wide they are: `python -m benchmarks.coverage [RUNS]`; 40 runs take
four minutes. `benchmarks.coverage_under_rules` measures those of items that are asked about, or lead, by their scores.

Three simulated crowds, 150 items by 30 annotators (those of `annotator_aware`), asked 2, 5 and 10 times an item. The
truth is what all 30 would give on average: their mean score, their median, their mean of z-scores; of Elo the mean
rating over campaigns of that size. For the update laws the last columns are what the campaign page says of their own
intervals from the judgments alone: how many hold the truth, and how many times as wide as the calibrated ones they are.
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.observations import comparisons
from app.inference.observations.judgment_kinds import can_law_read_answers
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.preferences import elo
from app.inference.ratings import annotator_aware, direct_assessment
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from benchmarks.annotator_aware import ANNOTATORS, ITEMS, Crowd, N, a_process_per_core

CROWDS = {
    "all alike": (Crowd(0.0, 0.0, 0.15, 0.0), 0.0),
    "biases .15": (Crowd(0.15, 0.3, 0.15, 0.4), 0.0),
    "the same, 15 % random": (Crowd(0.15, 0.3, 0.15, 0.4), 0.15),
}
PER_ITEM = (2, 5, 10)
Z95 = 1.959964
TIMES = 40  # everybody judges everything, for the truth
ELO_CAMPAIGNS, RESAMPLES = 60, 200
SCALE = (0.0, 1.0)


class People:
    """Annotators of a crowd who judge items: y = 0.5 + bias + scale (worth - 0.5) + noise, cut to the scale."""

    def __init__(self, crowd: Crowd, random_share: float, rng: np.random.Generator, items: int = ITEMS) -> None:
        self.worth = rng.beta(2, 2, items)
        self.bias, self.scale = rng.normal(0, crowd.bias, ANNOTATORS), np.exp(rng.normal(0, crowd.scale, ANNOTATORS))
        self.noise = crowd.noise * np.exp(rng.normal(0, crowd.noise_spread, ANNOTATORS))
        self.at_random = rng.permutation(ANNOTATORS) < random_share * ANNOTATORS

    def judge(self, items: Integers, annotators: Integers, rng: np.random.Generator) -> Array:
        """On 101 steps."""
        return self.seen(items, annotators, rng).round(2)

    def seen(self, items: Integers, annotators: Integers, rng: np.random.Generator) -> Array:
        """Where on the scale, before it is cut to steps."""
        meant = 0.5 + self.bias[annotators] + self.scale[annotators] * (self.worth[items] - 0.5)
        scores = meant + self.noise[annotators] * rng.normal(size=meant.shape)
        places: Array = np.where(self.at_random[annotators], rng.random(meant.shape), scores).clip(0, 1)
        return places

    def everything(self, rng: np.random.Generator) -> Array:
        """(TIMES, items, annotators)."""
        items, annotators = np.meshgrid(np.arange(ITEMS), np.arange(ANNOTATORS), indexing="ij")
        return np.array([self.judge(items, annotators, rng) for _ in range(TIMES)])


class Judgments(NamedTuple):
    """HITs of N items each, shown in rounds, to whom has seen the fewest of them: (T,) each."""

    hits: Integers
    items: Integers
    annotators: Integers
    scores: Array


def asked(people: People, per_item: int, rng: np.random.Generator) -> Judgments:
    seen = np.zeros((ANNOTATORS, ITEMS), np.intp)
    shown = np.concatenate([rng.permutation(ITEMS) for _ in range(per_item)]).reshape(-1, N)
    who = np.zeros(len(shown), np.intp)
    for hit, items in enumerate(shown):
        who[hit] = min(rng.permutation(ANNOTATORS).tolist(), key=lambda j: seen[j, items].sum())
        seen[who[hit], items] += 1
    items, annotators = shown.ravel(), np.repeat(who, N)
    return Judgments(np.repeat(np.arange(len(shown)), N), items, annotators, people.judge(items, annotators, rng))


def bootstrap(made: Judgments, rng: np.random.Generator) -> tuple[Array, Array]:
    """Percentiles of the means of each item's judgments drawn again, for comparison."""
    by_item = made.scores[np.argsort(made.items, kind="stable")].reshape(ITEMS, -1)
    drawn = rng.integers(by_item.shape[1], size=(1000, *by_item.shape))
    means = np.take_along_axis(by_item[None], drawn, axis=2).mean(axis=2)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return low, high


def own_error(made: Judgments) -> tuple[Array, Array]:
    """Mean -+ 1.96 standard errors of each item's own judgments, for comparison."""
    by_item = made.scores[np.argsort(made.items, kind="stable")].reshape(ITEMS, -1)
    reach = Z95 * by_item.std(axis=1, ddof=1) / by_item.shape[1] ** 0.5
    return by_item.mean(axis=1) - reach, by_item.mean(axis=1) + reach


def law_interval(name: str, made: Judgments) -> tuple[Array, Array]:
    family = ONLINE_LAWS[name].family
    beliefs = ONLINE_LAWS[name].initial_beliefs(
        [np.full(ITEMS, number) for number in family.default_prior], LawParameters()
    )
    columns = (made.annotators[::N], made.items.reshape(-1, N), made.scores.reshape(-1, N))
    beliefs.apply_hits([AnsweredHit(*row) for row in zip(*(column.tolist() for column in columns), strict=True)])
    return family.interval(*beliefs.state)


def fitted(made: Judgments) -> tuple[Array, Array]:
    """Scores of all judgments fitted at once, -+ 1.96 of its standard errors."""
    found = annotator_aware.fit(made.items, made.annotators, made.scores, n_items=ITEMS, n_annotators=ANNOTATORS)
    return found.score - Z95 * found.standard_error, found.score + Z95 * found.standard_error


def rated(made: Judgments, resamples: int = 0, rng: np.random.Generator | None = None) -> elo.EloRatings:
    first, second, outcomes, hits = comparisons.pair_outcome_columns_from_hits(
        made.hits, made.items, made.scores, tie_margin=0.0
    )
    return elo.fit(first, second, outcomes, n_items=ITEMS, dependence_blocks=hits, resamples=resamples, rng=rng)


Row = tuple[float, float, float, float]  # share that hold the truth, mean width, and what `beside` tells of a law


def row(low: Array, high: Array, truth: Array, told: tuple[float, float] = (np.nan, np.nan)) -> Row:
    return float(((low <= truth) & (truth <= high)).mean()), float((high - low).mean()), *told


def one_run(crowd: Crowd, random_share: float, per_item: int, seed: int) -> dict[str, Row]:
    """Every interval on one simulated campaign."""
    rng = np.random.default_rng([seed, per_item])
    people = People(crowd, random_share, rng)
    all_scores = people.everything(rng)
    made = asked(people, per_item, rng)
    three = made.items, made.annotators, made.scores
    truth = all_scores.mean(axis=(0, 2))
    known: ModeratedMeans = moderated_means_of_tally(Tally.empty(ITEMS).with_judgments_added(*three))
    rows = {
        "mean, bootstrap": row(*bootstrap(made, rng), truth),
        "mean -+ 1.96 errors of its own": row(*own_error(made), truth),
        "mean, calibrated": row(*known.interval(), truth),
    }
    points = np.rint(100 * made.scores).astype(np.intp)
    median = direct_assessment.mean_and_median_labels(made.items, made.annotators, points, n_labels=101)
    middle = 100 * np.median(all_scores.transpose(1, 0, 2).reshape(ITEMS, -1), axis=1)
    rows["median, calibrated"] = row(median.low / 100, median.high / 100, middle / 100)
    z = (all_scores - all_scores.mean(axis=(0, 1))) / all_scores.std(axis=(0, 1))
    scored = direct_assessment.assess_standardised_scores(*three, n_items=ITEMS).scores
    rows["z-scores, calibrated (in standard deviations)"] = row(scored.low, scored.high, z.mean(axis=(0, 2)))
    ratings = np.mean([rated(asked(people, per_item, rng)).score for _ in range(ELO_CAMPAIGNS)], axis=0)
    found = rated(made, RESAMPLES, rng)
    rows["Elo, HITs drawn again (in rating points)"] = row(found.low, found.high, ratings)
    for name in (law.name for law in ONLINE_LAWS.values() if can_law_read_answers(law.reads, "points", 0)):
        ends = law_interval(name, made)
        rows[f"{name}, posterior"] = row(*ends, truth, known.expected_coverage_and_width_ratio(*ends))
    rows["easl-aware, fit to all judgments"] = row(*fitted(made), truth)
    return rows


def show(
    title: str,
    run: Callable[[int, int], dict[str, Row]],
    per_items: Sequence[int],
    runs: int,
    pool: ProcessPoolExecutor,
    *,
    columns: str,
) -> None:
    """A table. run: every interval, by judgments per item and a seed. columns: what a cell holds."""
    print(f"\n{title}; {runs} runs\n")
    heads = [f"{per_item} an item: {columns}" for per_item in per_items]
    print("| interval | " + " | ".join(heads) + " |\n" + "|---" * (1 + len(per_items)) + "|")
    found = [list(pool.map(partial(run, per_item), range(runs))) for per_item in per_items]
    for interval in found[0][0]:
        print(f"| {interval} | " + " | ".join(cell([run[interval] for run in one]) for one in found) + " |", flush=True)


def cell(rows: list[Row]) -> str:
    held, width, told, times = np.mean(rows, axis=0)
    said = "" if np.isnan(told) else f", {told:.2f} and {times:.1f} times"
    return f"{held:.3f}, {width:.3g}{said}"


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    with a_process_per_core() as pool:
        for name, (crowd, random_share) in CROWDS.items():
            title = f"{ITEMS} items, {ANNOTATORS} annotators, {name}"
            show(title, partial(one_run, crowd, random_share), PER_ITEM, runs, pool, columns="held, width, said")


if __name__ == "__main__":
    main()
