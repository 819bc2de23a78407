"""The masthead of researchers' pages: one row that shows everything, from a phone's screen to a desk's."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.acts import each_width, violations
from tests.browser.test_appearance import looks

ROWS = "new Set([...document.querySelectorAll('.masthead > *')].map((part) => part.getBoundingClientRect())"
ROWS += ".filter((box) => box.width).map((box) => Math.round((box.top + box.bottom) / 20))).size"
CUT_OFF = (
    "[...document.querySelectorAll('.masthead, .masthead *')].filter((part) => part.scrollWidth > part.clientWidth"
)
CUT_OFF += " && getComputedStyle(part).overflowX !== 'visible' && part.clientWidth > 1).length"


@pytest.fixture
async def home(visit: Any, origin: str, cookie: Any) -> Any:
    page = (await visit(**looks(390))).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin")
    return page


async def test_the_masthead_is_one_row_in_which_nothing_is_cut_off(home: Any) -> None:
    async for width in each_width(home, 1280, 800, 768, 640, 390, 320):
        assert await home.evaluate(ROWS) == 1, width
        assert await home.evaluate(CUT_OFF) == 0, width


async def test_on_a_phone_all_links_and_the_way_out_are_in_a_menu(home: Any) -> None:
    menu = home.locator(".masthead").get_by_text("Menu", exact=True)
    await menu.focus()
    await home.keyboard.press("Enter")
    for name in ("Campaigns", "People", "Log", "Account", "Help", "API"):
        await expect(home.get_by_role("navigation", name="Main").get_by_role("link", name=name)).to_be_in_viewport()
    await expect(home.get_by_role("button", name="Log out")).to_be_in_viewport()
    for scheme in ("light", "dark"):
        await home.emulate_media(color_scheme=scheme)
        assert await violations(home) == "", scheme
    await home.get_by_role("link", name="Account").click()
    await expect(home.get_by_role("heading", name="Account")).to_be_visible()
    await home.set_viewport_size({"width": 1280, "height": 900})
    await expect(menu).to_be_hidden()
    await expect(home.get_by_role("link", name="Account")).to_be_visible()
