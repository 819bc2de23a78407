"""How often campaigns that stop at their goal are right: `python -m benchmarks.stopping [RUNS]`, 200 if not said.

Campaigns in memory of 30 items, with HITs of 5, each by one of 40 annotators with small biases. After every HIT it is
looked whether the goal is reached with a probability of 95 %, and the campaign ends when it is. The truth is what all
annotators would say on average. Of each goal: in how many of the campaigns that ended it was met, how many judgments
per item they took, and how many had not ended with 60. Of narrow intervals: how many of them hold the true mean.

Then campaigns that release items as they settle, with at most 20 judgments of each, also where a fifth of the
annotators answers at random, or where the noise differs from item to item: how many of the released items are as they
are said to be (of intervals: how many hold the true mean), how many judgments per item they took, how many it takes to
ask about all items evenly until as many are settled, 20 where it takes more, and which share was not released.
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
from benchmarks.annotator_aware import a_process_per_core
from benchmarks.campaign_of import campaign_of
from benchmarks.forecasts import with_answers
from benchmarks.goals import HardItems

ITEMS, ANNOTATORS, N, MOST, CAP = 30, 40, 5, 60, 20
PEOPLE = Population(bias_sd=0.05, log_scale_sd=0.1, noise=0.1, log_noise_sd=0.2)
NOISE = np.linspace(-4, 4, 81)  # places of a standard Normal, for the mean of what is cut at the ends of the scale
PLAIN: dict[str, Any] = {"goal_percent": 95, "goal_within": 5, "goal_width": 10, "goal_correlation": 0.9}


def wide(rng: np.random.Generator) -> Array:
    return rng.beta(2, 2, ITEMS)


def piled_up(rng: np.random.Generator) -> Array:
    return rng.beta(1, 4, ITEMS)


def two_heaps(rng: np.random.Generator) -> Array:
    return np.where(rng.random(ITEMS) < 0.3, rng.beta(8, 3, ITEMS), rng.beta(3, 8, ITEMS))


TRUTHS: dict[str, Callable[[np.random.Generator], Array]] = {
    "wide": wide,
    "piled up near 0": piled_up,
    "two heaps": two_heaps,
}


class Row(NamedTuple):
    """A goal, and the rule by which is asked."""

    goal: str
    rule: str


ROWS = (
    *(Row("best", rule) for rule in ("best", "easl")),
    *(Row("threshold", rule) for rule in ("threshold", "scores")),
    Row("intervals", "scores"),
)


class End(NamedTuple):
    """Accuracy of a finished campaign, and its judgments per item."""

    right: float
    judgments: float


class Released(NamedTuple):
    """Of a campaign that released items: how many of them are as they are said to be, and how many they are. How many
    judgments per item that took, and how many it takes evenly, without a release, until as many are settled.
    """

    right: int
    items: int
    judgments: float
    evenly: int


def ended(row: Row, truths: str, seed: int) -> End | None:
    """None where it did not end."""
    rng = np.random.default_rng([seed, 5])
    people = HabitAnnotators(PEOPLE.draw_habits(ANNOTATORS, rng), TRUTHS[truths](rng))
    truth = np.mean([meant(habits, people.true_values) for habits in people.habits], axis=0)
    asked = SelectionSettings(judgments_per_item=MOST, items_per_hit=N, gamma=0.1, best_count=5, threshold=0.5)
    mine = SimulatedCampaign(
        SELECTION_RULES[row.rule], ONLINE_LAWS["easl"], asked, LawParameters(), ITEMS, np.random.default_rng([seed, 6])
    )
    campaign = campaign_of(goal=row.goal, when_reached="tell", best_items=5, threshold=50, **PLAIN)
    tally = Tally.empty(ITEMS)
    for hit in mine.iterate_answered_hits(people):
        tally = with_answers(tally, [hit])
        known = moderated_means_of_tally(tally)
        found = goal_progress_or_none(campaign, known, mine.score)
        if found is not None and found.is_reached:
            return End(RIGHT[row.goal](known, mine.score, truth), tally.judgments.mean())
    return None


@dataclass
class Releasing:
    """A campaign of a goal whose items are released, and what is known of them."""

    goal: str
    rule: str
    crowd: str
    truths: str
    seed: int

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 7])
        self.people, self.truth = CROWDS[self.crowd](TRUTHS[self.truths](rng), rng)
        asked, drawing = (
            SelectionSettings(CAP, N, 0.1, best_count=5, threshold=0.5),
            np.random.default_rng([self.seed, 8]),
        )
        self.mine = SimulatedCampaign(
            SELECTION_RULES[self.rule], ONLINE_LAWS["easl"], asked, LawParameters(), ITEMS, drawing
        )
        self.tally = Tally.empty(ITEMS)
        self.campaign = campaign_of(goal=self.goal, when_reached=RELEASE_ITEMS, best_items=5, threshold=50, **PLAIN)

    def learn(self, hits: Sequence[AnsweredHit]) -> Mask:
        """From more answers: which items are settled now."""
        self.tally = with_answers(self.tally, hits)
        self.known = moderated_means_of_tally(self.tally)
        return mask_of_settled_items(self.campaign, self.known, self.mine.score)

    def to_the_end(self) -> Mask:
        """With a look after every HIT, until nothing is asked: what is settled then."""
        out = np.zeros(ITEMS, bool)
        for hit in self.mine.iterate_answered_hits(self.people):
            out = self.learn([hit])
            self.mine.release_settled_items(out)
        return out

    def evenly(self, enough: int) -> int:
        """How many judgments of each item it takes until so many are settled; as many as may be, if more."""
        hits = self.mine.iterate_answered_hits(self.people)
        for count in range(1, CAP):
            if self.learn(list(islice(hits, ITEMS // N))).sum() >= enough:
                return count
        return CAP


def released(goal: str, crowd: str, truths: str, seed: int) -> Released:
    """Results of one campaign."""
    one = Releasing(goal, "scores" if goal == "intervals" else goal, crowd, truths, seed)
    out = one.to_the_end()
    right, items = AS_SAID[goal](one.known, one.mine.score, one.truth)[out], int(out.sum())
    evenly = Releasing(goal, "scores", crowd, truths, seed).evenly(items)
    return Released(int(right.sum()), items, float(one.tally.judgments.mean()), evenly)


def careless(share: float, items: Array, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    people = HabitAnnotators(replace(PEOPLE, careless={"random": share}).draw_habits(ANNOTATORS, rng), items)
    return people, np.mean([meant(habits, items) for habits in people.habits], axis=0)


def hard_items(items: Array, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    noise = 0.1 * np.exp(0.5 * rng.standard_normal(ITEMS))
    return HardItems(items, noise), cut(items + noise * NOISE[:, None])


CROWDS: dict[str, Callable[[Array, np.random.Generator], tuple[SimulatedAnnotators, Array]]] = {
    "alike": partial(careless, 0.0),
    "20 % at random": partial(careless, 0.2),
    "items differ": hard_items,
}


def meant(habits: Habits, truth: Array) -> Array:
    """Mean answers of an annotator, (N,); random ones are uniform."""
    if habits.careless is not None:
        return np.full(len(truth), 0.5)
    seen = 0.5 + habits.bias + habits.scale * (truth - 0.5) + habits.noise * NOISE[:, None]
    return cut(seen)


def cut(seen: Array) -> Array:
    """The mean of what is seen at the places of `NOISE`, (81, N), and cut at the ends of the scale, (N,)."""
    said: Array = np.average(np.clip(seen, 0, 1), axis=0, weights=np.exp(-(NOISE**2) / 2))
    return said


def best_right(_known: ModeratedMeans, score: Array, truth: Array) -> float:
    order = np.argsort(-score)
    return float(truth[order[5:]].max() <= truth[order[:5]].min() + PLAIN["goal_within"] / MAX_POINTS)


def places_right(_known: ModeratedMeans, score: Array, truth: Array) -> Mask:
    """Return whether each item is among the true best exactly if it is among the highest scores."""
    within, order = PLAIN["goal_within"] / MAX_POINTS, np.argsort(-score)
    fifth, sixth = np.sort(truth)[::-1][4:6]
    best = np.isin(np.arange(ITEMS), order[:5])
    return np.asarray(np.where(best, truth >= fifth - within, truth <= sixth + within))


def sides_right(known: ModeratedMeans, _score: Array, truth: Array) -> Mask:
    within = PLAIN["goal_within"] / MAX_POINTS
    return np.asarray(np.where(known.mean > 0.5, truth >= 0.5 - within, truth <= 0.5 + within))


def held(known: ModeratedMeans, _score: Array, truth: Array) -> Mask:
    low, high = known.interval()
    return (low <= truth) & (truth <= high)


RIGHT: dict[str, Callable[[ModeratedMeans, Array, Array], float]] = {
    "best": best_right,
    "threshold": lambda *ended: float(sides_right(*ended).all()),
    "intervals": lambda *ended: float(held(*ended).mean()),
}
AS_SAID = {"best": places_right, "threshold": sides_right, "intervals": held}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{runs} campaigns each\n\n| items | goal, rule | right | judgments per item | not ended |")
    print("|---|---|---|---|---|")
    with a_process_per_core() as pool:
        for truths in TRUTHS:
            for row in ROWS:
                ends = list(pool.map(partial(ended, row, truths), range(runs)))
                found = np.array([end for end in ends if end is not None]).reshape(-1, 2)
                right, judgments = found.mean(axis=0) if len(found) else (np.nan, np.nan)
                cells = f"{right:.3f} | {judgments:.1f} | {runs - len(found)}"
                print(f"| {truths} | {row.goal}, {row.rule} | {cells} |", flush=True)
        print("\n| items | annotators | goal | released correctly | judgments per item | asked evenly | not released |")
        print("|---|---|---|---|---|---|---|")
        for truths, crowd, goal in product(TRUTHS, CROWDS, AS_SAID):
            runs_of = list(pool.map(partial(released, goal, crowd, truths), range(runs)))
            right, items, judgments, evenly = np.array(runs_of).mean(axis=0)
            cells = f"{right / items:.3f} | {judgments:.1f} | {evenly:.1f} | {1 - items / ITEMS:.3f}"
            print(f"| {truths} | {crowd} | {goal} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
