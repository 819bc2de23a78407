"""Titles of the choices that a setting offers, as the form shows them."""

from collections.abc import Mapping
from typing import Any, get_args

from app.campaigns.groups import CRITERIA_SHOWN
from app.crowd.settings import Currency
from app.designs.content import KINDS
from app.designs.registry import DESIGNS
from app.goals.settings import GOALS, WHEN_REACHED
from app.inference.online.laws import ONLINE
from app.languages.catalogue import BROWSER, LANGUAGES
from app.selection.registry import RULES

SCHEDULES = {
    "streaming": "Streaming: each HIT from the newest posteriors",
    "iterations": "Iterations: Algorithm 1, all HITs of a round at once",
}
DIFFERENCES = {
    "none": "Not marked",
    "reference": "Between each item and its reference",
    "pair": "Between two items that are shown together",
}
REMARKED = {"none": "None", "HIT": "On the HIT", "items": "On its items", "both": "On the HIT and its items"}
WATCHED = {"watch": "Watch: only warn me", "strict": "Strict: hold them, so that they get no more HITs", "off": "Off"}
CURRENCIES = {code: code for code in get_args(Currency)}
SHOWN = {"in turn": "One after another", "grid": "Side by side, in a grid"}
TITLES = {
    "open_platforms": {"": "Open as long as the open link is, without a passphrase", "yes": "Open", "no": "Closed"},
    "selection": SCHEDULES,
    "differences": DIFFERENCES,
    CRITERIA_SHOWN: SHOWN,
    "comment_on": REMARKED,
    "flag_on": REMARKED,
    "quality_preset": WATCHED,
    "currency": CURRENCIES,
    "goal": GOALS,
    "when_reached": WHEN_REACHED,
}
REGISTRIES: dict[str, Mapping[str, Any]] = {"content": KINDS, "design": DESIGNS, "update_law": ONLINE, "rule": RULES}


def is_asked(name: str) -> bool:
    """Whether there is anything to choose."""
    return len(REGISTRIES.get(name, "more")) > 1


def choices_of(name: str) -> dict[str, str]:
    """Return the title of each value of a setting that is a choice."""
    if name in TITLES:
        return TITLES[name]
    if name == "language":
        return {BROWSER: "As each annotator’s browser asks for", **LANGUAGES}
    usual = {"": "What is usual for the way of asking"} if name == "update_law" else {}
    return usual | {value: part.title for value, part in REGISTRIES.get(name, {}).items()}
