"""Needs of researchers: each stands for a goal and the selection rule that serves it."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.campaigns.form_sections import ASKED_BY_SETTING, GOAL_NUMBER_SETTINGS, NEED_FIELD
from app.campaigns.setting_types import can_law_serve_rule, is_pairs_rule_best
from app.campaigns.settings import CampaignSettings
from app.errors import Invalid, shorten_echo
from app.goals.settings import NO_GOAL, Goal, do_all_criteria_decide, reason_goal_is_refused_or_empty
from app.inference.online.laws import ONLINE_LAWS
from app.selection.registry import SELECTION_RULES

CUSTOM_NEED = "custom"


@dataclass(frozen=True)
class Need:
    """A need of researchers.

    Attributes:
        goals: The goals that serve it; the first one is chosen with it.
        rules: The selection rules that serve it.
        numbers: Its settings, which appear with it.
        of_labels: True if it is about labels, not about scores.

    """

    name: str
    title: str
    summary: str
    goals: tuple[Goal, ...]
    rules: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    of_labels: bool = False

    def possible_goals(self, settings: CampaignSettings) -> tuple[Goal, ...]:
        """Return the goals that these settings allow; without any, the campaign collects all judgments wanted."""
        return tuple(goal for goal in self.goals if is_goal_possible(settings, goal)) or (NO_GOAL,)

    def is_need_of_settings(self, settings: CampaignSettings) -> bool:
        """Return whether these settings' goal and selection rule match this need."""
        return (
            settings.rule in self.rules
            and settings.goal in self.possible_goals(settings)
            and self.of_labels == do_values_count_as_labels(settings)
        )

    def name_of_rule_chosen_for(self, settings: CampaignSettings) -> str:
        """Return the selection rule that is chosen with this need: `pairs` where it is best, else the first one."""
        has_best_pairs_rule = is_pairs_rule_best(
            settings.design,
            settings.update_law,
            settings.selection,
            settings.judgments_per_item,
            has_criteria=bool(settings.criteria),
        )
        return "pairs" if "pairs" in self.rules and has_best_pairs_rule else self.rules[0]

    def reason_need_is_impossible_or_empty(self, settings: CampaignSettings, *, has_plain_items: bool) -> str:
        """Return why a campaign with these settings cannot have this need; empty if it can."""
        if self.of_labels:
            return "" if do_values_count_as_labels(settings) else "Needs a design that asks for categories."
        if not can_law_serve_rule(SELECTION_RULES[self.rules[0]], ONLINE_LAWS[settings.update_law]):
            return "Not possible with this design and its update law."
        if do_values_count_as_labels(settings):
            return "Categories have no scores."
        if SELECTION_RULES[self.rules[0]].for_systems_only and has_plain_items:
            return "Your items are not outputs of systems."
        return ""


NEEDS = (
    Need(
        "scores",
        "Scores for all items",
        "Every item gets a score. Easel asks first about the least certain items.",
        ("none", "intervals", "halves"),
        ("easl", "scores", "pairs", "balanced"),
        ("goal", "goal_percent", "goal_width", "goal_correlation"),
    ),
    Need(
        "best",
        "The best items",
        "Which items are at the top? Easel asks less about clear losers.",
        ("best",),
        ("best",),
        ("best_items", "goal_percent", "goal_within"),
    ),
    Need(
        "threshold",
        "Above or below a line",
        "On which side of a line is each item? Easel asks less about clear cases.",
        ("threshold",),
        ("threshold",),
        ("threshold", "goal_percent", "goal_within"),
    ),
    Need(
        "ranking",
        "A ranking of systems",
        "Which system is better than which, judged by its outputs?",
        ("order",),
        ("systems",),
        ("goal_percent", "goal_within"),
    ),
    Need(
        "labels",
        "A label for each item",
        "Which category is right? Easel asks more about items on which people disagree.",
        ("none",),
        ("information", "entropy", "easl", "scores", "balanced"),
        of_labels=True,
    ),
)
NEED_BY_NAME = {need.name: need for need in NEEDS}
CUSTOM_NUMBERS = ("goal", "best_items", "threshold", *GOAL_NUMBER_SETTINGS)


def do_values_count_as_labels(settings: CampaignSettings) -> bool:
    return ONLINE_LAWS[settings.update_law].family.counts_classes


def is_goal_possible(settings: CampaignSettings, goal: Goal) -> bool:
    """Return whether a campaign with these settings can have this goal."""
    tried = settings.model_copy(update={"goal": goal, "when_reached": "tell"})
    lacks_one = do_all_criteria_decide(settings.criteria, settings.asked_by)
    return not reason_goal_is_refused_or_empty(tried, settings.design_with_settings, lacks_deciding_criterion=lacks_one)


def name_of_need_of_settings(settings: CampaignSettings) -> str:
    """Return the name of the need that goal and selection rule stand for; `custom` if they are another combination."""
    return next((need.name for need in NEEDS if need.is_need_of_settings(settings)), CUSTOM_NEED)


def need_field_name(need_name: str, setting_name: str) -> str:
    """Return the name of the field of a need's setting: several needs have the same setting."""
    return f"{NEED_FIELD}.{need_name}.{setting_name}"


def form_values_of_chosen_need_or_refuse(
    settings: CampaignSettings, entered_values: Mapping[str, str]
) -> dict[str, str]:
    """Return form values of the settings that follow from the need chosen in a form; empty if it names none.

    A selection rule that serves the need stays, so saving the form again changes nothing. Raises `Invalid`
    (`need_unknown`).
    """
    name = entered_values.get(NEED_FIELD)
    if name is None:
        return {}
    need = NEED_BY_NAME.get(name)
    if need is None and name != CUSTOM_NEED:
        raise Invalid(f"There is no need “{shorten_echo(name)}”. Choose one of the cards.", code="need_unknown")
    if ASKED_BY_SETTING in entered_values:  # the same step chooses it, and goals depend on it
        settings = settings.model_copy(update={ASKED_BY_SETTING: entered_values[ASKED_BY_SETTING]})
    values = {
        setting: entered_values[field]
        for setting in (need.numbers if need else CUSTOM_NUMBERS)
        if (field := need_field_name(name, setting)) in entered_values
    }
    if need is None or need.is_need_of_settings(settings):
        return values
    goals = need.possible_goals(settings)
    rule = settings.rule if settings.rule in need.rules else need.name_of_rule_chosen_for(settings)
    return {"goal": goals[0], **values, "rule": rule}


def form_field_of_need_error(setting_name: str, chosen_need: str) -> str:
    """Return the name of the form field at which an error of this setting appears when this need is chosen."""
    need = NEED_BY_NAME.get(chosen_need)
    numbers = need.numbers if need else CUSTOM_NUMBERS
    if setting_name in numbers:
        return need_field_name(chosen_need, setting_name)
    return NEED_FIELD if setting_name in ("goal", "rule") else setting_name
