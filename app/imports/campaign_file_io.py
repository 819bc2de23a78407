"""Stored campaigns from campaign files, and campaign files from stored campaigns."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import partial
from io import BytesIO
from itertools import chain, count
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import campaign_file, item_list, lifecycle
from app.campaigns.campaign_file import MAX_ITEMS_IN_CAMPAIGN_FILE, ItemsOfFile
from app.campaigns.settings import CampaignSettings
from app.campaigns.yaml_lines import MAX_CAMPAIGN_FILE_BYTES, YAML_MEDIA_TYPE
from app.designs.campaign import Campaign
from app.designs.content import Content, ItemTexts, SourceAndReference
from app.errors import Invalid, NotFound, Refusal, TooLarge, shorten_echo
from app.imports import campaign_zip, checks_import, items, mark_checks, outputs
from app.imports.campaign_zip import MEDIA_FOLDER, SentCampaign
from app.imports.columns import ColumnMapping, id_column_or_none
from app.imports.item_files import read_item_table_of_any_length
from app.imports.segment_checks import table_row_of_segment_check
from app.media import media_store
from app.media.media_zip import MEDIA_PIECE_BYTES
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.uploads import ReadOptions, UploadedTable, format_cell, table_from_objects

FILE_ID_COLUMN = "id"
FILE_SHOWN_COLUMN = "shown"  # the column of texts that no column has


async def create_draft_from_campaign_file(
    connection: AsyncConnection, sent: SentCampaign, *, now: datetime, max_mb: int
) -> Campaign:
    """Create a draft with the items that the file brings, or with those of the table that came with it.

    Closes the table. Raises what `create_draft_campaign_or_refuse` and the import of items raise, and `Invalid`
    (`items_not_sent`) if the file names a table that did not come, or if there are media files and no items. The caller
    must not commit its transaction then.
    """
    with nullcontext() if sent.table is None else sent.table.file:
        campaign = await lifecycle.create_draft_campaign_or_refuse(
            connection, sent.parsed_file.content.settings, now=now
        )
        if named_reader := item_file_name_and_reader_or_none(sent, max_mb):
            file_name, read_items = named_reader
            items_of_file = sent.parsed_file.content.items or ItemsOfFile.model_construct()
            mapping = column_mapping_of_file(items_of_file)
            with prefixing_refusals_with_file_name(file_name):
                await items.import_items_table_and_return_receipt(
                    connection, campaign.slug, read_items, mapping, media=sent.media
                )
                if items_of_file.known_answers:
                    await mark_checks.mark_gold_by_known_answers_returning_ids(
                        connection, campaign.slug, items_of_file.known_answers
                    )
    return campaign


def item_file_name_and_reader_or_none(
    sent: SentCampaign, max_mb: int
) -> tuple[str, Callable[[], UploadedTable]] | None:
    """Return the name of the file with the items and a function that reads them; None for a campaign without items."""
    items_of_file, table = sent.parsed_file.content.items or ItemsOfFile.model_construct(), sent.table
    if table is not None:
        options = ReadOptions(items_of_file.encoding, items_of_file.quotes, items_of_file.sheet, items_of_file.read_as)
        return table.name, partial(
            read_item_table_of_any_length,
            table.file,
            table.name,
            max_mb=max_mb,
            mapping=column_mapping_of_file(items_of_file),
            read_options=options,
        )
    if items_of_file.rows:
        document = sent.parsed_file.document
        lines = [
            document.line_number_of_value_at(("items", "rows", number)) for number in range(len(items_of_file.rows))
        ]
        return sent.parsed_file.name, partial(table_from_objects, list(zip(lines, items_of_file.rows, strict=True)))
    if items_of_file.file:
        raise Invalid(
            f"The items are in “{shorten_echo(items_of_file.file)}”, which did not come with this file. Nothing was "
            "created. Take `items` out and import the table afterwards, or create the campaign on the command line.",
            code="items_not_sent",
        )
    if sent.media is not None:
        raise Invalid(
            f"There are files in {MEDIA_FOLDER} and no items that name them. Nothing was created.",
            code="items_not_sent",
        )
    return None


def column_mapping_of_file(items_of_file: ItemsOfFile) -> ColumnMapping:
    identifier = id_column_or_none(items_of_file.id) if items_of_file.id else ColumnMapping.identifier
    return ColumnMapping(
        identifier,
        items_of_file.shown,
        items_of_file.template,
        items_of_file.priors,
        frozenset(items_of_file.ignore),
        systems=tuple(items_of_file.systems),
    )


@contextmanager
def prefixing_refusals_with_file_name(file_name: str) -> Iterator[None]:
    """Name the file in each refusal that names one of its lines."""
    try:
        yield
    except Refusal as refusal:
        message = f"{shorten_echo(file_name)}: {refusal.message}"
        raise type(refusal)(message, code=refusal.code, **refusal.details) from refusal


def file_path_in_folder_or_refuse(folder: Path, file_name: str) -> Path:
    """Return a file in a folder or below. Raises `Invalid` (`items_outside`) and `NotFound` (`items_file_missing`)."""
    path = (folder / file_name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise Invalid(
            f"“{shorten_echo(file_name)}” is outside the folder of the campaign file. Nothing was created. Copy it "
            "there, or name it with --items.",
            code="items_outside",
        )
    if not path.is_file():
        raise NotFound(
            f"There is no file “{shorten_echo(file_name)}” next to the campaign file. Nothing was created.",
            code="items_file_missing",
        )
    return path


class CampaignArchive(NamedTuple):
    """A campaign as a file that is open at its beginning, and the ending of its name."""

    file: BinaryIO
    ending: str
    media_type: str


async def build_campaign_yaml_or_zip(connection: AsyncConnection, slug: str, *, with_items: bool) -> CampaignArchive:
    """Return a campaign as a file; if its items name uploaded files, as a zip with these.

    `create_draft_from_campaign_file` makes a campaign with equal settings of it, and with equal items if they are
    included.
    Raises `NotFound` (`campaign_not_found`), and with items `TooLarge` (`items_too_many`).
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    written_items = (
        await load_items_for_campaign_file_or_refuse_many(connection, campaign) if with_items else WrittenItems()
    )
    text = await asyncio.to_thread(
        format_campaign_yaml_or_refuse_size,
        lifecycle.unchecked_settings_with_deliverable_emails(campaign),
        written_items,
    )
    media_names = (
        written_items.media_names
        & (
            await media_store.load_file_types_total_size_and_next_number(connection, campaign.id)
        ).content_type_by_name.keys()
    )
    if not media_names:
        return CampaignArchive(BytesIO(text.encode()), "yaml", YAML_MEDIA_TYPE)
    file = await campaign_zip.write_campaign_zip_to_temporary_file(connection, campaign.id, text, media_names)
    return CampaignArchive(file, "zip", campaign_zip.ZIP_MEDIA_TYPE)


def iterate_archive_bytes_then_close(archive: CampaignArchive) -> Iterator[bytes]:
    """Yield the bytes of the archive, then close it."""
    with archive.file as file:
        while data := file.read(MEDIA_PIECE_BYTES):
            yield data


class WrittenItems(NamedTuple):
    """The items of a campaign as a file has them.

    Attributes:
        file_values: The part of the file about items; None without items.
        original_id_column: The column that holds the uploaded `id`.
        media_names: Names of the files that the items show.

    """

    file_values: Mapping[str, Any] | None = None
    original_id_column: str = FILE_ID_COLUMN
    media_names: AbstractSet[str] = frozenset()


def format_campaign_yaml_or_refuse_size(settings: CampaignSettings, written_items: WrittenItems) -> str:
    """Return the campaign file as text. Raises `TooLarge` (`items_too_many`)."""
    column_settings = ("source_column", "reference_column")
    renamed = {
        name: written_items.original_id_column for name in column_settings if getattr(settings, name) == FILE_ID_COLUMN
    }
    text = campaign_file.format_campaign_file(settings.model_copy(update=renamed), written_items.file_values)
    if len(text.encode()) > MAX_CAMPAIGN_FILE_BYTES:
        raise too_many_items_for_file_error()
    return text


def media_file_names_in_cells(campaign: Campaign, item_cells: Iterable[ItemTexts]) -> AbstractSet[str]:
    content = Content.from_campaign(campaign)
    return {file.name for cells in item_cells for file in content.find_media_files_in_cells(cells)}


async def load_items_for_campaign_file_or_refuse_many(connection: AsyncConnection, campaign: Campaign) -> WrittenItems:
    """Load the items in the form that a campaign file stores. Raises `TooLarge` (`items_too_many`)."""
    if campaign.segment_count:
        rows = await item_list.load_first_output_rows(connection, campaign.id, limit=MAX_ITEMS_IN_CAMPAIGN_FILE + 1)
        columns = (*outputs.REQUIRED_OUTPUT_COLUMNS, *SourceAndReference._fields)
        cells = [zip(columns, row, strict=True) for row in rows]
        checks = await checks_import.load_check_items(connection, campaign.id)
        file_rows = [{name: cell for name, cell in row if cell is not None} for row in cells]
        file_rows += [table_row_of_segment_check(check) for check in checks]
        if len(file_rows) > MAX_ITEMS_IN_CAMPAIGN_FILE:
            raise too_many_items_for_file_error()
        file_values = {"rows": file_rows}
        item_cells = [ItemTexts(row.output, row.source, row.reference) for row in rows]
        item_cells += [ItemTexts(check.shown) for check in checks]
        return WrittenItems(
            file_values, media_names=await asyncio.to_thread(media_file_names_in_cells, campaign, item_cells)
        )
    total, item_rows = await item_list.load_item_total_and_page(
        connection, campaign.id, offset=0, limit=MAX_ITEMS_IN_CAMPAIGN_FILE
    )
    checks = await checks_import.load_check_items(connection, campaign.id)
    if total + len(checks) > MAX_ITEMS_IN_CAMPAIGN_FILE:
        raise too_many_items_for_file_error()
    if not (item_rows or checks):
        return WrittenItems()
    original_id_column = id_column_or_free_column_for_original_ids(item_rows)
    source_and_reference_columns = [name or "" for name in (campaign.source_column, campaign.reference_column)]
    item_cells = [
        ItemTexts(row.shown, *(format_cell(row.fields.get(name)) for name in source_and_reference_columns))
        for row in item_rows
    ]
    table = items_as_campaign_file_values(item_rows, original_id_column)
    if any(row.prior is not None for row in item_rows):
        table = {"priors": True} | table
    table["rows"] += [checks_import.table_row_of_check(check, original_id_column, table["shown"]) for check in checks]
    names = await asyncio.to_thread(
        media_file_names_in_cells, campaign, [*item_cells, *(ItemTexts(check.shown) for check in checks)]
    )
    return WrittenItems(table, original_id_column, names)


def too_many_items_for_file_error() -> TooLarge:
    return TooLarge(
        f"A campaign file has room for {MAX_ITEMS_IN_CAMPAIGN_FILE:,} items and {MAX_CAMPAIGN_FILE_BYTES // 2**20} "
        "MB. Leave the items out, and "
        "keep the table that they came from next to it.",
        code="items_too_many",
    )


def id_column_or_free_column_for_original_ids(item_rows: Sequence[Row[Any]]) -> str:
    """Return `id`, or a free column name if items have other ids than the uploaded column `id`."""
    if all(
        format_cell(row.fields.get(FILE_ID_COLUMN, row.external_id)).strip() == row.external_id for row in item_rows
    ):
        return FILE_ID_COLUMN
    return first_free_numbered_column_name(FILE_ID_COLUMN, (row.fields for row in item_rows))


def first_free_numbered_column_name(wanted_name: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return `wanted_name`, `wanted_name-2`, `wanted_name-3`, ...: the first one that no column has."""
    used_names = {name for row in rows for name in row}
    return next(
        name for name in chain([wanted_name], (f"{wanted_name}-{k}" for k in count(2))) if name not in used_names
    )


def items_as_campaign_file_values(item_rows: Sequence[Row[Any]], original_id_column: str) -> dict[str, Any]:
    """Return items as a file has them: their rows, and the name of the column that annotators see.

    The uploaded column `id` is in `original_id_column`. Texts made from a template get a column of their own.
    """
    file_rows = [
        {FILE_ID_COLUMN: row.external_id}
        | {original_id_column if name == FILE_ID_COLUMN else name: cell for name, cell in row.fields.items()}
        for row in item_rows
    ]
    texts = [row.shown for row in item_rows]
    for name in file_rows[0] if file_rows else ():
        if name != FILE_ID_COLUMN and all(
            format_cell(row.get(name)) == text for row, text in zip(file_rows, texts, strict=True)
        ):
            return {"shown": name, "rows": file_rows}
    shown_column = first_free_numbered_column_name(FILE_SHOWN_COLUMN, file_rows)
    return {
        "shown": shown_column,
        "rows": [row | {shown_column: text} for row, text in zip(file_rows, texts, strict=True)],
    }
