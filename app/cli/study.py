"""`easel study ...`: a campaign's study on its platform."""

import click
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts.secrets import load_or_create_installation_key
from app.cli.run_command import current_utc_time, given_or_likely_server_url, run_with_engine
from app.payments.connections import ServiceConnector
from app.payments.token_encryption import TokenCipher
from app.recruiting.studies import draft_study
from app.settings import read_settings


@click.group()
def study() -> None:
    """Study of a campaign on its platform: make a draft from the campaign's settings and plan."""


@study.command("draft")
@click.argument("slug")
@click.option("--url", help="Address of the server, if it is not the default.")
def draft_study_of_campaign(slug: str, url: str | None) -> None:
    """Make an unpublished study on the platform. It costs nothing until it is published."""
    settings = read_settings()

    async def work(engine: AsyncEngine) -> str:
        if settings.secret_key is not None:
            key = settings.secret_key.get_secret_value()
        else:
            async with engine.begin() as connection:
                key = await load_or_create_installation_key(connection)
        connector = ServiceConnector(settings, TokenCipher(key))
        return await draft_study(engine, connector, slug, given_or_likely_server_url(url), now=current_utc_time())

    click.echo(f"Draft {run_with_engine(work)} created. It is not published yet.")
