"""Programs archive, restore, tag and delete several campaigns by one request."""

from datetime import UTC, datetime

import pytest

from app.accounts import tokens, users
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import create_running_campaign

CHOSEN = "/api/v1/campaigns/chosen"
NEW = {"question": "How frequent?"}


@pytest.fixture
async def slugs(api_client):
    for name in ("Nouns", "Verbs"):
        await api_client.post("/api/v1/campaigns", json=NEW | {"name": name})
    return ["nouns", "verbs"]


async def change(client, action, slugs, **more):
    reply = await client.post(CHOSEN, json={"action": action, "slugs": slugs} | more)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def listed(client, query=""):
    return [one["slug"] for one in (await client.get(f"/api/v1/campaigns{query}")).json()["campaigns"]]


async def test_programs_archive_restore_tag_and_delete_several_campaigns(api_client, slugs):
    assert await change(api_client, "archive", slugs) == {"changed": slugs, "refused": []}
    assert await listed(api_client) == []
    await change(api_client, "restore", slugs)
    await change(api_client, "add-tags", slugs, tags=["pilot"])
    assert await listed(api_client, "?tag=pilot") == ["verbs", "nouns"]
    await change(api_client, "remove-tags", slugs[:1], tags=["Pilot"])
    assert await listed(api_client, "?tag=pilot") == ["verbs"]
    await change(api_client, "delete", slugs)
    assert await listed(api_client) == []


async def test_a_refused_campaign_has_the_code_of_a_single_action(engine, api_client, slugs):
    await create_running_campaign(engine, name="Adverbs")
    outcome = await change(api_client, "delete", [*slugs, "adverbs", "missing"])
    assert outcome["changed"] == slugs
    assert [(one["slug"], one["code"]) for one in outcome["refused"]] == [
        ("adverbs", "not_a_draft"),
        ("missing", "campaign_not_found"),
    ]
    assert outcome["refused"][0]["details"] == {"status": "running"}
    assert "“Adverbs” is running" in outcome["refused"][0]["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"action": "archive", "slugs": []}, "invalid"),
        ({"action": "archive", "slugs": ["nouns"] * 101}, "invalid"),
        ({"action": "launch", "slugs": ["nouns"]}, "invalid"),
        ({"action": "add-tags", "slugs": ["nouns"]}, "tags_invalid"),
        ({"action": "add-tags", "slugs": ["nouns"], "tags": ["two\nlines"]}, "invalid"),
    ],
)
async def test_an_impossible_request_is_refused_as_a_whole(api_client, slugs, body, code):
    reply = await api_client.post(CHOSEN, json=body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, code)


async def test_a_token_for_one_campaign_changes_no_other(app, api_client, slugs):
    async with app.state.database.begin() as connection:
        (admin,) = await users.list_users(connection)
        campaign = await load_campaign_by_slug_or_refuse(connection, "nouns")
        token = await tokens.issue_token_or_refuse(
            connection, admin.id, "one", now=datetime.now(UTC), scopes=["manage"], campaign=campaign
        )
    api_client.headers["authorization"] = f"Bearer {token}"
    outcome = await change(api_client, "archive", slugs)
    assert outcome["changed"] == ["nouns"]
    assert [(one["slug"], one["code"]) for one in outcome["refused"]] == [("verbs", "campaign_not_found")]
