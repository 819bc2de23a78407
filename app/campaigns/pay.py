"""Pay per hour of work, compared with the least that platforms allow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from app.annotation.platforms.registry import PLATFORM_BY_PEOPLE_FROM, PLATFORMS
from app.campaigns.totals import steps_outside_working_minutes
from app.designs.campaign import Campaign
from app.designs.person_work import work_of_one_person
from app.errors import pluralize
from app.http.languages.catalogue import ENGLISH, format_money
from app.quality.work_time import MIN_TASKS_FOR_HOURLY_PAY

SECONDS_PER_HOUR = 3600


@dataclass(frozen=True)
class PlatformMinimum:
    """The least pay per hour that a platform allows, in the campaign's currency."""

    platform: str
    amount: float
    is_met: bool


@dataclass(frozen=True)
class HourlyPay:
    """Pay per hour of the work that the settings expect.

    Attributes:
        amount: Pay per hour of the whole study if its minutes are known, else of the tasks.
        minimums: Least pay per hour of each platform.
        uncounted_steps: Steps before the tasks whose time is left out, such as "consent".

    """

    amount: float
    minimums: Sequence[PlatformMinimum]
    uncounted_steps: Sequence[str]

    @classmethod
    def from_campaign(cls, campaign: Campaign) -> Self | None:
        """Return the pay per hour; None if the pay of a task or its minutes are unknown."""
        pay, tasks = campaign.pay_per_hit, campaign.hits_per_annotator
        if pay and tasks and campaign.recruiting_minutes:
            amount = pay * tasks * 60 / campaign.recruiting_minutes
        elif pay and campaign.minutes_per_hit:
            amount = pay * 60 / campaign.minutes_per_hit
        else:
            return None
        minimums = [
            PlatformMinimum(platform.title, minimum, round(amount, 2) >= minimum)
            for platform in PLATFORMS.values()
            if (minimum := platform.minimum_hourly_pay.get(campaign.currency)) is not None
        ]
        return cls(amount, minimums, steps_outside_working_minutes(campaign))


def minimum_hourly_pay_by_platform_and_currency() -> dict[str, dict[str, float]]:
    """Return the least pay per hour by the title of the platform and the currency, for scripts."""
    return {
        platform.title: dict(platform.minimum_hourly_pay)
        for platform in PLATFORMS.values()
        if platform.minimum_hourly_pay
    }


def hourly_pay_by_median_time_or_none(
    campaign: Campaign, median_seconds: float | None, task_count: int
) -> float | None:
    """Return the pay per hour by the median time of a task; None if the pay is unknown, or too few people's times."""
    if not (campaign.pay_per_hit and median_seconds) or campaign.rehearsal_of is not None:
        return None
    return campaign.pay_per_hit * SECONDS_PER_HOUR / median_seconds if task_count >= MIN_TASKS_FOR_HOURLY_PAY else None


def text_of_agreed_pay(campaign: Campaign) -> str:
    """Return the pay of all tasks of one person if their number is known, else the pay of a task."""
    work = work_of_one_person(campaign, PLATFORM_BY_PEOPLE_FROM[campaign.people_from])
    if not work.tasks:
        return f"{format_money(work.pay_of_task or 0.0, campaign.currency, ENGLISH, exact=True)} a task"
    pay = format_money(work.pay_in_all or 0.0, campaign.currency, ENGLISH, exact=True)
    return f"{pay} for {pluralize(work.tasks, 'task')}"
