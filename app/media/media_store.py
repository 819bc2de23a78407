"""Files in the database: a row for each file, and its bytes in pieces that are read one at a time.

Pieces in a table instead of PostgreSQL's large objects, which are neither deleted nor copied with their campaign.
Reading 256 kB from the middle of 32 MB takes as long from either; pieces are written in half the time and need a fifth
less space.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import aclosing
from itertools import islice
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.bulk import insert_rows_by_copy, iterate_prefetching_next
from app.database.content_tables import media, media_pieces
from app.database.session import (
    Driver,
    Record,
    borrow_autocommit_driver,
    fetch_first_row_or_none,
    fetch_first_value_or_none,
    fetch_rows,
)
from app.errors import NotFound
from app.media.media_zip import MEDIA_PIECE_BYTES, UnpackedPiece

PIECES_PER_BATCH = 16

COPY_MEDIA_STATEMENTS = (
    text("""
        INSERT INTO media (campaign_id, number, name, content_type, size)
        SELECT :copied, number, name, content_type, size FROM media WHERE campaign_id = :campaign
    """),
    text("""
        INSERT INTO media_pieces (campaign_id, number, place, data)
        SELECT :copied, number, place, data FROM media_pieces WHERE campaign_id = :campaign
    """),
)
DELETE_MEDIA = text("DELETE FROM media WHERE campaign_id = :campaign")
SELECT_CAMPAIGN_FILES = text("SELECT name, content_type, size, number FROM media WHERE campaign_id = :campaign")
SELECT_MEDIA_ADDRESSES = text("SELECT name, address FROM media WHERE campaign_id = :campaign AND name = ANY(:names)")
# The digest of a file is made of the digests of its pieces, so that no file need be whole in memory.
SELECT_FILE_DIGESTS = text("""
    SELECT f.name, encode(sha256(string_agg(sha256(p.data), '' ORDER BY p.place)), 'hex') AS digest
    FROM media f JOIN media_pieces p ON p.campaign_id = f.campaign_id AND p.number = f.number
    WHERE f.campaign_id = :campaign AND f.name = ANY(CAST(:names AS text[])) GROUP BY f.name
""")
SELECT_FILE_PIECES = text("""
    SELECT p.data FROM media f JOIN media_pieces p ON p.campaign_id = f.campaign_id AND p.number = f.number
    WHERE f.campaign_id = :campaign AND f.name = :name ORDER BY p.place
""")
EXISTS_MEDIA = text("SELECT EXISTS (SELECT 1 FROM media WHERE campaign_id = :campaign)")
FIND_FILE_BY_ADDRESS = text("SELECT campaign_id, number, content_type, size FROM media WHERE address = :address")
SELECT_PIECE = text(
    "SELECT data FROM media_pieces WHERE campaign_id = :campaign AND number = :number AND place = :place"
)


class StoredFile(Record):
    campaign_id: int
    number: int
    content_type: str
    size: int


class FileAddress(Record):
    """The address of a file, which cannot be guessed."""

    name: str
    address: UUID


class CampaignFiles(NamedTuple):
    """The files of a campaign: content type by name, total bytes, and the next free number."""

    content_type_by_name: dict[str, str]
    total_bytes: int
    next_number: int


async def load_file_types_total_size_and_next_number(connection: AsyncConnection, campaign_id: int) -> CampaignFiles:
    rows = (await connection.execute(SELECT_CAMPAIGN_FILES, {"campaign": campaign_id})).all()
    last_number = max((row.number for row in rows), default=-1)
    return CampaignFiles({row.name: row.content_type for row in rows}, sum(row.size for row in rows), last_number + 1)


async def load_file_digest_by_name(
    connection: AsyncConnection, campaign_id: int, names: Collection[str]
) -> dict[str, str]:
    """Return the digest of each file by name; files with equal bytes have equal digests."""
    rows = await connection.execute(SELECT_FILE_DIGESTS, {"campaign": campaign_id, "names": [*names]})
    return {row.name: row.digest for row in rows}


async def has_media_files(connection: AsyncConnection, campaign_id: int) -> bool:
    return bool(await connection.scalar(EXISTS_MEDIA, {"campaign": campaign_id}))


async def store_media_files_and_return_type_by_name(
    connection: AsyncConnection, campaign_id: int, unpacked_pieces: Iterator[UnpackedPiece], first_number: int
) -> dict[str, str]:
    """Store files, numbered from `first_number`, and return their content types by name.

    The next pieces are unpacked while these are stored.
    """
    content_type_by_name: dict[str, str] = {}

    async def unpack_next_batch_or_none() -> list[UnpackedPiece] | None:
        return await asyncio.to_thread(list, islice(unpacked_pieces, PIECES_PER_BATCH)) or None

    async with aclosing(iterate_prefetching_next(unpack_next_batch_or_none)) as blocks:
        async for block in blocks:
            first_pieces = [piece for piece in block if piece.piece_number == 0]
            file_rows = [
                (campaign_id, first_number + piece.file_number, piece.name, piece.content_type, piece.file_size)
                for piece in first_pieces
            ]
            await insert_rows_by_copy(
                connection, media, file_rows, "campaign_id", "number", "name", "content_type", "size"
            )
            piece_rows = [
                (campaign_id, first_number + piece.file_number, piece.piece_number, piece.data) for piece in block
            ]
            await insert_rows_by_copy(connection, media_pieces, piece_rows, "campaign_id", "number", "place", "data")
            content_type_by_name |= {piece.name: piece.content_type for piece in first_pieces}
    return content_type_by_name


async def delete_media_files(connection: AsyncConnection, campaign_id: int) -> None:
    await connection.execute(DELETE_MEDIA, {"campaign": campaign_id})


async def copy_media_files(connection: AsyncConnection, *, campaign_id: int, copy_id: int) -> None:
    """Copy the files of a campaign to a copy of it, under new addresses."""
    for statement in COPY_MEDIA_STATEMENTS:
        await connection.execute(statement, {"campaign": campaign_id, "copied": copy_id})


async def load_media_url_by_name(connection: Driver, campaign_id: int, names: Collection[str]) -> dict[str, str]:
    """Return the address of each of a campaign's files, by name; unknown names are left out."""
    rows = await fetch_rows(
        connection, SELECT_MEDIA_ADDRESSES, {"campaign": campaign_id, "names": [*names]}, FileAddress
    )
    return {row.name: f"/media/{row.address.hex}" for row in rows}


async def stream_bytes_of_media_file(connection: AsyncConnection, campaign_id: int, name: str) -> AsyncIterator[bytes]:
    """Yield the bytes of a file, with a few pieces at a time in memory."""
    parameters = {"campaign": campaign_id, "name": name}
    async for row in await connection.stream(
        SELECT_FILE_PIECES, parameters, execution_options={"yield_per": PIECES_PER_BATCH}
    ):
        yield row.data


async def find_media_file_or_refuse(engine: AsyncEngine, address: str) -> StoredFile:
    """Return the file at an address. Raises `NotFound` (`media_not_found`)."""
    if re.fullmatch("[0-9a-f]{32}", address):
        async with borrow_autocommit_driver(engine) as connection:
            file = await fetch_first_row_or_none(
                connection, FIND_FILE_BY_ADDRESS, {"address": UUID(address)}, StoredFile
            )
        if file is not None:
            return file
    raise NotFound("There is no such file.", code="media_not_found")


async def stream_byte_range_of_media_file(
    engine: AsyncEngine, file: StoredFile, byte_range: range
) -> AsyncIterator[bytes]:
    """Yield some bytes of a file. Holds a connection only while it reads a piece, so slow readers block no one.

    Ends early if the file is deleted with its campaign meanwhile.
    """
    position = byte_range.start
    while position < byte_range.stop:
        piece_number, skipped_bytes = divmod(position, MEDIA_PIECE_BYTES)
        parameters = {"campaign": file.campaign_id, "number": file.number, "place": piece_number}
        async with borrow_autocommit_driver(engine) as connection:
            piece: bytes | None = await fetch_first_value_or_none(connection, SELECT_PIECE, parameters)
        if piece is None:
            return
        data = piece[skipped_bytes : skipped_bytes + byte_range.stop - position]
        yield data
        position += len(data)
