"""The plan of a campaign: what its goal will cost, from what is known of it or of an earlier one, worked out apart."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import calibrated
from app.campaigns.counted import find_counted
from app.database.bulk import snapshot
from app.database.session import create_engine
from app.drawing import Scale
from app.errors import Conflict, Invalid, plural
from app.goals.progress import words as words_of_goal
from app.goals.settings import NONE
from app.inference.ground.inestimable import Inestimable
from app.inference.observations.tally import Tally
from app.record.apart import apart
from app.selection.registry import asking_of
from app.simulation.annotators import POPULATIONS, Population
from app.simulation.planner import BAND, MOST_ITEMS, MOST_JUDGMENTS, Forecast, forecast

RUNS = 20
USUAL = "mlqe-et-en"
MOST_SECONDS = 90  # that whoever asked a page for a plan waits
LEFT, RIGHT, TOP, BOTTOM = 64, 616, 16, 232  # of the axes of a curve that is 640 wide


@dataclass(frozen=True)
class Plan:
    """goal: in words. judgments: that are there. per_hit: new judgments of a HIT. minutes, pay: of a HIT, if that is
    known.
    """

    goal: str
    judgments: int
    per_hit: int
    minutes: float | None
    pay: float | None
    currency: str
    found: Forecast

    @property
    def needed(self) -> str:
        """How many judgments more, with the band, as a sentence."""
        middle, low, high = self.found.band
        if middle == 0:
            return "The goal is reached."
        if middle == float("inf"):
            return f"More than {MOST_JUDGMENTS} judgments an item would be needed. Choose a goal that asks for less."
        most = f"{high:,.0f}" if high != float("inf") else "many more"
        return f"About {plural(round(middle), 'more judgment')} ({low:,.0f} to {most})"

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
    def curve(self) -> dict[str, Any]:
        """The chance that the goal is reached against judgments, in SVG units, until nearly all runs are there."""
        looks, chances = self.found.looks, self.found.chances
        end = next((k for k, chance in enumerate(chances) if chance >= 1 - BAND[0] / 200), len(looks) - 1)
        end = max(1, min(end + 1, len(looks) - 1))
        x, y = Scale(self.judgments, self.judgments + int(looks[end]), LEFT, RIGHT), Scale(0, 1, BOTTOM, TOP)
        points = zip(looks[: end + 1].tolist(), chances[: end + 1].tolist(), strict=True)
        ends = [min(one, float(looks[end])) for one in self.found.band]
        return {
            "points": [(x(self.judgments + at), y(chance)) for at, chance in points],
            "band": [x(self.judgments + at) for at in ends[1:]],
            "middle": x(self.judgments + ends[0]),
            "now": (x(self.judgments), y(float(chances[0]))),
            "x_ticks": [(at, f"{float(value):,.0f}") for at, value in x.ticks()],
            "y_ticks": [(y(share / 4), f"{share * 25} %") for share in range(5)],
        }


async def plan(engine: AsyncEngine, slug: str, like: str = USUAL, *, runs: int = RUNS) -> Plan:
    """What the goal of a campaign will cost. like: one of `POPULATIONS`, or the slug of an earlier campaign, for a
    campaign whose own answers tell too little.

    Raises `NotFound` (`campaign_not_found`), `Conflict` (`no_goal`, `too_large_to_plan`, `no_items`) and `Invalid`
    (`too_few_judgments`).
    """
    async with snapshot(engine) as connection:
        campaign = await find_counted(connection, slug)
        refuse_unless_planned(campaign)
        known = (await calibrated.newest(connection, campaign)).tally
        crowd = POPULATIONS[like] if like in POPULATIONS else await earlier(connection, like)
    try:
        found = forecast(campaign, known, crowd, runs=runs, seed=campaign.seed)
    except Inestimable as problem:
        why = f"“{like}” tells too little: nobody can say how far its annotators differ."
        raise Invalid(why, code="too_few_judgments") from problem
    per_hit, hit = asking_of(campaign).n, (campaign.minutes_per_hit, campaign.pay_per_hit, campaign.currency)
    return Plan(words_of_goal(campaign), int(known.judgments.sum()), per_hit, *hit, found)


def refuse_unless_planned(campaign: Any) -> None:
    name = f"“{campaign.name}”"
    if campaign.goal == NONE:
        words = "Choose one in its settings, under “When enough is known”."
        raise Conflict(f"{name} has no goal. {words}", code="no_goal")
    if not campaign.item_count:
        raise Conflict(f"{name} has no items. Import them, then plan.", code="no_items")
    if campaign.item_count > MOST_ITEMS:
        words = f"{MOST_ITEMS:,} items can be planned at most. Plan a campaign with some of them."
        raise Conflict(f"{name} is too large: {words}", code="too_large_to_plan")


async def earlier(connection: AsyncConnection, slug: str) -> Population | Tally:
    """What was said in an earlier campaign."""
    return (await calibrated.newest(connection, await find_counted(connection, slug))).tally


@dataclass
class Plans:
    """Those that are asked for by pages: one at a time, in a process beside the server."""

    engine: AsyncEngine
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    most_seconds: float = MOST_SECONDS

    async def of(self, slug: str, like: str) -> Plan:
        """As `plan`. Raises `Conflict` (`plan_takes_long`), too."""
        url = self.engine.url.render_as_string(hide_password=False)
        try:
            async with asyncio.timeout(self.most_seconds), self.turn:
                return await apart(plan_on, url, slug, like)
        except TimeoutError as problem:
            why = f"There was no plan after {self.most_seconds:g} seconds: there are many items, or others plan, too."
            why += f" `easel plan {slug}` takes the time that it needs."
            raise Conflict(why, code="plan_takes_long") from problem


async def plan_on(url: str, slug: str, like: str) -> Plan:
    """`plan`, in a process that has no engine."""
    engine = create_engine(url, pool_size=1)
    try:
        return await plan(engine, slug, like)
    finally:
        await engine.dispose()
