"""A refusal for lack of a role names the owners of the campaign, to readers who may know its members."""

from datetime import UTC, datetime

import pytest

from app.accounts import members, shared_links, users
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import NOW, create_running_campaign

OWNERS = ("ada", "bob@example.org")
PLAIN = "An owner can give you another role."


@pytest.fixture
async def campaign(app):
    """Create a campaign with two owners and a manager."""
    campaign = await create_running_campaign(app.state.database)
    async with app.state.database.begin() as connection:
        await users.find_oldest_user_or_create_admin(connection, now=NOW)
        for name, role in (*((owner, "owner") for owner in OWNERS), ("cat", "manager")):
            user = await users.insert_and_return_user_or_refuse(connection, name, now=datetime.now(UTC), role="member")
            await members.try_to_insert_member(connection, campaign, user, role, now=NOW)
    return campaign


@pytest.mark.parametrize(
    ("role", "member"), [("member", "viewer"), ("member", "manager"), ("viewer", "viewer"), ("manager", None)]
)
async def test_a_refused_colleague_reads_whom_to_ask(app, client, campaign, role, member):
    _, token = await log_in_with_role(app, client, role, member, campaign)
    reply = await client.get(f"/admin/campaigns/{campaign.slug}/members", headers={"accept": "text/html"})
    assert reply.status_code == 403
    assert "Ask an owner of this campaign: ada, bob@example.org." in reply.text
    assert '<a class="button" href="mailto:bob%40example.org">Write to bob@example.org</a>' in reply.text
    assert "mailto:ada" not in reply.text
    assert "cat" not in reply.text.partition("<main")[2]
    assert "403 · <code>role_forbids</code>" in reply.text
    if member == "viewer":
        program = await client.patch(
            f"/api/v1/campaigns/{campaign.slug}", json={}, headers={"authorization": f"Bearer {token}"}
        )
        error = program.json()["error"]
        assert (error["code"], error["details"]) == ("role_forbids", {"owners": [*OWNERS]})


@pytest.mark.parametrize(("role", "member"), [("guest", "viewer"), ("guest", "manager"), ("viewer", None)])
async def test_guests_and_viewers_without_a_role_in_the_campaign_read_no_name(app, client, campaign, role, member):
    await log_in_with_role(app, client, role, member, campaign)
    reply = await client.get(f"/admin/campaigns/{campaign.slug}/members")
    assert (reply.status_code, PLAIN in reply.text) == (403, True)
    assert not [name for name in OWNERS if name in reply.text.partition("<main")[2]]


async def test_who_came_by_a_read_only_link_reads_no_name(app, client, campaign):
    async with app.state.database.begin() as connection:
        secret = await shared_links.create_shared_link_and_return_secret(
            connection, campaign, "co-authors", maker_name="ada", now=datetime.now(UTC)
        )
    await client.get(f"/shared/{secret}")
    reply = await client.get(f"/admin/campaigns/{campaign.slug}/annotators")
    assert (reply.status_code, PLAIN in reply.text) == (403, True)
    assert not [name for name in OWNERS if name in reply.text]


async def test_strangers_read_that_there_is_no_such_campaign(app, client, campaign):
    await log_in_with_role(app, client, "member")
    reply = await client.get(f"/admin/campaigns/{campaign.slug}/members")
    assert (reply.status_code, "There is no campaign" in reply.text) == (404, True)
    assert not [name for name in OWNERS if name in reply.text]


async def test_a_campaign_without_owners_names_none(app, client):
    campaign = await create_running_campaign(app.state.database)
    await log_in_with_role(app, client, "member", "viewer", campaign)
    reply = await client.get(f"/admin/campaigns/{campaign.slug}/members")
    assert (reply.status_code, PLAIN in reply.text) == (403, True)


async def test_a_refusal_about_the_whole_server_names_none(app, client, campaign):
    await log_in_with_role(app, client, "member", "manager", campaign)
    reply = await client.get("/admin/people")
    assert (reply.status_code, PLAIN in reply.text) == (403, True)
