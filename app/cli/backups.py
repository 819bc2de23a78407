"""`easel backup`, `easel restore`."""

import asyncio
from pathlib import Path

import click

from app.cli.commands import CommandFailure
from app.cli.run_command import current_utc_time
from app.database.migrate import upgrade_schema
from app.database.server_database import database_url_in_any_state
from app.database.session import create_engine
from app.errors import pluralize
from app.maintenance.backup import delete_old_backups, write_backup_to_folder
from app.maintenance.manifest import Manifest
from app.maintenance.restore import iterate_verifications, list_differences_from_manifest, load_dump_into_empty_database
from app.settings import read_settings
from app.text.postgres_address import AddressProblem, parse_postgres_address

KEY_REMINDER = "EASEL_SECRET_KEY is set: it is not in the backup. Keep it, too."


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--keep", type=click.IntRange(1), help="Afterwards delete all but this many of the newest backups in the folder."
)
def backup(folder: Path, *, keep: int | None) -> None:
    """Back up the whole database into a FOLDER, while the server runs. Each backup is a dump and a manifest."""
    settings = read_settings()
    with database_url_in_any_state(settings) as url:
        made = asyncio.run(write_backup_to_folder(url, folder, now=current_utc_time()))
    responses = sum(counts.responses for counts in made.manifest.campaigns)
    click.echo(
        f"{made.dump}: {made.manifest.size_bytes:,} bytes, {pluralize(len(made.manifest.campaigns), 'campaign')}, "
        f"{pluralize(responses, 'response')}."
    )
    if keep is not None:
        for dump in delete_old_backups(folder, keep=keep):
            click.echo(f"Deleted {dump}.")
    if settings.secret_key is not None:
        click.echo(KEY_REMINDER, err=True)


@click.command()
@click.argument("dump", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--into", help="Address of the database, if it is not the one of DATABASE_URL or EASEL_DATA_DIR.")
@click.option("--no-verify", "is_unverified", is_flag=True, help="Do not replay the campaigns afterwards.")
def restore(dump: Path, *, into: str | None, is_unverified: bool) -> None:
    """Restore a backup into an empty database from its file DUMP, upgrade the schema, and verify all campaigns."""
    settings = read_settings()
    if into is not None:
        try:
            settings = settings.model_copy(update={"database_url": parse_postgres_address(into).sqlalchemy_url()})
        except AddressProblem as problem:
            raise click.UsageError(f"--into {problem}") from None
    with database_url_in_any_state(settings) as url:
        manifest = asyncio.run(load_dump_into_empty_database(url, dump))
        upgrade_schema(url)
        problems = asyncio.run(print_comparison_and_list_problems(url, manifest, is_unverified=is_unverified))
    if problems:
        raise CommandFailure(f"The backup was restored, but not as it was made: {' '.join(problems)} (restore_differs)")
    click.echo(f"Restored the backup of {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC.")


async def print_comparison_and_list_problems(url: str, manifest: Manifest, *, is_unverified: bool) -> list[str]:
    """Compare a restored database with the manifest, print a line for each campaign, and return what differs."""
    engine = create_engine(url, pool_size=2)
    try:
        problems = await list_differences_from_manifest(engine, manifest)
        if problems or is_unverified:
            return problems
        async for slug, verification in iterate_verifications(engine, manifest):
            if verification.has_no_mismatches:
                click.echo(
                    f"{slug}: {pluralize(verification.responses, 'response')} replayed, all posteriors are the same."
                )
            elif verification.has_only_rounding_mismatches:
                click.echo(f"{slug}: the posteriors differ from the replay by rounding alone; see `easel verify`.")
            else:
                problems.append(f"{slug} does not verify.")
        return problems
    finally:
        await engine.dispose()
