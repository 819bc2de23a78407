"""`easel campaign show`, `goal` and `alerts`: the state of a campaign, its progress and what its owner should know."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from app.cli.run_command import (
    current_utc_time,
    format_value_for_people,
    given_or_likely_server_url,
    json_option,
    print_json,
    run_in_transaction,
    run_with_engine,
)
from app.errors import pluralize

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

    from app.campaigns.summaries import CampaignWithProgress
    from app.goal_monitor.goal_report import GoalReport

DATES_SHOWN = ("launched_at", "finished_at", "archived_at")


@click.command("show")
@click.argument("slug")
@click.option("--all", "shows_all", is_flag=True, help="Show all settings, too.")
@json_option
def print_campaign_state(slug: str, *, shows_all: bool, as_json: bool) -> None:
    """Show a campaign's state, progress, goal, next step and links for annotators. JSON always has all settings. The
    links of an experiment's arm lead to a random arm.
    """
    from app.alerts.listings import count_unseen_alerts
    from app.campaigns import lifecycle, summaries

    async def load_row_and_unseen_count(connection: AsyncConnection) -> tuple[CampaignWithProgress, int]:
        row = await summaries.load_campaign_with_progress_or_refuse(connection, slug)
        return row, await count_unseen_alerts(connection, row.id)

    row, unseen_alerts = run_in_transaction(load_row_and_unseen_count)
    settings = lifecycle.unchecked_settings_with_deliverable_emails(row).model_dump()
    links = links_for_annotators(row, settings)
    progress = summaries.campaign_progress_as_dict(row)
    if as_json:
        print_json(progress | {"settings": settings, "links": links})
    elif shows_all:
        print_named_values(progress | settings | links)
    else:
        print_named_values(main_values_of_campaign(row, unseen_alerts) | links)


def links_for_annotators(row: CampaignWithProgress, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the link of each platform of a campaign, by the name of the platform."""
    from app.annotation.platforms.registry import (
        annotator_link_base_url_and_key,
        annotator_url_by_platform,
        platforms_of_campaign,
        platforms_offered_for_experiments,
    )

    return annotator_url_by_platform(
        *annotator_link_base_url_and_key(given_or_likely_server_url(), row.link_key, row.experiment_key),
        platforms_offered_for_experiments() if row.experiment_key else platforms_of_campaign(settings),
    )


def main_values_of_campaign(row: CampaignWithProgress, unseen_alerts: int) -> dict[str, Any]:
    """Return what a person needs first: the state, how far the campaign is, and what to do next."""
    from app.goals.progress import describe_goal
    from app.goals.settings import NO_GOAL

    arm = {"experiment": row.experiment, "arm": row.arm} if row.experiment else {}
    dates = {name: getattr(row, name) for name in DATES_SHOWN if getattr(row, name)}
    alerts = {"unseen alerts": f"{unseen_alerts:,}; see `easel campaign alerts {row.slug}`"} if unseen_alerts else {}
    return {
        "name": row.name,
        "status": row.status,
        **arm,
        **dates,
        "items": f"{row.item_count:,}",
        "judgments": f"{row.judgments_taken:,} of {row.judgments_wanted:,}",
        "goal": None if row.goal == NO_GOAL else describe_goal(row),
        **alerts,
        "next step": next_step_of_campaign(row),
    }


def next_step_of_campaign(row: CampaignWithProgress) -> str:
    """Return what the owner of a campaign does next, with the command for it."""
    from app.goals.settings import NO_GOAL

    if row.archived_at:
        return f"bring it back with `easel campaign restore {row.slug}`"
    if row.status == "draft":
        command = "launch" if row.item_count else "import"
        return f"`easel campaign {command} {row.slug}{'' if row.item_count else ' FILE'}`"
    if row.status == "finished":
        return f"`easel analyse {row.slug}`, or `easel export {row.slug} everything -o {row.slug}.zip`"
    if row.status == "paused":
        return f"`easel campaign resume {row.slug}`, or `easel campaign finish {row.slug}`"
    if not row.judgments_taken:
        return "send a link to annotators"
    return f"wait for judgments; see `easel {'analyse' if row.goal == NO_GOAL else 'campaign goal'} {row.slug}`"


def print_named_values(values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        click.echo(f"{name.replace('_', ' ')}: {format_value_for_people(value)}")


@click.command("goal")
@click.argument("slug")
@json_option
def print_goal_progress(slug: str, *, as_json: bool) -> None:
    """Show how near a launched campaign is to its goal, from the newest answers."""
    from app.analysis.fit_cache import FitCache
    from app.goal_monitor.goal_report import load_goal_report_or_refuse

    async def work(engine: AsyncEngine) -> GoalReport:
        return await load_goal_report_or_refuse(engine, FitCache(), slug)

    report = run_with_engine(work)
    if as_json:
        print_json(asdict(report))
        return
    settled = {} if report.settled is None else {"settled": pluralize(report.settled, "item")}
    now = {"now": report.now, "wanted": report.wanted, "reached": report.reached}
    print_named_values({"goal": report.goal, **now, **settled, "measured by": report.measured_by})


@click.command("alerts")
@click.argument("slug")
@click.option("--seen", "want_seen", is_flag=True, help="List alerts that were seen instead.")
@click.option("--mark", "alert_id", type=click.IntRange(1, 2**63 - 1), help="Mark the alert with this id as seen.")
@json_option
def print_or_mark_alerts(slug: str, *, want_seen: bool, alert_id: int | None, as_json: bool) -> None:
    """List the newest 50 unseen alerts of a campaign, newest first, or mark one as seen."""
    from app.database.alerts import alert_sentence

    if want_seen and alert_id is not None:
        raise click.UsageError("--mark comes without --seen.")
    if alert_id is not None:
        run_in_transaction(partial(mark_alert_seen, slug, alert_id))
        click.echo(f"Marked alert {alert_id} of {slug} as seen.")
        return
    rows = run_in_transaction(partial(load_alert_rows, slug, want_seen=want_seen))
    if as_json:
        print_json([row._asdict() | {"said": alert_sentence(row.kind, row.about)} for row in rows])
    elif not rows:
        click.echo("No alert was seen yet." if want_seen else "No alerts.")
    else:
        for row in rows:
            because = f" {row.because}" if row.because else ""
            click.echo(f"{row.id}  {row.raised_at:%Y-%m-%d %H:%M}  {alert_sentence(row.kind, row.about)}{because}")


async def load_alert_rows(slug: str, connection: AsyncConnection, *, want_seen: bool) -> Sequence[Row[Any]]:
    from app.alerts.listings import load_newest_seen_or_unseen_alerts
    from app.record.campaign import load_campaign_by_slug_or_refuse

    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    return await load_newest_seen_or_unseen_alerts(connection, campaign.id, want_seen=want_seen)


async def mark_alert_seen(slug: str, alert_id: int, connection: AsyncConnection) -> None:
    from app.alerts.listings import mark_alert_seen_or_refuse
    from app.database.audit_log import CURRENT_ACTOR
    from app.record.campaign import load_campaign_by_slug_or_refuse

    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await mark_alert_seen_or_refuse(
        connection, campaign, alert_id, user_name=CURRENT_ACTOR.get().name, now=current_utc_time()
    )
