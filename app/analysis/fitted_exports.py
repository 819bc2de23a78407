"""Exports that need a fit: the scores of every method, and Dawid and Skene's labels with their confidence."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.findings import Answers, Cell, Options, rows_of
from app.analysis.fits import Fits
from app.analysis.formats import Cells, TableFile
from app.analysis.labels import Labelled, label_names, labelled
from app.analysis.methods import SCORES
from app.analysis.score_tables import wide_columns, wide_rows

ROWS_AT_ONCE = 1_000
IN_EXPORTS = {"text": "shown"}  # columns that go by another name there


@dataclass(frozen=True)
class Fitting:
    """What a fit is made of: whose answers, and what was chosen."""

    fits: Fits
    engine: AsyncEngine
    slug: str
    options: Options


async def scores_table(of: Fitting) -> TableFile:
    """One row per item, three columns per method: score and 95 % interval, empty where a method has none."""
    await of.fits.scores(of.engine, of.slug, "mean")  # raises what forbids any score

    async def chunks() -> AsyncIterator[list[Cells]]:
        answers, found, _ = await of.fits.some_scores(of.engine, of.slug, SCORES)
        for start in range(0, answers.n_items, ROWS_AT_ONCE):
            yield [*wide_rows(answers, found, start, start + ROWS_AT_ONCE)]

    return TableFile([column.name for column in wide_columns(SCORES)], chunks())


async def item_labels_table(of: Fitting) -> TableFile:
    """One row per item: its most probable label, the confidence in it, and how probable each label is."""
    table = await of.fits.table(of.engine, of.slug, "label_items", of.options)

    async def chunks() -> AsyncIterator[list[Cells]]:
        for start in range(0, len(table.rows), ROWS_AT_ONCE):
            yield [*table.rows[start : start + ROWS_AT_ONCE]]

    return TableFile([IN_EXPORTS.get(column.name, column.name) for column in table.columns], chunks())


LABEL_COLUMNS = (
    *("seq", "annotator", "name", "item", "score", "label", "confidence", "item_label", "item_confidence"),
)


async def labels_table(of: Fitting) -> TableFile:
    """One row per judgment: its label, how probable it is that it is right, and the item's most probable label."""
    what = ("labelled", of.options.classes)
    answers, found = await of.fits.made(of.engine, of.slug, what, partial(labelled, classes=of.options.classes))
    names = label_names(of.options.classes)

    async def chunks() -> AsyncIterator[list[Cells]]:
        for start in range(0, len(answers.item), ROWS_AT_ONCE):
            yield [*label_rows(answers, found, names, slice(start, start + ROWS_AT_ONCE))]

    return TableFile(LABEL_COLUMNS, chunks())


def label_rows(answers: Answers, found: Labelled, names: Sequence[str], some: slice) -> list[tuple[Cell, ...]]:
    """Some judgments as `LABEL_COLUMNS`."""
    item, annotator = answers.item[some], answers.annotator[some].tolist()
    return rows_of(
        answers.seq[answers.hit[some]],
        [answers.annotators[k] for k in annotator],
        [answers.names[k] for k in annotator],
        [answers.ids[k] for k in item.tolist()],
        answers.score[some],
        [names[k] for k in found.labels[some].tolist()],
        found.confidence[some],
        [names[k] if k >= 0 else None for k in found.item_labels[item].tolist()],
        found.item_confidence[item],
    )


FITTED: dict[str, Callable[[Fitting], Awaitable[TableFile]]] = {
    "scores": scores_table,
    "labels": labels_table,
    "item_labels": item_labels_table,
}
