"""What comes out of a campaign: `easel verify` and `easel export`."""

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
from sqlalchemy.ext.asyncio import AsyncEngine

from app.analysis.export import Format, names
from app.analysis.export import export as export_of
from app.analysis.findings import MOST_CLASSES, Options
from app.cli.commands import Failure
from app.cli.running import as_json, now, on_engine, output_option, put_out, show_json
from app.database.audit_log import note
from app.database.bulk import snapshot
from app.database.campaign import campaign_by_slug
from app.record.replay import Verification
from app.record.replay import verify as verify_posteriors
from app.record.revisions import replay_posteriors
from app.settings import easel_command

classes_option = click.option(
    "--classes",
    type=click.IntRange(2, MOST_CLASSES),
    default=2,
    show_default=True,
    help="Into how many labels scores are cut; where annotators choose labels, nothing is cut.",
)

criterion_option = click.option(
    "--criterion", default="", help="One of the campaign's criteria by its name, where it has any. Default: the first."
)


@click.command()
@click.argument("slug")
@click.option(
    "--replay",
    is_flag=True,
    help="Store the replayed posteriors where they differ from the stored ones by rounding alone.",
)
@as_json
def verify(slug: str, *, replay: bool, as_json: bool) -> None:
    """Replay all responses from the prior and compare every posterior bit for bit."""
    found = on_engine(partial(verification, slug))
    replayed = replay and found.rounding_only
    if replayed:
        on_engine(partial(replay_once_more, slug))
        found = on_engine(partial(verification, slug))
    if as_json:
        show_json(asdict(found) | {"clean": found.clean})
    elif found.clean:
        again = "The posteriors were stored again from the same answers.\n" if replayed else ""
        click.echo(
            f"{again}Replayed {found.responses:,} responses: the posteriors of {found.items:,} items are the same."
        )
    for mismatch in () if as_json else found.mismatches:
        by = f" by {mismatch.criterion}" if mismatch.criterion else ""
        words = f"item {mismatch.external_id}: {mismatch.column}{by} is {mismatch.stored!r}"
        click.echo(f"{words}, replayed {mismatch.replayed!r}")
    if found.checks_amiss:
        raise Failure(f"{found.checks_amiss:,} answers to checks do not go with the HITs. (verify_failed)")
    if found.rounding_only:
        raise Failure(
            f"{found.mismatch_count:,} stored numbers differ from the replay by rounding alone, each by less than one "
            "part in a billion: an earlier version of Easel stored them, or a system with another mathematics library. "
            f"No answer is missing. `{easel_command()} verify {slug} --replay` stores them again. (verify_rounding)"
        )
    if not found.clean:
        kept = ", so nothing was stored again" if replay else ""
        raise Failure(f"{found.mismatch_count:,} stored numbers differ from the replay{kept}. (verify_failed)")


async def verification(slug: str, engine: AsyncEngine) -> Verification:
    async with snapshot(engine) as connection:
        return await verify_posteriors(connection, await campaign_by_slug(connection, slug))


async def replay_once_more(slug: str, engine: AsyncEngine) -> None:
    """Store the posteriors again from the same answers, and write that down."""
    async with engine.begin() as connection:
        campaign = await campaign_by_slug(connection, slug)
    await replay_posteriors(engine, campaign.id, now=now())
    async with engine.begin() as connection:
        await note(connection, "answers.replayed", campaign)


SPREADSHEET_HELP = "CSV with an apostrophe before what spreadsheet programs would change: 001, 1e5, =1+1."
FORMAT_HELP = "Default: json for settings, csv for everything else."


@click.command()
@click.argument("slug")
@click.argument("what", type=click.Choice(names()))
@click.option("--format", "format_", type=click.Choice(["csv", "jsonl", "json"]), help=FORMAT_HELP)
@click.option(
    "--spreadsheet",
    is_flag=True,
    help=SPREADSHEET_HELP,
)
@classes_option
@criterion_option
@output_option
def export(
    slug: str,
    what: str,
    format_: Format | None,
    classes: int,
    output: Path | None,
    *,
    criterion: str,
    spreadsheet: bool,
) -> None:
    """Write items with posteriors, responses in long form, what was shown and not answered, assignments, settings, or
    the EASL program's file; scores by every method, or labels with their confidence, of judgments or of items.
    """
    if format_ and (format_ == "json") != (what == "settings"):
        raise click.UsageError("Settings come with --format json, everything else with --format csv or jsonl.")

    async def work(engine: AsyncEngine) -> None:
        how: dict[str, Any] = {"spreadsheet": spreadsheet, "options": Options(classes), "criterion": criterion}
        file = await export_of(engine, slug, what, format_ or "csv", **how)
        await put_out(file.chunks, output)

    on_engine(work)
