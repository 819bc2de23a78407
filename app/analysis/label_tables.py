"""Tables of labels by the Dawid-Skene model: classes, annotators and items. Scores are cut into labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from app.analysis.answer_kinds import (
    class_count_of_design_or_given,
    class_names_or_score_ranges,
    has_class_labels,
    label_of_each_judgment,
    notes_on_reading_as_kind,
)
from app.analysis.chart_axes import SHARE_AXIS
from app.analysis.label_columns import FoldedColumns, LabelColumnGroup
from app.analysis.method_types import DotPlotColumn, LazyTable, MethodExport, TableMethod, TableSection
from app.analysis.result_types import (
    Answers,
    Cell,
    Column,
    Options,
    ResultTable,
    cache_last_result,
    columns_to_cell_rows,
)
from app.analysis.scores import refuse_without_answers
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.notes import Note, notes_with_names
from app.inference.labels import dawid_skene
from app.inference.labels.cautious_posterior import result_with_cautious_posteriors
from app.inference.labels.dawid_skene import (
    DawidSkeneResult,
    consensus,
    expected_information,
    probability_of_each_label_being_right,
)
from app.inference.labels.prevalence_interval import ends_of_bootstrap_prevalence_intervals

# How often: `python -m benchmarks.label_confidence`.
OVERCONFIDENCE_NOTE = Note(
    "confidence_too_high",
    "Confidence allows for what is unknown about annotators with few labels. It is too high where annotators make the "
    "same errors: the model treats errors as independent.",
)
MAX_RESAMPLED_LABELS = 100_000  # the fits to 100 draws of so many labels take some seconds
PREVALENCE_DRAWS = 100


# On the diagonal of every response matrix before the first step, as Passonneau & Carpenter 2014 start, whose figures it
# gives: labels of a design mean what they are called. Classes cut from scores mean what most people say.
DESIGN_LABEL_START_ACCURACY = 0.7


@cache_last_result
def fit_dawid_skene(answers: Answers, class_count: int) -> DawidSkeneResult:
    """Fit Dawid-Skene to the labels.

    Raises:
        Inestimable: If nothing can be fitted.

    """
    refuse_without_answers(answers)
    return dawid_skene.fit(
        answers.item,
        answers.annotator,
        label_of_each_judgment(answers, class_count),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_labels=class_count_of_design_or_given(answers, class_count),
        start=DESIGN_LABEL_START_ACCURACY if has_class_labels(answers) else "votes",
    )


@cache_last_result
def fit_dawid_skene_with_cautious_posteriors(answers: Answers, class_count: int) -> DawidSkeneResult:
    """Return the fit with posteriors of items that allow for what is unknown about annotators.

    Raises:
        Inestimable: If nothing can be fitted.

    """
    labels = label_of_each_judgment(answers, class_count)
    return result_with_cautious_posteriors(
        fit_dawid_skene(answers, class_count), answers.item, answers.annotator, labels
    )


def prevalence_interval_ends_and_notes(answers: Answers, class_count: int) -> tuple[Array, Array, tuple[Note, ...]]:
    """Return the ends of each label's interval, (K,) each, or NaN and a note where there are too many labels."""
    labels, result = label_of_each_judgment(answers, class_count), fit_dawid_skene(answers, class_count)
    if len(labels) > MAX_RESAMPLED_LABELS:
        sentence = f"{len(labels):,} labels are too many to resample, so prevalences have no intervals."
        unknown = np.full(len(result.prevalence), np.nan)
        return unknown, unknown, (Note("prevalence_without_interval", sentence),)
    low, high = ends_of_bootstrap_prevalence_intervals(
        *(result, answers.item, answers.annotator, labels), draws=PREVALENCE_DRAWS, rng=answers.seeded_rng()
    )
    return low, high, ()


def label_fit_notes(answers: Answers, class_count: int, result: DawidSkeneResult) -> tuple[Note, ...]:
    """Return notes on how labels were made, and on limits of the fit."""
    names = {"item": answers.ids, "annotator": answers.names}
    return (*notes_on_reading_as_kind(answers, "classes", class_count), *notes_with_names(result.notes, names))


def label_column_definition(answers: Answers) -> Column:
    return Column("label", "Label" if has_class_labels(answers) else "Label (points)", "text")


def build_prevalence_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per label."""
    result = fit_dawid_skene_with_cautious_posteriors(answers, options.classes)
    low, high, interval_notes = prevalence_interval_ends_and_notes(answers, options.classes)
    names = class_names_or_score_ranges(answers, options.classes)
    label_counts = np.bincount(label_of_each_judgment(answers, options.classes), minlength=len(names))
    best, _ = consensus(result)
    rows = columns_to_cell_rows(
        names,
        result.prevalence,
        low,
        high,
        label_counts / label_counts.sum(),
        np.bincount(best[best >= 0], minlength=len(names)),
        np.diagonal(result.typical_response),
    )
    columns = (
        label_column_definition(answers),
        Column("prevalence", "Prevalence"),
        Column("low", "Low (95 %)"),
        Column("high", "High (95 %)"),
        Column("share", "Share of judgments"),
        Column("items", "Items with this most likely label", "count"),
        Column("accuracy", "Typical accuracy for such items"),
    )
    return ResultTable(columns, rows, (*label_fit_notes(answers, options.classes, result), *interval_notes))


EXACT_ACCURACY_NOTE = Note(
    "accuracy_is_exact",
    "Accuracy is the probability of giving exactly the item’s label. A neighbouring label counts as wrong, so careful "
    "annotators can have a low accuracy on a scale of several labels.",
)


def build_fitted_annotator_accuracy_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per annotator."""
    result = fit_dawid_skene(answers, options.classes)
    names = class_names_or_score_ranges(answers, options.classes)
    columns = (
        Column("annotator", "Pseudonym", "text"),
        Column("name", "Annotator", "text"),
        Column("labels", "Labels", "count"),
        Column("accuracy", "Accuracy"),
        Column("information", "Information of a label (bits)"),
        *(Column(f"accuracy_{k}", f"Accuracy for items of {name}") for k, name in enumerate(names)),
        *(Column(f"evidence_{k}", f"Expected labels of items of {name}") for k, name in enumerate(names)),
    )
    rows = columns_to_cell_rows(
        answers.annotators,
        answers.names,
        np.bincount(answers.annotator, minlength=answers.n_annotators),
        result.accuracy,
        result.mutual_information,
        *result.class_accuracy.T,
        *result.evidence.T,
    )
    notes = () if answers.value_kind == "classes" else (EXACT_ACCURACY_NOTE,)
    return ResultTable(columns, rows, (*notes, *label_fit_notes(answers, options.classes, result)))


def build_label_item_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row per item. If labels say nothing, the item has no label and the uncertainty of the prevalence."""
    result = fit_dawid_skene_with_cautious_posteriors(answers, options.classes)
    names = class_names_or_score_ranges(answers, options.classes)
    best, confident = consensus(result)
    columns = (
        Column("id", "Id", "text"),
        Column("text", "Item", "text"),
        Column("judgments", "Judgments", "count"),
        label_column_definition(answers),
        Column("confidence", "Confidence"),
        Column("entropy", "Uncertainty (bits)"),
        Column("expected_information", "Expected information of one more label (bits)"),
        *(Column(f"probability_{k}", f"Probability of {name}") for k, name in enumerate(names)),
    )
    rows = columns_to_cell_rows(
        answers.ids,
        answers.shown,
        answers.judgment_counts,
        [names[k] if k >= 0 else None for k in best.tolist()],
        confident,
        result.entropy,
        expected_information(result),
        *result.posterior.T,
    )
    return ResultTable(columns, rows, (OVERCONFIDENCE_NOTE, *label_fit_notes(answers, options.classes, result)))


@dataclass(frozen=True)
class LabelledJudgments:
    """Label of every judgment, (J,), and the probability that it is right; the same for every item, (N,).

    Confidence is NaN, and an item's label -1, where nothing can be estimated.
    """

    labels: Integers
    confidence: Array
    item_labels: Integers
    item_confidence: Array


def fit_judgment_labels_with_confidence(answers: Answers, class_count: int) -> LabelledJudgments:
    """Return all labels with their confidence.

    Raises:
        Inestimable: If nothing can be fitted.

    """
    result, labels = (
        fit_dawid_skene_with_cautious_posteriors(answers, class_count),
        label_of_each_judgment(answers, class_count),
    )
    return LabelledJudgments(
        labels, probability_of_each_label_being_right(result, answers.item, labels), *consensus(result)
    )


LABEL_EXPORT_COLUMNS = (
    *("seq", "annotator", "name", "item", "score", "label", "confidence", "item_label", "item_confidence"),
)


def lazy_judgment_label_table(answers: Answers, options: Options) -> LazyTable:
    """Return one row per judgment: its label, the probability that it is right, and the item's most probable label.

    Rows also have the score if labels are scores that were cut.
    """
    labelled_judgments, names = (
        fit_judgment_labels_with_confidence(answers, options.classes),
        class_names_or_score_ranges(answers, options.classes),
    )
    columns = [name for name in LABEL_EXPORT_COLUMNS if name != "score" or not has_class_labels(answers)]
    return LazyTable(columns, len(answers.item), partial(judgment_label_rows, answers, labelled_judgments, names))


def judgment_label_rows(
    answers: Answers, labelled_judgments: LabelledJudgments, names: Sequence[str], start: int, stop: int
) -> list[tuple[Cell, ...]]:
    """Return the rows of judgments `start` to before `stop`."""
    judgments_slice = slice(start, stop)
    item, annotator = answers.item[judgments_slice], answers.annotator[judgments_slice].tolist()
    return columns_to_cell_rows(
        answers.seq[answers.hit[judgments_slice]],
        [answers.annotators[k] for k in annotator],
        [answers.names[k] for k in annotator],
        [answers.ids[k] for k in item.tolist()],
        *(() if has_class_labels(answers) else (answers.score[judgments_slice],)),
        [names[k] for k in labelled_judgments.labels[judgments_slice].tolist()],
        labelled_judgments.confidence[judgments_slice],
        [names[k] if k >= 0 else None for k in labelled_judgments.item_labels[item].tolist()],
        labelled_judgments.item_confidence[item],
    )


LABELS_SECTION = TableSection("labels", "Labels", options=("classes",))

PREVALENCE_TABLE = TableMethod(
    LABELS_SECTION,
    "Labels",
    "How common each label is according to the Dawid-Skene model, which weighs labels by how good each annotator "
    "is, with an interval over items. If annotators give scores, labels are scores cut into classes.",
    build_prevalence_table,
    reads=("classes",),
    options=("classes",),
    dot_plot=DotPlotColumn("prevalence", SHARE_AXIS),
)

LABEL_ANNOTATOR_TABLE = TableMethod(
    LABELS_SECTION,
    "Annotators’ labels",
    "The probability that an annotator’s label is right, and how much one label tells about an item.",
    build_fitted_annotator_accuracy_table,
    reads=("classes",),
    options=("classes",),
    shows_annotators=True,
    dot_plot=DotPlotColumn("accuracy", SHARE_AXIS),
    folded_columns=FoldedColumns(
        Column("by_label", "By label", "text"),
        (
            LabelColumnGroup("accuracy_", "Accuracy for items of ", "Accuracy"),
            LabelColumnGroup("evidence_", "Expected labels of items of ", "Expected labels"),
        ),
    ),
)

LABEL_ITEM_TABLE = TableMethod(
    LABELS_SECTION,
    "Items’ labels",
    "The most probable label of each item with its confidence, the remaining uncertainty, and the expected "
    "information of one more label: ask about items where it is highest.",
    build_label_item_table,
    reads=("classes",),
    options=("classes",),
    per_item=True,
    dot_plot=DotPlotColumn("confidence", SHARE_AXIS),
    folded_columns=FoldedColumns(
        Column("by_label", "Most probable labels", "text"),
        (LabelColumnGroup("probability_", "Probability of ", "Probability"),),
        shows_largest=True,
    ),
    exports=(
        MethodExport(
            "item_labels",
            "Labels of items",
            "Dawid and Skene’s label of every item, its confidence and uncertainty.",
            can_cut_scores=True,
            has_final_labels=True,
        ),
        MethodExport(
            "labels",
            "Labels of judgments",
            "The label of every judgment with the confidence that it is right, and the label of its item.",
            lazy_judgment_label_table,
            can_cut_scores=True,
            has_final_labels=True,
        ),
    ),
)
