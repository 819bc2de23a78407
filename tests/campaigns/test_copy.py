"""A campaign can be copied: what is asked, and of what, but no answer."""

import pytest

from app.campaigns import lifecycle
from app.campaigns.setting_types import MAX_CAMPAIGN_NAME_CHARACTERS
from app.errors import NotFound
from tests.annotation.hits.campaigns import NOW, annotator, hit_of, running, submit, values

ITEMS = (
    "SELECT number, external_id, shown, fields::text, prior FROM items WHERE campaign_id = :campaign ORDER BY number"
)


async def test_the_copy_is_a_draft_with_the_same_settings_and_items(engine):
    campaign = await running(engine, items=7, items_per_hit=3, low_label="rare", question="How often?")
    someone = await annotator(engine, campaign)
    await submit(engine, someone, await hit_of(engine, someone))
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    before, after = (lifecycle.settings_of_campaign(row).model_dump() for row in (campaign, copy))
    assert after == before | {"name": f"{campaign.name} (copy)"}
    assert (copy.status, copy.launched_at, copy.revision) == ("draft", None, 0)
    assert copy.link_key != campaign.link_key
    items = [await values(engine, ITEMS, campaign=row.id) for row in (campaign, copy)]
    assert items[0] == items[1]
    assert len(items[0]) == 7
    assert await values(engine, "SELECT 1 FROM responses WHERE campaign_id = :campaign", campaign=copy.id) == []


async def test_each_copy_has_a_name_of_its_own_as_long_as_one_may_be(engine):
    campaign = await running(engine, name="x" * MAX_CAMPAIGN_NAME_CHARACTERS)
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
    campaign = await running(engine, items=4)
    page = await researcher.post(f"/admin/campaigns/{campaign.slug}/copy", follow_redirects=True)
    assert "none of its answers" in page.text
