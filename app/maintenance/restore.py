"""Restore a backup into an empty database, and compare it with its manifest."""

from collections.abc import AsyncIterator
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.database.bulk import open_snapshot
from app.database.migrate import require_upgradable_schema
from app.database.session import create_engine_without_limits
from app.errors import StartupProblem
from app.maintenance.backup import load_major_version_of_server
from app.maintenance.manifest import Manifest, load_row_counts_of_campaigns, read_manifest_of_dump
from app.maintenance.postgres_programs import find_postgres_program_or_raise, run_postgres_program
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import Verification, verify_by_replay_or_refuse
from app.text.postgres_address import parse_postgres_address

COUNT_TABLES = text("""
    SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
""")


async def load_dump_into_empty_database(database_url: str, dump: Path) -> Manifest:
    """Load a dump in one transaction, and return its manifest; the schema stays at the dump's revision.

    Raises StartupProblem: as `read_manifest_of_dump`; `database_not_empty`; `backup_failed` if the dump cannot be
    loaded, and then nothing is.
    """
    manifest = read_manifest_of_dump(dump)
    require_upgradable_schema(manifest.schema_revision)
    engine = create_engine_without_limits(database_url)
    async with engine.connect() as connection:
        tables = await connection.scalar(COUNT_TABLES)
        server_version = await load_major_version_of_server(connection)
    if tables:
        raise StartupProblem(
            "The database is not empty, and a backup is restored only into an empty one. Create a new database, or set "
            "EASEL_DATA_DIR to a new folder. Nothing was changed.",
            code="database_not_empty",
        )
    await run_postgres_program(
        find_postgres_program_or_raise("pg_restore", max(server_version, manifest.postgresql_version)),
        database_url,
        "--no-owner",
        "--no-privileges",
        "--single-transaction",
        "--exit-on-error",
        f"--dbname={parse_postgres_address(database_url).database}",
        str(dump),
    )
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("ANALYZE"))  # without statistics, the first pages would be slow
    return manifest


async def list_differences_from_manifest(engine: AsyncEngine, manifest: Manifest) -> list[str]:
    """Return a sentence for each campaign whose rows are not as many as the manifest says."""
    async with engine.connect() as connection:
        restored = {counts.slug: counts for counts in await load_row_counts_of_campaigns(connection)}
    return [
        f"{expected.slug}: the backup has {expected.model_dump(exclude={'slug'})}, the database "
        f"{restored[expected.slug].model_dump(exclude={'slug'}) if expected.slug in restored else 'no such campaign'}."
        for expected in manifest.campaigns
        if restored.get(expected.slug) != expected
    ]


async def replay_campaigns_and_iterate_verifications(
    engine: AsyncEngine, manifest: Manifest
) -> AsyncIterator[tuple[str, Verification]]:
    """Yield the slug of each launched campaign and the result of replaying its record."""
    for counts in manifest.campaigns:
        if counts.status == "draft":
            continue
        async with open_snapshot(engine) as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, counts.slug)
            yield counts.slug, await verify_by_replay_or_refuse(connection, campaign)
