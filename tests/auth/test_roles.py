"""Every address says what it needs, and every role gets what it may and nothing else."""

import re
from datetime import UTC, datetime

import pytest

from app.auth import login, users
from app.auth.roles import MANAGE_PEOPLE, NEEDED, NEEDS, OWNER, ROLES, may
from app.auth.secret import csrf_token
from app.errors import Conflict, NotFound
from tests.auth.test_guards import PUBLIC, addresses
from tests.serving.campaigns import annotator, hit_of, running, value

ENDLESS = "/admin/campaigns/{slug}/events"


async def came_in(app, client, role):
    """A researcher of this role, logged in, and the token of their program."""
    now = datetime.now(UTC)
    async with app.state.database.begin() as connection:
        await users.first_user(connection, now=now)
        user = await users.add_user(connection, f"one.{role}", now=now, role=role)
        session = await login.log_in(connection, user.id, now=now, hours=12)
        token = await users.create_api_token(connection, user.id, "program", now=now)
    client.cookies.set(app.state.cookie_name, session)
    client.headers["X-CSRF-Token"] = csrf_token(session)
    return user, token


def test_every_address_that_is_not_public_says_what_it_needs(app):
    guarded = {f"{method} {path}" for method, path in addresses(app) if path not in PUBLIC}
    assert guarded == set(NEEDS)
    assert len(NEEDS) == sum(len(those) for those in NEEDED.values()), "an address stands under two needs"


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_opens_what_it_may_and_nothing_else(app, client, role):
    campaign = await running(app.state.database)
    hit = await hit_of(app.state.database, await annotator(app.state.database, campaign, "ann", "api"))
    _, token = await came_in(app, client, role)
    bearer = {"authorization": f"Bearer {token}"}
    # What is open would end the campaign or this login; its refusals are what the other roles meet.
    for address, need in NEEDS.items():
        method, path = address.split()
        if may(role, need) and (method != "GET" or path == ENDLESS):
            continue
        known = path.replace("{slug}", campaign.slug).replace("{hit_id}", str(hit.id)).replace("{user_id}", "1")
        asked = re.sub(r"\{[a-z_]+\}", "x", known)
        response = await client.request(method, asked, headers=bearer if path.startswith("/api/") else {})
        refused = (response.status_code, "role_forbids" in response.text)
        assert (refused == (403, True)) is not may(role, need), (address, refused)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_no_other_method_opens_what_a_viewer_may_not_see(app, client, method):
    campaign = await running(app.state.database)
    await came_in(app, client, "viewer")
    response = await client.request(method, f"/admin/campaigns/{campaign.slug}/export/responses.csv")
    assert response.status_code in (403, 405)
    assert response.text == "" or "role_forbids" in response.text or method == "OPTIONS"


@pytest.mark.parametrize("role", ["", "unheard-of"])
def test_a_role_that_nobody_knows_opens_nothing(role):
    assert not any(may(role, need) for need in NEEDED)


async def test_a_viewer_finds_no_button_that_changes_anything(app, client):
    campaign = await running(app.state.database)
    await came_in(app, client, "viewer")
    for path in ("/admin", f"/admin/campaigns/{campaign.slug}", f"/admin/campaigns/{campaign.slug}/analysis"):
        page = await client.get(path)
        assert page.status_code == 200
        assert re.findall(r'method="post" action="([^"]+)"', page.text) == ["/logout"]
        for address in re.findall(r'href="(/admin[^"?#]*)', page.text):
            assert (await client.get(address)).status_code == 200, (path, address)


async def test_a_token_may_at_once_do_no_more_than_its_owner(app, client):
    user, token = await came_in(app, client, OWNER)
    asked = {"url": "/api/v1/campaigns", "headers": {"authorization": f"Bearer {token}"}}
    assert (await client.get(**asked)).status_code == 200
    async with app.state.database.begin() as connection:
        await users.set_role(connection, user.id, "viewer")
    assert (await client.get(**asked)).json()["error"]["code"] == "role_forbids"
    assert (await client.get("/admin/log")).status_code == 403


async def test_an_owner_changes_roles_on_the_account_page(app, client, researcher):
    user, _ = await came_in(app, client, "viewer")
    changed = await researcher.post(f"/admin/account/users/{user.id}/role", data={"role": "manager"})
    assert changed.headers["location"] == "/admin/account?done=role"
    shown = (await client.get("/admin/account")).text
    assert "Your role on this server is manager" in shown
    assert "one.viewer (you)" not in shown  # the researchers are for owners
    wrong = await researcher.post(f"/admin/account/users/{user.id}/role", data={"role": "king"})
    assert (wrong.status_code, "A role is one of" in wrong.text) == (422, True)
    assert await value(app.state.database, "SELECT role FROM users WHERE id = :id", id=user.id) == "manager"


async def test_the_last_owner_stays(app, client, researcher):
    admin = await value(app.state.database, "SELECT id FROM users WHERE name = 'admin'")
    refused = await researcher.post(f"/admin/account/users/{admin}/role", data={"role": "viewer"})
    assert (refused.status_code, "last owner" in refused.text) == (409, True)
    user, _ = await came_in(app, client, "manager")
    async with app.state.database.begin() as connection:
        with pytest.raises(Conflict, match="last owner"):
            await users.remove_user(connection, admin, by=user.id)
        with pytest.raises(NotFound):
            await users.set_role(connection, 10**9, OWNER)
    assert may(OWNER, MANAGE_PEOPLE)
