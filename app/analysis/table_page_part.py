"""Tables of the analysis on the page: rows as text, and the main figure as a dot on a line."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.chart_axes import (
    Axis,
    axis_around_intervals,
    finite_interval_ends_or_values,
    percents_of_interval_ends_or_none,
)
from app.analysis.fit_cache import FitCache
from app.analysis.label_columns import LabelFigureFormatter, LabelFigures
from app.analysis.method_types import DotPlotColumn, TableMethod, TableSection
from app.analysis.methods import TABLE_METHODS
from app.analysis.result_types import Cell, Column, ColumnKind, Options, ResultTable
from app.analysis.scatter import Scatter, cells_to_array
from app.analysis.view import (
    ROWS_PER_ANALYSIS_PAGE,
    AnalysisView,
    column_values,
    constant_count_texts,
    decimals_for_values,
    finite_number_or_none,
    format_interval,
    format_table_cell,
    names_of_figure_columns_without_figures,
    searched_and_sorted_table_page,
)
from app.errors import Conflict
from app.http.paging import Page
from app.inference.ground.notes import Note

PROGRAM_COLUMNS = {"measure": "title", "id": "text", "annotator": "name"}  # columns that repeat another one for people
GROUP_HEADING_COLUMNS = {"group"}
INTERVAL_END_COLUMNS = ("low", "high")


@dataclass(frozen=True)
class DotPlot:
    """Drawing of a column.

    Attributes:
        name: Name of the column.
        axis: Axis of rows that have no other.
        axes_by_measure: Other axes by the name of the measure; None for rows that are not drawn.

    """

    name: str
    axis: Axis
    has_intervals: bool
    axes_by_measure: Mapping[str, Axis | None]

    def axis_of_measure_or_none(self, measure: Cell) -> Axis | None:
        """Return the axis of a row; None if it is not drawn."""
        return self.axes_by_measure.get(measure, self.axis) if isinstance(measure, str) else self.axis


@dataclass(frozen=True)
class FormattedCell:
    name: str
    kind: ColumnKind
    words: str
    shade: int | None = None
    figures_by_label: tuple[LabelFigures, ...] = ()


@dataclass(frozen=True)
class FormattedRow:
    """A row as the page shows it.

    Attributes:
        sentence: Explanation of the row.
        item: Id of the item, if the row is one.
        missing: Whether the row should have a figure and has none.
        at: Position of the figure.
        ends: Positions of the ends of its interval.
        between: The interval as text.
        group: Heading above the row, if it is the first of its group.

    """

    cells: list[FormattedCell]
    sentence: str
    item: str
    missing: bool
    axis: Axis | None
    at: float | None
    ends: tuple[float, float] | None
    between: str
    group: str = ""


@dataclass(frozen=True)
class TablePart:
    """A page of a table, or the reason why there is none.

    `constant_count_texts` names figures that are equal in every row, and `picture` draws all rows.
    """

    name: str
    method: TableMethod
    view: AnalysisView
    table: ResultTable | None = None
    refusal: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[FormattedRow, ...] = ()
    page: Page[Any] | None = None
    line: DotPlot | None = None
    constant_counts: str = ""
    notes: tuple[Note, ...] = ()
    picture: Scatter | None = None

    @property
    def has_sentences(self) -> bool:
        """Whether rows have sentences under their names; such tables keep their own order."""
        return any(row.sentence for row in self.rows)

    @property
    def has_one_axis(self) -> bool:
        """Whether all rows use the axis of the column, so that its head can show the ticks."""
        return self.line is not None and {row.axis for row in self.rows} <= {self.line.axis, None}

    @property
    def cell_count(self) -> int:
        """Number of cells in a row: a drawn figure has a picture, and an interval if it has one."""
        return len(self.columns) + (0 if self.line is None else 1 + self.line.has_intervals)

    @property
    def is_long(self) -> bool:
        return self.table is not None and len(self.table.rows) > ROWS_PER_ANALYSIS_PAGE


async def load_tables_template_context(
    fits: FitCache,
    engine: AsyncEngine,
    slug: str,
    view: AnalysisView,
    *,
    section: TableSection,
    table_names: Collection[str],
) -> dict[str, Any]:
    """Return the template context of a section: its tables that the campaign supports, or why there are none."""
    available = await fits.load_available_methods(engine, slug, criterion=view.criterion)
    reached_names = [name for name in available.sections.get(section, ()) if name in table_names]
    parts = await load_table_parts_without_repeated_notes(fits, engine, slug, reached_names or table_names, view)
    return {
        "tables": parts,
        "systems": baseline_choices_of_tables(parts),
        "asks": available.options_not_fixed_by_design(section),
    }


def baseline_choices_of_tables(parts: Sequence[TablePart]) -> list[Cell]:
    """Return the systems that have a row in a table, from which to choose the baseline."""
    tables = [part.table for part in parts if part.table and part.table.columns[0].name == "system"]
    return column_values(tables[0], "system") if tables else []


async def load_table_parts_without_repeated_notes(
    fits: FitCache, engine: AsyncEngine, slug: str, names: Iterable[str], view: AnalysisView
) -> list[TablePart]:
    """Return all these tables; one that cannot be estimated does not hide the others, and no note is repeated.

    If all are missing for the same reason, the first states it for all.
    """
    parts: list[TablePart] = []
    for name in names:
        part = await load_table_part_or_refuse(fits, engine, slug, name, view)
        earlier_notes = {note for earlier in parts for note in (*earlier.notes, earlier.refusal)}
        parts.append(replace(part, notes=tuple(note for note in part.notes if note not in earlier_notes)))
    has_one_refusal = len({part.refusal for part in parts}) == 1 and parts[0].refusal
    return parts[:1] if has_one_refusal else parts


async def load_table_part_or_refuse(
    fits: FitCache, engine: AsyncEngine, slug: str, name: str, view: AnalysisView
) -> TablePart:
    """Return one table.

    Raises:
        NotFound: `table_not_found`.

    """
    try:
        options = Options(view.classes, view.baseline or None)
        table = await fits.load_cached_or_fit_table(engine, slug, name, options, **view.answer_filter_query_fields)
    except Conflict as reason:
        return TablePart(name, TABLE_METHODS[name], view.view_of_table_or_its_start(name), refusal=reason.message)
    return await asyncio.to_thread(
        build_table_part, name, TABLE_METHODS[name], table, view.view_of_table_or_its_start(name)
    )


def build_table_part(name: str, method: TableMethod, table: ResultTable, view: AnalysisView) -> TablePart:
    page = searched_and_sorted_table_page(table, view)
    dot_plot = dot_plot_of_table_or_none(method.dot_plot, table)
    counts_by_column = constant_count_texts(table)
    omitted_columns = (
        names_of_columns_without_own_cell(table)
        | set(counts_by_column)
        | (names_of_figure_columns_without_figures(table) - {dot_plot.name if dot_plot else ""})
    )
    columns = tuple(column for column in table.columns if column.name not in omitted_columns)
    formatter, folded_names = None, set[str]()
    if method.folded_columns and (folded_names := method.folded_columns.replaced_names(table)):
        formatter = LabelFigureFormatter.of_table(method.folded_columns, table)
        columns = (*(column for column in columns if column.name not in folded_names), method.folded_columns.column)
    decimals_by_column = {
        column.name: decimals_for_values(column_values(table, column.name)) for column in table.columns
    }
    groups = group_names_blanked_after_first_row(
        [dict(zip(decimals_by_column, row, strict=True)).get("group") for row in page.rows]
    )
    rows = tuple(
        replace(
            row_with_cell_of_labels(
                format_table_row(table, row, dot_plot, decimals_by_column, omitted_columns | folded_names),
                dict(zip(decimals_by_column, row, strict=True)),
                formatter,
            ),
            group=group,
        )
        for row, group in zip(page.rows, groups, strict=True)
    )
    if method.shade_of_cell:
        rows = tuple(row_with_shaded_cells(row, method.shade_of_cell) for row in rows)
    picture = method.draw_picture(table) if method.draw_picture else None
    return TablePart(
        name,
        method,
        view,
        table,
        "",
        columns,
        rows,
        page,
        dot_plot,
        ", ".join(counts_by_column.values()),
        table.notes,
        picture,
    )


def row_with_cell_of_labels(
    row: FormattedRow, cells: Mapping[str, Cell], formatter: LabelFigureFormatter | None
) -> FormattedRow:
    """Return the row with one more cell, which has the figures of all labels; the same row without a formatter."""
    if formatter is None:
        return row
    column = formatter.folded.column
    cell = FormattedCell(
        column.name,
        column.kind,
        formatter.summary_of_row(cells),
        figures_by_label=formatter.figures_of_row(cells),
    )
    return replace(row, cells=[*row.cells, cell])


def row_with_shaded_cells(row: FormattedRow, shade_of_cell: Callable[[Cell], int | None]) -> FormattedRow:
    """Return the row of a matrix with the shades of its cells; the first one is the row's name."""
    name, *cells = row.cells
    return replace(row, cells=[name, *(replace(cell, shade=shade_of_cell(cell.words)) for cell in cells)])


def group_names_blanked_after_first_row(groups: Sequence[Cell]) -> list[str]:
    """Return the name of a group on its first row, and "" on its other rows."""
    return [str(group) if group and group != before else "" for before, group in pairwise([None, *groups])]


def names_of_columns_without_own_cell(table: ResultTable) -> set[str]:
    """Return columns that the page shows elsewhere in the row: ends of intervals and sentences."""
    names = {column.name for column in table.columns}
    for_programs = {name for name, beside in PROGRAM_COLUMNS.items() if beside in names}
    sentences = {column.name for column in table.columns if column.kind == "sentence"}
    return for_programs | sentences | GROUP_HEADING_COLUMNS | (set(INTERVAL_END_COLUMNS) & names)


def dot_plot_of_table_or_none(plot_column: DotPlotColumn | None, table: ResultTable) -> DotPlot | None:
    if plot_column is None or not table.rows:
        return None
    intervals = set(INTERVAL_END_COLUMNS) <= {column.name for column in table.columns}
    values = cells_to_array(column_values(table, plot_column.column))
    ends = [cells_to_array(column_values(table, end)) if intervals else None for end in INTERVAL_END_COLUMNS]
    axis = plot_column.axis or axis_around_intervals(
        "", values, *(finite_interval_ends_or_values(values, end) for end in ends)
    )
    return DotPlot(plot_column.column, axis, intervals, plot_column.axes_by_measure)


def format_table_row(
    table: ResultTable,
    row: tuple[Cell, ...],
    dot_plot: DotPlot | None,
    decimals_by_column: dict[str, int],
    omitted_columns: set[str],
) -> FormattedRow:
    cells = {column.name: cell for column, cell in zip(table.columns, row, strict=True)}
    if "measure" in cells:  # each row is a quantity of its own
        decimals_by_column = {name: decimals_for_values([cell]) for name, cell in cells.items()}
    formatted_cells = [
        FormattedCell(
            column.name,
            column.kind,
            format_table_cell(column, cells[column.name], decimals_by_column[column.name]),
        )
        for column in table.columns
    ]
    return FormattedRow(
        [cell for cell in formatted_cells if cell.name not in omitted_columns],
        " ".join(cell.words for cell in formatted_cells if cell.kind == "sentence"),
        str(cells["id"]) if "text" in cells else "",
        dot_plot is not None and cells[dot_plot.name] is None,
        *row_axis_and_positions_and_interval_text(cells, dot_plot, decimals_by_column),
    )


def row_axis_and_positions_and_interval_text(
    cells: dict[str, Cell], dot_plot: DotPlot | None, decimals_by_column: dict[str, int]
) -> Any:
    """Return the row's axis, the positions of its figure and interval on it, and the interval as text."""
    if dot_plot is None or (axis := dot_plot.axis_of_measure_or_none(cells.get("measure"))) is None:
        return None, None, None, ""
    value, low, high = (finite_number_or_none(cells.get(name)) for name in (dot_plot.name, *INTERVAL_END_COLUMNS))
    at = None if value is None else axis.percent_of(value)
    return (
        axis,
        at,
        percents_of_interval_ends_or_none(axis, low, high),
        format_interval(low, high, decimals_by_column[dot_plot.name]),
    )
