"""Giving numbers in proportion to a reference."""

from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.acts import SUBMIT, bounding_box, open_hit, press_submit, violations, wait_for_hit

REFERENCE = "The cat sat."
LONG = "A sentence that is so long that it is folded until somebody asks for all of it. " * 25


def fields(page: Page) -> Locator:
    return page.locator(".judged input")


async def times(page: Page, *words: str) -> None:
    await expect(page.locator(".times")).to_have_text(words)


@pytest.fixture
async def campaign(task: Any) -> Any:
    settings = {"reference": REFERENCE, "reference_value": 100}
    return await task(["abide", "run", "hum"], design="magnitude", design_settings=settings)


async def test_values_are_given_by_keyboard_and_the_factor_is_told_at_once(campaign: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await expect(page.locator(".how")).to_contain_text(
        "The reference has 100. Give each item a number in proportion to it"
    )
    await expect(page.locator(".reference")).to_contain_text(REFERENCE)
    assert await violations(page) == ""
    await page.keyboard.press("Tab")
    await page.keyboard.press("Tab")  # past the instructions
    await expect(fields(page).first).to_be_focused()
    await page.keyboard.type("0.5")
    await times(page, "× 0.005", "", "")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.type("1250")
    await expect(page.locator(".status .message")).to_have_text("1 left")
    await page.keyboard.press("Enter")  # to what is left
    await expect(fields(page).nth(1)).to_be_focused()
    await page.keyboard.type("?150")
    await expect(page.locator(".keys dl")).to_be_visible()
    await times(page, "× 0.005", "× 1.5", "× 12.5")
    assert await violations(page) == ""
    items = [await label.inner_text() for label in await page.locator(".judged .text").all()]
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert await campaign.scores() == [dict(zip(items, [0.5, 150.0, 1250.0], strict=True))]
    (response,) = await campaign.responses()
    assert (response.source, response.input_kinds) == ("page", ["keyboard"] * 3)


async def test_what_cannot_be_a_value_is_said_kindly_and_kept(campaign: Any, visit: Any) -> None:
    page = (await visit()).page
    await page.goto(campaign.prolific())
    for place, entered in enumerate(["0", "1.5.", "120"]):
        await fields(page).nth(place).click()
        await page.keyboard.type(entered)
    await times(page, "not above 0", "not a number", "× 1.2")
    await expect(page.locator(".status .message")).to_have_text("2 left")
    await page.locator(SUBMIT).click(force=True)
    await expect(page.locator(".status.problem")).to_contain_text(
        "0 is not above 0. An item far below the reference gets a small"
    )
    await expect(fields(page).first).to_be_focused()
    await expect(fields(page).first).to_have_attribute("aria-invalid", "true")
    assert await violations(page) == ""
    assert {value["value"] for value in (await campaign.draft_saved()).values()} == {"0", "1.5.", "120"}
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await times(page, "not above 0", "not a number", "× 1.2")
    await fields(page).nth(0).fill("-3")
    await fields(page).nth(1).fill("1e12")
    await times(page, "not above 0", "", "× 1.2")  # while it is typed, it may become something
    await fields(page).nth(2).focus()
    await times(page, "not above 0", "too large", "× 1.2")
    await fields(page).nth(0).fill("0.00000001")
    await fields(page).nth(1).fill("1.5")
    await times(page, "too small", "× 0.015", "× 1.2")
    await fields(page).nth(0).fill("1")
    assert await campaign.responses() == []
    await press_submit(page)
    (response,) = await campaign.responses()
    assert sorted(response.scores) == [1.0, 1.5, 120.0]


async def test_it_is_done_by_touch_on_a_phone_where_the_reference_stays_in_sight(task: Any, visit: Any) -> None:
    settings = {"reference": REFERENCE}
    campaign = await task(design="magnitude", items_per_hit=10, design_settings=settings)
    page = (await visit(viewport={"width": 390, "height": 600}, has_touch=True, is_mobile=True)).page
    await open_hit(page, campaign.prolific())
    for place in range(10):
        await fields(page).nth(place).tap()
        await page.keyboard.type(str(10 * (place + 1)))
    assert await fields(page).first.get_attribute("inputmode") == "decimal"
    for element in (page.locator(".reference .text"), fields(page).last, page.locator(SUBMIT)):
        await expect(element).to_be_in_viewport(ratio=1)
    for element in (fields(page).last, page.locator(SUBMIT)):
        assert (await bounding_box(element))["height"] >= 44
    assert await violations(page) == ""
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.scores == [10.0 * (place + 1) for place in range(10)]
    assert response.changes == [2] * 9 + [3]


@pytest.mark.parametrize("width", [320, 1280])
async def test_long_texts_are_folded_and_nothing_is_wider_than_the_screen(task: Any, visit: Any, width: int) -> None:
    texts = [LONG, "x" * 120, "كلمة"]
    campaign = await task(texts, design="magnitude", design_settings={"reference": LONG, "reference_value": 0.5})
    page = (await visit(viewport={"width": width, "height": 640})).page
    await page.goto(campaign.prolific())
    await wait_for_hit(page)
    await expect(page.get_by_role("button", name="Show all")).to_have_count(2)
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    await page.get_by_role("button", name="Show all").first.click()
    await expect(page.get_by_role("button", name="Show less")).to_have_count(1)
    await expect(page.locator(".how")).to_contain_text("Twice as much is 1, half as much is 0.25")


async def test_it_is_a_plain_form_without_javascript(campaign: Any, plain: Any) -> None:
    page = await plain(campaign.prolific())
    for field, entered in zip(page.numbers(), ["150", "much", "0"], strict=True):
        page.fill(field, entered)
    # The browser says that the second is no number.
    assert await page.press("Submit") == [page.numbers()[1].attributes["name"]]
    page.fill(page.numbers()[1], "80")
    assert await page.press("Submit") == []
    (alert,) = page.all(role="alert")
    assert "The value of item 3 must be a number above 0" in alert.text
    assert [field.attributes["value"] for field in page.numbers()] == ["150", "80", "0"]
    page.fill(page.numbers()[2], "0.1")
    assert await page.press("Submit") == []
    assert "All done" in page.text
    (response,) = await campaign.responses()
    assert (response.scores, response.source) == ([150.0, 80.0, 0.1], "form")
