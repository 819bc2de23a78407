"""Rules that fit the work of one person: settings that a campaign with short visits can take over at once. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.designs.campaign import Campaign
from app.errors import pluralize
from app.quality.rule_reach import RuleReach, largest_workload_of_one_annotator, reach_of_active_rules_by_name
from app.quality.settings import rule_threshold_and_value_of_line

PROPOSED_FALSE_ALARMS = (5.0, 10.0, 20.0)  # per 1,000 careful people, tried if no rule can find anyone otherwise


@dataclass(frozen=True)
class RulesProposal:
    """Settings with which every active rule of a campaign can flag someone.

    Attributes:
        quality_rules: The present custom rules, and which rules to turn off.
        false_alarms: False alarms per 1,000 careful people and rule.
        reason: What the settings do, in sentences.

    """

    quality_rules: Sequence[str]
    false_alarms: float
    reason: str


@dataclass(frozen=True)
class UnfitRules:
    """Active rules that can flag no one because one person does too little.

    Attributes:
        titles: Titles of these rules.
        max_hits: Most HITs of one person; None if unlimited.
        proposal: Settings that fit; None if no rule can flag anyone with so little work.

    """

    titles: Sequence[str]
    max_hits: int | None
    proposal: RulesProposal | None

    @classmethod
    def unfit_rules_or_none(
        cls, campaign: Campaign, item_count: int, check_counts: Mapping[str, int]
    ) -> "UnfitRules | None":
        """Return the rules that can flag no one, with settings that fit; None if there are no such rules.

        Args:
            campaign: The campaign.
            item_count: Number of items.
            check_counts: Number of checks of each kind.

        """
        workload = largest_workload_of_one_annotator(campaign, item_count, check_counts)
        reaches = reach_of_active_rules_by_name(campaign, workload).values()
        titles = [reach.title for reach in reaches if reach.needs_more_work]
        if not titles:
            return None
        return cls(titles, workload.max_hits, propose_fitting_rules_or_none(campaign, item_count, check_counts))


def propose_fitting_rules_or_none(
    campaign: Campaign, item_count: int, check_counts: Mapping[str, int]
) -> RulesProposal | None:
    """Return settings that turn off the rules which can flag no one, and keep the others.

    False alarms are raised as little as needed if no rule can flag anyone otherwise. Return None if that does not help.
    """
    workload = largest_workload_of_one_annotator(campaign, item_count, check_counts)
    stored = campaign.false_alarms
    for false_alarms in (stored, *(number for number in PROPOSED_FALSE_ALARMS if number > stored)):
        reaches = reach_of_active_rules_by_name(replace(campaign, false_alarms=false_alarms), workload)
        useful = [reach for reach in reaches.values() if reach.suits_campaign and not reach.never_reason]
        if useful:
            unfit_names = [name for name, reach in reaches.items() if reach.needs_more_work]
            reason = sentences_on_fitting_rules(useful, len(unfit_names))
            if false_alarms != stored:
                reason += f" False alarms rise from {stored:g} to {false_alarms:g} per 1,000 careful people."
            return RulesProposal(custom_rules_with_rules_off(campaign.quality_rules, unfit_names), false_alarms, reason)
    return None


def custom_rules_with_rules_off(lines: Sequence[str], rule_names: Sequence[str]) -> list[str]:
    """Return custom rules with the action “nothing” for these rules; thresholds and other rules stay."""
    parsed = [(line, *rule_threshold_and_value_of_line(line)[:2]) for line in lines]
    kept = [line for line, name, threshold in parsed if threshold or name not in rule_names]
    return [*kept, *(f"{name}: nothing" for name in rule_names)]


def sentences_on_fitting_rules(useful: Sequence[RuleReach], unfit_count: int) -> str:
    """Return which rules stay, from when they can flag someone, and how many the button turns off."""
    kept = " ".join(f"“{reach.title}” can: {reach.starts_at[0].lower()}{reach.starts_at[1:]}" for reach in useful)
    return f"{kept} The button turns {pluralize(unfit_count, 'rule')} off." if unfit_count else kept
