"""Images stand side by side where there is room, with the button in sight, and open larger in a dialog."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import SUBMIT, open_hit, press_submit, score_all, violations
from tests.browser.test_content import files as files  # noqa: PLC0414  (a fixture)
from tests.media.files import png

DESIGNS: dict[str, dict[str, Any]] = {
    "slider": {}, "rating": {}, "magnitude": {}, "best_worst": {},
    "ordinal": {"design_settings": {"labels": ["bad", "fair", "good"]}},
    "categories": {"design_settings": {"labels": ["cat", "dog"]}},
}  # fmt: skip
PICTURES = {f"{k}.png": png(400 + 100 * (k % 2), 300, grey=40 * k) for k in range(5)}


async def open_pictures(files: Any, visit: Any, design: str, width: int, height: int = 900) -> tuple[Any, Page]:
    campaign = await files(PICTURES, content="image", welcome=False, design=design, items_per_hit=5, **DESIGNS[design])
    page: Page = (await visit(viewport={"width": width, "height": height})).page
    await open_hit(page, campaign.prolific())
    return campaign, page


async def expect_columns(page: Page, count: int) -> None:
    """Wait until the five images have so many left edges: after a resize the layout may come later."""
    await page.wait_for_function(
        """count => {
            const images = [...document.querySelectorAll(".hit .content img")]
            const edges = new Set(images.map(image => Math.round(image.getBoundingClientRect().x)))
            return images.length === 5 && edges.size === count
        }""",
        arg=count,
    )


@pytest.mark.parametrize("design", DESIGNS)
async def test_images_share_lines_from_700_pixels_on_and_the_button_stays_in_sight(
    files: Any, visit: Any, design: str
) -> None:
    _, page = await open_pictures(files, visit, design, 1280, 600)
    await expect_columns(page, 3)
    for place in (0, 1):
        await page.evaluate("share => scrollTo(0, share * document.body.scrollHeight / 2)", place)
        await expect(page.locator(SUBMIT)).to_be_in_viewport(ratio=1)
    await page.set_viewport_size({"width": 720, "height": 900})
    await expect_columns(page, 2)
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect_columns(page, 1)
    assert await page.evaluate("document.documentElement.scrollWidth") == 390


async def test_an_image_opens_larger_by_key_and_by_click_and_focus_returns(files: Any, visit: Any) -> None:
    campaign, page = await open_pictures(files, visit, "slider", 1280)
    button = page.get_by_role("button", name="Enlarge the image: b")
    dialog = page.get_by_role("dialog", name="Enlarged image")
    await button.press("Enter")
    await expect(dialog.get_by_role("img")).to_be_visible()
    assert await violations(page) == ""
    await page.keyboard.press("7")  # no key there scores
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await expect(button).to_be_focused()
    slider = page.locator(".row input").nth(2)
    await slider.focus()
    await page.locator(".content img").nth(2).click()
    await expect(dialog).to_be_visible()
    await dialog.get_by_role("button", name="Close").click()
    await expect(slider).to_be_focused()
    await expect(page.locator(".row[data-scored]")).to_have_count(0)
    await expect(page.locator(".strip .ends")).to_be_in_viewport(ratio=1)
    await score_all(page, [10, 30, 50, 70, 90])
    await press_submit(page)
    assert len(await campaign.responses()) == 1
