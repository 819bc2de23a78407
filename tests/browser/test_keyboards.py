"""Digits, letters and decimal signs mean the same on keyboards of other languages."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import expect_score, open_hit, press_submit

PRESS = """([key, code, shiftKey]) => document.activeElement.dispatchEvent(
  new KeyboardEvent("keydown", { key, code, shiftKey, bubbles: true, cancelable: true }))"""
AZERTY = dict(zip("1234567890", "&é\"'(-è_çà", strict=True))


async def press(page: Page, key: str, code: str, *, shift: bool = False) -> None:
    await page.evaluate(PRESS, [key, code, shift])


async def scale_of_eleven(task: Any, visit: Any) -> Page:
    scale = {"labels": [str(point) for point in range(11)]}
    campaign = await task(["abide"], design="ordinal", design_settings=scale, items_per_hit=1)
    page: Page = (await visit()).page
    await open_hit(page, campaign.prolific())
    return page


async def test_unshifted_digits_of_azerty_choose_their_points(task: Any, visit: Any) -> None:
    page = await scale_of_eleven(task, visit)
    for digit, written in AZERTY.items():
        await press(page, written, f"Digit{digit}")
        await expect(page.get_by_label(digit, exact=True)).to_be_checked()


async def test_a_key_chooses_the_point_that_it_stands_for(task: Any, visit: Any) -> None:
    page = await scale_of_eleven(task, visit)
    for key, code, point in (
        ("-", "Minus", "10"),  # of a US keyboard
        ("6", "Digit6", "6"),  # AZERTY, with Shift
        ("-", "Slash", "10"),  # German
        ("٣", "Digit3", "3"),  # Arabic
        (")", "Minus", "10"),  # AZERTY, in the place of a US keyboard's hyphen
        ("３", "Digit3", "3"),  # Japanese, full width
        ("-", "NumpadSubtract", "10"),
        ("Process", "Digit4", "4"),  # an input method is on
    ):
        await press(page, key, code, shift=key == "6")
        await expect(page.get_by_label(point, exact=True)).to_be_checked()


async def test_a_shifted_symbol_chooses_nothing(task: Any, visit: Any) -> None:
    campaign = await task(["abide"], design="ordinal", items_per_hit=1)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await press(page, "!", "Digit1", shift=True)
    await press(page, "%", "Digit5", shift=True)
    await expect(page.locator("input:checked")).to_have_count(0)


async def test_unshifted_digits_of_azerty_score_on_a_slider(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    await press(page, AZERTY["7"], "Digit7")
    await press(page, AZERTY["6"], "Digit6")
    await expect_score(page, 0, 76)


async def test_letters_of_a_cyrillic_keyboard_choose_items(task: Any, visit: Any) -> None:
    campaign = await task(["abide", "run", "hum", "eat"], design="best_worst", items_per_hit=4)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await press(page, "и", "KeyB")
    await press(page, "Ф", "KeyA", shift=True)
    await expect(page.locator(".row .best input").nth(1)).to_be_checked()
    await expect(page.locator(".row .worst input").nth(0)).to_be_checked()


CYRILLIC = dict(zip("abc", "фис", strict=True))
LABELS = {"design_settings": {"labels": ["one", "two", "three"]}}
LETTERS: dict[str, dict[str, Any]] = {"slider": {}, "rating": {}, "ranking": {}, "categories": LABELS, "best_worst": {}}
BY_LETTER = (
    ".row[data-letter=b]:focus-within, .row[data-letter=b][data-placed], .row :checked:is([value='01'], [value='1'])"
)


@pytest.mark.parametrize("design", LETTERS)
async def test_a_cyrillic_letter_is_the_latin_one_of_its_place_in_every_design(
    task: Any, visit: Any, design: str
) -> None:
    campaign = await task(["abide", "run", "hum", "eat"], design=design, items_per_hit=4, **LETTERS[design])
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await press(page, CYRILLIC["b"], "KeyB")
    await expect(page.locator(BY_LETTER).first).to_be_attached()


async def test_digits_of_azerty_go_from_criterion_to_criterion_of_a_comparison(task: Any, visit: Any) -> None:
    criteria = [{"name": name, "question": f"Which is {name}?"} for name in ("clearer", "shorter")]
    campaign = await task(["abide", "run"], design="pairwise", criteria=criteria)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    for digit, place in (("2", 1), ("1", 0)):
        await press(page, AZERTY[digit], f"Digit{digit}")
        await expect(page.locator("fieldset.part").nth(place).locator("input").first).to_be_focused()


async def test_a_keyboard_without_a_slash_searches_by_the_key_in_its_place(task: Any, visit: Any) -> None:
    labels = {"labels": [f"label {number}" for number in range(20)]}
    campaign = await task(["abide"], design="categories", items_per_hit=1, design_settings=labels)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await press(page, "ظ", "Slash")
    await expect(page.get_by_role("searchbox")).to_be_focused()


async def test_the_question_mark_of_any_keyboard_shows_the_keys(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    for place, mark in enumerate("?؟？"):
        await press(page, mark, "Slash", shift=True)
        await expect(page.locator(".keys dl")).to_be_visible(visible=place % 2 == 0)


async def test_a_row_comes_back_into_sight_when_a_key_scores_it_below_the_list_of_keys(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await page.set_viewport_size({"width": 1000, "height": 560})
    await open_hit(page, (await task()).prolific())
    first = page.get_by_role("slider").first
    await first.focus()
    await page.keyboard.press("?")
    await expect(page.locator(".keys dl")).to_be_in_viewport(ratio=0.9)
    await expect(first).not_to_be_in_viewport(ratio=1)
    await page.keyboard.press("ArrowRight")
    await expect(first).to_be_in_viewport(ratio=1)


@pytest.mark.parametrize("scripted", [True, False])
async def test_a_magnitude_takes_the_decimal_sign_and_the_digits_of_the_keypad(
    task: Any, visit: Any, scripted: bool
) -> None:
    campaign = await task(["abide", "run", "hum"], design="magnitude", items_per_hit=3)
    page = (await visit(java_script_enabled=scripted)).page
    await page.goto(campaign.prolific())
    for place, entered in enumerate(["1,5", "٠٫٥", "１５０"]):
        await page.locator(".judged input").nth(place).fill(entered)
    await page.locator(".answer .primary").click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    (response,) = await campaign.responses()
    assert response.scores == [1.5, 0.5, 150.0]


async def test_a_number_that_two_people_read_differently_is_asked_about(task: Any, visit: Any) -> None:
    campaign = await task(["abide"], design="magnitude", items_per_hit=1)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await page.locator(".judged input").fill("1,250")
    await page.locator(".answer .primary").click(force=True)
    await expect(page.locator(".status .message")).to_have_text("“1,250” can be read in two ways. Write 1250 or 1.250.")
    await page.locator(".judged input").fill("1250")
    await press_submit(page)
    assert (await campaign.responses())[0].scores == [1250.0]
