"""The open link beside a platform that people are recruited on."""

from app.campaigns.visit_preview import preview_platform_or_first
from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.drafts import create_draft, import_items
from tests.quality.test_reach import ITEMS, page_of
from tests.unsaved import unsaved

CODE = {"prolific_completion_code": "ABC123"}
NOTE = "You recruit on Prolific, and the open link is on as well"


async def ready_draft(engine, **settings):
    campaign = await create_draft(engine, **settings)
    await import_items(engine, campaign, ITEMS)
    return campaign


async def test_the_visit_step_and_the_launch_name_an_open_link_beside_a_platform_code(engine, researcher):
    campaign = await ready_draft(engine, **CODE)
    for part in ("settings/visit", "launch/confirm"):
        assert NOTE in await page_of(researcher, campaign, part)
    assert NOTE not in await page_of(researcher, campaign, "settings/how-much")


async def test_without_a_code_or_with_a_passphrase_there_is_no_such_notice(engine, researcher):
    for settings in ({}, CODE | {"passphrase": "blue"}, CODE | {"open_link": False}):
        campaign = await ready_draft(engine, **settings)
        assert "You recruit on" not in await page_of(researcher, campaign, "settings/visit")


async def test_one_press_at_the_launch_closes_the_open_link_and_keeps_the_platform_open(engine, researcher):
    campaign = await ready_draft(engine, **CODE)
    reply = await researcher.post(f"/admin/campaigns/{campaign.slug}/close-open-link")
    assert reply.headers["location"] == f"/admin/campaigns/{campaign.slug}/launch/confirm?done=link-closed"
    assert await fetch_rows(engine, "SELECT open_link, open_platforms FROM campaigns") == [(False, True)]
    assert NOTE not in await page_of(researcher, campaign, "launch/confirm")


async def test_one_press_at_the_visit_step_saves_the_entries_too(engine, researcher):
    campaign = await ready_draft(engine, **CODE)
    address = f"/admin/campaigns/{campaign.slug}/settings/visit"
    fields = CODE | {"open_link": "on", "minutes_per_hit": "3", "go": "close-open-link"}
    reply = await researcher.post(address, data=fields)
    assert reply.headers["location"] == f"{address}?done=link-closed"
    rows = await fetch_rows(engine, "SELECT open_link, open_platforms, minutes_per_hit FROM campaigns")
    assert rows == [(False, True, 3)]


async def test_the_launch_says_if_the_links_work_on_this_machine_only(engine, researcher):
    sentence = "so they work on this machine only"
    with_code, without = await ready_draft(engine, **CODE), await ready_draft(engine)
    researcher.headers["host"] = "127.0.0.1:8000"
    assert sentence in await page_of(researcher, with_code, "launch/confirm")
    assert sentence not in await page_of(researcher, without, "launch/confirm")


def test_the_preview_begins_as_the_platform_with_a_code():
    assert preview_platform_or_first(unsaved(**CODE), "").title == "Prolific"
    assert preview_platform_or_first(unsaved(), "").name == "link"
    assert preview_platform_or_first(unsaved(**CODE), "link").name == "link"
