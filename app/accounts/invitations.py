"""Invitations: a link that works once and admits a researcher to the server, or a member to a campaign."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts import members
from app.accounts.roles import MANAGE_PEOPLE, SHARE_CAMPAIGN, needs_granted_by_roles, stronger_role
from app.accounts.secrets import new_secret, secret_digest
from app.accounts.users import insert_and_return_user_or_refuse, known_server_role_or_refuse
from app.database.account_tables import users
from app.database.audit_log import CURRENT_ACTOR, Actor, log_change
from app.database.sharing_tables import campaign_members, invitations
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Gone, Invalid, NotFound

INVITATION_DAYS = 7
MAX_NOTE_CHARACTERS = 80
NEWCOMER_ROLE = "guest"  # role for the server of people invited to a campaign


async def create_invitation_and_return_token(
    connection: AsyncConnection,
    campaign: Campaign | None,
    role: str,
    note: str,
    *,
    inviter_id: int | None,
    now: datetime,
) -> str:
    """Create an invitation and delete expired ones.

    Args:
        connection: The connection, in a transaction.
        campaign: The campaign's row; None for the whole server.
        role: The role to give.
        note: Note about the invited person.
        inviter_id: Id of the researcher who invites; None on the command line.
        now: The present time.

    Returns:
        The secret of the link. Only its digest is stored.

    Raises:
        Invalid: `role_unknown`, `note_invalid`.

    """
    valid_role = known_server_role_or_refuse(role) if campaign is None else members.known_member_role_or_refuse(role)
    note = strip_note_or_refuse(note)
    await connection.execute(delete(invitations).where(invitations.c.expires_at <= now))
    token = new_secret()
    values = {
        "token_hash": secret_digest(token),
        "campaign_id": campaign and campaign.id,
        "role": valid_role,
        "words": note,
    }
    ends = {"invited_by": inviter_id, "created_at": now, "expires_at": now + timedelta(days=INVITATION_DAYS)}
    await connection.execute(insert(invitations).values(values | ends))
    await log_change(connection, "invitation.made", campaign, about=note, new_values={"role": valid_role})
    return token


def invitation_path(token: str) -> str:
    """Return the path of an invitation's link."""
    return f"/invitation?token={token}"


def strip_note_or_refuse(note: str) -> str:
    """Return the note without surrounding blanks. Raises `Invalid` (`note_invalid`)."""
    note = note.strip()
    if len(note) > MAX_NOTE_CHARACTERS or not note.isprintable():
        raise Invalid(f"A note must be one line of at most {MAX_NOTE_CHARACTERS} characters.", code="note_invalid")
    return note


async def list_open_invitations(
    connection: AsyncConnection, campaign_id: int | None, *, now: datetime
) -> Sequence[Row[Any]]:
    """Return open invitations, oldest first, each with `inviter`, a login name."""
    conditions = invitations.c.campaign_id.is_not_distinct_from(campaign_id), invitations.c.expires_at > now
    joined = invitations.outerjoin(users, users.c.id == invitations.c.invited_by)
    statement = select(invitations, users.c.name.label("inviter")).select_from(joined).where(*conditions)
    return (await connection.execute(statement.order_by(invitations.c.id))).all()


async def withdraw_invitation_or_refuse(
    connection: AsyncConnection, campaign: Campaign | None, invitation_number: int
) -> None:
    """Withdraw an invitation. Raises `NotFound` (`invitation_not_found`) if it was used or is for another campaign."""
    is_of_campaign = invitations.c.campaign_id.is_not_distinct_from(campaign.id if campaign else None)
    statement = (
        delete(invitations)
        .where(invitations.c.id == invitation_number, is_of_campaign)
        .returning(invitations.c.words, invitations.c.role)
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise NotFound("This invitation has been used or withdrawn, or has expired.", code="invitation_not_found")
    await log_change(connection, "invitation.withdrawn", campaign, about=row.words, old_values={"role": row.role})


async def load_open_invitation_or_refuse(connection: AsyncConnection, token: str, *, now: datetime) -> Row[Any]:
    """Return an invitation with its campaign's `slug` and `name`, if it has one, and the `inviter`.

    Raises `Gone` (`invitation_used`) if the invitation was used, is too old, was withdrawn or never existed, or if its
    inviter may not invite any more.
    """
    member_columns = campaign_members.c
    statement = (
        select(invitations, campaigns.c.slug, campaigns.c.name, users.c.name.label("inviter"))
        .add_columns(users.c.role.label("inviters_role"), member_columns.role.label("inviters_member"))
        .outerjoin(campaigns, campaigns.c.id == invitations.c.campaign_id)
        .outerjoin(users, users.c.id == invitations.c.invited_by)
        .outerjoin(
            campaign_members, (member_columns.campaign_id == campaigns.c.id) & (member_columns.user_id == users.c.id)
        )
        .where(invitations.c.token_hash == secret_digest(token), invitations.c.expires_at > now)
    )
    row = (await connection.execute(statement)).one_or_none()
    need = MANAGE_PEOPLE if row is None or row.campaign_id is None else SHARE_CAMPAIGN
    if row is None or (
        row.inviter is not None and need not in needs_granted_by_roles(row.inviters_role, row.inviters_member)
    ):
        raise invitation_used_error()
    return row


def invitation_used_error() -> Gone:
    return Gone(
        "This invitation has been used or withdrawn, or has expired. Ask for a new one.", code="invitation_used"
    )


async def redeem_invitation_or_refuse(connection: AsyncConnection, token: str, *, now: datetime) -> Row[Any]:
    """Use up an invitation and return it as `load_open_invitation_or_refuse` does. The database admits
    one of two concurrent requests.

    Raises `Gone` (`invitation_used`).
    """
    row = await load_open_invitation_or_refuse(connection, token, now=now)
    used = delete(invitations).where(invitations.c.id == row.id).returning(invitations.c.id)
    if (await connection.execute(used)).one_or_none() is None:
        raise invitation_used_error()
    return row


async def accept_invitation_and_return_it(
    connection: AsyncConnection, token: str, user: Row[Any], *, now: datetime
) -> Row[Any]:
    """Give a researcher the invitation's role, unless they have a stronger one. Return the invitation."""
    invitation = await redeem_invitation_or_refuse(connection, token, now=now)
    CURRENT_ACTOR.set(Actor(user.name, "page", user.id))
    if invitation.campaign_id is None:
        role = stronger_role(user.role, invitation.role)
        await connection.execute(update(users).where(users.c.id == user.id).values(role=role))
    else:
        await members.add_member_or_strengthen_role(connection, invitation.campaign_id, user, invitation.role, now=now)
    await log_invitation_accepted(connection, invitation, user)
    return invitation


async def accept_invitation_as_new_user_returning_both(
    connection: AsyncConnection, token: str, name: str, password_hash: str, *, now: datetime
) -> tuple[Row[Any], Row[Any]]:
    """Create a researcher with the invitation's role. Return the invitation and the researcher.

    Raises as `insert_and_return_user_or_refuse` does; the caller must then roll back, and the invitation stays valid.
    """
    invitation = await redeem_invitation_or_refuse(connection, token, now=now)
    role = invitation.role if invitation.campaign_id is None else NEWCOMER_ROLE
    user = await insert_and_return_user_or_refuse(connection, name, now=now, role=role, is_self_registered=True)
    CURRENT_ACTOR.set(Actor(user.name, "page", user.id))
    await connection.execute(update(users).where(users.c.id == user.id).values(password_hash=password_hash))
    if invitation.campaign_id is not None:
        await members.add_member_or_strengthen_role(connection, invitation.campaign_id, user, invitation.role, now=now)
    await log_invitation_accepted(connection, invitation, user)
    return invitation, user


async def log_invitation_accepted(connection: AsyncConnection, invitation: Row[Any], user: Row[Any]) -> None:
    """Write a line of the log: who accepted whose invitation, and what it was for."""
    campaign = await members.fetch_campaign_or_none(connection, invitation.campaign_id)
    facts = {"role": invitation.role, "for": invitation.words}
    actor = Actor(user.name, "page", user.id)
    await log_change(
        connection,
        "invitation.accepted",
        campaign,
        about=invitation.inviter or "command line",
        new_values=facts,
        actor=actor,
    )
