"""Files that items name, at addresses that cannot be guessed: whoever has the page may load what is on it."""

import re

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from app.media import store
from app.web import Database

router = APIRouter(include_in_schema=False)

RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
# What lies at an address never changes, so browsers need not ask again; and opened by itself it can do nothing.
HEADERS = {
    "Cache-Control": "private, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Accept-Ranges": "bytes",
}


@router.get("/media/{address}")
async def media(request: Request, database: Database, address: str) -> Response:
    """A file or a range of it (RFC 9110, section 14); of several ranges at once, the whole file."""
    file = await store.find(database, address)
    tag = f'"{address}"'
    headers = HEADERS | {"ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    asked = request.headers.get("range", "") if request.headers.get("if-range", tag) == tag else ""
    part = range_of(asked, file.size)
    if part is not None and not part:
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{file.size}"})
    sent = range(file.size) if part is None else part
    headers["Content-Length"] = str(len(sent))
    if part:
        headers["Content-Range"] = f"bytes {part[0]}-{part[-1]}/{file.size}"
    body = store.read(database, file, sent)
    return StreamingResponse(body, 206 if part else 200, headers, media_type=file.content_type)


def range_of(header: str, size: int) -> range | None:
    """The bytes that a Range header asks for, none at all if it asks for what is not there; None for the whole file."""
    found = RANGE.fullmatch(header.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        return range(max(0, size - int(last)), size)
    if last and int(last) < int(first):
        return None
    return range(int(first), min(size, int(last) + 1) if last else size)
