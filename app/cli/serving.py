"""`easel serve`, `easel migrate`, `easel login`."""

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import click

from app.cli.run_command import current_utc_time, given_or_likely_server_url, run_in_transaction


def make_server_option(name: str, click_type: Any) -> Callable[[Any], Any]:
    """Return an option that overrides one of `Settings`."""
    from app.settings import Settings

    return click.option(f"--{name}", type=click_type, help=Settings.model_fields[name].description)


@click.command()
@click.option("--demo", "with_demo", is_flag=True, help="Create a demo campaign with 150 verbs if there is none yet.")
@make_server_option("host", str)
@make_server_option("port", click.IntRange(0, 65535))
@make_server_option("workers", click.IntRange(1, 64))
def serve(*, with_demo: bool, **option_values: Any) -> None:
    """Start the server, and PostgreSQL with it unless DATABASE_URL is set."""
    from app.server.serve import run_server
    from app.settings import read_settings
    from app.unknown_settings import iterate_unknown_setting_sentences

    overrides = {name: value for name, value in option_values.items() if value is not None}
    for sentence in iterate_unknown_setting_sentences(os.environ):
        click.echo(f"easel: {sentence}", err=True)
    with suppress(KeyboardInterrupt):
        run_server(read_settings().model_copy(update=overrides), with_demo=with_demo)
    click.echo("Stopped.")


@click.command()
def migrate() -> None:
    """Upgrade the database to the newest schema."""
    from app.database.migrate import upgrade_schema
    from app.database.server_database import open_server_database_and_yield_url
    from app.settings import read_settings

    with open_server_database_and_yield_url(read_settings()) as url:
        upgrade_schema(url)
    click.echo("The database schema is up to date.")


@click.command()
@click.option("--url", help="Address of the server, if it is not the default.")
def login(url: str | None) -> None:
    """Print a new login link for researchers. It works once."""
    from app.accounts.login import create_one_time_login_and_return_secret, one_time_login_path
    from app.server.addresses import may_server_run_on_same_data
    from app.settings import read_settings

    is_served = may_server_run_on_same_data(read_settings())
    token = run_in_transaction(partial(create_one_time_login_and_return_secret, now=current_utc_time()))
    click.echo(given_or_likely_server_url(url) + one_time_login_path(token))
    if not is_served:
        click.echo("No Easel is running on this data folder; start it with `make run`.", err=True)
