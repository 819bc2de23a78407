"""Compare two ways of measuring a goal under `easl-aware`: `python -m benchmarks.stopping_aware [RUNS]`.

The default is 200 runs. Simulated campaigns have 40 items and HITs of 5, by 20 annotators with biases. In the rows 0 %,
15 % or 30 % of them answer at random. After every judgment per item, from the second on, the goal is checked at 95 %
probability with a tolerance of 10 points. *means* uses the plain means of all answers and how much annotators differ.
*easl-aware* uses the law's own scores with the standard errors of its fit, as such campaigns do.

The table shows the share of ended campaigns that really met the goal, their judgments per item, and the number of
campaigns that had not ended after 20 judgments per item. For narrow intervals, *right* is the share of intervals that
contain the truth. The truth is the mean answer of careful annotators.
"""

import sys
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.designs.scale import MAX_POINTS
from app.goals.estimates import GoalEvidence
from app.goals.progress import goal_progress_or_none
from app.inference.ground.arrays import Array
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import judgment_columns, make_process_pool
from benchmarks.stopping import GOAL_SETTINGS, expected_answers
from benchmarks.unsaved_campaign import make_unsaved_campaign

ITEMS, ANNOTATORS, ITEMS_PER_HIT, MAX_JUDGMENTS_PER_ITEM, BEST_ITEMS = 40, 20, 5, 20, 5
SETTINGS = GOAL_SETTINGS | {"goal_within": 10}  # points: with less, most campaigns do not end
RANDOM_SHARES = (0.0, 0.15, 0.3)
RULES_BY_GOAL = {"best": "best", "threshold": "threshold", "intervals": "scores"}
MEASURES = ("means", "easl-aware")


class End(NamedTuple):
    """Accuracy of a campaign when its goal is reached, and its judgments per item; NaN if it is never reached."""

    accuracy: float
    judgments_per_item: float


NEVER = End(np.nan, np.nan)


def simulate_ends_by_measure(goal: str, at_random: float, seed: int) -> list[End]:
    """Simulate a campaign and return where it ends by each measure, in the order of `MEASURES`."""
    rng = np.random.default_rng([seed, 5])
    crowd = Population(0.1, 0.2, 0.1, 0.3, careless={"random": at_random})
    annotators = HabitAnnotators(crowd.draw_habits(ANNOTATORS, rng), rng.beta(2, 2, ITEMS))
    truth = np.mean(
        [expected_answers(habits, annotators.true_values) for habits in annotators.habits if habits.careless is None],
        axis=0,
    )
    selection = SelectionSettings(
        judgments_per_item=MAX_JUDGMENTS_PER_ITEM,
        items_per_hit=ITEMS_PER_HIT,
        gamma=0.1,
        best_count=BEST_ITEMS,
        threshold=0.5,
    )
    simulation = SimulatedCampaign(
        SELECTION_RULES[RULES_BY_GOAL[goal]], ONLINE_LAWS["easl-aware"], selection, LawParameters(), ITEMS, rng
    )
    campaign = make_unsaved_campaign(goal=goal, when_reached="tell", best_items=BEST_ITEMS, threshold=50, **SETTINGS)
    ends = [NEVER] * len(MEASURES)
    hits = simulation.iterate_hits_while_answering_them(annotators)
    list(islice(hits, ITEMS // ITEMS_PER_HIT))
    while NEVER in ends and list(islice(hits, ITEMS // ITEMS_PER_HIT)):
        evidence = GoalEvidence.empty(simulation.law, ITEMS).with_judgments_added(*judgment_columns(simulation.hits))
        for measure, end in enumerate(ends):
            if end is NEVER:
                estimates = ESTIMATORS[measure](evidence)
                progress = goal_progress_or_none(campaign, estimates, simulation.score)
                if progress is not None and progress.is_reached:
                    ends[measure] = End(accuracy(goal, estimates, simulation.score, truth), simulation.judgments.mean())
    return ends


def estimate_by_means(evidence: GoalEvidence) -> ModeratedMeans:
    return moderated_means_of_tally(evidence.tally)


def estimate_by_law(evidence: GoalEvidence) -> ModeratedMeans:
    """Return the law's estimates for any goal; campaigns use the means for thresholds because of this benchmark."""
    return evidence.law_estimates_or_none or estimate_by_means(evidence)


ESTIMATORS = (estimate_by_means, estimate_by_law)


def accuracy(goal: str, estimates: ModeratedMeans, scores: Array, truth: Array) -> float:
    """Return whether the result meets the goal, 0 or 1; for `intervals` the share of intervals that contain the
    truth.
    """
    tolerance = SETTINGS["goal_within"] / MAX_POINTS
    if goal == "best":
        order = np.argsort(-scores)
        return float(truth[order[BEST_ITEMS:]].max() <= truth[order[:BEST_ITEMS]].min() + tolerance)
    if goal == "threshold":
        return float(np.where(scores > 0.5, truth >= 0.5 - tolerance, truth <= 0.5 + tolerance).all())
    low, high = estimates.interval()
    return float(((low <= truth) & (truth <= high)).mean())


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{runs} campaigns each\n\n| at random | goal | measured by | right | judgments per item | not ended |")
    print("|---|---|---|---|---|---|")
    with make_process_pool() as pool:
        for at_random in RANDOM_SHARES:
            for goal in RULES_BY_GOAL:
                ends = np.array(list(pool.map(partial(simulate_ends_by_measure, goal, at_random), range(runs))))
                for measure, ends_of_measure in zip(MEASURES, ends.transpose(1, 0, 2), strict=True):
                    ended = ends_of_measure[~np.isnan(ends_of_measure[:, 0])]
                    cells = "{:.3f} | {:.1f}".format(*ended.mean(axis=0)) if len(ended) else "- | -"
                    print(f"| {at_random:.0%} | {goal} | {measure} | {cells} | {runs - len(ended)} |", flush=True)


if __name__ == "__main__":
    main()
