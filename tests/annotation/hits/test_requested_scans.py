"""Looks at the goal and the rules of a campaign, which the requests of its annotators ask for."""

import pytest

from app.background.metrics import PROCESS_METRICS
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    expire_leases,
    fetch_value,
    form_fields,
    submit_scores,
    try_to_lease_hit,
)
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
def scanned_ids(app):
    """The campaigns that requests want to be looked at, in order."""
    campaign_ids: list[int] = []
    app.state.campaign_monitor.request_scan = campaign_ids.append
    return campaign_ids


async def test_a_stored_answer_and_a_changed_one_ask_for_a_look_and_a_refused_one_does_not(client, engine, scanned_ids):
    campaign = await create_running_campaign(engine, undo=True)
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    first = form_fields((await client.get(address)).text)
    assert scanned_ids == []
    await client.post(address, data={name: first[name] for name in ("token", "hit")})
    assert scanned_ids == []
    page = await client.post(address, data=first)
    assert (page.status_code, scanned_ids) == (200, [campaign.id])
    opened = await client.post(address, data={"token": first["token"], "undo": "1"})
    seq = await fetch_value(engine, "SELECT seq FROM responses")
    assert f'name="replaces" value="{seq}"' in opened.text
    changed = await client.post(address, data=first | {"replaces": str(seq)})
    assert (changed.status_code, scanned_ids) == (200, [campaign.id] * 2)
    late = await client.post(address, data=first | {"replaces": str(seq + 7)})
    assert (late.status_code, scanned_ids) == (200, [campaign.id] * 2)


async def test_a_page_of_an_annotator_for_whom_nothing_is_left_asks_for_a_look(client, engine, scanned_ids):
    campaign = await create_running_campaign(engine, items=5, repeat_items=False)
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    await client.post(address, data=form_fields((await client.get(address)).text))
    scanned_ids.clear()
    assert (await client.get(address)).status_code == 200
    assert scanned_ids == [campaign.id]
    await execute_sql(engine, "UPDATE campaigns SET status = 'paused'")
    assert (await client.get(address)).status_code == 200
    assert scanned_ids == [campaign.id]


async def test_late_answers_are_counted_as_answers_and_repeated_ones_are_not(engine):
    def count() -> float:
        return PROCESS_METRICS.values.numbers["easel_answers_total", ("slider",)]

    campaign = await create_running_campaign(engine)
    me, before = await create_annotator(engine, campaign), count()
    hit = await try_to_lease_hit(engine, me)
    await expire_leases(engine)
    await submit_scores(engine, me, hit)
    assert count() == before + 1
    assert (await submit_scores(engine, me, hit)).repeated
    assert count() == before + 1


async def test_a_researcher_or_a_program_that_stops_a_campaign_asks_for_a_look(
    engine,
    researcher,
    api_client,  # noqa: F811  (a fixture)
    scanned_ids,
):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}"
    assert (await researcher.post(f"{address}/pause")).status_code == 303
    assert scanned_ids == [campaign.id]
    assert (await researcher.post(f"{address}/resume")).status_code == 303
    assert scanned_ids == [campaign.id]
    path = f"{API}/campaigns/{campaign.slug}/transitions"
    assert (await api_client.post(path, json={"action": "finish"})).status_code == 200
    assert scanned_ids == [campaign.id] * 2
