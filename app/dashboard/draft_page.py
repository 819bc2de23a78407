"""The page of a draft: how many HITs the campaign will ask for."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import summaries
from app.campaigns.totals import CampaignTotals
from app.simulation import rehearsal_offer


async def load_draft_page_context(connection: AsyncConnection, slug: str) -> dict[str, Any]:
    """Load what the page of a draft shows. Raises `NotFound` (`campaign_not_found`)."""
    campaign = await summaries.load_campaign_with_progress_or_refuse(connection, slug)
    return {
        "campaign": campaign,
        "totals": CampaignTotals.from_campaign(campaign),
        "rehearsal": await rehearsal_offer.load_rehearsal_offer_or_none_for_rehearsal(connection, campaign),
    }
