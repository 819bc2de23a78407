"""Items from an uploaded table into a campaign: all of them or none."""

import asyncio
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import Any, BinaryIO, NamedTuple

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import checks_import, named_media, outputs
from app.campaigns.checks_import import NewCheck, taken_out
from app.campaigns.lifecycle import find, locked_draft, require_draft
from app.campaigns.named_media import NamedMedia
from app.campaigns.progress import Progress
from app.campaigns.template import TextOfItem, check_known, shown_by
from app.database import tables
from app.database.audit_log import note
from app.database.bulk import ahead, copy_lines, line
from app.database.campaign import item_count
from app.designs.content import Content
from app.errors import Invalid, TooLarge, shortened
from app.fields import is_blank
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE
from app.media.archive import Packed
from app.record import revisions
from app.record.law import law_of
from app.upload import LONGEST_ID, LONGEST_SHOWN, MOST_ROWS, Upload, UploadedRow, as_text, read, refuse

ROWS_AT_ONCE = 5_000
CHARACTERS_AT_ONCE = 2_000_000  # rows may be long
ITEM_COLUMNS = ("campaign_id", "number", "external_id", "shown", "fields", "prior")
AS_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class NewItem(NamedTuple):
    external_id: str
    shown: str
    fields: dict[str, Any]
    prior: tuple[float, ...] | None


@dataclass(frozen=True)
class Matching:
    """What the columns of a table are for.

    identifier: the column of ids; None where items are called by their numbers, from 1 on. shown, template: what
    annotators see, as `template.shown_by` takes them.
    """

    identifier: str | None = "id"
    shown: str | None = None
    template: str | None = None


class ItemReader:
    """Makes items of the rows of a table, one after another, for a campaign that has the ids `taken`.

    named: notes the files that they name, and knows which columns stand beside them.

    Raises `Invalid`: `column_unknown`, `shown_not_chosen`, `template_invalid`, `prior_of_another_law`.
    """

    def __init__(
        self,
        columns: Sequence[str],
        matching: Matching,
        law: Law,
        named: NamedMedia,
        taken: Collection[str] = (),
    ) -> None:
        self.identifier = matching.identifier
        if self.identifier is not None:
            check_known(columns, [self.identifier])
        self.shown = shown_by(columns, matching.shown, matching.template)
        check_known(columns, named.content.columns)
        self.named = named
        self.prior_columns = prior_columns_of(columns, law)
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
        text = text_of(record, self.shown)
        self.named.note(record, text)
        return NewItem(external_id, text, record.values, prior)

    def check(self, record: UploadedRow) -> tuple[str, str]:
        """Id and text of the next row, which is a check and no item. Raises what `item` raises."""
        external_id, text = self.id_of(record), text_of(record, self.shown)
        self.named.note(record, text)
        return external_id, text

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


def prior_columns_of(columns: Collection[str], law: Law) -> tuple[str, ...] | None:
    """The columns that hold each item's prior, if there are any. Raises `Invalid` (`prior_of_another_law`)."""
    own = law.family.parameter_names
    if set(own) <= set(columns):
        return own
    for names in {other.family.parameter_names for other in ONLINE.values()}:
        if set(names) <= set(columns):
            raise Invalid(
                f"This file brings priors as {' and '.join(names)}, and the update law {law.name} takes "
                f"{' and '.join(own)}. Remove these columns, or choose another law. Nothing was imported.",
                code="prior_of_another_law",
                columns=list(names),
            )
    return None


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
    identifier: str | None = "id",
    shown: str | None = None,
    template: str | None = None,
    replace: bool = False,
    max_mb: int,
    media: Packed | None = None,
    progress: Progress = lambda _rows: None,
) -> int:
    """Add a file's items to a campaign, or put them in the place of those a draft has; the number of items in the file.
    In a launched campaign they begin with the prior.

    identifier, shown, template: see `Matching`; of a table of systems' outputs, which is taken in as one (see
    `outputs`), they say nothing. media: a zip of the files that items name. `progress` is told now and then how many
    rows are in. Raises `NotFound`, `Conflict` (`not_a_draft`, `kinds_mixed`), and what `upload.read`, `ItemReader`,
    `NamedMedia.keep` and `outputs.import_outputs` raise; the caller's transaction must not be committed then.
    """
    table = partial(read, file, name, max_mb=max_mb)
    matching = Matching(identifier, shown, template)
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
) -> int:
    """The same of a table that is read when it is asked for, in a thread."""
    upload = await asyncio.to_thread(table)
    if outputs.are_in(upload.columns) and matching.identifier == Matching.identifier:
        return await outputs.import_outputs(connection, slug, upload, replace=replace, media=media, progress=progress)
    campaign = await taking_items(connection, slug, replace=replace)
    if replace:
        await outputs.clear(connection, campaign.id)
    elif campaign.segment_count:
        raise outputs.kinds_mixed(campaign)
    taken, start = await already_there(connection, campaign.id)
    named = NamedMedia(Content.of(campaign))
    reader = ItemReader(upload.columns, matching, law_of(campaign), named, taken)
    checks: list[NewCheck] = []
    rows = taken_out(upload.records, checks, reader.check, campaign)
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
    await note(
        connection,
        "items.imported",
        campaign,
        after={"items": stored, "replaced": replace} | ({"checks": len(checks)} if checks else {}),
    )
    return stored


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
