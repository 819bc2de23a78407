"""A HIT of several criteria, in turn or in a grid: by mouse, by keys alone, by touch, without JavaScript."""

import math
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from app.designs.registry import DESIGNS
from tests.browser.acts import SUBMIT, bounding_box, click_rail, press_submit, violations, wait_for_hit

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
SMALLEST = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
TEXTS = ["The vote was unanimous.", "Nobody voted against.", "All vote yes.", "Unanimous voting it was."]
CRITERIA = [
    {"name": "adequacy", "question": "How much of the meaning is there?"},
    {"name": "fluency", "question": "How well is it written?", "low_label": "unreadable", "high_label": "flawless"},
]
LABELS = {"labels": ["none", "some", "all"]}
GRID = {"criteria_shown": "grid"}


async def create_two_criteria(task: Any, design: str, items: int = 2, **settings: Any) -> Any:
    """A campaign of two criteria with one HIT."""
    items = 2 if design in ("pairwise", "baseline") else max(items, DESIGNS[design].items_per_hit[0])
    own = {"design_settings": {"baseline": "0"}} if design == "baseline" else {}
    asked = {"criteria": CRITERIA, "items_per_hit": items, "question": "Judge these translations."}
    return await task(TEXTS[:items], design=design, **own | asked | settings)


async def open_page(visit: Any, campaign: Any, **options: Any) -> Page:
    page: Page = (await visit(**{"reduced_motion": "reduce"} | options)).page
    await page.goto(campaign.prolific())
    await wait_for_hit(page)
    return page


def part(page: Page, name: str) -> Locator:
    """Return the part of the page that asks by one criterion."""
    return page.locator(f'[data-part="c{names().index(name)}-"]')


def names() -> list[str]:
    return [criterion["name"] for criterion in CRITERIA]


async def in_order(page: Page) -> list[str]:
    """The criteria as they are asked."""
    parts = await page.locator(".hit").get_attribute("data-parts")
    assert parts
    return [names()[int(name[1:-1])] for name in parts.split()]


async def stored(campaign: Any) -> dict[str, dict[str, float]]:
    """Of the one answer, the values by criterion and text."""
    texts = {row.number: row.shown for row in await campaign.rows("SELECT * FROM items WHERE campaign_id = :campaign")}
    (response,) = await campaign.responses()
    shown, size = [texts[item] for item in response.items], len(response.items)
    rows: Sequence[Sequence[float]] = [response.scores[k * size : (k + 1) * size] for k in range(len(CRITERIA))]
    return {name: dict(zip(shown, row, strict=True)) for name, row in zip(names(), rows, strict=True)}


async def press(page: Page, keys: str) -> None:
    for key in keys.split():
        await page.keyboard.press(key)


async def set_at(row: Locator, score: float) -> None:
    await click_rail(row.locator(".track .rail"), score)


async def fits(page: Page) -> None:
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_one_criterion_after_the_other_is_answered_by_mouse_and_kept_as_a_draft(task: Any, visit: Any) -> None:
    campaign = await create_two_criteria(task, "slider")
    page = await open_page(visit, campaign)
    first, second = await in_order(page)
    await expect(page.locator(".part > legend .criterion")).to_have_text([first, second])
    await expect(page.get_by_role("group", name=f"fluency {CRITERIA[1]['question']}")).to_be_visible()
    await expect(part(page, "fluency").locator(".ends")).to_have_text("unreadable flawless")
    await expect(page.locator(".status .message")).to_have_text(f"{first}: 2 left")
    for place, score in enumerate((20, 70)):
        await set_at(part(page, first).locator(".row").nth(place), score)
    await set_at(part(page, second).locator(".row").nth(0), 50)
    await expect(page.locator(".left")).to_have_text(["✓ done", "1 left"])
    await expect(page.locator(".status .message")).to_have_text(f"{second}: 1 left")
    assert set(await campaign.draft_saved()) <= {"c0-00", "c0-01", "c1-00", "c1-01"}
    await page.reload()
    await expect(page.locator(".left")).to_have_text(["✓ done", "1 left"])
    await expect(part(page, second).locator(".rank")).to_have_text(["1st", ""])
    await page.locator(SUBMIT).click(force=True)
    await expect(page.locator("#announcer")).to_have_text("Not scored yet: b.")
    await expect(part(page, second).locator(".row input").nth(1)).to_be_focused()
    await set_at(part(page, second).locator(".row").nth(1), 10)
    assert await violations(page) == ""
    await press_submit(page)
    values = await stored(campaign)
    assert sorted(values[first].values()) == [20, 70]
    assert sorted(values[second].values()) == [10, 50]
    (response,) = await campaign.responses()
    assert (response.extra["criteria_order"], len(response.changes)) == ([first, second], 4)
    assert set(response.input_kinds) == {"mouse"}


WITH_PARTS = [name for name, design in DESIGNS.items() if not design.ticks_criteria]

# What answers two items by one criterion, and leads on to the next one, then the same for that one, to the end.
BY_KEYS = {
    "slider": ("a 7 0 b 2 0 Control+Enter", {70, 20}),
    "rating": ("a 7 0 b 2 0 Control+Enter", {70, 20}),
    "ordinal": ("2 4", {1, 3}),
    "categories": ("a b", {0, 1}),
    "pairwise": ("ArrowLeft Enter", {1, 2}),
    "baseline": ("ArrowRight Enter", {1, 2}),
    "ranking": ("b a Control+Enter", {1, 2}),
    "best_worst": ("a Shift+B Control+Enter", {1, 2, 3}),
    "magnitude": ("1 5 0 ArrowDown 5 0 Enter", {150, 50}),
}


@pytest.mark.parametrize("design", WITH_PARTS)
async def test_keys_lead_from_one_criterion_to_the_next(task: Any, visit: Any, design: str) -> None:
    campaign = await create_two_criteria(task, design)
    page = await open_page(visit, campaign)
    keys, values = BY_KEYS[design]
    if design == "magnitude":
        await page.keyboard.press("Control+Enter")  # goes to what is missing
    for left in ((await in_order(page))[1:], []):
        await press(page, keys)
        if left:
            await expect(page.locator(".left").first).to_have_text("✓ done")
            await expect(page.locator(".status .message")).to_contain_text(f"{left[0]}: ")
    if await page.locator(SUBMIT).count():
        await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert [set(by_text.values()) for by_text in (await stored(campaign)).values()] == [values] * 2


@pytest.mark.parametrize("design", DESIGNS)
async def test_every_design_fits_the_smallest_phone(task: Any, visit: Any, design: str) -> None:
    page = await open_page(visit, await create_two_criteria(task, design, cannot_be_judged=True), **SMALLEST)
    await expect(page.locator(".left:visible")).to_have_count(2 if design in WITH_PARTS else 0)
    await expect(page.locator(".cannot-judge")).to_have_count(1)
    await expect(page.locator(SUBMIT)).to_be_in_viewport()
    assert await violations(page) == ""
    await fits(page)


@pytest.mark.parametrize("design", ["rating", "ordinal"])
async def test_a_grid_is_answered_by_touch_with_what_is_asked_of_an_item_below_it(
    task: Any, visit: Any, design: str
) -> None:
    own: dict[str, Any] = {"design_settings": LABELS} if design == "ordinal" else {}
    campaign = await create_two_criteria(task, design, **own | GRID)
    page = await open_page(visit, campaign, **PHONE)
    cells = page.locator(".cell")
    await expect(page.locator(".cell > .criterion:visible")).to_have_text([*await in_order(page)] * 2)
    boxes = [await bounding_box(cell) for cell in await cells.all()]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    for cell in await cells.all():
        target = cell.locator(".point").nth(1) if design == "ordinal" else cell.locator(".track")
        assert (await bounding_box(target))["height"] >= 44
        await target.tap()
    assert await violations(page) == ""
    await fits(page)
    await page.locator(SUBMIT).tap()
    if design == "rating":
        await expect(page.locator(".status .message")).to_contain_text("All two have the same score")
        await page.locator(SUBMIT).tap()
        await page.locator(SUBMIT).tap()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    (response,) = await campaign.responses()
    assert set(response.input_kinds) == {"touch"}
    assert len(set(response.scores)) == 1


async def test_a_grid_stands_beside_its_items_and_tab_goes_along_the_rows(task: Any, visit: Any) -> None:
    campaign = await create_two_criteria(task, "rating", 3, **GRID)
    page = await open_page(visit, campaign)
    first, second = await in_order(page)
    tops = [(await bounding_box(cell))["y"] for cell in await page.locator(".cell").all()]
    assert tops[0::2] == tops[1::2]
    await expect(page.locator(".columns .criterion")).to_have_text([first, second])
    await press(page, "1 0")
    await expect(page.get_by_role("slider", name=f"{first} {await text_at(page, 0)}")).to_have_value("10")
    await press(page, "Tab 2 0 Tab 3 0 Tab 4 0")
    await expect(page.locator(".status .message")).to_have_text(f"{first}: 1 left")
    await press(page, "c 5 0 Shift+Tab 6 0")  # the row of the criterion that was answered last
    assert await violations(page) == ""
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    values = await stored(campaign)
    assert {name: set(scores.values()) for name, scores in values.items()} == {
        first: {10, 30, 60},
        second: {20, 40, 50},
    }


async def text_at(page: Page, place: int) -> str:
    return (await page.locator(".item .text").nth(place).inner_text()).strip()


async def test_the_same_score_by_different_criteria_is_no_tie(task: Any, visit: Any) -> None:
    campaign = await create_two_criteria(task, "rating", 1, **GRID)
    page = await open_page(visit, campaign)
    await press(page, "5 0 Tab 5 0 Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert (await campaign.responses())[0].scores == [50, 50]


@pytest.mark.parametrize("way", ["in turn", "grid"])
async def test_an_item_that_cannot_be_judged_needs_no_value_by_any_criterion(task: Any, visit: Any, way: str) -> None:
    campaign = await create_two_criteria(task, "rating", 3, cannot_be_judged=True, criteria_shown=way)
    page = await open_page(visit, campaign)
    await page.get_by_text("Cannot be judged?").click()
    await page.locator(".cannot-judge").get_by_role("combobox").nth(0).select_option("It is in another language")
    await expect(
        page.locator('[name$="score-00"]:disabled, [name$="score-01"]:disabled, [name$="score-02"]:disabled')
    ).to_have_count(2)
    assert "unjudged" in str(await campaign.draft_saved())
    await page.reload()
    await expect(page.locator(".status .message")).to_contain_text("2 left")
    for cell in await page.locator(".row:has(input:enabled)").all():
        await set_at(cell, 30 + 10 * int((await cell.get_attribute("data-item")) or 0))
    await press_submit(page)
    values = [list(scores.values()) for scores in (await stored(campaign)).values()]
    assert [[math.isnan(value) for value in row] for row in values] == [[True, False, False]] * 2


@pytest.mark.parametrize("way", ["in turn", "grid"])
async def test_without_javascript_every_criterion_is_asked_in_one_form(task: Any, plain: Any, way: str) -> None:
    campaign = await create_two_criteria(task, "rating", criteria_shown=way)
    page = await plain(campaign.prolific())
    assert len(page.all("button", "primary")) == 1
    assert "from 0 (unreadable) to 100 (flawless)" in page.text
    for place, field in enumerate(page.numbers()[:3]):
        page.fill(field, str(10 * place))
    assert await page.press("Submit") == [page.numbers()[3].attributes["name"]]  # the browser asks for the last one
    page.fill(page.numbers()[3], "99")
    assert await page.press("Submit") == []
    assert "All done" in page.text
    assert sorted(score for by in (await stored(campaign)).values() for score in by.values()) == [0, 10, 20, 99]


async def test_pairs_are_chosen_by_each_criterion_without_javascript(task: Any, plain: Any) -> None:
    campaign = await create_two_criteria(task, "pairwise")
    page = await plain(campaign.prolific())
    for name, side in (("adequacy", "A"), ("fluency", "about equal")):
        (asked,) = page.all(data_part=f"c{names().index(name)}-")
        page.check(side, asked)
    assert await page.press("Submit") == []
    assert "All done" in page.text
    values = await stored(campaign)
    assert [list(by.values()) for by in values.values()] == [[1, 2], [1, 1]]


async def test_a_refused_form_names_the_criterion_and_keeps_what_was_entered(task: Any) -> None:
    campaign = await create_two_criteria(task, "ordinal", design_settings=LABELS)
    async with httpx.AsyncClient(headers={"accept": "text/html"}) as client:
        shown = (await client.get(campaign.prolific())).text
        hidden = {name: shown.split(f'name="{name}" value="', 1)[1].split('"', 1)[0] for name in ("token", "hit")}
        entered = {"c0-score-00": "2", "c0-score-01": "1", "c1-score-00": "0"}
        refused = (await client.post(campaign.prolific(), data=hidden | entered)).text
    assert "fluency: Not all items have a rating yet" in refused
    assert refused.count(" checked>") == 3
    assert await campaign.responses() == []


async def test_long_texts_are_shown_once_and_unfolded_on_demand_further_down(task: Any, visit: Any) -> None:
    long = ["One two three four five six seven eight nine ten. " * 8, "Eleven twelve thirteen fourteen fifteen. " * 8]
    campaign = await task(long, design="slider", items_per_hit=2, criteria=CRITERIA)
    for scripts in (True, False):
        page = await open_page(visit, campaign, java_script_enabled=scripts)
        first, second = await in_order(page)
        heights = [(await bounding_box(part(page, name).locator(".item").first))["height"] for name in (first, second)]
        assert heights[1] < heights[0] / 2
        again = part(page, second).locator(".said-above").first
        await again.locator("summary").click()
        await expect(again.locator(".text").last).to_be_visible()


async def test_the_end_of_a_hit_is_in_sight_on_a_wide_screen_and_says_what_is_left(task: Any, visit: Any) -> None:
    campaign = await create_two_criteria(task, "slider", 4)
    page = await open_page(visit, campaign)
    await expect(page.locator(SUBMIT)).to_be_in_viewport()
    await expect(page.locator(".status .message")).to_be_in_viewport()


async def test_whoever_comes_by_the_link_reads_the_questions_before_they_start(task: Any, visit: Any) -> None:
    campaign = await create_two_criteria(task, "rating")
    page = (await visit()).page
    await page.goto(campaign.link)
    said = await page.locator(".welcome .questions li").all_inner_texts()
    for criterion in CRITERIA:
        (line,) = [line for line in said if line.startswith(f"{criterion['name']}: {criterion['question']}")]
        assert criterion.get("high_label", "very frequent") in line
    assert len(said) == len(CRITERIA)
    assert await page.get_by_text("You see").count() == len(CRITERIA)


async def test_what_is_the_same_for_all_criteria_is_said_once_before_they_start(task: Any, visit: Any) -> None:
    labels: dict[str, Any] = {"design_settings": {"labels": ["yes", "no"]}}
    campaign = await create_two_criteria(task, "categories", 1, **labels)
    page = (await visit()).page
    await page.goto(campaign.link)
    await expect(page.locator(".welcome .questions li")).to_have_count(len(CRITERIA))
    assert await page.get_by_text("You see one item at a time").count() == 1
    assert "You see" not in await page.locator(".welcome .questions").inner_text()


async def test_in_arabic_criteria_begin_at_the_side_of_their_items_and_touch_nothing(task: Any, visit: Any) -> None:
    labels: dict[str, Any] = {"design_settings": {"labels": ["yes", "no"]}}
    campaign = await create_two_criteria(task, "categories", 1, **labels)
    page = await open_page(visit, campaign, locale="ar", viewport={"width": 360, "height": 740})
    for legend in await page.locator(".part > legend").all():
        await legend.locator("xpath=..").locator("input").first.check()
        criterion, asked, done = [
            await legend.locator(name).evaluate(
                """element => {
                    const text = document.createRange();
                    text.selectNodeContents(element);
                    const {left, right} = text.getBoundingClientRect();
                    return {left, right};
                }"""
            )
            for name in (".criterion", ".asked", ".left")
        ]
        assert criterion["right"] == pytest.approx(asked["right"], abs=2)
        assert criterion["right"] > 300
        assert done["right"] + 4 < criterion["left"]
