"""API tokens of researchers' programs: what each is for, and the check of a token that a program sends."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import Row, delete, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts.access import Access, visible_campaigns_sql_condition
from app.accounts.roles import NEEDS_BY_SCOPE
from app.accounts.secrets import new_secret, secret_digest
from app.accounts.users import load_login_name
from app.database.account_tables import api_tokens
from app.database.audit_log import log_change
from app.database.session import Driver, Record, execute_statement, fetch_first_row_or_none
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Invalid, NotFound, Unauthenticated
from app.record.campaign import fetch_campaign_or_refuse

MAX_TOKEN_NAME_CHARACTERS = 80
TOKEN_USE_NOTED_MINUTES = 1  # uses are stored at most this often, so that reading costs no write

# `reaches`: whether the token is for the campaign in the URL.
FIND_TOKEN = text("""
    SELECT t.id AS token_id, t.user_id, t.last_used_at, t.scopes, t.campaign_id AS only_campaign, u.name AS user_name,
           u.role, m.role AS member,
           t.campaign_id IS NULL OR t.campaign_id IS NOT DISTINCT FROM coalesce(c.rehearsal_of, c.id) AS reaches
    FROM api_tokens t JOIN users u ON u.id = t.user_id LEFT JOIN campaigns c ON c.slug = :slug
    LEFT JOIN campaign_members m ON m.campaign_id = coalesce(c.rehearsal_of, c.id) AND m.user_id = u.id
    WHERE t.token_hash = :token_hash
""")

# One of many concurrent requests writes, and the others do not wait for it.
NOTE_TOKEN_USE = text("""
    UPDATE api_tokens SET last_used_at = :now, last_used_from = :address
    WHERE id = (SELECT id FROM api_tokens WHERE id = :token AND (last_used_at IS NULL OR last_used_at < :stale)
                FOR NO KEY UPDATE SKIP LOCKED)
""")


class TokenUse(Record):
    """An API token in use, with its purpose and the present roles of its researcher."""

    token_id: int
    user_id: int
    role: str
    member: str | None
    scopes: list[str]
    only_campaign: int | None
    reaches: bool
    last_used_at: datetime | None

    @property
    def access(self) -> Access:
        return Access(self.user_id, self.role, self.member, tuple(self.scopes), self.only_campaign, self.reaches)


class NamedTokenUse(TokenUse):
    """A token in use, with the login name of its researcher."""

    user_name: str


T = TypeVar("T", bound=TokenUse)


async def issue_token_or_refuse(
    connection: AsyncConnection,
    user_id: int,
    name: str,
    *,
    now: datetime,
    scopes: Sequence[str] = tuple(NEEDS_BY_SCOPE),
    campaign: Campaign | None = None,
) -> str:
    """Create a token for a program and return it; for all campaigns unless one is given. Only its digest is stored.

    Raises `Invalid` (`token_name_invalid`, `scope_unknown`).
    """
    name = name.strip()
    if not name or len(name) > MAX_TOKEN_NAME_CHARACTERS or not name.isprintable():
        raise Invalid(
            f"Give the token a name that says what it is for, of at most {MAX_TOKEN_NAME_CHARACTERS} characters.",
            code="token_name_invalid",
        )
    if not scopes or not set(scopes) <= set(NEEDS_BY_SCOPE):
        raise Invalid(
            f"A token must have one or more of the scopes {', '.join(NEEDS_BY_SCOPE)}. No token was created.",
            code="scope_unknown",
        )
    token, ordered_scopes = new_secret(), [scope for scope in NEEDS_BY_SCOPE if scope in scopes]
    values = {
        "user_id": user_id,
        "name": name,
        "token_hash": secret_digest(token),
        "created_at": now,
        "scopes": ordered_scopes,
    }
    await connection.execute(insert(api_tokens).values(values | {"campaign_id": campaign and campaign.id}))
    facts = {"of": await load_login_name(connection, user_id), "scopes": ", ".join(ordered_scopes)}
    await log_change(connection, "token.created", campaign, about=name, new_values=facts)
    return token


async def find_visible_campaign_or_refuse(connection: AsyncConnection, access: Access, slug: str) -> Campaign:
    """Return a campaign that the researcher may see. Raises `NotFound` (`campaign_not_found`)."""
    conditions = campaigns.c.rehearsal_of.is_(None), visible_campaigns_sql_condition(access)
    return await fetch_campaign_or_refuse(connection, select(campaigns).where(*conditions), slug, Campaign)


async def list_slugs_and_names_of_visible_campaigns(
    connection: AsyncConnection, access: Access
) -> Sequence[Row[Any, Any]]:
    """Return the visible campaigns by name: rows with `slug` and `name`."""
    conditions = visible_campaigns_sql_condition(access), campaigns.c.rehearsal_of.is_(None)
    statement = select(campaigns.c.slug, campaigns.c.name).where(*conditions).order_by(campaigns.c.name)
    return (await connection.execute(statement)).all()


async def list_api_tokens(connection: AsyncConnection, user_id: int) -> Sequence[Row[Any]]:
    """Return the researcher's tokens, each with the `slug` of its campaign, if it is for one."""
    joined = api_tokens.outerjoin(campaigns, campaigns.c.id == api_tokens.c.campaign_id)
    statement = select(api_tokens, campaigns.c.slug).select_from(joined)
    return (await connection.execute(statement.where(api_tokens.c.user_id == user_id).order_by(api_tokens.c.id))).all()


async def revoke_own_api_token_or_refuse(connection: AsyncConnection, user_id: int, token_id: int) -> None:
    """Revoke a token. Raises `NotFound` (`token_not_found`) if it is gone or belongs to another researcher."""
    conditions = api_tokens.c.id == token_id, api_tokens.c.user_id == user_id
    name = (
        await connection.execute(delete(api_tokens).where(*conditions).returning(api_tokens.c.name))
    ).scalar_one_or_none()
    if name is None:
        raise NotFound("This token has already been revoked.", code="token_not_found")
    await log_change(
        connection, "token.revoked", about=name, old_values={"of": await load_login_name(connection, user_id)}
    )


async def load_token_and_store_its_use_or_refuse(
    connection: Driver, token: str, address: str, *, slug: str | None = None, now: datetime
) -> NamedTokenUse:
    """Return the token's row and note its use. Raises `Unauthenticated` (`token_invalid`).

    Args:
        connection: The connection.
        token: The token that the program sent.
        address: The client's network address, as `client_network_or_empty` returns it.
        slug: Slug of the campaign in the URL, if there is one.
        now: The present time.

    """
    token_use = await fetch_first_row_or_none(
        connection, FIND_TOKEN, {"token_hash": secret_digest(token), "slug": slug}, NamedTokenUse
    )
    return await require_token_and_store_its_use(connection, token_use, address, now=now)


async def require_token_and_store_its_use(connection: Driver, token_use: T | None, address: str, *, now: datetime) -> T:
    """Return the token's row, whatever columns it has, and note its use. Raises `Unauthenticated` (`token_invalid`)
    without a row.
    """
    if token_use is None:
        raise Unauthenticated("This API token is unknown or was revoked.", code="token_invalid")
    stale = now - timedelta(minutes=TOKEN_USE_NOTED_MINUTES)
    if token_use.last_used_at is None or token_use.last_used_at < stale:
        parameters = {"token": token_use.token_id, "now": now, "address": address, "stale": stale}
        await execute_statement(connection, NOTE_TOKEN_USE, parameters)
    return token_use
