"""Settings of a campaign's goal."""

from collections.abc import Sequence
from typing import Annotated, Literal, Protocol

from pydantic import Field

from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.field_flags import EDITABLE, InputModel
from app.errors import pluralize

Goal = Literal["none", "best", "threshold", "order", "intervals", "halves"]
WhenReached = Literal["tell", "pause", "finish", "release"]
NO_GOAL: Goal = "none"
RELEASE_ITEMS: WhenReached = "release"
SCALE_ANSWER_KINDS = ("points", "ordered_classes")

GOAL_TITLES: dict[Goal, str] = {
    "none": "None: collect all judgments",
    "best": "We know the best items",
    "threshold": "We know which items are above the threshold",
    "order": "The ranking is clear, for example of systems",
    "intervals": "Items have narrow intervals",
    "halves": "Two halves of the answers agree",
}
WHEN_REACHED_TITLES: dict[WhenReached, str] = {
    "tell": "Only alert me",
    "pause": "Pause the campaign",
    "finish": "Finish the campaign",
    "release": "Item by item: stop asking about each item once it is settled",
}
# The selection rule that takes the fewest judgments for a goal.
BEST_RULE_FOR_GOAL: dict[Goal, str] = {"best": "best", "threshold": "threshold"}
# Judgments per item with which these rules do as well as asking evenly with 10, over all data of
# `python -m benchmarks.goals` and `python -m benchmarks.pairs`.
JUDGMENTS_INSTEAD_OF_10 = {"best": "3 to 7", "threshold": "3.5 to 9", "pairs": "8 to 9.7"}
# The goals that read a number.
GOALS_BY_SETTING: dict[str, tuple[Goal, ...]] = {
    "goal_percent": ("best", "threshold", "order", "intervals"),
    "goal_within": ("best", "threshold", "order"),
    "goal_width": ("intervals",),
    "goal_correlation": ("halves",),
}
# Goals that each item can settle by itself.
GOALS_OF_SINGLE_ITEMS: tuple[Goal, ...] = ("none", "best", "threshold", "intervals")


class GoalSettings(InputModel):
    """Settings of a campaign's goal. They do not change the meaning of answers."""

    goal: Goal = Field(
        default=Campaign.goal, title="Goal", json_schema_extra=EDITABLE,
        description="When do you have enough data? Only for answers on a scale.",
    )  # fmt: skip
    goal_percent: int = Field(
        default=Campaign.goal_percent, ge=50, le=99, title="How sure (%)", json_schema_extra=EDITABLE,
        description="Probability that the result is right. For narrow intervals: share of items that must have one.",
    )  # fmt: skip
    goal_within: Annotated[float, Field(ge=0, le=50, allow_inf_nan=False)] = Field(
        default=Campaign.goal_within, title="Negligible differences (points)", json_schema_extra=EDITABLE,
        description="Items this close to each other, or to the threshold, may change places.",
    )  # fmt: skip
    goal_width: Annotated[float, Field(ge=1, le=50, allow_inf_nan=False)] = Field(
        default=Campaign.goal_width, title="Narrow intervals (± points)", json_schema_extra=EDITABLE,
        description="Only for narrow intervals: half the width of the calibrated 95 % interval.",
    )  # fmt: skip
    goal_correlation: Annotated[float, Field(ge=0.1, le=0.99, allow_inf_nan=False)] = Field(
        default=Campaign.goal_correlation, title="Agreement of halves", json_schema_extra=EDITABLE,
        description="Only for agreement of halves: Spearman’s correlation of the means of two random halves.",
    )  # fmt: skip
    when_reached: WhenReached = Field(
        default=Campaign.when_reached, title="When the goal is reached", json_schema_extra=EDITABLE,
        description="Open tasks can still be answered. “Item by item” stops asking about each item once it is settled.",
    )  # fmt: skip


class ChosenGoal(Protocol):
    """The goal of a campaign or of its settings, and what happens when it is reached."""

    @property
    def goal(self) -> Goal: ...
    @property
    def when_reached(self) -> WhenReached: ...


def does_rule_ask_by_scores(campaign: Campaign) -> bool:
    """Return whether the campaign asks more about some items because of their scores, so that their plain means are
    biased.
    """
    has_goal_rule = campaign.rule_name in BEST_RULE_FOR_GOAL.values()
    return has_goal_rule or campaign.when_reached == RELEASE_ITEMS or campaign.releases > 0


def best_goal_covers_all_reason_or_empty(campaign: Campaign, item_count: int) -> str:
    """Return why a `best` goal is meaningless, since it covers all drawn items; empty if it is not."""
    drawn_items = item_count - len(campaign.design.always_shown)
    if campaign.goal != "best" or campaign.best_items < drawn_items:
        return ""
    problem = f"the best {campaign.best_items:,} of {pluralize(drawn_items, 'item')} would be all of them"
    advice = "Choose another goal, or fewer best items before a launch."
    return f"The goal of “{campaign.name}” cannot be measured: {problem}. {advice}"


def do_all_criteria_decide(criteria: Sequence[object], asked_by: str) -> bool:
    """Return whether several criteria decide together what is asked, so a goal would be about none of them."""
    return bool(criteria) and not asked_by


def reason_design_has_no_goal_or_empty(design: Design, *, lacks_deciding_criterion: bool) -> str:
    """Return why no campaign of this design can have a goal, as the end of a sentence; empty if it can."""
    if design.value_kind not in SCALE_ANSWER_KINDS:
        return f"a goal needs answers on a scale, and “{design.title}” does not give any"
    if lacks_deciding_criterion:
        return "a goal is about one criterion, so a draft first needs a “Deciding criterion”"
    return ""


def hint_that_design_has_no_goal_or_empty(design: Design, *, lacks_deciding_criterion: bool) -> str:
    """Return a sentence for the form that no campaign of this design can have a goal; empty if it can."""
    reason = reason_design_has_no_goal_or_empty(design, lacks_deciding_criterion=lacks_deciding_criterion)
    return reason and f"This campaign cannot have a goal: {reason}."


def can_have_goal(design: Design, *, lacks_deciding_criterion: bool) -> bool:
    """Return whether a campaign of this design can have a goal: its answers are on one scale."""
    return not reason_design_has_no_goal_or_empty(design, lacks_deciding_criterion=lacks_deciding_criterion)


def reason_goal_is_refused_or_empty(settings: ChosenGoal, design: Design, *, lacks_deciding_criterion: bool) -> str:
    """Return why a campaign with these settings cannot have its goal; empty if it can."""
    reason = reason_design_has_no_goal_or_empty(design, lacks_deciding_criterion=lacks_deciding_criterion)
    if settings.goal != NO_GOAL and reason:
        return reason
    if settings.when_reached == RELEASE_ITEMS and settings.goal not in GOALS_OF_SINGLE_ITEMS:
        return f"“{GOAL_TITLES[settings.goal]}” is about all items together, so no item can be released on its own"
    return ""
