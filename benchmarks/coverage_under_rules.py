"""Measure how often intervals contain the truth under rules that select items by their scores.

Run `python -m benchmarks.coverage_under_rules [RUNS]`; the default is 20 runs.

Simulated campaigns have 150 items, HITs of 5 and 30 annotators. They are measured after 2, 3, 5 and 10 judgments per
item. Rules that release items decide after every third HIT which items their goal no longer needs. The truth is the
expected answer of all annotators; for MLQE and RankME, the mean of the item's real scores. RankME has the scores of all
four arms of magnitude estimation, clipped at 100: 71 to 84 % of them are 100.

Each table has a row for plain calibrated intervals and a row for shrunken intervals. Its columns are the share of
intervals that contain the truth, for all items, for items with one or two judgments, and for the twelve items with the
highest scores of that kind; the mean width; and how much too high the scores of these twelve are, in points.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.designs.scale import MAX_POINTS
from app.goals.progress import mask_of_settled_items
from app.goals.settings import RELEASE_ITEMS, Goal
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.inference.ratings.shrunken_means import fit_item_shrinkage
from app.selection.registry import SELECTION_RULES
from app.selection.rule import Counts, SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population, SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import make_process_pool
from benchmarks.forecasts import add_answers
from benchmarks.goals import (
    MLQE,
    RANKME,
    draw_values_in_two_clusters,
    load_mlqe_scores,
    load_rankme_magnitudes,
    make_replayed_study,
)
from benchmarks.stopping import GOAL_SETTINGS, expected_answers
from benchmarks.unsaved_campaign import make_unsaved_campaign

ITEMS, ANNOTATORS, ITEMS_PER_HIT, BEST_ITEMS, LEADING_ITEMS, MAX_FEW_JUDGMENTS, MAX_JUDGMENTS_PER_ITEM = (
    150,
    30,
    5,
    15,
    12,
    2,
    20,
)
CHECKPOINTS = (2, 3, 5, 10)
HITS_PER_ROUND = ITEMS // ITEMS_PER_HIT
HITS_BETWEEN_RELEASES = 3
FIRST_SEED = 7000  # the intervals were developed on other campaigns
BIASED_POPULATION = Population(0.15, 0.3, 0.15, 0.4)

SimulateStudy = Callable[[np.random.Generator], tuple[SimulatedAnnotators, Array]]


class Selection(NamedTuple):
    """A selection rule, and the goal for which items are released, if any."""

    rule: str
    releases_for_goal: Goal | None = None

    @property
    def title(self) -> str:
        """Return the title of a table row."""
        return f"{self.rule}, releasing" if self.releases_for_goal else self.rule


SELECTIONS = (
    Selection("scores"),
    Selection("easl"),
    Selection("best"),
    Selection("threshold"),
    Selection("best", "best"),
    Selection("threshold", "threshold"),
    Selection("scores", "intervals"),
)


def simulate_study_of_population(
    population: Population, draw_true_values: Callable[[np.random.Generator], Array], rng: np.random.Generator
) -> tuple[SimulatedAnnotators, Array]:
    """Return annotators of a population and their mean expected answers, (items,).

    Args:
        population: Population of the annotators.
        draw_true_values: Function that draws the true values of the items.
        rng: Source of randomness.

    """
    annotators = HabitAnnotators(population.draw_habits(ANNOTATORS, rng), draw_true_values(rng))
    return annotators, np.mean(
        [expected_answers(habits, annotators.true_values) for habits in annotators.habits], axis=0
    )


def draw_beta_values(a: float, b: float, rng: np.random.Generator) -> Array:
    return rng.beta(a, b, ITEMS)


STUDIES_BY_NAME: dict[str, SimulateStudy] = {
    "all alike": partial(simulate_study_of_population, Population(), partial(draw_beta_values, 2, 2)),
    "biases .15": partial(simulate_study_of_population, BIASED_POPULATION, partial(draw_beta_values, 2, 2)),
    "the same, 15 % random": partial(
        simulate_study_of_population,
        Population(0.15, 0.3, 0.15, 0.4, careless={"random": 0.15}),
        partial(draw_beta_values, 2, 2),
    ),
    "noise .3": partial(simulate_study_of_population, Population(0.05, 0.1, 0.3, 0.3), partial(draw_beta_values, 2, 2)),
    "alike, items in two heaps": partial(
        simulate_study_of_population, Population(), partial(draw_values_in_two_clusters, ITEMS)
    ),
    "alike, items close together": partial(
        simulate_study_of_population, Population(), partial(draw_beta_values, 20, 20)
    ),
    "biases .15, items piled up near 0": partial(
        simulate_study_of_population, BIASED_POPULATION, partial(draw_beta_values, 1, 4)
    ),
    **{f"MLQE {languages}": partial(make_replayed_study, load_mlqe_scores(languages)) for languages in MLQE},
    **{f"RankME {criterion}": partial(make_replayed_study, load_rankme_magnitudes(criterion)) for criterion in RANKME},
}


class IntervalFigures(NamedTuple):
    """Coverage and width of intervals at one checkpoint.

    Attributes:
        all_items: Share of all intervals that contain the truth.
        few: Number of items with few judgments whose interval contains the truth.
        few_items: Number of items with few judgments.
        leading: Share of the leading items' intervals that contain the truth.
        width: Mean width in points.
        too_high: Mean score minus truth of the leading items, in points.

    """

    all_items: float
    few: float
    few_items: float
    leading: float
    width: float
    too_high: float


def iterate_checkpoints(
    simulate_study: SimulateStudy, selection: Selection, seed: int
) -> Iterator[tuple[int, Tally, Array]]:
    """Simulate a campaign and yield judgments per item, all judgments so far and the truth at each checkpoint."""
    annotators, truth = simulate_study(np.random.default_rng([seed, 1]))
    threshold = float(np.median(truth))
    settings = SelectionSettings(
        MAX_JUDGMENTS_PER_ITEM if selection.releases_for_goal else 10**6,
        ITEMS_PER_HIT,
        gamma=0.1,
        best_count=BEST_ITEMS,
        threshold=threshold,
    )
    simulation = SimulatedCampaign(
        SELECTION_RULES[selection.rule],
        ONLINE_LAWS["easl"],
        settings,
        LawParameters(),
        ITEMS,
        np.random.default_rng([seed, 2]),
    )
    goal = {"goal": selection.releases_for_goal, "when_reached": RELEASE_ITEMS, "threshold": MAX_POINTS * threshold}
    campaign = (
        make_unsaved_campaign(best_items=BEST_ITEMS, **goal, **GOAL_SETTINGS) if selection.releases_for_goal else None
    )
    hits, tally = simulation.iterate_hits_while_answering_them(annotators), Tally.empty(ITEMS)
    for per_item in range(1, max(CHECKPOINTS) + 1):
        for _ in range(0, HITS_PER_ROUND, HITS_BETWEEN_RELEASES):
            tally = add_answers(tally, list(islice(hits, HITS_BETWEEN_RELEASES)))
            if campaign:
                simulation.release_settled_items(
                    mask_of_settled_items(campaign, moderated_means_of_tally(tally), simulation.score)
                )
        if per_item in CHECKPOINTS:
            yield per_item, tally, truth


def interval_figures(score: Array, low: Array, high: Array, truth: Array, judgments: Counts) -> IntervalFigures:
    """Return the coverage and width of intervals."""
    contains_truth, leading, few = (
        (low <= truth) & (truth <= high),
        np.argsort(-score, kind="stable")[:LEADING_ITEMS],
        judgments <= MAX_FEW_JUDGMENTS,
    )
    too_high = MAX_POINTS * float((score - truth)[leading].mean())
    return IntervalFigures(
        contains_truth.mean(),
        contains_truth[few].sum(),
        few.sum(),
        contains_truth[leading].mean(),
        MAX_POINTS * (high - low).mean(),
        too_high,
    )


def simulate_interval_figures(
    simulate_study: SimulateStudy, selection: Selection, seed: int
) -> dict[str, list[IntervalFigures]]:
    """Simulate a campaign and return the figures at all checkpoints, by kind of interval."""
    figures: dict[str, list[IntervalFigures]] = defaultdict(list)
    for _, tally, truth in iterate_checkpoints(simulate_study, selection, seed):
        means: ModeratedMeans = moderated_means_of_tally(tally)
        judged_items = np.flatnonzero(np.isfinite(means.standard_error))
        means, truths, judgments = (
            means.select_items(judged_items),
            truth[judged_items],
            tally.judgments[judged_items].astype(np.int64),
        )
        figures["plain"].append(interval_figures(means.mean, *means.interval(), truths, judgments))
        shrunken = fit_item_shrinkage(tally).shrink_items(judged_items)
        figures["shrunken"].append(interval_figures(shrunken.score, shrunken.low, shrunken.high, truths, judgments))
    return figures


def format_cells(figures: Sequence[IntervalFigures]) -> str:
    """Return the cells of a table row with the mean figures."""
    mean = IntervalFigures(*np.mean(figures, axis=0))
    few = f"{mean.few / mean.few_items:.3f}" if mean.few_items else "none"
    return f"{mean.all_items:.3f} | {few} | {mean.leading:.3f} | {mean.width:.1f} | {mean.too_high:+.1f}"


HEADINGS = "all items | at most 2 judgments | leading 12 | width | leading scores too high"


def print_headings(title: str) -> None:
    print(f"\n{title}\n\n| | interval | {HEADINGS} |\n|---|---|---|---|---|---|---|")


def print_rows_by_interval(name: str, figures_by_interval: dict[str, list[IntervalFigures]]) -> None:
    """Print a row for each kind of interval."""
    for interval, figures in figures_by_interval.items():
        print(f"| {name} | {interval} | {format_cells(figures)} |", flush=True)


def merge_runs(runs: Sequence[dict[str, list[IntervalFigures]]]) -> dict[str, list[IntervalFigures]]:
    """Return the figures of all runs and checkpoints by kind of interval."""
    return {interval: [figures for run in runs for figures in run[interval]] for interval in runs[0]}


def print_tables(runs: int, pool: ProcessPoolExecutor) -> None:
    """Print tables by rule, by judgments per item and by data; the latter two of the rules that select by score."""
    print_headings(f"By rule, over all data; {runs} runs each")
    runs_by_selection: dict[Selection, dict[str, list[dict[str, list[IntervalFigures]]]]] = {}
    seeds = range(FIRST_SEED, FIRST_SEED + runs)
    for selection in SELECTIONS:
        runs_by_selection[selection] = {
            name: list(pool.map(partial(simulate_interval_figures, simulate_study, selection), seeds))
            for name, simulate_study in STUDIES_BY_NAME.items()
        }
        print_rows_by_interval(
            selection.title,
            merge_runs([run for runs_of_study in runs_by_selection[selection].values() for run in runs_of_study]),
        )
    selective = [
        runs_of_study
        for selection, runs_of_study in runs_by_selection.items()
        if selection.rule in ("best", "threshold")
    ]
    selective_runs = [
        run for runs_by_study in selective for runs_of_study in runs_by_study.values() for run in runs_of_study
    ]
    print_headings("Rules best and threshold, by judgments per item")
    for checkpoint, budget in enumerate(CHECKPOINTS):
        print_rows_by_interval(
            f"{budget} an item",
            {interval: [run[interval][checkpoint] for run in selective_runs] for interval in selective_runs[0]},
        )
    print_headings("Rules best and threshold, by data")
    for name in STUDIES_BY_NAME:
        print_rows_by_interval(name, merge_runs([run for runs_by_study in selective for run in runs_by_study[name]]))
    for name in STUDIES_BY_NAME:
        if name.startswith("RankME"):
            print_headings(f"{name}, by rule")
            for selection, runs_by_study in runs_by_selection.items():
                print_rows_by_interval(selection.title, merge_runs(runs_by_study[name]))


def main() -> None:
    with make_process_pool() as pool:
        print_tables(int(sys.argv[1]) if len(sys.argv) > 1 else 20, pool)


if __name__ == "__main__":
    main()
