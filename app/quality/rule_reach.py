"""Reach of rules: whether a campaign's rules can find anyone, given the work that one person may do in it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.errors import pluralize
from app.quality.checks import reason_hits_cannot_show_checks_or_empty
from app.quality.rule import QualityRule, RuleRequirement
from app.quality.sequential_limits import MIN_OTHER_ANNOTATORS
from app.quality.settings import RuleChoice, active_rule_choices_by_name
from app.quality.workload import (
    CHECK_KINDS,
    AnnotatorWorkload,
    distribution_of_checks_met,
    expected_check_count_or_none,
    largest_workload_of_one_annotator,
    number_of_checks_one_person_meets_text,
    sentence_on_checks_met_by_one_person_or_empty,
)

DEFAULT_CHECKS_PERCENT, MAX_CHECKS_PERCENT, PERCENT_STEP = 10, 50, 5  # shares of HITs that are proposed
MIN_REACH_PROBABILITY = 0.001  # a rule has no reach if one person meets enough checks with a smaller probability

COUNT_CHECKS_BY_KIND = text(
    "SELECT kind, count(*) AS items FROM check_items WHERE campaign_id = :campaign GROUP BY kind"
)

COUNT_ANNOTATORS_WITH_ANSWERS = text("""
    SELECT count(*) FROM (
        SELECT FROM annotators a WHERE a.campaign_id = :campaign AND EXISTS (
            SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id)
        LIMIT :most) AS some_of_them
""")


@dataclass(frozen=True)
class RuleReach:
    """When a rule can find someone, as a sentence, and why it never will; `never_reason` is empty if it may.

    Attributes:
        starts_at: When the rule can find someone.
        never_reason: Why the rule finds no one in this campaign.
        needs_more_work: Whether the reason is that one person does too little, not that the rule is for other
            campaigns.
        title: The rule's title.
        shows_no_checks: Whether the reason is that no HIT shows checks of the rule's kind.

    """

    starts_at: str
    never_reason: str = ""
    needs_more_work: bool = False
    title: str = ""
    shows_no_checks: bool = False

    @property
    def suits_campaign(self) -> bool:
        """False if the rule is for other designs, laws or kinds of items."""
        return bool(self.starts_at)

    @property
    def has_cases(self) -> bool:
        """False if the rule is for other campaigns, or for checks that no HIT shows."""
        return self.suits_campaign and not self.shows_no_checks


@dataclass(frozen=True)
class ReachSummary:
    """Reach of each active rule of a campaign by the rule's name, the number of checks of one person, the most work of
    one person, and what would let more rules find someone.
    """

    by_rule: Mapping[str, RuleReach]
    expected_checks: str
    may_one_person_meet_all_checks: bool
    workload: AnnotatorWorkload
    advice: str

    def unfit_rules_except(self, rule_names: Collection[str]) -> list[RuleReach]:
        """Return the rules that find no one because one person does too little, without those of these names."""
        return [reach for name, reach in self.by_rule.items() if reach.needs_more_work and name not in rule_names]


async def load_rule_reach_by_name(
    connection: AsyncConnection, campaign: Campaign, *, item_count: int
) -> Mapping[str, RuleReach]:
    """Return the reach of each active rule, by its name."""
    return (await load_reach_summary(connection, campaign, item_count=item_count)).by_rule


async def load_reach_summary(connection: AsyncConnection, campaign: Campaign, *, item_count: int) -> ReachSummary:
    """Return what the active rules can find, for the template `admin/_rule_reach.html`."""
    rows = await connection.execute(COUNT_CHECKS_BY_KIND, {"campaign": campaign.id})
    workload = largest_workload_of_one_annotator(campaign, item_count, {row.kind: row.items for row in rows})
    by_rule = reach_of_active_rules_by_name(campaign, workload)
    expected_checks = sentence_on_checks_met_by_one_person_or_empty(workload)
    return ReachSummary(
        by_rule, expected_checks, workload.may_meet_all_checks, workload, advice_on_more_reach(campaign, workload)
    )


def advice_on_more_reach(campaign: Campaign, workload: AnnotatorWorkload) -> str:
    """Return a sentence on what would let rules flag someone that one person's work is too little for."""
    if workload.max_hits == campaign.hits_per_annotator:
        ways = ["More tasks per annotator"]
    else:
        ways = [f"Showing {'segments' if campaign.segment_count else 'items'} again"]
    if not reason_hits_cannot_show_checks_or_empty(campaign):
        ways.append("more gold items")
    return f"{', '.join(ways)} or custom rules would let them flag someone."


def reach_of_active_rules_by_name(campaign: Campaign, workload: AnnotatorWorkload) -> dict[str, RuleReach]:
    """Return the reach of each active rule if one person does at most this work."""
    false_alarm_rate = campaign.false_alarms / 1000
    return {
        name: replace(
            rule_reach_in_campaign(choice.rule, campaign, workload, false_alarm_rate), title=choice.rule.title
        )
        for name, choice in active_rule_choices_by_name(campaign).items()
    }


def sentences_on_check_counts_and_failures_needed(
    campaign: Campaign, item_count: int, check_counts: Mapping[str, int]
) -> str:
    """Return how many checks of each kind a campaign has, how many one annotator meets, and how many failures the rule
    about them needs. Attention items are left out if there are none.
    """
    workload, rules = (
        largest_workload_of_one_annotator(campaign, item_count, check_counts),
        active_rule_choices_by_name(campaign),
    )
    sentences = []
    for kind in CHECK_KINDS:
        count = check_counts.get(kind, 0)
        if count or kind == "gold":
            met_by_one_person = text_on_number_of_checks_one_person_meets(workload, kind) if count else ""
            sentences.append(f"{pluralize(count, f'{kind} item')}{met_by_one_person}.")
        if kind in rules and (count or kind == "gold"):
            need = rules[kind].rule.least_work_requirement(campaign.design.value_kind, campaign.false_alarms / 1000)
            sentences.append(f"The rule “{rules[kind].rule.title}” flags no one before {need.count} failures.")
    return " ".join(sentences)


class ChecksProposal(NamedTuple):
    """A value for the setting `checks_percent`, and why it is proposed, as a sentence."""

    percent: int
    reason: str


def all_of_total_text(total: int, noun: str) -> str:
    """Return "the only check", "both checks" or "all 3 checks"."""
    if total == 1:
        return f"the only {noun}"
    counted = pluralize(total, noun)
    return f"both {counted.removeprefix('2 ')}" if total == 2 else f"all {counted}"


def propose_checks_percent_or_none(
    campaign: Campaign, item_count: int, check_counts: Mapping[str, int]
) -> ChecksProposal | None:
    """Return the share of HITs that could show checks of a campaign that has some and shows none; else None.

    One person gets on average as many HITs with a check as there are checks or, if no possible share gives so many, as
    the rule about them needs.
    Without a limit of HITs per person, a person is expected to do as many as judge each item once. The share is at
    least `DEFAULT_CHECKS_PERCENT` and at most `MAX_CHECKS_PERCENT`.
    """
    if not sum(check_counts.values()) or campaign.checks_percent:
        return None
    workload = largest_workload_of_one_annotator(campaign, item_count, check_counts)
    available, hits = sum(workload.max_checks.values()), workload.max_hits
    if hits is None:
        hits = max(1, ceil(item_count / workload.judgments_per_hit))
    rules = active_rule_choices_by_name(campaign)
    needs = [
        rules[kind].rule.least_work_requirement(campaign.design.value_kind, campaign.false_alarms / 1000).count
        for kind in CHECK_KINDS
        if kind in rules and check_counts.get(kind)
    ]
    wanted = available
    if needs and percent_of_hits_needed_rounded_up_to_step(wanted, hits) > MAX_CHECKS_PERCENT:
        wanted = min(available, max(needs))
    least_percent = percent_of_hits_needed_rounded_up_to_step(wanted, hits)
    percent = min(max(least_percent, DEFAULT_CHECKS_PERCENT), MAX_CHECKS_PERCENT)
    if workload.max_hits is None:
        hits = min(hits, ceil(available * 100 / percent))
        work_phrase = f"In about {pluralize(hits, 'task')}"
    else:
        work_phrase = f"With {pluralize(hits, 'task')} per person"
    expected = replace(workload, max_hits=hits, checks_percent=percent)
    met = sum(expected_check_count_or_none(expected, kind) or 0.0 for kind in CHECK_KINDS)
    of_all = f"about {round(met, 1):g} of {pluralize(available, 'check')}"
    met_text = all_of_total_text(available, "check") if expected.meets_all_checks and available > 1 else of_all
    reason = f"{work_phrase}, a person then sees {met_text}"
    if least_percent > MAX_CHECKS_PERCENT:
        return ChecksProposal(percent, f"{reason}; a share above {MAX_CHECKS_PERCENT} % is not possible.")
    if wanted < available:
        return ChecksProposal(percent, f"{reason}: as many as a rule needs to flag someone who fails them all.")
    return ChecksProposal(percent, f"{reason}.")


def percent_of_hits_needed_rounded_up_to_step(check_count: int, hit_count: int) -> int:
    """Return the least multiple of `PERCENT_STEP` that shows one person so many checks in these HITs on average."""
    return ceil(check_count * 100 / hit_count / PERCENT_STEP) * PERCENT_STEP


def text_on_number_of_checks_one_person_meets(workload: AnnotatorWorkload, kind: str) -> str:
    """Return how many checks of a kind one annotator meets, as the end of a sentence."""
    if not workload.checks_percent:
        return "; no task shows them until you set “Tasks with a check (%)”"
    expected = expected_check_count_or_none(workload, kind)
    if expected is None:
        return "; an annotator sees each at most once"
    hits = pluralize(workload.max_hits or 0, "task")
    return f"; with {hits} per person an annotator sees {number_of_checks_one_person_meets_text(workload, kind)}"


async def load_notice_on_too_few_annotators_or_empty(connection: AsyncConnection, campaign_id: int) -> str:
    """Return a sentence saying that rules which compare annotators find nothing yet; empty if enough annotators have
    answered.
    """
    needed = 1 + MIN_OTHER_ANNOTATORS
    answered = await connection.scalar(COUNT_ANNOTATORS_WITH_ANSWERS, {"campaign": campaign_id, "most": needed}) or 0
    if answered >= needed:
        return ""
    so_far_text = (
        f"{answered} {'has' if answered == 1 else 'have'} answered so far" if answered else "no one has answered yet"
    )
    return f"Rules that compare annotators need {needed} of them; {so_far_text}."


def rule_reach_in_campaign(
    rule: QualityRule, campaign: Campaign, workload: AnnotatorWorkload, false_alarm_rate: float
) -> RuleReach:
    """Return the reach of a rule; `false_alarm_rate` is the share of careful people that the rule may find."""
    design, law = campaign.design, campaign.law
    requirement = rule.least_work_requirement(design.value_kind, false_alarm_rate)
    if not rule.supports_answers(design.value_kind, len(design.classes)):
        return RuleReach("", "This rule does not apply to this design.")
    if rule.name == "played" and not campaign.are_playbacks_reported:
        return RuleReach("", "This campaign has no recordings or videos to play.")
    if rule.name == "at_random" and not law.layout and design.value_kind != "order":
        return RuleReach("", f"The update law {law.name} does not estimate which annotators answer at random.")
    starts_at = f"After {pluralize(requirement.count, requirement.unit)} by one person"
    if requirement.count_per_other:
        starts_at += f", if {requirement.other_annotators} others have {requirement.count_per_other} or more each"
        starts_at += requirement.others_condition
    starts_at += "."
    if not requirement.unit.startswith("failed"):
        reason = reason_one_person_works_too_little_or_empty(requirement, workload)
        return RuleReach(starts_at, reason, needs_more_work=bool(reason))
    kind = requirement.unit.split()[1]
    if not workload.checks_percent or workload.max_checks.get(kind, 1) == 0:
        reason = f"No task shows {'an attention' if kind == 'attention' else 'a gold'} item."
        return RuleReach(starts_at, reason, shows_no_checks=True)
    if workload.max_checks.get(kind) == requirement.count:
        starts_at = f"Only if one person fails all {pluralize(requirement.count, f'{kind} item')} that you have."
    reason = reason_one_person_meets_too_few_checks_or_empty(requirement, kind, workload)
    return RuleReach(starts_at, reason, needs_more_work=bool(reason))


def hint_on_failed_checks_needed_or_empty(rule_choices: Mapping[str, RuleChoice], false_alarms: float) -> str:
    """Return how many failed checks the active rules need from one person, for the form; empty if no rule needs any.

    Args:
        rule_choices: The active rules.
        false_alarms: False alarms per 1,000 careful people.

    """
    requirements = [
        rule_choices[name].rule.least_work_requirement("points", false_alarms / 1000)
        for name in CHECK_KINDS
        if name in rule_choices
    ]
    needed = " or ".join(pluralize(need.count, need.unit) for need in requirements)
    return f"Rules flag a person after {needed} at the earliest." if requirements else ""


def reason_one_person_works_too_little_or_empty(requirement: RuleRequirement, workload: AnnotatorWorkload) -> str:
    """Return a sentence that one person cannot do enough work for the rule; empty if they can."""
    if workload.max_hits is None or requirement.unit == "implied pair":
        return ""
    max_units = workload.max_hits * (workload.judgments_per_hit if requirement.unit == "judgment" else 1)
    if max_units >= requirement.count:
        return ""
    units_text = f" ({pluralize(max_units, requirement.unit)})" if requirement.unit != "task" else ""
    hits = pluralize(workload.max_hits, "task")
    needed = pluralize(requirement.count, requirement.unit)
    return f"With {hits} per person{units_text} this rule cannot find {requirement.target}: it needs {needed}."


def reason_one_person_meets_too_few_checks_or_empty(
    requirement: RuleRequirement, kind: str, workload: AnnotatorWorkload
) -> str:
    """Return a sentence that one person does not meet enough checks of a kind for the rule; empty if they may."""
    available = workload.max_checks.get(kind)
    requirement_text = f"this rule needs {requirement.count} failures, so it cannot find anyone."
    if available is not None and available < requirement.count:
        most = available if workload.max_hits is None else min(available, workload.max_hits)
        return f"One person sees at most {pluralize(most, f'{kind} item')}; {requirement_text}"
    if workload.max_hits is None:
        return ""
    if distribution_of_checks_met(workload, kind)[requirement.count :].sum() >= MIN_REACH_PROBABILITY:
        return ""
    hits, met = pluralize(workload.max_hits, "task"), number_of_checks_one_person_meets_text(workload, kind)
    items = f"{kind} item" if met.endswith(" 1") else f"{kind} items"
    return f"With {hits} per person, each person sees {met} {items}; {requirement_text}"
