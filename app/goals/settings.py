"""What a researcher says of a campaign's goal."""

from typing import Annotated, Any, Literal

from pydantic import Field

from app.designs.registry import design_of
from app.errors import pluralize
from app.field_flags import EDITABLE, InputModel

Goal = Literal["none", "best", "threshold", "order", "intervals", "halves"]
WhenReached = Literal["tell", "pause", "finish", "release"]
NO_GOAL: Goal = "none"
RELEASE_ITEMS: WhenReached = "release"
SCALE_ANSWER_KINDS = ("points", "ordered_classes")  # that a design yields

GOAL_TITLES: dict[Goal, str] = {
    "none": "None: ask for all judgments that are wanted",
    "best": "The best items are settled",
    "threshold": "It is settled which items are above the threshold",
    "order": "The order is settled, as of systems",
    "intervals": "Items have narrow intervals",
    "halves": "Two halves of the answers agree",
}
WHEN_REACHED_TITLES: dict[WhenReached, str] = {
    "tell": "Only tell me",
    "pause": "Pause the campaign",
    "finish": "Finish the campaign",
    "release": "Stop asking about items as they settle",
}
BEST_RULE_FOR_GOAL: dict[Goal, str] = {
    "best": "best",
    "threshold": "threshold",
}  # by which it takes the fewest judgments
FEWER_JUDGMENTS_HINT = (
    "takes a third to a half of the judgments that other rules take"  # `python -m benchmarks.stopping`
)
GOALS_OF_SINGLE_ITEMS: tuple[Goal, ...] = (
    "none",
    "best",
    "threshold",
    "intervals",
)  # that can be settled of an item by itself


class GoalSettings(InputModel):
    """A column of a campaign for each; they change no meaning of an answer."""

    goal: Goal = Field(
        default=NO_GOAL, title="Goal", json_schema_extra=EDITABLE,
        description="What has to be known until it is enough. The campaign's page shows how near the goal is, and the "
        "campaign can stop by itself; it also ends when every item has the judgments wanted. Only for answers on a "
        "scale. To settle the best, or who is above the threshold, the rule of selection of the same name "
        f"{FEWER_JUDGMENTS_HINT}, in simulations.",
    )  # fmt: skip
    goal_percent: int = Field(
        default=95, ge=50, le=99, title="How sure (%)", json_schema_extra=EDITABLE,
        description="The probability with which the best, the sides or the order must be right. For narrow intervals: "
        "how many items in a hundred must have one.",
    )  # fmt: skip
    goal_within: Annotated[float, Field(ge=0, le=50, allow_inf_nan=False)] = Field(
        default=5, title="Differences that do not matter (points)", json_schema_extra=EDITABLE,
        description="Items this close to each other, or to the threshold, may change places. With 0 the campaign may "
        "ask for ever about two items that are alike.",
    )  # fmt: skip
    goal_width: Annotated[float, Field(ge=1, le=50, allow_inf_nan=False)] = Field(
        default=10, title="Narrow intervals (± points)", json_schema_extra=EDITABLE,
        description="Only for narrow intervals: half the width of the calibrated 95 % interval.",
    )  # fmt: skip
    goal_correlation: Annotated[float, Field(ge=0.1, le=0.99, allow_inf_nan=False)] = Field(
        default=0.9, title="Agreement of halves", json_schema_extra=EDITABLE,
        description="Only for halves that agree: Spearman’s correlation between the means of two random halves of the "
        "answers.",
    )  # fmt: skip
    when_reached: WhenReached = Field(
        default="tell", title="When the goal is reached", json_schema_extra=EDITABLE,
        description="HITs that are open then can still be answered. If you go on all the same, the campaign does not "
        "stop for this goal again. With the best items, a threshold or narrow intervals, items can settle one by one: "
        "the others are asked about until they settle too, or have all judgments, and “how sure” is meant of each "
        "item. In simulations narrow intervals took a sixth fewer judgments this way, and two fifths fewer where some "
        "items are harder.",
    )  # fmt: skip


def all_items_best_reason(campaign: Any, item_count: int) -> str:
    """Why a goal says nothing of so many items, since all of them would be the best ones; empty where it does."""
    drawn_items = item_count - len(design_of(campaign).always_shown)
    if campaign.goal != "best" or campaign.best_items < drawn_items:
        return ""
    these = f"the best {campaign.best_items:,} of {pluralize(drawn_items, 'item')} are all of them"
    ways = "Choose another goal, or fewer best items before a launch."
    return f"The goal of “{campaign.name}” says nothing: {these}. {ways}"


def goal_refusal_reason(settings: Any) -> str:
    """Why a campaign of these settings cannot have its goal; empty where it can."""
    design = design_of(settings)
    if settings.goal != NO_GOAL and design.value_kind not in SCALE_ANSWER_KINDS:
        return f"a goal is measured by answers on a scale, which “{design.title}” does not give"
    if settings.goal != NO_GOAL and settings.criteria:
        return "a goal is about one question, and there are several criteria"
    if settings.when_reached == RELEASE_ITEMS and settings.goal not in GOALS_OF_SINGLE_ITEMS:
        return f"“{GOAL_TITLES[settings.goal]}” is about all items together, so none can be released by itself"
    return ""
