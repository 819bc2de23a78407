"""`easel analyse`: scores by any method, two of them side by side, agreement, annotators, labels."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.analysis.fit_cache import FitCache
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.cli.analysis_options import classes_option, criterion_option
from app.cli.run_command import output_option, run_with_engine, write_chunks_to_file_or_print
from app.cli.text_table import (
    iterate_text_table_lines,
    iterate_wrapped_lines_of_sentences,
    shorten_cell_text,
    terminal_width,
    wrap_text_into_lines,
)
from app.text.numbers import format_with_places

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.analysis.result_types import Cell, Figure, Options, ResultTable
    from app.designs.campaign import Campaign
    from app.designs.criteria import Criterion

COLUMNS_SHOWN_ELSEWHERE = {"sentence", "notes", "group"}
MAX_CELL_CHARACTERS = 48  # of a cell of text in a table for people, in characters


async def load_result_table_of_available_methods(
    connection: AsyncConnection, criterion: Criterion[Campaign]
) -> ResultTable:
    """Return the methods and tables that the campaign's answers and columns support."""
    from app.analysis.available_methods import load_available_methods
    from app.analysis.result_types import Column, ResultTable

    available = await load_available_methods(connection, criterion)
    columns = (
        Column("option", "Option", "text"),
        Column("name", "Name", "text"),
        Column("title", "What it is", "sentence"),
    )
    rows: list[tuple[Cell, ...]] = [
        *(("--method", name, f"{method.title}. {method.assumes}") for name, method in available.scores.items()),
        *(("--table", name, f"{table.title}. {table.explanation}") for name, table in available.tables.items()),
    ]
    return ResultTable(columns, rows)


@dataclass(frozen=True)
class AnalysisOutput:
    """A table, lines above it for people, and the same for programs."""

    table: ResultTable
    heading_lines: list[str] = field(default_factory=list)
    extra_json: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnalysisQuery:
    """Request for an analysis: campaign, criterion (the first if empty) and group of annotators (all if empty)."""

    engine: AsyncEngine
    slug: str
    criterion: str = ""
    group: str = ""
    fits: FitCache = field(default_factory=FitCache)

    async def run(
        self, names: Sequence[str], against: str | None, table: str | None, options: Options
    ) -> AnalysisOutput:
        """Return the output of the first that is given: table, against, names."""
        from app.analysis.score_tables import build_all_scores_table, build_item_score_table

        answer_filters = {"criterion": self.criterion, "group": self.group}
        if table:
            result_table = await self.fits.load_cached_or_fit_table(
                self.engine, self.slug, table, options, **answer_filters
            )
            lines = [TABLE_METHODS[table].title, TABLE_METHODS[table].explanation]
            advice = await self.load_interval_advice_lines() if TABLE_METHODS[table].needs_systems else []
            return AnalysisOutput(result_table, lines + advice)
        if against:
            return await self.compare_methods(names[0], against)
        if len(names) == 1:
            answers, scores = await self.fits.load_answers_and_fit_scores(
                self.engine, self.slug, names[0], **answer_filters
            )
            return AnalysisOutput(
                build_item_score_table(answers, scores),
                method_heading_lines(names[0]) + await self.load_interval_advice_lines(),
            )
        if names:
            answers, scores_by_method, notes = await self.fits.load_answers_scores_by_method_and_notes(
                self.engine, self.slug, names, **answer_filters
            )
            return AnalysisOutput(
                build_all_scores_table(answers, scores_by_method, notes),
                [line for name in names for line in method_heading_lines(name)]
                + await self.load_interval_advice_lines(),
            )
        async with self.engine.connect() as connection:
            criterion = await self.load_criterion_or_refuse(connection)
            return AnalysisOutput(await load_result_table_of_available_methods(connection, criterion))

    async def load_criterion_or_refuse(self, connection: AsyncConnection) -> Criterion[Campaign]:
        from app.record.campaign import load_campaign_by_slug_or_refuse

        campaign = await load_campaign_by_slug_or_refuse(connection, self.slug)
        return campaign.find_criterion_or_refuse(self.criterion)

    async def load_interval_advice_lines(self) -> list[str]:
        """Return which interval to report, in a line; none if no score has an interval."""
        from app.analysis.reported_interval import choose_reported_interval

        async with self.engine.connect() as connection:
            advice = choose_reported_interval(await self.load_criterion_or_refuse(connection)).advice
        return [advice] if advice else []

    async def compare_methods(self, method_name: str, other_method_name: str) -> AnalysisOutput:
        """Return two methods side by side."""
        from app.analysis.score_tables import build_table_of_item_scores_by_two_methods

        answers, comparison = await self.fits.compare_methods(
            self.engine, self.slug, method_name, other_method_name, criterion=self.criterion, group=self.group
        )
        figures = [asdict(figure) for figure in comparison.figures]
        extra_json = {
            "one": method_name,
            "other": other_method_name,
            "n": comparison.n,
            "figures": figures,
            "refusal": comparison.refusal,
        }
        titles = SCORE_METHODS[method_name].title, SCORE_METHODS[other_method_name].title
        first = f"{titles[0]} and {titles[1]}: {comparison.n:,} items have a score by both."
        lines = [
            first,
            *map(format_figure_line, comparison.figures),
            *([comparison.refusal] if comparison.refusal else []),
            *(await self.load_interval_advice_lines()),
        ]
        return AnalysisOutput(
            build_table_of_item_scores_by_two_methods(answers, comparison, *titles), lines, extra_json
        )


def method_heading_lines(method_name: str) -> list[str]:
    method = SCORE_METHODS[method_name]
    return [f"{method.title} ({method.unit}). {method.assumes}"]


def format_figure_line(figure: Figure) -> str:
    interval = (
        f" ({number_text_with_hyphen_as_minus(figure.low, 3)} to {number_text_with_hyphen_as_minus(figure.high, 3)})"
        if figure.low is not None
        else ""
    )
    return f"{figure.title}: {number_text_with_hyphen_as_minus(figure.value, 3)}{interval}"


# A finding as text


def iterate_text_lines_of_output(
    output: AnalysisOutput, width: int, *, has_explanations: bool = False
) -> Iterator[str]:
    """Yield text for people: verdict, aligned columns, numbers rounded as on the page, and notes."""
    from app.analysis.view import constant_count_texts

    head = [*output.heading_lines, *([output.table.verdict] if output.table.verdict else [])]
    counts_of_every_row = ", ".join(constant_count_texts(output.table).values())
    blocks = [
        [*iterate_wrapped_lines_of_sentences(head, width)],
        [
            *(
                iterate_figure_table_lines(output.table, width)
                if any(column.kind in ("count", "number") for column in output.table.columns)
                else iterate_definition_list_lines(output.table, width)
            )
        ],
        [
            *iterate_wrapped_lines_of_sentences(
                iterate_explanations_of_rows(output.table, has_explanations=has_explanations), width
            )
        ],
        [
            *iterate_wrapped_lines_of_sentences(
                ([f"Every row: {counts_of_every_row}."] if counts_of_every_row else []) + [*output.table.notes], width
            )
        ],
    ]
    yield "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def iterate_definition_list_lines(table: ResultTable, width: int) -> Iterator[str]:
    """Yield a table without figures as a list: each row's name, and its texts below. Names of methods have hyphens."""
    has_options = table.columns[0].name == "option"
    for *names, words in table.rows:
        yield " ".join(name_with_hyphens(str(name)) if has_options else str(name) for name in names)
        yield from wrap_text_into_lines(str(words), width, "    ")


def iterate_figure_table_lines(table: ResultTable, width: int) -> Iterator[str]:
    """Yield the columns that people read and that identify rows; rows of a group follow its name."""
    from app.analysis.view import constant_count_texts, names_of_figure_columns_without_figures

    names = [column.name for column in table.columns]
    omitted_columns = (
        COLUMNS_SHOWN_ELSEWHERE
        | ({"measure"} if "title" in names else set())
        | constant_count_texts(table).keys()
        | names_of_figure_columns_without_figures(table)
    )
    columns = [k for k, name in enumerate(names) if name not in omitted_columns]
    decimals_of_cell = make_decimal_count_of_cell_function(table)
    rows, group = [], None
    for row in table.rows:
        cells = [format_cell_as_short_line(row[k], decimals_of_cell(row, k)) for k in columns]
        if "group" in names:
            if group != (group := row[names.index("group")]):
                rows.append([str(group), *("" for _ in columns[1:])])
            cells[0] = f"  {cells[0]}"
        rows.append(cells)
    right = {place for place, k in enumerate(columns) if table.columns[k].kind != "text"}
    return iterate_text_table_lines([table.columns[k].title for k in columns], rows, right_columns=right, width=width)


def iterate_explanations_of_rows(table: ResultTable, *, has_explanations: bool) -> Iterator[str]:
    """Yield a line for each row that has an explanation, a missing value or notes."""
    names = [column.name for column in table.columns]
    if "sentence" not in names:
        return
    for row in table.rows:
        cell = dict(zip(names, row, strict=True))
        texts = [cell["sentence"] if has_explanations or cell["value"] is None else None, cell.get("notes")]
        if any(texts):
            yield f"{cell['title']}: {' '.join(str(words) for words in texts if words)}"


def iterate_csv_pieces_of_output(output: AnalysisOutput) -> Iterator[str]:
    """Yield only the table, with all digits."""
    from app.text.table_formats import format_csv_rows

    names = [column.name for column in output.table.columns]
    yield format_csv_rows(names, [names, *output.table.rows])


def iterate_json_pieces_of_output(output: AnalysisOutput) -> Iterator[str]:
    """Yield everything; rows by the columns' names."""
    names = [column.name for column in output.table.columns]
    rows = [dict(zip(names, row, strict=True)) for row in output.table.rows]
    columns = [asdict(column) for column in output.table.columns]
    verdict = {"verdict": output.table.verdict} if output.table.verdict else {}
    value = output.extra_json | verdict | {"columns": columns, "rows": rows, "notes": output.table.notes}
    yield json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def make_decimal_count_of_cell_function(table: ResultTable) -> Callable[[tuple[Cell, ...], int], int]:
    """Return the decimals of a row's cell in column k: those of its column, or its own in a table of measures."""
    from app.analysis.view import decimals_for_values

    if table.columns[0].name == "measure":
        return lambda row, k: decimals_for_values([row[k]])
    columns = [decimals_for_values([row[k] for row in table.rows]) for k in range(len(table.columns))]
    return lambda _row, k: columns[k]


def format_cell_as_short_line(cell: Cell, decimal_count: int) -> str:
    if isinstance(cell, int | float):
        return number_text_with_hyphen_as_minus(float(cell), decimal_count)
    words = " ".join(("-" if cell is None or cell == "" else str(cell)).split())
    return shorten_cell_text(words, MAX_CELL_CHARACTERS)


def number_text_with_hyphen_as_minus(value: float | None, decimal_count: int) -> str:
    """Return the number as on the page, but with a minus sign that programs can read."""
    return "-" if value is None else format_with_places(value, decimal_count).replace("−", "-")


ANALYSIS_OUTPUT_FORMATS = ("table", "csv", "json")


def iterate_output_pieces_in_format(
    output: AnalysisOutput, output_format: str, *, has_explanations: bool
) -> Iterator[str]:
    if output_format == "table":
        return iterate_text_lines_of_output(output, terminal_width(), has_explanations=has_explanations)
    return iterate_csv_pieces_of_output(output) if output_format == "csv" else iterate_json_pieces_of_output(output)


async def iterate_texts_async(texts: Iterator[str]) -> AsyncIterator[str]:
    for piece in texts:
        yield piece


def name_with_hyphens(name: str) -> str:
    """Return the name of a method or table as the command shows it."""
    return name.replace("_", "-")


class RegisteredName(click.Choice[str]):
    """A name of a registry, written with hyphens or underscores; shown with hyphens."""

    def __init__(self, names: Iterable[str]) -> None:
        self.name_by_shown = {name_with_hyphens(name): name for name in names}
        super().__init__([*self.name_by_shown])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the registered name."""
        return self.name_by_shown[super().convert(name_with_hyphens(value), param, ctx)]


METHOD_HELP = "Score the items by this method. Repeat the option for several methods."
AGAINST_HELP = "Compare the scores of one --method with this method."
TABLE_HELP = (
    "Table to print. Scores and intervals of `systems` come from differences within tasks, so they differ from those "
    "of --method mean."
)
BASELINE_HELP = (
    f"For --table {next(name for name, table in TABLE_METHODS.items() if 'baseline' in table.options)}: the system to "
    "compare the others with. Default: the system judged most often."
)
GROUP_HELP = (
    "Only annotators who gave this answer to a profile question (QUESTION=ANSWER), or any other answer "
    "(QUESTION!=ANSWER)."
)
EXPLAIN_HELP = "With the format `table`: also explain what each figure can and cannot show."


@click.command()
@click.argument("slug")
@click.option("--method", "names", type=RegisteredName(SCORE_METHODS), multiple=True, help=METHOD_HELP)
@click.option("--against", type=RegisteredName(SCORE_METHODS), help=AGAINST_HELP)
@click.option("--table", type=RegisteredName(TABLE_METHODS), help=TABLE_HELP)
@classes_option
@click.option("--baseline", help=BASELINE_HELP)
@criterion_option
@click.option("--group", default="", help=GROUP_HELP)
@click.option("--explain", is_flag=True, help=EXPLAIN_HELP)
@click.option("--format", "shape", type=click.Choice(ANALYSIS_OUTPUT_FORMATS), default="table", show_default=True)
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
    **selection: Any,
) -> None:
    """Estimate item scores, agreement and annotator quality. Without --method or --table, list the methods and tables.

    The format `table` rounds numbers and prints notes below the table. CSV has all digits; its notes go to stderr.
    """
    from app.analysis.result_types import Options

    if (selection["table"] and (selection["names"] or selection["against"])) or (
        selection["against"] and len(selection["names"]) != 1
    ):
        raise click.UsageError("Give --table, one or more --method, or one --method with --against.")

    async def work(engine: AsyncEngine) -> None:
        analysis_output = await AnalysisQuery(engine, slug, criterion, group).run(
            **selection, options=Options(classes, baseline)
        )
        await write_chunks_to_file_or_print(
            iterate_texts_async(iterate_output_pieces_in_format(analysis_output, shape, has_explanations=explain)),
            output,
        )
        for note in analysis_output.table.notes if shape == "csv" else ():
            click.echo(note, err=True)

    run_with_engine(work)
