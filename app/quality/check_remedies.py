"""Ways to let a rule about gold or attention items flag someone, where a campaign has too few of them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from app.designs.campaign import Campaign
from app.errors import pluralize
from app.quality.caught_guessers import share_of_guessers_flagged
from app.quality.checks import number_of_checks_per_hit, reason_hits_cannot_show_checks_or_empty
from app.quality.rule_reach import (
    MAX_CHECKS_PERCENT,
    PERCENT_STEP,
    all_of_total_text,
    propose_checks_percent_or_none,
    rule_reach_in_campaign,
)
from app.quality.settings import active_rule_choices_by_name, rule_threshold_and_value_of_line
from app.quality.share_of_cases import text_on_share_of_cases
from app.quality.workload import (
    CHECK_KINDS,
    expected_check_count_or_none,
    largest_workload_of_one_annotator,
    number_of_checks_one_person_meets_text,
)

RemedyName = Literal["show", "strict"]
STRICTER_CAREFUL_PERCENTS = (10, 5)  # failures of a careful person, tried in this order; fewer are not realistic
POOLING_RULE = "signs"  # counts failed checks together with other signs of carelessness


@dataclass(frozen=True)
class CheckRemedy:
    """Settings with which a rule about checks can flag someone, or with which tasks show checks at all.

    Attributes:
        name: "show" for a larger share of tasks with a check, "strict" for a rule that needs fewer failures.
        title: Text of the button.
        consequence: What changes, as sentences.
        settings: The settings to store, by name.

    """

    name: RemedyName
    title: str
    consequence: str
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class UnfitCheckRule:
    """An active rule about checks of a campaign that has some, which can flag no one.

    Attributes:
        kind: The kind of checks, which is the name of the rule.
        problem: Why the rule flags no one, as a sentence.
        missing_count: Number of checks to add at least; 0 if there are enough.
        adding_consequence: What changes with these checks, as sentences.
        remedies: Changes of settings that let the rule flag someone, or at least show its checks.
        pooled_sentence: That failures still count among other signs; empty if they do not.

    """

    kind: str
    problem: str
    missing_count: int
    adding_consequence: str
    remedies: list[CheckRemedy]
    pooled_sentence: str


def unfit_check_rules(
    campaign: Campaign,
    item_count: int,
    check_counts: Mapping[str, int],
    guess_chances: Mapping[str, float] | None = None,
) -> list[UnfitCheckRule]:
    """Return the active rules about checks that can flag no one, with remedies; none for kinds without checks.

    Args:
        campaign: The campaign.
        item_count: Number of items that annotators are asked about.
        check_counts: Number of checks of each kind.
        guess_chances: Probability that a random answer meets a check, by kind. Without it, remedies do not say how many
            people who guess they catch.

    """
    if reason_hits_cannot_show_checks_or_empty(campaign):
        return []
    planner = RemedyPlanner(campaign, item_count, check_counts, guess_chances or {})
    active_rules = active_rule_choices_by_name(campaign)
    kinds = [kind for kind in CHECK_KINDS if check_counts.get(kind) and kind in active_rules]
    return [planner.unfit_rule(kind) for kind in kinds if not planner.can_flag(campaign, kind)]


@dataclass(frozen=True)
class RemedyPlanner:
    """Tries settings of a campaign with these numbers of items and checks."""

    campaign: Campaign
    item_count: int
    check_counts: Mapping[str, int]
    guess_chances: Mapping[str, float]

    def unfit_rule(self, kind: str) -> UnfitCheckRule:
        """Return what is wrong with the rule about a kind of checks, and what helps."""
        per_hit = number_of_checks_per_hit(self.campaign)
        missing = max(0, self.failures_needed(self.campaign, kind) * per_hit - self.check_counts[kind])
        adding = self.consequence_of_adding_checks(kind, missing)
        remedies = [*self.remedies(kind)]
        return UnfitCheckRule(kind, self.problem(kind), missing, adding, remedies, self.pooled_sentence(kind))

    def consequence_of_adding_checks(self, kind: str, missing: int) -> str:
        """Return what more checks of a kind change, if they are as hard to guess and enough tasks show them."""
        planner = replace(self, check_counts={**self.check_counts, kind: self.check_counts[kind] + missing})
        shown = replace(self.campaign, checks_percent=planner.suggest_checks_percent(self.campaign, kind))
        caught = planner.caught_text_or_empty(shown, kind)
        more_often = shown.checks_percent != self.campaign.checks_percent
        if caught and more_often:
            caught = f"{caught.removesuffix('.')} if {shown.checks_percent:g} % of tasks show one."
        return f"The rule then stays as it is.{caught}"

    def can_flag(self, campaign: Campaign, kind: str) -> bool:
        """Return whether the rule can flag someone with these settings."""
        workload = largest_workload_of_one_annotator(campaign, self.item_count, self.check_counts)
        rule = active_rule_choices_by_name(campaign)[kind].rule
        return not rule_reach_in_campaign(rule, campaign, workload, campaign.false_alarms / 1000).never_reason

    def failures_needed(self, campaign: Campaign, kind: str) -> int:
        """Return the number of failed checks from which the rule flags a person who fails them all."""
        rule = active_rule_choices_by_name(campaign)[kind].rule
        return rule.least_work_requirement(campaign.design.value_kind, campaign.false_alarms / 1000).count

    def problem(self, kind: str) -> str:
        """Return why the rule flags no one, as a sentence."""
        title = active_rule_choices_by_name(self.campaign)[kind].rule.title
        if not self.campaign.checks_percent:
            checks = pluralize(self.check_counts[kind], f"{kind} item")
            return f"No task shows your {checks}, so “{title}” flags no one."
        met = self.text_on_checks_met_by_one_person(self.campaign, kind)
        return f"“{title}” flags no one: {met}{self.failures_needed_text_or_empty(self.campaign, kind)}."

    def remedies(self, kind: str) -> Iterator[CheckRemedy]:
        """Yield a share of tasks with which the rule can flag someone; otherwise a rule that needs fewer failures, and
        last, if no task shows checks yet, a share that alone ends nothing but shows who fails them.
        """
        percent = self.suggest_checks_percent(self.campaign, kind)
        shown = replace(self.campaign, checks_percent=percent)
        can_flag = self.can_flag(shown, kind)
        if not can_flag:
            yield from self.strict_remedy(kind)
        if not self.campaign.checks_percent or (percent > self.campaign.checks_percent and can_flag):
            met = self.text_on_checks_met_by_one_person(shown, kind)
            beginning = "Then" if can_flag else "Then you see who fails them, but the rule still flags no one:"
            yield CheckRemedy(
                "show",
                self.title_of_showing_checks(shown),
                f"{beginning} {met}{self.failures_needed_text_or_empty(shown, kind)}."
                f"{self.caught_text_or_empty(shown, kind)}",
                {"checks_percent": percent},
            )

    def strict_remedy(self, kind: str) -> Iterator[CheckRemedy]:
        """Yield the first stricter rule that can flag someone, if there is one."""
        for careful_percent, changed in self.iterate_careful_percents_and_stricter_campaigns(kind):
            if self.can_flag(changed, kind):
                percent, failures = changed.checks_percent, self.failures_needed(changed, kind)
                workload = largest_workload_of_one_annotator(changed, self.item_count, self.check_counts)
                share_text = "to everyone" if workload.meets_all_checks else f"in {percent:g} % of tasks"
                shown_too = "" if percent == self.campaign.checks_percent else f", shown {share_text}"
                yield CheckRemedy(
                    "strict",
                    f"Flag people who fail {failures} {kind} items{shown_too}",
                    f"The rule then expects careful people to fail {careful_percent} % of {kind} items instead of "
                    f"{self.careful_percent(kind):g} %, so keep only those whose answer is beyond doubt."
                    f"{self.caught_text_or_empty(changed, kind)}",
                    {"quality_rules": changed.quality_rules, "checks_percent": percent},
                )
                return

    def iterate_careful_percents_and_stricter_campaigns(self, kind: str) -> Iterator[tuple[int, Campaign]]:
        """Yield the campaign with stricter rules and the failures of a careful person, in percent.

        The present share of tasks with a check comes first, then larger ones; with each of them the mildest rule.
        """
        lines, careful_percent = self.campaign.quality_rules, self.careful_percent(kind)
        stricter = [
            (percent, replace(self.campaign, quality_rules=custom_rules_with_threshold(lines, kind, percent)))
            for percent in STRICTER_CAREFUL_PERCENTS
            if percent < careful_percent
        ]
        yield from stricter
        for percent, campaign in stricter:
            yield percent, replace(campaign, checks_percent=self.suggest_checks_percent(campaign, kind))

    def careful_percent(self, kind: str) -> float:
        """Return the share of checks that a careful person may fail, in percent."""
        return float(active_rule_choices_by_name(self.campaign)[kind].rule.model_dump()["careful_percent"])

    def suggest_checks_percent(self, campaign: Campaign, kind: str) -> float:
        """Return the share of tasks with which one person meets enough checks on average, or the largest possible one.

        The present share stays if more would not help.
        """
        present = campaign.checks_percent
        if not present:
            proposal = propose_checks_percent_or_none(campaign, self.item_count, self.check_counts)
            return float(proposal.percent if proposal else MAX_CHECKS_PERCENT)
        needed = self.failures_needed(campaign, kind)
        for percent in range(PERCENT_STEP, MAX_CHECKS_PERCENT + 1, PERCENT_STEP):
            if percent > present and (self.expected_count(percent, kind) >= needed or percent == MAX_CHECKS_PERCENT):
                is_enough = self.can_flag(replace(campaign, checks_percent=float(percent)), kind)
                return float(percent) if is_enough else present
        return present

    def expected_count(self, percent: float, kind: str) -> float:
        """Return how many checks of a kind one person meets on average; infinite if their tasks are unlimited."""
        campaign = replace(self.campaign, checks_percent=percent)
        workload = largest_workload_of_one_annotator(campaign, self.item_count, self.check_counts)
        expected = expected_check_count_or_none(workload, kind)
        return float("inf") if expected is None else expected

    def text_on_checks_met_by_one_person(self, campaign: Campaign, kind: str) -> str:
        """Return how many of the checks one person meets, such as "one person sees about 2.4 of 3 gold items"."""
        workload = largest_workload_of_one_annotator(campaign, self.item_count, self.check_counts)
        noun = f"{kind} item" if number_of_checks_per_hit(campaign) == 1 else f"{kind} set"
        total = self.check_counts[kind] // number_of_checks_per_hit(campaign)
        if not total:
            return f"there is no complete {noun}"
        if workload.max_hits is None:
            return "one person can see " + all_of_total_text(total, noun)
        if workload.meets_all_checks:
            return "everyone sees " + all_of_total_text(total, noun)
        met = number_of_checks_one_person_meets_text(workload, kind)
        return f"one person sees {met} of {pluralize(total, noun)}"

    def failures_needed_text_or_empty(self, campaign: Campaign, kind: str) -> str:
        """Return that this is not enough for the rule, as the end of a sentence; empty if it is."""
        if self.can_flag(campaign, kind):
            return ""
        return f"; the rule needs {pluralize(self.failures_needed(campaign, kind), 'failure')}"

    def title_of_showing_checks(self, campaign: Campaign) -> str:
        """Return the text of the button that stores the share of tasks with checks."""
        workload = largest_workload_of_one_annotator(campaign, self.item_count, self.check_counts)
        if not workload.meets_all_checks:
            return f"Show checks in {campaign.checks_percent:g} % of tasks"
        total = sum(workload.max_checks.values())
        return f"Show everyone {'the check' if total == 1 else all_of_total_text(total, 'check')}, at random places"

    def caught_text_or_empty(self, campaign: Campaign, kind: str) -> str:
        """Return how many people who guess the rule catches, as a sentence after another one; empty if unknown, or if
        the rule can flag no one.
        """
        if kind not in self.guess_chances or not self.can_flag(campaign, kind):
            return ""
        workload = largest_workload_of_one_annotator(campaign, self.item_count, self.check_counts)
        share = share_of_guessers_flagged(campaign, workload, kind, self.guess_chances[kind])
        return f" Someone who guesses is caught {text_on_share_of_cases(share)}."

    def pooled_sentence(self, kind: str) -> str:
        """Return that failures count among other signs of carelessness, if the rule about these can flag someone."""
        pooling = active_rule_choices_by_name(self.campaign).get(POOLING_RULE)
        if pooling is None:
            return ""
        workload = largest_workload_of_one_annotator(self.campaign, self.item_count, self.check_counts)
        reach = rule_reach_in_campaign(pooling.rule, self.campaign, workload, self.campaign.false_alarms / 1000)
        if not reach.suits_campaign or reach.never_reason:
            return ""
        return f"Failed {kind} items also count in “{pooling.rule.title}”, together with speed and repeated values."


def custom_rules_with_threshold(lines: list[str], kind: str, careful_percent: int) -> list[str]:
    """Return custom rules with this share of failures of a careful person; all other lines stay."""
    name = "careful_percent"
    kept = [line for line in lines if rule_threshold_and_value_of_line(line)[:2] != (kind, name)]
    return [*kept, f"{kind}.{name}: {careful_percent}"]
