"""Scores as tables: of one method, of two side by side, of all."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from app.analysis.result_types import (
    Answers,
    AnyArray,
    Cell,
    Column,
    Comparison,
    ResultTable,
    Scores,
    columns_to_cell_rows,
)
from app.inference.ground.notes import Note

SCORE_ITEM_COLUMNS = (
    Column("id", "Id", "text"),
    Column("text", "Item", "text"),
    Column("judgments", "Judgments", "count"),
)


def build_item_score_table(answers: Answers, scores: Scores) -> ResultTable:
    """Return one row per item: its score, interval and standard error."""
    names = (("score", "Score"), ("low", "Low (95 %)"), ("high", "High (95 %)"), ("standard_error", "Standard error"))
    columns = (*SCORE_ITEM_COLUMNS, *(Column(*name) for name in names))
    return ResultTable(
        columns,
        columns_to_cell_rows(
            *item_id_text_and_judgment_count_columns(answers),
            *scores_and_interval_ends(scores),
            standard_errors_or_nan(scores),
        ),
        scores.notes,
    )


def build_table_of_item_scores_by_two_methods(
    answers: Answers, comparison: Comparison, title: str, other_title: str
) -> ResultTable:
    """Return one row per item: score and interval by both methods, under their titles."""
    columns = (
        *SCORE_ITEM_COLUMNS,
        *score_interval_column_definitions("one", title),
        *score_interval_column_definitions("other", other_title),
    )
    values = (*scores_and_interval_ends(comparison.one), *scores_and_interval_ends(comparison.other))
    notes = tuple(dict.fromkeys((*comparison.notes, *comparison.one.notes, *comparison.other.notes)))
    return ResultTable(columns, columns_to_cell_rows(*item_id_text_and_judgment_count_columns(answers), *values), notes)


def build_all_scores_table(
    answers: Answers, scores_by_method: Mapping[str, Scores | None], notes: tuple[Note, ...]
) -> ResultTable:
    """Return one row per item: score and interval by each of these methods."""
    return ResultTable(
        all_scores_column_definitions(scores_by_method),
        rows_of_all_scores_table(answers, scores_by_method, 0, answers.n_items),
        notes,
    )


def all_scores_column_definitions(method_names: Iterable[str]) -> tuple[Column, ...]:
    """Return the columns of `rows_of_all_scores_table`; the item's text has the same name as in other exports."""
    return (
        SCORE_ITEM_COLUMNS[0],
        Column("shown", "Item", "text"),
        SCORE_ITEM_COLUMNS[2],
        *(column for name in method_names for column in score_interval_column_definitions(name, name)),
    )


def rows_of_all_scores_table(
    answers: Answers, scores_by_method: Mapping[str, Scores | None], start: int, stop: int
) -> list[tuple[Cell, ...]]:
    """Return items `start` to `stop` - 1: score and interval by each method, None for a method without any scores."""
    items = (values[start:stop] for values in item_id_text_and_judgment_count_columns(answers))
    missing = (np.full(answers.n_items, np.nan),) * 3
    scores = (scores_and_interval_ends(scores) if scores else missing for scores in scores_by_method.values())
    return columns_to_cell_rows(*items, *(values[start:stop] for three in scores for values in three))


def item_id_text_and_judgment_count_columns(answers: Answers) -> tuple[Sequence[str] | AnyArray, ...]:
    return answers.ids, answers.shown, answers.judgment_counts


def score_interval_column_definitions(name: str, title: str) -> tuple[Column, ...]:
    low, high = Column(f"{name}_low", f"{title}, low (95 %)"), Column(f"{name}_high", f"{title}, high (95 %)")
    return Column(name, title), low, high


def scores_and_interval_ends(scores: Scores) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return score, low and high; NaN if the method has no interval."""
    missing = np.full(len(scores.values), np.nan)
    low, high = (missing if end is None else end for end in (scores.low, scores.high))
    return scores.values, low, high


def standard_errors_or_nan(scores: Scores) -> AnyArray:
    return np.full(len(scores.values), np.nan) if scores.standard_error is None else scores.standard_error
