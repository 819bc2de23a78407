"""The welcome page of annotators from a platform: nothing is leased until they begin."""

from typing import Any

import pytest

from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_value, form_fields
from tests.annotation.onboarding.visits import CONSENT, leases_of, open_campaign_link, send_form, step_of

PREVIEW = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE"}
ACCEPTED = {"assignmentId": "A1", "hitId": "H1", "workerId": "W1"}


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(
        engine, welcome=True, minutes_per_hit=2, pay="$0.35 per HIT", instructions="Think of *all* texts."
    )


async def test_who_comes_from_prolific_is_told_what_it_is_and_pays_with_an_example(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    assert step_of(page) == "welcome"
    for words in ("How frequent?", "about 2 min a task", "$0.35 per HIT", "<em>all</em>", "verb 0"):
        assert words in page
    assert await leases_of(engine) == 0
    assert form_fields(await send_form(client, address, page))["hit"]


async def test_nobody_is_welcomed_twice_also_in_another_session(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    hit = form_fields(await send_form(client, address, page))["hit"]
    page, _ = await open_campaign_link(client, campaign, SESSION_ID="s2")
    assert form_fields(page)["hit"] == hit


async def test_start_pressed_twice_or_after_back_leases_one_hit(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    hits = {form_fields(await send_form(client, address, page))["hit"] for _ in range(3)}
    assert len(hits) == 1
    assert await leases_of(engine) == 1


async def test_a_preview_on_mturk_is_a_preview_and_the_welcome_comes_after_acceptance(client, engine, campaign):
    address = f"/mturk/{campaign.link_key}"
    preview = (await client.get(address, params=PREVIEW)).text
    assert "This is a preview" in preview
    assert "You answer one such task." in preview
    assert step_of(preview) is None
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0
    page = (await client.get(address, params=ACCEPTED)).text
    assert step_of(page) == "welcome"
    assert await leases_of(engine) == 0


async def test_by_link_the_first_page_is_the_welcome_and_shows_an_example(client, engine, campaign):
    page = (await client.get(f"/link/{campaign.link_key}")).text
    assert "What a task looks like" in page
    address = (await client.post(f"/link/{campaign.link_key}")).headers["location"]
    assert form_fields((await client.get(address)).text)["hit"]
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 0


async def test_a_campaign_that_is_paused_says_so_instead(client, engine, campaign):
    _, address = await open_campaign_link(client, campaign)
    await execute_sql(engine, "UPDATE campaigns SET status = 'paused'")
    assert "The researcher has paused this study" in (await client.get(address)).text


async def test_a_platform_that_pays_for_all_tasks_is_told_how_many_there_are(client, engine):
    limits: dict[str, Any] = {"hits_per_annotator": 12, "welcome": True, "consent": CONSENT}
    campaign = await create_running_campaign(engine, people_from="prolific", **limits)
    visit = {"PROLIFIC_PID": "p1", "STUDY_ID": "s1", "SESSION_ID": "v1"}
    reply = await client.get(f"/prolific/{campaign.link_key}", params=visit, follow_redirects=True)
    assert "There are 12 such tasks." in reply.text
    assert "You can answer up to 12 such tasks." in (await client.get(f"/link/{campaign.link_key}")).text


async def test_how_to_answer_is_said_once_if_it_is_the_same_for_all_criteria(client, engine):
    criteria = [{"name": name, "question": f"How {name}?"} for name in ("fluent", "adequate")]
    sentence = "You see one item at a time"
    alike = await create_running_campaign(engine, welcome=True, design="rating", items_per_hit=1, criteria=criteria)
    page, _ = await open_campaign_link(client, alike)
    assert "How fluent?" in page
    assert "How adequate?" in page
    assert page.count(sentence) == 1
    own_ends = [one | {"low_label": f"not {one['name']}"} for one in criteria]
    other = await create_running_campaign(
        engine, name="Other", welcome=True, design="rating", items_per_hit=1, criteria=own_ends
    )
    page, _ = await open_campaign_link(client, other)
    assert page.count(sentence) == 2
