"""The plan of a campaign: what its goal will cost, from what is known of it or of an earlier one, worked out apart."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import calibrated_intervals
from app.background.process import report_progress, run_in_process
from app.campaigns.launch import refuse_if_all_items_are_best
from app.campaigns.plan_findings import PlanFindings
from app.campaigns.summaries import find_campaign_with_progress
from app.chart_axes import LinearScale, round_step
from app.database.bulk import open_snapshot
from app.database.open_items import is_judgeable_sql
from app.database.session import create_engine
from app.errors import Conflict, Invalid, pluralize
from app.goals.estimates import GoalEvidence
from app.goals.progress import MAX_ITEMS_IN_ORDER, counted_items
from app.goals.progress import describe_goal as words_of_goal
from app.goals.settings import NO_GOAL, goal_refusal_reason
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.online.law import Law
from app.record import pace, replay
from app.record.answer_rates import load_recent_hits_per_hour
from app.record.campaign_law import law_of
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.selection.registry import selection_settings
from app.simulation.annotators import POPULATIONS
from app.simulation.crowd_model import default_priors
from app.simulation.goal_simulation import (
    BAND_PERCENTILES,
    MAX_ITEMS_MEASURED_BY_LAW,
    MAX_NEW_JUDGMENTS_PER_ITEM,
    MAX_PLAN_ITEMS,
    MAX_SAMPLE_ITEMS,
    MEANS_LAW,
    MIN_BEST_IN_SAMPLE,
    GoalForecast,
    forecast_goal,
    is_plan_measured_by_law,
    sample_size,
)
from app.simulation.participation import DEFAULT_ANNOTATORS_IN_TOTAL, annotator_total, explain_annotator_total

DEFAULT_PLAN_RUNS = 20
DEFAULT_CONCURRENT_ANNOTATORS = 5  # annotators, if nobody says how many
CPU_SECONDS_PER_HIT_BY_MEANS = 0.0005  # of a processor, in a run: `python -m benchmarks.plans_of_samples`
CPU_SECONDS_PER_HIT_BY_LAW = 0.005  # the same where a law measures the goal
USUAL_JUDGMENTS_PER_ITEM = 15  # judgments an item that a goal takes, in how long planning is said to take
DEFAULT_POPULATION = "mlqe-et-en"
MAX_PLAN_SECONDS = 180  # that one plan may keep others waiting
LIST_ITEMS_OUT_OF_POOL = text(f"""
    SELECT p.subject FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND NOT {is_judgeable_sql("p", unjudged_limit=":people")}
""")  # noqa: S608  (made of constants)
CURVE_LEFT, CURVE_RIGHT, CURVE_TOP, CURVE_BOTTOM = 64, 616, 16, 232  # of the axes of a curve that is 640 wide


@dataclass(frozen=True)
class Plan:
    """goal: in words. items: that there are, and how many were simulated. judgments: that are there. wanted, per_item:
    at how many the campaign ends, in all and of each item. per_hit: new judgments of a HIT. minutes, pay: of a HIT, if
    that is known. an_hour: HITs that are answered now, if anybody does. at_once: annotators, where nobody answers yet.
    now: when it was made. annotators: in all; supposed: where that number comes from, as a sentence. caution: what
    speaks against it.
    """

    goal: str
    item_count: int
    simulated_items: int
    judgments: int
    judgments_wanted: int
    judgments_per_item: int
    judgments_per_hit: int
    minutes_per_hit: float | None
    pay_per_hit: float | None
    currency: str
    hits_per_hour: float | None
    concurrent_annotators: int
    made_at: datetime
    forecast: GoalForecast
    annotators: int = DEFAULT_ANNOTATORS_IN_TOTAL
    annotators_note: str = ""
    caution: str = ""

    @property
    def needed_text(self) -> str:
        """How many judgments more, with the band, as a sentence."""
        middle, low, high = self.forecast.band
        if middle == 0:
            return "The goal is reached."
        if middle == float("inf"):
            if self.forecast.ran_out.mean() > 1 / 2:
                return "The annotators run out before the goal is reached."
            return (
                f"More than {MAX_NEW_JUDGMENTS_PER_ITEM} judgments an item would be needed. Choose a goal that asks for less, or "
                "the rule of selection that suits it, or find more annotators."
            )
        most = f"{high:,.0f}" if high != float("inf") else "many more"
        return f"About {pluralize(round(middle), 'more judgment')} ({low:,.0f} to {most})"

    @property
    def run_out_warning(self) -> str:
        """That the annotators run out before the goal, as a sentence; empty where they never do."""
        if not (often := np.count_nonzero(self.forecast.ran_out)):
            return ""
        who = (
            f"the {pluralize(self.annotators, 'annotator')} have answered all that they may before the goal is reached"
        )
        ways = "Find more annotators, or let each of them answer more."
        return f"In {often} of {pluralize(len(self.forecast.ran_out), 'simulated campaign')} {who}. {ways}"

    @property
    def costs(self) -> list[str]:
        """The same in HITs, in hours of work and in money, as far as these are known."""
        middle = self.forecast.band[0]
        if middle in {0.0, float("inf")}:
            return []
        hits = middle / self.judgments_per_hit
        costs = [pluralize(round(hits), "HIT")]
        if self.minutes_per_hit:
            costs.append(f"{hits * self.minutes_per_hit / 60:,.1f} hours of work")
        if self.pay_per_hit:
            costs.append(f"{hits * self.pay_per_hit:,.2f} {self.currency}")
        return costs

    @property
    def ends_before_warning(self) -> str:
        """That the campaign may end before its goal, as a sentence; empty where it has judgments enough."""
        judgments_left = max(0, self.judgments_wanted - self.judgments)
        middle, _, high = self.forecast.band
        if high <= judgments_left:
            return ""
        asked = f"{pluralize(self.judgments_per_item, 'judgment')} of each item"
        more = "Ask for more judgments of each item, or choose a goal that asks for less."
        if not judgments_left:
            return f"This campaign has {asked}, as many as it asks for, and has not reached its goal. {more}"
        likely = "will hardly have reached" if middle > judgments_left else "may not have reached"
        return (
            f"This campaign ends at {asked}, which are {judgments_left:,} more, and {likely} its goal by then. {more}"
        )

    @property
    def enough_judgments_per_item(self) -> int | None:
        """How many judgments of each item suffice for nine of ten simulated campaigns; None where no number does."""
        high = self.forecast.band[2]
        return None if high == float("inf") else ceil((self.judgments + high) / self.item_count)

    @property
    def plan_found(self) -> PlanFindings:
        """Return what a launch says again."""
        return PlanFindings(
            self.item_count, self.judgments_per_item, self.ends_before_warning, self.enough_judgments_per_item
        )

    @property
    def hours_to_goal(self) -> float | None:
        """By the clock, until the goal is reached: at the present pace, or with so many annotators at a time."""
        middle = self.forecast.band[0]
        rate = self.hits_per_hour or (
            60 * self.concurrent_annotators / self.minutes_per_hit if self.minutes_per_hit else None
        )
        return None if rate is None or middle in {0.0, float("inf")} else middle / self.judgments_per_hit / rate

    @property
    def reached_at(self) -> datetime | None:
        """When the goal is reached, if people go on as they do now."""
        return self.made_at + timedelta(hours=self.hours_to_goal) if self.hours_to_goal and self.hits_per_hour else None

    @property
    def duration_text(self) -> str:
        """How long that is, as a sentence; empty where nothing tells."""
        if self.hours_to_goal is None:
            return ""
        long = f"About {pace.format_hours(self.hours_to_goal)} by the clock"
        if self.hits_per_hour:
            return f"{long}, at the present pace of {pluralize(round(self.hits_per_hour), 'HIT')} an hour."
        return f"{long}, with {pluralize(self.concurrent_annotators, 'annotator')} at a time."

    @property
    def chance_curve(self) -> dict[str, Any]:
        """The chance that the goal is reached against judgments, in SVG units, until nearly all runs are there."""
        checkpoints, shares = self.forecast.checkpoints, self.forecast.reached_shares
        end = next(
            (k for k, chance in enumerate(shares) if chance >= 1 - BAND_PERCENTILES[0] / 200), len(checkpoints) - 1
        )
        end = max(1, min(end + 1, len(checkpoints) - 1))
        last = self.judgments + float(checkpoints[end])
        x, y = LinearScale(self.judgments, last, CURVE_LEFT, CURVE_RIGHT), LinearScale(0, 1, CURVE_BOTTOM, CURVE_TOP)
        step = round_step(last - self.judgments)
        points = zip(checkpoints[: end + 1].tolist(), shares[: end + 1].tolist(), strict=True)
        ends = [min(one, float(checkpoints[end])) for one in self.forecast.band]
        return {
            "points": [(x(self.judgments + at), y(chance)) for at, chance in points],
            "band": [x(self.judgments + at) for at in ends[1:]],
            "middle": x(self.judgments + ends[0]),
            "now": (x(self.judgments), y(float(shares[0]))),
            "x_ticks": [(x(at), f"{at:,.0f}") for at in np.arange(ceil(self.judgments / step) * step, last + 1, step)],
            "y_ticks": [(y(share / 4), f"{share * 25} %") for share in range(5)],
        }


async def plan_campaign_goal(
    engine: AsyncEngine,
    slug: str,
    like: str = DEFAULT_POPULATION,
    *,
    now: datetime,
    at_once: int = DEFAULT_CONCURRENT_ANNOTATORS,
    annotators: int | None = None,
    runs: int = DEFAULT_PLAN_RUNS,
    on_run: Callable[[int], None] = lambda _runs: None,
) -> Plan:
    """What the goal of a campaign will cost. like: one of `POPULATIONS`, or the slug of an earlier campaign, for a
    campaign whose own answers tell too little. annotators: in all, None for as many as are likely (`turnout`). told:
    hears after each run how many there were.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`no_goal`, `no_goal_possible`, `all_are_best`,
    `too_large_to_plan`, `no_items`) and `Invalid` (`too_few_judgments`, `too_few_annotators`).
    """
    async with open_snapshot(engine) as connection:
        campaign = await find_campaign_with_progress(connection, slug)
        refuse_unless_plannable(campaign)
        evidence = (await calibrated_intervals.load_calibrated_evidence(connection, campaign)).evidence
        crowd = (
            POPULATIONS[like] if like in POPULATIONS else await load_earlier_evidence(connection, like, evidence.law)
        )
        hits_per_hour = await load_current_pace(connection, campaign, now=now)
        pool_parameters = {"campaign": campaign.id, "people": campaign.unjudged_people}
        gone_items = (await connection.scalars(LIST_ITEMS_OUT_OF_POOL, pool_parameters)).all()
        priors = await load_plan_priors(connection, campaign)
    settings, evidence, items = restrict_to_goal_items(campaign, evidence, gone_items)
    sample = min(sample_size(campaign), len(evidence.tally.total))
    total_annotators = annotator_total(settings, evidence.tally, annotators)
    simulated = {"runs": runs, "seed": campaign.seed, "annotators": total_annotators, "sample": sample}
    simulated |= {"priors": priors[:, items]}
    try:
        goal_forecast = forecast_goal(settings, evidence, crowd, **simulated, on_run=on_run)
    except Inestimable as problem:
        why = f"“{like}” tells too little: nobody can say how far its annotators differ."
        raise Invalid(why, code="too_few_judgments") from problem
    hit_fields = (
        selection_settings(campaign).items_per_hit,
        campaign.minutes_per_hit,
        campaign.pay_per_hit,
        campaign.currency,
    )
    judgments_per_item = campaign.judgments_per_item
    size_fields = (
        campaign.item_count,
        sample,
        int(evidence.tally.judgments.sum()),
        judgments_per_item * len(evidence.tally.total),
        judgments_per_item,
    )
    texts = (
        explain_annotator_total(settings, evidence.tally, total_annotators, annotators),
        measurement_caution(settings, evidence, goal_forecast),
    )
    texts = texts if goal_forecast.band[0] else ("", "")  # of a goal that is reached they say nothing
    return Plan(
        words_of_goal(campaign),
        *size_fields,
        *hit_fields,
        hits_per_hour,
        at_once,
        now,
        goal_forecast,
        total_annotators,
        *texts,
    )


def measurement_caution(campaign: Any, evidence: GoalEvidence, goal_forecast: GoalForecast) -> str:
    """Where simulated campaigns measure the goal otherwise than the campaign does: that they do; where it matters most
    how many people answer, and some of them do not reach the goal: that it does.
    """
    if not evidence.is_measured_by_law(campaign):
        return ""
    if not is_plan_measured_by_law(campaign, evidence):
        return (
            f"Of more than {MAX_ITEMS_MEASURED_BY_LAW} items simulated campaigns measure the goal by plain means, and this campaign "
            f"by the scores of {evidence.law.short_title}: where some annotators answer at random, it may need far fewer."
        )
    if np.isfinite(goal_forecast.judgments_needed).all():
        return ""
    return (
        "What somebody says of an item once more narrows little, so with more annotators the goal may take fewer "
        "judgments, and be reached where it is not here."
    )


def restrict_to_goal_items(
    campaign: Any, evidence: GoalEvidence, gone_items: Sequence[int]
) -> tuple[Any, GoalEvidence, Integers]:
    """A campaign's settings, and what is known, of the items that count for its goal, and their numbers. gone: those of
    items that left the pool.

    Raises `Conflict` (`no_items`) where none is left.
    """
    settings = SimpleNamespace(**campaign._mapping)  # noqa: SLF001  (public, says SQLAlchemy)
    in_pool = np.ones(len(evidence.tally.total), bool)
    in_pool[gone_items] = False
    item_numbers = counted_items(campaign, in_pool)
    if not len(item_numbers):
        raise Conflict(f"No item of “{campaign.name}” is left that can be judged.", code="no_items")
    if len(item_numbers) < len(in_pool):
        evidence = evidence.select_items(item_numbers)
        settings.items_per_hit, settings.always_shown = selection_settings(campaign).items_per_hit, []
    if campaign.segment_count and not campaign.repeat_items:  # nobody sees a segment twice, but everybody all systems
        hit_limit = campaign.hits_per_annotator or campaign.segment_count
        settings.repeat_items, settings.hits_per_annotator = True, min(hit_limit, campaign.segment_count)
    return settings, evidence, item_numbers


def planning_time_text(campaign: Any) -> str:
    """What planning takes, in words. campaign: with its `item_count`."""
    simulated = sample_size(campaign)
    is_by_law = is_plan_measured_by_law(campaign, GoalEvidence.empty(law_of(campaign), campaign.item_count))
    usual_seconds = (
        DEFAULT_PLAN_RUNS
        * simulated
        * USUAL_JUDGMENTS_PER_ITEM
        / selection_settings(campaign).items_per_hit
        * (CPU_SECONDS_PER_HIT_BY_LAW if is_by_law else CPU_SECONDS_PER_HIT_BY_MEANS)
    )
    sample_text = (
        f"{simulated:,} of the {campaign.item_count:,} items" if simulated < campaign.item_count else "all items"
    )
    words = f"{DEFAULT_PLAN_RUNS} campaigns with {sample_text} are simulated, which takes about {humanize_seconds(usual_seconds)}"
    max_seconds = usual_seconds * MAX_NEW_JUDGMENTS_PER_ITEM / USUAL_JUDGMENTS_PER_ITEM
    if max_seconds > MAX_PLAN_SECONDS:
        waits = f"This page waits {humanize_seconds(MAX_PLAN_SECONDS)} at most; "
        waits += f"“easel plan {campaign.slug}” takes the time that it needs."
        return f"{words}, and longer if the goal is far. {waits}"
    return (
        f"{words}."
        if humanize_seconds(max_seconds) == humanize_seconds(usual_seconds)
        else f"{words}, and up to {humanize_seconds(max_seconds)} if the goal is far."
    )


def humanize_seconds(seconds: float) -> str:
    """A time as a person would say it."""
    return f"{max(5, 5 * round(seconds / 5))} seconds" if seconds < 90 else pluralize(round(seconds / 60), "minute")


def refuse_unless_plannable(campaign: Any) -> None:
    name = f"“{campaign.name}”"
    if campaign.goal == NO_GOAL:
        settings_with_goal = SimpleNamespace(**campaign._mapping)  # noqa: SLF001  (public, says SQLAlchemy)
        settings_with_goal.goal, settings_with_goal.when_reached = "intervals", "tell"  # possible wherever any goal is
        if why := goal_refusal_reason(settings_with_goal):
            raise Conflict(f"{name} cannot have a goal: {why}.", code="no_goal_possible")
        words = "Choose one in its settings, under “What is asked next, and when enough is known”."
        raise Conflict(f"{name} has no goal. {words}", code="no_goal")
    if not campaign.item_count:
        raise Conflict(f"{name} has no items. Import them, then plan.", code="no_items")
    refuse_if_all_items_are_best(campaign, campaign.item_count)
    if campaign.item_count > MAX_PLAN_ITEMS:
        words = f"{MAX_PLAN_ITEMS:,} items can be planned at most. Plan a campaign with some of them."
        raise Conflict(f"{name} is too large: {words}", code="too_large_to_plan")
    if campaign.goal == "order" and campaign.item_count > MAX_ITEMS_IN_ORDER:
        words = f"nobody settles the order of more than {MAX_ITEMS_IN_ORDER:,} items. Choose another goal."
        raise Conflict(f"{name} cannot be planned: {words}", code="too_large_to_plan")
    if (
        campaign.goal == "best"
        and sample_size(campaign) * campaign.best_items < MIN_BEST_IN_SAMPLE * campaign.item_count
    ):
        share = f"less than {MIN_BEST_IN_SAMPLE} of {MAX_SAMPLE_ITEMS:,}"
        words = f"its best {campaign.best_items:,} of {campaign.item_count:,} are {share}, too few for a sample."
        raise Conflict(f"{name} cannot be planned: {words}", code="too_large_to_plan")


async def load_current_pace(connection: AsyncConnection, campaign: Any, *, now: datetime) -> float | None:
    """HITs an hour that are answered now; None where nobody can answer, or few did."""
    return await load_recent_hits_per_hour(connection, campaign.id, now=now) if campaign.status == "running" else None


async def load_plan_priors(connection: AsyncConnection, campaign: Any) -> Array:
    """What the posteriors of its items begin with, (2, N): with the prior of a plan's law where it was left to the law,
    or another law reads it.
    """
    first = default_priors(MEANS_LAW, campaign.item_count)
    if law_of(campaign).family is MEANS_LAW.family:
        chosen = np.array(await replay.load_prior_columns(connection, campaign))
        possible = np.isfinite(chosen).all(axis=0)
        first[:, possible] = chosen[:, possible]
    return first


async def load_earlier_evidence(connection: AsyncConnection, slug: str, law: Law) -> GoalEvidence:
    """What was said in an earlier campaign, to this law, whatever its own is."""
    return (
        await calibrated_intervals.load_calibrated_evidence(
            connection, await find_campaign_with_progress(connection, slug), law=law
        )
    ).evidence


class PlanRequest(NamedTuple):
    """Of a plan, as `plan` takes them."""

    like: str
    at_once: int = DEFAULT_CONCURRENT_ANNOTATORS
    annotators: int | None = None


@dataclass
class PlanRunner:
    """Those that are asked for by pages: one at a time, in a process beside the server that ends with whoever waits."""

    engine: AsyncEngine
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    max_seconds: float = MAX_PLAN_SECONDS

    async def run(self, slug: str, request: PlanRequest, now: datetime, on_run: Callable[[int], None]) -> Plan:
        """As `plan`. told: hears how many runs there were, 0 when they begin.

        Raises `Conflict` (`plan_takes_long`), too.
        """
        address = self.engine.url.render_as_string(hide_password=False)
        try:
            async with asyncio.timeout(self.max_seconds), self.lock:
                on_run(0)
                return await run_in_process(plan_campaign_goal_at_url, address, slug, request, now, on_progress=on_run)
        except TimeoutError as problem:
            why = f"There was no plan after {self.max_seconds:g} seconds: there are many items, or others plan, too."
            why += f" `easel plan {slug}` takes the time that it needs."
            raise Conflict(why, code="plan_takes_long") from problem


async def plan_campaign_goal_at_url(database_url: str, slug: str, request: PlanRequest, now: datetime) -> Plan:
    """`plan`, in a process that has no engine."""
    engine = create_engine(database_url, pool_size=1)
    try:
        return await plan_campaign_goal(engine, slug, **request._asdict(), now=now, on_run=report_progress)
    finally:
        await engine.dispose()
