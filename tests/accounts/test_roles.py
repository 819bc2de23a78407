"""Every address says what it needs, and every role gets what it may and nothing else."""

import re

import pytest

from app.accounts import tokens, users
from app.accounts.roles import NEED_BY_ROUTE, NEEDS_BY_SCOPE, OWNER, ROLES, ROUTES_BY_NEED, needs_granted_by_roles
from app.errors import Conflict, NotFound
from tests.accounts.reaching import ENDLESS, log_in_with_role, request_status_and_code
from tests.accounts.test_guards import PUBLIC, addresses
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_value,
    try_to_lease_hit,
)


def test_every_address_that_is_not_public_says_what_it_needs(app):
    guarded = {f"{method} {path}" for method, path in addresses(app) if path not in PUBLIC}
    assert guarded == set(NEED_BY_ROUTE)
    assert len(NEED_BY_ROUTE) == sum(len(those) for those in ROUTES_BY_NEED.values()), (
        "an address stands under two needs"
    )


# What a role allows, of the server and of a campaign, written out.
SERVER = {"guest": "own", "member": "own create", "viewer": "own", "manager": "own create"}
SERVER["owner"] = "own create see_server manage_people"
CAMPAIGN = {None: "", "viewer": "see", "manager": "see see_people see_settings collect change"}
CAMPAIGN["owner"] = f"{CAMPAIGN['manager']} share"
COMBINED = [
    *(("guest", member) for member in CAMPAIGN),
    *((role, None) for role in ROLES if role != "guest"),
    ("member", "owner"),
    ("viewer", "manager"),
    ("manager", "viewer"),
]


def expected(role, member):
    """Return the needs that a role meets on the server, and with this membership in a campaign."""
    inside = {*CAMPAIGN.get(role, "").split(), *CAMPAIGN[member].split()}
    server = {*SERVER[role].split(), "change_chosen"}
    return server, inside | ({"copy"} if "create" in server and "change" in inside else set())


def addresses_for(role, member):
    """Return all addresses for a guest, a viewer of the campaign and an owner; for others some, two of each need.

    The roles decide which needs are met, and each address has one need: more combinations of both show nothing new.
    Together the others see every address about three times.
    """
    if (role, member) in (("guest", None), ("guest", "viewer"), ("owner", None)):
        return [*NEED_BY_ROUTE]
    turn = COMBINED.index((role, member))
    chosen = {address for number, address in enumerate(NEED_BY_ROUTE) if number % 3 == turn % 3}
    for of_need in ROUTES_BY_NEED.values():
        routes = [*of_need]
        chosen |= {routes[turn % len(routes)], routes[-turn % len(routes)]}
    return [address for address in NEED_BY_ROUTE if address in chosen]


@pytest.mark.parametrize(("role", "member"), COMBINED)
async def test_roles_and_memberships_open_what_they_may_and_nothing_else(app, client, role, member):
    campaign = await create_running_campaign(app.state.database)
    hit = await try_to_lease_hit(app.state.database, await create_annotator(app.state.database, campaign, "ann", "api"))
    _, token = await log_in_with_role(app, client, role, member, campaign)
    server, inside = expected(role, member)
    # What is open would end the campaign or this login; its refusals are what the others meet.
    for address in addresses_for(role, member):
        need, (method, path) = NEED_BY_ROUTE[address], address.split()
        allowed = need in server or need in inside
        if allowed and (method != "GET" or path == ENDLESS):
            continue
        found = await request_status_and_code(client, address, token, slug=campaign.slug, hit_id=hit.id)
        if "{slug}" in path and not inside:
            assert found == (404, "campaign_not_found"), address
        elif "{hit_id}" in path and not inside:
            assert found[0] == 422, "as for a HIT that is not there, whose body is looked at first"
        elif not allowed:
            assert found == (403, "role_forbids"), address
        else:
            assert found[1] is None, address


@pytest.mark.parametrize(("member", "words"), [("owner", "on this server is guest"), ("viewer", "here is viewer")])
async def test_a_refused_copy_names_the_role_that_forbids_it(app, client, member, words):
    campaign = await create_running_campaign(app.state.database)
    await log_in_with_role(app, client, "guest", member, campaign)
    reply = await client.post(f"/admin/campaigns/{campaign.slug}/copy")
    assert reply.status_code == 403
    assert f"Your role {words}, which does not let you copy campaigns." in reply.text


@pytest.mark.parametrize("scope", NEEDS_BY_SCOPE)
async def test_a_token_is_for_its_scopes_alone(app, client, scope):
    campaign = await create_running_campaign(app.state.database)
    hit = await try_to_lease_hit(app.state.database, await create_annotator(app.state.database, campaign, "ann", "api"))
    _, token = await log_in_with_role(app, client, OWNER, scopes=[scope])
    for address, need in NEED_BY_ROUTE.items():
        method, path = address.split()
        if not path.startswith("/api/") or (need in NEEDS_BY_SCOPE[scope] and method != "GET"):
            continue
        found = await request_status_and_code(client, address, token, slug=campaign.slug, hit_id=hit.id)
        assert (found == (403, "scope_forbids")) is (need not in NEEDS_BY_SCOPE[scope]), address


async def test_a_token_for_one_campaign_finds_no_other_and_leaves_the_server_alone(app, client):
    campaign, other = [await create_running_campaign(app.state.database, name=name) for name in ("Verbs", "Nouns")]
    hits = [
        await try_to_lease_hit(app.state.database, await create_annotator(app.state.database, one, "ann", "api"))
        for one in (campaign, other)
    ]
    user, _ = await log_in_with_role(app, client, OWNER)
    async with app.state.database.begin() as connection:
        token = await tokens.issue_token_or_refuse(connection, user.id, "one", now=NOW, campaign=campaign)
    for address, need in NEED_BY_ROUTE.items():
        path = address.split()[1]
        if not path.startswith("/api/"):
            continue
        found = await request_status_and_code(client, address, token, slug=other.slug, hit_id=hits[1].id)
        if "{slug}" in path:
            assert found == (404, "campaign_not_found"), address
        elif need in ("create", "see_server"):
            assert found == (403, "token_of_one_campaign"), address
    bearer = {"authorization": f"Bearer {token}"}
    shown = (await client.get("/api/v1/campaigns", headers=bearer)).json()["campaigns"]
    assert [one["slug"] for one in shown] == [campaign.slug]
    answer = {"annotator": "ann", "scores": [50] * len(hits[0].items)}
    wrong = await client.post(f"/api/v1/hits/{hits[1].id}/response", json=answer, headers=bearer)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (404, "hit_not_found")
    assert (await client.post(f"/api/v1/hits/{hits[0].id}/response", json=answer, headers=bearer)).status_code == 200
    copied = await client.post(f"/api/v1/campaigns/{campaign.slug}/copies", headers=bearer)
    assert (copied.status_code, copied.json()["error"]["code"]) == (403, "token_of_one_campaign")


def test_every_need_is_of_one_scope():
    needs = [need for scope in NEEDS_BY_SCOPE.values() for need in scope]
    assert sorted(needs) == sorted(ROUTES_BY_NEED)


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS"])
async def test_no_other_method_opens_what_a_viewer_may_not_see(app, client, method):
    campaign = await create_running_campaign(app.state.database)
    await log_in_with_role(app, client, "viewer")
    response = await client.request(method, f"/admin/campaigns/{campaign.slug}/export/responses.csv")
    assert response.status_code in (403, 405)
    assert response.text == "" or "role_forbids" in response.text or method == "OPTIONS"


@pytest.mark.parametrize("role", ["", "unheard-of"])
def test_a_role_that_nobody_knows_opens_nothing(role):
    assert not needs_granted_by_roles(role)


async def test_a_viewer_finds_no_button_that_changes_anything(app, client):
    campaign = await create_running_campaign(app.state.database)
    await log_in_with_role(app, client, "viewer")
    for path in ("/admin", f"/admin/campaigns/{campaign.slug}", f"/admin/campaigns/{campaign.slug}/analysis"):
        page = await client.get(path)
        assert page.status_code == 200
        assert {*re.findall(r'method="post" action="([^"]+)"', page.text)} == {"/logout"}
        for address in re.findall(r'href="(/admin[^"?#]*)', page.text):
            assert (await client.get(address)).status_code == 200, (path, address)


async def test_a_token_may_at_once_do_no_more_than_its_owner(app, client):
    user, token = await log_in_with_role(app, client, OWNER)
    asked = {"url": "/api/v1/log", "headers": {"authorization": f"Bearer {token}"}}
    assert (await client.get(**asked)).status_code == 200
    async with app.state.database.begin() as connection:
        await users.set_server_role_unless_last_owner(connection, user.id, "viewer")
    assert (await client.get(**asked)).json()["error"]["code"] == "role_forbids"
    assert (await client.get("/admin/log")).status_code == 403


async def test_an_owner_changes_roles_on_the_page_of_people(app, client, researcher):
    user, _ = await log_in_with_role(app, client, "viewer")
    changed = await researcher.post(f"/admin/people/{user.id}/role", data={"role": "manager"})
    assert changed.headers["location"] == "/admin/people?done=role"
    shown = (await client.get("/admin/account")).text
    assert "Your role on this server is manager" in shown
    assert "one.viewer.none (you)" not in shown  # the researchers are for owners
    wrong = await researcher.post(f"/admin/people/{user.id}/role", data={"role": "king"})
    assert (wrong.status_code, "A role must be one of" in wrong.text) == (422, True)
    assert await fetch_value(app.state.database, "SELECT role FROM users WHERE id = :id", id=user.id) == "manager"


async def test_the_last_owner_stays(app, client, researcher):
    admin = await fetch_value(app.state.database, "SELECT id FROM users WHERE name = 'admin'")
    refused = await researcher.post(f"/admin/people/{admin}/role", data={"role": "viewer"})
    assert (refused.status_code, "last owner" in refused.text) == (409, True)
    user, _ = await log_in_with_role(app, client, "manager")
    async with app.state.database.begin() as connection:
        with pytest.raises(Conflict, match="last owner"):
            await users.delete_user_unless_self_or_last_owner(connection, admin, actor_id=user.id)
        with pytest.raises(NotFound):
            await users.set_server_role_unless_last_owner(connection, 10**9, OWNER)
