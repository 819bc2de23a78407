"""The page of a draft: how many HITs the campaign will ask for."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import summaries
from app.campaigns.summaries import CampaignWithProgress
from app.simulation import rehearsal_offer


async def load_draft_page(connection: AsyncConnection, slug: str) -> dict[str, Any]:
    """Load what the page of a draft shows. Raises `NotFound` (`campaign_not_found`)."""
    campaign = await summaries.load_campaign_with_progress(connection, slug)
    return {
        "campaign": campaign,
        "hits": planned_hit_count(campaign),
        "rehearsal": await rehearsal_offer.load_rehearsal_offer(connection, campaign),
    }


def planned_hit_count(campaign: CampaignWithProgress) -> int:
    """Return how many HITs a draft will take."""
    always_shown_count = len(campaign.design.always_shown)
    wanted = max(0, campaign.judgments_wanted - always_shown_count * campaign.judgments_per_item)
    return int(-(-wanted // (campaign.items_per_hit - always_shown_count)))
