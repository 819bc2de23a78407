"""Import of systems and their outputs for segments from an uploaded table: all of it or nothing.

The items of such a campaign are its systems, which have posteriors; a HIT shows outputs of several for one segment.
Everything that works for items works for systems as well, so only this module knows how systems are imported.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.background.progress_stream import ReportRowCount
from app.campaigns import lifecycle, systems_check
from app.database import content_tables, tables
from app.database.audit_log import log_change
from app.database.bulk import insert_rows_by_copy
from app.designs.campaign import Campaign
from app.designs.content import Content, ItemTexts, SourceAndReference
from app.errors import Conflict, Invalid, TooLarge, pluralize, shorten_echo
from app.imports import checks_import
from app.imports.checks_import import NewCheck
from app.imports.columns import (
    DEFAULT_COLUMN_MAPPING,
    SYSTEM_COLUMNS,
    ColumnMapping,
    possible_meanings_of_output_columns,
)
from app.imports.named_media import NamedMedia
from app.imports.output_cells import (
    name_in_cell_or_refuse,
    output_text_or_refuse,
    refuse_different_source_or_reference,
    source_and_reference_of_row,
)
from app.imports.segment_checks import CollectedChecks, NumberedSegment
from app.media import media_store
from app.media.match_file_names import note_on_respelled_names_or_none
from app.media.media_zip import MediaZip
from app.quality.check_expectations import criterion_designs
from app.quality.check_fitness import refuse_checks_that_cannot_be_shown_or_met
from app.quality.checks import refuse_if_hits_cannot_show_checks
from app.record import revisions
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.uploads import (
    MAX_UPLOAD_ROWS,
    UploadedRow,
    UploadedTable,
    iterate_rows_up_to_limit,
    raise_upload_refusal_at_line,
)

REQUIRED_OUTPUT_COLUMNS = SYSTEM_COLUMNS
OUTPUTS_PER_COPY = 5_000
OUTPUTS_NOT_IMPORTABLE_MESSAGE = "outputs of systems can be imported only into drafts and campaigns of systems"
MAX_SYSTEMS_TIMES_SEGMENTS = 10_000_000  # every process keeps them in memory at 4 bytes each

SYSTEM_COPY_COLUMNS = ("campaign_id", "number", "external_id", "shown", "fields")
SEGMENT_COPY_COLUMNS = ("campaign_id", "number", "external_id", *SourceAndReference._fields)
OUTPUT_COPY_COLUMNS = ("campaign_id", "segment", "item", "shown")


class NewOutput(NamedTuple):
    """A new output with the numbers of its segment and its system."""

    segment: int
    system: int
    shown_text: str


class ImportedCounts(NamedTuple):
    """Numbers of imported outputs and of checks, and of the gold items among these."""

    outputs: int
    checks: int
    gold: int


@dataclass
class CollectedOutputs:
    """The systems and segments of a campaign by the researcher's ids, and its outputs.

    Attributes:
        named_media: The files that new outputs name.
        checks: The checks among the new outputs.
        number_by_system: Number of each system.
        segment_by_id: Number, source and reference of each segment.
        line_by_output: Line of each output (segment and system number) in the file; 0 for outputs stored before.

    """

    named_media: NamedMedia
    checks: CollectedChecks
    number_by_system: dict[str, int] = field(default_factory=dict)
    segment_by_id: dict[str, NumberedSegment] = field(default_factory=dict)
    line_by_output: dict[tuple[int, int], int] = field(default_factory=dict)

    def add_row_and_return_output_or_none(self, row: UploadedRow) -> NewOutput | None:
        """Add a row of a file and return its output; None for a check.

        Raises `Invalid`: `system_missing`, `segment_missing`, `id_too_long`, `output_empty`, `shown_too_long`,
        `source_differs`, `output_twice`, `media_link_refused`, and what methods of `CollectedChecks` raise.
        """
        if kind := self.checks.kind_of_row_or_empty(row):
            self.checks.add_row(row, kind, self.named_media)
            return None
        system, segment = (name_in_cell_or_refuse(row, column) for column in ("system", "segment"))
        shown_text, source_and_reference = output_text_or_refuse(row), source_and_reference_of_row(row)
        if segment not in self.segment_by_id:
            self.named_media.collect_media_names_of_cells_or_refuse(
                row.line, ItemTexts(shown_text, *source_and_reference)
            )
        elif not self.named_media.content.is_plain_text:
            self.named_media.collect_media_names_of_cells_or_refuse(row.line, ItemTexts(shown_text))
        system_number = self.number_by_system.setdefault(system, len(self.number_by_system))
        numbered_segment = self.segment_by_id.setdefault(
            segment, NumberedSegment(len(self.segment_by_id), source_and_reference)
        )
        refuse_different_source_or_reference(
            row.line, segment, numbered_segment.source_and_reference, source_and_reference
        )
        self.remember_output_or_refuse_repeated(row.line, numbered_segment.number, system_number, (system, segment))
        return NewOutput(numbered_segment.number, system_number, shown_text)

    def remember_output_or_refuse_repeated(
        self, line: int, segment_number: int, system_number: int, system_and_segment_names: tuple[str, str]
    ) -> None:
        first_line = self.line_by_output.setdefault((segment_number, system_number), line)
        if first_line != line:
            system, segment_name = map(shorten_echo, system_and_segment_names)
            place_phrase = f"was already on line {first_line}" if first_line else "is already in the campaign"
            message = f"the output of “{system}” for the segment “{segment_name}” {place_phrase}."
            raise_upload_refusal_at_line("output_twice", line, message, first_line=first_line or None)


async def import_outputs_of_systems_and_return_counts(
    connection: AsyncConnection,
    slug: str,
    upload: UploadedTable,
    *,
    replace: bool,
    media: MediaZip | None = None,
    progress: ReportRowCount,
    notes: list[str] | None = None,
    mapping: ColumnMapping = DEFAULT_COLUMN_MAPPING,
) -> ImportedCounts:
    """Add a table's outputs and checks to a campaign, or replace the content of a draft.

    Args:
        connection: The caller must not commit its transaction if this raises.
        slug: The campaign, a draft or launched.
        upload: The table.
        replace: Whether the content of a draft is deleted first.
        media: A zip of the files that outputs, sources and references name.
        progress: Called now and then with the number of rows read so far.
        notes: How the table was read, for the audit log; the use of its columns and respelled files are added.
        mapping: The declined meanings of its columns, and the kind of check of rows that name none.

    Raises:
        NotFound, Conflict, TooLarge: `not_a_draft`, `kinds_mixed`, `no_checks_here`; `too_many_outputs`; for a launched
            campaign, what `refuse_incomparable_systems` and `refuse_checks_that_cannot_be_shown_or_met` raise.
        Invalid: `file_empty`, and what `CollectedOutputs`, `CollectedChecks`, `read_table` and
            `NamedMedia.store_media_of_zip_or_refuse` raise.

    """
    launched = (await load_campaign_by_slug_or_refuse(connection, slug)).status != "draft"
    campaign = await (
        lock_and_load_unfinished_campaign_or_refuse(connection, slug)
        if launched
        else lock_draft_emptied_if_replacing_or_refuse(connection, slug, replace=replace)
    )
    collected = await load_stored_systems_segments_and_outputs(connection, campaign, mapping.check_kind)
    old_system_count, old_segment_count = len(collected.number_by_system), len(collected.segment_by_id)
    new_outputs, new_checks = await asyncio.to_thread(add_rows_and_return_outputs_and_checks, collected, upload)
    refuse_too_many_outputs(collected)
    await store_new_systems_with_segments(
        connection, campaign.id, collected, old_system_count=old_system_count, old_segment_count=old_segment_count
    )
    output_rows = ((campaign.id, *output) for output in new_outputs)
    await store_rows_in_batches_by_copy(connection, content_tables.outputs, output_rows, OUTPUT_COPY_COLUMNS, progress)
    await store_checks_or_refuse(connection, campaign, new_checks)
    await collected.named_media.store_media_of_zip_or_refuse(connection, campaign.id, media)
    notes = [] if notes is None else notes
    meanings = possible_meanings_of_output_columns(upload.columns, mapping, len(new_checks))
    notes += [meaning.column_use_sentence for meaning in meanings]
    if spelling := note_on_respelled_names_or_none(collected.named_media.zip_path_by_respelled_name):
        notes.append(spelling)
    await lifecycle.store_count_of_segments(connection, campaign.id, len(collected.segment_by_id))
    if launched and new_outputs:
        await systems_check.refuse_incomparable_systems(
            connection, await load_campaign_by_slug_or_refuse(connection, slug), len(collected.number_by_system)
        )
        await revisions.switch_to_new_revision_from_same_answers(connection, campaign.id)
    facts: dict[str, Any] = {
        "outputs": len(new_outputs),
        "new_systems": len(collected.number_by_system) - old_system_count,
        "replaced": replace,
    }
    counts = ImportedCounts(len(new_outputs), len(new_checks), sum(check.kind == "gold" for check in new_checks))
    facts |= {"checks": counts.checks, "gold": counts.gold} if new_checks else {}
    facts |= {"rows": upload.row_count, "lines": upload.line_count, "notes": notes}
    await log_change(connection, "items.outputs_imported", campaign, new_values=facts)
    return counts


def add_rows_and_return_outputs_and_checks(
    collected: CollectedOutputs, upload: UploadedTable
) -> tuple[list[NewOutput], list[NewCheck]]:
    """Add all rows of a table, and return its outputs and checks.

    Raises `Invalid`: `file_empty`, and what methods of `CollectedOutputs` and `CollectedChecks` raise.
    """
    rows = iterate_rows_up_to_limit(upload.rows, MAX_UPLOAD_ROWS)
    new_outputs = [*filter(None, map(collected.add_row_and_return_output_or_none, rows))]
    new_checks = collected.checks.checks_with_segments_or_refuse(collected.segment_by_id, collected.number_by_system)
    if not (new_outputs or new_checks):
        raise Invalid("This file has a header and no outputs. Nothing was imported.", code="file_empty")
    return new_outputs, new_checks


async def store_checks_or_refuse(connection: AsyncConnection, campaign: Campaign, checks: Sequence[NewCheck]) -> None:
    """Store new checks of segments; those of a launched campaign must fit its HITs."""
    if not checks:
        return
    refuse_if_hits_cannot_show_checks(campaign)
    await checks_import.insert_check_items_or_refuse_too_many(connection, campaign, checks)
    if campaign.status != "draft" and campaign.checks_percent is not None:
        await refuse_checks_that_cannot_be_shown_or_met(connection, campaign)


async def store_new_systems_with_segments(
    connection: AsyncConnection,
    campaign_id: int,
    collected: CollectedOutputs,
    *,
    old_system_count: int,
    old_segment_count: int,
) -> None:
    """Store the systems and segments beyond those that the campaign had before."""
    system_rows = (
        (campaign_id, number, name, name, "{}")
        for name, number in collected.number_by_system.items()
        if number >= old_system_count
    )
    await store_rows_in_batches_by_copy(connection, tables.items, system_rows, SYSTEM_COPY_COLUMNS)
    segment_rows = (
        (campaign_id, segment.number, name, *segment.source_and_reference)
        for name, segment in collected.segment_by_id.items()
    )
    new_segment_rows = islice(segment_rows, old_segment_count, None)
    await store_rows_in_batches_by_copy(connection, content_tables.segments, new_segment_rows, SEGMENT_COPY_COLUMNS)


async def lock_draft_emptied_if_replacing_or_refuse(
    connection: AsyncConnection, slug: str, *, replace: bool
) -> Campaign:
    """Return the locked draft to which outputs are added; `replace` empties it first."""
    campaign = await lifecycle.lock_and_load_draft_or_refuse(connection, slug, OUTPUTS_NOT_IMPORTABLE_MESSAGE)
    if replace:
        await delete_content_of_draft(connection, campaign.id)
    elif not campaign.segment_count and await has_any_items(connection, campaign.id):
        raise items_and_systems_mixed_error(campaign)
    return campaign


async def lock_and_load_unfinished_campaign_or_refuse(connection: AsyncConnection, slug: str) -> Campaign:
    """Return the launched campaign to which outputs are added; no answer can be stored until the transaction ends."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if not campaign.segment_count:
        lifecycle.require_draft(campaign, OUTPUTS_NOT_IMPORTABLE_MESSAGE)
    await revisions.block_writers_until_transaction_ends(connection, campaign.id)
    campaign = await lifecycle.lock_and_load_campaign_or_refuse(connection, slug)
    if campaign.status == "finished":
        lifecycle.require_draft(campaign, "a system can be added only while other systems are being judged")
    return campaign


def items_and_systems_mixed_error(campaign: Campaign) -> Conflict:
    """Return the refusal to mix items and systems in one campaign."""
    existing_kind, uploaded_kind = ("systems", "items") if campaign.segment_count else ("items", "outputs of systems")
    return Conflict(
        f"“{campaign.name}” has {existing_kind}, but this file contains {uploaded_kind}. Replace the existing ones, "
        "or create another campaign. Nothing was imported.",
        code="kinds_mixed",
    )


def refuse_too_many_outputs(outputs: CollectedOutputs) -> None:
    systems, segments = len(outputs.number_by_system), len(outputs.segment_by_id)
    if systems * segments > MAX_SYSTEMS_TIMES_SEGMENTS:
        raise TooLarge(
            f"{pluralize(systems, 'system')} times {pluralize(segments, 'segment')} are more than "
            f"{MAX_SYSTEMS_TIMES_SEGMENTS:,} outputs. Nothing was imported.",
            code="too_many_outputs",
        )


async def store_rows_in_batches_by_copy(
    connection: AsyncConnection,
    table: Table,
    rows: Iterator[tuple[Any, ...]],
    columns: Sequence[str],
    progress: ReportRowCount = lambda _rows: None,
) -> None:
    """Store rows in batches, so that other requests are not kept waiting."""
    stored_count = 0
    while batch := list(islice(rows, OUTPUTS_PER_COPY)):
        await insert_rows_by_copy(connection, table, batch, *columns)
        stored_count += len(batch)
        progress(stored_count)


async def load_stored_systems_segments_and_outputs(
    connection: AsyncConnection, campaign: Campaign, check_kind: str = ""
) -> CollectedOutputs:
    """Return the stored systems, segments and outputs of a campaign, and the ids of its checks."""
    item_columns, segment_columns, output_columns = tables.items.c, content_tables.segments.c, content_tables.outputs.c
    select_systems = (
        select(item_columns.external_id, item_columns.number)
        .where(item_columns.campaign_id == campaign.id)
        .order_by(item_columns.number)
    )
    select_segments = (
        select(content_tables.segments)
        .where(segment_columns.campaign_id == campaign.id)
        .order_by(segment_columns.number)
    )
    select_outputs = select(output_columns.segment, output_columns.item).where(
        output_columns.campaign_id == campaign.id
    )
    return CollectedOutputs(
        NamedMedia(Content.from_campaign(campaign)),
        CollectedChecks(
            criterion_designs(campaign),
            check_kind,
            dict.fromkeys(await checks_import.load_external_ids_of_checks(connection, campaign.id), 0),
        ),
        {row.external_id: row.number for row in await connection.execute(select_systems)},
        {
            row.external_id: NumberedSegment(row.number, SourceAndReference(row.source, row.reference))
            for row in await connection.execute(select_segments)
        },
        {(row.segment, row.item): 0 for row in await connection.execute(select_outputs)},
    )


async def has_any_items(connection: AsyncConnection, campaign_id: int) -> bool:
    first_item = select(tables.items.c.number).where(tables.items.c.campaign_id == campaign_id).limit(1)
    return await connection.scalar(first_item) is not None


async def delete_content_of_draft(connection: AsyncConnection, campaign_id: int) -> None:
    """Delete the items and checks of a draft, or its systems with their outputs, and all of its files."""
    await media_store.delete_media_files(connection, campaign_id)
    await checks_import.delete_check_items(connection, campaign_id)
    for table in (content_tables.item_versions, tables.items, content_tables.segments, content_tables.outputs):
        await connection.execute(delete(table).where(table.c.campaign_id == campaign_id))
    await lifecycle.store_count_of_segments(connection, campaign_id, 0)
