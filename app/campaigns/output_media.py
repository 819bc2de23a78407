"""Outputs of systems that are files or name some: whether they can be shown, and which of them are the same."""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.named_media import troubles
from app.designs.content import Cells, Content
from app.errors import Conflict, shortened
from app.media import store

ROWS_AT_ONCE = 5_000

# Of texts only what stands above them can name files.
ABOVE = text("""
    SELECT external_id AS of_segment, NULL AS of_system, '' AS shown, source, reference FROM segments
    WHERE campaign_id = :campaign AND (source IS NOT NULL OR reference IS NOT NULL) ORDER BY number
""")
NEW_OUTPUTS = text("""
    SELECT o.segment, o.item, s.external_id AS of_segment, i.external_id AS of_system, o.shown, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign AND o.digest IS NULL ORDER BY o.segment, o.item
""")
SETTLE = text("""
    UPDATE outputs o SET digest = told.digest
    FROM unnest(CAST(:segments AS int[]), CAST(:items AS int[]), CAST(:digests AS text[]))
        AS told (segment, item, digest)
    WHERE o.campaign_id = :campaign AND o.segment = told.segment AND o.item = told.item
""")


async def settle(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """At the launch, and when others join: all outputs can be shown as the settings say, and of those that name files
    it is noted what they show.

    Raises `Conflict`: `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`.
    """
    content, of_campaign = Content.of(campaign), {"campaign": campaign.id}
    types = (await store.known_files(connection, campaign.id)).types
    naming: list[Row[Any]] = []
    statement = ABOVE if content.kind == "text" else NEW_OUTPUTS
    async for rows in (await connection.stream(statement, of_campaign)).partitions(ROWS_AT_ONCE):
        naming += await asyncio.to_thread(checked, content, types, rows)
    for start in range(0, len(naming), ROWS_AT_ONCE):
        some = naming[start : start + ROWS_AT_ONCE]
        names = await asyncio.to_thread(names_of, content, some)
        of_files = await store.digests(connection, campaign.id, names)
        found = await asyncio.to_thread(lambda rows, known: [*digests(content, rows, known)], some, of_files)
        segments, items = [row.segment for row in some], [row.item for row in some]
        await connection.execute(SETTLE, of_campaign | {"segments": segments, "items": items, "digests": found})


def names_of(content: Content, rows: Sequence[Row[Any]]) -> set[str]:
    """Return the names of the files that outputs show."""
    return {file.name for row in rows for file in content.files(Cells(row.shown))}


def checked(content: Content, types: Mapping[str, str], rows: Sequence[Row[Any]]) -> list[Row[Any]]:
    """Those of the outputs that name files; types: the content types of the files that are there."""
    for row in rows:
        for trouble in troubles(content, types, Cells(row.shown, row.source, row.reference)):
            of = f"of “{shortened(row.of_system)}” " if row.of_system else ""
            raise Conflict(
                f"The output {of}for the segment “{shortened(row.of_segment)}”: {trouble.words} Change the settings, "
                "or import the outputs again.",
                code=trouble.code,
                segment=shortened(row.of_segment),
            )
    return [row for row in rows if content.files(Cells(row.shown))]


def digests(content: Content, rows: Sequence[Row[Any]], of_files: Mapping[str, str]) -> Iterator[str]:
    """Of what each output shows: what is drawn of it, where each file stands by the digest of its bytes."""
    for drawn in content.draw([Cells(row.shown) for row in rows], of_files).items:
        yield hashlib.sha256(drawn.encode()).hexdigest()
