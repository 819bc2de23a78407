"""A campaign in one zip: the campaign file, the table that it names if any, and the files of its items in `media/`."""

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
    """A table of items that is next to a campaign file."""

    name: str
    file: BinaryIO


class SentCampaign(NamedTuple):
    """A campaign file that was read, and the files that came with it in a zip."""

    parsed_file: ParsedCampaignFile
    table: ItemTable | None = None
    media: MediaZip | None = None


def read_campaign_file_or_zip(
    file: BinaryIO, name: str, limits: Settings, overrides: Mapping[str, Any] | None = None
) -> SentCampaign:
    """Return the campaign in an open file called `name`, which is a campaign file or a zip with one.

    Settings in `overrides` replace those of the file. Raises what `parse_campaign_file`, `open_zip_or_refuse` and
    `zip_entries_by_path_or_refuse` raise, `Invalid` (`campaign_file_missing`, `zip_stray`) and `TooLarge`
    (`file_too_large`).
    Files of items are checked when they are stored.
    """
    start = file.read(len(ZIP_SIGNATURE))
    file.seek(0)
    if start != ZIP_SIGNATURE:
        return SentCampaign(campaign_file.parse_campaign_file(file.read(MAX_CAMPAIGN_FILE_BYTES + 1), name, overrides))
    with media_zip.open_zip_or_refuse(file) as zip_:
        members = media_zip.zip_entries_by_path_or_refuse(zip_)
        folder = media_zip.folder_around_all_paths_or_empty(members)
        if folder + CAMPAIGN_FILE_NAME not in members:
            raise Invalid(
                f"There is no file {CAMPAIGN_FILE_NAME} in this zip. Nothing was created.", code="campaign_file_missing"
            )
        with zip_.open(members.pop(folder + CAMPAIGN_FILE_NAME)) as opened:
            content = opened.read(MAX_CAMPAIGN_FILE_BYTES + 1)
        parsed_file = campaign_file.parse_campaign_file(content, CAMPAIGN_FILE_NAME, overrides)
        table_name = parsed_file.content.items and parsed_file.content.items.file
        table_info = members.pop(folder + table_name, None) if table_name else None
        if stray := [path for path in members if not path.startswith(folder + MEDIA_FOLDER)]:
            raise Invalid(
                f"“{shorten_echo(stray[0])}” in the zip is neither {CAMPAIGN_FILE_NAME}, nor the table that it names, "
                f"nor in the folder {MEDIA_FOLDER}. Nothing was created.",
                code="zip_stray",
                file=shorten_echo(stray[0]),
            )
        table = (
            ItemTable(table_name or "", unpack_table_to_temporary_file(zip_, table_info, limits.max_upload_mb))
            if table_info
            else None
        )
    media = MediaZip(file, limits.max_media_file_mb, limits.max_media_mb, folder + MEDIA_FOLDER)
    return SentCampaign(parsed_file, table, media if members else None)


def unpack_table_to_temporary_file(zip_: zipfile.ZipFile, info: zipfile.ZipInfo, max_mb: int) -> BinaryIO:
    """Return the table that a campaign file names, as a temporary file.

    Raises `TooLarge` (`file_too_large`) and what `unpack_zip_entry_to_temporary_file` raises.
    """
    if info.file_size > max_mb * MB:
        raise TooLarge(
            f"“{shorten_echo(info.filename)}” in the zip has {info.file_size / MB:,.0f} MB; the maximum is {max_mb} "
            "MB. Nothing was created.",
            code="file_too_large",
        )
    return media_zip.unpack_zip_entry_to_temporary_file(zip_, info)


async def write_campaign_zip_to_temporary_file(
    connection: AsyncConnection, campaign_id: int, campaign_yaml: str, media_names: Collection[str]
) -> BinaryIO:
    """Return a zip of a campaign file and the files of these names, as a file that is open at its beginning."""
    with ExitStack() as stack:
        file: IO[bytes] = stack.enter_context(TemporaryFile())
        with zipfile.ZipFile(file, "w") as zip_:
            zip_.writestr(zipfile.ZipInfo(CAMPAIGN_FILE_NAME), campaign_yaml, zipfile.ZIP_DEFLATED)
            for name in sorted(media_names):
                # Stored: media formats are compressed already.
                with zip_.open(zipfile.ZipInfo(MEDIA_FOLDER + name), "w") as part:
                    async for data in media_store.stream_bytes_of_media_file(connection, campaign_id, name):
                        await asyncio.to_thread(part.write, data)
        file.seek(0)
        stack.pop_all()
    return cast("BinaryIO", file)
