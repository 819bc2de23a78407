"""Files that items name, at addresses that cannot be guessed: everyone who can see a page can load its files."""

import re

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.http.dependencies import Database
from app.media import media_store

router = APIRouter(include_in_schema=False)

BYTE_RANGE_PATTERN = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# The file at an address never changes, so browsers need not ask again. Opened by itself, it cannot run anything.
MEDIA_HEADERS = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
}


@router.get("/media/{address}")
async def send_media_file_or_range(request: Request, database: Database, address: str) -> Response:
    """Send a file or a range of it (RFC 9110, section 14); if several ranges are requested, the whole file."""
    file = await media_store.find_media_file_or_refuse(database, address)
    etag = f'"{address}"'
    headers = MEDIA_HEADERS | {"ETag": etag}
    if etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    range_header = request.headers.get("range", "") if request.headers.get("if-range", etag) == etag else ""
    requested_range = parse_range_header_or_none(range_header, file.size)
    if requested_range is not None and not requested_range:
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{file.size}"})
    sent_range = range(file.size) if requested_range is None else requested_range
    headers["Content-Length"] = str(len(sent_range))
    if requested_range:
        headers["Content-Range"] = f"bytes {requested_range[0]}-{requested_range[-1]}/{file.size}"
    body = media_store.stream_byte_range_of_media_file(database, file, sent_range)
    return StreamingResponse(body, 206 if requested_range else 200, headers, media_type=file.content_type)


def parse_range_header_or_none(range_header: str, file_size: int) -> range | None:
    """Return the requested range of bytes, empty if it is outside the file; None for the whole file."""
    match = BYTE_RANGE_PATTERN.fullmatch(range_header.strip())
    if match is None or match.groups() == ("", ""):
        return None
    first_byte, last_byte = match.groups()
    if not first_byte:
        return range(max(0, file_size - int(last_byte)), file_size)
    if last_byte and int(last_byte) < int(first_byte):
        return None
    return range(int(first_byte), min(file_size, int(last_byte) + 1) if last_byte else file_size)
