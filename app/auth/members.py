"""Members of a campaign: researchers with a role of their own there, beside those who have one for the whole server."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Label, Row, Text, delete, insert, null, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth.access import Access
from app.auth.roles import IN_CAMPAIGN, OWNER, stronger
from app.auth.users import find_user, typed_name
from app.database.account_tables import users
from app.database.audit_log import note
from app.database.sharing_tables import campaign_members
from app.database.tables import campaigns
from app.errors import Conflict, Invalid, NotFound, shortened

THEIRS = campaign_members.c


async def begin(connection: AsyncConnection, campaign_id: int, owner: int, *, now: datetime) -> None:
    """Whoever creates a campaign owns it."""
    values = {"campaign_id": campaign_id, "user_id": owner, "role": OWNER, "added_at": now}
    await connection.execute(insert(campaign_members).values(values))


def role_in(campaign_id: ColumnElement[int], who: Access | None) -> Label[str]:
    """SQL: somebody's role in a campaign, as `member`; NULL where they have none of their own."""
    if who is None:
        return null().cast(Text).label("member")
    theirs = select(THEIRS.role).where(THEIRS.campaign_id == campaign_id, THEIRS.user_id == who.user_id)
    return theirs.scalar_subquery().label("member")


async def listed(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """The members by their login names, each with `user_id`, `name`, `role`, `added_at`."""
    statement = select(campaign_members, users.c.name).join(users, users.c.id == THEIRS.user_id)
    return (await connection.execute(statement.where(THEIRS.campaign_id == campaign_id).order_by(users.c.name))).all()


def role_of_member(role: str) -> str:
    """Raises `Invalid` (`role_unknown`)."""
    if role not in IN_CAMPAIGN:
        raise Invalid(
            f"A role in a campaign is one of {', '.join(IN_CAMPAIGN)}. Nothing was changed.", code="role_unknown"
        )
    return role


async def add(connection: AsyncConnection, campaign: Row[Any], name: str, role: str, *, now: datetime) -> None:
    """Give a researcher of this server a role in a campaign.

    Raises `Invalid` (`role_unknown`), `NotFound` (`user_not_found`), `Conflict` (`already_member`).
    """
    known = role_of_member(role)
    user = await find_user(connection, typed_name(name))
    if user is None:
        raise NotFound(
            f"There is no researcher “{shortened(name.strip())}” on this server. Nothing was changed.",
            code="user_not_found",
        )
    if not await join(connection, campaign, user, known, now=now):
        raise Conflict(
            f"{user.name} is a member already. Nothing was changed. Give them another role in the table.",
            code="already_member",
        )


async def join(
    connection: AsyncConnection, campaign: Row[Any], user: Row[Any], role: str, *, now: datetime, invited: bool = False
) -> bool:
    """Make a researcher a member, or return False for a member. invited: whether they accepted an invitation, and were
    not added by the researcher who acts.
    """
    values = {"campaign_id": campaign.id, "user_id": user.id, "role": role, "added_at": now}
    statement = upsert(campaign_members).values(values).on_conflict_do_nothing().returning(THEIRS.user_id)
    if (await connection.execute(statement)).one_or_none() is None:
        return False
    if invited:
        await note(connection, "member.joined", campaign, after={"role": role})
    else:
        await note(connection, "member.added", campaign, about=user.name, after={"role": role})
    return True


async def raise_to(connection: AsyncConnection, campaign_id: int, user: Row[Any], role: str, *, now: datetime) -> None:
    """Make a researcher who accepted an invitation a member with this role, or with theirs if that gives more."""
    campaign = await campaign_of(connection, campaign_id)
    if campaign is not None and not await join(connection, campaign, user, role, now=now, invited=True):
        before = await member(connection, campaign, user.id)
        if stronger(before.role, role) != before.role:
            await set_role(connection, campaign, user.id, role)


async def campaign_of(connection: AsyncConnection, campaign_id: int | None) -> Row[Any] | None:
    """A campaign by its row's id."""
    return (await connection.execute(select(campaigns).where(campaigns.c.id == campaign_id))).one_or_none()


async def set_role(connection: AsyncConnection, campaign: Row[Any], user_id: int, role: str) -> None:
    """From their next request on, and that of their programs.

    Raises `Invalid` (`role_unknown`), `Conflict` (`last_owner`), `NotFound` (`member_not_found`).
    """
    if role_of_member(role) != OWNER:
        await keep_an_owner(connection, campaign, user_id)
    before = await member(connection, campaign, user_id)
    await connection.execute(update(campaign_members).where(*those(campaign, user_id)).values(role=role))
    was, now = {"role": before.role}, {"role": role}
    await note(connection, "member.role", campaign, about=before.name, before=was, after=now)


async def remove(connection: AsyncConnection, campaign: Row[Any], user_id: int) -> None:
    """End somebody's own role in a campaign. What their role for the server gives stays.

    Raises `Conflict` (`last_owner`), `NotFound` (`member_not_found`).
    """
    await keep_an_owner(connection, campaign, user_id)
    before = await member(connection, campaign, user_id)
    await connection.execute(delete(campaign_members).where(*those(campaign, user_id)))
    await note(connection, "member.removed", campaign, about=before.name, before={"role": before.role})


def those(campaign: Row[Any], user_id: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return THEIRS.campaign_id == campaign.id, THEIRS.user_id == user_id


async def member(connection: AsyncConnection, campaign: Row[Any], user_id: int) -> Row[Any]:
    """Held until the transaction ends. Raises `NotFound` (`member_not_found`)."""
    statement = select(campaign_members, users.c.name).join(users, users.c.id == THEIRS.user_id)
    held = statement.where(*those(campaign, user_id)).with_for_update(of=campaign_members, key_share=True)
    row: Row[Any] | None = (await connection.execute(held)).one_or_none()
    if row is None:
        raise NotFound("This researcher is no member of the campaign any more.", code="member_not_found")
    return row


async def keep_an_owner(connection: AsyncConnection, campaign: Row[Any], user_id: int) -> None:
    """Two owners who remove each other at once wait here for each other, and one stays. Raises `Conflict`
    (`last_owner`) when without this member there would be none.
    """
    owners = select(THEIRS.user_id).where(THEIRS.campaign_id == campaign.id, THEIRS.role == OWNER)
    held = owners.order_by(THEIRS.user_id).with_for_update(key_share=True)
    if (await connection.execute(held)).scalars().all() == [user_id]:
        raise Conflict(
            "This is the last owner of the campaign, and somebody has to be one. Nothing was changed. Make another "
            "member an owner first.",
            code="last_owner",
        )
