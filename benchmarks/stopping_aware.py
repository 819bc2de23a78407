"""Benefit of stopping by the scores of `easl-aware`: `python -m benchmarks.stopping_aware [RUNS]`, default 200.

Campaigns in memory of 40 items under the law `easl-aware`, with HITs of 5, each by one of 20 annotators with biases, of
whom none, 15 and 30 % answer at random. From 2 judgments per item on it is looked after every judgment per item whether
the goal is reached with a probability of 95 %, but for differences of 10 points: by the plain means of all answers and
how far annotators differ, and by the law's own scores with the errors of its fit to all judgments, as such campaigns do
it. Of each: in how many of the campaigns that it ended the goal was met, how many judgments per item they had, and how
many had not ended with 20; of narrow intervals, how many hold the truth. The truth is what those who look would say on
average.
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
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import a_process_per_core
from benchmarks.campaign_of import campaign_of
from benchmarks.stopping import PLAIN, meant

ITEMS, ANNOTATORS, N, MOST, BEST = 40, 20, 5, 20, 5
SETTINGS = PLAIN | {"goal_within": 10}  # points: with fewer most campaigns have not ended when all have judged all
AT_RANDOM = (0.0, 0.15, 0.3)
GOALS = {"best": "best", "threshold": "threshold", "intervals": "scores"}
WAYS = ("means", "easl-aware")


class End(NamedTuple):
    """Accuracy of a campaign when it would have ended, and its judgments per item; NaN if never."""

    right: float
    judgments: float


NEVER = End(np.nan, np.nan)


def ended(goal: str, at_random: float, seed: int) -> list[End]:
    """One campaign, by each of the ways."""
    rng = np.random.default_rng([seed, 5])
    crowd = Population(0.1, 0.2, 0.1, 0.3, careless={"random": at_random})
    people = HabitAnnotators(crowd.draw_habits(ANNOTATORS, rng), rng.beta(2, 2, ITEMS))
    truth = np.mean([meant(habits, people.true_values) for habits in people.habits if habits.careless is None], axis=0)
    asking = SelectionSettings(judgments_per_item=MOST, items_per_hit=N, gamma=0.1, best_count=BEST, threshold=0.5)
    mine = SimulatedCampaign(
        SELECTION_RULES[GOALS[goal]], ONLINE_LAWS["easl-aware"], asking, LawParameters(), ITEMS, rng
    )
    campaign = campaign_of(goal=goal, when_reached="tell", best_items=BEST, threshold=50, **SETTINGS)
    ends = [NEVER] * len(WAYS)
    hits = mine.iterate_answered_hits(people)
    list(islice(hits, ITEMS // N))
    while NEVER in ends and list(islice(hits, ITEMS // N)):
        said = GoalEvidence.empty(mine.law, ITEMS).with_judgments_added(*columns(mine.hits))
        for way, end in enumerate(ends):
            if end is NEVER:
                known = WAYS_OF[way](said)
                found = goal_progress_or_none(campaign, known, mine.score)
                if found is not None and found.is_reached:
                    ends[way] = End(right(goal, known, mine.score, truth), mine.judgments.mean())
    return ends


def columns(hits: list[AnsweredHit]) -> tuple[Array, Array, Array]:
    items = np.array([item for hit in hits for item in hit.items])
    who = np.array([hit.annotator for hit in hits for _ in hit.items])
    return items, who, np.array([value for hit in hits for value in hit.values])


def by_means(said: GoalEvidence) -> ModeratedMeans:
    return moderated_means_of_tally(said.tally)


def by_law(said: GoalEvidence) -> ModeratedMeans:
    """Also of a threshold, which campaigns measure by the means for what this shows."""
    return said.estimates_by_law_or_none or by_means(said)


WAYS_OF = (by_means, by_law)


def right(goal: str, known: ModeratedMeans, score: Array, truth: Array) -> float:
    within = SETTINGS["goal_within"] / MAX_POINTS
    if goal == "best":
        order = np.argsort(-score)
        return float(truth[order[BEST:]].max() <= truth[order[:BEST]].min() + within)
    if goal == "threshold":
        return float(np.where(score > 0.5, truth >= 0.5 - within, truth <= 0.5 + within).all())
    low, high = known.interval()
    return float(((low <= truth) & (truth <= high)).mean())


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{runs} campaigns each\n\n| at random | goal | measured by | right | judgments per item | not ended |")
    print("|---|---|---|---|---|---|")
    with a_process_per_core() as pool:
        for at_random in AT_RANDOM:
            for goal in GOALS:
                ends = np.array(list(pool.map(partial(ended, goal, at_random), range(runs))))
                for way, found in zip(WAYS, ends.transpose(1, 0, 2), strict=True):
                    over = found[~np.isnan(found[:, 0])]
                    shown = "{:.3f} | {:.1f}".format(*over.mean(axis=0)) if len(over) else "- | -"
                    print(f"| {at_random:.0%} | {goal} | {way} | {shown} | {runs - len(over)} |", flush=True)


if __name__ == "__main__":
    main()
