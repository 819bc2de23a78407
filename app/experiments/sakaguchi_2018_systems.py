"""The experiment of Sakaguchi & Van Durme (2018), section 5.3: systems ranked by how adequate translations are.

What is asked about is an output, one of a system for a segment; what is to be known is the order of the systems.
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
from app.experiments.figures import plot_curves
from app.experiments.input_tables import read_table_columns, share_between_ends
from app.experiments.result_tables import write_run_tables
from app.experiments.runs import ArmResult, RunExperiment, RunResults, figure_by_arm, judgments_to_match_arm
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import pearson, spearman
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Habits, Population
from app.simulation.campaign import SimulatedCampaign

SYSTEM_ANNOTATORS, OUTPUTS_PER_HIT, SYSTEM_GAMMA = 30, 5, 0.1
SYSTEM_CHECKPOINTS = tuple(range(50, 1001, 50))  # judgments a system
PER_SYSTEM_AXIS = "judgments a system"
SYSTEM_DA_ARM, IN_TURN_ARM = "da", "together"
SYSTEM_ARM_TITLES = {
    SYSTEM_DA_ARM: "Direct assessment",
    IN_TURN_ARM: "Five outputs of a segment, in turn",
    "easl": "EASL",
    "systems": "Asked for the order of systems",
}
MIN_SYSTEMS_AND_SEGMENTS = 3  # systems, and segments


@dataclass(frozen=True)
class SimulatedOutputs:
    """How good outputs are. best, worst: of the systems, evenly between. segment_sd: how much harder some segments are
    for all; output_sd: how far a single output lies from its system's others; shares of the scale.
    """

    systems: int = 10
    segments: int = 1500
    best: float = 0.75
    worst: float = 0.57
    segment_sd: float = 0.15
    output_sd: float = 0.15

    def sample_quality(self, rng: np.random.Generator) -> Array:
        """(segments, systems), 0 to 1."""
        means = np.linspace(self.best, self.worst, self.systems)
        harder = self.segment_sd * rng.standard_normal((self.segments, 1))
        return np.clip(means + harder + self.output_sd * rng.standard_normal((self.segments, self.systems)), 0.0, 1.0)


def simulate_outputs(seed: int) -> tuple[list[str], Array]:
    """As `outputs_of`."""
    outputs = SimulatedOutputs()
    return [f"system {k + 1}" for k in range(outputs.systems)], outputs.sample_quality(np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class SystemsExperiment:
    """name: of the file of its results. quality: of outputs, (S, K) of S segments and K systems, 0 to 1."""

    name: str
    quality: Array
    population: Population
    seed: int

    def settings(self) -> str:
        """What decides its results, as text."""
        outputs = sha256(np.ascontiguousarray(self.quality).tobytes()).hexdigest()
        settings = {"outputs": outputs, "population": asdict(self.population), "seed": self.seed}
        return json.dumps(settings, sort_keys=True)

    @cached_property
    def truth(self) -> Array:
        """How good each system is, (K,)."""
        mean: Array = self.quality.mean(axis=0)
        return mean

    def run(self, run_number: int) -> list[ArmResult]:
        """How every arm went in one run: one crowd, whom every arm asks anew."""
        crowd = self.population.draw_habits(SYSTEM_ANNOTATORS, np.random.default_rng([self.seed, run_number]))
        scoring_by_arm: dict[str, Callable[[Sequence[Habits], np.random.Generator], Iterator[Array]]] = {
            SYSTEM_DA_ARM: self.score_direct_assessment,
            IN_TURN_ARM: self.score_in_turn,
            "easl": lambda people, rng: self.score_by_rule("easl", people, rng),
            "systems": lambda people, rng: self.score_by_rule("systems", people, rng),
        }
        return [
            self.measure_arm(arm, way(crowd, np.random.default_rng([self.seed, run_number, 1])))
            for arm, way in scoring_by_arm.items()
        ]

    def measure_arm(self, arm: str, scores: Iterator[Array]) -> ArmResult:
        score_history = list(scores)
        figures = {
            figure.__name__: [figure(self.truth, score) for score in score_history] for figure in (spearman, pearson)
        }
        return ArmResult(arm, figures, score_history[-1].round(4).tolist())

    def score_direct_assessment(self, people: Sequence[Habits], rng: np.random.Generator) -> Iterator[Array]:
        """Outputs at random, none twice before all were there, and the mean of the scores of each system."""
        segments, systems = self.quality.shape
        annotators = HabitAnnotators(people, self.quality.ravel())
        total, count = np.zeros(systems), np.zeros(systems)
        hits = self.shuffled_hits(segments * systems, rng)
        for _ in SYSTEM_CHECKPOINTS:
            for outputs in islice(hits, SYSTEM_CHECKPOINTS[0] * systems // OUTPUTS_PER_HIT):
                np.add.at(total, outputs % systems, annotators.answer(int(rng.integers(len(people))), outputs, rng))
                np.add.at(count, outputs % systems, 1)
            yield total / np.maximum(count, 1)

    @staticmethod
    def shuffled_hits(size: int, rng: np.random.Generator) -> Iterator[Any]:
        """HITs of numbers, all of them in a random order, again and again."""
        while True:
            yield from rng.permutation(size)[: size - size % OUTPUTS_PER_HIT].reshape(-1, OUTPUTS_PER_HIT)

    def score_in_turn(self, people: Sequence[Habits], rng: np.random.Generator) -> Iterator[Array]:
        """Each system as often as the others, in random company, learned by EASL."""
        annotators, campaign = SegmentAnnotators(people, self.quality, rng), self.make_campaign("easl", rng)
        for judgments in SYSTEM_CHECKPOINTS:
            while len(campaign.hits) * OUTPUTS_PER_HIT < judgments * len(self.truth):
                campaign.judge_each_item_once(annotators)
            yield campaign.score

    def score_by_rule(self, rule: str, people: Sequence[Habits], rng: np.random.Generator) -> Iterator[Array]:
        """What a rule chooses, learned by EASL."""
        annotators, campaign = SegmentAnnotators(people, self.quality, rng), self.make_campaign(rule, rng)
        hits = campaign.generate_hits(annotators)
        for judgments in SYSTEM_CHECKPOINTS:
            while len(campaign.hits) * OUTPUTS_PER_HIT < judgments * len(self.truth):
                next(hits)
            yield campaign.score

    def make_campaign(self, rule: str, rng: np.random.Generator) -> SimulatedCampaign:
        size = len(self.truth)
        settings = SelectionSettings(
            judgments_per_item=10**6, items_per_hit=min(OUTPUTS_PER_HIT, size), gamma=SYSTEM_GAMMA
        )
        return SimulatedCampaign(SELECTION_RULES[rule], ONLINE_LAWS["easl"], settings, LawParameters(), size, rng)


class SegmentAnnotators:
    """People who see outputs of one segment in a HIT, one that was used as little as any; they are asked by systems."""

    def __init__(self, people: Sequence[Habits], quality: Array, rng: np.random.Generator) -> None:
        """quality: (S, K)."""
        self.outputs, self.systems = HabitAnnotators(people, quality.ravel()), quality.shape[1]
        self.order, self.hits = rng.permutation(len(quality)), 0

    @property
    def number(self) -> int:
        """How many there are."""
        return self.outputs.number

    def answer(self, annotator: int, items: Sequence[int], rng: np.random.Generator) -> Array:
        """Their scores of the outputs of these systems, (n,)."""
        segment = int(self.order[self.hits % len(self.order)])
        self.hits += 1
        return self.outputs.answer(annotator, [segment * self.systems + system for system in items], rng)


def load_output_scores(path: Path, ends: tuple[float, float]) -> tuple[list[str], Array]:
    """The systems of a table of outputs, and how good each is, (S, K); of segments for which all systems have one.
    Columns: system, segment, score, as a number between the ends; of several scores of an output the mean.

    Raises as `columns_of` and `between`, and `Invalid` (`too_few_outputs`).
    """
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in read_table_columns(path, ("system", "segment", "score")):
        scores[str(row.values["segment"]), str(row.values["system"])].append(share_between_ends(row, "score", *ends))
    systems = sorted({system for _, system in scores})
    segments = sorted({segment for segment, _ in scores})
    complete = [segment for segment in segments if all((segment, system) in scores for system in systems)]
    if len(systems) < MIN_SYSTEMS_AND_SEGMENTS or len(complete) < MIN_SYSTEMS_AND_SEGMENTS:
        problem = f"{path} has {len(complete)} segments for which each of {len(systems)} systems has an output"
        raise Invalid(f"{problem}; {MIN_SYSTEMS_AND_SEGMENTS} of both are the fewest.", code="too_few_outputs")
    return systems, np.array([[np.mean(scores[segment, system]) for system in systems] for segment in complete])


def run_systems_experiment(  # noqa: PLR0917
    names: Sequence[str], experiment: SystemsExperiment, folder: Path, run_experiment: RunExperiment, about: str,
    command: str,
) -> Path:  # fmt: skip
    """Run it, and write figures, tables and the report; the file of the report."""
    results = run_experiment(experiment, "Systems")
    write_run_tables(folder, experiment.name, [(experiment, results)], SYSTEM_CHECKPOINTS, names)
    rows_by_figure = {}
    for figure in ("spearman", "pearson"):
        values = figure_by_arm(results, figure)
        values_by_title = {SYSTEM_ARM_TITLES[arm]: those for arm, those in values.items()}
        y_title = f"{figure.capitalize()} with the true order" if figure == "spearman" else "Pearson with the truth"
        plot_curves(
            folder / f"{experiment.name}-{figure}.svg",
            SYSTEM_CHECKPOINTS,
            values_by_title,
            x_title=PER_SYSTEM_AXIS,
            y_title=y_title,
        )
        rows_by_figure[figure] = [
            [report.format_mean_with_band(those[:, k]) for those in values.values()]
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
        needed=judgments_needed_rows(results),
    )
    return path


def judgments_needed_rows(results: RunResults) -> list[tuple[int, list[str]]]:
    """With how many judgments a system each arm is as good as direct assessment with so many."""
    values = figure_by_arm(results, "spearman")
    others = [those for arm, those in values.items() if arm != SYSTEM_DA_ARM]
    return [
        (
            judgments,
            [
                format_judgments_with_band(
                    judgments_to_match_arm(SYSTEM_CHECKPOINTS, those, values[SYSTEM_DA_ARM][:, look])
                )
                for those in others
            ],
        )
        for look, judgments in enumerate(SYSTEM_CHECKPOINTS)
        if judgments in TABLE_CHECKPOINTS
    ]


TABLE_CHECKPOINTS = (100, 200, 400, 600, 800, 1000)


def format_judgments_with_band(judgments: tuple[float, float, float]) -> str:
    """In words, as far as anybody looked."""
    middle, low, high = (report.format_judgment_count(one, SYSTEM_CHECKPOINTS[-1], decimals=0) for one in judgments)
    return f"{middle} ({low} to {high})"


SIMULATED_OUTPUTS_TEXT = (
    "10 made-up systems with translations of 1,500 segments: in the mean from 57 to 75 points good, evenly between; "
    "some segments are harder than others for all systems (standard deviation 15 points), and an output lies as far "
    "from its system’s others. It answers to section 5.3 of Sakaguchi & Van Durme (2018)."
)
FILE_OUTPUTS_TEXT = (
    "Systems and outputs from a file, which says how good each output is. It answers to section 5.3 of Sakaguchi & Van "
    "Durme (2018)."
)
