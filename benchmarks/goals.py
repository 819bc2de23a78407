"""Judgments that a goal needs: `python -m benchmarks.goals [RUNS]`, default 100.

Campaigns in memory of 150 items, with HITs of 5, each by one of 30 annotators. Of a goal the table says at how many
judgments per item a rule meets it as well as all items asked evenly and at random meet it with 10; the band holds 90 %
of what resampled runs say. The goals: the share of the true top 15 that is found, the share of items on the right side
of the median, Spearman with the truth. The data: simulated annotators who are alike, on items that are equally hard or
not (the noise's logarithm differs by .5); the real scores of MLQE (examples/data/mlqe), of an item any as often as it
was given; and simulated annotators with bias, scale and noise of their own, of whom some answer at random, where
`easl-aware` is held against the plain mean.
"""

import csv
import gzip
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.experiments.simulated_arms import share_on_right_side_of_median
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population, ReplayedAnnotators, SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import DATA, a_process_per_core

ITEMS, ANNOTATORS, N, TOP, MOST = 150, 30, 5, 15, 10
PER_ROUND = ITEMS // N  # HITs that give each item one judgment
LOOKS = 2  # an item and judgment
RESAMPLED = 1000
MLQE = ("et-en", "ro-en")
LAWS = ("easl", "ra", "trueskill")
LOSSES_AT = (2, 3, 5, 10)


class Data(NamedTuple):
    """Where answers come from: people and the truth, made for one run."""

    name: str
    made: Callable[[np.random.Generator], tuple[SimulatedAnnotators, Array]]


class HardItems(HabitAnnotators):
    """People who are alike, and items of which some are harder."""

    def __init__(self, truth: Array, noise: Array) -> None:
        super().__init__(Population().draw_habits(ANNOTATORS, np.random.default_rng(0)), truth)
        self.noise = noise

    def draw_scores_by_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Scores, (n,)."""
        seen = self.true_values[[*items]] + self.noise[[*items]] * rng.standard_normal(len(items))
        scores: Array = np.clip(np.round(seen, 2), 0, 1)
        return scores


def alike(noise_spread: float, rng: np.random.Generator) -> tuple[HardItems, Array]:
    truth = rng.beta(2, 2, ITEMS)
    return HardItems(truth, 0.15 * np.exp(noise_spread * rng.standard_normal(ITEMS))), truth


def their_own(at_random: float, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    truth = rng.beta(2, 2, ITEMS)
    crowd = Population(0.15, 0.3, 0.15, 0.4, careless={"random": at_random})
    return HabitAnnotators(crowd.draw_habits(ANNOTATORS, rng), truth), truth


def real_scores(languages: str) -> list[list[float]]:
    """Scores that each item got, 0 to 1."""
    scores: dict[str, list[float]] = defaultdict(list)
    with gzip.open(DATA / "mlqe" / "judgments.csv.gz", "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["languages"] == languages:
                scores[row["item"]].append(float(row["score"]) / 100)
    return list(scores.values())


def repeated(scores: list[list[float]], rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    people = ReplayedAnnotators([scores[item] for item in rng.permutation(len(scores))[:ITEMS]], ANNOTATORS)
    return people, people.truth


Reached = Callable[[Array, Array], float]


def top(score: Array, truth: Array) -> float:
    """The share of the true top 15 among those of the highest scores."""
    best = np.argsort(-score)[:TOP]
    return float(np.isin(best, np.argsort(-truth)[:TOP]).mean())


def campaign(rule: str, law: str, truth: Array, rng: np.random.Generator) -> SimulatedCampaign:
    asking = SelectionSettings(
        judgments_per_item=10**6, items_per_hit=N, gamma=0.1, best_count=TOP, threshold=float(np.median(truth))
    )
    return SimulatedCampaign(SELECTION_RULES[rule], ONLINE_LAWS[law], asking, LawParameters(), ITEMS, rng)


def course(data: Data, rule: str, law: str, reached: Reached, seed: int) -> Array:
    """How well the goal is met after every half judgment per item, (20,); for `even` after every whole one, twice."""
    rng = np.random.default_rng([seed, 11])
    people, truth = data.made(rng)
    mine = campaign("scores" if rule == "even" else rule, law, truth, np.random.default_rng([seed, 12]))
    found = []
    hits = mine.iterate_answered_hits(people)
    for look in range(LOOKS * MOST):
        if rule != "even":
            list(islice(hits, PER_ROUND // LOOKS))
        elif look % LOOKS == 0:
            mine.judge_each_item_once(people)
        found.append(reached(mine.score + 1e-9 * rng.random(ITEMS), truth))
    return np.array(found)


def met_at(courses: Array, goal: float) -> float:
    """Judgments per item at which the mean of runs, (runs, 20), meets a goal; infinite if it does not."""
    reached = courses.mean(axis=0) >= goal
    return (1 + int(reached.argmax())) / LOOKS if reached.any() else np.inf


class Runs(NamedTuple):
    """How often each campaign is run, and where."""

    number: int
    pool: ProcessPoolExecutor

    def courses(self, data: Data, rule: str, law: str, reached: Reached) -> Array:
        """(runs, 20)."""
        return np.array(list(self.pool.map(partial(course, data, rule, law, reached), range(self.number))))

    def show(self, title: str, data: list[Data], reached: Reached, rows: list[tuple[str, str, str]]) -> None:
        """rows: a rule, its law, and the law of what it is held against."""
        print(f"\n{title}; {self.number} runs\n\n| data | rule, law | even, 10 judgments | meets it with |")
        print("|---|---|---|---|", flush=True)
        for one in data:
            even = {law: self.courses(one, "even", law, reached) for law in {law for _, _, law in rows}}
            for rule, law, against in rows:
                cells = f"{even[against][:, -1].mean():.3f} | {self.with_band(one, rule, law, reached, even[against])}"
                print(f"| {one.name} | {rule}, {law} | {cells} |", flush=True)

    def with_band(self, data: Data, rule: str, law: str, reached: Reached, even: Array) -> str:
        """Where a rule meets what asking evenly meets with 10, and what resampled runs say of that."""
        found, rng = self.courses(data, rule, law, reached), np.random.default_rng(1)
        again = rng.integers(self.number, size=(RESAMPLED, self.number))
        low, high = np.percentile([met_at(found[k], even[k, -1].mean()) for k in again], (5, 95), method="nearest")
        return f"{met_at(found, even[:, -1].mean()):g} ({low:g} to {high:g})"

    def show_losses(self, data: list[Data], rules: list[str]) -> None:
        """Figures of the whole scale."""
        print(f"\nThe whole scale: Spearman with the truth, above or below asking evenly; {self.number} runs\n")
        print(f"| data | rule | {' | '.join(f'{n} judgments' for n in LOSSES_AT)} |\n|---|---|---|---|---|---|")
        for one in data:
            even = self.courses(one, "even", "easl", spearman).mean(axis=0)
            for rule in rules:
                gained = self.courses(one, rule, "easl", spearman).mean(axis=0) - even
                cells = " | ".join(f"{gained[LOOKS * n - 1]:+.4f}" for n in LOSSES_AT)
                print(f"| {one.name} | {rule} | {cells} |", flush=True)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    kinds = ("alike", 0.0), ("hard items", 0.5)
    simulated = [Data(f"simulated, {kind}", partial(alike, spread)) for kind, spread in kinds]
    real = [Data(f"MLQE {languages}", partial(repeated, real_scores(languages))) for languages in MLQE]
    crowds = [Data(f"{share:.0%} at random", partial(their_own, share)) for share in (0.0, 0.15, 0.3)]
    aware = [("best", "easl", "easl"), ("scores", "easl-aware", "easl"), ("best", "easl-aware", "easl")]
    with a_process_per_core() as pool:
        mine = Runs(runs, pool)
        mine.show("Top 15: judgments per item", simulated + real, top, [("best", law, law) for law in LAWS])
        mine.show("Top 15, annotators with habits of their own", crowds, top, aware)
        mine.show(
            "Side of the median", simulated + real, share_on_right_side_of_median, [("threshold", "easl", "easl")]
        )
        mine.show_losses(simulated + real, ["scores", "easl"])


if __name__ == "__main__":
    main()
