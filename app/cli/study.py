"""`easel study ...`: a campaign's study on its platform."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.cli.command_group import CommandGroup
from app.cli.run_command import current_utc_time, given_or_likely_server_url, run_with_engine

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncEngine

    from app.payments.connections import ServiceConnector

url_option = click.option("--url", help="Address of the server, if it is not the default.")


async def load_service_connector(engine: AsyncEngine) -> ServiceConnector:
    """Return what calls platforms with the tokens that are stored in the database."""
    from app.accounts.secrets import load_or_create_installation_key
    from app.payments.connections import ServiceConnector
    from app.payments.token_encryption import TokenCipher
    from app.settings import read_settings

    settings = read_settings()
    if settings.secret_key is not None:
        key = settings.secret_key.get_secret_value()
    else:
        async with engine.begin() as connection:
            key = await load_or_create_installation_key(connection)
    return ServiceConnector(settings, TokenCipher(key))


@click.group(cls=CommandGroup)
def study() -> None:
    """Study of a campaign on its platform: make a draft from the campaign's settings and plan, and test it."""


@study.command("draft")
@click.argument("slug")
@url_option
def draft_study_of_campaign(slug: str, url: str | None) -> None:
    """Make an unpublished study on the platform. It costs nothing until it is published."""
    from app.recruiting.studies import draft_study_and_return_id_or_refuse

    async def work(engine: AsyncEngine) -> str:
        connector = await load_service_connector(engine)
        return await draft_study_and_return_id_or_refuse(
            engine, connector, slug, given_or_likely_server_url(url), now=current_utc_time()
        )

    click.echo(f"Draft {run_with_engine(work)} created. It is not published yet.")


@study.command("test")
@click.argument("slug")
@click.option("--email", default="", help="First add a test participant with this e-mail address.")
def create_test_study_and_print_address(slug: str, email: str) -> None:
    """Make a test study of the draft, on which a test participant works without pay, and print its address."""
    from app.recruiting.study_trial import create_test_study_of_campaign_or_refuse

    async def work(engine: AsyncEngine) -> str:
        connector = await load_service_connector(engine)
        return (await create_test_study_of_campaign_or_refuse(engine, connector, slug, email=email)).url

    click.echo(run_with_engine(work))
