"""The analysis page in a browser: parts that come by themselves, pictures one can point at, and without JavaScript."""

import asyncio
import re
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import FloatRect, Page, Route, expect

from app.accounts import login
from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.browser.acts import bounding_box, each_width, violations, wait_for_value
from tests.browser.conftest import VERBS
from tests.browser.test_appearance import looks

PARTS = ["findings", "scores", "agreement", "annotators", "consistency", "labels"]


@pytest_asyncio.fixture(scope="session")
async def answered_campaign(served: Any, task: Any) -> Any:
    """A campaign of ten verbs that four annotators have scored; all tests look at the same one."""
    campaign = await task(judgments_per_item=4)
    for person in range(4):
        await answered(served, campaign, person, hits=2)
    return campaign


async def answered(served: Any, campaign: Any, person: int, *, hits: int) -> None:
    me = await create_annotator(served, campaign.row, name=f"person {person}")
    for _ in range(hits):
        hit = await try_to_lease_hit(served, me)
        await submit_scores(served, me, hit, scores=[float((11 * item + 7 * person) % 101) for item in hit.items])


@pytest.fixture
def study(visit: Any, origin: str, cookie: Any) -> Any:
    """Opens a campaign's analysis for a researcher; with JavaScript, once the shown part is there."""

    async def open_page(campaign: Any, path: str = "", *, whole: bool = True, **options: Any) -> Page:
        page: Page = (await visit(**options)).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/analysis{path}")
        if whole:
            await all_there(page)
        return page

    return open_page


async def all_there(page: Page) -> None:
    await expect(page.locator(".part:visible")).to_have_count(1)
    await expect(page.locator(".part[data-waiting]:visible")).to_have_count(0)
    await expect(page.locator("[aria-busy]")).to_have_count(0)


async def open_tab(page: Page, title: str) -> None:
    await page.get_by_role("tab", name=title, exact=True).click()
    await all_there(page)


async def test_the_page_begins_with_findings_and_each_tab_is_fetched_when_it_is_opened(
    answered_campaign: Any, study: Any
) -> None:
    page = await study(answered_campaign)
    assert await page.locator(".part").evaluate_all("parts => parts.map((part) => part.id)") == PARTS
    await expect(page.locator("#finding-scores")).to_contain_text("All 10 items have a score (method: Mean).")
    await expect(page.locator("#finding-agreement")).to_contain_text("Krippendorff’s alpha is")
    await expect(page.locator(".part[data-waiting]")).to_have_count(len(PARTS) - 1)
    await open_tab(page, "Annotators")
    await expect(page.locator("#annotators .dot")).to_have_count(4)
    await expect(page.locator("#announcement")).to_have_text("Annotators: shown")
    await expect(page.locator(".part[data-waiting]")).to_have_count(len(PARTS) - 2)


async def test_a_finding_leads_to_the_part_with_more_and_back_to_the_findings(
    answered_campaign: Any, study: Any
) -> None:
    page = await study(answered_campaign)
    await page.get_by_role("link", name="More on agreement").click()
    await expect(page.locator("#agreement .verdict")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"/analysis#agreement$"))
    await page.go_back()
    await expect(page.locator("#finding-agreement")).to_be_visible()


async def test_tabs_are_walked_with_the_arrow_keys(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign)
    await page.get_by_role("tab", name="Findings").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.locator("#scores .dot")).to_have_count(10)
    await page.keyboard.press("End")
    await expect(page.locator("#labels-table tbody tr")).to_have_count(2)
    await expect(page.get_by_role("tab", name="Labels")).to_be_focused()


BOTH_FRAMES = "new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
SUM_OF_SHIFTS = """
    window.shifted = 0;
    const add = (entry) => { if (!entry.hadRecentInput) window.shifted += entry.value; };
    new PerformanceObserver((list) => list.getEntries().forEach(add)).observe({ type: "layout-shift", buffered: true });
"""


@pytest.mark.parametrize("part", ["", "#consistency", "#labels"])
@pytest.mark.parametrize("width", [1280, 390])
async def test_parts_come_without_moving_what_is_read(
    answered_campaign: Any, study: Any, width: int, part: str
) -> None:
    page = await study(answered_campaign, "/scores", whole=False, **looks(width))
    await page.add_init_script(SUM_OF_SHIFTS)

    async def after_a_frame(route: Route) -> None:  # so that every part is drawn by itself, however fast they come
        await page.evaluate(BOTH_FRAMES)
        await route.continue_()

    await page.route("**/analysis/*", after_a_frame)
    await page.goto(page.url.removesuffix("/scores") + part)
    await all_there(page)
    await page.evaluate(BOTH_FRAMES)
    assert await page.evaluate("shifted") < 0.1


async def test_the_page_stands_before_anything_is_estimated(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign)
    ready = asyncio.Event()

    async def wait(route: Route) -> None:
        await asyncio.wait_for(ready.wait(), 60)
        await route.continue_()

    await page.route("**/analysis/*", wait)
    await page.reload()
    for title in ("Findings", "Scores", "Agreement", "Annotators", "Consistency", "Labels"):
        await expect(page.get_by_role("tab", name=title, exact=True)).to_be_visible()
    await expect(page.locator("#findings .busy")).to_contain_text("Estimating …")
    ready.set()
    await all_there(page)


async def test_a_coefficient_is_a_line_that_says_more_when_asked(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#agreement")
    await expect(page.locator("#agreement-rows")).to_be_hidden()
    await page.get_by_text("All 12 measures").click()
    rows = page.locator("#agreement tbody tr:not(.group)")
    heights = await rows.evaluate_all("rows => rows.map((row) => row.offsetHeight)")
    assert len(heights) == 12
    assert max(heights) <= 32
    await expect(page.locator("#agreement .verdict")).to_contain_text("Krippendorff’s alpha is")
    assert await page.locator("#agreement .group").all_inner_texts() == ["Order of the items", "Scores", "Labels"]
    told = rows.nth(3).locator("p")
    await expect(told).to_be_hidden()
    await rows.nth(3).locator("summary").click()
    await expect(told).to_contain_text("0 is chance and 1 is complete agreement")
    assert await violations(page) == ""


async def test_the_classes_chosen_are_those_of_agreement_too(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#agreement")
    await open_tab(page, "Labels")
    await page.get_by_label("Divide the scale into").select_option("5")
    await page.get_by_role("button", name="Divide", exact=True).click()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(5)
    await open_tab(page, "Agreement")
    await expect(page.locator("#agreement")).to_contain_text("Labels are scores cut into 5 classes")
    for _ in range(3):
        await page.go_back()
    await expect(page.locator("#agreement")).to_contain_text("Labels are scores cut into 2 classes")


async def test_other_methods_change_the_scores_alone_and_the_address(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#agreement")
    await page.evaluate("window.agreement = document.querySelector('#agreement')")
    await open_tab(page, "Scores")
    await page.get_by_label("Method", exact=True).select_option("Mean")
    await page.get_by_label("compared with", exact=True).select_option("Elo")
    await page.get_by_role("button", name="Compare").click()
    await expect(page.locator("#scores-title")).to_contain_text("Mean and Elo")
    await expect(page.get_by_role("button", name="Compare")).to_be_focused()
    await expect(page).to_have_url(re.compile(r"\?one=mean&other=elo#scores$"))
    assert await page.evaluate("window.agreement.isConnected")
    await page.reload()
    await expect(page.locator("#scores-title")).to_contain_text("Mean and Elo")


async def test_back_shows_what_was_shown_before(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#labels")
    await page.get_by_label("Divide the scale into").select_option("3")
    await page.get_by_role("button", name="Divide", exact=True).click()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(3)
    await page.go_back()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(2)
    await page.go_forward()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(3)


async def test_a_press_on_a_head_sorts_and_keeps_the_focus(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#scores")
    head = page.locator("#scores-table thead").get_by_role("link", name="Item")
    await head.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#scores-table [aria-sort=ascending]")).to_have_count(1)
    await expect(page.locator("#scores-table tbody th").first).to_have_text("abide")
    await expect(head).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#scores-table tbody th").first).to_have_text("run")


async def test_choices_in_one_part_stay_when_another_changes(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#labels")
    await page.get_by_label("Divide the scale into").select_option("4")
    await page.get_by_role("button", name="Divide", exact=True).click()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(4)
    await open_tab(page, "Scores")
    await page.locator("#scores").get_by_role("searchbox").fill("ABI")
    await page.keyboard.press("Enter")
    await expect(page.locator("#scores-table tbody th")).to_have_text(["abide"])
    await expect(page).to_have_url(re.compile(r"\?classes=4&table=scores&search=ABI#scores$"))
    await page.reload()
    await all_there(page)
    await expect(page.locator("#scores-table tbody th")).to_have_text(["abide"])
    await open_tab(page, "Labels")
    await expect(page.locator("#labels-table tbody tr")).to_have_count(4)


async def test_the_dot_under_the_pointer_is_named(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "/scores?one=mean&other=elo", whole=False)
    readout = page.locator("#scores-readout")
    usual = await readout.inner_text()
    dot = page.locator("#scores .dot").first
    words = await dot.get_attribute("data-words")
    await dot.hover()
    await expect(readout).to_have_text(words)
    assert words.startswith("abide: Mean ")
    assert "Elo" in words
    await expect(page.locator("#scores .interval.near")).to_have_count(2)
    await page.mouse.move(0, 0)
    await expect(readout).to_have_text(usual)
    await expect(page.locator("#scores .near")).to_have_count(0)


async def test_while_a_fit_runs_the_part_says_so(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#scores", **looks(1280))  # without motion: axe waits until nothing moves
    ready = asyncio.Event()

    async def wait(route: Route) -> None:
        await asyncio.wait_for(ready.wait(), 60)
        await route.continue_()

    await page.route("**/analysis/scores?*", wait)
    await page.get_by_label("compared with", exact=True).select_option("Thurstone, Case V")
    await page.get_by_role("button", name="Compare").click()
    await expect(page.locator("#scores .busy")).to_contain_text("Estimating …")
    await expect(page.get_by_role("progressbar", name="Estimating scores")).to_be_visible()
    await expect(page.locator("#scores .busy")).to_contain_text("Estimating … 2 s")
    assert await violations(page) == ""
    ready.set()
    await expect(page.locator("#scores-title")).to_contain_text("and Thurstone")
    await expect(page.locator(".busy")).to_have_count(0)


async def test_a_part_that_cannot_be_fetched_leaves_the_others_and_can_be_tried_again(
    answered_campaign: Any, study: Any
) -> None:
    page = await study(answered_campaign, "#labels")
    await page.route("**/analysis/labels*", lambda route: route.abort())
    await page.get_by_role("button", name="Divide", exact=True).click()
    await expect(page.locator("#labels").get_by_role("alert")).to_contain_text("The connection was lost.")
    await open_tab(page, "Scores")
    await expect(page.locator("#scores .dot")).to_have_count(10)
    await page.unroute("**/analysis/labels*")
    await open_tab(page, "Labels")
    await page.locator("#labels").get_by_role("link", name="Try again").click()
    await expect(page.locator("#labels").get_by_role("alert")).to_have_count(0)
    await expect(page.locator("#labels-table tbody tr")).to_have_count(2)


async def test_a_refusal_is_shown_in_the_servers_words(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "?one=nothing#scores", whole=False)
    await expect(page.locator("#scores").get_by_role("alert")).to_contain_text("There is no “nothing”.")
    await page.get_by_role("tab", name="Agreement").click()
    await expect(page.locator("#agreement .verdict")).to_be_visible()


async def test_an_answer_that_is_late_changes_nothing(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#labels")
    late = asyncio.Event()

    async def wait(route: Route) -> None:
        await asyncio.wait_for(late.wait(), 60)
        await route.continue_()

    await page.route("**/analysis/labels?classes=3*", wait)
    for classes in ("3", "4"):
        await page.get_by_label("Divide the scale into").select_option(classes)
        await page.get_by_role("button", name="Divide", exact=True).click()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(4)
    async with page.expect_response("**/analysis/labels?classes=3*"):
        late.set()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(4)
    await expect(page).to_have_url(re.compile(r"\?classes=4#labels$"))


async def test_a_logged_out_page_goes_to_the_login(
    answered_campaign: Any, study: Any, served: Any, session: str
) -> None:
    page = await study(answered_campaign, "#scores")
    async with served.begin() as connection:
        await login.end_session(connection, session)
    await page.get_by_role("button", name="Compare").click()
    await page.wait_for_url("**/login?next=**")


async def test_without_javascript_each_part_is_a_page(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, whole=False, java_script_enabled=False)
    await page.get_by_role("link", name="Show findings").click()
    await page.get_by_role("link", name="More on scores").click()
    await expect(page.locator(".dot")).to_have_count(10)
    await page.get_by_label("compared with", exact=True).select_option("Elo")
    await page.get_by_role("button", name="Compare").click()
    await expect(page.locator("#scores-title")).to_contain_text("and Elo")
    await page.locator("#scores-table thead").get_by_role("link", name="Item").click()
    await expect(page.locator("#scores-table tbody th").first).to_have_text("abide")
    await page.get_by_role("link", name="Labels").click()
    await page.get_by_label("Divide the scale into").select_option("5")
    await page.get_by_role("button", name="Divide", exact=True).click()
    await expect(page.locator("#labels-table tbody tr")).to_have_count(5)
    await page.get_by_role("link", name="Scores").click()
    await expect(page.locator("#scores-title")).to_contain_text("and Elo")


async def test_the_names_of_the_parts_stand_on_a_line_each(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, whole=False, **looks(1280))
    lines = "links => links.map((link) => link.getClientRects().length + (link.offsetHeight > 48))"
    parts = page.get_by_role("tablist", name="Parts of the analysis").get_by_role("tab")
    async for width in each_width(page, 1280, 390):
        assert await parts.evaluate_all(lines) == [1] * len(PARTS), width


async def test_the_page_is_accessible_and_fits(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, **looks(1280))
    for part in PARTS:
        await open_tab(page, part.capitalize())
        async for width in each_width(page, 1280, 390):
            assert await violations(page) == "", (part, width)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (part, width)


async def test_on_a_phone_a_wide_table_says_that_it_goes_on(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "#annotators", **looks(390))
    rows = page.locator("#annotators-rows")
    assert await rows.evaluate("rows => rows.scrollWidth > rows.clientWidth")
    assert "local" in await rows.evaluate("rows => getComputedStyle(rows).backgroundAttachment")
    name = rows.locator("tbody th").first
    before = (await bounding_box(name))["x"]
    await rows.focus()
    await page.keyboard.press("ArrowRight")
    await wait_for_value(lambda: rows.evaluate("rows => rows.scrollLeft > 0"), True)
    assert (await bounding_box(name))["x"] == before
    heights = await page.locator(".scroll thead").evaluate_all("heads => heads.map((head) => head.offsetHeight)")
    assert max(heights) <= 5 * 18


async def test_on_a_phone_figures_of_measures_stand_with_what_they_count(served: Any, task: Any, study: Any) -> None:
    campaign = await task(texts=VERBS[:8], items_per_hit=4, judgments_per_item=4)
    for person, hits in enumerate((2, 2, 2, 1)):  # the last one shares too few items for a correlation
        await answered(served, campaign, person, hits=hits)
    page = await study(campaign, "#agreement", **looks(390))
    await page.locator("#agreement-measures > summary").click()
    words = "cells => cells.map((cell) => cell.textContent + getComputedStyle(cell, '::after').content)"
    counted = await page.locator("#agreement td[data-of]:visible").evaluate_all(words)
    assert counted
    assert all(re.fullmatch(r'[\d,]+" (items?|annotators?|pairs? of judgments)"', cell) for cell in counted)
    await open_tab(page, "Consistency")
    rows = await page.locator("#consistency-rows tbody tr").all()
    assert rows
    for row in rows:
        number, of = [await bounding_box(row.locator(cell)) for cell in (".figure:not(.score)", ".of")]
        assert number["y"] == of["y"]
        assert 0 <= of["x"] - number["x"] - number["width"] < 8


LINES = """lines => lines.map((line) => {
  const { x, width } = line.getBoundingClientRect();
  return [Math.round(x), Math.round(width)].join();
})"""


@pytest.mark.parametrize("width", [390, 1280])
async def test_measures_are_drawn_on_lines_of_one_length_that_say_where_they_end(
    served: Any, task: Any, study: Any, width: int
) -> None:
    campaign = await task(texts=VERBS[:5], judgments_per_item=8)
    for person in range(2):
        await answered(served, campaign, person, hits=4)
    page = await study(campaign, "#consistency", **looks(width))
    rows = page.locator("#consistency-rows tbody tr")
    lines = rows.locator(".forest svg")
    assert await lines.count() >= 3
    assert len(set(await lines.evaluate_all(LINES))) == 1
    for row in await rows.filter(has=page.locator(".forest svg")).all():
        share = (await row.locator("th").inner_text()).endswith("that agree")
        assert await row.locator(".end:visible").all_inner_texts() == (["0", "1"] if share else ["−1", "1"])
        end, count = [await bounding_box(row.locator(part)) for part in (".end:last-child", ".figure:not(.score)")]
        assert end["x"] + end["width"] <= count["x"]


@pytest.mark.parametrize("width", [390, 1280])
async def test_words_of_pictures_stay_inside_and_apart(answered_campaign: Any, study: Any, width: int) -> None:
    page = await study(answered_campaign, "?one=easl-aware&other=thurstone", **looks(width))
    for part in ("scores", "annotators"):
        await open_tab(page, part.capitalize())
        figure = page.locator(f"#{part} .drawing")
        edges = await bounding_box(figure)
        words = [await bounding_box(text) for text in await figure.locator("text:visible").all()]
        for box in words:
            assert box["x"] >= edges["x"] - 1
            assert box["x"] + box["width"] <= min(edges["x"] + edges["width"] + 8, width)
            assert edges["y"] - 8 <= box["y"]
            assert box["y"] + box["height"] <= edges["y"] + edges["height"]
        assert not any(covers(one, other) for i, one in enumerate(words) for other in words[:i])
    assert await page.locator("#annotators .dot-label:visible").count() > 0
    await open_tab(page, "Scores")
    ticks = [await bounding_box(text) for text in await page.locator(".compact thead .forest text:visible").all()]
    assert not any(covers(one, other) for i, one in enumerate(ticks) for other in ticks[:i])


def covers(one: FloatRect, other: FloatRect) -> bool:
    return (
        one["x"] < other["x"] + other["width"]
        and other["x"] < one["x"] + one["width"]
        and one["y"] + 3 < other["y"] + other["height"]
        and other["y"] + 3 < one["y"] + one["height"]
    )


async def test_before_an_answer_the_page_is_accessible(task: Any, study: Any) -> None:
    page = await study(await task(), whole=False)
    await expect(page.get_by_text("No answers yet.")).to_be_visible()
    assert await violations(page) == ""


async def test_a_picture_stands_beside_its_figures_where_there_is_room(answered_campaign: Any, study: Any) -> None:
    page = await study(answered_campaign, "/scores", **looks(1280))
    picture, figures = page.locator(".board .drawing").first, page.get_by_role("heading", name="Correlation")
    for width, is_beside in ((1280, True), (768, False)):
        await page.set_viewport_size({"width": width, "height": 900})
        drawn, title = await bounding_box(picture), await bounding_box(figures)
        assert (title["x"] >= drawn["x"] + drawn["width"]) is is_beside
        assert (title["y"] < drawn["y"] + drawn["height"]) is is_beside
