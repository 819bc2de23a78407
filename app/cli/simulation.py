"""`easel simulate` and `easel plan`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from app.cli.run_command import (
    current_utc_time,
    progress_bar_at_terminal,
    progress_function_ended_by_interrupt,
    run_with_engine,
)
from app.planning.forecast_defaults import (
    DEFAULT_ANNOTATORS_IN_TOTAL,
    DEFAULT_CONCURRENT_ANNOTATORS,
    DEFAULT_FORECAST_RUNS,
    DEFAULT_POPULATION,
    MAX_ANNOTATORS_INPUT,
)
from app.simulation.annotators import CARELESS_KINDS, POPULATIONS

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.planning.campaign_forecast import CampaignForecast
    from app.simulation.annotators import CarelessKind

TRUTH_HELP = (
    "Column of the items with their true values, as numbers: the lowest becomes 0, the highest 100. Default: random "
    "values."
)

LIKE_HELP = "Answer like these real annotators, with their noise, biases and rounding. --noise is then ignored."

CARELESS_HOW_HELP = "How careless annotators answer: at random, all items at the same point, or all in the middle."

REFERENCE_CROWD_HELP = (
    f"Annotators to assume until the campaign has enough answers: {', '.join(POPULATIONS)}, or the slug of an earlier "
    "campaign."
)

ANNOTATOR_TOTAL_HELP = (
    f"Total number of annotators. Default: an estimate from the answers, {DEFAULT_ANNOTATORS_IN_TOTAL} or more before "
    "the first answer."
)

UNJUDGEABLE_HELP = (
    "Share of items that cannot be judged, if the campaign lets annotators say so. Default: all items can be judged."
)


@click.command()
@click.argument("slug")
@click.option(
    "--hits", type=click.IntRange(1), default=100, show_default=True, help="Maximum number of HITs to answer."
)
@click.option(
    "--annotators", type=click.IntRange(1), default=12, show_default=True, help="Number of simulated annotators."
)
@click.option(
    "--noise",
    type=click.FloatRange(0, 1),
    default=0.1,
    show_default=True,
    help="Size of their errors, on a scale from 0 to 1.",
)
@click.option("--like", type=click.Choice([*POPULATIONS]), help=LIKE_HELP)
@click.option(
    "--careless",
    type=click.FloatRange(0, 1),
    default=0,
    show_default=True,
    help=("Share of annotators who are careless."),
)
@click.option(
    "--careless-how", type=click.Choice(CARELESS_KINDS), default="random", show_default=True, help=CARELESS_HOW_HELP
)
@click.option("--truth", "truth_column", metavar="COLUMN", help=TRUTH_HELP)
@click.option("--unjudgeable", type=click.FloatRange(0, 1), default=0.0, help=UNJUDGEABLE_HELP)
@click.option("--pace", type=click.FloatRange(0), default=0.1, show_default=True, help="Seconds between answers.")
@click.option("--seed", type=click.IntRange(0), default=2018, show_default=True, help=("Seed of the random numbers."))
def simulate(
    slug: str,
    *,
    pace: float,
    seed: int,
    noise: float,
    like: str | None,
    careless: float,
    careless_how: CarelessKind,
    **crowd_options: Any,
) -> None:
    """Let simulated annotators answer a campaign that no person has answered, to rehearse it or to see it live."""
    from app.database.audit_log import log_change
    from app.goal_monitor import monitor
    from app.http.dependencies import get_now
    from app.quality.rule_monitor import CampaignMonitor
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.simulation.annotators import build_population_or_refuse
    from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count

    async def work(engine: AsyncEngine) -> int:
        async with engine.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            await log_change(connection, "answers.simulated", campaign, new_values={"hits": crowd_options["hits"]})
        crowd_options["population"] = build_population_or_refuse(like or "", noise, careless, careless_how)
        scans = CampaignMonitor(engine, get_now, monitor.CAMPAIGN_SCANS)

        async def after_answer() -> None:
            scans.request_scan(campaign.id)
            await asyncio.sleep(pace)

        rng = np.random.default_rng(seed)
        answered_hits = await answer_hits_by_simulated_annotators_and_count(
            engine, campaign, rng=rng, clock=current_utc_time, on_answer=after_answer, **crowd_options
        )
        await scans.stop_after_last_scan(campaign.id)
        return answered_hits

    click.echo(f"Simulated annotators answered {run_with_engine(work):,} HITs of {slug}.")


@click.command()
@click.argument("slug")
@click.option("--like", default=DEFAULT_POPULATION, show_default=True, help=REFERENCE_CROWD_HELP)
@click.option(
    "--runs",
    type=click.IntRange(2, 1000),
    default=DEFAULT_FORECAST_RUNS,
    show_default=True,
    help="Number of simulated campaigns.",
)
@click.option(
    "--at-once",
    type=click.IntRange(1, 1000),
    default=DEFAULT_CONCURRENT_ANNOTATORS,
    show_default=True,
    help="Number of annotators who work at the same time.",
)
@click.option("--annotators", type=click.IntRange(1, MAX_ANNOTATORS_INPUT), help=ANNOTATOR_TOTAL_HELP)
def plan(slug: str, runs: int, **options: Any) -> None:
    """Forecast what the goal of a campaign will cost, from the answers so far."""
    from app.campaigns import hints
    from app.planning.forecast import forecast_cost_of_goal_or_refuse as planned
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(engine: AsyncEngine) -> tuple[CampaignForecast, str]:
        with progress_bar_at_terminal(runs, "Simulating") as update_bar:
            forecast = await planned(
                engine,
                slug,
                now=current_utc_time(),
                runs=runs,
                on_run=progress_function_ended_by_interrupt(update_bar),
                **options,
            )
        async with engine.connect() as connection:
            return forecast, hints.advice_to_use_better_rule_or_empty(
                await load_campaign_by_slug_or_refuse(connection, slug)
            )

    forecast, advice = run_with_engine(work)
    click.echo(f"Goal: {forecast.goal}.")
    click.echo(" · ".join([forecast.sentence_on_judgments_needed, *forecast.phrases_on_costs_of_median_run]))
    details = (
        forecast.sentence_on_time_until_goal_or_empty,
        forecast.annotators_note,
        forecast.annotators_run_out_warning_or_empty,
        forecast.campaign_ends_before_goal_warning_or_empty,
        forecast.caution,
        advice,
    )
    for line in filter(None, details):
        click.echo(line)
