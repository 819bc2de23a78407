"""Totals of a campaign: items, judgments, tasks, hours and money, as far as the settings say."""

from dataclasses import dataclass
from typing import Self

from app.designs.campaign import Campaign


@dataclass(frozen=True)
class CampaignTotals:
    """Totals of a campaign in which every item gets all judgments wanted. Unknown figures are None.

    Attributes:
        hours: Hours of work.
        money: Pay of all tasks, in the campaign's currency.

    """

    items: int
    judgments_per_item: int
    tasks: int
    hours: float | None
    money: float | None

    @classmethod
    def from_campaign(cls, campaign: Campaign, item_count: int) -> Self:
        tasks = count_planned_tasks(campaign, item_count)
        minutes, pay = campaign.minutes_per_hit, campaign.pay_per_hit
        return cls(
            item_count,
            campaign.judgments_per_item,
            tasks,
            tasks * minutes / 60 if tasks and minutes else None,
            tasks * pay if tasks and pay else None,
        )


def count_planned_tasks(campaign: Campaign, item_count: int) -> int:
    """Return how many tasks give each item all judgments wanted; an item of every task takes no place of others."""
    always_shown_count = len(campaign.design.always_shown)
    wanted = max(0, item_count - always_shown_count) * campaign.judgments_per_item
    return -(-wanted // (campaign.items_per_hit - always_shown_count))
