"""Table of annotators: amount of work, use of the scale, agreement with others and with themselves."""

from collections.abc import Callable, Sequence

import numpy as np

from app.analysis import annotator_picture
from app.analysis.answer_kinds import can_read_answers_as, label_of_each_judgment, notes_on_reading_as_kind
from app.analysis.aware_comparison_scores import DISCRIMINATION_COLUMNS, discrimination_columns_and_notes
from app.analysis.method_types import TableMethod, TableSection
from app.analysis.pairwise_tables import preference_pair_columns
from app.analysis.result_types import Answers, AnyArray, Column, Options, ResultTable, columns_to_cell_rows
from app.analysis.scores import refuse_without_answers
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import sum_values_of_each_number
from app.inference.labels.agreement_with_others import equal_label_share_of_each_annotator
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.preferences import transitivity
from app.inference.ratings import annotator_aware
from app.inference.ratings import peer_correlations as correlations

ANNOTATOR_COUNT_COLUMNS = (
    Column("annotator", "Pseudonym", "text"),
    Column("name", "Annotator", "text"),
    Column("hits", "Tasks", "count"),
    Column("judgments", "Judgments", "count"),
)
SCALE_USE_COLUMNS = (
    Column("mean", "Mean score (points)"),
    Column("spread", "Standard deviation (points)"),
    Column("correlation", "Correlation with the others’ means"),
    Column("reliability", "Reliability, 0 to 1"),
    Column("random", "Probability of answering at random, or nearly so"),
    Column("weight", "Weight of a judgment"),
    Column("bias", "Bias (points above the crowd)"),
    Column("scale", "Width of scale (1: same as others)"),
)
TRANSITIVITY_COLUMNS = (
    Column("kappa", "Transitivity kappa"),
    Column("triads", "Triads", "count"),
    Column("kappa_without_ties", "Transitivity kappa without ties"),
    Column("triads_without_ties", "Triads without ties", "count"),
)
UNJUDGED_SHARE_COLUMNS = (Column("unjudged", "Share that could not be judged"),)
LABEL_AGREEMENT_COLUMNS = (Column("agreement", "Share of labels also given by another annotator"),)

AnnotatorTablePart = tuple[tuple[Column, ...], tuple[AnyArray, ...], tuple[Note, ...]]


def build_annotator_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row per annotator, with the columns that the answers support.

    Each part that cannot be estimated leaves its cells empty and adds a note.
    """
    refuse_without_answers(answers)
    judgments = np.bincount(answers.annotator, minlength=answers.n_annotators)
    hits = np.bincount(answers.annotator_index_of_each_hit, minlength=answers.n_annotators)
    parts = [
        part(answers) for kind, part in ANNOTATOR_PARTS_BY_KIND.items() if can_read_answers_as(kind, answers.value_kind)
    ]
    parts = parts or [label_agreement_table_part(answers)]
    parts += [profile_answer_table_part(answers)] if answers.profile_answers else []
    parts += (
        []
        if answers.unjudged_counts is None
        else [unjudged_share_table_part(answers.unjudged_counts, judgments, answers.names_without_judgment)]
    )
    columns = (
        answers.annotators,
        answers.names,
        hits,
        judgments,
        *(column for _, part_columns, _ in parts for column in part_columns),
    )
    table_columns = (*ANNOTATOR_COUNT_COLUMNS, *(head for some, _, _ in parts for head in some))
    return ResultTable(
        table_columns, columns_to_cell_rows(*columns), tuple(note for _, _, notes in parts for note in notes)
    )


def profile_answer_table_part(answers: Answers) -> AnnotatorTablePart:
    """Return each annotator's answers to profile questions; empty where they gave none."""
    answer_columns = tuple(Column(f"asked_{name}", name, "text") for name in answers.profile_answers)
    return (
        answer_columns,
        tuple(np.array([answer or "" for answer in column]) for column in answers.profile_answers.values()),
        (),
    )


def unjudged_share_table_part(
    unjudged_counts: Integers, judgment_counts: Integers, names_without_judgment: Sequence[str]
) -> AnnotatorTablePart:
    """Return the share of items that each annotator could not judge, among all that they answered, (A,)."""
    note = Note(
        "judged_nothing",
        "These annotators are not in the table, because they could not judge any item: "
        f"{', '.join(names_without_judgment)}.",
    )
    return (
        UNJUDGED_SHARE_COLUMNS,
        (unjudged_counts / (unjudged_counts + judgment_counts),),
        (note,) if names_without_judgment else (),
    )


def scale_use_table_part(answers: Answers) -> AnnotatorTablePart:
    """Return each annotator's mean, deviation, correlation with others, and reliability, bias and scale."""
    columns, notes = annotator_model_columns_and_notes(answers)
    return (
        SCALE_USE_COLUMNS,
        (
            *score_mean_and_deviation_of_each_annotator(answers),
            correlation_with_others_of_each_annotator(answers),
            *columns,
        ),
        (*notes_on_reading_as_kind(answers, "points"), *notes),
    )


def preference_consistency_table_part(answers: Answers) -> AnnotatorTablePart:
    """Return how consistent each annotator's preferences are and, where annotators give nothing but preferences, how
    well these agree with those of the others.

    Where annotators score items, transitivity is an extra: no note says why there is none.
    """
    columns, notes = kappa_and_triad_columns_and_notes(answers)
    if answers.value_kind != "order":
        is_estimable = any(np.isfinite(column).any() for column in columns)
        notes = (*notes_on_reading_as_kind(answers, "order"), *notes) if is_estimable else ()
        return TRANSITIVITY_COLUMNS, columns, notes
    agreement, agreement_notes = discrimination_columns_and_notes(answers)
    return (*DISCRIMINATION_COLUMNS, *TRANSITIVITY_COLUMNS), (*agreement, *columns), (*agreement_notes, *notes)


ANNOTATOR_PARTS_BY_KIND: dict[JudgmentKind, Callable[[Answers], AnnotatorTablePart]] = {
    "points": scale_use_table_part,
    "order": preference_consistency_table_part,
}


def label_agreement_table_part(answers: Answers) -> AnnotatorTablePart:
    """Return each annotator's label agreement with others, (A,), as their own page shows it."""
    shared = equal_label_share_of_each_annotator(
        answers.item,
        answers.annotator,
        label_of_each_judgment(answers, 0),
        n_annotators=answers.n_annotators,
        n_labels=len(answers.classes),
    )
    return LABEL_AGREEMENT_COLUMNS, (shared,), ()


def score_mean_and_deviation_of_each_annotator(answers: Answers) -> tuple[Array, Array]:
    """Return mean and standard deviation of each annotator's scores, (A,); NaN deviation for a single judgment."""
    count = np.bincount(answers.annotator, minlength=answers.n_annotators)
    mean = sum_values_of_each_number(answers.annotator, answers.score, len(count)) / count
    squares = sum_values_of_each_number(answers.annotator, (answers.score - mean[answers.annotator]) ** 2, len(count))
    return mean, np.sqrt(squares / np.where(count > 1, count - 1.0, np.nan))


def correlation_with_others_of_each_annotator(answers: Answers) -> Array:
    """Return each annotator's correlation with the means of the others, (A,), as their own page shows it."""
    sizes = {"n_items": answers.n_items, "n_annotators": answers.n_annotators}
    return correlations.fit(answers.item, answers.annotator, answers.scores_between_0_and_1, **sizes).correlation


def annotator_model_columns_and_notes(answers: Answers) -> tuple[tuple[Array, ...], tuple[Note, ...]]:
    """Return reliability, chance of (nearly) random answers, weight, bias in points and scale, with notes."""
    try:
        fit = annotator_aware.fit(
            answers.item,
            answers.annotator,
            answers.scores_between_0_and_1,
            n_items=answers.n_items,
            n_annotators=answers.n_annotators,
        )
    except Inestimable as reason:
        note = Note("no_reliability", f"No reliability, bias or scale: {reason}")
        return (np.full(answers.n_annotators, np.nan),) * 5, (note,)
    columns = (fit.reliability, fit.random_or_nearly, fit.annotator_weight, 100.0 * fit.bias, fit.scale)
    return columns, fit.notes


def kappa_and_triad_columns_and_notes(answers: Answers) -> tuple[tuple[AnyArray, ...], tuple[Note, ...]]:
    """Return kappa and number of triads, with ties and without, (A,) each, with notes."""
    try:
        fit = fit_transitivity(answers)
    except Inestimable as reason:
        missing = np.full(answers.n_annotators, np.nan)
        return (missing, missing, missing, missing), (Note("no_transitivity", f"No transitivity: {reason}"),)
    columns = (fit.kappa, fit.triads, fit.kappa_without_ties, fit.triads_without_ties)
    return columns, fit.notes


def fit_transitivity(answers: Answers) -> transitivity.Transitivity:
    """Return transitivity over triads whose pairs come from three HITs.

    Raises:
        Inestimable: If no annotator has such a triad.

    """
    first, second, outcomes, hits = preference_pair_columns(answers)
    annotators = answers.annotator_index_of_each_hit[hits]
    return transitivity.fit(first, second, outcomes, annotators, n_annotators=answers.n_annotators, hits=hits)


ANNOTATOR_SECTION = TableSection("annotators", "Annotators")

ANNOTATOR_TABLE = TableMethod(
    ANNOTATOR_SECTION,
    "Annotators",
    "How much each annotator did, how their answers are spread, how well they agree with others, and how consistent "
    "they are. Agreement with the others does not prove that answers are right: an annotator who differs may know "
    "better.",
    build_annotator_table,
    reads=("points", "order", "classes"),
    shows_annotators=True,
    draw_picture=annotator_picture.reliability_over_bias_picture_or_none,
)
