"""The open link beside a platform that people are recruited on."""

from app.campaigns.visit_preview import preview_platform_or_first
from tests.annotation.hits.campaigns import fetch_rows
from tests.annotation.onboarding.test_people import links_of
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


async def test_a_closed_link_beside_a_platform_code_is_told_plainly_and_not_as_a_fault(engine, researcher):
    campaign = await ready_draft(engine, **CODE)
    await researcher.post(f"/admin/campaigns/{campaign.slug}/close-open-link")
    for part in ("launch/confirm", "share"):
        page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/{part}")).text
        assert '<p class="notice">Only people from Prolific can take part.</p>' in page
        assert "The open link is closed and no one has a personal link" not in page
        assert "The platform links are open" not in page
    assert "Who may take part: everyone from Prolific." in await page_of(researcher, campaign, "share")
    assert "Personal links" not in await page_of(researcher, campaign, "items")


async def test_people_with_a_personal_link_are_named_beside_those_of_the_platform(engine, researcher):
    campaign = await ready_draft(engine, **CODE, open_link=False, open_platforms=True)
    await links_of(engine, campaign, "Ann")
    sentence = "Only people from Prolific and people with a personal link can take part."
    assert sentence in await page_of(researcher, campaign, "launch/confirm")
    share = await page_of(researcher, campaign, "share")
    assert sentence in share
    assert "everyone from Prolific and everyone with a personal link." in share


async def test_a_code_does_not_hide_that_the_platform_needs_no_passphrase(engine, researcher):
    campaign = await ready_draft(engine, **CODE, passphrase="blue", open_platforms=True)
    share = await page_of(researcher, campaign, "share")
    assert "People from Prolific need no passphrase." in share
    assert "Who may take part: everyone with the passphrase and everyone from Prolific." in share


async def test_closed_platform_links_are_a_fault_in_spite_of_a_code(engine, researcher):
    campaign = await ready_draft(engine, **CODE, open_link=False, open_platforms=False)
    page = await page_of(researcher, campaign, "launch/confirm")
    assert "no one has a personal link, so no one can take part" in page
    assert "Only people from" not in page


async def test_the_notice_after_the_launch_means_all_links(engine, researcher):
    campaign = await ready_draft(engine, **CODE, open_link=False, open_platforms=True)
    reply = await researcher.post(f"/admin/campaigns/{campaign.slug}/launch")
    page = (await researcher.get(reply.headers["location"])).text
    assert "The campaign is running. Its links are on this page." in page


async def test_the_share_page_says_who_may_come_by_which_link(engine, researcher):
    first, pilot = [await ready_draft(engine, name=name) for name in ("First", "Pilot")]
    both = {"only_campaigns": [first.slug], "exclude_campaigns": [pilot.slug]}
    for settings, sentence in (
        ({}, "everyone."),
        ({"passphrase": "blue"}, "everyone with the passphrase."),
        ({"open_link": False}, "no one, because the open link is closed and no one has a personal link."),
        ({"open_link": False, "open_platforms": True}, "everyone from a platform."),
        ({"only_campaigns": [first.slug]}, "everyone who took part in first."),
        (both, "everyone who took part in first, but nobody who took part in pilot."),
        (
            {"questions": ["age: Old? | yes | no"], "quotas": ["age = yes: 9"]},
            "everyone, while the quota of their answer has a place.",
        ),
    ):
        campaign = await ready_draft(engine, name="Second", **settings)
        assert f"Who may take part: {sentence}" in await page_of(researcher, campaign, "share"), settings


async def test_the_share_page_has_the_passphrase_to_send_with_the_link(engine, researcher):
    campaign = await ready_draft(engine, passphrase="blue whale")
    share = await page_of(researcher, campaign, "share")
    assert "Everyone who opens this link and enters the passphrase can take part." in share
    assert 'value="blue whale"' in (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    plain = await page_of(researcher, await ready_draft(engine, name="Plain"), "share")
    assert "Everyone who opens this link can take part." in plain


async def test_closed_platform_links_are_named_first_only_to_those_who_recruit_on_a_platform(engine, researcher):
    for people_from, is_named in (("link", False), ("people", False), ("prolific", True)):
        campaign = await ready_draft(engine, name=people_from, people_from=people_from, passphrase="blue")
        share = await page_of(researcher, campaign, "share")
        before_other_ways, _, other_ways = share.partition("Other ways to take part")
        notice = "The platform links are closed to new people"
        assert (notice in before_other_ways, notice in other_ways) == (is_named, not is_named), people_from


async def test_a_code_left_from_a_copy_says_nothing_about_people_with_personal_links(engine, researcher):
    campaign = await ready_draft(engine, **CODE, people_from="people", open_link=False)
    researcher.headers["host"] = "127.0.0.1:8000"
    page = await page_of(researcher, campaign, "launch/confirm")
    assert "People from Prolific cannot reach this server" not in page
    assert "People cannot reach this server" in page
