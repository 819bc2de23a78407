"""Lessons of a finished rehearsal: what its record says about the campaign, and what to change."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.roles import SEE_CAMPAIGN, SEE_PEOPLE
from app.campaigns.totals import CampaignTotals, cost_range_text, pays_one_reward_per_person
from app.designs.campaign import Campaign
from app.designs.person_work import most_tasks_of_one_person_or_none, reward_of_tasks
from app.errors import pluralize
from app.goals.progress import text_that_identifies_goal
from app.goals.settings import NO_GOAL
from app.http.languages.catalogue import ENGLISH, format_money
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.metrics import spearman
from app.record.campaign import load_campaign_for_page_or_refuse
from app.selection.threshold_line import best_item_count_but_not_all
from app.simulation.rehearsal_record import RehearsalRecord, load_rehearsal_record_or_none
from app.simulation.rehearsals import MAX_REHEARSAL_HITS

BEST_SHARE = 0.1  # of the items, if the goal does not say how many are the best
LOW_CORRELATION = 0.8  # with the true values; below it, more than a third of the variance of ranks is noise
MAX_MINUTES_SHOWN = 120  # longer times are shown in hours


@dataclass(frozen=True)
class RehearsalFigures:
    """Figures of a finished rehearsal.

    Attributes:
        correlation: Rank correlation of scores and true values; None if it cannot be computed.
        best_count: How many items count as the best; None if scores have no order.
        best_found: How many of the highest scores belong to the best items.

    """

    annotators: int
    hits: int
    is_complete: bool
    correlation: float | None
    best_count: int | None
    best_found: int
    careless: int
    careless_noticed: int
    careful: int
    careful_held: int


@dataclass(frozen=True)
class Lesson:
    """A sentence about a rehearsal, and the page with more.

    Attributes:
        page: Address of the page, after the address of the campaign.
        link_text: Text of the link.
        needed_right: Right that the page needs.

    """

    sentence: str
    page: str
    link_text: str
    needed_right: str


@dataclass(frozen=True)
class RehearsalLessons:
    """Lessons of a rehearsal; `advice` says what to change, and is empty if nothing is wrong."""

    lessons: Sequence[Lesson]
    advice: str


def compute_rehearsal_figures(campaign: Campaign, record: RehearsalRecord) -> RehearsalFigures:
    """Return the figures of a rehearsal. Items that every HIT shows are left out of the correlation and of the best."""
    careless = [annotator for annotator in record.annotators if annotator.is_careless]
    careful = [annotator for annotator in record.annotators if not annotator.is_careless]
    true_values, scores = (np.delete(values, campaign.always_shown) for values in (record.true_values, record.scores))
    can_compare = campaign.criteria[0].design.is_ordered and len(scores) > 1
    best_count = count_best_items(campaign, len(scores)) if can_compare else None
    return RehearsalFigures(
        annotators=len(record.annotators),
        hits=record.hit_count,
        is_complete=record.is_complete,
        correlation=rank_correlation_or_none(true_values, scores) if can_compare else None,
        best_count=best_count,
        best_found=count_best_items_found(true_values, scores, best_count) if best_count else 0,
        careless=len(careless),
        careless_noticed=sum(annotator.is_held or annotator.has_finding for annotator in careless),
        careful=len(careful),
        careful_held=sum(annotator.is_held for annotator in careful),
    )


def count_best_items(campaign: Campaign, item_count: int) -> int:
    """Return how many items the goal asks for as the best, or else a tenth."""
    wanted = campaign.best_items if campaign.goal == "best" else round(BEST_SHARE * item_count)
    return best_item_count_but_not_all(wanted, item_count)


def count_best_items_found(true_values: Array, scores: Array, best_count: int) -> int:
    """Return how many of the `best_count` highest scores belong to items whose true value is among the highest.

    Items that share the lowest of these true values are all among the highest.
    """
    lowest_best = np.sort(true_values)[-best_count]
    highest = np.argsort(-scores, kind="stable")[:best_count]
    return int(np.count_nonzero(true_values[highest] >= lowest_best))


def rank_correlation_or_none(true_values: Array, scores: Array) -> float | None:
    """Return the rank correlation; None if all items are equal on one side."""
    try:
        return spearman(true_values, scores)
    except Inestimable:
        return None


def sentences_on_lessons_of_rehearsal(
    campaign: Campaign, figures: RehearsalFigures, planned_costs: Sequence[float] = ()
) -> list[Lesson]:
    """Return the lessons that the figures allow, one sentence each.

    `planned_costs` are those of a study whose platform pays each person one reward (`totals.costs_of_judgments`).
    """
    lessons = [
        Lesson(sentence_on_work_done(campaign, figures), "/annotators", "Annotators", SEE_PEOPLE),
        Lesson(sentence_on_cost_of_people_or_empty(campaign, figures, planned_costs), "/plan", "Plan", SEE_CAMPAIGN),
        Lesson(sentence_on_correlation_with_truth_or_empty(figures), "/analysis", "Analysis", SEE_CAMPAIGN),
        Lesson(sentence_on_best_items_found_or_empty(figures), "#scores", "Scores", SEE_CAMPAIGN),
        Lesson(sentence_on_noticed_careless_annotators_or_empty(figures), "/checks", "Quality", SEE_PEOPLE),
        Lesson(sentence_on_held_careful_annotators_or_empty(figures), "/checks", "Quality", SEE_PEOPLE),
    ]
    return [lesson for lesson in lessons if lesson.sentence]


def sentence_on_work_done(campaign: Campaign, figures: RehearsalFigures) -> str:
    """Return who answered how much, and how long people would work for that if the campaign says so."""
    sentence = f"{pluralize(figures.annotators, 'annotator')} answered {pluralize(figures.hits, 'task')}"
    if not campaign.minutes_per_hit:
        return f"{sentence}."
    minutes = figures.hits * campaign.minutes_per_hit
    time = pluralize(round(minutes), "minute") if minutes <= MAX_MINUTES_SHOWN else f"{minutes / 60:,.1f} hours"
    return f"{sentence}: {time} of work for people, at {round(campaign.minutes_per_hit, 2):g} min each."


def sentence_on_cost_of_people_or_empty(
    campaign: Campaign, figures: RehearsalFigures, planned_costs: Sequence[float]
) -> str:
    """Return what people would cost: the whole study if it pays each person one reward, else these tasks.

    Empty if pay is not set.
    """
    if not campaign.pay_per_hit:
        return ""
    if planned_costs:
        reward = reward_of_tasks(campaign.pay_per_hit, most_tasks_of_one_person_or_none(campaign) or 1)
        per_person = format_money(reward, campaign.currency, ENGLISH, exact=True)
        costs = cost_range_text(planned_costs, campaign.currency)
        return f"With people, the study would cost {costs}, at {per_person} each."
    cost = format_money(campaign.pay_per_hit * figures.hits, campaign.currency, ENGLISH)
    pay = format_money(campaign.pay_per_hit, campaign.currency, ENGLISH, exact=True)
    return f"With people, these tasks would cost {cost}, at {pay} each."


def sentence_on_correlation_with_truth_or_empty(figures: RehearsalFigures) -> str:
    """Return how near scores are to the truth; empty if that cannot be computed."""
    if figures.correlation is None:
        return ""
    return (
        f"The order of the scores and that of the true values correlate {figures.correlation:.2f} "
        "(1 is the same order, 0 is chance)."
    )


def sentence_on_best_items_found_or_empty(figures: RehearsalFigures) -> str:
    """Return how many of the best items were found; empty if scores have no order."""
    if figures.best_count is None:
        return ""
    if figures.best_count == 1:
        return f"The truly best item {'has' if figures.best_found else 'does not have'} the highest score."
    count = f"{figures.best_count:,}"
    return f"{figures.best_found:,} of the {count} truly best items are among the {count} with the highest scores."


def sentence_on_noticed_careless_annotators_or_empty(figures: RehearsalFigures) -> str:
    """Return how many careless annotators the rules noticed; empty if there were none."""
    if not figures.careless:
        return ""
    return f"Rules noticed {figures.careless_noticed:,} of {pluralize(figures.careless, 'careless annotator')}."


def sentence_on_held_careful_annotators_or_empty(figures: RehearsalFigures) -> str:
    """Return how many careful annotators were held; empty if there were none."""
    if not figures.careful:
        return ""
    if not figures.careful_held:
        return "Rules held no careful annotator by mistake."
    return f"Rules held {figures.careful_held:,} of {pluralize(figures.careful, 'careful annotator')} by mistake."


def most_urgent_advice_on_campaign_or_empty(campaign: Campaign, figures: RehearsalFigures) -> str:
    """Return what to change first in the campaign; empty if nothing is wrong."""
    return (
        advice_on_missing_judgments_or_empty(campaign, figures)
        or advice_on_quality_rules_or_empty(campaign, figures)
        or advice_on_precision_or_empty(campaign, figures)
    )


def advice_on_missing_judgments_or_empty(campaign: Campaign, figures: RehearsalFigures) -> str:
    """Return how to get the judgments that items or the goal lack; empty if there are enough."""
    has_goal = campaign.goal != NO_GOAL
    if has_goal and campaign.goal_reached == text_that_identifies_goal(campaign):
        return ""
    if figures.is_complete:
        needs_more = "The goal was not reached: ask for more judgments per item, or choose a goal that needs fewer."
        return needs_more if has_goal else ""
    missed = "The goal was not reached, and some items lack judgments" if has_goal else "Some items lack judgments"
    if figures.hits >= MAX_REHEARSAL_HITS:
        return f"{missed}, because a rehearsal ends after {MAX_REHEARSAL_HITS:,} tasks: rehearse with fewer items."
    return f"{missed}: plan for more annotators, or let each of them answer more tasks."


def advice_on_quality_rules_or_empty(campaign: Campaign, figures: RehearsalFigures) -> str:
    """Return how to change the rules; empty if they noticed all careless annotators and held no careful one."""
    if figures.careful_held:
        return "Careful annotators were held: make the rule that held them less strict, or let it only warn."
    if figures.careless_noticed < figures.careless and campaign.checks_percent:
        return "Not all careless annotators were noticed: add gold items, another rule, or more tasks per person."
    if figures.careless_noticed < figures.careless:
        return "Not all careless annotators were noticed: add gold items, or another rule about answers."
    return ""


def advice_on_precision_or_empty(campaign: Campaign, figures: RehearsalFigures) -> str:
    """Return what to do if scores are far from the truth in a campaign that has no goal; otherwise empty."""
    if campaign.goal == NO_GOAL and figures.correlation is not None and figures.correlation < LOW_CORRELATION:
        return "Scores differ a lot from the true values: ask for more judgments per item."
    return ""


async def load_rehearsal_lessons_or_none(connection: AsyncConnection, campaign: Campaign) -> RehearsalLessons | None:
    """Load the lessons of a finished rehearsal; None for other campaigns, and before the first answer."""
    if campaign.rehearsal_of is None or campaign.status != "finished":
        return None
    record = await load_rehearsal_record_or_none(connection, campaign)
    if record is None or not record.hit_count:
        return None
    figures = compute_rehearsal_figures(campaign, record)
    return RehearsalLessons(
        sentences_on_lessons_of_rehearsal(
            campaign, figures, await load_costs_of_rewards_or_empty(connection, campaign)
        ),
        most_urgent_advice_on_campaign_or_empty(campaign, figures),
    )


async def load_costs_of_rewards_or_empty(connection: AsyncConnection, campaign: Campaign) -> Sequence[float]:
    """Load what the study costs if its platform pays each person one reward; empty for all others."""
    if not pays_one_reward_per_person(campaign):
        return ()
    return CampaignTotals.from_campaign(await load_campaign_for_page_or_refuse(connection, campaign.slug)).costs
