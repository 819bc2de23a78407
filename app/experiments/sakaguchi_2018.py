"""Experiments of Sakaguchi & Van Durme (2018), sections 5.1 and 5.2: several arms ask about 150 items on a scale, with
and without a context effect.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.errors import Invalid
from app.experiments import report
from app.experiments.input_tables import iterate_table_rows_with_columns, parse_value_as_share_of_range_or_refuse
from app.experiments.report import PAPER_GAIN, ReportPart
from app.experiments.result_tables import write_figure_and_score_tables
from app.experiments.runs import RunExperiment, figure_array_by_arm, final_score_arrays_by_arm
from app.experiments.simulated_arms import (
    ALL_SCALE_ARMS,
    DA_ARM,
    EASL_ARM,
    ITEM_CHECKPOINTS,
    SCALE_ARMS,
    ScaleExperiment,
    arm_names,
)
from app.imports.demo import DEMO_ITEMS_FILE
from app.simulation.annotators import Population

CONTEXT_EFFECTS = 0.0, 0.25, 0.5, 0.75, 1.0  # relative fall of the noise
MAX_STATEMENTS = 150
MIN_SCALE_ITEMS = 10  # so that the best tenth has an item


@dataclass(frozen=True)
class ScaleMaterial:
    """Items on a scale.

    Attributes:
        name: Name of the files.
        names: Names of the items, (N,).
        truth: True values, (N,), from 0 to 1.
        paper_comparisons: Figure of the paper, its finding, a key of `RESULT_TEXTS`, and why the result here differs.

    """

    name: str
    title: str
    description: str
    item_noun: str
    names: tuple[str, ...]
    truth: tuple[float, ...]
    paper_comparisons: tuple[tuple[str, str, str, str], ...]


def run_scale_experiments_and_write_report(  # noqa: PLR0917
    material: ScaleMaterial,
    population: Population,
    context: float,
    seed: int,
    folder: Path,
    run_experiment: RunExperiment,
    command: str,
) -> Path:
    """Run every part, write figures, tables and the report, and return the file of the report."""
    parts = [
        run_report_part(
            ScaleExperiment(f"{material.name}-context-{effect:g}", material.truth, population, effect, seed, arms),
            words,
            run_experiment,
        )
        for effect, words, arms in (
            (0.0, WITHOUT_CONTEXT_TEXT, arm_names(ALL_SCALE_ARMS)),
            (context, WITH_CONTEXT_TEXT, arm_names(SCALE_ARMS)),
        )
    ]
    contexts = [
        run_report_part(
            ScaleExperiment(f"context-{effect:g}", material.truth, population, effect, seed, (DA_ARM, EASL_ARM)),
            "",
            run_experiment,
        )
        for effect in CONTEXT_EFFECTS
    ]
    runs = [(part.experiment, part.results) for part in (*parts, *contexts)]
    write_figure_and_score_tables(folder, material.name, runs, ITEM_CHECKPOINTS, material.names)
    path = folder / f"{material.name}.md"
    context_of_material = {
        "title": material.title,
        "about": material.description,
        "item": material.item_noun,
        "command": command,
    }
    first_part = parts[0]
    report.write_report(
        path,
        "report.md",
        **context_of_material,
        seed=seed,
        runs=len(first_part.results),
        looks=ITEM_CHECKPOINTS[-1],
        parts=[report.plot_part_returning_template_context(folder, part) for part in parts],
        distributions=report.plot_score_histograms_and_build_context(folder, first_part),
        some=report.table_rows_of_example_items(first_part, material.names),
        heatmap=report.plot_match_quality_returning_file_name(folder, first_part),
        goals=report.plot_goal_figures_and_build_contexts(folder, first_part),
        contexts=report.table_rows_of_context_effects(contexts),
        gain=PAPER_GAIN,
        compared=[
            (figure, there, RESULT_TEXTS[here](first_part), why)
            for figure, there, here, why in material.paper_comparisons
        ],
    )
    return path


def run_report_part(experiment: ScaleExperiment, introduction: str, run_experiment: RunExperiment) -> ReportPart:
    effect = experiment.context
    title = f"With a context effect of {effect:.0%}" if effect else "Without a context effect"
    return ReportPart(title, introduction, experiment, run_experiment(experiment, title))


def format_final_spearman(part: ReportPart) -> str:
    """Return Spearman of the paper's three arms, averaged over runs."""
    spearman = figure_array_by_arm(part.results, "spearman")
    return ", ".join(
        f"{arm.title} {spearman[arm.name][:, -1].mean():.2f}" for arm in SCALE_ARMS if arm.name in PAPER_ARMS
    )


def format_score_ranges(part: ReportPart) -> str:
    """Return the ranges of scores, averaged over runs."""
    scores = final_score_arrays_by_arm(part.results)
    ends = [
        (arm.title, *report.mean_texts_of_low_high_and_deviation(scores[arm.name]))
        for arm in SCALE_ARMS
        if arm.name in PAPER_ARMS
    ]
    return ", ".join(f"{title} {low} to {high}" for title, low, high, _ in ends)


def format_judgments_to_match_paper(part: ReportPart) -> str:
    """Return how many judgments EASL needs to match direct assessment with those of the paper."""
    spearman = figure_array_by_arm(part.results, "spearman")
    return ", ".join(
        f"{judgments} by {report.format_judgments_to_match_da(spearman, EASL_ARM, judgments)}"
        for judgments in PAPER_GAIN.needed
    )


PAPER_ARMS = (DA_ARM, "ra", EASL_ARM)
RESULT_TEXTS: Mapping[str, Callable[[ReportPart], str]] = {
    "at the end": format_final_spearman,
    "ranges": format_score_ranges,
    "gained": format_judgments_to_match_paper,
    "diagonal": lambda _part: "the same",
}


def load_lexical_frequency_material() -> ScaleMaterial:
    """Return the verbs of the demo campaign."""
    with DEMO_ITEMS_FILE.open(encoding="utf-8", newline="") as file:
        rows = [(row["verb"], float(row["oracle"])) for row in csv.DictReader(file)]
    names, truth = zip(*rows, strict=True)
    return ScaleMaterial(
        "lexical-frequency", "Lexical frequency", VERBS_TEXT + METHOD_TEXT, "verb", names, truth, VERB_COMPARISONS
    )


def load_or_simulate_political_material(rows: Sequence[tuple[str, float]] | None, seed: int) -> ScaleMaterial:
    """Return a random 150 of the statements with values from 0 to 1, or simulated ones if there are none."""
    rng = np.random.default_rng(seed)
    about = STATEMENTS_TEXT
    if rows is None:
        about, values = SIMULATED_STATEMENTS_TEXT, np.sort(rng.random(MAX_STATEMENTS)).round(4)
        rows = [(f"statement {k}", value) for k, value in enumerate(values.tolist(), start=1)]
    elif len(rows) > MAX_STATEMENTS:
        rows = [rows[k] for k in np.sort(rng.permutation(len(rows))[:MAX_STATEMENTS]).tolist()]
    names, truth = zip(*rows, strict=True)
    return ScaleMaterial(
        "political-spectrum",
        "Political spectrum",
        about + METHOD_TEXT,
        "statement",
        names,
        truth,
        STATEMENT_COMPARISONS,
    )


def load_texts_with_shares_of_scale(
    path: Path, text_column: str, value_column: str, ends: tuple[float, float]
) -> list[tuple[str, float]]:
    """Load the items of a table and their values between the ends, as 0 to 1.

    Raises as `iterate_table_rows_with_columns` and `parse_value_as_share_of_range_or_refuse`, and `Invalid`
    (`too_few_items`).
    """
    rows = [
        (str(row.values[text_column]), parse_value_as_share_of_range_or_refuse(row, value_column, *ends))
        for row in iterate_table_rows_with_columns(path, (text_column, value_column))
    ]
    if len(rows) < MIN_SCALE_ITEMS:
        raise Invalid(f"{path} has {len(rows)} items; at least {MIN_SCALE_ITEMS} are needed.", code="too_few_items")
    return rows


METHOD_TEXT = (
    " Each HIT has 5 items and is answered by one of 30 simulated annotators, who are the same in every arm. Direct "
    "assessment asks about all items "
    "equally often, in a random order; RA, TrueSkill and EASL select by Algorithm 1, each with its own update law. "
    "The arm “aware of annotators” selects like direct assessment and learns which annotators are reliable."
)
VERBS_TEXT = (
    "This repeats section 5.1 of Sakaguchi & Van Durme (2018), whose verbs and answers were not published. The items "
    "are 150 verbs. Their true values are the logarithms of their frequencies in film subtitles."
)
STATEMENTS_TEXT = (
    "This repeats section 5.2 of Sakaguchi & Van Durme (2018), with political statements and their true values from a "
    "file."
)
SIMULATED_STATEMENTS_TEXT = (
    "This repeats section 5.2 of Sakaguchi & Van Durme (2018). 150 simulated statements with random true values "
    "replace the statements of Bamman & Smith (2015), which you can supply with `--items FILE`."
)
WITHOUT_CONTEXT_TEXT = (
    "Answers do not depend on the other items of the HIT. Any gain comes from selecting items, or from learning about "
    "annotators."
)
WITH_CONTEXT_TEXT = (
    "Annotators err less if the HIT shows a similar item, and match quality brings similar items together. Any gain "
    "beyond the one without a context effect comes from this effect."
)
SMALL_GAIN_REASON = "Selecting items by Algorithm 1 gains little here, and a context effect adds little: see above."
DIAGONAL_COMPARISON = ("8", "items on the diagonal come to have the highest match quality", "diagonal", "no difference")
NARROW_RANGE_REASON = (
    "RA learns the order of items, not their distance from the ends. How narrow its range is depends on the number of "
    "similar items, on errors, and on the number of comparisons."
)
SIMULATED_VERBS_REASON = (
    "Simulated annotators see the true value and err at random, so the mean of enough of them finds it. People know a "
    "verb from their own reading and hearing, not from this corpus."
)
PAPER_RANGES_TEXT = (
    "where the truth goes from 0 to 100, direct assessment goes from 7.1 to 91.7, RA from 29.9 to 75.8, EASL from 7.4 "
    "to 91.9 (ten statements)"
)
VERB_COMPARISONS = (
    ("6", "Spearman after 10 judgments on an axis from .5 to .75", "at the end",
     SIMULATED_VERBS_REASON),
    ("6", "direct assessment with 3 judgments is matched by EASL with 2", "gained", SMALL_GAIN_REASON),
    ("7", "all three methods show the distribution of the truth", "ranges", NARROW_RANGE_REASON),
    DIAGONAL_COMPARISON,
)  # fmt: skip
STATEMENT_COMPARISONS = (
    ("9", "Spearman after 10 judgments above .9 with all methods", "at the end",
     "The annotators here are simulated, and the statements differ."),
    ("9", "direct assessment with 6 judgments is matched by EASL with 4", "gained", SMALL_GAIN_REASON),
    ("10 and Table 1", PAPER_RANGES_TEXT, "ranges", NARROW_RANGE_REASON),
)  # fmt: skip
