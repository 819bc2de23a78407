"""`easel analyse`: scores by any method, two of them side by side, agreement, annotators, labels."""

import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis.findings import Cell, Column, Figure, Options, ResultTable
from app.analysis.fits import Fits
from app.analysis.formats import csv_lines
from app.analysis.methods import SCORES, TABLES
from app.analysis.offer import offered
from app.analysis.score_tables import one_table, two_table, wide_table
from app.analysis.view import decimals, empty, same_counts
from app.cli.layout import aligned, paragraphs, shortened, terminal_width, wrapped
from app.cli.results import classes_option, criterion_option
from app.cli.running import on_engine, output_option, put_out
from app.database.campaign import campaign_by_slug
from app.designs.criteria import named
from app.drawing import written

SAID_ELSEWHERE = {"sentence", "notes", "group"}
WIDEST = 48  # of a cell of text in a table for people, in characters


async def on_offer(connection: AsyncConnection, campaign: Any) -> ResultTable:
    """What there is to ask for: what the campaign's answers and columns reach."""
    offer = await offered(connection, campaign)
    columns = (
        Column("option", "Option", "text"),
        Column("name", "Name", "text"),
        Column("title", "What it is", "sentence"),
    )
    rows: list[tuple[Cell, ...]] = [
        *(("--method", name, f"{method.title}. {method.assumes}") for name, method in offer.scores.items()),
        *(("--table", name, f"{table.title}. {table.explanation}") for name, table in offer.tables.items()),
    ]
    return ResultTable(columns, rows)


@dataclass(frozen=True)
class Finding:
    """A table, lines above it for people, and the same for programs."""

    table: ResultTable
    head: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Inquiry:
    """What is asked of which campaign, by which of its criteria, the first if it is empty, and of which annotators."""

    engine: AsyncEngine
    slug: str
    criterion: str = ""
    group: str = ""
    fits: Fits = field(default_factory=Fits)

    async def answered(self, names: Sequence[str], against: str | None, table: str | None, options: Options) -> Finding:
        """By the first of these that is given: table, against, names."""
        of = {"criterion": self.criterion, "group": self.group}
        if table:
            found = await self.fits.table(self.engine, self.slug, table, options, **of)
            return Finding(found, [TABLES[table].title, TABLES[table].explanation])
        if against:
            return await self.compared(names[0], against)
        if len(names) == 1:
            answers, scores = await self.fits.scores(self.engine, self.slug, names[0], **of)
            return Finding(one_table(answers, scores), head_of(names[0]))
        if names:
            answers, some, notes = await self.fits.some_scores(self.engine, self.slug, names, **of)
            return Finding(wide_table(answers, some, notes), [line for name in names for line in head_of(name)])
        async with self.engine.connect() as connection:
            campaign = named(await campaign_by_slug(connection, self.slug), self.criterion)
            return Finding(await on_offer(connection, campaign))

    async def compared(self, one: str, other: str) -> Finding:
        """Two methods side by side."""
        answers, found = await self.fits.compare(
            self.engine, self.slug, one, other, criterion=self.criterion, group=self.group
        )
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


def as_table(found: Finding, width: int, *, explained: bool = False) -> Iterator[str]:
    """For people: what is found in a sentence, aligned columns, numbers rounded as on the page, and notes below."""
    head = [*found.head, *([found.table.verdict] if found.table.verdict else [])]
    alike = ", ".join(same_counts(found.table).values())
    blocks = [
        [*paragraphs(head, width)],
        [*(figures(found.table, width) if has_figures(found.table) else definitions(found.table, width))],
        [*paragraphs(sentences(found.table, explained=explained), width)],
        [*paragraphs(([f"Every row: {alike}."] if alike else []) + [*found.table.notes], width)],
    ]
    yield "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def has_figures(table: ResultTable) -> bool:
    return any(column.kind in ("count", "number") for column in table.columns)


def definitions(table: ResultTable, width: int) -> Iterator[str]:
    """A table without figures as a list: what each row is called, and below it what it is."""
    for *names, words in table.rows:
        yield " ".join(map(str, names))
        yield from wrapped(str(words), width, "    ")


def figures(table: ResultTable, width: int) -> Iterator[str]:
    """The columns that people read and that tell rows apart, and the rows of a group under its name."""
    names = [column.name for column in table.columns]
    left_out = SAID_ELSEWHERE | ({"measure"} if "title" in names else set()) | same_counts(table).keys() | empty(table)
    columns = [k for k, name in enumerate(names) if name not in left_out]
    places = places_of(table)
    rows, group = [], None
    for row in table.rows:
        cells = [in_short(row[k], places(row, k)) for k in columns]
        if "group" in names:
            if group != (group := row[names.index("group")]):
                rows.append([str(group), *("" for _ in columns[1:])])
            cells[0] = f"  {cells[0]}"
        rows.append(cells)
    right = {place for place, k in enumerate(columns) if table.columns[k].kind != "text"}
    return aligned([table.columns[k].title for k in columns], rows, right=right, width=width)


def sentences(table: ResultTable, *, explained: bool) -> Iterator[str]:
    """Why a row has no figure, what was left out of it and, if it is to be explained, what it tells."""
    names = [column.name for column in table.columns]
    if "sentence" not in names:
        return
    for row in table.rows:
        cell = dict(zip(names, row, strict=True))
        said = [cell["sentence"] if explained or cell["value"] is None else None, cell.get("notes")]
        if any(said):
            yield f"{cell['title']}: {' '.join(str(words) for words in said if words)}"


def as_csv(found: Finding) -> Iterator[str]:
    """The table alone, with all digits."""
    names = [column.name for column in found.table.columns]
    yield csv_lines(names, [names, *found.table.rows])


def as_json(found: Finding) -> Iterator[str]:
    """Everything; rows by the columns' names."""
    names = [column.name for column in found.table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in found.table.rows]
    columns = [asdict(column) for column in found.table.columns]
    verdict = {"verdict": found.table.verdict} if found.table.verdict else {}
    value = found.more | verdict | {"columns": columns, "rows": rows, "notes": found.table.notes}
    yield json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def places_of(table: ResultTable) -> Callable[[tuple[Cell, ...], int], int]:
    """The decimals of a row's cell in column k: those of its column, or its own in a table of measures."""
    if table.columns[0].name == "measure":
        return lambda row, k: decimals([row[k]])
    columns = [decimals([row[k] for row in table.rows]) for k in range(len(table.columns))]
    return lambda _row, k: columns[k]


def in_short(cell: Cell, places: int) -> str:
    if isinstance(cell, int | float):
        return in_digits(float(cell), places)
    words = " ".join(("-" if cell is None or cell == "" else str(cell)).split())
    return shortened(words, WIDEST)


def in_digits(value: float | None, places: int) -> str:
    """As on the page, but with a minus sign that programs can read."""
    return "-" if value is None else written(value, places).replace("−", "-")


SHAPES = ("table", "csv", "json")


def in_shape(found: Finding, shape: str, *, explained: bool) -> Iterator[str]:
    if shape == "table":
        return as_table(found, terminal_width(), explained=explained)
    return as_csv(found) if shape == "csv" else as_json(found)


async def pieces(text: Iterator[str]) -> AsyncIterator[str]:
    for piece in text:
        yield piece


METHOD_HELP = "Scores of the items by this method; again for more of them."
AGAINST_HELP = "Compare the scores of one --method with those of this."
BASELINE_HELP = (
    f"Of {next(name for name, table in TABLES.items() if 'baseline' in table.options)}: the system that others are "
    "compared with. Default: the one judged most."
)
GROUP_HELP = (
    "Only annotators who gave an answer to a question that was asked once, as QUESTION=ANSWER, or another one, as "
    "QUESTION!=ANSWER."
)
EXPLAIN_HELP = "Also say what each figure of a table for people can and cannot tell."


@click.command()
@click.argument("slug")
@click.option("--method", "names", type=click.Choice([*SCORES]), multiple=True, help=METHOD_HELP)
@click.option("--against", type=click.Choice([*SCORES]), help=AGAINST_HELP)
@click.option("--table", type=click.Choice([*TABLES]), help="One of the tables.")
@classes_option
@click.option("--baseline", help=BASELINE_HELP)
@criterion_option
@click.option("--group", default="", help=GROUP_HELP)
@click.option("--explain", is_flag=True, help=EXPLAIN_HELP)
@click.option("--format", "shape", type=click.Choice(SHAPES), default="table", show_default=True)
@output_option
def analyse(
    slug: str,
    classes: int,
    baseline: str | None,
    shape: str,
    output: Path | None,
    *,
    criterion: str,
    group: str,
    explain: bool,
    **asked: Any,
) -> None:
    """Estimate scores, agreement, how good annotators are. Without --method and --table: what there is to ask for.

    A table for people has rounded numbers and its notes below; CSV has all digits, and its notes go to stderr.
    """
    if (asked["table"] and (asked["names"] or asked["against"])) or (asked["against"] and len(asked["names"]) != 1):
        raise click.UsageError("Give --table, or --method as often as you like, or one --method with --against.")

    async def work(engine: AsyncEngine) -> None:
        found = await Inquiry(engine, slug, criterion, group).answered(**asked, options=Options(classes, baseline))
        await put_out(pieces(in_shape(found, shape, explained=explain)), output)
        for note in found.table.notes if shape == "csv" else ():
            click.echo(note, err=True)

    on_engine(work)
