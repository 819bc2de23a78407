"""Tables of consistency: transitivity, repeated judgments, and a scale from preferences."""

from collections.abc import Callable, Iterable

import numpy as np

from app.analysis.annotator_table import fit_transitivity
from app.analysis.answer_kinds import can_read_answers_as, label_of_each_judgment, notes_on_reading_as_kind
from app.analysis.chart_axes import COEFFICIENT_AXIS, SHARE_AXIS
from app.analysis.method_types import DotPlotColumn, TableMethod, TableSection
from app.analysis.pairwise_tables import preference_pair_columns
from app.analysis.result_types import (
    Answers,
    Cell,
    Column,
    Options,
    ResultTable,
    cell_or_none_if_not_finite,
    columns_to_cell_rows,
)
from app.analysis.scores import refuse_without_answers
from app.inference.agreement import retest
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, notes_with_names
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.preferences import relative_to_absolute
from app.inference.preferences.relative_to_absolute import AbsoluteScores

CONSISTENCY_COLUMNS = (
    Column("measure", "Name", "text"),
    Column("title", "Measure", "text"),
    Column("value", "Value"),
    Column("rests_on", "Based on", "count"),
    Column("of", "Unit", "text"),
    Column("sentence", "What it shows", "sentence"),
)

ConsistencyRows = list[tuple[Cell, ...]]

TRANSITIVITY_TEXT = (
    "For three items whose pairs one annotator judged in three different tasks: 1 if “at least as good as” is always "
    "transitive, 0 if it is transitive as often as by chance. Pairs of one task are consistent by construction and are "
    "left out."
)
TRANSITIVITY_WITHOUT_TIES_TEXT = "The same, using only triads without ties."
SAME_SCORE_TEXT = "The share of repeated judgments that differ from the first by no more than the tie margin."
SCORE_SHIFT_TEXT = "How much higher an annotator scores an item the second time, in points."
MEASUREMENT_ERROR_TEXT = "How far one score typically is from the annotator’s long-run mean, in points."
RETEST_CORRELATION_TEXT = "Pearson’s correlation between the first and the repeated scores."
SAME_PREFERENCE_TEXT = "The share of pairs of items for which an annotator repeated the first outcome."
PREFERENCE_KAPPA_TEXT = "The same, corrected for chance: 0 is chance and 1 is complete agreement."
SAME_LABEL_TEXT = "The share of items for which an annotator repeated the first label."
LABEL_KAPPA_TEXT = PREFERENCE_KAPPA_TEXT
SCALE_EXISTS_TEXT = "The majority preferences of all pairs fit one scale. This is its number of items."
NO_SCALE_TEXT = "The majority preferences do not fit one scale. The table “Scale from preferences” says why."


def build_consistency_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per measure; if a measure cannot be estimated, its sentence says why."""
    refuse_without_answers(answers)
    rows: ConsistencyRows = []
    notes: list[Note] = []
    parts = [(kind, part) for kind, part in CONSISTENCY_PARTS if can_read_answers_as(kind, answers.value_kind)]
    for kind, part in parts or [("classes", repeated_label_rows_and_notes)]:
        part_rows, part_notes = part(answers)
        notes += notes_on_reading_as_kind(answers, kind)
        rows += part_rows
        notes += part_notes
    return ResultTable(CONSISTENCY_COLUMNS, rows, tuple(dict.fromkeys(notes)))


def build_preference_scale_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per item.

    Raises:
        Inestimable: `no_scale`, with the cycle or the missing pairs that rule out a scale.

    """
    scores = fit_preference_scale(answers)
    columns = (Column("id", "Id", "text"), Column("text", "Item", "text"), Column("score", "At least as good as"))
    notes = (*notes_on_reading_as_kind(answers, "order"), *scores.notes)
    return ResultTable(columns, columns_to_cell_rows(answers.ids, answers.shown, scores.score), notes)


ConsistencyPart = Callable[[Answers], tuple[ConsistencyRows, Iterable[Note]]]


def inestimable_row_and_no_notes(
    name: str, title: str, unit_noun: str, reason: Inestimable
) -> tuple[ConsistencyRows, Iterable[Note]]:
    return [(name, title, None, 0, unit_noun, str(reason))], ()


def refuse_repeats_of_systems(answers: Answers) -> None:
    """Raise `Inestimable` (`no_repeats_of_systems`) if the items are systems, whose judgments are of segments."""
    if answers.items_are_systems:
        sentence = "Judgments of a system are of different segments, so none repeats another."
        raise Inestimable(sentence, code="no_repeats_of_systems")


def pooled_transitivity_rows_and_notes(answers: Answers) -> tuple[ConsistencyRows, Iterable[Note]]:
    """Return kappa over all annotators' triads."""
    name, title = "transitivity", "Transitivity kappa"
    try:
        fit = fit_transitivity(answers)
    except Inestimable as reason:
        return inestimable_row_and_no_notes(name, title, "triads", reason)
    triads, triads_without_ties = int(fit.triads.sum()), int(fit.triads_without_ties.sum())
    return [
        (name, title, cell_or_none_if_not_finite(fit.pooled_kappa), triads, "triads", TRANSITIVITY_TEXT),
        (
            f"{name}_without_ties",
            f"{title} without ties",
            cell_or_none_if_not_finite(fit.pooled_kappa_without_ties),
            triads_without_ties,
            "triads",
            TRANSITIVITY_WITHOUT_TIES_TEXT,
        ),
    ], fit.notes


def repeated_score_rows_and_notes(answers: Answers) -> tuple[ConsistencyRows, Iterable[Note]]:
    """Return how well annotators repeat their own scores of items."""
    margin = answers.parameters.tie_margin
    try:
        refuse_repeats_of_systems(answers)
        retest_scores = retest.compare_repeated_scores(
            answers.item, answers.annotator, answers.scores_between_0_and_1, margin=margin
        )
    except Inestimable as reason:
        return inestimable_row_and_no_notes("retest", "Repeated scores", "repeats", reason)
    measures = (
        ("retest_same", "Repeated scores that agree", retest_scores.pooled_same, SAME_SCORE_TEXT),
        ("retest_shift", "Shift of repeated scores", 100.0 * retest_scores.pooled_shift, SCORE_SHIFT_TEXT),
        ("retest_error", "Standard error of measurement", 100.0 * retest_scores.pooled_error, MEASUREMENT_ERROR_TEXT),
        (
            "retest_correlation",
            "Correlation of repeated scores",
            retest_scores.pooled_correlation,
            RETEST_CORRELATION_TEXT,
        ),
    )
    return build_measure_rows(measures, int(retest_scores.repeats.sum()), "repeats"), retest_scores.notes


def repeated_pair_rows_and_notes(answers: Answers) -> tuple[ConsistencyRows, Iterable[Note]]:
    """Return how well annotators repeat their own preferences between two items."""
    try:
        refuse_repeats_of_systems(answers)
        first, second, outcomes, hits = preference_pair_columns(answers)
        retest_pairs = retest.compare_repeated_pair_judgments_with_previous(
            first, second, outcomes, answers.annotator_index_of_each_hit[hits]
        )
    except Inestimable as reason:
        return inestimable_row_and_no_notes("pairs_again", "Repeated pairs", "repeats", reason)
    measures = (
        ("pairs_again_same", "Repeated preferences that agree", retest_pairs.pooled_same, SAME_PREFERENCE_TEXT),
        ("pairs_again_kappa", "Kappa of repeated preferences", retest_pairs.pooled_kappa, PREFERENCE_KAPPA_TEXT),
    )
    return build_measure_rows(measures, int(retest_pairs.repeats.sum()), "repeats"), retest_pairs.notes


def repeated_label_rows_and_notes(answers: Answers) -> tuple[ConsistencyRows, Iterable[Note]]:
    """Return how well annotators repeat their own labels of items."""
    try:
        refuse_repeats_of_systems(answers)
        retest_labels = retest.compare_repeated_labels(
            answers.item, answers.annotator, label_of_each_judgment(answers, 0)
        )
    except Inestimable as reason:
        return inestimable_row_and_no_notes("labels_again", "Repeated labels", "repeats", reason)
    measures = (
        ("labels_again_same", "Repeated labels that agree", retest_labels.pooled_same, SAME_LABEL_TEXT),
        ("labels_again_kappa", "Kappa of repeated labels", retest_labels.pooled_kappa, LABEL_KAPPA_TEXT),
    )
    return build_measure_rows(measures, int(retest_labels.repeats.sum()), "repeats"), retest_labels.notes


def build_measure_rows(measures: Iterable[tuple[str, str, float, str]], count: int, unit_noun: str) -> ConsistencyRows:
    return [
        (name, title, cell_or_none_if_not_finite(value), count, unit_noun, sentence)
        for name, title, value, sentence in measures
    ]


def preference_scale_rows_and_notes(answers: Answers) -> tuple[ConsistencyRows, Iterable[Note]]:
    """Return whether the preferences fit on one scale."""
    name, title = "scale", "Items on a scale from preferences"
    try:
        scores = fit_preference_scale(answers)
    except Inestimable:
        return [(name, title, None, 0, "items", NO_SCALE_TEXT)], ()
    placed = int(np.count_nonzero(scores.estimable))
    return [(name, title, float(placed), placed, "items", SCALE_EXISTS_TEXT)], scores.notes


def fit_preference_scale(answers: Answers) -> AbsoluteScores:
    """Return each item's place on the scale that the preferences form, with items by name in the notes.

    Raises:
        Inestimable: `no_scale` if there is none.

    """
    first, second, outcomes, _ = preference_pair_columns(answers)
    scores = relative_to_absolute.fit(first, second, outcomes, n_items=answers.n_items)
    notes = notes_with_names(scores.notes, {"item": answers.ids})
    if not scores.estimable.any():
        raise Inestimable(notes[-1], code="no_scale")
    return AbsoluteScores(scores.score, scores.estimable, scores.cycle, notes)


CONSISTENCY_PARTS: tuple[tuple[JudgmentKind, ConsistencyPart], ...] = (
    ("order", pooled_transitivity_rows_and_notes),
    ("points", repeated_score_rows_and_notes),
    ("order", repeated_pair_rows_and_notes),
    ("order", preference_scale_rows_and_notes),
)

CONSISTENCY_SECTION = TableSection("consistency", "Consistency")

CONSISTENCY_TABLE = TableMethod(
    CONSISTENCY_SECTION,
    "Consistency",
    "Whether judgments in different tasks are consistent, across triads of items and when an item is judged again. "
    "Consistent answers can still be wrong.",
    build_consistency_table,
    reads=("order", "classes"),
    # Shares are not coefficients, and values in points or items fit on no common axis.
    dot_plot=DotPlotColumn(
        "value",
        COEFFICIENT_AXIS,
        dict.fromkeys(("retest_same", "pairs_again_same", "labels_again_same"), SHARE_AXIS)
        | dict.fromkeys(("retest_shift", "retest_error", "scale")),
    ),
)

PREFERENCE_SCALE_TABLE = TableMethod(
    CONSISTENCY_SECTION,
    "Scale from preferences",
    "For each item, the number of other items that it is at least as good as, by the majority of judgments. If the "
    "preferences fit on one scale, this number reproduces all of them.",
    build_preference_scale_table,
    reads=("order",),
    per_item=True,
)
