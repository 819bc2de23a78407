"""Bring a database to the newest schema."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import text

from app.database.session import create_migrating_engine

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
    """Run all migrations that the database at `url` has not seen; must not be called from a running event loop."""
    if asyncio.run(revision_of(url)) != newest_revision():
        from alembic import command

        command.upgrade(configuration(url), "head")


async def revision_of(url: str) -> str | None:
    """Of the schema that the database at `url` has, if it has one."""
    engine = create_migrating_engine(url)
    try:
        async with engine.connect() as connection:
            if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
                return None
            found: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
            return found
    finally:
        await engine.dispose()


def newest_revision() -> str:
    """Of the last migration: their files are numbered in the order in which they run."""
    return max(path.stem for path in (ROOT / "migrations" / "versions").glob("*.py")).partition("_")[0]
