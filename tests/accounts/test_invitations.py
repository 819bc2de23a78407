"""Invitations: a link that works once, for the server or for a campaign."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest

from app.accounts import invitations, login, members, passwords, users
from app.accounts.secrets import csrf_token_of_session
from app.errors import Gone
from tests.accounts.reaching import log_in_with_role
from tests.accounts.test_members import owners, shared
from tests.annotation.hits.campaigns import (
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    requests_are_waiting_sql,
    wait_until,
)
from tests.conftest import http_client

PASSWORD = "ten small verbs"
NOW = datetime.now(UTC)


async def invited(engine, campaign=None, role="manager", **of):
    async with engine.begin() as connection:
        options = {"inviter_id": None, "now": NOW} | of
        return await invitations.create_invitation_and_return_token(connection, campaign, role, "Dan", **options)


def sent(token, way, name="dan", password=PASSWORD):
    return {"token": token, "way": way, "name": name, "password": password}


async def test_somebody_new_comes_to_a_campaign_as_a_guest_of_the_server(client, engine):
    campaign = await create_running_campaign(engine)
    token = await invited(engine, campaign)
    shown = await client.get(f"/invitation?token={token}")
    assert (campaign.name in shown.text, "as manager" in shown.text) == (True, True)
    came = await client.post("/invitation", data=sent(token, "new"))
    assert came.headers["location"] == f"/admin/campaigns/{campaign.slug}?done=invited"
    assert (await client.get(f"/admin/campaigns/{campaign.slug}/settings/question")).status_code == 200
    assert (await client.get("/admin/campaigns/new")).status_code == 403
    assert await fetch_value(engine, "SELECT role FROM users WHERE name = 'dan'") == "guest"
    assert await owners(engine, campaign) == [("dan", "manager")]


async def test_somebody_new_comes_to_the_server_with_the_role_of_the_invitation(client, engine):
    token = await invited(engine, role="member")
    assert (await client.post("/invitation", data=sent(token, "new"))).headers["location"] == "/admin?done=invited"
    assert (await client.get("/admin/campaigns/new")).status_code == 200


async def test_the_log_says_who_accepted_whose_invitation(client, engine, researcher):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        (admin,) = await users.list_users(connection)
    token = await invited(engine, campaign, inviter_id=admin.id)
    before = await fetch_value(engine, "SELECT max(id) FROM audit_log")
    await client.post("/invitation", data=sent(token, "new"))
    lines = "SELECT who, action, about FROM audit_log WHERE id > :before AND action NOT LIKE 'login.%' ORDER BY id"
    assert await fetch_rows(engine, lines, before=before) == [
        ("dan", "user.joined", ""),
        ("dan", "member.joined", ""),
        ("dan", "invitation.accepted", "admin"),
    ]
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/log")).text
    assert "accepted the invitation by admin" in html
    assert "joined the campaign" in html


async def test_whoever_has_an_account_accepts_by_its_password(client, engine):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        dan = await users.insert_and_return_user_or_refuse(connection, "dan", now=NOW, role="guest")
        await users.store_password_and_end_other_sessions(
            connection, dan.id, await passwords.hash_allowed_password_or_refuse(PASSWORD), kept_session_digest=b""
        )
    token = await invited(engine, campaign)
    wrong = await client.post("/invitation", data=sent(token, "existing", password="wrong words"))
    assert (wrong.status_code, "Wrong username or password" in wrong.text) == (401, True)
    came = await client.post("/invitation", data=sent(token, "existing"))
    assert came.headers["location"].startswith(f"/admin/campaigns/{campaign.slug}")
    assert await owners(engine, campaign) == [("dan", "manager")]


async def test_whoever_is_logged_in_accepts_with_a_click_from_our_page(app, client, engine):
    campaign = await create_running_campaign(engine)
    await log_in_with_role(app, client, "guest")
    token = await invited(engine, campaign)
    csrf = client.headers.pop("X-CSRF-Token")
    assert "Accept as one.guest.none" in (await client.get(f"/invitation?token={token}")).text
    assert (await client.post("/invitation", data={"token": token, "way": "me"})).status_code == 403
    await client.post("/invitation", data={"token": token, "way": "me", "csrf": csrf})
    assert await owners(engine, campaign) == [("one.guest.none", "manager")]


async def test_an_invitation_takes_nothing_away(app, client, engine):
    campaign = await create_running_campaign(engine)
    user, _ = await log_in_with_role(app, client, "owner", "owner", campaign)
    for token in (await invited(engine, campaign, "viewer"), await invited(engine, role="guest")):
        assert (await client.post("/invitation", data={"token": token, "way": "me"})).status_code == 303
    assert await owners(engine, campaign) == [(user.name, "owner")]
    assert await fetch_value(engine, "SELECT role FROM users WHERE id = :id", id=user.id) == "owner"


@pytest.mark.parametrize("refused", [{"name": "admin"}, {"name": "no spaces"}, {"password": "short"}])
async def test_what_is_refused_uses_nothing_up(client, researcher, engine, refused):
    token = await invited(engine, role="member")
    again = await client.post("/invitation", data=sent(token, "new", **refused))
    assert again.status_code in (409, 422)
    assert (await client.post("/invitation", data=sent(token, "new"))).status_code == 303


async def used(engine):
    token = await invited(engine)
    async with engine.begin() as connection:
        await invitations.accept_invitation_as_new_user_returning_both(connection, token, "eve", "hash", now=NOW)
    return token


async def withdrawn(engine):
    token = await invited(engine)
    async with engine.begin() as connection:
        number = await fetch_value(engine, "SELECT max(id) FROM invitations")
        await invitations.withdraw_invitation_or_refuse(connection, None, number)
    return token


async def too_old(engine):
    return await invited(engine, now=NOW - timedelta(days=invitations.INVITATION_DAYS))


async def of_somebody_demoted(engine):
    campaign = await create_running_campaign(engine)
    await shared(engine, "bea", "owner", campaign)
    user = await shared(engine, "ada", "owner", campaign)
    token = await invited(engine, campaign, inviter_id=user.id)
    async with engine.begin() as connection:
        await members.set_member_role_unless_last_owner(connection, campaign, user.id, "manager")
    return token


async def of_somebody_removed(engine):
    campaign = await create_running_campaign(engine)
    user = await shared(engine, "ada", "owner", campaign)
    token = await invited(engine, campaign, inviter_id=user.id)
    await execute_sql(engine, "DELETE FROM users WHERE id = :id", id=user.id)
    return token


@pytest.mark.parametrize("made", [used, withdrawn, too_old, of_somebody_demoted, of_somebody_removed])
async def test_an_invitation_that_works_no_longer_says_so(client, engine, made):
    token = await made(engine)
    asked = await client.get(f"/invitation?token={token}"), await client.post("/invitation", data=sent(token, "new"))
    for response in asked:
        assert (response.status_code, "invitation_used" in response.text) == (410, True)
    assert await fetch_rows(engine, "SELECT 1 FROM users WHERE name = 'dan'") == []


async def test_of_two_who_accept_at_once_one_comes_in(engine):
    campaign = await create_running_campaign(engine)
    token = await invited(engine, campaign)

    async def come(name: str) -> None:
        async with engine.begin() as connection:
            await invitations.accept_invitation_as_new_user_returning_both(connection, token, name, "hash", now=NOW)

    async with engine.begin() as connection:
        await invitations.accept_invitation_as_new_user_returning_both(connection, token, "dan", "hash", now=NOW)
        other = asyncio.create_task(come("eve"))
        await wait_until(engine, requests_are_waiting_sql(1))
    with pytest.raises(Gone):
        await other
    assert await owners(engine, campaign) == [("dan", "manager")]
    assert await fetch_rows(engine, "SELECT 1 FROM users WHERE name = 'eve'") == []


@pytest.mark.parametrize("where", ["/admin/people", "/admin/campaigns/verbs"])
async def test_invitations_are_made_and_withdrawn_on_their_page(app, client, researcher, engine, where):
    await create_running_campaign(engine)
    made = await researcher.post(f"{where}/invitations", data={"role": "manager", "words": "Dan of Leeds"})
    (address,) = re.findall(r'id="new-invitation">([^<]+)<', made.text)
    assert re.search(rf'href="mailto:[?]subject=Invitation%20to[^"]+body=[^"]+{quote(address, safe="/")}"', made.text)
    assert (await client.get("/invitation?" + address.partition("?")[2])).status_code == 200
    listed = (await researcher.get(where if where.endswith("people") else f"{where}/members")).text
    assert ("Dan of Leeds" in listed, address in listed) == (True, False)
    (withdraw,) = re.findall(rf'action="({where}/invitations/\d+/withdraw)"', listed)
    assert (await researcher.post(withdraw)).status_code == 303
    assert (await researcher.post(withdraw)).status_code == 404
    said = await fetch_rows(engine, "SELECT action FROM audit_log WHERE action LIKE 'invitation.%' ORDER BY id")
    assert [row[0] for row in said] == ["invitation.made", "invitation.withdrawn"]


async def test_to_invite_takes_the_password_where_there_is_one(app, engine):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        admin = await users.find_oldest_user_or_create_admin(connection, now=NOW)
        await users.store_password_and_end_other_sessions(
            connection, admin.id, await passwords.hash_allowed_password_or_refuse(PASSWORD), kept_session_digest=b""
        )
        session = await login.start_session_and_return_secret(connection, admin.id, now=NOW, hours=12)
    async with http_client(app) as client:
        client.cookies.set(app.state.cookie_name, session)
        client.headers["X-CSRF-Token"] = csrf_token_of_session(session)
        for address in ("/admin/people", f"/admin/campaigns/{campaign.slug}"):
            refused = await client.post(f"{address}/invitations", data={"role": "viewer", "current": "wrong"})
            assert (refused.status_code, "password is wrong" in refused.text) == (422, True)
    assert await fetch_rows(engine, "SELECT 1 FROM invitations") == []
