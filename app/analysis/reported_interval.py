"""Interval that a campaign's paper should report, in words: next to tables of scores, and for the methods paragraph.

Several intervals of one score answer different questions; docs/statistics/intervals.md explains the choice.
"""

from dataclasses import dataclass

from app.analysis.available_methods import available_methods_for_design
from app.analysis.methods import SCORE_METHODS
from app.analysis.system_table import SYSTEM_RANK_TABLE
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.goals.settings import does_rule_ask_by_scores

MEAN, SHRUNKEN, AWARE_COMPARISONS = "mean", "shrunken_mean", "aware_bradley_terry"
PAIR_SIZE = 2


@dataclass(frozen=True)
class ReportedInterval:
    """Interval to report.

    Attributes:
        advice: Sentences for the researcher; empty if no score has an interval.
        paper_sentence: Sentence of the methods paragraph; empty if the researcher chooses the method.

    """

    advice: str = ""
    paper_sentence: str = ""


def choose_reported_interval(criterion: Criterion[Campaign]) -> ReportedInterval:
    """Return which interval to report for the scores of a criterion."""
    campaign, design = criterion.campaign, criterion.design
    methods = available_methods_for_design(design, campaign.items_per_hit).scores
    if not methods:
        return ReportedInterval()
    if campaign.segment_count:
        return interval_of_systems(has_mean=MEAN in methods)
    if MEAN not in methods:
        return interval_of_comparisons(campaign, design.default_method)
    if does_rule_ask_by_scores(campaign):
        return INTERVAL_OF_SELECTED_ITEMS
    return interval_of_evenly_asked_items(SCORE_METHODS[design.default_method or MEAN].title)


def interval_of_evenly_asked_items(title: str) -> ReportedInterval:
    return ReportedInterval(
        f"Report the interval of {title}, and that of {SCORE_METHODS[SHRUNKEN].title} for items that you name because "
        f"they lead the list. {LAW_INTERVAL_ADVICE}",
        f"The 95 % intervals are those of {title.lower()}s: calibrated intervals, with variances moderated across "
        "items (Smyth 2004). Repeated judgments of an item by one annotator do not narrow them.",
    )


def interval_of_systems(*, has_mean: bool) -> ReportedInterval:
    """Return the interval for scores of systems: one for comparisons, another for the level of a score."""
    level = (
        f"For a score by itself, report the interval of {SCORE_METHODS[MEAN].title}, which is wider and also holds for "
        "other annotators."
        if has_mean
        else "They hold for these annotators; no interval here allows for others."
    )
    return ReportedInterval(
        f"To compare systems, report the ranks and intervals of {SYSTEM_RANK_TABLE.title}: they leave out errors that "
        f"all systems share. {level} {LAW_INTERVAL_ADVICE}",
        "Systems were compared with each other; 95 % intervals and ranges of ranks come from 1,000 bootstrap samples "
        "of tasks, with Holm’s correction for the number of pairs. They hold for these annotators and segments, and "
        "leave out errors that all systems share.",
    )


def interval_of_comparisons(campaign: Campaign, default_method: str) -> ReportedInterval:
    """Return the interval for scores from comparisons of items, which have no mean."""
    name = default_method or (AWARE_COMPARISONS if campaign.items_per_hit > PAIR_SIZE else "")
    limit = "No interval here allows for judgments of one annotator that depend on each other."
    if not name:
        return ReportedInterval(
            f"Report the interval of the method whose scores you report, not that of an update law. {limit}"
        )
    title = SCORE_METHODS[name].title
    return ReportedInterval(
        f"Report the interval of {title}: other methods take the pairs of a task as independent. {limit}",
        f"Scores with 95 % intervals are those of {title}.",
    )


LAW_INTERVAL_ADVICE = "An update law’s interval rests on its assumptions: do not report it."

INTERVAL_OF_SELECTED_ITEMS = ReportedInterval(
    f"Report the interval of {SCORE_METHODS[SHRUNKEN].title}: this campaign asks about items because of their scores, "
    f"so plain means of leading items are too high. {LAW_INTERVAL_ADVICE}",
    "Items were chosen by their scores, so the scores are means shrunk towards those of all items, with 95 % intervals "
    "that also hold for selected items.",
)
