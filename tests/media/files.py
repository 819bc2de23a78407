"""Small files of each kind, zips of them, and campaigns whose items name them."""

import io
import struct
import zipfile
import zlib
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.designs.campaign import Campaign
from app.media.media_zip import MediaZip
from tests.campaigns.drafts import apply_action, create_draft, import_items


def png(width: int = 8, height: int = 8, grey: int = 120) -> bytes:
    """Return a grey image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes([grey]) * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav(seconds: float = 0.1) -> bytes:
    """Return a silent recording."""
    data = bytes(int(8000 * seconds))
    form = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    size = struct.pack("<I", len(data))
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + form + b"data" + size + data


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def zipped(files: dict[str, bytes]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, data in files.items():
            opened.writestr(name, data)
    return archive.getvalue()


def packed(files: dict[str, bytes] | io.BytesIO, *, file_mb: int = 4, mb: int = 16) -> MediaZip:
    """Return a zip of files, or of content that claims to be one."""
    return MediaZip(files if isinstance(files, io.BytesIO) else io.BytesIO(zipped(files)), file_mb, mb)


def table(*names: str) -> str:
    return "id,text\n" + "".join(f"{k},{name}\n" for k, name in enumerate(names))


async def with_files(engine: AsyncEngine, files: dict[str, bytes], **settings: Any) -> Campaign:
    """Create a running campaign whose items are these files."""
    campaign = await create_draft(engine, **settings)
    await import_items(engine, campaign, table(*files), media=packed(files))
    return await apply_action(engine, campaign)
