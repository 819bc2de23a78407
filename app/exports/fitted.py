"""Exports that need a fit: the scores of every method, and those that tables of the analysis declare."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial

from app.analysis.answer_kinds import refuse_unreadable_answers
from app.analysis.method_types import LazyTable, MethodExport, ScoreMethod
from app.analysis.methods import ALL_SCORES_EXPORT, SCORE_METHODS, TABLE_METHODS, iterate_exports_with_table_names
from app.analysis.result_types import Answers, Options
from app.analysis.score_tables import all_scores_column_definitions, rows_of_all_scores_table
from app.analysis.scores import refuse_without_answers
from app.exports.adjudicated_labels import judgments_with_final_labels, table_with_final_labels
from app.exports.export_types import ExportRequest
from app.quality.adjudications import drop_items_after, load_adjudicated_label_by_item
from app.text.table_formats import RowCells, TableStream

FITTED_ROWS_PER_BATCH = 1_000
EXPORT_COLUMN_NAMES = {"text": "shown"}  # columns that go by another name there


def fitted_export_opener_by_name() -> Mapping[str, Callable[[ExportRequest], Awaitable[TableStream]]]:
    """Return the functions that open exports that need a fit, by name."""
    return {ALL_SCORES_EXPORT.name: open_all_methods_scores_table} | {
        one.name: partial(open_fitted_table_stream, table_name=table, export=one)
        for table, one in iterate_exports_with_table_names(TABLE_METHODS)
    }


async def open_all_methods_scores_table(request: ExportRequest) -> TableStream:
    """Export one row per item, three columns per method: score and 95 % interval, empty if the method has none."""
    methods = (
        await request.fits.load_available_methods(request.engine, request.slug, criterion=request.criterion)
    ).scores
    require_fit = partial(refuse_unscorable_or_missing_answers, methods)
    await request.fits.load_answers_and_fit(
        request.engine, request.slug, "answered", require_fit, criterion=request.criterion
    )

    async def chunks() -> AsyncIterator[list[RowCells]]:
        answers, found, _ = await request.fits.load_answers_scores_by_method_and_notes(
            request.engine, request.slug, methods, criterion=request.criterion
        )
        for start in range(0, answers.n_items, FITTED_ROWS_PER_BATCH):
            yield [*rows_of_all_scores_table(answers, found, start, start + FITTED_ROWS_PER_BATCH)]

    return TableStream([column.name for column in all_scores_column_definitions(methods)], chunks())


def refuse_unscorable_or_missing_answers(methods: Mapping[str, ScoreMethod], answers: Answers) -> None:
    """Refuse if no method can score these answers.

    Raises:
        Inestimable: `method_reads_other_answers`, `no_judgments`.

    """
    if not methods:
        refuse_unreadable_answers(ALL_SCORES_EXPORT.title, [method.reads for method in SCORE_METHODS.values()], answers)
    refuse_without_answers(answers)


async def open_fitted_table_stream(request: ExportRequest, table_name: str, export: MethodExport) -> TableStream:
    """Export the rows that the export declares, else those of its table."""
    lazy_table = await (
        load_answers_and_fit_export_table(request, table_name, export.name, export.fit)
        if export.fit
        else load_answers_and_fit_method_table(request, table_name)
    )

    if export.has_final_labels and request.campaign.has_item_labels:
        add_labels = table_with_final_labels if "id" in lazy_table.columns else judgments_with_final_labels
        lazy_table = add_labels(lazy_table, await load_adjudicated_label_by_item_id(request))

    async def chunks() -> AsyncIterator[list[RowCells]]:
        for start in range(0, lazy_table.row_count, FITTED_ROWS_PER_BATCH):
            yield [*lazy_table.make_rows(start, start + FITTED_ROWS_PER_BATCH)]

    return TableStream([EXPORT_COLUMN_NAMES.get(name, name) for name in lazy_table.columns], chunks())


async def load_adjudicated_label_by_item_id(request: ExportRequest) -> dict[str, str]:
    """Return the labels that researchers chose by the chosen criterion, by the item's id."""
    answers = await request.fits.load_answers(request.engine, request.slug, criterion=request.criterion)
    async with request.engine.connect() as connection:
        label_by_number = await load_adjudicated_label_by_item(connection, request.chosen)
    return {answers.ids[number]: label for number, label in drop_items_after(label_by_number, answers.n_items).items()}


async def load_answers_and_fit_export_table(
    request: ExportRequest, table_name: str, cache_name: str, fit: Callable[[Answers, Options], LazyTable]
) -> LazyTable:
    method = TABLE_METHODS[table_name]
    relevant_options = method.relevant_options(request.options)

    def rows(answers: Answers) -> LazyTable:
        refuse_unreadable_answers(method.title, method.reads, answers, as_given=method.needs_order)
        return fit(answers, relevant_options)

    return (
        await request.fits.load_answers_and_fit(
            request.engine, request.slug, ("export", cache_name, relevant_options), rows, criterion=request.criterion
        )
    )[1]


async def load_answers_and_fit_method_table(request: ExportRequest, table_name: str) -> LazyTable:
    result_table = await request.fits.load_cached_or_fit_table(
        request.engine, request.slug, table_name, request.options, criterion=request.criterion
    )
    names = [column.name for column in result_table.columns]
    return LazyTable(names, len(result_table.rows), lambda start, stop: result_table.rows[start:stop])
