"""Where people come from: one question of the settings, which decides what the pages ask and say next."""

import re

import pytest

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


async def test_after_the_launch_the_question_still_has_the_next_steps_of_each_way(engine, researcher):
    campaign = await create_draft(engine, people_from="prolific")
    await import_items(engine, campaign, VERBS)
    await apply_action(engine, campaign)
    page = words(await visit_step(researcher, campaign))
    assert "into your study on Prolific, and the completion code of the study into the field below." in page
    assert "Anyone with the link can take part. Share shows it." in page
    assert "Once you launch" not in page
