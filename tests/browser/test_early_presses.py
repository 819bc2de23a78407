"""A press that was meant for the task before answers nothing on the next one, and the page says so."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import SUBMIT, click_at, open_hit, violations, wait_for_hit
from tests.browser.hasty import END_MOMENT

IGNORED = "This page had only just appeared, so your press was ignored. Please press again."
SETTLING_MS = 200
PAIR: dict[str, Any] = {
    "design": "pairwise", "question": "Which verb is used more often?", "judgments_per_item": 9,
    "design_settings": {"submit_on_choice": True},
}  # fmt: skip


async def paired(task: Any, visit: Any, early_presses: str = "until told", **options: Any) -> tuple[Any, Page]:
    campaign = await task(texts=["abide", "run"], **PAIR)
    page: Page = (await visit(early_presses=early_presses, **options)).page
    await open_hit(page, campaign.prolific())
    return campaign, page


async def end_moment(page: Page) -> None:
    """Let the page take presses again, once an answer that it may have sent by mistake would be stored."""
    await page.wait_for_timeout(SETTLING_MS)
    await page.evaluate(END_MOMENT)
    await page.wait_for_timeout(SETTLING_MS)


async def sets_done(page: Page, count: int) -> None:
    await expect(page.locator(".progress")).to_have_text(re.compile(f"^{count} tasks? done"))


async def choose(page: Page, way: str) -> None:
    """Choose at once, without waiting for anything: as fast as a second press."""
    if way == "arrow":
        await page.keyboard.press("ArrowRight")
        return
    box = await page.locator(".choice").last.bounding_box()
    assert box
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    await (page.mouse.click(x, y) if way == "mouse" else page.touchscreen.tap(x, y))


@pytest.mark.parametrize("way", ["mouse", "touch", "arrow"])
async def test_a_second_press_answers_no_task_that_nobody_has_seen(task: Any, visit: Any, way: str) -> None:
    campaign, page = await paired(task, visit, has_touch=way == "touch")
    await choose(page, way)
    await sets_done(page, 1)
    await choose(page, way)
    await expect(page.locator(".status .message")).to_have_text(IGNORED)
    await expect(page.locator("#announcer")).to_have_text(IGNORED)
    await end_moment(page)
    await expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    assert len(await campaign.responses()) == 1
    assert await violations(page) == ""
    await choose(page, way)
    await sets_done(page, 2)


async def test_a_double_click_answers_one_task(task: Any, visit: Any) -> None:
    campaign, page = await paired(task, visit)
    for done in (1, 2, 3):
        box = await page.locator(".choice").first.bounding_box()
        assert box
        await page.mouse.dblclick(box["x"] + 40, box["y"] + 20, delay=120)
        await sets_done(page, done)
        await end_moment(page)
    assert len(await campaign.responses()) == 3


async def test_what_was_pressed_too_early_does_nothing_when_it_is_let_go_later(task: Any, visit: Any) -> None:
    campaign, page = await paired(task, visit)
    await choose(page, "arrow")
    await sets_done(page, 1)
    box = await page.locator(".choice").first.bounding_box()
    assert box
    await page.mouse.move(box["x"] + 40, box["y"] + 20)
    await page.mouse.down()
    await end_moment(page)
    await page.mouse.up()
    await page.wait_for_timeout(200)
    await expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    assert len(await campaign.responses()) == 1


async def test_a_key_that_is_held_answers_one_task(task: Any, visit: Any) -> None:
    campaign, page = await paired(task, visit)
    await page.keyboard.down("ArrowRight")
    await sets_done(page, 1)
    for number in range(12):
        await page.keyboard.down("ArrowRight")  # the same key again is a repetition
        await page.wait_for_timeout(20)
        if number == 5:
            await end_moment(page)
    await page.wait_for_timeout(SETTLING_MS)
    await page.keyboard.up("ArrowRight")
    assert len(await campaign.responses()) == 1
    await page.keyboard.press("ArrowRight")
    await sets_done(page, 2)


async def test_after_a_moment_the_page_takes_presses_by_itself(task: Any, visit: Any) -> None:
    _, page = await paired(task, visit, early_presses="as usual")
    await choose(page, "arrow")
    await sets_done(page, 1)
    await page.wait_for_timeout(1_000)
    await choose(page, "arrow")
    await sets_done(page, 2)


async def test_text_can_be_marked_and_the_page_be_left_at_once(task: Any, visit: Any) -> None:
    _, page = await paired(task, visit)
    await choose(page, "arrow")
    await sets_done(page, 1)
    await page.locator(".side .text").first.dblclick()
    await page.keyboard.press("Tab")
    assert await page.evaluate("getSelection().toString().trim()") in ("abide", "run")
    assert await page.locator(".status .message").inner_text() != IGNORED


DESIGNS: dict[str, dict[str, Any]] = {
    "slider": {"items_per_hit": 2},
    "ordinal": {"items_per_hit": 2, "design_settings": {"labels": ["low", "high"]}},
    "categories": {"items_per_hit": 1, "design_settings": {"labels": ["low", "high"]}},
    "magnitude": {"items_per_hit": 1},
    "ranking": {"items_per_hit": 2},
    "best_worst": {"items_per_hit": 4},
}
KEYS = {
    "slider": ["a", "7", "b", "3"],
    "ordinal": ["1", "2"],
    "categories": ["a"],
    "magnitude": [],
    "ranking": ["a", "b"],
    "best_worst": ["a", "Shift+b"],
}


@pytest.mark.parametrize("design", DESIGNS)
async def test_keys_and_ctrl_enter_of_the_task_before_enter_nothing_in_any_design(
    task: Any, visit: Any, design: str
) -> None:
    campaign = await task(judgments_per_item=9, design=design, **DESIGNS[design])
    page = (await visit(early_presses="until told")).page
    await open_hit(page, campaign.prolific())
    if design == "magnitude":
        await page.locator(".judged input").fill("5")
    for key in (*KEYS[design], "Control+Enter"):
        await page.keyboard.press(key)
    await sets_done(page, 1)
    for key in (*KEYS[design], "Control+Enter"):
        await page.keyboard.press(key)
    await end_moment(page)
    assert len(await campaign.responses()) == 1
    left = page.locator(".answer input:checked, .answer .row[data-scored], .answer .row[data-placed]")
    await expect(left).to_have_count(0)


async def test_a_double_click_on_submit_and_next_enters_nothing_in_the_next_set(task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide", "run"], items_per_hit=2, judgments_per_item=9)
    page = (await visit(early_presses="until told")).page
    await open_hit(page, campaign.prolific())
    await click_at(page, 0, 20)
    await click_at(page, 1, 70)
    await page.locator(SUBMIT).dblclick(delay=100)
    await sets_done(page, 1)
    await end_moment(page)
    await expect(page.locator(".row[data-scored]")).to_have_count(0)
    assert len(await campaign.responses()) == 1


async def test_a_double_click_on_a_step_passes_that_step_alone(task: Any, visit: Any) -> None:
    campaign = await task(welcome=True, consent="We keep your answers.", questions=["job?: What do you do?"])
    page = (await visit(early_presses="until told")).page
    await page.goto(campaign.prolific())
    await page.get_by_role("button", name="I agree and start").dblclick(delay=120)
    go_on = page.get_by_role("button", name="Continue")
    await expect(go_on).to_be_visible()
    await end_moment(page)
    await expect(go_on).to_be_visible()
    await go_on.dblclick(delay=120)
    await wait_for_hit(page)


async def test_a_double_click_on_start_starts_one_visit(task: Any, visit: Any) -> None:
    campaign = await task()
    page = (await visit(early_presses="until told")).page
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").dblclick()
    await wait_for_hit(page)
    assert len(await campaign.rows("SELECT 1 FROM annotators WHERE campaign_id = :campaign")) == 1


async def test_a_double_click_on_change_my_last_answers_changes_nothing(task: Any, visit: Any) -> None:
    campaign, page = await paired(task, visit)
    await choose(page, "arrow")
    await sets_done(page, 1)
    await end_moment(page)
    await page.get_by_role("button", name="Change my last answers").dblclick(delay=120)
    await expect(page.get_by_text("These are the answers that you gave last")).to_be_visible()
    await end_moment(page)
    await expect(page.get_by_text("These are the answers that you gave last")).to_be_visible()
    await expect(page.get_by_role("radio", name="B", exact=True)).to_be_checked()
    assert len(await campaign.responses()) == 1


async def test_a_radio_button_is_taken_at_once_and_only_the_button_that_submits_is_not(task: Any, visit: Any) -> None:
    campaign = await task(judgments_per_item=9, design="ordinal", **DESIGNS["ordinal"])
    page = (await visit(early_presses="until told")).page
    await open_hit(page, campaign.prolific())
    for key in (*KEYS["ordinal"], "Control+Enter"):
        await page.keyboard.press(key)
    await sets_done(page, 1)
    for row in range(2):
        box = await page.locator(".row").nth(row).locator("input[type=radio]").last.bounding_box()
        assert box
        await page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await expect(page.get_by_role("radio", checked=True)).to_have_count(2)
    await page.locator(SUBMIT).dispatch_event("click")
    await expect(page.locator(".finish .message")).to_have_text(IGNORED)
    assert len(await campaign.responses()) == 1
    await end_moment(page)
    await page.locator(SUBMIT).click()
    await sets_done(page, 2)


async def test_an_ignored_press_is_told_of_beside_what_was_pressed(task: Any, visit: Any) -> None:
    campaign = await task(welcome=True, consent="We keep your answers.", questions=["job?: What do you do?"])
    page = (await visit(early_presses="until told")).page
    await page.goto(campaign.prolific())
    await page.get_by_role("button", name="I agree and start").click()
    go_on = page.get_by_role("button", name="Continue")
    await page.locator("html.started .questions-once").wait_for()
    await go_on.dispatch_event("click")
    note = page.get_by_text(IGNORED).first
    await expect(note).to_be_visible()
    below, button = await note.bounding_box(), await go_on.bounding_box()
    assert below
    assert button
    assert 0 <= below["y"] - (button["y"] + button["height"]) < 60
