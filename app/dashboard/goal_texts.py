"""How far a campaign is from its goal, computed for its page, and in sentences."""

from typing import NamedTuple

from app.dashboard.precision import can_measure_goal_quickly
from app.dashboard.snapshot import CampaignSnapshot
from app.designs.campaign import Campaign
from app.errors import pluralize
from app.goals.cut_line import CutLine, goal_cut_line_or_none
from app.goals.progress import (
    Progress,
    describe_goal,
    format_goal_progress,
    goal_item_numbers,
    goal_progress_or_none,
    text_that_identifies_goal,
)
from app.goals.settings import NO_GOAL


def goal_sentences_or_empty(snapshot: CampaignSnapshot, progress: Progress | None) -> str:
    """Return sentences on how far the campaign is from its goal, empty without one; for many items only the background
    check computes that.
    """
    campaign = snapshot.campaign
    if campaign.goal == NO_GOAL:
        return ""
    sentences = [
        f"{goal_heading(campaign, progress)}: {describe_goal(campaign)}.",
        f"Now it is {format_goal_progress(campaign, progress)}." if progress else "",
        goal_measure_sentence_or_empty(campaign, progress) if progress else "",
        mostly_repeats_warning_or_empty(snapshot) if progress and not progress.is_reached else "",
        settled_items_sentence_or_empty(int(snapshot.is_settled.sum())),
    ]
    return " ".join(filter(None, sentences))


def goal_heading(campaign: Campaign, progress: Progress | None) -> str:
    """Return a heading that says whether the goal is reached, or can no longer be reached."""
    if campaign.goal_reached == text_that_identifies_goal(campaign):
        return "Goal reached"
    return "Goal not reached" if campaign.status == "finished" and progress and not progress.is_reached else "Goal"


def is_goal_about_criterion_on_page(snapshot: CampaignSnapshot) -> bool:
    """Return whether the campaign has a goal, and it is about the criterion that the page shows."""
    return snapshot.campaign.goal != NO_GOAL and snapshot.criterion.number == snapshot.campaign.goal_criterion.number


class GoalPosition(NamedTuple):
    """Progress of a campaign towards its goal, and the line that the goal draws through the ranking, if any."""

    progress: Progress | None = None
    cut_line: CutLine | None = None


def goal_position_or_empty_if_slow(snapshot: CampaignSnapshot) -> GoalPosition:
    """Compute the progress towards the goal.

    Empty without a goal, on the page of another criterion, or where that would take too long for a page.
    """
    campaign, evidence = snapshot.campaign, snapshot.precision.evidence
    has_goal = is_goal_about_criterion_on_page(snapshot)
    if not has_goal or snapshot.unread_answer_count or not can_measure_goal_quickly(evidence):
        return GoalPosition()
    items = goal_item_numbers(campaign, ~snapshot.is_gone)
    estimates, measured_by = evidence.goal_estimates(campaign, snapshot.precision.intervals)
    estimates, scores = estimates.select_items(items), snapshot.score[items]
    return GoalPosition(
        goal_progress_or_none(campaign, estimates, scores, measured_by),
        goal_cut_line_or_none(campaign, estimates, scores, items, snapshot.judgments[items] > 0),
    )


def goal_measure_sentence_or_empty(campaign: Campaign, progress: Progress) -> str:
    """Return a sentence on how the goal is measured; empty for laws that could not measure it."""
    law = campaign.law
    if not law.fit:
        return ""
    by_law = progress.measured_by == law.name
    return f"Measured by the scores of {law.short_title}." if by_law else "Measured by plain means of answers."


def mostly_repeats_warning_or_empty(snapshot: CampaignSnapshot) -> str:
    """Advise more annotators if most judgments repeat one by the same annotator, which says little about others."""
    tally = snapshot.precision.evidence.tally
    if 2 * tally.annotators.sum() >= tally.judgments.sum():
        return ""
    fact = "Most judgments are repeats by the same person."
    if snapshot.campaign.segment_count:
        fact = "Most judgments of a system are by people who judged it on another segment."
    return f"{fact} More annotators would help reach the goal."


def settled_items_sentence_or_empty(settled_item_count: int) -> str:
    if settled_item_count == 0:
        return ""
    are, them = ("is", "it") if settled_item_count == 1 else ("are", "them")
    return f"{pluralize(settled_item_count, 'item')} {are} settled, and annotators are no longer asked about {them}."
