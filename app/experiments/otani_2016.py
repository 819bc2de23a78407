"""Experiments of Otani et al. (2016): how robust methods that compare systems are to judges who answer at random
(section 6.4), and which system is a good baseline (section 6.3).

Simulated judgments come from a model that is none of those compared: Thurstone's, with segments and ties.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from app.experiments import report
from app.experiments.comparison_file import ComparisonFile
from app.experiments.figures import plot_run_means_with_bands
from app.experiments.judged_pairs import (
    GRADED_METHOD,
    HOPKINS_METHOD,
    SCORING_METHODS,
    WINS_METHOD,
    JudgedPairs,
    ScoringMethod,
    pearson_and_ndcg_without_baseline,
    score_graded_response,
    system_judge_segment_and_outcome_arrays,
)
from app.experiments.report import format_mean_with_run_range
from app.experiments.result_tables import write_figure_table
from app.experiments.runs import ArmResult, RunExperiment, RunResults, figure_array_by_arm
from app.inference.ground.arrays import Array
from app.inference.observations.baseline import BaselineAdvice, baseline_advice

RANDOM_JUDGE_PERCENTS = (0, 10, 20, 30, 40, 50)
EXTREME_PERCENTS = (0, 50)
ALIKE_SEGMENT_SD = 0.3  # standard deviation of a system's outputs where they are alike
BASELINE_STEP = 2  # every second system is tried as a baseline
PAPER_ROBUSTNESS = {
    "pearson": {
        GRADED_METHOD: (0.929, 0.917, 0.900, 0.879, 0.849, 0.807),
        HOPKINS_METHOD: (0.931, 0.912, 0.891, 0.864, 0.824, 0.769),
        WINS_METHOD: (0.904, 0.889, 0.865, 0.841, 0.809, 0.761),
    },
    "ndcg": {
        GRADED_METHOD: (0.883, 0.867, 0.847, 0.822, 0.793, 0.752),
        HOPKINS_METHOD: (0.859, 0.737, 0.710, 0.678, 0.641, 0.584),
        WINS_METHOD: (0.848, 0.813, 0.783, 0.762, 0.733, 0.683),
    },
}
AGREEMENT_FIGURES = {"pearson": "Pearson with the truth", "ndcg": "nDCG"}


@dataclass(frozen=True)
class SimulatedJudging:
    """Settings of simulated comparisons, on a scale on which systems have a standard deviation of 1.

    Attributes:
        systems: Number of systems.
        judges: Number of judges.
        segments: Number of segments.
        judgments: Number of judgments in a run.
        tie: Largest perceived difference between two outputs that is a tie.
        segment_sd: Standard deviation of a system's outputs.
        noise: Median noise of the judges.
        log_noise_sd: Standard deviation of the logarithm of their noise.

    """

    systems: int = 17
    judges: int = 40
    segments: int = 300
    judgments: int = 1600
    tie: float = 0.4
    segment_sd: float = 1.0
    noise: float = 0.7
    log_noise_sd: float = 0.5

    def result_settings(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def baseline(self) -> int:
        """System in the middle."""
        return self.systems // 2

    def draw_judges(self, rng: np.random.Generator) -> "SimulatedJudges":
        """Draw the judges and the outputs of one run."""
        return SimulatedJudges(self, rng)

    @property
    def truth(self) -> Array:
        """True scores, (systems,), from the best down."""
        even = np.linspace(1, -1, self.systems)
        spread: Array = even / even.std()
        return spread


class SimulatedJudges:
    """Judges and outputs of one run."""

    def __init__(self, judging: SimulatedJudging, rng: np.random.Generator) -> None:
        self.judging, self.rng = judging, rng
        self.noise = judging.noise * np.exp(judging.log_noise_sd * rng.standard_normal(judging.judges))
        self.output = judging.truth + judging.segment_sd * rng.standard_normal((judging.segments, judging.systems))
        self.place = rng.permutation(judging.judges) / judging.judges

    def draw_comparisons(self, baseline: int | None, random_judge_share: float) -> JudgedPairs:
        """Draw random comparisons, all with the baseline if there is one; a share of the judges answers at random."""
        judging, rng = self.judging, self.rng
        size = judging.judgments
        first = rng.integers(judging.systems, size=size) if baseline is None else np.full(size, baseline)
        second = (first + rng.integers(1, judging.systems, size=size)) % judging.systems
        judge, segment = rng.integers(judging.judges, size=size), rng.integers(judging.segments, size=size)
        difference = (
            self.output[segment, first] - self.output[segment, second] + self.noise[judge] * rng.normal(size=size)
        )
        outcome = np.where(np.abs(difference) < judging.tie, 0, np.sign(difference)).astype(np.int64)
        return JudgedPairs(first, second, judge, segment, outcome).with_random_answers_of_judges(
            self.place, random_judge_share, rng
        )


class RunJudges(Protocol):
    """Judges of one run."""

    def draw_comparisons(self, baseline: int | None, random_judge_share: float) -> JudgedPairs:
        """Draw comparisons with a baseline, or any; a share of the judges answers at random."""


class ComparisonSource(Protocol):
    """Source of comparisons: simulated, or drawn from a file."""

    def result_settings(self) -> dict[str, Any]:
        """Return the settings on which the results of a run depend."""

    @property
    def truth(self) -> Array:
        """True scores, (systems,)."""

    @property
    def baseline(self) -> int:
        """Number of the baseline."""

    def draw_judges(self, rng: np.random.Generator) -> RunJudges:
        """Draw the judges of one run."""


@dataclass(frozen=True)
class RandomJudgesExperiment:
    """Agreement of every method with the truth, by the share of judges who answer at random."""

    source: ComparisonSource
    seed: int
    methods: Mapping[str, ScoringMethod] = field(default_factory=lambda: SCORING_METHODS)
    shares: Sequence[int] = RANDOM_JUDGE_PERCENTS
    name: str = "random-judges"

    def settings_json(self) -> str:
        settings = {
            "of": self.source.result_settings(),
            "seed": self.seed,
            "methods": [*self.methods],
            "shares": self.shares,
        }
        return json.dumps(settings, sort_keys=True)

    def run(self, run_number: int) -> list[ArmResult]:
        """Run all methods; the same judges become careless as their share grows."""
        return [
            ArmResult(
                arm,
                columns_of_rows_by_name(
                    [self.simulate_pearson_and_ndcg_at_percent(method, share, run_number) for share in self.shares]
                ),
                [],
            )
            for arm, method in self.methods.items()
        ]

    def simulate_pearson_and_ndcg_at_percent(
        self, method: ScoringMethod, random_judge_percent: int, run_number: int
    ) -> dict[str, float]:
        baseline, truth = self.source.baseline, self.source.truth
        crowd = self.source.draw_judges(np.random.default_rng([self.seed, run_number]))
        pairs = crowd.draw_comparisons(baseline if method.uses_baseline_only else None, random_judge_percent / 100)
        return pearson_and_ndcg_without_baseline(truth, method.fit(pairs, baseline, len(truth)), baseline)


@dataclass(frozen=True)
class BaselineExperiment:
    """The graded response model by the choice of the baseline, from the best system to the worst."""

    judging: SimulatedJudging
    seed: int
    name: str = "baselines"

    def settings_json(self) -> str:
        settings = {"of": asdict(self.judging), "seed": self.seed, "name": self.name}
        return json.dumps(settings, sort_keys=True)

    def run(self, run_number: int) -> list[ArmResult]:
        """Run all baselines with the same crowd."""
        return [
            ArmResult(
                GRADED_METHOD,
                columns_of_rows_by_name(
                    [
                        self.simulate_baseline_counts_pearson_and_ndcg(baseline, run_number)
                        for baseline in self.tried_baselines
                    ]
                ),
                [],
            )
        ]

    @property
    def tried_baselines(self) -> range:
        """Systems that are tried as baselines."""
        return range(0, self.judging.systems, BASELINE_STEP)

    def simulate_baseline_counts_pearson_and_ndcg(self, baseline: int, run_number: int) -> dict[str, float]:
        pairs = self.judging.draw_judges(np.random.default_rng([self.seed, run_number])).draw_comparisons(baseline, 0.0)
        advice = baseline_advice(system_judge_segment_and_outcome_arrays(pairs, baseline)[3])
        counts = {"won": advice.won, "tied": advice.tied, "lost": advice.lost}
        score = score_graded_response(pairs, baseline, self.judging.systems)
        return counts | pearson_and_ndcg_without_baseline(self.judging.truth, score, baseline)


def columns_of_rows_by_name(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def run_judge_experiments_and_write_report(
    source: SimulatedJudging | ComparisonFile, seed: int, folder: Path, run_experiment: RunExperiment, command: str
) -> Path:
    """Run the experiments, write figures, tables and the report, and return the file of the report."""
    experiment = RandomJudgesExperiment(source, seed)
    results = run_experiment(experiment, "Annotators who answer at random")
    write_figure_table(
        folder / f"{experiment.name}.parquet", [(experiment, results)], "careless", RANDOM_JUDGE_PERCENTS
    )
    path = folder / f"{experiment.name}.md"
    page, context = (
        (
            "judges_of_a_file.md",
            {"systems": table_rows_of_baseline_advice(source), "baseline": source.names[source.baseline]},
        )
        if isinstance(source, ComparisonFile)
        else (
            "judges.md",
            run_baseline_experiment_and_build_context(BaselineExperiment(source, seed), folder, run_experiment)
            | run_alike_outputs_and_build_context(source, seed, folder, run_experiment),
        )
    )
    report.write_report(
        path,
        page,
        of=source,
        command=command,
        seed=seed,
        runs=len(results),
        shares=RANDOM_JUDGE_PERCENTS,
        told=plot_robustness_returning_table_rows(results, folder),
        **context,
    )
    return path


def plot_robustness_returning_table_rows(results: RunResults, folder: Path) -> list[dict[str, Any]]:
    """Draw what random judges cost each method, and return the rows of the tables."""
    figures = []
    for name, words in AGREEMENT_FIGURES.items():
        values = figure_array_by_arm(results, name)
        values_by_title = {SCORING_METHODS[arm].title: by_run for arm, by_run in values.items()}
        plot_run_means_with_bands(
            folder / f"random-judges-{name}.svg",
            RANDOM_JUDGE_PERCENTS,
            values_by_title,
            x_title="annotators who answer at random, %",
            y_title=words,
        )
        rows = [
            [arm_title_with_mean_loss(SCORING_METHODS[arm].title, by_run), *map(format_mean_with_run_range, by_run.T)]
            for arm, by_run in values.items()
        ]
        figures.append({"name": name, "words": words, "rows": rows, "paper": table_rows_of_paper_robustness(name)})
    return figures


def run_baseline_experiment_and_build_context(
    experiment: BaselineExperiment, folder: Path, run_experiment: RunExperiment
) -> dict[str, Any]:
    """Draw how good scores are by the choice of the baseline, and return the rows with the advice on each."""
    results, places = run_experiment(experiment, "Baselines"), [baseline + 1 for baseline in experiment.tried_baselines]
    write_figure_table(folder / f"{experiment.name}.parquet", [(experiment, results)], "baseline", places)
    values_by_title = {
        words: figure_array_by_arm(results, name)[GRADED_METHOD] for name, words in AGREEMENT_FIGURES.items()
    }
    x_title, y_title = "rank of the baseline (1 is best)", "Pearson, nDCG"
    plot_run_means_with_bands(
        folder / f"{experiment.name}.svg", places, values_by_title, x_title=x_title, y_title=y_title
    )
    counts = [
        figure_array_by_arm(results, name)[GRADED_METHOD].sum(axis=0).astype(int) for name in ("won", "tied", "lost")
    ]
    rows = []
    for k, place in enumerate(places):
        advice = baseline_advice(np.repeat((-1, 0, 1), [count[k] for count in counts]))
        rows.append(
            [
                str(place),
                *(format_mean_with_run_range(by_run[:, k]) for by_run in values_by_title.values()),
                *share_won_and_advice_sentence(advice),
            ]
        )
    return {"heads": list(values_by_title), "baselines": rows}


def run_alike_outputs_and_build_context(
    judging: SimulatedJudging, seed: int, folder: Path, run_experiment: RunExperiment
) -> dict[str, Any]:
    """Return what 50 % random judges cost each method if the outputs of a system are alike."""
    experiment = RandomJudgesExperiment(
        replace(judging, segment_sd=ALIKE_SEGMENT_SD), seed, shares=EXTREME_PERCENTS, name="alike-outputs"
    )
    results = run_experiment(experiment, "Similar outputs")
    write_figure_table(folder / f"{experiment.name}.parquet", [(experiment, results)], "careless", EXTREME_PERCENTS)
    values = figure_array_by_arm(results, "pearson")
    rows = [
        [SCORING_METHODS[arm].title, *map(format_mean_with_run_range, by_run.T), format_mean_first_to_last_loss(by_run)]
        for arm, by_run in values.items()
    ]
    return {"alike": ALIKE_SEGMENT_SD, "of_alike": rows}


def table_rows_of_baseline_advice(source: ComparisonFile) -> list[list[str]]:
    """Return the advice on each system of a file as the baseline, sorted by its share of wins."""
    advice_and_names = sorted(
        ((source.advice_on_system(k), name) for k, name in enumerate(source.names)),
        key=lambda advice_and_name: -np.nan_to_num(advice_and_name[0].share_won),
    )
    return [[name, *share_won_and_advice_sentence(advice)] for advice, name in advice_and_names]


def share_won_and_advice_sentence(advice: BaselineAdvice) -> tuple[str, str]:
    return "" if np.isnan(advice.share_won) else f"{advice.share_won:.0%}", advice.sentence


def arm_title_with_mean_loss(title: str, values: Array) -> str:
    """Return the title of an arm with its mean loss at 50 % random judges."""
    return f"{title} (loses {format_mean_first_to_last_loss(values)})"


def format_mean_first_to_last_loss(values_by_run: Array) -> str:
    return f"{(values_by_run[:, 0] - values_by_run[:, -1]).mean():.3f}"


def table_rows_of_paper_robustness(figure: str) -> list[list[str]]:
    """Return the rows of the paper's Table 1 as cells of text."""
    rows_by_method = PAPER_ROBUSTNESS[figure]
    return [
        [f"{SCORING_METHODS[arm].title} (loses {row[0] - row[-1]:.3f})", *(f"{value:.3f}" for value in row)]
        for arm, row in rows_by_method.items()
    ]
