"""Settings for items under several conditions: blocks of tasks, and one condition per content."""

from typing import Annotated, Literal, Protocol

from pydantic import Field, StringConstraints

from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.field_flags import EDITABLE, InputModel
from app.inference.online.laws import ONLINE_LAWS
from app.selection.condition_squares import BlockOrder

MAX_PAUSE_CHARACTERS = 500
ColumnOfItems = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class ConditionSettings(InputModel):
    """Settings of a campaign whose items have conditions."""

    condition_column: ColumnOfItems | None = Field(
        default=None, title="Column of conditions",
        description="Column of the items’ table that names the condition of an item, such as the system or the voice.",
    )  # fmt: skip
    content_column: ColumnOfItems | None = Field(
        default=None, title="Column of contents",
        description="Column that identifies the content that several conditions share, such as the sentence. Each "
        "person sees each content in one condition only, and all lists are used equally often.",
    )  # fmt: skip
    block_order: BlockOrder = Field(
        default=Campaign.block_order, title="Blocks of conditions",
        description="Let people judge one condition after another: in orders of a Latin square, at random, or in the "
        "order of the items’ table.",
    )  # fmt: skip
    tasks_per_block: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, title="Tasks per block",
        description="Empty: the launch divides the tasks per annotator among the conditions; without that limit, a "
        "block shows all items that its condition has for a person.",
    )  # fmt: skip
    block_pause: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_PAUSE_CHARACTERS)] = Field(
        default=Campaign.block_pause, title="Text between blocks", json_schema_extra=EDITABLE,
        description="Shown above the first task of every block except the first, such as: Take a short break.",
    )  # fmt: skip


class SettingsOfAskedItems(Protocol):
    """The settings that decide whether items can have conditions."""

    condition_column: str | None
    content_column: str | None
    block_order: BlockOrder
    tasks_per_block: int | None
    block_pause: str
    assigned_column: str | None
    fixed_set: Literal["none", "first", "mixed"]
    selection: Literal["streaming", "iterations"]
    implied_asked_percent: int | None
    repeat_items: bool
    hits_per_annotator: int | None
    update_law: str


def problem_by_setting_of_conditions(settings: SettingsOfAskedItems, design: Design) -> dict[str, str]:
    """Return by setting why the campaign cannot ask about conditions in this way; empty if it can."""
    has_blocks = settings.block_order != "none"
    is_endless = settings.repeat_items and settings.tasks_per_block is None and settings.hits_per_annotator is None
    return {
        "condition_column": problem_with_conditions_or_empty(settings),
        "content_column": (
            "contents and conditions need different columns"
            if settings.content_column is not None and settings.content_column == settings.condition_column
            else ""
        ),
        "block_order": (
            "answers compare the items of a task, and with blocks no task would compare items of two conditions: "
            "choose none, or the design “Pairwise against a baseline”, whose tasks all show the baseline"
            if has_blocks and do_scores_follow_only_from_comparisons(settings, design) and not design.always_shown
            else ""
        ),
        "tasks_per_block": (
            "there are no blocks: choose their order first"
            if settings.tasks_per_block is not None and not has_blocks
            else "people see items again, so a block never ends: say how many tasks it has, limit the tasks per "
            "annotator, or turn off “Show items again”"
            if has_blocks and is_endless
            else ""
        ),
        "block_pause": "there are no blocks: choose their order first"
        if settings.block_pause and not has_blocks
        else "",
    }


def do_scores_follow_only_from_comparisons(settings: SettingsOfAskedItems, design: Design) -> bool:
    """Return whether scores follow from comparisons within tasks alone, because of the design or the update law."""
    return design.fewest_items > 1 or ONLINE_LAWS[settings.update_law].reads == "order"


def problem_with_conditions_or_empty(settings: SettingsOfAskedItems) -> str:
    """Return why items cannot have conditions; empty if they can, or have none."""
    is_used = settings.block_order != "none" or settings.content_column is not None
    if settings.condition_column is None:
        return "name the column of conditions, which blocks and contents need" if is_used else ""
    problems = {
        "choose an order of blocks, or name the column of contents": not is_used,
        "iterations choose items before annotators are assigned; use streaming": settings.selection == "iterations",
        "items for some people have no conditions: use one of the two columns": settings.assigned_column is not None,
        "everyone judges the fixed set, whatever its conditions: set it to none": settings.fixed_set != "none",
        "implied pairs are skipped across conditions: leave their share empty": (
            settings.implied_asked_percent is not None
        ),
    }
    return next((problem for problem, is_one in problems.items() if is_one), "")
