"""Bring a database to the newest schema."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import SERVING_LIMITS, create_engine
from app.errors import StartupProblem, shortened
from app.settings import easel_command

if TYPE_CHECKING:
    from alembic.config import Config  # it takes long to import, and as a rule there is nothing to migrate

ROOT = Path(__file__).resolve().parents[2]


def configuration(url: str) -> "Config":
    """Alembic's configuration for the database at `url`."""
    from alembic.config import Config

    config = Config(toml_file=str(ROOT / "pyproject.toml"))
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.attributes["url"] = url
    return config


def upgrade(url: str) -> None:
    """Run all migrations that the database at `url` has not seen; must not be called from a running event loop.

    Raises StartupProblem if its schema is of a newer Easel, or none of Easel's.
    """
    revision = asyncio.run(revision_of(url))
    require_known(revision)
    if revision != newest_revision():
        from alembic import command

        command.upgrade(configuration(url), "head")


async def revision_of(url: str) -> str | None:
    """Return the revision of the schema that the database at `url` has, if it has one."""
    engine = create_engine(url, pool_size=1, limits=SERVING_LIMITS)
    try:
        async with engine.connect() as connection:
            return await revision_on(connection)
    finally:
        await engine.dispose()


async def revision_on(connection: AsyncConnection) -> str | None:
    """Return the revision of the schema that a connection works on, if it has one."""
    if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = await connection.scalar(text("SELECT max(version_num) FROM alembic_version"))
    return revision


def known_revisions() -> list[str]:
    """Return the revisions of all migrations, the oldest first: their files are numbered in that order."""
    return sorted(path.stem.partition("_")[0] for path in (ROOT / "migrations" / "versions").glob("*.py"))


def newest_revision() -> str:
    return known_revisions()[-1]


def require_known(revision: str | None) -> None:
    """Raise StartupProblem if a schema is of a newer Easel, or none of Easel's."""
    known = known_revisions()
    if revision is None or revision in known:
        return
    if revision.isdecimal() and int(revision) > int(known[-1]):
        raise StartupProblem(
            f"The schema of the database is at revision {revision}, and this Easel knows revisions up to {known[-1]}: "
            "a newer Easel has upgraded it. Upgrade this one as well, or restore a backup from before the upgrade."
        )
    raise StartupProblem(
        f"The schema of the database is at revision {shortened(revision)}, which no Easel up to {known[-1]} has made. "
        "Check that this is Easel's database, or restore a backup."
    )


def require_newest(revision: str | None) -> None:
    """Raise StartupProblem if a schema is not the one that this Easel works on."""
    require_known(revision)
    if revision != newest_revision():
        raise StartupProblem(
            f"The schema of the database is at revision {revision or 'none'}, and this Easel needs "
            f"{newest_revision()}. Run `{easel_command()} migrate` first."
        )
