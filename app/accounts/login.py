"""Logging in and out, by name and password or by a one-time link. A session lasts some hours."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, delete, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.accounts import passwords, throttle
from app.accounts.access import SHARING_CAMPAIGN_ID, Access
from app.accounts.campaign_tabs import CampaignTab, list_allowed_campaign_tabs
from app.accounts.secrets import csrf_token_of_session, mask_csrf_token, new_secret, secret_digest
from app.accounts.users import (
    MAX_LOGIN_NAME_CHARACTERS,
    fetch_user_by_name_or_none,
    find_oldest_user_or_create_admin,
    load_login_name,
    normalize_typed_name,
)
from app.database.account_tables import logins, one_time_logins, users
from app.database.audit_log import Actor, log_change
from app.database.sharing_tables import campaign_members
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Gone, Unauthenticated

ONE_TIME_LOGIN_HOURS = 24
STRANGER_ACTOR = Actor("somebody", "page")
PASSWORD_CHANGE_BY_LINK_MINUTES = 60  # after a login by link, a new password does not need the forgotten one
SESSION_USE_NOTED_MINUTES = 1  # uses are stored at most this often, so that reading costs no write


@dataclass(frozen=True)
class LoginSession:
    """A researcher who is logged in, with the CSRF token of their forms.

    Attributes:
        must_confirm: Whether inviting people or setting a password needs the current password. It does not if there is
            none, or shortly after a login by link, since the researcher may have forgotten it.
        digest: Digest of the session's secret.

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
        """Role for the whole server."""
        return self.access.role

    def can(self, need: str) -> bool:
        """Return whether the role allows one of the needs in `roles`. Pages leave out what it does not allow."""
        return self.access.can(need)

    def tabs(self, campaign: Campaign, current_tab: str) -> list[CampaignTab]:
        """Return the tabs of a campaign that the role allows."""
        return list_allowed_campaign_tabs(self.access, campaign, current_tab)

    @property
    def masked_csrf(self) -> str:
        """The CSRF token as a page carries it, different each time."""
        return mask_csrf_token(self.csrf)


async def authenticate_user_by_password_or_refuse(
    database: AsyncEngine, name: str, password: str, address: str, known_browser_id: str | None = None, *, now: datetime
) -> Row[Any]:
    """Return the user with this name and password.

    It takes the engine, not a connection: a failed attempt must be committed although the request is refused, and no
    transaction may stay open while the password is hashed.

    Args:
        database: The engine.
        name: The login name as typed.
        password: The password.
        address: The client's network address.
        known_browser_id: Mark of a known browser, see `throttle.store_login_attempt_or_refuse`.
        now: The present time.

    Raises:
        TooManyAttempts: Too many attempts failed.
        Unauthenticated: `wrong_password`.

    """
    # One character more than the longest name, so that a longer one matches none.
    name = normalize_typed_name(name)[: MAX_LOGIN_NAME_CHARACTERS + 1]
    async with database.begin() as connection:
        await throttle.store_login_attempt_or_refuse(connection, name, address, known_browser_id, now=now)
        user = await fetch_user_by_name_or_none(connection, name)
    if not await passwords.is_password_correct(user.password_hash if user else None, password) or user is None:
        # An unknown name is not logged: it may be a password typed into the wrong field.
        logged_name = user.name if user else "an unknown name"
        async with database.begin() as connection:
            await log_change(
                connection, "login.failed", about=logged_name, new_values={"address": address}, actor=STRANGER_ACTOR
            )
        raise Unauthenticated("Wrong username or password.", code="wrong_password")
    async with database.begin() as connection:
        await throttle.delete_login_failures(connection, name, address, known_browser_id)
    return user


async def start_session_and_return_secret(
    connection: AsyncConnection,
    user_id: int,
    *,
    now: datetime,
    hours: int,
    idle_minutes: int | None = None,
    by_link: bool = False,
    method: str = "password",
) -> str:
    """Start a session and return its secret, for the cookie. Ended sessions are deleted."""
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
    await log_change(
        connection, "login.in", new_values={"by": "link" if by_link else method}, actor=Actor(name, "page")
    )
    return session


async def postpone_idle_end_of_session(
    connection: AsyncConnection, session: LoginSession, *, now: datetime, idle_minutes_allowed: int
) -> None:
    """Postpone the time when the session ends if it is not used."""
    idle_at = now + timedelta(minutes=idle_minutes_allowed)
    stale = logins.c.idle_at < idle_at - timedelta(minutes=SESSION_USE_NOTED_MINUTES)
    statement = update(logins).where(logins.c.token_hash == session.digest, stale).values(idle_at=idle_at)
    await connection.execute(statement)


async def end_session(connection: AsyncConnection, session_secret: str) -> None:
    await connection.execute(delete(logins).where(logins.c.token_hash == secret_digest(session_secret)))
    await log_change(connection, "login.out")


async def load_login_session_or_none(
    connection: AsyncConnection, session_secret: str, *, now: datetime, slug: str | None = None
) -> LoginSession | None:
    """Return the session with this secret, None if it is unknown or has ended. `slug` is the campaign's in the URL."""
    member_columns = campaign_members.c
    statement = (
        select(users, logins.c.by_link_at, member_columns.role.label("member"))
        .join(logins, logins.c.user_id == users.c.id)
        .outerjoin(campaigns, campaigns.c.slug == slug)
        .outerjoin(
            campaign_members,
            (member_columns.campaign_id == SHARING_CAMPAIGN_ID) & (member_columns.user_id == users.c.id),
        )
        .where(logins.c.token_hash == secret_digest(session_secret), logins.c.expires_at > now, logins.c.idle_at > now)
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
        access,
        row.name,
        has_password,
        must_confirm,
        csrf_token_of_session(session_secret),
        secret_digest(session_secret),
    )


async def create_one_time_login_and_return_secret(
    connection: AsyncConnection, *, now: datetime, user_id: int | None = None
) -> str:
    """Return a secret that logs in once within a day, by `/login?token=...`; for the oldest researcher unless one is
    given.

    On a fresh installation this creates the researcher `admin`, without a password. Expired links are deleted.
    """
    await connection.execute(delete(one_time_logins).where(one_time_logins.c.expires_at <= now))
    if user_id is None:
        user_id = (await find_oldest_user_or_create_admin(connection, now=now)).id
    token = new_secret()
    expires_at = now + timedelta(hours=ONE_TIME_LOGIN_HOURS)
    await connection.execute(
        insert(one_time_logins).values(token_hash=secret_digest(token), user_id=user_id, expires_at=expires_at)
    )
    await log_change(connection, "login.link_made", about=await load_login_name(connection, user_id))
    return token


def one_time_login_path(token: str) -> str:
    return f"/login?token={token}"


async def use_up_login_and_return_user_id_or_refuse(connection: AsyncConnection, token: str, *, now: datetime) -> int:
    """Use up a one-time login and return the id of its user. The database admits one of two concurrent requests.

    Raises `Gone` (`login_link_used`) if the link was used, is too old, or never existed.
    """
    statement = (
        delete(one_time_logins)
        .where(one_time_logins.c.token_hash == secret_digest(token), one_time_logins.c.expires_at > now)
        .returning(one_time_logins.c.user_id)
    )
    user_id: int | None = (await connection.execute(statement)).scalar_one_or_none()
    if user_id is None:
        raise Gone(
            "This login link has been used or has expired. Log in with your name and password, or with a new link.",
            code="login_link_used",
        )
    return user_id
