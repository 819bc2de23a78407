"""Time and pay of one person in a campaign, as its settings say. Pure."""

from dataclasses import dataclass
from math import ceil
from typing import Protocol

ROUNDING_DIGITS = 6  # minutes that are whole but for rounding errors are not rounded up
MONEY_DIGITS = 4
SECONDS_STEP = 5


class LimitedWork(Protocol):
    """The limit of tasks per person, and what else limits them."""

    @property
    def hits_per_annotator(self) -> float | None: ...
    @property
    def segment_count(self) -> int: ...
    @property
    def repeat_items(self) -> bool: ...


class PaidWork(LimitedWork, Protocol):
    """These limits, and the time and pay of a task."""

    @property
    def minutes_per_hit(self) -> float | None: ...
    @property
    def recruiting_minutes(self) -> int | None: ...
    @property
    def pay_per_hit(self) -> float | None: ...


class PayingPlatform(Protocol):
    """How a platform pays people."""

    @property
    def one_hit_per_assignment(self) -> bool: ...
    @property
    def pays_per_person(self) -> bool: ...


@dataclass(frozen=True)
class PersonWork:
    """Time and pay of one person: in all if the number of their tasks is known, and of a task. Unknown ones are None.

    Attributes:
        tasks: Tasks of the person.
        minutes_in_all: Whole minutes of all their tasks, or of the whole study if the settings say so.
        minutes_of_task: Minutes of a task.
        pay_in_all: Pay of all their tasks.
        pay_of_task: Pay of a task.

    """

    tasks: int | None
    minutes_in_all: int | None
    minutes_of_task: float | None
    pay_in_all: float | None
    pay_of_task: float | None

    @property
    def seconds_of_short_task(self) -> int | None:
        """Seconds of a task that takes less than a minute, to 5 s."""
        minutes = self.minutes_of_task
        return max(SECONDS_STEP, round(minutes * 60 / SECONDS_STEP) * SECONDS_STEP) if minutes and minutes < 1 else None


def work_of_one_person(campaign: PaidWork, platform: PayingPlatform) -> PersonWork:
    """Return the time and the pay of one person who comes from a platform."""
    tasks, pay = tasks_of_one_person_or_none(campaign, platform), campaign.pay_per_hit
    minutes = whole_minutes_or_none(campaign.minutes_per_hit, tasks, campaign.recruiting_minutes) if tasks else None
    pay_in_all = reward_of_tasks(pay, tasks) if pay and tasks else None
    return PersonWork(tasks, minutes, campaign.minutes_per_hit, pay_in_all, pay)


def tasks_of_one_person_or_none(campaign: LimitedWork, platform: PayingPlatform) -> int | None:
    """Return how many tasks one person does; None if that is open, or if each task is a visit of its own.

    It is open without a limit, and where no item is shown to a person again: they may run out of items before the
    limit. A platform that pays each person one reward pays all of it even then.
    """
    tasks = most_tasks_of_one_person_or_none(campaign)
    if tasks is None or platform.one_hit_per_assignment:
        return None
    may_run_out_of_items = tasks > 1 and not campaign.repeat_items and not campaign.segment_count
    return None if may_run_out_of_items and not platform.pays_per_person else tasks


def most_tasks_of_one_person_or_none(campaign: LimitedWork) -> int | None:
    """Return the limit of tasks per person, or the number of segments if it is smaller and people judge each once.

    None without a limit of tasks per person.
    """
    limit = campaign.hits_per_annotator
    if limit and campaign.segment_count and not campaign.repeat_items:
        return min(int(limit), campaign.segment_count)
    return int(limit) if limit else None


def working_minutes_per_person_or_none(campaign: PaidWork) -> int | None:
    """Return the whole minutes that one person works at most; None if the settings do not say it."""
    return whole_minutes_or_none(
        campaign.minutes_per_hit, most_tasks_of_one_person_or_none(campaign), campaign.recruiting_minutes
    )


def whole_minutes_or_none(
    minutes_per_task: float | None, tasks: int | None, minutes_of_study: int | None
) -> int | None:
    """Return the whole minutes of a number of tasks, or those of the whole study if they are known."""
    if minutes_of_study:
        return minutes_of_study
    return max(1, ceil(round(minutes_per_task * tasks, ROUNDING_DIGITS))) if minutes_per_task and tasks else None


def reward_of_tasks(pay_per_task: float, tasks: int) -> float:
    """Return the pay of a number of tasks without the rounding error of the pay of a task."""
    return round(pay_per_task * tasks, MONEY_DIGITS)
