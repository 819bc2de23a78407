"""Scores as tables: of one method, of two side by side, of all."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from app.analysis.findings import Answers, Cell, Column, Comparison, ResultTable, Scores, Values, rows_of
from app.inference.ground.notes import Note

ITEM = (Column("id", "Id", "text"), Column("text", "Item", "text"), Column("judgments", "Judgments", "count"))


def one_table(answers: Answers, scores: Scores) -> ResultTable:
    """One row per item: its score, interval and standard error."""
    names = (("score", "Score"), ("low", "Low (95 %)"), ("high", "High (95 %)"), ("standard_error", "Standard error"))
    columns = (*ITEM, *(Column(*name) for name in names))
    return ResultTable(columns, rows_of(*item_columns(answers), *with_interval(scores), error_of(scores)), scores.notes)


def two_table(answers: Answers, compared: Comparison, one: str, other: str) -> ResultTable:
    """One row per item: score and interval by both methods, which have these titles."""
    columns = (*ITEM, *interval_columns("one", one), *interval_columns("other", other))
    values = (*with_interval(compared.one), *with_interval(compared.other))
    notes = tuple(dict.fromkeys((*compared.notes, *compared.one.notes, *compared.other.notes)))
    return ResultTable(columns, rows_of(*item_columns(answers), *values), notes)


def wide_table(answers: Answers, found: Mapping[str, Scores | None], notes: tuple[Note, ...]) -> ResultTable:
    """One row per item: score and interval by each of these methods."""
    return ResultTable(wide_columns(found), wide_rows(answers, found, 0, answers.n_items), notes)


def wide_columns(methods: Iterable[str]) -> tuple[Column, ...]:
    """The columns of `wide_rows`; the item's text is called as in the other exports."""
    return (
        ITEM[0],
        Column("shown", "Item", "text"),
        ITEM[2],
        *(column for name in methods for column in interval_columns(name, name)),
    )


def wide_rows(answers: Answers, found: Mapping[str, Scores | None], start: int, stop: int) -> list[tuple[Cell, ...]]:
    """Items start to stop - 1: score and interval by each method, None for a method that could not score any."""
    items = (values[start:stop] for values in item_columns(answers))
    nothing = (np.full(answers.n_items, np.nan),) * 3
    scores = (with_interval(scores) if scores else nothing for scores in found.values())
    return rows_of(*items, *(values[start:stop] for three in scores for values in three))


def item_columns(answers: Answers) -> tuple[Sequence[str] | Values, ...]:
    return answers.ids, answers.shown, answers.judgments


def interval_columns(name: str, title: str) -> tuple[Column, ...]:
    low, high = Column(f"{name}_low", f"{title}, low (95 %)"), Column(f"{name}_high", f"{title}, high (95 %)")
    return Column(name, title), low, high


def with_interval(scores: Scores) -> tuple[Values, Values, Values]:
    """Score, low and high; NaN where the method has no interval."""
    nothing = np.full(len(scores.values), np.nan)
    low, high = (nothing if end is None else end for end in (scores.low, scores.high))
    return scores.values, low, high


def error_of(scores: Scores) -> Values:
    return np.full(len(scores.values), np.nan) if scores.standard_error is None else scores.standard_error
