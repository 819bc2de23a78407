"""An open browser is not enough to let people in, raise roles or take data along: that takes the password."""

import html
import re
from typing import Any

import pytest
from sqlalchemy import text

from app.accounts import login, users
from app.accounts.roles import MANAGE_PEOPLE, ROUTES_BY_NEED, SHARE_CAMPAIGN
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows

PASSWORD = "ten small verbs"
# What the acts below change.
STATE = """
    SELECT (SELECT json_agg((name, role) ORDER BY id)::text FROM users),
           (SELECT json_agg((user_id, role) ORDER BY user_id)::text FROM campaign_members),
           (SELECT count(*) FROM api_tokens), (SELECT count(*) FROM campaign_links),
           (SELECT count(*) FROM invitations), (SELECT count(*) FROM one_time_logins)
"""
ACTS: dict[str, dict[str, Any]] = {
    "POST /admin/account/tokens": {"name": "notebook", "scope": ["read", "manage"]},
    "POST /admin/people": {"name": "eve", "role": "owner"},
    "POST /admin/people/invitations": {"role": "owner"},
    "POST /admin/people/{user_id}/role": {"role": "owner"},
    "POST /admin/people/{user_id}/link": {},
    "POST /admin/people/{user_id}/remove": {},
    "POST /admin/campaigns/{slug}/members": {"name": "guest", "role": "owner"},
    "POST /admin/campaigns/{slug}/members/{user_id}/role": {"role": "owner"},
    "POST /admin/campaigns/{slug}/members/{user_id}/remove": {},
    "POST /admin/campaigns/{slug}/invitations": {"role": "owner"},
    "POST /admin/campaigns/{slug}/links": {"words": "co-authors"},
}
ASKED_ON_A_PAGE = [act for act in ACTS if act.split("/")[-1] not in ("invitations", "link", "people")]


def test_every_act_that_lets_somebody_in_takes_the_password():
    """Withdrawing an invitation or a link lets nobody in."""
    letting_in = {
        address
        for need in (MANAGE_PEOPLE, SHARE_CAMPAIGN)
        for address in ROUTES_BY_NEED[need]
        if address.startswith("POST") and not address.endswith("/withdraw")
    }
    assert letting_in == ACTS.keys() - {"POST /admin/account/tokens"}


@pytest.fixture
async def campaign(app, researcher):
    """Create a campaign with a guest and a viewer, on a server whose owner has a password."""
    found = await create_running_campaign(app.state.database, name="Verbs")
    assert (await researcher.post("/admin/account/password", data={"password": PASSWORD})).status_code == 303
    async with app.state.database.begin() as connection:
        await users.insert_and_return_user_or_refuse(connection, "guest", now=NOW, role="guest")
        viewer = await users.insert_and_return_user_or_refuse(connection, "viewer", now=NOW, role="guest")
        insert = "INSERT INTO campaign_members (campaign_id, user_id, role, added_at) VALUES (:c, :u, 'viewer', :now)"
        await connection.execute(text(insert), {"c": found.id, "u": viewer.id, "now": NOW})
    return found, viewer


def address_of(act, campaign):
    found, viewer = campaign
    return act.removeprefix("POST ").replace("{slug}", found.slug).replace("{user_id}", str(viewer.id))


@pytest.mark.parametrize("act", ACTS)
async def test_an_act_takes_the_current_password(app, researcher, campaign, act):
    address, engine = address_of(act, campaign), app.state.database
    before = await fetch_rows(engine, STATE)
    for current in ({}, {"current": ""}, {"current": "wrong"}):
        refused = await researcher.post(address, data=ACTS[act] | current)
        assert refused.status_code in (403, 422)
        assert "Your current password is wrong." in refused.text or "enter your current password" in refused.text
        assert await fetch_rows(engine, STATE) == before
    assert (await researcher.post(address, data=ACTS[act] | {"current": PASSWORD})).status_code in (200, 303)
    assert await fetch_rows(engine, STATE) != before


@pytest.mark.parametrize("act", ASKED_ON_A_PAGE)
async def test_a_page_asks_for_the_password_and_then_does_the_act(app, researcher, campaign, act):
    address = address_of(act, campaign)
    page = (await researcher.post(address, data=ACTS[act])).text
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)">', page)
    form: dict[str, list[str]] = {}
    for name, value in fields:
        form.setdefault(name, []).append(html.unescape(value))
    assert f'action="{address}"' in page
    again = await researcher.post(address, data=form | {"current": "wrong"})
    assert "Your current password is wrong" in again.text
    assert (await researcher.post(address, data=form | {"current": PASSWORD})).status_code in (200, 303)
    back = re.search(r'<a href="([^"]+)">Cancel</a>', page)
    assert back
    assert (await researcher.get(back[1])).status_code == 200


async def test_a_script_that_sends_no_password_gets_a_code(researcher, campaign):
    viewer = campaign[1]
    address = f"/admin/people/{viewer.id}/role"
    reply = await researcher.post(address, data={"role": "owner"}, headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "password_needed")


async def test_guesses_are_slowed_down_as_at_the_login(researcher, campaign):
    address = address_of("POST /admin/campaigns/{slug}/links", campaign)
    found = [(await researcher.post(address, data={"current": f"guess {k}"})).status_code for k in range(7)]
    assert found[:5] == [422] * 5
    assert found[-1] == 429


async def test_who_has_no_password_or_has_just_come_by_a_link_is_not_asked(app, client, researcher):
    found = await create_running_campaign(app.state.database, name="Verbs")
    address = f"/admin/campaigns/{found.slug}/links"
    assert (await researcher.post(address, data={"words": "a"})).status_code == 200
    await researcher.post("/admin/account/password", data={"password": PASSWORD})
    assert (await researcher.post(address, data={"words": "b"})).status_code == 403
    async with app.state.database.begin() as connection:
        token = await login.create_one_time_login_and_return_secret(connection, now=NOW.now(NOW.tzinfo))
    await client.post("/login", data={"token": token})
    csrf = re.search(r'name="csrf" value="([^"]+)"', (await client.get("/admin/account")).text)
    assert csrf
    assert (await client.post(address, data={"words": "c", "csrf": csrf[1]})).status_code == 200
