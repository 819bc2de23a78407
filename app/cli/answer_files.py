"""Files of answers on the command line: their options and their preview."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from app.cli.run_command import current_utc_time, run_with_engine
from app.cli.text_table import print_text_table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.imports.answer_options import AnswerFileOptions
    from app.imports.responses_preview import ResponsePreview


def with_answer_file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with an option for each field of `AnswerFileOptions`."""
    from app.imports.answer_options import AnswerFileOptions

    for name, field in reversed(AnswerFileOptions.model_fields.items()):
        choices = [choice for choice in get_args(field.annotation) if choice]
        option = click.option(
            f"--{name.replace('_', '-')}",
            type=click.Choice(choices) if choices else str,
            default=field.default or None,
            show_default=bool(field.default),
            help=field.description,
        )
        command = option(command)
    return command


def print_preview_of_responses(slug: str, file: Path, options: AnswerFileOptions) -> None:
    """Print what the first values of a file of answers would become."""
    from app.imports.responses_preview import preview_responses_of_file_or_refuse
    from app.settings import read_settings

    async def work(engine: AsyncEngine) -> ResponsePreview:
        max_mb = read_settings().max_upload_mb
        with file.open("rb") as opened:
            return await preview_responses_of_file_or_refuse(
                engine, slug, opened, file.name, now=current_utc_time(), max_mb=max_mb, options=options.reading_options
            )

    preview = run_with_engine(work)
    titles = ["Line", "Task", "Annotator", "Item", "Criterion", "In the file", "Becomes"]
    rows = [
        [str(row.line), row.hit, row.annotator, row.item_id, row.criterion, row.cell, row.value or "cannot be judged"]
        for row in preview.values
    ]
    print_text_table(titles, rows, right_columns={0})
    for sentence in preview.sentences:
        click.echo(sentence)
