"""Measure how often bands of experiments with different annotators contain the truth.

Run `python -m benchmarks.bands_of_people [EXPERIMENTS]`; the default is 100 experiments.

Experiments run in memory with the verbs of examples/data. Each has new annotators, who are like those of MLQE. The
truth is the mean of a figure over all experiments. For each arm, number of annotators and number of judgments per item,
the table shows Spearman's correlation, its standard deviation over experiments (*apart*), its mean jackknife standard
error over annotators, and the share of experiments whose band contains the truth: for this band, and for a plain
percentile bootstrap over annotators.
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
from benchmarks.annotator_aware import make_process_pool

ARMS = ("da", "ra", "easl")
CHECKPOINTS = (1, 3, 10)
ANNOTATOR_COUNTS = (6, 30)
BOOTSTRAP_DRAWS = 40


class Row(NamedTuple):
    """Arm and number of annotators of a table row."""

    arm: str
    annotators: int


class CheckpointFigures(NamedTuple):
    """Results of one experiment, (checkpoints,) each.

    Attributes:
        figure: Spearman's correlation with the truth.
        error: Standard error of the figure.
        low: Lower end of the jackknife band.
        high: Upper end of the jackknife band.
        bootstrap_low: Lower end of the bootstrap band.
        bootstrap_high: Upper end of the bootstrap band.

    """

    figure: Array
    error: Array
    low: Array
    high: Array
    bootstrap_low: Array
    bootstrap_high: Array


ROWS = tuple(Row(arm, people) for people in ANNOTATOR_COUNTS for arm in ARMS)


def simulate_arm(row: Row, seed: int) -> ArmRecord:
    """Return the record of a simulated campaign with new annotators."""
    truth = np.array(load_lexical_frequency_material().truth)
    habits = POPULATIONS["mlqe-et-en"].draw_habits(row.annotators, np.random.default_rng([seed, row.annotators]))
    arm = next(arm for arm in ALL_SCALE_ARMS if arm.name == row.arm)
    *_, campaign = iterate_campaign_after_each_round(
        arm, HabitAnnotators(habits, truth), truth, [seed, row.annotators, 1]
    )
    law = ONLINE_LAWS[arm.law]
    initial_beliefs = law.initial_beliefs(
        [np.full(len(truth), number) for number in law.family.default_prior], LawParameters()
    )
    return ArmRecord(law, initial_beliefs, campaign.hits, truth)


def measure_experiment(row: Row, seed: int) -> CheckpointFigures:
    """Simulate an experiment and return its figures at the checkpoints."""
    arm_record, checkpoint_indices = simulate_arm(row, seed), np.array(CHECKPOINTS) - 1
    replay = replay_arm(arm_record, CHECKPOINTS[-1])
    bootstrap_figures = np.array(
        [bootstrap_correlations(arm_record, np.random.default_rng([seed, draw])) for draw in range(BOOTSTRAP_DRAWS)]
    )
    figure, *band = replay.band("spearman")
    series = (
        figure,
        replay.standard_errors_at_each_checkpoint("spearman"),
        *band,
        *np.percentile(bootstrap_figures, (2.5, 97.5), axis=0),
    )
    return CheckpointFigures(*(values[checkpoint_indices] for values in series))


def bootstrap_correlations(arm_record: ArmRecord, rng: np.random.Generator) -> Array:
    """Return Spearman's correlation at all checkpoints after drawing as many annotators with replacement."""
    ends = hit_count_at_each_checkpoint(arm_record, CHECKPOINTS[-1])
    copies = np.bincount(rng.choice(arm_record.people, len(arm_record.people)), minlength=max(arm_record.people) + 1)
    hits = [
        [hit for hit in arm_record.hits[start:end] for _ in range(copies[hit.annotator])]
        for start, end in pairwise((0, *ends))
    ]
    resampled_record = ArmRecord(arm_record.law, arm_record.initial_beliefs, [*chain(*hits)], arm_record.truth)
    return truth_correlation_series_by_metric_name(
        arm_record.truth, iterate_scores_at_checkpoints(resampled_record, np.cumsum([*map(len, hits)]).tolist())
    )["spearman"]


def format_table_row(row: Row, experiments: Sequence[CheckpointFigures], checkpoint: int) -> str:
    """Return the table row of all experiments of an arm at one checkpoint."""
    figures = CheckpointFigures(*(np.array(column)[:, checkpoint] for column in zip(*experiments, strict=True)))
    truth = figures.figure.mean()
    jackknife_share, bootstrap_share = (
        ((low <= truth) & (truth <= high)).mean()
        for low, high in ((figures.low, figures.high), (figures.bootstrap_low, figures.bootstrap_high))
    )
    spread = f"{truth:.3f} | {figures.figure.std():.3f} | {figures.error.mean():.3f}"
    shares = f"{jackknife_share:.0%} | {bootstrap_share:.0%}"
    return f"| {row.arm} | {row.annotators} | {CHECKPOINTS[checkpoint]} | {spread} | {shares} |"


def main() -> None:
    experiments = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    print("| arm | annotators | judgments per item | Spearman | apart | error | held | by a bootstrap |")
    print("|---|---|---|---|---|---|---|---|")
    with make_process_pool() as pool:
        for row in ROWS:
            figures = list(pool.map(partial(measure_experiment, row), range(experiments)))
            for checkpoint in range(len(CHECKPOINTS)):
                print(format_table_row(row, figures, checkpoint), flush=True)


if __name__ == "__main__":
    main()
