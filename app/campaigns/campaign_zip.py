"""A campaign in one zip: the campaign file, perhaps the table that it names, and in `media/` the files of its items."""

import asyncio
import zipfile
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO, NamedTuple, cast

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import campaign_file
from app.campaigns.campaign_file import ParsedCampaignFile
from app.campaigns.yaml_lines import MAX_CAMPAIGN_FILE_BYTES
from app.errors import Invalid, TooLarge, shorten_echo
from app.media import media_store, media_zip
from app.media.media_zip import MB, MediaZip
from app.settings import Settings
from app.uploads import ZIP_SIGNATURE

ZIP_MEDIA_TYPE = "application/zip"
CAMPAIGN_FILE_NAME, MEDIA_FOLDER = "campaign.yaml", "media/"


class ItemTable(NamedTuple):
    """A table of items that lies beside a campaign file."""

    name: str
    file: BinaryIO


class SentCampaign(NamedTuple):
    """A campaign file that was read, and what came with it in a zip."""

    parsed_file: ParsedCampaignFile
    table: ItemTable | None = None
    media: MediaZip | None = None


def read_sent_campaign(
    file: BinaryIO, name: str, limits: Settings, overrides: Mapping[str, Any] | None = None
) -> SentCampaign:
    """A campaign from an open file called `name`, a campaign file or a zip with one, with the settings `given` in the
    place of its own.

    Raises what `campaign_file.read`, `archive.opened` and `archive.members` raise, and `Invalid`
    (`campaign_file_missing`, `zip_stray`), `TooLarge` (`file_too_large`); of files of items, what storing them raises.
    """
    start = file.read(len(ZIP_SIGNATURE))
    file.seek(0)
    if start != ZIP_SIGNATURE:
        return SentCampaign(campaign_file.parse_campaign_file(file.read(MAX_CAMPAIGN_FILE_BYTES + 1), name, overrides))
    with media_zip.open_zip(file) as zip_:
        members = media_zip.zip_entries_by_path(zip_)
        folder = media_zip.common_root_folder(members)
        if folder + CAMPAIGN_FILE_NAME not in members:
            raise Invalid(
                f"There is no file {CAMPAIGN_FILE_NAME} in this zip. Nothing was created.", code="campaign_file_missing"
            )
        parsed_file = campaign_file.parse_campaign_file(
            first_bytes_of_member(zip_, members.pop(folder + CAMPAIGN_FILE_NAME), MAX_CAMPAIGN_FILE_BYTES + 1),
            CAMPAIGN_FILE_NAME,
            overrides,
        )
        table_name = parsed_file.content.items and parsed_file.content.items.file
        table_info = members.pop(folder + table_name, None) if table_name else None
        if stray := [path for path in members if not path.startswith(folder + MEDIA_FOLDER)]:
            raise Invalid(
                f"“{shorten_echo(stray[0])}” in the zip is neither {CAMPAIGN_FILE_NAME}, nor the table that this names, nor in the "
                f"folder {MEDIA_FOLDER}. Nothing was created.",
                code="zip_stray",
                file=shorten_echo(stray[0]),
            )
        table = (
            None
            if table_info is None
            else ItemTable(table_name or "", unpack_table(zip_, table_info, limits.max_upload_mb))
        )
    media = MediaZip(file, limits.max_media_file_mb, limits.max_media_mb, folder + MEDIA_FOLDER)
    return SentCampaign(parsed_file, table, media if members else None)


def unpack_table(zip_: zipfile.ZipFile, info: zipfile.ZipInfo, max_mb: int) -> BinaryIO:
    """Return the table that a campaign file names, as a temporary file.

    Raises `TooLarge` (`file_too_large`) and what `archive.unpacked_file` raises.
    """
    if info.file_size > max_mb * MB:
        raise TooLarge(
            f"“{shorten_echo(info.filename)}” in the zip has {info.file_size / MB:,.0f} MB, and {max_mb} MB is the most. "
            "Nothing was created.",
            code="file_too_large",
        )
    return media_zip.unpack_to_temporary_file(zip_, info)


def first_bytes_of_member(zip_: zipfile.ZipFile, info: zipfile.ZipInfo, max_bytes: int) -> bytes:
    """The first bytes of a file in a zip."""
    with zip_.open(info) as opened:
        return opened.read(max_bytes)


async def write_campaign_zip(
    connection: AsyncConnection, campaign_id: int, campaign_yaml: str, media_names: Collection[str]
) -> BinaryIO:
    """A zip of a campaign file and the files of these names, in a file that is open at its beginning."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(TemporaryFile())
        with zipfile.ZipFile(file, "w") as zip_:
            zip_.writestr(zipfile.ZipInfo(CAMPAIGN_FILE_NAME), campaign_yaml, zipfile.ZIP_DEFLATED)
            for name in sorted(media_names):
                with zip_.open(zipfile.ZipInfo(MEDIA_FOLDER + name), "w") as part:  # as it is: it is packed already
                    async for data in media_store.stream_whole_file(connection, campaign_id, name):
                        await asyncio.to_thread(part.write, data)
        file.seek(0)
        stack.pop_all()
    return cast("BinaryIO", file)
