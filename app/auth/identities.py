"""Researchers who come by a provider of logins (OpenID Connect): whose account is whose."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth.openid import Told
from app.auth.users import add_user, find_user, name_of
from app.database.account_tables import identities, users
from app.database.audit_log import Actor, note
from app.errors import Conflict, Forbidden


async def user_of(
    connection: AsyncConnection, told: Told, *, domains: Collection[str], role: str, now: datetime
) -> Row[Any]:
    """The researcher whom a provider tells of. At first that is whose login name is their address of mail, if the
    provider has verified it; where the address is of one of these domains, a new researcher with this role.

    Raises `Forbidden` (`not_invited`), also for an account that somebody else of this provider has, and `Invalid`
    (`user_name_invalid`).
    """
    if (user := await known(connection, told)) is not None:
        return user
    if told.email is None:
        raise not_invited()
    user = await find_user(connection, told.email)
    if user is None and told.email.rpartition("@")[2] in domains:
        user = await add_user(connection, told.email, now=now, role=role)
    if user is None or not await put(connection, told, user.id, now=now):
        raise not_invited()
    return user


async def known(connection: AsyncConnection, told: Told) -> Row[Any] | None:
    """The researcher who came as this person before, or connected them to their account."""
    theirs = identities.c.issuer == told.issuer, identities.c.subject == told.subject
    statement = select(users).join(identities, identities.c.user_id == users.c.id).where(*theirs)
    return (await connection.execute(statement)).one_or_none()


async def connect(connection: AsyncConnection, told: Told, user_id: int, *, now: datetime) -> None:
    """Let a researcher log in as this person, too; sent again it changes nothing.

    Raises `Conflict` (`identity_taken`).
    """
    user = await known(connection, told)
    if user is not None and user.id == user_id:
        return
    if user is not None or not await put(connection, told, user_id, now=now):
        raise Conflict(
            "This login belongs to another account here, or yours is connected to another login. Nothing was changed.",
            code="identity_taken",
        )


async def put(connection: AsyncConnection, told: Told, user_id: int, *, now: datetime) -> bool:
    """Whether it is theirs now: of each provider an account has one person, and each person one account."""
    row = {"issuer": told.issuer, "subject": told.subject, "user_id": user_id, "connected_at": now}
    stored = upsert(identities).values(row).on_conflict_do_nothing().returning(identities.c.user_id)
    if (await connection.execute(stored)).one_or_none() is None:
        return False
    name = await name_of(connection, user_id)
    await note(connection, "login.connected", about=name, after={"issuer": told.issuer}, by=Actor(name, "page"))
    return True


async def is_connected(connection: AsyncConnection, user_id: int, issuer: str) -> bool:
    those = select(identities.c.subject).where(identities.c.user_id == user_id, identities.c.issuer == issuer)
    return (await connection.execute(those)).first() is not None


async def disconnect(connection: AsyncConnection, user_id: int, issuer: str) -> None:
    """They log in by name and password, or a login link, from now on."""
    gone = delete(identities).where(identities.c.user_id == user_id, identities.c.issuer == issuer)
    if (await connection.execute(gone)).rowcount:
        await note(connection, "login.disconnected", after={"issuer": issuer})


def not_invited() -> Forbidden:
    return Forbidden(
        "Nobody has let you in here yet. Ask whoever runs this server for an invitation, or connect this login on your "
        "account page if you have an account.",
        code="not_invited",
    )
