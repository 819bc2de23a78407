"""Notes before the launch on settings that cannot work as intended, and items that the welcome page may show."""

import re

import pytest

from app.annotation.hits.landing import load_campaign_by_link_or_refuse, load_rendered_sample_items
from app.database.session import borrow_autocommit_driver
from app.errors import Conflict
from tests.annotation.hits.campaigns import execute_sql
from tests.annotation.hits.test_condition_blocks import (
    BLOCKS,
    LISTS,
    create_campaign_with_conditions,
    create_draft_with_conditions,
    launch,
    set_fields,
)
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import create_draft, create_launched_campaign, import_items

FORM = {
    "panel_title": "Panel",
    "panel_query": "who={who}",
    "form_origins": ["https://panel.example"],
    "return_completed": "https://panel.example.org/end?who={id}",
}
FORM_NOTE = "No code or address of an outcome leads to https://panel.example, so nothing is posted there."


@pytest.fixture
def engine(app):
    return app.state.database


async def test_a_launch_refuses_more_tasks_per_block_than_its_items_are_enough_for(engine):
    draft = await create_draft_with_conditions(engine, contents=4, **BLOCKS | {"tasks_per_block": 3})
    with pytest.raises(Conflict, match="has 4 items for one person, but 3 tasks of 2 need 6") as refusal:
        await launch(engine, draft)
    assert (refusal.value.code, refusal.value.details["most"]) == ("too_few_items_for_tasks", 2)
    enough = await create_draft_with_conditions(engine, name="Enough", contents=4, **BLOCKS | {"tasks_per_block": 2})
    assert (await launch(engine, enough)).status == "running"


async def test_items_of_a_list_are_those_of_one_person(engine):
    settings = LISTS | {"block_order": "balanced", "tasks_per_block": 2}
    draft = await create_draft_with_conditions(engine, contents=6, **settings)
    with pytest.raises(Conflict, match="has 2 items for one person, but 2 tasks of 2 need 4"):
        await launch(engine, draft)


@pytest.mark.parametrize("more", [{"repeat_items": True}, {"checks_percent": 20, "hits_per_annotator": 30}])
async def test_blocks_whose_tasks_may_need_fewer_new_items_can_be_launched(engine, more):
    settings = BLOCKS | {"tasks_per_block": 3} | more
    draft = await create_draft_with_conditions(engine, contents=4, **settings)
    assert (await launch(engine, draft)).status == "running"


async def test_the_page_of_the_step_tells_what_the_launch_would_refuse(engine, researcher):
    draft = await create_draft_with_conditions(engine, contents=4, **BLOCKS | {"tasks_per_block": 3})
    for page in ("settings/how-much", "launch/confirm"):
        assert "3 tasks of 2 need 6" in (await researcher.get(f"/admin/campaigns/{draft.slug}/{page}")).text
    await set_fields(engine, draft, 4, voice="")
    page = (await researcher.get(f"/admin/campaigns/{draft.slug}/settings/how-much")).text
    assert "has nothing in the column “voice”" in page


async def test_a_limit_per_person_that_blocks_cannot_fill_is_a_note_from_every_door(engine, researcher, api_client):  # noqa: F811
    draft = await create_draft_with_conditions(engine, contents=4, **BLOCKS | {"hits_per_annotator": 10})
    note = "has 4 items for one person, but 4 tasks of 2 need 8, and nobody sees an item twice. It ends after 2 tasks."
    assert note in (await researcher.get(f"/admin/campaigns/{draft.slug}/settings/how-much")).text
    launched = (await api_client.post(f"{API}/campaigns/{draft.slug}/transitions", json={"action": "launch"})).json()
    assert note in launched["notes"][0]


async def test_a_site_for_forms_to_which_no_outcome_leads_is_a_note_from_every_door(engine, researcher, api_client):  # noqa: F811
    draft = await create_draft(engine, **FORM)
    await import_items(engine, draft, "id,text\n" + "".join(f"v{k},verb {k}\n" for k in range(5)))
    for page in ("settings/visit", "launch/confirm"):
        assert FORM_NOTE in (await researcher.get(f"/admin/campaigns/{draft.slug}/{page}")).text
    launched = (await api_client.post(f"{API}/campaigns/{draft.slug}/transitions", json={"action": "launch"})).json()
    assert launched["notes"] == [f"{FORM_NOTE} Correct the site, or give an outcome an address of this site."]


async def test_a_site_for_forms_that_an_outcome_uses_needs_no_note(engine, researcher):
    used = FORM | {"return_screened_out": "https://PANEL.example:443/out?who={id}"}
    draft = await create_draft(engine, **used)
    assert "No code or address" not in (await researcher.get(f"/admin/campaigns/{draft.slug}/settings/visit")).text


async def sample_texts(engine, campaign):
    async with borrow_autocommit_driver(engine) as connection:
        linked = await load_campaign_by_link_or_refuse(connection, campaign.link_key)
        return len((await load_rendered_sample_items(connection, linked)).items)


async def test_the_welcome_page_shows_no_item_that_may_be_of_another_list(engine, client):
    lists = await create_campaign_with_conditions(engine, contents=6, welcome=True, **LISTS)
    blocks = await create_campaign_with_conditions(engine, name="Blocks", contents=6, welcome=True, **BLOCKS)
    pages = [(await client.get(f"/link/{campaign.link_key}")).text for campaign in (lists, blocks)]
    assert ["What a task looks like" in page for page in pages] == [False, True]


async def test_the_welcome_page_shows_only_items_that_are_for_everyone_and_not_retired(engine):
    table = "id,text,who\n" + "".join(f"v{k},verb {k},{'staff' if k < 3 else ''}\n" for k in range(6))
    campaign = await create_launched_campaign(engine, table, items_per_hit=2)
    await execute_sql(
        engine,
        "UPDATE campaigns SET general_settings = general_settings || CAST(:column AS jsonb)",
        column='{"assigned_column": "who"}',
    )
    async with borrow_autocommit_driver(engine) as connection:
        linked = await load_campaign_by_link_or_refuse(connection, campaign.link_key)
        shown = await load_rendered_sample_items(connection, linked)
    assert [re.sub("<[^>]*>", "", str(text)).strip() for text in shown.items] == ["verb 3", "verb 4"]
    await execute_sql(engine, "UPDATE items SET retired_at = now() WHERE number > 3")
    assert await sample_texts(engine, campaign) == 0
