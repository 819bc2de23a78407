"""Bring a database to the newest schema."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import SERVING_LIMITS, create_engine
from app.errors import StartupProblem, shorten_echo
from app.settings import easel_command_line

if TYPE_CHECKING:
    from alembic.config import Config  # it takes long to import, and as a rule there is nothing to migrate

PROJECT_ROOT = Path(__file__).resolve().parents[2]


def alembic_configuration(url: str) -> "Config":
    """Return Alembic's configuration for the database at `url`."""
    from alembic.config import Config

    config = Config(toml_file=str(PROJECT_ROOT / "pyproject.toml"))
    config.set_main_option("script_location", str(PROJECT_ROOT / "migrations"))
    config.attributes["url"] = url
    return config


def upgrade_schema(url: str) -> None:
    """Run all pending migrations of the database at `url`; do not call it from a running event loop.

    Raises StartupProblem if the schema was made by a newer Easel, or not by Easel.
    """
    revision = asyncio.run(schema_revision_at_url(url))
    require_known_schema(revision)
    if revision != newest_schema_revision():
        from alembic import command

        command.upgrade(alembic_configuration(url), "head")


async def schema_revision_at_url(url: str) -> str | None:
    """Return the revision of the schema that the database at `url` has, if it has one."""
    engine = create_engine(url, pool_size=1, limits=SERVING_LIMITS)
    try:
        async with engine.connect() as connection:
            return await schema_revision_on_connection(connection)
    finally:
        await engine.dispose()


async def schema_revision_on_connection(connection: AsyncConnection) -> str | None:
    """Return the revision of the schema that a connection works on, if it has one."""
    if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = await connection.scalar(text("SELECT max(version_num) FROM alembic_version"))
    return revision


def known_schema_revisions() -> list[str]:
    """Return the revisions of all migrations, the oldest first: their files are numbered in that order."""
    return sorted(path.stem.partition("_")[0] for path in (PROJECT_ROOT / "migrations" / "versions").glob("*.py"))


def newest_schema_revision() -> str:
    return known_schema_revisions()[-1]


def require_known_schema(revision: str | None) -> None:
    """Raise StartupProblem if a schema was made by a newer Easel, or not by Easel."""
    known = known_schema_revisions()
    if revision is None or revision in known:
        return
    if revision.isdecimal() and int(revision) > int(known[-1]):
        raise StartupProblem(
            f"The schema of the database is at revision {revision}, and this Easel knows revisions up to {known[-1]}: "
            "a newer Easel has upgraded it. Upgrade this one as well, or restore a backup from before the upgrade."
        )
    raise StartupProblem(
        f"The schema of the database is at revision {shorten_echo(revision)}, which no Easel up to {known[-1]} "
        "has made. Check that this is Easel's database, or restore a backup."
    )


def require_newest_schema(revision: str | None) -> None:
    """Raise StartupProblem if a schema is not the one that this Easel works on."""
    require_known_schema(revision)
    if revision != newest_schema_revision():
        raise StartupProblem(
            f"The schema of the database is at revision {revision or 'none'}, and this Easel needs "
            f"{newest_schema_revision()}. Run `{easel_command_line()} migrate` first."
        )
