"""Functions that the routes of import pages and of the API share."""

from datetime import datetime
from os import SEEK_END
from typing import Annotated

from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.datastructures import FormData, UploadFile

from app.errors import Invalid
from app.http.dependencies import content_disposition_headers, dependency_on_app_state
from app.imports.campaign_file_io import CampaignArchive, iterate_archive_bytes_then_close
from app.imports.upload_slots import UploadSlots
from app.media.media_zip import MediaZip
from app.settings import Settings

RequestUploadSlots = Annotated[UploadSlots, dependency_on_app_state("upload_slots")]


def uploaded_file_or_refuse(form_data: FormData) -> UploadFile:
    """Return the file of an upload form. Raises `Invalid` (`file_missing`)."""
    file = form_data.get("file")
    if not isinstance(file, UploadFile) or not file.filename:
        raise Invalid("Choose a file first. Nothing was imported.", code="file_missing")
    return file


def media_zip_of_form_or_none(form_data: FormData, settings: Settings) -> MediaZip | None:
    """Return the zip of media that may come with the items."""
    file = form_data.get("media")
    if not isinstance(file, UploadFile) or not file.filename:
        return None
    skip = "skip_unnamed" in form_data
    return MediaZip(file.file, settings.max_media_file_mb, settings.max_media_mb, skip_unnamed=skip)


def campaign_archive_response(archive: CampaignArchive, slug: str, now: datetime) -> Response:
    """Return a campaign's file as a download."""
    headers = content_disposition_headers(slug, "campaign", archive.ending, now=now)
    headers["Content-Length"] = str(archive.file.seek(0, SEEK_END))
    archive.file.seek(0)
    return StreamingResponse(iterate_archive_bytes_then_close(archive), media_type=archive.media_type, headers=headers)
