"""The experiments of Sakaguchi & Van Durme (2018), sections 5.1 and 5.2: 150 items on a scale, asked about by several
arms, with and without a context effect.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from app.campaigns.demo import VERBS
from app.errors import Invalid
from app.experiments import report
from app.experiments.arms import ARMS, DA, EASL, EVERY, LOOKS, OnAScale, names_of
from app.experiments.parquet import write_tables
from app.experiments.report import GAIN, Part
from app.experiments.runs import Run, by_arm, last_scores
from app.experiments.tables import between, columns_of
from app.simulation.annotators import Population

CONTEXTS = 0.0, 0.25, 0.5, 0.75, 1.0  # by what share the noise falls
ITEMS = 150
FEWEST = 10  # items, of which one is the best tenth


@dataclass(frozen=True)
class Material:
    """Items on a scale. name: of files. item: what one is called. names, truth: of each item, (N,); truth from 0 to 1.
    compared: of the paper's figures their number, what the paper says, a key of `HERE`, and why it differs.
    """

    name: str
    title: str
    about: str
    item: str
    names: tuple[str, ...]
    truth: tuple[float, ...]
    compared: tuple[tuple[str, str, str, str], ...]


def conduct(material: Material, like: Population, context: float, seed: int, out: Path, run: Run, command: str) -> Path:  # noqa: PLR0917
    """Run every part, and write figures, tables and the report; the file of the report."""
    parts = [
        part_of(OnAScale(f"{material.name}-context-{effect:g}", material.truth, like, effect, seed, arms), words, run)
        for effect, words, arms in ((0.0, WITHOUT_CONTEXT, names_of(EVERY)), (context, WITH_CONTEXT, names_of(ARMS)))
    ]
    contexts = [
        part_of(OnAScale(f"context-{effect:g}", material.truth, like, effect, seed, (DA, EASL)), "", run)
        for effect in CONTEXTS
    ]
    everything = [(part.of, part.found) for part in (*parts, *contexts)]
    write_tables(out, material.name, everything, LOOKS, material.names)
    path = out / f"{material.name}.md"
    told = {"title": material.title, "about": material.about, "item": material.item, "command": command}
    first = parts[0]
    report.write(
        path,
        "report.md",
        **told,
        seed=seed,
        runs=len(first.found),
        looks=LOOKS[-1],
        parts=[report.shown_part(out, part) for part in parts],
        distributions=report.distributions(out, first),
        some=report.some_items(first, material.names),
        heatmap=report.match_quality(out, first),
        goals=report.goals(out, first),
        contexts=report.with_context(contexts),
        gain=GAIN,
        compared=[(figure, there, HERE[here](first), why) for figure, there, here, why in material.compared],
    )
    return path


def part_of(experiment: OnAScale, said: str, run: Run) -> Part:
    effect = experiment.context
    title = f"With a context effect of {effect:.0%}" if effect else "Without a context effect"
    return Part(title, said, experiment, run(experiment, title))


def at_the_end(part: Part) -> str:
    """Spearman of the paper's three arms, in the mean of runs."""
    spearman = by_arm(part.found, "spearman")
    return ", ".join(f"{arm.title} {spearman[arm.name][:, -1].mean():.2f}" for arm in ARMS if arm.name in IN_THE_PAPER)


def ranges(part: Part) -> str:
    """Between which scores items lie, in the mean of runs."""
    scores = last_scores(part.found)
    ends = [(arm.title, *report.where(scores[arm.name])) for arm in ARMS if arm.name in IN_THE_PAPER]
    return ", ".join(f"{title} {low} to {high}" for title, low, high, _ in ends)


def gained(part: Part) -> str:
    """With how many judgments EASL is as good as direct assessment with those of the paper."""
    spearman = by_arm(part.found, "spearman")
    return ", ".join(f"{judgments} by {report.saved(spearman, EASL, judgments)}" for judgments in GAIN.needed)


IN_THE_PAPER = (DA, "ra", EASL)
HERE: Mapping[str, Callable[[Part], str]] = {
    "at the end": at_the_end,
    "ranges": ranges,
    "gained": gained,
    "diagonal": lambda _part: "the same",
}


def lexical_frequency() -> Material:
    """The verbs of the demo campaign."""
    with VERBS.open(encoding="utf-8", newline="") as file:
        rows = [(row["verb"], float(row["oracle"])) for row in csv.DictReader(file)]
    names, truth = zip(*rows, strict=True)
    return Material("lexical-frequency", "Lexical frequency", VERBS_ABOUT + HOW, "verb", names, truth, COMPARED_VERBS)


def political_spectrum(rows: Sequence[tuple[str, float]] | None, seed: int) -> Material:
    """Statements with values from 0 to 1, of which 150 at random take part; without any, made-up ones."""
    rng = np.random.default_rng(seed)
    about = STATEMENTS_ABOUT
    if rows is None:
        about, values = MADE_UP_ABOUT, np.sort(rng.random(ITEMS)).round(4)
        rows = [(f"statement {k}", value) for k, value in enumerate(values.tolist(), start=1)]
    elif len(rows) > ITEMS:
        rows = [rows[k] for k in np.sort(rng.permutation(len(rows))[:ITEMS]).tolist()]
    names, truth = zip(*rows, strict=True)
    return Material(
        "political-spectrum", "Political spectrum", about + HOW, "statement", names, truth, COMPARED_STATEMENTS
    )


def values_of(path: Path, text: str, value: str, ends: tuple[float, float]) -> list[tuple[str, float]]:
    """The items of a table and their values between the ends, as 0 to 1.

    Raises as `columns_of` and `between`, and `Invalid` (`too_few_items`).
    """
    rows = [(str(row.values[text]), between(row, value, *ends)) for row in columns_of(path, (text, value))]
    if len(rows) < FEWEST:
        raise Invalid(f"{path} has {len(rows)} items; {FEWEST} are the fewest.", code="too_few_items")
    return rows


HOW = (
    " HITs of 5, each by one of 30 made-up annotators; every arm asks the same people anew. Direct assessment asks "
    "about all items as often, in a random order; RA, TrueSkill and EASL choose by Algorithm 1 and learn by their own "
    "law; “aware of annotators” asks as direct assessment does and learns who can be relied on."
)
VERBS_ABOUT = (
    "150 verbs, whose true values are their logarithmic frequencies in film subtitles. It answers to section 5.1 of "
    "Sakaguchi & Van Durme (2018), whose verbs and answers were not published."
)
STATEMENTS_ABOUT = (
    "Political statements from a file, whose true values are what the file says of them. It answers to section 5.2 of "
    "Sakaguchi & Van Durme (2018)."
)
MADE_UP_ABOUT = (
    "150 made-up statements, whose true values lie anywhere on the scale: a stand-in for those of Bamman & Smith "
    "(2015), which `--items FILE` takes. It answers to section 5.2 of Sakaguchi & Van Durme (2018)."
)
WITHOUT_CONTEXT = (
    "Annotators answer the same whatever stands beside an item: what is gained here comes from choosing items, and "
    "from knowing annotators, alone."
)
WITH_CONTEXT = (
    "Annotators err less where a similar item stands beside, which is what match quality brings together: what is "
    "gained here beyond the part above comes from that."
)
GAINED = "What choosing items by Algorithm 1 gains is small here, and a context effect adds little: see above."
DIAGONAL = ("8", "items on the diagonal come to have the highest match quality", "diagonal", "It does not.")
NARROW = (
    "RA learns who stands above whom, not how far from the ends. How narrow its range is depends on how many items are "
    "alike, on errors, and on how many comparisons there are."
)
KNOWN_BY_HEART = (
    "Made-up annotators see the true value and err at random, so enough of them find it. People know a verb from what "
    "they have heard and read, which is not this corpus."
)
TEN_STATEMENTS = (
    "where the truth goes from 0 to 100, direct assessment goes from 7.1 to 91.7, RA from 29.9 to 75.8, EASL from 7.4 "
    "to 91.9 (ten statements)"
)
COMPARED_VERBS = (
    ("6", "Spearman after 10 judgments on an axis from .5 to .75", "at the end",
     KNOWN_BY_HEART),
    ("6", "direct assessment with 3 judgments is matched by EASL with 2", "gained", GAINED),
    ("7", "all three methods show the distribution of the truth", "ranges", NARROW),
    DIAGONAL,
)  # fmt: skip
COMPARED_STATEMENTS = (
    ("9", "Spearman after 10 judgments above .9 with all methods", "at the end",
     "The annotators here are made-up, and the statements others."),
    ("9", "direct assessment with 6 judgments is matched by EASL with 4", "gained", GAINED),
    ("10 and Table 1", TEN_STATEMENTS, "ranges", NARROW),
)  # fmt: skip
