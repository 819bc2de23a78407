"""Two items side by side: by keyboard, mouse and finger, with long texts, and without scripts."""

from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import text as sql_text

from app.campaigns import lifecycle
from tests.browser.acts import SUBMIT, bounding_box, open_hit, press_submit, violations, wait_for_hit

PAIR: dict[str, Any] = {"design": "pairwise", "question": "Which verb is used more often?", "judgments_per_item": 2}
# The element with the focus, if something lies over it: what is seen at the middle of each of its edges is another.
HIDDEN = """() => {
  const element = document.activeElement;
  const { left, right, top, bottom, width } = element.getBoundingClientRect();
  if (!width || element.matches(".item")) return null;
  const points = [[(left + right) / 2, top + 2], [(left + right) / 2, bottom - 2]];
  const over = points.map(([x, y]) => document.elementFromPoint(x, y));
  const seen = over.every((one) => one && (element.contains(one) || one.contains(element)));
  return seen ? null : element.outerHTML.slice(0, 200);
}"""
# Elements that scroll by themselves, up and down.
SCROLLS = """elements => elements
  .filter((one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowY))
  .filter((one) => one.scrollHeight > one.clientHeight + 1)
  .map((one) => one.outerHTML.slice(0, 100))"""
LONG = [
    "\n".join([name] + lines * ["A line of a long argument, which goes on."])
    for name, lines in (("long", 80), ("short", 40))
]


async def sides(page: Page) -> list[str]:
    """The texts, left first."""
    await wait_for_hit(page)
    return [text.strip() for text in await page.locator(".side .text").all_inner_texts()]


async def places(campaign: Any) -> list[list[tuple[str, float]]]:
    """Of each response the texts and their places as presented."""
    return [list(scores.items()) for scores in await campaign.scores()]


async def test_by_keyboard_alone(task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide", "run"], **PAIR | {"judgments_per_item": 3})
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    first = await sides(page)
    await page.keyboard.press("Enter")
    await expect(page.locator("#announcer")).to_have_text("Choose, then submit.")  # nothing was sent
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("radio", name="B", exact=True)).to_be_focused()
    await page.keyboard.press("ArrowLeft")  # a change of mind
    await expect(page.get_by_role("radio", name="A", exact=True)).to_be_checked()
    assert await violations(page) == ""
    await page.keyboard.press("Enter")
    await expect(page.locator(".progress")).to_have_text("1 task done")
    second = await sides(page)
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("radio", name="about equal")).to_be_checked()
    await page.keyboard.press("?")
    await expect(page.locator(".keys dl")).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".progress")).to_have_text("2 tasks done")
    third = await sides(page)
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert await places(campaign) == [
        [(first[0], 1.0), (first[1], 2.0)],
        [(second[0], 1.0), (second[1], 1.0)],
        [(third[0], 2.0), (third[1], 1.0)],
    ]
    response = (await campaign.responses())[0]
    assert response.changes == [2, 2]
    assert response.input_kinds == ["keyboard", "keyboard"]


async def test_by_mouse_on_a_button_and_the_choice_outlives_a_reload(task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide", "run"], **PAIR)
    page = (await visit()).page
    await page.goto(campaign.prolific())
    first = await sides(page)
    boxes = [await bounding_box(side) for side in await page.locator(".side").all()]
    assert boxes[0]["x"] < boxes[1]["x"]
    assert boxes[0]["y"] == boxes[1]["y"]
    words = await bounding_box(page.locator(".side .text").first)
    middle = words["x"] + words["width"] / 2, words["y"] + words["height"] / 2
    await page.mouse.move(middle[0] - 15, middle[1])
    await page.mouse.down()
    await page.mouse.move(middle[0] + 15, middle[1])
    await page.mouse.up()
    assert await page.evaluate("getSelection().toString()") != ""  # to mark words is no choice
    await expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    await page.locator(".choice").last.click()
    assert (await campaign.draft_saved())["preferred"]["value"] == "01"
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await expect(page.get_by_role("radio", name="B", exact=True)).to_be_checked()
    await expect(page.locator(".side[data-chosen] .side-name")).to_have_text("B", use_inner_text=True)
    await page.get_by_role("radio", name="about equal").check()
    await expect(page.locator(".side[data-chosen]")).to_have_count(0)
    await page.get_by_role("radio", name="A", exact=True).check()
    await press_submit(page)
    assert await places(campaign) == [[(first[0], 1.0), (first[1], 2.0)]]
    assert (await campaign.responses())[0].input_kinds == ["mouse", "mouse"]


PARAGRAPH = "Some words of a long **answer**, with `code`, that go on. " * 8
ANSWERS = ["\n\n".join([name, *[PARAGRAPH] * 6]) for name in ("First", "Second")]


async def test_a_press_on_a_text_chooses_nothing_and_moves_nothing(task: Any, visit: Any) -> None:
    at_once = {"content": "markdown", "design_settings": {"submit_on_choice": True}}
    campaign = await task(texts=ANSWERS, **PAIR | at_once)
    page = (await visit(viewport={"width": 1280, "height": 600})).page
    await open_hit(page, campaign.prolific())
    await page.mouse.wheel(0, 60)
    for word in await page.locator(".side strong").all():
        if not (await word.bounding_box() or {}).get("y", 0) < 300:
            continue
        before = await page.evaluate("scrollY")
        box = await bounding_box(word)
        await page.mouse.click(box["x"] + 5, box["y"] + 5)
        await page.mouse.dblclick(box["x"] + 5, box["y"] + 5)
        assert await page.evaluate("getSelection().toString().trim()") == "answer"
        assert await page.evaluate("scrollY") == before
    await expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    assert await campaign.responses() == []
    await page.keyboard.press("ArrowRight")  # also with the focus on a text
    await expect(page.locator(".progress")).to_have_text("1 task done")


@pytest.mark.parametrize("width", [1280, 390])
async def test_texts_are_groups_and_choices_are_called_by_their_letters_alone(
    task: Any, visit: Any, width: int
) -> None:
    campaign = await task(texts=ANSWERS, **PAIR, content="markdown")
    page = (await visit(viewport={"width": width, "height": 9000})).page  # both fit
    await open_hit(page, campaign.prolific())
    for letter, text in zip("AB", await sides(page), strict=True):
        await expect(page.get_by_role("heading", name=letter, exact=True)).to_be_visible()
        await expect(page.get_by_role("group", name=letter, exact=True)).to_contain_text(text.split()[0])
        await expect(page.get_by_role("radio", name=letter, exact=True)).to_have_accessible_description("")
    await expect(page.get_by_role("radio", name="about equal", exact=True)).to_have_count(1)
    assert await violations(page) == ""


@pytest.mark.parametrize(("width", "height"), [(1280, 600), (390, 844), (640, 330)])
async def test_what_has_the_focus_is_seen_whole_and_a_choice_that_is_seen_moves_nothing(
    task: Any, visit: Any, width: int, height: int
) -> None:
    campaign = await task(texts=ANSWERS, **PAIR, content="markdown", cannot_be_judged=True)
    page = (await visit(viewport={"width": width, "height": height})).page
    await open_hit(page, campaign.prolific())
    await page.locator(".choice").last.scroll_into_view_if_needed()
    before = await page.evaluate("scrollY")
    for key, name in (("ArrowRight", "B"), ("ArrowDown", "about equal")):
        await page.keyboard.press(key)
        await expect(page.get_by_role("radio", name=name, exact=True)).to_be_focused()
        assert await page.evaluate("scrollY") == before
    for _ in range(8):
        await page.keyboard.press("Tab")
        hidden = await page.evaluate(HIDDEN)
        assert hidden is None, hidden


async def test_the_page_scrolls_long_texts_and_nothing_in_it_does(task: Any, visit: Any) -> None:
    campaign = await task(texts=LONG, **PAIR)
    page = (await visit(viewport={"width": 1280, "height": 500})).page
    await open_hit(page, campaign.prolific())
    assert await page.locator(".hit *").evaluate_all(SCROLLS) == []
    for place in (0, 0.5, 1):
        await page.evaluate(
            "share => scrollTo(0, share * (document.documentElement.scrollHeight - innerHeight))", place
        )
        for element in (page.locator(".choices"), page.locator(SUBMIT)):
            await expect(element).to_be_in_viewport(ratio=1)
        if place == 0.5:
            await expect(page.get_by_role("heading", name="A", exact=True)).to_be_in_viewport(ratio=1)
    assert await violations(page) == ""


PROMPT = "A prompt that both texts answer. " * 80


async def open_long_outputs_of_prompt(task: Any, visit: Any, prompt: str, width: int, height: int) -> Page:
    campaign = await task(texts=LONG, launched=False, source_column="prompt", **PAIR)
    async with campaign.engine.begin() as connection:
        fields = sql_text(
            "UPDATE items SET fields = json_build_object('prompt', CAST(:prompt AS text)) WHERE campaign_id = :id"
        )
        await connection.execute(fields, {"prompt": prompt, "id": campaign.row.id})
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.row.slug, "launch", now=datetime.now(UTC))
    page: Page = (await visit(viewport={"width": width, "height": height})).page
    await open_hit(page, campaign.prolific())
    return page


@pytest.mark.parametrize("height", [700, 900])
async def test_the_prompt_stays_in_sight_while_the_outputs_scroll_and_covers_no_focus(
    task: Any, visit: Any, height: int
) -> None:
    page = await open_long_outputs_of_prompt(task, visit, PROMPT, 1280, height)
    assert await page.locator(".hit *").evaluate_all(SCROLLS) == []
    prompt, side = page.locator(".beside-items"), page.get_by_role("heading", name="A", exact=True)
    for place in (0, 0.5, 0.8):
        await page.evaluate(
            "share => scrollTo(0, share * (document.documentElement.scrollHeight - innerHeight))", place
        )
        await expect(prompt).to_be_in_viewport(ratio=1)
        await expect(page.locator(".choices")).to_be_in_viewport(ratio=1)
        box, below = await bounding_box(prompt), await bounding_box(side)
        assert box["height"] <= 0.4 * height
        assert box["y"] + box["height"] <= below["y"] + 1
    assert await violations(page) == ""
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    for _ in range(12):
        await page.keyboard.press("Shift+Tab")
        hidden = await page.evaluate(HIDDEN)
        assert hidden is None, hidden
    await page.get_by_role("button", name="Show all").click()
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    if (await bounding_box(prompt))["height"] > 0.4 * height:
        await expect(prompt).not_to_be_in_viewport()


@pytest.mark.parametrize(("width", "height"), [(1280, 500), (390, 844)])
async def test_on_low_windows_and_phones_the_prompt_scrolls_away(
    task: Any, visit: Any, width: int, height: int
) -> None:
    page = await open_long_outputs_of_prompt(task, visit, PROMPT, width, height)
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
    await expect(page.locator(".beside-items")).not_to_be_in_viewport()
    await expect(page.locator(".choices")).to_be_in_viewport(ratio=1)


CRITERIA = [
    {"name": "help", "question": "Which one helps more?"},
    {"name": "style", "question": "Which one is better written?"},
]


@pytest.mark.parametrize(("width", "height"), [(1280, 500), (390, 844)])
async def test_the_choices_of_all_criteria_stay_in_sight_and_have_keys(
    task: Any, visit: Any, width: int, height: int
) -> None:
    campaign = await task(texts=ANSWERS, **PAIR, content="markdown", criteria=CRITERIA)
    page = (await visit(viewport={"width": width, "height": height})).page
    await open_hit(page, campaign.prolific())
    await expect(page.locator(".side")).to_have_count(2)  # each text once
    for place in (0, 1):
        await page.evaluate("share => scrollTo(0, share * document.documentElement.scrollHeight / 2)", place)
        for radio in [*await page.get_by_role("radio").all(), page.locator(SUBMIT)]:
            await expect(radio).to_be_in_viewport(ratio=1)
    first, second = await page.locator("fieldset.part").all()
    await page.keyboard.press("2")
    await page.keyboard.press("ArrowRight")
    await page.keyboard.press("1")
    await page.keyboard.press("ArrowLeft")
    await expect(second.get_by_role("radio", name="B", exact=True)).to_be_checked()
    await expect(first.get_by_role("radio", name="A", exact=True)).to_be_checked()
    await expect(first.get_by_role("radio", name="A", exact=True)).to_be_focused()
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await violations(page) == ""
    await press_submit(page)
    (response,) = await campaign.responses()
    by_name = dict(zip(("help", "style"), (response.scores[:2], response.scores[2:]), strict=True))
    assert [by_name[name] for name in response.extra["criteria_order"]] == [[1, 2], [2, 1]]


@pytest.mark.parametrize("width", [320, 390])
async def test_by_touch_on_a_phone_one_above_the_other_with_the_buttons_at_the_bottom_edge(
    task: Any, visit: Any, width: int
) -> None:
    campaign = await task(texts=["abide", "run"], **PAIR, design_settings={"ties_allowed": width == 390})
    page = (await visit(viewport={"width": width, "height": 720}, has_touch=True, is_mobile=True)).page
    await page.goto(campaign.prolific())
    first = await sides(page)
    upper, lower = [await bounding_box(side) for side in await page.locator(".side").all()]
    assert upper["y"] < lower["y"]
    for button in [*await page.locator(".choice label").all(), page.locator(SUBMIT)]:
        await expect(button).to_be_in_viewport(ratio=1)
        assert (await bounding_box(button))["height"] >= 44
    assert await page.evaluate("document.documentElement.scrollWidth") == width
    assert await page.get_by_role("radio", name="about equal").count() == int(width == 390)
    assert await violations(page) == ""
    await page.get_by_role("radio", name="B", exact=True).tap()
    await page.locator(SUBMIT).tap()
    await expect(page.locator(".progress")).to_have_text("1 task done")
    assert await places(campaign) == [[(first[0], 2.0), (first[1], 1.0)]]
    assert (await campaign.responses())[0].input_kinds == ["touch", "touch"]


async def test_long_texts_on_a_phone_are_tabs_that_keep_their_place(task: Any, visit: Any) -> None:
    campaign = await task(texts=LONG, **PAIR)
    page = (await visit(viewport={"width": 390, "height": 720}, has_touch=True, is_mobile=True)).page
    await page.goto(campaign.prolific())
    first = await sides(page)
    a, b = (page.get_by_role("tab", name=letter) for letter in "AB")
    await expect(page.get_by_role("tabpanel")).to_have_count(1)
    await expect(page.get_by_role("tabpanel", name="A", exact=True)).to_contain_text(first[0][:40])
    for button in (a, b, *await page.locator(".choice label").all(), page.locator(SUBMIT)):
        await expect(button).to_be_in_viewport(ratio=1)
    assert await violations(page) == ""
    await page.evaluate("scrollTo(0, 600)")
    await expect(a).to_be_in_viewport(ratio=1)
    await b.dispatch_event("click")  # a tap of Playwright scrolls
    await expect(page.get_by_role("tabpanel", name="B", exact=True)).to_contain_text(first[1][:40])
    top = await page.locator(".pair").evaluate("pair => pair.getBoundingClientRect().top")
    assert abs(top) < 2  # the other text begins at its beginning
    await a.dispatch_event("click")
    assert abs(await page.evaluate("scrollY") - 600) < 5
    await b.tap()
    await page.reload()
    await expect(page.get_by_role("tabpanel", name="B", exact=True)).to_be_visible()
    await page.get_by_role("radio", name="B", exact=True).tap()
    await expect(page.locator(".side-tabs [data-chosen]")).to_have_text("B")
    await page.locator(SUBMIT).tap()
    await expect(page.locator(".progress")).to_have_text("1 task done")
    assert await places(campaign) == [[(first[0], 2.0), (first[1], 1.0)]]


async def test_arrow_keys_on_a_tab_go_to_the_other_and_elsewhere_choose(task: Any, visit: Any) -> None:
    campaign = await task(texts=LONG, **PAIR)
    page = (await visit(viewport={"width": 390, "height": 720})).page
    await open_hit(page, campaign.prolific())
    await page.get_by_role("tab", name="A").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="B")).to_be_focused()
    await expect(page.get_by_role("tabpanel", name="B", exact=True)).to_be_visible()
    await expect(page.get_by_role("radio", checked=True)).to_have_count(0)
    await page.keyboard.press("Tab")
    await page.keyboard.press("ArrowLeft")
    await expect(page.get_by_role("radio", name="A", exact=True)).to_be_checked()
    await page.set_viewport_size({"width": 1280, "height": 720})  # a phone that is laid on its side
    await expect(page.locator(".side:visible")).to_have_count(2)
    await expect(page.get_by_role("tab")).to_have_count(0)


async def test_without_scripts(task: Any, plain: Any) -> None:
    campaign = await task(texts=["abide", "run"], **PAIR)
    page = await plain(campaign.prolific())
    first = page.texts("text")
    assert await page.press("Submit") == ["preferred"]  # the browser asks for a choice
    page.check("A")
    assert await page.press("Submit") == []
    assert page.texts("progress") == ["1 task done"]
    assert await places(campaign) == [[(first[0], 1.0), (first[1], 2.0)]]


async def test_a_choice_submits_at_once_and_the_next_page_leads_back_to_it(task: Any, visit: Any) -> None:
    chosen = {"design_settings": {"submit_on_choice": True}, "judgments_per_item": 3}
    campaign = await task(texts=["abide", "run"], **PAIR | chosen)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    first = await sides(page)
    await page.keyboard.press("ArrowRight")
    await expect(page.locator(".progress")).to_have_text("1 task done")
    await page.get_by_role("button", name="Change my last answers").click()
    await expect(page.get_by_role("radio", name="B", exact=True)).to_be_checked()
    assert await sides(page) == first
    await page.get_by_role("radio", name="about equal").check()  # a change is submitted when they say so
    assert len(await campaign.responses()) == 1
    await page.get_by_role("button", name="Submit the change").click()
    await expect(page.get_by_text("These are the answers")).to_have_count(0)
    second = await sides(page)
    # Not `check`: it looks at the radio again after the press, and presses the next page's if that has come by then.
    await page.get_by_role("radio", name="A", exact=True).click()
    await expect(page.locator(".progress")).to_have_text("2 tasks done")
    assert await places(campaign) == [
        [(first[0], 2), (first[1], 1)],
        [(first[0], 1), (first[1], 1)],
        [(second[0], 1), (second[1], 2)],
    ]
