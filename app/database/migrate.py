"""Bring a database to the newest schema."""

import asyncio
import re
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.session import LOCK_NOT_AVAILABLE_CODE, SERVING_LIMITS, create_engine, sqlstate_of_error_or_empty
from app.errors import StartupProblem, shorten_echo
from app.settings import easel_command_to_type, project_folder

if TYPE_CHECKING:
    from alembic.config import Config  # it takes long to import, and as a rule there is nothing to migrate

MIGRATIONS_FOLDER = project_folder() / "migrations"

# The migrations of Easel 0.1 are squashed into the initial one: from its last revision the schema is the same.
LAST_REVISION_OF_0_1 = "0061"
INITIAL_REVISION = "0001_initial"

# A migration waits this long for a table that others use. Requests for the table wait behind it meanwhile.
MIGRATION_LOCK_SECONDS = 10


def alembic_configuration(url: str) -> "Config":
    """Return Alembic's configuration for the database at `url`."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER))
    config.attributes["url"] = url
    return config


def upgrade_schema(url: str) -> None:
    """Run all pending migrations of the database at `url`; do not call it from a running event loop.

    Raises StartupProblem if the schema is too old to upgrade, or was made by a newer Easel, or not by Easel; or if
    others use its tables.
    """
    revision = asyncio.run(load_schema_revision_at_url_or_none(url))
    require_upgradable_schema(revision)
    if revision != newest_schema_revision():
        from alembic import command

        try:
            command.upgrade(alembic_configuration(url), "head")
        except DBAPIError as error:
            if sqlstate_of_error_or_empty(error) != LOCK_NOT_AVAILABLE_CODE:
                raise
            raise StartupProblem(
                f"Another program used the tables of the database for more than {MIGRATION_LOCK_SECONDS} seconds, so "
                "the schema could not be upgraded. Stop all other servers and commands of Easel and backups, then try "
                "again. Nothing was changed.",
                code="schema_in_use",
            ) from error


async def load_schema_revision_at_url_or_none(url: str) -> str | None:
    """Return the revision of the schema that the database at `url` has, if it has one."""
    engine = create_engine(url, pool_size=1, limits=SERVING_LIMITS)
    try:
        async with engine.connect() as connection:
            return await load_schema_revision_on_connection_or_none(connection)
    finally:
        await engine.dispose()


async def load_schema_revision_on_connection_or_none(connection: AsyncConnection) -> str | None:
    """Return the revision of the schema that a connection works on, if it has one."""
    if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = await connection.scalar(text("SELECT max(version_num) FROM alembic_version"))
    return revision


def schema_revisions_oldest_first() -> list[str]:
    """Return the revisions of all migrations, the oldest first. A migration's revision is the name of its file."""
    return sorted(path.stem for path in (MIGRATIONS_FOLDER / "versions").glob("*.py"))


def newest_schema_revision() -> str:
    return schema_revisions_oldest_first()[-1]


def require_upgradable_schema(revision: str | None) -> None:
    """Raise StartupProblem if a schema is too old to upgrade, or was made by a newer Easel, or not by Easel."""
    newest = newest_schema_revision()
    if revision is None or revision in (LAST_REVISION_OF_0_1, *schema_revisions_oldest_first()):
        return
    if re.fullmatch(r"\d{4}", revision) and "0000" < revision < LAST_REVISION_OF_0_1:
        raise StartupProblem(
            f"The schema of the database is at revision {revision}, of an early Easel 0.1. Upgrade it to the last "
            "0.1 release first, as docs/operators/upgrading.md shows, then start this version. Nothing was changed.",
            code="schema_too_old",
        )
    if re.fullmatch(r"\d{4}_\w+", revision) and revision > newest:
        raise StartupProblem(
            f"The schema of the database is at revision {revision}, and this Easel knows revisions up to {newest}: "
            "a newer Easel has upgraded it. Upgrade this one as well, or restore a backup from before the upgrade.",
            code="schema_too_new",
        )
    raise StartupProblem(
        f"The schema of the database is at revision {shorten_echo(revision)}, which no Easel up to {newest} "
        "has made. Check that this is Easel's database, or restore a backup.",
        code="schema_unknown",
    )


def require_newest_schema(revision: str | None) -> None:
    """Raise StartupProblem if a schema is not the one that this Easel works on."""
    require_upgradable_schema(revision)
    if revision != newest_schema_revision():
        raise StartupProblem(
            f"The schema of the database is at revision {revision or 'none'}, and this Easel needs "
            f"{newest_schema_revision()}. Run `{easel_command_to_type()} migrate` first.",
            code="schema_not_migrated",
        )
