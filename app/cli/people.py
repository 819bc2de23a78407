"""`easel people ...`: researchers of the server, members of a campaign, and invitations."""

import click
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth import invitations, members, users
from app.auth.roles import IN_CAMPAIGN, MEMBER, ROLES, VIEWER
from app.cli.layout import aligned, terminal_width
from app.cli.running import as_json, base_of, in_transaction, now, show_json
from app.database.campaign import campaign_by_slug
from app.errors import NotFound, shortened


@click.group()
def people() -> None:
    """Researchers of the server and members of campaigns: who may do what, and invitations."""


@people.command("list")
@click.argument("slug", required=False)
@as_json
def list_(slug: str | None, *, as_json: bool) -> None:
    """The researchers of the server with their roles; with a SLUG, the members of that campaign."""

    async def work(connection: AsyncConnection) -> list[tuple[str, str]]:
        if slug is None:
            return [(row.name, row.role) for row in await users.listed_users(connection)]
        campaign = await campaign_by_slug(connection, slug)
        return [(row.name, row.role) for row in await members.listed(connection, campaign.id)]

    found = in_transaction(work)
    if as_json:
        show_json([{"name": name, "role": role} for name, role in found])
    elif found:
        click.echo("\n".join(aligned(["Name", "Role"], found, right=(), width=terminal_width())))
    else:
        click.echo("Nobody yet.")


@people.command()
@click.argument("slug", required=False)
@click.option("--role", type=click.Choice(ROLES), help="member, or viewer in a campaign, unless you choose another.")
@click.option("--for", "words", default="", help="A note for the list of invitations, such as a name.")
@click.option("--url", help="Where the server is reached, if not at its usual address.")
def invite(slug: str | None, *, role: str | None, words: str, url: str | None) -> None:
    """Print an invitation to the server, or with a SLUG to that campaign. It works once."""

    async def work(connection: AsyncConnection) -> str:
        campaign = None if slug is None else await campaign_by_slug(connection, slug)
        chosen = role or (MEMBER if campaign is None else VIEWER)
        return await invitations.make_invitation(connection, campaign, chosen, words, by=None, now=now())

    click.echo(f"{base_of(url)}{invitations.path_of(in_transaction(work))}")


@people.command()
@click.argument("slug")
@click.argument("name")
@click.option(
    "--role", type=click.Choice(list(IN_CAMPAIGN)), default=VIEWER, show_default=True, help="In the campaign."
)
def share(slug: str, name: str, *, role: str) -> None:
    """Share a campaign with the researcher NAME, or give them another role there."""

    async def work(connection: AsyncConnection) -> None:
        campaign, user_id = await campaign_by_slug(connection, slug), await id_of(connection, name)
        if user_id in [row.user_id for row in await members.listed(connection, campaign.id)]:
            await members.set_role(connection, campaign, user_id, role)
        else:
            await members.add(connection, campaign, name, role, now=now())

    in_transaction(work)
    click.echo(f"{name} is {role} of {slug}.")


@people.command()
@click.argument("slug")
@click.argument("name")
def unshare(slug: str, name: str) -> None:
    """End the role of the researcher NAME in a campaign."""

    async def work(connection: AsyncConnection) -> None:
        campaign = await campaign_by_slug(connection, slug)
        await members.remove(connection, campaign, await id_of(connection, name))

    in_transaction(work)
    click.echo(f"{name} has no role of their own in {slug} any more.")


@people.command("role")
@click.argument("name")
@click.argument("role", type=click.Choice(ROLES))
def role_on_server(name: str, role: str) -> None:
    """Give the researcher NAME another role for the whole server."""

    async def work(connection: AsyncConnection) -> None:
        await users.set_role(connection, await id_of(connection, name), role)

    in_transaction(work)
    click.echo(f"{name} is {role} of this server.")


async def id_of(connection: AsyncConnection, name: str) -> int:
    """Raises `NotFound` (`user_not_found`)."""
    user = await users.find_user(connection, users.typed_name(name))
    if user is None:
        raise NotFound(f"There is no researcher “{shortened(name)}”. Nothing was changed.", code="user_not_found")
    return int(user.id)
