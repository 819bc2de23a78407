"""In every design texts are only read: a press on one chooses nothing, and no control has one for its name."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import open_hit, violations

WORDS = "Some words of a long text that goes on and on, which somebody reads with care. " * 20
TEXTS = [f"{name}. {WORDS}" for name in ("One", "Two", "Three", "Four")]
TWO = {"design_settings": {"labels": ["low", "high"]}}
DESIGNS: dict[str, dict[str, Any]] = {
    "slider": {"items_per_hit": 2}, "rating": {"items_per_hit": 2}, "magnitude": {"items_per_hit": 2},
    "ordinal": {"items_per_hit": 2, **TWO}, "categories": {"items_per_hit": 2, **TWO},
    "ranking": {"items_per_hit": 3}, "best_worst": {"items_per_hit": 4}, "pairwise": {},
    "baseline": {"design_settings": {"baseline": "0"}},
}  # fmt: skip
CRITERIA = [{"name": "adequacy", "question": "How adequate?"}, {"name": "fluency", "question": "How fluent?"}]
GRIDS: dict[str, dict[str, Any]] = {
    f"{design}, {way}": settings | {"design": design, "criteria": CRITERIA, "criteria_shown": way}
    for design, settings in (("rating", {"items_per_hit": 2}), ("ordinal", {"items_per_hit": 2, **TWO}))
    for way in ("in turn", "grid")
}
ALL = {design: settings | {"design": design} for design, settings in DESIGNS.items()} | GRIDS
FIRST = {"One", "Two", "Three", "Four", "An"}  # words of the texts, and of the reference
LONGEST_NAME = 250  # of what is heard with each control; an item here has some 1,600 characters


async def names(page: Page) -> list[str]:
    """Return the names of all controls of the HIT, and of their groups, for assistive technology."""
    session = await page.context.new_cdp_session(page)
    tree = await session.send("Accessibility.getFullAXTree")
    roles = {"radio", "slider", "spinbutton", "textbox", "button", "radiogroup", "combobox", "group", "searchbox"}
    shown = [node for node in tree["nodes"] if not node.get("ignored") and node["role"]["value"] in roles]
    return [node.get("name", {}).get("value", "") for node in shown]


async def expect_short_names(page: Page) -> None:
    found = await names(page)
    assert len(found) > 3
    assert max(map(len, found)) < LONGEST_NAME
    assert await violations(page, colours=False) == ""


async def press_each_text(page: Page) -> None:
    for text in await page.locator(".hit .item .text:visible").all():
        await text.scroll_into_view_if_needed()
        box = await text.bounding_box()
        assert box
        await page.mouse.dblclick(box["x"] + 8, box["y"] + 14)
        assert await page.evaluate("getSelection().toString().trim()") in FIRST
        await page.mouse.click(box["x"] + 8, box["y"] + 14)


@pytest.mark.parametrize("design", ALL)
async def test_controls_are_called_by_few_words_and_a_press_on_a_text_chooses_nothing_and_marks_words(
    task: Any, visit: Any, design: str
) -> None:
    campaign = await task(texts=TEXTS, judgments_per_item=9, cannot_be_judged=True, comment_on="both", **ALL[design])
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await expect_short_names(page)
    await press_each_text(page)
    made = ".hit input:checked, .hit .row[data-scored], .hit .row[data-placed]"
    await expect(page.locator(made)).to_have_count(0)
    assert await campaign.draft() is None
