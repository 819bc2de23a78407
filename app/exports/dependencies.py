"""Function that the routes of the export page and of the API share."""

from datetime import datetime

from fastapi.responses import StreamingResponse

from app.exports.export_types import ExportArchive, ExportFile
from app.http.dependencies import content_disposition_headers


def streaming_response_of_export(export_file: ExportFile | ExportArchive, now: datetime) -> StreamingResponse:
    """Return a download that is sent while it is written."""
    headers = content_disposition_headers(
        export_file.slug, export_file.name, export_file.extension, export_file.criterion, now=now
    )
    return StreamingResponse(export_file.chunks, media_type=export_file.media_type, headers=headers)
