"""The `easel` command: over the same functions that the web calls."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import click
import numpy as np
from sqlalchemy.ext.asyncio import AsyncEngine

from app import server
from app.auth.login import create_one_time_login, one_time_login_path
from app.cli.analysis import analyse
from app.cli.campaigns import campaign
from app.cli.results import export, verify
from app.cli.running import Commands, base_of, in_transaction, now, on_engine
from app.database.campaign import campaign_by_slug
from app.database.chosen import own_database
from app.database.migrate import upgrade
from app.settings import Settings, read_settings
from app.simulation.crowd import simulate as simulate_crowd

TRUTH_HELP = (
    "Column of your items with a number for each: what the made-up annotators believe, lowest number 0, highest 100. "
    "Default: random values."
)


@click.group(cls=Commands)
@click.version_option(package_name="easel", message="%(version)s")
def main() -> None:
    """Easel: crowdsourced scalar annotation with live posteriors.

    Every command works on the database that DATABASE_URL names, or on Easel's own.
    """


# The server


def server_option(name: str, kind: Any) -> Callable[[Any], Any]:
    """An option for one of `Settings`, which it overrides."""
    return click.option(f"--{name}", type=kind, help=Settings.model_fields[name].description)


@main.command()
@click.option("--demo", "with_demo", is_flag=True, help="Make a demo campaign of 150 verbs, if there is none yet.")
@server_option("host", str)
@server_option("port", click.IntRange(0, 65535))
@server_option("workers", click.IntRange(1, 64))
def serve(*, with_demo: bool, **given: Any) -> None:
    """Start the server, and PostgreSQL with it unless DATABASE_URL is set."""
    chosen = {name: value for name, value in given.items() if value is not None}
    with suppress(KeyboardInterrupt):
        server.serve(read_settings().model_copy(update=chosen), with_demo=with_demo)
    click.echo("Stopped.")


@main.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    with own_database(read_settings()) as url:
        upgrade(url)
    click.echo("The database has the newest schema.")


@main.command()
@click.option("--url", help="Where the server is reached, if not at its usual address.")
def login(url: str | None) -> None:
    """Print a fresh login link for researchers; it works once."""
    served = server.may_be_served(read_settings())
    token = in_transaction(partial(create_one_time_login, now=now()))
    click.echo(base_of(url) + one_time_login_path(token))
    if not served:
        click.echo("No Easel is running on this data folder; start it with `make run`.", err=True)


# Rehearsal


@main.command()
@click.argument("slug")
@click.option("--hits", type=click.IntRange(1), default=100, show_default=True, help="HITs to answer at most.")
@click.option("--annotators", type=click.IntRange(1), default=12, show_default=True, help="How many take part.")
@click.option("--noise", type=click.FloatRange(0, 1), default=0.1, show_default=True, help="Their error, on 0 to 1.")
@click.option("--truth", "truth_column", metavar="COLUMN", help=TRUTH_HELP)
@click.option("--pace", type=click.FloatRange(0), default=0.1, show_default=True, help="Seconds between answers.")
@click.option("--seed", type=click.IntRange(0), default=2018, show_default=True, help="Start of their random choices.")
def simulate(slug: str, pace: float, seed: int, **crowd: Any) -> None:
    """Let made-up annotators answer a campaign that no person has answered: to rehearse it, or to see it live."""

    async def work(engine: AsyncEngine) -> int:
        async with engine.begin() as connection:
            found = await campaign_by_slug(connection, slug)
        rng = np.random.default_rng(seed)
        return await simulate_crowd(engine, found, rng=rng, clock=now, answered=partial(asyncio.sleep, pace), **crowd)

    click.echo(f"Made-up annotators answered {on_engine(work):,} HITs of {slug}.")


for _command in (campaign, analyse, verify, export):
    main.add_command(_command)
