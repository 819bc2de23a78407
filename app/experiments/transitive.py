"""The paper of Amidei (2020): how consistent annotators are with themselves (Table 2), and what is saved where implied
pairs need not be asked (section 4).
"""

import csv
import gzip
import json
from dataclasses import asdict, dataclass
from itertools import combinations, count
from pathlib import Path

import numpy as np

from app.experiments import report
from app.experiments.figures import curves
from app.experiments.parquet import write_figures
from app.experiments.runs import ArmCourse, Run, by_arm
from app.inference.ground.arrays import Integers
from app.inference.preferences import transitivity
from app.inference.preferences.implied import Implications, ImpliedCounts, followed

UKP = Path(__file__).resolve().parents[2] / "examples" / "data" / "ukp_convarg1" / "judgments.csv.gz"
TRIADS = {"A1": (True, True, True), "A2": (True, False, True), "A3": (False, True, False)}  # of Table 1: transitive
PAPER = {"A1": "1", "A2": ".34", "A3": "−.28"}
CHANCE_WITH_A_TIE = 7 / 19  # of 27 ways to judge three pairs 8 have no tie, and 6 of the 13 transitive ones
PAPER_CHANCE, CENT = 0.48, 100  # chance, 13/27, as the paper has it; it cuts off what is behind two decimals
ITEMS = 100
NOISES = (0, 5, 10, 15, 20, 30)  # standard deviation of an answer, in points of a scale on which items lie evenly
ANYWAY = 0.1  # the share of implied pairs that is asked all the same
ALL_PAIRS, WRONG = "asked", "wrong"


@dataclass(frozen=True)
class Saving:
    """An annotator who is asked all pairs of items in a random order, but not those that are implied."""

    seed: int
    name: str = "transitivity"

    def settings(self) -> str:
        """What decides its results, as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def run(self, number: int) -> list[ArmCourse]:
        """For each noise the share of pairs that is asked, and of those that are not the share that is wrong."""
        found = [saving(noise / 100, np.random.default_rng([self.seed, number])) for noise in NOISES]
        asked, wrong = zip(*found, strict=True)
        return [ArmCourse("implied", {ALL_PAIRS: [*asked], WRONG: [*wrong]}, [])]


def saving(noise: float, rng: np.random.Generator) -> tuple[float, float]:
    """As `Saving.run`, for one noise, as a share of the scale."""
    value, known = rng.random(ITEMS), Implications()
    wrong, pairs = [], rng.permutation([*combinations(range(ITEMS), 2)]).tolist()
    for a, b in pairs:
        implied = known.implied(a, b)
        if implied is not None and rng.random() >= ANYWAY:
            wrong.append(implied != (1 if value[a] > value[b] else -1))
        else:
            known.add(a, b, 1 if value[a] - value[b] + noise * rng.standard_normal() > 0 else -1)
    return 1 - len(wrong) / len(pairs), float(np.mean(wrong))


def consistency() -> list[list[str]]:
    """The annotators of the paper's Table 2: as the paper has them, by its shares of two decimals, and as
    `transitivity.fit` has them.
    """
    rows: list[tuple[int, int, int, int]] = []
    items = count()
    for annotator, triads in enumerate(TRIADS.values()):
        for transitive in triads:
            a, b, c = next(items), next(items), next(items)
            rows += [(a, b, 1, annotator), (b, c, 1, annotator), (a, c, 1 if transitive else -1, annotator)]
    found = transitivity.fit(*np.array(rows).T)
    told = zip(TRIADS, found.transitive.tolist(), found.triads.tolist(), found.kappa.tolist(), strict=True)
    return [
        [name, f"{holds} / {triads}", PAPER[name], f"{cut_off(holds, triads):.3f}", f"{kappa:.3f}"]
        for name, holds, triads, kappa in told
    ]


def cut_off(transitive: int, triads: int) -> float:
    """Kappa by a share that has lost what is behind its second decimal."""
    return float(transitivity.kappa(CENT * transitive // triads, CENT, PAPER_CHANCE))


def by_ties(of: transitivity.Transitivity) -> list[list[str]]:
    """Of all annotators' triads, of those without a tie and with one: how many there are, how many are transitive, how
    many would be by chance, and kappa.
    """
    triads, transitive = int(of.triads.sum()), int(of.transitive.sum())
    free, of_free = int(of.triads_without_ties.sum()), int(of.transitive_without_ties.sum())
    kinds = (
        ("all", triads, transitive, transitivity.CHANCE),
        ("without a tie", free, of_free, transitivity.CHANCE_WITHOUT_TIES),
        ("with a tie", triads - free, transitive - of_free, CHANCE_WITH_A_TIE),
    )
    return [
        [name, f"{many:,}", f"{holds / many:.1%}", f"{chance:.1%}", f"{transitivity.kappa(holds, many, chance):.3f}"]
        for name, many, holds, chance in kinds
    ]


def arguments() -> tuple[Integers, Integers, Integers, Integers]:
    """The judgments of UKPConvArg1: first, second, outcome, annotator, (n,) each."""
    with gzip.open(UKP, "rt", encoding="utf-8", newline="") as file:
        rows = [
            [int(row[name]) for name in ("first", "second", "outcome", "annotator")] for row in csv.DictReader(file)
        ]
    first, second, outcomes, annotators = np.array(rows).T
    return first, second, outcomes, annotators


def real() -> tuple[transitivity.Transitivity, ImpliedCounts]:
    """What the annotators of the arguments show: how consistent they are, and how often implied pairs are right."""
    first, second, outcomes, annotators = arguments()
    orders, _ = followed(first.tolist(), second.tolist(), outcomes.tolist(), annotators.tolist())
    counts = sum((order.tally for order in orders.values()), ImpliedCounts())
    return transitivity.fit(first, second, outcomes, annotators), counts


def conduct(seed: int, out: Path, run: Run, command: str) -> Path:
    """Run it, and write the figure, the table and the report; the file of the report."""
    experiment = Saving(seed)
    found = run(experiment, "Implied pairs")
    write_figures(out / f"{experiment.name}.parquet", [(experiment, found)], "noise", NOISES)
    (asked,), (wrong,) = (by_arm(found, name).values() for name in (ALL_PAIRS, WRONG))
    shown = {"pairs that are asked": asked, "of the pairs not asked: wrong": wrong}
    x_title, y_title = "noise of an answer, in points", "share of pairs"
    curves(out / f"{experiment.name}.svg", NOISES, shown, x_title=x_title, y_title=y_title)
    consistent, counts = real()
    share, low, high = counts.wrong() or (np.nan,) * 3
    path = out / f"{experiment.name}.md"
    report.write(
        path, "transitivity.md", command=command, seed=seed, runs=len(found), consistency=consistency(),
        by_ties=by_ties(consistent), items=ITEMS,
        anyway=f"{ANYWAY:.0%}", wrong=f"{share:.3f} ({low:.3f} to {high:.3f})", judged=f"{counts.asked_anyway:,}",
        rows=[
            [str(noise), report.with_band(asked[:, k]), report.with_band(wrong[:, k])] for k, noise in enumerate(NOISES)
        ],
    )  # fmt: skip
    return path
