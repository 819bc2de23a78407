"""Checks that a campaign's items, and outputs of systems, can be shown with the files that they name."""

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.practice_sets import PracticeFormat, parse_practice_sets
from app.designs.campaign import Campaign
from app.designs.content import Content, ItemTexts
from app.errors import Conflict, shorten_echo
from app.media import media_store
from app.media.media_problems import iterate_media_problems_of_item

ITEMS_PER_MEDIA_CHECK = 5_000
STREAM_SHOWN_CELLS = text("""
    SELECT number, shown, fields ->> CAST(:source AS text) AS source, fields ->> CAST(:reference AS text) AS reference
    FROM items WHERE campaign_id = :campaign ORDER BY number
""")
OUTPUTS_PER_MEDIA_CHECK = 5_000

# If outputs are texts, only source and reference above them can name files.
STREAM_SOURCES_AND_REFERENCES = text("""
    SELECT external_id AS of_segment, NULL AS of_system, '' AS shown, source, reference FROM segments
    WHERE campaign_id = :campaign AND (source IS NOT NULL OR reference IS NOT NULL) ORDER BY number
""")
STREAM_OUTPUTS_WITHOUT_DIGEST = text("""
    SELECT o.segment, o.item, s.external_id AS of_segment, i.external_id AS of_system, o.shown, s.source, s.reference
    FROM outputs o JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    WHERE o.campaign_id = :campaign AND o.digest IS NULL ORDER BY o.segment, o.item
""")
STORE_OUTPUT_DIGESTS = text("""
    UPDATE outputs o SET digest = told.digest
    FROM unnest(CAST(:segments AS int[]), CAST(:items AS int[]), CAST(:digests AS text[]))
        AS told (segment, item, digest)
    WHERE o.campaign_id = :campaign AND o.segment = told.segment AND o.item = told.item
""")


async def refuse_unshowable_media_of_items(connection: AsyncConnection, campaign: Campaign) -> None:
    """Check at the launch that all items can be shown under the settings, which may have changed since the import.

    Raises `Conflict`: `column_unknown`, `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`.
    """
    content = Content.from_campaign(campaign)
    if content.is_plain_text:
        return
    stored_files = await media_store.load_file_types_total_size_and_next_number(connection, campaign.id)
    parameters = {"campaign": campaign.id, "source": content.source, "reference": content.reference}
    filled_columns: set[str] = set()
    async for rows in (await connection.stream(STREAM_SHOWN_CELLS, parameters)).partitions(ITEMS_PER_MEDIA_CHECK):
        await asyncio.to_thread(refuse_rows_with_media_problems, content, stored_files.content_type_by_name, rows)
        filled_columns |= {name for name in ("source", "reference") if any(getattr(row, name) for row in rows)}
    for name, column in (("source", content.source), ("reference", content.reference)):
        if column and name not in filled_columns:
            raise Conflict(
                f"The column “{shorten_echo(column)}”, which should hold the {name}, is empty for every item. Change "
                "the settings, or import the items again.",
                code="column_unknown",
                column=shorten_echo(column),
            )


def refuse_rows_with_media_problems(
    content: Content, content_type_by_name: Mapping[str, str], rows: Sequence[Row[Any]]
) -> None:
    for row in rows:
        for problem in iterate_media_problems_of_item(
            content, content_type_by_name, ItemTexts(row.shown, row.source, row.reference)
        ):
            message = f"Item number {row.number + 1}: {problem.message} Change the settings, or import the items again."
            raise Conflict(message, code=problem.code, item=row.number)


async def refuse_unshowable_media_of_practice_items(connection: AsyncConnection, campaign: Campaign) -> None:
    """Check at the launch that training and qualification can show the files that they name.

    Raises `Conflict`: `media_missing`, `media_wrong_kind`, `media_link_refused`.
    """
    content = Content.from_campaign(campaign)
    if content.is_plain_text:
        return
    designs = tuple((criterion.name, criterion.design) for criterion in campaign.criteria)
    practice_format = PracticeFormat(designs, campaign.items_per_hit)
    stored_files = await media_store.load_file_types_total_size_and_next_number(connection, campaign.id)
    for step, table in (("Training", campaign.training), ("Qualification", campaign.qualification)):
        items = chain.from_iterable(parse_practice_sets(table, practice_format))
        for number, item in enumerate(items, start=1):
            cells = ItemTexts(item.shown)
            for problem in iterate_media_problems_of_item(content, stored_files.content_type_by_name, cells):
                message = f"{step}, item {number}: {problem.message} Change it in the settings."
                raise Conflict(message, code=problem.code, setting=step.lower())


async def refuse_unshowable_outputs_and_store_digests(connection: AsyncConnection, campaign: Campaign) -> None:
    """Check that all outputs can be shown under the settings, and store digests of what outputs with files show.

    Called at the launch and when outputs are added later.

    Raises `Conflict`: `shown_too_long`, `media_missing`, `media_wrong_kind`, `media_link_refused`.
    """
    content, parameters = Content.from_campaign(campaign), {"campaign": campaign.id}
    content_type_by_name = (
        await media_store.load_file_types_total_size_and_next_number(connection, campaign.id)
    ).content_type_by_name
    outputs_with_files: list[Row[Any]] = []
    statement = STREAM_SOURCES_AND_REFERENCES if content.kind == "text" else STREAM_OUTPUTS_WITHOUT_DIGEST
    async for rows in (await connection.stream(statement, parameters)).partitions(OUTPUTS_PER_MEDIA_CHECK):
        outputs_with_files += await asyncio.to_thread(
            select_outputs_with_files_refusing_unshowable, content, content_type_by_name, rows
        )
    for start in range(0, len(outputs_with_files), OUTPUTS_PER_MEDIA_CHECK):
        batch = outputs_with_files[start : start + OUTPUTS_PER_MEDIA_CHECK]
        names = await asyncio.to_thread(media_file_names_of_outputs, content, batch)
        digest_by_file = await media_store.load_file_digest_by_name(connection, campaign.id, names)
        output_digests = await asyncio.to_thread(
            lambda rows, digests: [*iterate_rendering_digests(content, rows, digests)], batch, digest_by_file
        )
        segments, items = [row.segment for row in batch], [row.item for row in batch]
        await connection.execute(
            STORE_OUTPUT_DIGESTS, parameters | {"segments": segments, "items": items, "digests": output_digests}
        )


def media_file_names_of_outputs(content: Content, rows: Sequence[Row[Any]]) -> set[str]:
    return {file.name for row in rows for file in content.find_media_files_in_cells(ItemTexts(row.shown))}


def select_outputs_with_files_refusing_unshowable(
    content: Content, content_type_by_name: Mapping[str, str], rows: Sequence[Row[Any]]
) -> list[Row[Any]]:
    """Return the outputs that name files, after checking them by the content types of the stored files."""
    for row in rows:
        for problem in iterate_media_problems_of_item(
            content, content_type_by_name, ItemTexts(row.shown, row.source, row.reference)
        ):
            system_phrase = f"of “{shorten_echo(row.of_system)}” " if row.of_system else ""
            raise Conflict(
                f"The output {system_phrase}for the segment “{shorten_echo(row.of_segment)}”: {problem.message} "
                "Change the settings, or import the outputs again.",
                code=problem.code,
                segment=shorten_echo(row.of_segment),
            )
    return [row for row in rows if content.find_media_files_in_cells(ItemTexts(row.shown))]


def iterate_rendering_digests(
    content: Content, rows: Sequence[Row[Any]], digest_by_file: Mapping[str, str]
) -> Iterator[str]:
    """Yield a digest of what each output shows: of its drawing, with each file replaced by the digest of its bytes."""
    for drawn_output in content.render_items([ItemTexts(row.shown) for row in rows], digest_by_file).items:
        yield hashlib.sha256(drawn_output.encode()).hexdigest()
