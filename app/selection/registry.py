"""The rules of selection by name. A new one is a module with a `Rule`, and one line here."""

from typing import Any

from app.selection.even import SCORES
from app.selection.goals import BEST, THRESHOLD
from app.selection.index import AlgorithmOne
from app.selection.labels import ENTROPY, INFORMATION
from app.selection.neighbours import SYSTEMS
from app.selection.rule import Asking, Rule

EVERY = (AlgorithmOne(), SCORES, BEST, THRESHOLD, SYSTEMS, ENTROPY, INFORMATION)
RULES: dict[str, Rule] = {rule.name: rule for rule in EVERY}


def rule_of(campaign: Any) -> Rule:
    """The rule of a campaign's row."""
    return RULES[campaign.rule]


def asking_of(campaign: Any) -> Asking:
    """What the row says of how it asks."""
    return Asking(
        wanted=campaign.judgments_per_item,
        n=campaign.items_per_hit - len(campaign.always_shown),
        fewest=campaign.fewest_items,
        gamma=campaign.gamma,
        hits=campaign.hits_per_iteration,
        leaders_as_companions=campaign.leaders_as_companions,
        never=tuple(campaign.always_shown),
        best=campaign.best_items,
        threshold=campaign.threshold / 100,
    )
