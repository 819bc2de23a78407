"""Arms that ask and learn in their own way about the same items: what a run of made-up annotators finds of each."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from app.experiments.runs import ArmCourse
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import pearson, spearman
from app.inference.online.law import Parameters
from app.inference.online.laws import ONLINE
from app.selection.registry import RULES
from app.selection.rule import Asking
from app.simulation.annotators import Answering, MadeUp, Population
from app.simulation.in_memory import InMemory

ANNOTATORS, N, ROUNDS, GAMMA = 30, 5, 10, 0.1
BEST = 0.1  # the share of items that are the best
EVENLY = "evenly"  # no rule: all items in turn, in a random order
LOOKS = tuple(range(1, ROUNDS + 1))  # judgments an item


@dataclass(frozen=True)
class Arm:
    """A way of asking and learning. rule: a key of `RULES`, or `EVENLY`. law: a key of `ONLINE`."""

    name: str
    title: str
    rule: str
    law: str


DA, EASL, AWARE, FOR_BEST, FOR_SIDES = "da", "easl", "easl-aware", "best", "threshold"
ARMS = (
    Arm(DA, "Direct assessment", EVENLY, "easl"),
    Arm("ra", "RA", "easl", "ra"),
    Arm("trueskill", "TrueSkill", "easl", "trueskill"),
    Arm(EASL, "EASL", "easl", "easl"),
    Arm(AWARE, "EASL, aware of annotators", EVENLY, "easl-aware"),
)
FOR_GOALS = (
    Arm(FOR_BEST, "EASL, asked for the best", "best", "easl"),
    Arm("best-aware", "The best, aware of annotators", "best", "easl-aware"),
    Arm(FOR_SIDES, "EASL, asked for the sides", "threshold", "easl"),
)
EVERY = (*ARMS, *FOR_GOALS)
TITLES = {arm.name: arm.title for arm in EVERY}


def names_of(arms: Sequence[Arm]) -> tuple[str, ...]:
    return tuple(arm.name for arm in arms)


@dataclass(frozen=True)
class OnAScale:
    """Items on a scale. name: of the file of its results. truth: (N,), 0 to 1. context: the share by which annotators'
    noise falls where the same value stands beside. arms: the names of those of `EVERY` that take part.
    """

    name: str
    truth: tuple[float, ...]
    population: Population
    context: float
    seed: int
    arms: tuple[str, ...] = names_of(EVERY)

    def settings(self) -> str:
        """What decides its results, as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def run(self, number: int) -> list[ArmCourse]:
        """How every arm went in one run: one crowd, whom every arm asks anew."""
        return [course(arm.name, self.rounds(arm, number), np.array(self.truth)) for arm in self.taking_part]

    @property
    def taking_part(self) -> list[Arm]:
        """In the order of `EVERY`."""
        return [arm for arm in EVERY if arm.name in self.arms]

    def rounds(self, arm: Arm, number: int) -> Iterator[InMemory]:
        """The campaign of an arm in one run, as `in_rounds` has it."""
        crowd = replace(self.population, context=self.context)
        people = MadeUp(crowd.people(ANNOTATORS, np.random.default_rng([self.seed, number])), self.truth)
        return in_rounds(arm, people, people.truth, [self.seed, number, 1])


def in_rounds(arm: Arm, people: Answering, truth: Array, seed: Sequence[int]) -> Iterator[InMemory]:
    """A campaign as it begins, and after each round, which gives items one judgment on average. truth: (N,)."""
    size, rule = len(truth), RULES["easl" if arm.rule == EVENLY else arm.rule]
    asking = Asking(wanted=10**6, n=N, gamma=GAMMA, best=number_of_best(size), threshold=float(np.median(truth)))
    mine = InMemory(rule, ONLINE[arm.law], asking, Parameters(), size, np.random.default_rng(seed))
    yield mine
    hits = mine.answered_by(people)
    for judgments in LOOKS:
        if arm.rule == EVENLY or judgments == 1:  # every rule begins with a look at each item
            mine.round_by(people)
        else:
            while len(mine.hits) * N < judgments * size:
                next(hits)
        yield mine


def number_of_best(size: int) -> int:
    """Of so many items."""
    return max(1, round(BEST * size))


def course(arm: str, rounds: Iterator[InMemory], truth: Array) -> ArmCourse:
    """What is found after each round but the beginning. truth: (N,)."""
    next(rounds)
    scores = [mine.score for mine in rounds]
    figures = {name: [figure(score, truth) for score in scores] for name, figure in FIGURES.items()}
    return ArmCourse(arm, figures, scores[-1].round(4).tolist())


def of_best(score: Array, truth: Array) -> float:
    """The share of the truly best items that is among those of the highest scores, (N,) each; of those of the same
    score at the end of these in the mean of all orders.
    """
    best = number_of_best(len(truth))
    truly = np.isin(np.arange(len(truth)), np.argsort(-truth, kind="stable")[:best])
    last = np.sort(score)[-best]
    above, level = score > last, score == last
    return float((truly[above].sum() + (best - above.sum()) * truly[level].mean()) / best)


def of_sides(score: Array, truth: Array) -> float:
    """The share of items on the right side of the median of the truth; (N,) each."""
    middle = np.median(truth)
    return float(((score > middle) == (truth > middle)).mean())


FIGURES = {"spearman": spearman, "pearson": pearson, "best": of_best, "sides": of_sides}
