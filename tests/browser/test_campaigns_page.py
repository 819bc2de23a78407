"""The list of campaigns in a browser: filtered while one types, as cards on a phone, and readable by all."""

import re
from typing import Any

from playwright.async_api import expect

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
    await page.locator(".menu summary").first.click()
    async for width in each_width(page, 1280, 768, 390):
        assert await violations(page) == "", width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
