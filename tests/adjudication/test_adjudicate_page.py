"""The page on which researchers settle labels, and its routes for programs."""

import re
from typing import Any

import pytest

from app.analysis.adjudication_state import load_adjudication_state
from app.analysis.fit_cache import FitCache
from app.analysis.pages import adjudication
from tests.accounts.reaching import log_in_with_role
from tests.adjudication.labelled import BEN, create_labelled_campaign, settle
from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_rows, fetch_value

PAGE = "/admin/campaigns/verbs/adjudicate"
API = "/api/v1/campaigns/verbs/adjudications"


@pytest.fixture
def engine(app):
    return app.state.database


def shown_item(html):
    """Return the id of the item that the page has open."""
    (item_id,) = re.findall(r'id="item-title"[^>]*>Item <code[^>]*>([^<]*)<', html)
    return item_id


async def choose(researcher, html, label, **query):
    """Press the button of a label on a page, and return the page that follows."""
    (form,) = re.findall(r'<form class="labels".*?</form>', html, re.DOTALL)
    fields = dict(re.findall(r'name="(item|replaces)" value="([^"]*)"', form))
    return await researcher.post(PAGE, params=query, data=fields | {"label": label}, follow_redirects=True)


async def undo(researcher, html):
    """Press Undo on a page, and return the page that follows."""
    (form,) = re.findall(r'<form[^>]*id="undo".*?</form>', html, re.DOTALL)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    return await researcher.post(PAGE, data=fields, follow_redirects=True)


async def test_items_without_a_majority_come_one_after_the_other_until_all_are_settled(researcher, engine):
    await create_labelled_campaign(engine)
    page = await researcher.get(PAGE)
    assert "0 of 2 items without a majority are settled." in page.text
    first = shown_item(page.text)
    page = await choose(researcher, page.text, "no")
    assert "1 of 2 items without a majority is settled." in page.text
    assert {first, shown_item(page.text)} == {"v1", "v3"}
    page = await choose(researcher, page.text, "yes")
    assert "2 of 2 items without a majority are settled." in page.text
    assert "All of them are settled." in page.text
    page = await researcher.get(PAGE, params={"show": "open"})
    assert shown_item(page.text) in {"v0", "v2"}


async def test_the_page_shows_votes_with_their_annotators_and_the_label_of_the_analysis(researcher, engine):
    await create_labelled_campaign(engine)
    page = await researcher.get(PAGE, params={"item": "v2"})
    text = re.sub(r"<[^>]*>|\s+", " ", page.text)
    text = re.sub(r" +", " ", text)
    assert "3 votes : A1 , A2 , A3" in text
    assert "1 vote : A4" in text
    assert "Easel’s label: no , confidence" in text


async def test_a_choice_can_be_undone_at_once(researcher, engine):
    await create_labelled_campaign(engine)
    page = await choose(researcher, (await researcher.get(PAGE)).text, "no")
    first = shown_item((await researcher.get(PAGE)).text)
    page = await undo(researcher, page.text)
    assert shown_item(page.text) != first
    assert "0 of 2 items without a majority are settled." in page.text
    assert "The item is open again." in page.text
    assert await fetch_value(engine, "SELECT count(*) FROM adjudications") == 2


async def test_undoing_a_change_restores_the_label_and_the_reason_before(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v1", "yes", reason="The context says so.")
    page = await choose(researcher, (await researcher.get(PAGE, params={"item": "v1"})).text, "no")
    page = await undo(researcher, page.text)
    assert shown_item(page.text) == "v1"
    assert "1 of 2 items without a majority is settled." in page.text
    assert "The label before the change is back." in page.text
    rows = await fetch_rows(engine, "SELECT label, reason FROM adjudications ORDER BY id")
    assert [tuple(row) for row in rows] == [
        ("yes", "The context says so."),
        ("no", ""),
        ("yes", "The context says so."),
    ]


async def test_only_the_decision_just_made_can_be_undone(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    page = await choose(researcher, (await researcher.get(PAGE, params={"item": "v1"})).text, "no")
    address = page.url
    assert 'id="undo"' in (await researcher.get(address)).text
    (latest,) = await fetch_rows(engine, "SELECT id FROM adjudications")
    await settle(engine, campaign, "v1", "unclear", actor=BEN, replaces=latest[0])
    assert 'id="undo"' not in (await researcher.get(address)).text
    assert 'id="undo"' not in (await researcher.get(PAGE, params={"after": "v1"})).text


async def test_links_to_other_criteria_forget_the_item_just_settled(researcher, engine):
    settings: dict[str, Any] = {"design": "ordinal", "design_settings": {"labels": ["low", "high"]}, "name": "Verbs"}
    criteria = [{"name": name, "question": f"{name}?"} for name in ("joy", "fear")]
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, criteria=criteria, **settings)
    await settle(engine, campaign, "v0", "low", criterion="fear")
    page = await choose(researcher, (await researcher.get(PAGE, params={"item": "v0"})).text, "high")
    assert 'id="undo"' in page.text
    (criteria_links,) = re.findall(r'<nav class="by-criterion" aria-label="Criteria">.*?</nav>', page.text, re.DOTALL)
    assert "after=" not in criteria_links
    fear = await researcher.get(PAGE, params={"criterion": "fear", **dict(page.url.params)})
    assert 'id="undo"' not in fear.text


async def test_a_colleague_s_decision_is_shown_before_it_can_be_changed(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    old_page = (await researcher.get(PAGE, params={"item": "v1"})).text
    await settle(engine, campaign, "v1", "unclear", reason="Both readings fit.", actor=BEN)
    page = await choose(researcher, old_page, "yes")
    assert page.status_code == 409
    assert "was settled as “unclear” by ben meanwhile" in page.text
    assert "Both readings fit." in page.text
    page = await choose(researcher, page.text, "yes")
    assert page.status_code == 200
    rows = await fetch_rows(engine, "SELECT label FROM adjudications ORDER BY id")
    assert [row[0] for row in rows] == ["unclear", "yes"]


async def test_a_blind_page_shows_votes_only_after_the_choice(researcher, engine):
    await create_labelled_campaign(engine)
    page = await researcher.get(PAGE, params={"blind": "true"})
    assert "1 vote" not in page.text
    assert "Easel’s label" not in page.text
    page = await choose(researcher, page.text, "no", blind="true")
    assert "votes: 2 <span" in page.text
    assert "Easel’s label" not in page.text


async def test_texts_and_reasons_are_no_markup(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    await execute_sql(engine, "UPDATE items SET shown = '<b>bold</b>' WHERE external_id = 'v1'")
    await settle(engine, campaign, "v1", "no", reason="<script>alert(1)</script>")
    page = await researcher.get(PAGE, params={"item": "v1"})
    assert "<b>bold</b>" not in page.text
    assert "<script>alert(1)" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


async def test_a_refused_reason_is_not_lost(researcher, engine):
    await create_labelled_campaign(engine)
    reason = {"item": "v1", "replaces": "0", "label": "no", "reason": "long " * 120}
    page = await researcher.post(PAGE, data=reason)
    assert page.status_code == 422
    assert "Shorten the reason" in page.text
    assert 'value="long long' in page.text


async def test_unknown_items_and_campaigns_without_labels_are_refused(researcher, engine):
    await create_labelled_campaign(engine)
    assert (await researcher.get(PAGE, params={"item": "v9"})).status_code == 404
    await create_running_campaign(engine, name="Scores")
    page = await researcher.get("/admin/campaigns/scores/adjudicate")
    assert page.status_code == 409
    assert "/adjudicate" not in (await researcher.get("/admin/campaigns/scores")).text
    assert "/adjudicate" in (await researcher.get("/admin/campaigns/verbs")).text


@pytest.mark.parametrize(("role", "status"), [("viewer", 403), ("manager", 200)])
async def test_only_researchers_who_may_see_people_reach_the_page(app, client, engine, role, status):
    campaign = await create_labelled_campaign(engine)
    await log_in_with_role(app, client, "guest", role, campaign)
    assert (await client.get(PAGE)).status_code == status


async def test_ordered_labels_can_be_settled_too(researcher, engine):
    settings = {"design": "ordinal", "design_settings": {"labels": ["low", "middle", "high"]}}
    await create_labelled_campaign(engine, {"ann": [0, 1], "bob": [2, 1]}, **settings)
    page = await researcher.get(PAGE)
    assert shown_item(page.text) == "v0"
    assert "1 of 1 item without a majority is settled." in (await choose(researcher, page.text, "middle")).text


async def test_the_page_says_how_often_each_annotator_gave_the_final_label(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    assert "Annotators and the final labels" not in (await researcher.get(PAGE)).text
    await settle(engine, campaign, "v1", "no")
    await settle(engine, campaign, "v2", "no")
    state = await load_adjudication_state(FitCache(), engine, engine, campaign.slug, "")
    found = {one.name: (one.judged, one.agreed) for one in state.agreement_with_final_labels()}
    assert found == {"A1": (2, 1), "A2": (2, 2), "A3": (2, 1), "A4": (2, 1)}
    assert "Annotators and the final labels" in (await researcher.get(PAGE)).text


async def test_programs_list_items_and_settle_them(api_client, engine):
    await create_labelled_campaign(engine)
    queue = (await api_client.get(API)).json()
    assert (queue["no_majority"], queue["no_majority_settled"], queue["total"]) == (2, 0, 2)
    assert {item["item"] for item in queue["items"]} == {"v1", "v3"}
    assert queue["items"][0]["votes"] == {"no": 2, "yes": 1, "unclear": 1}
    made = await api_client.post(API, json={"item": "v1", "label": "yes", "reason": "Seen."})
    assert (made.status_code, made.json()["label"], made.json()["reason"]) == (200, "yes", "Seen.")
    again = await api_client.post(API, json={"item": "v1", "label": "no"})
    assert (again.status_code, again.json()["error"]["code"]) == (409, "adjudication_changed")
    number = again.json()["error"]["details"]["latest"]
    assert number == made.json()["id"]
    changed = await api_client.post(API, json={"item": "v1", "label": None, "replaces": number})
    assert changed.json()["label"] is None
    everything = (await api_client.get(API, params={"show": "all"})).json()
    assert len(everything["items"]) == 4


async def test_every_choice_by_page_or_program_is_in_the_log(researcher, api_client, engine):
    await create_labelled_campaign(engine)
    await choose(researcher, (await researcher.get(PAGE, params={"item": "v1"})).text, "no")
    await api_client.post(API, json={"item": "v3", "label": "yes"})
    rows = await fetch_rows(engine, "SELECT way, about FROM audit_log WHERE action = 'labels.settled' ORDER BY id")
    assert [tuple(row) for row in rows] == [("page", "v1"), ("api", "v3")]


async def test_items_without_votes_are_not_offered_and_the_list_of_settled_items_opens_none(researcher, engine):
    settings: dict[str, Any] = {"design": "categories", "design_settings": {"labels": ["yes", "no"]}, "name": "Verbs"}
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, **settings)
    page = await researcher.get(PAGE, params={"show": "open"})
    assert "All items of this list with answers are settled." in page.text
    await settle(engine, campaign, "v0", "no")
    page = await researcher.get(PAGE, params={"show": "settled"})
    assert "Open an item below to change its label." in page.text


async def test_a_blind_page_does_not_say_which_items_have_no_majority(researcher, engine):
    await create_labelled_campaign(engine)
    assert ">no majority<" in (await researcher.get(PAGE, params={"item": "v1"})).text
    assert ">no majority<" not in (await researcher.get(PAGE, params={"item": "v1", "blind": "true"})).text


async def test_reopening_keeps_its_reason(researcher, engine):
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v1", "no")
    page = (await researcher.get(PAGE, params={"item": "v1"})).text
    assert "Reopen this item" in page
    fields = dict(re.findall(r'name="(item|replaces)" value="([^"]*)"', page)) | {"label": "", "reason": "Too quick."}
    page = await researcher.post(PAGE, data=fields, follow_redirects=True)
    assert "Reopened by" in page.text
    assert "Reason: <span" in page.text
    assert "Too quick." in page.text


async def test_long_lists_of_annotators_say_that_they_are_cut(researcher, engine, monkeypatch):
    monkeypatch.setattr(adjudication, "MAX_LISTED_ANNOTATORS", 2)
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v2", "no")
    page = (await researcher.get(PAGE, params={"item": "v2"})).text
    assert re.search(r">A2</a> and 1 more<", page)
    assert "These are the 2 who agree least, of 4 annotators." in page
