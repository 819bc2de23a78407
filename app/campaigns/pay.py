"""Pay per hour of work, compared with the least that platforms allow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from app.annotation.platforms.registry import PLATFORMS
from app.designs.campaign import Campaign


@dataclass(frozen=True)
class PlatformMinimum:
    """The least pay per hour that a platform allows, in the campaign's currency."""

    platform: str
    amount: float
    is_met: bool


@dataclass(frozen=True)
class HourlyPay:
    """Pay per hour of the work that the settings expect."""

    amount: float
    minimums: Sequence[PlatformMinimum]

    @classmethod
    def from_campaign(cls, campaign: Campaign) -> Self | None:
        """Return the pay per hour; None if the pay of a task or its minutes are unknown."""
        if not campaign.pay_per_hit or not campaign.minutes_per_hit:
            return None
        amount = campaign.pay_per_hit * 60 / campaign.minutes_per_hit
        minimums = [
            PlatformMinimum(platform.title, minimum, round(amount, 2) >= minimum)
            for platform in PLATFORMS.values()
            if (minimum := platform.minimum_hourly_pay.get(campaign.currency)) is not None
        ]
        return cls(amount, minimums)


def minimum_hourly_pay_by_platform_and_currency() -> dict[str, dict[str, float]]:
    """Return the least pay per hour by the title of the platform and the currency, for scripts."""
    return {
        platform.title: dict(platform.minimum_hourly_pay)
        for platform in PLATFORMS.values()
        if platform.minimum_hourly_pay
    }
