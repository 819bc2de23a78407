"""A program that uses the API."""

import httpx
import pytest_asyncio

from app.accounts import passwords, users
from app.accounts.secrets import secret_digest
from tests.conftest import http_client

API = "/api/v1"
PASSWORD = "ten small verbs"


@pytest_asyncio.fixture
async def api_client(app, researcher):
    """Yield a client with an API token."""
    async with app.state.database.begin() as connection:
        (admin,) = await users.list_users(connection)
        session = secret_digest(researcher.cookies[app.state.cookie_name])
        await users.store_password_and_end_other_sessions(
            connection, admin.id, await passwords.hash_allowed_password_or_refuse(PASSWORD), kept_session_digest=session
        )
    async with http_client(app) as client:
        client.headers = httpx.Headers({"accept": "*/*"})
        made = await client.post(f"{API}/tokens", json={"name": "admin", "password": PASSWORD})
        assert made.status_code == 201
        client.headers["authorization"] = f"Bearer {made.json()['token']}"
        yield client
