"""Coming back in the middle of the steps: by Back, in a second tab, in another session, after leaving early."""

import pytest

from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows, fetch_value, form_fields
from tests.annotation.onboarding.visits import CONSENT, hidden_fields, leases_of, open_campaign_link, send_form, step_of


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine, welcome=True, questions=["age: How old are you?"], consent=CONSENT)


AGE = {"question-age": "40"}


async def test_who_leaves_in_the_middle_goes_on_there_in_another_session(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    page = await send_form(client, address, page, answer="yes")
    assert step_of(page) == "questions"
    later, address = await open_campaign_link(client, campaign, SESSION_ID="s2")
    assert step_of(later) == "questions"
    assert form_fields(await send_form(client, address, later, **AGE))["hit"]
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 1


async def test_a_form_of_a_step_that_is_passed_leads_on_and_changes_nothing(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    asked = await send_form(client, address, page, answer="yes")
    await send_form(client, address, asked, **AGE)
    assert form_fields(await send_form(client, address, asked, **{"question-age": "99"}))["hit"]
    assert form_fields(await send_form(client, address, page))["hit"]
    assert await fetch_rows(engine, "SELECT said FROM visits WHERE step = 'questions'") == [({"age": "40"},)]


async def test_two_tabs_in_the_steps_end_at_one_set(client, engine, campaign):
    tabs = [await open_campaign_link(client, campaign) for _ in range(2)]
    pages = []
    for page, address in tabs:
        while (step := step_of(page)) is not None:
            page = await send_form(client, address, page, **(AGE | {"answer": "yes"} if step else {}))  # noqa: PLW2901
        pages.append(page)
    assert len({form_fields(page)["hit"] for page in pages}) == 1
    assert await leases_of(engine) == 1


async def test_who_leaves_early_and_returns_finds_their_set_and_its_draft(client, engine, campaign):
    page, address = await open_campaign_link(client, campaign)
    while (step := step_of(page)) is not None:
        page = await send_form(client, address, page, **(AGE | {"answer": "yes"} if step else {}))
    fields = form_fields(page)
    item = next(name for name in fields if name.startswith("score-")).removeprefix("score-")
    draft = {"token": fields["token"], "hit": int(fields["hit"]), "entries": {item: {"score": 37}}}
    assert (await client.put(address, json=draft)).status_code == 204
    later, _ = await open_campaign_link(client, campaign, SESSION_ID="s2")
    assert form_fields(later)["hit"] == fields["hit"]
    assert 'value="37"' in later


async def test_a_token_of_another_campaign_passes_no_step(client, engine, campaign):
    other = await create_running_campaign(engine, welcome=True)
    page, _ = await open_campaign_link(client, other)
    _, address = await open_campaign_link(client, campaign)
    reply = await client.post(address, data=hidden_fields(page))
    assert reply.status_code == 422
    assert await fetch_value(engine, "SELECT count(*) FROM visits") == 0


async def test_a_step_is_in_the_language_of_the_request(client, campaign):
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=study&SESSION_ID=s1"
    pages = [await client.get(address, headers={"accept-language": language}) for language in ("de", "en")]
    assert [step_of(page.text) for page in pages] == ["consent"] * 2
    assert [page.text.partition('<html lang="')[2][:2] for page in pages] == ["de", "en"]
