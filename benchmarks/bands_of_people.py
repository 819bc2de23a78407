"""How often bands of experiments with people hold the truth: `python -m benchmarks.bands_of_people [EXPERIMENTS]`.

100 experiments in memory if not said, with the shipped verbs, whose annotators are drawn anew each time, like those of
MLQE. The truth is the mean of a figure over all of them. Of each arm, number of annotators and look: Spearman, how far
it lies apart among experiments, its standard error by the jackknife over annotators, and in how many experiments the
band holds the truth; and the band of the plain percentile bootstrap over annotators.
"""

import sys
from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np

from app.experiments.arm_replay import (
    ArmRecord,
    hit_count_at_each_checkpoint,
    iterate_scores_at_checkpoints,
    replay_arm,
    truth_correlation_series_by_metric_name,
)
from app.experiments.sakaguchi_2018 import load_lexical_frequency_material
from app.experiments.simulated_arms import ALL_SCALE_ARMS, iterate_campaign_after_each_round
from app.inference.ground.arrays import Array
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.simulation.annotators import POPULATIONS, HabitAnnotators
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


def record(row: Row, seed: int) -> ArmRecord:
    """One campaign with annotators of its own."""
    truth = np.array(load_lexical_frequency_material().truth)
    people = POPULATIONS["mlqe-et-en"].draw_habits(row.people, np.random.default_rng([seed, row.people]))
    arm = next(arm for arm in ALL_SCALE_ARMS if arm.name == row.arm)
    *_, mine = iterate_campaign_after_each_round(arm, HabitAnnotators(people, truth), truth, [seed, row.people, 1])
    law = ONLINE_LAWS[arm.law]
    begun = law.initial_beliefs([np.full(len(truth), number) for number in law.family.default_prior], LawParameters())
    return ArmRecord(law, begun, mine.hits, truth)


def looked(row: Row, seed: int) -> Looked:
    """One experiment."""
    mine, at = record(row, seed), np.array(LOOKS) - 1
    found = replay_arm(mine, LOOKS[-1])
    drawn = np.array([drawn_again(mine, np.random.default_rng([seed, draw])) for draw in range(DRAWS)])
    figure, *band = found.band("spearman")
    lines = (figure, found.standard_errors_by_checkpoint("spearman"), *band, *np.percentile(drawn, (2.5, 97.5), axis=0))
    return Looked(*(line[at] for line in lines))


def drawn_again(mine: ArmRecord, rng: np.random.Generator) -> Array:
    """Spearman at all looks, with the same number of annotators drawn from those there are."""
    ends = hit_count_at_each_checkpoint(mine, LOOKS[-1])
    times = np.bincount(rng.choice(mine.people, len(mine.people)), minlength=max(mine.people) + 1)
    hits = [
        [hit for hit in mine.hits[start:end] for _ in range(times[hit.annotator])]
        for start, end in pairwise((0, *ends))
    ]
    again = ArmRecord(mine.law, mine.initial_beliefs, [*chain(*hits)], mine.truth)
    return truth_correlation_series_by_metric_name(
        mine.truth, iterate_scores_at_checkpoints(again, np.cumsum([*map(len, hits)]).tolist())
    )["spearman"]


def line_of(row: Row, found: Sequence[Looked], look: int) -> str:
    """Results of a row's experiments at one look."""
    one = Looked(*(np.array(column)[:, look] for column in zip(*found, strict=True)))
    truth = one.figure.mean()
    held, drawn = (
        ((low <= truth) & (truth <= high)).mean()
        for low, high in ((one.low, one.high), (one.drawn_low, one.drawn_high))
    )
    spread = f"{truth:.3f} | {one.figure.std():.3f} | {one.error.mean():.3f}"
    return f"| {row.arm} | {row.people} | {LOOKS[look]} | {spread} | {held:.0%} | {drawn:.0%} |"


def main() -> None:
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("| arm | annotators | judgments per item | Spearman | apart | error | held | by a bootstrap |")
    print("|---|---|---|---|---|---|---|---|")
    with a_process_per_core() as pool:
        for row in ROWS:
            found = list(pool.map(partial(looked, row), range(experiments)))
            for look in range(len(LOOKS)):
                print(line_of(row, found, look), flush=True)


if __name__ == "__main__":
    main()
