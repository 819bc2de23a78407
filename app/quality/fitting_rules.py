"""Rules that fit the work of one person: settings that a campaign with short visits can take over at once. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.designs.campaign import Campaign
from app.quality.checks import reason_hits_cannot_show_checks_or_empty
from app.quality.rule_reach import RuleReach, reach_of_active_rules_by_name
from app.quality.settings import rule_threshold_and_value_of_line
from app.quality.workload import CHECK_KINDS, largest_workload_of_one_annotator

PROPOSED_FALSE_ALARMS = (5.0, 10.0, 20.0)  # per 1,000 careful people, tried if no rule can find anyone otherwise


@dataclass(frozen=True)
class RulesProposal:
    """Settings with which every active rule of a campaign can flag someone, except rules about checks that it has.

    Attributes:
        quality_rules: The present custom rules, and which rules to turn off.
        false_alarms: False alarms per 1,000 careful people and rule.
        turned_off_count: Number of rules to turn off.
        false_alarms_sentence: How false alarms rise; empty if they stay.
        useful_rules: When each rule that stays can flag someone, in sentences.

    """

    quality_rules: Sequence[str]
    false_alarms: float
    turned_off_count: int
    false_alarms_sentence: str
    useful_rules: Sequence[str]


@dataclass(frozen=True)
class UnfitRules:
    """Active rules that can flag no one because one person does too little, except rules about checks that it has.

    Attributes:
        titles: Titles of these rules.
        max_hits: Most HITs of one person; None if unlimited.
        proposal: Settings that fit; None if they change nothing, or if no rule can flag anyone with so little work.
        is_any_rule_useful: Whether another active rule can flag someone.

    """

    titles: Sequence[str]
    max_hits: int | None
    proposal: RulesProposal | None
    is_any_rule_useful: bool

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
        reaches = reach_of_active_rules_by_name(campaign, workload)
        unfit = {
            name: reach
            for name, reach in reaches.items()
            if reach.needs_more_work and not has_check_rule_own_notice(campaign, name, check_counts)
        }
        if not unfit:
            return None
        return cls(
            [reach.title for reach in unfit.values()],
            workload.max_hits,
            propose_fitting_rules_or_none(campaign, item_count, check_counts),
            bool(reaches_of_useful_rules(reaches)),
        )


def propose_fitting_rules_or_none(
    campaign: Campaign, item_count: int, check_counts: Mapping[str, int]
) -> RulesProposal | None:
    """Return settings that turn off the rules which can flag no one, and keep the others.

    A rule about gold or attention items stays if the campaign has some. False alarms are raised as little as needed if
    no rule can flag anyone otherwise. Return None if that does not help, or if nothing changes.
    """
    workload = largest_workload_of_one_annotator(campaign, item_count, check_counts)
    stored = campaign.false_alarms
    for false_alarms in (stored, *(number for number in PROPOSED_FALSE_ALARMS if number > stored)):
        reaches = reach_of_active_rules_by_name(replace(campaign, false_alarms=false_alarms), workload)
        if useful := reaches_of_useful_rules(reaches):
            unfit_names = [
                name
                for name, reach in reaches.items()
                if reach.needs_more_work and not (name in CHECK_KINDS and check_counts.get(name))
            ]
            rises = false_alarms != stored
            if not unfit_names and not rises:
                return None
            return RulesProposal(
                custom_rules_with_rules_off(campaign.quality_rules, unfit_names),
                false_alarms,
                len(unfit_names),
                f"False alarms rise from {stored:g} to {false_alarms:g} per 1,000 careful people." if rises else "",
                [f"“{reach.title}” can: {reach.starts_at[0].lower()}{reach.starts_at[1:]}" for reach in useful],
            )
    return None


def reaches_of_useful_rules(reaches: Mapping[str, RuleReach]) -> list[RuleReach]:
    """Return the reach of each rule that suits the campaign and can flag someone."""
    return [reach for reach in reaches.values() if reach.suits_campaign and not reach.never_reason]


def has_check_rule_own_notice(campaign: Campaign, rule_name: str, check_counts: Mapping[str, int]) -> bool:
    """Return whether `unfit_check_rules` is about this rule: one about checks that the campaign has and can show."""
    is_about_present_checks = rule_name in CHECK_KINDS and check_counts.get(rule_name, 0) > 0
    return is_about_present_checks and not reason_hits_cannot_show_checks_or_empty(campaign)


def custom_rules_with_rules_off(lines: Sequence[str], rule_names: Sequence[str]) -> list[str]:
    """Return custom rules with the action “nothing” for these rules; thresholds and other rules stay."""
    parsed = [(line, *rule_threshold_and_value_of_line(line)[:2]) for line in lines]
    kept = [line for line, name, threshold in parsed if threshold or name not in rule_names]
    return [*kept, *(f"{name}: nothing" for name in rule_names)]
