"""Scoring one HIT after another by mouse, keyboard, strip, buttons and touch."""

import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import (
    SUBMIT,
    box_of,
    click_at,
    grab,
    hit_shown,
    open_hit,
    point_on_strip,
    score_all,
    see_ranks,
    see_score,
    see_scores,
    sliders,
    submit,
    texts,
)


@pytest.fixture
async def page(task: Any, visit: Any) -> Page:
    """A fresh HIT of five verbs, opened by link."""
    opened: Page = (await visit(reduced_motion="reduce")).page
    await open_hit(opened, (await task()).link)
    return opened


async def test_a_campaign_by_mouse_to_the_end(task: Any, visit: Any) -> None:
    campaign = await task()
    page = (await visit()).page
    await open_hit(page, campaign.link)
    first = await texts(page)
    await score_all(page, [71, 93, 17, 4, 41])
    await see_ranks(page, ["2nd", "1st", "4th", "5th", "3rd"])
    await submit(page)
    await expect(page.locator(".progress")).to_have_text("1 set done")
    await score_all(page, [10, 20, 30, 40, 50])
    await submit(page)
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    await expect(page.get_by_text("You answered 2 sets.")).to_be_visible()
    response, _ = await campaign.responses()
    assert (await campaign.scores())[0] == dict(zip(first, [71, 93, 17, 4, 41], strict=True))
    assert (response.source, response.viewport) == ("page", "1280x900")
    assert (response.input_kinds, response.changes) == (["mouse"] * 5, [1] * 5)
    assert response.first_touch_ms == sorted(response.first_touch_ms)


async def test_a_campaign_by_keyboard_alone(task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide", "run", "accrue", "go"], items_per_hit=4)
    page = (await visit()).page
    await page.goto(campaign.link)
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await hit_shown(page)
    for _ in range(2):
        await page.keyboard.press("Tab")  # past the instructions
    await expect(sliders(page).first).to_be_focused()
    keys = ["ArrowRight", "ArrowRight", "PageUp", "Tab", "Home", "Tab", "End", "ArrowDown", "4", "PageDown", "PageDown"]
    for key in keys:
        await page.keyboard.press(key)
    await see_scores(page, [61, 0, 99, 40])
    order = await texts(page)
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_focused()
    assert await campaign.scores() == [dict(zip(order, [61, 0, 99, 40], strict=True))]
    (response,) = await campaign.responses()
    assert (response.input_kinds, response.changes) == (["keyboard"] * 4, [3, 1, 2, 2])


async def test_the_next_hit_is_announced_and_starts_at_the_top(page: Page) -> None:
    await page.set_viewport_size({"width": 1280, "height": 500})
    await score_all(page, [1, 2, 3, 4, 5])
    await submit(page)
    await expect(page.locator("#question")).to_be_focused()
    await expect(page.locator("#announcer")).to_have_text("Saved. Next set. 1 set done")
    assert await page.evaluate("scrollY") == 0
    await see_scores(page, [None] * 5)


async def test_there_is_no_thumb_until_a_slider_is_touched(page: Page) -> None:
    await see_scores(page, [None] * 5)
    assert await page.locator(".hint").all_inner_texts() == ["click, tap or use ← →"] * 5
    await expect(sliders(page).first).to_have_attribute("aria-valuetext", "not scored yet")
    await page.keyboard.press("2")  # focus alone is no touch
    await see_scores(page, [None] * 5)
    await click_at(page, 2, 30)
    await see_scores(page, [None, None, 30, None, None])
    await expect(page.locator(".hint:visible")).to_have_count(4)


@pytest.mark.parametrize("score", [0, 1, 49, 50, 51, 100])
async def test_any_score_can_be_chosen_with_one_click(page: Page, score: int) -> None:
    await click_at(page, 0, score)
    await see_scores(page, [score, None, None, None, None])


@pytest.mark.parametrize("key", ["ArrowLeft", "ArrowRight", "PageUp"])
async def test_the_first_arrow_press_places_an_item_at_50(page: Page, key: str) -> None:
    await page.keyboard.press("1")
    await page.keyboard.press(key)
    await see_score(page, 0, 50)


async def test_a_thumb_pressed_beside_its_centre_stays_and_then_follows(page: Page) -> None:
    await click_at(page, 0, 40)
    await click_at(page, 0, 41)
    await see_score(page, 0, 40)
    await grab(page, ".row:first-child .thumb")
    await page.mouse.move(*await point_on_strip(page, 80), steps=3)
    await page.mouse.up()
    await see_score(page, 0, 80)


async def test_a_screen_reader_hears_score_and_rank(page: Page) -> None:
    await score_all(page, [71, 93])
    first = sliders(page).first
    await expect(first).to_have_attribute("aria-valuetext", "71 of 100, second of two so far")
    await click_at(page, 2, 10)
    await click_at(page, 3, 71)
    await click_at(page, 4, 5)
    await expect(first).to_have_attribute("aria-valuetext", "71 of 100, tied second of five")
    order = await texts(page)
    await expect(page.get_by_role("slider", name=order[0])).to_have_value("71")
    await expect(page.get_by_role("group", name="How often is this verb used?")).to_be_visible()
    words = f"Order, highest first: {order[1]}, {order[0]}, same as {order[3]}, {order[2]}, {order[4]}."
    await expect(page.locator("#announcer")).to_have_text(words)


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_row_shows_number_rank_and_ties_only_when_it_has_them(page: Page, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 900})
    number, tie = page.locator(".number").first, page.get_by_label("Score a the same as")
    await see_ranks(page, [""] * 5)
    await expect(page.locator(".number")).to_have_text([""] * 5)
    await expect(page.locator(".same:visible")).to_have_count(0)
    place = "element => [element, ...element.parentElement.children].map(it => it.getBoundingClientRect().x)"
    before = await tie.evaluate(place)
    await click_at(page, 1, 93)
    await expect(tie.locator("option")).to_have_text(["same as", "same as b"])
    await expect(page.locator(".same:visible")).to_have_count(4)
    await tie.select_option("same as b")
    await expect(number).to_have_text("93")
    await see_ranks(page, ["=1st", "=1st", "", "", ""])
    after = await tie.evaluate(place)
    assert [before[k] for k in (0, 1, 3, 4)] == [after[k] for k in (0, 1, 3, 4)]  # only the number itself is new


async def test_ties_are_exact_by_list_key_and_strip(page: Page) -> None:
    await score_all(page, [71, 12])
    await page.get_by_label("Score c the same as").select_option("same as a")
    await page.keyboard.press("4")
    await page.keyboard.press("a")
    await grab(page, ".chip:nth-child(5)")
    x, y = await point_on_strip(page, 71)
    await page.mouse.move(x + 3, y, steps=4)
    await page.mouse.up()
    await see_scores(page, [71, 12, 71, 71, 71])
    await see_ranks(page, ["=1st", "5th", "=1st", "=1st", "=1st"])


async def test_items_are_placed_and_moved_on_the_strip(task: Any, visit: Any) -> None:
    campaign = await task()
    page = (await visit()).page
    await open_hit(page, campaign.link)
    await score_all(page, [20, 40])
    await grab(page, ".chip:nth-child(3)")
    await page.mouse.move(*await point_on_strip(page, 90), steps=4)
    await page.mouse.up()
    await grab(page, ".mark:has-text('a')")
    await page.mouse.move(*await point_on_strip(page, 60), steps=4)
    await page.mouse.up()
    await see_scores(page, [60, 40, 90, None, None])
    await click_at(page, 3, 5)
    await click_at(page, 4, 6)
    await submit(page)
    response, *_ = await campaign.responses()
    assert response.input_kinds == ["strip", "mouse", "strip", "mouse", "mouse"]
    assert response.changes == [2, 1, 1, 1, 1]


async def test_escape_during_a_drag_changes_nothing(page: Page) -> None:
    await score_all(page, [20])
    await grab(page, ".mark:has-text('a')")
    await page.mouse.move(*await point_on_strip(page, 60), steps=4)
    await see_score(page, 0, 60)
    await page.keyboard.press("Escape")
    await see_score(page, 0, 20)
    await page.mouse.up()
    await see_score(page, 0, 20)


async def test_a_click_on_a_mark_goes_to_its_row(page: Page) -> None:
    await page.locator(".chip:nth-child(4)").click()
    await expect(sliders(page).nth(3)).to_be_focused()
    await see_scores(page, [None] * 5)


async def test_marks_that_would_cover_each_other_stand_side_by_side(page: Page) -> None:
    await score_all(page, [50, 50, 51, 99, 100])
    boxes = [await box_of(mark) for mark in await page.locator(".mark").all()]
    places = sorted((box["x"], box["x"] + box["width"]) for box in boxes)
    assert all(left[1] <= right[0] for left, right in pairwise(places))


async def test_a_mark_appears_in_its_place_and_slides_only_to_another(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).link)
    await page.keyboard.press("1")
    moving = """key => {
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
      return document.getAnimations().length;
    }"""
    assert await page.evaluate(moving, "End") == 0
    assert await page.evaluate(moving, "Home") == 1


async def test_buttons_place_and_step(page: Page) -> None:
    raise_b, lower_b = page.get_by_label("Raise b by 1"), page.get_by_label("Lower b by 1")
    await raise_b.click()
    await see_score(page, 1, 50)
    await raise_b.click()
    await lower_b.click()
    await lower_b.click()
    await see_score(page, 1, 49)


async def test_rows_move_only_when_asked_to_and_keep_the_focus(page: Page) -> None:
    before = await texts(page)
    await score_all(page, [71, 93, 17, 4, 41])
    assert await texts(page) == before
    await page.keyboard.press("1")
    await page.locator(".sort").press("Enter")
    await expect(page.locator(".row .text")).to_have_text([before[i] for i in (1, 0, 4, 2, 3)])
    await expect(page.locator(".sort")).to_be_focused()
    assert await page.locator(".row").first.evaluate("row => row.getAnimations().length") == 0
    await page.keyboard.press("1")
    await expect(sliders(page).first).to_be_focused()
    await see_scores(page, [93, 71, 41, 17, 4])


async def test_submit_says_what_is_missing_and_goes_there(page: Page) -> None:
    await score_all(page, [71, 93])
    await click_at(page, 4, 5)
    button = page.locator(SUBMIT)
    await expect(button).to_have_attribute("aria-disabled", "true")
    await expect(page.locator(".status .message")).to_have_text("2 left")
    await expect(page.locator(".chip:visible")).to_have_text(["c", "d"])
    await button.click(force=True)
    await expect(sliders(page).nth(2)).to_be_focused()
    await expect(page.locator("#announcer")).to_have_text("Not scored yet: c, d.")
    await score_all(page, [71, 93, 1, 2])
    await expect(button).to_have_attribute("aria-disabled", "false")


async def test_equal_scores_are_asked_about_once(page: Page) -> None:
    await score_all(page, [50] * 5)
    await page.locator(SUBMIT).click()
    await expect(page.locator(".status")).to_contain_text("All five have the same score. If you mean it, submit again.")
    await expect(page.locator(SUBMIT)).to_have_text("Submit all equal")
    await submit(page)
    await expect(page.locator(".progress")).to_have_text("1 set done")


async def test_the_question_mark_shows_the_keys(page: Page) -> None:
    await page.keyboard.press("?")
    await expect(page.locator(".keys dl")).to_be_visible()
    await page.keyboard.press("?")
    await expect(page.locator(".keys dl")).to_be_hidden()


async def test_without_numbers_only_the_rank_is_shown(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(show_numbers=False)).link)
    await score_all(page, [73, 12])
    assert "73" not in await page.locator("main").inner_text()
    await see_ranks(page, ["1st", "2nd", "", "", ""])


async def test_a_long_text_is_collapsed_until_asked_for(task: Any, visit: Any) -> None:
    story = "Once upon a time there was a sentence that did not want to end. " * 20
    page = (await visit()).page
    await open_hit(page, (await task(texts=[story, "هذا نص قصير", "short"], items_per_hit=3)).link)
    long_text = page.locator(".text", has_text="Once upon")
    lines = "text => Math.round(text.clientHeight / parseFloat(getComputedStyle(text).lineHeight))"
    assert await long_text.evaluate(lines) == 6
    await page.get_by_role("button", name="Show all").click()
    assert await long_text.evaluate(lines) > 6
    arabic = page.locator(".text", has_text="قصير")
    assert await arabic.evaluate("text => getComputedStyle(text).direction") == "rtl"


async def test_an_item_that_looks_like_markup_is_shown_as_it_is(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(texts=["<b>bold</b>", "{{ 7 * 7 }} & more"], items_per_hit=2)).link)
    assert sorted(await texts(page)) == ["<b>bold</b>", "{{ 7 * 7 }} & more"]


async def test_ten_items_fit_on_the_narrowest_screen(task: Any, visit: Any) -> None:
    page = (await visit(viewport={"width": 320, "height": 640})).page
    await open_hit(page, (await task(items_per_hit=10)).link)
    await expect(page.locator(".chip:visible")).to_have_count(10)
    await page.keyboard.press("0")
    await expect(sliders(page).nth(9)).to_be_focused()
    await score_all(page, [50] * 10)
    boxes = [await box_of(mark) for mark in await page.locator(".mark").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 320 for box in boxes)
    assert await page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.parametrize(("width", "height"), [(320, 640), (1280, 500)])
async def test_the_strip_never_covers_the_slider_in_use(task: Any, visit: Any, width: int, height: int) -> None:
    page = (await visit(viewport={"width": width, "height": height})).page
    await open_hit(page, (await task(items_per_hit=10)).link)
    on_top = """input => {
      const box = input.getBoundingClientRect();
      const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
      return input.closest('.row').contains(top);
    }"""
    for key in "0123456789":
        await page.keyboard.press(key)
        assert await page.locator("input:focus").evaluate(on_top), key
    for _ in range(8):
        await page.keyboard.press("Shift+Tab")
        assert await page.locator("input:focus").evaluate(on_top)


async def test_assistive_technology_may_set_a_slider(page: Page) -> None:
    await sliders(page).first.fill("64")
    await see_score(page, 0, 64)


LIFTED = """() => {
  window.lifted = 0;
  const hit = document.querySelector(".hit");
  for (const end of ["pointerup", "pointercancel"]) hit.addEventListener(end, () => { lifted += 1; });
}"""
SCROLLED = "() => { window.scrolled = 0; addEventListener('scrollend', () => { scrolled += 1; }); }"


async def drag_finger(page: Page, *points: tuple[float, float]) -> None:
    """A finger that goes down at the first point and is lifted at the last; the page has heard of it all.

    The browser takes a touch before the page has: only the page can say when it is over.
    """
    await page.evaluate(LIFTED)
    session = await page.context.new_cdp_session(page)
    for kind, point in zip(["touchStart"] + ["touchMove"] * (len(points) - 1), points, strict=True):
        touches = [dict(zip("xy", point, strict=True))]
        await session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": touches})
    await session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    await session.detach()
    await page.wait_for_function("() => lifted > 0")


async def middle_of(page: Page, selector: str) -> tuple[float, float]:
    box = await box_of(page.locator(selector))
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
async def phone(task: Any, visit: Any) -> Page:
    viewport = {"width": 390, "height": 600}
    opened: Page = (await visit(viewport=viewport, has_touch=True, is_mobile=True)).page
    await open_hit(opened, (await task()).link)
    return opened


async def test_on_a_phone_the_hint_is_for_fingers(phone: Page) -> None:
    assert await phone.locator(".hint").all_inner_texts() == ["tap"] * 5


async def test_scrolling_by_touch_changes_no_value(phone: Page) -> None:
    await phone.locator(".row .rail").first.tap(position={"x": 100, "y": 22}, force=True)
    before = [pytest.approx(30, abs=1), None, None, None, None]
    await see_scores(phone, before)
    for selector in (".row:nth-child(2) .track", ".row:first-child .thumb"):
        await phone.evaluate("scrollTo(0, 0)")
        x, y = await middle_of(phone, selector)
        await phone.evaluate(SCROLLED)
        await drag_finger(phone, *((x - step, y - 10 * step) for step in range(10)))
        await phone.wait_for_function("() => scrolled > 0 && scrollY > 60")
        await see_scores(phone, before)


async def test_a_finger_that_cannot_scroll_further_changes_no_value(phone: Page) -> None:
    await phone.set_viewport_size({"width": 390, "height": 1200})
    x, y = await middle_of(phone, ".row:nth-child(2) .track")
    await drag_finger(phone, *((x - step, y - 10 * step) for step in range(10)))
    await see_scores(phone, [None] * 5)


async def test_touch_places_by_a_tap_and_by_a_drag_sideways(phone: Page) -> None:
    await phone.locator(".row .rail").first.tap(position={"x": 10, "y": 22}, force=True)
    x, y = await middle_of(phone, ".row:nth-child(2) .track")
    await drag_finger(phone, *((x - 60 + 10 * step, y) for step in range(7)))
    await see_scores(phone, [pytest.approx(3, abs=1), pytest.approx(50, abs=1), None, None, None])


async def test_touch_drags_a_mark_onto_the_strip(phone: Page) -> None:
    x, y = await middle_of(phone, ".chip:first-child")
    await drag_finger(phone, *((x + (195 - x) * step / 5, y - 8 * step) for step in range(6)))
    await see_score(phone, 0, pytest.approx(50, abs=1))


async def test_on_a_phone_targets_are_large_and_strip_and_button_stay_at_the_bottom(phone: Page) -> None:
    for selector in (".track", ".steps button", ".steps select", SUBMIT):
        box = await phone.locator(selector).first.bounding_box()
        assert box
        assert box["height"] >= 44, selector
    for _ in range(2):
        box = await phone.locator(SUBMIT).bounding_box()
        assert box
        assert box["y"] + box["height"] <= 600
        await expect(phone.locator(".strip")).to_be_in_viewport()
        await phone.evaluate("scrollTo(0, 9999)")
    assert re.fullmatch(r"390x\d+", await phone.locator("input[name=viewport]").input_value())
