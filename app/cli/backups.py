"""`easel backup`, `easel restore`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.commands import CommandFailure
from app.cli.run_command import current_utc_time
from app.errors import pluralize
from app.privacy.erasure_rule import ERASURE_LIST_NAME

if TYPE_CHECKING:
    from app.maintenance.manifest import Manifest

KEY_REMINDER = "EASEL_SECRET_KEY is set: it is not in the backup. Keep it, too."

SENTENCE_BY_STATE = {
    "erased": "Erased again, because they were erased after this backup",
    "open": "Withdrawn again, because they withdrew after this backup",
    "undone": "Not withdrawn any more, because they took it back after this backup",
}


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), required=False)
@click.option(
    "--keep", type=click.IntRange(1), help="Afterwards delete all but this many of the newest backups in the folder."
)
def backup(folder: Path | None, *, keep: int | None) -> None:
    """Back up the whole database into a FOLDER, while the server runs. Each backup is a dump and a manifest.

    Without FOLDER, the folder in EASEL_BACKUP_DIR is used.
    """
    from app.database.server_database import open_database_in_any_state_and_yield_url
    from app.maintenance.backup import delete_old_backups_and_return_their_dumps, write_dump_and_manifest_to_folder
    from app.settings import read_settings

    settings = read_settings()
    folder = folder or settings.backup_dir
    if folder is None:
        raise click.UsageError("Name a folder, or set EASEL_BACKUP_DIR.")
    with open_database_in_any_state_and_yield_url(settings) as url:
        made = asyncio.run(write_dump_and_manifest_to_folder(url, folder, now=current_utc_time()))
        asyncio.run(write_erasure_list_if_any(url, folder / ERASURE_LIST_NAME))
    responses = sum(counts.responses for counts in made.manifest.campaigns)
    click.echo(
        f"{made.dump}: {made.manifest.size_bytes:,} bytes, {pluralize(len(made.manifest.campaigns), 'campaign')}, "
        f"{pluralize(responses, 'response')}."
    )
    if keep is not None:
        for dump in delete_old_backups_and_return_their_dumps(folder, count_to_keep=keep):
            click.echo(f"Deleted {dump}.")
    if settings.secret_key is not None:
        click.echo(KEY_REMINDER, err=True)


@click.command()
@click.argument("dump", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--into", help="Address of the database, if it is not the one of DATABASE_URL or EASEL_DATA_DIR.")
@click.option(
    "--erasures",
    "erasure_list",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"List of erasures and withdrawals to apply again. Default: {ERASURE_LIST_NAME} next to the dump, if any.",
)
@click.option("--no-verify", "is_unverified", is_flag=True, help="Do not replay the campaigns afterwards.")
def restore(dump: Path, *, into: str | None, erasure_list: Path | None, is_unverified: bool) -> None:
    """Restore a backup into an empty database from its file DUMP, upgrade the schema, and verify all campaigns."""
    from app.database.migrate import upgrade_schema
    from app.database.server_database import open_database_in_any_state_and_yield_url
    from app.maintenance.restore import load_dump_into_empty_database
    from app.settings import read_settings
    from app.text.postgres_address import AddressProblem, parse_postgres_address

    settings = read_settings()
    if into is not None:
        try:
            settings = settings.model_copy(update={"database_url": parse_postgres_address(into).sqlalchemy_url_text()})
        except AddressProblem as problem:
            raise click.UsageError(f"--into {problem}") from None
    with open_database_in_any_state_and_yield_url(settings) as url:
        manifest = asyncio.run(load_dump_into_empty_database(url, dump))
        upgrade_schema(url)
        asyncio.run(hold_payments_and_calls_printing_counts(url))
        usual_list = dump.with_name(ERASURE_LIST_NAME)
        if chosen_list := erasure_list or (usual_list if usual_list.exists() else None):
            asyncio.run(erase_listed_people_again(url, chosen_list))
        problems = asyncio.run(print_backup_comparison_and_return_problems(url, manifest, is_unverified=is_unverified))
    if problems:
        raise CommandFailure(f"The restored database differs from the backup: {' '.join(problems)} (restore_differs)")
    click.echo(f"Restored the backup of {manifest.created_at:%Y-%m-%d %H:%M:%S} UTC.")


async def write_erasure_list_if_any(url: str, path: Path) -> None:
    """Write the list of all erasures and withdrawals, which only its owner can read; nothing if there are none.

    What only the list in the folder knows stays: the database may be restored from before it, and other backups here
    still need it.
    """
    from app.privacy.erasure_list import format_erasure_list, load_erasure_list, with_erasures_of_older_list
    from app.privacy.erasure_reapplication import read_erasure_list
    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine, engine.connect() as connection:
        erasures = await load_erasure_list(connection)
    if await asyncio.to_thread(path.exists):
        erasures = with_erasures_of_older_list(erasures, await read_erasure_list(path))
    if not erasures:
        return
    partial = path.with_name(f"{path.name}.part")
    partial.touch(mode=0o600)
    partial.write_text(format_erasure_list(erasures), encoding="utf-8")
    partial.replace(path)


async def hold_payments_and_calls_printing_counts(url: str) -> None:
    """Let no payment and no call of a restored database be made by itself, and say how many are held."""
    from app.payments.restored_payments import hold_payments_after_restore_and_count_them
    from app.record.revisions import open_engine_of_own_process
    from app.server_calls.restored_calls import hold_server_calls_after_restore_and_count_them

    async with open_engine_of_own_process(url) as engine:
        held = await hold_payments_after_restore_and_count_them(engine)
        held_calls = await hold_server_calls_after_restore_and_count_them(engine)
    if held:
        click.echo(
            f"Held {pluralize(held, 'payment')}, which may have been made after this backup. Check at the platform, "
            "then send or cancel each of them under Payments."
        )
    if held_calls:
        click.echo(
            f"Held {pluralize(held_calls, 'call')} to annotators’ platforms, which may have been made after this "
            "backup. Check there, then repeat or cancel them under Calls to the platform."
        )


async def erase_listed_people_again(url: str, path: Path) -> None:
    """Apply the erasures and withdrawals of a list in a restored database."""
    from app.privacy.erasure_reapplication import read_erasure_list, reapply_erasures_and_count_by_state
    from app.record.revisions import open_engine_of_own_process

    async with open_engine_of_own_process(url) as engine:
        count_by_state = await reapply_erasures_and_count_by_state(
            engine, await read_erasure_list(path), now=current_utc_time()
        )
    for state, sentence in SENTENCE_BY_STATE.items():
        if count := count_by_state.get(state):
            click.echo(f"{sentence}: {pluralize(count, 'annotator')}.")


async def print_backup_comparison_and_return_problems(
    url: str, manifest: Manifest, *, is_unverified: bool
) -> list[str]:
    """Compare a restored database with the manifest, print a line for each campaign, and return what differs."""
    from app.database.session import create_engine
    from app.maintenance.restore import list_differences_from_manifest, replay_campaigns_and_iterate_verifications

    engine = create_engine(url, pool_size=2)
    try:
        problems = await list_differences_from_manifest(engine, manifest)
        if problems or is_unverified:
            return problems
        async for slug, verification in replay_campaigns_and_iterate_verifications(engine, manifest):
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
