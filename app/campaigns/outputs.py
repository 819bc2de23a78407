"""Systems and their outputs for segments, from an uploaded table: all of it or nothing.

The items of such a campaign are its systems, which have posteriors; a HIT shows outputs of several for one segment.
Whatever follows from items follows from systems as well, so this room alone knows how they come in.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Row, Table, delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import checks_import, lifecycle, systems
from app.campaigns.columns import SYSTEM_COLUMNS
from app.campaigns.named_media import NamedMedia
from app.campaigns.progress import Progress
from app.database import content_tables, tables
from app.database.audit_log import note
from app.database.bulk import copy
from app.designs.content import Above, Cells, Content
from app.errors import Conflict, Invalid, TooLarge, listed, plural, shortened, some_of
from app.fields import is_blank
from app.media import store
from app.media.archive import Packed
from app.media.file_names import sentence_on_spelling
from app.record import revisions
from app.upload import LONGEST_ID, LONGEST_SHOWN, Upload, UploadedRow, as_text, refuse

NEEDED = SYSTEM_COLUMNS
ROWS_AT_ONCE = 5_000
DRAFT_ONLY = "outputs of systems can be imported into drafts, and into what is running with systems"
MOST_CELLS = 10_000_000  # systems times segments, which every process keeps in memory at 4 bytes each

ITEM_COLUMNS = ("campaign_id", "number", "external_id", "shown", "fields")
SEGMENT_COLUMNS = ("campaign_id", "number", "external_id", *Above._fields)
OUTPUT_COLUMNS = ("campaign_id", "segment", "item", "shown")


class Segment(NamedTuple):
    """A segment: its number, and what stands above its outputs, None for nothing."""

    number: int
    above: Above


class Output(NamedTuple):
    """By the numbers of its segment and of its system."""

    segment: int
    item: int
    shown: str


@dataclass
class Outputs:
    """The systems and segments of a campaign by the researcher's ids, and which outputs there are, each with the line
    of the file that it stands on, 0 for those that were there before. named: the files that new ones name.
    """

    named: NamedMedia
    systems: dict[str, int] = field(default_factory=dict)
    segments: dict[str, Segment] = field(default_factory=dict)
    lines: dict[tuple[int, int], int] = field(default_factory=dict)

    def add(self, row: UploadedRow) -> Output:
        """Take in a row of a file.

        Raises `Invalid`: `column_unknown`, `system_missing`, `segment_missing`, `id_too_long`, `output_empty`,
        `shown_too_long`, `source_differs`, `output_twice`, `media_link_refused`.
        """
        check_columns(row.values, row.line)
        system, segment = (name_in(row, column) for column in ("system", "segment"))
        shown = text_in(row, "output")
        if shown is None:
            refuse("output_empty", row.line, "the output is empty, so there is nothing to show to annotators.")
        above = Above(*(text_in(row, column) for column in Above._fields))
        if segment not in self.segments:
            self.named.note_cells(row.line, Cells(shown, *above))
        elif not self.named.content.plain:
            self.named.note_cells(row.line, Cells(shown))
        item = self.systems.setdefault(system, len(self.systems))
        known = self.segments.setdefault(segment, Segment(len(self.segments), above))
        self.check_above(row.line, segment, known.above, above)
        self.check_once(row.line, known.number, item, (system, segment))
        return Output(known.number, item, shown)

    def check_above(self, line: int, segment: str, known: Above, above: Above) -> None:
        """An empty cell says nothing; another text than before is refused."""
        for column, before, now in zip(Above._fields, known, above, strict=True):
            if now not in (None, before):
                said = f"the {column} of the segment “{shortened(segment)}” is another one than before."
                refuse("source_differs", line, said, column=column)

    def check_once(self, line: int, segment: int, item: int, names: tuple[str, str]) -> None:
        first = self.lines.setdefault((segment, item), line)
        if first != line:
            system, of = map(shortened, names)
            where = f"was already on line {first}" if first else "is in the campaign already"
            said = f"the output of “{system}” for the segment “{of}” {where}."
            refuse("output_twice", line, said, first_line=first or None)


def check_columns(columns: Collection[str], line: int) -> None:
    """Raises `Invalid` (`column_unknown`)."""
    known = [*NEEDED, *Above._fields]
    if unknown := [name for name in columns if name not in known]:
        said = (
            f"a table of systems has the columns {listed(known)}, and this one {listed(unknown)} as well. "
            "Remove what should not count, or give each row an id to import it as an item."
        )
        refuse("column_unknown", line, said, columns=some_of(unknown))


def name_in(row: UploadedRow, column: str) -> str:
    name = as_text(row.values.get(column)).strip()
    if is_blank(name):
        refuse(f"{column}_missing", row.line, f"the {column} is empty.")
    if len(name) > LONGEST_ID:
        refuse("id_too_long", row.line, f"the {column} has more than {LONGEST_ID} characters.")
    return name


def text_in(row: UploadedRow, column: str) -> str | None:
    """A cell exactly as it is; None where there is nothing to see. Raises `Invalid` (`shown_too_long`)."""
    shown = as_text(row.values.get(column))
    if len(shown) > LONGEST_SHOWN:
        refuse("shown_too_long", row.line, f"the {column} has more than {LONGEST_SHOWN:,} characters.")
    return None if is_blank(shown) else shown


async def import_outputs(
    connection: AsyncConnection,
    slug: str,
    upload: Upload,
    *,
    replace: bool,
    media: Packed | None = None,
    progress: Progress,
    notes: list[str] | None = None,
) -> int:
    """Add a table's outputs to a draft, or put them in the place of what it has; or add them to what people are at work
    on. The number of outputs in the table. media: a zip of the files that outputs, sources and references name. notes:
    how the table was read, for the audit log; files that are spelled in another way are added.

    Raises `NotFound`, `Conflict` (`not_a_draft`, `kinds_mixed`), `TooLarge` (`too_many_outputs`), what `Outputs.add`,
    `upload.read`, `NamedMedia.keep` and, of what people are at work on, `systems.check` raise, and `Invalid`
    (`file_empty`); the caller's transaction must not be committed then.
    """
    launched = (await lifecycle.find(connection, slug)).status != "draft"
    campaign = await (joined(connection, slug) if launched else to_draft(connection, slug, replace=replace))
    outputs = await already_there(connection, campaign)
    had_systems, had_segments = len(outputs.systems), len(outputs.segments)
    new = await asyncio.to_thread(lambda: [outputs.add(row) for row in upload.records])
    if not new:
        raise Invalid("This file has a header and no outputs. Nothing was imported.", code="file_empty")
    check_size(outputs)
    added = (
        (campaign.id, number, name, name, "{}") for name, number in outputs.systems.items() if number >= had_systems
    )
    await in_pieces(connection, tables.items, added, ITEM_COLUMNS)
    told = ((campaign.id, one.number, name, *one.above) for name, one in outputs.segments.items())
    await in_pieces(connection, content_tables.segments, islice(told, had_segments, None), SEGMENT_COLUMNS)
    await in_pieces(connection, content_tables.outputs, ((campaign.id, *one) for one in new), OUTPUT_COLUMNS, progress)
    await outputs.named.keep(connection, campaign.id, media)
    notes = [] if notes is None else notes
    if spelling := sentence_on_spelling(outputs.named.respelled):
        notes.append(spelling)
    await lifecycle.note_segments(connection, campaign.id, len(outputs.segments))
    if launched:
        await systems.check(connection, await lifecycle.find(connection, slug), len(outputs.systems))
        await revisions.begin_anew(connection, campaign.id)
    facts: dict[str, Any] = {
        "outputs": len(new),
        "new_systems": len(outputs.systems) - had_systems,
        "replaced": replace,
    }
    facts |= {"rows": upload.row_count, "lines": upload.line_count, "notes": notes}
    await note(connection, "items.outputs_imported", campaign, after=facts)
    return len(new)


async def to_draft(connection: AsyncConnection, slug: str, *, replace: bool) -> Row[Any]:
    """The draft to which outputs are added; with `replace` an empty one."""
    campaign = await lifecycle.locked_draft(connection, slug, DRAFT_ONLY)
    if replace:
        await clear(connection, campaign.id)
    elif not campaign.segment_count and await has_items(connection, campaign.id):
        raise kinds_mixed(campaign)
    return campaign


async def joined(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The launched campaign to which outputs are added; nobody can store an answer until the transaction ends."""
    campaign = await lifecycle.find(connection, slug)
    if not campaign.segment_count:
        lifecycle.require_draft(campaign, DRAFT_ONLY)
    await revisions.keep_out(connection, campaign.id)
    campaign = await lifecycle.locked(connection, slug)
    if campaign.status == "finished":
        lifecycle.require_draft(campaign, "a system can join as long as others are judged")
    return campaign


def kinds_mixed(campaign: Row[Any]) -> Conflict:
    """A campaign is of items or of systems."""
    has, brings = ("systems", "items") if campaign.segment_count else ("items", "outputs of systems")
    return Conflict(
        f"“{campaign.name}” has {has}, and this file brings {brings}. Replace those that are there, or make another "
        "campaign. Nothing was imported.",
        code="kinds_mixed",
    )


def check_size(outputs: Outputs) -> None:
    systems, segments = len(outputs.systems), len(outputs.segments)
    if systems * segments > MOST_CELLS:
        raise TooLarge(
            f"{plural(systems, 'system')} times {plural(segments, 'segment')} are more than {MOST_CELLS:,} outputs. "
            "Nothing was imported.",
            code="too_many_outputs",
        )


async def in_pieces(
    connection: AsyncConnection,
    table: Table,
    rows: Iterator[tuple[Any, ...]],
    columns: Sequence[str],
    progress: Progress = lambda _rows: None,
) -> None:
    """Store rows, in pieces, so that other requests are not kept waiting."""
    done = 0
    while some := list(islice(rows, ROWS_AT_ONCE)):
        await copy(connection, table, some, *columns)
        done += len(some)
        progress(done)


async def already_there(connection: AsyncConnection, campaign: Row[Any]) -> Outputs:
    """What a campaign has."""
    items, segments, outputs = tables.items.c, content_tables.segments.c, content_tables.outputs.c
    systems = select(items.external_id, items.number).where(items.campaign_id == campaign.id).order_by(items.number)
    named = select(content_tables.segments).where(segments.campaign_id == campaign.id).order_by(segments.number)
    there = select(outputs.segment, outputs.item).where(outputs.campaign_id == campaign.id)
    return Outputs(
        NamedMedia(Content.of(campaign)),
        {row.external_id: row.number for row in await connection.execute(systems)},
        {
            row.external_id: Segment(row.number, Above(row.source, row.reference))
            for row in await connection.execute(named)
        },
        {(row.segment, row.item): 0 for row in await connection.execute(there)},
    )


async def has_items(connection: AsyncConnection, campaign_id: int) -> bool:
    first = select(tables.items.c.number).where(tables.items.c.campaign_id == campaign_id).limit(1)
    return await connection.scalar(first) is not None


async def clear(connection: AsyncConnection, campaign_id: int) -> None:
    """Take a draft's items and checks, or its systems with all that came with them, and the files of either."""
    await store.remove_all(connection, campaign_id)
    await checks_import.clear(connection, campaign_id)
    for table in (tables.items, content_tables.segments, content_tables.outputs):
        await connection.execute(delete(table).where(table.c.campaign_id == campaign_id))
    await lifecycle.note_segments(connection, campaign_id, 0)
