"""Forecast of a campaign: what its goal will cost, from its answers or an earlier campaign's, computed in a child
process.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import calibrated_intervals
from app.background.process import report_progress, run_in_process
from app.campaigns.launch import refuse_if_all_items_are_best
from app.campaigns.summaries import CampaignWithProgress, load_campaign_with_progress_or_refuse
from app.campaigns.totals import average_judgments_per_task, counts_of_items_and_checks, pays_one_reward_per_person
from app.database.bulk import open_snapshot
from app.database.campaign import is_judgeable_sql
from app.database.session import create_engine
from app.designs.campaign import Campaign
from app.designs.scale import MAX_POINTS
from app.errors import Conflict, Invalid, pluralize
from app.goals.estimates import GoalEvidence
from app.goals.progress import MAX_ITEMS_IN_ORDER, describe_goal, goal_item_numbers
from app.goals.settings import NO_GOAL, reason_design_has_no_goal_or_empty
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.online.law import Law
from app.planning.campaign_forecast import CampaignForecast
from app.planning.crowd_model import default_priors_of_law
from app.planning.forecast_defaults import DEFAULT_CONCURRENT_ANNOTATORS, DEFAULT_FORECAST_RUNS, DEFAULT_POPULATION
from app.planning.goal_simulation import (
    MAX_FORECAST_ITEMS,
    MAX_ITEMS_ASKED_BY_COMPARISONS,
    MAX_ITEMS_MEASURED_BY_LAW,
    MAX_SAMPLE_ITEMS,
    MEANS_LAW,
    MIN_BEST_IN_SAMPLE,
    NO_COMPARISONS,
    GoalForecast,
    PastComparisons,
    count_simulated_items,
    forecast_goal,
    is_forecast_asked_evenly,
    is_forecast_measured_by_law,
    most_new_judgments_per_item,
)
from app.planning.participation import (
    chosen_or_likely_annotator_count_or_refuse,
    sentence_on_origin_of_annotator_count,
)
from app.record import replay
from app.record.answer_rates import load_recent_hits_per_hour_or_none
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.record.responses import load_judgment_column_by_name
from app.record.retired import IS_RETIRED_SQL
from app.simulation.annotators import POPULATIONS

CPU_SECONDS_PER_HIT_BY_MEANS = 0.0005  # measured by `python -m benchmarks.forecasts_of_samples`
CPU_SECONDS_PER_HIT_BY_LAW = 0.005
USUAL_JUDGMENTS_PER_ITEM = 15  # needed by a usual goal; used to tell how long planning takes
MAX_COMPARISON_HITS = 1_000_000
MAX_FORECAST_SECONDS = 180  # forecasts run one at a time, so a long one keeps others waiting
LIST_ITEMS_OUT_OF_POOL = text(f"""
    SELECT p.subject FROM posteriors p
    WHERE {PRESENT_POSTERIORS_CONDITION} AND (NOT {is_judgeable_sql("p", unjudged_limit_sql=":people")} OR
    {IS_RETIRED_SQL})
""")


async def forecast_cost_of_goal_or_refuse(
    engine: AsyncEngine,
    slug: str,
    like: str = DEFAULT_POPULATION,
    *,
    now: datetime,
    at_once: int = DEFAULT_CONCURRENT_ANNOTATORS,
    annotators: int | None = None,
    runs: int = DEFAULT_FORECAST_RUNS,
    on_run: Callable[[int], None] = lambda _runs: None,
) -> CampaignForecast:
    """Forecast what the goal of a campaign will cost.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`no_goal`, `no_goal_possible`, `all_are_best`,
    `too_large_to_plan`, `no_items`, `no_items_left`) and `Invalid` (`too_few_judgments`, `too_few_annotators`).

    Args:
        engine: Engine of the database.
        slug: Slug of the campaign.
        like: A key of `POPULATIONS`, or the slug of an earlier campaign, for a campaign with too few answers of its
            own.
        now: The present time.
        at_once: Annotators at a time.
        annotators: Annotators in all; None for a likely number (`participation`).
        runs: Number of simulated campaigns.
        on_run: Called with the number of runs after each run.

    """
    async with open_snapshot(engine) as connection:
        campaign = await load_campaign_with_progress_or_refuse(connection, slug)
        refuse_unless_forecastable(campaign)
        evidence = (
            await calibrated_intervals.load_calibrated_evidence_extending_previous(connection, campaign.goal_criterion)
        ).evidence
        crowd = (
            POPULATIONS[like] if like in POPULATIONS else await load_earlier_evidence(connection, like, evidence.law)
        )
        hits_per_hour = await load_present_hits_per_hour_or_none(connection, campaign, now=now)
        pool_parameters = {"campaign": campaign.id, "people": campaign.unjudged_people}
        gone_items = (await connection.scalars(LIST_ITEMS_OUT_OF_POOL, pool_parameters)).all()
        priors = await load_forecast_priors(connection, campaign)
        comparisons = await load_past_comparisons(connection, campaign)
    settings, evidence, items = campaign_evidence_and_numbers_of_goal_items(campaign, evidence, gone_items)
    sample = min(count_simulated_items(campaign), len(evidence.tally.total))
    total_annotators = chosen_or_likely_annotator_count_or_refuse(settings, evidence.tally, annotators)
    try:
        goal_forecast = forecast_goal(
            settings,
            evidence,
            crowd,
            runs=runs,
            seed=campaign.seed,
            annotator_count=total_annotators,
            priors=priors[:, items],
            sample=sample,
            comparisons=comparisons.select_items(items),
            on_run=on_run,
        )
    except Inestimable as problem:
        message = f"“{like}” has too few judgments to estimate how much its annotators differ. Choose other annotators."
        raise Invalid(message, code="too_few_judgments") from problem
    is_reached = goal_forecast.median_and_band_of_judgments_needed[0] == 0
    note = sentence_on_origin_of_annotator_count(settings, evidence.tally, total_annotators, annotators)
    return CampaignForecast(
        goal=describe_goal(campaign),
        item_count=campaign.item_count,
        simulated_items=sample,
        judgments=int(evidence.tally.judgments.sum()),
        judgments_wanted=campaign.judgments_per_item * len(evidence.tally.total),
        judgments_per_item=campaign.judgments_per_item,
        judgments_per_hit=average_judgments_per_task(campaign, *counts_of_items_and_checks(campaign)),
        minutes_per_hit=campaign.minutes_per_hit,
        pay_per_hit=campaign.pay_per_hit,
        currency=campaign.currency,
        hits_per_hour=hits_per_hour,
        concurrent_annotators=at_once,
        made_at=now,
        goal_forecast=goal_forecast,
        annotators=total_annotators,
        annotators_note="" if is_reached else note,
        caution=""
        if is_reached
        else goal_measure_caution_or_empty(settings, evidence, goal_forecast)
        or even_asking_caution_or_empty(settings, sample),
        campaign_with_rewards=campaign if pays_one_reward_per_person(campaign) else None,
        noun="system" if campaign.segment_count else "item",
    )


def goal_measure_caution_or_empty(campaign: Campaign, evidence: GoalEvidence, goal_forecast: GoalForecast) -> str:
    """Return a caution where simulated campaigns measure the goal differently than the campaign does.

    If they measure it by the law, and some do not reach it, caution that more annotators may make the difference.
    """
    if not evidence.is_measured_by_law(campaign):
        return ""
    if not is_forecast_measured_by_law(campaign, evidence):
        return (
            f"With more than {MAX_ITEMS_MEASURED_BY_LAW} items, the plan measures the goal by plain means, but this "
            f"campaign measures it by the scores of {evidence.law.short_title}. If some annotators answer at random, "
            "it may need far fewer judgments."
        )
    if np.isfinite(goal_forecast.judgments_needed).all():
        return ""
    return (
        "With more annotators the goal may need fewer judgments, because a second judgment by the same person adds "
        "little."
    )


def even_asking_caution_or_empty(campaign: Campaign, simulated_items: int) -> str:
    """Return a caution where simulated campaigns ask evenly although the campaign does not."""
    if not is_forecast_asked_evenly(campaign, simulated_items):
        return ""
    return (
        f"With more than {MAX_ITEMS_ASKED_BY_COMPARISONS} items, the plan asks about all items equally often, but this "
        f"campaign uses the rule “{campaign.rule_name}”. It may need fewer judgments."
    )


def campaign_evidence_and_numbers_of_goal_items(
    campaign: Campaign, evidence: GoalEvidence, gone_items: Sequence[int]
) -> tuple[Campaign, GoalEvidence, Integers]:
    """Return settings, evidence and numbers of the items that count for the goal.

    Raises `Conflict` (`no_items_left`) where none is left.
    """
    settings = campaign
    in_pool = np.ones(len(evidence.tally.total), bool)
    in_pool[gone_items] = False
    item_numbers = goal_item_numbers(campaign, in_pool)
    if not len(item_numbers):
        raise Conflict(f"“{campaign.name}” has no item left that can be judged.", code="no_items_left")
    if len(item_numbers) < len(in_pool):
        evidence = evidence.select_items(item_numbers)
        settings = replace(settings, items_per_hit=campaign.selection_settings.items_per_hit, always_shown=[])
    # For systems, repeat_items is about segments: an annotator sees a segment once, but every system many times.
    if campaign.segment_count and not campaign.repeat_items:
        hit_limit = campaign.hits_per_annotator or campaign.segment_count
        settings = replace(settings, repeat_items=True, hits_per_annotator=min(hit_limit, campaign.segment_count))
    return settings, evidence, item_numbers


def text_on_duration_of_planning(campaign: CampaignWithProgress) -> str:
    """Return a text on how long planning takes for a campaign with an `item_count`."""
    simulated = count_simulated_items(campaign)
    is_by_law = is_forecast_measured_by_law(campaign, GoalEvidence.empty(campaign.law, campaign.item_count))
    usual_seconds = (
        DEFAULT_FORECAST_RUNS
        * simulated
        * USUAL_JUDGMENTS_PER_ITEM
        / campaign.selection_settings.items_per_hit
        * (CPU_SECONDS_PER_HIT_BY_LAW if is_by_law else CPU_SECONDS_PER_HIT_BY_MEANS)
    )
    sample_text = (
        f"{simulated:,} of the {campaign.item_count:,} items" if simulated < campaign.item_count else "all items"
    )
    usual_text = f"Simulating {DEFAULT_FORECAST_RUNS} campaigns with {sample_text} takes about "
    usual_text += format_seconds_in_words(usual_seconds)
    max_seconds = usual_seconds * most_new_judgments_per_item(campaign) / USUAL_JUDGMENTS_PER_ITEM
    if max_seconds > MAX_FORECAST_SECONDS:
        return (
            f"{usual_text}, and longer for a hard goal. This page waits at most "
            f"{format_seconds_in_words(MAX_FORECAST_SECONDS)}; “easel plan {campaign.slug}” has no time limit."
        )
    max_text = format_seconds_in_words(max_seconds)
    is_same = max_text == format_seconds_in_words(usual_seconds)
    return f"{usual_text}." if is_same else f"{usual_text}, and up to {max_text} for a hard goal."


def format_seconds_in_words(seconds: float) -> str:
    """Return a duration in words: "15 seconds", "2 minutes"."""
    return f"{max(5, 5 * round(seconds / 5))} seconds" if seconds < 90 else pluralize(round(seconds / 60), "minute")


def refuse_unless_forecastable(campaign: CampaignWithProgress) -> None:
    name = f"“{campaign.name}”"
    if campaign.goal == NO_GOAL:
        if reason := reason_design_has_no_goal_or_empty(
            campaign.design, lacks_deciding_criterion=campaign.lacks_deciding_criterion
        ):
            raise Conflict(
                f"This campaign cannot have a goal: {reason}. To find out whether the judgments suffice, rehearse it "
                "before the launch. Once people answer, see the precision on the overview and the reliability under "
                "Analysis, Agreement.",
                code="no_goal_possible",
            )
        raise Conflict(
            f"{name} collects all its judgments, so there is nothing to plan. A plan tells when a campaign can stop "
            "earlier. For that, choose a goal in the step “How much”, under “Stop before all judgments are in”.",
            code="no_goal",
        )
    if not campaign.item_count:
        raise Conflict(f"{name} has no items. Import items first.", code="no_items")
    refuse_if_all_items_are_best(campaign, campaign.item_count)
    if campaign.item_count > MAX_FORECAST_ITEMS:
        limit = f"a plan has at most {MAX_FORECAST_ITEMS:,} items. Plan a campaign with fewer items."
        raise Conflict(f"{name} is too large: {limit}", code="too_large_to_plan")
    if campaign.goal == "order" and campaign.item_count > MAX_ITEMS_IN_ORDER:
        limit = f"the order of more than {MAX_ITEMS_IN_ORDER:,} items cannot be settled. Choose another goal."
        raise Conflict(f"{name} cannot be planned: {limit}", code="too_large_to_plan")
    if (
        campaign.goal == "best"
        and count_simulated_items(campaign) * campaign.best_items < MIN_BEST_IN_SAMPLE * campaign.item_count
    ):
        share = f"less than {MIN_BEST_IN_SAMPLE} of {MAX_SAMPLE_ITEMS:,}"
        reason = f"its best {campaign.best_items:,} of {campaign.item_count:,} are {share}, too few for a sample."
        raise Conflict(f"{name} cannot be planned: {reason}", code="too_large_to_plan")


async def load_present_hits_per_hour_or_none(
    connection: AsyncConnection, campaign: Campaign, *, now: datetime
) -> float | None:
    """Load the HITs answered per hour now; None where no annotator can answer, or too few did."""
    return (
        await load_recent_hits_per_hour_or_none(connection, campaign.id, now=now)
        if campaign.status == "running"
        else None
    )


async def load_forecast_priors(connection: AsyncConnection, campaign: CampaignWithProgress) -> Array:
    """Load the priors of the items, (2, N): the campaign's own, or those of `MEANS_LAW` where the campaign left them
    open.

    Those of `MEANS_LAW` are used for all items if the campaign's law has another family.
    """
    priors = default_priors_of_law(MEANS_LAW, campaign.item_count)
    if campaign.law.family is MEANS_LAW.family:
        own_priors = np.array(await replay.load_prior_columns(connection, campaign.goal_criterion))
        has_own_prior = np.isfinite(own_priors).all(axis=0)
        priors[:, has_own_prior] = own_priors[:, has_own_prior]
    return priors


async def load_past_comparisons(connection: AsyncConnection, campaign: CampaignWithProgress) -> PastComparisons:
    """Load the judgments that the campaign's rule reads; none if the plan does not ask by them."""
    if not campaign.rule.reads_comparisons or is_forecast_asked_evenly(campaign, campaign.item_count):
        return NO_COMPARISONS
    criterion = campaign.goal_criterion
    columns = await load_judgment_column_by_name(
        connection, campaign.id, limit=MAX_COMPARISON_HITS, criterion=criterion.number
    )
    hits = np.unique(columns["seq"], return_inverse=True)[1]
    points = criterion.design.values_to_points(columns["value"], hits)
    return PastComparisons(hits, columns["item"].astype(np.int64), points / MAX_POINTS)


async def load_earlier_evidence(connection: AsyncConnection, slug: str, law: Law) -> GoalEvidence:
    """Load the evidence of an earlier campaign for this law, whatever its own law is."""
    return (
        await calibrated_intervals.load_calibrated_evidence_extending_previous(
            connection, (await load_campaign_by_slug_or_refuse(connection, slug)).goal_criterion, law=law
        )
    ).evidence


class ForecastRequest(NamedTuple):
    """Arguments of `forecast_cost_of_goal_or_refuse` that a page sends."""

    like: str
    at_once: int = DEFAULT_CONCURRENT_ANNOTATORS
    annotators: int | None = None


@dataclass
class ForecastRunner:
    """Runs forecasts requested by pages, one at a time, each in a child process that is killed when the request is
    cancelled.
    """

    engine: AsyncEngine
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    max_seconds: float = MAX_FORECAST_SECONDS

    async def run(
        self, slug: str, request: ForecastRequest, now: datetime, on_run: Callable[[int], None]
    ) -> CampaignForecast:
        """Run `forecast_cost_of_goal_or_refuse`; `on_run` gets the number of finished runs, 0 at the start.

        Raises the same, and `Conflict` (`plan_takes_long`).
        """
        address = self.engine.url.render_as_string(hide_password=False)
        try:
            async with asyncio.timeout(self.max_seconds), self.lock:
                on_run(0)
                return await run_in_process(
                    forecast_cost_of_goal_at_database_url, address, slug, request, now, on_progress=on_run
                )
        except TimeoutError as problem:
            message = (
                f"The plan was not ready after {self.max_seconds:g} seconds: there are many items, or other plans are "
                f"running. `easel plan {slug}` has no time limit."
            )
            raise Conflict(message, code="plan_takes_long") from problem


async def forecast_cost_of_goal_at_database_url(
    database_url: str, slug: str, request: ForecastRequest, now: datetime
) -> CampaignForecast:
    """Run `forecast_cost_of_goal_or_refuse` in a process that has no engine."""
    engine = create_engine(database_url, pool_size=1)
    try:
        return await forecast_cost_of_goal_or_refuse(engine, slug, **request._asdict(), now=now, on_run=report_progress)
    finally:
        await engine.dispose()
