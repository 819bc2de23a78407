import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest
from fastapi.routing import iter_route_contexts
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from starlette.requests import Request
from starlette.types import Message

from app.database.session import ServingConnections, create_engine
from app.http import dependencies
from app.http.dependencies import MAX_ROW_ID
from app.http.middleware import BodyLimits
from app.main import create_app
from app.settings import Settings
from tests.annotation.hits.campaigns import create_running_campaign, fetch_value, requests_are_waiting_sql, wait_until
from tests.conftest import http_client

PROGRAM = Request({"type": "http", "method": "POST", "path": "/api/v1/anything", "query_string": b"", "headers": []})


async def lock_two(engine, first, second, both_have_one):
    async with engine.begin() as connection:
        lock = text("SELECT 1 FROM posteriors WHERE subject = :number FOR NO KEY UPDATE")
        await connection.execute(lock, {"number": first})
        await both_have_one.wait()
        await connection.execute(lock, {"number": second})


async def test_who_loses_a_deadlock_is_asked_to_try_again(engine):
    await create_running_campaign(engine)
    both_have_one = asyncio.Barrier(2)
    outcomes = await asyncio.gather(
        lock_two(engine, 0, 1, both_have_one), lock_two(engine, 1, 0, both_have_one), return_exceptions=True
    )
    (error,) = [outcome for outcome in outcomes if isinstance(outcome, DBAPIError)]
    response = dependencies.handle_database_error(PROGRAM, error)
    assert response.status_code == 503
    assert b"database_unavailable" in response.body


async def test_who_finds_no_free_connection_is_asked_to_try_again(app, client, monkeypatch):
    pool = app.state.database.pool
    async with AsyncExitStack() as taken:
        for _ in range(pool.size()):  # one that background work has is waited for
            await taken.enter_async_context(app.state.database.connect())
        monkeypatch.setattr(pool, "_timeout", 0.05)
        reply = await client.post("/api/v1/tokens", json={"name": "admin", "password": "none"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "database_unavailable")


def error_response(sqlstate):
    """Return the error that PostgreSQL sends instead of a greeting."""
    fields = b"SFATAL\0VFATAL\0C" + sqlstate.encode() + b"\0Mnot now\0\0"
    return b"E" + (4 + len(fields)).to_bytes(4) + fields


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(error_response("57P03"), id="starting up or shutting down"),
        pytest.param(error_response("53300"), id="too many connections"),
        pytest.param(b"", id="hangs up"),
    ],
)
async def test_a_database_that_cannot_greet_now_is_asked_again_later(said):
    async def greet(reader, writer):
        await reader.read(1000)
        writer.write(said)
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        engine = create_engine(f"postgresql+asyncpg://someone@127.0.0.1:{port}/easel?ssl=disable", pool_size=1)
        with pytest.raises((DBAPIError, OSError)) as problem:
            await engine.connect()
    assert dependencies.handle_database_error(PROGRAM, problem.value).status_code == 503


async def test_a_connection_that_is_ended_in_the_middle_is_asked_again_later(engine):
    with pytest.raises(DBAPIError) as problem:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
    assert dependencies.handle_database_error(PROGRAM, problem.value).status_code == 503


CANCEL = text("""
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
""")


@pytest.mark.parametrize("limit", ["", "statement_timeout", "lock_timeout"])
async def test_a_statement_that_is_stopped_is_a_503_that_says_try_again(app, client, limit):
    """By a limit of its connection; without one, by somebody who cancels it."""
    campaign = await create_running_campaign(app.state.database)
    address = f"/link/{campaign.link_key}"
    assert (await client.get(address)).status_code == 200  # the one connection there is then
    async with app.state.serving_connections.borrow_autocommit_connection() as connection:
        await connection.execute(f"SET {limit} = '50ms'" if limit else "SET lock_timeout = 0")
    async with app.state.database.begin() as holding:
        await holding.execute(text("LOCK TABLE campaigns"))
        asking = asyncio.create_task(client.get(address, headers={"accept": "application/json"}))
        if not limit:
            await wait_until(app.state.database, requests_are_waiting_sql(1))
            await holding.execute(CANCEL)
        reply = await asking
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "database_unavailable")
    assert reply.headers["retry-after"]
    async with app.state.serving_connections.borrow_autocommit_connection() as connection:
        await connection.execute("RESET ALL")
    assert (await client.get(address)).status_code == 200


async def test_annotators_wait_for_a_lock_for_seconds_and_are_then_asked_to_try_again(app):
    async with app.state.serving_connections.borrow_autocommit_connection() as connection:
        assert await connection.fetchval("SHOW lock_timeout") == "5s"


FORM = "multipart/form-data; boundary=x"
NO_TEXT = b'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n\\ud800\r\n--x--\r\n'


@pytest.mark.parametrize(
    ("address", "kind", "body"),
    [
        pytest.param("/api/v1/tokens", "application/json", b'{"name": ', id="half a JSON document"),
        pytest.param("/api/v1/tokens", "application/json", b'{"name": "\xff"}', id="JSON that is not UTF-8"),
        pytest.param("/link/none", "multipart/form-data", b"--x\r\n", id="a form without its boundary"),
        pytest.param("/link/none", FORM, b"--x\r\nno header\r\n\r\n--x--", id="a form with a part that is broken"),
        pytest.param("/login", f"{FORM}; charset=unicode_escape", NO_TEXT, id="a form in an encoding of Python alone"),
    ],
)
async def test_a_body_that_cannot_be_read_is_refused_with_a_code_of_its_own(client, address, kind, body):
    reply = await client.post(address, content=body, headers={"content-type": kind, "accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "unreadable_body")
    assert "Nothing was stored." in reply.json()["error"]["message"]


async def test_a_worker_starts_also_while_the_database_is_away():
    """One that failed to start would end the whole server, so the main process asks beforehand what it must know."""
    app = create_app(Settings(database_url="postgresql://nobody@127.0.0.1:9/none", secret_key=SecretStr("k" * 32)))
    async with app.router.lifespan_context(app), http_client(app) as client:
        assert (await client.get("/ready")).status_code == 503


async def test_who_goes_away_in_mid_request_is_no_error_of_ours(app):
    """An error that leaves the application is logged with its traceback, one for every phone in a tunnel."""
    half = {"type": "http.request", "body": b"token=", "more_body": True}
    for address in ("/link/none", "/login", "/api/v1/tokens"):
        coming = [half, {"type": "http.disconnect"}]
        headers = [(b"content-type", b"application/x-www-form-urlencoded")]
        scope = {"type": "http", "method": "POST", "path": address, "query_string": b"", "headers": headers}
        sent: list[Message] = []

        async def receive(coming=coming):
            return coming.pop(0)

        async def send(message, sent=sent):
            sent.append(message)

        await app(scope, receive, send)
        assert sent[0]["status"] == 400


async def test_a_form_that_says_it_is_in_utf_8_is_read(client):
    kind = {"content-type": f'{FORM}; charset="UTF-8"'}
    assert (await client.post("/login", content=NO_TEXT, headers=kind)).status_code == 410  # no such token


@pytest.mark.parametrize("length", ["0" * 5000 + "9", "9" * 5000])
async def test_a_length_of_thousands_of_digits_is_no_error_of_ours(client, length):
    kind = {"content-type": "application/x-www-form-urlencoded", "content-length": length}
    reply = await client.post("/login", content=b"token=abc", headers=kind)
    assert reply.status_code == (410 if length.endswith("09") else 413)


async def test_pages_of_researchers_and_static_files_go_out_compressed_and_nothing_else(researcher, client, engine):
    campaign = await create_running_campaign(engine)
    pages = [f"/admin/campaigns/{campaign.slug}", "/admin/api", "/static/easel.css"]
    for address in pages:
        reply = await researcher.get(address)
        assert reply.headers["content-encoding"] == "gzip", address
        assert int(reply.headers["content-length"]) < len(reply.content) / 2, address
        plain = await researcher.get(address, headers={"accept-encoding": "identity"})
        assert "content-encoding" not in plain.headers
    assert (
        "content-encoding"
        not in (await client.get(f"/prolific/{campaign.link_key}?PROLIFIC_PID=p&SESSION_ID=s")).headers
    )
    assert (
        "content-encoding" not in (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/items.csv")).headers
    )


async def test_pages_that_are_not_there_lead_back(researcher, client, engine):
    campaign = await create_running_campaign(engine)
    there = f"/admin/campaigns/{campaign.slug}"
    page = await researcher.get(f"{there}?item=nothing")
    assert page.status_code == 404
    assert '<a href="/admin">All campaigns</a>' in page.text
    assert f'<a href="{there}">Back to the campaign</a>' in (await researcher.get(f"{there}/respones")).text
    unknown = await researcher.get("/admin/campaigns/nowhere/items")
    assert "Back to the campaign" not in unknown.text
    assert '<a href="/admin">All campaigns</a>' in unknown.text
    assert "All campaigns" not in (await client.get("/link/nothing")).text


async def test_a_turn_is_given_back_before_the_reply_is_sent(app, client):
    """However slowly somebody reads, nobody else waits for that."""
    campaign = await create_running_campaign(app.state.database)
    only = ServingConnections(app.state.serving_database, 1)
    app.state.serving_connections = app.state.page_requests.connections = only
    free = []

    async def slowly(scope, receive, send):
        async def send_when_free(message):
            async with asyncio.timeout(20), app.state.serving_connections.borrow_autocommit_connection():
                free.append(message["type"])
            await send(message)

        await app(scope, receive, send_when_free)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(slowly), base_url="http://easel.test") as reader:
        assert (await reader.post(f"/link/{campaign.link_key}", follow_redirects=True)).status_code == 200
    assert "http.response.body" in free


@pytest.mark.own_database
async def test_no_connection_stays_open_when_the_application_ends(database_url, engine):
    app = create_app(Settings(database_url=database_url))
    async with (
        app.router.lifespan_context(app),
        app.state.serving_connections.borrow_autocommit_connection() as connection,
    ):
        pid = connection.get_server_pid()
    await wait_until(engine, f"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = {pid})")


ALLOWED = [
    ("/link/none", "DELETE", "GET, POST, PUT"),
    ("/admin/people/1/link", "PUT", "GET, HEAD, POST"),
    ("/admin/campaigns/any/launch", "GET", "POST"),
    ("/api/v1/campaigns/any", "PUT", "GET, HEAD, PATCH, DELETE"),
    ("/api/v1/campaigns", "DELETE", "GET, HEAD, POST"),
    ("/api/v1/tokens", "BREW", "POST"),
    ("/static/easel.css", "POST", "GET, HEAD"),
]


async def test_who_asks_with_a_wrong_method_is_told_all_that_the_address_takes(client, subtests):
    for address, method, allowed in ALLOWED:
        with subtests.test(address=address, method=method, allowed=allowed):
            reply = await client.request(method, address)
            assert (reply.status_code, reply.headers["allow"]) == (405, allowed)


async def test_head_is_answered_as_get_is_without_the_body(researcher, client):
    for address in ("/admin", "/admin/nowhere", "/static/easel.css", "/api/v1/campaigns"):
        whole, head = await researcher.get(address), await researcher.head(address)
        assert (head.status_code, head.headers["content-type"]) == (whole.status_code, whole.headers["content-type"])
        assert head.content == b""
    assert (await client.head("/admin")).headers["location"] == (await client.get("/admin")).headers["location"]
    assert (await client.head("/login/")).headers["location"] == "/login"
    assert (await researcher.head("/logout")).headers["allow"] == "POST"


async def test_a_link_checker_leases_no_hit(client, engine):
    campaign = await create_running_campaign(engine)
    who = {"PROLIFIC_PID": "p1", "STUDY_ID": "s1", "SESSION_ID": "v1"}
    reply = await client.head(f"/prolific/{campaign.link_key}", params=who)
    assert (reply.status_code, reply.headers["allow"]) == (405, "GET, POST, PUT")
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_head_of_a_page_without_end_is_over_at_once(researcher, engine):
    campaign = await create_running_campaign(engine)
    await researcher.head(f"/admin/campaigns/{campaign.slug}/events")


async def test_an_address_with_a_slash_at_its_end_keeps_who_comes(client):
    reply = await client.get("/prolific/any/?PROLIFIC_PID=p%201&STUDY_ID=s1")
    assert (reply.status_code, reply.headers["location"]) == (307, "/prolific/any?PROLIFIC_PID=p%201&STUDY_ID=s1")


async def test_a_static_file_that_is_not_there_is_not_kept(client):
    for address, kept in (
        ("/static/easel.css?v=1", "max-age=31536000, immutable"),
        ("/static/gone.css?v=1", "no-store"),
    ):
        assert (await client.get(address)).headers["cache-control"] == kept


@pytest.mark.parametrize("of", ["/admin/campaigns/verbs", "/api/v1/campaigns/verbs"])
def test_a_zip_of_media_may_come_with_items_and_with_their_preview_and_nowhere_else(app, of):
    limits = BodyLimits(app, upload_mb=1, media_mb=100)
    roomy = {limits.max_body_bytes(of + end) > 100 * 2**20 for end in ("/items", "/items/preview")}
    assert roomy == {True}
    assert limits.max_body_bytes(of + "/responses") < 2 * 2**20


def test_a_number_in_an_address_is_one_that_a_row_can_have(app):
    """A larger one would be refused by the database, and nobody would know why."""
    numbers = [
        (route.path, one.name, [getattr(limit, "le", None) for limit in one.field_info.metadata])
        for route in iter_route_contexts(app.routes)
        if (asked := getattr(route, "dependant", None)) is not None
        for one in asked.path_params
        if one.field_info.annotation is int
    ]
    assert len(numbers) > 10
    assert [(path, name) for path, name, limits in numbers if MAX_ROW_ID not in limits] == []
