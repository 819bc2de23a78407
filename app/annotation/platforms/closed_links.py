"""Platforms whose people find no task any more, because a running campaign lost the settings that describe them."""

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.registry import platform_with_title, platforms_with_pages
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.designs.campaign import Campaign

HAS_ANNOTATOR_OF_PLATFORM = text("""
    SELECT EXISTS (SELECT FROM annotators WHERE campaign_id = :campaign AND platform = :platform)
""")


async def load_notes_on_closed_links(connection: AsyncConnection, campaign: Campaign) -> list[str]:
    """Return a note on each platform that a launched campaign named or had people from, and no longer describes."""
    if campaign.status not in ("running", "paused"):
        return []
    crowd_settings = crowd_setting_by_name_with_slug_of_campaign(campaign)
    notes = []
    for platform in platforms_with_pages():
        if platform.set_up_by_campaign is None or platform.platform_in_campaign_or_none(crowd_settings):
            continue
        key = {"campaign": campaign.id, "platform": platform.name}
        if campaign.panel_title or await connection.scalar(HAS_ANNOTATOR_OF_PLATFORM, key):
            title = platform_with_title(platform.name, campaign.panel_title).title
            notes.append(
                f"People from {title} find no task at their link, because “Link parameters” (panel_query) is empty. "
                "Enter it again, or take the link off the platform."
            )
    return notes
