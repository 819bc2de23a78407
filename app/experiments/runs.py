"""Runs of an experiment in one process per core; each run depends on its number alone.

So a run is the same on any machine and in any order. The result of a run is one line of a file, so an interrupted
experiment continues with the missing runs.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from os import cpu_count, environ
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from app.errors import Conflict
from app.inference.ground.arrays import Array

JUDGMENT_RESAMPLES = 500


@dataclass(frozen=True)
class ArmResult:
    """Result of an arm in one run.

    Attributes:
        arm: Name of the arm.
        figures: Figures by name, at each checkpoint.
        scores: Scores of the items at the last checkpoint, (N,).

    """

    arm: str
    figures: dict[str, list[float]]
    scores: list[float]


class Experiment(Protocol):
    """An experiment that can be run repeatedly."""

    @property
    def name(self) -> str:
        """Name of the file with its results."""

    def settings_json(self) -> str:
        """Return the settings on which the results depend, as text."""

    def run(self, run_number: int) -> list[ArmResult]:
        """Return the results of every arm in one run."""


def run_missing_and_iterate_finished_counts(experiment: Experiment, folder: Path, count: int) -> Iterator[int]:
    """Do the missing runs out of `count`, and yield how many are done; `load_runs` reads their results.

    Raises `Conflict` (`other_experiment`) where the folder has results of other settings.
    """
    path = folder / f"{experiment.name}.jsonl"
    done = {line["run"] for line in iterate_run_records_or_refuse(experiment, path)}
    missing = [k for k in range(count) if k not in done]
    yield count - len(missing)
    with make_process_pool() as pool, path.open("a", encoding="utf-8") as file:
        if file.tell() == 0:
            file.write(experiment.settings_json() + "\n")
        waiting = {pool.submit(experiment.run, k): k for k in missing}
        for completed, future in enumerate(as_completed(waiting), start=count - len(missing) + 1):
            line = {"run": waiting[future], "found": [asdict(arm_result) for arm_result in future.result()]}
            file.write(json.dumps(line) + "\n")
            file.flush()
            yield completed


def make_process_pool() -> Executor:
    """Make a pool of one process per core, each with one thread: with more threads than cores, most OpenBLAS threads
    wait.
    """
    environ["OPENBLAS_NUM_THREADS"] = "1"
    return ProcessPoolExecutor(cpu_count(), get_context("spawn"))


def load_runs(experiment: Experiment, folder: Path, count: int) -> list[list[ArmResult]]:
    """Return the results of the first `count` runs, in their order."""
    lines = {
        line["run"]: line["found"]
        for line in iterate_run_records_or_refuse(experiment, folder / f"{experiment.name}.jsonl")
    }
    return [[ArmResult(**fields) for fields in lines[k]] for k in range(count)]


def iterate_run_records_or_refuse(experiment: Experiment, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the runs in a file; skip the last line of an interrupted file if it is cut off."""
    if not path.exists():
        return
    settings, *lines = path.read_text(encoding="utf-8").split("\n")
    if settings != experiment.settings_json():
        raise Conflict(
            f"{path} has results with other settings. Nothing was changed. Choose another folder.",
            code="other_experiment",
        )
    for line in lines:
        with suppress(json.JSONDecodeError):
            yield json.loads(line)


RunResults = Sequence[Sequence[ArmResult]]
RunExperiment = Callable[[Experiment, str], RunResults]  # takes an experiment and its label on the screen


def figure_array_by_arm(results: RunResults, figure: str) -> dict[str, Array]:
    """Return a figure of each arm, (runs, L)."""
    arms = [result.arm for result in results[0]]
    return {
        arm: np.array([result.figures[figure] for run in results for result in run if result.arm == arm])
        for arm in arms
    }


def final_score_arrays_by_arm(results: RunResults) -> dict[str, Array]:
    """Return the scores of items at the last checkpoint by arm, (runs, N)."""
    arms = [result.arm for result in results[0]]
    return {arm: np.array([result.scores for run in results for result in run if result.arm == arm]) for arm in arms}


def judgments_until_mean_reaches_goal(checkpoints: Sequence[int], values_by_run: Array, goal: float) -> float:
    """Return how many judgments the mean of runs, (runs, L), needs to reach a goal, interpolated between checkpoints.

    Infinite if it never does, and the first checkpoint's if it does from the first on.
    """
    return _judgments_to_reach_goal_or_infinity(checkpoints, values_by_run.mean(axis=0), goal)


def _judgments_to_reach_goal_or_infinity(checkpoints: Sequence[int], mean: Array, goal: float) -> float:
    so_far = np.maximum.accumulate(mean)
    return float(np.interp(goal, so_far, checkpoints)) if so_far[-1] >= goal else np.inf


def judgments_to_match_arm_with_band(
    checkpoints: Sequence[int], values: Array, goal: Array
) -> tuple[float, float, float]:
    """Return how many judgments an arm, (runs, L), needs to match another arm's figure, (runs,), in the mean.

    The other two numbers are the ends of the range of 95 % of resampled runs.
    """
    resampled = np.random.default_rng(len(values)).integers(len(values), size=(JUDGMENT_RESAMPLES, len(values)))
    needed = [
        _judgments_to_reach_goal_or_infinity(checkpoints, *means)
        for means in zip(values[resampled].mean(axis=1), goal[resampled].mean(axis=1), strict=True)
    ]
    low, high = np.percentile(needed, (2.5, 97.5), method="nearest")
    return judgments_until_mean_reaches_goal(checkpoints, values, goal.mean()), float(low), float(high)
