"""Where people come from: one question of the settings, which decides what the pages ask and say next."""

import re
from typing import Any

import pytest

from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.campaigns.drafts import VERBS, apply_action, create_draft, import_items
from tests.quality.test_reach import page_of, words


async def visit_step(researcher, campaign):
    return (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/visit")).text


def headings_of(html):
    return [words(heading) for heading in re.findall(r"<legend>(.*?)</legend>", html)]


async def test_where_people_come_from_is_asked_first_and_pay_before_the_consent_that_names_it(engine, researcher):
    headings = headings_of(await visit_step(researcher, await create_draft(engine)))
    assert headings[0] == "Recruiting"
    assert headings.index("Pay") < headings.index("Consent and people’s data")


@pytest.mark.parametrize(
    ("settings", "way", "heading"),
    [
        ({"people_from": "prolific"}, "prolific", "Prolific"),
        ({"people_from": "platform"}, "platform", "Another platform"),
        ({}, "prolific", "Prolific"),
    ],
)
async def test_what_only_one_way_of_recruiting_needs_is_marked_with_it(engine, researcher, settings, way, heading):
    html = await visit_step(researcher, await create_draft(engine, **settings))
    assert re.search(rf'<fieldset[^>]* data-people-from="{way}">\s*<legend>{heading}<', html)


async def test_a_section_that_is_filled_in_is_shown_whatever_is_chosen(engine, researcher):
    html = await visit_step(researcher, await create_draft(engine, prolific_completion_code="C0DE"))
    assert re.search(r"<fieldset>\s*<legend>Prolific<", html)


async def test_the_choice_is_stored_and_can_be_changed_after_the_launch(engine, researcher):
    campaign = await create_draft(engine)
    address = f"/admin/campaigns/{campaign.slug}/settings/visit"
    for way in ("prolific", "people"):
        assert (await researcher.post(address, data={"people_from": way})).status_code == 303
        assert f'<option value="{way}" selected>' in await visit_step(researcher, campaign)
    assert (await researcher.post(address, data={"people_from": "the moon"})).status_code == 422


async def test_the_launch_speaks_of_prolific_only_to_those_who_recruit_there(engine, researcher):
    for way, is_named in (("link", False), ("prolific", True)):
        campaign = await create_draft(engine, name=way, people_from=way)
        await import_items(engine, campaign, VERBS)
        page = await page_of(researcher, campaign, "launch/confirm")
        assert ("There is no completion code, so people have no button to return to Prolific." in page) == is_named


async def test_the_code_for_all_platforms_is_a_completion_code_too(engine, researcher):
    campaign = await create_draft(engine, people_from="prolific", return_completed="C123", hits_per_annotator=3)
    await import_items(engine, campaign, VERBS)
    assert "no completion code" not in await page_of(researcher, campaign, "launch/confirm")


async def test_after_the_launch_the_question_still_has_the_next_steps_of_each_way(engine, researcher):
    campaign = await create_draft(engine, people_from="prolific")
    await import_items(engine, campaign, VERBS)
    await apply_action(engine, campaign)
    page = words(await visit_step(researcher, campaign))
    assert "into your study on Prolific, and the completion code of the study into the field below." in page
    assert "Anyone with the link can take part. Share shows it." in page
    assert "Once you launch" not in page


async def launched(engine, **settings):
    campaign = await create_draft(engine, items_per_hit=5, repeat_items=False, **settings)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60)))
    await apply_action(engine, campaign, "launch")
    return campaign


PAID: dict[str, Any] = {
    "people_from": "prolific",
    "pay_per_hit": 0.125,
    "hits_per_annotator": 6,
    "recruiting_minutes": 10,
}


@pytest.mark.parametrize(
    ("settings", "first"),
    [
        ({}, "By link"),
        ({"people_from": "people"}, "Personal links"),
        ({"people_from": "prolific"}, "Prolific"),
        ({"prolific_completion_code": "C0DE"}, "Prolific"),
        ({"people_from": "mturk"}, "MTurk external question"),
        ({"people_from": "platform", "panel_title": "SONA", "panel_query": "id=%SURVEY_CODE%"}, "SONA"),
        ({"people_from": "platform"}, "Another platform"),
        ({"people_from": "programs"}, "API"),
    ],
)
async def test_share_shows_where_people_come_from_first_and_folds_the_other_ways(engine, researcher, settings, first):
    page = (await researcher.get(f"/admin/campaigns/{(await launched(engine, **settings)).slug}/share")).text
    ways, _, folded = page.partition('id="recruit"')[2].partition('<details class="other-ways">')
    assert re.findall(r'<h2 id="by-[^>]*>([^<]*)</h2>', ways) == [first]
    others = re.findall(r'<h2 id="by-[^>]*>([^<]*)</h2>', folded)
    assert first not in others
    assert len(others) >= 3


async def test_a_closed_link_has_no_code_to_scan_and_is_not_offered(engine, researcher):
    campaign = await launched(engine, **PAID, open_link=False, open_platforms=True)
    address = f"/admin/campaigns/{campaign.slug}"
    for page in (address, f"{address}/share"):
        html = (await researcher.get(page)).text
        assert '<svg class="segno' not in html
        assert "Share this link" not in html
    overview = words((await researcher.get(address)).text)
    assert "Link for Prolific" in overview
    assert f"/prolific/{campaign.link_key}?PROLIFIC_PID=" in (await researcher.get(address)).text
    assert "scan the code" not in overview


async def test_the_overview_of_an_open_link_still_offers_it(engine, researcher):
    page = (await researcher.get(f"/admin/campaigns/{(await launched(engine)).slug}")).text
    assert "Share this link" in page
    assert "segno" in page


@pytest.mark.parametrize(
    ("settings", "step"),
    [
        ({"people_from": "people"}, "Create a personal link for each person"),
        ({"people_from": "programs"}, "Your programs get tasks and send answers through the API"),
        ({"people_from": "platform"}, "Describe the link of the platform"),
        ({"open_link": False}, "The open link is closed."),
    ],
)
async def test_the_overview_says_the_next_step_of_each_way(engine, researcher, settings, step):
    page = (await researcher.get(f"/admin/campaigns/{(await launched(engine, **settings)).slug}")).text
    assert step in words(page)
    assert "Share this link" not in page


async def test_the_plan_of_a_running_campaign_counts_only_the_people_who_are_still_missing(engine, researcher):
    campaign = await create_draft(engine, items_per_hit=5, repeat_items=False, judgments_per_item=1, **PAID)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(40)))
    campaign = await apply_action(engine, campaign)
    assert "Start with 2 places" in await page_of(researcher, campaign, "plan")
    person = await create_annotator(engine, campaign, "p1", "prolific")
    for _ in range(PAID["hits_per_annotator"]):
        await submit_scores(engine, person, await try_to_lease_hit(engine, person))
    plan = await page_of(researcher, campaign, "plan")
    assert "Start with" not in plan
    assert "The judgments so far leave work for 1 to 2 more people." in plan
    assert "Places that are still open on Prolific are among them." in plan


async def test_pages_say_with_how_many_places_to_start_and_what_they_cost(engine, researcher):
    campaign = await create_draft(engine, items_per_hit=5, repeat_items=False, **PAID)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60)))
    launch = await page_of(researcher, campaign, "launch/confirm")
    said = (
        "Start with 6 places, and add more if judgments are missing when all places are taken. "
        "This costs $4.50 to $6.75, plus Prolific’s fee."
    )
    assert said in launch
    assert "Pay$4.50 to $6.75" in launch.replace("Pay ", "Pay")
    assert "Start with" in await page_of(researcher, campaign, "plan")
    other = await create_draft(engine, name="Nouns", **PAID | {"people_from": "link"})
    await import_items(engine, other, VERBS)
    assert "Start with" not in await page_of(researcher, other, "launch/confirm")
