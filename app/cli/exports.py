"""`easel export`: write a campaign's results."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.analysis_options import classes_option, criterion_option
from app.cli.run_command import (
    current_utc_time,
    output_option,
    run_with_engine,
    write_chunks_to_file_or_print,
)
from app.exports.everything import EVERYTHING
from app.exports.registry import export_names

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.text.table_formats import ExportFormat


async def write_everything(slug: str, output: Path | None, engine: AsyncEngine, *, with_platform_ids: bool) -> None:
    """Write the zip with everything to the file, or print it if there is none."""
    from app.exports.everything import open_everything_or_refuse

    file = await open_everything_or_refuse(engine, slug, now=current_utc_time(), with_platform_ids=with_platform_ids)
    await write_chunks_to_file_or_print(file.chunks, output)


SPREADSHEET_HELP = (
    "Put an apostrophe before CSV cells that spreadsheet programs would change, such as 001, 1e5 or =1+1."
)
FORMAT_HELP = "Default: json for settings, csv for everything else."


@click.command()
@click.argument("slug")
@click.argument("what", type=click.Choice([*export_names(), EVERYTHING]))
@click.option("--format", "format_", type=click.Choice(["csv", "jsonl", "json"]), help=FORMAT_HELP)
@click.option("--spreadsheet", is_flag=True, help=SPREADSHEET_HELP)
@classes_option
@criterion_option
@click.option(
    "--assignments", is_flag=True, help="With everything: include the assignments, which have the platform's ids."
)
@output_option
def export(
    slug: str,
    what: str,
    format_: ExportFormat | None,
    classes: int,
    output: Path | None,
    *,
    criterion: str,
    spreadsheet: bool,
    assignments: bool,
) -> None:
    """Write an export of a campaign: items with posteriors, responses in long form, items shown but not answered,
    assignments, settings, a file for the EASL program, scores by every method, or labels of items or judgments with
    their confidence; or everything, as a zip with a codebook.
    """
    from app.analysis.result_types import Options
    from app.exports.registry import open_export_or_refuse as export_of

    if what == EVERYTHING:
        if format_:
            raise click.UsageError("Everything comes as a zip, without --format.")
        run_with_engine(partial(write_everything, slug, output, with_platform_ids=assignments))
        return
    if format_ and (format_ == "json") != (what == "settings"):
        raise click.UsageError("Settings come with --format json, everything else with --format csv or jsonl.")

    async def work(engine: AsyncEngine) -> None:
        export_options: dict[str, Any] = {
            "spreadsheet": spreadsheet,
            "options": Options(classes),
            "criterion": criterion,
        }
        file = await export_of(engine, slug, what, format_ or "csv", **export_options)
        await write_chunks_to_file_or_print(file.chunks, output)

    run_with_engine(work)
