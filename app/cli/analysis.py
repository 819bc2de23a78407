"""`easel analyse`: scores by any method, two of them side by side, agreement, annotators, labels."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis import graded
from app.analysis.findings import Answers, Cell, Column, Figure, Options, Table
from app.analysis.fits import Fits
from app.analysis.formats import csv_lines
from app.analysis.methods import SCORES, TABLES
from app.analysis.score_tables import one_table, two_table, wide_table
from app.analysis.view import decimals, written
from app.cli.results import classes_option, into_file, printed
from app.cli.running import on_engine

WIDEST = 48  # of a cell of text in a table for people, in characters


def on_offer(answers: Answers) -> Table:
    """What there is to ask for, without tables of systems where no item names one."""
    columns = (
        Column("option", "Option", "text"),
        Column("name", "Name", "text"),
        Column("title", "What it is", "sentence"),
    )
    has_systems = graded.has_system_and_segment(answers).any()
    tables = {name: table for name, table in TABLES.items() if has_systems or table.section != "graded_response"}
    rows: list[tuple[Cell, ...]] = [
        *(("--method", name, f"{method.title}. {method.assumes}") for name, method in SCORES.items()),
        *(("--table", name, f"{table.title}. {table.explanation}") for name, table in tables.items()),
    ]
    return Table(columns, rows)


@dataclass(frozen=True)
class Finding:
    """A table, lines above it for people, and the same for programs."""

    table: Table
    head: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Question:
    """What is asked of which campaign."""

    engine: AsyncEngine
    slug: str
    fits: Fits = field(default_factory=Fits)

    async def answered(self, names: Sequence[str], against: str | None, table: str | None, options: Options) -> Finding:
        """By the first of these that is given: table, against, names."""
        if table:
            found = await self.fits.table(self.engine, self.slug, table, options)
            return Finding(found, [TABLES[table].title, TABLES[table].explanation])
        if against:
            return await self.compared(names[0], against)
        if len(names) == 1:
            answers, scores = await self.fits.scores(self.engine, self.slug, names[0])
            return Finding(one_table(answers, scores), head_of(names[0]))
        if names:
            answers, some, notes = await self.fits.some_scores(self.engine, self.slug, names)
            return Finding(wide_table(answers, some, notes), [line for name in names for line in head_of(name)])
        return Finding(on_offer(await self.fits.answers(self.engine, self.slug)))

    async def compared(self, one: str, other: str) -> Finding:
        """Two methods side by side."""
        answers, found = await self.fits.compare(self.engine, self.slug, one, other)
        figures = [asdict(figure) for figure in found.figures]
        more = {"one": one, "other": other, "n": found.n, "figures": figures, "refusal": found.refusal}
        titles = SCORES[one].title, SCORES[other].title
        first = f"{titles[0]} and {titles[1]}: {found.n:,} items have a score by both."
        lines = [first, *map(in_a_line, found.figures), *([found.refusal] if found.refusal else [])]
        return Finding(two_table(answers, found, *titles), lines, more)


def head_of(name: str) -> list[str]:
    """What a method is, in a line."""
    method = SCORES[name]
    return [f"{method.title} ({method.unit}). {method.assumes}"]


def in_a_line(figure: Figure) -> str:
    interval = f" ({in_digits(figure.low, 3)} to {in_digits(figure.high, 3)})" if figure.low is not None else ""
    return f"{figure.title}: {in_digits(figure.value, 3)}{interval}"


# A finding as text


def as_table(found: Finding) -> Iterator[str]:
    """For people: aligned columns, numbers rounded as on the page, long sentences and notes below."""
    columns = found.table.columns
    shown = [k for k, column in enumerate(columns) if column.kind != "sentence"]
    places = places_of(found.table)
    rows = [[in_short(row[k], places(row, k)) for k in shown] for row in found.table.rows]
    titles = [columns[k].title for k in shown]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    right = [columns[k].kind != "text" for k in shown]
    yield from (f"{line}\n" for line in (*found.head, *([""] if found.head else [])))
    for row in (titles, *rows):
        cells = zip(row, widths, right, strict=True)
        yield "  ".join(cell.rjust(width) if number else cell.ljust(width) for cell, width, number in cells).rstrip()
        yield "\n"
    notes = [*sentences(found.table), *found.table.notes]
    yield from (f"{line}\n" for line in (*([""] if notes else []), *notes))


def sentences(table: Table) -> Iterator[str]:
    """What the rows say in sentences, each after its row's title."""
    long = [k for k, column in enumerate(table.columns) if column.kind == "sentence"]
    for row in table.rows if long else ():
        said = " ".join(str(row[k]) for k in long if row[k])
        yield f"{row[1]}: {said}"


def as_csv(found: Finding) -> Iterator[str]:
    """The table alone, with all digits."""
    names = [column.name for column in found.table.columns]
    yield csv_lines(names, [names, *found.table.rows])


def as_json(found: Finding) -> Iterator[str]:
    """Everything; rows by the columns' names."""
    names = [column.name for column in found.table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in found.table.rows]
    columns = [asdict(column) for column in found.table.columns]
    value = found.more | {"columns": columns, "rows": rows, "notes": found.table.notes}
    yield json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def places_of(table: Table) -> Callable[[tuple[Cell, ...], int], int]:
    """The decimals of a row's cell in column k: those of its column, or its own in a table of measures."""
    if table.columns[0].name == "measure":
        return lambda row, k: decimals([row[k]])
    columns = [decimals([row[k] for row in table.rows]) for k in range(len(table.columns))]
    return lambda _row, k: columns[k]


def in_short(cell: Cell, places: int) -> str:
    if isinstance(cell, float):
        return in_digits(cell, places)
    words = " ".join(("-" if cell is None or cell == "" else str(cell)).split())
    return words if len(words) <= WIDEST else words[: WIDEST - 1] + "…"


def in_digits(value: float | None, places: int) -> str:
    """As on the page, but with a minus sign that programs can read."""
    return "-" if value is None else written(value, places).replace("−", "-")


SHAPES: dict[str, Callable[[Finding], Iterator[str]]] = {"table": as_table, "csv": as_csv, "json": as_json}


async def pieces(found: Finding, shape: str) -> AsyncIterator[str]:
    for piece in SHAPES[shape](found):
        yield piece


METHOD_HELP = "Scores of the items by this method; again for more of them."
AGAINST_HELP = "Compare the scores of one --method with those of this."
BASELINE_HELP = "Of graded_response: the system that others are compared with. Default: the one judged most."


@click.command()
@click.argument("slug")
@click.option("--method", "names", type=click.Choice([*SCORES]), multiple=True, help=METHOD_HELP)
@click.option("--against", type=click.Choice([*SCORES]), help=AGAINST_HELP)
@click.option("--table", type=click.Choice([*TABLES]), help="One of the tables.")
@classes_option
@click.option("--baseline", help=BASELINE_HELP)
@click.option("--format", "shape", type=click.Choice([*SHAPES]), default="table", show_default=True)
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="File to write; default: stdout.")
def analyse(slug: str, classes: int, baseline: str | None, shape: str, out: Path | None, **asked: Any) -> None:
    """Estimate scores, agreement, how good annotators are. Without --method and --table: what there is to ask for.

    A table for people has rounded numbers and its notes below; CSV has all digits, and its notes go to stderr.
    """
    if (asked["table"] and (asked["names"] or asked["against"])) or (asked["against"] and len(asked["names"]) != 1):
        raise click.UsageError("Give --table, or --method as often as you like, or one --method with --against.")

    async def work(engine: AsyncEngine) -> None:
        found = await Question(engine, slug).answered(**asked, options=Options(classes, baseline))
        text = pieces(found, shape)
        await (into_file(text, out) if out else printed(text))
        for note in found.table.notes if shape == "csv" else ():
            click.echo(note, err=True)

    on_engine(work)
