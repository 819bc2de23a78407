"""In a low window what a control means stays in sight with it; what is missing is said, and what to do is said once."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import SUBMIT, click_at, open_hit

CRITERIA = [{"name": "adequacy", "question": "How adequate?"}, {"name": "fluency", "question": "How fluent?"}]
FIVE = {"labels": ["bad", "poor", "fair", "good", "excellent"]}
# Of each design its settings, its controls, and what says what the ends of its scale mean.
DESIGNS: dict[str, tuple[dict[str, Any], str, str]] = {
    "slider": ({"items_per_hit": 8}, ".track", ".strip .ends"),
    "rating": ({"items_per_hit": 8}, ".track", ".strip .ends"),
    "rating alone": ({"design": "rating", "items_per_hit": 1}, ".track", ".ends"),
    "rating in a grid": (
        {"design": "rating", "items_per_hit": 5, "criteria": CRITERIA, "criteria_shown": "grid"}, ".track", ".ends",
    ),
    "ordinal": ({"items_per_hit": 8, "design_settings": FIVE}, ".points", ".names, .point .name"),
    "best_worst": ({"items_per_hit": 5}, ".choice.best", ".heads"),
    "ranking": ({"items_per_hit": 8}, ".order .slot:not([hidden])", ".ranked > .end"),
    "magnitude": ({"items_per_hit": 8}, ".judged input", ".reference .value"),
    "pairwise": ({}, ".choice", ".choice"),
}  # fmt: skip
# The controls at which, once one has scrolled to it, no end is in the window with nothing over it.
FIND_CONTROLS_WITHOUT_ENDS = """async (controls, ends) => {
  const isSeen = (one) => {
    const { left, right, top, bottom, width, height } = one.getBoundingClientRect();
    if (width < 2 || height < 2 || top < 0 || bottom > innerHeight) return false;
    const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
    return over && (one.contains(over) || over.contains(one));
  };
  const without = [];
  const shown = controls.filter((one) => one.checkVisibility({ visibilityProperty: true }));
  for (const control of shown) {
    control.scrollIntoView({ block: "center" });
    await new Promise(requestAnimationFrame);
    if (![...document.querySelectorAll(ends)].some(isSeen)) without.push(control.outerHTML);
  }
  return { without, count: shown.length };
}"""


@pytest.mark.parametrize("design", DESIGNS)
async def test_the_ends_of_the_scale_stay_in_sight(task: Any, visit: Any, design: str) -> None:
    settings, control, ends = DESIGNS[design]
    campaign = await task(**{"design": design} | settings)
    page: Page = (await visit()).page
    await open_hit(page, campaign.prolific())
    for width, height in ((1280, 500), (390, 500)):
        await page.set_viewport_size({"width": width, "height": height})
        found = await page.locator(control).evaluate_all(FIND_CONTROLS_WITHOUT_ENDS, ends)
        assert found["without"] == [], (width, height)
        assert found["count"] > 0
        assert await page.evaluate("document.documentElement.scrollWidth") == width


async def test_what_to_do_is_said_in_the_next_row_alone_and_ties_are_offered_after_two_scores(
    task: Any, visit: Any
) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    hints, ties = page.locator(".hint"), page.locator(".steps select")
    shown = "hints => hints.map((hint) => getComputedStyle(hint).visibility === 'visible')"
    assert await hints.evaluate_all(shown) == [True, False, False, False, False]
    enabled = "lists => lists.map((list) => !list.disabled && list.options[0].textContent)"
    assert await ties.evaluate_all(enabled) == [False] * 5
    await click_at(page, 0, 30)
    assert await hints.evaluate_all(shown) == [False, True, False, False, False]
    assert await ties.evaluate_all(enabled) == ["×", False, False, False, False]  # it can be taken back
    await click_at(page, 1, 60)
    assert await ties.evaluate_all(enabled) == ["same as"] * 5


async def test_an_unfinished_submit_says_what_is_missing_and_goes_to_the_first(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    await click_at(page, 0, 30)
    await page.locator(SUBMIT).click(force=True)
    await expect(page.locator(".status .message")).to_have_text("Not scored yet: b, c, d, e.")
    await expect(page.locator(".row input").nth(1)).to_be_focused()
    await expect(page.locator(".row").nth(1)).to_have_class("row asked-for")
    await click_at(page, 1, 30)
    await expect(page.locator(".status .message")).to_have_text("3 left")
    await expect(page.locator(".asked-for")).to_have_count(0)
