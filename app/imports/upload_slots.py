"""Limit on the large uploads that one process reads at once: each takes memory and a thread while it is unpacked."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import BinaryIO

from app.errors import Busy

MAX_CONCURRENT_LARGE_UPLOADS = 2
UPLOAD_SLOT_WAIT_SECONDS = 60.0
UPLOAD_RETRY_SECONDS = 30
MAX_SMALL_UPLOAD_BYTES = 2**20  # plain files up to this size need no slot
PACKED_FILE_SIGNATURES = (b"PK", b"\x1f\x8b")  # of zip and gzip, whose size does not limit their content


class UploadSlots:
    """Slots that large uploads hold while they are read; others wait for one, first come, first served."""

    def __init__(
        self, max_concurrent: int = MAX_CONCURRENT_LARGE_UPLOADS, wait_seconds: float = UPLOAD_SLOT_WAIT_SECONDS
    ) -> None:
        self.semaphore = asyncio.Semaphore(max_concurrent)
        self.wait_seconds = wait_seconds

    @asynccontextmanager
    async def holding_slot_if_file_is_large(self, *files: BinaryIO) -> AsyncIterator[None]:
        """Hold a slot for this block if one of the files is large or packed.

        Callers must not hold a database connection while they wait. Raises `Busy` (`uploads_busy`) if no slot becomes
        free in time.
        """
        if not any(map(is_large_or_packed_file, files)):
            yield
            return
        try:
            async with asyncio.timeout(self.wait_seconds):
                await self.semaphore.acquire()
        except TimeoutError:
            raise Busy(
                "The server is reading other large files. Nothing was stored. Please try again in a minute.",
                code="uploads_busy",
                retry_after_seconds=UPLOAD_RETRY_SECONDS,
            ) from None
        try:
            yield
        finally:
            self.semaphore.release()


def is_large_or_packed_file(file: BinaryIO) -> bool:
    """Return whether a file is larger than `MAX_SMALL_UPLOAD_BYTES`, or packed; leaves it at its beginning."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(2)
    file.seek(0)
    return size > MAX_SMALL_UPLOAD_BYTES or start in PACKED_FILE_SIGNATURES
