"""What is said of settings beside their descriptions, as far as it depends on the design, the update law or the goal:
by the form, before a launch, and of a rule of selection that does not suit the goal.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.campaigns.together import can_ask
from app.designs.design import Design
from app.designs.registry import DESIGNS
from app.designs.registry import USUAL as USUAL_DESIGN
from app.errors import plural
from app.goals.progress import words
from app.goals.settings import NONE, RULE_FOR, TAKES_FEWER, WhenReached
from app.inference.online.law import Law
from app.inference.online.laws import ONLINE
from app.quality.reach import words_on_checks
from app.quality.settings import FALSE_ALARMS, chosen_in, preset_of
from app.selection.registry import RULES

THEN: dict[WhenReached, str] = {
    "tell": "When it is reached, you are told, and the campaign goes on.",
    "pause": "When it is reached, the campaign pauses.",
    "finish": "When it is reached, the campaign finishes.",
    "release": "Once an item settles, nobody is asked about it any more.",
}


@dataclass(frozen=True)
class Hint:
    """What is said of a field to those who chose one of these designs or laws; to all where none is named.
    shown: whether they did, when the page is made.
    """

    text: str
    designs: str = ""
    laws: str = ""
    shown: bool = True


@dataclass(frozen=True)
class RuleOffer:
    """To whoever chose a goal, and one of these laws: the rule of selection that suits it. shown: whether they did and
    ask by another one, when the page is made.
    """

    goal: str
    rule: str
    laws: str
    shown: bool

    @property
    def said(self) -> str:
        return suits(self.rule)


def suits(rule: str) -> str:
    """Why a rule of selection is offered to a campaign with the goal that it is for."""
    return f"The rule of selection “{rule}” suits this goal: in simulations it {TAKES_FEWER}."


def better_rule(settings: Any) -> str | None:
    """The rule of selection that suits a campaign's goal, where it asks by another one; None where its law keeps too
    little for it.
    """
    rule = RULE_FOR.get(settings.goal)
    return rule if rule and rule != settings.rule and settings.update_law in laws_for(rule) else None


def laws_for(rule: str) -> list[str]:
    """The update laws that keep what a rule of selection reads; none where there is no such rule."""
    return [name for name, law in ONLINE.items() if rule in RULES and can_ask(RULES[rule], law)]


def advice(campaign: Any) -> str:
    """That another rule of selection would suit its goal, as sentences; empty where none would."""
    rule = better_rule(campaign)
    if rule is None:
        return ""
    fixed = " The launch has fixed the rule: copy the campaign to ask by another one."
    return f"This campaign asks by “{campaign.rule}”. {suits(rule)}{fixed * (campaign.status != 'draft')}"


def fixed_rule(campaign: Any) -> str:
    """What a launch fixes of how items are chosen, with its numbers, in words."""
    numbers = {
        "best": f"how many items are the best ({campaign.best_items:,})",
        "threshold": f"the threshold ({campaign.threshold:g})",
    }
    told = [number for name, number in numbers.items() if name in (campaign.rule, campaign.goal)]
    return ", ".join([f"the rule of selection ({campaign.rule})", *told])


def goal_before_launch(campaign: Any) -> str:
    """What will happen because of a campaign's goal, as sentences; empty where it has none."""
    if campaign.goal == NONE:
        return ""
    last = f"In any case the campaign ends once each item has its {plural(campaign.judgments_per_item, 'judgment')}."
    return f"Goal: {words(campaign)}. {THEN[campaign.when_reached]} {last}"


def offers_of(name: str, values: Mapping[str, str]) -> list[RuleOffer]:
    """What is offered beside a setting; nothing but beside the goal."""
    if name != "goal":
        return []
    chosen, asked = values.get("goal"), values.get("rule")
    law = law_in(values)
    offers = []
    for goal, rule in RULE_FOR.items():
        laws = laws_for(rule)
        offers.append(RuleOffer(goal, rule, " ".join(laws), goal == chosen and rule != asked and law in laws))
    return offers


def law_in(values: Mapping[str, str]) -> str:
    """The update law that is chosen; where none is, the usual one of the design."""
    law, design = values.get("update_law", ""), values.get("design", USUAL_DESIGN)
    return DESIGNS[design].usual_law if design in DESIGNS and not law else law


def hints_of(name: str, values: Mapping[str, str]) -> list[Hint]:
    """What a setting means for the chosen design and law, empty for what is usual; and for others once they are."""
    design, law = values.get("design", USUAL_DESIGN), law_in(values)
    hints = []
    if name == "checks_percent":
        hints = [Hint(checks_hint(values))]
    elif name in HINTS_OF_DESIGNS:
        told = HINTS_OF_DESIGNS[name]
        hints = [Hint(told(one), designs=one.name, shown=one.name == design) for one in DESIGNS.values()]
    elif name in HINTS_OF_LAWS:
        told_of_law = HINTS_OF_LAWS[name]
        hints = [Hint(told_of_law(one), laws=one.name, shown=one.name == law) for one in ONLINE.values()]
    return [hint for hint in hints if hint.text]


def checks_hint(values: Mapping[str, str]) -> str:
    """Return what rules need of gold and attention items; nothing while the fields it depends on are wrong."""
    try:
        chosen = chosen_in(
            preset_of(values.get("quality_preset", "watch")), values.get("quality_rules", "").splitlines()
        )
        hits, percent = int(values.get("hits_per_annotator") or 0), float(values.get("checks_percent") or 0)
        false_alarms = float(values.get("false_alarms") or FALSE_ALARMS)
    except ValueError:
        return ""
    if hits < 0 or not 0 <= percent <= 100 or not 0 < false_alarms <= 100:
        return ""
    acting = {name: one for name, one in chosen.items() if one.action != "nothing"}
    return words_on_checks(acting, hits or None, percent, false_alarms)


def example_hint(design: type[Design]) -> str:
    """A question that it can ask."""
    return f"For example: {design.example}"


def items_hint(design: type[Design]) -> str:
    """How many items a HIT of this design can have."""
    fewest, most = design.items_per_hit[0], design.items_per_hit[-1]
    return f"{fewest} to {most}. Empty: {design.usual_items}, as is usual." if most > fewest else f"Always {most}."


def gamma_hint(law: Law) -> str:
    """Whether the law reads it, too."""
    return {"order": "Here also the noise of a comparison.", "ratio": "Here also the noise of a ratio."}.get(
        law.reads, ""
    )


def prior_hint(law: Law) -> str:
    """Which numbers an item begins with."""
    family = law.family
    if family.counts_classes:
        return "A count for each label, separated by commas. Empty: all alike, 1 together."
    usual = ", ".join(f"{number:.4g}" for number in family.default_prior)
    return f"{', '.join(family.parameter_names)} of the {family.name} posterior, with commas. Empty: {usual}."


HINTS_OF_DESIGNS: dict[str, Callable[[type[Design]], str]] = {"question": example_hint, "items_per_hit": items_hint}
HINTS_OF_LAWS: dict[str, Callable[[Law], str]] = {"gamma": gamma_hint, "prior": prior_hint}
