"""A campaign whose items are systems: whether it can be launched."""

from typing import Any

from sqlalchemy import Row, select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import output_media
from app.database.campaign import item_numbers
from app.database.session import driver_of
from app.database.tables import items
from app.designs.content import Content
from app.designs.registry import design_of
from app.errors import Conflict, listed, some_of
from app.record.outputs import segments_of


async def check(connection: AsyncConnection, campaign: Row[Any], systems: int) -> None:
    """Raises `Conflict`: `one_system`, `too_few_common_segments` where nobody could be asked about a system,
    `iterations_of_systems`, `implied_of_systems`, `content_of_systems`, and what `output_media.settle` raises.
    """
    if Content.of(campaign).columns:
        raise Conflict(
            "What stands above the outputs of systems comes with them, as the source and the reference of their "
            "segment. Name no columns for source and reference in the settings, then launch.",
            code="content_of_systems",
        )
    if systems == 1:
        raise Conflict(
            f"“{campaign.name}” has one system, and nothing to compare it with. Upload outputs of another one.",
            code="one_system",
        )
    if campaign.selection == "iterations":
        raise Conflict(
            "Systems are asked about one HIT at a time, because a segment is chosen for whoever asks. Set the "
            "selection to streaming, then launch.",
            code="iterations_of_systems",
        )
    if campaign.implied_asked_percent is not None:
        raise Conflict(
            "What an annotator says of two systems for one segment implies nothing of others for another one. Have "
            "all pairs asked, then launch.",
            code="implied_of_systems",
        )
    await output_media.settle(connection, campaign)
    if lacking := await lacking_segments(connection, campaign, systems):
        raise Conflict(
            f"Each system needs a segment for which enough systems have outputs that differ, and there is none for "
            f"{listed(lacking)}. Upload more outputs, then launch.",
            code="too_few_common_segments",
            systems=some_of(lacking),
        )


async def lacking_segments(connection: AsyncConnection, campaign: Row[Any], systems: int) -> list[str]:
    """The systems that cannot stand in a HIT, by name."""
    design = design_of(campaign)
    must = (await item_numbers(connection, campaign.id, design.always_shown)).values()
    segments = await segments_of(await driver_of(connection), campaign.id, campaign.segment_count, systems)
    fewest = max(design.fewest_items, min(2, campaign.items_per_hit))
    apart = segments.apart(fewest, must)
    names = select(items.c.external_id).where(items.c.campaign_id == campaign.id, items.c.number.in_(apart))
    return list(await connection.scalars(names.order_by(items.c.number)))
