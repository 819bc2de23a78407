"""A real server and its PostgreSQL never log the data of statements that break."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest
from sqlalchemy import NullPool, text
from sqlalchemy.ext.asyncio import create_async_engine

from app.accounts import login, users
from app.accounts.secrets import csrf_token_of_session, load_or_create_installation_key, session_cookie_name
from app.database.embedded import running_server_url_or_none
from tests.database.test_embedded import wait_until
from tests.servers import PATIENT_SECONDS, easel_serving

pytestmark = pytest.mark.slow

SLUG = "lexical-frequency"
PAGES = f"/admin/campaigns/{SLUG}"
PASSWORD = "planted-password-1"
SECRETS = [
    *("argon2id", PASSWORD, "planted.researcher", "Ada Planted", "Grace Planted", "PLANTEDPASSPHRASE"),
    *("planted-alert@example.org", "planted-hook-token", "PLANTEDWORKER", "planted remark", "planted-token-name"),
]
TABLES = ("users", "campaigns", "personal_links", "annotators", "api_tokens", "campaign_links", "invitations")

# PostgreSQL's DETAIL holds the row that breaks a rule, and its message quotes a value that has a wrong type.
BREAK_A_RULE = [f"ALTER TABLE {table} ADD CHECK (false) NOT VALID" for table in TABLES]
HAVE_A_WRONG_TYPE = [
    """CREATE FUNCTION read_as_number() RETURNS trigger LANGUAGE plpgsql AS
       $$BEGIN PERFORM CAST(to_jsonb(NEW)::text AS integer); RETURN NEW; END$$""",
    *(
        f"CREATE TRIGGER breaks BEFORE INSERT OR UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION read_as_number()"
        for table in TABLES
    ),
]


@asynccontextmanager
async def researcher_at(server, engine):
    """Yield a browser in which `admin` is logged in."""
    async with engine.begin() as connection:
        now = datetime.now(UTC)
        admin = await users.find_oldest_user_or_create_admin(connection, now=now)
        session = await login.start_session_and_return_secret(connection, admin.id, now=now, hours=12)
        cookie = session_cookie_name(await load_or_create_installation_key(connection))
    headers = {"X-CSRF-Token": csrf_token_of_session(session), "accept": "text/html"}
    async with httpx.AsyncClient(base_url=server.base, headers=headers, verify=False) as browser:
        browser.timeout = httpx.Timeout(PATIENT_SECONDS)
        browser.cookies.set(cookie, session)
        yield browser


def planted_requests(browser, link):
    """Return requests that contain the secrets, each of which writes them."""
    settings = {
        "passphrase": "PLANTEDPASSPHRASE",
        "alert_emails": "planted-alert@example.org",
        "alert_webhook": "https://hooks.example.org/planted-hook-token",
    }
    key = link.rpartition("/")[2]
    return [
        browser.get(f"/prolific/{key}?PROLIFIC_PID=PLANTEDWORKER&STUDY_ID=s&SESSION_ID=t"),
        browser.post("/admin/account/password", data={"password": PASSWORD}),
        browser.post("/admin/people/invitations", data={"role": "guest", "words": "planted.researcher"}),
        browser.post("/admin/account/tokens", data={"name": "planted-token-name", "scope": "read"}),
        browser.post(f"{PAGES}/people", data={"names": "Ada Planted\nGrace Planted"}),
        browser.post(f"{PAGES}/settings/visit", data=settings),
        browser.post(f"{PAGES}/settings/advanced", data=settings),
        browser.post(f"{PAGES}/links", data={"words": "planted remark"}),
    ]


async def end_waiting_backends(engine, asking):
    """Terminate all backends that wait for a lock, until every request has its reply."""
    those = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        while not asking.done():
            await autocommit.execute(text(f"SELECT pg_terminate_backend(pid) {those}"))
            await asyncio.sleep(0.2)


def logged(server):
    return server.rest() + (server.data / "postgresql.log").read_text(errors="replace")


def assert_no_secrets(said):
    assert [secret for secret in SECRETS if secret in said] == [], said


async def test_the_logs_of_statements_that_break_hold_no_secret(demo_data):
    """First they are ended while they wait for a lock, then their rows break a rule, then a value has a wrong type."""
    with easel_serving(demo_data, EASEL_POOL_SIZE="30") as server:
        engine = create_async_engine(running_server_url_or_none(demo_data) or "", poolclass=NullPool)
        async with researcher_at(server, engine) as browser:
            async with engine.begin() as holding:
                await holding.execute(text(f"LOCK TABLE {', '.join(TABLES)} IN SHARE MODE"))
                requests = planted_requests(browser, server.link)
                asking = asyncio.gather(*requests)
                await end_waiting_backends(engine, asking)
            assert [reply.status_code for reply in await asking] == [503] * len(requests)
            wait_until(lambda: server.rest().count("database unavailable") == len(requests), PATIENT_SECONDS)
            assert_no_secrets(logged(server))
            for statements, error in ((BREAK_A_RULE, "CheckViolationError (23514"), (HAVE_A_WRONG_TYPE, "(22P02)")):
                async with engine.begin() as connection:
                    for statement in statements:
                        await connection.execute(text(statement))
                replies = await asyncio.gather(*planted_requests(browser, server.link))
                assert [reply.status_code for reply in replies] == [500] * len(requests)
                crashed = "Exception in ASGI application"
                wait_until(lambda: error in server.rest().rpartition(crashed)[2], PATIENT_SECONDS)  # noqa: B023
                assert_no_secrets(logged(server))
