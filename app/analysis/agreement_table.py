"""How far annotators agree: one row per coefficient, with its interval and what it can and cannot tell."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.analysis.coarsened import count_of, labels_of, reached, read_as
from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Answers, Cell, Column, Options, ResultTable, cells
from app.analysis.pairwise import pairs_of
from app.analysis.scores import draws, require_answers
from app.analysis.view import between
from app.drawing import COEFFICIENTS, NOTHING, written
from app.inference.agreement import intraclass, krippendorff, label_agreement, score_agreement
from app.inference.agreement.coefficient import Agreement
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.coarsening import Reads

MOST_PAIRS = 3_000_000
"""Pairs of judgments of one item; more would take gigabytes."""

COLUMNS = (
    Column("measure", "Name", "text"),
    Column("group", "Of what", "text"),
    Column("title", "Measure", "text"),
    Column("value", "Value"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("items", "Items", "count"),
    Column("annotators", "Annotators", "count"),
    Column("pairs", "Pairs of judgments", "count"),
    Column("sentence", "What it tells", "sentence"),
    Column("notes", "Notes", "sentence"),
)


@dataclass(frozen=True)
class Measure:
    """A coefficient. group: of what; those of labels take classes, or scores cut into some. by_choices: its chance
    depends on how many labels there were to choose from. by_pair: its cost grows with the pairs of judgments of one
    item; otherwise with the judgments. reads: the kind of answers that it takes.
    """

    name: str
    group: str
    title: str
    measure: Callable[..., Agreement]
    by_choices: bool = False
    by_pair: bool = False
    reads: Reads = "points"


ORDER, SCORES, LABELS, PAIRS = "Order of the items", "Scores", "Labels", "Preferences, each pair of items once"

MEASURES = (
    Measure("correlation", ORDER, "Spearman between annotators", score_agreement.correlation, by_pair=True),
    Measure("split_half", ORDER, "Split-half Spearman", score_agreement.split_half),
    Measure(
        "split_half_stepped_up",
        ORDER,
        "Split-half Spearman, stepped up",
        partial(score_agreement.split_half, spearman_brown=True),
    ),
    Measure("alpha_interval", SCORES, "Krippendorff’s alpha, interval", partial(krippendorff.fit, metric="interval")),
    Measure("alpha_ordinal", SCORES, "Krippendorff’s alpha, ordinal", partial(krippendorff.fit, metric="ordinal")),
    Measure("icc_one_way", SCORES, "ICC, one-way", intraclass.one_way),
    Measure("icc_two_way", SCORES, "ICC, two-way", intraclass.two_way),
    Measure("label_agreement", LABELS, "Agreement of labels", label_agreement.pairwise, reads="classes"),
    Measure(
        "alpha_nominal",
        LABELS,
        "Krippendorff’s alpha of labels",
        partial(krippendorff.fit, metric="nominal"),
        reads="classes",
    ),
    Measure("cohen", LABELS, "Cohen’s kappa of labels", label_agreement.cohens_kappa, by_pair=True, reads="classes"),
    Measure("fleiss", LABELS, "Fleiss’ kappa of labels", label_agreement.fleiss_kappa, reads="classes"),
    Measure("gwet", LABELS, "Gwet’s AC1 of labels", label_agreement.gwets_ac1, by_choices=True, reads="classes"),
)

# Where there are no scores. A preference is a label of a pair: the first is preferred, a tie, the second is.
OF_PAIRS = (
    Measure("pair_agreement", PAIRS, "Agreement of preferences", label_agreement.pairwise, reads="order"),
    Measure(
        "alpha_pairs",
        PAIRS,
        "Krippendorff’s alpha of preferences",
        partial(krippendorff.fit, metric="nominal"),
        reads="order",
    ),
)
ALPHAS = ("alpha_interval", "alpha_nominal", "alpha_pairs")


@dataclass(frozen=True)
class AgreedOn:
    """What a measure compares, (T,) each: units, who judged them, what they said. choices: of how many values."""

    units: Integers
    annotators: Integers
    values: Array | Integers
    n_units: int
    choices: int = 0


def fit(answers: Answers, options: Options) -> ResultTable:
    """One row per measure; where one cannot be estimated, its sentence says why. Raises `Inestimable` if none can."""
    require_answers(answers)
    measures = [one for one in MEASURES if reached(one.reads, answers.yields)] or [*OF_PAIRS]
    judged = {kind: judged_as(kind, answers, options.classes) for kind in {one.reads: None for one in measures}}
    found = [tried(measure, judged[measure.reads], answers) for measure in measures]
    if refused := [reason for reason in found if isinstance(reason, Inestimable)][len(measures) - 1 :]:
        raise refused[0]
    shared = for_all([result.notes for result in found if isinstance(result, Agreement)])
    rows = [row(measure, result, shared) for measure, result in zip(measures, found, strict=True)]
    by_name = {measure.name: result for measure, result in zip(measures, found, strict=True)}
    alpha = next(by_name[name] for name in ALPHAS if name in by_name)
    verdict = in_a_sentence(alpha, by_name.get("split_half_stepped_up"))
    # What labels are comes first, as it did when answers were always scores.
    notes = [note for kind in ("classes", "points", "order") if kind in judged for note in told(kind, answers, options)]
    return ResultTable(COLUMNS, rows, (*notes, *shared), verdict)


PAIRS_AS_ITEMS = Note("pairs_as_items", "In these figures an item is a pair of items that was judged.")


def told(kind: Reads, answers: Answers, options: Options) -> tuple[Note, ...]:
    """How answers were read for measures of this kind."""
    return (*([PAIRS_AS_ITEMS] if kind == "order" else []), *read_as(answers, kind, options.classes))


def judged_as(kind: Reads, answers: Answers, classes: int) -> AgreedOn:
    """All judgments, as labels, as scores, or as preferences between the items of HITs."""
    if kind == "order":
        return preferences(answers)
    values = labels_of(answers, classes) if kind == "classes" else answers.score
    return AgreedOn(answers.item, answers.annotator, values, answers.n_items, count_of(answers, classes))


def preferences(answers: Answers) -> AgreedOn:
    """Of each pair that was judged: 0 the second is preferred, 1 a tie, 2 the first. Which of two items is the first is
    drawn, so that by chance alone neither side is preferred, in whatever order items were uploaded.
    """
    first, second, outcomes, hits = pairs_of(answers)
    low, high = np.minimum(first, second), np.maximum(first, second)
    pairs, pair = np.unique(low * answers.n_items + high, return_inverse=True)
    turned = (first > second) ^ answers.rng().integers(0, 2, len(pairs)).astype(np.bool_)[pair]
    values = np.where(turned, -outcomes, outcomes) + 1
    return AgreedOn(pair, answers.annotator_of_hit[hits], values, len(pairs), 3)


def in_a_sentence(alpha: Agreement | Inestimable, again: Agreement | Inestimable | None) -> str:
    """How far single judgments agree, and how far the order from all of them would come out again.

    Nothing is called good or bad: how much agreement is enough depends on what the scores are for.
    """
    if isinstance(alpha, Inestimable):
        return f"Whether annotators agree more than by chance cannot be told: {beginning_small(str(alpha))}"
    beyond = f"{beyond_chance(alpha)}: Krippendorff’s alpha is {in_figures(alpha, '95 % interval ')}"
    if not isinstance(again, Agreement):
        return f"{beyond}, where 0 is chance and 1 is complete."
    return f"{beyond}; the order from as many judgments again would correlate {in_figures(again)} with this one."


def beyond_chance(alpha: Agreement) -> str:
    if alpha.low > 0.0:
        return "Annotators agree more than by chance"
    if alpha.high < 0.0:
        return "Annotators disagree more than by chance"
    if np.isnan(alpha.low):
        return "There is no interval to tell agreement from chance"
    return "It cannot be told whether annotators agree more than by chance"


def in_figures(found: Agreement, words: str = "") -> str:
    ends = between(found.low, found.high, 2)
    return written(found.value, 2) + ("" if ends == NOTHING else f" ({words}{ends})")


def beginning_small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]


def for_all(notes: list[tuple[Note, ...]]) -> list[Note]:
    """The notes that every one of several results has."""
    return [note for note in notes[0] if len(notes) > 1 and all(note in other for other in notes)]


def tried(measure: Measure, judged: AgreedOn, answers: Answers) -> Agreement | Inestimable:
    per_unit = np.bincount(judged.units)
    pairs = int((per_unit * (per_unit - 1) // 2).sum())
    if measure.by_pair and pairs > MOST_PAIRS:
        return Inestimable(
            f"{pairs:,} pairs of judgments are too many to compare two by two; the other measures do not need to.",
            code="too_many_pairs",
        )
    try:
        return measure.measure(
            judged.units,
            judged.annotators,
            judged.values,
            **({"n_labels": judged.choices} if measure.by_choices else {}),
            n_items=judged.n_units,
            n_annotators=answers.n_annotators,
            draws=draws(20 * (pairs if measure.by_pair else len(judged.units))),
            rng=answers.rng(),
        )
    except Inestimable as reason:
        return reason


def row(measure: Measure, found: Agreement | Inestimable, shared: list[Note]) -> tuple[Cell, ...]:
    """shared: notes that are given elsewhere."""
    name = measure.name, measure.group, measure.title
    if isinstance(found, Inestimable):
        return (*name, None, None, None, None, None, None, str(found), None)
    counts = found.n_items, found.n_annotators, found.n_pairs
    own = " ".join(note for note in found.notes if note not in shared)
    return (*name, *cells((found.value, found.low, found.high, *counts)), found.sentence, own or None)


AGREEMENT = TableMethod(
    TableSection("agreement", "Agreement"),
    "Agreement",
    "How far annotators say the same of the same items, in the usual coefficients, each with its 95 % interval "
    "over items. Agreement is neither needed nor enough for right scores: annotators who share a mistake agree.",
    fit,
    reads=("points", "classes", "order"),
    options=("classes",),
    drawn=Drawn("value", COEFFICIENTS),
    room=lambda _: len(MEASURES) + len({measure.group for measure in MEASURES}),
)
