"""View of the analysis page as its address states it, and tables sorted, searched and cut into pages."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field, StringConstraints

from app.analysis.result_types import MAX_CLASSES, Cell, Column, ResultTable, natural_sort_key
from app.analysis.subgroups import MAX_GROUP_CHARACTERS
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.http.paging import AddressQuery, Page, PageNumber, SearchWords
from app.text.numbers import MISSING_VALUE_DASH, format_with_places

ROWS_PER_ANALYSIS_PAGE = 20
MethodName = Annotated[str, StringConstraints(max_length=100)]


class AnalysisView(AddressQuery):
    """View of the analysis page; all fields are in its address.

    Attributes:
        one: First method of scores.
        other: Second method of scores.
        classes: Number of labels into which scores are cut.
        baseline: System with which others are compared.
        criterion: Name of a criterion, the first if empty.
        group: Group of annotators, all if empty.
        table: Table to which the following fields apply; every other table is shown from its start, in its own order.
        sort: Column to sort by.
        order: Direction of the order.
        page: Number of the page.

    """

    one: MethodName = ""
    other: MethodName = ""
    classes: int = Field(default=2, ge=2, le=MAX_CLASSES)
    baseline: str = Field(default="", max_length=1000)
    criterion: str = Field(default="", max_length=200)
    group: str = Field(default="", max_length=MAX_GROUP_CHARACTERS)
    table: MethodName = ""
    sort: str = Field(default="", max_length=MAX_GROUP_CHARACTERS + 20)
    order: Literal["up", "down"] = "down"
    page: PageNumber = 1
    search: SearchWords = ""

    @property
    def answer_filter_query_fields(self) -> dict[str, str]:
        """Return which answers the view is made from."""
        return {"criterion": self.criterion, "group": self.group}

    def hidden_form_fields(self, *form_fields: str) -> list[tuple[str, Any]]:
        """Return the fields that a form keeps in addition to those that it asks for."""
        return [(name, value) for name, value in self.query_fields(search="", page=1) if name not in form_fields]

    def view_of_table_or_its_start(self, table_name: str) -> "AnalysisView":
        """Return this view if it shows that table, else the start of that table."""
        if self.table == table_name:
            return self
        kept = self.model_dump(include={"one", "other", "classes", "baseline", "criterion", "group"})
        return AnalysisView(table=table_name, **kept)

    def url_after_click_on_column(self, column: Column) -> str:
        """Return the address after a click on a column's head: sort by it, or reverse the order."""
        order = "up" if column.kind == "text" else "down"
        if column.name == self.sort:
            order = "up" if self.order == "down" else "down"
        return self.query(sort=column.name, order=order, page=1)


def criterion_query_fields(criterion: Criterion[Campaign]) -> dict[str, str]:
    """Return the query field of the view's criterion; none for the first."""
    return {"criterion": criterion.name} if criterion.number else {}


def build_table_page_in_order(
    view: AnalysisView, order: Sequence[int] | npt.NDArray[np.intp], make_row: Callable[[int], Any]
) -> Page[Any]:
    """Return the rows of a page, given the order of all; a page beyond the last one shows the first."""
    page: Page[Any] = Page(view.page, ROWS_PER_ANALYSIS_PAGE, len(order))
    page = page if page.number == view.page else replace(page, number=1)
    return replace(page, rows=[make_row(int(i)) for i in order[page.offset : page.last_place]])


def searched_and_sorted_table_page(table: ResultTable, view: AnalysisView) -> Page[Any]:
    """Return a table's rows as the view asks; without a column to sort by, in their own order."""
    order = [i for i, row in enumerate(table.rows) if does_row_match_search(table.columns, row, view.search)]
    place = {column.name: i for i, column in enumerate(table.columns)}.get(view.sort)
    if place is not None:
        order.sort(key=lambda i: sort_key_of_table_cell(table.rows[i][place]), reverse=view.order == "down")
        order.sort(key=lambda i: table.rows[i][place] is None)  # whichever way: what there is comes first
    return build_table_page_in_order(view, order, table.rows.__getitem__)


def does_row_match_search(columns: Sequence[Column], row: Sequence[Cell], search: str) -> bool:
    texts = (str(cell) for column, cell in zip(columns, row, strict=True) if column.kind == "text")
    return not search or any(search.casefold() in text.casefold() for text in texts)


def sort_key_of_table_cell(cell: Cell) -> tuple[float, str]:
    return natural_sort_key(cell) if isinstance(cell, str) else (float(cell or 0), "")


# Figures in words


def decimals_for_values(values: Sequence[Any] | npt.NDArray[np.float64]) -> int:
    """Return how many decimals show the largest number with about three digits; none for whole numbers."""
    numbers = [abs(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    largest = max(numbers, default=0.0)
    if largest >= 2 and all(value == int(value) for value in numbers):
        return 0
    return 1 if largest >= 20 else 2 if largest >= 2 else 3


def format_interval(low: float | None, high: float | None, decimals: int) -> str:
    is_missing = low is None or high is None or not math.isfinite(low + high)
    return (
        MISSING_VALUE_DASH
        if is_missing
        else f"{format_with_places(low, decimals)} to {format_with_places(high, decimals)}"
    )


# Tables in words

COUNT_COLUMNS_SAID_ONCE = ("items", "annotators", "pairs")


def column_values(table: ResultTable, name: str) -> list[Cell]:
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row in table.rows]


def names_of_figure_columns_without_figures(table: ResultTable) -> set[str]:
    """Return columns without any figure; the notes say why."""
    figures = [column.name for column in table.columns if column.kind in ("count", "number")]
    return {name for name in figures if set(column_values(table, name)) == {None}}


def constant_count_texts(table: ResultTable) -> dict[str, str]:
    """Return the counts of a table of measures that are equal in every row, as text."""
    columns = {column.name: column for column in table.columns}
    if "measure" not in columns or len(table.rows) < 2:
        return {}
    values = {name: set(column_values(table, name)) for name in COUNT_COLUMNS_SAID_ONCE if name in columns}
    return {
        name: f"{format_table_cell(columns[name], next(iter(cells)), 0)} {columns[name].title.lower()}"
        for name, cells in values.items()
        if len(cells) == 1 and None not in cells
    }


def finite_number_or_none(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) and np.isfinite(cell) else None


def format_table_cell(column: Column, cell: Cell, decimals: int) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None and column.kind == "sentence":
        return ""
    return format_with_places(finite_number_or_none(cell), 0 if column.kind == "count" else decimals)
