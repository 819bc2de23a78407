"""Logging in by OpenID Connect, with a provider that is a process of its own on this machine."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from sqlalchemy import text

from app.accounts import identities, openid, users
from app.accounts.invitations import accept_invitation_as_new_user_returning_both, create_invitation_and_return_token
from app.accounts.openid import IdentityClaims, Provider
from app.accounts.pages import openid as openid_pages
from app.errors import BadGateway, Forbidden, Unauthenticated
from app.settings import Settings, SettingsProblem, read_settings
from tests.accounts.provider import CLIENT, SECRET
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value

BACK = "/login/openid/back"
PASSWORD = "correct horse battery"
CLAIM = st.sampled_from(["iss", "aud", "azp", "sub", "exp", "iat", "nbf", "nonce", "email", "email_verified"])
ONE = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(CLIENT)
JSON = st.recursive(
    ONE, lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(), one, max_size=3), max_leaves=5
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ExitStack() as stack:
        command = [sys.executable, "-m", "tests.accounts.provider"]
        process = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(process.terminate)
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"


@pytest.fixture
async def provider(app, address):
    """Run a provider that works; a test may change its behaviour until the test ends."""
    before = app.state.settings
    app.state.settings = before.model_copy(update={"oidc_issuer": address})
    app.state.provider = Provider(address, CLIENT, SECRET)
    async with httpx.AsyncClient(base_url=address, verify=False) as client:

        async def behave(**how: Any) -> None:
            assert (await client.post("/behave", json=how)).status_code == 200

        await behave()
        yield behave
    app.state.settings, app.state.provider = before, None


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def ada(engine):
    async with engine.begin() as connection:
        return await users.insert_and_return_user_or_refuse(connection, "ada@lab.example", now=NOW, role="manager")


async def gone_and_come_back(client, **query):
    """Send a browser to the provider and back, and return where it ends."""
    begun = await client.get("/login/openid", params=query)
    assert begun.status_code == 303, begun.text
    return await returned(client, begun.headers["location"])


async def returned(client, location):
    async with httpx.AsyncClient(verify=False) as browser:
        led = (await browser.get(location)).headers["location"]
    return await client.get(led.removeprefix("http://127.0.0.1").removeprefix("http://test"))


async def test_whose_login_name_is_their_mail_comes_in_and_goes_where_they_wanted(client, engine, provider, ada):
    response = await gone_and_come_back(client, next="/admin/campaigns/new")
    assert (response.status_code, response.headers["location"]) == (303, "/admin/campaigns/new")
    assert (await client.get("/admin/account")).status_code == 200
    assert await fetch_rows(engine, "SELECT user_id, subject FROM identities") == [(ada.id, "person 1")]
    noted = await fetch_rows(engine, "SELECT who, action, after ->> 'by' FROM audit_log WHERE action = 'login.in'")
    assert noted == [("ada@lab.example", "login.in", "provider")]


async def test_from_then_on_it_is_the_person_who_counts_and_not_their_mail(client, engine, provider, ada):
    await gone_and_come_back(client)
    await provider(claims={"email": "ada.married@lab.example"})
    assert (await gone_and_come_back(client)).headers["location"] == "/admin"
    await provider(claims={"sub": "person 2"})  # who has got Ada's former address
    response = await gone_and_come_back(client)
    assert response.status_code == 403
    assert "No account here is connected to this login." in response.text
    assert await fetch_value(engine, "SELECT count(*) FROM identities") == 1


async def test_a_name_that_somebody_chose_who_has_a_password_opens_no_account(client, engine, provider):
    async with engine.begin() as connection:
        token = await create_invitation_and_return_token(connection, None, "manager", "", inviter_id=None, now=NOW)
        await accept_invitation_as_new_user_returning_both(connection, token, "ada@lab.example", "a hash", now=NOW)
    response = await gone_and_come_back(client)
    assert response.status_code == 403
    assert "log in by name and password and connect this login" in response.text
    assert await fetch_value(engine, "SELECT count(*) FROM identities") == 0


async def test_an_address_that_nobody_verified_opens_no_account(client, engine, provider, ada, subtests):
    for claims in (
        {"email_verified": False},
        {"email_verified": None},
        {"email_verified": "true"},
        {"email": None},
        {"email": ["ada@lab.example"]},
        {"email": "ada@lab.example\0"},
    ):
        with subtests.test(claims=claims):
            await provider(claims=claims)
            response = await gone_and_come_back(client)
            assert response.status_code == 403
            assert await fetch_value(engine, "SELECT count(*) FROM logins") == 0


NO_ADDRESSES = [
    *("admin", "owner", "@", "admin@", "@lab.example", "admin\\@lab.example", "ada@lab.example@", "ada@@lab.example"),
    *("n7@evil.example@lab.example", "ada@lab.example@evil.example", "evil.example/ada@lab.example "),
    *(
        "\u212aim@lab.example",
        "k\u0131m@lab.example",
        "ada@l\u0430b.example",
        "ada\uff20lab.example",
        "ada@lab\u3002example",
    ),
    *(
        '"ada"@lab.example',
        '"a@evil.example"@lab.example',
        "ada(me)@lab.example",
        "ada@lab.example(me)",
        "Ada <ada@lab.example>",
    ),
    *(
        "ada@lab.example.",
        "ada@.lab.example",
        "ada@lab..example",
        ".ada@lab.example",
        "ada.@lab.example",
        "a..a@lab.example",
    ),
    *(
        "ada@[127.0.0.1]",
        "ada@lab.example,admin",
        "ada@lab.example;admin",
        "ada@lab.example admin",
        "mailto:ada@lab.example:x",
    ),
    *(" ada@lab.example", "ada@lab.example\n", "ada@lab.example\t", "ada@lab.example\u00a0", "ada@lab.example\u200b"),
    *("ada@lab.example\0", "ada\0@lab.example", "=?utf-8?q?ada?=@lab.example", "a" * 65 + "@lab.example"),
]


async def test_what_is_no_plain_address_opens_no_account(app, client, engine, provider, ada):
    """Neither that of somebody with such a name, nor a new one because the domain seems to be one of ours."""
    app.state.settings = app.state.settings.model_copy(update={"oidc_domains": ("lab.example",)})
    async with engine.begin() as connection:
        await users.insert_and_return_user_or_refuse(connection, "admin", now=NOW)  # an owner who has no password yet
        await users.insert_and_return_user_or_refuse(connection, "kim@lab.example", now=NOW, role="manager")
    let_in = []
    for claim in NO_ADDRESSES:
        await provider(claims={"email": claim, "sub": f"person {claim!r}"})
        if (await gone_and_come_back(client)).status_code != 403:
            let_in.append(claim)
    assert let_in == []
    assert await fetch_value(engine, "SELECT count(*) FROM logins") == 0
    assert await fetch_value(engine, "SELECT count(*) FROM users") == 3


async def test_an_account_whose_name_is_no_address_is_matched_by_no_claim(engine):
    """Names with two @ are left from before they were refused."""
    told = IdentityClaims(issuer="https://id.example", subject="1", email="admin")
    names = ["admin", "a@evil.example@lab.example"]
    async with engine.begin() as connection:
        for name in names:
            insert = "INSERT INTO users (name, created_at, role) VALUES (:name, :now, 'owner')"
            await connection.execute(text(insert), {"name": name, "now": NOW})
        for name in names:
            claimed = told.model_copy(update={"email": name})
            with pytest.raises(Forbidden, match="No account here is connected"):
                await identities.find_or_create_identity_user_or_refuse(
                    connection, claimed, domains=["lab.example"], role="owner", now=NOW
                )


async def test_a_stranger_is_not_let_in_unless_their_domain_is(app, client, engine, provider):
    assert (await gone_and_come_back(client)).status_code == 403
    assert await fetch_value(engine, "SELECT count(*) FROM users") == 0
    domains = {"oidc_domains": ("lab.example",), "oidc_role": "viewer"}
    app.state.settings = app.state.settings.model_copy(update=domains)
    await provider(claims={"email": "bea@evil-lab.example", "sub": "person 3"})
    assert (await gone_and_come_back(client)).status_code == 403
    await provider(claims={"email": "Bea@Lab.example", "sub": "person 3"})
    assert (await gone_and_come_back(client)).status_code == 303
    assert await fetch_rows(engine, "SELECT name, role FROM users") == [("bea@lab.example", "viewer")]


async def test_a_token_that_proves_nothing_is_refused(client, engine, provider, ada, subtests):
    for behaviour in (
        {"claims": {"nonce": "another"}},
        {"claims": {"nonce": None}},
        {"claims": {"aud": "somebody else"}},
        {"claims": {"aud": ["easel", "somebody else"]}},
        {"claims": {"azp": "somebody else"}},
        {"claims": {"iss": "https://evil.example"}},
        {"claims": {"exp": 1}},
        {"claims": {"exp": None}},
        {"claims": {"iat": 99_999_999_999}},
        {"claims": {"sub": None}},
        {"claims": {"sub": ""}},
        {"claims": {"sub": "a\0"}},
        {"claims": {"sub": 7}},
        {"claims": {"sub": "a" * 256}},
        {"signed": "deep"},
        {"signed": "by another key"},
        {"signed": "by our secret"},
        {"signed": "none"},
    ):
        with subtests.test(behaviour=behaviour):
            await provider(**behaviour)
            response = await gone_and_come_back(client)
            assert response.status_code == 401
            assert "does not match the login that you started" in response.text
            assert await fetch_value(engine, "SELECT count(*) FROM logins") == 0


async def test_a_key_that_the_provider_has_just_changed_is_found(client, provider, ada):
    await gone_and_come_back(client)
    await provider(new_key=True)
    assert (await gone_and_come_back(client)).status_code == 303


async def test_the_secret_is_sent_as_the_provider_wants_it(client, provider, ada):
    await provider(method="client_secret_post")
    assert (await gone_and_come_back(client)).status_code == 303


async def test_a_code_works_once_and_in_the_browser_that_began_alone(client, provider, ada):
    begun = await client.get("/login/openid")
    async with httpx.AsyncClient(verify=False) as browser:
        led = urlsplit((await browser.get(begun.headers["location"])).headers["location"])
    query = {name: one for name, (one,) in parse_qs(led.query).items()}
    kept = dict(client.cookies)
    client.cookies.clear()
    assert (await client.get(BACK, params=query)).status_code == 401  # another browser
    client.cookies.update(kept)
    assert (await client.get(BACK, params=query | {"state": "another"})).status_code == 401
    client.cookies.update(kept)
    assert (await client.get(BACK, params=query)).status_code == 303
    client.cookies.update(kept)
    assert (await client.get(BACK, params=query)).status_code == 401


async def test_a_login_that_was_begun_long_ago_is_over(client, provider, ada, monkeypatch):
    monkeypatch.setattr(openid_pages, "LOGIN_STATE_SECONDS", -1)
    assert (await gone_and_come_back(client)).status_code == 401


async def test_nobody_is_led_to_another_site_afterwards(client, provider, ada, subtests):
    for target in ("https://evil.example", "//evil.example", "/\\evil.example", "/login"):
        with subtests.test(target=target):
            assert (await gone_and_come_back(client, next=target)).headers["location"] == "/admin"


@pytest.mark.parametrize(
    "behaviour",
    [
        {"discovery": "endless"},
        {"discovery": "deep"},
        {"discovery": "slow"},
        {"discovery": "dripping"},
        {"issuer": "https://evil.example"},
    ],
)
async def test_a_provider_that_does_not_answer_as_it_should_is_said(client, provider, behaviour, monkeypatch):
    monkeypatch.setattr(openid, "PROVIDER_TIMEOUT_SECONDS", 0.2)
    await provider(**behaviour)
    response = await client.get("/login/openid")
    assert response.status_code == 502
    assert "The login provider cannot be reached" in response.text
    assert 'name="password"' in response.text  # the other way stays


async def test_a_provider_that_is_away_is_said(app, client, provider):
    app.state.provider = Provider("http://127.0.0.1:9", CLIENT, SECRET)
    assert (await client.get("/login/openid")).status_code == 502


async def test_a_provider_that_is_away_is_left_in_peace_for_some_seconds(address):
    at = [0.0]
    asked = Provider("http://127.0.0.1:9", CLIENT, SECRET, clock=lambda: at[0])
    with pytest.raises(BadGateway):
        await asked.load_openid_endpoints_or_refuse()
    asked.issuer = address
    with pytest.raises(BadGateway):
        await asked.load_openid_endpoints_or_refuse()
    at[0] += openid.PROVIDER_REST_SECONDS
    assert (await asked.load_openid_endpoints_or_refuse()).issuer == address


async def test_who_says_no_at_the_provider_is_back_at_the_login(client, provider):
    begun = urlsplit((await client.get("/login/openid")).headers["location"])
    (state,) = parse_qs(begun.query)["state"]
    response = await client.get(BACK, params={"error": "access_denied", "state": state})
    assert response.status_code == 401
    assert "The login provider denied access, or you cancelled." in response.text
    assert 'name="password"' in response.text


@given(claims=st.dictionaries(CLAIM, JSON, max_size=9))
def test_no_claims_are_more_than_refused(claims):
    begun = openid.LoginState.with_new_secrets("/admin")
    usual = {"iss": "https://id.example", "aud": CLIENT, "sub": "a", "iat": time.time(), "nonce": begun.nonce}
    asked = Provider("https://id.example", CLIENT, SECRET)
    with suppress(Unauthenticated):
        told = asked.verified_identity_or_refuse(usual | {"exp": time.time() + 300} | claims, begun)
        assert told.subject.isprintable()


async def test_without_a_provider_there_is_no_such_login(client):
    assert "/login/openid" not in (await client.get("/login")).text
    assert (await client.get("/login/openid")).status_code == 404


async def test_the_login_page_offers_it(client, provider):
    page = (await client.get("/login", params={"next": "/admin/account"})).text
    assert 'href="/login/openid?next=/admin/account"' in page
    assert "single sign-on" in page


# The account page


async def connect(researcher):
    page = (await researcher.get("/admin/account")).text
    assert "Connect with single sign-on" in page
    begun = await researcher.post("/admin/account/openid")
    assert begun.status_code == 303
    return await returned(researcher, begun.headers["location"])


async def test_an_account_is_connected_and_disconnected_by_who_is_logged_in(engine, researcher, provider):
    response = await connect(researcher)
    assert response.headers["location"] == "/admin/account?done=connected"
    assert await fetch_value(engine, "SELECT count(*) FROM identities") == 1
    page = (await researcher.get("/admin/account")).text
    assert "This account is connected" in page
    assert "To disconnect it, set a password first." in page
    refused = await researcher.post("/admin/account/openid/disconnect")
    assert refused.status_code == 409
    assert "Set a password first." in refused.text
    await researcher.post("/admin/account/password", data={"password": PASSWORD})
    assert "Disconnect" in (await researcher.get("/admin/account")).text
    for wrong in ("", "another password"):
        refused = await researcher.post("/admin/account/openid/disconnect", data={"current": wrong})
        assert refused.status_code == 422
    assert await fetch_value(engine, "SELECT count(*) FROM identities") == 1
    await researcher.post("/admin/account/openid/disconnect", data={"current": PASSWORD})
    assert await fetch_value(engine, "SELECT count(*) FROM identities") == 0
    noted = await fetch_rows(engine, "SELECT action FROM audit_log WHERE action LIKE 'login.%connected' ORDER BY id")
    assert noted == [("login.connected",), ("login.disconnected",)]


async def test_a_person_has_one_account(engine, researcher, provider, ada, address):
    async with engine.begin() as connection:
        told = openid.IdentityClaims(issuer=address, subject="person 1")
        await identities.connect_identity_or_refuse(connection, told, ada.id, now=NOW)
    response = await connect(researcher)
    assert response.status_code == 409
    assert "belongs to another account here" in response.text


async def test_who_has_logged_out_meanwhile_connects_nothing(engine, researcher, provider):
    begun = await researcher.post("/admin/account/openid")
    await researcher.post("/logout")
    assert (await returned(researcher, begun.headers["location"])).status_code == 401
    assert await fetch_value(engine, "SELECT count(*) FROM identities") == 0


# Settings


@pytest.mark.parametrize(
    "environment",
    [
        {"EASEL_OIDC_ISSUER": "https://id.example"},
        {"EASEL_OIDC_ISSUER": "http://id.example", "EASEL_OIDC_CLIENT_ID": "a", "EASEL_OIDC_CLIENT_SECRET": "b"},
        {"EASEL_OIDC_ROLE": "owner"},
        {"EASEL_OIDC_DOMAINS": "@lab.example"},
        {"EASEL_OIDC_DOMAINS": "lab.example,*.example"},
        {"EASEL_OIDC_DOMAINS": "evil.example@lab.example"},
    ],
)
def test_settings_that_cannot_work_are_refused_at_the_start(monkeypatch, environment):
    for name, one in environment.items():
        monkeypatch.setenv(name, one)
    with pytest.raises(SettingsProblem, match="EASEL_OIDC"):
        read_settings()


def test_a_provider_is_that_of_the_settings():
    chosen = Settings(oidc_issuer="https://id.example/tenant", oidc_client_id="a", oidc_client_secret=SecretStr("b"))
    found = openid_pages.provider_of_settings_or_none(chosen)
    assert found is not None
    assert (found.issuer, found.client_id, found.client_secret) == ("https://id.example/tenant", "a", "b")
    assert openid_pages.provider_of_settings_or_none(Settings()) is None


def test_domains_are_compared_in_lower_case(monkeypatch):
    monkeypatch.setenv("EASEL_OIDC_ISSUER", "https://login.example")
    monkeypatch.setenv("EASEL_OIDC_CLIENT_ID", "easel")
    monkeypatch.setenv("EASEL_OIDC_CLIENT_SECRET", "secret")
    monkeypatch.setenv("EASEL_OIDC_DOMAINS", "Lab.Example, other.example")
    assert read_settings().oidc_domains == ("lab.example", "other.example")
