"""What the last plan of a draft found, which its launch says again."""

from dataclasses import asdict, dataclass
from typing import Any, Self

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.tables import campaigns


@dataclass(frozen=True)
class PlanFound:
    """items: that there were. per_item: judgments wanted of each. warning: that the campaign may end before its goal,
    as a sentence; empty where it has judgments enough. enough: judgments an item with which nine of ten simulated
    campaigns reach it; None where no number does.
    """

    items: int
    per_item: int
    warning: str
    enough: int | None

    @classmethod
    def of(cls, campaign: Any) -> Self | None:
        """Return what is known of a draft as it stands, None where it was not planned, or has other items by now."""
        known = campaign.newest_plan and cls(**campaign.newest_plan)
        same = known and (known.items, known.per_item) == (campaign.item_count, campaign.judgments_per_item)
        return known if same else None


async def remember(connection: AsyncConnection, slug: str, found: PlanFound) -> None:
    """Store what a plan found of a draft; nothing of a campaign that has changed since, or was launched."""
    those = campaigns.c.slug == slug, campaigns.c.status == "draft", campaigns.c.judgments_per_item == found.per_item
    await connection.execute(update(campaigns).where(*those).values(newest_plan=asdict(found)))
