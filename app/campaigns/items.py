"""Items from an uploaded table into a campaign: all of them or none."""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from itertools import count, islice
from typing import Any, BinaryIO, NamedTuple

from pydantic import BaseModel, Field
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import checks_import, named_media, outputs
from app.campaigns.checks_import import NewCheck, taken_out
from app.campaigns.columns import (
    CHECKS,
    Matching,
    has_systems,
    identifier_in,
    meanings_of_items,
    meanings_of_outputs,
    prepare_upload,
    prior_columns_of,
)
from app.campaigns.lifecycle import find, locked_draft, require_draft
from app.campaigns.named_media import NamedMedia
from app.campaigns.progress import Progress
from app.campaigns.template import TextOfItem, check_known, shown_by
from app.database import tables
from app.database.audit_log import note
from app.database.bulk import ahead, copy_lines, line
from app.database.campaign import item_count
from app.designs.content import Content
from app.errors import Invalid, TooLarge, plural, shortened
from app.fields import is_blank
from app.inference.online.law import Law
from app.media.archive import Packed
from app.media.file_names import sentence_on_spelling
from app.record import revisions
from app.record.law import law_of
from app.upload import LONGEST_ID, LONGEST_SHOWN, MOST_ROWS, UNICODE, ReadAs, Upload, UploadedRow, as_text, read, refuse

ROWS_AT_ONCE = 5_000
CHARACTERS_AT_ONCE = 2_000_000  # rows may be long
ITEM_COLUMNS = ("campaign_id", "number", "external_id", "shown", "fields", "prior")
LAST_IMPORT = text("""
    SELECT after FROM audit_log WHERE campaign_id = :campaign AND action IN ('items.imported', 'items.outputs_imported')
    ORDER BY id DESC LIMIT 1
""")
COUNT_PRIORS = text("SELECT count(*) FROM items WHERE campaign_id = :campaign AND prior IS NOT NULL")
USUAL = Matching()
AS_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class NewItem(NamedTuple):
    external_id: str
    shown: str
    fields: dict[str, Any]
    prior: tuple[float, ...] | None


class ImportedItems(BaseModel):
    """Receipt of an import of items or of systems' outputs."""

    imported: int = Field(description="Items, or outputs of systems, that were stored.")
    rows: int = Field(0, description="Rows of the file, without its header.")
    lines: int = Field(0, description="Lines of the file, blank ones included.")
    checks: int = Field(0, description="Gold and attention items among the rows, which are no items.")
    with_prior: int = Field(0, description="Items that begin with a prior of their own.")
    notes: list[str] = Field(default=[], description="How the file was read, and what its columns were taken for.")

    def sentences(self, what: str = "item") -> list[str]:
        """Return the receipt in sentences."""
        checks = f", {plural(self.checks, 'check')} among them" if self.checks else ""
        lines = f" in {plural(self.lines, 'line')}" if self.lines else ""
        read = f" The file has {plural(self.rows, 'row')}{lines}{checks}." if self.rows else ""
        return [f"Imported {plural(self.imported, what)}.{read}", *self.notes]

    def audit_facts(self, *, replaced: bool) -> dict[str, Any]:
        """Return what the audit log keeps, from which `last_import` makes the receipt again."""
        facts: dict[str, Any] = {"items": self.imported, "replaced": replaced}
        facts |= {"checks": self.checks} if self.checks else {}
        facts |= {"priors": self.with_prior} if self.with_prior else {}
        return facts | {"rows": self.rows, "lines": self.lines, "notes": self.notes}


class ItemReader:
    """Makes items of the rows of a table, one after another, for a campaign that has the ids `taken`.

    named: notes the files that they name, and knows which columns stand beside them.

    Raises `Invalid`: `column_unknown`, `shown_not_chosen`, `template_invalid`, `prior_of_another_law`,
    `priors_missing`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        matching: Matching,
        law: Law,
        named: NamedMedia,
        taken: Collection[str] = (),
    ) -> None:
        self.identifier = identifier_in(columns, matching.identifier)
        self.shown = shown_by(columns, matching.shown, matching.template)
        written, path = next(iter(self.shown.paths.items()))
        column = named_column(written if path.steps else path.column)
        self.seen = f"the template {shortened(matching.template)}" if matching.template else column
        check_known(columns, named.content.columns)
        self.named = named
        self.prior_columns = prior_columns_of(columns, law) if matching.priors else None
        self.priors = 0
        self.law = law
        self.taken = taken
        self.rows = 0
        self.lines: dict[str, int] = {}

    def item(self, record: UploadedRow) -> NewItem:
        """The item of the next row.

        Raises `Invalid`: `id_missing`, `id_too_long`, `id_twice`, `id_taken`, `shown_empty`, `shown_too_long`,
        `prior_invalid`, `media_link_refused`.
        """
        external_id = self.id_of(record)
        prior = prior_of(record, self.prior_columns, self.law) if self.prior_columns else None
        self.priors += prior is not None
        text = text_of(record, self.shown)
        self.named.note(record, text)
        return NewItem(external_id, text, record.values, prior)

    def check(self, record: UploadedRow) -> tuple[str, str]:
        """Id and text of the next row, which is a check and no item. Raises what `item` raises."""
        external_id, text = self.id_of(record), text_of(record, self.shown)
        self.named.note(record, text)
        return external_id, text

    def notes(self) -> list[str]:
        """How items were found in the rows."""
        by = named_column(self.identifier) if self.identifier else "the number of their rows"
        return [f"Items are named by {by}, and annotators see {self.seen}."]

    def id_of(self, record: UploadedRow) -> str:
        self.rows += 1
        if self.identifier is None:
            return str(len(self.taken) + self.rows)
        external_id = as_text(record.values.get(self.identifier)).strip()
        if is_blank(external_id):
            refuse("id_missing", record.line, "this item has no id.")
        if len(external_id) > LONGEST_ID:
            refuse("id_too_long", record.line, f"the id has more than {LONGEST_ID} characters.")
        if external_id in self.lines:
            said, other = shortened(external_id), self.lines[external_id]
            refuse("id_twice", record.line, f"the id “{said}” was already on line {other}.", first_line=other)
        if external_id in self.taken:
            refuse("id_taken", record.line, f"the campaign has “{shortened(external_id)}” already.")
        self.lines[external_id] = record.line
        return external_id


def named_column(name: str) -> str:
    return f"the column “{shortened(name)}”"


def no_items() -> Invalid:
    return Invalid("This file has a header and no items. Nothing was imported.", code="file_empty")


def text_of(record: UploadedRow, shown: TextOfItem) -> str:
    """The text of a row's item, exactly as it stands there. Raises `Invalid` (`shown_empty`, `shown_too_long`)."""
    text = shown(record.values)
    if is_blank(text):
        refuse("shown_empty", record.line, "there is nothing to show to annotators.")
    if len(text) > LONGEST_SHOWN:
        refuse("shown_too_long", record.line, f"the text to show has more than {LONGEST_SHOWN:,} characters.")
    return text


def prior_of(record: UploadedRow, columns: tuple[str, ...], law: Law) -> tuple[float, ...] | None:
    """The item's own prior; none when all cells are empty."""
    cells = [as_text(record.values.get(name)).strip() for name in columns]
    if not any(cells):
        return None
    try:
        prior = tuple(map(float, cells))
    except ValueError:
        refuse("prior_invalid", record.line, f"{' and '.join(columns)} must be numbers.")
    if not law.family.valid_prior(*prior):
        said = " and ".join(f"{name} {shortened(cell)}" for name, cell in zip(columns, cells, strict=True))
        refuse("prior_invalid", record.line, f"{said} are no prior for the update law {law.name}.")
    return prior


async def import_items(
    connection: AsyncConnection,
    slug: str,
    file: BinaryIO,
    name: str,
    *,
    matching: Matching = USUAL,
    read_as: ReadAs = UNICODE,
    replace: bool = False,
    max_mb: int,
    media: Packed | None = None,
    progress: Progress = lambda _rows: None,
) -> ImportedItems:
    """Add a file's items to a campaign, or put them in the place of those a draft has.

    In a launched campaign they begin with the prior.

    Args:
        connection: The caller's transaction must not be committed if this raises.
        slug: The campaign.
        file: The open file.
        name: Its name, whose extension may say how it is read.
        matching: What its columns are for; of a table of systems' outputs (see `outputs`) what is declined.
        read_as: How the file is read where it does not say so itself.
        replace: Whether the items of a draft are taken out first.
        max_mb: Limit of the file.
        media: A zip of the files that items name.
        progress: Told now and then how many rows are in.

    Raises:
        NotFound, Conflict: `not_a_draft`, `kinds_mixed`.
        Invalid, TooLarge: What `upload.read`, `ItemReader`, `NamedMedia.keep` and `outputs.import_outputs` raise.

    """
    table = partial(read, file, name, max_mb=max_mb, read_as=read_as)
    return await import_table(connection, slug, table, matching, replace=replace, media=media, progress=progress)


async def import_table(
    connection: AsyncConnection,
    slug: str,
    table: Callable[[], Upload],
    matching: Matching,
    *,
    replace: bool = False,
    media: Packed | None = None,
    progress: Progress = lambda _rows: None,
) -> ImportedItems:
    """The same of a table that is read when it is asked for, in a thread."""
    found = await find(connection, slug)
    upload = prepare_upload(await asyncio.to_thread(table), Content.of(found), law_of(found), matching)
    if has_systems(upload.columns, matching):
        return await import_systems(connection, slug, upload, matching, replace=replace, media=media, progress=progress)
    campaign = await taking_items(connection, slug, replace=replace)
    if replace:
        await outputs.clear(connection, campaign.id)
    elif campaign.segment_count:
        raise outputs.kinds_mixed(campaign)
    taken, start = await already_there(connection, campaign.id)
    named = NamedMedia(Content.of(campaign))
    reader = ItemReader(upload.columns, matching, law_of(campaign), named, taken)
    checks: list[NewCheck] = []
    ignores_checks = CHECKS in matching.ignored
    rows = upload.records if ignores_checks else taken_out(upload.records, checks, reader.check, campaign)
    stored = await copy_all(connection, campaign.id, start, map(reader.item, rows), progress)
    if not (stored or checks):
        raise no_items()
    reader.shown.check_found()
    await checks_import.store(connection, campaign, checks)
    await named.keep(connection, campaign.id, media)
    if campaign.status != "draft" and stored:
        await named_media.check(connection, campaign)
        await revisions.keep_out(connection, campaign.id)
        await revisions.begin_anew(connection, campaign.id)
    meanings = meanings_of_items(upload.columns, named.content, reader.law, matching, len(checks))
    spelling = filter(None, [sentence_on_spelling(named.respelled)])
    notes = [*upload.notes, *reader.notes(), *(meaning.sentence for meaning in meanings), *spelling]
    done = ImportedItems(
        imported=stored,
        rows=upload.row_count,
        lines=upload.line_count,
        checks=len(checks),
        with_prior=reader.priors,
        notes=notes,
    )
    await note(connection, "items.imported", campaign, after=done.audit_facts(replaced=replace))
    return done


async def import_systems(
    connection: AsyncConnection,
    slug: str,
    upload: Upload,
    matching: Matching,
    *,
    replace: bool,
    media: Packed | None,
    progress: Progress,
) -> ImportedItems:
    meanings = meanings_of_outputs(upload.columns, matching.ignored)
    notes = [*upload.notes, *(meaning.sentence for meaning in meanings)]
    count = await outputs.import_outputs(
        connection, slug, upload, replace=replace, media=media, progress=progress, notes=notes
    )
    return ImportedItems(imported=count, rows=upload.row_count, lines=upload.line_count, notes=notes)


async def last_import(connection: AsyncConnection, campaign_id: int) -> ImportedItems | None:
    """Return the receipt of the last import of a campaign's items, if the audit log has it."""
    facts = await connection.scalar(LAST_IMPORT, {"campaign": campaign_id})
    if not facts or "notes" not in facts:
        return None
    imported = facts.get("items", facts.get("outputs", 0))
    return ImportedItems(
        imported=imported,
        with_prior=facts.get("priors", 0),
        **{name: facts[name] for name in ("rows", "lines", "checks", "notes") if name in facts},
    )


async def sentence_on_priors(connection: AsyncConnection, campaign_id: int) -> str | None:
    """Return a sentence for the launch page if items have priors of their own."""
    count = await connection.scalar(COUNT_PRIORS, {"campaign": campaign_id})
    if not count:
        return None
    begin = "begins with a prior of its own" if count == 1 else "begin with priors of their own"
    return (
        f"{plural(count, 'item')} {begin}, from the columns of the table, so scores do not start from the prior of the "
        "settings."
    )


async def taking_items(connection: AsyncConnection, slug: str, *, replace: bool) -> Row[Any]:
    """The campaign to which items are added, which nobody else adds any to until the transaction ends. People go on
    answering a launched one meanwhile. Raises `NotFound`, `Conflict` (`not_a_draft`).
    """
    campaign = await find(connection, slug)
    if campaign.status == "draft":
        return await locked_draft(connection, slug, "it was launched meanwhile, and nothing was imported")
    if replace:
        require_draft(campaign, "items can be added to it, but none taken out. Nothing was changed")
    await revisions.wait_in_line(connection, campaign.id)
    return await find(connection, slug)


async def copy_all(
    connection: AsyncConnection, campaign_id: int, start: int, items: Iterator[NewItem], progress: Progress
) -> int:
    """Store items numbered from `start`; how many. The next rows are read while PostgreSQL takes these."""
    numbers, stored = count(start), 0

    async def chunk() -> list[str] | None:
        return await asyncio.to_thread(lines_of, campaign_id, islice(items, ROWS_AT_ONCE), numbers) or None

    async with aclosing(ahead(chunk)) as chunks:
        async for lines in chunks:
            stored += len(lines)
            if start + stored > MOST_ROWS:
                raise TooLarge(
                    f"A campaign has at most {MOST_ROWS:,} items. Nothing was imported.", code="too_many_items"
                )
            await copy_lines(connection, tables.items, lines, *ITEM_COLUMNS)
            progress(stored)
    return stored


def lines_of(campaign_id: int, items: Iterable[NewItem], numbers: Iterable[int]) -> list[str]:
    """Items as COPY takes them in, up to `CHARACTERS_AT_ONCE`; `items` and `numbers` go on after them."""
    lines: list[str] = []
    size = 0
    for (external_id, shown, fields, prior), number in zip(items, numbers, strict=False):
        own_prior = as_array(prior) if prior else None
        lines.append(line((campaign_id, number, external_id, shown, AS_JSON.encode(fields), own_prior)))
        size += len(lines[-1])
        if size > CHARACTERS_AT_ONCE:
            break
    return lines


def as_array(prior: Sequence[float]) -> str:
    """As PostgreSQL writes an array."""
    return f"{{{','.join(map(repr, prior))}}}"


async def already_there(connection: AsyncConnection, campaign_id: int) -> tuple[set[str], int]:
    """The ids of the campaign's items and checks, and the next free number."""
    total = (await connection.execute(select(item_count(campaign_id)))).scalar_one()
    ids: set[str] = set()
    statement = select(tables.items.c.external_id).where(tables.items.c.campaign_id == campaign_id)
    async for some in (await connection.stream_scalars(statement)).partitions(ROWS_AT_ONCE):
        ids.update(some)
    return ids | await checks_import.ids(connection, campaign_id), total
