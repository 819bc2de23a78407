"""Exports that need a fit: the scores of every method, and those that tables of the analysis name."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.coarsened import refuse_other_answers
from app.analysis.contracts import LongTable, MethodExport, ScoreMethod
from app.analysis.findings import Answers, Options
from app.analysis.fits import Fits
from app.analysis.formats import Cells, TableFile
from app.analysis.methods import ALL_SCORES, SCORES, TABLES, exports_of
from app.analysis.score_tables import wide_columns, wide_rows
from app.analysis.scores import require_answers

ROWS_AT_ONCE = 1_000
IN_EXPORTS = {"text": "shown"}  # columns that go by another name there


@dataclass(frozen=True)
class Fitting:
    """What a fit is made of: whose answers, by which criterion, and what was chosen."""

    fits: Fits
    engine: AsyncEngine
    slug: str
    options: Options
    criterion: str = ""


def fitted() -> Mapping[str, Callable[[Fitting], Awaitable[TableFile]]]:
    """What makes each of them, by name."""
    return {ALL_SCORES.name: scores_table} | {
        one.name: partial(table_export, table=table, export=one) for table, one in exports_of(TABLES)
    }


async def scores_table(of: Fitting) -> TableFile:
    """One row per item, three columns per method: score and 95 % interval, empty where a method has none."""
    methods = (await of.fits.offer(of.engine, of.slug, criterion=of.criterion)).scores
    require = partial(require_scores, methods)
    await of.fits.made(of.engine, of.slug, "answered", require, criterion=of.criterion)

    async def chunks() -> AsyncIterator[list[Cells]]:
        answers, found, _ = await of.fits.some_scores(of.engine, of.slug, methods, criterion=of.criterion)
        for start in range(0, answers.n_items, ROWS_AT_ONCE):
            yield [*wide_rows(answers, found, start, start + ROWS_AT_ONCE)]

    return TableFile([column.name for column in wide_columns(methods)], chunks())


def require_scores(methods: Mapping[str, ScoreMethod], answers: Answers) -> None:
    """Raises `Inestimable` (`method_reads_other_answers`, `no_judgments`) unless there may be some."""
    if not methods:
        refuse_other_answers(ALL_SCORES.title, [method.reads for method in SCORES.values()], answers)
    require_answers(answers)


async def table_export(of: Fitting, table: str, export: MethodExport) -> TableFile:
    """The rows that the export has of its own, else those of its table."""
    rows = await (of_its_own(of, table, export.name, export.fit) if export.fit else of_table(of, table))

    async def chunks() -> AsyncIterator[list[Cells]]:
        for start in range(0, rows.count, ROWS_AT_ONCE):
            yield [*rows.rows(start, start + ROWS_AT_ONCE)]

    return TableFile([IN_EXPORTS.get(name, name) for name in rows.columns], chunks())


async def of_its_own(of: Fitting, table: str, name: str, fit: Callable[[Answers, Options], LongTable]) -> LongTable:
    method = TABLES[table]
    chosen = method.chosen(of.options)

    def rows(answers: Answers) -> LongTable:
        refuse_other_answers(method.title, method.reads, answers)
        return fit(answers, chosen)

    return (await of.fits.made(of.engine, of.slug, ("export", name, chosen), rows, criterion=of.criterion))[1]


async def of_table(of: Fitting, table: str) -> LongTable:
    found = await of.fits.table(of.engine, of.slug, table, of.options, criterion=of.criterion)
    names = [column.name for column in found.columns]
    return LongTable(names, len(found.rows), lambda start, stop: found.rows[start:stop])
