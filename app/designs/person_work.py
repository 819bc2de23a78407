"""Time and pay of one person in a campaign, as its settings say. Pure."""

from math import ceil

from app.designs.campaign import Campaign

ROUNDING_DIGITS = 6  # minutes that are whole but for rounding errors are not rounded up
MONEY_DIGITS = 4
SECONDS_STEP = 5


def most_tasks_of_one_person_or_none(campaign: Campaign) -> int | None:
    """Return the limit of tasks per person, or the number of segments if it is smaller and people judge each once.

    None without a limit of tasks per person.
    """
    limit = campaign.hits_per_annotator
    if limit and campaign.segment_count and not campaign.repeat_items:
        return min(int(limit), campaign.segment_count)
    return int(limit) if limit else None


def working_minutes_per_person_or_none(campaign: Campaign) -> int | None:
    """Return the whole minutes that one person works; None if the settings do not say it."""
    return whole_minutes_or_none(
        campaign.minutes_per_hit, most_tasks_of_one_person_or_none(campaign), campaign.recruiting_minutes
    )


def whole_minutes_or_none(
    minutes_per_task: float | None, tasks: float | None, minutes_of_study: int | None
) -> int | None:
    """Return the whole minutes of so many tasks, or those of the whole study if they are known."""
    if minutes_of_study:
        return minutes_of_study
    return max(1, ceil(round(minutes_per_task * tasks, ROUNDING_DIGITS))) if minutes_per_task and tasks else None


def reward_of_tasks(pay_per_task: float, tasks: float) -> float:
    """Return the pay of so many tasks without the rounding error of the pay of a task."""
    return round(pay_per_task * tasks, MONEY_DIGITS)


def task_time_text(minutes: float) -> str:
    """Return the time of a task, such as `2 minutes`, `1.5 minutes`, or `40 seconds` below a minute."""
    if minutes < 1:
        return f"{max(SECONDS_STEP, round(minutes * 60 / SECONDS_STEP) * SECONDS_STEP)} seconds"
    return f"{round(minutes, 1):g} minute" + ("" if round(minutes, 1) == 1 else "s")
