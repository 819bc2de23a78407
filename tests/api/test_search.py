"""The search over everything, by a program."""

from tests.annotation.hits.campaigns import create_annotator, create_running_campaign
from tests.api.conftest import API
from tests.api.test_api import refused


async def found_titles(client, **parameters):
    reply = await client.get(f"{API}/search", params=parameters)
    assert reply.status_code == 200, reply.text
    return {(entry["group"], entry["title"]) for entry in reply.json()["entries"]}


async def test_a_program_finds_campaigns_settings_and_annotators(engine, api_client):
    campaign = await create_running_campaign(engine, name="Verbs")
    await create_annotator(engine, campaign, "ann", "api")
    assert ("Campaigns", "Verbs") in await found_titles(api_client, q="verb")
    assert ("Settings", "Judgments per item") in await found_titles(api_client, q="item judgments", campaign="verbs")
    assert ("Annotators", "A1") in await found_titles(api_client, q="a1", campaign="verbs")
    refused(await api_client.get(f"{API}/search", params={"q": "x" * 201}), 422, "invalid")
