"""Back up the whole database into a folder, while the server runs."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import open_snapshot
from app.database.migrate import load_schema_revision_on_connection_or_none
from app.database.session import create_engine_without_limits
from app.errors import StartupProblem
from app.maintenance.manifest import Manifest, hash_of_file, load_row_counts_of_campaigns, manifest_path_of_dump
from app.maintenance.postgres_programs import find_postgres_program_or_raise, run_postgres_program

DUMP_NAME = re.compile(r"easel-\d{8}-\d{6}\.dump")
LOCK_SECONDS = 10  # a dump that waits for a table that is being changed gives up after this time


@dataclass(frozen=True)
class Backup:
    """A dump in a folder, and the manifest next to it."""

    dump: Path
    manifest: Manifest


async def write_dump_and_manifest_to_folder(database_url: str, folder: Path, *, now: datetime) -> Backup:
    """Dump the whole database as it is now, and return the finished backup.

    Both files are written under other names first, the manifest last: a dump that has a manifest is complete. Dump and
    manifest see the same snapshot of the database. Raises StartupProblem.
    """
    dump = folder / f"easel-{now:%Y%m%d-%H%M%S}.dump"
    partial_dump = dump.with_suffix(".dump.part")
    create_private_folder(folder)
    engine = create_engine_without_limits(database_url)
    if dump.exists():
        raise StartupProblem(f"{dump} exists already. Nothing was written.", code="backup_exists")
    try:
        create_private_file(partial_dump)
        async with open_snapshot(engine) as connection:
            server_version = await load_major_version_of_server(connection)
            snapshot = await connection.scalar(text("SELECT pg_export_snapshot()"))
            revision = await load_schema_revision_on_connection_or_none(connection)
            if revision is None:
                raise StartupProblem(
                    "The database has no tables of Easel: there is nothing to back up.", code="no_schema"
                )
            campaigns = await load_row_counts_of_campaigns(connection)
            await run_postgres_program(
                find_postgres_program_or_raise("pg_dump", server_version),
                database_url,
                "--format=custom",
                "--no-owner",
                "--no-privileges",
                f"--lock-wait-timeout={LOCK_SECONDS}s",
                f"--snapshot={snapshot}",
                f"--file={partial_dump}",
            )
        manifest = Manifest(
            created_at=now,
            easel_version=version("easel"),
            schema_revision=revision,
            postgresql_version=server_version,
            size_bytes=partial_dump.stat().st_size,
            sha256=hash_of_file(partial_dump),
            campaigns=campaigns,
        )
        sync_file_to_disk(partial_dump)
        partial_dump.replace(dump)
        write_private_file(manifest_path_of_dump(dump), manifest.model_dump_json(indent=2) + "\n")
        sync_file_to_disk(folder)
    except OSError as problem:
        raise StartupProblem(
            f"The backup cannot be written to {folder}: {problem.strerror}.", code="backup_failed"
        ) from problem
    finally:
        partial_dump.unlink(missing_ok=True)
        await engine.dispose()
    return Backup(dump, manifest)


async def load_major_version_of_server(connection: AsyncConnection) -> int:
    number = await connection.scalar(text("SELECT current_setting('server_version_num')::int"))
    return int(number or 0) // 10_000


def create_private_folder(folder: Path) -> None:
    """Create the folder, which only its owner can open; one that exists is left as it is."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise StartupProblem(f"{folder} cannot be made: {problem.strerror}.", code="backup_failed") from problem


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner can read, in place of one with this name."""
    path.unlink(missing_ok=True)
    path.touch(mode=0o600, exist_ok=False)


def write_private_file(path: Path, contents: str) -> None:
    """Write a file that only its owner can read, under another name first."""
    partial_file = path.with_name(path.name + ".part")
    create_private_file(partial_file)
    partial_file.write_text(contents, encoding="utf-8")
    sync_file_to_disk(partial_file)
    partial_file.replace(path)


def sync_file_to_disk(path: Path) -> None:
    """Make sure that a file, or the names in a folder, survive a power failure."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete_old_backups_and_return_their_dumps(folder: Path, *, count_to_keep: int) -> list[Path]:
    """Delete all but the newest `count_to_keep` complete backups of a folder, and return the deleted dumps."""
    deleted = sorted(iterate_complete_dumps(folder), reverse=True)[count_to_keep:]
    for dump in deleted:
        manifest_path_of_dump(dump).unlink(missing_ok=True)  # first: a dump without one does not count as a backup
        dump.unlink(missing_ok=True)
    return deleted


def iterate_complete_dumps(folder: Path) -> Iterator[Path]:
    """Yield the dumps of a folder that have a manifest. The name of each is the time at which it was begun."""
    for path in folder.iterdir():
        if DUMP_NAME.fullmatch(path.name) and manifest_path_of_dump(path).exists():
            yield path
