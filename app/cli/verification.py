"""`easel verify`: check that a campaign's posteriors follow from its responses."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from app.cli.commands import CommandFailure
from app.cli.run_command import current_utc_time, json_option, print_json, run_with_engine

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.record.replay import Verification


@click.command()
@click.argument("slug")
@click.option(
    "--replay", is_flag=True, help="Store the replayed posteriors if they differ from the stored ones only by rounding."
)
@json_option
def verify(slug: str, *, replay: bool, as_json: bool) -> None:
    """Replay all responses from the prior and compare every posterior bit for bit."""
    from app.settings import easel_command_to_type

    result = run_with_engine(partial(verify_campaign_posteriors, slug))
    is_replayed = replay and result.has_only_rounding_mismatches
    if is_replayed:
        run_with_engine(partial(store_replayed_posteriors_as_new_revision, slug))
        result = run_with_engine(partial(verify_campaign_posteriors, slug))
    if as_json:
        print_json(asdict(result) | {"clean": result.has_no_mismatches})
    elif result.has_no_mismatches:
        replay_text = "The posteriors were stored again from the same answers.\n" if is_replayed else ""
        click.echo(
            f"{replay_text}Replayed {result.responses:,} responses: "
            f"the posteriors of {result.items:,} items are the same."
        )
    for mismatch in () if as_json else result.mismatches:
        criterion_text = f" by {mismatch.criterion}" if mismatch.criterion else ""
        words = f"item {mismatch.external_id}: {mismatch.column}{criterion_text} is {mismatch.stored!r}"
        click.echo(f"{words}, replayed {mismatch.replayed!r}")
    if result.checks_amiss:
        raise CommandFailure(f"{result.checks_amiss:,} answers to checks do not match their HITs. (verify_failed)")
    if result.has_only_rounding_mismatches:
        raise CommandFailure(
            f"{result.mismatch_count:,} stored numbers differ from the replay by rounding alone, each by less than one "
            "part in a billion: an earlier version of Easel stored them, or a system with another mathematics library. "
            f"No answer is missing. `{easel_command_to_type()} verify {slug} --replay` stores them again. "
            "(verify_rounding)"
        )
    if not result.has_no_mismatches:
        replay_refusal = ", so nothing was stored again" if replay else ""
        raise CommandFailure(
            f"{result.mismatch_count:,} stored numbers differ from the replay{replay_refusal}. (verify_failed)"
        )


async def verify_campaign_posteriors(slug: str, engine: AsyncEngine) -> Verification:
    from app.database.bulk import open_snapshot
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.record.replay import verify_by_replay_or_refuse as verify_posteriors

    async with open_snapshot(engine) as connection:
        return await verify_posteriors(connection, await load_campaign_by_slug_or_refuse(connection, slug))


async def store_replayed_posteriors_as_new_revision(slug: str, engine: AsyncEngine) -> None:
    """Store the posteriors again from the same answers, and log it."""
    from app.database.audit_log import log_change
    from app.record.campaign import load_campaign_by_slug_or_refuse
    from app.record.revisions import switch_to_revision_from_same_answers

    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await switch_to_revision_from_same_answers(engine, campaign.id, now=current_utc_time())
    async with engine.begin() as connection:
        await log_change(connection, "answers.replayed", campaign)
