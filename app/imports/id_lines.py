"""Ids of the rows of a table and the line of each, in a few bytes an id."""

import asyncio
from array import array
from collections.abc import Iterable, Iterator

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database import tables
from app.database.campaign import number_of_items_sql
from app.imports import checks_import

IDS_PER_FETCH = 5_000
FEWEST_SLOTS = 2**10  # a power of two
LINE_OF_STORED_ID = 0  # of an id that the campaign has, and that no line of the file names


class IdLines:
    """Lines by id, for a table of millions of rows: a hash table with 12 bytes a slot, at most two thirds of them used.

    It keeps 64 bits of the hash of each id and not the id. Two of a million different ids have the same bits in one of
    37 million tables; the second one then counts as the first. Hashes differ from process to process.

    Args:
        stored_ids: Ids that the campaign has.
        expected_count: Number of ids to make room for at once, which takes less memory than to grow.

    """

    def __init__(self, stored_ids: Iterable[str] = (), *, expected_count: int = 0) -> None:
        self.count = 0
        slot_count = FEWEST_SLOTS
        while is_too_full(expected_count, slot_count):
            slot_count *= 2
        self.make_empty_slots(slot_count)
        self.add_stored_ids(stored_ids)

    def __len__(self) -> int:
        return self.count

    def __contains__(self, external_id: str) -> bool:
        return self.hashes[self.find_slot(nonzero_hash_of_id(external_id))] != 0

    def add_stored_ids(self, ids: Iterable[str]) -> None:
        """Add ids that the campaign has."""
        for external_id in ids:
            self.add_id_or_return_its_first_line(external_id, LINE_OF_STORED_ID)

    def add_id_or_return_its_first_line(self, external_id: str, line: int) -> int | None:
        """Return the line of an id that was added before; if there is none, add it with this line and return None."""
        id_hash = nonzero_hash_of_id(external_id)
        slot = self.find_slot(id_hash)
        if self.hashes[slot]:
            return self.lines[slot]
        self.hashes[slot], self.lines[slot] = id_hash, line
        self.count += 1
        if is_too_full(self.count, len(self.hashes)):
            self.double_slots()
        return None

    def find_slot(self, id_hash: int) -> int:
        """Return the slot of a hash, or the free one that it would take."""
        hashes, last_slot = self.hashes, len(self.hashes) - 1
        slot = id_hash & last_slot
        while hashes[slot] and hashes[slot] != id_hash:
            slot = (slot + 1) & last_slot
        return slot

    def double_slots(self) -> None:
        used_slots = self.iterate_used_slots()
        self.make_empty_slots(2 * len(self.hashes))
        for id_hash, line in used_slots:
            slot = self.find_slot(id_hash)
            self.hashes[slot], self.lines[slot] = id_hash, line

    def iterate_used_slots(self) -> Iterator[tuple[int, int]]:
        """Return the hashes and lines as they are now."""
        return ((id_hash, line) for id_hash, line in zip(self.hashes, self.lines, strict=True) if id_hash)

    def make_empty_slots(self, count: int) -> None:
        self.hashes = array("q", [0]) * count
        self.lines = array("I", [0]) * count


def is_too_full(id_count: int, slot_count: int) -> bool:
    return 3 * id_count > 2 * slot_count


def nonzero_hash_of_id(external_id: str) -> int:
    """Return the hash of an id in this process, 64 bits; a slot with 0 is free."""
    return hash(external_id) or 1


async def load_id_lines_and_next_free_number(
    connection: AsyncConnection, campaign_id: int, new_count: int = 0
) -> tuple[IdLines, int]:
    """Return the ids of the campaign's items and checks, with room for `new_count` more, and the next free number."""
    next_number = (await connection.execute(select(number_of_items_sql(campaign_id)))).scalar_one()
    check_ids = await checks_import.load_external_ids_of_checks(connection, campaign_id)
    id_lines = IdLines(check_ids, expected_count=next_number + len(check_ids) + new_count)
    statement = select(tables.items.c.external_id).where(tables.items.c.campaign_id == campaign_id)
    async for id_batch in (await connection.stream_scalars(statement)).partitions(IDS_PER_FETCH):
        await asyncio.to_thread(id_lines.add_stored_ids, id_batch)
    return id_lines, next_number
