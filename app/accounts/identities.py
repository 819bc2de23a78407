"""Accounts of researchers who log in by a provider (OpenID Connect)."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.openid import IdentityClaims
from app.accounts.users import (
    fetch_user_by_name_or_none,
    insert_and_return_user_or_refuse,
    load_login_name,
    load_user_or_refuse,
)
from app.database.account_tables import identities, users
from app.database.audit_log import Actor, log_change
from app.errors import Conflict, Forbidden
from app.text.email_address import is_email_address


async def find_or_create_identity_user_or_refuse(
    connection: AsyncConnection, claims: IdentityClaims, *, domains: Collection[str], role: str, now: datetime
) -> Row[Any]:
    """Return the researcher of a provider's identity.

    At the first login this is the account whose login name is the identity's e-mail address. The provider must have
    verified the address, an owner must have made the account, and it must have no password: a person who accepts an
    invitation chooses name and password, and no one has verified that the name is theirs. If the address is of one of
    `domains`, a new researcher is created with `role`.

    Raises:
        Forbidden: `not_invited`, also if another identity of this provider has the account.
        Invalid: `user_name_invalid`.

    """
    if (user := await fetch_user_of_identity_or_none(connection, claims)) is not None:
        return user
    if claims.email is None or not is_email_address(claims.email):
        raise not_invited_error()
    user = await fetch_user_by_name_or_none(connection, claims.email)
    if user is None and claims.email.rpartition("@")[2] in domains:
        user = await insert_and_return_user_or_refuse(
            connection, claims.email, now=now, role=role, is_self_registered=True
        )
    if (
        user is None
        or user.password_hash is not None
        or not await try_connect_identity(connection, claims, user.id, now=now)
    ):
        raise not_invited_error()
    return user


async def fetch_user_of_identity_or_none(connection: AsyncConnection, claims: IdentityClaims) -> Row[Any] | None:
    """Return the researcher whose account is connected with this identity."""
    is_this_identity = identities.c.issuer == claims.issuer, identities.c.subject == claims.subject
    statement = select(users).join(identities, identities.c.user_id == users.c.id).where(*is_this_identity)
    return (await connection.execute(statement)).one_or_none()


async def connect_identity_or_refuse(
    connection: AsyncConnection, claims: IdentityClaims, user_id: int, *, now: datetime
) -> None:
    """Let a researcher log in with this identity too. Repeating it changes nothing.

    Raises `Conflict` (`identity_taken`).
    """
    user = await fetch_user_of_identity_or_none(connection, claims)
    if user is not None and user.id == user_id:
        return
    if user is not None or not await try_connect_identity(connection, claims, user_id, now=now):
        raise Conflict(
            "This login belongs to another account here, or yours is connected to another login. Nothing was changed.",
            code="identity_taken",
        )


async def try_connect_identity(
    connection: AsyncConnection, claims: IdentityClaims, user_id: int, *, now: datetime
) -> bool:
    """Connect the identity with the account and return whether that was possible: for each provider an account has one
    identity, and an identity one account.
    """
    row = {"issuer": claims.issuer, "subject": claims.subject, "user_id": user_id, "connected_at": now}
    stored = upsert(identities).values(row).on_conflict_do_nothing().returning(identities.c.user_id)
    if (await connection.execute(stored)).one_or_none() is None:
        return False
    name = await load_login_name(connection, user_id)
    await log_change(
        connection, "login.connected", about=name, new_values={"issuer": claims.issuer}, actor=Actor(name, "page")
    )
    return True


async def is_identity_connected(connection: AsyncConnection, user_id: int, issuer: str) -> bool:
    statement = select(identities.c.subject).where(identities.c.user_id == user_id, identities.c.issuer == issuer)
    return (await connection.execute(statement)).first() is not None


async def disconnect_identity_or_refuse(connection: AsyncConnection, user_id: int, issuer: str) -> None:
    """Disconnect the identity; the researcher logs in by password from now on. Raises `Conflict` (`no_password`) if
    they have none: they could not log in, or the next login would connect it again.
    """
    if (await load_user_or_refuse(connection, user_id)).password_hash is None:
        raise Conflict("Set a password first. Nothing was changed.", code="no_password")
    statement = delete(identities).where(identities.c.user_id == user_id, identities.c.issuer == issuer)
    if (await connection.execute(statement)).rowcount:
        await log_change(connection, "login.disconnected", new_values={"issuer": issuer})


def not_invited_error() -> Forbidden:
    return Forbidden(
        "No account here is connected to this login. If you have an account, log in by name and password and connect "
        "this login on your account page. Otherwise ask the owner of this server for an invitation.",
        code="not_invited",
    )
