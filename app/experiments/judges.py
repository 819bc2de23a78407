"""The experiments of Otani et al. (2016): how methods for comparisons of systems bear judges who answer at random
(section 6.4), and which system is a good baseline (section 6.3).

Made-up judgments are from a model that is none of those compared: Thurstone's, with segments and ties.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from app.experiments import report
from app.experiments.figures import curves
from app.experiments.judged_pairs import (
    GRADED,
    HOPKINS,
    METHODS,
    WINS,
    JudgedPairs,
    ScoringMethod,
    agreement_with,
    graded,
    graded_columns,
)
from app.experiments.judges_of_a_file import JudgesOfAFile
from app.experiments.parquet import write_figures
from app.experiments.report import with_band
from app.experiments.runs import ArmCourse, Courses, Run, by_arm
from app.inference.ground.arrays import Array
from app.inference.observations.baseline import BaselineAdvice, baseline_advice

SHARES = (0, 10, 20, 30, 40, 50)  # per cent of the judges
ENDS = (0, 50)
ALIKE = 0.3  # standard deviation of a system's outputs where they are alike
EACH = 2  # every second system is tried as a baseline
PAPER = {
    "pearson": {
        GRADED: (0.929, 0.917, 0.900, 0.879, 0.849, 0.807),
        HOPKINS: (0.931, 0.912, 0.891, 0.864, 0.824, 0.769),
        WINS: (0.904, 0.889, 0.865, 0.841, 0.809, 0.761),
    },
    "ndcg": {
        GRADED: (0.883, 0.867, 0.847, 0.822, 0.793, 0.752),
        HOPKINS: (0.859, 0.737, 0.710, 0.678, 0.641, 0.584),
        WINS: (0.848, 0.813, 0.783, 0.762, 0.733, 0.683),
    },
}
FIGURES = {"pearson": "Pearson with the truth", "ndcg": "nDCG"}


@dataclass(frozen=True)
class JudgingOfSystems:
    """How systems are compared. judgments: of a run. tie: how near two outputs must seem for a tie. segment_sd: how far
    a single output lies from its system; noise: of a judge, and log_noise_sd how much judges differ in it. All on the
    scale on which systems have a standard deviation of 1.
    """

    systems: int = 17
    judges: int = 40
    segments: int = 300
    judgments: int = 1600
    tie: float = 0.4
    segment_sd: float = 1.0
    noise: float = 0.7
    log_noise_sd: float = 0.5

    def told(self) -> dict[str, Any]:
        """What decides the results of a run."""
        return asdict(self)

    @property
    def baseline(self) -> int:
        """In the middle."""
        return self.systems // 2

    def crowd(self, rng: np.random.Generator) -> "Judges":
        """The judges and the outputs of one run."""
        return Judges(self, rng)

    @property
    def truth(self) -> Array:
        """(systems,), from the best down."""
        even = np.linspace(1, -1, self.systems)
        spread: Array = even / even.std()
        return spread


class Judges:
    """The judges and the outputs of one run."""

    def __init__(self, of: JudgingOfSystems, rng: np.random.Generator) -> None:
        self.of, self.rng = of, rng
        self.noise = of.noise * np.exp(of.log_noise_sd * rng.standard_normal(of.judges))
        self.output = of.truth + of.segment_sd * rng.standard_normal((of.segments, of.systems))
        self.place = rng.permutation(of.judges) / of.judges

    def judged(self, baseline: int | None, share: float) -> JudgedPairs:
        """Random comparisons, all with the baseline if there is one; a share of the judges answers at random."""
        of, rng = self.of, self.rng
        size = of.judgments
        first = rng.integers(of.systems, size=size) if baseline is None else np.full(size, baseline)
        second = (first + rng.integers(1, of.systems, size=size)) % of.systems
        judge, segment = rng.integers(of.judges, size=size), rng.integers(of.segments, size=size)
        apart = self.output[segment, first] - self.output[segment, second] + self.noise[judge] * rng.normal(size=size)
        outcome = np.where(np.abs(apart) < of.tie, 0, np.sign(apart)).astype(np.int64)
        return JudgedPairs(first, second, judge, segment, outcome).at_random(self.place, share, rng)


class JudgesOfARun(Protocol):
    """Judges of one run."""

    def judged(self, baseline: int | None, share: float) -> JudgedPairs:
        """Comparisons with a baseline, or any; a share of the judges answers at random."""


class ComparedSystems(Protocol):
    """Where comparisons come from: made up, or drawn from a file."""

    def told(self) -> dict[str, Any]:
        """What decides the results of a run."""

    @property
    def truth(self) -> Array:
        """(systems,)."""

    @property
    def baseline(self) -> int:
        """The number of a system."""

    def crowd(self, rng: np.random.Generator) -> JudgesOfARun:
        """The judges of one run."""


@dataclass(frozen=True)
class RandomJudges:
    """Every method, by how many judges answer at random."""

    of: ComparedSystems
    seed: int
    methods: Mapping[str, ScoringMethod] = field(default_factory=lambda: METHODS)
    shares: Sequence[int] = SHARES
    name: str = "random-judges"

    def settings(self) -> str:
        """What decides its results, as text."""
        told = {"of": self.of.told(), "seed": self.seed, "methods": [*self.methods], "shares": self.shares}
        return json.dumps(told, sort_keys=True)

    def run(self, number: int) -> list[ArmCourse]:
        """The same judges turn careless as their share grows."""
        return [
            ArmCourse(arm, columns([self.at(method, share, number) for share in self.shares]), [])
            for arm, method in self.methods.items()
        ]

    def at(self, method: ScoringMethod, share: int, number: int) -> dict[str, float]:
        baseline, truth = self.of.baseline, self.of.truth
        crowd = self.of.crowd(np.random.default_rng([self.seed, number]))
        judged = crowd.judged(baseline if method.of_baseline else None, share / 100)
        return agreement_with(truth, method.fit(judged, baseline, len(truth)), baseline)


@dataclass(frozen=True)
class Baselines:
    """The graded response model, by which system is the baseline, from the best to the worst."""

    of: JudgingOfSystems
    seed: int
    name: str = "baselines"

    def settings(self) -> str:
        """What decides its results, as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def run(self, number: int) -> list[ArmCourse]:
        """One crowd, whom every baseline is shown to anew."""
        return [ArmCourse(GRADED, columns([self.at(baseline, number) for baseline in self.tried]), [])]

    @property
    def tried(self) -> range:
        """The systems that are baselines."""
        return range(0, self.of.systems, EACH)

    def at(self, baseline: int, number: int) -> dict[str, float]:
        judged = self.of.crowd(np.random.default_rng([self.seed, number])).judged(baseline, 0.0)
        advice = baseline_advice(graded_columns(judged, baseline)[3])
        counts = {"won": advice.won, "tied": advice.tied, "lost": advice.lost}
        score = graded(judged, baseline, self.of.systems)
        return counts | agreement_with(self.of.truth, score, baseline)


def columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def conduct(of: JudgingOfSystems | JudgesOfAFile, seed: int, out: Path, run: Run, command: str) -> Path:
    """Run it, and write figures, tables and the report; the file of the report."""
    noisy = RandomJudges(of, seed)
    found = run(noisy, "Judges who answer at random")
    write_figures(out / f"{noisy.name}.parquet", [(noisy, found)], "careless", SHARES)
    path = out / f"{noisy.name}.md"
    page, chosen = (
        ("judges_of_a_file.md", {"systems": advised(of), "baseline": of.names[of.baseline]})
        if isinstance(of, JudgesOfAFile)
        else ("judges.md", by_baseline(Baselines(of, seed), out, run) | where_alike(of, seed, out, run))
    )
    report.write(
        path, page, of=of, command=command, seed=seed, runs=len(found), shares=SHARES, told=robustness(found, out),
        **chosen,
    )  # fmt: skip
    return path


def robustness(found: Courses, out: Path) -> list[dict[str, Any]]:
    """What judges at random cost every method; its figures are written."""
    told = []
    for name, words in FIGURES.items():
        values = by_arm(found, name)
        shown = {METHODS[arm].title: those for arm, those in values.items()}
        curves(out / f"random-judges-{name}.svg", SHARES, shown, x_title="% of judges at random", y_title=words)
        rows = [[with_loss(METHODS[arm].title, those), *map(with_band, those.T)] for arm, those in values.items()]
        told.append({"name": name, "words": words, "rows": rows, "paper": paper(name)})
    return told


def by_baseline(chosen: Baselines, out: Path, run: Run) -> dict[str, Any]:
    """How good the scores are by which system is the baseline, and what is said of it; the figure is written."""
    found, places = run(chosen, "Baselines"), [baseline + 1 for baseline in chosen.tried]
    write_figures(out / f"{chosen.name}.parquet", [(chosen, found)], "baseline", places)
    good = {words: by_arm(found, name)[GRADED] for name, words in FIGURES.items()}
    x_title, y_title = "place of the baseline, the best first", "Pearson, nDCG"
    curves(out / f"{chosen.name}.svg", places, good, x_title=x_title, y_title=y_title)
    counts = [by_arm(found, name)[GRADED].sum(axis=0).astype(int) for name in ("won", "tied", "lost")]
    rows = []
    for k, place in enumerate(places):
        advice = baseline_advice(np.repeat((-1, 0, 1), [count[k] for count in counts]))
        rows.append([str(place), *(with_band(those[:, k]) for those in good.values()), *said(advice)])
    return {"heads": list(good), "baselines": rows}


def where_alike(of: JudgingOfSystems, seed: int, out: Path, run: Run) -> dict[str, Any]:
    """What half of the judges at random cost where outputs of a system are alike."""
    alike = RandomJudges(replace(of, segment_sd=ALIKE), seed, shares=ENDS, name="alike-outputs")
    found = run(alike, "Outputs that are alike")
    write_figures(out / f"{alike.name}.parquet", [(alike, found)], "careless", ENDS)
    values = by_arm(found, "pearson")
    rows = [[METHODS[arm].title, *map(with_band, those.T), loss(those)] for arm, those in values.items()]
    return {"alike": ALIKE, "of_alike": rows}


def advised(of: JudgesOfAFile) -> list[list[str]]:
    """What is said of each system of a file as the baseline, from the one that wins most down."""
    told = sorted(
        ((of.advice(k), name) for k, name in enumerate(of.names)), key=lambda one: -np.nan_to_num(one[0].share_won)
    )
    return [[name, *said(advice)] for advice, name in told]


def said(advice: BaselineAdvice) -> tuple[str, str]:
    return "" if np.isnan(advice.share_won) else f"{advice.share_won:.0%}", advice.sentence


def with_loss(title: str, values: Array) -> str:
    """An arm, and what half of the judges at random cost it in the mean of runs."""
    return f"{title} (loses {loss(values)})"


def loss(values: Array) -> str:
    return f"{(values[:, 0] - values[:, -1]).mean():.3f}"


def paper(figure: str) -> list[list[str]]:
    """The rows of the paper's Table 1."""
    told = PAPER[figure]
    return [
        [f"{METHODS[arm].title} (loses {row[0] - row[-1]:.3f})", *(f"{one:.3f}" for one in row)]
        for arm, row in told.items()
    ]
