"""Storage of imported items by COPY, a part at a time."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import aclosing
from itertools import count, islice
from typing import Any, NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from app.background.progress_stream import ReportRowCount
from app.database import tables
from app.database.bulk import (
    format_array_for_copy,
    format_copy_line,
    insert_text_lines_by_copy,
    iterate_prefetching_next,
)
from app.errors import TooLarge

ITEMS_PER_COPY = 5_000
MAX_ITEMS_PER_CAMPAIGN = 10_000_000
MAX_CHARACTERS_PER_COPY = 2_000_000  # limited by characters because single rows may be long
ITEM_COPY_COLUMNS = ("campaign_id", "number", "external_id", "shown", "fields", "prior")
ITEM_FIELDS_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class ImportedItem(NamedTuple):
    external_id: str
    shown: str
    fields: dict[str, Any]
    prior: tuple[float, ...] | None


async def store_items_and_count_them(
    connection: AsyncConnection,
    campaign_id: int,
    first_number: int,
    items: Iterator[ImportedItem],
    progress: ReportRowCount,
) -> int:
    """Store items, numbered from `first_number`; return how many. Reads the next rows while PostgreSQL stores these."""
    numbers, stored_count = count(first_number), 0

    async def next_chunk() -> list[str] | None:
        return (
            await asyncio.to_thread(
                take_item_copy_lines_up_to_limit, campaign_id, islice(items, ITEMS_PER_COPY), numbers
            )
            or None
        )

    async with aclosing(iterate_prefetching_next(next_chunk)) as chunks:
        async for lines in chunks:
            stored_count += len(lines)
            if first_number + stored_count > MAX_ITEMS_PER_CAMPAIGN:
                raise TooLarge(
                    f"A campaign has at most {MAX_ITEMS_PER_CAMPAIGN:,} items. Nothing was imported.",
                    code="too_many_items",
                )
            await insert_text_lines_by_copy(connection, tables.items, lines, *ITEM_COPY_COLUMNS)
            progress(stored_count)
    return stored_count


def take_item_copy_lines_up_to_limit(
    campaign_id: int, items: Iterable[ImportedItem], numbers: Iterable[int]
) -> list[str]:
    """Return lines for COPY, up to `MAX_CHARACTERS_PER_COPY`; takes their items and numbers from the iterators."""
    lines: list[str] = []
    size = 0
    for (external_id, shown, fields, prior), number in zip(items, numbers, strict=False):
        prior_array = format_array_for_copy(prior) if prior else None
        lines.append(
            format_copy_line((campaign_id, number, external_id, shown, ITEM_FIELDS_ENCODER.encode(fields), prior_array))
        )
        size += len(lines[-1])
        if size > MAX_CHARACTERS_PER_COPY:
            break
    return lines
