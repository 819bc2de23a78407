"""Arms of an experiment that ask simulated annotators about the same items, each with its own rule and law."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from app.experiments.runs import ArmResult
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import pearson, spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population, SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign

SCALE_ANNOTATORS, SCALE_ITEMS_PER_HIT, SCALE_ROUNDS, SCALE_GAMMA = 30, 5, 10, 0.1
BEST_SHARE = 0.1
EVEN_ORDER = "evenly"  # no rule: all items in turn, in a random order
ITEM_CHECKPOINTS = tuple(range(1, SCALE_ROUNDS + 1))  # judgments per item


@dataclass(frozen=True)
class Arm:
    """A way of asking and learning.

    Attributes:
        name: Name of the arm.
        rule: A key of `SELECTION_RULES`, or `EVEN_ORDER`.
        law: A key of `ONLINE_LAWS`.

    """

    name: str
    title: str
    rule: str
    law: str


DA_ARM, EASL_ARM, AWARE_ARM, BEST_ARM, SIDES_ARM = "da", "easl", "easl-aware", "best", "threshold"
SCALE_ARMS = (
    Arm(DA_ARM, "Direct assessment", EVEN_ORDER, "easl"),
    Arm("ra", "RA", "easl", "ra"),
    Arm("trueskill", "TrueSkill", "easl", "trueskill"),
    Arm(EASL_ARM, "EASL", "easl", "easl"),
    Arm(AWARE_ARM, "EASL, aware of annotators", EVEN_ORDER, "easl-aware"),
)
GOAL_ARMS = (
    Arm(BEST_ARM, "EASL, rule for the best", "best", "easl"),
    Arm("best-aware", "Aware of annotators, rule for the best", "best", "easl-aware"),
    Arm(SIDES_ARM, "EASL, rule for the sides", "threshold", "easl"),
)
ALL_SCALE_ARMS = (*SCALE_ARMS, *GOAL_ARMS)
SCALE_ARM_TITLES = {arm.name: arm.title for arm in ALL_SCALE_ARMS}


def arm_names(arms: Sequence[Arm]) -> tuple[str, ...]:
    return tuple(arm.name for arm in arms)


@dataclass(frozen=True)
class ScaleExperiment:
    """An experiment with items on a scale.

    Attributes:
        name: Name of the file with its results.
        truth: True values, (N,), 0 to 1.
        population: Distribution of annotators' habits.
        context: Relative fall of annotators' noise where the HIT shows another item of the same value.
        arms: Names of the participating arms.

    """

    name: str
    truth: tuple[float, ...]
    population: Population
    context: float
    seed: int
    arms: tuple[str, ...] = arm_names(ALL_SCALE_ARMS)

    def settings_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def run(self, run_number: int) -> list[ArmResult]:
        """Return the results of every arm in one run, all with the same crowd."""
        return [
            arm_result_after_each_round(arm.name, self.iterate_simulated_rounds(arm, run_number), np.array(self.truth))
            for arm in self.participating_arms
        ]

    @property
    def participating_arms(self) -> list[Arm]:
        """Arms that take part, in the order of `ALL_SCALE_ARMS`."""
        return [arm for arm in ALL_SCALE_ARMS if arm.name in self.arms]

    def iterate_simulated_rounds(self, arm: Arm, run_number: int) -> Iterator[SimulatedCampaign]:
        """Yield the campaign of an arm in one run, as `iterate_campaign_after_each_round` does."""
        crowd = replace(self.population, context=self.context)
        people = HabitAnnotators(
            crowd.draw_habits(SCALE_ANNOTATORS, np.random.default_rng([self.seed, run_number])), self.truth
        )
        return iterate_campaign_after_each_round(arm, people, people.true_values, [self.seed, run_number, 1])


def iterate_campaign_after_each_round(
    arm: Arm, annotators: SimulatedAnnotators, truth: Array, seed: Sequence[int]
) -> Iterator[SimulatedCampaign]:
    """Yield a campaign at its start, and after each round of one judgment per item on average."""
    size, rule = len(truth), SELECTION_RULES["easl" if arm.rule == EVEN_ORDER else arm.rule]
    settings = SelectionSettings(
        judgments_per_item=10**6,
        items_per_hit=SCALE_ITEMS_PER_HIT,
        gamma=SCALE_GAMMA,
        best_count=count_best_items_of(size),
        threshold=float(np.median(truth)),
    )
    campaign = SimulatedCampaign(
        rule, ONLINE_LAWS[arm.law], settings, LawParameters(), size, np.random.default_rng(seed)
    )
    yield campaign
    hits = campaign.iterate_hits_while_answering_them(annotators)
    for judgments in ITEM_CHECKPOINTS:
        if arm.rule == EVEN_ORDER or judgments == 1:  # every rule begins with one judgment of each item
            campaign.judge_each_item_once(annotators)
        else:
            while len(campaign.hits) * SCALE_ITEMS_PER_HIT < judgments * size:
                next(hits)
        yield campaign


def count_best_items_of(item_count: int) -> int:
    """Return how many of `item_count` items are the best."""
    return max(1, round(BEST_SHARE * item_count))


def arm_result_after_each_round(arm: str, campaigns: Iterator[SimulatedCampaign], truth: Array) -> ArmResult:
    """Return an arm's result: its figures after each round, without the start."""
    next(campaigns)
    scores = [campaign.score for campaign in campaigns]
    figures = {name: [figure(score, truth) for score in scores] for name, figure in ARM_FIGURES.items()}
    return ArmResult(arm, figures, scores[-1].round(4).tolist())


def share_of_best_items_on_top(score: Array, truth: Array) -> float:
    """Share of the truly best items among those of the highest scores, (N,) each.

    Items that tie at the end of these count with their mean over all orders.
    """
    best = count_best_items_of(len(truth))
    is_best = np.isin(np.arange(len(truth)), np.argsort(-truth, kind="stable")[:best])
    last = np.sort(score)[-best]
    above, level = score > last, score == last
    return float((is_best[above].sum() + (best - above.sum()) * is_best[level].mean()) / best)


def share_on_right_side_of_median(score: Array, truth: Array) -> float:
    """Share of items on the right side of the median of the truth; (N,) each."""
    middle = np.median(truth)
    return float(((score > middle) == (truth > middle)).mean())


ARM_FIGURES = {
    "spearman": spearman,
    "pearson": pearson,
    "best": share_of_best_items_on_top,
    "sides": share_on_right_side_of_median,
}
