"""Registry of the rules of selection by name. To add a rule, add a module with a `Rule`, and one line here."""

from typing import Any

from app.selection.even_rule import EVEN_RULE
from app.selection.goal_rules import BEST_ITEMS_RULE, THRESHOLD_RULE
from app.selection.index import AlgorithmOne
from app.selection.label_rules import ENTROPY_RULE, INFORMATION_RULE
from app.selection.rule import Rule, SelectionSettings
from app.selection.systems_rule import SYSTEMS_RULE

ALL_SELECTION_RULES = (
    AlgorithmOne(),
    EVEN_RULE,
    BEST_ITEMS_RULE,
    THRESHOLD_RULE,
    SYSTEMS_RULE,
    ENTROPY_RULE,
    INFORMATION_RULE,
)
SELECTION_RULES: dict[str, Rule] = {rule.name: rule for rule in ALL_SELECTION_RULES}


def selection_rule(campaign: Any) -> Rule:
    """Return the rule of a campaign's row."""
    return SELECTION_RULES[campaign.rule]


def selection_settings(campaign: Any) -> SelectionSettings:
    """Return the selection settings of a campaign's row."""
    return SelectionSettings(
        judgments_per_item=campaign.judgments_per_item,
        items_per_hit=campaign.items_per_hit - len(campaign.always_shown),
        min_items=campaign.fewest_items,
        gamma=campaign.gamma,
        hits_per_iteration=campaign.hits_per_iteration,
        leaders_as_companions=campaign.leaders_as_companions,
        never_drawn=tuple(campaign.always_shown),
        best_count=campaign.best_items,
        threshold=campaign.threshold / 100,
    )
