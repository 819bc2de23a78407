"""Invitations: a link by which somebody comes in once, as a researcher of the server or as a member of a campaign."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth import members
from app.auth.roles import MANAGE_PEOPLE, SHARE, grants, stronger
from app.auth.secret import digest, new_secret
from app.auth.users import add_user, known_role
from app.database.account_tables import users
from app.database.audit_log import ACTING, Actor, note
from app.database.sharing_tables import campaign_members, invitations
from app.database.tables import campaigns
from app.errors import Gone, Invalid, NotFound

INVITATION_DAYS = 7
LONGEST_NOTE = 80
NEWCOMER = "guest"  # of the server, whoever comes by an invitation to a campaign


async def make_invitation(
    connection: AsyncConnection, campaign: Row[Any] | None, role: str, words: str, *, by: int | None, now: datetime
) -> str:
    """The secret of a link, shown this once. campaign: None for the whole server. words: for whom it is. by: who
    invites, a row's id; None on the command line. Those that nobody followed in time are swept out on the way.

    Raises `Invalid` (`role_unknown`, `note_invalid`).
    """
    chosen = known_role(role) if campaign is None else members.role_of_member(role)
    words = noted_words(words)
    await connection.execute(delete(invitations).where(invitations.c.expires_at <= now))
    token = new_secret()
    values = {"token_hash": digest(token), "campaign_id": campaign and campaign.id, "role": chosen, "words": words}
    ends = {"invited_by": by, "created_at": now, "expires_at": now + timedelta(days=INVITATION_DAYS)}
    await connection.execute(insert(invitations).values(values | ends))
    await note(connection, "invitation.made", campaign, about=words, after={"role": chosen})
    return token


def path_of(token: str) -> str:
    """The address of an invitation, without the server's."""
    return f"/invitation?token={token}"


def noted_words(words: str) -> str:
    """A note for researchers. Raises `Invalid` (`note_invalid`)."""
    words = words.strip()
    if len(words) > LONGEST_NOTE or not words.isprintable():
        raise Invalid(f"A note is one line of at most {LONGEST_NOTE} characters.", code="note_invalid")
    return words


async def listed_invitations(
    connection: AsyncConnection, campaign_id: int | None, *, now: datetime
) -> Sequence[Row[Any]]:
    """Those that are open, oldest first, each with `inviter`, a login name."""
    those = invitations.c.campaign_id.is_not_distinct_from(campaign_id), invitations.c.expires_at > now
    joined = invitations.outerjoin(users, users.c.id == invitations.c.invited_by)
    statement = select(invitations, users.c.name.label("inviter")).select_from(joined).where(*those)
    return (await connection.execute(statement.order_by(invitations.c.id))).all()


async def withdraw_invitation(connection: AsyncConnection, campaign: Row[Any] | None, number: int) -> None:
    """Raises `NotFound` (`invitation_not_found`) for one that was used, or is to another campaign."""
    of = invitations.c.campaign_id.is_not_distinct_from(campaign.id if campaign else None)
    gone = delete(invitations).where(invitations.c.id == number, of).returning(invitations.c.words, invitations.c.role)
    row = (await connection.execute(gone)).one_or_none()
    if row is None:
        raise NotFound("This invitation was used, withdrawn or is too old.", code="invitation_not_found")
    await note(connection, "invitation.withdrawn", campaign, about=row.words, before={"role": row.role})


async def open_invitation(connection: AsyncConnection, token: str, *, now: datetime) -> Row[Any]:
    """An invitation with its campaign's `slug` and `name`, if it is to one, and the `inviter`.

    Raises `Gone` (`invitation_used`) when it was used, is too old, withdrawn, or never was, and when who made it may
    not invite any more.
    """
    theirs = campaign_members.c
    statement = (
        select(invitations, campaigns.c.slug, campaigns.c.name, users.c.name.label("inviter"))
        .add_columns(users.c.role.label("inviters_role"), theirs.role.label("inviters_member"))
        .outerjoin(campaigns, campaigns.c.id == invitations.c.campaign_id)
        .outerjoin(users, users.c.id == invitations.c.invited_by)
        .outerjoin(campaign_members, (theirs.campaign_id == campaigns.c.id) & (theirs.user_id == users.c.id))
        .where(invitations.c.token_hash == digest(token), invitations.c.expires_at > now)
    )
    row = (await connection.execute(statement)).one_or_none()
    need = MANAGE_PEOPLE if row is None or row.campaign_id is None else SHARE
    if row is None or (row.inviter is not None and need not in grants(row.inviters_role, row.inviters_member)):
        raise used_up()
    return row


def used_up() -> Gone:
    return Gone(
        "This invitation was used already, was withdrawn or is too old. Ask for another one.", code="invitation_used"
    )


async def redeem(connection: AsyncConnection, token: str, *, now: datetime) -> Row[Any]:
    """The invitation as `open_invitation` gives it, used up; of two that come at once the database lets one through.

    Raises `Gone` (`invitation_used`).
    """
    row = await open_invitation(connection, token, now=now)
    used = delete(invitations).where(invitations.c.id == row.id).returning(invitations.c.id)
    if (await connection.execute(used)).one_or_none() is None:
        raise used_up()
    return row


async def accept(connection: AsyncConnection, token: str, user: Row[Any], *, now: datetime) -> Row[Any]:
    """The invitation, whose role a researcher has from now on, unless they have one that gives more."""
    invitation = await redeem(connection, token, now=now)
    ACTING.set(Actor(user.name, "page", user.id))
    if invitation.campaign_id is None:
        role = stronger(user.role, invitation.role)
        await connection.execute(update(users).where(users.c.id == user.id).values(role=role))
    else:
        await members.raise_to(connection, invitation.campaign_id, user, invitation.role, now=now)
    await accepted(connection, invitation, user)
    return invitation


async def accept_as_new(
    connection: AsyncConnection, token: str, name: str, password_hash: str, *, now: datetime
) -> tuple[Row[Any], Row[Any]]:
    """The invitation, and a new researcher with its role.

    Raises what `add_user` raises; the caller's transaction must not be committed then, and the invitation stays.
    """
    invitation = await redeem(connection, token, now=now)
    role = invitation.role if invitation.campaign_id is None else NEWCOMER
    user = await add_user(connection, name, now=now, role=role, comes=True)
    ACTING.set(Actor(user.name, "page", user.id))
    await connection.execute(update(users).where(users.c.id == user.id).values(password_hash=password_hash))
    if invitation.campaign_id is not None:
        await members.raise_to(connection, invitation.campaign_id, user, invitation.role, now=now)
    await accepted(connection, invitation, user)
    return invitation, user


async def accepted(connection: AsyncConnection, invitation: Row[Any], user: Row[Any]) -> None:
    """Write a line of the log: who accepted whose invitation, and what it was for."""
    campaign = await members.campaign_of(connection, invitation.campaign_id)
    said = {"role": invitation.role, "for": invitation.words}
    by = Actor(user.name, "page", user.id)
    await note(
        connection, "invitation.accepted", campaign, about=invitation.inviter or "command line", after=said, by=by
    )
