"""Reward, time and places of a study, from a campaign's settings and its last plan. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from app.annotation.platforms.service import Balance, HourlyRecommendation, StudyCost
from app.campaigns.forecast_findings import ForecastFindings
from app.campaigns.summaries import CampaignWithProgress
from app.campaigns.totals import (
    PeopleNeeded,
    count_tasks_for_judgments,
)
from app.designs.person_work import most_tasks_of_one_person_or_none, working_minutes_per_person_or_none
from app.errors import Conflict, join_names
from app.payments.money import money_text

SETTING_TITLES = {
    "pay_per_hit": "reward of one person",
    "minutes_per_hit": "minutes of one person",
    "hits_per_annotator": "tasks per annotator",
}


@dataclass(frozen=True)
class StudyPlan:
    """A study that gives the campaign all answers that it wants. Money is in hundredths.

    Attributes:
        reward: Pay of one person.
        minutes: Time of one person.
        places: Number of people.
        most_places: Number of people at the upper end of the plan's band; None if there is no plan, or no end.
        has_plan: Whether the number of people follows from a plan for the campaign's goal.

    """

    reward: int
    minutes: int
    places: int
    most_places: int | None
    has_plan: bool
    currency: str

    @property
    def total(self) -> int:
        return self.reward * self.places

    @property
    def hourly_pay(self) -> int:
        return round(self.reward * 60 / self.minutes)

    @classmethod
    def from_campaign(cls, campaign: CampaignWithProgress) -> Self:
        """Return the study of a campaign. Raises `Conflict` (`study_settings_missing`)."""
        pay, minutes = campaign.pay_per_hit, campaign.minutes_per_hit or campaign.recruiting_minutes
        tasks_per_person = most_tasks_of_one_person_or_none(campaign)
        if not pay or not minutes or not tasks_per_person:
            values = {name: getattr(campaign, name) for name in SETTING_TITLES} | {"minutes_per_hit": minutes}
            missing = [title for name, title in SETTING_TITLES.items() if not values[name]]
            raise Conflict(
                f"A study needs these settings first: {join_names(missing)}. Nothing was changed.",
                code="study_settings_missing",
                settings=missing,
            )
        findings = ForecastFindings.from_stored(
            campaign.newest_plan, items=campaign.item_count, per_item=campaign.judgments_per_item
        )
        totals = list(findings.totals) if findings else []
        middle = count_tasks_for_judgments(campaign, totals[0]) if totals and totals[0] else None
        most = count_tasks_for_judgments(campaign, totals[-1]) if totals and totals[-1] else None
        needed = PeopleNeeded.people_needed_or_none(campaign)
        people = math.ceil(middle / tasks_per_person) if middle else needed.at_least if needed else 1
        return cls(
            reward=round(pay * tasks_per_person * 100),
            minutes=working_minutes_per_person_or_none(campaign) or 1,
            places=people,
            most_places=max(people, math.ceil(most / tasks_per_person)) if most else None,
            has_plan=middle is not None,
            currency=campaign.currency,
        )


def count_people_for_missing_judgments(campaign: CampaignWithProgress) -> int:
    """Return how many more people give the campaign the judgments that it still wants."""
    missing = max(0, campaign.judgments_wanted - campaign.judgments_taken)
    return math.ceil(count_tasks_for_judgments(campaign, missing) / (most_tasks_of_one_person_or_none(campaign) or 1))


def iterate_study_warnings(plan: StudyPlan, base_url: str, recommended: HourlyRecommendation | None) -> Iterator[str]:
    """Yield what a researcher should know before a study is published."""
    hourly = money_text(plan.hourly_pay, plan.currency)
    if recommended and plan.hourly_pay < recommended.minimum:
        yield (
            f"The pay is {hourly} per hour, below the platform’s minimum of "
            f"{money_text(recommended.minimum, plan.currency)}. Raise the reward of one person, or correct "
            "the minutes of one person if the tasks take less time."
        )
    elif recommended and plan.hourly_pay < recommended.recommended:
        wanted = money_text(recommended.recommended, plan.currency)
        yield f"The pay is {hourly} per hour; the platform recommends {wanted}."
    if not base_url.startswith("https://"):
        yield f"People cannot reach {base_url}. Set the public address of the server first (EASEL_PUBLIC_URL)."


def iterate_cost_warnings(
    currency: str, rewards: int, cost: StudyCost | None, balance: Balance | None
) -> Iterator[str]:
    """Yield where the platform's cost differs from what Easel expects, and whether the balance is too low for it.

    Args:
        currency: Currency of the campaign.
        rewards: Rewards of all places as Easel computes them, in hundredths.
        cost: What the platform computes; None if there is no draft, or it does not say.
        balance: What the workspace has; None if it does not say, or the study was published, since its money was
            set aside then.

    """
    if cost and cost.currency and cost.currency != currency:
        yield f"The platform computes the cost in {cost.currency}, but this campaign pays in {currency}."
    elif cost and cost.rewards != rewards:
        yield (
            f"The platform expects rewards of {money_text(cost.rewards, currency)}, but Easel expects "
            f"{money_text(rewards, currency)}: the reward or the places were changed there."
        )
    needed, what = (cost.total, "cost") if cost else (rewards, "rewards")
    if balance and balance.available < needed:
        yield (
            f"The workspace has {money_text(balance.available, balance.currency or currency)}, less than the {what} of "
            f"{money_text(needed, currency)}{'' if cost else ', and fees come on top'}. Add money on the platform "
            "before you publish."
        )
