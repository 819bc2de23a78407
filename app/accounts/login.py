"""Coming in and going out: by name and password, or by a link that works once; a session lasts some hours."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.accounts import passwords, throttle
from app.accounts.access import SHARING_CAMPAIGN_ID, Access
from app.accounts.secrets import csrf_token_of_session, mask_token, new_secret, secret_digest
from app.accounts.users import (
    MAX_LOGIN_NAME_CHARACTERS,
    find_or_create_first_user,
    find_user,
    load_login_name,
    normalize_typed_name,
)
from app.database.account_tables import logins, one_time_logins, users
from app.database.audit_log import Actor, log_change
from app.database.sharing_tables import campaign_members
from app.database.tables import campaigns
from app.errors import Gone, Unauthenticated

ONE_TIME_LOGIN_HOURS = 24
STRANGER_ACTOR = Actor("somebody", "page")
PASSWORD_CHANGE_BY_LINK_MINUTES = 60  # so long whoever came by a link may set a password without the one they forgot
SESSION_USE_NOTED_MINUTES = 1  # a session is noted as used at most this often, so that reading costs no write


@dataclass(frozen=True)
class LoginSession:
    """A researcher who is logged in, and what their forms must carry.

    `must_confirm`: whether to let someone in, or set a password, takes the current password. It does not for who has
    none, and for who has just come by a login link, perhaps because they forgot it.
    """

    access: Access
    name: str
    has_password: bool
    must_confirm: bool
    csrf: str
    digest: bytes

    @property
    def user_id(self) -> int:
        return self.access.user_id

    @property
    def role(self) -> str:
        """For the whole server."""
        return self.access.role

    def can(self, need: str) -> bool:
        """Whether their role here allows it: one of the needs in `roles`. Pages leave out what it does not."""
        return self.access.can(need)

    @property
    def masked_csrf(self) -> str:
        """The CSRF token as a page carries it, another one each time."""
        return mask_token(self.csrf)


async def authenticate(
    database: AsyncEngine, name: str, password: str, address: str, browser: str | None = None, *, now: datetime
) -> Row[Any]:
    """The user with this name and password; `browser` as `throttle` wants it.

    Takes the engine, not a connection: a failed attempt must be committed though the request is refused, and no
    transaction stays open while the password is hashed. Raises `TooManyAttempts`, `Unauthenticated` (`wrong_password`).
    """
    name = normalize_typed_name(name)[
        : MAX_LOGIN_NAME_CHARACTERS + 1
    ]  # as much of a longer one as shows that nobody has it
    async with database.begin() as connection:
        await throttle.record_login_attempt(connection, name, address, browser, now=now)
        user = await find_user(connection, name)
    if not await passwords.is_password_correct(user.password_hash if user else None, password) or user is None:
        # Whatever else was typed as a name may have been a password.
        logged_name = user.name if user else "a name that nobody has"
        async with database.begin() as connection:
            await log_change(
                connection, "login.failed", about=logged_name, after={"address": address}, actor=STRANGER_ACTOR
            )
        raise Unauthenticated("This name and password do not go together.", code="wrong_password")
    async with database.begin() as connection:
        await throttle.delete_login_failures(connection, name, address, browser)
    return user


async def start_session(
    connection: AsyncConnection,
    user_id: int,
    *,
    now: datetime,
    hours: int,
    idle_minutes: int | None = None,
    by_link: bool = False,
    method: str = "password",
) -> str:
    """A new session's secret, for the cookie. Sessions that have ended are swept out on the way."""
    await connection.execute(delete(logins).where(or_(logins.c.expires_at <= now, logins.c.idle_at <= now)))
    session = new_secret()
    await connection.execute(
        insert(logins).values(
            token_hash=secret_digest(session),
            user_id=user_id,
            created_at=now,
            expires_at=now + timedelta(hours=hours),
            idle_at=now + timedelta(hours=hours) if idle_minutes is None else now + timedelta(minutes=idle_minutes),
            by_link_at=now if by_link else None,
        )
    )
    name = await load_login_name(connection, user_id)
    await log_change(connection, "login.in", after={"by": "link" if by_link else method}, actor=Actor(name, "page"))
    return session


async def postpone_idle_end(
    connection: AsyncConnection, session: LoginSession, *, now: datetime, idle_minutes_allowed: int
) -> None:
    """Put off the time when the session ends because nobody used it."""
    idle_at = now + timedelta(minutes=idle_minutes_allowed)
    stale = logins.c.idle_at < idle_at - timedelta(minutes=SESSION_USE_NOTED_MINUTES)
    statement = update(logins).where(logins.c.token_hash == session.digest, stale).values(idle_at=idle_at)
    await connection.execute(statement)


async def end_session(connection: AsyncConnection, session: str) -> None:
    await connection.execute(delete(logins).where(logins.c.token_hash == secret_digest(session)))
    await log_change(connection, "login.out")


async def find_session(
    connection: AsyncConnection, session: str, *, now: datetime, slug: str | None = None
) -> LoginSession | None:
    """Who has this session, None when it is unknown or over. slug: of the campaign that they ask for, if they do."""
    member_columns = campaign_members.c
    statement = (
        select(users, logins.c.by_link_at, member_columns.role.label("member"))
        .join(logins, logins.c.user_id == users.c.id)
        .outerjoin(campaigns, campaigns.c.slug == slug)
        .outerjoin(
            campaign_members,
            (member_columns.campaign_id == SHARING_CAMPAIGN_ID) & (member_columns.user_id == users.c.id),
        )
        .where(logins.c.token_hash == secret_digest(session), logins.c.expires_at > now, logins.c.idle_at > now)
    )
    row = (await connection.execute(statement)).one_or_none()
    if row is None:
        return None
    has_password = row.password_hash is not None
    came_by_link = row.by_link_at is not None and row.by_link_at > now - timedelta(
        minutes=PASSWORD_CHANGE_BY_LINK_MINUTES
    )
    must_confirm = has_password and not came_by_link
    access = Access(row.id, row.role, row.member)
    return LoginSession(
        access, row.name, has_password, must_confirm, csrf_token_of_session(session), secret_digest(session)
    )


async def create_one_time_login(connection: AsyncConnection, *, now: datetime, user_id: int | None = None) -> str:
    """A secret that logs in once within a day, by `/login?token=...`; for the oldest researcher unless one is named.

    On a fresh installation this makes the researcher `admin`, without a password. Logins that nobody used in time are
    swept out on the way.
    """
    await connection.execute(delete(one_time_logins).where(one_time_logins.c.expires_at <= now))
    if user_id is None:
        user_id = (await find_or_create_first_user(connection, now=now)).id
    token = new_secret()
    expires_at = now + timedelta(hours=ONE_TIME_LOGIN_HOURS)
    await connection.execute(
        insert(one_time_logins).values(token_hash=secret_digest(token), user_id=user_id, expires_at=expires_at)
    )
    await log_change(connection, "login.link_made", about=await load_login_name(connection, user_id))
    return token


def one_time_login_path(token: str) -> str:
    """The address that takes a one-time login, without the server's."""
    return f"/login?token={token}"


async def redeem_one_time_login(connection: AsyncConnection, token: str, *, now: datetime) -> int:
    """The id of the user whose login this is; of two that come at once the database lets one in.

    Raises `Gone` (`login_link_used`) when it was used, is too old, or never was.
    """
    statement = (
        delete(one_time_logins)
        .where(one_time_logins.c.token_hash == secret_digest(token), one_time_logins.c.expires_at > now)
        .returning(one_time_logins.c.user_id)
    )
    user_id: int | None = (await connection.execute(statement)).scalar_one_or_none()
    if user_id is None:
        raise Gone(
            "This login link was used already or is too old. Log in with your name and password, or by a new link.",
            code="login_link_used",
        )
    return user_id
