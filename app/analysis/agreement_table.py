"""Table of agreement between annotators: one row per coefficient, with its interval and what it can and cannot tell."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from app.analysis.agreement_verdict import describe_agreement
from app.analysis.answer_kinds import (
    can_read_answers_as,
    class_count_of_design_or_given,
    label_of_each_judgment,
    notes_on_reading_as_kind,
)
from app.analysis.chart_axes import COEFFICIENT_AXIS
from app.analysis.method_types import DotPlotColumn, TableMethod, TableSection
from app.analysis.pairwise_tables import preference_pair_columns
from app.analysis.result_types import Answers, Cell, Column, Options, ResultTable, to_cells
from app.analysis.scores import choose_bootstrap_draw_count, refuse_without_answers
from app.inference.agreement import intraclass, krippendorff, label_agreement, score_agreement
from app.inference.agreement.agreement_measure import Agreement
from app.inference.ground.arrays import Array, Integers, Mask
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.judgment_kinds import JudgmentKind

MAX_AGREEMENT_PAIRS = 3_000_000
"""Pairs of judgments of one item; more would take gigabytes."""

SYSTEMS_NOTE = Note(
    "items_are_systems",
    "Items are systems here. Judgments of the same output are compared, so “item” means an output in these figures.",
)
AGREEMENT_COLUMNS = (
    Column("measure", "Name", "text"),
    Column("group", "Subject", "text"),
    Column("title", "Measure", "text"),
    Column("value", "Value"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("items", "Items", "count"),
    Column("annotators", "Annotators", "count"),
    Column("pairs", "Pairs of judgments", "count"),
    Column("sentence", "What it shows", "sentence"),
    Column("notes", "Notes", "sentence"),
)


@dataclass(frozen=True)
class AgreementMeasure:
    """A coefficient of agreement.

    Attributes:
        name: For programs.
        group: Heading of the group of measures. Measures of labels take classes, or scores cut into classes.
        estimate: Function that fits the coefficient.
        needs_choice_count: Chance agreement depends on how many labels there were to choose from.
        costs_per_pair: Time grows with the pairs of judgments of one item; otherwise with the judgments.
        reads: Kind of answers that the measure takes.

    """

    name: str
    group: str
    title: str
    estimate: Callable[..., Agreement]
    needs_choice_count: bool = False
    costs_per_pair: bool = False
    reads: JudgmentKind = "points"


ORDER_MEASURES_HEADING, SCORE_MEASURES_HEADING, LABEL_MEASURES_HEADING, PREFERENCE_MEASURES_HEADING = (
    "Order of the items",
    "Scores",
    "Labels",
    "Preferences (each pair of items once)",
)

AGREEMENT_MEASURES = (
    AgreementMeasure(
        "correlation",
        ORDER_MEASURES_HEADING,
        "Spearman between annotators",
        score_agreement.mean_annotator_correlation,
        costs_per_pair=True,
    ),
    AgreementMeasure(
        "split_half", ORDER_MEASURES_HEADING, "Split-half Spearman", score_agreement.split_half_reliability
    ),
    AgreementMeasure(
        "split_half_stepped_up",
        ORDER_MEASURES_HEADING,
        "Split-half Spearman, for all judgments",
        partial(score_agreement.split_half_reliability, spearman_brown=True),
    ),
    AgreementMeasure(
        "alpha_interval",
        SCORE_MEASURES_HEADING,
        "Krippendorff’s alpha, interval",
        partial(krippendorff.fit, metric="interval"),
    ),
    AgreementMeasure(
        "alpha_ordinal",
        SCORE_MEASURES_HEADING,
        "Krippendorff’s alpha, ordinal",
        partial(krippendorff.fit, metric="ordinal"),
    ),
    AgreementMeasure("icc_one_way", SCORE_MEASURES_HEADING, "ICC, one-way", intraclass.one_way_icc),
    AgreementMeasure("icc_two_way", SCORE_MEASURES_HEADING, "ICC, two-way", intraclass.two_way_icc),
    AgreementMeasure(
        "label_agreement",
        LABEL_MEASURES_HEADING,
        "Agreement of labels",
        label_agreement.pairwise_agreement,
        reads="classes",
    ),
    AgreementMeasure(
        "alpha_nominal",
        LABEL_MEASURES_HEADING,
        "Krippendorff’s alpha of labels",
        partial(krippendorff.fit, metric="nominal"),
        reads="classes",
    ),
    AgreementMeasure(
        "cohen",
        LABEL_MEASURES_HEADING,
        "Cohen’s kappa of labels",
        label_agreement.cohens_kappa,
        costs_per_pair=True,
        reads="classes",
    ),
    AgreementMeasure(
        "fleiss", LABEL_MEASURES_HEADING, "Fleiss’ kappa of labels", label_agreement.fleiss_kappa, reads="classes"
    ),
    AgreementMeasure(
        "gwet",
        LABEL_MEASURES_HEADING,
        "Gwet’s AC1 of labels",
        label_agreement.gwets_ac1,
        needs_choice_count=True,
        reads="classes",
    ),
)

# Used if there are no scores. A preference is a label of a pair: the first is preferred, a tie, the second is.
PREFERENCE_AGREEMENT_MEASURES = (
    AgreementMeasure(
        "pair_agreement",
        PREFERENCE_MEASURES_HEADING,
        "Agreement of preferences",
        label_agreement.pairwise_agreement,
        reads="order",
    ),
    AgreementMeasure(
        "alpha_pairs",
        PREFERENCE_MEASURES_HEADING,
        "Krippendorff’s alpha of preferences",
        partial(krippendorff.fit, metric="nominal"),
        reads="order",
    ),
)
# Estimated again from the items that every annotator judges, if there is such a fixed set.
FIXED_SET_HEADING = "Fixed set that everyone judged"
FIXED_SET_MEASURE_NAMES = ("alpha_interval", "icc_two_way", "alpha_nominal", "fleiss", "pair_agreement", "alpha_pairs")
FIXED_SET_SUFFIX = "_fixed_set"
ALPHA_MEASURE_NAMES = ("alpha_interval", "alpha_nominal", "alpha_pairs")


@dataclass(frozen=True)
class AgreementData:
    """Judgments that a measure compares, (T,) each.

    Attributes:
        units: Number of the judged item or pair.
        annotators: Number of the annotator.
        values: The judgment.
        n_units: Number of items or pairs.
        n_choices: Number of possible values.
        is_of_fixed_set: Which judgments are about the fixed set.

    """

    units: Integers
    annotators: Integers
    values: Array | Integers
    n_units: int
    n_choices: int
    is_of_fixed_set: Mask

    def data_restricted_to_fixed_set(self) -> "AgreementData":
        """Return the judgments of the fixed set alone."""
        kept = self.is_of_fixed_set
        return replace(
            self,
            units=self.units[kept],
            annotators=self.annotators[kept],
            values=self.values[kept],
            is_of_fixed_set=kept[kept],
        )


def build_agreement_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per measure; if a measure cannot be estimated, its sentence says why.

    Raises:
        Inestimable: If no measure can be estimated.

    """
    refuse_without_answers(answers)
    measures = [
        measure for measure in AGREEMENT_MEASURES if can_read_answers_as(measure.reads, answers.value_kind)
    ] or [*PREFERENCE_AGREEMENT_MEASURES]
    data_by_kind = {
        kind: agreement_data_for_kind(kind, answers, options.classes)
        for kind in {measure.reads: None for measure in measures}
    }
    data = [data_by_kind[measure.reads] for measure in measures]
    if answers.fixed_items:
        measures_of_fixed_set = [*map(measure_renamed_for_fixed_set, filter(can_be_about_fixed_set, measures))]
        measures = [*measures, *measures_of_fixed_set]
        data += [data_by_kind[measure.reads].data_restricted_to_fixed_set() for measure in measures_of_fixed_set]
    results = [
        estimate_agreement_or_inestimable(measure, compared, answers)
        for measure, compared in zip(measures, data, strict=True)
    ]
    if refusals := [reason for reason in results if isinstance(reason, Inestimable)][len(measures) - 1 :]:
        raise refusals[0]
    shared = notes_that_all_results_share([result.notes for result in results if isinstance(result, Agreement)])
    rows = [agreement_measure_row(measure, result, shared) for measure, result in zip(measures, results, strict=True)]
    by_name = {measure.name: result for measure, result in zip(measures, results, strict=True)}
    alpha = next(by_name[name] for name in ALPHA_MEASURE_NAMES if name in by_name)
    verdict = describe_agreement(
        alpha, by_name.get("split_half_stepped_up"), judged="outputs" if answers.items_are_systems else "items"
    )
    # Notes on labels come first, as when answers were always scores.
    notes = [
        note
        for kind in ("classes", "points", "order")
        if kind in data_by_kind
        for note in notes_on_reading_for_measure(kind, answers, options)
    ]
    if answers.items_are_systems:
        notes.append(SYSTEMS_NOTE)
    return ResultTable(AGREEMENT_COLUMNS, rows, tuple(dict.fromkeys((*notes, *shared))), verdict)


def can_be_about_fixed_set(measure: AgreementMeasure) -> bool:
    return measure.name in FIXED_SET_MEASURE_NAMES


def measure_renamed_for_fixed_set(measure: AgreementMeasure) -> AgreementMeasure:
    """Return the measure for the fixed set, with a name of its own."""
    return replace(
        measure, name=measure.name + FIXED_SET_SUFFIX, group=FIXED_SET_HEADING, title=f"{measure.title}, fixed set"
    )


PAIRS_AS_ITEMS_NOTE = Note("pairs_as_items", "In these figures, “item” means a pair of items that was judged.")


def notes_on_reading_for_measure(kind: JudgmentKind, answers: Answers, options: Options) -> tuple[Note, ...]:
    """Return notes on how answers were read for measures of this kind."""
    return (
        *([PAIRS_AS_ITEMS_NOTE] if kind == "order" else []),
        *notes_on_reading_as_kind(answers, kind, options.classes),
    )


def agreement_data_for_kind(kind: JudgmentKind, answers: Answers, class_count: int) -> AgreementData:
    """Return all judgments as labels, as scores, or as preferences between the items of HITs."""
    if kind == "order":
        return preference_agreement_data(answers)
    units, unit_count = answers.judged_units_and_their_count()
    return AgreementData(
        units,
        answers.annotator,
        label_of_each_judgment(answers, class_count) if kind == "classes" else answers.score,
        unit_count,
        class_count_of_design_or_given(answers, class_count),
        np.isin(answers.item, answers.fixed_items),
    )


def preference_agreement_data(answers: Answers) -> AgreementData:
    """Return the outcome of each judged pair: 0 if the second item is preferred, 1 for a tie, 2 if the first is.

    Pairs of systems are those of a segment.

    The first item of a pair is drawn at random. By chance alone neither side is then preferred, in whatever order
    items were uploaded.
    """
    first, second, outcomes, hits = preference_pair_columns(answers)
    low, high = np.minimum(first, second), np.maximum(first, second)
    segments = 0 if answers.hit_segments is None else answers.hit_segments[hits]
    pairs, pair = np.unique((segments * answers.n_items + low) * answers.n_items + high, return_inverse=True)
    is_swapped = (first > second) ^ answers.seeded_rng().integers(0, 2, len(pairs)).astype(np.bool_)[pair]
    values = np.where(is_swapped, -outcomes, outcomes) + 1
    is_of_fixed_set = np.isin(first, answers.fixed_items) & np.isin(second, answers.fixed_items)
    return AgreementData(pair, answers.annotator_index_of_each_hit[hits], values, len(pairs), 3, is_of_fixed_set)


def notes_that_all_results_share(notes_by_result: list[tuple[Note, ...]]) -> list[Note]:
    """Return the notes that all of several results share."""
    return [
        note
        for note in notes_by_result[0]
        if len(notes_by_result) > 1 and all(note in other for other in notes_by_result)
    ]


def estimate_agreement_or_inestimable(
    measure: AgreementMeasure, data: AgreementData, answers: Answers
) -> Agreement | Inestimable:
    per_unit = np.bincount(data.units)
    pairs = int((per_unit * (per_unit - 1) // 2).sum())
    if measure.costs_per_pair and pairs > MAX_AGREEMENT_PAIRS:
        return Inestimable(
            f"{pairs:,} pairs of judgments are too many to compare. The other measures do not need this comparison.",
            code="too_many_pairs",
        )
    try:
        return measure.estimate(
            data.units,
            data.annotators,
            data.values,
            **({"n_labels": data.n_choices} if measure.needs_choice_count else {}),
            n_items=data.n_units,
            n_annotators=answers.n_annotators,
            draws=choose_bootstrap_draw_count(20 * (pairs if measure.costs_per_pair else len(data.units))),
            rng=answers.seeded_rng(),
        )
    except Inestimable as reason:
        return reason


def agreement_measure_row(
    measure: AgreementMeasure, result: Agreement | Inestimable, shared_notes: list[Note]
) -> tuple[Cell, ...]:
    """Return the row of a measure, without the notes that the whole table already shows."""
    name = measure.name, measure.group, measure.title
    if isinstance(result, Inestimable):
        return (*name, None, None, None, None, None, None, str(result), None)
    counts = result.n_items, result.n_annotators, result.n_pairs
    own_notes = " ".join(note for note in result.notes if note not in shared_notes)
    return (*name, *to_cells((result.value, result.low, result.high, *counts)), result.sentence, own_notes or None)


AGREEMENT_SECTION = TableSection("agreement", "Agreement")

AGREEMENT_TABLE = TableMethod(
    AGREEMENT_SECTION,
    "Agreement",
    "The usual coefficients of agreement between annotators, each with its 95 % interval over items. Agreement does "
    "not prove that scores are right: annotators who share a mistake agree too.",
    build_agreement_table,
    reads=("points", "classes", "order"),
    options=("classes",),
    dot_plot=DotPlotColumn("value", COEFFICIENT_AXIS),
)
