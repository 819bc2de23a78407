"""Rendering of the items of a HIT, with the files that they name."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from sqlalchemy import text

from app.database.session import Driver, Record, fetch_rows
from app.designs.content import (
    Content,
    ContentSettings,
    ItemTexts,
    RenderedItems,
    SourceAndReference,
    rendered_plain_items,
)
from app.media.media_store import load_media_url_by_name

T = TypeVar("T")

SELECT_SOURCE_AND_REFERENCE = text("""
    SELECT number, fields ->> CAST(:source AS text) AS source, fields ->> CAST(:reference AS text) AS reference
    FROM items WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
""")


class ItemContextRow(Record):
    number: int
    source: str | None
    reference: str | None


class CampaignWithItems(ContentSettings, Protocol):
    """A campaign, as far as its items are rendered."""

    @property
    def id(self) -> int: ...
    @property
    def segment_count(self) -> int: ...


async def render_campaign_items(
    connection: Driver,
    campaign: CampaignWithItems,
    item_numbers: Sequence[int],
    item_texts: Sequence[str],
    segment_context: SourceAndReference | None = None,
) -> RenderedItems:
    """Render items of a campaign by their numbers and texts.

    Plain texts need no query. If the texts are outputs of systems, `segment_context` has source and reference of their
    segment; without it they are names of systems.
    """
    if campaign.segment_count and segment_context is None:
        return rendered_plain_items(item_texts)
    content = Content.from_campaign(campaign)
    if content.is_plain_text and not (segment_context and any(segment_context)):
        return rendered_plain_items(item_texts)
    context_by_number: dict[int, ItemContextRow] = {}
    if content.context_columns:
        parameters = {"campaign": campaign.id, "numbers": [*item_numbers]}
        parameters |= {"source": content.source, "reference": content.reference}
        context_by_number = {
            row.number: row
            for row in await fetch_rows(connection, SELECT_SOURCE_AND_REFERENCE, parameters, ItemContextRow)
        }
    rows = [
        ItemTexts(shown, *segment_context)
        if segment_context
        else item_text_with_source_and_reference(shown, context_by_number.get(number))
        for number, shown in zip(item_numbers, item_texts, strict=True)
    ]
    file_names = await run_in_thread_if_rendering_is_slow(
        content, rows, partial(names_of_stored_files_in_items, content, rows)
    )
    url_by_name = await load_media_url_by_name(connection, campaign.id, file_names) if file_names else {}
    return await run_in_thread_if_rendering_is_slow(content, rows, partial(content.render_items, rows, url_by_name))


async def run_in_thread_if_rendering_is_slow(
    content: Content, item_cells: Sequence[ItemTexts], render_items: Callable[[], T]
) -> T:
    """Return the result of a function of these items, run in a thread if rendering them is slow."""
    return await asyncio.to_thread(render_items) if content.is_slow_to_render(item_cells) else render_items()


def names_of_stored_files_in_items(content: Content, item_cells: Sequence[ItemTexts]) -> set[str]:
    return {file.name for row in item_cells for file in content.find_media_files_in_cells(row) if not file.is_link}


def item_text_with_source_and_reference(item_text: str, context: ItemContextRow | None) -> ItemTexts:
    return ItemTexts(item_text, context.source, context.reference) if context else ItemTexts(item_text)
