"""Pay of one person: platforms that pay each person one reward ask for it, and the pay of a task follows."""

import re

import pytest

from app.campaigns.lifecycle import unchecked_settings_with_deliverable_emails
from app.record.campaign import load_campaign_for_page_or_refuse
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.quality.test_reach import words

SIXTY_ITEMS = "id,text\n" + "".join(f"{k},verb {k}\n" for k in range(60))
PERSON = {"person_reward": "1.50", "person_tasks": "12", "recruiting_minutes": "10"}


async def settings_of(engine, campaign):
    async with engine.connect() as connection:
        stored = await load_campaign_for_page_or_refuse(connection, campaign.slug)
    return unchecked_settings_with_deliverable_emails(stored)


def step_address(campaign, step="visit"):
    return f"/admin/campaigns/{campaign.slug}/settings/{step}"


async def save(researcher, campaign, step="visit", **values):
    return await researcher.post(step_address(campaign, step), data=values)


def field_value(html, name):
    (found,) = re.findall(rf'<input type="number" id="{name}"[^>]* value="([^"]*)"', html)
    return found


@pytest.mark.parametrize("way", ["prolific", "platform"])
async def test_the_pay_and_minutes_of_a_task_follow_from_those_of_a_person(engine, researcher, way):
    campaign = await create_draft(engine)
    assert (await save(researcher, campaign, people_from=way, **PERSON)).status_code == 303
    stored = await settings_of(engine, campaign)
    assert (stored.pay_per_hit, stored.hits_per_annotator, stored.recruiting_minutes) == (0.125, 12, 10)
    assert stored.minutes_per_hit == pytest.approx(10 / 12)
    page = (await researcher.get(step_address(campaign))).text
    assert [field_value(page, name) for name in PERSON] == ["1.50", "12", "10"]
    assert "$0.125 a task" in page


async def test_a_reward_that_does_not_divide_evenly_stays_what_was_typed(engine, researcher):
    campaign = await create_draft(engine)
    values = {"person_reward": "1.55", "person_tasks": "11", "recruiting_minutes": "7"}
    await save(researcher, campaign, people_from="prolific", **values)
    page = (await researcher.get(step_address(campaign))).text
    assert field_value(page, "person_reward") == "1.55"
    pay = (await settings_of(engine, campaign)).pay_per_hit
    await save(researcher, campaign, people_from="prolific", **values, pay_per_hit=field_value(page, "pay_per_hit"))
    assert (await settings_of(engine, campaign)).pay_per_hit == pay


async def test_each_way_of_paying_has_its_own_fields_on_the_page(engine, researcher):
    page = (await researcher.get(step_address(await create_draft(engine)))).text
    for name, ways in (
        ("person_reward", "prolific platform"),
        ("person_tasks", "prolific platform"),
        ("recruiting_minutes", "prolific platform"),
        ("pay_per_hit", "link people programs mturk"),
        ("minutes_per_hit", "link people programs mturk"),
    ):
        (shown_for,) = re.findall(
            rf'<div class="field field-\w+" data-people-from="([^"]*)">\s*<label for="{name}"', page
        )
        assert sorted(shown_for.split()) == sorted(ways.split()), name


async def test_the_step_says_how_large_a_task_is_where_it_asks_for_pay(engine, researcher):
    campaign = await create_draft(engine, items_per_hit=5, repeat_items=False)
    assert "A task is 5 items." in words((await researcher.get(step_address(campaign))).text)
    await import_items(engine, campaign, SIXTY_ITEMS)
    page = words((await researcher.get(step_address(campaign))).text)
    assert "A task is 5 items, so 12 tasks show one person all 60 items." in page


async def test_a_reward_without_tasks_is_refused_at_the_tasks_and_kept(engine, researcher):
    campaign = await create_draft(engine)
    reply = await save(researcher, campaign, people_from="prolific", person_reward="1.50", person_tasks="")
    assert reply.status_code == 422
    assert 'id="person_tasks-error">Enter how many tasks one person does for this reward.' in reply.text
    assert field_value(reply.text, "person_reward") == "1.50"


@pytest.mark.parametrize("is_launched", [False, True])
async def test_the_tasks_of_a_reward_cannot_be_emptied(engine, researcher, is_launched):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, SIXTY_ITEMS)
    await save(researcher, campaign, people_from="prolific", **PERSON)
    if is_launched:
        await apply_action(engine, campaign, "launch")
    reply = await save(researcher, campaign, people_from="prolific", **PERSON | {"person_tasks": ""})
    assert reply.status_code == 422
    assert 'id="person_tasks-error">Enter how many tasks one person does for this reward.' in reply.text
    reply = await save(researcher, campaign, "how-much", hits_per_annotator="", judgments_per_item="3")
    assert reply.status_code == 422
    assert 'id="hits_per_annotator-error">Enter how many tasks one person does for the reward of $1.50.' in reply.text
    assert (await settings_of(engine, campaign)).hits_per_annotator == 12


async def test_the_tasks_can_be_emptied_with_the_reward_and_where_each_task_is_paid(engine, researcher):
    campaign = await create_draft(engine)
    await save(researcher, campaign, people_from="prolific", **PERSON)
    await save(researcher, campaign, people_from="prolific", **PERSON | {"person_reward": "", "person_tasks": ""})
    stored = await settings_of(engine, campaign)
    assert (stored.pay_per_hit, stored.hits_per_annotator) == (None, None)
    other = await create_draft(engine, name="Nouns", hits_per_annotator=12, pay_per_hit=0.125)
    assert (await save(researcher, other, "how-much", hits_per_annotator="", judgments_per_item="3")).status_code == 303
    assert (await settings_of(engine, other)).pay_per_hit == 0.125


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"person_reward": "a lot", "person_tasks": "12"}, "person_reward"),
        ({"person_reward": "-2", "person_tasks": "12"}, "person_reward"),
        ({"person_reward": "2", "person_tasks": "1.5"}, "person_tasks"),
        ({"person_tasks": "12", "recruiting_minutes": "0"}, "recruiting_minutes"),
    ],
)
async def test_what_is_wrong_about_a_person_is_said_at_the_field_of_the_person(engine, researcher, values, field):
    reply = await save(researcher, await create_draft(engine), people_from="prolific", **values)
    assert reply.status_code == 422
    assert re.findall(r'id="(\w+)-error"', reply.text) == [field]


async def test_a_change_of_where_people_come_from_keeps_what_was_typed(engine, researcher):
    campaign = await create_draft(engine)
    typed_for_link = {"pay_per_hit": "0.25", "minutes_per_hit": "2", "person_reward": "", "person_tasks": ""}
    await save(researcher, campaign, people_from="prolific", **typed_for_link)
    assert (await settings_of(engine, campaign)).pay_per_hit == 0.25
    other = await create_draft(engine, name="Nouns")
    await save(researcher, other, people_from="link", pay_per_hit="", minutes_per_hit="", **PERSON)
    stored = await settings_of(engine, other)
    assert (stored.pay_per_hit, stored.hits_per_annotator) == (0.125, 12)
    assert stored.minutes_per_hit == pytest.approx(10 / 12)


async def test_pay_of_a_task_is_stored_as_typed_where_each_task_is_paid(engine, researcher):
    campaign = await create_draft(engine, hits_per_annotator=10)
    values = {"pay_per_hit": "0.25", "minutes_per_hit": "2", "person_reward": "", "person_tasks": "10"}
    await save(researcher, campaign, people_from="link", **values)
    stored = await settings_of(engine, campaign)
    assert (stored.pay_per_hit, stored.minutes_per_hit, stored.recruiting_minutes) == (0.25, 2, None)


async def test_a_draft_keeps_the_reward_if_the_tasks_of_a_person_change_in_another_step(engine, researcher):
    campaign = await create_draft(engine)
    await save(researcher, campaign, people_from="prolific", **PERSON)
    await save(researcher, campaign, "how-much", hits_per_annotator="6", judgments_per_item="3")
    stored = await settings_of(engine, campaign)
    assert (stored.pay_per_hit, stored.hits_per_annotator) == (0.25, 6)
    assert stored.minutes_per_hit == pytest.approx(10 / 6)


async def test_the_reward_can_be_changed_after_the_launch(engine, researcher):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, SIXTY_ITEMS)
    await save(researcher, campaign, people_from="prolific", **PERSON)
    await apply_action(engine, campaign, "launch")
    await save(researcher, campaign, people_from="prolific", **PERSON | {"person_reward": "1.80"})
    assert (await settings_of(engine, campaign)).pay_per_hit == 0.15


async def test_an_emptied_reward_is_no_pay(engine, researcher):
    campaign = await create_draft(engine)
    await save(researcher, campaign, people_from="prolific", **PERSON)
    await save(researcher, campaign, people_from="prolific", **PERSON | {"person_reward": ""})
    assert (await settings_of(engine, campaign)).pay_per_hit is None


async def test_the_preview_of_an_unfinished_form_needs_no_tasks(engine, researcher):
    campaign = await create_draft(engine)
    query = "step=visit&people_from=prolific&person_reward=1.50&person_tasks="
    assert (await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit?{query}")).status_code == 200
