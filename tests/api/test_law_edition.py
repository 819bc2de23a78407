"""The edition of a campaign's update law in the API."""

from app.inference.online.annotator_aware_editions import SECOND_EDITION_INITIAL_STATE
from tests.annotation.hits.campaigns import create_running_campaign
from tests.record.test_law_editions import create_older_campaign


async def test_a_program_reads_the_edition_and_moves_a_campaign_to_the_newest_once(app, api_client):
    campaign = await create_older_campaign(app.state.database, SECOND_EDITION_INITIAL_STATE)
    edition = f"/api/v1/campaigns/{campaign.slug}/law-edition"
    assert (await api_client.get(edition)).json() == {"law": "EASL-aware", "edition": 2, "newest": 3}
    assert (await api_client.post(f"{edition}/newest")).json()["edition"] == 3
    again = await api_client.post(f"{edition}/newest")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "newest_edition")


async def test_a_law_without_editions_has_the_newest(app, api_client):
    campaign = await create_running_campaign(app.state.database)
    edition = (await api_client.get(f"/api/v1/campaigns/{campaign.slug}/law-edition")).json()
    assert edition["edition"] == edition["newest"] == 1
