"""Exports that need a fit: the scores of every method, and those that tables of the analysis name."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.contracts import LongTable, MethodExport
from app.analysis.findings import Answers, Options
from app.analysis.fits import Fits
from app.analysis.formats import Cells, TableFile
from app.analysis.methods import SCORES, TABLES, exports
from app.analysis.score_tables import wide_columns, wide_rows
from app.analysis.scores import require_answers

ROWS_AT_ONCE = 1_000
IN_EXPORTS = {"text": "shown"}  # columns that go by another name there

ALL_SCORES = MethodExport(
    "scores",
    "Scores",
    "Every item with its score and 95 % interval by every method of analysis. Large campaigns take minutes.",
)


@dataclass(frozen=True)
class Fitting:
    """What a fit is made of: whose answers, and what was chosen."""

    fits: Fits
    engine: AsyncEngine
    slug: str
    options: Options


def offered() -> list[MethodExport]:
    """All of them, in the order in which they are offered."""
    return [ALL_SCORES, *(one for _, one in exports())]


def fitted() -> Mapping[str, Callable[[Fitting], Awaitable[TableFile]]]:
    """What makes each of them, by name."""
    return {ALL_SCORES.name: scores_table} | {
        one.name: partial(table_export, table=table, export=one) for table, one in exports()
    }


async def scores_table(of: Fitting) -> TableFile:
    """One row per item, three columns per method: score and 95 % interval, empty where a method has none."""
    await of.fits.made(of.engine, of.slug, "answered", require_answers)

    async def chunks() -> AsyncIterator[list[Cells]]:
        answers, found, _ = await of.fits.some_scores(of.engine, of.slug, SCORES)
        for start in range(0, answers.n_items, ROWS_AT_ONCE):
            yield [*wide_rows(answers, found, start, start + ROWS_AT_ONCE)]

    return TableFile([column.name for column in wide_columns(SCORES)], chunks())


async def table_export(of: Fitting, table: str, export: MethodExport) -> TableFile:
    """The rows that the export has of its own, else those of its table."""
    rows = await (of_its_own(of, table, export.name, export.fit) if export.fit else of_table(of, table))

    async def chunks() -> AsyncIterator[list[Cells]]:
        for start in range(0, rows.count, ROWS_AT_ONCE):
            yield [*rows.rows(start, start + ROWS_AT_ONCE)]

    return TableFile([IN_EXPORTS.get(name, name) for name in rows.columns], chunks())


async def of_its_own(of: Fitting, table: str, name: str, fit: Callable[[Answers, Options], LongTable]) -> LongTable:
    chosen = TABLES[table].chosen(of.options)
    return (await of.fits.made(of.engine, of.slug, ("export", name, chosen), lambda answers: fit(answers, chosen)))[1]


async def of_table(of: Fitting, table: str) -> LongTable:
    found = await of.fits.table(of.engine, of.slug, table, of.options)
    names = [column.name for column in found.columns]
    return LongTable(names, len(found.rows), lambda start, stop: found.rows[start:stop])
