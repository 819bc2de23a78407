"""Bring a database to the newest schema."""

from pathlib import Path

from alembic import command
from alembic.config import Config

ROOT = Path(__file__).resolve().parents[2]


def configuration(url: str) -> Config:
    """Alembic's configuration for the database at `url`."""
    config = Config(toml_file=str(ROOT / "pyproject.toml"))
    config.set_main_option("script_location", str(ROOT / "migrations"))
    config.attributes["url"] = url
    return config


def upgrade(url: str) -> None:
    """Run all migrations that the database at `url` has not seen; must not be called from a running event loop."""
    command.upgrade(configuration(url), "head")
