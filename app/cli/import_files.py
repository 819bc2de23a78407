"""`easel campaign import` and `easel campaign import-responses`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from app.cli.answer_files import print_preview_of_responses, with_answer_file_options
from app.cli.interrupts import STOPPED_TEXT
from app.cli.run_command import current_utc_time, progress_bar_at_terminal, run_in_transaction, run_with_engine
from app.cli.settings_options import READABLE_FILE
from app.uploads.rows import ROW_NUMBERS_AS_IDS

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.background.progress_stream import ReportRowCount
    from app.imports.response_receipt import ResponseImportReceipt

encoding_option = click.option(
    "--encoding", metavar="NAME", help="Encoding of the file if it is not Unicode, such as windows-1252."
)
quotes_option = click.option(
    "--quotes",
    type=click.Choice(["cells", "text"]),
    help="Whether quotation marks enclose cells or are part of the text. Default: detected from the file.",
)
sheet_option = click.option(
    "--sheet", metavar="NAME", help="Sheet of an Excel workbook. Default: the first visible one with content."
)


@click.command("import")
@click.argument("slug")
@click.argument("file", type=READABLE_FILE)
@click.option(
    "--id",
    "identifier",
    metavar="COLUMN",
    default="id",
    show_default=True,
    help=f"Column of unique ids; '{ROW_NUMBERS_AS_IDS}' to number the rows.",
)
@click.option("--shown", metavar="COLUMN", help="Column that annotators see.")
@click.option(
    "--template",
    metavar="TEMPLATE",
    help="Instead of --shown: a text with columns in it, such as '{premise} → {hypothesis}'.",
)
@click.option("--priors", is_flag=True, help="Use the columns alpha and beta (mu and sigma2, ...) as priors.")
@click.option(
    "--ignore",
    metavar="COLUMN",
    multiple=True,
    type=click.Choice(["check", "system", "source", "reference"]),
    help="Column to keep without its special meaning: check, system, source or reference.",
)
@click.option(
    "--system",
    "systems",
    metavar="COLUMN",
    multiple=True,
    help="Column with the outputs of one system, in a table with a column for each. Repeat the option. --id then names "
    "the segments.",
)
@encoding_option
@quotes_option
@sheet_option
@click.option(
    "--read-as",
    type=click.Choice(["auto", "table", "lines"]),
    help="A table with a header, or one text per line. Default: detected; see the documentation of items.",
)
@click.option("--replace", is_flag=True, help="Replace the items of the draft; otherwise they are added.")
@click.option("--media", type=READABLE_FILE, help="Zip with the images, recordings or videos that items name.")
def import_item_file(
    slug: str,
    file: Path,
    media: Path | None,
    *,
    encoding: str | None,
    quotes: str | None,
    sheet: str | None,
    read_as: str | None,
    replace: bool,
    **column_options: Any,
) -> None:
    """Import the items of a CSV, TSV, TXT, JSON or XLSX FILE, optionally in a gzip or zip: all, or none if one is
    refused. A TXT file has one text per line. A file with the columns `system`, `segment` and `output` has outputs of
    systems.
    """
    from app.imports import items
    from app.imports.columns import ColumnMapping, id_column_or_none
    from app.media.media_zip import MediaZip
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.settings import read_settings
    from app.uploads import ReadOptions

    limits = read_settings()
    identifier, ignored = id_column_or_none(column_options.pop("identifier")), frozenset(column_options.pop("ignore"))
    systems = tuple(column_options.pop("systems"))
    with file.open("rb") as opened, import_progress_bar_by_bytes(opened) as progress, ExitStack() as stack:
        zip_ = stack.enter_context(media.open("rb")) if media else None
        packed = MediaZip(zip_, limits.max_media_file_mb, limits.max_media_mb) if zip_ else None
        result = run_in_transaction(
            partial(
                items.import_items_and_return_receipt,
                slug=slug,
                file=opened,
                name=file.name,
                mapping=ColumnMapping(identifier, ignored=ignored, systems=systems, **column_options),
                read_options=ReadOptions(encoding, quotes, sheet, read_as),
                replace=replace,
                max_mb=limits.max_upload_mb,
                media=packed,
                progress=progress,
            )
        )
    of_systems = run_in_transaction(partial(load_campaign_by_slug_or_refuse, slug=slug)).segment_count
    for sentence in result.sentences("output" if of_systems else "item"):
        click.echo(sentence)


@contextmanager
def import_progress_bar_by_bytes(file: BinaryIO) -> Iterator[ReportRowCount]:
    """Show a progress bar by bytes, since the number of rows is unknown."""
    with progress_bar_at_terminal(os.fstat(file.fileno()).st_size, "Importing") as update_bar:
        yield lambda _rows: update_bar(file.tell())


@click.command("import-responses")
@click.argument("slug")
@click.argument("file", type=READABLE_FILE)
@with_answer_file_options
@click.option("--dry-run", is_flag=True, help="Store nothing; show what the first values would become.")
def import_response_file(slug: str, file: Path, *, dry_run: bool, **option_values: str | None) -> None:
    """Import answers that were given elsewhere as responses: CSV, TSV, JSON or XLSX.

    FILE has a row for each item of a HIT, with the columns hit, annotator, item and value. It can also be an export of
    responses or a result file of Mechanical Turk (Input.id1.., Answer.range1..). For other tables, the options name the
    columns.
    See docs/researchers/importing-responses.md.

    A refused file changes nothing. If the import is interrupted, the server stores the rest, or the next import does.
    """
    from app.imports import responses_import
    from app.imports.answer_options import AnswerFileOptions
    from app.imports.response_receipt import response_receipt_sentences
    from app.settings import read_settings

    given_options = AnswerFileOptions.model_validate({name: value for name, value in option_values.items() if value})
    if dry_run:
        print_preview_of_responses(slug, file, given_options)
        return

    async def work(engine: AsyncEngine) -> ResponseImportReceipt:
        max_mb = read_settings().max_upload_mb
        with file.open("rb") as opened:
            return await responses_import.import_responses_of_file_and_return_receipt(
                engine,
                slug,
                opened,
                file.name,
                now=current_utc_time(),
                max_mb=max_mb,
                options=given_options.reading_options,
            )

    try:
        result = run_with_engine(work)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"{STOPPED_TEXT} If answers were stored, the server or the next import stores the rest."
        ) from None
    for sentence in response_receipt_sentences(result):
        click.echo(sentence)
