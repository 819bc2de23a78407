"""`easel people ...`: researchers of the server, members of a campaign, and invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.accounts.roles import MEMBER, NEEDS_BY_CAMPAIGN_ROLE, NEEDS_BY_SCOPE, ROLES, VIEWER
from app.cli.command_group import CommandGroup
from app.cli.run_command import (
    current_utc_time,
    given_or_likely_server_url,
    json_option,
    print_json,
    run_in_transaction,
)
from app.cli.text_table import print_text_table
from app.errors import NotFound, shorten_echo

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection


@click.group(cls=CommandGroup)
def people() -> None:
    """Researchers of the server and members of campaigns: who may do what, and invitations."""


@people.command("list")
@click.argument("slug", required=False)
@json_option
def print_people(slug: str | None, *, as_json: bool) -> None:
    """List the researchers of the server or, with a SLUG, the members of that campaign, with their roles."""
    from app.accounts import members, users
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> list[tuple[str, str]]:
        if slug is None:
            return [(row.name, row.role) for row in await users.list_users(connection)]
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        return [(row.name, row.role) for row in await members.load_members_in_name_order(connection, campaign.id)]

    names_and_roles = run_in_transaction(work)
    if as_json:
        print_json([{"name": name, "role": role} for name, role in names_and_roles])
    elif names_and_roles:
        print_text_table(["Name", "Role"], names_and_roles, right_columns=())
    else:
        click.echo("No one yet.")


@people.command("invite")
@click.argument("slug", required=False)
@click.option(
    "--role", type=click.Choice(ROLES), help="Role of the invited person. Default: member, or viewer in a campaign."
)
@click.option("--for", "words", default="", help="A note for the list of invitations, such as a name.")
@click.option("--url", help="Address of the server, if it is not the default.")
def create_and_print_invitation_link(slug: str | None, *, role: str | None, words: str, url: str | None) -> None:
    """Print an invitation link to the server or, with a SLUG, to that campaign. It works once."""
    from app.accounts import invitations
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> str:
        campaign = None if slug is None else await load_campaign_by_slug_or_refuse(connection, slug)
        chosen = role or (MEMBER if campaign is None else VIEWER)
        return await invitations.create_invitation_and_return_token(
            connection, campaign, chosen, words, inviter_id=None, now=current_utc_time()
        )

    click.echo(f"{given_or_likely_server_url(url)}{invitations.invitation_path(run_in_transaction(work))}")


@people.command("share")
@click.argument("slug")
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(list(NEEDS_BY_CAMPAIGN_ROLE)),
    default=VIEWER,
    show_default=True,
    help="Role in the campaign.",
)
def share_campaign_with_researcher(slug: str, name: str, *, role: str) -> None:
    """Share a campaign with the researcher NAME, or give them another role there."""
    from app.accounts import members
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> None:
        campaign, user_id = (
            await load_campaign_by_slug_or_refuse(connection, slug),
            await find_user_id_of_name_or_refuse(connection, name),
        )
        if user_id in [row.user_id for row in await members.load_members_in_name_order(connection, campaign.id)]:
            await members.set_member_role_unless_last_owner(connection, campaign, user_id, role)
        else:
            await members.add_member_or_refuse(connection, campaign, name, role, now=current_utc_time())

    run_in_transaction(work)
    click.echo(f"{name} is {role} of {slug}.")


@people.command("unshare")
@click.argument("slug")
@click.argument("name")
def stop_sharing_campaign(slug: str, name: str) -> None:
    """Stop sharing a campaign with the researcher NAME."""
    from app.accounts import members
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> None:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        await members.remove_member_unless_last_owner(
            connection, campaign, await find_user_id_of_name_or_refuse(connection, name)
        )

    run_in_transaction(work)
    click.echo(f"{name} no longer has a separate role in {slug}.")


@people.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
def change_server_role(name: str, role: str) -> None:
    """Give the researcher NAME another role for the whole server."""
    from app.accounts import users

    async def work(connection: AsyncConnection) -> None:
        await users.set_server_role_unless_last_owner(
            connection, await find_user_id_of_name_or_refuse(connection, name), role
        )

    run_in_transaction(work)
    click.echo(f"{name} is {role} of this server.")


@people.command("remove")
@click.argument("name")
def remove_researcher(name: str) -> None:
    """Remove the researcher NAME from the server, with their sessions and API tokens. Campaigns stay."""
    from app.accounts import users

    async def work(connection: AsyncConnection) -> None:
        user_id = await find_user_id_of_name_or_refuse(connection, name)
        await users.delete_user_unless_self_or_last_owner(connection, user_id, actor_id=None)

    run_in_transaction(work)
    click.echo(f"{name} is no longer a researcher of this server.")


@people.command("token")
@click.argument("name")
@click.argument("token_name")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(list(NEEDS_BY_SCOPE)),
    multiple=True,
    required=True,
    help="What the token may do. Repeat the option for several scopes.",
)
@click.option("--campaign", "slug", help="Slug of the only campaign that the token is for. Default: all campaigns.")
def print_api_token(name: str, token_name: str, *, scopes: tuple[str, ...], slug: str | None) -> None:
    """Print a new API token with the rights of the researcher NAME. TOKEN_NAME says what it is for.

    Easel stores only its digest. The account page of the researcher lists it, and revokes it.
    """
    from app.accounts.tokens import issue_token_or_refuse
    from app.record.campaign import load_campaign_by_slug_or_refuse

    async def work(connection: AsyncConnection) -> str:
        user_id = await find_user_id_of_name_or_refuse(connection, name)
        campaign = None if slug is None else await load_campaign_by_slug_or_refuse(connection, slug)
        return await issue_token_or_refuse(
            connection, user_id, token_name, now=current_utc_time(), scopes=scopes, campaign=campaign
        )

    click.echo(run_in_transaction(work))


async def find_user_id_of_name_or_refuse(connection: AsyncConnection, name: str) -> int:
    """Return the id of a researcher.

    Raises:
        NotFound: `user_not_found`.

    """
    from app.accounts import users

    user = await users.fetch_user_by_name_or_none(connection, users.normalize_typed_name(name))
    if user is None:
        raise NotFound(f"There is no researcher “{shorten_echo(name)}”. Nothing was changed.", code="user_not_found")
    return int(user.id)
