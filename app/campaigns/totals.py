"""Totals of a campaign: items, judgments, tasks, hours, money and people, as far as the settings say. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Self

from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import recruiting_platform
from app.annotation.platforms.settings import crowd_setting_by_name_with_slug_of_campaign
from app.designs.campaign import Campaign
from app.designs.person_work import (
    most_tasks_of_one_person_or_none,
    reward_of_tasks,
    working_minutes_per_person_or_none,
)
from app.errors import join_with_and, pluralize
from app.http.languages.catalogue import ENGLISH, format_money
from app.quality.checks import number_of_checks_per_hit, reason_hits_cannot_show_checks_or_empty
from app.quality.workload import average_share_of_hits_with_checks, largest_workload_of_one_annotator
from app.record.campaign import CountedCampaign

NEARLY_ALL_ITEMS = 0.9  # if one person sees this share of the items, all are meant
ROUNDING_DIGITS = 9  # a quotient that is whole but for rounding errors is not rounded up


@dataclass(frozen=True)
class PeopleNeeded:
    """People whom a campaign with a limit of tasks per person needs, and the work of each of them.

    Attributes:
        at_least: Number of people if each of them does as many tasks as allowed.
        at_most: Number of people if the last ones find fewer tasks, because no one judges an item twice. The same
            number as `at_least` if nothing keeps people from the limit.
        tasks: Tasks of one person.
        minutes: Whole minutes of one person; None if unknown.
        reward: Pay of one person in the campaign's currency; None if unknown.
        uncounted_steps: Steps before the tasks that the minutes leave out, such as "consent".

    """

    at_least: int
    at_most: int
    tasks: int
    minutes: int | None
    reward: float | None
    uncounted_steps: Sequence[str]

    @property
    def range_text(self) -> str:
        """Number of people, such as "67", or "67 to 76"."""
        return f"{self.at_least:,}" + (f" to {self.at_most:,}" if self.at_most > self.at_least else "")

    @property
    def rewards(self) -> tuple[float, ...]:
        """Rewards of the fewest and of the most people, once if they are the same number; empty if unknown."""
        return tuple(self.reward * count for count in sorted({self.at_least, self.at_most})) if self.reward else ()

    @classmethod
    def people_needed_or_none(cls, campaign: CountedCampaign, judgments: int | None = None) -> Self | None:
        """Return the people needed for so many judgments, by default for all judgments wanted.

        None without items or a limit of tasks per person.
        """
        limit = most_tasks_of_one_person_or_none(campaign)
        judgments = count_planned_judgments(campaign) if judgments is None else judgments
        if not limit or not judgments:
            return None
        judgments_per_person = limit * average_judgments_per_task(campaign, *counts_of_items_and_checks(campaign))
        no_repeats, items = not campaign.repeat_items and not campaign.segment_count, count_drawable_items(campaign)
        if no_repeats:
            judgments_per_person = min(judgments_per_person, items)
        at_least = at_most = round_up_quotient(judgments, judgments_per_person)
        if no_repeats and judgments_per_person < items:
            at_most = max(at_least, count_people_needed_without_repeats(judgments, judgments_per_person, campaign))
        pay = campaign.pay_per_hit
        minutes, reward = working_minutes_per_person_or_none(campaign), reward_of_tasks(pay, limit) if pay else None
        return cls(at_least, at_most, limit, minutes, reward, steps_outside_working_minutes(campaign))


@dataclass(frozen=True)
class CampaignTotals:
    """Totals of a campaign in which every item gets all judgments wanted. Unknown figures are None.

    Attributes:
        items: Items that annotators are asked about.
        check_places: Places that gold and attention items take in the tasks, on average.
        check_kinds: Kinds of checks that the campaign has, such as "gold items".
        hours: Hours of work.
        costs: Least and greatest pay in the campaign's currency, once if they are the same: the pay of all tasks, or
            the rewards of all people where each person gets one reward. Empty if unknown.
        people: People to recruit.
        different_people: Fewest people who can give all judgments, as no one judges an item twice or does two tasks
            for a segment; None if people may judge it again.
        assignments: Assignments to order, where the platform pays for each, and each is one task; None elsewhere.

    """

    items: int
    judgments_per_item: int
    tasks: int
    check_places: int
    check_kinds: str
    hours: float | None
    costs: Sequence[float]
    people: PeopleNeeded | None
    different_people: int | None
    assignments: int | None

    @classmethod
    def from_campaign(cls, campaign: CountedCampaign) -> Self:
        tasks = count_planned_tasks(campaign)
        checks_per_task = average_checks_per_task(campaign, *counts_of_items_and_checks(campaign))
        minutes = campaign.minutes_per_hit
        return cls(
            campaign.item_count - campaign.retired_count,
            campaign.judgments_per_item,
            tasks,
            round(tasks * checks_per_task),
            kinds_of_checks_text_or_empty(campaign),
            tasks * minutes / 60 if tasks and minutes else None,
            costs_of_judgments(campaign, count_planned_judgments(campaign)),
            PeopleNeeded.people_needed_or_none(campaign),
            fewest_different_people_or_none(campaign),
            tasks if recruiting_platform_of_campaign(campaign).one_hit_per_assignment else None,
        )


def costs_of_judgments(campaign: CountedCampaign, judgments: int) -> Sequence[float]:
    """Return the least and the greatest pay for so many judgments, once if they are the same; empty if unknown.

    This is what a study costs on all pages. Where the platform pays each person one reward, it is the rewards of all
    people; otherwise the pay of all tasks.
    """
    people = PeopleNeeded.people_needed_or_none(campaign, judgments) if pays_one_reward_per_person(campaign) else None
    tasks = count_tasks_for_judgments(campaign, judgments)
    if people and people.rewards:
        return people.rewards
    return [tasks * campaign.pay_per_hit] if tasks and campaign.pay_per_hit else []


def pays_one_reward_per_person(campaign: Campaign) -> bool:
    """Return whether people come from a platform that pays each of them one reward, for a known number of tasks."""
    pays_per_person = recruiting_platform_of_campaign(campaign).pays_per_person
    return pays_per_person and bool(most_tasks_of_one_person_or_none(campaign))


def recruiting_platform_of_campaign(campaign: Campaign) -> Platform:
    return recruiting_platform(crowd_setting_by_name_with_slug_of_campaign(campaign))


def sentences_on_totals(campaign: CountedCampaign) -> str:
    """Return how many tasks a campaign needs, and whom to recruit if it has a limit of tasks per person."""
    totals = CampaignTotals.from_campaign(campaign)
    judgments, tasks = pluralize(count_planned_judgments(campaign), "judgment"), pluralize(totals.tasks, "task")
    sentences = f"{judgments} need {tasks}"
    if totals.check_places:
        sentences += f", which also show {totals.check_kinds} about {pluralize(totals.check_places, 'time')}"
    if totals.costs:
        sentences += f"; they pay {cost_range_text(totals.costs, campaign.currency)}"
    people = totals.people
    return f"{sentences}." + (f" Recruit {people.range_text} people." if people else "")


def cost_range_text(costs: Sequence[float], currency: str) -> str:
    """Return one amount, or the least and the greatest one, such as "$16.50 to $31.50"."""
    return " to ".join(format_money(cost, currency, ENGLISH) for cost in costs)


def sentence_on_planned_work_and_pay_or_empty(campaign: CountedCampaign) -> str:
    """Return how many judgments and tasks all judgments wanted are, and the hours and pay as far as the settings say.

    Empty for a campaign without items.
    """
    totals = CampaignTotals.from_campaign(campaign)
    if not totals.tasks:
        return ""
    per_item = pluralize(totals.judgments_per_item, "judgment")
    judgments = pluralize(count_planned_judgments(campaign), "judgment")
    hours = f", {totals.hours:,.1f} hours of work" if totals.hours else ""
    pay = f", {cost_range_text(totals.costs, campaign.currency)}" if totals.costs else ""
    noun = "system" if campaign.segment_count else "item"
    return f"With {per_item} per {noun}: {judgments} in {pluralize(totals.tasks, 'task')}{hours}{pay}."


def sentence_on_task_size(campaign: CountedCampaign) -> str:
    """Return how many items a task has, and how many tasks show one person all items, if no item is shown twice."""
    noun = "output" if campaign.segment_count else "item"
    size = f"A task is {pluralize(campaign.items_per_hit, noun)}"
    items, counts = count_drawable_items(campaign), counts_of_items_and_checks(campaign)
    if not items or campaign.repeat_items or campaign.segment_count:
        return f"{size}."
    tasks = round_up_quotient(items, average_judgments_per_task(campaign, *counts))
    verb = "shows" if tasks == 1 else "show"
    return f"{size}, so {pluralize(tasks, 'task')} {verb} one person all {pluralize(items, noun)}."


@dataclass(frozen=True)
class MissedItems:
    """Items that one person misses, as their tasks are a few too few to show all items.

    Attributes:
        shown: Number of different items that one person judges on average.
        items: Number of items.
        tasks: Tasks that show one person all items.

    """

    shown: int
    items: int
    tasks: int

    @classmethod
    def missed_items_or_none(cls, campaign: CountedCampaign) -> Self | None:
        """Return what one person misses; None if they see all items, or too few for all to be meant."""
        limit, items = most_tasks_of_one_person_or_none(campaign), count_drawable_items(campaign)
        if not limit or not items or campaign.repeat_items or campaign.segment_count:
            return None
        per_task = average_judgments_per_task(campaign, *counts_of_items_and_checks(campaign))
        shown, tasks = int(limit * per_task), round_up_quotient(items, per_task)
        return cls(shown, items, tasks) if NEARLY_ALL_ITEMS * items <= shown < items and tasks > limit else None


def kinds_of_checks_text_or_empty(campaign: CountedCampaign) -> str:
    """Return the kinds of checks that a campaign has: "gold items", "attention items" or both; empty without checks."""
    counts = {"gold": campaign.gold_count, "attention": campaign.check_count - campaign.gold_count}
    kinds = [kind for kind, count in counts.items() if count]
    return f"{join_with_and(kinds)} items" if kinds else ""


def counts_of_items_and_checks(campaign: CountedCampaign) -> tuple[int, int]:
    """Return how many items a campaign asks about, and how many gold and attention items it has."""
    return campaign.item_count - campaign.retired_count, campaign.check_count


def average_checks_per_task(campaign: Campaign, item_count: int, check_count: int) -> float:
    """Return how many places of a task gold and attention items take on average.

    A share of one person's tasks, at random places, has checks, until the annotator has met all of them. If the number
    of tasks of one person is unlimited, all tasks of that share are counted.

    Args:
        campaign: The campaign.
        item_count: Number of items that annotators are asked about.
        check_count: Number of gold and attention items.

    """
    if not campaign.checks_percent or reason_hits_cannot_show_checks_or_empty(campaign):
        return 0.0
    workload = replace(
        largest_workload_of_one_annotator(campaign, item_count, None),
        max_checks={"gold": check_count // number_of_checks_per_hit(campaign)},
    )
    if not workload.max_checks["gold"]:
        return 0.0
    return average_share_of_hits_with_checks(workload) * number_of_checks_per_hit(campaign)


def average_judgments_per_task(campaign: Campaign, item_count: int, check_count: int) -> float:
    """Return how many judgments of items a task brings on average: an item of every task brings none that counts, and
    neither do gold and attention items.
    """
    drawn_per_task = campaign.items_per_hit - len(campaign.design.always_shown)
    return drawn_per_task - average_checks_per_task(campaign, item_count, check_count)


def count_planned_judgments(campaign: CountedCampaign) -> int:
    """Return how many judgments give each item that can be drawn all judgments wanted."""
    return count_drawable_items(campaign) * campaign.judgments_per_item


def count_drawable_items(campaign: CountedCampaign) -> int:
    """Return how many items are drawn for tasks: all but the retired ones and those that every task shows."""
    return max(0, campaign.item_count - campaign.retired_count - len(campaign.design.always_shown))


def count_planned_tasks(campaign: CountedCampaign) -> int:
    """Return how many tasks give each item all judgments wanted."""
    return count_tasks_for_judgments(campaign, count_planned_judgments(campaign))


def count_tasks_for_judgments(campaign: CountedCampaign, judgment_count: int) -> int:
    """Return how many tasks bring so many judgments on average."""
    return round_up_quotient(
        judgment_count, average_judgments_per_task(campaign, *counts_of_items_and_checks(campaign))
    )


def count_tasks_left(judgments_wanted: int, judgments_left: int, judgments_per_task: float) -> int:
    """Return how many tasks bring the judgments that are left; at least 1 if any are.

    Tasks done and left add up to the tasks of all judgments wanted, as long as the done ones brought about as many
    judgments as expected. So the total does not jump with each task that has more or fewer checks than the average.
    """
    if not judgments_left:
        return 0
    tasks_done = round((judgments_wanted - judgments_left) / judgments_per_task)
    return max(1, round_up_quotient(judgments_wanted, judgments_per_task) - tasks_done)


def round_up_quotient(judgment_count: float, judgments_per_unit: float) -> int:
    """Return how many tasks or people bring so many judgments, as a whole number."""
    return ceil(round(judgment_count / judgments_per_unit, ROUNDING_DIGITS))


def count_people_needed_without_repeats(
    judgment_count: int, judgments_per_person: float, campaign: CountedCampaign
) -> int:
    """Return how many people are enough if they come one after the other and no one judges an item twice.

    As long as enough items are open, each person does all tasks allowed. After that, each person judges every open item
    once, so that at most as many more people come as one item wants judgments, and these judgments are among the last.
    """
    per_item = ceil(judgment_count / count_drawable_items(campaign))
    return round_up_quotient(max(0, judgment_count - per_item), judgments_per_person) + per_item


def fewest_different_people_or_none(campaign: CountedCampaign) -> int | None:
    """Return how many people all judgments need at least; None if people may judge an item or segment again.

    A person judges an item once, and does at most one task for each segment.
    """
    if campaign.repeat_items:
        return None
    if not campaign.segment_count:
        return campaign.judgments_per_item
    return ceil(count_planned_tasks(campaign) / campaign.segment_count)


def steps_outside_working_minutes(campaign: Campaign) -> list[str]:
    """Return the steps before the tasks that the minutes of one person leave out; none if the study states its own."""
    if campaign.recruiting_minutes:
        return []
    steps = {"consent": campaign.consent, "questions": campaign.questions, "training": campaign.training}
    return [name for name, content in steps.items() if content]
