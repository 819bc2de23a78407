"""`easel serve`, `easel migrate`, `easel login`."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import click

from app import server
from app.auth.login import create_one_time_login, one_time_login_path
from app.cli.running import base_of, in_transaction, now
from app.database.chosen import own_database
from app.database.migrate import upgrade
from app.settings import Settings, read_settings


def server_option(name: str, kind: Any) -> Callable[[Any], Any]:
    """An option for one of `Settings`, which it overrides."""
    return click.option(f"--{name}", type=kind, help=Settings.model_fields[name].description)


@click.command()
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


@click.command()
def migrate() -> None:
    """Bring the database to the newest schema."""
    with own_database(read_settings()) as url:
        upgrade(url)
    click.echo("The database has the newest schema.")


@click.command()
@click.option("--url", help="Where the server is reached, if not at its usual address.")
def login(url: str | None) -> None:
    """Print a fresh login link for researchers; it works once."""
    served = server.may_be_served(read_settings())
    token = in_transaction(partial(create_one_time_login, now=now()))
    click.echo(base_of(url) + one_time_login_path(token))
    if not served:
        click.echo("No Easel is running on this data folder; start it with `make run`.", err=True)
