"""Rating one item after another, or a few one below the other, on sliders that have no strip in common."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import (
    SUBMIT,
    bounding_box,
    click_at,
    expect_ranks,
    expect_score,
    expect_scores,
    item_texts,
    open_hit,
    press_submit,
    score_all,
    sliders,
    violations,
    wait_for_hit,
)

LETTERS = ".letter, .rank, .same, .strip, .mark, .chip"


@pytest.fixture
async def campaign(task: Any) -> Any:
    return await task(["abide", "run"], design="rating", middle_label="now and then")


async def test_items_that_come_alone_are_rated_by_mouse(campaign: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    first = await item_texts(page)
    await expect(page.locator(LETTERS)).to_have_count(0)
    await expect(page.get_by_text("comes alone")).to_have_count(0)
    await expect(page.locator(".ends:visible")).to_have_text("very rare now and then very frequent")
    await expect_scores(page, [None])
    assert await violations(page) == ""
    await click_at(page, 0, 71)
    await expect_scores(page, [71])
    await page.get_by_role("button", name="Raise it by 1").click()
    await expect(sliders(page)).to_have_attribute("aria-valuetext", "72 of 100")
    await page.get_by_role("button", name="Clear it").click()
    await expect_scores(page, [None])
    await page.locator(SUBMIT).click(force=True)
    await expect(page.locator("#announcer")).to_have_text("Not scored yet: this item.")
    await click_at(page, 0, 60)
    assert await violations(page) == ""
    await press_submit(page)
    await expect(page.locator(".progress")).to_have_text("1 task done")
    await expect_scores(page, [None])
    await click_at(page, 0, 50)
    await press_submit(page)  # one score is not "all the same"
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert (await campaign.scores())[0] == {first[0]: 60.0}
    response, _ = await campaign.responses()
    assert (response.source, response.input_kinds, response.changes) == ("page", ["mouse"], [4])


async def test_items_that_come_alone_are_rated_by_keyboard(campaign: Any, visit: Any) -> None:
    page = (await visit()).page
    await page.goto(campaign.prolific())
    await wait_for_hit(page)
    await page.locator("#question").focus()
    await page.keyboard.press("?")
    await expect(page.locator(".keys dl")).to_be_visible()
    await expect(page.get_by_text("go to that row")).to_have_count(0)
    await page.keyboard.press("Escape")
    for key in ("7", "2", "Control+Enter"):
        await page.keyboard.press(key)
    await expect(page.locator(".progress")).to_have_text("1 task done")
    await expect(page.locator("#question")).to_be_focused()
    for key in ("Tab", "End", "ArrowLeft", "Control+Enter"):
        await page.keyboard.press(key)
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert [list(scores.values()) for scores in await campaign.scores()] == [[72.0], [99.0]]


async def test_a_list_is_rated_without_a_strip_and_asks_once_whether_all_are_the_same(task: Any, visit: Any) -> None:
    campaign = await task(["abide", "run", "hum"], design="rating", items_per_hit=3)
    page = (await visit(reduced_motion="reduce")).page
    await open_hit(page, campaign.prolific())
    await expect(page.locator(".letter")).to_have_text(["a", "b", "c"])
    await expect(page.locator(".mark, .chip, .sort")).to_have_count(0)
    ends, rail = await bounding_box(page.locator(".ends")), await bounding_box(page.locator(".track").first)
    assert (ends["x"], ends["width"]) == (rail["x"], rail["width"])
    await score_all(page, [71, 93])
    await expect_ranks(page, ["2nd", "1st", ""])
    await expect(page.locator(".status .message")).to_have_text("1 left")
    await page.keyboard.press("c")
    await page.keyboard.press("4")
    assert await violations(page) == ""
    await page.reload()  # what was entered is kept
    await expect_scores(page, [71, 93, 4])
    for key in ("c", "Shift+a", "b", "Shift+a"):
        await page.keyboard.press(key)
    await expect_scores(page, [71, 71, 71])
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(SUBMIT)).to_have_text("Submit all equal")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert [set(scores.values()) for scores in await campaign.scores()] == [{71.0}]


@pytest.fixture
async def phone(visit: Any) -> Page:
    opened: Page = (await visit(viewport={"width": 390, "height": 600}, has_touch=True, is_mobile=True)).page
    return opened


async def test_an_item_alone_is_rated_by_touch(campaign: Any, phone: Page) -> None:
    await open_hit(phone, campaign.prolific())
    assert await phone.locator(".hint").all_inner_texts() == ["tap"]
    await phone.locator(".row .rail").tap(position={"x": 100, "y": 22}, force=True)
    await expect_score(phone, 0, pytest.approx(31, abs=1))
    for selector in (".track", ".steps [data-step='1']", ".steps .clear", SUBMIT):
        box = await bounding_box(phone.locator(selector))
        assert min(box["height"], box["width"]) >= 44, selector
    assert await violations(phone) == ""
    await press_submit(phone)
    assert [response.input_kinds for response in await campaign.responses()] == [["touch"]]


async def test_on_the_narrowest_screen_nothing_is_cut_off(task: Any, phone: Page) -> None:
    long = "A sentence that is long enough to stand above the slider, over the whole width of the page. " * 12
    await phone.set_viewport_size({"width": 320, "height": 480})
    await open_hit(phone, (await task([long], design="rating", low_label="x" * 40, high_label="y" * 40)).prolific())
    await expect(phone.get_by_role("button", name="Show all")).to_be_visible()
    assert await phone.evaluate("document.documentElement.scrollWidth") == 320


async def test_it_is_a_plain_form_without_javascript(campaign: Any, plain: Any) -> None:
    page = await plain(campaign.prolific())
    assert "Give it a number from 0 (very rare) to 100 (very frequent). 50 is now and then." in page.text
    for score in ("71", "8"):
        (field,) = page.numbers()
        page.fill(field, score)
        assert await page.press("Submit") == []
    assert "All done" in page.text
    assert [response.scores for response in await campaign.responses()] == [[71.0], [8.0]]
    assert {response.source for response in await campaign.responses()} == {"form"}
