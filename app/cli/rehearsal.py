"""`easel simulate` and `easel plan`."""

import asyncio
from typing import Any

import click
import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app.campaigns import hints
from app.cli.running import now, on_engine, progress_bar, unless_interrupted
from app.database.audit_log import note
from app.database.campaign import campaign_by_slug
from app.quality.looks import Looks
from app.simulation.annotators import CARELESS, POPULATIONS, Careless, population_of
from app.simulation.crowd import simulate as simulate_crowd
from app.simulation.planned import AT_ONCE, RUNS, USUAL, Plan
from app.simulation.planned import plan as planned
from app.simulation.turnout import MOST_SAID, PEOPLE
from app.stopping import watch
from app.web import get_now

TRUTH_HELP = (
    "Column of your items with a number for each: what the made-up annotators believe, lowest number 0, highest 100. "
    "Default: random values."
)

LIKE_HELP = "Answer like these real annotators, with their noise, biases and rounding; --noise is not used then."

HOW_HELP = "How those answer: anything, all items in one place, or the middle."

EARLIER_HELP = f"Whom annotators are like at first: {', '.join(POPULATIONS)}, or the slug of an earlier campaign."

IN_ALL_HELP = f"Annotators in all. Default: as many as are likely, {PEOPLE} or more while nobody has answered."

UNJUDGEABLE_HELP = (
    "Share of the items that cannot be judged, in a campaign that lets annotators say so. Default: all can be judged."
)


@click.command()
@click.argument("slug")
@click.option("--hits", type=click.IntRange(1), default=100, show_default=True, help="HITs to answer at most.")
@click.option("--annotators", type=click.IntRange(1), default=12, show_default=True, help="How many take part.")
@click.option("--noise", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Their error, on 0 to 1.")
@click.option("--like", type=click.Choice([*POPULATIONS]), help=LIKE_HELP)
@click.option("--careless", type=click.FloatRange(0, 1), default=0, show_default=True, help="Share that do not look.")
@click.option("--careless-how", type=click.Choice(CARELESS), default="random", show_default=True, help=HOW_HELP)
@click.option("--truth", "truth_column", metavar="COLUMN", help=TRUTH_HELP)
@click.option("--unjudgeable", type=click.FloatRange(0, 1), default=0.0, help=UNJUDGEABLE_HELP)
@click.option("--pace", type=click.FloatRange(0), default=0.1, show_default=True, help="Seconds between answers.")
@click.option("--seed", type=click.IntRange(0), default=2018, show_default=True, help="Start of their random choices.")
def simulate(
    slug: str,
    *,
    pace: float,
    seed: int,
    noise: float,
    like: str | None,
    careless: float,
    careless_how: Careless,
    **crowd: Any,
) -> None:
    """Let made-up annotators answer a campaign that no person has answered: to rehearse it, or to see it live."""

    async def work(engine: AsyncEngine) -> int:
        async with engine.begin() as connection:
            found = await campaign_by_slug(connection, slug)
            await note(connection, "answers.simulated", found, after={"hits": crowd["hits"]})
        crowd["population"] = population_of(like or "", noise, careless, careless_how)
        looks = Looks(engine, get_now, watch.LOOKS)

        async def answered() -> None:
            looks.ask(found.id)
            await asyncio.sleep(pace)

        rng = np.random.default_rng(seed)
        done = await simulate_crowd(engine, found, rng=rng, clock=now, answered=answered, **crowd)
        await looks.end(found.id)
        return done

    click.echo(f"Made-up annotators answered {on_engine(work):,} HITs of {slug}.")


@click.command()
@click.argument("slug")
@click.option("--like", default=USUAL, show_default=True, help=EARLIER_HELP)
@click.option("--runs", type=click.IntRange(2, 1000), default=RUNS, show_default=True, help="Simulated campaigns.")
@click.option(
    "--at-once", type=click.IntRange(1, 1000), default=AT_ONCE, show_default=True, help="Annotators at a time."
)
@click.option("--annotators", type=click.IntRange(1, MOST_SAID), help=IN_ALL_HELP)
def plan(slug: str, runs: int, **asked: Any) -> None:
    """What the goal of a campaign will cost, from what is known of it."""

    async def work(engine: AsyncEngine) -> tuple[Plan, str]:
        with progress_bar(runs, "Simulating") as told:
            found = await planned(engine, slug, now=now(), runs=runs, told=unless_interrupted(told), **asked)
        async with engine.connect() as connection:
            return found, hints.advice(await campaign_by_slug(connection, slug))

    found, advice = on_engine(work)
    click.echo(f"Goal: {found.goal}.")
    click.echo(" · ".join([found.needed, *found.costs]))
    told = (found.by_the_clock, found.supposed, found.run_out, found.ends_before, found.caution, advice)
    for more in filter(None, told):
        click.echo(more)
