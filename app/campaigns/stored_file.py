"""From a campaign file to a campaign that is stored, and back."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
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

from app.campaigns import campaign_file, campaign_zip, checks_import, items, lifecycle, listing, outputs
from app.campaigns.campaign_file import MOST_ROWS_INSIDE, FileRead, ItemsOfFile
from app.campaigns.campaign_zip import MEDIA, Table
from app.campaigns.columns import Matching, column_of_ids
from app.campaigns.documents import LARGEST, MEDIA_TYPE
from app.campaigns.settings import CampaignSettings
from app.designs.content import Above, Cells, Content
from app.errors import Invalid, NotFound, Refusal, TooLarge, shortened
from app.media import store
from app.media.archive import PIECE_BYTES, Packed
from app.upload import ReadAs, as_text, read_objects
from app.upload import read as read_table

ID = "id"
SHOWN = "shown"  # the column of texts that no column has


async def create(
    connection: AsyncConnection,
    read: FileRead,
    *,
    now: datetime,
    max_mb: int,
    table: Table | None = None,
    media: Packed | None = None,
) -> Row[Any]:
    """A new draft with the items that the file brings, or those of a `table` instead. media: the files that they name.

    Raises what `lifecycle.create` and the import of items raise, and `Invalid` (`items_not_sent`) where the file names
    a table and none is given, or there are files and no items; the caller's transaction must not be committed then.
    The table is closed.
    """
    with nullcontext() if table is None else table.file:
        return await create_with_items(connection, read, table, media, now=now, max_mb=max_mb)


async def create_with_items(
    connection: AsyncConnection,
    read: FileRead,
    table: Table | None,
    media: Packed | None,
    *,
    now: datetime,
    max_mb: int,
) -> Row[Any]:
    """Create the draft and import its items, as `create` says."""
    campaign = await lifecycle.create(connection, read.content.settings, now=now)
    said = read.content.items or ItemsOfFile.model_construct()
    matching = matching_of(said)
    if table is not None:
        upload = partial(read_table, table.file, table.name, max_mb=max_mb, read_as=read_as_of(said))
        with told_of(table.name):
            await items.import_table(connection, campaign.slug, upload, matching, media=media)
    elif said.rows:
        lines = [read.document.line_of(("items", "rows", number)) for number in range(len(said.rows))]
        rows = partial(read_objects, list(zip(lines, said.rows, strict=True)))
        with told_of(read.name):
            await items.import_table(connection, campaign.slug, rows, matching, media=media)
    elif media is not None and not said.file:
        raise Invalid(
            f"There are files in {MEDIA} and no items that name them. Nothing was created.", code="items_not_sent"
        )
    elif said.file:
        raise Invalid(
            f"The items are in “{shortened(said.file)}”, which did not come with this file. Nothing was created. Take "
            "`items` out and import the table afterwards, or create the campaign on the command line.",
            code="items_not_sent",
        )
    return campaign


def matching_of(said: ItemsOfFile) -> Matching:
    identifier = column_of_ids(said.id) if said.id else Matching.identifier
    return Matching(identifier, said.shown, said.template, said.priors, frozenset(said.ignore))


def read_as_of(said: ItemsOfFile) -> ReadAs:
    return ReadAs(said.encoding, said.quotes)


@contextmanager
def told_of(name: str) -> Iterator[None]:
    """A refusal names the file that its line is of."""
    try:
        yield
    except Refusal as refusal:
        words = f"{shortened(name)}: {refusal.message}"
        raise type(refusal)(words, code=refusal.code, **refusal.details) from refusal


def beside(folder: Path, name: str) -> Path:
    """A file in a folder or below it. Raises `Invalid` (`items_outside`) and `NotFound` (`items_file_missing`)."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise Invalid(
            f"“{shortened(name)}” lies outside the folder of the campaign file. Nothing was created. Copy it there, or "
            "name it yourself with --items.",
            code="items_outside",
        )
    if not path.is_file():
        raise NotFound(
            f"There is no file “{shortened(name)}” beside the campaign file. Nothing was created.",
            code="items_file_missing",
        )
    return path


class Filed(NamedTuple):
    """A campaign as a file that is open at its beginning. ending: of its name."""

    file: BinaryIO
    ending: str
    media_type: str


async def filed(connection: AsyncConnection, slug: str, *, with_items: bool) -> Filed:
    """A campaign as a file, from which `create` makes one with equal settings, and equal items if they are in it; where
    items name files that were uploaded, a zip with these.

    Raises `NotFound` (`campaign_not_found`), and with items `TooLarge` (`items_too_many`).
    """
    campaign = await lifecycle.find(connection, slug)
    said = await items_said(connection, campaign) if with_items else SaidItems()
    text = await asyncio.to_thread(written, lifecycle.settings_of(campaign), said)
    names = said.names & (await store.known_files(connection, campaign.id)).types.keys()
    if not names:
        return Filed(BytesIO(text.encode()), "yaml", MEDIA_TYPE)
    file = await campaign_zip.written(connection, campaign.id, text, names)
    return Filed(file, "zip", campaign_zip.MEDIA_TYPE)


def pieces_of(filed: Filed) -> Iterator[bytes]:
    """Its bytes, after which it is closed."""
    with filed.file as file:
        while data := file.read(PIECE_BYTES):
            yield data


class SaidItems(NamedTuple):
    """The items of a campaign as a file has them, None where there are none; the column that holds there what was
    uploaded as `id`; and the names of the files that they show.
    """

    said: Mapping[str, Any] | None = None
    own_id: str = ID
    names: AbstractSet[str] = frozenset()


def written(settings: CampaignSettings, items: SaidItems) -> str:
    """Raises `TooLarge` (`items_too_many`)."""
    above = ("source_column", "reference_column")
    renamed = {name: items.own_id for name in above if getattr(settings, name) == ID}
    text = campaign_file.written(settings.model_copy(update=renamed), items.said)
    if len(text.encode()) > LARGEST:
        raise too_many()
    return text


def named_by(campaign: Row[Any], shown: Iterable[Cells]) -> AbstractSet[str]:
    """The files that items name."""
    content = Content.of(campaign)
    return {file.name for cells in shown for file in content.files(cells)}


async def items_said(connection: AsyncConnection, campaign: Row[Any]) -> SaidItems:
    """Raises `TooLarge` (`items_too_many`)."""
    if campaign.segment_count:
        rows = await listing.outputs_of(connection, campaign.id, limit=MOST_ROWS_INSIDE + 1)
        if len(rows) > MOST_ROWS_INSIDE:
            raise too_many()
        columns = (*outputs.NEEDED, *Above._fields)
        cells = [zip(columns, row, strict=True) for row in rows]
        said = {"rows": [{name: cell for name, cell in row if cell is not None} for row in cells]}
        shown = [Cells(row.output, row.source, row.reference) for row in rows]
        return SaidItems(said, names=await asyncio.to_thread(named_by, campaign, shown))
    total, found = await listing.items_of(connection, campaign.id, offset=0, limit=MOST_ROWS_INSIDE)
    checks = await checks_import.as_stored(connection, campaign.id)
    if total + len(checks) > MOST_ROWS_INSIDE:
        raise too_many()
    if not (found or checks):
        return SaidItems()
    own_id = column_of_own_id(found)
    above = [name or "" for name in (campaign.source_column, campaign.reference_column)]
    shown = [Cells(row.shown, *(as_text(row.fields.get(name)) for name in above)) for row in found]
    table = as_said(found, own_id)
    if any(row.prior is not None for row in found):
        table = {"priors": True} | table
    table["rows"] += [checks_import.as_row(check, own_id, table["shown"]) for check in checks]
    names = await asyncio.to_thread(named_by, campaign, [*shown, *(Cells(check.shown) for check in checks)])
    return SaidItems(table, own_id, names)


def too_many() -> TooLarge:
    return TooLarge(
        f"A campaign file has room for {MOST_ROWS_INSIDE:,} items and {LARGEST // 2**20} MB. Leave the items out, and "
        "keep the table that they came from beside it.",
        code="items_too_many",
    )


def column_of_own_id(rows: Sequence[Row[Any]]) -> str:
    """`id`, unless the items have other ids than what was uploaded as that: then a name that no column has."""
    if all(as_text(row.fields.get(ID, row.external_id)).strip() == row.external_id for row in rows):
        return ID
    return free_name(ID, (row.fields for row in rows))


def free_name(wanted: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """`wanted`, or `wanted-2`, `wanted-3`, ...: one that no column has."""
    taken = {name for row in rows for name in row}
    return next(name for name in chain([wanted], (f"{wanted}-{k}" for k in count(2))) if name not in taken)


def as_said(rows: Sequence[Row[Any]], own_id: str) -> dict[str, Any]:
    """Items as a file has them: their rows, with what was uploaded as `id` in the column `own_id`, and the column that
    annotators see.

    Texts that are no column's, made from a template, get a column of their own.
    """
    uploaded = [
        {ID: row.external_id} | {own_id if name == ID else name: cell for name, cell in row.fields.items()}
        for row in rows
    ]
    texts = [row.shown for row in rows]
    for name in uploaded[0] if uploaded else ():
        if name != ID and all(as_text(row.get(name)) == text for row, text in zip(uploaded, texts, strict=True)):
            return {"shown": name, "rows": uploaded}
    shown = free_name(SHOWN, uploaded)
    return {"shown": shown, "rows": [row | {shown: text} for row, text in zip(uploaded, texts, strict=True)]}
