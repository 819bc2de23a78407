"""The list of campaigns in a browser: filtered while one types, as cards on a phone, and readable by all."""

import re
from typing import Any

from playwright.async_api import expect

from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.browser.acts import each_width, violations
from tests.browser.test_appearance import looks


async def test_campaigns_are_filtered_while_one_types_and_the_page_fits(
    visit: Any, origin: str, cookie: Any, task: Any
) -> None:
    named = [await task(name=name, tags=["pilot"]) for name in ("Listed verbs", "Listed nouns")]
    page = (await visit(**looks(1280))).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin")
    search = page.get_by_role("searchbox")
    campaigns = page.locator("#campaign-list tbody tr")
    await search.fill("listed N")
    await expect(campaigns).to_have_count(1)
    await expect(campaigns).to_contain_text(named[1].row.name)
    await expect(page).to_have_url(re.compile(r"\?search=listed\+N$"))
    await expect(search).to_be_focused()
    await search.fill("listed")
    await expect(campaigns).to_have_count(2)
    await page.get_by_role("link", name="Draft").click()
    await expect(page.get_by_text("No campaign matches.")).to_be_visible()
    await page.goto(f"{origin}/admin?search=listed")
    await page.locator("main .menu summary").first.click()
    async for width in each_width(page, 1280, 768, 390):
        assert await violations(page) == "", width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


async def test_several_campaigns_are_archived_by_keyboard_and_an_undo_brings_them_back(
    visit: Any, origin: str, cookie: Any, task: Any
) -> None:
    for name in ("Ticked verbs", "Ticked nouns", "Ticked adverbs"):
        await task(name=name, launched=False)
    page = (await visit(**looks(1280))).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin?search=ticked")
    archive = page.get_by_role("button", name="Archive", exact=True)
    await expect(archive).to_be_disabled()
    await page.evaluate(
        "document.querySelector('#chosen-campaigns').classList.add('until-ticked')"
    )  # as of one campaign
    await expect(archive).to_be_hidden()
    await page.get_by_label("Tick Ticked nouns").focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_text("1 ticked")).to_be_visible()
    await page.get_by_label("Tick all listed campaigns").focus()
    await page.keyboard.press("Space")
    await expect(page.get_by_text("3 ticked")).to_be_visible()
    await page.get_by_role("searchbox").fill("ticked verbs")
    await expect(page.get_by_text("1 ticked")).to_be_visible()
    await archive.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status").filter(has_text="1 campaign archived: Ticked verbs.")).to_be_visible()
    await expect(page.get_by_text("No campaign matches.")).to_be_visible()
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("1 campaign back in the list.")).to_be_visible()
    await expect(page.get_by_label("Tick Ticked verbs")).to_be_visible()


async def test_campaigns_are_ticked_tagged_and_deleted_without_scripts(
    visit: Any, origin: str, cookie: Any, task: Any
) -> None:
    for name in ("Plain verbs", "Plain nouns"):
        await task(name=name, launched=False)
    page = (await visit(**looks(390), java_script_enabled=False)).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin?search=plain")
    await page.get_by_label("Tick Plain verbs").check()
    await page.locator(".chosen-campaigns summary").click()
    await page.locator(".chosen-campaigns [name=tags]").fill("pilot")
    await page.get_by_role("button", name="Add tags").click()
    await expect(page.get_by_text("Tags added to 1 campaign.")).to_be_visible()
    await page.get_by_label("Tick Plain verbs").check()
    await page.get_by_role("button", name="Delete …").click()
    await page.get_by_role("button", name="Delete 1 campaign").click()
    await expect(page.get_by_text("1 campaign deleted.")).to_be_visible()
    await expect(page.locator("#campaign-list tbody tr")).to_have_count(1)


async def test_the_list_fits_on_every_width_once_a_campaign_has_answers(
    visit: Any, origin: str, cookie: Any, task: Any, served: Any
) -> None:
    campaign = await task(name="Answered frequency", judgments_per_item=150, goal="intervals", goal_width=5)
    annotator = await create_annotator(served, campaign.row, name="somebody")
    hit = await try_to_lease_hit(served, annotator)
    await submit_scores(served, annotator, hit, scores=[50.0 for _ in hit.items])
    page = (await visit(**looks(1280))).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin?search=answered+frequency")
    await expect(page.locator("#campaign-list")).to_contain_text("5 of 1,500")
    async for width in each_width(page, 1280, 961, 901, 781, 761, 641):
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
