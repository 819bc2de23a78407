"""Files in the database: a row for each, and its bytes in pieces, of which a reader takes one at a time.

Pieces in a table and not PostgreSQL's large objects: these do not go with the campaign that is deleted, nor into a
copy of it. Reading 256 kB from the middle of 32 MB takes as long from either; pieces are written in half the time and
need a fifth less room.
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

from app.database.bulk import ahead, copy
from app.database.content_tables import media, media_pieces
from app.database.session import Driver, Record, fetch, fetch_one, statements
from app.errors import NotFound
from app.media.archive import PIECE_BYTES, Piece

AT_ONCE = 16  # pieces

COPIES = (
    text("""
        INSERT INTO media (campaign_id, number, name, content_type, size)
        SELECT :copied, number, name, content_type, size FROM media WHERE campaign_id = :campaign
    """),
    text("""
        INSERT INTO media_pieces (campaign_id, number, place, data)
        SELECT :copied, number, place, data FROM media_pieces WHERE campaign_id = :campaign
    """),
)
DELETE = text("DELETE FROM media WHERE campaign_id = :campaign")
KNOWN = text("SELECT name, content_type, size, number FROM media WHERE campaign_id = :campaign")
ADDRESSES = text("SELECT name, address FROM media WHERE campaign_id = :campaign AND name = ANY(:names)")
# Of the digests of its pieces: so no file need be whole in memory.
DIGESTS = text("""
    SELECT f.name, encode(sha256(string_agg(sha256(p.data), '' ORDER BY p.place)), 'hex') AS digest
    FROM media f JOIN media_pieces p ON p.campaign_id = f.campaign_id AND p.number = f.number
    WHERE f.campaign_id = :campaign AND f.name = ANY(CAST(:names AS text[])) GROUP BY f.name
""")
PIECES_OF = text("""
    SELECT p.data FROM media f JOIN media_pieces p ON p.campaign_id = f.campaign_id AND p.number = f.number
    WHERE f.campaign_id = :campaign AND f.name = :name ORDER BY p.place
""")
HAS_FILES = text("SELECT EXISTS (SELECT 1 FROM media WHERE campaign_id = :campaign)")
FOUND = text("SELECT campaign_id, number, content_type, size FROM media WHERE address = :address")
PIECE = text("SELECT data FROM media_pieces WHERE campaign_id = :campaign AND number = :number AND place = :place")


class StoredFile(Record):
    """A file that is there."""

    campaign_id: int
    number: int
    content_type: str
    size: int


class FileAddress(Record):
    """Where a file is found: an address that nobody can guess."""

    name: str
    address: UUID


class FilePiece(Record):
    """Some of its bytes."""

    data: bytes


class KnownFiles(NamedTuple):
    """What a campaign has: the content type of each file by name, how many bytes in all, and the next free number."""

    types: dict[str, str]
    size: int
    next_number: int


async def known_files(connection: AsyncConnection, campaign_id: int) -> KnownFiles:
    rows = (await connection.execute(KNOWN, {"campaign": campaign_id})).all()
    last = max((row.number for row in rows), default=-1)
    return KnownFiles({row.name: row.content_type for row in rows}, sum(row.size for row in rows), last + 1)


async def digests(connection: AsyncConnection, campaign_id: int, names: Collection[str]) -> dict[str, str]:
    """Of the files of these names, by name: files have the same digest if their bytes are the same."""
    rows = await connection.execute(DIGESTS, {"campaign": campaign_id, "names": [*names]})
    return {row.name: row.digest for row in rows}


async def has_files(connection: AsyncConnection, campaign_id: int) -> bool:
    return bool(await connection.scalar(HAS_FILES, {"campaign": campaign_id}))


async def keep(connection: AsyncConnection, campaign_id: int, found: Iterator[Piece], start: int) -> dict[str, str]:
    """Store files, numbered from `start`; their content types by name. The next pieces are unpacked meanwhile."""
    types: dict[str, str] = {}

    async def some() -> list[Piece] | None:
        return await asyncio.to_thread(list, islice(found, AT_ONCE)) or None

    async with aclosing(ahead(some)) as blocks:
        async for block in blocks:
            files = [piece for piece in block if piece.place == 0]
            rows = [(campaign_id, start + it.number, it.name, it.content_type, it.size) for it in files]
            await copy(connection, media, rows, "campaign_id", "number", "name", "content_type", "size")
            data = [(campaign_id, start + it.number, it.place, it.data) for it in block]
            await copy(connection, media_pieces, data, "campaign_id", "number", "place", "data")
            types |= {piece.name: piece.content_type for piece in files}
    return types


async def remove_all(connection: AsyncConnection, campaign_id: int) -> None:
    await connection.execute(DELETE, {"campaign": campaign_id})


async def copy_all(connection: AsyncConnection, *, campaign: int, copied: int) -> None:
    """The files of a campaign for a copy of it, at other addresses."""
    for statement in COPIES:
        await connection.execute(statement, {"campaign": campaign, "copied": copied})


async def addresses(connection: Driver, campaign_id: int, names: Collection[str]) -> dict[str, str]:
    """Where a campaign's files are found, by name; without those that it has not."""
    rows = await fetch(connection, ADDRESSES, {"campaign": campaign_id, "names": [*names]}, FileAddress)
    return {row.name: f"/media/{row.address.hex}" for row in rows}


async def pieces_of(connection: AsyncConnection, campaign_id: int, name: str) -> AsyncIterator[bytes]:
    """The bytes of a file, a few pieces at a time in memory."""
    of = {"campaign": campaign_id, "name": name}
    async for row in await connection.stream(PIECES_OF, of, execution_options={"yield_per": AT_ONCE}):
        yield row.data


async def find(engine: AsyncEngine, address: str) -> StoredFile:
    """The file at the end of an address. Raises `NotFound` (`media_not_found`)."""
    if re.fullmatch("[0-9a-f]{32}", address):
        async with statements(engine) as connection:
            file = await fetch_one(connection, FOUND, {"address": UUID(address)}, StoredFile)
        if file is not None:
            return file
    raise NotFound("There is no such file.", code="media_not_found")


async def read(engine: AsyncEngine, file: StoredFile, wanted: range) -> AsyncIterator[bytes]:
    """Some bytes of a file. A connection is only held while a piece is read: a slow reader keeps nobody waiting.

    They end early if the file is deleted with its campaign meanwhile.
    """
    at = wanted.start
    while at < wanted.stop:
        place, skipped = divmod(at, PIECE_BYTES)
        parameters = {"campaign": file.campaign_id, "number": file.number, "place": place}
        async with statements(engine) as connection:
            piece = await fetch_one(connection, PIECE, parameters, FilePiece)
        if piece is None:
            return
        data = piece.data[skipped : skipped + wanted.stop - at]
        yield data
        at += len(data)
