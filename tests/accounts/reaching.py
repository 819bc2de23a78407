"""Researchers of any role, logged in, with the token of a program; and requests to every address."""

import re
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI

from app.accounts import login, members, tokens, users
from app.accounts.secrets import csrf_token_of_session

ENDLESS = "/admin/campaigns/{slug}/events"


async def log_in_with_role(
    app: FastAPI, client: Any, role: str, member: str | None = None, campaign: Any = None, **of: Any
):
    """A researcher of this role for the server, and perhaps in a campaign, logged in, and the token of their program.

    of: what the token is for, as `issue_token_or_refuse` takes it.
    """
    now = datetime.now(UTC)
    async with app.state.database.begin() as connection:
        await users.find_oldest_user_or_create_admin(connection, now=now)
        user = await users.insert_and_return_user_or_refuse(
            connection, f"one.{role}.{member or 'none'}", now=now, role=role
        )
        if member:
            await members.try_to_insert_member(connection, campaign, user, member, now=now)
        session = await login.start_session_and_return_secret(connection, user.id, now=now, hours=12)
        token = await tokens.issue_token_or_refuse(connection, user.id, "program", now=now, **of)
    client.cookies.set(app.state.cookie_name, session)
    client.headers["X-CSRF-Token"] = csrf_token_of_session(session)
    return user, token


def fill_path(path: str, **known: Any) -> str:
    """Return a path with known values in place of its parameters, and `x` for the others."""
    for name, value in known.items():
        path = path.replace(f"{{{name}}}", str(value))
    return re.sub(r"\{[a-z_]+\}", "x", re.sub(r"\{[a-z_]+_id\}", "1", path))


async def request_status_and_code(client: Any, address: str, token: str, **known: Any):
    """Request an address of `NEEDS` and return the status and the code of the reply."""
    method, path = address.split()
    headers = {"authorization": f"Bearer {token}"} if path.startswith("/api/") else {}
    response = await client.request(method, fill_path(path, **known), headers=headers)
    if response.status_code < 400:
        return response.status_code, None
    if "There is no campaign" in response.text:
        return response.status_code, "campaign_not_found"
    codes = ("role_forbids", "scope_forbids", "token_of_one_campaign", "hit_not_found")
    return response.status_code, next((code for code in codes if code in response.text), None)
