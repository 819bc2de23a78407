"""Gold items in a browser: made on the page of items, and what people read after one."""

import re
from typing import Any

import pytest
from playwright.async_api import expect

from tests.annotation.hits.campaigns import fetch_rows
from tests.browser.acts import each_width, press_submit, sliders, violations, wait_for_hit
from tests.campaigns.drafts import VERBS, create_draft, create_launched_campaign, import_items

RATED = {"design": "rating", "items_per_hit": 1, "checks_percent": 50, "judgments_per_item": 50}


async def test_an_item_becomes_a_check_without_javascript_and_an_item_again(
    served: Any, visit: Any, origin: str, cookie: Any
) -> None:
    campaign = await create_draft(served, checks_percent=20)
    await import_items(served, campaign, VERBS)
    page = (await visit(java_script_enabled=False, viewport={"width": 390, "height": 900})).page
    await page.context.add_cookies([cookie])
    address = f"{origin}/admin/campaigns/{campaign.slug}"
    await page.goto(f"{address}/items")
    await page.get_by_label("Tick v2", exact=True).check()
    await page.get_by_role("button", name="Use as gold").click()
    await page.get_by_label("Expected answer of v2").fill("80")
    await page.wait_for_load_state()  # without its styles the page is wider
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("button", name="Use as gold").click()
    await expect(page.get_by_role("heading", name="5 items")).to_be_visible()
    await expect(page.get_by_text("Marked as checks and removed from the study items.")).to_be_in_viewport()
    seen = (await visit()).page
    await seen.context.add_cookies([cookie])
    for path in ("/items?done=marked", "/checks"):
        await seen.goto(address + path)
        assert await violations(seen) == ""
    await page.goto(f"{address}/checks")
    await page.get_by_role("button", name="Use v2 as an item again").click()
    await expect(page.get_by_text("No gold or attention items yet.")).to_be_visible()


async def test_gold_items_are_pasted_without_javascript_in_a_form_of_their_own(
    served: Any, visit: Any, origin: str, cookie: Any
) -> None:
    campaign = await create_draft(served, checks_percent=20)
    await import_items(served, campaign, VERBS)
    page = (await visit(java_script_enabled=False, viewport={"width": 390, "height": 900})).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.slug}/items")
    await page.locator("#gold > summary").click()
    await page.get_by_label("Gold items", exact=True).fill("id,text,expected\ng1,to run,90\ng2,to sleep,10")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("button", name="Add gold items").click()
    await expect(page.get_by_text("Imported 2 gold items.")).to_be_visible()
    await page.goto(f"{origin}/admin/campaigns/{campaign.slug}/settings/quality")
    await expect(page.get_by_text("2 gold items; an annotator sees each at most once.")).to_be_visible()


async def test_gold_items_are_filled_in_as_cards_with_the_labels_of_the_design(
    served: Any, visit: Any, origin: str, cookie: Any
) -> None:
    settings = {"design": "categories", "design_settings": {"labels": ["rude", "polite"]}}
    campaign = await create_draft(served, **settings)
    await import_items(served, campaign, VERBS)
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.slug}/items")
    await page.get_by_role("link", name="Add gold items").click()
    await page.get_by_role("button", name="Add a gold item").click()
    await page.keyboard.type("Send it, now!")
    ids = "[...document.querySelectorAll('[id]')].map((it) => it.id)"
    assert await page.evaluate(f"new Set({ids}).size === {ids}.length")
    hint = page.get_by_text("Cells of a spreadsheet, CSV or JSON, with the columns")
    separator = page.get_by_text("a label, or several separated by |")
    await page.get_by_role("button", name="Edit as table").click()
    await expect(hint).to_be_visible()
    await expect(separator).to_be_visible()
    await page.get_by_role("button", name="Edit as cards").click()
    await expect(hint).to_be_hidden()
    await expect(separator).to_be_hidden()
    await page.get_by_label("rude").check()
    await expect(page.get_by_label("Tolerance (optional)")).to_have_count(0)
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await page.get_by_role("button", name="Add gold items").click()
    await expect(page.get_by_text("Imported 1 gold item.")).to_be_visible()
    await page.get_by_role("button", name=re.compile(r"Show them in \d+ % of tasks")).click()
    await expect(page.get_by_text("Settings saved.")).to_be_in_viewport()
    checks = f"SELECT shown, expected FROM check_items WHERE campaign_id = {campaign.id}"
    assert await fetch_rows(served, checks) == [("Send it, now!", {"labels": ["rude"]})]


async def test_chosen_items_become_gold_by_ticking_the_labels_of_the_design(
    served: Any, visit: Any, origin: str, cookie: Any
) -> None:
    settings = {"design": "categories", "design_settings": {"labels": ["rude", "Very polite"]}}
    campaign = await create_draft(served, **settings)
    await import_items(served, campaign, VERBS)
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.slug}/items")
    await page.get_by_label("Tick v2", exact=True).check()
    await page.get_by_role("button", name="Use as gold").click()
    await page.get_by_role("button", name="Use as gold").click()
    answers = page.get_by_role("group", name="Expected answer of v2")
    await expect(answers.get_by_label("rude")).to_be_focused()  # one answer is needed
    await expect(page.get_by_text("a label, or several separated by")).to_have_count(0)  # nothing is typed
    await answers.get_by_label("Very polite").check()
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await page.get_by_role("button", name="Use as gold").click()
    await expect(page.get_by_text("Marked as checks")).to_be_in_viewport()
    checks = f"SELECT external_id, expected FROM check_items WHERE campaign_id = {campaign.id}"
    assert await fetch_rows(served, checks) == [("v2", {"labels": ["Very polite"]})]


async def test_axe_finds_nothing_where_a_gold_item_is_edited_also_after_a_refusal(
    served: Any, visit: Any, origin: str, cookie: Any
) -> None:
    campaign = await create_draft(served)
    await import_items(served, campaign, "id,text,check,expected,tolerance\nv0,to run,,,\ng1,to walk,gold,80,10\n")
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.slug}/items")
    await page.get_by_role("button", name="Edit g1").click()
    await expect(page.get_by_role("heading", name="Edit gold item")).to_be_visible()
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await page.get_by_label("Tolerance of g1").fill("much")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("[aria-invalid=true]")).to_be_visible()
    async for width in each_width(page, 390, 1280):
        assert await violations(page) == "", width
    await page.get_by_label("Tolerance of g1").fill("20")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_in_viewport()


@pytest.mark.parametrize(("language", "wide"), [("de", 1280), ("ar", 320)])
async def test_after_a_gold_item_people_read_what_was_expected_in_their_language(
    served: Any, visit: Any, origin: str, *, language: str, wide: int
) -> None:
    gold = "id,text,check,expected\n" + "".join(f"v{k},verb {k},,\n" for k in range(30)) + "g1,to walk,gold,90\n"
    campaign = await create_launched_campaign(served, gold, gold_feedback=True, language=language, **RATED)
    page = (await visit(viewport={"width": wide, "height": 800})).page
    await page.goto(f"{origin}/link/{campaign.link_key}")
    await page.locator("form.start button.primary").click()
    told = page.locator(".told")
    for _ in range(40):
        await wait_for_hit(page)
        await sliders(page).press("ArrowLeft")
        await press_submit(page)
        if await told.count():
            break
    await expect(told).to_contain_text("to walk")
    await expect(told).to_contain_text({"de": "Erwartet: 75 bis 100", "ar": "المتوقع: من 75 إلى 100"}[language])
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""
