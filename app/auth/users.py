"""Researchers: who they are, their passwords, and the tokens of their programs. What they may do is in `roles`."""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Row, delete, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.auth.roles import OWNER, ROLES
from app.auth.secret import digest, new_secret
from app.database.account_tables import api_tokens, logins, one_time_logins, users
from app.database.audit_log import note
from app.database.session import Driver, Record, execute, fetch_one
from app.errors import Conflict, Invalid, NotFound, Unauthenticated

LONGEST_NAME = 64
NAME = re.compile(rf"[a-z0-9][a-z0-9._@+-]{{0,{LONGEST_NAME - 1}}}")
LONGEST_TOKEN_NAME = 80
FIND_TOKEN = text("""
    SELECT t.id AS token_id, t.user_id, t.last_used_at, u.name AS user_name, u.role
    FROM api_tokens t JOIN users u ON u.id = t.user_id WHERE t.token_hash = :token_hash
""")


class TokenUse(Record):
    """Whose API token it is, and what role they have now."""

    token_id: int
    user_id: int
    role: str
    last_used_at: datetime | None


class NamedTokenUse(TokenUse):
    """And that user's login name."""

    user_name: str


T = TypeVar("T", bound=TokenUse)

# Of many requests at once one writes, and the others do not wait for it.
NOTE_USE = text("""
    UPDATE api_tokens SET last_used_at = :now, last_used_from = :address
    WHERE id = (SELECT id FROM api_tokens WHERE id = :token AND (last_used_at IS NULL OR last_used_at < :stale)
                FOR NO KEY UPDATE SKIP LOCKED)
""")

TOKEN_NOTED_MINUTES = 1  # a use is written down at most this often, so that reading costs no write


def user_name(raw: str) -> str:
    """A login name as it is stored: lower case, plain ASCII, so that no two look alike. Raises `Invalid`."""
    name = raw.strip().lower()
    if not NAME.fullmatch(name):
        raise Invalid(
            "A login name begins with a letter or digit and has only letters a to z, digits and . _ @ + - "
            "(64 characters at most).",
            code="user_name_invalid",
        )
    return name


async def find_user(connection: AsyncConnection, name: str) -> Row[Any] | None:
    """The researcher whose stored login name this is."""
    return (await connection.execute(select(users).where(users.c.name == name))).one_or_none()


async def get_user(connection: AsyncConnection, user_id: int) -> Row[Any]:
    """Raises `NotFound` (`user_not_found`)."""
    row: Row[Any] | None = (await connection.execute(select(users).where(users.c.id == user_id))).one_or_none()
    if row is None:
        raise NotFound("This researcher has been removed.", code="user_not_found")
    return row


async def listed_users(connection: AsyncConnection) -> Sequence[Row[Any]]:
    return (await connection.execute(select(users).order_by(users.c.name))).all()


def known_role(role: str) -> str:
    """Raises `Invalid` (`role_unknown`)."""
    if role not in ROLES:
        raise Invalid(f"A role is one of {', '.join(ROLES)}. Nothing was changed.", code="role_unknown")
    return role


async def add_user(connection: AsyncConnection, raw_name: str, *, now: datetime, role: str = OWNER) -> Row[Any]:
    """A researcher who has no password yet.

    Raises `Invalid` (`user_name_invalid`, `role_unknown`), `Conflict` (`user_exists`).
    """
    name = user_name(raw_name)
    statement = (
        upsert(users).values(name=name, created_at=now, role=known_role(role)).on_conflict_do_nothing().returning(users)
    )
    row: Row[Any] | None = (await connection.execute(statement)).one_or_none()
    if row is None:
        raise Conflict(f"There is already a researcher “{name}”.", code="user_exists", name=name)
    await note(connection, "user.added", about=name, after={"role": role})
    return row


async def remove_user(connection: AsyncConnection, user_id: int, *, by: int) -> None:
    """End someone's access, with their sessions and tokens. Nobody removes themselves, so somebody always stays.

    Raises `Conflict` (`own_account`, `last_owner`), `NotFound` (`user_not_found`).
    """
    if user_id == by:
        raise Conflict("You cannot remove yourself. Ask another researcher to do it.", code="own_account")
    await keep_an_owner(connection, user_id)
    statement = delete(users).where(users.c.id == user_id).returning(users.c.name)
    name = (await connection.execute(statement)).scalar_one_or_none()
    if name is None:
        raise NotFound("This researcher has already been removed.", code="user_not_found")
    await note(connection, "user.removed", about=name)


async def set_role(connection: AsyncConnection, user_id: int, role: str) -> None:
    """From their next request on, and that of their programs.

    Raises `Invalid` (`role_unknown`), `Conflict` (`last_owner`), `NotFound` (`user_not_found`).
    """
    if known_role(role) != OWNER:
        await keep_an_owner(connection, user_id)
    before = await get_user(connection, user_id)
    await connection.execute(update(users).where(users.c.id == user_id).values(role=role))
    await note(connection, "user.role", about=before.name, before={"role": before.role}, after={"role": role})


async def keep_an_owner(connection: AsyncConnection, user_id: int) -> None:
    """Two owners who demote or remove each other at once wait here for each other, and one stays.

    Raises `Conflict` (`last_owner`) when without this researcher there would be none.
    """
    owners = select(users.c.id).where(users.c.role == OWNER).order_by(users.c.id).with_for_update()
    if (await connection.execute(owners)).scalars().all() == [user_id]:
        raise Conflict(
            "This is the last owner, and somebody has to be one. Nothing was changed. Make another researcher an "
            "owner first.",
            code="last_owner",
        )


async def set_password(
    connection: AsyncConnection, user_id: int, password_hash: str, *, keep: bytes, revoke_tokens: bool = False
) -> None:
    """A new password ends every other session of this user and their login links; if wished, their API tokens, too.

    `keep` is the digest of the session that asks. From now on it must show the new password to change it again.
    """
    await connection.execute(update(users).where(users.c.id == user_id).values(password_hash=password_hash))
    await connection.execute(delete(logins).where(logins.c.user_id == user_id, logins.c.token_hash != keep))
    await connection.execute(update(logins).where(logins.c.token_hash == keep).values(by_link_at=None))
    await connection.execute(delete(one_time_logins).where(one_time_logins.c.user_id == user_id))
    if revoke_tokens:
        await connection.execute(delete(api_tokens).where(api_tokens.c.user_id == user_id))
    after = {"tokens": "all revoked"} if revoke_tokens else None
    await note(connection, "user.password", about=await name_of(connection, user_id), after=after)


async def log_out_everywhere(connection: AsyncConnection, user_id: int) -> None:
    """End all sessions of this user, and the login links that nobody has used yet."""
    await connection.execute(delete(logins).where(logins.c.user_id == user_id))
    await connection.execute(delete(one_time_logins).where(one_time_logins.c.user_id == user_id))
    await note(connection, "login.out_everywhere", about=await name_of(connection, user_id))


async def name_of(connection: AsyncConnection, user_id: int) -> str:
    """The login name of a researcher who is there."""
    name: str = (await connection.execute(select(users.c.name).where(users.c.id == user_id))).scalar_one()
    return name


async def create_api_token(connection: AsyncConnection, user_id: int, name: str, *, now: datetime) -> str:
    """A token for a program, shown this once. Raises `Invalid` (`token_name_invalid`)."""
    name = name.strip()
    if not name or len(name) > LONGEST_TOKEN_NAME or not name.isprintable():
        raise Invalid(
            f"Name the token after its use, in at most {LONGEST_TOKEN_NAME} characters.", code="token_name_invalid"
        )
    token = new_secret()
    await connection.execute(
        insert(api_tokens).values(user_id=user_id, name=name, token_hash=digest(token), created_at=now)
    )
    await note(connection, "token.created", about=name, after={"of": await name_of(connection, user_id)})
    return token


async def listed_tokens(connection: AsyncConnection, user_id: int) -> Sequence[Row[Any]]:
    statement = select(api_tokens).where(api_tokens.c.user_id == user_id).order_by(api_tokens.c.id)
    return (await connection.execute(statement)).all()


async def revoke_api_token(connection: AsyncConnection, user_id: int, token_id: int) -> None:
    """Raises `NotFound` (`token_not_found`) for a token that is gone or someone else's."""
    those = api_tokens.c.id == token_id, api_tokens.c.user_id == user_id
    name = (
        await connection.execute(delete(api_tokens).where(*those).returning(api_tokens.c.name))
    ).scalar_one_or_none()
    if name is None:
        raise NotFound("This token has already been revoked.", code="token_not_found")
    await note(connection, "token.revoked", about=name, before={"of": await name_of(connection, user_id)})


async def admit(connection: Driver, token: str, address: str, *, now: datetime) -> NamedTokenUse:
    """The token's row. `address` as `web.address_of` gives it. Raises `Unauthenticated` (`token_invalid`)."""
    found = await fetch_one(connection, FIND_TOKEN, {"token_hash": digest(token)}, NamedTokenUse)
    return await admit_found(connection, found, address, now=now)


async def admit_found(connection: Driver, found: T | None, address: str, *, now: datetime) -> T:
    """The row that was found for a token, and whatever else was asked."""
    if found is None:
        raise Unauthenticated("This API token is unknown or was revoked.", code="token_invalid")
    stale = now - timedelta(minutes=TOKEN_NOTED_MINUTES)
    if found.last_used_at is None or found.last_used_at < stale:
        use = {"token": found.token_id, "now": now, "address": address, "stale": stale}
        await execute(connection, NOTE_USE, use)
    return found


async def first_user(connection: AsyncConnection, *, now: datetime) -> Row[Any]:
    """The oldest researcher; on a fresh installation `admin`, who has no password yet."""
    oldest = select(users).order_by(users.c.id).limit(1)
    row: Row[Any] | None = (await connection.execute(oldest)).one_or_none()
    if row is None:
        # Two processes that start at once: one inserts, the other waits for it and finds the row.
        await connection.execute(
            upsert(users).values(name="admin", created_at=now, role=OWNER).on_conflict_do_nothing()
        )
        row = (await connection.execute(oldest)).one()
    return row
