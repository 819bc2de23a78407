"""The experiments of Otani et al. (2016): how methods for comparisons of systems bear judges who answer at random
(section 6.4), and which system is a good baseline (section 6.3).

Judgments are made-up, from a model that is none of those compared: Thurstone's, with segments and ties.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from app.experiments import report
from app.experiments.figures import curves
from app.experiments.parquet import write_figures
from app.experiments.runs import ArmCourse, Run, by_arm
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.metrics import compare
from app.inference.observations.baseline import against, baseline_advice
from app.inference.preferences import expected_wins, hopkins_may
from app.inference.systems import graded_response

SHARES = (0, 10, 20, 30, 40, 50)  # per cent of the judges
GRADED, HOPKINS, WINS, SAME = "graded", "hopkins", "wins", "hopkins-same"
TITLES = {
    GRADED: "Graded response",
    HOPKINS: "Hopkins and May",
    WINS: "Expected Wins",
    SAME: "Hopkins and May, shown the baseline alone",
}
WITH_BASELINE = (GRADED, SAME)
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

    @property
    def truth(self) -> Array:
        """(systems,), from the best down."""
        even = np.linspace(1, -1, self.systems)
        spread: Array = even / even.std()
        return spread


@dataclass(frozen=True)
class JudgedPairs:
    """Comparisons of a first system with a second by judges on segments, (n,) each; outcomes +1, 0, -1."""

    first: Integers
    second: Integers
    judge: Integers
    segment: Integers
    outcome: Integers


class Judges:
    """The judges and the outputs of one run."""

    def __init__(self, of: JudgingOfSystems, rng: np.random.Generator) -> None:
        self.of, self.rng = of, rng
        self.noise = of.noise * np.exp(of.log_noise_sd * rng.standard_normal(of.judges))
        self.output = of.truth + of.segment_sd * rng.standard_normal((of.segments, of.systems))
        self.careless = rng.permutation(of.judges) / of.judges  # below a share of careless ones: is one

    def judged(self, baseline: int | None, share: float) -> JudgedPairs:
        """Random comparisons, all with the baseline if there is one; a share of the judges answers at random."""
        of, rng = self.of, self.rng
        size = of.judgments
        first = rng.integers(of.systems, size=size) if baseline is None else np.full(size, baseline)
        second = (first + rng.integers(1, of.systems, size=size)) % of.systems
        judge, segment = rng.integers(of.judges, size=size), rng.integers(of.segments, size=size)
        apart = self.output[segment, first] - self.output[segment, second] + self.noise[judge] * rng.normal(size=size)
        outcome = np.where(np.abs(apart) < of.tie, 0, np.sign(apart)).astype(np.int64)
        at_random = rng.integers(-1, 2, size=size)
        return JudgedPairs(first, second, judge, segment, np.where(self.careless[judge] < share, at_random, outcome))


def graded(judged: JudgedPairs, baseline: int, systems: int) -> Array:
    """(systems,), by the comparisons with a baseline, which itself gets no score."""
    rows, items, outcomes = against(baseline, judged.first, judged.second, judged.outcome)
    columns = items, judged.judge[rows], judged.segment[rows], outcomes
    return graded_response.fit(*columns, n_items=systems, errors=False).score


def scores_of(arm: str, judged: JudgedPairs, baseline: int, systems: int) -> Array:
    """(systems,)."""
    if arm == GRADED:
        return graded(judged, baseline, systems)
    fit = expected_wins.fit if arm == WINS else hopkins_may.fit
    return fit(judged.first, judged.second, judged.outcome, n_items=systems).score


def figures_of(truth: Array, score: Array, baseline: int) -> dict[str, float]:
    """On the systems other than the baseline."""
    others = np.arange(len(truth)) != baseline
    found = compare(truth[others], score[others])
    return {"pearson": found.pearson, "ndcg": found.ndcg}


@dataclass(frozen=True)
class RandomJudges:
    """Every method, by how many judges answer at random."""

    of: JudgingOfSystems
    seed: int
    name: str = "random-judges"

    def settings(self) -> str:
        """What decides its results, as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def run(self, number: int) -> list[ArmCourse]:
        """The same judges turn careless as their share grows; a system in the middle is the baseline."""
        return [ArmCourse(arm, columns([self.at(arm, share, number) for share in SHARES]), []) for arm in TITLES]

    def at(self, arm: str, share: int, number: int) -> dict[str, float]:
        baseline = self.of.systems // 2
        crowd = Judges(self.of, np.random.default_rng([self.seed, number]))
        judged = crowd.judged(baseline if arm in WITH_BASELINE else None, share / 100)
        return figures_of(self.of.truth, scores_of(arm, judged, baseline, self.of.systems), baseline)


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
        judged = Judges(self.of, np.random.default_rng([self.seed, number])).judged(baseline, 0.0)
        _, _, outcomes = against(baseline, judged.first, judged.second, judged.outcome)
        won = {"won": baseline_advice(outcomes).share_won}
        return won | figures_of(self.of.truth, graded(judged, baseline, self.of.systems), baseline)


def columns(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    return {name: [float(row[name]) for row in rows] for name in rows[0]}


def conduct(of: JudgingOfSystems, seed: int, out: Path, run: Run, command: str) -> Path:
    """Run both, and write figures, tables and the report; the file of the report."""
    noisy, chosen = RandomJudges(of, seed), Baselines(of, seed)
    found, by_baseline = run(noisy, "Judges who answer at random"), run(chosen, "Baselines")
    write_figures(out / f"{noisy.name}.parquet", [(noisy, found)], "careless", SHARES)
    places = [baseline + 1 for baseline in chosen.tried]
    write_figures(out / f"{chosen.name}.parquet", [(chosen, by_baseline)], "baseline", places)
    told = []
    for name, words in FIGURES.items():
        values = by_arm(found, name)
        shown = {TITLES[arm]: those for arm, those in values.items()}
        curves(out / f"{noisy.name}-{name}.svg", SHARES, shown, x_title="% of judges at random", y_title=words)
        rows = [[with_loss(TITLES[arm], those), *map(report.with_band, those.T)] for arm, those in values.items()]
        told.append({"name": name, "words": words, "rows": rows, "paper": paper(name)})
    won = by_arm(by_baseline, "won")[GRADED]
    good = {words: by_arm(by_baseline, name)[GRADED] for name, words in FIGURES.items()}
    curves(
        out / f"{chosen.name}.svg",
        places,
        good,
        x_title="place of the baseline, the best first",
        y_title="Pearson, nDCG",
    )
    baselines = [
        [str(place), f"{won[:, k].mean():.0%}", *(report.with_band(those[:, k]) for those in good.values())]
        for k, place in enumerate(places)
    ]
    path = out / f"{noisy.name}.md"
    report.write(
        path, "judges.md", of=of, command=command, seed=seed, runs=len(found), shares=SHARES, told=told,
        heads=list(good), baselines=baselines,
    )  # fmt: skip
    return path


def with_loss(title: str, values: Array) -> str:
    """An arm, and what half of the judges at random cost it in the mean of runs."""
    return f"{title} (loses {(values[:, 0] - values[:, -1]).mean():.3f})"


def paper(figure: str) -> list[list[str]]:
    """The rows of the paper's Table 1."""
    told = PAPER[figure]
    return [
        [f"{TITLES[arm]} (loses {row[0] - row[-1]:.3f})", *(f"{one:.3f}" for one in row)] for arm, row in told.items()
    ]
