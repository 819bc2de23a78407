"""A table of the analysis as the page shows it: its rows in words, and its main figure as a dot on a line."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Cell, Column, Kind, Options, ResultTable
from app.analysis.fits import Fits
from app.analysis.methods import TABLES
from app.analysis.scatter import Scatter, numbers
from app.analysis.view import (
    ROWS,
    AnalysisView,
    ShownRows,
    between,
    column_of,
    decimals,
    empty,
    figure,
    in_words,
    page_of,
    same_counts,
)
from app.drawing import Axis, around, interval, known_ends
from app.errors import Conflict
from app.inference.ground.notes import Note

FOR_PROGRAMS = {
    "measure": "title",
    "id": "text",
    "annotator": "name",
}  # columns that people need not see beside another one
HEADS_OF_GROUPS = {"group"}
ENDS = ("low", "high")


@dataclass(frozen=True)
class DrawnColumn:
    """What is drawn, on which axis unless a row has another, and whether there are intervals. apart: measures by name
    that have another axis, or None.
    """

    name: str
    axis: Axis
    intervals: bool
    apart: Mapping[str, Axis | None]

    def axis_of(self, measure: Cell) -> Axis | None:
        """The axis of a row; None if it is not drawn."""
        return self.apart.get(measure, self.axis) if isinstance(measure, str) else self.axis


@dataclass(frozen=True)
class CellInWords:
    name: str
    kind: Kind
    words: str


@dataclass(frozen=True)
class Row:
    """sentence: what the row tells, for who asks. item: its id, if the row is one. group: what it stands under, if the
    row is the first of it. missing: it should have a figure and has none. axis, at, ends, between: of what is drawn.
    """

    cells: list[CellInWords]
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
    """A page of a table, or why there is none. alike: figures that are the same in every row. picture: of all rows."""

    name: str
    method: TableMethod
    view: AnalysisView
    table: ResultTable | None = None
    refusal: str = ""
    columns: tuple[Column, ...] = ()
    rows: tuple[Row, ...] = ()
    page: ShownRows | None = None
    line: DrawnColumn | None = None
    alike: str = ""
    notes: tuple[Note, ...] = ()
    picture: Scatter | None = None

    @property
    def explained(self) -> bool:
        """Whether rows have sentences under their names; they stand in an order of their own."""
        return any(row.sentence for row in self.rows)

    @property
    def one_axis(self) -> bool:
        """Whether all rows are drawn on the axis of the column, so that its head can have the ticks."""
        return self.line is not None and {row.axis for row in self.rows} <= {self.line.axis, None}

    @property
    def width(self) -> int:
        """How many cells a row has: of a figure that is drawn there is a picture, and an interval if it has one."""
        return len(self.columns) + (0 if self.line is None else 1 + self.line.intervals)

    @property
    def long(self) -> bool:
        return self.table is not None and len(self.table.rows) > ROWS


async def content(
    fits: Fits, engine: AsyncEngine, slug: str, view: AnalysisView, *, section: TableSection, tables: Collection[str]
) -> dict[str, Any]:
    """What the template of a section needs: those of its `tables` that the campaign reaches, or why there are none."""
    offer = await fits.offer(engine, slug, criterion=view.criterion)
    reached = [name for name in offer.sections.get(section, ()) if name in tables]
    shown = await tables_of(fits, engine, slug, reached or tables, view)
    return {"tables": shown, "systems": systems_among(shown), "asks": offer.asked(section)}


def systems_among(parts: Sequence[TablePart]) -> list[Cell]:
    """The systems that a table has a row for, of which one can be chosen as the baseline."""
    tables = [part.table for part in parts if part.table and part.table.columns[0].name == "system"]
    return column_of(tables[0], "system") if tables else []


async def tables_of(
    fits: Fits, engine: AsyncEngine, slug: str, names: Iterable[str], view: AnalysisView
) -> list[TablePart]:
    """All these tables; one that cannot be estimated does not hide the others, and no note is said twice.

    Where all are missing for the same reason, the first says it for all.
    """
    parts: list[TablePart] = []
    for name in names:
        part = await table_part(fits, engine, slug, name, view)
        said = {note for earlier in parts for note in (*earlier.notes, earlier.refusal)}
        parts.append(replace(part, notes=tuple(note for note in part.notes if note not in said)))
    same = len({part.refusal for part in parts}) == 1 and parts[0].refusal
    return parts[:1] if same else parts


async def table_part(fits: Fits, engine: AsyncEngine, slug: str, name: str, view: AnalysisView) -> TablePart:
    """Raises `NotFound` (`table_not_found`)."""
    try:
        options = Options(view.classes, view.baseline or None)
        table = await fits.table(engine, slug, name, options, **view.reads)
    except Conflict as reason:
        return TablePart(name, TABLES[name], view.of(name), refusal=reason.message)
    return await asyncio.to_thread(composed, name, TABLES[name], table, view.of(name))


def composed(name: str, method: TableMethod, table: ResultTable, view: AnalysisView) -> TablePart:
    page = page_of(table, view)
    line = line_of(method.drawn, table)
    alike = same_counts(table)
    beside = hidden(table) | set(alike) | (empty(table) - {line.name if line else ""})
    columns = tuple(column for column in table.columns if column.name not in beside)
    places = {column.name: decimals(column_of(table, column.name)) for column in table.columns}
    groups = beginnings([dict(zip(places, row, strict=True)).get("group") for row in page.rows])
    rows = tuple(
        replace(row_in_words(table, row, line, places, beside), group=group)
        for row, group in zip(page.rows, groups, strict=True)
    )
    picture = method.picture(table) if method.picture else None
    return TablePart(
        name, method, view, table, "", columns, rows, page, line, ", ".join(alike.values()), table.notes, picture
    )


def beginnings(groups: Sequence[Cell]) -> list[str]:
    """The name of a group where it begins, "" on its other rows."""
    return [str(group) if group and group != before else "" for before, group in pairwise([None, *groups])]


def hidden(table: ResultTable) -> set[str]:
    """Columns that are no columns on the page: ends of intervals and sentences stand elsewhere in the row."""
    names = {column.name for column in table.columns}
    for_programs = {name for name, beside in FOR_PROGRAMS.items() if beside in names}
    sentences = {column.name for column in table.columns if column.kind == "sentence"}
    return for_programs | sentences | HEADS_OF_GROUPS | (set(ENDS) & names)


def line_of(drawn: Drawn | None, table: ResultTable) -> DrawnColumn | None:
    if drawn is None or not table.rows:
        return None
    intervals = set(ENDS) <= {one.name for one in table.columns}
    values = numbers(column_of(table, drawn.column))
    ends = [numbers(column_of(table, end)) if intervals else None for end in ENDS]
    axis = drawn.axis or around("", values, *(known_ends(values, one) for one in ends))
    return DrawnColumn(drawn.column, axis, intervals, drawn.measures)


def row_in_words(
    table: ResultTable, row: tuple[Cell, ...], line: DrawnColumn | None, places: dict[str, int], beside: set[str]
) -> Row:
    cells = {column.name: cell for column, cell in zip(table.columns, row, strict=True)}
    if "measure" in cells:  # each row is a quantity of its own
        places = {name: decimals([cell]) for name, cell in cells.items()}
    words = [
        CellInWords(column.name, column.kind, in_words(column, cells[column.name], places[column.name]))
        for column in table.columns
    ]
    return Row(
        [cell for cell in words if cell.name not in beside],
        " ".join(cell.words for cell in words if cell.kind == "sentence"),
        str(cells["id"]) if "text" in cells else "",
        line is not None and cells[line.name] is None,
        *drawn_of(cells, line, places),
    )


def drawn_of(cells: dict[str, Cell], line: DrawnColumn | None, places: dict[str, int]) -> Any:
    """The row's axis, where its figure and the ends of its interval stand there, and the interval in words."""
    if line is None or (axis := line.axis_of(cells.get("measure"))) is None:
        return None, None, None, ""
    value, low, high = (figure(cells.get(name)) for name in (line.name, *ENDS))
    at = None if value is None else axis.at(value)
    return axis, at, interval(axis, low, high), between(low, high, places[line.name])
