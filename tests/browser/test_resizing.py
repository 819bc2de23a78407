"""A window that is made narrow or wide again, and a phone that is turned, change how a HIT looks and nothing else."""

from typing import Any

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.browser.acts import AT_REST, expect_scores, open_hit, score_all, sliders

GIVEN = [71, 0, 100]
WIDE, NARROW = ViewportSize(width=1280, height=900), ViewportSize(width=390, height=800)
LYING = ViewportSize(width=800, height=390)

# How far each knob's centre is from where its score belongs on its rail.
ASTRAY = """() => [...document.querySelectorAll(".row[data-scored]")].map((row) => {
  const rail = row.querySelector(".rail").getBoundingClientRect();
  const knob = row.querySelector(".thumb").getBoundingClientRect();
  return Math.abs(knob.x + knob.width / 2 - rail.x - rail.width * row.querySelector("input").value / 100);
})"""
MARKS = """() => {
  const rail = document.querySelector(".strip > .rail").getBoundingClientRect();
  return [...document.querySelectorAll(".mark[data-scored]")].map((mark) => {
    const box = mark.getBoundingClientRect();
    return (box.x + box.width / 2 - rail.x) / rail.width * 100;
  });
}"""
CENTRES = """() => [...document.querySelectorAll(".row[data-scored] .thumb")].map((knob) => {
  const box = knob.getBoundingClientRect();
  return box.x + box.width / 2;
})"""
# Of every row the smallest side, in pixels, of each thing in its track that should be seen or take the focus.
SIDES = """() => [...document.querySelectorAll(".row")].flatMap((row) =>
  ["input", ".rail", row.matches("[data-scored]") ? ".thumb" : ".hint"].map((part) => {
    const { width, height } = row.querySelector(part).getBoundingClientRect();
    return Math.min(width, height);
  }))"""


async def see_whole_hit(page: Page) -> None:
    """Every slider is there, its knob where its score is, and the keyboard reaches it."""
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    await page.evaluate(AT_REST)
    assert min(await page.evaluate(SIDES)) > 0
    assert max(await page.evaluate(ASTRAY)) < 1
    assert await page.evaluate(MARKS) == pytest.approx(GIVEN, abs=0.5)
    await expect_scores(page, [*GIVEN, None, None])
    await page.keyboard.press("c")
    await expect(sliders(page).nth(2)).to_be_focused()


@pytest.mark.parametrize(
    "sizes", [(WIDE, NARROW, WIDE), (NARROW, WIDE, NARROW), (NARROW, LYING, NARROW), (LYING, NARROW, LYING)]
)
async def test_sliders_stay_when_the_window_changes_its_width(task: Any, visit: Any, sizes: Any) -> None:
    page = (await visit(viewport=sizes[0])).page
    await open_hit(page, (await task()).prolific())
    await score_all(page, GIVEN)
    await see_whole_hit(page)
    before = await page.evaluate(CENTRES)
    for size in sizes[1:]:
        await page.set_viewport_size(size)
        await see_whole_hit(page)
    assert await page.evaluate(CENTRES) == pytest.approx(before, abs=1)
    await page.keyboard.press("d")
    await page.keyboard.press("End")
    await expect_scores(page, [*GIVEN, 100, None])


async def test_sliders_stay_when_a_window_is_narrowed_little_by_little(task: Any, visit: Any) -> None:
    page = (await visit(viewport=WIDE)).page
    await open_hit(page, (await task()).prolific())
    await score_all(page, GIVEN)
    for width in (720, 700, 680, 640, 600, 660, 720):
        await page.set_viewport_size({"width": width, "height": 900})
        await see_whole_hit(page)


@pytest.mark.parametrize("size", [WIDE, NARROW, LYING])
async def test_sliders_stay_when_the_keys_are_shown_and_the_whole_page_is_pictured(
    task: Any, visit: Any, size: Any
) -> None:
    page = (await visit(viewport=size)).page
    await open_hit(page, (await task()).prolific())
    await score_all(page, GIVEN)
    await page.keyboard.press("?")
    for _ in range(2):
        await page.screenshot(full_page=True)
        await see_whole_hit(page)
