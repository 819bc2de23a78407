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

from app.analysis import calibrated
from app.campaigns.counted import find_counted
from app.campaigns.newest_plan import PlanFound
from app.campaigns.start import refuse_all_best
from app.database.bulk import snapshot
from app.database.pool import judgeable
from app.database.session import create_engine
from app.drawing import Scale, round_step
from app.errors import Conflict, Invalid, plural
from app.goals.evidence import GoalEvidence
from app.goals.progress import MOST_IN_ORDER, counting
from app.goals.progress import words as words_of_goal
from app.goals.settings import NONE, why_no_goal
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.online.law import Law
from app.record import pace, replay
from app.record.apart import apart, tell
from app.record.law import law_of
from app.record.per_minute import recent_pace
from app.record.store import PRESENT
from app.selection.registry import asking_of
from app.simulation.annotators import POPULATIONS
from app.simulation.planner import (
    BAND,
    FEWEST_BEST,
    LAW,
    MOST_BY_LAW,
    MOST_ITEMS,
    MOST_JUDGMENTS,
    MOST_SAMPLED,
    Forecast,
    forecast,
    law_measures,
    sampled,
)
from app.simulation.supposed import own_priors
from app.simulation.turnout import PEOPLE, in_all, whence

RUNS = 20
AT_ONCE = 5  # annotators, if nobody says how many
SECONDS_A_HIT = 0.0005  # of a processor, in a run: `python -m benchmarks.plans_of_samples`
BY_LAW = 0.005  # the same where a law measures the goal
USUALLY = 15  # judgments an item that a goal takes, in how long planning is said to take
USUAL = "mlqe-et-en"
MOST_SECONDS = 180  # that one plan may keep others waiting
OUT_OF_POOL = text(f"""
    SELECT p.subject FROM posteriors p WHERE {PRESENT} AND NOT {judgeable("p", people=":people")}
""")  # noqa: S608  (made of constants)
LEFT, RIGHT, TOP, BOTTOM = 64, 616, 16, 232  # of the axes of a curve that is 640 wide


@dataclass(frozen=True)
class Plan:
    """goal: in words. items: that there are, and how many were simulated. judgments: that are there. wanted, per_item:
    at how many the campaign ends, in all and of each item. per_hit: new judgments of a HIT. minutes, pay: of a HIT, if
    that is known. an_hour: HITs that are answered now, if anybody does. at_once: annotators, where nobody answers yet.
    now: when it was made. annotators: in all; supposed: where that number comes from, as a sentence. caution: what
    speaks against it.
    """

    goal: str
    items: int
    simulated: int
    judgments: int
    wanted: int
    per_item: int
    per_hit: int
    minutes: float | None
    pay: float | None
    currency: str
    an_hour: float | None
    at_once: int
    now: datetime
    found: Forecast
    annotators: int = PEOPLE
    supposed: str = ""
    caution: str = ""

    @property
    def needed(self) -> str:
        """How many judgments more, with the band, as a sentence."""
        middle, low, high = self.found.band
        if middle == 0:
            return "The goal is reached."
        if middle == float("inf"):
            if self.found.ran_out.mean() > 1 / 2:
                return "The annotators run out before the goal is reached."
            return (
                f"More than {MOST_JUDGMENTS} judgments an item would be needed. Choose a goal that asks for less, or "
                "the rule of selection that suits it, or find more annotators."
            )
        most = f"{high:,.0f}" if high != float("inf") else "many more"
        return f"About {plural(round(middle), 'more judgment')} ({low:,.0f} to {most})"

    @property
    def run_out(self) -> str:
        """That the annotators run out before the goal, as a sentence; empty where they never do."""
        if not (often := np.count_nonzero(self.found.ran_out)):
            return ""
        who = f"the {plural(self.annotators, 'annotator')} have answered all that they may before the goal is reached"
        ways = "Find more annotators, or let each of them answer more."
        return f"In {often} of {plural(len(self.found.ran_out), 'simulated campaign')} {who}. {ways}"

    @property
    def costs(self) -> list[str]:
        """The same in HITs, in hours of work and in money, as far as these are known."""
        middle = self.found.band[0]
        if middle in {0.0, float("inf")}:
            return []
        hits = middle / self.per_hit
        found = [plural(round(hits), "HIT")]
        if self.minutes:
            found.append(f"{hits * self.minutes / 60:,.1f} hours of work")
        if self.pay:
            found.append(f"{hits * self.pay:,.2f} {self.currency}")
        return found

    @property
    def ends_before(self) -> str:
        """That the campaign may end before its goal, as a sentence; empty where it has judgments enough."""
        left = max(0, self.wanted - self.judgments)
        middle, _, high = self.found.band
        if high <= left:
            return ""
        asked = f"{plural(self.per_item, 'judgment')} of each item"
        more = "Ask for more judgments of each item, or choose a goal that asks for less."
        if not left:
            return f"This campaign has {asked}, as many as it asks for, and has not reached its goal. {more}"
        likely = "will hardly have reached" if middle > left else "may not have reached"
        return f"This campaign ends at {asked}, which are {left:,} more, and {likely} its goal by then. {more}"

    @property
    def enough(self) -> int | None:
        """How many judgments of each item suffice for nine of ten simulated campaigns; None where no number does."""
        high = self.found.band[2]
        return None if high == float("inf") else ceil((self.judgments + high) / self.items)

    @property
    def as_found(self) -> PlanFound:
        """Return what a launch says again."""
        return PlanFound(self.items, self.per_item, self.ends_before, self.enough)

    @property
    def hours(self) -> float | None:
        """By the clock, until the goal is reached: at the present pace, or with so many annotators at a time."""
        middle = self.found.band[0]
        rate = self.an_hour or (60 * self.at_once / self.minutes if self.minutes else None)
        return None if rate is None or middle in {0.0, float("inf")} else middle / self.per_hit / rate

    @property
    def there_at(self) -> datetime | None:
        """When the goal is reached, if people go on as they do now."""
        return self.now + timedelta(hours=self.hours) if self.hours and self.an_hour else None

    @property
    def by_the_clock(self) -> str:
        """How long that is, as a sentence; empty where nothing tells."""
        if self.hours is None:
            return ""
        long = f"About {pace.duration(self.hours)} by the clock"
        if self.an_hour:
            return f"{long}, at the present pace of {plural(round(self.an_hour), 'HIT')} an hour."
        return f"{long}, with {plural(self.at_once, 'annotator')} at a time."

    @property
    def curve(self) -> dict[str, Any]:
        """The chance that the goal is reached against judgments, in SVG units, until nearly all runs are there."""
        looks, chances = self.found.looks, self.found.chances
        end = next((k for k, chance in enumerate(chances) if chance >= 1 - BAND[0] / 200), len(looks) - 1)
        end = max(1, min(end + 1, len(looks) - 1))
        last = self.judgments + float(looks[end])
        x, y = Scale(self.judgments, last, LEFT, RIGHT), Scale(0, 1, BOTTOM, TOP)
        step = round_step(last - self.judgments)
        points = zip(looks[: end + 1].tolist(), chances[: end + 1].tolist(), strict=True)
        ends = [min(one, float(looks[end])) for one in self.found.band]
        return {
            "points": [(x(self.judgments + at), y(chance)) for at, chance in points],
            "band": [x(self.judgments + at) for at in ends[1:]],
            "middle": x(self.judgments + ends[0]),
            "now": (x(self.judgments), y(float(chances[0]))),
            "x_ticks": [(x(at), f"{at:,.0f}") for at in np.arange(ceil(self.judgments / step) * step, last + 1, step)],
            "y_ticks": [(y(share / 4), f"{share * 25} %") for share in range(5)],
        }


async def plan(
    engine: AsyncEngine,
    slug: str,
    like: str = USUAL,
    *,
    now: datetime,
    at_once: int = AT_ONCE,
    annotators: int | None = None,
    runs: int = RUNS,
    told: Callable[[int], None] = lambda _runs: None,
) -> Plan:
    """What the goal of a campaign will cost. like: one of `POPULATIONS`, or the slug of an earlier campaign, for a
    campaign whose own answers tell too little. annotators: in all, None for as many as are likely (`turnout`). told:
    hears after each run how many there were.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`no_goal`, `no_goal_possible`, `all_are_best`,
    `too_large_to_plan`, `no_items`) and `Invalid` (`too_few_judgments`, `too_few_annotators`).
    """
    async with snapshot(engine) as connection:
        campaign = await find_counted(connection, slug)
        refuse_unless_planned(campaign)
        known = (await calibrated.newest(connection, campaign)).evidence
        crowd = POPULATIONS[like] if like in POPULATIONS else await earlier(connection, like, known.law)
        an_hour = await pace_of(connection, campaign, now=now)
        left = {"campaign": campaign.id, "people": campaign.unjudged_people}
        gone = (await connection.scalars(OUT_OF_POOL, left)).all()
        priors = await priors_of(connection, campaign)
    settings, known, items = those_asked(campaign, known, gone)
    sample = min(sampled(campaign), len(known.tally.total))
    number = in_all(settings, known.tally, annotators)
    simulated = {"runs": runs, "seed": campaign.seed, "annotators": number, "sample": sample}
    simulated |= {"priors": priors[:, items]}
    try:
        found = forecast(settings, known, crowd, **simulated, told=told)
    except Inestimable as problem:
        why = f"“{like}” tells too little: nobody can say how far its annotators differ."
        raise Invalid(why, code="too_few_judgments") from problem
    hit = asking_of(campaign).n, campaign.minutes_per_hit, campaign.pay_per_hit, campaign.currency
    each = campaign.judgments_per_item
    size = campaign.item_count, sample, int(known.tally.judgments.sum()), each * len(known.tally.total), each
    words = whence(settings, known.tally, number, annotators), caution(settings, known, found)
    words = words if found.band[0] else ("", "")  # of a goal that is reached they say nothing
    return Plan(words_of_goal(campaign), *size, *hit, an_hour, at_once, now, found, number, *words)


def caution(campaign: Any, known: GoalEvidence, found: Forecast) -> str:
    """Where simulated campaigns measure the goal otherwise than the campaign does: that they do; where it matters most
    how many people answer, and some of them do not reach the goal: that it does.
    """
    if not known.fits(campaign):
        return ""
    if not law_measures(campaign, known):
        return (
            f"Of more than {MOST_BY_LAW} items simulated campaigns measure the goal by plain means, and this campaign "
            f"by the scores of {known.law.short_title}: where some annotators answer at random, it may need far fewer."
        )
    if np.isfinite(found.needed).all():
        return ""
    return (
        "What somebody says of an item once more narrows little, so with more annotators the goal may take fewer "
        "judgments, and be reached where it is not here."
    )


def those_asked(campaign: Any, known: GoalEvidence, gone: Sequence[int]) -> tuple[Any, GoalEvidence, Integers]:
    """A campaign's settings, and what is known, of the items that count for its goal, and their numbers. gone: those of
    items that left the pool.

    Raises `Conflict` (`no_items`) where none is left.
    """
    settings = SimpleNamespace(**campaign._mapping)  # noqa: SLF001  (public, says SQLAlchemy)
    in_pool = np.ones(len(known.tally.total), bool)
    in_pool[gone] = False
    counted = counting(campaign, in_pool)
    if not len(counted):
        raise Conflict(f"No item of “{campaign.name}” is left that can be judged.", code="no_items")
    if len(counted) < len(in_pool):
        known = known.of(counted)
        settings.items_per_hit, settings.always_shown = asking_of(campaign).n, []
    if campaign.segment_count and not campaign.repeat_items:  # nobody sees a segment twice, but everybody all systems
        most = campaign.hits_per_annotator or campaign.segment_count
        settings.repeat_items, settings.hits_per_annotator = True, min(most, campaign.segment_count)
    return settings, known, counted


def how_long(campaign: Any) -> str:
    """What planning takes, in words. campaign: with its `item_count`."""
    simulated = sampled(campaign)
    by_law = law_measures(campaign, GoalEvidence.nothing(law_of(campaign), campaign.item_count))
    usual = RUNS * simulated * USUALLY / asking_of(campaign).n * (BY_LAW if by_law else SECONDS_A_HIT)
    some = f"{simulated:,} of the {campaign.item_count:,} items" if simulated < campaign.item_count else "all items"
    words = f"{RUNS} campaigns with {some} are simulated, which takes about {spoken(usual)}"
    most = usual * MOST_JUDGMENTS / USUALLY
    if most > MOST_SECONDS:
        waits = f"This page waits {spoken(MOST_SECONDS)} at most; "
        waits += f"“easel plan {campaign.slug}” takes the time that it needs."
        return f"{words}, and longer if the goal is far. {waits}"
    return f"{words}." if spoken(most) == spoken(usual) else f"{words}, and up to {spoken(most)} if the goal is far."


def spoken(seconds: float) -> str:
    """A time as a person would say it."""
    return f"{max(5, 5 * round(seconds / 5))} seconds" if seconds < 90 else plural(round(seconds / 60), "minute")


def refuse_unless_planned(campaign: Any) -> None:
    name = f"“{campaign.name}”"
    if campaign.goal == NONE:
        with_one = SimpleNamespace(**campaign._mapping)  # noqa: SLF001  (public, says SQLAlchemy)
        with_one.goal, with_one.when_reached = "intervals", "tell"  # possible wherever any goal is
        if why := why_no_goal(with_one):
            raise Conflict(f"{name} cannot have a goal: {why}.", code="no_goal_possible")
        words = "Choose one in its settings, under “What is asked next, and when enough is known”."
        raise Conflict(f"{name} has no goal. {words}", code="no_goal")
    if not campaign.item_count:
        raise Conflict(f"{name} has no items. Import them, then plan.", code="no_items")
    refuse_all_best(campaign, campaign.item_count)
    if campaign.item_count > MOST_ITEMS:
        words = f"{MOST_ITEMS:,} items can be planned at most. Plan a campaign with some of them."
        raise Conflict(f"{name} is too large: {words}", code="too_large_to_plan")
    if campaign.goal == "order" and campaign.item_count > MOST_IN_ORDER:
        words = f"nobody settles the order of more than {MOST_IN_ORDER:,} items. Choose another goal."
        raise Conflict(f"{name} cannot be planned: {words}", code="too_large_to_plan")
    if campaign.goal == "best" and sampled(campaign) * campaign.best_items < FEWEST_BEST * campaign.item_count:
        share = f"less than {FEWEST_BEST} of {MOST_SAMPLED:,}"
        words = f"its best {campaign.best_items:,} of {campaign.item_count:,} are {share}, too few for a sample."
        raise Conflict(f"{name} cannot be planned: {words}", code="too_large_to_plan")


async def pace_of(connection: AsyncConnection, campaign: Any, *, now: datetime) -> float | None:
    """HITs an hour that are answered now; None where nobody can answer, or few did."""
    return await recent_pace(connection, campaign.id, now=now) if campaign.status == "running" else None


async def priors_of(connection: AsyncConnection, campaign: Any) -> Array:
    """What the posteriors of its items begin with, (2, N): with the prior of a plan's law where it was left to the law,
    or another law reads it.
    """
    first = own_priors(LAW, campaign.item_count)
    if law_of(campaign).family is LAW.family:
        chosen = np.array(await replay.priors(connection, campaign))
        possible = np.isfinite(chosen).all(axis=0)
        first[:, possible] = chosen[:, possible]
    return first


async def earlier(connection: AsyncConnection, slug: str, law: Law) -> GoalEvidence:
    """What was said in an earlier campaign, to this law, whatever its own is."""
    return (await calibrated.newest(connection, await find_counted(connection, slug), law=law)).evidence


class Asked(NamedTuple):
    """Of a plan, as `plan` takes them."""

    like: str
    at_once: int = AT_ONCE
    annotators: int | None = None


@dataclass
class Plans:
    """Those that are asked for by pages: one at a time, in a process beside the server that ends with whoever waits."""

    engine: AsyncEngine
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    most_seconds: float = MOST_SECONDS

    async def of(self, slug: str, asked: Asked, now: datetime, told: Callable[[int], None]) -> Plan:
        """As `plan`. told: hears how many runs there were, 0 when they begin.

        Raises `Conflict` (`plan_takes_long`), too.
        """
        address = self.engine.url.render_as_string(hide_password=False)
        try:
            async with asyncio.timeout(self.most_seconds), self.turn:
                told(0)
                return await apart(plan_on, address, slug, asked, now, told=told)
        except TimeoutError as problem:
            why = f"There was no plan after {self.most_seconds:g} seconds: there are many items, or others plan, too."
            why += f" `easel plan {slug}` takes the time that it needs."
            raise Conflict(why, code="plan_takes_long") from problem


async def plan_on(url: str, slug: str, asked: Asked, now: datetime) -> Plan:
    """`plan`, in a process that has no engine."""
    engine = create_engine(url, pool_size=1)
    try:
        return await plan(engine, slug, **asked._asdict(), now=now, told=tell)
    finally:
        await engine.dispose()
