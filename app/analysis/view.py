"""What someone looks at on the analysis page: its address, and tables sorted, searched and cut into pages."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode

import numpy as np
import numpy.typing as npt

from app.analysis.findings import Cell, Column, ResultTable
from app.analysis.naming import in_order
from app.designs.criteria import number_of
from app.drawing import NOTHING, written

ROWS = 20


@dataclass(frozen=True)
class AnalysisView:
    """All of it stands in the page's address. one, other: methods of scores; classes: of labels; baseline: a system;
    criterion: the name of one, the first if empty; group: of annotators, all if empty.

    table, sort, order, page and search are of one table; every other one is shown from its start, in its own order.
    """

    one: str = ""
    other: str = ""
    classes: int = 2
    baseline: str = ""
    criterion: str = ""
    group: str = ""
    table: str = ""
    sort: str = ""
    order: Literal["up", "down"] = "down"
    page: int = 1
    search: str = ""

    @property
    def reads(self) -> dict[str, str]:
        """Which answers it is made from."""
        return {"criterion": self.criterion, "group": self.group}

    def query(self, **changes: Any) -> str:
        """The address of this view with some parts changed; what is as usual is left out."""
        parts = {field.name: changes.get(field.name, getattr(self, field.name)) for field in fields(self)}
        return "?" + urlencode({name: value for name, value in parts.items() if value != usual_of(name)})

    def hidden(self, *asked: str) -> list[tuple[str, Any]]:
        """The fields that a form keeps beside those it asks for."""
        changes = {"search": "", "page": 1} | {name: usual_of(name) for name in asked}
        return parse_qsl(self.query(**changes)[1:])

    def kept(self) -> list[tuple[str, Any]]:
        """The fields that a form keeps that asks for a page."""
        return parse_qsl(self.query(page=1)[1:])

    def of(self, table: str) -> "AnalysisView":
        """The same view if it is of that table, else the start of that table."""
        if self.table == table:
            return self
        return AnalysisView(self.one, self.other, self.classes, self.baseline, self.criterion, self.group, table)

    def sorted_by(self, column: Column) -> str:
        """The address after a press on a column's head: sort by it, or turn the order around."""
        order = "up" if column.kind == "text" else "down"
        if column.name == self.sort:
            order = "up" if self.order == "down" else "down"
        return self.query(sort=column.name, order=order, page=1)


def criterion_in_address(campaign: Any) -> dict[str, str]:
    """What an address says of the criterion by which a campaign is read: nothing of the first."""
    return {"criterion": campaign.criterion_name} if number_of(campaign) else {}


def usual_of(name: str) -> Any:
    """What a part of the address is when it is left out."""
    return next(field.default for field in fields(AnalysisView) if field.name == name)


@dataclass(frozen=True)
class ShownRows:
    """The rows of a table that are shown. first: the place of the first of them, from 1; found: how many there are."""

    view: AnalysisView
    rows: list[Any]
    first: int
    found: int

    @property
    def number(self) -> int:
        """Which page it is, from 1."""
        return self.first // ROWS + 1

    @property
    def pages(self) -> int:
        return max(1, -(-self.found // ROWS))


def cut(view: AnalysisView, order: Sequence[int] | npt.NDArray[np.intp], row: Callable[[int], Any]) -> ShownRows:
    """The rows of a page, given the order of all; a page beyond the last one is the first."""
    start = (view.page - 1) * ROWS
    start = start if start < len(order) else 0
    return ShownRows(view, [row(int(i)) for i in order[start : start + ROWS]], start + 1, len(order))


def page_of(table: ResultTable, view: AnalysisView) -> ShownRows:
    """A table's rows as the view has them; without a column to sort by, in their own order."""
    order = [i for i, row in enumerate(table.rows) if found(table.columns, row, view.search)]
    place = {column.name: i for i, column in enumerate(table.columns)}.get(view.sort)
    if place is not None:
        order.sort(key=lambda i: sort_key(table.rows[i][place]), reverse=view.order == "down")
        order.sort(key=lambda i: table.rows[i][place] is None)  # whichever way: what there is comes first
    return cut(view, order, table.rows.__getitem__)


def found(columns: Sequence[Column], row: Sequence[Cell], words: str) -> bool:
    """Whether a text of the row contains the words."""
    texts = (str(cell) for column, cell in zip(columns, row, strict=True) if column.kind == "text")
    return not words or any(words.casefold() in text.casefold() for text in texts)


def sort_key(cell: Cell) -> tuple[float, str]:
    return in_order(cell) if isinstance(cell, str) else (float(cell or 0), "")


# Figures in words


def decimals(values: Sequence[Any] | npt.NDArray[np.float64]) -> int:
    """How many decimals a column needs, so that its largest number has about three digits; none for whole numbers."""
    numbers = [abs(value) for value in values if isinstance(value, int | float) and math.isfinite(value)]
    largest = max(numbers, default=0.0)
    if largest >= 2 and all(value == int(value) for value in numbers):
        return 0
    return 1 if largest >= 20 else 2 if largest >= 2 else 3


def between(low: float | None, high: float | None, places: int) -> str:
    """An interval's ends."""
    nothing = low is None or high is None or not math.isfinite(low + high)
    return NOTHING if nothing else f"{written(low, places)} to {written(high, places)}"


# Tables in words

SAID_ONCE = ("items", "annotators", "pairs")


def column_of(table: ResultTable, name: str) -> list[Cell]:
    place = [column.name for column in table.columns].index(name)
    return [row[place] for row in table.rows]


def empty(table: ResultTable) -> set[str]:
    """Columns without any figure; the notes say why."""
    figures = [column.name for column in table.columns if column.kind in ("count", "number")]
    return {name for name in figures if set(column_of(table, name)) == {None}}


def same_counts(table: ResultTable) -> dict[str, str]:
    """Of a table of measures what they all rest on, in words, if that is the same in every row."""
    columns = {column.name: column for column in table.columns}
    if "measure" not in columns or len(table.rows) < 2:
        return {}
    values = {name: set(column_of(table, name)) for name in SAID_ONCE if name in columns}
    return {
        name: f"{in_words(columns[name], next(iter(cells)), 0)} {columns[name].title.lower()}"
        for name, cells in values.items()
        if len(cells) == 1 and None not in cells
    }


def figure(cell: Cell) -> float | None:
    return float(cell) if isinstance(cell, int | float) and np.isfinite(cell) else None


def in_words(column: Column, cell: Cell, places: int) -> str:
    if isinstance(cell, str):
        return cell
    if cell is None and column.kind == "sentence":
        return ""
    return written(figure(cell), 0 if column.kind == "count" else places)
