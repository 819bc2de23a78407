"""A campaign in one zip: the campaign file, perhaps the table that it names, and in `media/` the files of its items."""

import asyncio
import zipfile
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, NamedTuple, cast

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import campaign_file
from app.campaigns.campaign_file import FileRead
from app.campaigns.documents import LARGEST
from app.errors import Invalid, TooLarge, shortened
from app.media import archive, store
from app.media.archive import MB, Packed
from app.settings import Settings
from app.upload import ZIP

MEDIA_TYPE = "application/zip"
FILE, MEDIA = "campaign.yaml", "media/"


class Table(NamedTuple):
    """A table of items that lies beside a campaign file."""

    name: str
    file: BinaryIO


class Sent(NamedTuple):
    """A campaign file that was read, and what came with it in a zip."""

    read: FileRead
    table: Table | None = None
    media: Packed | None = None


def read(file: BinaryIO, name: str, limits: Settings, given: Mapping[str, Any] | None = None) -> Sent:
    """A campaign from an open file called `name`, a campaign file or a zip with one, with the settings `given` in the
    place of its own.

    Raises what `campaign_file.read`, `archive.opened` and `archive.members` raise, and `Invalid`
    (`campaign_file_missing`, `zip_stray`), `TooLarge` (`file_too_large`); of files of items, what storing them raises.
    """
    start = file.read(len(ZIP))
    file.seek(0)
    if start != ZIP:
        return Sent(campaign_file.read(file.read(LARGEST + 1), name, given))
    with archive.opened(file) as zip_:
        members = archive.members(zip_)
        folder = archive.packed_whole(members)
        if folder + FILE not in members:
            raise Invalid(f"There is no file {FILE} in this zip. Nothing was created.", code="campaign_file_missing")
        found = campaign_file.read(part_of(zip_, members.pop(folder + FILE), LARGEST + 1), FILE, given)
        named = found.content.items and found.content.items.file
        table = members.pop(folder + named, None) if named else None
        if stray := [path for path in members if not path.startswith(folder + MEDIA)]:
            raise Invalid(
                f"“{shortened(stray[0])}” in the zip is neither {FILE}, nor the table that this names, nor in the "
                f"folder {MEDIA}. Nothing was created.",
                code="zip_stray",
                file=shortened(stray[0]),
            )
        unpacked = None if table is None else Table(named or "", unpack_table(zip_, table, limits.max_upload_mb))
    media = Packed(file, limits.max_media_file_mb, limits.max_media_mb, folder + MEDIA)
    return Sent(found, unpacked, media if members else None)


def unpack_table(zip_: zipfile.ZipFile, info: zipfile.ZipInfo, max_mb: int) -> BinaryIO:
    """Return the table that a campaign file names, as a temporary file.

    Raises `TooLarge` (`file_too_large`) and what `archive.unpacked_file` raises.
    """
    if info.file_size > max_mb * MB:
        raise TooLarge(
            f"“{shortened(info.filename)}” in the zip has {info.file_size / MB:,.0f} MB, and {max_mb} MB is the most. "
            "Nothing was created.",
            code="file_too_large",
        )
    return archive.unpacked_file(zip_, info)


def part_of(zip_: zipfile.ZipFile, info: zipfile.ZipInfo, most: int) -> bytes:
    """The first bytes of a file in a zip."""
    with zip_.open(info) as opened:
        return opened.read(most)


async def written(connection: AsyncConnection, campaign_id: int, text: str, names: Collection[str]) -> BinaryIO:
    """A zip of a campaign file and the files of these names, in a file that is open at its beginning."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(TemporaryFile())
        with zipfile.ZipFile(file, "w") as zip_:
            zip_.writestr(zipfile.ZipInfo(FILE), text, zipfile.ZIP_DEFLATED)
            for name in sorted(names):
                with zip_.open(zipfile.ZipInfo(MEDIA + name), "w") as part:  # as it is: it is packed already
                    async for data in store.pieces_of(connection, campaign_id, name):
                        await asyncio.to_thread(part.write, data)
        file.seek(0)
        stack.pop_all()
    return cast("BinaryIO", file)
