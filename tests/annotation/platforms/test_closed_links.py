"""A researcher who takes the link parameters of a running campaign reads that its people find no task."""

import pytest

from tests.annotation.hits.campaigns import create_running_campaign, fetch_value, form_fields
from tests.annotation.platforms.test_panel import ARRIVAL, CONNECT
from tests.api.conftest import api_client  # noqa: F401  (a fixture)

WARNING = "People from Connect find no task at their link"


@pytest.fixture
def engine(app):
    return app.state.database


async def test_a_program_and_the_pages_say_so_until_it_is_mended(api_client, researcher, client, engine):  # noqa: F811
    campaign = await create_running_campaign(engine, **CONNECT)
    page = (await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}")).text
    await client.post(f"/panel/{campaign.link_key}?{ARRIVAL}", data=form_fields(page))
    address, api = f"/admin/campaigns/{campaign.slug}", f"/api/v1/campaigns/{campaign.slug}"
    changed = (await api_client.patch(api, json={"panel_query": "", "panel_submission": None})).json()
    assert [note[: len(WARNING)] for note in changed["notes"]] == [WARNING]
    for place in ("", "/settings/visit"):
        assert WARNING in (await researcher.get(address + place)).text
    assert (await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}")).status_code == 404
    mended = await api_client.patch(api, json={"panel_query": CONNECT["panel_query"]})
    assert mended.json()["notes"] == []
    assert WARNING not in (await researcher.get(address)).text


async def test_people_of_a_platform_without_a_name_count_too_and_drafts_and_finished_campaigns_do_not(
    api_client,  # noqa: F811
    client,
    engine,
):
    campaign = await create_running_campaign(engine, **CONNECT)
    await client.get(f"/panel/{campaign.link_key}?{ARRIVAL}")
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 1
    api = f"/api/v1/campaigns/{campaign.slug}"
    without = {"panel_title": "", "panel_query": "", "panel_submission": None}
    notes = (await api_client.patch(api, json=without)).json()["notes"]
    assert ["find no task" in note for note in notes] == [True]
    await api_client.post(f"{api}/transitions", json={"action": "finish"})
    assert (await api_client.patch(api, json={"minutes_per_hit": 2})).json()["notes"] == []
