"""The open link of a campaign whose people come from a platform: a notice, and one press that closes the link."""

from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import platform_of_completion_code_or_none
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.campaigns.settings_edits import store_changed_settings_or_refuse
from app.designs.campaign import Campaign


def platform_recruiting_beside_open_link_or_none(campaign: Campaign) -> Platform | None:
    """Return the platform that a campaign recruits on, if its open link admits everyone, too; else None."""
    if not campaign.open_link or campaign.passphrase:
        return None
    return platform_of_completion_code_or_none(crowd_setting_by_name_with_slug_of_campaign(campaign))


async def close_open_link_and_keep_platform_links(connection: AsyncConnection, slug: str) -> None:
    """Close the open link to new people, and keep the links of platforms open."""
    values = {"open_link": False, "open_platforms": True}
    await store_changed_settings_or_refuse(connection, slug, lambda before: before.model_copy(update=values))
