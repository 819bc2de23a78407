"""Counts of the conditions of campaigns for their overviews, made at most every few seconds."""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cachetools import LRUCache
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.condition_counts import SquareCounts, square_counts_from_memory_or_none
from app.designs.campaign import Campaign

SQUARE_COUNTS_LAST_FOR = timedelta(seconds=15)  # they read the answers of many annotators
MAX_COUNTED_CAMPAIGNS = 100


@dataclass
class CampaignSquareCounts:
    """The newest counts of a campaign, when they were made, and a lock so that several viewers make them once."""

    counts: SquareCounts | None = None
    counted_at: datetime | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class RecentSquareCounts:
    """Counts of the campaigns whose overviews were opened lately, by campaign id and revision."""

    def __init__(self, cache: PosteriorCache) -> None:
        self.cache = cache
        self.campaigns = LRUCache[tuple[int, int], CampaignSquareCounts](MAX_COUNTED_CAMPAIGNS)

    async def load_counts_or_none(
        self, connection: AsyncConnection, campaign: Campaign, *, now: datetime
    ) -> SquareCounts | None:
        """Return the counts, at most `SQUARE_COUNTS_LAST_FOR` old; None if the items have no conditions."""
        if campaign.condition_column is None:
            return None
        remembered = self.campaigns.setdefault((campaign.id, campaign.revision), CampaignSquareCounts())
        async with remembered.lock:
            if remembered.counted_at is None or abs(now - remembered.counted_at) >= SQUARE_COUNTS_LAST_FOR:
                remembered.counts = await square_counts_from_memory_or_none(connection, self.cache, campaign, now=now)
                remembered.counted_at = now
        return remembered.counts
