"""Saying that an item cannot be judged, for every way of asking: with scripts and without, by keys, on a phone."""

import math
from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.designs.registry import DESIGNS
from tests.browser.acts import open_hit, press_submit, violations, wait_for_hit
from tests.browser.plain_page import PlainPage

REASON = "It is in another language"
TEXTS = ["go", "abide", "run", "hum"]
PAIRS = ("pairwise", "baseline")
# What answers the second, third and fourth item of a HIT by keys.
KEYS = {
    "slider": ["b", "5", "c", "6", "d", "7"],
    "rating": ["b", "5", "c", "6", "d", "7"],
    "ordinal": ["2", "3", "4"],
    "categories": ["a", "b", "a"],
    "ranking": ["b", "c", "d"],
    "best_worst": ["b", "Shift+D"],
    "pairwise": [],
    "baseline": [],
}
VALUES = {
    "slider": [5, 6, 7],
    "rating": [5, 6, 7],
    "ordinal": [1, 2, 3],
    "categories": [0, 1, 0],
    "ranking": [1, 2, 3],
    "best_worst": [1, 2, 3],
    "pairwise": [math.nan],
    "baseline": [math.nan],
}


def settings_for(design: str) -> dict[str, Any]:
    settings = {"design_settings": {"baseline": "0"}} if design == "baseline" else {}
    return {
        "design": design,
        "items_per_hit": 2 if design in PAIRS else 4,
        "texts": TEXTS,
        "cannot_be_judged": True,
    } | settings


async def mark(page: Page, place: int, reason: str = REASON) -> None:
    fold = page.locator(".cannot-judge")
    if await fold.get_attribute("open") is None:
        await fold.get_by_text("Cannot be judged?").click()
    await fold.get_by_role("combobox").nth(place).select_option(reason)


async def fits(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("design", DESIGNS)
async def test_an_answer_in_which_nothing_can_be_judged(task: Any, visit: Any, design: str) -> None:
    campaign = await task(**settings_for(design))
    page = (await visit(viewport={"width": 320, "height": 640}, has_touch=True, is_mobile=True)).page
    await open_hit(page, campaign.prolific())
    count = 2 if design in PAIRS else 4
    for place in range(count):
        await mark(page, place)
    await fits(page)
    assert await violations(page) == ""
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert all(map(math.isnan, stored.scores))
    assert stored.extra == {"cannot_be_judged": dict.fromkeys(map(str, stored.items), REASON)}


@pytest.mark.parametrize("design", KEYS)
async def test_the_others_are_answered_by_keys(task: Any, visit: Any, design: str) -> None:
    campaign = await task(**settings_for(design))
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    fold = page.locator(".cannot-judge")
    await fold.locator("summary").press("Enter")
    await fold.get_by_role("combobox").first.focus()
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".item[data-unjudged]")).to_have_count(1)
    await page.locator("#question").focus()
    for key in KEYS[design]:
        await page.keyboard.press(key)
    assert await violations(page) == ""
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert math.isnan(stored.scores[0])
    assert stored.scores[1:] == pytest.approx(VALUES[design], nan_ok=True)
    assert stored.extra == {"cannot_be_judged": {str(stored.items[0]): "I do not understand it"}}


async def test_a_number_beside_a_reference_is_not_asked_for(task: Any, visit: Any) -> None:
    campaign = await task(**settings_for("magnitude"))
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await page.locator(".judged input").first.fill("not a number")
    await mark(page, 0)
    for place in (1, 2, 3):
        await page.locator(".judged input").nth(place).fill("150")
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert stored.scores == pytest.approx([math.nan, 150, 150, 150], nan_ok=True)


async def test_what_was_said_can_be_taken_back_and_the_item_is_asked_again(task: Any, visit: Any) -> None:
    campaign = await task(**settings_for("slider"))
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    for key in ["a", "9", *KEYS["slider"]]:
        await page.keyboard.press(key)
    await mark(page, 0)
    await expect(page.locator(".row .rank")).to_have_text(["", "3rd", "2nd", "1st"])
    await mark(page, 0, "")
    await expect(page.locator(".status .message")).to_have_text("1 left")
    await page.locator("#question").focus()
    for key in "a9":
        await page.keyboard.press(key)
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert (stored.scores, stored.extra) == ([9, 5, 6, 7], None)


@pytest.mark.parametrize("design", ["slider", "categories", "ranking", "pairwise"])
async def test_a_draft_keeps_it_over_a_reload(task: Any, visit: Any, design: str) -> None:
    campaign = await task(**settings_for(design))
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    async with page.expect_response(lambda reply: reply.request.method == "PUT"):
        await mark(page, 1)
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await wait_for_hit(page)
    await expect(page.locator(".cannot-judge")).to_have_attribute("open", "")
    await expect(page.locator(".item[data-unjudged]")).to_have_count(1)
    await expect(page.locator(".cannot-judge select").nth(1)).to_have_value(REASON)


@pytest.mark.parametrize("design", DESIGNS)
async def test_without_scripts(task: Any, plain: Any, design: str) -> None:
    campaign = await task(**settings_for(design), unjudged_reasons=[])
    page: PlainPage = await plain(campaign.link)
    await page.press("Start")
    mark_on_form(page, 0)
    assert await page.press("Submit") == []
    if design not in PAIRS:  # the others are missing, and what was said is kept
        assert "What you entered is kept." in page.all(role="alert")[0].text
        assert await campaign.responses() == []
        for place in (1, 2, 3):
            mark_on_form(page, place)
        assert await page.press("Submit") == []
    assert page.texts("progress") == ["1 task done"]
    (stored,) = await campaign.responses()
    assert all(map(math.isnan, stored.scores))


def mark_on_form(page: PlainPage, place: int) -> None:
    (fold,) = page.all("details", class_="cannot-judge")
    assert "Cannot be judged?" in fold.text
    selects = [one for one in fold if one.tag == "select"]
    page.select(selects[place], "cannot be judged")


async def test_a_campaign_that_does_not_offer_it_shows_nothing_of_it(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    await expect(page.get_by_text("Cannot be judged")).to_have_count(0)
