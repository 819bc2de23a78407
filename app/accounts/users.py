"""Researchers, their login names and passwords. `roles` lists what they may do; `tokens` has the tokens of programs."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.roles import OWNER, ROLES
from app.database.account_tables import api_tokens, logins, one_time_logins, users
from app.database.audit_log import Actor, log_change
from app.errors import Conflict, Invalid, NotFound
from app.text.email_address import is_email_address

MAX_LOGIN_NAME_CHARACTERS = 64
LOGIN_NAME_PATTERN = re.compile(rf"[a-z0-9][a-z0-9._@+-]{{0,{MAX_LOGIN_NAME_CHARACTERS - 1}}}")


def normalize_typed_name(typed_name: str) -> str:
    """Return a login name as it is looked up: in lower case if it is plain ASCII. Other names stay as they are, since
    lower-casing can turn some letters into plain ones.
    """
    name = typed_name.strip()
    return name.lower() if name.isascii() else name


def normalize_login_name_or_refuse(typed_name: str) -> str:
    """Return a login name as it is stored: lower case, plain ASCII, so that no two look alike. Raises `Invalid`."""
    name = normalize_typed_name(typed_name)
    if not LOGIN_NAME_PATTERN.fullmatch(name):
        raise Invalid(
            "A login name must start with a letter or digit and use only the letters a to z, digits and . _ @ + - "
            "(64 characters at most).",
            code="user_name_invalid",
        )
    if "@" in name and not is_email_address(name):
        raise Invalid(
            f"“{name}” has an @, but is not an e-mail address such as ada@example.org. Use an address or another name.",
            code="user_name_invalid",
        )
    return name


async def fetch_user_by_name_or_none(connection: AsyncConnection, name: str) -> Row[Any] | None:
    """Return the researcher with this stored login name."""
    return (await connection.execute(select(users).where(users.c.name == name))).one_or_none()


async def load_user_or_refuse(connection: AsyncConnection, user_id: int) -> Row[Any]:
    """Return a researcher. Raises `NotFound` (`user_not_found`)."""
    row: Row[Any] | None = (await connection.execute(select(users).where(users.c.id == user_id))).one_or_none()
    if row is None:
        raise NotFound("This researcher has been removed.", code="user_not_found")
    return row


async def list_users(connection: AsyncConnection) -> Sequence[Row[Any]]:
    return (await connection.execute(select(users).order_by(users.c.name))).all()


def known_server_role_or_refuse(role: str) -> str:
    """Return the role. Raises `Invalid` (`role_unknown`)."""
    if role not in ROLES:
        raise Invalid(f"A role must be one of {', '.join(ROLES)}. Nothing was changed.", code="role_unknown")
    return role


async def insert_and_return_user_or_refuse(
    connection: AsyncConnection, raw_name: str, *, now: datetime, role: str = OWNER, is_self_registered: bool = False
) -> Row[Any]:
    """Add a researcher without a password. `is_self_registered` says whether they create the account themselves.

    Raises `Invalid` (`user_name_invalid`, `role_unknown`), `Conflict` (`user_exists`).
    """
    name = normalize_login_name_or_refuse(raw_name)
    statement = (
        upsert(users)
        .values(name=name, created_at=now, role=known_server_role_or_refuse(role))
        .on_conflict_do_nothing()
        .returning(users)
    )
    row: Row[Any] | None = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise Conflict(f"There is already a researcher “{name}”.", code="user_exists", name=name)
    if is_self_registered:
        await log_change(connection, "user.joined", new_values={"role": role}, actor=Actor(name, "page", row.id))
    else:
        await log_change(connection, "user.added", about=name, new_values={"role": role})
    return row


async def delete_user_unless_self_or_last_owner(
    connection: AsyncConnection, user_id: int, *, actor_id: int | None
) -> None:
    """Remove a researcher with their sessions and tokens. No one can remove themselves, so at least one always stays.

    Args:
        connection: The connection.
        user_id: The researcher.
        actor_id: Who removes them; None for a command.

    Raises `Conflict` (`own_account`, `last_owner`), `NotFound` (`user_not_found`).

    """
    if user_id == actor_id:
        raise Conflict("You cannot remove yourself. Ask another researcher to do it.", code="own_account")
    await require_another_server_owner(connection, user_id)
    statement = delete(users).where(users.c.id == user_id).returning(users.c.name)
    name = (await connection.execute(statement)).scalar_one_or_none()
    if name is None:
        raise NotFound("This researcher has already been removed.", code="user_not_found")
    await log_change(connection, "user.removed", about=name)


async def set_server_role_unless_last_owner(connection: AsyncConnection, user_id: int, role: str) -> None:
    """Change a researcher's role, from their next request on and that of their programs.

    Raises `Invalid` (`role_unknown`), `Conflict` (`last_owner`), `NotFound` (`user_not_found`).
    """
    if known_server_role_or_refuse(role) != OWNER:
        await require_another_server_owner(connection, user_id)
    before = await load_user_or_refuse(connection, user_id)
    await connection.execute(update(users).where(users.c.id == user_id).values(role=role))
    await log_change(
        connection, "user.role", about=before.name, old_values={"role": before.role}, new_values={"role": role}
    )


async def require_another_server_owner(connection: AsyncConnection, user_id: int) -> None:
    """Raise `Conflict` (`last_owner`) if the server has no other owner. The rows are locked, so that of two owners who
    demote or remove each other at once, one stays.
    """
    owners = select(users.c.id).where(users.c.role == OWNER).order_by(users.c.id).with_for_update()
    if (await connection.execute(owners)).scalars().all() == [user_id]:
        raise Conflict(
            "This is the last owner, and the server needs one. Nothing was changed. Make another researcher an "
            "owner first.",
            code="last_owner",
        )


async def store_password_and_end_other_sessions(
    connection: AsyncConnection,
    user_id: int,
    password_hash: str,
    *,
    kept_session_digest: bytes,
    revoke_tokens: bool = False,
) -> None:
    """Store a new password. It ends every other session of this user and their login links; if wished, their API tokens
    too.

    `kept_session_digest` is the digest of the session that asks. From now on that session needs the new password to
    change it again.
    """
    await connection.execute(update(users).where(users.c.id == user_id).values(password_hash=password_hash))
    await connection.execute(
        delete(logins).where(logins.c.user_id == user_id, logins.c.token_hash != kept_session_digest)
    )
    await connection.execute(update(logins).where(logins.c.token_hash == kept_session_digest).values(by_link_at=None))
    await connection.execute(delete(one_time_logins).where(one_time_logins.c.user_id == user_id))
    if revoke_tokens:
        await connection.execute(delete(api_tokens).where(api_tokens.c.user_id == user_id))
    after = {"tokens": "all revoked"} if revoke_tokens else None
    await log_change(connection, "user.password", about=await load_login_name(connection, user_id), new_values=after)


async def end_all_sessions(connection: AsyncConnection, user_id: int) -> None:
    """End all sessions of this user, and their unused login links."""
    await connection.execute(delete(logins).where(logins.c.user_id == user_id))
    await connection.execute(delete(one_time_logins).where(one_time_logins.c.user_id == user_id))
    await log_change(connection, "login.out_everywhere", about=await load_login_name(connection, user_id))


async def load_login_name(connection: AsyncConnection, user_id: int) -> str:
    """Return the login name of an existing researcher."""
    name: str = (await connection.execute(select(users.c.name).where(users.c.id == user_id))).scalar_one()
    return name


async def find_oldest_user_or_create_admin(connection: AsyncConnection, *, now: datetime) -> Row[Any]:
    """Return the oldest researcher; on a fresh installation `admin`, without a password."""
    oldest = select(users).order_by(users.c.id).limit(1)
    row: Row[Any] | None = (await connection.execute(oldest)).one_or_none()
    if row is None:
        # If two processes start at once, one inserts and the other waits for it and finds the row.
        await connection.execute(
            upsert(users).values(name="admin", created_at=now, role=OWNER).on_conflict_do_nothing()
        )
        row = (await connection.execute(oldest)).one()
    return row
