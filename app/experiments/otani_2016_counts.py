"""Experiments of Otani et al. (2016) on the number of comparisons (Figure 3) and on segments (Figure 5).

The judges are those of `otani_2016`, without any who answer at random.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from app.experiments import report
from app.experiments.figures import Band, plot_bands, plot_run_means_with_bands
from app.experiments.judged_pairs import (
    GRADED_METHOD,
    HOPKINS_METHOD,
    SCORING_METHODS,
    TRUESKILL_METHOD,
    WINS_METHOD,
    JudgedPairs,
    pearson_and_ndcg_without_baseline,
    system_judge_segment_and_outcome_arrays,
)
from app.experiments.otani_2016 import AGREEMENT_FIGURES, SimulatedJudging, columns_of_rows_by_name
from app.experiments.report import format_mean_with_run_range
from app.experiments.result_tables import write_figure_table
from app.experiments.runs import ArmResult, RunExperiment, figure_array_by_arm
from app.inference.ground.arrays import Array, Integers
from app.inference.systems import graded_response

COMPARISON_COUNTS = (800, 1_600, 3_200, 6_400)  # as in the paper
WORST_BASELINE_ARM = "graded-worst"
ARM_TITLES = {
    GRADED_METHOD: "Graded response, baseline in the middle",
    WORST_BASELINE_ARM: "Graded response, worst system as baseline",
    HOPKINS_METHOD: SCORING_METHODS[HOPKINS_METHOD].title,
    WINS_METHOD: SCORING_METHODS[WINS_METHOD].title,
    TRUESKILL_METHOD: SCORING_METHODS[TRUESKILL_METHOD].title,
}
MIN_SEGMENT_COMPARISONS = 10
INFORMATION_RANGE, INFORMATION_STEPS = 3.0, 121


@dataclass(frozen=True)
class ComparisonCountExperiment:
    """Agreement of every method with the truth, by the number of comparisons."""

    judging: SimulatedJudging
    seed: int
    counts: Sequence[int] = COMPARISON_COUNTS
    name: str = "comparison-counts"

    def settings_json(self) -> str:
        settings = {"of": asdict(self.judging), "seed": self.seed, "counts": self.counts, "arms": [*ARM_TITLES]}
        return json.dumps(settings, sort_keys=True)

    def run(self, run_number: int) -> list[ArmResult]:
        """Run all arms with the same judges; each reads the first of its comparisons."""
        return [
            ArmResult(
                arm, columns_of_rows_by_name(self.simulate_agreement_at_each_count(arm, baseline, run_number)), []
            )
            for arm, baseline in self.baselines().items()
        ]

    def baselines(self) -> dict[str, int | None]:
        """Return the baseline of each arm; None if comparisons are of any two systems."""
        with_baseline = {GRADED_METHOD: self.judging.baseline, WORST_BASELINE_ARM: self.judging.systems - 1}
        return {arm: with_baseline.get(arm) for arm in ARM_TITLES}

    def draw_comparisons_of_largest_count(self, baseline: int | None, run_number: int) -> JudgedPairs:
        judging = replace(self.judging, judgments=max(self.counts))
        return judging.draw_judges(np.random.default_rng([self.seed, run_number])).draw_comparisons(baseline, 0.0)

    def simulate_agreement_at_each_count(
        self, arm: str, baseline: int | None, run_number: int
    ) -> list[dict[str, float]]:
        """Return the agreement at each count. The middle system is left out, as it has no score as a baseline."""
        method = SCORING_METHODS[GRADED_METHOD if arm == WORST_BASELINE_ARM else arm]
        pairs = self.draw_comparisons_of_largest_count(baseline, run_number)
        left_out = self.judging.baseline if baseline is None else baseline
        return [
            pearson_and_ndcg_without_baseline(
                self.judging.truth,
                method.fit(pairs.select_rows(np.arange(count)), left_out, self.judging.systems),
                left_out,
            )
            for count in self.counts
        ]


def run_comparison_count_experiment_and_write_report(
    judging: SimulatedJudging, seed: int, folder: Path, run_experiment: RunExperiment, command: str
) -> Path:
    """Run the experiment, write figures, tables and the report, and return the file of the report."""
    experiment = ComparisonCountExperiment(judging, seed)
    results = run_experiment(experiment, "Comparisons")
    write_figure_table(folder / f"{experiment.name}.parquet", [(experiment, results)], "comparisons", COMPARISON_COUNTS)
    figures = []
    for name, words in AGREEMENT_FIGURES.items():
        values_by_title = {ARM_TITLES[arm]: by_run for arm, by_run in figure_array_by_arm(results, name).items()}
        plot_run_means_with_bands(
            folder / f"{experiment.name}-{name}.svg",
            COMPARISON_COUNTS,
            values_by_title,
            x_title="comparisons",
            y_title=words,
        )
        rows = [[title, *map(format_mean_with_run_range, by_run.T)] for title, by_run in values_by_title.items()]
        figures.append({"name": name, "words": words, "rows": rows})
    path = folder / f"{experiment.name}.md"
    report.write_report(
        path,
        "comparison_counts.md",
        of=judging,
        command=command,
        seed=seed,
        runs=len(results),
        counts=COMPARISON_COUNTS,
        told=figures,
        segments=plot_segment_information_and_return_rows(experiment, folder),
    )
    return path


def plot_segment_information_and_return_rows(experiment: ComparisonCountExperiment, folder: Path) -> list[list[str]]:
    """Draw the information of the easiest and the hardest segment of the first run, and return their rows."""
    baseline = experiment.judging.baseline
    columns = system_judge_segment_and_outcome_arrays(
        experiment.draw_comparisons_of_largest_count(baseline, 0), baseline
    )
    fit = graded_response.fit(*columns, n_items=experiment.judging.systems, with_errors=False)
    segments = easiest_and_hardest_segment_by_name(fit.difficulty, columns[2])
    performance = np.linspace(-INFORMATION_RANGE, INFORMATION_RANGE, INFORMATION_STEPS)
    bands, rows = {}, []
    for words, segment in segments.items():
        difficulty = fit.difficulty[segment] / fit.unit  # in the paper's unit
        information = graded_response.item_information(performance, difficulty)
        bands[words] = Band(information, np.full_like(information, np.nan), np.full_like(information, np.nan))
        rows.append([words, *(f"{number:.2f}" for number in difficulty), f"{performance[information.argmax()]:.2f}"])
    plot_bands(
        folder / f"{experiment.name}-information.svg",
        performance.tolist(),
        bands,
        x_title="performance of a system",
        y_title="information of a judgment",
        legend_place="upper center",
    )
    return rows


def easiest_and_hardest_segment_by_name(difficulty: Array, segments: Integers) -> dict[str, int]:
    """Return the two segments, by name, on which the baseline is easiest and hardest to beat.

    Args:
        difficulty: Difficulties of not losing and of winning, (n_segments, 2).
        segments: Segment of each comparison, (n,); segments with few comparisons do not take part.

    """
    counts = np.bincount(segments, minlength=len(difficulty))
    mean = np.where(counts >= MIN_SEGMENT_COMPARISONS, difficulty.mean(axis=1), np.nan)
    return {"easy segment": int(np.nanargmin(mean)), "hard segment": int(np.nanargmax(mean))}
