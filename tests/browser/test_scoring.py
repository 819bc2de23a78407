"""Scoring one HIT after another by mouse, keyboard, strip, buttons and touch."""

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
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
    grab,
    item_texts,
    open_hit,
    point_on_strip,
    press_submit,
    score_all,
    sliders,
    start_by_link,
    wait_for_hit,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
# Whether a row, or what is focused in it, is seen where its slider is.
UNCOVERED = """element => {
  const row = element.closest('.row');
  const box = row.querySelector('input').getBoundingClientRect();
  return row.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
}"""


@pytest.fixture
async def page(task: Any, visit: Any) -> Page:
    """A fresh HIT of five verbs."""
    opened: Page = (await visit(reduced_motion="reduce")).page
    await open_hit(opened, (await task()).prolific())
    return opened


async def test_a_campaign_by_mouse_to_the_end(task: Any, visit: Any) -> None:
    campaign = await task()
    page = (await visit()).page
    await start_by_link(page, campaign.link)
    first = await item_texts(page)
    await score_all(page, [71, 93, 17, 4, 41])
    await expect_ranks(page, ["2nd", "1st", "4th", "5th", "3rd"])
    await press_submit(page)
    await expect(page.locator(".progress")).to_have_text("1 task done")
    await score_all(page, [10, 20, 30, 40, 50])
    await press_submit(page)
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    await expect(page.get_by_text("You answered 2 tasks.")).to_be_visible()
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
    await wait_for_hit(page)
    for _ in range(2):
        await page.keyboard.press("Tab")  # past the instructions
    await expect(sliders(page).first).to_be_focused()
    keys = ["ArrowRight", "ArrowRight", "PageUp", "Tab", "Home", "Tab", "End", "ArrowDown", "d", "PageDown", "PageDown"]
    for key in keys:
        await page.keyboard.press(key)
    await expect_scores(page, [61, 0, 99, 40])
    order = await item_texts(page)
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_focused()
    assert await campaign.scores() == [dict(zip(order, [61, 0, 99, 40], strict=True))]
    (response,) = await campaign.responses()
    assert (response.input_kinds, response.changes) == (["keyboard"] * 4, [3, 1, 2, 2])


async def test_the_next_hit_is_announced_and_starts_at_the_top(page: Page) -> None:
    await page.set_viewport_size({"width": 1280, "height": 500})
    await score_all(page, [1, 2, 3, 4, 5])
    await press_submit(page)
    await expect(page.locator("#question")).to_be_focused()
    await expect(page.locator("#announcer")).to_have_text("Saved. Next task. 1 task done")
    assert await page.evaluate("scrollY") == 0
    await expect_scores(page, [None] * 5)


async def test_there_is_no_thumb_until_a_slider_is_touched(page: Page) -> None:
    await expect_scores(page, [None] * 5)
    assert await page.locator(".hint").all_inner_texts() == ["click, tap or use ← →", "", "", "", ""]
    await expect(sliders(page).first).to_have_attribute("aria-valuetext", "not scored yet")
    await page.keyboard.press("b")  # focus alone is no touch
    await expect_scores(page, [None] * 5)
    await click_at(page, 2, 30)
    await expect_scores(page, [None, None, 30, None, None])
    await expect(page.locator(".hint:visible")).to_have_count(1)


async def test_any_score_can_be_chosen_with_one_click(task: Any, visit: Any) -> None:
    page = (await visit(reduced_motion="reduce")).page
    await open_hit(page, (await task(items_per_hit=6)).prolific())
    chosen = [0, 1, 49, 50, 51, 100]
    for row, score in enumerate(chosen):
        await click_at(page, row, score)
        await expect_scores(page, chosen[: row + 1] + [None] * (5 - row))


async def test_the_first_arrow_press_places_an_item_at_50(page: Page) -> None:
    for row, key in enumerate(["ArrowLeft", "ArrowRight", "PageUp"]):
        await page.keyboard.press("abc"[row])
        await page.keyboard.press(key)
        await expect_score(page, row, 50)


async def test_a_thumb_pressed_beside_its_centre_stays_and_then_follows(page: Page) -> None:
    await click_at(page, 0, 40)
    await click_at(page, 0, 41)
    await expect_score(page, 0, 40)
    await grab(page, ".row:first-child .thumb")
    await page.mouse.move(*await point_on_strip(page, 80), steps=3)
    await page.mouse.up()
    await expect_score(page, 0, 80)


async def test_a_screen_reader_hears_score_and_rank(page: Page) -> None:
    await score_all(page, [71, 93])
    first = sliders(page).first
    await expect(first).to_have_attribute("aria-valuetext", "71 of 100, second of two so far")
    await click_at(page, 2, 10)
    await click_at(page, 3, 71)
    await click_at(page, 4, 5)
    await expect(first).to_have_attribute("aria-valuetext", "71 of 100, tied second of five")
    order = await item_texts(page)
    await expect(page.get_by_role("slider", name=order[0])).to_have_value("71")
    await expect(page.get_by_role("group", name="How often is this verb used?")).to_be_visible()
    words = f"Order, highest first: {order[1]}, {order[0]}, same as {order[3]}, {order[2]}, {order[4]}."
    await expect(page.locator("#announcer")).to_have_text(words)


async def test_an_announced_sentence_ends_once_and_is_gone_with_its_set(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(["Never again.", "Yes!"] * 2, items_per_hit=2)).prolific())
    await score_all(page, [10, 90])
    low, high = await item_texts(page)
    await expect(page.locator("#announcer")).to_have_text(f"Order, highest first: {high}, {low}")
    await page.evaluate(
        "window.heard = []; new MutationObserver(() => heard.push(announcer.textContent))"
        ".observe(document.getElementById('announcer'), { childList: true })"
    )
    await press_submit(page)
    await expect(page.locator("#announcer")).to_have_text("Saved. Next task. 1 task done")
    assert await page.evaluate("heard[0]") == ""


@pytest.mark.parametrize("width", [1280, 390])
async def test_the_header_keeps_its_height_from_the_first_set_to_the_second(task: Any, visit: Any, width: int) -> None:
    page = (await visit(viewport={"width": width, "height": 844})).page
    campaign = await task(minutes_per_hit=1.5, pay="£0.25 per set", hits_per_annotator=6, judgments_per_item=2)
    await open_hit(page, campaign.prolific())
    effort, progress = [page.locator(selector) for selector in (".effort", ".progress")]
    if width == 390:  # below the name, from the same edge
        assert [(await bounding_box(part))["x"] for part in (effort, progress)] == [16.0, 16.0]
    before = (await bounding_box(page.locator(".masthead")))["height"]
    await score_all(page, [1, 2, 3, 4, 5])
    await press_submit(page)
    await expect(page.get_by_role("button", name="Change my last answers")).to_be_visible()
    if width == 1280:
        assert (await bounding_box(page.locator(".masthead")))["height"] == before


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_row_shows_number_rank_and_ties_only_when_it_has_them(page: Page, width: int) -> None:
    await page.set_viewport_size({"width": width, "height": 900})
    number, tie = page.locator(".number").first, page.get_by_label("Score a the same as")
    await expect_ranks(page, [""] * 5)
    await expect(page.locator(".number")).to_have_text([""] * 5)
    await expect(page.locator(":is(.same, .clear):visible")).to_have_count(0)
    place = "it => [...it.parentElement.querySelectorAll('button, select')].map(it => it.getBoundingClientRect().x)"
    before = await tie.evaluate(place)
    await click_at(page, 1, 93)
    await expect(page.locator(".same:visible")).to_have_count(int(width == 390))  # b's own has only "no score"
    await click_at(page, 2, 10)
    await expect(tie.locator("option")).to_have_text(["same as", "same as b", "same as c"])
    await expect(page.locator(".same:visible")).to_have_count(5)
    await tie.select_option("same as b")
    await expect(number).to_have_text("93")
    await expect_ranks(page, ["=1st", "=1st", "3rd", "", ""])
    assert await tie.evaluate(place) == before


async def test_ties_are_exact_by_list_key_and_strip(page: Page) -> None:
    await score_all(page, [71, 12])
    await page.get_by_label("Score c the same as").select_option("same as a")
    await page.keyboard.press("d")
    await page.keyboard.press("Shift+A")
    await grab(page, ".chip:nth-child(5)")
    x, y = await point_on_strip(page, 71)
    await page.mouse.move(x + 3, y, steps=4)
    await page.mouse.up()
    await expect_scores(page, [71, 12, 71, 71, 71])
    await expect_ranks(page, ["=1st", "5th", "=1st", "=1st", "=1st"])


async def test_items_are_placed_and_moved_on_the_strip(task: Any, visit: Any) -> None:
    campaign = await task()
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await score_all(page, [20, 40])
    await grab(page, ".chip:nth-child(3)")
    await page.mouse.move(*await point_on_strip(page, 90), steps=4)
    await page.mouse.up()
    await grab(page, ".mark:has-text('a')")
    await page.mouse.move(*await point_on_strip(page, 60), steps=4)
    await page.mouse.up()
    await expect_scores(page, [60, 40, 90, None, None])
    await click_at(page, 3, 5)
    await click_at(page, 4, 6)
    await press_submit(page)
    response, *_ = await campaign.responses()
    assert response.input_kinds == ["strip", "mouse", "strip", "mouse", "mouse"]
    assert response.changes == [2, 1, 1, 1, 1]


async def test_escape_during_a_drag_changes_nothing(page: Page) -> None:
    await score_all(page, [20])
    await grab(page, ".mark:has-text('a')")
    await page.mouse.move(*await point_on_strip(page, 60), steps=4)
    await expect_score(page, 0, 60)
    await page.keyboard.press("Escape")
    await expect_score(page, 0, 20)
    await page.mouse.up()
    await expect_score(page, 0, 20)


async def test_a_click_on_a_mark_goes_to_its_row(page: Page) -> None:
    await page.locator(".chip:nth-child(4)").click()
    await expect(sliders(page).nth(3)).to_be_focused()
    await expect_scores(page, [None] * 5)


async def test_marks_that_would_cover_each_other_stand_side_by_side(page: Page) -> None:
    await score_all(page, [50, 50, 51, 99, 100])
    boxes = [await bounding_box(mark) for mark in await page.locator(".mark").all()]
    places = sorted((box["x"], box["x"] + box["width"]) for box in boxes)
    assert all(left[1] <= right[0] for left, right in pairwise(places))


# Presses a key and stops everything that moves then half-way.
HALF_WAY = """key => {
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const moving = document.getAnimations();
  for (const animation of moving) { animation.pause(); animation.currentTime = 75; }
  return moving.length;
}"""
# Where along the rail are: the centre of the mark, the upper and the lower end of its line, the foot.
TIES = """() => {
  const rail = document.querySelector(".strip > .rail").getBoundingClientRect();
  const along = (x) => 100 * (x - rail.x) / rail.width;
  const [line] = document.querySelectorAll(".leads line[data-scored]");
  const [foot] = document.querySelectorAll(".leads circle[data-scored]");
  const mark = document.querySelector(".mark[data-scored]").getBoundingClientRect();
  const at = (x, y) => along(new DOMPoint(x, y).matrixTransform(line.getScreenCTM()).x);
  const unit = line.x2.baseVal.value;
  const middle = foot.getBoundingClientRect();
  return [along(mark.x + mark.width / 2), at(0, 0), at(unit, 1), along(middle.x + middle.width / 2)];
}"""


async def test_a_mark_appears_in_its_place_and_slides_only_to_another(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    await page.keyboard.press("a")
    assert await page.evaluate(HALF_WAY, "End") == 0
    assert await page.evaluate(HALF_WAY, "Home") == 3  # the mark, its line and the foot of it


async def test_the_line_of_a_mark_moves_with_it(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    await page.keyboard.press("a")
    await page.keyboard.press("End")
    await page.evaluate(HALF_WAY, "Home")
    mark, upper, lower, foot = await page.evaluate(TIES)
    assert 5 < mark < 95
    assert upper == pytest.approx(mark, abs=0.3)
    assert lower == pytest.approx(foot, abs=0.3)


async def test_buttons_place_and_step(page: Page) -> None:
    raise_b, lower_b = page.get_by_label("Raise b by 1"), page.get_by_label("Lower b by 1")
    await raise_b.click()
    await expect_score(page, 1, 50)
    await raise_b.click()
    await lower_b.click()
    await lower_b.click()
    await expect_score(page, 1, 49)


async def test_rows_move_only_when_asked_to_and_keep_the_focus(page: Page) -> None:
    before = await item_texts(page)
    await score_all(page, [71, 93, 17, 4, 41])
    assert await item_texts(page) == before
    await page.keyboard.press("a")
    await page.locator(".sort").press("Enter")
    await expect(page.locator(".row .text")).to_have_text([before[i] for i in (1, 0, 4, 2, 3)])
    await expect(page.locator(".sort")).to_be_focused()
    assert await page.locator(".row").first.evaluate("row => row.getAnimations().length") == 0
    await page.keyboard.press("b")  # a letter stays with its item
    await expect(sliders(page).first).to_be_focused()
    await expect_scores(page, [93, 71, 41, 17, 4])


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
    await press_submit(page)
    await expect(page.locator(".progress")).to_have_text("1 task done")


async def test_the_question_mark_shows_the_keys(page: Page) -> None:
    for close in ("?", "Escape"):
        await page.keyboard.press("?")
        await expect(page.locator(".keys dl")).to_be_visible()
        await page.keyboard.press(close)
        await expect(page.locator(".keys dl")).to_be_hidden()


async def test_showing_the_keys_pushes_nothing_off_the_screen(page: Page) -> None:
    for height in (900, 720, 500):
        await page.set_viewport_size({"width": 1280, "height": height})
        await page.keyboard.press("?")
        for shown in (page.locator(".keys dl"), page.locator(SUBMIT), page.locator(".row").last):
            await expect(shown).to_be_in_viewport(ratio=1)
        await page.keyboard.press("?")
        await expect(page.locator(".keys dl")).to_be_hidden()


async def test_shift_makes_an_arrow_a_step_of_ten(page: Page) -> None:
    await click_at(page, 0, 40)
    for key, score in (
        ("Shift+ArrowRight", 50),
        ("Shift+ArrowUp", 60),
        ("Shift+ArrowLeft", 50),
        ("Shift+ArrowDown", 40),
    ):
        await page.keyboard.press(key)
        await expect_score(page, 0, score)
    await page.keyboard.press("b")
    await page.keyboard.press("Shift+ArrowRight")
    await expect_score(page, 1, 50)


@pytest.fixture
async def still(task: Any, visit: Any) -> tuple[Page, Any]:
    """A fresh HIT whose clock stands still."""
    page: Page = (await visit()).page
    await page.clock.install(time=NOON)
    await page.clock.pause_at(NOON + timedelta(seconds=1))
    campaign = await task()
    await open_hit(page, campaign.prolific())
    return page, campaign


async def test_a_number_that_is_typed_scores_the_row_in_focus(still: Any) -> None:
    page, campaign = still
    for letter, number in zip("abcde", ["72", "100", "0", "7", "45"], strict=True):
        await page.keyboard.press(letter)
        for digit in number:
            await page.keyboard.press(digit)
    await expect_scores(page, [72, 100, 0, 7, 45])
    await press_submit(page)
    (response,) = await campaign.responses()
    assert (response.changes, response.input_kinds) == ([1] * 5, ["keyboard"] * 5)


async def test_a_digit_begins_another_number_after_a_pause_another_key_or_a_hundred(still: Any) -> None:
    page, _ = still
    await page.keyboard.press("a")
    await page.keyboard.press("7")
    await page.clock.fast_forward(2000)
    await page.keyboard.press("2")
    await expect_score(page, 0, 2)
    for keys, score in (("ArrowRight", 3), ("6", 6), ("5", 65), ("4", 4), ("0", 40), ("Backspace", 4), ("1", 41)):
        await page.keyboard.press(keys)
        await expect_score(page, 0, score)
    await page.keyboard.press("b")
    await page.keyboard.press("a")
    await page.keyboard.press("9")
    await expect_score(page, 0, 9)


async def test_a_number_typed_where_no_row_has_the_focus_scores_the_first_without_a_score(still: Any) -> None:
    page, _ = still
    await page.keyboard.type("72")
    await expect_scores(page, [72, None, None, None, None])
    await expect(sliders(page).first).to_be_focused()
    await page.locator("#question").focus()
    await page.keyboard.type("9")
    await expect_scores(page, [72, 9, None, None, None])
    await expect(sliders(page).nth(1)).to_be_focused()


async def test_a_number_typed_after_a_press_on_a_rows_button_is_that_rows(page: Page) -> None:
    await page.get_by_label("Raise c by 1").click()
    await page.keyboard.type("30")
    await expect_scores(page, [None, None, 30, None, None])


async def test_a_digit_changes_nothing_once_all_rows_have_scores(page: Page) -> None:
    await score_all(page, [1, 2, 3, 4, 5])
    await page.locator("#question").focus()
    await page.keyboard.press("7")
    await expect_scores(page, [1, 2, 3, 4, 5])


async def test_keys_pressed_in_a_text_field_are_its_own(page: Page) -> None:
    for field in ("<input>", "<textarea></textarea>", "<p contenteditable>"):
        await page.evaluate("field => document.querySelector('main').insertAdjacentHTML('afterbegin', field)", field)
        await page.locator("main > :first-child").focus()
        await page.keyboard.type("7a?")
        await expect_scores(page, [None] * 5)
        await expect(page.locator("main > :first-child")).to_be_focused()
        await expect(page.locator(".keys dl")).to_be_hidden()


async def test_a_row_can_be_cleared(page: Page) -> None:
    await score_all(page, [71, 93, 17, 4, 41])
    for cleared in (
        lambda: page.keyboard.press("Delete"),
        lambda: page.keyboard.press("Backspace"),
        lambda: page.get_by_label("Clear b").click(),
        lambda: page.get_by_label("Score b the same as").select_option("no score"),
    ):
        await expect_ranks(page, ["2nd", "1st", "4th", "5th", "3rd"])
        await page.keyboard.press("b")
        await cleared()
        await expect_scores(page, [71, None, 17, 4, 41])
        await expect_ranks(page, ["1st", "", "3rd", "4th", "2nd"])
        await expect(page.locator(".mark:visible")).to_have_count(4)
        await expect(page.locator(".status .message")).to_have_text("1 left")
        await expect(page.locator(SUBMIT)).to_have_attribute("aria-disabled", "true")
        await expect(sliders(page).nth(1)).to_have_attribute("aria-valuetext", "not scored yet")
        await click_at(page, 1, 93)


async def test_what_was_cleared_stays_cleared_after_a_reload(page: Page) -> None:
    await score_all(page, [71, 93])
    await page.keyboard.press("a")
    async with page.expect_response(lambda response: response.request.method == "PUT"):
        await page.keyboard.press("Delete")
    await page.reload()
    await wait_for_hit(page)
    await expect_scores(page, [None, 93, None, None, None])


QUIET = ":is(.steps button, .steps select)"
OPACITIES = f"row => [...row.querySelectorAll('{QUIET}')].map(it => Number(getComputedStyle(it).opacity))"


async def test_steps_and_ties_are_quiet_until_a_row_is_pointed_at_or_focused(page: Page) -> None:
    await score_all(page, [71, 93])
    rows = page.locator(".row")
    await page.mouse.move(0, 0)
    assert set(await rows.nth(0).evaluate(OPACITIES)) == {0}
    assert set(await rows.nth(1).evaluate(OPACITIES)) == {1}  # has the focus
    await rows.nth(0).hover()
    assert set(await rows.nth(0).evaluate(OPACITIES)) == {1}


async def test_on_the_last_set_nothing_is_promised_after_it(task: Any, visit: Any) -> None:
    campaign = await task(repeat_items=False, judgments_per_item=2)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    for words in ("Submit and next", "Submit"):
        await expect(page.locator(SUBMIT)).to_have_text(words)
        await score_all(page, [1, 2, 3, 4, 5])
        await press_submit(page)
    await expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()


LAST_ITEM = "This is one of the last items, so it comes alone."


async def test_an_item_that_comes_alone_is_explained_and_submitted_at_once(task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide"])
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await expect(page.get_by_text(LAST_ITEM)).to_be_visible()
    await expect(page.get_by_role("button", name="Sort rows by score")).to_be_hidden()
    await score_all(page, [71])
    await expect_ranks(page, [""])
    await expect(sliders(page)).to_have_attribute("aria-valuetext", "71 of 100")
    await press_submit(page)
    assert await campaign.scores() == [{"abide": 71}]


async def test_items_in_company_are_not_called_the_last(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(texts=["abide", "run"])).prolific())
    await expect(page.get_by_text(LAST_ITEM)).to_have_count(0)


async def test_the_hint_is_there_for_the_first_two_sets(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(judgments_per_item=2)).prolific())
    for hints in (1, 1, 0):
        await expect(page.locator(".hint:visible")).to_have_count(hints)
        await score_all(page, [1, 2, 3, 4, 5])
        await press_submit(page)


async def test_without_numbers_only_the_rank_is_shown(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(show_numbers=False)).prolific())
    await score_all(page, [73, 12])
    assert "73" not in await page.locator("main").inner_text()
    await expect_ranks(page, ["1st", "2nd", "", "", ""])


LINES = "text => Math.round(text.clientHeight / parseFloat(getComputedStyle(text).lineHeight))"
STORY = "Once upon a time there was a sentence that did not want to end. " * 30


async def test_a_long_text_is_folded_until_asked_for_and_the_choice_is_kept(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(texts=[f"{k} {STORY}" for k in range(4)], items_per_hit=2)).prolific())
    text, button = page.locator(".text").first, page.locator(".show-all").first
    assert await text.evaluate(LINES) == 10
    await button.click()
    assert await text.evaluate(LINES) > 12
    await expect(button).to_have_text("Show less")
    await expect(button).to_be_focused()
    assert await page.locator(".text").nth(1).evaluate(LINES) == 10
    await score_all(page, [1, 2])
    await press_submit(page)
    await expect(page.locator(".show-all")).to_have_text(["Show less", "Show less"])
    await button.click()
    assert await text.evaluate(LINES) == 10
    await page.reload()
    await expect(page.locator(".show-all")).to_have_text(["Show all", "Show all"])


async def test_a_text_of_up_to_twelve_lines_is_shown_whole(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(
        page, (await task(texts=["line\n" * 11 + "line", "line\n" * 12 + "line"], items_per_hit=2)).prolific()
    )
    twelve, thirteen = [
        page.locator(".row", has_text="line").filter(has=page.locator(f".show-all{it}"))
        for it in ("[hidden]", ":not([hidden])")
    ]
    assert await twelve.locator(".text").evaluate(LINES) == 12
    assert await thirteen.locator(".text").evaluate(LINES) == 10


async def test_words_of_another_direction_have_it(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(texts=["هذا نص قصير", "short"], items_per_hit=2)).prolific())
    arabic = page.locator(".text", has_text="قصير")
    assert await arabic.evaluate("text => getComputedStyle(text).direction") == "rtl"


async def test_an_item_that_looks_like_markup_is_shown_as_it_is(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(texts=["<b>bold</b>", "{{ 7 * 7 }} & more"], items_per_hit=2)).prolific())
    assert sorted(await item_texts(page)) == ["<b>bold</b>", "{{ 7 * 7 }} & more"]


async def test_ten_items_fit_on_the_narrowest_screen(task: Any, visit: Any) -> None:
    page = (await visit(viewport={"width": 320, "height": 568})).page
    await open_hit(page, (await task(items_per_hit=10)).prolific())
    await page.keyboard.press("j")
    await expect(sliders(page).nth(9)).to_be_focused()
    dock = page.locator(".dock")
    for left in (10, 5, 0):
        await score_all(page, [50] * (10 - left))
        await expect(page.locator(".status .message")).to_have_text(f"{left} left" if left else "")
        assert (await bounding_box(dock))["height"] < 568 / 5
    boxes = [await bounding_box(mark) for mark in await page.locator(".mark").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 320 for box in boxes)
    assert await page.evaluate("document.documentElement.scrollWidth") == 320


# How many lines every word of the items takes up.
LINES_OF_WORDS = """() => [...document.querySelectorAll(".text")].flatMap((text) => {
  const words = text.firstChild;
  return [...words.data.matchAll(/\\S+/g)].map((word) => {
    const range = document.createRange();
    range.setStart(words, word.index);
    range.setEnd(words, word.index + word[0].length);
    return new Set([...range.getClientRects()].map((box) => Math.round(box.y))).size;
  });
})"""


@pytest.mark.parametrize("width", [320, 390, 660, 1280])
async def test_words_do_not_break_inside(task: Any, visit: Any, width: int) -> None:
    page = (await visit(viewport={"width": width, "height": 640})).page
    verbs = ["internationalise", "misunderstand", "go on and on", "abide", "overcompensated"]
    await open_hit(page, (await task(texts=verbs)).prolific())
    await score_all(page, [100] * 5)
    assert set(await page.evaluate(LINES_OF_WORDS)) == {1}
    assert await page.evaluate("document.documentElement.scrollWidth") == width


async def test_a_word_longer_than_the_screen_does_not_widen_the_page(task: Any, visit: Any) -> None:
    page = (await visit(viewport={"width": 320, "height": 640})).page
    await open_hit(page, (await task(texts=["https://example.org/" + "x" * 80, "go"], items_per_hit=2)).prolific())
    assert await page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.parametrize(("width", "height"), [(320, 640), (1280, 500)])
async def test_the_strip_never_covers_the_slider_in_use(task: Any, visit: Any, width: int, height: int) -> None:
    page = (await visit(viewport={"width": width, "height": height})).page
    await open_hit(page, (await task(items_per_hit=10)).prolific())
    for key in "abcdefghij":
        await page.keyboard.press(key)
        assert await page.locator("input:focus").evaluate(UNCOVERED), key
    for _ in range(8):
        await page.keyboard.press("Shift+Tab")
        assert await page.locator("input:focus").evaluate(UNCOVERED)


async def test_assistive_technology_may_set_a_slider(page: Page) -> None:
    await sliders(page).first.fill("64")
    await expect_score(page, 0, 64)


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
    box = await bounding_box(page.locator(selector))
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture
async def phone(task: Any, visit: Any) -> Page:
    viewport = {"width": 390, "height": 600}
    opened: Page = (await visit(viewport=viewport, has_touch=True, is_mobile=True)).page
    await open_hit(opened, (await task()).prolific())
    return opened


async def test_on_a_phone_the_hint_is_for_fingers_and_nothing_waits_for_a_pointer(phone: Page) -> None:
    assert await phone.locator(".hint").all_inner_texts() == ["tap", "", "", "", ""]
    assert set(await phone.locator(".row").first.evaluate(OPACITIES)) == {1}


async def test_scrolling_by_touch_changes_no_value(phone: Page) -> None:
    await phone.locator(".row .rail").first.tap(position={"x": 100, "y": 22}, force=True)
    before = [pytest.approx(30, abs=1), None, None, None, None]
    await expect_scores(phone, before)
    for selector in (".row:nth-child(2) .track", ".row:first-child .thumb"):
        await phone.evaluate("scrollTo(0, 0)")
        x, y = await middle_of(phone, selector)
        await phone.evaluate(SCROLLED)
        await drag_finger(phone, *((x - step, y - 10 * step) for step in range(10)))
        await phone.wait_for_function("() => scrolled > 0 && scrollY > 60")
        await expect_scores(phone, before)


async def test_a_finger_that_cannot_scroll_further_changes_no_value(phone: Page) -> None:
    await phone.set_viewport_size({"width": 390, "height": 1200})
    x, y = await middle_of(phone, ".row:nth-child(2) .track")
    await drag_finger(phone, *((x - step, y - 10 * step) for step in range(10)))
    await expect_scores(phone, [None] * 5)


async def test_touch_places_by_a_tap_and_by_a_drag_sideways(phone: Page) -> None:
    await phone.locator(".row .rail").first.tap(position={"x": 10, "y": 22}, force=True)
    x, y = await middle_of(phone, ".row:nth-child(2) .track")
    await drag_finger(phone, *((x - 60 + 10 * step, y) for step in range(7)))
    await expect_scores(phone, [pytest.approx(3, abs=1), pytest.approx(50, abs=1), None, None, None])


async def test_touch_drags_a_mark_onto_the_strip(phone: Page) -> None:
    x, y = await middle_of(phone, ".chip:first-child")
    await drag_finger(phone, *((x + (195 - x) * step / 5, y - 8 * step) for step in range(6)))
    await expect_score(phone, 0, pytest.approx(50, abs=1))


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
