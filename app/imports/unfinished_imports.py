"""Files of answers whose import has begun: stored with its first answers, deleted with its last ones.

So an import that is interrupted, whenever that happens, is continued by any process, or by the next import into the
campaign.
"""

import asyncio
import gzip
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO, Self

from pydantic import TypeAdapter
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.cell_reading import ReadingOptions

FASTEST_COMPRESSION = 1
MAX_FILE_NAME_CHARACTERS = 200
READING_OPTIONS_ADAPTER = TypeAdapter(ReadingOptions)

INSERT_UNFINISHED_IMPORT = text("""
    INSERT INTO unfinished_imports (campaign_id, name, file, options, started_at, hits)
    VALUES (:campaign, :name, :file, CAST(:options AS jsonb), :started_at, :hits)
""")
LOAD_UNFINISHED_IMPORT = text("""
    SELECT name, file, CAST(options AS text) AS options, started_at FROM unfinished_imports
    WHERE campaign_id = :campaign
""")
DELETE_UNFINISHED_IMPORT = text("DELETE FROM unfinished_imports WHERE campaign_id = :campaign")
FIND_CAMPAIGNS_WITH_UNFINISHED_IMPORT = text("SELECT campaign_id FROM unfinished_imports ORDER BY started_at")


@dataclass(frozen=True)
class AnswerFile:
    """A file of answers, and how and when its import began.

    Attributes:
        name: Name of the file, whose ending tells the format.
        packed: The file, compressed by gzip.
        options: How to read it.
        started_at: Time of the import; answers without a time get it.

    """

    name: str
    packed: bytes
    options: ReadingOptions
    started_at: datetime

    @classmethod
    def from_row(cls, row: Row[tuple[str, bytes, str, datetime]]) -> Self:
        return cls(row.name, row.file, READING_OPTIONS_ADAPTER.validate_json(row.options), row.started_at)

    @property
    def content(self) -> bytes:
        return gzip.decompress(self.packed)

    def has_same_answers(self, other: "AnswerFile") -> bool:
        """Return whether it is the same file, read in the same way."""
        return (self.packed, self.options) == (other.packed, other.options)


async def pack_answer_file(file: BinaryIO, name: str, options: ReadingOptions, *, now: datetime) -> AnswerFile:
    def packed_bytes() -> bytes:
        file.seek(0)
        return gzip.compress(file.read(), FASTEST_COMPRESSION, mtime=0)

    return AnswerFile(storable_file_name(name), await asyncio.to_thread(packed_bytes), options, now)


def storable_file_name(name: str) -> str:
    """Return the end of a name, which has its ending, without what the database cannot store."""
    return name.encode(errors="replace").decode().replace("\0", "")[-MAX_FILE_NAME_CHARACTERS:]


async def store_unfinished_import(
    connection: AsyncConnection, campaign_id: int, answer_file: AnswerFile, *, hit_count: int
) -> None:
    """Store the file of an import. The caller holds the campaign's imports, so there is no other one."""
    parameters = {
        "campaign": campaign_id,
        "name": answer_file.name,
        "file": answer_file.packed,
        "options": READING_OPTIONS_ADAPTER.dump_json(answer_file.options).decode(),
        "started_at": answer_file.started_at,
        "hits": hit_count,
    }
    await connection.execute(INSERT_UNFINISHED_IMPORT, parameters)


async def load_unfinished_import_or_none(connection: AsyncConnection, campaign_id: int) -> AnswerFile | None:
    row = (await connection.execute(LOAD_UNFINISHED_IMPORT, {"campaign": campaign_id})).first()
    return AnswerFile.from_row(row) if row else None


async def delete_unfinished_import(connection: AsyncConnection, campaign_id: int) -> None:
    await connection.execute(DELETE_UNFINISHED_IMPORT, {"campaign": campaign_id})


async def list_campaign_ids_with_unfinished_import(engine: AsyncEngine) -> list[int]:
    async with engine.connect() as connection:
        return list(await connection.scalars(FIND_CAMPAIGNS_WITH_UNFINISHED_IMPORT))
