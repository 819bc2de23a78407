"""Reports of experiments: figures and a page in one folder.

`write_report` and the `format_...` functions serve all experiments; the rest is for experiments with items on a scale.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from app.experiments import figures
from app.experiments.runs import (
    RunResults,
    figure_array_by_arm,
    final_score_arrays_by_arm,
    judgments_to_match_arm_with_band,
)
from app.experiments.simulated_arms import (
    ALL_SCALE_ARMS,
    AWARE_ARM,
    BEST_ARM,
    DA_ARM,
    EASL_ARM,
    ITEM_CHECKPOINTS,
    SCALE_ARM_TITLES,
    SCALE_ARMS,
    SCALE_GAMMA,
    SIDES_ARM,
    ScaleExperiment,
)
from app.http.templating import english_environment
from app.inference.ground.arrays import Array
from app.selection.match_quality import match_quality_matrix

PER_ITEM_AXIS = "judgments per item"
DRAWN_ITERATIONS = 0, 3, 6, 9  # as in Figure 8
ITEMS_IN_TABLE = 10  # as in Table 1
FIGURE_TITLES = (("spearman", "Spearman with the truth"), ("pearson", "Pearson with the truth"))
GOAL_FIGURES = (
    ("best", "Share of the true best tenth that is found", (DA_ARM, EASL_ARM, BEST_ARM, AWARE_ARM, "best-aware")),
    ("sides", "Share of items on the right side of the median", (DA_ARM, EASL_ARM, SIDES_ARM, AWARE_ARM)),
)


@dataclass(frozen=True)
class ReportPart:
    """One experiment of a report, with its title, its introduction and the results of its runs."""

    title: str
    introduction: str
    experiment: ScaleExperiment
    results: RunResults


@dataclass(frozen=True)
class PaperGain:
    """Gain that the paper reports.

    Attributes:
        needed: Judgments by EASL that are as good as those by direct assessment, by the number of the latter.

    """

    needed: Mapping[int, int]
    section: str


PAPER_GAIN = PaperGain({3: 2, 6: 4}, "sections 5.1 and 5.2")


def write_report(path: Path, template: str, **context: Any) -> None:
    """Write a page by its template, with the machine and the versions that made it."""
    versions = {"version": version("easel"), "python": platform.python_version(), "numpy": np.__version__}
    text = english_environment.get_template(f"experiments/{template}").render(
        machine=platform.machine(), **versions, **context
    )
    path.write_text(text, encoding="utf-8")


def plot_part_returning_template_context(folder: Path, part: ReportPart) -> dict[str, Any]:
    """Draw the figures of a part, and return the context of its page."""
    figure_files = []
    for name, words in FIGURE_TITLES:
        file, values = f"{part.experiment.name}-{name}.svg", figure_array_by_arm(part.results, name)
        figures.plot_run_means_with_bands(
            folder / file,
            ITEM_CHECKPOINTS,
            {arm.title: values[arm.name] for arm in SCALE_ARMS},
            x_title=PER_ITEM_AXIS,
            y_title=words,
        )
        figure_files.append({"words": f"{words}: {part.title.lower()}", "file": file})
    spearman = figure_array_by_arm(part.results, "spearman")
    return {
        "title": part.title,
        "said": part.introduction,
        "figures": figure_files,
        "heads": [arm.title for arm in SCALE_ARMS],
        "rows": checkpoint_mean_and_band_text_rows([spearman[arm.name] for arm in SCALE_ARMS]),
        "needed": [
            [format_judgments_to_match_da(spearman, arm.name, judgments) for arm in SCALE_ARMS[1:]]
            for judgments in range(2, len(ITEM_CHECKPOINTS) + 1)
        ],
    }


def checkpoint_mean_and_band_text_rows(values: Sequence[Array]) -> list[list[str]]:
    """Return at each checkpoint the mean of each arm's figures, (runs, L), and the band that holds 95 % of the runs."""
    return [[format_mean_with_run_range(by_run[:, k]) for by_run in values] for k in range(len(ITEM_CHECKPOINTS))]


def format_mean_with_run_range(value_by_run: Array) -> str:
    """Format the mean of runs, (runs,), with the band that holds 95 % of them."""
    low, high = np.percentile(value_by_run, figures.RUN_BAND_PERCENTILES)
    return f"{value_by_run.mean():.3f} ({low:.3f} to {high:.3f})"


def format_judgments_to_match_da(values: Mapping[str, Array], arm: str, judgments: int) -> str:
    """Format how many judgments an arm needs to match direct assessment with `judgments` judgments per item."""
    needed = judgments_to_match_arm_with_band(ITEM_CHECKPOINTS, values[arm], values[DA_ARM][:, judgments - 1])
    middle, low, high = (format_judgment_count_or_more_than(count, ITEM_CHECKPOINTS[-1]) for count in needed)
    return f"{middle} ({low} to {high})"


def format_judgment_count_or_more_than(judgments: float, last_checkpoint: int, decimals: int = 1) -> str:
    """Format a number of judgments; if it is infinite, "more than" the judgments at the last checkpoint."""
    return f"{judgments:.{decimals}f}" if np.isfinite(judgments) else f"more than {last_checkpoint}"


def plot_goal_figures_and_build_contexts(folder: Path, part: ReportPart) -> list[dict[str, Any]]:
    """Draw the figures for campaigns with another goal than the whole scale, and return contexts of their sections."""
    sections = []
    for name, words, arms in GOAL_FIGURES:
        file, values = f"{part.experiment.name}-{name}.svg", figure_array_by_arm(part.results, name)
        figures.plot_run_means_with_bands(
            folder / file,
            ITEM_CHECKPOINTS,
            {SCALE_ARM_TITLES[arm]: values[arm] for arm in arms},
            x_title=PER_ITEM_AXIS,
            y_title=words,
        )
        sections.append(
            {
                "words": words,
                "file": file,
                "heads": [SCALE_ARM_TITLES[arm] for arm in arms],
                "rows": checkpoint_mean_and_band_text_rows([values[arm] for arm in arms]),
                "needed": [format_judgments_to_match_da(values, arm, ITEM_CHECKPOINTS[-1]) for arm in arms[1:]],
            }
        )
    return sections


def plot_score_histograms_and_build_context(folder: Path, part: ReportPart) -> dict[str, Any]:
    """Draw histograms of the truth and of some arms at the last checkpoint; return them with the ranges of all arms."""
    scores, truth = final_score_arrays_by_arm(part.results), np.array([part.experiment.truth])
    file = f"{part.experiment.name}-histograms.svg"
    scores_by_title = {arm.title: scores[arm.name] for arm in SCALE_ARMS if arm.name in {DA_ARM, "ra", EASL_ARM}}
    figures.plot_score_histograms(folder / file, {"Truth": truth} | scores_by_title)
    ranges = [
        (arm.title, mean_texts_of_low_high_and_deviation(scores[arm.name]))
        for arm in ALL_SCALE_ARMS
        if arm.name in scores
    ]
    return {"file": file, "ranges": [("Truth", mean_texts_of_low_high_and_deviation(truth)), *ranges]}


def mean_texts_of_low_high_and_deviation(scores_by_run: Array) -> tuple[str, str, str]:
    """Return lowest and highest score and the standard deviation of N items, averaged over runs, (runs, N)."""
    low, high, spread = (
        by_run.mean() for by_run in (scores_by_run.min(axis=1), scores_by_run.max(axis=1), scores_by_run.std(axis=1))
    )
    return f"{100 * low:.0f}", f"{100 * high:.0f}", f"{100 * spread:.0f}"


def plot_match_quality_returning_file_name(folder: Path, part: ReportPart) -> str:
    """Draw match qualities of EASL in the first run, items ordered by the truth; return the name of the file."""
    arm = next(arm for arm in SCALE_ARMS if arm.name == EASL_ARM)
    order = np.argsort(part.experiment.truth, kind="stable")
    rounds = part.experiment.iterate_simulated_rounds(arm, 0)
    states = [(campaign.score[order], campaign.variance[order]) for campaign in rounds]
    qualities = {f"iteration {k}": match_quality_matrix(*states[k], SCALE_GAMMA) for k in DRAWN_ITERATIONS}
    file = f"{part.experiment.name}-match-quality.svg"
    figures.plot_match_quality_heatmaps(
        folder / file, qualities, max(float(quality.max()) for quality in qualities.values())
    )
    return file


def table_rows_of_example_items(part: ReportPart, names: Sequence[str]) -> list[list[str]]:
    """Return ten items, evenly spaced from the highest to the lowest truth: name, truth, and the arms' scores."""
    truth, scores = np.array(part.experiment.truth), final_score_arrays_by_arm(part.results)
    return [
        [
            names[k],
            f"{100 * truth[k]:.1f}",
            *(format_mean_points_with_range(scores[arm.name][:, k]) for arm in SCALE_ARMS),
        ]
        for k in item_numbers_evenly_spaced_by_truth(truth)
    ]


def item_numbers_evenly_spaced_by_truth(truth: Array) -> list[int]:
    """Return the numbers of `ITEMS_IN_TABLE` items, evenly spaced from the highest to the lowest truth, (N,)."""
    order = np.argsort(-truth, kind="stable")
    chosen: list[int] = order[
        np.linspace(0, len(order) - 1, min(ITEMS_IN_TABLE, len(order))).round().astype(int)
    ].tolist()
    return chosen


def format_mean_points_with_range(item_scores_by_run: Array) -> str:
    """Format the scores of one item, (runs,), in points."""
    low, high = np.percentile(100 * item_scores_by_run, figures.RUN_BAND_PERCENTILES)
    return f"{100 * item_scores_by_run.mean():.1f} ({low:.0f} to {high:.0f})"


def table_rows_of_context_effects(parts: Sequence[ReportPart]) -> list[list[str]]:
    """Return by context effect how many judgments EASL needs to match direct assessment with those of the paper."""
    cells = []
    for part in parts:
        spearman = figure_array_by_arm(part.results, "spearman")
        cells.append(
            [
                f"{part.experiment.context:.0%}",
                *(format_judgments_to_match_da(spearman, EASL_ARM, judgments) for judgments in PAPER_GAIN.needed),
            ]
        )
    return cells
