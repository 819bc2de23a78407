"""A researcher previews a whole visit by keyboard alone, wide and narrow, with and without scripts."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.annotation.platforms.registry import platforms_with_pages
from tests.browser.acts import each_width, violations

STEPS = {"consent": "We keep **your answers**.", "questions": ["job: What do you do?"]}


@pytest.fixture(params=[True, False], ids=["scripts", "no scripts"])
async def page(request: pytest.FixtureRequest, visit: Any, cookie: Any) -> Page:
    opened: Page = (await visit(java_script_enabled=request.param, reduced_motion="reduce")).page
    await opened.context.add_cookies([cookie])
    opened.scripted = request.param  # type: ignore[attr-defined]
    return opened


async def is_at(page: Page, place: str) -> None:
    await expect(page.get_by_label("Preview", exact=True).locator(".preview-place")).to_contain_text(place)


async def is_good(page: Page) -> None:
    async for width in each_width(page, 1280, 390):
        if page.scripted:  # type: ignore[attr-defined]
            assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width


async def test_from_the_welcome_to_the_thanks_by_keyboard(page: Page, task: Any) -> None:
    campaign = await task(launched=False, design="rating", items_per_hit=1, hits_per_annotator=1, **STEPS)
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/preview")
    await is_at(page, "step 1 of 4: Welcome")
    await is_good(page)
    await page.get_by_role("button", name="I agree and start", exact=True).press("Enter")
    await is_at(page, "step 2 of 4: Questions")
    await page.get_by_label("What do you do?").press("a")
    await page.get_by_role("button", name="Continue").press("Enter")
    await is_at(page, "step 3 of 4: Task 1")
    await is_good(page)
    await page.get_by_role("link", name="Next", exact=True).press("Enter")
    await is_at(page, "step 4 of 4: Thanks")
    await page.get_by_role("link", name="Back", exact=True).press("Enter")
    await is_at(page, "step 3 of 4: Task 1")
    await page.get_by_text("Page, platform and language").press("Enter")  # folded on a narrow screen
    await page.get_by_role("combobox", name="As", exact=True).press("End")
    await page.get_by_role("button", name="Show", exact=True).press("Enter")
    await is_at(page, "Task 1")
    assert await campaign.responses() == []


async def test_the_thanks_stay_until_the_researcher_goes_on(visit: Any, cookie: Any, task: Any) -> None:
    campaign = await task(launched=False, return_completed="https://example.org/done")
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    address = f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/preview"
    for platform in [one.name for one in platforms_with_pages()]:
        await page.goto(f"{address}?at=thanks&platform={platform}")
        await is_at(page, "Thanks")
        await page.locator(".no-hit .button.primary, .no-hit form button.primary").press("Enter")
        await is_at(page, "Way back: completed")
        await expect(page.get_by_role("heading", name="The participant leaves Easel here")).to_be_visible()
        await page.get_by_role("link", name="Back", exact=True).press("Enter")
        await is_at(page, "Thanks")


async def test_our_script_submits_a_hit_and_the_bar_follows(visit: Any, cookie: Any, task: Any) -> None:
    campaign = await task(launched=False, design="pairwise", items_per_hit=2)
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/preview?at=hit-1")
    await page.locator("[name=preferred]").first.press("Space")
    await page.locator(".finish button[type=submit]").press("Enter")
    await is_at(page, "Task 2")
    await expect(page.get_by_text("What Easel would keep")).to_be_visible()
    assert await campaign.responses() == []
