"""Tags of campaigns, and lists filtered by them, for programs."""

import pytest
import yaml

NEW = {"name": "Verbs", "question": "How frequent?"}


async def slugs(api_client, query=""):
    return [one["slug"] for one in (await api_client.get(f"/api/v1/campaigns{query}")).json()["campaigns"]]


async def test_programs_tag_campaigns_and_list_those_with_a_tag(api_client):
    made = await api_client.post("/api/v1/campaigns", json=NEW | {"tags": ["pilot", "Pilot", "German"]})
    assert made.json()["settings"]["tags"] == ["pilot", "German"]
    await api_client.post("/api/v1/campaigns", json=NEW | {"name": "Nouns"})
    assert await slugs(api_client, "?tag=german") == ["verbs"]
    assert await slugs(api_client, "?search=noun&status=draft") == ["nouns"]
    assert await slugs(api_client, "?status=archived") == []
    changed = await api_client.patch("/api/v1/campaigns/nouns", json={"tags": []})
    assert (changed.status_code, changed.json()["settings"]["tags"]) == (200, [])


@pytest.mark.parametrize("tags", [["a" * 41], [""], ["two\nlines"], [str(k) for k in range(11)]])
async def test_impossible_tags_are_refused_with_their_field(api_client, tags):
    reply = await api_client.post("/api/v1/campaigns", json=NEW | {"tags": tags})
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")
    assert reply.json()["error"]["details"]["fields"][0]["field"].startswith("tags")


async def test_a_campaign_file_keeps_the_tags(api_client):
    await api_client.post("/api/v1/campaigns", json=NEW | {"tags": ["pilot"]})
    file = (await api_client.get("/api/v1/campaigns/verbs/file")).text
    assert yaml.safe_load(file)["tags"] == ["pilot"]
