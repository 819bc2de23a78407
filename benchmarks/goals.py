"""Judgments that a goal needs: `python -m benchmarks.goals [RUNS] [--data FOLDER] [--tables TABLE ...]`.

Campaigns in memory of 150 items, with HITs of 5, each by one of 30 annotators; 100 runs by default. Of a goal the table
says at how many judgments per item a rule meets it as well as all items asked evenly and at random meet it with 10; the
band holds 90 % of what resampled runs say. The tables: `best`, the share of the true top 15 that is found;
`order`, the same for laws that read the order within HITs; `crowds`,
the same for `easl-aware` held against the plain mean; `threshold`, the share on the right side of the median;
`scale`, Spearman with the truth.

Simulated data: annotators who are alike, on items that are equally hard or not (the noise's logarithm differs by .5),
or whose true values lie close together, in two heaps or near 0; and annotators with bias, scale and noise of their own,
of whom some answer at random. Real data, of an item any score as often as it was given: MLQE and RankME
(examples/data/mlqe and rankme); of RankME the four arms of magnitude estimation, cut at 100, 12 scores an item.
More than a third of the outputs share RankME's highest mean by two of its three criteria, so only naturalness has a top
15. FOLDER holds the files test20.*.df.short.tsv of the repository facebookresearch/mlqe (commit 49510b1, CC BY-SA 4.0),
from which all language pairs are read that Easel does not ship.
"""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
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
from benchmarks.annotator_aware import a_process_per_core, judgments
from benchmarks.people_of_mlqe import read_lists

ITEMS, ANNOTATORS, N, TOP, MOST = 150, 30, 5, 15, 10
PER_ROUND = ITEMS // N  # HITs that give each item one judgment
LOOKS = 2  # an item and judgment
RESAMPLED = 1000
MLQE = ("et-en", "ro-en")
MORE_OF_MLQE = {"en-de": "ende", "en-zh": "enzh", "ne-en": "neen", "si-en": "sien"}
RANKME = ("naturalness", "informativeness", "quality")
TABLES = ("best", "order", "crowds", "threshold", "scale")
LAWS_OF_ORDER = ("ra", "trueskill")
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


def alike(
    noise_spread: float, rng: np.random.Generator, shape: tuple[float, float] = (2, 2)
) -> tuple[HardItems, Array]:
    truth = rng.beta(*shape, ITEMS)
    return HardItems(truth, 0.15 * np.exp(noise_spread * rng.standard_normal(ITEMS))), truth


def two_heaps(rng: np.random.Generator) -> tuple[HardItems, Array]:
    truth = np.where(rng.random(ITEMS) < 0.3, rng.beta(8, 3, ITEMS), rng.beta(3, 8, ITEMS))
    return HardItems(truth, np.full(ITEMS, 0.15)), truth


def their_own(at_random: float, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    truth = rng.beta(2, 2, ITEMS)
    crowd = Population(0.15, 0.3, 0.15, 0.4, careless={"random": at_random})
    return HabitAnnotators(crowd.draw_habits(ANNOTATORS, rng), truth), truth


def real_scores(languages: str) -> list[list[float]]:
    """Scores that each sentence of MLQE got, 0 to 1."""
    scores: dict[str, list[float]] = defaultdict(list)
    for row in judgments("mlqe"):
        if row["languages"] == languages:
            scores[row["item"]].append(float(row["score"]) / 100)
    return list(scores.values())


def magnitudes(criterion: str) -> list[list[float]]:
    """Scores that each output of RankME got by magnitude estimation, 0 to 1."""
    scores: dict[str, list[float]] = defaultdict(list)
    for row in judgments("rankme"):
        if row["criterion"] == criterion and "likert" not in row["arm"]:
            scores[row["item"]].append(min(float(row["score"]) / 100, 1.0))
    return list(scores.values())


def real_data(folder: Path | None) -> list[Data]:
    """MLQE, of whose language pairs more are read from a folder, and RankME."""
    scores = {f"MLQE {languages}": real_scores(languages) for languages in MLQE}
    if folder is not None:
        for languages, name in MORE_OF_MLQE.items():
            lists, _ = read_lists(folder / f"test20.{name}.df.short.tsv")
            scores[f"MLQE {languages}"] = (lists / 100).tolist()
    scores |= {f"RankME {criterion}": magnitudes(criterion) for criterion in RANKME}
    return [Data(name, partial(repeated, of)) for name, of in scores.items()]


def simulated_data() -> list[Data]:
    """Annotators who are alike."""
    made: dict[str, Callable[[np.random.Generator], tuple[SimulatedAnnotators, Array]]] = {
        "alike": partial(alike, 0.0),
        "hard items": partial(alike, 0.5),
        "items close together": partial(alike, 0.0, shape=(10, 10)),
        "two heaps": two_heaps,
        "items near 0": partial(alike, 0.0, shape=(1, 4)),
    }
    return [Data(f"simulated, {kind}", of) for kind, of in made.items()]


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


def main(runs: int, folder: Path | None, tables: Sequence[str]) -> None:
    simulated, real = simulated_data(), real_data(folder)
    with_top = [data for data in real if data.name not in {f"RankME {criterion}" for criterion in RANKME[1:]}]
    crowds = [Data(f"{share:.0%} at random", partial(their_own, share)) for share in (0.0, 0.15, 0.3)]
    aware = [("best", "easl", "easl"), ("scores", "easl-aware", "easl"), ("best", "easl-aware", "easl")]
    sides = [("threshold", "easl", "easl")]
    with a_process_per_core() as pool:
        mine = Runs(runs, pool)
        if "threshold" in tables:
            mine.show("Side of the median", simulated + crowds + real, share_on_right_side_of_median, sides)
        if "best" in tables:
            mine.show("Top 15: judgments per item", simulated + with_top, top, [("best", "easl", "easl")])
        if "order" in tables:
            by_order = [("best", law, law) for law in LAWS_OF_ORDER]
            mine.show("Top 15, by the order within HITs", simulated[:2] + real[: len(MLQE)], top, by_order)
        if "crowds" in tables:
            mine.show("Top 15, annotators with habits of their own", crowds, top, aware)
        if "scale" in tables:
            mine.show_losses(simulated + real, ["scores", "easl"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=100)
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    chosen = parser.parse_args()
    main(chosen.runs, chosen.data, chosen.tables)
