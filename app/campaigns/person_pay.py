"""Pay and time of one person in the settings form, for platforms that pay each person one reward.

Settings have the pay and the minutes of a task, which all other code reads. The form asks for those of a person and
divides them by the tasks of a person. Both kinds of fields are in the form, and the page shows one kind: the fields
that someone changed count, and if both kinds changed, those that are shown.
"""

from collections.abc import Mapping
from math import isfinite

from app.annotation.platforms.registry import people_from_values_paid_per_person
from app.campaigns.settings import CampaignSettings
from app.designs.person_work import reward_of_tasks
from app.errors import Invalid
from app.http.languages.catalogue import ENGLISH, format_money

PERSON_REWARD_FIELD, PERSON_TASKS_FIELD = "person_reward", "person_tasks"
PERSON_FIELDS = (PERSON_REWARD_FIELD, PERSON_TASKS_FIELD)
PERSON_MINUTES_SETTING, TASKS_SETTING = "recruiting_minutes", "hits_per_annotator"
PERSON_FIELD_BY_SETTING = {
    "pay_per_hit": PERSON_REWARD_FIELD,
    TASKS_SETTING: PERSON_TASKS_FIELD,
    "minutes_per_hit": PERSON_MINUTES_SETTING,
}
QUOTIENT_DECIMALS = 8  # of the pay of a task, so that the reward is exact to the cent again
REWARD_DECIMALS = 4


def pays_per_person(people_from: str) -> bool:
    return people_from in people_from_values_paid_per_person()


def person_pay_form_values(settings: CampaignSettings) -> dict[str, str]:
    """Return the values of the form's own fields about one person: the reward and the tasks."""
    reward = reward_of_one_person_or_none(settings)
    return {
        PERSON_REWARD_FIELD: reward_text(reward) if reward else "",
        PERSON_TASKS_FIELD: str(settings.hits_per_annotator or ""),
    }


def reward_of_one_person_or_none(settings: CampaignSettings) -> float | None:
    pay, tasks = settings.pay_per_hit, settings.hits_per_annotator
    return reward_of_tasks(pay, tasks) if pay and tasks else None


def form_values_of_task_pay(
    settings: CampaignSettings, entered: Mapping[str, str], *, is_launched: bool
) -> dict[str, str]:
    """Return the form values of the settings that follow from what was entered about one person.

    A draft whose people get one reward keeps the reward and the minutes of one person if the tasks change elsewhere.
    """
    changed = names_of_changed_fields(settings, entered)
    if PERSON_TASKS_FIELD not in entered and TASKS_SETTING in changed:
        if is_launched or not settings.hits_per_annotator or not pays_per_person(settings.people_from):
            return {}
        return quotients_for_tasks(settings, entered[TASKS_SETTING], person_pay_form_values(settings))
    values = {TASKS_SETTING: entered[PERSON_TASKS_FIELD]} if PERSON_TASKS_FIELD in changed else {}
    tasks = entered.get(PERSON_TASKS_FIELD, "")
    is_shown = pays_per_person(entered.get("people_from", settings.people_from))
    person_changed = changed & {*PERSON_FIELDS, PERSON_MINUTES_SETTING}
    quotients = quotients_for_tasks(settings, tasks, entered) if person_changed else {}
    if PERSON_REWARD_FIELD in changed and not entered[PERSON_REWARD_FIELD].strip():
        quotients["pay_per_hit"] = ""
    if not person_changed & {*PERSON_FIELDS}:
        quotients.pop("pay_per_hit", None)
    if not is_shown and settings.minutes_per_hit:
        quotients.pop("minutes_per_hit", None)
    return values | {name: value for name, value in quotients.items() if is_shown or name not in changed}


def names_of_changed_fields(settings: CampaignSettings, entered: Mapping[str, str]) -> set[str]:
    """Return the fields about pay and time whose values were entered and are not those of the stored settings."""
    stored = {name: number_text(getattr(settings, name)) for name in (*PERSON_FIELD_BY_SETTING, PERSON_MINUTES_SETTING)}
    stored |= person_pay_form_values(settings)
    return {name for name, value in stored.items() if name in entered and not is_same_entry(entered[name], value)}


def is_same_entry(entered: str, stored: str) -> bool:
    """Return whether two entries are the same text or the same number, such as 1.5 and 1.50."""
    numbers = number_or_none(entered), number_or_none(stored)
    return entered.strip() == stored or (numbers[0] is not None and numbers[0] == numbers[1])


def quotients_for_tasks(settings: CampaignSettings, tasks_text: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the pay and the minutes of a task; without those whose numbers are missing or cannot be read.

    An unreadable reward is returned as it is, so that the form says what is wrong with it.
    """
    reward = values.get(PERSON_REWARD_FIELD, "").strip()
    minutes = values.get(PERSON_MINUTES_SETTING, number_text(settings.recruiting_minutes)).strip()
    tasks = number_or_none(tasks_text)
    quotients = {}
    if reward and number_or_none(reward) is None:
        quotients["pay_per_hit"] = reward
    for name, amount in (("pay_per_hit", number_or_none(reward)), ("minutes_per_hit", number_or_none(minutes))):
        if amount is not None and tasks is not None and tasks > 0:
            quotients[name] = number_text(amount / tasks, QUOTIENT_DECIMALS)
    return quotients


def settings_with_tasks_per_person(settings: CampaignSettings, tasks: int) -> CampaignSettings:
    """Return the settings with other tasks of one person; where people get one reward, it and their time stay."""
    values: dict[str, float] = {TASKS_SETTING: tasks}
    if pays_per_person(settings.people_from):
        quotients = quotients_for_tasks(settings, str(tasks), person_pay_form_values(settings))
        values |= {name: float(text) for name, text in quotients.items()}
    return settings.model_copy(update=values)


def refuse_reward_without_tasks(settings: CampaignSettings, entered: Mapping[str, str]) -> None:
    """Raise `Invalid` (`tasks_missing`) if there is a reward of one person, but not the tasks that it pays for.

    This is about changes of the two; in another step, about emptying the tasks.
    """
    changed = names_of_changed_fields(settings, entered)
    if TASKS_SETTING in changed and not entered[TASKS_SETTING].strip():
        reward = reward_of_one_person_or_none(settings)
        if reward and pays_per_person(settings.people_from):
            amount = format_money(reward, settings.currency, ENGLISH, exact=True)
            raise tasks_missing_error(f"the reward of {amount}", TASKS_SETTING)
    is_shown = pays_per_person(entered.get("people_from", settings.people_from))
    is_changed = PERSON_REWARD_FIELD in changed or (is_shown and PERSON_TASKS_FIELD in changed)
    has_reward, has_tasks = (bool(entered.get(name, "").strip()) for name in PERSON_FIELDS)
    if is_changed and has_reward and not has_tasks:
        raise tasks_missing_error("this reward", PERSON_TASKS_FIELD)


def tasks_missing_error(reward_words: str, field_name: str) -> Invalid:
    return Invalid(
        f"Enter how many tasks one person does for {reward_words}.", code="tasks_missing", setting=field_name
    )


def field_of_person_or_same(field_name: str, form_values: Mapping[str, str]) -> str:
    """Return the field that shows an error of a setting: that of a person, if the page shows those."""
    is_shown = pays_per_person(form_values.get("people_from", ""))
    return PERSON_FIELD_BY_SETTING.get(field_name, field_name) if is_shown else field_name


def reward_text(reward: float) -> str:
    """Return an amount as people type it: 2, 1.50, 0.125."""
    text = number_text(reward, REWARD_DECIMALS)
    return f"{text}0" if text[-2:-1] == "." else text


def number_or_none(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def number_text(number: float | None, decimals: int | None = None) -> str:
    """Return a number as form fields have it, without decimals that are zero; empty for None."""
    if number is None:
        return ""
    rounded = number if decimals is None else round(number, decimals)
    return str(int(rounded)) if float(rounded).is_integer() else str(rounded)
