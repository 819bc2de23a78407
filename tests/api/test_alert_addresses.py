"""Addresses for alerts by the API: what no mail can go to is refused, and breaks nothing where it was stored before."""

from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_value
from tests.api.conftest import API


async def test_an_address_that_no_mail_can_go_to_is_refused(engine, api_client):
    campaign = await create_running_campaign(engine)
    refused = await api_client.patch(
        f"{API}/campaigns/{campaign.slug}", json={"alert_emails": ["=?utf-8?q?=0d=0a?=@b.c"]}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "invalid")
    assert "is not an e-mail address such as ada@example.org" in refused.text
    assert await fetch_value(engine, "SELECT alert_emails FROM campaigns") == []


async def test_a_campaign_with_an_address_of_an_earlier_version_can_be_changed_and_copied(engine, api_client):
    campaign = await create_running_campaign(engine)
    await execute_sql(engine, "UPDATE campaigns SET alert_emails = '{=?utf-8?q?=0d=0a?=@b.c,bea@example.org}'")
    changed = await api_client.patch(f"{API}/campaigns/{campaign.slug}", json={"alert_quiet_minutes": 30})
    assert (changed.status_code, changed.json()["settings"]["alert_emails"]) == (200, ["bea@example.org"])
    assert (await api_client.post(f"{API}/campaigns/{campaign.slug}/copies")).status_code == 201
