"""Measure the benefit of more judgments for items that annotators disagree on: `python -m benchmarks.neyman [RUNS]`.

The default is 100 runs. The benchmark compares Moderated Neyman allocation (`systems/neyman.py`) with the same number
of judgments for all items (`scores`). Simulated campaigns have 150 items in HITs of 5 or 1, and use the data of
`benchmarks.goals`; the logarithm of the noise has a standard deviation of 0, .5 or .8 between simulated items. The
truth is the expected answer to an item.

For Spearman's correlation with the truth, and for the root mean square error in points, the table shows the figure of
`scores` and the mean gain of Neyman over paired runs. The next columns show at how many judgments per item Neyman has
the error that `scores` has at 10 and at 20. The last column shows the share of runs with evidence that variances
differ. Bands contain 90 % of resampled sets of runs.
"""

import sys
from concurrent.futures import Executor
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from app.designs.scale import MAX_POINTS
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.metrics import spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.even_rule import EVEN_RULE
from app.selection.index import SelectionIndex
from app.selection.rule import Rule, SelectionSettings
from app.simulation.annotators import SimulatedAnnotators
from app.simulation.campaign import SimulatedCampaign
from benchmarks.annotator_aware import make_process_pool
from benchmarks.goals import (
    ITEMS,
    MLQE,
    RESAMPLES,
    StudySource,
    load_mlqe_scores,
    make_replayed_study,
    make_similar_annotators,
)
from benchmarks.stopping import NOISE_QUANTILES, mean_clipped_answers
from benchmarks.systems.neyman import NEYMAN, HighestGainLeaders, variances_differ

ITEMS_PER_HIT = (5, 1)  # of a HIT
TABLE_JUDGMENTS_PER_ITEM = (3, 5, 10, 20)  # judgments per item
COMPARED_JUDGMENTS_PER_ITEM = (10, 20)
CHECKS_PER_JUDGMENT = 5
EXTRA_JUDGMENTS = 2  # in case Neyman needs more
NOISE_SPREADS = {"alike": 0.0, "hard items": 0.5, "harder items": 0.8}


class Checkpoint(NamedTuple):
    """State of a campaign.

    Attributes:
        spearman: Correlation of the scores with the truth.
        error: Root mean square error in points.
        evidence: 1 if variances demonstrably differ, otherwise 0.

    """

    spearman: float
    error: float
    evidence: float


def simulate_annotators_and_truth(noise_spread: float, rng: np.random.Generator) -> tuple[SimulatedAnnotators, Array]:
    """Return similar annotators whose noise depends on the item, and the expected answers, (items,)."""
    annotators, true_values = make_similar_annotators(noise_spread, rng)
    return annotators, mean_clipped_answers(true_values + annotators.noise * NOISE_QUANTILES[:, None])


def simulate_checkpoints(
    data: StudySource, rule: Rule, items_per_hit: int, max_judgments_per_item: int, seed: int
) -> list[Checkpoint]:
    """Simulate one campaign and return its state at all checkpoints.

    Args:
        data: Source of annotators and truth.
        rule: Selection rule.
        items_per_hit: Items per HIT.
        max_judgments_per_item: Judgments per item at the end.
        seed: Number of the run.

    """
    annotators, truth = data.make_study(np.random.default_rng([seed, 21]))
    settings = SelectionSettings(judgments_per_item=10**6, items_per_hit=items_per_hit, gamma=0.1)
    campaign = SimulatedCampaign(
        rule, ONLINE_LAWS["easl"], settings, LawParameters(), ITEMS, np.random.default_rng([seed, 22])
    )
    hits, checkpoints = campaign.iterate_hits_while_answering_them(annotators), []
    for _ in range(CHECKS_PER_JUDGMENT * max_judgments_per_item):
        list(islice(hits, ITEMS // (CHECKS_PER_JUDGMENT * items_per_hit)))
        error = MAX_POINTS * float(np.sqrt(np.mean((campaign.score - truth) ** 2)))
        checkpoints.append(Checkpoint(spearman(truth, campaign.score), error, variance_evidence(campaign)))
    return checkpoints


def variance_evidence(campaign: SimulatedCampaign) -> float:
    """Return 1 if the campaign's rule has evidence that variances differ, otherwise 0."""
    leaders = campaign.index.leaders if isinstance(campaign.index, SelectionIndex) else None
    return float(isinstance(leaders, HighestGainLeaders) and variances_differ(leaders.tally))


def judgments_until_error(errors: Array, goal: float) -> float:
    """Return the judgments per item at which the mean error of the runs first reaches the goal; infinite if never.

    Args:
        errors: Errors of the runs at the checkpoints, (runs, checkpoints).
        goal: Error to reach.

    """
    is_reached = errors.mean(axis=0) <= goal
    return (1 + int(is_reached.argmax())) / CHECKS_PER_JUDGMENT if is_reached.any() else np.inf


class PairedRuns(NamedTuple):
    """Checkpoints of both rules in paired runs, (runs, checkpoints, 3) each."""

    even: Array
    neyman: Array

    def table_cells(self) -> list[str]:
        """Return the cells of a table row after its first columns."""
        differences = [
            self.format_difference(k, CHECKS_PER_JUDGMENT * n - 1, places)
            for k, places in ((0, 4), (1, 2))
            for n in TABLE_JUDGMENTS_PER_ITEM
        ]
        return [
            *differences,
            *(self.format_judgments_for_same_error(CHECKS_PER_JUDGMENT * n - 1) for n in COMPARED_JUDGMENTS_PER_ITEM),
            self.format_evidence_shares(),
        ]

    def format_difference(self, figure: int, checkpoint: int, places: int) -> str:
        """Return the figure of `scores` at a checkpoint, and the gain of Neyman with its band."""
        even, gains = self.even[:, checkpoint, figure], (self.neyman - self.even)[:, checkpoint, figure]
        low, high = np.percentile(gains[resampled_run_numbers(len(gains))].mean(axis=1), (5, 95))
        return f"{even.mean():.{places - 1}f} {gains.mean():+.{places}f} ({low:+.{places}f} to {high:+.{places}f})"

    def format_judgments_for_same_error(self, checkpoint: int) -> str:
        """Return the judgments per item at which Neyman has the error of `scores` at this checkpoint, with a band."""
        errors, goals = self.neyman[:, :, 1], self.even[:, checkpoint, 1]
        resampled_judgments = [
            judgments_until_error(errors[k], goals[k].mean()) for k in resampled_run_numbers(len(goals))
        ]
        low, high = np.percentile(resampled_judgments, (5, 95), method="nearest")
        return f"{judgments_until_error(errors, goals.mean()):g} ({low:g} to {high:g})"

    def format_evidence_shares(self) -> str:
        """Return the shares of runs with evidence that variances differ."""
        return ", ".join(
            f"{self.neyman[:, CHECKS_PER_JUDGMENT * n - 1, 2].mean():.0%}" for n in TABLE_JUDGMENTS_PER_ITEM
        )


def resampled_run_numbers(runs: int) -> Integers:
    """Return the run numbers of bootstrap samples, (samples, runs)."""
    return np.random.default_rng(1).integers(runs, size=(RESAMPLES, runs))


def simulate_paired_runs(data: StudySource, items_per_hit: int, runs: int, pool: Executor) -> PairedRuns:
    """Simulate both rules with the same seeds."""
    max_judgments_per_item = max(TABLE_JUDGMENTS_PER_ITEM) + EXTRA_JUDGMENTS
    runs_of_rules = [
        pool.map(partial(simulate_checkpoints, data, rule, items_per_hit, max_judgments_per_item), range(runs))
        for rule in (EVEN_RULE, NEYMAN)
    ]
    return PairedRuns(*(np.array(list(checkpoints)) for checkpoints in runs_of_rules))


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    data = [
        StudySource(f"simulated, {kind}", partial(simulate_annotators_and_truth, spread))
        for kind, spread in NOISE_SPREADS.items()
    ]
    data += [
        StudySource(f"MLQE {languages}", partial(make_replayed_study, load_mlqe_scores(languages)))
        for languages in MLQE
    ]
    headings = [f"{figure}, {number}" for figure in ("Spearman", "error") for number in TABLE_JUDGMENTS_PER_ITEM]
    headings += [f"error of {number} with" for number in COMPARED_JUDGMENTS_PER_ITEM] + [
        f"evidence, {' '.join(map(str, TABLE_JUDGMENTS_PER_ITEM))}"
    ]
    print(f"{runs} runs\n\n| HIT of | data | {' | '.join(headings)} |\n|---|---{'|---' * len(headings)}|", flush=True)
    with make_process_pool() as pool:
        for number in ITEMS_PER_HIT:
            for source in data:
                cells = simulate_paired_runs(source, number, runs, pool).table_cells()
                print(f"| {number} | {source.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
