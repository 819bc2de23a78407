"""Check whether a campaign whose items are systems can be launched."""

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import media_checks
from app.database.campaign import load_item_number_by_external_id
from app.database.session import driver_of
from app.database.tables import items
from app.designs.campaign import Campaign
from app.designs.content import Content
from app.errors import Conflict, join_names, shortened_names_that_message_shows
from app.record.outputs import load_segment_index


async def refuse_incomparable_systems(connection: AsyncConnection, campaign: Campaign, system_count: int) -> None:
    """Refuse a campaign whose systems cannot be compared.

    Raises `Conflict`: `one_system`, `too_few_common_segments` if a system can be in no HIT, `iterations_of_systems`,
    `implied_of_systems`, `content_of_systems`, and what `refuse_unshowable_outputs_and_store_digests` raises.
    """
    if Content.from_campaign(campaign).context_columns:
        raise Conflict(
            "For outputs of systems, the texts above them are the source and the reference of their "
            "segment. Clear the source and reference columns in the settings, then launch.",
            code="content_of_systems",
        )
    if system_count == 1:
        raise Conflict(
            f"“{campaign.name}” has only one system, so there is nothing to compare it with. Upload outputs of "
            "another system.",
            code="one_system",
        )
    if campaign.selection == "iterations":
        raise Conflict(
            "Tasks with systems are chosen one at a time, because each segment is chosen for one annotator. Set the "
            "selection to streaming, then launch.",
            code="iterations_of_systems",
        )
    if campaign.implied_asked_percent is not None:
        raise Conflict(
            "An annotator's answer about two systems for one segment implies nothing about others for another "
            "segment. Ask about all pairs, then launch.",
            code="implied_of_systems",
        )
    await media_checks.refuse_unshowable_outputs_and_store_digests(connection, campaign)
    if lacking_systems := await load_names_of_systems_never_shown(connection, campaign, system_count):
        raise Conflict(
            f"Each system needs a segment for which enough systems have outputs that differ, and there is none for "
            f"{join_names(lacking_systems)}. Upload more outputs, then launch.",
            code="too_few_common_segments",
            systems=shortened_names_that_message_shows(lacking_systems),
        )


async def load_names_of_systems_never_shown(
    connection: AsyncConnection, campaign: Campaign, system_count: int
) -> list[str]:
    """Return the names of systems that can be in no HIT."""
    design = campaign.design
    always_shown_numbers = (
        await load_item_number_by_external_id(connection, campaign.id, design.always_shown)
    ).values()
    segments = await load_segment_index(await driver_of(connection), campaign.id, campaign.segment_count, system_count)
    min_systems = max(design.fewest_items, min(2, campaign.items_per_hit))
    incomparable_systems = segments.systems_without_usable_segment(min_systems, always_shown_numbers)
    names = select(items.c.external_id).where(
        items.c.campaign_id == campaign.id, items.c.number.in_(incomparable_systems)
    )
    return list(await connection.scalars(names.order_by(items.c.number)))
