"""Lengths of uploaded recordings and videos, read from their headers."""

import asyncio
from collections.abc import Collection, Iterable
from tempfile import TemporaryFile
from typing import BinaryIO

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection
from tinytag import TinyTag, TinyTagException

MAX_MEASURED_FILES = 500
HEAD_PIECES = 8  # lengths are in the first or the last pieces of a file

LIST_FILES_OF_NAMES = text("""
    SELECT number, name, size FROM media
    WHERE campaign_id = :campaign AND name = ANY(CAST(:names AS text[])) ORDER BY number LIMIT :most
""")
LOAD_HEAD_AND_END = text("""
    SELECT place, data FROM media_pieces WHERE campaign_id = :campaign AND number = :number AND (
        place < :head OR place = (
            SELECT max(place) FROM media_pieces WHERE campaign_id = :campaign AND number = :number))
    ORDER BY place
""")


async def load_seconds_by_recording(
    connection: AsyncConnection, campaign_id: int, names: Collection[str]
) -> dict[str, float | None]:
    """Return the length of each of a campaign's files by name, None where it cannot be read.

    At most `MAX_MEASURED_FILES` are measured.
    """
    parameters = {"campaign": campaign_id, "names": [*names], "most": MAX_MEASURED_FILES}
    seconds_by_name = {}
    for row in (await connection.execute(LIST_FILES_OF_NAMES, parameters)).all():
        pieces = await connection.execute(
            LOAD_HEAD_AND_END, {"campaign": campaign_id, "number": row.number, "head": HEAD_PIECES}
        )
        placed_data = [(piece.place, piece.data) for piece in pieces]
        seconds_by_name[row.name] = await asyncio.to_thread(seconds_of_pieces_or_none, row.size, placed_data)
    return seconds_by_name


def seconds_of_pieces_or_none(file_size: int, pieces: Iterable[tuple[int, bytes]]) -> float | None:
    """Return the length of a file, given its first pieces and the last one, with the place of each; what lies between
    reads as zeros.
    """
    with TemporaryFile() as sparse_file:
        for place, data in pieces:
            if place >= HEAD_PIECES:
                sparse_file.seek(file_size - len(data))
            sparse_file.write(data)
        sparse_file.seek(0)
        return seconds_of_recording_or_none(sparse_file)


def seconds_of_recording_or_none(file: BinaryIO) -> float | None:
    """Return the length of a recording; None if its header cannot be read."""
    try:
        seconds = TinyTag.get(file_obj=file, tags=False).duration
    except (TinyTagException, ValueError, OSError):
        return None
    return seconds or None
