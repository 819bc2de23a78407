"""Settings for a fixed set that everyone judges, and for items that only some people judge."""

from typing import Annotated, Literal, Protocol

from pydantic import Field, StringConstraints, field_validator

from app.campaigns.condition_settings import ConditionSettings, SettingsOfAskedItems, problem_by_setting_of_conditions
from app.designs.campaign import Campaign
from app.designs.design import Design

MAX_FIXED_ITEMS = 1_000
FixedItemId = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class WhoJudgesSettings(ConditionSettings):
    """Settings of a campaign for items that only some people judge, that everyone judges, or that have conditions."""

    assigned_column: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)] | None = (
        Field(
            default=None, title="Column of groups",
            description="Column of the items’ table that says who judges an item: groups, or answers such as "
            "native_language = German, with | between them. Items with an empty cell are for everyone.",
        )
    )  # fmt: skip

    fixed_set: Literal["none", "first", "mixed"] = Field(
        default=Campaign.fixed_set, title="Fixed set for everyone",
        description="Let every annotator judge the same few items once, before the others or mixed with them, to "
        "measure agreement.",
    )  # fmt: skip
    fixed_items: Annotated[list[FixedItemId], Field(max_length=MAX_FIXED_ITEMS)] = Field(
        default=[], title="Items of the fixed set", description="Ids of the items that everyone judges, one per line.",
    )  # fmt: skip
    fixed_random: int = Field(
        default=Campaign.fixed_random, ge=0, le=MAX_FIXED_ITEMS, title="Random items of the fixed set",
        description="How many more items the launch chooses at random for the fixed set.",
    )  # fmt: skip

    @field_validator("fixed_items", mode="before")
    @classmethod
    def split_lines_of_fixed_items(cls, ids: object) -> object:
        """Split a text into lines, as forms and the command line send it."""
        return [line for line in ids.splitlines() if line.strip()] if isinstance(ids, str) else ids

    @field_validator("fixed_items")
    @classmethod
    def refuse_repeated_fixed_items(cls, ids: list[str]) -> list[str]:
        if len({*ids}) < len(ids):
            raise ValueError("give each item only once")
        return ids


class AskingSettings(SettingsOfAskedItems, Protocol):
    """The settings that decide whether a campaign can have a fixed set, and conditions."""

    fixed_items: list[str]
    fixed_random: int
    items_per_hit: int | None


def problem_or_empty_by_setting_of_who_judges(settings: AskingSettings, design: Design) -> dict[str, str]:
    """Return by setting why the campaign cannot ask some items of everyone, or of some people only; empty if it can."""
    is_scheduled = settings.assigned_column is not None and settings.selection == "iterations"
    return {
        "fixed_set": problem_with_fixed_set_or_empty(settings, design),
        "assigned_column": (
            "iterations choose items before annotators are assigned; use streaming" if is_scheduled else ""
        ),
        **problem_by_setting_of_conditions(settings, design),
    }


def problem_with_fixed_set_or_empty(settings: AskingSettings, design: Design) -> str:
    """Return why the campaign cannot have the fixed set; empty if it can, or has none."""
    count = len(settings.fixed_items) + settings.fixed_random
    if settings.fixed_set == "none":
        return "choose first or mixed, or leave the items of the fixed set empty" if count else ""
    can_fill_tasks = settings.fixed_set == "first" and count % (settings.items_per_hit or 1) == 0
    problems = {
        "name the items of the fixed set, or how many random ones it has": not count,
        "iterations choose items before annotators are assigned; use streaming": settings.selection == "iterations",
        "every task of this design shows the same item already": bool(design.always_shown),
        "implied pairs are skipped, but everyone judges all of the fixed set": (
            settings.implied_asked_percent is not None
        ),
        "to compare the same items, everyone needs the same tasks: choose first, and fill whole tasks": (
            design.value_kind == "order" and not can_fill_tasks
        ),
    }
    return next((problem for problem, is_one in problems.items() if is_one), "")
