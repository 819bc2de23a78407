"""Runs of an experiment, in as many processes as there are cores: each decided by its number alone.

So a run is the same on any machine and in whatever order runs are done. What a run found is one line of a file: whoever
stops and comes back goes on with the runs that are not there.
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
    """How an arm went in one run. figures: by their names, after each look. scores: of items after the last, (N,)."""

    arm: str
    figures: dict[str, list[float]]
    scores: list[float]


class Experiment(Protocol):
    """What can be run again and again."""

    @property
    def name(self) -> str:
        """Of the file of its results."""

    def settings(self) -> str:
        """What decides its results, as text."""

    def run(self, run_number: int) -> list[ArmResult]:
        """How every arm went in one run."""


def run_missing(experiment: Experiment, folder: Path, count: int) -> Iterator[int]:
    """Do what is missing of so many runs, and say after each how many are there; `found` reads what they found.

    Raises `Conflict` (`other_experiment`) where the folder has results of other settings.
    """
    path = folder / f"{experiment.name}.jsonl"
    done = {line["run"] for line in read_run_lines(experiment, path)}
    missing = [k for k in range(count) if k not in done]
    yield count - len(missing)
    with make_process_pool() as pool, path.open("a", encoding="utf-8") as file:
        if file.tell() == 0:
            file.write(experiment.settings() + "\n")
        waiting = {pool.submit(experiment.run, k): k for k in missing}
        for completed, future in enumerate(as_completed(waiting), start=count - len(missing) + 1):
            line = {"run": waiting[future], "found": [asdict(course) for course in future.result()]}
            file.write(json.dumps(line) + "\n")
            file.flush()
            yield completed


def make_process_pool() -> Executor:
    """As many as there are cores, with a thread each: of more threads than cores OpenBLAS has most wait."""
    environ["OPENBLAS_NUM_THREADS"] = "1"
    return ProcessPoolExecutor(cpu_count(), get_context("spawn"))


def load_runs(experiment: Experiment, folder: Path, count: int) -> list[list[ArmResult]]:
    """How each of the first so many runs went, in their order."""
    lines = {line["run"]: line["found"] for line in read_run_lines(experiment, folder / f"{experiment.name}.jsonl")}
    return [[ArmResult(**one) for one in lines[k]] for k in range(count)]


def read_run_lines(experiment: Experiment, path: Path) -> Iterator[dict[str, Any]]:
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


RunResults = Sequence[Sequence[ArmResult]]
RunExperiment = Callable[[Experiment, str], RunResults]  # of an experiment, with a label for people


def figure_by_arm(results: RunResults, figure: str) -> dict[str, Array]:
    """Of each arm a figure, (runs, looks)."""
    arms = [course.arm for course in results[0]]
    return {arm: np.array([one.figures[figure] for run in results for one in run if one.arm == arm]) for arm in arms}


def final_scores_by_arm(results: RunResults) -> dict[str, Array]:
    """Of each arm the scores of items after the last look, (runs, N)."""
    arms = [course.arm for course in results[0]]
    return {arm: np.array([one.scores for run in results for one in run if one.arm == arm]) for arm in arms}


def judgments_to_reach(checkpoints: Sequence[int], values: Array, goal: float) -> float:
    """With how many judgments the mean of runs, (runs, looks), meets a goal, on a line between two looks; infinite
    where it never does, and the first look's where it does from the first on.
    """
    return _interpolate_judgments(checkpoints, values.mean(axis=0), goal)


def _interpolate_judgments(checkpoints: Sequence[int], mean: Array, goal: float) -> float:
    so_far = np.maximum.accumulate(mean)
    return float(np.interp(goal, so_far, checkpoints)) if so_far[-1] >= goal else np.inf


def judgments_to_match_arm(checkpoints: Sequence[int], values: Array, goal: Array) -> tuple[float, float, float]:
    """With how many judgments an arm, (runs, looks), is as good in the mean as another one at one look, (runs,); and
    between which numbers that lies in 95 % of resampled runs.
    """
    resampled = np.random.default_rng(len(values)).integers(len(values), size=(JUDGMENT_RESAMPLES, len(values)))
    needed = [
        _interpolate_judgments(checkpoints, *one)
        for one in zip(values[resampled].mean(axis=1), goal[resampled].mean(axis=1), strict=True)
    ]
    low, high = np.percentile(needed, (2.5, 97.5), method="nearest")
    return judgments_to_reach(checkpoints, values, goal.mean()), float(low), float(high)
