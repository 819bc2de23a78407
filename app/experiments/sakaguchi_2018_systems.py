"""The experiment of Sakaguchi & Van Durme (2018), section 5.3: ranking systems by the adequacy of their translations.

Annotators judge outputs, each of one system for one segment; the result is an order of the systems.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from app.errors import Invalid
from app.experiments import report
from app.experiments.figures import plot_run_means_with_bands
from app.experiments.input_tables import iterate_table_rows_with_columns, parse_value_as_share_of_range_or_refuse
from app.experiments.result_tables import write_figure_and_score_tables
from app.experiments.runs import (
    ArmResult,
    RunExperiment,
    RunResults,
    figure_array_by_arm,
    judgments_to_match_arm_with_band,
)
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import pearson, spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Habits, Population
from app.simulation.campaign import SimulatedCampaign

SYSTEM_ANNOTATORS, OUTPUTS_PER_HIT, SYSTEM_GAMMA = 30, 5, 0.1
SYSTEM_CHECKPOINTS = tuple(range(50, 1001, 50))  # judgments per system
PER_SYSTEM_AXIS = "judgments per system"
SYSTEM_DA_ARM, IN_TURN_ARM = "da", "together"
SYSTEM_ARM_TITLES = {
    SYSTEM_DA_ARM: "Direct assessment",
    IN_TURN_ARM: "Five outputs of a segment, in turn",
    "easl": "EASL",
    "systems": "Rule for the order of systems",
}
MIN_SYSTEMS_AND_SEGMENTS = 3


@dataclass(frozen=True)
class SimulatedOutputs:
    """Simulated quality of outputs, as shares of the scale.

    Attributes:
        systems: Number of systems.
        segments: Number of segments.
        best: Mean quality of the best system.
        worst: Mean quality of the worst system; the others lie evenly between.
        segment_sd: Standard deviation of the difficulty of segments, the same for all systems.
        output_sd: Standard deviation of a system's outputs.

    """

    systems: int = 10
    segments: int = 1500
    best: float = 0.75
    worst: float = 0.57
    segment_sd: float = 0.15
    output_sd: float = 0.15

    def sample_quality_matrix(self, rng: np.random.Generator) -> Array:
        """Draw the quality of outputs, (segments, systems), 0 to 1."""
        means = np.linspace(self.best, self.worst, self.systems)
        ease = self.segment_sd * rng.standard_normal((self.segments, 1))
        return np.clip(means + ease + self.output_sd * rng.standard_normal((self.segments, self.systems)), 0.0, 1.0)


def simulate_system_names_and_output_quality(seed: int) -> tuple[list[str], Array]:
    """Return names of systems and the quality of their outputs, as `load_system_names_and_output_quality` does."""
    outputs = SimulatedOutputs()
    return [f"system {k + 1}" for k in range(outputs.systems)], outputs.sample_quality_matrix(
        np.random.default_rng(seed)
    )


@dataclass(frozen=True, eq=False)
class SystemsExperiment:
    """Ranking of systems by their outputs.

    Attributes:
        name: Name of the file with its results.
        quality: Quality of outputs, (S, K) for S segments and K systems, 0 to 1.
        population: Distribution of annotators' habits.

    """

    name: str
    quality: Array
    population: Population
    seed: int

    def settings_json(self) -> str:
        outputs = sha256(np.ascontiguousarray(self.quality).tobytes()).hexdigest()
        settings = {"outputs": outputs, "population": asdict(self.population), "seed": self.seed}
        return json.dumps(settings, sort_keys=True)

    @cached_property
    def truth(self) -> Array:
        """Mean quality of each system, (K,)."""
        mean: Array = self.quality.mean(axis=0)
        return mean

    def run(self, run_number: int) -> list[ArmResult]:
        """Return the results of every arm in one run, all with the same crowd."""
        crowd = self.population.draw_habits(SYSTEM_ANNOTATORS, np.random.default_rng([self.seed, run_number]))
        scoring_by_arm: dict[str, Callable[[Sequence[Habits], np.random.Generator], Iterator[Array]]] = {
            SYSTEM_DA_ARM: self.iterate_mean_scores_of_systems,
            IN_TURN_ARM: self.iterate_easl_scores_asking_evenly,
            "easl": lambda people, rng: self.iterate_easl_scores_at_checkpoints("easl", people, rng),
            "systems": lambda people, rng: self.iterate_easl_scores_at_checkpoints("systems", people, rng),
        }
        return [
            self.arm_result_of_score_history(arm, scoring(crowd, np.random.default_rng([self.seed, run_number, 1])))
            for arm, scoring in scoring_by_arm.items()
        ]

    def arm_result_of_score_history(self, arm: str, scores: Iterator[Array]) -> ArmResult:
        score_history = list(scores)
        figures = {
            figure.__name__: [figure(self.truth, score) for score in score_history] for figure in (spearman, pearson)
        }
        return ArmResult(arm, figures, score_history[-1].round(4).tolist())

    def iterate_mean_scores_of_systems(
        self, annotator_habits: Sequence[Habits], rng: np.random.Generator
    ) -> Iterator[Array]:
        """Score random outputs, none twice before all were scored, and yield the mean score of each system."""
        segments, systems = self.quality.shape
        annotators = HabitAnnotators(annotator_habits, self.quality.ravel())
        total, count = np.zeros(systems), np.zeros(systems)
        hits = self.iterate_shuffled_hits(segments * systems, rng)
        for _ in SYSTEM_CHECKPOINTS:
            for outputs in islice(hits, SYSTEM_CHECKPOINTS[0] * systems // OUTPUTS_PER_HIT):
                np.add.at(
                    total,
                    outputs % systems,
                    annotators.draw_scores_of_annotator(int(rng.integers(len(annotator_habits))), outputs, rng),
                )
                np.add.at(count, outputs % systems, 1)
            yield total / np.maximum(count, 1)

    @staticmethod
    def iterate_shuffled_hits(size: int, rng: np.random.Generator) -> Iterator[Any]:
        """Yield HITs of numbers, all of them in a random order, repeatedly."""
        while True:
            yield from rng.permutation(size)[: size - size % OUTPUTS_PER_HIT].reshape(-1, OUTPUTS_PER_HIT)

    def iterate_easl_scores_asking_evenly(
        self, annotator_habits: Sequence[Habits], rng: np.random.Generator
    ) -> Iterator[Array]:
        """Ask about each system equally often, in random company, and yield scores by EASL."""
        annotators, campaign = (
            SegmentAnnotators(annotator_habits, self.quality, rng),
            self.make_simulated_campaign("easl", rng),
        )
        for judgments in SYSTEM_CHECKPOINTS:
            while len(campaign.hits) * OUTPUTS_PER_HIT < judgments * len(self.truth):
                campaign.judge_each_item_once(annotators)
            yield campaign.score

    def iterate_easl_scores_at_checkpoints(
        self, rule: str, annotator_habits: Sequence[Habits], rng: np.random.Generator
    ) -> Iterator[Array]:
        """Ask as a rule selects, and yield scores by EASL."""
        annotators, campaign = (
            SegmentAnnotators(annotator_habits, self.quality, rng),
            self.make_simulated_campaign(rule, rng),
        )
        hits = campaign.iterate_hits_while_answering_them(annotators)
        for judgments in SYSTEM_CHECKPOINTS:
            while len(campaign.hits) * OUTPUTS_PER_HIT < judgments * len(self.truth):
                next(hits)
            yield campaign.score

    def make_simulated_campaign(self, rule: str, rng: np.random.Generator) -> SimulatedCampaign:
        size = len(self.truth)
        settings = SelectionSettings(
            judgments_per_item=10**6, items_per_hit=min(OUTPUTS_PER_HIT, size), gamma=SYSTEM_GAMMA
        )
        return SimulatedCampaign(SELECTION_RULES[rule], ONLINE_LAWS["easl"], settings, LawParameters(), size, rng)


class SegmentAnnotators:
    """Annotators who score systems by their outputs of one segment per HIT, always one of the least used segments."""

    def __init__(self, people: Sequence[Habits], quality: Array, rng: np.random.Generator) -> None:
        """Take the quality of outputs, (S, K)."""
        self.outputs, self.systems = HabitAnnotators(people, quality.ravel()), quality.shape[1]
        self.order, self.hits = rng.permutation(len(quality)), 0

    @property
    def number(self) -> int:
        return self.outputs.number

    def draw_scores_of_annotator(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Return the scores of these systems' outputs, (n,)."""
        segment = int(self.order[self.hits % len(self.order)])
        self.hits += 1
        return self.outputs.draw_scores_of_annotator(
            annotator, [segment * self.systems + system for system in items], rng
        )


def load_system_names_and_output_quality(path: Path, ends: tuple[float, float]) -> tuple[list[str], Array]:
    """Load the systems of a table, and the quality of their outputs, (S, K), for segments in which every system has
    one.

    Columns: system, segment, score, as a number between the ends. Several scores of an output are averaged.

    Raises as `iterate_table_rows_with_columns` and `parse_value_as_share_of_range_or_refuse`, and `Invalid`
    (`too_few_outputs`).
    """
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in iterate_table_rows_with_columns(path, ("system", "segment", "score")):
        scores[str(row.values["segment"]), str(row.values["system"])].append(
            parse_value_as_share_of_range_or_refuse(row, "score", *ends)
        )
    systems = sorted({system for _, system in scores})
    segments = sorted({segment for segment, _ in scores})
    complete = [segment for segment in segments if all((segment, system) in scores for system in systems)]
    if len(systems) < MIN_SYSTEMS_AND_SEGMENTS or len(complete) < MIN_SYSTEMS_AND_SEGMENTS:
        problem = f"{path} has {len(complete)} segments for which each of {len(systems)} systems has an output"
        raise Invalid(f"{problem}; at least {MIN_SYSTEMS_AND_SEGMENTS} of both are needed.", code="too_few_outputs")
    return systems, np.array([[np.mean(scores[segment, system]) for system in systems] for segment in complete])


def run_systems_experiment_and_write_report(  # noqa: PLR0917
    names: Sequence[str], experiment: SystemsExperiment, folder: Path, run_experiment: RunExperiment, about: str,
    command: str,
) -> Path:  # fmt: skip
    """Run the experiment, write figures, tables and the report, and return the file of the report."""
    results = run_experiment(experiment, "Systems")
    write_figure_and_score_tables(folder, experiment.name, [(experiment, results)], SYSTEM_CHECKPOINTS, names)
    rows_by_figure = {}
    for figure in ("spearman", "pearson"):
        values = figure_array_by_arm(results, figure)
        values_by_title = {SYSTEM_ARM_TITLES[arm]: by_run for arm, by_run in values.items()}
        y_title = f"{figure.capitalize()} with the true order" if figure == "spearman" else "Pearson with the truth"
        plot_run_means_with_bands(
            folder / f"{experiment.name}-{figure}.svg",
            SYSTEM_CHECKPOINTS,
            values_by_title,
            x_title=PER_SYSTEM_AXIS,
            y_title=y_title,
        )
        rows_by_figure[figure] = [
            [report.format_mean_with_run_range(by_run[:, k]) for by_run in values.values()]
            for k in range(len(SYSTEM_CHECKPOINTS))
        ]
    path = folder / f"{experiment.name}.md"
    report.write_report(
        path,
        "systems.md",
        name=experiment.name,
        about=about,
        command=command,
        seed=experiment.seed,
        runs=len(results),
        looks=SYSTEM_CHECKPOINTS,
        titles=[*SYSTEM_ARM_TITLES.values()],
        others=[title for arm, title in SYSTEM_ARM_TITLES.items() if arm != SYSTEM_DA_ARM],
        told=rows_by_figure,
        needed=table_rows_of_judgments_needed(results),
    )
    return path


def table_rows_of_judgments_needed(results: RunResults) -> list[tuple[int, list[str]]]:
    """Return how many judgments per system each arm needs to match direct assessment."""
    values = figure_array_by_arm(results, "spearman")
    other_arms = [by_run for arm, by_run in values.items() if arm != SYSTEM_DA_ARM]
    return [
        (
            judgments,
            [
                format_judgments_with_band(
                    judgments_to_match_arm_with_band(SYSTEM_CHECKPOINTS, by_run, values[SYSTEM_DA_ARM][:, checkpoint])
                )
                for by_run in other_arms
            ],
        )
        for checkpoint, judgments in enumerate(SYSTEM_CHECKPOINTS)
        if judgments in TABLE_CHECKPOINTS
    ]


TABLE_CHECKPOINTS = (100, 200, 400, 600, 800, 1000)


def format_judgments_with_band(judgments: tuple[float, float, float]) -> str:
    middle, low, high = (
        report.format_judgment_count_or_more_than(count, SYSTEM_CHECKPOINTS[-1], decimals=0) for count in judgments
    )
    return f"{middle} ({low} to {high})"


SIMULATED_OUTPUTS_TEXT = (
    "This repeats section 5.3 of Sakaguchi & Van Durme (2018). 10 simulated systems translate 1,500 segments. Their "
    "mean quality is spread evenly from 57 to 75 points. Segments differ in difficulty for all systems (standard "
    "deviation 15 points), and the outputs of one system vary by the same amount."
)
FILE_OUTPUTS_TEXT = (
    "This repeats section 5.3 of Sakaguchi & Van Durme (2018), with systems, outputs and the quality of each output "
    "from a file."
)
