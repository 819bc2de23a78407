"""A HIT can be seen and answered in a frame as annotators will see it, and nothing of it is stored."""

import re

import pytest

from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.designs.registry import DESIGNS
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table

PAGE = "/admin/campaigns/{}/try"


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(
        engine, items=12, launched=False, items_per_hit=3, low_label="rare", high_label="frequent"
    )


def scores(page, score="5"):
    fields = dict.fromkeys(re.findall(r'name="(score-\d+)"', page), score)
    (hit,) = re.findall(r'name="hit" value="(\d+)"', page)
    return fields | {"hit": hit, "token": ""}


async def test_the_former_page_leads_to_the_preview_as_participant(researcher, campaign):
    reply = await researcher.get(PAGE.format(campaign.slug))
    assert reply.headers["location"] == f"/admin/campaigns/{campaign.slug}/preview?at=hit-1"
    assert "Task 1" in (await researcher.get(reply.headers["location"])).text


async def test_it_is_the_page_that_annotators_get_and_may_stand_in_a_frame_of_ours_alone(researcher, campaign):
    reply = await researcher.get(PAGE.format(campaign.slug) + "/hit")
    assert reply.text.count('type="number"') == 3
    assert "rare" in reply.text
    assert "that you gave last" not in reply.text  # nobody has answered
    assert reply.headers["x-frame-options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in reply.headers["content-security-policy"]


async def test_an_answer_is_checked_leads_to_another_set_and_leaves_no_trace(engine, researcher, campaign):
    address = PAGE.format(campaign.slug) + "/hit"
    first = (await researcher.get(address)).text
    refused = await researcher.post(address, data=scores(first, "101"))
    assert "must be between 0 and 100" in refused.text
    assert refused.text.count('value="101"') == 3
    second = (await researcher.post(address, data=scores(first))).text
    assert scores(second) != scores(first)
    assert "Change my last answers" not in second  # nothing is stored that could be changed
    assert (await researcher.put(address, json={"entries": {}})).status_code == 204
    for table in ("annotators", "assignments", "hits", "responses"):
        assert await fetch_rows(engine, f"SELECT 1 FROM {table}") == []


async def test_no_item_comes_again_until_all_have_been_shown(researcher, campaign):
    address = PAGE.format(campaign.slug) + "/hit"
    pages = [(await researcher.get(f"{address}?number={number}")).text for number in range(8)]
    shown = [set(re.findall(r"verb \d+", page)) for page in pages]
    for tasks in (shown[:4], shown[4:]):  # twelve items, three in a task
        assert len(set().union(*tasks)) == 12
        assert [len(task) for task in tasks] == [3, 3, 3, 3]


async def test_no_segment_comes_again_until_all_have_been_shown(engine, researcher):
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=6))
    address = PAGE.format(campaign.slug) + "/hit"
    pages = [(await researcher.get(f"{address}?number={number}")).text for number in range(6)]
    shown = [set(re.findall(r"(?:ape|bee|cat|doe) on (\d+)", page)) for page in pages]
    assert sorted(shown, key=min) == [{"0"}, {"1"}, {"2"}, {"3"}, {"4"}, {"5"}]


async def test_items_that_stand_in_for_recordings_are_not_missing_files(engine, researcher):
    async with engine.begin() as connection:
        settings = CampaignSettings(name="Voices", question="How natural?", content="audio", must_play="end")
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=NOW)
    page = (await researcher.get(PAGE.format(campaign.slug) + "/hit")).text
    assert "Item 1" in page
    assert "There is no file" not in page


async def test_our_script_is_told_what_is_wrong(researcher, campaign):
    address = PAGE.format(campaign.slug) + "/hit"
    headers = {"X-Easel": "fetch", "Accept": "application/json"}
    reply = await researcher.post(address, data={"hit": "0"}, headers=headers)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "scores_missing")


async def test_without_items_others_stand_in(engine, researcher):
    async with engine.begin() as connection:
        settings = CampaignSettings(name="Verbs", question="How often?")
        campaign = await lifecycle.create_draft_campaign_or_refuse(connection, settings, now=NOW)
    page = (await researcher.get(PAGE.format(campaign.slug) + "/hit")).text
    assert page.count('type="number"') == 5
    assert "Item 1" in page


async def test_settings_in_the_address_are_shown_and_checked_and_count_for_nothing(engine, researcher, campaign):
    address = PAGE.format(campaign.slug) + "/hit"
    unsaved = {
        "step": "question",
        "design": "magnitude",
        "question": "How odd?",
        "items_per_hit": "2",
        "magnitude.reference": "middling",
    }
    page = (await researcher.get(address, params=unsaved)).text
    assert "How odd?" in page
    assert "middling" in page
    assert len(scores(page)) == 4
    refused = await researcher.post(address, params=unsaved, data=scores(page, "0"))
    assert 'class="notice"' in refused.text
    following = (await researcher.post(address, params=unsaved, data=scores(page))).text
    assert 'name="hit" value="1"' in following
    assert await fetch_rows(engine, "SELECT design FROM campaigns") == [("slider",)]


@pytest.mark.parametrize("design", DESIGNS)
async def test_what_is_not_right_yet_is_shown_as_in_a_new_campaign(researcher, design):
    wrong = {"design": design, "question": " ", "items_per_hit": "99", "low_label": "x", "high_label": "x"}
    wrong |= {f"{design}.labels": "one", f"{design}.best_label": "b", f"{design}.worst_label": "b"}
    page = await researcher.get(PAGE.format("new") + "/hit", params=wrong)
    assert page.status_code == 200
    assert "Your question" in page.text


async def test_a_browser_without_scripts_sends_the_form_and_keeps_its_secret_out_of_the_address(researcher, campaign):
    form = {"csrf": "secret", "step": "question", "design": "rating", "question": "How?", "in_short": ""}
    reply = await researcher.post(PAGE.format(campaign.slug) + "/hit", data=form)
    assert (reply.status_code, reply.headers["location"].partition("?")[2]) == (
        303,
        "step=question&design=rating&question=How%3F",
    )


async def test_a_stranger_is_sent_to_log_in(client, campaign):
    for method in ("GET", "POST", "PUT"):
        reply = await client.request(method, PAGE.format(campaign.slug) + "/hit")
        assert reply.status_code in (303, 401)


CRITERIA = [{"name": name, "question": f"How is its {name}?"} for name in ("adequacy", "fluency")]


async def test_every_criterion_is_tried_and_what_is_wrong_names_it(engine, researcher):
    campaign = await create_running_campaign(engine, items=12, launched=False, items_per_hit=3, criteria=CRITERIA)
    address = PAGE.format(campaign.slug) + "/hit"
    first = (await researcher.get(address)).text
    assert len(re.findall(r'<input id="c[01]-score-', first)) == 6
    fields = dict.fromkeys(re.findall(r'name="(c\d-score-\d+)"', first), "5") | {"hit": "0", "token": ""}
    last = max(name for name in fields if name.startswith("c1-"))
    refused = (await researcher.post(address, data=fields | {last: "101"})).text
    assert "fluency: The score of item" in refused
    assert (refused.count('value="5"'), refused.count('value="101"')) == (5, 1)
    second = (await researcher.post(address, data=fields)).text
    assert "1 task done" in second


@pytest.mark.parametrize("shown", ["in turn", "grid"])
async def test_criteria_in_the_address_are_shown(researcher, campaign, shown):
    form = {"step": "question", "design": "rating", "items_per_hit": "2", "question": "Judge.", "criteria_shown": shown}
    for number, criterion in enumerate(CRITERIA):
        form |= {f"criteria.{number}.{name}": words for name, words in criterion.items()}
    page = (await researcher.get(PAGE.format(campaign.slug) + "/hit", params=form)).text
    assert ('class="grid' in page) == (shown == "grid")
    assert page.count("How is its fluency?") == 1
    assert page.count('type="number"') == 4


async def test_the_preview_requires_the_comments_that_the_campaign_does(engine, researcher):
    campaign = await create_running_campaign(
        engine, launched=False, items_per_hit=3, comment_on="items", comment_request="required", design="rating"
    )
    address = PAGE.format(campaign.slug) + "/hit"
    page = (await researcher.get(address)).text
    assert page.count('aria-required="true"') == 3
    given = dict.fromkeys(re.findall(r'name="(comment-\d+)"', page), "Because.")
    refused = (await researcher.post(address, data=scores(page) | given | {"comment-01": ""})).text
    assert "Please answer “Why?” for every item." in refused
    assert refused.count('aria-invalid="true"') == 1
    shown = (await researcher.post(address, data=scores(page) | given)).text
    assert "Please answer" not in shown
