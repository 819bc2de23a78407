"""Import of items from an uploaded table into a campaign: all of them or none."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, BinaryIO

from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.background.progress_stream import ReportRowCount
from app.campaigns.conditions_check import refuse_added_items_that_break_conditions
from app.campaigns.lifecycle import lock_and_load_draft_or_refuse, require_draft
from app.campaigns.media_checks import refuse_unshowable_media_of_items
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.designs.content import Content
from app.designs.field_flags import is_blank
from app.errors import Invalid, pluralize, shorten_echo
from app.imports import checks_import, outputs
from app.imports.checks_import import NewCheck, gold_and_attention_counts_text, iterate_item_rows_appending_checks
from app.imports.columns import (
    CHECKS_MEANING,
    DEFAULT_COLUMN_MAPPING,
    ColumnMapping,
    id_column_or_none_or_refuse,
    is_outputs_table,
    possible_meanings_of_item_columns,
    prior_column_names_or_none_refusing_other_laws,
)
from app.imports.id_lines import LINE_OF_STORED_ID, IdLines, load_id_lines_and_next_free_number
from app.imports.item_files import mapping_with_numbered_rows_if_no_ids, read_item_table_of_any_length
from app.imports.item_storage import ImportedItem, store_items_and_count_them
from app.imports.item_text import ItemTextMaker, build_item_text_maker_or_refuse, refuse_missing_columns
from app.imports.named_media import NamedMedia
from app.imports.segment_checks import refuse_checks_without_segments
from app.imports.wide_table import standard_table_of_upload
from app.inference.online.law import Law
from app.media.match_file_names import note_on_respelled_names_or_none
from app.media.media_zip import MediaZip
from app.record import revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.uploads import (
    MAX_ID_CHARACTERS,
    MAX_SHOWN_CHARACTERS,
    UNICODE_OPTIONS,
    ReadOptions,
    UploadedRow,
    UploadedTable,
    format_cell,
    raise_upload_refusal_at_line,
)

LOAD_LAST_IMPORT_FACTS = text("""
    SELECT after FROM audit_log WHERE campaign_id = :campaign AND action IN ('items.imported', 'items.outputs_imported')
    ORDER BY id DESC LIMIT 1
""")


class ItemImportReceipt(BaseModel):
    """Receipt of an import of items or of systems' outputs."""

    imported: int = Field(description="Items, or outputs of systems, that were stored.")
    rows: int = Field(0, description="Rows of the file, without its header.")
    lines: int = Field(0, description="Lines of the file, blank ones included.")
    checks: int = Field(0, description="Gold and attention items among the rows. They do not count as items.")
    gold: int | None = Field(None, description="Gold items among the checks; null if it was not noted.")
    with_prior: int = Field(0, description="Items that begin with a prior of their own.")
    notes: list[str] = Field(default=[], description="How the file was read, and how its columns are used.")

    def sentences(self, noun: str = "item") -> list[str]:
        """Return the receipt in sentences."""
        checks = f", {pluralize(self.checks, 'check')} among them" if self.checks else ""
        lines = f" in {pluralize(self.lines, 'line')}" if self.lines else ""
        file_sentence = f" The file has {pluralize(self.rows, 'row')}{lines}{checks}." if self.rows else ""
        if self.checks and not self.imported:
            return [f"Imported {gold_and_attention_counts_text(self.checks, self.gold)}.", *self.notes]
        return [f"Imported {pluralize(self.imported, noun)}.{file_sentence}", *self.notes]

    def receipt_facts_for_audit_log(self, *, was_replaced: bool) -> dict[str, Any]:
        """Return the facts for the audit log, from which `load_last_import_receipt_or_none` makes the receipt again."""
        facts: dict[str, Any] = {"items": self.imported, "replaced": was_replaced}
        facts |= {"checks": self.checks, "gold": self.gold} if self.checks else {}
        facts |= {"priors": self.with_prior} if self.with_prior else {}
        return facts | {"rows": self.rows, "lines": self.lines, "notes": self.notes}


class ItemReader:
    """Reads the rows of a table as items of a campaign.

    `named_media` collects the files that they name, and knows the columns that are shown next to them. `id_lines` has
    the ids of the campaign, and gets those of the rows.

    Raises `Invalid`: `column_unknown`, `shown_not_chosen`, `template_invalid`, `prior_of_another_law`,
    `priors_missing`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        mapping: ColumnMapping,
        law: Law,
        named_media: NamedMedia,
        id_lines: IdLines | None = None,
    ) -> None:
        self.id_column = id_column_or_none_or_refuse(columns, mapping.identifier)
        self.make_text = build_item_text_maker_or_refuse(columns, mapping.shown, mapping.template)
        notation, path = next(iter(self.make_text.path_by_text.items()))
        column = column_name_with_noun(notation if path.steps else path.column)
        self.shown_phrase = f"the template {shorten_echo(mapping.template)}" if mapping.template else column
        refuse_missing_columns(columns, named_media.content.context_columns)
        self.named_media = named_media
        self.prior_columns = prior_column_names_or_none_refusing_other_laws(columns, law) if mapping.priors else None
        self.prior_count = 0
        self.law = law
        self.id_lines = IdLines() if id_lines is None else id_lines
        self.row_count, self.last_number = 0, len(self.id_lines)

    def read_item(self, row: UploadedRow) -> ImportedItem:
        """Return the item of the next row.

        Raises `Invalid`: `id_missing`, `id_too_long`, `id_twice`, `id_taken`, `shown_empty`, `shown_too_long`,
        `prior_invalid`, `media_link_refused`.
        """
        external_id = self.read_or_number_new_id_refusing_taken(row)
        prior = parse_item_prior_or_none(row, self.prior_columns, self.law) if self.prior_columns else None
        self.prior_count += prior is not None
        text = item_text_or_refuse(row, self.make_text)
        self.named_media.collect_media_names_of_row_or_refuse(row, text)
        return ImportedItem(external_id, text, row.values, prior)

    def read_check_id_with_text(self, row: UploadedRow) -> tuple[str, str]:
        """Return id and text of the next row, which is a check and no item. Raises what `read_item` raises."""
        external_id, text = self.read_or_number_new_id_refusing_taken(row), item_text_or_refuse(row, self.make_text)
        self.named_media.collect_media_names_of_row_or_refuse(row, text)
        return external_id, text

    def take_next_free_number_id(self) -> str:
        """Return the next number that is no id yet, counted on from the present items."""
        self.last_number += 1
        while str(self.last_number) in self.id_lines:
            self.last_number += 1
        return str(self.last_number)

    def reading_notes(self) -> list[str]:
        """Return sentences about how items were found in the rows."""
        naming_phrase = column_name_with_noun(self.id_column) if self.id_column else "the number of their rows"
        return [f"Item ids come from {naming_phrase}; annotators see {self.shown_phrase}."]

    def read_or_number_new_id_refusing_taken(self, row: UploadedRow) -> str:
        self.row_count += 1
        if self.id_column is None:
            return self.take_next_free_number_id()
        external_id = format_cell(row.values.get(self.id_column)).strip()
        if is_blank(external_id):
            raise_upload_refusal_at_line("id_missing", row.line, "this item has no id.")
        if len(external_id) > MAX_ID_CHARACTERS:
            raise_upload_refusal_at_line(
                "id_too_long", row.line, f"the id has more than {MAX_ID_CHARACTERS} characters."
            )
        first_line = self.id_lines.add_id_or_return_its_first_line(external_id, row.line)
        if first_line == LINE_OF_STORED_ID:
            raise_upload_refusal_at_line(
                "id_taken", row.line, f"the campaign already has “{shorten_echo(external_id)}”."
            )
        if first_line is not None:
            raise_upload_refusal_at_line(
                "id_twice",
                row.line,
                f"the id “{shorten_echo(external_id)}” already appeared on line {first_line}.",
                first_line=first_line,
            )
        return external_id


def column_name_with_noun(name: str) -> str:
    return f"the column “{shorten_echo(name)}”"


def no_items_error() -> Invalid:
    return Invalid("This file has a header and no items. Nothing was imported.", code="file_empty")


def item_text_or_refuse(row: UploadedRow, make_text: ItemTextMaker) -> str:
    """Return the text of a row's item, unchanged. Raises `Invalid` (`shown_empty`, `shown_too_long`)."""
    text = make_text(row.values)
    if is_blank(text):
        raise_upload_refusal_at_line("shown_empty", row.line, "there is nothing to show to annotators.")
    if len(text) > MAX_SHOWN_CHARACTERS:
        raise_upload_refusal_at_line(
            "shown_too_long", row.line, f"the text to show has more than {MAX_SHOWN_CHARACTERS:,} characters."
        )
    return text


def parse_item_prior_or_none(row: UploadedRow, columns: tuple[str, ...], law: Law) -> tuple[float, ...] | None:
    """Return the item's own prior; None if all of its cells are empty."""
    cells = [format_cell(row.values.get(name)).strip() for name in columns]
    if not any(cells):
        return None
    try:
        prior = tuple(map(float, cells))
    except ValueError:
        raise_upload_refusal_at_line("prior_invalid", row.line, f"{' and '.join(columns)} must be numbers.")
    if not law.family.is_valid_prior(*prior):
        prior_text = " and ".join(f"{name} {shorten_echo(cell)}" for name, cell in zip(columns, cells, strict=True))
        raise_upload_refusal_at_line(
            "prior_invalid", row.line, f"{prior_text} are not a valid prior for the update law {law.name}."
        )
    return prior


async def import_items_and_return_receipt(
    connection: AsyncConnection,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    mapping: ColumnMapping = DEFAULT_COLUMN_MAPPING,
    read_options: ReadOptions = UNICODE_OPTIONS,
    replace: bool = False,
    max_mb: int,
    media: MediaZip | None = None,
    progress: ReportRowCount = lambda _rows: None,
) -> ItemImportReceipt:
    """Add the items of a file to a campaign, or replace the items of a draft.

    In a launched campaign they begin with the prior.

    Args:
        connection: The caller's transaction must not be committed if this raises.
        slug: The campaign.
        file: The open file.
        name: Its name, whose extension may say how to read it.
        mapping: The use of its columns; for a table of systems' outputs (see `outputs`) the declined meanings.
        read_options: How to read the file where it does not say so itself.
        replace: Whether the items of a draft are deleted first.
        max_mb: Limit of the file, in MB.
        media: A zip of the files that items name.
        progress: Called now and then with the number of rows stored so far.

    Raises:
        NotFound, Conflict: `not_a_draft`, `kinds_mixed`.
        Invalid, TooLarge: What `read_item_table_of_any_length`, `ItemReader`,
            `NamedMedia.store_media_of_zip_or_refuse` and `import_outputs_of_systems_and_return_counts` raise.

    """
    read_upload = partial(
        read_item_table_of_any_length, file, name, max_mb=max_mb, mapping=mapping, read_options=read_options
    )
    return await import_items_table_and_return_receipt(
        connection, slug, read_upload, mapping, replace=replace, media=media, progress=progress
    )


async def import_items_table_and_return_receipt(
    connection: AsyncConnection,
    slug: str,
    read_upload: Callable[[], UploadedTable],
    mapping: ColumnMapping,
    *,
    replace: bool = False,
    media: MediaZip | None = None,
    progress: ReportRowCount = lambda _rows: None,
) -> ItemImportReceipt:
    """Import items as `import_items_and_return_receipt` does, from a table that `read_upload` opens in a thread."""
    campaign_before_lock = await load_campaign_by_slug_or_refuse(connection, slug)
    upload = standard_table_of_upload(
        await asyncio.to_thread(read_upload),
        Content.from_campaign(campaign_before_lock),
        campaign_before_lock.law,
        mapping,
    )
    mapping = mapping_with_numbered_rows_if_no_ids(mapping, upload)
    if is_outputs_table(upload.columns, mapping):
        return await import_outputs_table_and_return_receipt(
            connection, slug, upload, mapping, replace=replace, media=media, progress=progress
        )
    campaign = await lock_campaign_for_item_import_or_refuse(connection, slug, replace=replace)
    if replace:
        await outputs.delete_content_of_draft(connection, campaign.id)
    elif campaign.segment_count:
        refuse_checks_without_segments(upload.columns, mapping.check_kind)
        raise outputs.items_and_systems_mixed_error(campaign)
    id_lines, next_number = await load_id_lines_and_next_free_number(connection, campaign.id, upload.row_count)
    media_of_items = NamedMedia(Content.from_campaign(campaign))
    reader = ItemReader(upload.columns, mapping, campaign.law, media_of_items, id_lines)
    checks: list[NewCheck] = []
    rows = (
        upload.rows
        if CHECKS_MEANING in mapping.ignored
        else iterate_item_rows_appending_checks(
            upload.rows, checks, reader.read_check_id_with_text, campaign, mapping.check_kind
        )
    )
    stored_count = await store_items_and_count_them(
        connection, campaign.id, next_number, map(reader.read_item, rows), progress
    )
    if not (stored_count or checks):
        raise no_items_error()
    reader.make_text.refuse_paths_never_found()
    await checks_import.insert_check_items_or_refuse_too_many(connection, campaign, checks)
    await media_of_items.store_media_of_zip_or_refuse(connection, campaign.id, media)
    if campaign.status != "draft" and stored_count:
        await refuse_unshowable_media_of_items(connection, campaign)
        await refuse_added_items_that_break_conditions(connection, campaign, next_number)
        await revisions.block_writers_until_transaction_ends(connection, campaign.id)
        await revisions.switch_to_new_revision_from_same_answers(connection, campaign.id)
    receipt = item_import_receipt(upload, reader, mapping, stored_count=stored_count, checks=checks)
    await log_change(
        connection, "items.imported", campaign, new_values=receipt.receipt_facts_for_audit_log(was_replaced=replace)
    )
    return receipt


def item_import_receipt(
    upload: UploadedTable, reader: ItemReader, mapping: ColumnMapping, *, stored_count: int, checks: Sequence[NewCheck]
) -> ItemImportReceipt:
    media_of_items = reader.named_media
    meanings = possible_meanings_of_item_columns(
        upload.columns, media_of_items.content, reader.law, mapping, len(checks)
    )
    spelling_note = note_on_respelled_names_or_none(media_of_items.zip_path_by_respelled_name)
    return ItemImportReceipt(
        imported=stored_count,
        rows=upload.row_count,
        lines=upload.line_count,
        checks=len(checks),
        gold=sum(check.kind == "gold" for check in checks),
        with_prior=reader.prior_count,
        notes=[
            *upload.notes,
            *(reader.reading_notes() if stored_count else []),  # about items, not about checks
            *(meaning.column_use_sentence for meaning in meanings),
            *([spelling_note] if spelling_note else []),
        ],
    )


async def import_outputs_table_and_return_receipt(
    connection: AsyncConnection,
    slug: str,
    upload: UploadedTable,
    mapping: ColumnMapping,
    *,
    replace: bool,
    media: MediaZip | None,
    progress: ReportRowCount,
) -> ItemImportReceipt:
    notes = [*upload.notes]
    counts = await outputs.import_outputs_of_systems_and_return_counts(
        connection,
        slug,
        upload,
        replace=replace,
        media=media,
        progress=progress,
        notes=notes,
        mapping=mapping,
    )
    return ItemImportReceipt(
        imported=counts.outputs,
        rows=upload.row_count,
        lines=upload.line_count,
        checks=counts.checks,
        gold=counts.gold if counts.checks else None,
        notes=notes,
    )


async def load_last_import_receipt_or_none(connection: AsyncConnection, campaign_id: int) -> ItemImportReceipt | None:
    """Return the receipt of the last import of a campaign's items, if the audit log has it."""
    facts = await connection.scalar(LOAD_LAST_IMPORT_FACTS, {"campaign": campaign_id})
    if not facts or "notes" not in facts:
        return None
    imported = facts.get("items", facts.get("outputs", 0))
    return ItemImportReceipt(
        imported=imported,
        with_prior=facts.get("priors", 0),
        **{name: facts[name] for name in ("rows", "lines", "checks", "gold", "notes") if name in facts},
    )


async def lock_campaign_for_item_import_or_refuse(connection: AsyncConnection, slug: str, *, replace: bool) -> Campaign:
    """Return the campaign, locked against other imports of items until the transaction ends.

    Annotators go on answering a launched campaign meanwhile. Raises `NotFound`, `Conflict` (`not_a_draft`).
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if campaign.status == "draft":
        return await lock_and_load_draft_or_refuse(
            connection, slug, "it was launched meanwhile, and nothing was imported"
        )
    if replace:
        require_draft(campaign, "items can be added to it, but not removed. Nothing was changed")
    await revisions.lock_revisions_or_refuse(connection, campaign.id)
    return await load_campaign_by_slug_or_refuse(connection, slug)
