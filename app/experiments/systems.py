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
from app.experiments.figures import curves
from app.experiments.parquet import write_tables
from app.experiments.runs import ArmCourse, Courses, Run, by_arm, judgments_for_as_much
from app.experiments.tables import between, columns_of
from app.inference.ground.arrays import Array
from app.inference.ground.metrics import pearson, spearman
from app.inference.online.law import Parameters
from app.inference.online.laws import ONLINE
from app.selection.registry import RULES
from app.selection.rule import Asking
from app.simulation.annotators import Habits, MadeUp, Population
from app.simulation.in_memory import InMemory

ANNOTATORS, N, GAMMA = 30, 5, 0.1
LOOKS = tuple(range(50, 1001, 50))  # judgments a system
A_SYSTEM = "judgments a system"
DA, TOGETHER = "da", "together"
TITLES = {
    DA: "Direct assessment",
    TOGETHER: "Five outputs of a segment, in turn",
    "easl": "EASL",
    "systems": "Asked for the order of systems",
}
FEWEST = 3  # systems, and segments


@dataclass(frozen=True)
class MadeUpOutputs:
    """How good outputs are. best, worst: of the systems, evenly between. segment_sd: how much harder some segments are
    for all; output_sd: how far a single output lies from its system's others; shares of the scale.
    """

    systems: int = 10
    segments: int = 1500
    best: float = 0.75
    worst: float = 0.57
    segment_sd: float = 0.15
    output_sd: float = 0.15

    def quality(self, rng: np.random.Generator) -> Array:
        """(segments, systems), 0 to 1."""
        means = np.linspace(self.best, self.worst, self.systems)
        harder = self.segment_sd * rng.standard_normal((self.segments, 1))
        return np.clip(means + harder + self.output_sd * rng.standard_normal((self.segments, self.systems)), 0.0, 1.0)


def made_up(seed: int) -> tuple[list[str], Array]:
    """As `outputs_of`."""
    made = MadeUpOutputs()
    return [f"system {k + 1}" for k in range(made.systems)], made.quality(np.random.default_rng(seed))


@dataclass(frozen=True, eq=False)
class OfSystems:
    """name: of the file of its results. quality: of outputs, (S, K) of S segments and K systems, 0 to 1."""

    name: str
    quality: Array
    population: Population
    seed: int

    def settings(self) -> str:
        """What decides its results, as text."""
        outputs = sha256(np.ascontiguousarray(self.quality).tobytes()).hexdigest()
        told = {"outputs": outputs, "population": asdict(self.population), "seed": self.seed}
        return json.dumps(told, sort_keys=True)

    @cached_property
    def truth(self) -> Array:
        """How good each system is, (K,)."""
        mean: Array = self.quality.mean(axis=0)
        return mean

    def run(self, number: int) -> list[ArmCourse]:
        """How every arm went in one run: one crowd, whom every arm asks anew."""
        crowd = self.population.people(ANNOTATORS, np.random.default_rng([self.seed, number]))
        ways: dict[str, Callable[[Sequence[Habits], np.random.Generator], Iterator[Array]]] = {
            DA: self.one_by_one,
            TOGETHER: self.in_turn,
            "easl": lambda people, rng: self.chosen("easl", people, rng),
            "systems": lambda people, rng: self.chosen("systems", people, rng),
        }
        return [
            self.course(arm, way(crowd, np.random.default_rng([self.seed, number, 1]))) for arm, way in ways.items()
        ]

    def course(self, arm: str, scores: Iterator[Array]) -> ArmCourse:
        looked = list(scores)
        figures = {figure.__name__: [figure(self.truth, score) for score in looked] for figure in (spearman, pearson)}
        return ArmCourse(arm, figures, looked[-1].round(4).tolist())

    def one_by_one(self, people: Sequence[Habits], rng: np.random.Generator) -> Iterator[Array]:
        """Outputs at random, none twice before all were there, and the mean of the scores of each system."""
        segments, systems = self.quality.shape
        asked = MadeUp(people, self.quality.ravel())
        total, count = np.zeros(systems), np.zeros(systems)
        hits = self.shuffled(segments * systems, rng)
        for _ in LOOKS:
            for outputs in islice(hits, LOOKS[0] * systems // N):
                np.add.at(total, outputs % systems, asked.answer(int(rng.integers(len(people))), outputs, rng))
                np.add.at(count, outputs % systems, 1)
            yield total / np.maximum(count, 1)

    @staticmethod
    def shuffled(size: int, rng: np.random.Generator) -> Iterator[Any]:
        """HITs of numbers, all of them in a random order, again and again."""
        while True:
            yield from rng.permutation(size)[: size - size % N].reshape(-1, N)

    def in_turn(self, people: Sequence[Habits], rng: np.random.Generator) -> Iterator[Array]:
        """Each system as often as the others, in random company, learned by EASL."""
        asked, mine = OnSegments(people, self.quality, rng), self.campaign("easl", rng)
        for judgments in LOOKS:
            while len(mine.hits) * N < judgments * len(self.truth):
                mine.round_by(asked)
            yield mine.score

    def chosen(self, rule: str, people: Sequence[Habits], rng: np.random.Generator) -> Iterator[Array]:
        """What a rule chooses, learned by EASL."""
        asked, mine = OnSegments(people, self.quality, rng), self.campaign(rule, rng)
        hits = mine.answered_by(asked)
        for judgments in LOOKS:
            while len(mine.hits) * N < judgments * len(self.truth):
                next(hits)
            yield mine.score

    def campaign(self, rule: str, rng: np.random.Generator) -> InMemory:
        size = len(self.truth)
        asking = Asking(wanted=10**6, n=min(N, size), gamma=GAMMA)
        return InMemory(RULES[rule], ONLINE["easl"], asking, Parameters(), size, rng)


class OnSegments:
    """People who see outputs of one segment in a HIT, one that was used as little as any; they are asked by systems."""

    def __init__(self, people: Sequence[Habits], quality: Array, rng: np.random.Generator) -> None:
        """quality: (S, K)."""
        self.outputs, self.systems = MadeUp(people, quality.ravel()), quality.shape[1]
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


def outputs_of(path: Path, ends: tuple[float, float]) -> tuple[list[str], Array]:
    """The systems of a table of outputs, and how good each is, (S, K); of segments for which all systems have one.
    Columns: system, segment, score, as a number between the ends; of several scores of an output the mean.

    Raises as `columns_of` and `between`, and `Invalid` (`too_few_outputs`).
    """
    scores: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in columns_of(path, ("system", "segment", "score")):
        scores[str(row.values["segment"]), str(row.values["system"])].append(between(row, "score", *ends))
    systems = sorted({system for _, system in scores})
    segments = sorted({segment for segment, _ in scores})
    whole = [segment for segment in segments if all((segment, system) in scores for system in systems)]
    if len(systems) < FEWEST or len(whole) < FEWEST:
        words = f"{path} has {len(whole)} segments for which each of {len(systems)} systems has an output"
        raise Invalid(f"{words}; {FEWEST} of both are the fewest.", code="too_few_outputs")
    return systems, np.array([[np.mean(scores[segment, system]) for system in systems] for segment in whole])


def conduct(  # noqa: PLR0917
    names: Sequence[str], experiment: OfSystems, out: Path, run: Run, about: str,
    command: str,
) -> Path:  # fmt: skip
    """Run it, and write figures, tables and the report; the file of the report."""
    found = run(experiment, "Systems")
    write_tables(out, experiment.name, [(experiment, found)], LOOKS, names)
    told = {}
    for figure in ("spearman", "pearson"):
        values = by_arm(found, figure)
        shown = {TITLES[arm]: those for arm, those in values.items()}
        y_title = f"{figure.capitalize()} with the true order" if figure == "spearman" else "Pearson with the truth"
        curves(out / f"{experiment.name}-{figure}.svg", LOOKS, shown, x_title=A_SYSTEM, y_title=y_title)
        told[figure] = [[report.with_band(those[:, k]) for those in values.values()] for k in range(len(LOOKS))]
    path = out / f"{experiment.name}.md"
    report.write(
        path,
        "systems.md",
        name=experiment.name,
        about=about,
        command=command,
        seed=experiment.seed,
        runs=len(found),
        looks=LOOKS,
        titles=[*TITLES.values()],
        others=[title for arm, title in TITLES.items() if arm != DA],
        told=told,
        needed=needed(found),
    )
    return path


def needed(found: Courses) -> list[tuple[int, list[str]]]:
    """With how many judgments a system each arm is as good as direct assessment with so many."""
    values = by_arm(found, "spearman")
    others = [those for arm, those in values.items() if arm != DA]
    return [
        (judgments, [within(judgments_for_as_much(LOOKS, those, values[DA][:, look])) for those in others])
        for look, judgments in enumerate(LOOKS)
        if judgments in ROWS
    ]


ROWS = (100, 200, 400, 600, 800, 1000)


def within(judgments: tuple[float, float, float]) -> str:
    """In words, as far as anybody looked."""
    middle, low, high = (report.as_far(one, LOOKS[-1], decimals=0) for one in judgments)
    return f"{middle} ({low} to {high})"


MADE_UP = (
    "10 made-up systems with translations of 1,500 segments: in the mean from 57 to 75 points good, evenly between; "
    "some segments are harder than others for all systems (standard deviation 15 points), and an output lies as far "
    "from its system’s others. It answers to section 5.3 of Sakaguchi & Van Durme (2018)."
)
FROM_A_FILE = (
    "Systems and outputs from a file, which says how good each output is. It answers to section 5.3 of Sakaguchi & Van "
    "Durme (2018)."
)
