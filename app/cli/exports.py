"""`easel verify` and `easel export`: check and write a campaign's results."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.result_types import MAX_CLASSES, Options
from app.cli.commands import CommandFailure
from app.cli.run_command import (
    current_utc_time,
    json_option,
    output_option,
    print_json,
    run_with_engine,
    write_chunks_to_file_or_print,
)
from app.database.audit_log import log_change
from app.database.bulk import open_snapshot
from app.exports.everything import EVERYTHING, open_everything_or_refuse
from app.exports.registry import export_names
from app.exports.registry import open_export_or_refuse as export_of
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import Verification
from app.record.replay import verify_by_replay_or_refuse as verify_posteriors
from app.record.revisions import switch_to_revision_from_same_answers
from app.settings import easel_command_to_type
from app.text.table_formats import ExportFormat

classes_option = click.option(
    "--classes",
    type=click.IntRange(2, MAX_CLASSES),
    default=2,
    show_default=True,
    help="Number of labels into which scores are cut; ignored if annotators choose labels.",
)

criterion_option = click.option(
    "--criterion", default="", help="Name of a criterion, if the campaign has several. Default: the first."
)


@click.command()
@click.argument("slug")
@click.option(
    "--replay", is_flag=True, help="Store the replayed posteriors if they differ from the stored ones only by rounding."
)
@json_option
def verify(slug: str, *, replay: bool, as_json: bool) -> None:
    """Replay all responses from the prior and compare every posterior bit for bit."""
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
    async with open_snapshot(engine) as connection:
        return await verify_posteriors(connection, await load_campaign_by_slug_or_refuse(connection, slug))


async def store_replayed_posteriors_as_new_revision(slug: str, engine: AsyncEngine) -> None:
    """Store the posteriors again from the same answers, and log it."""
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await switch_to_revision_from_same_answers(engine, campaign.id, now=current_utc_time())
    async with engine.begin() as connection:
        await log_change(connection, "answers.replayed", campaign)


async def write_everything(slug: str, output: Path | None, engine: AsyncEngine, *, with_platform_ids: bool) -> None:
    """Write the zip with everything to the file, or print it if there is none."""
    file = await open_everything_or_refuse(engine, slug, now=current_utc_time(), with_platform_ids=with_platform_ids)
    await write_chunks_to_file_or_print(file.chunks, output)


SPREADSHEET_HELP = (
    "Put an apostrophe before CSV cells that spreadsheet programs would change, such as 001, 1e5 or =1+1."
)
FORMAT_HELP = "Default: json for settings, csv for everything else."


@click.command()
@click.argument("slug")
@click.argument("what", type=click.Choice([*export_names(), EVERYTHING]))
@click.option("--format", "format_", type=click.Choice(["csv", "jsonl", "json"]), help=FORMAT_HELP)
@click.option("--spreadsheet", is_flag=True, help=SPREADSHEET_HELP)
@classes_option
@criterion_option
@click.option(
    "--assignments", is_flag=True, help="With everything: include the assignments, which have the platform's ids."
)
@output_option
def export(
    slug: str,
    what: str,
    format_: ExportFormat | None,
    classes: int,
    output: Path | None,
    *,
    criterion: str,
    spreadsheet: bool,
    assignments: bool,
) -> None:
    """Write an export of a campaign: items with posteriors, responses in long form, items shown but not answered,
    assignments, settings, a file for the EASL program, scores by every method, or labels of items or judgments with
    their confidence; or everything, as a zip with a codebook.
    """
    if what == EVERYTHING:
        if format_:
            raise click.UsageError("Everything comes as a zip, without --format.")
        run_with_engine(partial(write_everything, slug, output, with_platform_ids=assignments))
        return
    if format_ and (format_ == "json") != (what == "settings"):
        raise click.UsageError("Settings come with --format json, everything else with --format csv or jsonl.")

    async def work(engine: AsyncEngine) -> None:
        export_options: dict[str, Any] = {
            "spreadsheet": spreadsheet,
            "options": Options(classes),
            "criterion": criterion,
        }
        file = await export_of(engine, slug, what, format_ or "csv", **export_options)
        await write_chunks_to_file_or_print(file.chunks, output)

    run_with_engine(work)
