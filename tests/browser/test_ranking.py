"""Ranking in a browser: items are pressed or dragged into an order; what nobody ordered is never an answer."""

import time
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.acts import AT_REST, bounding_box, item_texts, open_hit, press_submit, violations

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
ASKED = {"design": "ranking", "question": "How often are these verbs used?", "items_per_hit": 4}
VERBS = ["go", "abide", "run", "hum"]


def row(page: Page, item: str) -> Locator:
    return page.locator(".row").filter(has=page.get_by_text(item, exact=True))


async def sees(page: Page, *expected: str) -> None:
    """The order as it is shown: a place and a text for each."""
    await page.evaluate(AT_REST)
    await expect(page.locator(".order .row .badge")).to_have_text([words.split()[0] for words in expected])
    await expect(page.locator(".order .row .text")).to_have_text([words.split()[1] for words in expected])


async def middle_of(element: Locator) -> tuple[float, float]:
    box = await bounding_box(element)
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


async def drag(page: Page, item: str, other: str, down: float) -> None:
    """Drag an item to `down` pixels below the middle of another one."""
    await page.evaluate(AT_REST)
    start, (x, y) = await middle_of(row(page, item).locator(".badge")), await middle_of(row(page, other))
    await page.mouse.move(*start)
    await page.mouse.down()
    await page.mouse.move(x, y + down, steps=4)
    await page.mouse.up()


async def test_by_mouse(task: Any, visit: Any) -> None:
    campaign = await task(texts=VERBS, **ASKED)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    items = await item_texts(page)
    a, b, c, d = items
    assert await violations(page) == ""
    await page.locator(".primary").press("Enter")  # nothing is an order that nobody made
    await expect(page.get_by_role("button", name=f"Put {a} 1st")).to_be_focused()
    assert await campaign.responses() == []
    for item in (c, a, d):
        await row(page, item).locator(".badge").click()
    await sees(page, f"1 {c}", f"2 {a}", f"3 {d}")
    await expect(page.locator(".status .message")).to_have_text("1 left")
    await drag(page, b, c, -10)
    await sees(page, f"1 {b}", f"2 {c}", f"3 {a}", f"4 {d}")
    await drag(page, b, a, 10)
    await sees(page, f"1 {c}", f"2 {a}", f"3 {b}", f"4 {d}")
    await row(page, b).hover()
    await row(page, b).get_by_role("button", name="b equals the one above").click()
    await sees(page, f"1 {c}", f"=2 {a}", f"=2 {b}", f"4 {d}")
    await drag(page, d, b, -10)  # between two that are tied
    await sees(page, f"1 {c}", f"=2 {a}", f"=2 {d}", f"=2 {b}")
    await row(page, c).hover()
    await row(page, c).get_by_role("button", name="Take c out of the order").click()
    await sees(page, f"=1 {a}", f"=1 {d}", f"=1 {b}")
    await row(page, c).locator(".badge").dblclick()  # the second press hits nothing else
    await row(page, c).get_by_role("button", name="Move c up").click()
    await expect(page.locator("#announcer")).to_have_text(f"{c}, tied 1st of 4.")
    await row(page, c).get_by_role("button", name="Move c up").click()
    await sees(page, f"1 {c}", f"=2 {a}", f"=2 {d}", f"=2 {b}")
    assert await violations(page) == ""
    await press_submit(page)
    assert await campaign.scores() == [{c: 1.0, a: 2.0, d: 2.0, b: 2.0}]
    (response,) = await campaign.responses()
    assert set(response.input_kinds) == {"mouse"}


async def test_by_keyboard_alone_and_after_a_reload(task: Any, visit: Any) -> None:
    campaign = await task(texts=VERBS, **ASKED)
    page = (await visit()).page
    await page.goto(campaign.prolific())
    a, b, c, d = await item_texts(page)
    await page.locator("#question").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name=f"{a}, 1st of 1")).to_be_focused()
    for key in ("c", "d", "=", "ArrowUp", "ArrowUp"):
        await page.keyboard.press(key)
    await sees(page, f"1 {d}", f"2 {a}", f"3 {c}")
    for key in ("ArrowDown", "End", "=", "b", "Delete", "b", "Home", "ArrowDown"):
        await page.keyboard.press(key)
    await sees(page, f"1 {a}", f"2 {b}", f"=3 {c}", f"=3 {d}")
    await expect(page.locator("#announcer")).to_have_text(f"{b}, 2nd of 4.")
    await campaign.draft_saved()
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await sees(page, f"1 {a}", f"2 {b}", f"=3 {c}", f"=3 {d}")
    await page.keyboard.press("?")
    await expect(page.get_by_text("equal to the one above, or no longer")).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert await campaign.scores() == [{a: 1.0, b: 2.0, c: 3.0, d: 3.0}]


async def test_by_touch_a_badge_is_dragged_and_the_rest_scrolls(task: Any, visit: Any) -> None:
    campaign = await task(texts=VERBS, **ASKED | {"design_settings": {"ties_allowed": False}})
    page = (await visit(**PHONE)).page
    await open_hit(page, campaign.prolific())
    a, b, c, d = await item_texts(page)
    assert await violations(page) == ""
    for item in (a, b, c, d):
        await row(page, item).locator(".badge").tap()
    await sees(page, f"1 {a}", f"2 {b}", f"3 {c}", f"4 {d}")
    await swipe(page, row(page, d).locator(".text"), row(page, a))  # scrolls, if there is anything to scroll
    await sees(page, f"1 {a}", f"2 {b}", f"3 {c}", f"4 {d}")
    await swipe(page, row(page, d).locator(".badge"), row(page, a))
    await sees(page, f"1 {d}", f"2 {a}", f"3 {b}", f"4 {c}")
    await expect(page.get_by_role("button", name="equals")).to_have_count(0)
    await row(page, c).get_by_role("button", name="Move c up").tap()
    await sees(page, f"1 {d}", f"2 {a}", f"3 {c}", f"4 {b}")
    await press_submit(page)
    assert await campaign.scores() == [{d: 1.0, a: 2.0, c: 3.0, b: 4.0}]
    (response,) = await campaign.responses()
    assert set(response.input_kinds) == {"touch"}


async def swipe(page: Page, start: Locator, end: Locator) -> None:
    """A finger goes from one element to just above the middle of another, and rests there before it is lifted: a
    browser lets the page glide on after a quick one, and takes the next tap for its end.
    """
    await page.evaluate(AT_REST)
    (x, y), (_, above) = await middle_of(start), await middle_of(end)
    finger = await page.context.new_cdp_session(page)
    lifted = time.time()
    for kind, height, seconds in (
        ("Start", y, 0.6),
        ("Move", (y + above) / 2, 0.5),
        ("Move", above - 8, 0.4),
        ("End", None, 0),
    ):
        points = [] if height is None else [{"x": x, "y": height}]
        event = {"type": f"touch{kind}", "touchPoints": points, "timestamp": lifted - seconds}
        await finger.send("Input.dispatchTouchEvent", event)


@pytest.mark.parametrize("ties_allowed", [True, False])
async def test_without_scripts_it_is_a_number_for_each(task: Any, plain: Any, ties_allowed: bool) -> None:
    campaign = await task(texts=VERBS, **ASKED | {"design_settings": {"ties_allowed": ties_allowed}})
    page = await plain(campaign.prolific())
    a, b, c, d = page.texts("text")
    assert page.text.count("The same place makes a tie.") == int(ties_allowed)
    for item, place in ((a, "3"), (b, "1"), (c, "3"), (d, "4")):
        page.fill(item, place)
    assert await page.press("Submit") == []
    if not ties_allowed:
        (alert,) = page.all(role="alert")
        assert "Two items have the same place" in alert.text
        assert page.control(d).attributes["value"] == "4"
        page.fill(a, "2")
        assert await page.press("Submit") == []
    assert "All done" in page.text
    assert await campaign.scores() == [{b: 1.0, a: 2.0, c: 2.0 if ties_allowed else 3.0, d: 4.0}]


MOVED_ABOUT = """async () => {
  const { inserted, indexOf, ordered, places, stepped, toggled, without } =
    await import("/static/designs/ranking/order.js");
  let state = 7;
  const draw = (below) => (state = (state * 16807) % 2147483647) % below;
  const problems = [];
  let order = [];
  for (let turn = 0; turn < 2000; turn++) {
    const item = "abcde"[draw(5)];
    const acts = [
      () => inserted(without(order, item), item, draw(without(order, item).length + 1)),
      () => without(order, item),
      () => toggled(order, item),
      () => stepped(order, item, -1) ?? order,
      () => stepped(order, item, 1) ?? order,
    ];
    order = acts[draw(8) % 5]();
    const found = places(order);
    const ranks = found.map((place) => 1 + found.filter((other) => other < place).length);
    const again = ordered(order.map(({ item }, at) => [item, found[at]]));
    if (new Set(order.map(({ item }) => item)).size !== order.length) problems.push(["twice", order]);
    if (String(found) !== String(ranks)) problems.push(["no ranks", found]);
    if (JSON.stringify(again) !== JSON.stringify(order)) problems.push(["not read again", order, again]);
    const steps = [];
    for (let up = order; up; up = stepped(up, order[0]?.item, 1)) steps.push(places(up)[indexOf(up, order[0]?.item)]);
    if (steps.length > 2 * order.length + 1) problems.push(["never at the end", steps]);
  }
  return problems;
}"""


async def test_however_items_are_moved_about_their_places_are_competition_ranks(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task(texts=VERBS, **ASKED)).prolific())
    assert await page.evaluate(MOVED_ABOUT) == []
