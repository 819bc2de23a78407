"""A zip that is written while it is sent: no file of it, and not the zip itself, is ever whole in memory."""

import asyncio
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

MIN_PIECE_BYTES = 2**16  # smaller pieces wait, so that a reply is not sent in crumbs


@dataclass(frozen=True)
class ZippedFile:
    """A file of the zip: its path, and its content piece by piece."""

    path: str
    pieces: AsyncIterator[str | bytes]


class WrittenBytes:
    """File to which `zipfile` writes, and from which the bytes written so far are taken. It cannot seek."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.byte_count = 0

    def write(self, data: bytes) -> int:
        self.parts.append(bytes(data))
        self.byte_count += len(data)
        return len(data)

    def flush(self) -> None:
        """Do nothing: bytes are taken when there are enough of them."""

    def take(self) -> bytes:
        """Return the bytes since the last call."""
        data, self.parts, self.byte_count = b"".join(self.parts), [], 0
        return data


async def stream_zip(files: AsyncIterator[ZippedFile], *, now: datetime) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a zip of these files. If it ends by an error, its directory is missing: no program opens it
    as the whole.
    """
    written = WrittenBytes()
    modified_at = now.astimezone(UTC).timetuple()[:6]
    archive = zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED)  # type: ignore[call-overload]  # it needs no seek
    async for file in files:
        info = zipfile.ZipInfo(file.path, modified_at)
        info.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(info, "w", force_zip64=True) as part:
            async for piece in file.pieces:
                await asyncio.to_thread(part.write, piece.encode() if isinstance(piece, str) else piece)
                if written.byte_count >= MIN_PIECE_BYTES:
                    yield written.take()
    archive.close()
    yield written.take()
