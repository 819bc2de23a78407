import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from sqlalchemy import text

from app.accounts import login, tokens, users
from app.accounts.secrets import csrf_token_of_session
from app.database.session import borrow_autocommit_driver
from tests.conftest import http_client

ACCOUNT = "/admin/account"
NOTEBOOK = {"name": "notebook", "scope": "read"}
PASSWORD = "ten small verbs"


def shown_secret(page: str, name: str) -> str:
    found = re.search(rf'id="{name}">([^<]+)<', page)
    assert found, page
    return found[1].replace("&amp;", "&")


async def set_password(researcher, password=PASSWORD, current=""):
    return await researcher.post(f"{ACCOUNT}/password", data={"current": current, "password": password})


async def test_whoever_came_by_a_link_sets_a_first_password_and_logs_in_with_it(researcher, client):
    assert "You have no password yet" in (await researcher.get(ACCOUNT)).text
    assert (await set_password(researcher)).headers["location"] == f"{ACCOUNT}?done=password"
    page = (await researcher.get(f"{ACCOUNT}?done=password")).text
    assert "Password changed" in page
    assert "You have no password yet" not in page
    assert (await client.post("/login", data={"name": "admin", "password": PASSWORD})).status_code == 303


async def test_a_password_is_changed_only_with_the_current_one(researcher, client):
    await set_password(researcher)
    response = await set_password(researcher, "another password", "wrong")
    assert response.status_code == 422
    assert "Your current password is wrong" in response.text
    assert (await set_password(researcher, "another password", PASSWORD)).status_code == 303
    assert (await client.post("/login", data={"name": "admin", "password": PASSWORD})).status_code == 401
    assert (await client.post("/login", data={"name": "admin", "password": "another password"})).status_code == 303


async def test_a_password_that_is_too_short_is_refused(researcher):
    response = await set_password(researcher, "short")
    assert response.status_code == 422
    assert "10 characters or more" in response.text


async def test_a_new_password_ends_other_sessions_and_keeps_this_one(researcher, client):
    await set_password(researcher)
    await client.post("/login", data={"name": "admin", "password": PASSWORD})
    assert (await client.get("/admin")).status_code == 200
    await set_password(researcher, "another password", PASSWORD)
    assert (await client.get("/admin")).status_code == 303
    assert (await researcher.get("/admin")).status_code == 200


async def test_a_token_is_shown_once_works_and_can_be_revoked(researcher, client):
    token = shown_secret((await researcher.post(f"{ACCOUNT}/tokens", data=NOTEBOOK)).text, "new-token")
    bearer = {"authorization": f"Bearer {token}"}
    assert (await client.get("/api/v1/campaigns", headers=bearer)).json() == {"campaigns": []}
    page = (await researcher.get(ACCOUNT)).text
    assert "notebook" in page
    assert token not in page
    revoke = re.search(rf'action="({ACCOUNT}/tokens/\d+/revoke)"', page)
    assert revoke
    assert (await researcher.post(revoke[1])).headers["location"] == f"{ACCOUNT}?done=token-revoked"
    refused = await client.get("/api/v1/campaigns", headers=bearer)
    assert refused.json()["error"]["code"] == "token_invalid"
    assert (await researcher.post(revoke[1])).status_code == 404


@pytest.mark.parametrize(
    ("address", "told"), [("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("?", "")]
)
async def test_the_account_page_tells_when_and_from_where_a_token_was_last_used(app, researcher, address, told):
    token = shown_secret((await researcher.post(f"{ACCOUNT}/tokens", data=NOTEBOOK)).text, "new-token")
    assert last_use((await researcher.get(ACCOUNT)).text) == "never"
    transport = httpx.ASGITransport(app, client=(address, 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://easel.test") as program:
        assert (await program.get("/api/v1/campaigns", headers={"authorization": f"Bearer {token}"})).is_success
    when, _, where = last_use((await researcher.get(ACCOUNT)).text).partition(" UTC")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d", when)
    assert where == (f" from {told}" if told else "")


def last_use(page):
    """Return the text of the fourth cell of the only row in the table of tokens."""
    row = page.split('aria-label="Table of tokens"')[1].split("<tbody>")[1].split("</tr>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", row.split("<td")[3].partition(">")[2]).split())


async def test_a_use_is_noted_at_most_once_a_minute(app, researcher):
    token = shown_secret((await researcher.post(f"{ACCOUNT}/tokens", data=NOTEBOOK)).text, "new-token")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    noted = []
    for seconds, address in ((0, "192.0.2.1"), (59, "192.0.2.2"), (61, "192.0.2.3")):
        async with borrow_autocommit_driver(app.state.database) as connection:
            await tokens.load_token_and_store_its_use_or_refuse(
                connection, token, address, now=start + timedelta(seconds=seconds)
            )
        async with app.state.database.connect() as connection:
            (row,) = await tokens.list_api_tokens(connection, 1)
        noted.append(((row.last_used_at - start).seconds, row.last_used_from))
    assert noted == [(0, "192.0.2.1"), (0, "192.0.2.1"), (61, "192.0.2.3")]


async def test_no_program_waits_while_a_use_of_its_token_is_noted(app, researcher, client):
    token = shown_secret((await researcher.post(f"{ACCOUNT}/tokens", data=NOTEBOOK)).text, "new-token")
    async with app.state.database.begin() as another:
        await another.execute(text("UPDATE api_tokens SET last_used_at = NULL"))
        reply = await client.get("/api/v1/campaigns", headers={"authorization": f"Bearer {token}"})
    assert reply.status_code == 200


async def test_a_token_needs_a_name(researcher):
    response = await researcher.post(f"{ACCOUNT}/tokens", data={"name": " "})
    assert response.status_code == 422
    assert "Give the token a name" in response.text


async def test_a_new_researcher_comes_in_by_a_link_and_can_be_removed(app, researcher):
    page = (await researcher.post("/admin/people", data={"name": "Bob"})).text
    link = shown_secret(page, "new-link")
    assert link.startswith("http://easel.test/login?token=")
    async with http_client(app) as bob:
        await bob.post("/login", data={"token": link.partition("token=")[2]})
        bob.headers["X-CSRF-Token"] = csrf_token_of_session(bob.cookies[app.state.cookie_name])
        assert "bob" in (await bob.get("/admin")).text
        remove = re.search(r'href="(/admin/people/\d+/remove)"', (await researcher.get("/admin/people")).text)
        assert remove
        asked = await researcher.get(remove[1])  # first a question, and nothing is removed by it
        assert "Remove bob?" in asked.text
        assert f'action="{remove[1]}"' in asked.text
        assert (await researcher.post(remove[1])).headers["location"] == "/admin/people?done=user-removed"
        assert (await bob.get("/admin")).status_code == 303
    assert (await researcher.post(remove[1])).status_code == 404


async def test_a_researcher_who_forgot_the_password_gets_a_link(researcher, client):
    page = (await researcher.post("/admin/people", data={"name": "bob"})).text
    make = re.search(r'href="(/admin/people/\d+/link)"', page)
    assert make
    assert "Login link for bob" in (await researcher.get(make[1])).text
    token = shown_secret((await researcher.post(make[1])).text, "new-link").partition("token=")[2]
    assert (await client.post("/login", data={"token": token})).status_code == 303
    assert (await researcher.post("/admin/people/999/link")).status_code == 404


async def test_a_name_that_is_taken_is_refused_on_the_page(researcher):
    response = await researcher.post("/admin/people", data={"name": "admin"})
    assert response.status_code == 409
    assert "already a researcher" in response.text


async def test_nobody_removes_themselves(app, researcher):
    async with app.state.database.connect() as connection:
        me = await users.fetch_user_by_name_or_none(connection, "admin")
    assert me
    response = await researcher.post(f"/admin/people/{me.id}/remove")
    assert response.status_code == 409
    assert "cannot remove yourself" in response.text


async def test_an_impossible_number_is_not_an_error_of_ours(researcher):
    assert (await researcher.post(f"/admin/people/{2**63}/remove")).status_code == 404


async def a_link_for(app, name="admin"):
    async with app.state.database.begin() as connection:
        user = await users.fetch_user_by_name_or_none(connection, name)
        assert user
        return await login.create_one_time_login_and_return_secret(connection, now=datetime.now(UTC), user_id=user.id)


@asynccontextmanager
async def came_by_link(app, token):
    """Return a client that has just logged in by a link."""
    async with http_client(app) as someone:
        assert (await someone.post("/login", data={"token": token})).status_code == 303
        someone.headers["X-CSRF-Token"] = csrf_token_of_session(someone.cookies[app.state.cookie_name])
        yield someone


async def test_whoever_forgot_the_password_sets_a_new_one_with_a_link_alone_and_once(app, researcher, client):
    await set_password(researcher)
    async with came_by_link(app, await a_link_for(app)) as me:
        page = (await me.get(ACCOUNT)).text
        assert "without the old one" in page
        assert 'name="current"' not in page
        assert (await set_password(me, "another password")).status_code == 303
        assert (await set_password(me, "a third password")).status_code == 422  # now there is one to show
    assert (await client.post("/login", data={"name": "admin", "password": "another password"})).status_code == 303


async def test_a_link_is_proof_for_an_hour(app, researcher):
    await set_password(researcher)
    async with came_by_link(app, await a_link_for(app)) as me:
        async with app.state.database.begin() as connection:
            await connection.execute(text("UPDATE logins SET by_link_at = by_link_at - interval '1 hour'"))
        assert (await set_password(me, "another password")).status_code == 422


async def test_an_open_browser_lets_nobody_make_a_link_or_a_researcher_without_the_password(app, researcher):
    await set_password(researcher)
    async with app.state.database.begin() as connection:
        bob = await users.insert_and_return_user_or_refuse(connection, "bob", now=datetime.now(UTC))
    link = f"/admin/people/{bob.id}/link"
    assert 'name="current"' in (await researcher.get(link)).text
    for address, fields in ((link, {}), ("/admin/people", {"name": "eve"})):
        refused = await researcher.post(address, data=fields)
        assert refused.status_code == 422
        assert "Your current password is wrong" in refused.text
        assert "/login?token=" not in refused.text
    for address, fields in ((link, {}), ("/admin/people", {"name": "eve"})):
        made = await researcher.post(address, data=fields | {"current": PASSWORD})
        assert "/login?token=" in made.text


async def test_a_new_password_ends_login_links_and_if_wished_tokens(app, researcher, client):
    await set_password(researcher)
    link = await a_link_for(app)
    made = await researcher.post(f"{ACCOUNT}/tokens", data=NOTEBOOK | {"current": PASSWORD})
    bearer = {"authorization": f"Bearer {shown_secret(made.text, 'new-token')}"}
    await set_password(researcher, "another password", PASSWORD)
    assert (await client.post("/login", data={"token": link})).status_code == 410
    assert (await client.get("/api/v1/campaigns", headers=bearer)).status_code == 200
    fields = {"current": "another password", "password": PASSWORD, "revoke_tokens": "yes"}
    await researcher.post(f"{ACCOUNT}/password", data=fields)
    assert (await client.get("/api/v1/campaigns", headers=bearer)).status_code == 401


async def test_log_out_everywhere_ends_every_session_and_link_of_mine_and_nobody_elses(app, researcher):
    async with app.state.database.begin() as connection:
        await users.insert_and_return_user_or_refuse(connection, "bob", now=datetime.now(UTC))
    async with (
        came_by_link(app, await a_link_for(app)) as elsewhere,
        came_by_link(app, await a_link_for(app, "bob")) as bob,
    ):
        link = await a_link_for(app)
        assert (await researcher.post(f"{ACCOUNT}/logout-everywhere")).headers["location"] == "/login"
        assert [(await who.get("/admin")).status_code for who in (researcher, elsewhere, bob)] == [303, 303, 200]
        assert (await elsewhere.post("/login", data={"token": link})).status_code == 410


@pytest.mark.parametrize("host", ["evil.test", "evil.test:8000", "localhost.evil.test"])
async def test_a_name_that_is_not_ours_stands_in_no_link(researcher, host):
    page = (await researcher.post("/admin/people", data={"name": "bob"}, headers={"host": host})).text
    assert shown_secret(page, "new-link").startswith("http://easel.test:")
    assert "evil" not in page


@pytest.mark.parametrize("host", ["localhost:1234", "127.0.0.1:1234", "[::1]:1234", "easel.test"])
async def test_a_name_that_is_ours_stands_in_links(researcher, host):
    page = (await researcher.post("/admin/people", data={"name": "bob"}, headers={"host": host})).text
    assert shown_secret(page, "new-link").startswith(f"http://{host}/login")


@pytest.mark.parametrize(
    ("path", "location"), [("/admin/", "/admin"), ("//evil.test/", "/evil.test"), ("/\\evil.test/", "/%5Cevil.test")]
)
async def test_a_slash_too_much_leads_to_no_other_server(client, path, location):
    reply = await client.get(f"http://easel.test{path}", headers={"host": "evil.test"})
    assert (reply.status_code, reply.headers["location"]) == (307, location)
