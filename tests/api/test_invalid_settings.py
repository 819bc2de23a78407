"""Refusals of settings for programs: they name the field, in words for people."""

from html import unescape

import pytest

from app.campaigns.form_sections import step_of_field_or_none
from tests.annotation.hits.campaigns import create_running_campaign
from tests.api.conftest import API

SETTINGS = {"name": "Verbs", "question": "How often?"}


async def problems_of(api_client, **settings):
    reply = await api_client.post(f"{API}/campaigns", json=SETTINGS | settings)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid"), reply.text
    return {problem["field"]: problem["message"] for problem in reply.json()["error"]["details"]["fields"]}


SAID = {
    "alert_emails": ("notamail", "“notamail” is not an e-mail address such as ada@example.org"),
    "alert_webhook": ("notanaddress", "ust be an address such as https://example.org/hook"),
    "prolific_completion_code": ("two words", "nly letters, digits, _ and - can be in this code, 64 at most"),
}


@pytest.mark.parametrize("field", SAID)
async def test_each_field_says_what_it_takes_on_the_page_and_for_programs(engine, researcher, api_client, field):
    wrong, said = SAID[field]
    campaign = await create_running_campaign(engine)
    refused = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/settings/{step_of_field_or_none(field)}", data={field: wrong}
    )
    assert said in unescape(refused.text)
    sent = {field: [wrong] if field == "alert_emails" else wrong}
    reply = await api_client.patch(f"{API}/campaigns/{campaign.slug}", json=sent)
    (problem,) = reply.json()["error"]["details"]["fields"]
    assert problem["field"].startswith(field)
    assert said in problem["message"]
    assert "pattern" not in problem["message"]


async def test_a_field_within_a_setting_is_named_by_its_path(api_client, subtests):
    for settings, field in (
        ({"design": "magnitude", "design_settings": {"reference_value": "nan"}}, "design_settings.reference_value"),
        ({"criteria": [{"name": "a", "question": "A?"}, {"name": "a", "question": "B?"}]}, "criteria.1.name"),
    ):
        with subtests.test(field=field):
            found = await problems_of(api_client, **settings)
            assert [*found] == [field]
            assert "Value error" not in found[field]
            assert found[field]


async def test_a_body_that_is_no_object_is_what_is_wrong(api_client):
    reply = await api_client.post(f"{API}/campaigns", json=[1])
    assert [one["field"] for one in reply.json()["error"]["details"]["fields"]] == ["body"]
