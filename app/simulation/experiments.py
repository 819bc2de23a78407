"""Experiments of the papers, run on made-up annotators: arms that ask and learn in their own way about the same items.

A run is one crowd, of which every arm asks anew; its seed and its number decide everything in it, so a run is the same
on any machine and in whatever order runs are done. What a run found is one line of a file: whoever stops and comes back
goes on with the runs that are not there.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_context
from os import cpu_count, environ
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import Conflict
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import pearson, spearman
from app.inference.online.law import Parameters
from app.inference.online.laws import ONLINE
from app.selection.registry import RULES
from app.selection.rule import Asking
from app.simulation.annotators import MadeUp, Population
from app.simulation.in_memory import InMemory

ANNOTATORS, N, ROUNDS, GAMMA = 30, 5, 10, 0.1
RESAMPLED = 500
EVENLY = "evenly"  # no rule: all items in turn, in a random order


@dataclass(frozen=True)
class Arm:
    """A way of asking and learning. rule: a key of `RULES`, or `EVENLY`. law: a key of `ONLINE`."""

    name: str
    title: str
    rule: str
    law: str


ARMS = (
    Arm("da", "Direct assessment", EVENLY, "easl"),
    Arm("ra", "RA", "easl", "ra"),
    Arm("trueskill", "TrueSkill", "easl", "trueskill"),
    Arm("easl", "EASL", "easl", "easl"),
    Arm("easl-aware", "EASL, aware of annotators", EVENLY, "easl-aware"),
)


@dataclass(frozen=True)
class Experiment:
    """name: of the file of its results. truth: (N,), 0 to 1. context: the share by which annotators' noise falls where
    the same value stands beside. arms: the names of those of `ARMS` that take part.
    """

    name: str
    truth: tuple[float, ...]
    population: Population
    context: float
    seed: int
    arms: tuple[str, ...] = tuple(arm.name for arm in ARMS)

    def settings(self) -> str:
        """What decides its results, as text."""
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True)
class AfterRound:
    """After so many judgments an item: an arm's correlations with the truth, and where its scores lie."""

    arm: str
    judgments: int
    spearman: float
    pearson: float
    lowest: float
    highest: float
    spread: float


def run(experiment: Experiment, number: int) -> list[AfterRound]:
    """What every arm found in one run."""
    truth = np.array(experiment.truth)
    crowd = replace(experiment.population, context=experiment.context)
    people = crowd.people(ANNOTATORS, np.random.default_rng([experiment.seed, number]))
    arms = [arm for arm in ARMS if arm.name in experiment.arms]
    return [found for arm in arms for found in course(arm, MadeUp(people, truth), [experiment.seed, number, 1])]


def course(arm: Arm, people: MadeUp, seed: Sequence[int]) -> Iterator[AfterRound]:
    """After each round, which gives items one judgment on average."""
    size, rule = len(people.truth), RULES["easl" if arm.rule == EVENLY else arm.rule]
    asking = Asking(wanted=10**6, n=N, gamma=GAMMA)
    mine = InMemory(rule, ONLINE[arm.law], asking, Parameters(), size, np.random.default_rng(seed))
    hits = mine.answered_by(people)
    for judgments in range(1, ROUNDS + 1):
        if arm.rule == EVENLY or judgments == 1:  # every rule begins with a look at each item
            mine.round_by(people)
        else:
            while len(mine.hits) * N < judgments * size:
                next(hits)
        yield found_of(arm, judgments, mine.score, people.truth)


def found_of(arm: Arm, judgments: int, score: Array, truth: Array) -> AfterRound:
    """Of scores and the truth, (N,) each."""
    ends = float(score.min()), float(score.max())
    return AfterRound(arm.name, judgments, spearman(score, truth), pearson(score, truth), *ends, float(score.std()))


def runs_of(experiment: Experiment, folder: Path, number: int) -> Iterator[int]:
    """Do what is missing of so many runs, and say after each how many are there; `found` reads what they found.

    Raises `Conflict` (`other_experiment`) where the folder has results of other settings.
    """
    path = folder / f"{experiment.name}.jsonl"
    done = {line["run"] for line in lines_of(experiment, path)}
    missing = [k for k in range(number) if k not in done]
    yield number - len(missing)
    environ["OPENBLAS_NUM_THREADS"] = "1"  # with more threads than cores it spends most of the time on waiting
    with ProcessPoolExecutor(cpu_count(), get_context("spawn")) as pool, path.open("a", encoding="utf-8") as file:
        if not done:
            file.write(experiment.settings() + "\n")
        waiting = {pool.submit(partial(run, experiment, k)): k for k in missing}
        for there, ended in enumerate(as_completed(waiting), start=number - len(missing) + 1):
            line = {"run": waiting[ended], "found": [asdict(one) for one in ended.result()]}
            file.write(json.dumps(line) + "\n")
            file.flush()
            yield there


def found(experiment: Experiment, folder: Path, number: int) -> list[list[AfterRound]]:
    """What each of the first so many runs found, in their order."""
    lines = {line["run"]: line["found"] for line in lines_of(experiment, folder / f"{experiment.name}.jsonl")}
    return [[AfterRound(**one) for one in lines[k]] for k in range(number)]


def lines_of(experiment: Experiment, path: Path) -> Iterator[dict[str, Any]]:
    """The runs in a file; the last line of one that was interrupted may be cut off, and is left out."""
    if not path.exists():
        return
    settings, *lines = path.read_text(encoding="utf-8").split("\n")
    if settings != experiment.settings():
        raise Conflict(
            f"{path} has results of other settings. Nothing was changed. Name another folder.", code="other_experiment"
        )
    for line in lines:
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


def table(courses: Sequence[Sequence[AfterRound]], figure: str) -> dict[str, Array]:
    """Of each arm a figure of `AfterRound`, (runs, rounds)."""
    return {
        arm.name: np.array([[getattr(one, figure) for one in found if one.arm == arm.name] for found in courses])
        for arm in ARMS
    }


def as_good_as(values: Array, other: Array) -> list[int | None]:
    """For each number of judgments of another arm, (runs, rounds), with how many this one is as good in the mean; None
    where it never is.
    """
    mine = values.mean(axis=0)
    return [int(np.argmax(mine >= goal)) + 1 if (mine >= goal).any() else None for goal in other.mean(axis=0)]


def judgments_for(values: Array, goal: float) -> float:
    """With how many judgments an item the mean of runs, (runs, rounds), meets a goal, on a line between two rounds;
    infinite where it never does, and 1 where it does from the first on.
    """
    mean = np.maximum.accumulate(values.mean(axis=0))
    return float(np.interp(goal, mean, np.arange(1, len(mean) + 1))) if mean[-1] >= goal else np.inf


def judgments_for_as_much(values: Array, other: Array, judgments: int) -> tuple[float, float, float]:
    """With how many judgments an arm is as good as another one with so many, (runs, rounds) each; and between which
    numbers that lies in 95 % of resampled runs.
    """
    again = np.random.default_rng(judgments).integers(len(values), size=(RESAMPLED, len(values)))
    found = [judgments_for(values[k], other[k, judgments - 1].mean()) for k in again]
    low, high = np.percentile(found, (2.5, 97.5), method="nearest")
    return judgments_for(values, other[:, judgments - 1].mean()), float(low), float(high)
