"""Measure how many judgments a goal needs: `python -m benchmarks.goals [RUNS] [--data FOLDER] [--tables TABLE ...]`.

The default is 100 runs. Simulated campaigns have 150 items, HITs of 5 and 30 annotators. For each goal and rule, the
table shows the judgments per item at which the rule meets the goal as well as 10 judgments per item that are spread
evenly and at random. Bands contain 90 % of resampled sets of runs.

| Table | Measures |
|---|---|
| `best` | share of the true top 15 that is found |
| `order` | the same, for laws that read the order within HITs |
| `crowds` | the same, for `easl-aware` compared with the plain mean |
| `threshold` | share of items on the right side of the median |
| `scale` | Spearman's correlation with the truth |

In simulated data, annotators are alike and items are equally hard or not (the noise's logarithm differs by .5), or true
values are close together, in two clusters, or near 0. In `crowds`, annotators have their own bias, scale and noise, and
some answer at random.

Real data are MLQE and RankME (examples/data/mlqe and rankme); a simulated answer is a random one of the item's real
scores. RankME has the four arms of magnitude estimation, clipped at 100, with 12 scores per item. More than a third of
its outputs share the highest mean for two of its three criteria, so only naturalness has a top 15. FOLDER contains the
files test20.*.df.short.tsv from the repository facebookresearch/mlqe (commit 49510b1, CC BY-SA 4.0), which have the
language pairs that are not part of Easel.
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
from benchmarks.annotator_aware import load_judgment_rows, make_process_pool
from benchmarks.people_of_mlqe import read_lists

ITEMS, ANNOTATORS, ITEMS_PER_HIT, TOP_ITEMS, MAX_JUDGMENTS_PER_ITEM = 150, 30, 5, 15, 10
HITS_PER_ROUND = ITEMS // ITEMS_PER_HIT
CHECKS_PER_JUDGMENT = 2
RESAMPLES = 1000
MLQE = ("et-en", "ro-en")
UNSHIPPED_MLQE = {"en-de": "ende", "en-zh": "enzh", "ne-en": "neen", "si-en": "sien"}
RANKME = ("naturalness", "informativeness", "quality")
TABLES = ("best", "order", "crowds", "threshold", "scale")
ORDER_LAWS = ("ra", "trueskill")
SCALE_CHECKPOINTS = (2, 3, 5, 10)


class StudySource(NamedTuple):
    """Source of annotators and true values.

    Attributes:
        name: Name in the tables.
        make_study: Function of a source of randomness that returns annotators and true values for one run.

    """

    name: str
    make_study: Callable[[np.random.Generator], tuple[SimulatedAnnotators, Array]]


class AnnotatorsOfHardItems(HabitAnnotators):
    """Similar annotators whose noise depends on the item."""

    def __init__(self, truth: Array, noise: Array) -> None:
        super().__init__(Population().draw_habits(ANNOTATORS, np.random.default_rng(0)), truth)
        self.noise = noise

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:  # noqa: ARG002  (they are alike)
        """Return scores of the items, (n,)."""
        noisy_values = self.true_values[[*items]] + self.noise[[*items]] * rng.standard_normal(len(items))
        scores: Array = np.clip(np.round(noisy_values, 2), 0, 1)
        return scores


def make_similar_annotators(
    noise_spread: float, rng: np.random.Generator, shape: tuple[float, float] = (2, 2)
) -> tuple[AnnotatorsOfHardItems, Array]:
    """Return similar annotators and true values, (items,).

    Args:
        noise_spread: Standard deviation of the noise's logarithm between items.
        rng: Source of randomness.
        shape: Parameters of the Beta distribution of true values.

    """
    true_values = rng.beta(*shape, ITEMS)
    return AnnotatorsOfHardItems(true_values, 0.15 * np.exp(noise_spread * rng.standard_normal(ITEMS))), true_values


def draw_values_in_two_clusters(count: int, rng: np.random.Generator) -> Array:
    """Return true values, (count,), 30 % of which are high and the others low."""
    return np.where(rng.random(count) < 0.3, rng.beta(8, 3, count), rng.beta(3, 8, count))


def make_annotators_of_two_clusters(rng: np.random.Generator) -> tuple[AnnotatorsOfHardItems, Array]:
    """Return similar annotators and true values in two clusters, (items,)."""
    true_values = draw_values_in_two_clusters(ITEMS, rng)
    return AnnotatorsOfHardItems(true_values, np.full(ITEMS, 0.15)), true_values


def make_annotators_with_habits(random_share: float, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    """Return annotators with individual habits, some of them random, and true values, (items,)."""
    true_values = rng.beta(2, 2, ITEMS)
    population = Population(0.15, 0.3, 0.15, 0.4, careless={"random": random_share})
    return HabitAnnotators(population.draw_habits(ANNOTATORS, rng), true_values), true_values


def load_mlqe_scores(languages: str) -> list[list[float]]:
    """Return the scores of each sentence of an MLQE language pair, 0 to 1."""
    scores: dict[str, list[float]] = defaultdict(list)
    for row in load_judgment_rows("mlqe"):
        if row["languages"] == languages:
            scores[row["item"]].append(float(row["score"]) / 100)
    return list(scores.values())


def load_rankme_magnitudes(criterion: str) -> list[list[float]]:
    """Return the magnitude-estimation scores of each RankME output, clipped to 0 to 1."""
    scores: dict[str, list[float]] = defaultdict(list)
    for row in load_judgment_rows("rankme"):
        if row["criterion"] == criterion and "likert" not in row["arm"]:
            scores[row["item"]].append(min(float(row["score"]) / 100, 1.0))
    return list(scores.values())


def list_real_sources(folder: Path | None) -> list[StudySource]:
    """Return MLQE, with more language pairs from a folder if given, and RankME."""
    scores = {f"MLQE {languages}": load_mlqe_scores(languages) for languages in MLQE}
    if folder is not None:
        for languages, name in UNSHIPPED_MLQE.items():
            lists, _ = read_lists(folder / f"test20.{name}.df.short.tsv")
            scores[f"MLQE {languages}"] = (lists / 100).tolist()
    scores |= {f"RankME {criterion}": load_rankme_magnitudes(criterion) for criterion in RANKME}
    return [StudySource(name, partial(make_replayed_study, item_scores)) for name, item_scores in scores.items()]


def list_simulated_sources() -> list[StudySource]:
    """Return sources of similar annotators."""
    make_study_by_kind: dict[str, Callable[[np.random.Generator], tuple[SimulatedAnnotators, Array]]] = {
        "alike": partial(make_similar_annotators, 0.0),
        "hard items": partial(make_similar_annotators, 0.5),
        "items close together": partial(make_similar_annotators, 0.0, shape=(10, 10)),
        "two heaps": make_annotators_of_two_clusters,
        "items near 0": partial(make_similar_annotators, 0.0, shape=(1, 4)),
    }
    return [StudySource(f"simulated, {kind}", make_study) for kind, make_study in make_study_by_kind.items()]


def make_replayed_study(scores: list[list[float]], rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    """Return annotators who give a random one of an item's real scores, and the true values, (items,)."""
    annotators = ReplayedAnnotators([scores[item] for item in rng.permutation(len(scores))[:ITEMS]], ANNOTATORS)
    return annotators, annotators.truth


GoalFigure = Callable[[Array, Array], float]


def share_of_top_items_found(score: Array, truth: Array) -> float:
    """Return the share of the true top 15 among the 15 highest scores."""
    best = np.argsort(-score)[:TOP_ITEMS]
    return float(np.isin(best, np.argsort(-truth)[:TOP_ITEMS]).mean())


def start_campaign(rule: str, law: str, true_values: Array, rng: np.random.Generator) -> SimulatedCampaign:
    """Return a simulated campaign without answers."""
    settings = SelectionSettings(
        judgments_per_item=10**6,
        items_per_hit=ITEMS_PER_HIT,
        gamma=0.1,
        best_count=TOP_ITEMS,
        threshold=float(np.median(true_values)),
    )
    return SimulatedCampaign(SELECTION_RULES[rule], ONLINE_LAWS[law], settings, LawParameters(), ITEMS, rng)


def simulate_goal_figures(source: StudySource, rule: str, law: str, goal_figure: GoalFigure, seed: int) -> Array:
    """Simulate a campaign and return the goal's figure after every half judgment per item, (20,).

    Under `even`, each item gets one judgment per round, so the figure changes only after whole judgments.
    """
    rng = np.random.default_rng([seed, 11])
    annotators, true_values = source.make_study(rng)
    campaign = start_campaign("scores" if rule == "even" else rule, law, true_values, np.random.default_rng([seed, 12]))
    figures = []
    hits = campaign.iterate_hits_while_answering_them(annotators)
    for check in range(CHECKS_PER_JUDGMENT * MAX_JUDGMENTS_PER_ITEM):
        if rule != "even":
            list(islice(hits, HITS_PER_ROUND // CHECKS_PER_JUDGMENT))
        elif check % CHECKS_PER_JUDGMENT == 0:
            campaign.judge_each_item_once(annotators)
        figures.append(goal_figure(campaign.score + 1e-9 * rng.random(ITEMS), true_values))
    return np.array(figures)


def judgments_until_goal(figures: Array, goal: float) -> float:
    """Return the judgments per item at which the mean figure of the runs first reaches a goal; infinite if never.

    Args:
        figures: Figures of the runs, (runs, 20).
        goal: Figure to reach.

    """
    is_reached = figures.mean(axis=0) >= goal
    return (1 + int(is_reached.argmax())) / CHECKS_PER_JUDGMENT if is_reached.any() else np.inf


class Runs(NamedTuple):
    """Number of runs of each campaign, and the processes for them."""

    number: int
    pool: ProcessPoolExecutor

    def simulate_figures(self, source: StudySource, rule: str, law: str, goal_figure: GoalFigure) -> Array:
        """Return the figures of all runs, (runs, 20)."""
        return np.array(
            list(self.pool.map(partial(simulate_goal_figures, source, rule, law, goal_figure), range(self.number)))
        )

    def print_table(
        self, title: str, sources: list[StudySource], goal_figure: GoalFigure, rows: list[tuple[str, str, str]]
    ) -> None:
        """Print the table of a goal.

        Args:
            title: Title of the table.
            sources: Sources of annotators and true values.
            goal_figure: Function of scores and true values that returns the goal's figure.
            rows: Rule and law of each row, and the law of the even campaign it is compared with.

        """
        print(f"\n{title}; {self.number} runs\n\n| data | rule, law | even, 10 judgments | meets it with |")
        print("|---|---|---|---|", flush=True)
        for source in sources:
            even = {law: self.simulate_figures(source, "even", law, goal_figure) for law in {law for _, _, law in rows}}
            for rule, law, even_law in rows:
                needed = self.format_judgments_needed(source, rule, law, goal_figure, even[even_law])
                print(f"| {source.name} | {rule}, {law} | {even[even_law][:, -1].mean():.3f} | {needed} |", flush=True)

    def format_judgments_needed(
        self, source: StudySource, rule: str, law: str, goal_figure: GoalFigure, even: Array
    ) -> str:
        """Return the judgments per item at which a rule meets the result of the even campaign, with a band."""
        figures, rng = self.simulate_figures(source, rule, law, goal_figure), np.random.default_rng(1)
        resamples = rng.integers(self.number, size=(RESAMPLES, self.number))
        low, high = np.percentile(
            [judgments_until_goal(figures[run_numbers], even[run_numbers, -1].mean()) for run_numbers in resamples],
            (5, 95),
            method="nearest",
        )
        return f"{judgments_until_goal(figures, even[:, -1].mean()):g} ({low:g} to {high:g})"

    def print_scale_table(self, sources: list[StudySource], rules: list[str]) -> None:
        """Print how Spearman's correlation of the whole scale differs from that of the even campaign."""
        print(f"\nThe whole scale: Spearman with the truth, above or below asking evenly; {self.number} runs\n")
        print(f"| data | rule | {' | '.join(f'{n} judgments' for n in SCALE_CHECKPOINTS)} |\n|---|---|---|---|---|---|")
        for source in sources:
            even = self.simulate_figures(source, "even", "easl", spearman).mean(axis=0)
            for rule in rules:
                gain = self.simulate_figures(source, rule, "easl", spearman).mean(axis=0) - even
                cells = " | ".join(f"{gain[CHECKS_PER_JUDGMENT * n - 1]:+.4f}" for n in SCALE_CHECKPOINTS)
                print(f"| {source.name} | {rule} | {cells} |", flush=True)


def main(runs: int, folder: Path | None, tables: Sequence[str]) -> None:
    simulated, real = list_simulated_sources(), list_real_sources(folder)
    real_with_top = [
        source for source in real if source.name not in {f"RankME {criterion}" for criterion in RANKME[1:]}
    ]
    crowds = [
        StudySource(f"{share:.0%} at random", partial(make_annotators_with_habits, share)) for share in (0.0, 0.15, 0.3)
    ]
    aware_rows = [("best", "easl", "easl"), ("scores", "easl-aware", "easl"), ("best", "easl-aware", "easl")]
    threshold_rows = [("threshold", "easl", "easl")]
    with make_process_pool() as pool:
        all_runs = Runs(runs, pool)
        if "threshold" in tables:
            all_runs.print_table(
                "Side of the median", simulated + crowds + real, share_on_right_side_of_median, threshold_rows
            )
        if "best" in tables:
            all_runs.print_table(
                "Top 15: judgments per item",
                simulated + real_with_top,
                share_of_top_items_found,
                [("best", "easl", "easl")],
            )
        if "order" in tables:
            order_rows = [("best", law, law) for law in ORDER_LAWS]
            all_runs.print_table(
                "Top 15, by the order within HITs",
                simulated[:2] + real[: len(MLQE)],
                share_of_top_items_found,
                order_rows,
            )
        if "crowds" in tables:
            all_runs.print_table(
                "Top 15, annotators with habits of their own", crowds, share_of_top_items_found, aware_rows
            )
        if "scale" in tables:
            all_runs.print_scale_table(simulated + real, ["scores", "easl"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=int, nargs="?", default=100)
    parser.add_argument("--data", type=Path, metavar="FOLDER")
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    chosen = parser.parse_args()
    main(chosen.runs, chosen.data, chosen.tables)
