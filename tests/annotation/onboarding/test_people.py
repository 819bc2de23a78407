"""Links of people's own: each is one annotator, on every device, and nobody can guess one."""

import csv
import io

import pytest

from app.annotation.onboarding import personal_links
from tests.annotation.hits.campaigns import (
    NOW,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    form_fields,
)
from tests.annotation.onboarding.visits import send_form
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import VERBS, create_draft, import_items

ADMIN = "/admin/campaigns/{slug}/people"


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine, hits_per_annotator=2)


async def links_of(engine, campaign, *names):
    """Return the links of these people without a request to the server."""
    async with engine.begin() as connection:
        await personal_links.create_missing_links_and_count_them(connection, campaign, names, now=NOW)
        rows = await personal_links.list_personal_links(connection, campaign.id)
    return [personal_links.personal_link_url("", campaign.link_key, row.link) for row in rows]


async def test_each_person_has_a_link_that_nobody_can_guess(engine, campaign):
    links = await links_of(engine, campaign, "Ann", "Bea", "Ann", "")
    assert len({*links}) == 2
    assert all(len(link.partition("person=")[2]) >= 22 for link in links)


async def test_whoever_is_on_the_list_keeps_their_link(engine, campaign):
    first = await links_of(engine, campaign, "Ann")
    assert (await links_of(engine, campaign, "Bea", "Ann"))[0] == first[0]


async def test_another_device_is_the_same_annotator_with_the_same_set(client, engine, campaign):
    (link,) = await links_of(engine, campaign, "Ann")
    hits = {form_fields((await client.get(link)).text)["hit"] for _ in range(3)}
    assert len(hits) == 1
    assert await fetch_rows(engine, "SELECT platform, worker_id FROM annotators") == [("personal", "1")]
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 1


async def test_a_limit_is_neither_passed_nor_lost_over_devices(client, engine, campaign):
    (link,) = await links_of(engine, campaign, "Ann")
    for _ in range(2):
        here, there = [(await client.get(link)).text for _ in range(2)]
        assert form_fields(here)["hit"] == form_fields(there)["hit"]
        replies = [await client.post(link, data=form_fields(page)) for page in (here, there)]
        assert [reply.status_code for reply in replies] == [200, 200]
    assert "You have done all your tasks" in (await client.get(link)).text
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 2


async def test_steps_are_passed_once_for_all_devices(client, engine):
    campaign = await create_running_campaign(engine, welcome=True)
    (link,) = await links_of(engine, campaign, "Ann")
    page = (await client.get(link)).text
    assert "Start" in page
    assert form_fields(await send_form(client, link, page))["hit"]
    assert form_fields((await client.get(link)).text)["hit"]


async def test_a_link_that_is_not_on_the_list_lets_nobody_in(client, engine, campaign, subtests):
    for query in ("?person=nobody", "", "?person={link}", "?person=a&person=b"):
        with subtests.test(query=query):
            await links_of(engine, campaign, "Ann")
            reply = await client.get(f"/personal/{campaign.link_key}{query}")
            assert reply.status_code in (404, 422)
            assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


async def test_a_link_opens_no_other_campaign(client, engine, campaign):
    (link,) = await links_of(engine, campaign, "Ann")
    other = await create_running_campaign(engine)
    assert (await client.get(link.replace(campaign.link_key, other.link_key))).status_code == 404


async def test_a_table_of_people_is_uploaded_and_comes_back_with_links_and_who_used_them(
    researcher, client, engine, campaign
):
    address = ADMIN.format(slug=campaign.slug)
    table = "nr,E-Mail\n1,ann@example.org\n2,=bea\n"
    reply = await researcher.post(address, files={"file": ("people.csv", table)})
    assert reply.status_code == 303
    file = await researcher.get(f"{address}.csv")
    ann, bea = csv.DictReader(io.StringIO(file.text))
    assert (ann["name"], bea["name"]) == ("ann@example.org", "'=bea")
    assert (ann["opened_at"], ann["sets_answered"]) == ("", "0")
    link = ann["link"].removeprefix("http://easel.test")
    page = (await client.get(link)).text
    await client.post(link, data=form_fields(page))
    ann, _ = csv.DictReader(io.StringIO((await researcher.get(f"{address}.csv")).text))
    assert (bool(ann["opened_at"]), ann["sets_answered"]) == (True, "1")
    shown = (await researcher.get(address)).text
    assert "2 people have a link (1 used so far)." in shown
    assert ann["link"] in shown


async def test_names_can_be_typed_and_too_many_are_refused(researcher, engine, campaign, monkeypatch):
    monkeypatch.setattr(personal_links, "MAX_PERSONAL_LINKS", 2)
    address = ADMIN.format(slug=campaign.slug)
    await researcher.post(address, data={"names": "Ann\n\n Bea "})
    assert await fetch_rows(engine, "SELECT name FROM personal_links ORDER BY number") == [("Ann",), ("Bea",)]
    reply = await researcher.post(address, data={"names": "Cleo"})
    assert reply.status_code == 413
    assert "No one was added" in reply.text


async def test_a_table_that_cannot_be_read_says_why(researcher, campaign):
    reply = await researcher.post(ADMIN.format(slug=campaign.slug), files={"file": ("people.csv", b"name\nJos\xe9\n")})
    assert reply.status_code == 422
    assert "not UTF-8" in reply.text


async def test_an_older_encoding_is_offered_and_read_when_it_is_chosen(researcher, engine, campaign):
    address, table = ADMIN.format(slug=campaign.slug), {"file": ("people.csv", b"name\nJos\xe9 Mu\xf1oz\n")}
    refused = await researcher.post(address, files=table)
    assert refused.status_code == 422
    assert 'name="encoding" value="windows-1252"' in refused.text
    assert "José Muñoz" in refused.text
    chosen = await researcher.post(address, files=table, data={"encoding": "windows-1252"})
    assert chosen.status_code == 303
    assert await fetch_rows(engine, "SELECT name FROM personal_links") == [("José Muñoz",)]


async def test_quotation_marks_that_may_be_text_are_asked_about(researcher, engine, campaign):
    address, table = ADMIN.format(slug=campaign.slug), {"file": ("people.csv", 'name\n"Ann\nBea\n')}
    refused = await researcher.post(address, files=table)
    assert refused.status_code == 422
    assert 'name="quotes" value="text"' in refused.text
    assert (await researcher.post(address, files=table, data={"quotes": "text"})).status_code == 303
    assert await fetch_rows(engine, "SELECT name FROM personal_links ORDER BY number") == [('"Ann',), ("Bea",)]


async def test_no_export_has_names_or_links(client, researcher, engine, campaign):
    (link,) = await links_of(engine, campaign, "Ann Smith")
    await client.post(link, data=form_fields((await client.get(link)).text))
    for what in ("responses.csv", "assignments.csv", "visits.csv", "settings.json"):
        text = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/{what}")).text
        assert "Ann Smith" not in text
        assert link.partition("person=")[2] not in text


async def test_programs_make_links_too(api_client, engine, campaign):  # noqa: F811
    await execute_sql(engine, "UPDATE campaigns SET status = 'draft'")
    address = f"{API}/campaigns/{campaign.slug}/people"
    assert (await api_client.post(address, json={"names": ["Ann", "Bea"]})).json() == {"added": 2}
    told = (await api_client.get(address)).json()
    assert (told["total"], told["used"]) == (2, 0)
    assert [one["name"] for one in told["people"]] == ["Ann", "Bea"]
    assert told["people"][0]["link"].startswith("http://easel.test/personal/")


async def test_a_draft_whose_link_is_closed_says_that_nobody_is_invited(engine, researcher):
    campaign = await create_draft(engine, open_link=False)
    await import_items(engine, campaign, VERBS)
    page = f"/admin/campaigns/{campaign.slug}"
    to_do = '<span class="visually-hidden">To do: </span><a href="/admin/campaigns/verbs/people">'
    nobody = "The open link is closed and no one has a personal link"
    for tab in ("", "/items", "/share", "/launch/confirm"):
        html = (await researcher.get(page + tab)).text
        assert (to_do in html) == (tab != "/launch/confirm")  # which has the steps of the settings instead
        assert (nobody in html) == (tab in ("/share", "/launch/confirm"))
    await links_of(engine, campaign, "Ann")
    assert to_do.replace("To do", "Done") in (await researcher.get(page)).text
    assert nobody not in (await researcher.get(page + "/launch/confirm")).text


async def test_an_open_link_needs_before_answers(engine, researcher):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, VERBS)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/launch/confirm")).text
    assert f"/admin/campaigns/{campaign.slug}/people" not in html
