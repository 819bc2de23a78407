"""The cards at the top of a campaign's page: its goal or precision, progress, people and money. Pure.

A card shows only what is known: a figure that cannot be told yet is left out.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from app.campaigns.forecast_findings import ForecastFindings
from app.campaigns.pay import hourly_pay_by_median_time_or_none, text_of_agreed_pay
from app.campaigns.totals import cost_range_text, count_tasks_left
from app.dashboard.goal_texts import goal_heading, is_goal_about_criterion_on_page, mostly_repeats_warning_or_empty
from app.dashboard.precision import median_interval_half_width
from app.dashboard.snapshot import CampaignSnapshot
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.person_work import most_tasks_of_one_person_or_none, reward_of_tasks
from app.designs.unit import PERCENT_BEATEN_UNIT, UNKNOWN_SPREAD
from app.errors import pluralize
from app.goals.progress import Progress, format_goal_progress
from app.goals.settings import NO_GOAL, RELEASE_ITEMS
from app.http.languages.catalogue import ENGLISH, format_money
from app.record import pace
from app.record.answer_rates import minutes_since_epoch

SECONDS_PER_MINUTE = 60


@dataclass(frozen=True)
class Card:
    """A card: a figure with its title, and what else is known about it.

    Attributes:
        value: The figure in large type; empty if it is not known.
        beside: Text after the figure.
        share: Length of the bar, 0 to 1; None without a bar.
        notes: Sentences or phrases below the figure.

    """

    title: str
    value: str
    beside: str = ""
    share: float | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class GoalCard(Card):
    """The goal, or without one how well items are known.

    Attributes:
        is_goal: True if the campaign has a goal.
        is_reached: True if it is reached.
        is_planned: True if a forecast has told how many judgments the goal needs.
        ask_for: Judgments per item that suffice by that forecast, if the campaign asks for fewer.

    """

    is_goal: bool = False
    is_reached: bool = False
    is_planned: bool = False
    ask_for: int | None = None


@dataclass(frozen=True)
class ProgressCard(Card):
    """Judgments of those wanted; `done_at` is the expected end in seconds since 1970, None while it is unknown."""

    done_at: int | None = None


@dataclass(frozen=True)
class Cards:
    """The cards of a campaign's page; `money` only if pay is set."""

    goal: GoalCard
    progress: ProgressCard
    people: Card
    money: Card | None


def build_dashboard_cards(snapshot: CampaignSnapshot, progress: Progress | None) -> Cards:
    """Return the cards, given the progress towards the goal if it is known."""
    has_goal = is_goal_about_criterion_on_page(snapshot)
    return Cards(
        goal_card(snapshot, progress) if has_goal else precision_card_with_goal_criterion(snapshot),
        progress_card(snapshot),
        annotator_count_card(snapshot),
        spent_and_expected_cost_card(snapshot) if snapshot.campaign.pay_per_hit else None,
    )


def precision_card_with_goal_criterion(snapshot: CampaignSnapshot) -> GoalCard:
    """Return the card on precision; in a campaign whose goal is about another criterion, it names that one."""
    card, campaign = precision_or_items_judged_card(snapshot), snapshot.campaign
    if campaign.goal == NO_GOAL:
        return card
    return replace(card, notes=(*card.notes, f"The goal is about {campaign.goal_criterion.name}."))


def precision_or_items_judged_card(snapshot: CampaignSnapshot) -> GoalCard:
    """Return the card on how well the median item is known; until that is known, on how many items are judged."""
    value = typical_precision_text_or_empty(snapshot)
    if value:
        return GoalCard("Precision", value, precision_label(snapshot.criterion.design))
    judged, items = int(np.count_nonzero(snapshot.judgments)), len(snapshot.judgments)
    note = (
        "The table shows the intervals of the scores. A typical interval is known once several annotators have judged "
        "the same items."
    )
    return GoalCard("Items judged", f"{judged:,} of {items:,}", share=judged / items, notes=(note,) if judged else ())


def precision_label(design: Design) -> str:
    """Return what the number on the card on precision is."""
    if not design.is_ordered:
        return "typical share of the likeliest label"
    return "typical interval of the win rate" if design.unit is PERCENT_BEATEN_UNIT else "typical interval"


def typical_precision_text_or_empty(snapshot: CampaignSnapshot) -> str:
    """Return the typical interval, or the share of the likeliest label; empty while it is not known."""
    design = snapshot.criterion.design
    if not design.is_ordered:
        return f"{100 * np.median(snapshot.score):.0f} %" if snapshot.judgments.any() else ""
    spread = design.unit.half_width_text_or_empty(median_interval_half_width(snapshot.precision.intervals))
    return "" if spread == UNKNOWN_SPREAD else spread


def goal_card(snapshot: CampaignSnapshot, progress: Progress | None) -> GoalCard:
    """Return the card on the goal: how near it is, how many judgments are missing by the last forecast, and what to
    do.
    """
    campaign = snapshot.campaign
    title = goal_title(campaign)
    if goal_heading(campaign, progress) == "Goal reached":
        value = format_goal_progress(campaign, progress) if progress else "reached"
        return GoalCard(title, value, "goal reached", 1.0, is_goal=True, is_reached=True)
    findings = ForecastFindings.from_stored(
        campaign.newest_plan, items=len(snapshot.score), per_item=campaign.judgments_per_item
    )
    notes = [
        *missing_judgments_forecast_sentences(snapshot, findings),
        mostly_repeats_warning_or_empty(snapshot) if progress else "",
    ]
    enough = findings.enough if findings else None
    ask_for = enough if enough and enough > campaign.judgments_per_item else None
    return GoalCard(
        title,
        format_goal_progress(campaign, progress) if progress else typical_precision_text_or_empty(snapshot),
        goal_target_text(campaign, progress)
        if progress
        else "typical interval" * bool(typical_precision_text_or_empty(snapshot)),
        min(1.0, progress.value / progress.target) if progress else None,
        tuple(filter(None, notes)),
        is_goal=True,
        is_planned=bool(findings and findings.totals),
        ask_for=ask_for,
    )


def goal_title(campaign: Campaign) -> str:
    """Return the goal in two or three words."""
    return {
        "best": f"Best {campaign.best_items:,} known",
        "threshold": f"Above or below {campaign.threshold:g}",
        "order": "Ranking known",
        "intervals": f"Intervals of ±{campaign.goal_width:g} points",
        "halves": "Agreement of halves",
    }[campaign.goal]


def goal_target_text(campaign: Campaign, progress: Progress) -> str:
    """Return the text after the progress value: the target and what is measured."""
    if campaign.goal == "halves":
        return f"of {progress.target:.2f}"
    if campaign.when_reached == RELEASE_ITEMS and campaign.goal != "intervals":
        return "of items settled"
    target = f"{100 * progress.target:.0f} %"
    return f"of items; the goal is {target}" if campaign.goal == "intervals" else f"sure; the goal is {target}"


def missing_judgments_forecast_sentences(snapshot: CampaignSnapshot, findings: ForecastFindings | None) -> list[str]:
    """Return how many more judgments the goal needs by the last forecast, and whether the campaign asks for enough."""
    if findings is None or not findings.totals:
        return []
    judgments = int(snapshot.judgment_counts_without_always_shown.sum())
    middle, low, high = (None if total is None else max(0, total - judgments) for total in findings.totals)
    if middle is None:
        return ["According to the plan, it is out of reach with these annotators."]
    most = "many more" if high is None else f"{high:,}"
    notes = [f"Needs about {middle:,} more ({low or 0:,} to {most})"]
    if high is None or high > snapshot.judgments_left_count:
        chance = "probably will not" if middle > snapshot.judgments_left_count else "may not"
        notes.append(f"With {snapshot.campaign.judgments_per_item} per item it {chance} get there.")
    return notes


def progress_card(snapshot: CampaignSnapshot) -> ProgressCard:
    """Return the card on the judgments given and wanted, when the rest will be done, and how long a task takes."""
    done, wanted = snapshot.judgments_wanted - snapshot.judgments_left_count, snapshot.judgments_wanted
    silence = pace.text_on_time_without_answers_or_none(snapshot.hits_by_minute, minutes_since_epoch(snapshot.as_of))
    has_silence = snapshot.campaign.status == "running" and snapshot.counts.first_at is not None
    notes = [
        pluralize(snapshot.hit_count, "task") if snapshot.hit_count else "",
        f"{format_minutes_colon_seconds(snapshot.usual_seconds)} a task" if snapshot.usual_seconds else "",
        (silence or recent_tasks_per_hour_text_or_empty(snapshot)) if has_silence else "",
    ]
    return ProgressCard(
        "Progress",
        f"{snapshot.judgment_counts_without_always_shown.sum():,} of {wanted:,}",
        "judgments",
        done / wanted if wanted else None,
        tuple(filter(None, notes)),
        None if silence else expected_finish_epoch_seconds_or_none(snapshot),
    )


def format_minutes_colon_seconds(seconds: float) -> str:
    """Return a duration as minutes and seconds, such as 1:05 min; below a minute as seconds, such as 2 s."""
    minutes, rest = divmod(round(seconds), SECONDS_PER_MINUTE)
    return f"{minutes:,}:{rest:02} min" if minutes else f"{rest} s"


def recent_tasks_per_hour_text_or_empty(snapshot: CampaignSnapshot) -> str:
    """Return the recent tasks per hour; empty while there are too few."""
    recent = snapshot.recent_hit_count_and_hourly_rate_or_none
    return f"{recent[1]:,.0f} tasks an hour" if recent and recent[0] else ""


def hours_to_all_judgments_at_recent_rate_or_none(snapshot: CampaignSnapshot) -> float | None:
    """Hours until all wanted judgments are given, at the recent rate; None where there is too little data."""
    if snapshot.counts.first_at is None or snapshot.campaign.status != "running":
        return None
    span = snapshot.as_of - snapshot.counts.first_at
    return pace.forecast_hours_to_completion_or_none(
        snapshot.judgments_left_count,
        snapshot.judgments_per_task,
        snapshot.recent_hit_count_and_hourly_rate_or_none,
        span,
    )


def expected_finish_epoch_seconds_or_none(snapshot: CampaignSnapshot) -> int | None:
    """Expected end, in seconds since 1970, to the minute; None while it is unknown."""
    hours = hours_to_all_judgments_at_recent_rate_or_none(snapshot)
    return None if hours is None else minutes_since_epoch(snapshot.as_of + timedelta(hours=hours)) * SECONDS_PER_MINUTE


def annotator_count_card(snapshot: CampaignSnapshot) -> Card:
    """Return the card on how many annotators answered, and how many tasks are open."""
    annotators, open_hits = snapshot.counts.annotators, snapshot.counts.open_hits
    notes = (
        (f"{pluralize(open_hits, 'task')} open now",) if open_hits and snapshot.campaign.status != "finished" else ()
    )
    return Card("People", f"{annotators:,}", "annotator" if annotators == 1 else "annotators", notes=notes)


def spent_and_expected_cost_card(snapshot: CampaignSnapshot) -> Card:
    """Return the card on what the answers cost so far, and what the campaign will cost in all."""
    campaign = snapshot.campaign
    spent, expected = spent_and_expected_costs(snapshot)
    notes = [text_of_agreed_pay(campaign)]
    hourly_pay = hourly_pay_by_median_time_or_none(campaign, snapshot.usual_seconds, snapshot.hit_count)
    if hourly_pay is not None:
        notes.append(f"{pay_with_currency_text(hourly_pay, campaign)} an hour at the median time of a task")
    beside = f"of about {cost_range_text(expected, campaign.currency)}" if expected else "spent"
    share = spent / expected[-1] if expected else 1.0 if spent else None
    return Card("Money", pay_with_currency_text(spent, campaign), beside, share, tuple(notes))


def spent_and_expected_costs(snapshot: CampaignSnapshot) -> tuple[float, Sequence[float]]:
    """Return the pay so far, and the least and greatest pay of the whole campaign, once if they are the same.

    Nothing is expected any more once a campaign is finished or has all judgments. Where the platform pays each person
    one reward, people who have not finished their visit cost nothing yet.
    """
    campaign, counts = snapshot.campaign, snapshot.counts
    pay, is_finished = campaign.pay_per_hit or 0.0, campaign.status == "finished"
    if counts.paid_people is not None:
        spent = counts.paid_people * reward_of_tasks(pay, most_tasks_of_one_person_or_none(campaign) or 1)
        is_over = is_finished or not snapshot.judgments_left_count
        return spent, [] if is_over else sorted({max(cost, spent) for cost in snapshot.planned_costs})
    paid_hits = int(counts.paid_hits or 0)
    hits_left = count_tasks_left(snapshot.judgments_wanted, snapshot.judgments_left_count, snapshot.judgments_per_task)
    return pay * paid_hits, [pay * (paid_hits + hits_left)] if hits_left and not is_finished else []


def pay_with_currency_text(amount: float, campaign: Campaign) -> str:
    return format_money(amount, campaign.currency, ENGLISH)
