"""Hints next to settings that depend on the design, the update law or the goal.

The form shows them, the launch page, and the advice about a selection rule that does not suit the goal.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from app.annotation.platforms.return_templates import note_on_unused_form_origins_or_empty
from app.annotation.platforms.settings import RETURN_SETTING_NAMES
from app.campaigns.setting_types import can_law_serve_rule, is_pairs_rule_best
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.registry import DEFAULT_DESIGN as USUAL_DESIGN
from app.designs.registry import DESIGNS
from app.errors import pluralize
from app.goals.progress import describe_goal
from app.goals.settings import BEST_RULE_FOR_GOAL, JUDGMENTS_INSTEAD_OF_10, NO_GOAL, WhenReached
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE_LAWS
from app.quality.rule_reach import hint_on_failed_checks_needed_or_empty
from app.quality.settings import parse_all_rule_choices_by_name, parse_quality_preset
from app.selection.registry import SELECTION_RULES

RULES_THAT_PAIRS_IMPROVES = ("easl", "scores")
SENTENCE_BY_GOAL_ACTION: dict[WhenReached, str] = {
    "tell": "When it is reached, you get an alert and the campaign continues.",
    "pause": "When it is reached, the campaign pauses.",
    "finish": "When it is reached, the campaign finishes.",
    "release": "Annotators are no longer asked about an item once it is settled.",
}


@dataclass(frozen=True)
class Hint:
    """A hint at a field for campaigns with one of these designs or laws; for all if none is named.

    `shown`: whether it applies when the page is made.
    """

    text: str
    designs: str = ""
    laws: str = ""
    is_visible_initially: bool = True


def sentence_on_why_rule_suits_goal(rule_name: str) -> str:
    """Return a sentence on why a selection rule suits the campaign's goal."""
    purpose = "orders compared items best" if rule_name == "pairs" else "suits this goal"
    return (
        f"The selection rule “{rule_name}” {purpose}. In tests on simulated and real data, it needed "
        f"{JUDGMENTS_INSTEAD_OF_10[rule_name]} judgments per item where asking evenly needed 10."
    )


def name_of_better_rule_or_none(campaign: Campaign) -> str | None:
    """Return the selection rule that suits a campaign's goal better than its own.

    None if its own rule suits, or if its law keeps too little for the other one. Without a goal it is `pairs`, if the
    campaign compares pairs of items often enough.
    """
    rule = BEST_RULE_FOR_GOAL.get(campaign.goal)
    if campaign.goal == NO_GOAL and campaign.rule_name in RULES_THAT_PAIRS_IMPROVES and not campaign.segment_count:
        has_best_pairs_rule = is_pairs_rule_best(
            campaign.design_name,
            campaign.update_law,
            campaign.selection,
            campaign.judgments_per_item,
            has_criteria=campaign.has_criteria,
        )
        rule = "pairs" if has_best_pairs_rule else None
    return (
        rule
        if rule and rule != campaign.rule_name and campaign.update_law in names_of_laws_supporting_rule(rule)
        else None
    )


def names_of_laws_supporting_rule(rule_name: str) -> list[str]:
    """Return the update laws that keep what a selection rule reads; empty if there is no such rule."""
    return [
        name
        for name, law in ONLINE_LAWS.items()
        if rule_name in SELECTION_RULES and can_law_serve_rule(SELECTION_RULES[rule_name], law)
    ]


def advice_to_use_better_rule_or_empty(campaign: Campaign) -> str:
    """Return sentences that advise another selection rule for the campaign's goal; empty if none would suit better."""
    rule = name_of_better_rule_or_none(campaign)
    if rule is None:
        return ""
    fixed_sentence = " The rule can’t be changed after launch; copy the campaign to use another one."
    return (
        f"This campaign uses the rule “{campaign.rule_name}”. "
        f"{sentence_on_why_rule_suits_goal(rule)}{fixed_sentence * (campaign.status != 'draft')}"
    )


def describe_rule_fixed_by_launch(campaign: Campaign) -> str:
    """Return how items will be chosen, which a launch fixes, with its numbers, in words."""
    phrase_by_rule = {
        "best": f"the number of best items ({campaign.best_items:,})",
        "threshold": f"the threshold ({campaign.threshold:g})",
    }
    phrases = [number for name, number in phrase_by_rule.items() if name in (campaign.rule_name, campaign.goal)]
    return ", ".join([f"the selection rule ({campaign.rule_name})", *phrases])


def goal_sentences_before_launch_or_empty(campaign: Campaign) -> str:
    """Return sentences about the effects of a campaign's goal; empty if it has none."""
    if campaign.goal == NO_GOAL:
        return ""
    judgments = pluralize(campaign.judgments_per_item, "judgment")
    end_sentence = f"The campaign ends at the latest once each item has {judgments}."
    return f"Goal: {describe_goal(campaign)}. {SENTENCE_BY_GOAL_ACTION[campaign.when_reached]} {end_sentence}"


def name_of_chosen_or_default_law(values: Mapping[str, str]) -> str:
    """Return the chosen update law, or the default one of the design."""
    law, design = values.get("update_law", ""), values.get("design", USUAL_DESIGN)
    return DESIGNS[design].default_law if design in DESIGNS and not law else law


def hints_for_setting(setting_name: str, values: Mapping[str, str]) -> list[Hint]:
    """Return hints on a setting for the chosen design and law, and hidden ones for other choices."""
    design, law = values.get("design", USUAL_DESIGN), name_of_chosen_or_default_law(values)
    hints = []
    if setting_name == "checks_percent":
        hints = [Hint(needed_gold_and_attention_items_hint_or_empty(values))]
    elif setting_name == "form_origins":
        hints = [Hint(form_origins_hint_or_empty(values))]
    elif setting_name in DESIGN_HINT_BY_SETTING:
        hint_of_design = DESIGN_HINT_BY_SETTING[setting_name]
        hints = [
            Hint(
                hint_of_design(design_class),
                designs=design_class.name,
                is_visible_initially=design_class.name == design,
            )
            for design_class in DESIGNS.values()
        ]
    elif setting_name in LAW_HINT_BY_SETTING:
        hint_of_law = LAW_HINT_BY_SETTING[setting_name]
        hints = [
            Hint(hint_of_law(online_law), laws=online_law.name, is_visible_initially=online_law.name == law)
            for online_law in ONLINE_LAWS.values()
        ]
    return [hint for hint in hints if hint.text]


def needed_gold_and_attention_items_hint_or_empty(values: Mapping[str, str]) -> str:
    """Return a hint on how many gold and attention items the quality rules need, or an empty text if a field is
    invalid.
    """
    try:
        rules = parse_all_rule_choices_by_name(
            parse_quality_preset(values.get("quality_preset", "watch")), values.get("quality_rules", "").splitlines()
        )
        false_alarms = float(values.get("false_alarms") or Campaign.false_alarms)
    except ValueError:
        return ""
    if not 0 < false_alarms <= 100:
        return ""
    acting_rules = {name: rule for name, rule in rules.items() if rule.action != "nothing"}
    return hint_on_failed_checks_needed_or_empty(acting_rules, false_alarms)


def form_origins_hint_or_empty(values: Mapping[str, str]) -> str:
    """Return a hint on sites to which no outcome leads, or an empty text if there are none or one is no address."""
    templates = [values[name] for name in RETURN_SETTING_NAMES if values.get(name)]
    with suppress(ValueError):  # of an impossible port
        return note_on_unused_form_origins_or_empty(values.get("form_origins", "").split(), templates)
    return ""


def example_question_hint(design: type[Design]) -> str:
    """Return a question that this design can ask."""
    return f"For example: {design.example}"


def items_per_hit_hint(design: type[Design]) -> str:
    """Return how many items a HIT of this design can have."""
    fewest, most = design.items_per_hit[0], design.items_per_hit[-1]
    return f"{fewest} to {most}. Empty: {design.default_items}." if most > fewest else f"Always {most}."


def gamma_hint_or_empty(law: Law) -> str:
    """Return a hint on what gamma means for this law, or an empty text."""
    return {
        "order": "With this law it is also the noise of a comparison.",
        "ratio": "With this law it is also the noise of a ratio.",
    }.get(law.reads, "")


def prior_hint(law: Law) -> str:
    """Return a hint on the numbers that an item's posterior begins with."""
    family = law.family
    if family.counts_classes:
        return "Enter a count for each label, separated by commas. Default: equal counts that add up to 1."
    default_numbers = ", ".join(f"{number:.4g}" for number in family.default_prior)
    names = ", ".join(family.parameter_names)
    return f"Enter {names} of the {family.name} posterior, separated by commas. Default: {default_numbers}."


def repeat_items_hint_or_empty(design: type[Design]) -> str:
    """Return how many people judge an item if people may judge it again; empty if answers compare items."""
    if design.value_kind == "order":
        return ""
    return (
        "If off, 10 judgments of an item come from 10 different people, so you need at least 10. If on, 10 judgments of"
        " an item may come from fewer than 10 people. That suits a small pool, but a second judgment adds little."
    )


DESIGN_HINT_BY_SETTING: dict[str, Callable[[type[Design]], str]] = {
    "question": example_question_hint,
    "items_per_hit": items_per_hit_hint,
    "repeat_items": repeat_items_hint_or_empty,
}
LAW_HINT_BY_SETTING: dict[str, Callable[[Law], str]] = {"gamma": gamma_hint_or_empty, "prior": prior_hint}
