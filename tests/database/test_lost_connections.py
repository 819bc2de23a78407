"""Connections that are lost without a word: nobody waits for ever, and what can go on does."""

import asyncio
import socket
from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest
from sqlalchemy import make_url, text
from starlette.requests import Request

from app.database import bulk, tables
from app.database.connections import DatabaseUnreachable, TimeLimits
from app.database.server_database import load_database_state_or_raise
from app.database.session import (
    Driver,
    PrimaryProof,
    ServingConnections,
    borrow_autocommit_driver,
    borrow_driver_in_transaction,
    create_engine,
    driver_of,
    is_limited_connection,
)
from app.http import dependencies
from tests.annotation.hits.campaigns import create_running_campaign, wait_until
from tests.campaigns.drafts import apply_action
from tests.conftest import http_client
from tests.proxies import Proxy

pytestmark = pytest.mark.slow

PROGRAM = Request({"type": "http", "method": "POST", "path": "/api/v1/anything", "query_string": b"", "headers": []})
PATIENCE = 60  # seconds in which anything that ends at all has ended
ASKED_BEFORE_USE = TimeLimits(statement=3600, ping=1, fresh=0)
NEVER_ASKED = TimeLimits(statement=1, ping=1, fresh=3600)


@asynccontextmanager
async def proxied(database_url, limits, **how):
    async with Proxy(database_url) as proxy:
        engine = create_engine(proxy.url, pool_size=4, limits=limits, **how)
        try:
            yield proxy, engine
        finally:
            async with asyncio.timeout(PATIENCE):
                await engine.dispose()


async def by_sqlalchemy(engine, _connections, statement):
    async with engine.begin() as connection:
        return await connection.scalar(text(statement))


async def by_transaction(engine, _connections, statement):
    async with borrow_driver_in_transaction(engine) as connection:
        return await connection.fetchval(statement)


async def by_statements(engine, _connections, statement):
    async with borrow_autocommit_driver(engine) as connection:
        return await connection.fetchval(statement)


async def by_serving(_engine, connections, statement):
    async with connections.borrow_autocommit_connection(1) as connection:
        return await connection.fetchval(statement)


async def by_serving_in_a_transaction(_engine, connections, statement):
    async with connections.borrow_autocommit_connection(1) as connection, connection.transaction():
        return await connection.fetchval(statement)


WAYS = [by_sqlalchemy, by_transaction, by_statements, by_serving, by_serving_in_a_transaction]
BACKEND = "SELECT pg_backend_pid()"
WRITE = "SELECT nextval('record_seq')"


async def check_every_way(check):
    """Check all ways at once, because each waits for a time limit."""
    await asyncio.gather(*(check(way) for way in WAYS))


async def test_a_connection_that_fell_silent_in_the_pool_is_replaced_before_its_next_use(database_url):
    async def check(way):
        async with proxied(database_url, ASKED_BEFORE_USE) as (proxy, engine):
            connections = ServingConnections(engine, 4)
            before = await way(engine, connections, BACKEND)
            assert await way(engine, connections, BACKEND) == before
            proxy.silence()
            async with asyncio.timeout(PATIENCE):
                assert await way(engine, connections, BACKEND) != before
                await connections.close()

    await check_every_way(check)


async def test_a_statement_whose_connection_falls_silent_is_a_503_and_the_next_one_works(database_url):
    async def check(way):
        async with proxied(database_url, NEVER_ASKED) as (proxy, engine):
            connections = ServingConnections(engine, 4)
            before = await way(engine, connections, BACKEND)
            proxy.silence()
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(TimeoutError) as problem:
                    await way(engine, connections, BACKEND)
                assert dependencies.handle_database_error(PROGRAM, problem.value).status_code == 503
                assert await way(engine, connections, BACKEND) != before
                await connections.close()

    await check_every_way(check)


async def test_a_commit_whose_connection_falls_silent_is_a_503_and_the_next_one_works(database_url):
    async with proxied(database_url, NEVER_ASKED) as (proxy, engine), asyncio.timeout(PATIENCE):

        async def commit():
            async with engine.begin() as connection:
                await connection.execute(text("SELECT 1"))
                proxy.silence()

        with pytest.raises(TimeoutError):
            await commit()
        assert await by_sqlalchemy(engine, None, "SELECT 1") == 1


async def test_many_silent_connections_cost_one_time_limit_and_not_one_each(database_url):
    """Four, one after the other, would take 12 s if each were waited for."""
    async with proxied(database_url, replace(ASKED_BEFORE_USE, ping=3)) as (proxy, engine):
        connections = ServingConnections(engine, 4)

        async def backend(campaign, inside):
            async with connections.borrow_autocommit_connection(campaign) as connection:
                await inside.wait()
                return await connection.fetchval(BACKEND)

        all_four = asyncio.Barrier(4)
        assert len(set(await asyncio.gather(*(backend(number, all_four) for number in range(4))))) == 4
        proxy.silence()
        async with asyncio.timeout(9):
            for number in range(4):
                await backend(number, asyncio.Barrier(1))
            await asyncio.gather(*(backend(number, all_four) for number in range(4)))
        await connections.close()


async def test_a_slow_statement_is_cancelled_and_its_connection_replaced_alone(database_url):
    async with proxied(database_url, NEVER_ASKED) as (_, engine), engine.connect() as other:
        kept = await other.scalar(text(BACKEND))
        with pytest.raises(TimeoutError):
            await by_sqlalchemy(engine, None, "SELECT pg_sleep(20)")
        assert await other.scalar(text(BACKEND)) == kept
        sleeping = "state = 'active' AND query ~ '^SELECT pg_sleep'"
        async with asyncio.timeout(PATIENCE):
            await wait_until(engine, f"SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE {sleeping})")


async def test_copies_may_take_longer_than_a_statement(database_url):
    async with proxied(database_url, NEVER_ASKED) as (_, engine), borrow_autocommit_driver(engine) as connection:
        slow = "SELECT n, pg_sleep(0.6)::text = '' FROM generate_series(1, 4) AS n"
        found = await bulk.fetch_array_by_column_on_driver(connection, f"SELECT n FROM ({slow}) AS slow", (), n="i4")
        assert found["n"].tolist() == [1, 2, 3, 4]


async def test_a_copy_whose_connection_falls_silent_comes_to_an_end(database_url, monkeypatch):
    monkeypatch.setattr(bulk, "COPY_SILENCE_SECONDS", 0.3)
    async with proxied(database_url, ASKED_BEFORE_USE) as (proxy, engine), asyncio.timeout(PATIENCE):

        async def copy():
            async with engine.begin() as connection:
                await connection.execute(text("SELECT 1"))
                proxy.silence()
                await bulk.fetch_array_by_column_on_driver(
                    await driver_of(connection), "SELECT 1::int4 AS n", (), n="i4"
                )

        with pytest.raises(TimeoutError):
            await copy()
        assert await by_sqlalchemy(engine, None, "SELECT 1") == 1


@pytest.mark.parametrize("is_lost", [True, False])
async def test_a_copy_that_uvloop_cannot_send_is_a_lost_connection_if_it_was_lost(engine, monkeypatch, is_lost):
    """uvloop may notice that a socket is closed before the driver is told, and raises a RuntimeError."""

    async def fail(driver, *_, **__):
        if is_lost:
            asyncio.get_running_loop().call_soon(driver.terminate)
        raise RuntimeError("unable to perform operation on <UnixTransport closed=True>; the handler is closed")

    monkeypatch.setattr(asyncpg.Connection, "copy_to_table", fail)
    with pytest.raises(asyncpg.InterfaceError if is_lost else RuntimeError):
        async with engine.begin() as connection:
            await bulk.insert_text_lines_by_copy(connection, tables.items, ["1"], "campaign_id")
    assert await by_sqlalchemy(engine, None, "SELECT 1") == 1


async def test_being_cancelled_on_a_silent_connection_takes_no_time(database_url):
    """Such as a task in the background when the server stops."""

    async def check(way):
        async with proxied(database_url, replace(NEVER_ASKED, statement=3600)) as (proxy, engine):
            connections = ServingConnections(engine, 4)
            await way(engine, connections, "SELECT 1")
            proxy.silence()
            task = asyncio.create_task(way(engine, connections, "SELECT 2"))
            await asyncio.sleep(0.1)
            task.cancel()
            async with asyncio.timeout(PATIENCE):
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert await way(engine, connections, "SELECT 3") == 3
                await connections.close()

    await check_every_way(check)


@pytest.mark.own_database
async def test_locks_of_a_connection_that_fell_silent_are_released(database_url):
    """PostgreSQL hears nothing of the loss either, and would keep the locks for hours."""
    limits = replace(NEVER_ASKED, statement=2, idle_in_transaction=0.5)
    async with proxied(database_url, limits, lock_seconds=1) as (proxy, engine), asyncio.timeout(PATIENCE):
        async with borrow_driver_in_transaction(engine) as connection:
            await connection.execute("CREATE TABLE counted (number int); INSERT INTO counted VALUES (0)")

        async def count():
            async with borrow_driver_in_transaction(engine) as connection:
                await connection.execute("UPDATE counted SET number = number + 1")
                proxy.silence()
                await connection.execute("SELECT 1")

        with pytest.raises(TimeoutError):
            await count()
        async with borrow_driver_in_transaction(engine) as connection:
            await connection.execute("UPDATE counted SET number = number + 10")
            assert await connection.fetchval("SELECT number FROM counted") == 10


# Connecting


async def test_a_silent_first_host_is_passed_over_and_not_tried_again_first(database_url):
    async with Proxy(database_url) as silent, Proxy(database_url) as other:
        silent.silent = True
        url = f"{other.url}&host=127.0.0.1:{silent.port}&host=127.0.0.1:{other.port}"
        engine = create_engine(url, pool_size=4, limits=TimeLimits(connect=2))
        async with asyncio.timeout(PATIENCE), engine.connect() as one, engine.connect() as two:
            assert [await one.scalar(text("SELECT 1")), await two.scalar(text("SELECT 1"))] == [1, 1]
        assert (silent.accepted, other.accepted) == (1, 2)
        await engine.dispose()


async def test_a_request_that_gives_up_at_a_silent_host_lets_the_next_begin_at_the_other(database_url):
    async with Proxy(database_url) as silent, Proxy(database_url) as other:
        silent.silent = True
        url = f"{other.url}&host=127.0.0.1:{silent.port}&host=127.0.0.1:{other.port}"
        engine = create_engine(url, pool_size=4, limits=TimeLimits(connect=3600))
        connections = ServingConnections(engine, 4, seconds=2)
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(TimeoutError):
                await by_serving(engine, connections, "SELECT 1")
            assert await by_serving(engine, connections, "SELECT 1") == 1
            await connections.close()
        await engine.dispose()


async def test_a_host_that_takes_no_writes_is_passed_over(database_url):
    async with Proxy(database_url) as standby, Proxy(database_url) as primary:
        standby.read_only = True
        both = f"host=127.0.0.1,127.0.0.1&port={standby.port},{primary.port}"
        for session in ("", "&target_session_attrs=read-write"):
            engine = create_engine(f"{primary.url}&{both}{session}", pool_size=1)
            async with engine.connect() as connection:
                assert await connection.scalar(text("SHOW transaction_read_only")) == "off"
            await engine.dispose()
        engine = create_engine(f"{primary.url}&{both}&target_session_attrs=any", pool_size=1)
        async with engine.connect() as connection:
            assert await connection.scalar(text("SHOW transaction_read_only")) == "on"
        await engine.dispose()


async def test_when_no_host_answers_each_is_named_with_its_reason(database_url):
    async with Proxy(database_url) as silent, Proxy(database_url) as standby:
        silent.silent = standby.read_only = True
        url = f"{silent.url}&host=127.0.0.1:{silent.port}&host=127.0.0.1:{standby.port}&host=127.0.0.1:9"
        engine = create_engine(url, pool_size=1, limits=TimeLimits(connect=2))
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(DatabaseUnreachable) as problem:
                await engine.connect()
        said = str(problem.value)
        assert f"127.0.0.1:{silent.port}: it did not answer within 2 seconds; " in said
        assert f"127.0.0.1:{standby.port}: it is not a server for target_session_attrs=read-write; " in said
        assert "127.0.0.1:9: " in said
        assert dependencies.handle_database_error(PROGRAM, problem.value).status_code == 503
        await engine.dispose()


@pytest.mark.parametrize("way", WAYS)
async def test_a_server_that_takes_no_writes_is_a_503_and_its_connection_is_dropped(database_url, way):
    """A primary that became a standby keeps its connections open."""
    async with proxied(database_url, TimeLimits()) as (proxy, engine):
        connections = ServingConnections(engine, 4)
        proxy.read_only = True
        with pytest.raises(Exception, match="read-only transaction") as problem:
            await way(engine, connections, WRITE)
        assert dependencies.handle_database_error(PROGRAM, problem.value).status_code == 503
        proxy.read_only = False
        assert await way(engine, connections, WRITE) > 0
        await connections.close()


async def test_a_pooler_of_sessions_is_accepted(database_url):
    async with Proxy(database_url) as pooler:
        pooler.refuse_settings = True
        assert (await load_database_state_or_raise(pooler.url)).has_tables


async def test_a_pooler_that_takes_no_settings_gets_them_afterwards(database_url):
    async with proxied(database_url, TimeLimits(), lock_seconds=5) as (proxy, engine):
        proxy.refuse_settings = True
        async with engine.connect() as connection:
            assert await connection.scalar(text("SHOW plan_cache_mode")) == "force_generic_plan"
            assert await connection.scalar(text("SHOW lock_timeout")) == "5s"
            assert await connection.scalar(text("SHOW application_name")) == "easel"


def socket_of(connection: Driver) -> socket.socket:
    assert is_limited_connection(connection)
    assert connection.socket is not None
    return connection.socket


async def test_the_kernel_is_asked_to_notice_a_dead_server(database_url):
    async with proxied(database_url, TimeLimits()) as (_, engine), borrow_autocommit_driver(engine) as connection:
        connected = socket_of(connection)
        assert connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 3
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            assert connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 15_000
        assert await connection.fetchval("SHOW client_connection_check_interval") == "10s"


async def test_what_the_address_says_of_sessions_and_sockets_is_followed(database_url):
    async with Proxy(database_url) as proxy:
        asked = "application_name=lab&options=-c%20geqo%3Doff&keepalives_count=7&tcp_user_timeout=4000"
        engine = create_engine(f"{proxy.url}&{asked}", pool_size=1)
        async with borrow_autocommit_driver(engine) as connection:
            assert await connection.fetchval("SHOW application_name") == "lab"
            assert await connection.fetchval("SHOW geqo") == "off"
            assert socket_of(connection).getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT) == 7
        await engine.dispose()


async def annotator_path_of_finished_campaign(app, client):
    campaign = await create_running_campaign(app.state.database)
    path = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    await apply_action(app.state.database, campaign, "finish")
    return path, 200


async def path_of_unknown_campaign(_app, _client):
    return "/link/unknown", 404


async def path_of_campaign_for_invited_people(app, _client):
    campaign = await create_running_campaign(app.state.database, open_link=False)
    return f"/link/{campaign.link_key}", 403


async def path_of_person_who_may_not_take_part(app, _client):
    other = await create_running_campaign(app.state.database, name="Other")
    campaign = await create_running_campaign(
        app.state.database, only_campaigns=[other.slug], panel_title="Pool", panel_query="who={{who}}"
    )
    return f"/panel/{campaign.link_key}?who=p1", 403


@asynccontextmanager
async def application_with_two_addresses(database_url, applications):
    async with Proxy(database_url) as proxy:
        hosts = [f"127.0.0.1:{proxy.port}"] * 2
        url = make_url(proxy.url).set(host=None, port=None, query={"host": hosts, "command_timeout": "1"})
        app = applications(url.render_as_string(hide_password=False))
        async with app.router.lifespan_context(app), http_client(app) as client, asyncio.timeout(PATIENCE):
            yield proxy, app, client


async def test_a_primary_that_may_be_outdated_neither_refuses_nor_ends_a_visit(database_url, applications, subtests):
    """One that hung while another was elected answers reads; its commits wait for a standby that has left."""
    cases = [
        path_of_unknown_campaign,
        annotator_path_of_finished_campaign,
        path_of_campaign_for_invited_people,
        path_of_person_who_may_not_take_part,
    ]
    async with application_with_two_addresses(database_url, applications) as (proxy, app, client):
        paths = [(prepare.__name__, *(await prepare(app, client))) for prepare in cases]
        for case, path, status in paths:
            with subtests.test(case=case):
                page = await client.get(path)
                assert (page.status_code, 'name="hit"' in page.text) == (status, False)
        proxy.swallowed = b"pg_logical_emit_message"
        await asyncio.sleep(PrimaryProof.FRESH_SECONDS)  # until the proof of the first pages counts no longer
        for case, path, _ in paths:
            with subtests.test(case=case):
                outdated = await client.get(path)
                assert (outdated.status_code, outdated.headers.get("retry-after")) == (503, "2")


async def with_unknown_token(client, _cookie_name):
    return await client.get("/api/v1/campaigns", headers={"Authorization": "Bearer unknown"}), 401


async def with_ended_login_of_script(client, cookie_name):
    client.cookies.set(cookie_name, "ended")
    return await client.get("/admin", headers={"Accept": "application/json"}), 401


async def with_ended_login_of_page(client, cookie_name):
    client.cookies.set(cookie_name, "ended")
    return await client.get("/admin"), 303


async def with_wrong_password(client, _cookie_name):
    body = {"name": "admin", "password": "ten wrong verbs"}
    return await client.post("/api/v1/tokens", json=body), 401


async def test_a_primary_that_may_be_outdated_does_not_call_a_login_or_token_unknown(
    database_url, applications, subtests
):
    cases = [with_unknown_token, with_ended_login_of_script, with_ended_login_of_page, with_wrong_password]
    async with application_with_two_addresses(database_url, applications) as (proxy, app, client):
        cookie_name = app.state.cookie_name
        for ask in cases:
            with subtests.test(ask=ask.__name__):
                reply, status = await ask(client, cookie_name)
                assert reply.status_code == status
        # A connection that has sent a statement before does not send its text again.
        await app.state.database.dispose()
        await asyncio.sleep(PrimaryProof.FRESH_SECONDS)
        for ask in cases:
            proxy.swallowed = b"INSERT INTO audit_log" if ask is with_wrong_password else b"pg_logical_emit_message"
            with subtests.test(ask=ask.__name__):
                outdated, _ = await ask(client, cookie_name)
                assert (outdated.status_code, outdated.headers.get("retry-after")) == (503, "2")


@pytest.mark.parametrize("path", ["/api/v1/campaigns", "/admin"])
async def test_a_request_without_login_or_token_needs_no_proof(database_url, applications, path):
    async with application_with_two_addresses(database_url, applications) as (proxy, _, client):
        proxy.swallowed = b"pg_logical_emit_message"
        reply = await client.get(path)
    assert reply.status_code in (303, 401)


async def test_tasks_are_handed_out_without_a_commit_of_their_own(database_url, applications):
    async with application_with_two_addresses(database_url, applications) as (proxy, app, client):
        proxy.swallowed = b"pg_logical_emit_message"
        campaign = await create_running_campaign(app.state.database)
        path = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
        assert 'name="hit"' in (await client.get(path)).text
