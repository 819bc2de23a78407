"""Measure how often campaigns that stop at their goal are right: `python -m benchmarks.stopping [RUNS]`.

The default is 200 runs. Simulated campaigns have 30 items, HITs of 5 and 40 annotators with small biases. After every
HIT the goal is checked at 95 % probability, and the campaign ends when it is reached. The truth is the mean expected
answer of all annotators. For each goal, the first table shows the share of ended campaigns that really met it, their
judgments per item, and the number of campaigns that had not ended after 60. For narrow intervals, *right* is the share
of intervals that contain the truth.

In the second table, campaigns release items as they settle, with at most 20 judgments per item; in some rows a fifth of
the annotators answers at random, or noise differs between items. The columns are the share of released items whose
result is right (for intervals, those that contain the truth); the judgments per item; the judgments per item until as
many items are settled if all are judged evenly, at most 20; and the share of items that were not released.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from app.designs.scale import MAX_POINTS
from app.goals.progress import goal_progress_or_none, mask_of_settled_items
from app.goals.settings import RELEASE_ITEMS
from app.inference.ground.arrays import Array, Mask
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Habits, Population, SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import make_process_pool
from benchmarks.forecasts import add_answers
from benchmarks.goals import AnnotatorsOfHardItems, draw_values_in_two_clusters
from benchmarks.unsaved_campaign import make_unsaved_campaign

ITEMS, ANNOTATORS, ITEMS_PER_HIT, MAX_JUDGMENTS_PER_ITEM, MAX_JUDGMENTS_WITH_RELEASE = 30, 40, 5, 60, 20
POPULATION = Population(bias_sd=0.05, log_scale_sd=0.1, noise=0.1, log_noise_sd=0.2)
NOISE_QUANTILES = np.linspace(-4, 4, 81)  # points of a standard Normal, for means of clipped answers
GOAL_SETTINGS: dict[str, Any] = {"goal_percent": 95, "goal_within": 5, "goal_width": 10, "goal_correlation": 0.9}


def draw_wide_values(rng: np.random.Generator) -> Array:
    return rng.beta(2, 2, ITEMS)


def draw_values_near_zero(rng: np.random.Generator) -> Array:
    return rng.beta(1, 4, ITEMS)


VALUE_DISTRIBUTIONS: dict[str, Callable[[np.random.Generator], Array]] = {
    "wide": draw_wide_values,
    "piled up near 0": draw_values_near_zero,
    "two heaps": partial(draw_values_in_two_clusters, ITEMS),
}


class Row(NamedTuple):
    """Goal and selection rule of a table row."""

    goal: str
    rule: str


ROWS = (
    *(Row("best", rule) for rule in ("best", "easl")),
    *(Row("threshold", rule) for rule in ("threshold", "scores")),
    Row("intervals", "scores"),
)


class End(NamedTuple):
    """Accuracy of a campaign at its end, and its judgments per item."""

    accuracy: float
    judgments_per_item: float


class ReleaseFigures(NamedTuple):
    """Results of a campaign that releases items.

    Attributes:
        right_items: Number of released items whose result is right.
        items: Number of released items.
        judgments_per_item: Judgments per item.
        even_judgments_per_item: Judgments per item until as many items are settled if all are judged evenly.

    """

    right_items: int
    items: int
    judgments_per_item: float
    even_judgments_per_item: int


def simulate_end_or_none(row: Row, distribution: str, seed: int) -> End | None:
    """Simulate a campaign and return its result when the goal is reached, or None if it is never reached."""
    rng = np.random.default_rng([seed, 5])
    annotators = HabitAnnotators(POPULATION.draw_habits(ANNOTATORS, rng), VALUE_DISTRIBUTIONS[distribution](rng))
    truth = np.mean([expected_answers(habits, annotators.true_values) for habits in annotators.habits], axis=0)
    settings = SelectionSettings(
        judgments_per_item=MAX_JUDGMENTS_PER_ITEM, items_per_hit=ITEMS_PER_HIT, gamma=0.1, best_count=5, threshold=0.5
    )
    simulation = SimulatedCampaign(
        SELECTION_RULES[row.rule],
        ONLINE_LAWS["easl"],
        settings,
        LawParameters(),
        ITEMS,
        np.random.default_rng([seed, 6]),
    )
    campaign = make_unsaved_campaign(goal=row.goal, when_reached="tell", best_items=5, threshold=50, **GOAL_SETTINGS)
    tally = Tally.empty(ITEMS)
    for hit in simulation.iterate_hits_while_answering_them(annotators):
        tally = add_answers(tally, [hit])
        means = moderated_means_of_tally(tally)
        progress = goal_progress_or_none(campaign, means, simulation.score)
        if progress is not None and progress.is_reached:
            return End(ACCURACY_BY_GOAL[row.goal](means, simulation.score, truth), tally.judgments.mean())
    return None


@dataclass
class ReleasingCampaign:
    """A simulated campaign that releases items, and its estimates."""

    goal: str
    rule: str
    crowd: str
    distribution: str
    seed: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 7])
        self.annotators, self.truth = CROWDS[self.crowd](VALUE_DISTRIBUTIONS[self.distribution](rng), rng)
        settings, selection_rng = (
            SelectionSettings(MAX_JUDGMENTS_WITH_RELEASE, ITEMS_PER_HIT, 0.1, best_count=5, threshold=0.5),
            np.random.default_rng([self.seed, 8]),
        )
        self.simulation = SimulatedCampaign(
            SELECTION_RULES[self.rule], ONLINE_LAWS["easl"], settings, LawParameters(), ITEMS, selection_rng
        )
        self.tally = Tally.empty(ITEMS)
        self.campaign = make_unsaved_campaign(
            goal=self.goal, when_reached=RELEASE_ITEMS, best_items=5, threshold=50, **GOAL_SETTINGS
        )

    def add_answers_and_settle(self, hits: Sequence[AnsweredHit]) -> Mask:
        """Add answers and return which items are settled."""
        self.tally = add_answers(self.tally, hits)
        self.means = moderated_means_of_tally(self.tally)
        return mask_of_settled_items(self.campaign, self.means, self.simulation.score)

    def run_and_release(self) -> Mask:
        """Release settled items after every HIT until no items are left, and return which items are settled."""
        is_settled = np.zeros(ITEMS, bool)
        for hit in self.simulation.iterate_hits_while_answering_them(self.annotators):
            is_settled = self.add_answers_and_settle([hit])
            self.simulation.release_settled_items(is_settled)
        return is_settled

    def count_even_judgments(self, enough: int) -> int:
        """Judge all items evenly and return the judgments per item until `enough` are settled, or the maximum."""
        hits = self.simulation.iterate_hits_while_answering_them(self.annotators)
        for count in range(1, MAX_JUDGMENTS_WITH_RELEASE):
            if self.add_answers_and_settle(list(islice(hits, ITEMS // ITEMS_PER_HIT))).sum() >= enough:
                return count
        return MAX_JUDGMENTS_WITH_RELEASE


def simulate_release(goal: str, crowd: str, distribution: str, seed: int) -> ReleaseFigures:
    """Simulate a campaign with releases and one without, and return their figures."""
    releasing = ReleasingCampaign(goal, "scores" if goal == "intervals" else goal, crowd, distribution, seed)
    is_released = releasing.run_and_release()
    is_right, items = (
        IS_RIGHT_BY_GOAL[goal](releasing.means, releasing.simulation.score, releasing.truth)[is_released],
        int(is_released.sum()),
    )
    even_judgments = ReleasingCampaign(goal, "scores", crowd, distribution, seed).count_even_judgments(items)
    return ReleaseFigures(int(is_right.sum()), items, float(releasing.tally.judgments.mean()), even_judgments)


def make_partly_random_annotators(
    share: float, true_values: Array, rng: np.random.Generator
) -> tuple[SimulatedAnnotators, Array]:
    """Return annotators, a share of them random, and their mean expected answers, (items,)."""
    annotators = HabitAnnotators(
        replace(POPULATION, careless={"random": share}).draw_habits(ANNOTATORS, rng), true_values
    )
    return annotators, np.mean([expected_answers(habits, true_values) for habits in annotators.habits], axis=0)


def make_annotators_of_hard_items(true_values: Array, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    """Return annotators whose noise depends on the item, and expected answers, (items,)."""
    noise = 0.1 * np.exp(0.5 * rng.standard_normal(ITEMS))
    return AnnotatorsOfHardItems(true_values, noise), mean_clipped_answers(
        true_values + noise * NOISE_QUANTILES[:, None]
    )


CROWDS: dict[str, Callable[[Array, np.random.Generator], tuple[SimulatedAnnotators, Array]]] = {
    "alike": partial(make_partly_random_annotators, 0.0),
    "20 % at random": partial(make_partly_random_annotators, 0.2),
    "items differ": make_annotators_of_hard_items,
}


def expected_answers(habits: Habits, true_values: Array) -> Array:
    """Return the expected answers of an annotator, (N,); those of random annotators are uniform."""
    if habits.careless is not None:
        return np.full(len(true_values), 0.5)
    unclipped = 0.5 + habits.bias + habits.scale * (true_values - 0.5) + habits.noise * NOISE_QUANTILES[:, None]
    return mean_clipped_answers(unclipped)


def mean_clipped_answers(unclipped: Array) -> Array:
    """Return the mean of answers clipped to the scale, (N,).

    Args:
        unclipped: Answers at each of the `NOISE_QUANTILES`, (81, N).

    """
    means: Array = np.average(np.clip(unclipped, 0, 1), axis=0, weights=np.exp(-(NOISE_QUANTILES**2) / 2))
    return means


def are_best_right(_known: ModeratedMeans, score: Array, truth: Array) -> float:
    """Return whether the highest scores are the best items within the tolerance, 0 or 1."""
    order = np.argsort(-score)
    return float(truth[order[5:]].max() <= truth[order[:5]].min() + GOAL_SETTINGS["goal_within"] / MAX_POINTS)


def places_are_right(_known: ModeratedMeans, score: Array, truth: Array) -> Mask:
    """Return for each item whether it is rightly among the best, or rightly not, within the tolerance."""
    tolerance, order = GOAL_SETTINGS["goal_within"] / MAX_POINTS, np.argsort(-score)
    fifth, sixth = np.sort(truth)[::-1][4:6]
    is_called_best = np.isin(np.arange(ITEMS), order[:5])
    return np.asarray(np.where(is_called_best, truth >= fifth - tolerance, truth <= sixth + tolerance))


def sides_are_right(means: ModeratedMeans, _score: Array, truth: Array) -> Mask:
    """Return for each item whether it is on the right side of the threshold, within the tolerance."""
    tolerance = GOAL_SETTINGS["goal_within"] / MAX_POINTS
    return np.asarray(np.where(means.mean > 0.5, truth >= 0.5 - tolerance, truth <= 0.5 + tolerance))


def intervals_contain_truth(means: ModeratedMeans, _score: Array, truth: Array) -> Mask:
    low, high = means.interval()
    return (low <= truth) & (truth <= high)


ACCURACY_BY_GOAL: dict[str, Callable[[ModeratedMeans, Array, Array], float]] = {
    "best": are_best_right,
    "threshold": lambda *simulate_end_or_none: float(sides_are_right(*simulate_end_or_none).all()),
    "intervals": lambda *simulate_end_or_none: float(intervals_contain_truth(*simulate_end_or_none).mean()),
}
IS_RIGHT_BY_GOAL = {"best": places_are_right, "threshold": sides_are_right, "intervals": intervals_contain_truth}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{runs} campaigns each\n\n| items | goal, rule | right | judgments per item | not ended |")
    print("|---|---|---|---|---|")
    with make_process_pool() as pool:
        for distribution in VALUE_DISTRIBUTIONS:
            for row in ROWS:
                ends = list(pool.map(partial(simulate_end_or_none, row, distribution), range(runs)))
                ended = np.array([end for end in ends if end is not None]).reshape(-1, 2)
                accuracy, judgments = ended.mean(axis=0) if len(ended) else (np.nan, np.nan)
                cells = f"{accuracy:.3f} | {judgments:.1f} | {runs - len(ended)}"
                print(f"| {distribution} | {row.goal}, {row.rule} | {cells} |", flush=True)
        print("\n| items | annotators | goal | released correctly | judgments per item | asked evenly | not released |")
        print("|---|---|---|---|---|---|---|")
        for distribution, crowd, goal in product(VALUE_DISTRIBUTIONS, CROWDS, IS_RIGHT_BY_GOAL):
            figures = list(pool.map(partial(simulate_release, goal, crowd, distribution), range(runs)))
            right, items, judgments, even_judgments = np.array(figures).mean(axis=0)
            cells = f"{right / items:.3f} | {judgments:.1f} | {even_judgments:.1f} | {1 - items / ITEMS:.3f}"
            print(f"| {distribution} | {crowd} | {goal} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
