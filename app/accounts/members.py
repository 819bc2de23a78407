"""Members of a campaign: researchers with a role of their own there, in addition to their role for the server."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Label, Row, Text, delete, insert, null, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.access import SHARING_CAMPAIGN_ID, Access
from app.accounts.roles import NEEDS_BY_CAMPAIGN_ROLE, OWNER, stronger_role
from app.accounts.users import fetch_user_by_name_or_none, normalize_typed_name
from app.database.account_tables import users
from app.database.audit_log import log_change
from app.database.sharing_tables import campaign_members
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, shorten_echo

MEMBER_COLUMNS = campaign_members.c


async def insert_campaign_owner(connection: AsyncConnection, campaign_id: int, owner_id: int, *, now: datetime) -> None:
    """Make the researcher who creates a campaign its owner."""
    values = {"campaign_id": campaign_id, "user_id": owner_id, "role": OWNER, "added_at": now}
    await connection.execute(insert(campaign_members).values(values))


def member_role_sql(campaign_id: ColumnElement[int], access: Access | None) -> Label[str]:
    """Return SQL for the researcher's role in a campaign, as `member`; NULL without a role of their own."""
    if access is None:
        return null().cast(Text).label("member")
    role_query = select(MEMBER_COLUMNS.role).where(
        MEMBER_COLUMNS.campaign_id == campaign_id, MEMBER_COLUMNS.user_id == access.user_id
    )
    return role_query.scalar_subquery().label("member")


async def load_members_in_name_order(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return the members by login name, each with `user_id`, `name`, `role`, `added_at`."""
    statement = select(campaign_members, users.c.name).join(users, users.c.id == MEMBER_COLUMNS.user_id)
    return (
        await connection.execute(statement.where(MEMBER_COLUMNS.campaign_id == campaign_id).order_by(users.c.name))
    ).all()


async def load_names_of_owners(connection: AsyncConnection, slug: str) -> list[str]:
    """Return the login names of a campaign's owners, by name; for a rehearsal, those of its campaign."""
    statement = (
        select(users.c.name)
        .join(campaign_members, users.c.id == MEMBER_COLUMNS.user_id)
        .join(campaigns, MEMBER_COLUMNS.campaign_id == SHARING_CAMPAIGN_ID)
        .where(campaigns.c.slug == slug, MEMBER_COLUMNS.role == OWNER)
        .order_by(users.c.name)
    )
    return list(await connection.scalars(statement))


def known_member_role_or_refuse(role: str) -> str:
    """Return the role. Raises `Invalid` (`role_unknown`)."""
    if role not in NEEDS_BY_CAMPAIGN_ROLE:
        raise Invalid(
            f"A role in a campaign must be one of {', '.join(NEEDS_BY_CAMPAIGN_ROLE)}. Nothing was changed.",
            code="role_unknown",
        )
    return role


async def add_member_or_refuse(
    connection: AsyncConnection, campaign: Campaign, name: str, role: str, *, now: datetime
) -> None:
    """Give a researcher of this server a role in a campaign.

    Raises `Invalid` (`role_unknown`), `NotFound` (`user_not_found`), `Conflict` (`already_member`).
    """
    valid_role = known_member_role_or_refuse(role)
    user = await fetch_user_by_name_or_none(connection, normalize_typed_name(name))
    if user is None:
        raise NotFound(
            f"There is no researcher “{shorten_echo(name.strip())}” on this server. Nothing was changed.",
            code="user_not_found",
        )
    if not await try_to_insert_member(connection, campaign, user, valid_role, now=now):
        raise Conflict(
            f"{user.name} is already a member. Nothing was changed. You can change their role in the table.",
            code="already_member",
        )


async def try_to_insert_member(
    connection: AsyncConnection,
    campaign: Campaign,
    user: Row[Any],
    role: str,
    *,
    now: datetime,
    was_invited: bool = False,
) -> bool:
    """Make a researcher a member; return False if they are one already. `was_invited` says whether they accepted an
    invitation or were added by the researcher who acts.
    """
    values = {"campaign_id": campaign.id, "user_id": user.id, "role": role, "added_at": now}
    statement = upsert(campaign_members).values(values).on_conflict_do_nothing().returning(MEMBER_COLUMNS.user_id)
    if (await connection.execute(statement)).one_or_none() is None:
        return False
    if was_invited:
        await log_change(connection, "member.joined", campaign, new_values={"role": role})
    else:
        await log_change(connection, "member.added", campaign, about=user.name, new_values={"role": role})
    return True


async def add_member_or_strengthen_role(
    connection: AsyncConnection, campaign_id: int, user: Row[Any], role: str, *, now: datetime
) -> None:
    """Give a researcher who accepted an invitation this role, unless they have a stronger one."""
    campaign = await fetch_campaign_or_none(connection, campaign_id)
    if campaign is not None and not await try_to_insert_member(
        connection, campaign, user, role, now=now, was_invited=True
    ):
        before = await lock_and_load_member_or_refuse(connection, campaign, user.id)
        if stronger_role(before.role, role) != before.role:
            await set_member_role_unless_last_owner(connection, campaign, user.id, role)


async def fetch_campaign_or_none(connection: AsyncConnection, campaign_id: int | None) -> Campaign | None:
    rows = await connection.execute(select(campaigns).where(campaigns.c.id == campaign_id))
    columns = rows.mappings().one_or_none()
    return None if columns is None else Campaign.from_columns(columns)


async def set_member_role_unless_last_owner(
    connection: AsyncConnection, campaign: Campaign, user_id: int, role: str
) -> None:
    """Change a member's role, from their next request on and that of their programs.

    Raises `Invalid` (`role_unknown`), `Conflict` (`last_owner`), `NotFound` (`member_not_found`).
    """
    if known_member_role_or_refuse(role) != OWNER:
        await require_another_campaign_owner(connection, campaign, user_id)
    before = await lock_and_load_member_or_refuse(connection, campaign, user_id)
    await connection.execute(
        update(campaign_members).where(*campaign_and_user_sql_conditions(campaign, user_id)).values(role=role)
    )
    old_facts, new_facts = {"role": before.role}, {"role": role}
    await log_change(connection, "member.role", campaign, about=before.name, old_values=old_facts, new_values=new_facts)


async def remove_member_unless_last_owner(connection: AsyncConnection, campaign: Campaign, user_id: int) -> None:
    """Remove a member from a campaign. Their role for the server stays.

    Raises `Conflict` (`last_owner`), `NotFound` (`member_not_found`).
    """
    await require_another_campaign_owner(connection, campaign, user_id)
    before = await lock_and_load_member_or_refuse(connection, campaign, user_id)
    await connection.execute(delete(campaign_members).where(*campaign_and_user_sql_conditions(campaign, user_id)))
    await log_change(connection, "member.removed", campaign, about=before.name, old_values={"role": before.role})


def campaign_and_user_sql_conditions(
    campaign: Campaign, user_id: int
) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return MEMBER_COLUMNS.campaign_id == campaign.id, MEMBER_COLUMNS.user_id == user_id


async def lock_and_load_member_or_refuse(connection: AsyncConnection, campaign: Campaign, user_id: int) -> Row[Any]:
    """Return a member, locked until the transaction ends. Raises `NotFound` (`member_not_found`)."""
    statement = select(campaign_members, users.c.name).join(users, users.c.id == MEMBER_COLUMNS.user_id)
    locking_statement = statement.where(*campaign_and_user_sql_conditions(campaign, user_id)).with_for_update(
        of=campaign_members, key_share=True
    )
    row: Row[Any] | None = (await connection.execute(locking_statement)).one_or_none()
    if row is None:
        raise NotFound("This researcher is no longer a member of the campaign.", code="member_not_found")
    return row


async def require_another_campaign_owner(connection: AsyncConnection, campaign: Campaign, user_id: int) -> None:
    """Raise `Conflict` (`last_owner`) if the campaign has no other owner. The rows are locked, so that of two owners
    who remove each other at once, one stays.
    """
    owners = select(MEMBER_COLUMNS.user_id).where(
        MEMBER_COLUMNS.campaign_id == campaign.id, MEMBER_COLUMNS.role == OWNER
    )
    locking_statement = owners.order_by(MEMBER_COLUMNS.user_id).with_for_update(key_share=True)
    if (await connection.execute(locking_statement)).scalars().all() == [user_id]:
        raise Conflict(
            "This is the last owner of the campaign, and a campaign needs one. Nothing was changed. Make another "
            "member an owner first.",
            code="last_owner",
        )
