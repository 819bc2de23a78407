"""`easel calls ...`: calls that tell the annotators' platform how visits ended, and decisions about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from app.cli.command_group import CommandGroup
from app.cli.run_command import json_option, print_json, run_in_transaction
from app.cli.text_table import print_text_table
from app.server_calls.call_decision import CallDecision, RepeatedState

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


@click.group(cls=CommandGroup)
def calls() -> None:
    """Calls that tell the annotators' platform how visits ended: list, repeat and decide about them."""


@calls.command("list")
@click.argument("slug")
@json_option
def print_server_calls(slug: str, *, as_json: bool) -> None:
    """List the calls of a campaign, unclear and failed ones first."""
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.server_calls.ledger import list_server_calls

    async def work(connection: AsyncConnection) -> list[dict[str, str]]:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return [
            {
                "id": str(row.id),
                "annotator": row.annotator,
                "outcome": row.outcome,
                "state": row.state,
                "tries": str(row.tries),
                "problem": row.problem,
            }
            for row in await list_server_calls(connection, campaign.id, limit=None)
        ]

    rows = run_in_transaction(work)
    if as_json:
        print_json(rows)
    elif not rows:
        click.echo("No calls.")
    else:
        titles = ["Id", "Annotator", "Outcome", "State", "Tries", "Problem"]
        print_text_table(titles, [list(row.values()) for row in rows], right_columns={0, 4})


@calls.command("repeat")
@click.argument("slug")
@click.argument("state", type=click.Choice(get_args(RepeatedState)))
def repeat_server_calls_of_campaign(slug: str, state: str) -> None:
    """Make all failed or all unknown calls again. The server does so within seconds, while it runs.

    Unknown calls may have been counted: repeat them only if the platform does not count a call twice.
    """
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.server_calls.ledger import repeat_server_calls_and_count_them

    async def work(connection: AsyncConnection) -> int:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return await repeat_server_calls_and_count_them(connection, campaign, state)

    repeated = run_in_transaction(work)
    click.echo(f"The server makes {repeated:,} {'call' if repeated == 1 else 'calls'} again.")


@calls.command("earlier")
@click.argument("slug")
@click.option("--dry-run", is_flag=True, help="Only count them.")
def call_for_people_who_completed_earlier(slug: str, *, dry_run: bool) -> None:
    """Make a call for each person who completed before the campaign had an address to call.

    They may have their credit already, for example by a code: compare with the platform first.
    """
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.server_calls.ledger import count_people_to_call_for, store_and_count_calls_for_earlier_completions

    async def work(connection: AsyncConnection) -> int:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if dry_run:
            return await count_people_to_call_for(connection, campaign)
        return await store_and_count_calls_for_earlier_completions(connection, campaign)

    number = run_in_transaction(work)
    people = "1 person" if number == 1 else f"{number:,} people"
    click.echo(f"The server would call for {people}." if dry_run else f"The server calls for {people}.")


@calls.command("decide")
@click.argument("slug")
@click.argument("call", type=click.IntRange(1, 2**63 - 1))
@click.argument("decision", type=click.Choice(get_args(CallDecision)))
def decide_on_server_call(slug: str, call: int, decision: str) -> None:
    """Say that the platform counted CALL (sent), make it again, or cancel it."""
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.server_calls.ledger import store_decision_on_server_call_or_refuse

    async def work(connection: AsyncConnection) -> None:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        await store_decision_on_server_call_or_refuse(connection, campaign, call, decision)

    run_in_transaction(work)
    click.echo("Stored.")
