"""How often the bands of an experiment with people hold the truth: `python -m benchmarks.bands_of_people [EXPERIMENTS]`,
100 if not said.

Experiments in memory with the shipped verbs, whose annotators are drawn anew each time, like those of MLQE. The truth
is the mean of a figure over all of them. Of each arm, number of annotators and look: the figure, how far it lies apart
among experiments, the standard error by the jackknife over annotators, and in how many of them the band holds it: that
one, and the one of the plain percentile bootstrap over annotators.
"""

import sys
from functools import partial
from typing import NamedTuple

import numpy as np

from app.experiments.arms import EVERY, in_rounds
from app.experiments.on_a_scale import lexical_frequency
from app.experiments.replayed import Record, course, ends_of, figures_of, scores
from app.inference.ground.arrays import Array
from app.inference.online.law import Parameters
from app.inference.online.laws import ONLINE
from app.simulation.annotators import POPULATIONS, MadeUp
from benchmarks.annotator_aware import a_process_per_core

ARMS = ("da", "ra", "easl")
LOOKS = (1, 3, 10)
PEOPLE = (6, 30)
DRAWS = 40


class Row(NamedTuple):
    """An arm and how many annotators it has."""

    arm: str
    people: int


class Looked(NamedTuple):
    """Spearman at the looks, its standard error, and the ends of both bands; (looks,) each."""

    figure: Array
    error: Array
    low: Array
    high: Array
    drawn_low: Array
    drawn_high: Array


ROWS = tuple(Row(arm, people) for people in PEOPLE for arm in ARMS)


def record(row: Row, seed: int) -> Record:
    """One campaign with annotators of its own."""
    truth = np.array(lexical_frequency().truth)
    people = POPULATIONS["mlqe-et-en"].people(row.people, np.random.default_rng([seed, row.people]))
    arm = next(arm for arm in EVERY if arm.name == row.arm)
    *_, mine = in_rounds(arm, MadeUp(people, truth), truth, [seed, row.people, 1])
    law = ONLINE[arm.law]
    begun = law.begin([np.full(len(truth), number) for number in law.family.default_prior], Parameters())
    return Record(law, begun, mine.hits, truth)


def looked(row: Row, seed: int) -> Looked:
    """One experiment."""
    mine, at = record(row, seed), np.array(LOOKS) - 1
    found = course(mine, LOOKS[-1])
    drawn = np.array([drawn_again(mine, np.random.default_rng([seed, draw])) for draw in range(DRAWS)])
    bands = (*found.band("spearman"), *np.percentile(drawn, (2.5, 97.5), axis=0))
    return Looked(*(one[at] for one in (found.figures["spearman"], found.error("spearman"), *bands)))


def drawn_again(mine: Record, rng: np.random.Generator) -> Array:
    """Spearman at all looks, with the same number of annotators drawn from those there are."""
    ends = ends_of(mine, LOOKS[-1])
    times = np.bincount(rng.choice(mine.people, len(mine.people)), minlength=max(mine.people) + 1)
    hits = [(end, [hit for hit in mine.hits[start:end] for _ in range(times[hit.annotator])])
            for start, end in zip((0, *ends), ends, strict=False)]  # fmt: skip
    again = Record(mine.law, mine.begun, [hit for _, some in hits for hit in some], mine.truth)
    return figures_of(mine.truth, scores(again, np.cumsum([len(some) for _, some in hits]).tolist()))["spearman"]


def main(experiments: int) -> None:
    """Print a line for each arm, number of annotators and look."""
    print("arm   annotators  judgments  Spearman  apart   error   held  by a bootstrap")
    with a_process_per_core() as pool:
        for row in ROWS:
            figure, error, low, high, under, over = map(np.array, zip(*pool.map(partial(looked, row), range(experiments)), strict=True))
            truth = figure.mean(axis=0)
            held, drawn = ((one <= truth) & (truth <= other) for one, other in ((low, high), (under, over)))
            for k, judgments in enumerate(LOOKS):
                print(
                    f"{row.arm:5} {row.people:10} {judgments:10} {truth[k]:9.3f} {figure[:, k].std():6.3f} "
                    f"{error[:, k].mean():7.3f} {held[:, k].mean():6.2f} {drawn[:, k].mean():15.2f}"
                )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
