"""Titles of the choices that a setting offers, as the form shows them."""

from collections.abc import Mapping
from typing import Any, get_args

from app.annotation.platforms.settings import Currency
from app.annotation.platforms.study_settings import PEOPLE_FROM_TITLES
from app.campaigns.form_sections import CRITERIA_SHOWN_SETTING
from app.designs.content import CONTENT_KINDS
from app.designs.registry import DESIGNS
from app.goals.settings import GOAL_TITLES, WHEN_REACHED_TITLES
from app.http.languages.catalogue import BROWSER_LANGUAGE, LANGUAGES
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES

SCHEDULE_TITLES = {
    "streaming": "Streaming: choose each task from the newest scores",
    "iterations": "Iterations: choose all tasks of a round at once, as in Algorithm 1",
}
DIFFERENCE_TITLES = {
    "none": "Not marked",
    "reference": "Between each item and its reference",
    "pair": "Between the two items of a task",
}
REMARK_TARGET_TITLES = {
    "none": "None",
    "HIT": "On the task",
    "items": "On each item",
    "both": "On the task and each item",
}
COMMENT_REQUEST_TITLES = {
    "offered": "Offered: in a fold below the task",
    "asked": "Asked for: an open field, which may stay empty",
    "required": "Required: an open field that must be filled",
}
QUALITY_PRESET_TITLES = {
    "watch": "Watch: only warn me",
    "strict": "Strict: hold annotators, so that they get no more tasks",
    "off": "Off",
}
CURRENCY_TITLES = {code: code for code in get_args(Currency)}
CRITERIA_LAYOUT_TITLES = {"in turn": "One after another", "grid": "Side by side, in a grid"}
STUDY_DEVICE_TITLES = {
    "any": "Any device",
    "desktop": "Computers",
    "desktop and tablet": "Computers and tablets",
    "mobile": "Phones",
}
CALL_METHOD_TITLES = {"GET": "GET", "POST": "POST: the parameters as a form"}
CHOICE_TITLES_BY_SETTING = {
    "call_method": CALL_METHOD_TITLES,
    "people_from": PEOPLE_FROM_TITLES,
    "recruiting_devices": STUDY_DEVICE_TITLES,
    "open_platforms": {
        "": "Automatic: on if the open link is on and has no passphrase",
        "yes": "Open",
        "no": "Closed",
    },
    "selection": SCHEDULE_TITLES,
    "differences": DIFFERENCE_TITLES,
    CRITERIA_SHOWN_SETTING: CRITERIA_LAYOUT_TITLES,
    "fixed_set": {
        "none": "No",
        "first": "First: before other items, in the same tasks for everyone",
        "mixed": "Mixed: one item of the set in each task",
    },
    "block_order": {
        "none": "No: conditions are mixed",
        "balanced": "Blocks in balanced orders (Latin square)",
        "random": "Blocks in a random order for each person",
        "fixed": "Blocks in the order of the items’ table",
    },
    "must_play": {"none": "No", "start": "Started at least", "end": "To the end"},
    "switch_sounds": {
        "none": "No",
        "restart": "Each starts at its beginning",
        "same position": "Each continues at the same position",
    },
    "comment_on": REMARK_TARGET_TITLES,
    "comment_request": COMMENT_REQUEST_TITLES,
    "flag_on": REMARK_TARGET_TITLES,
    "quality_preset": QUALITY_PRESET_TITLES,
    "withdrawal": {"ask": "Annotators ask me", "self": "Annotators do it themselves, on the last page"},
    "currency": CURRENCY_TITLES,
    "goal": GOAL_TITLES,
    "when_reached": WHEN_REACHED_TITLES,
}
REGISTRY_BY_SETTING: dict[str, Mapping[str, Any]] = {
    "content": CONTENT_KINDS,
    "design": DESIGNS,
    "update_law": ONLINE_LAWS,
    "rule": SELECTION_RULES,
}


def has_setting_more_than_one_choice(setting_name: str) -> bool:
    return len(REGISTRY_BY_SETTING.get(setting_name, "more")) > 1


def choice_title_by_value(setting_name: str) -> dict[str, str]:
    if setting_name in CHOICE_TITLES_BY_SETTING:
        return CHOICE_TITLES_BY_SETTING[setting_name]
    if setting_name == "language":
        return {BROWSER_LANGUAGE: "Each annotator’s browser language", **LANGUAGES}
    default_choice = {"": "Default for the design"} if setting_name == "update_law" else {}
    return default_choice | {value: part.title for value, part in REGISTRY_BY_SETTING.get(setting_name, {}).items()}
