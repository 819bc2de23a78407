"""Tables of groups of annotators by their answers to profile questions: agreement and item means of each group."""

from collections.abc import Sequence

import numpy as np

from app.analysis.agreement_table import (
    AGREEMENT_MEASURES,
    ALPHA_MEASURE_NAMES,
    PREFERENCE_AGREEMENT_MEASURES,
    agreement_data_for_kind,
    estimate_agreement_or_inestimable,
)
from app.analysis.answer_kinds import can_read_answers_as, notes_on_reading_as_kind
from app.analysis.chart_axes import COEFFICIENT_AXIS
from app.analysis.method_types import DotPlotColumn, TableMethod, TableSection
from app.analysis.result_types import Answers, Cell, Column, Options, ResultTable, columns_to_cell_rows, to_cells
from app.analysis.scores import refuse_without_answers
from app.analysis.subgroups import answers_of_group_or_refuse, list_profile_groups_with_sizes_largest_first
from app.errors import shorten_echo
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.validation import sum_values_of_each_number

MAX_GROUP_ROWS = 50  # each is an estimate of its own
MAX_GROUP_COLUMNS = 6  # groups whose means are compared
MIN_ANNOTATORS_PER_GROUP = 2  # annotators of a group in a column
MIN_SHARED_ITEMS_OF_GROUPS = 3  # items that a group and the others have judged, so that their means are compared

GROUPS_SECTION = TableSection("groups", "Groups of annotators")

GROUP_COLUMNS = (
    Column("question", "Question", "text"),
    Column("answer", "Answer", "text"),
    Column("annotators", "Annotators", "count"),
    Column("judgments", "Judgments", "count"),
    Column("mean", "Mean score (points)"),
    Column("value", "Krippendorff’s alpha within the group"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("with_others", "Correlation with the others’ item means"),
    Column("sentence", "Why there is no alpha", "sentence"),
)


def build_profile_group_table(answers: Answers, options: Options) -> ResultTable:
    """Return one row for each answer to each question.

    Raises:
        Inestimable: `no_groups`, `no_judgments`.

    """
    groups = profile_groups_with_sizes(answers)
    rows = [profile_group_row(answers, options, *group) for group in groups[:MAX_GROUP_ROWS]]
    notes = [
        *notes_on_reading_as_kind(
            answers, "points" if can_read_answers_as_points(answers) else answers.value_kind, options.classes
        )
    ]
    if len(groups) > MAX_GROUP_ROWS:
        notes.append(omitted_groups_note(f"Only the first {MAX_GROUP_ROWS} of {len(groups):,} answers are shown."))
    return ResultTable(GROUP_COLUMNS, rows, tuple(notes))


def omitted_groups_note(text: str) -> Note:
    """Return the note that there are more groups than the table shows."""
    return Note("most_groups", text)


def profile_groups_with_sizes(answers: Answers) -> list[tuple[str, str, int]]:
    """Return question, answer and the number of annotators who gave it.

    Raises:
        Inestimable: `no_groups`, `no_judgments`.

    """
    refuse_without_answers(answers)
    groups = list_profile_groups_with_sizes_largest_first(answers.profile_answers)
    if not groups:
        raise Inestimable("No annotator has answered a profile question.", code="no_groups")
    return groups


def can_read_answers_as_points(answers: Answers) -> bool:
    return can_read_answers_as("points", answers.value_kind)


def profile_group_row(
    answers: Answers, options: Options, question: str, answer: str, annotator_count: int
) -> tuple[Cell, ...]:
    """Return the figures of a group alone, and compared with annotators who gave another answer."""
    group_answers = answers_of_group_or_refuse(answers, f"{question}={answer}")
    measures = [
        one
        for one in (*AGREEMENT_MEASURES, *PREFERENCE_AGREEMENT_MEASURES)
        if one.name in ALPHA_MEASURE_NAMES and can_read_answers_as(one.reads, answers.value_kind)
    ]
    alpha = estimate_agreement_or_inestimable(
        measures[0],
        agreement_data_for_kind(measures[0].reads, group_answers, options.classes),
        group_answers,
    )
    is_missing = isinstance(alpha, Inestimable)
    figures = (np.nan,) * 3 if isinstance(alpha, Inestimable) else (alpha.value, alpha.low, alpha.high)
    mean, correlation = np.nan, np.nan
    if can_read_answers_as_points(answers):
        mean, correlation = (
            float(group_answers.score.mean()),
            correlation_with_annotators_of_other_answers(answers, group_answers, question, answer),
        )
    reason = str(alpha) if is_missing else None
    return question, answer, annotator_count, len(group_answers.item), *to_cells((mean, *figures, correlation)), reason


def correlation_with_annotators_of_other_answers(
    answers: Answers, group_answers: Answers, question: str, answer: str
) -> float:
    """Return Pearson's correlation of the group's item means with the means of annotators who gave another answer.

    NaN if too few items have both means, or either side does not vary.
    """
    question_answers = answers.profile_answers[question]
    if all(given in (None, answer) for given in question_answers):
        return float("nan")
    x, y = (
        item_mean_scores(group_answers),
        item_mean_scores(answers_of_group_or_refuse(answers, f"{question}!={answer}")),
    )
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both], y[both]
    if len(x) < MIN_SHARED_ITEMS_OF_GROUPS or min(np.ptp(x), np.ptp(y)) < 1e-9:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def item_mean_scores(answers: Answers) -> Array:
    """Return the mean score of each item in points, (N,); NaN for items without scores."""
    counts = answers.judgment_counts
    return sum_values_of_each_number(answers.item, answers.score, answers.n_items) / np.where(
        counts > 0, counts, np.nan
    )


def build_group_item_table(answers: Answers, _options: Options) -> ResultTable:
    """Return one row for each judged item, with a mean and a count for each group.

    Raises:
        Inestimable: `no_groups`, `no_judgments`.

    """
    groups = profile_groups_with_sizes(answers)
    shown_groups = [group for group in groups if group[2] >= MIN_ANNOTATORS_PER_GROUP][:MAX_GROUP_COLUMNS]
    if not shown_groups:
        words = f"No answer was given by {MIN_ANNOTATORS_PER_GROUP} annotators or more, so there is nothing to compare."
        raise Inestimable(words, code="no_groups")
    judged = np.flatnonzero(answers.has_judgments)
    item_numbers = judged.tolist()
    heads, columns = [], []
    for question, answer, _ in shown_groups:
        group_answers, title = (
            answers_of_group_or_refuse(answers, f"{question}={answer}"),
            f"{question.replace('_', ' ')} {shorten_echo(answer)}",
        )
        heads += [
            Column(f"mean_{question}_{answer}", f"{title}: mean"),
            Column(f"judgments_{question}_{answer}", f"{title}: judgments", "count"),
        ]
        columns += [item_mean_scores(group_answers)[judged], group_answers.judgment_counts[judged]]
    names = [answers.ids[item] for item in item_numbers], [answers.shown[item] for item in item_numbers]
    notes = [*notes_on_reading_as_kind(answers, "points")]
    if len(shown_groups) < len(groups):
        notes.append(omitted_groups_note(describe_shown_groups(shown_groups)))
    return ResultTable((*GROUP_ITEM_COLUMNS, *heads), columns_to_cell_rows(*names, *columns), tuple(notes))


GROUP_ITEM_COLUMNS = (Column("id", "Item", "text"), Column("text", "Text", "text"))


def describe_shown_groups(groups: Sequence[tuple[str, str, int]]) -> str:
    group_names = ", ".join(f"{question}: {answer}" for question, answer, _ in groups)
    return (
        f"The columns show the first answers that at least {MIN_ANNOTATORS_PER_GROUP} annotators gave: {group_names}."
    )


GROUP_TABLE = TableMethod(
    GROUPS_SECTION,
    "Groups",
    "Groups of annotators by their answers to entry questions: agreement within each group, with the 95 % interval "
    "over items, and the correlation of its item means with those of the other annotators. Groups may have judged "
    "different items, so their means can differ for that reason alone.",
    build_profile_group_table,
    reads=("points", "classes", "order"),
    options=("classes",),
    needs_groups=True,
    shows_annotators=True,
    dot_plot=DotPlotColumn("value", COEFFICIENT_AXIS),
)

GROUP_ITEM_TABLE = TableMethod(
    GROUPS_SECTION,
    "Items by group",
    "Every judged item, with the mean score of each group and its number of judgments. Means of few judgments differ "
    "by chance, so a difference is not necessarily a disagreement.",
    build_group_item_table,
    needs_groups=True,
    shows_annotators=True,
    per_item=True,
)
