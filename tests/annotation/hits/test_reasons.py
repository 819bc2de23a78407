"""Open comments, as reasons for answers: shown on every design's page, required if the campaign says so."""

import re
from typing import Any

import pytest

from tests.annotation.hits.campaigns import (
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    form_fields,
)
from tests.annotation.hits.test_blind_pages import WAYS
from tests.annotation.hits.test_checks import with_checks
from tests.annotation.hits.test_remarks import page_of
from tests.simulation.test_crowd import rehearse

REQUIRED: dict[str, Any] = {"comment_on": "items", "comment_request": "required", "items": 6, "items_per_hit": 2}
CRITERIA = [{"name": "adequacy", "question": "How adequate?"}, {"name": "fluency", "question": "How fluent?"}]
EXTRA = "SELECT extra FROM responses WHERE campaign_id = :id"


@pytest.fixture
def engine(app):
    return app.state.database


async def count_answers(engine, campaign):
    return await fetch_value(engine, "SELECT count(*) FROM responses WHERE campaign_id = :id", id=campaign.id)


async def test_a_required_comment_is_asked_for_openly_and_refused_if_blank(client, engine):
    campaign = await create_running_campaign(engine, **REQUIRED)
    address, page = await page_of(client, campaign)
    assert page.count('dir="auto">Why?</span>') == page.count('aria-required="true"') == 2
    assert 'class="remarks"' not in page
    assert "optional" not in page
    form = form_fields(page)
    for blank in ("", " \n "):
        refused = (await client.post(address, data=form | {"comment-00": "Short.", "comment-01": blank})).text
        assert "Please answer “Why?” for every item. What you entered is kept." in refused
        assert ">\nShort.</textarea>" in refused
        assert refused.count('aria-invalid="true"') == 1
        assert '<p class="field-problem" id="comment-01-problem">' in refused
        assert '<p class="field-problem" id="comment-00-problem" hidden>' in refused
    invisible = {"comment-00": "Short.", "comment-01": "\u200b"}
    assert "for every item" in (await client.post(address, data=form | invisible)).text
    assert await count_answers(engine, campaign) == 0
    given = {"comment-00": "Short.", "comment-01": "Long."}
    assert "1 task done" in (await client.post(address, data=form | given)).text
    remarks = (await fetch_value(engine, EXTRA, id=campaign.id))["remarks"]
    assert sorted(remark["comment"] for remark in remarks.values()) == ["Long.", "Short."]


async def test_a_comment_that_is_asked_for_may_stay_empty(client, engine):
    settings = REQUIRED | {"comment_request": "asked", "comment_question": "What is <wrong>?"}
    campaign = await create_running_campaign(engine, **settings)
    address, page = await page_of(client, campaign)
    assert page.count('dir="auto">What is &lt;wrong&gt;?</span>') == 2
    assert page.count('<span class="aside">optional</span>') == 2
    assert "aria-required" not in page
    assert "1 task done" in (await client.post(address, data=form_fields(page))).text


async def test_a_campaign_whose_settings_do_not_say_how_offers_comments_in_the_fold(client, engine):
    campaign = await create_running_campaign(engine, comment_on="items", items=6, items_per_hit=2)
    await execute_sql(
        engine,
        "UPDATE campaigns SET general_settings = general_settings - 'comment_request' - 'comment_question'",
    )
    address, page = await page_of(client, campaign)
    assert 'class="remarks"' in page
    assert 'class="reasons"' not in page
    assert "1 task done" in (await client.post(address, data=form_fields(page))).text


async def test_one_comment_on_the_task_is_enough_if_only_that_is_required(client, engine):
    campaign = await create_running_campaign(engine, **REQUIRED | {"comment_on": "HIT", "design": "pairwise"})
    address, page = await page_of(client, campaign)
    form = form_fields(page) | {"preferred": "00"}
    assert "for the whole task" in (await client.post(address, data=form)).text
    assert "1 task done" in (await client.post(address, data=form | {"comment-hit": "It flows."})).text
    assert await fetch_value(engine, EXTRA, id=campaign.id) == {"remarks": {"hit": {"comment": "It flows."}}}


async def test_an_item_that_cannot_be_judged_needs_no_comment(client, engine):
    settings = REQUIRED | {"cannot_be_judged": True, "unjudged_reasons": [], "comment_on": "both"}
    campaign = await create_running_campaign(engine, **settings, design="rating")
    address, page = await page_of(client, campaign)
    form = form_fields(page)
    one = form | {"unjudged-00": "yes", "score-00": ""}
    refused = (await client.post(address, data=one | {"comment-hit": "One only."})).text
    assert refused.count('aria-invalid="true"') == 1
    assert '<p class="field-problem" id="comment-01-problem">' in refused
    done = await client.post(address, data=one | {"comment-hit": "One only.", "comment-01": "Good."})
    assert "1 task done" in done.text
    none = form_fields(done.text) | {"unjudged-00": "yes", "unjudged-01": "yes", "score-00": "", "score-01": ""}
    assert "2 tasks done" in (await client.post(address, data=none)).text


async def test_a_check_needs_a_comment_like_an_item(client, engine):
    campaign = await with_checks(engine, comment_on="items", comment_request="required", checks_percent=50)
    address, page = await page_of(client, campaign)
    form, shown = form_fields(page), page.count('aria-required="true"')
    given = {f"comment-{place:02}": "Because." for place in range(shown)}
    for place in range(shown):
        assert "for every item" in (await client.post(address, data=form | given | {f"comment-{place:02}": ""})).text
    assert "1 task done" in (await client.post(address, data=form | given)).text


async def test_a_changed_answer_needs_its_comment_too(client, engine):
    campaign = await create_running_campaign(engine, **REQUIRED, undo=True)
    address, page = await page_of(client, campaign)
    given = {"comment-00": "Short.", "comment-01": "Long."}
    page = (await client.post(address, data=form_fields(page) | given)).text
    token = form_fields(page)["token"]
    again = (await client.post(address, data={"token": token, "undo": "1"})).text
    assert "\nShort.</textarea>" in again
    form = form_fields(again) | {"replaces": re.findall(r'name="replaces" value="(\d+)"', again)[0]}
    refused = (await client.post(address, data=form | given | {"comment-01": " "})).text
    assert "for every item" in refused
    assert await count_answers(engine, campaign) == 1
    await client.post(address, data=form | given | {"comment-01": "Longer."})
    assert await count_answers(engine, campaign) == 2


@pytest.mark.parametrize("design", WAYS)
async def test_every_design_shows_a_field_for_each_item_and_the_task_before_its_button(client, engine, design):
    settings = REQUIRED | {"comment_on": "both", "design": design, "items_per_hit": None} | WAYS[design][1]
    campaign = await create_running_campaign(engine, **settings)
    _, page = await page_of(client, campaign)
    assert page.count('aria-required="true"') == campaign.items_per_hit + 1
    assert page.rindex('aria-required="true"') < page.index('class="primary"')


@pytest.mark.parametrize("layout", ["in turn", "grid"])
async def test_with_criteria_one_comment_is_for_all_of_them(client, engine, layout):
    settings = REQUIRED | {"design": "rating", "criteria": CRITERIA, "criteria_shown": layout}
    campaign = await create_running_campaign(engine, **settings)
    address, page = await page_of(client, campaign)
    assert page.count('aria-required="true"') == 2
    assert page.rindex('name="c1-score-') < page.index('class="reasons"')
    form = form_fields(page) | dict.fromkeys(re.findall(r'name="(c\d+-score-\d+)"', page), "40")
    assert "for every item" in (await client.post(address, data=form | {"comment-00": "Good."})).text
    done = await client.post(address, data=form | {"comment-00": "Good.", "comment-01": "Bad."})
    assert "1 task done" in done.text


async def test_a_simulated_crowd_gives_the_comments_that_are_asked_for(engine):
    for request in ("asked", "required"):
        campaign = await create_running_campaign(
            engine, **REQUIRED | {"comment_on": "both", "comment_request": request}
        )
        answered = await rehearse(engine, campaign, hits=3, annotators=2)
        assert answered == 3
        for (extra,) in await fetch_rows(engine, EXTRA, id=campaign.id):
            assert len(extra["remarks"]) == 3
