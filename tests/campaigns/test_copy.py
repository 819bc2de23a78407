"""A campaign can be copied: what is asked, and of what, but no answer."""

import pytest

from app.campaigns import lifecycle
from app.campaigns.setting_types import MAX_CAMPAIGN_NAME_CHARACTERS
from app.errors import NotFound
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)

ITEMS = (
    "SELECT number, external_id, shown, fields::text, prior FROM items WHERE campaign_id = :campaign ORDER BY number"
)


async def test_the_copy_is_a_draft_with_the_same_settings_and_items(engine):
    campaign = await create_running_campaign(engine, items=7, items_per_hit=3, low_label="rare", question="How often?")
    someone = await create_annotator(engine, campaign)
    await submit_scores(engine, someone, await try_to_lease_hit(engine, someone))
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    before, after = (lifecycle.unchecked_settings_with_deliverable_emails(row).model_dump() for row in (campaign, copy))
    assert after == before | {"name": f"{campaign.name} (copy)"}
    assert (copy.status, copy.launched_at, copy.revision) == ("draft", None, 0)
    assert copy.link_key != campaign.link_key
    items = [await fetch_rows(engine, ITEMS, campaign=row.id) for row in (campaign, copy)]
    assert items[0] == items[1]
    assert len(items[0]) == 7
    assert await fetch_rows(engine, "SELECT 1 FROM responses WHERE campaign_id = :campaign", campaign=copy.id) == []


async def test_each_copy_has_a_name_of_its_own_as_long_as_one_may_be(engine):
    campaign = await create_running_campaign(engine, name="x" * MAX_CAMPAIGN_NAME_CHARACTERS)
    names = []
    for slug in (campaign.slug, campaign.slug, f"{campaign.slug}-2"):  # the last one is a copy itself
        async with engine.begin() as connection:
            names.append((await lifecycle.create_copy_of_campaign(connection, slug, now=NOW)).name)
    assert [name.lstrip("x") for name in names] == [" (copy)", " (copy 2)", " (copy 3)"]
    assert {len(name) for name in names} == {MAX_CAMPAIGN_NAME_CHARACTERS}


async def test_what_is_not_there_cannot_be_copied(engine):
    with pytest.raises(NotFound):
        async with engine.begin() as connection:
            await lifecycle.create_copy_of_campaign(connection, "nothing", now=NOW)


async def test_it_is_copied_from_its_page(engine, researcher):
    campaign = await create_running_campaign(engine, items=4)
    page = await researcher.post(f"/admin/campaigns/{campaign.slug}/copy", follow_redirects=True)
    assert "none of its answers" in page.text


async def test_the_button_asks_before_it_copies(engine, researcher):
    campaign = await create_running_campaign(engine, items=4)
    address = f"/admin/campaigns/{campaign.slug}"
    page = (await researcher.get(address)).text
    assert f'<a class="button quiet" href="{address}/copy/confirm">Copy campaign …</a>' in page
    asked = (await researcher.get(f"{address}/copy/confirm")).text
    assert "Copy this campaign?" in asked
    assert f'method="post" action="{address}/copy"' in asked
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 1


async def test_the_copy_gets_the_name_that_was_entered_and_can_have_no_items(engine, researcher):
    campaign = await create_running_campaign(engine, items=4)
    address = f"/admin/campaigns/{campaign.slug}"
    asked = (await researcher.get(f"{address}/copy/confirm")).text
    assert 'name="name" value="Verbs (copy)"' in asked
    assert "Members and read-only links are not copied" in asked
    await researcher.post(f"{address}/copy", data={"name": " Second study ", "content": "settings"})
    counts = "SELECT name, (SELECT count(*) FROM items WHERE campaign_id = c.id) FROM campaigns c ORDER BY 1"
    assert await fetch_rows(engine, counts) == [("Second study", 0), ("Verbs", 4)]
