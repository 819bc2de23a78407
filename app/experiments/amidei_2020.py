"""Experiments of Amidei (2020): annotators' consistency with themselves (Table 2), and what is saved where implied
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
from app.experiments.figures import plot_run_means_with_bands
from app.experiments.result_tables import write_figure_table
from app.experiments.runs import ArmResult, RunExperiment, figure_array_by_arm
from app.inference.ground.arrays import Integers
from app.inference.preferences import transitivity
from app.inference.preferences.implied_pairs import Implications, ImpliedCounts, implications_and_implied_outcomes
from app.settings import project_folder

ARGUMENT_JUDGMENTS = project_folder() / "examples" / "data" / "ukp_convarg1" / "judgments.csv.gz"
# Table 1: whether the triads of each annotator are transitive.
PAPER_TRIADS = {"A1": (True, True, True), "A2": (True, False, True), "A3": (False, True, False)}
PAPER_KAPPA = {"A1": "1", "A2": ".34", "A3": "−.28"}
CHANCE_WITH_A_TIE = 7 / 19  # 8 of the 27 ways to judge three pairs have no tie, and 6 of the 13 transitive ways
PAPER_CHANCE, HUNDRED = 0.48, 100  # the paper cuts its chance, 13/27, off after two decimals
TRANSITIVITY_ITEMS = 100
NOISE_POINTS = (0, 5, 10, 15, 20, 30)  # standard deviation of an answer; items lie evenly on the scale of 100 points
ASKED_ANYWAY_SHARE = 0.1
ASKED_FIGURE, WRONG_FIGURE = "asked", "wrong"


@dataclass(frozen=True)
class ImpliedPairsExperiment:
    """An annotator who is asked all pairs of items in a random order, except implied ones."""

    seed: int
    name: str = "transitivity"

    def settings_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    def run(self, run_number: int) -> list[ArmResult]:
        """Return for each noise the share of pairs asked, and the share of wrong ones among the pairs not asked."""
        shares = [
            simulate_asked_and_wrong_shares(noise / 100, np.random.default_rng([self.seed, run_number]))
            for noise in NOISE_POINTS
        ]
        asked, wrong = zip(*shares, strict=True)
        return [ArmResult("implied", {ASKED_FIGURE: [*asked], WRONG_FIGURE: [*wrong]}, [])]


def simulate_asked_and_wrong_shares(noise: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the share of pairs asked and the share of wrong implied pairs, for noise as a share of the scale."""
    value, implications = rng.random(TRANSITIVITY_ITEMS), Implications()
    wrong, pairs = [], rng.permutation([*combinations(range(TRANSITIVITY_ITEMS), 2)]).tolist()
    for a, b in pairs:
        implied = implications.implied_outcome_or_none(a, b)
        if implied is not None and rng.random() >= ASKED_ANYWAY_SHARE:
            wrong.append(implied != (1 if value[a] > value[b] else -1))
        else:
            implications.add_outcome_and_return_implied_or_none(
                a, b, 1 if value[a] - value[b] + noise * rng.standard_normal() > 0 else -1
            )
    return 1 - len(wrong) / len(pairs), float(np.mean(wrong))


def table_rows_of_paper_and_easel_kappa() -> list[list[str]]:
    """Return the annotators of Table 2: the paper's kappa, kappa from its cut-off shares, and `transitivity.fit`."""
    rows: list[tuple[int, int, int, int]] = []
    items = count()
    for annotator, triads in enumerate(PAPER_TRIADS.values()):
        for transitive in triads:
            a, b, c = next(items), next(items), next(items)
            rows += [(a, b, 1, annotator), (b, c, 1, annotator), (a, c, 1 if transitive else -1, annotator)]
    result = transitivity.fit(*np.array(rows).T)
    annotators = zip(
        PAPER_TRIADS, result.transitive.tolist(), result.triads.tolist(), result.kappa.tolist(), strict=True
    )
    return [
        [
            name,
            f"{holds} / {triads}",
            PAPER_KAPPA[name],
            f"{kappa_of_truncated_share(holds, triads):.3f}",
            f"{kappa:.3f}",
        ]
        for name, holds, triads, kappa in annotators
    ]


def kappa_of_truncated_share(transitive: int, triads: int) -> float:
    """Kappa from a share that is cut off after its second decimal."""
    return float(transitivity.transitivity_kappa(HUNDRED * transitive // triads, HUNDRED, PAPER_CHANCE))


def table_rows_of_transitivity_with_ties(result: transitivity.Transitivity) -> list[list[str]]:
    """Return rows for all triads, those without a tie and those with one: their number, the share of transitive ones,
    the share expected by chance, and kappa.
    """
    triads, transitive = int(result.triads.sum()), int(result.transitive.sum())
    triads_without_ties, transitive_without_ties = (
        int(result.triads_without_ties.sum()),
        int(result.transitive_without_ties.sum()),
    )
    kinds = (
        ("all", triads, transitive, transitivity.CHANCE_OF_TRANSITIVE_TRIAD),
        (
            "without a tie",
            triads_without_ties,
            transitive_without_ties,
            transitivity.CHANCE_OF_TRANSITIVE_TRIAD_WITHOUT_TIES,
        ),
        ("with a tie", triads - triads_without_ties, transitive - transitive_without_ties, CHANCE_WITH_A_TIE),
    )
    return [
        [
            name,
            f"{count:,}",
            f"{transitive / count:.1%}",
            f"{chance:.1%}",
            f"{transitivity.transitivity_kappa(transitive, count, chance):.3f}",
        ]
        for name, count, transitive, chance in kinds
    ]


def load_argument_judgment_columns() -> tuple[Integers, Integers, Integers, Integers]:
    """Load the judgments of UKPConvArg1: first, second, outcome, annotator, (n,) each."""
    with gzip.open(ARGUMENT_JUDGMENTS, "rt", encoding="utf-8", newline="") as file:
        rows = [
            [int(row[name]) for name in ("first", "second", "outcome", "annotator")] for row in csv.DictReader(file)
        ]
    first, second, outcomes, annotators = np.array(rows).T
    return first, second, outcomes, annotators


def argument_transitivity_and_implied_counts() -> tuple[transitivity.Transitivity, ImpliedCounts]:
    """Measure how consistent the annotators of the arguments are, and how often implied pairs are right."""
    first, second, outcomes, annotators = load_argument_judgment_columns()
    orders, _ = implications_and_implied_outcomes(
        first.tolist(), second.tolist(), outcomes.tolist(), annotators.tolist()
    )
    counts = sum((order.tally for order in orders.values()), ImpliedCounts())
    return transitivity.fit(first, second, outcomes, annotators), counts


def run_transitivity_experiment_and_write_report(
    seed: int, folder: Path, run_experiment: RunExperiment, command: str
) -> Path:
    """Run the experiment, write figure, table and report, and return the file of the report."""
    experiment = ImpliedPairsExperiment(seed)
    results = run_experiment(experiment, "Implied pairs")
    write_figure_table(folder / f"{experiment.name}.parquet", [(experiment, results)], "noise", NOISE_POINTS)
    (asked,), (wrong,) = (figure_array_by_arm(results, name).values() for name in (ASKED_FIGURE, WRONG_FIGURE))
    values_by_title = {"pairs asked": asked, "wrong among pairs not asked": wrong}
    x_title, y_title = "noise of an answer, in points", "share of pairs"
    plot_run_means_with_bands(
        folder / f"{experiment.name}.svg", NOISE_POINTS, values_by_title, x_title=x_title, y_title=y_title
    )
    transitivity_result, counts = argument_transitivity_and_implied_counts()
    share, low, high = counts.contradicted_share_and_interval_or_none() or (np.nan,) * 3
    path = folder / f"{experiment.name}.md"
    report.write_report(
        path,
        "transitivity.md",
        command=command,
        seed=seed,
        runs=len(results),
        consistency=table_rows_of_paper_and_easel_kappa(),
        by_ties=table_rows_of_transitivity_with_ties(transitivity_result),
        items=TRANSITIVITY_ITEMS,
        anyway=f"{ASKED_ANYWAY_SHARE:.0%}",
        wrong=f"{share:.3f} ({low:.3f} to {high:.3f})",
        judged=f"{counts.asked_anyway:,}",
        rows=[
            [str(noise), report.format_mean_with_run_range(asked[:, k]), report.format_mean_with_run_range(wrong[:, k])]
            for k, noise in enumerate(NOISE_POINTS)
        ],
    )
    return path
