"""Every address but the public ones refuses a stranger, new addresses included."""

import re
from collections.abc import Iterator

from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts
from sqlalchemy.ext.asyncio import create_async_engine

from app.accounts import guards
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows

PUBLIC = {
    "/",  # leads to /admin
    "/login",
    "/login/openid",  # another way to log in
    "/login/openid/back",  # likewise
    "/health",
    "/ready",  # says whether the server works, to load balancers
    "/static",
    "/api/v1/openapi.json",  # describes the program, not what it holds
    "/api/v1/tokens",  # takes a name and password itself
    "/{platform_name:platform}/{link_key}",  # annotators
    "/{platform_name:platform}/{link_key}/withdraw",  # likewise
    "/{platform_name:platform}/hook/{hook_key}",  # the platform's notices, which are signed
    "/experiment/{platform_name:platform}/{link_key}",  # likewise
    "/invitation",  # the link is a secret
    "/shared/{secret}",  # likewise
    "/media/{address}",  # what annotators see; the address is a secret
}


def addresses(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Return (method, path) of every route of the application."""
    for route in iter_route_contexts(app.routes):
        for method in sorted(route.methods or {"GET"}):
            yield method, str(route.path)


async def test_every_address_but_the_public_ones_refuses_a_stranger(app, client):
    guarded = [(method, path) for method, path in addresses(app) if path not in PUBLIC]
    assert len(guarded) > 40
    for method, path in guarded:
        filled = re.sub(r"\{[a-z_]+_id\}", "1", path)
        response = await client.request(method, re.sub(r"\{[a-z_]+\}", "x", filled))
        if path.startswith("/api/"):
            assert response.status_code == 401, (method, path)
            assert response.json()["error"]["code"] == "token_missing"
            assert response.headers["www-authenticate"] == "Bearer"
        else:
            assert response.status_code == 303, (method, path)
            assert response.headers["location"].startswith("/login?next=%2Fadmin"), (method, path)


async def test_nobody_is_thrown_out_while_the_database_is_away(app):
    away = create_async_engine("postgresql+asyncpg://nobody@127.0.0.1:1/nothing")  # nothing listens there
    request = Request({"type": "http", "headers": [], "path_params": {"slug": "verbs"}, "app": app})
    assert await guards.is_still_admitted_or_database_away(request, away, NOW)


def test_public_addresses_exist(app):
    assert {path for _, path in addresses(app)} >= PUBLIC


async def test_every_page_that_changes_something_wants_the_csrf_token(app, researcher):
    del researcher.headers["X-CSRF-Token"]
    changing = [path for method, path in addresses(app) if method != "GET" and path.startswith(("/admin", "/logout"))]
    changing = [
        path for path in changing if not path.endswith(("/try/hit", "{slug}/preview"))
    ]  # of which nothing is stored
    assert len(changing) > 10
    for path in changing:
        filled = re.sub(r"\{[a-z_]+_id\}", "1", path)
        response = await researcher.post(re.sub(r"\{[a-z_]+\}", "x", filled), data={"csrf": "wrong"})
        assert response.status_code == 403, path
        assert "csrf_failed" in response.text


async def test_the_csrf_token_is_taken_from_the_form_too(researcher):
    token = researcher.headers.pop("X-CSRF-Token")
    response = await researcher.post("/logout", data={"csrf": token})
    assert response.headers["location"] == "/login"
    assert (await researcher.get("/admin")).headers["location"] == "/login?next=%2Fadmin"


async def test_each_page_carries_the_csrf_token_in_another_dress(researcher):
    del researcher.headers["X-CSRF-Token"]
    shown = {re.findall(r'name="csrf" value="(\w+)"', (await researcher.get("/admin")).text)[0] for _ in range(3)}
    assert len(shown) == 3
    for token in shown:
        data = {"csrf": token, "name": "notebook", "scope": "read"}
        assert (await researcher.post("/admin/account/tokens", data=data)).status_code == 200
    wrong = "0" * 128
    assert (await researcher.post("/admin/account/tokens", data={"csrf": wrong, "name": "x"})).status_code == 403


async def test_a_csrf_token_that_is_a_file_is_refused(researcher):
    del researcher.headers["X-CSRF-Token"]
    assert (await researcher.post("/logout", files={"csrf": ("x", b"x")})).status_code == 403


async def test_a_stranger_comes_back_to_the_page_they_wanted(client):
    response = await client.get("/admin/campaigns/x/items?start=51")
    assert response.headers["location"] == "/login?next=%2Fadmin%2Fcampaigns%2Fx%2Fitems%3Fstart%3D51"


async def test_a_script_whose_login_has_ended_is_told_so_as_json(client):
    response = await client.get("/admin", headers={"accept": "application/json"})
    assert response.status_code == 401
    assert response.json()["error"]["code"] == "login_required"


async def test_a_wrong_token_is_refused(client, subtests):
    for value in ("", "Bearer", "Bearer wrong", "Basic YTpi"):
        with subtests.test(value=value):
            response = await client.get("/api/v1/campaigns", headers={"authorization": value})
            assert response.status_code == 401
            assert response.json()["error"]["code"] in ("token_missing", "token_invalid")


async def test_a_wrong_token_is_refused_whatever_hit_the_address_names(client, subtests):
    for hit in ("1", "0", "abc", "-1", "9" * 30, "%00"):
        with subtests.test(hit=hit):
            response = await client.post(
                f"/api/v1/hits/{hit}/response", json={}, headers={"Authorization": "Bearer wrong"}
            )
            assert (response.status_code, response.json()["error"]["code"]) == (401, "token_invalid")


async def test_with_a_wrong_token_nobody_gets_a_hit(client, engine):
    campaign = await create_running_campaign(engine)
    asked = f"/api/v1/campaigns/{campaign.slug}/hits"
    response = await client.post(asked, json={"annotator": "ann"}, headers={"Authorization": "Bearer wrong"})
    assert (response.status_code, response.json()["error"]["code"]) == (401, "token_invalid")
    assert await fetch_rows(engine, "SELECT id FROM annotators") == []
