"""The campaign page in a browser: it moves when an answer came in, reads by pointer and keys, and looks right."""

import asyncio
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from app.accounts import login
from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.annotation.hits.test_unjudged import answer as answer_unable
from tests.browser.acts import bounding_box, each_width, press_submit, score_all, start_by_link, violations
from tests.browser.test_appearance import looks

PICTURE = "document.getElementById('heatmap').toDataURL()"


@pytest.fixture
def watch(visit: Any, origin: str, cookie: Any) -> Any:
    """Opens a campaign's page for a researcher."""

    async def open_page(campaign: Any, query: str = "", *, connected: bool = True, **options: Any) -> Page:
        page: Page = (await visit(**options)).page
        if not connected:
            await page.route("**/events", lambda route: route.abort())
        await page.context.add_cookies([cookie])
        # A page with an open stream is never quiet, so what is waited for is the picture.
        await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}{query}")
        if options.get("java_script_enabled", True) and campaign.row.status != "draft":
            await page.wait_for_function("() => document.querySelector('#heatmap')?.width === 10")
        return page

    return open_page


async def answer(visit: Any, campaign: Any) -> None:
    annotator = (await visit()).page
    await start_by_link(annotator, campaign.link)
    await score_all(annotator, [0, 20, 40, 80, 100])
    await press_submit(annotator)


async def answered(campaign: Any, scores: Sequence[float] = (50.0,) * 5) -> Any:
    """Someone answers a HIT behind the browser's back; the HIT."""
    now = datetime.now(UTC)
    me = await create_annotator(campaign.engine, campaign.row, secrets.token_hex(4))
    hit = await try_to_lease_hit(campaign.engine, me, now=now)
    await submit_scores(campaign.engine, me, hit, now=now, scores=list(scores))
    return hit


@pytest.fixture
def answered_task(task: Any) -> Any:
    """Makes a running campaign of ten verbs that somebody has answered; all items still stand at 50."""

    async def make(**settings: Any) -> Any:
        campaign = await task(**{"judgments_per_item": 3} | settings)
        await answered(campaign)
        return campaign

    return make


async def test_an_answer_moves_the_page_without_a_reload(visit: Any, watch: Any, task: Any) -> None:
    campaign = await task(judgments_per_item=3)
    page = await watch(campaign)
    await page.evaluate("window.loadedOnce = true")
    await expect(page.locator("#begin")).to_be_visible()
    await expect(page.locator("#begin svg.segno")).to_be_visible()
    await expect(page.locator("#scores, #heatmap, [data-plot]").filter(visible=True)).to_have_count(0)
    before = await page.evaluate(PICTURE)
    await answer(visit, campaign)
    await expect(page.locator('[data-word="judgments"]')).to_have_text("5 of 30")
    await expect(page.locator(".scores .score").first).to_have_text("100.0")
    await expect(page.locator("#begin")).to_be_hidden()
    await expect(page.locator("#heatmap")).to_be_visible()
    await page.wait_for_function(f"before => {PICTURE} !== before", arg=before)
    await expect(page.locator('[data-rows="histogram"] td.figure')).not_to_have_text(["0"] * 10 + ["10"] + ["0"] * 9)
    assert await page.evaluate("window.loadedOnce")


async def test_the_overview_opens_at_its_top(watch: Any, answered_task: Any) -> None:
    page = await watch(await answered_task())
    await expect(page.locator("#heatmap")).to_be_visible()
    assert await page.evaluate("scrollY") == 0


async def test_a_page_that_lost_its_connection_catches_up(watch: Any, task: Any) -> None:
    campaign = await task(judgments_per_item=3)
    page = await watch(campaign, connected=False)
    await page.evaluate("window.loadedOnce = true")
    await expect(page.locator("#connection")).to_contain_text("The connection was lost")
    await answered(campaign, [0.0, 20.0, 40.0, 80.0, 100.0])
    await expect(page.locator('[data-word="judgments"]')).to_have_text("0 of 30")
    await page.unroute("**/events")
    await expect(page.locator('[data-word="judgments"]')).to_have_text("5 of 30")
    await expect(page.locator("#connection")).to_be_empty()
    assert await page.evaluate("window.loadedOnce")


async def test_a_page_catches_up_after_a_proxy_has_refused_its_requests(watch: Any, task: Any) -> None:
    """A browser does not try again by itself after a refusal."""
    campaign = await task(judgments_per_item=3)
    page = await watch(campaign, connected=False)
    await page.evaluate("window.loadedOnce = true")
    are_refused = asyncio.Event()

    async def refuse(route: Route) -> None:
        await route.fulfill(status=502, body="Bad gateway")
        if not route.request.url.endswith("/events"):  # the page asks for its parts after the refusal of events
            are_refused.set()

    await page.route("**/admin/campaigns/**", refuse)
    await page.unroute("**/events")
    async with asyncio.timeout(60):
        await are_refused.wait()
    await answered(campaign, [0.0, 20.0, 40.0, 80.0, 100.0])
    await expect(page.locator("#connection")).to_contain_text("The connection was lost")
    await page.unroute("**/admin/campaigns/**")
    await expect(page.locator('[data-word="judgments"]')).to_have_text("5 of 30")
    await expect(page.locator("#connection")).to_be_empty()
    assert await page.evaluate("window.loadedOnce")


async def test_a_search_that_a_proxy_refused_is_made_up_for_when_the_server_is_back(
    watch: Any, answered_task: Any
) -> None:
    """No answer comes meanwhile, so no new state does."""
    page = await watch(await answered_task(), connected=False)
    await expect(page.locator("#connection")).to_contain_text("The connection was lost")
    await page.route("**/admin/campaigns/**", lambda route: route.fulfill(status=502, body="Bad gateway"))
    async with page.expect_response("**/admin/campaigns/*?*"):
        await page.get_by_role("searchbox").fill("run")
    await page.unroute("**/admin/campaigns/**")
    await page.unroute("**/events")
    await expect(page.locator(".scores tbody th")).to_have_text(["run"])


async def test_a_pause_shows_on_every_open_page(watch: Any, task: Any) -> None:
    campaign = await task()
    page, other = await watch(campaign), await watch(campaign)
    await page.get_by_role("button", name="Pause").click()
    await expect(other.locator(".state")).to_have_text("paused")
    await expect(other.get_by_role("button", name="Resume")).to_be_visible()


async def test_sorting_searching_and_choosing_keep_the_page_and_change_its_address(
    watch: Any, answered_task: Any
) -> None:
    page = await watch(await answered_task())
    await page.evaluate("window.loadedOnce = true")
    await page.locator(".scores thead").get_by_role("link", name="Item").click()
    await expect(page.locator("[aria-sort=ascending]")).to_have_count(1)
    await expect(page.locator(".scores tbody th").first).to_have_text("abide")
    await page.get_by_role("searchbox").fill("RUN")
    await page.get_by_role("searchbox").press("Enter")
    await expect(page.locator(".scores tbody th")).to_have_text(["run"])
    await page.locator(".scores tbody").get_by_role("link", name="run").click()
    await expect(page.locator("#item-title")).to_contain_text("run")
    await expect(page.locator("#item .uplot")).to_be_visible()
    await expect(page).to_have_url(re.compile(r"\?sort=name&order=up&search=RUN&item=1#item$"))
    await page.reload()
    await expect(page.locator("#item-title")).to_contain_text("run")
    await page.go_back()
    await expect(page.locator("#item")).to_be_hidden()


async def test_the_heatmap_names_the_pair_under_the_pointer_and_the_keys(watch: Any, answered_task: Any) -> None:
    page = await watch(await answered_task())
    words = page.locator("#heatmap-readout")
    usual = await words.inner_text()
    await page.locator("#heatmap").scroll_into_view_if_needed()
    box = await bounding_box(page.locator("#heatmap"))
    await page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.05)
    await expect(words).to_have_text(re.compile(r"^abide × accrue: q = 0\.\d\d$"))
    await page.mouse.move(0, 0)
    await expect(words).to_have_text(usual)
    await page.locator("#heatmap-png").focus()
    await page.keyboard.press("Tab")
    await expect(words).to_have_text(re.compile("^abide × abide: q"))
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowDown"):
        await page.keyboard.press(key)
    await expect(words).to_have_text(re.compile("^run × accrue: q"))
    await page.keyboard.press("End")
    await expect(words).to_have_text(re.compile("^run × eat: q"))
    await page.keyboard.press("Escape")
    await expect(words).to_have_text(usual)


async def test_charts_are_chosen_by_tabs_and_their_bars_read_by_pointing(watch: Any, answered_task: Any) -> None:
    page = await watch(await answered_task())
    await page.get_by_role("tab", name="Match quality").focus()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("tab", name="Distribution")).to_be_focused()
    await expect(page.locator("#heatmap")).to_be_hidden()
    await expect(page).to_have_url(re.compile(r"\?chart=distribution$"))
    bars = page.locator('[data-plot="histogram"] .u-over')
    await bars.scroll_into_view_if_needed()
    box = await bounding_box(bars)
    await page.mouse.move(box["x"] + box["width"] * 0.51, box["y"] + 20)
    await expect(page.locator('[data-readout="histogram"]')).to_have_text("50 to 55 points: 10 items")


async def test_uncertainty_and_an_items_first_judgments_are_drawn_and_behind_in_tables(watch: Any, task: Any) -> None:
    campaign = await task(judgments_per_item=9, items_per_hit=10)  # so that every HIT shows every item
    page = await watch(campaign, "?item=1&chart=uncertainty")
    await expect(page.locator("#item")).to_contain_text("Not judged yet. The curve is the prior")
    for _ in range(4):
        await answered(campaign, [40.0 + 2.0 * k for k in range(10)])
    await expect(page.locator("#cards")).to_contain_text("4 tasks")
    rows = page.locator('[data-rows="uncertainty"] tr')
    await expect(rows).to_have_count(5)  # before the first answer, and after each
    values = [float(await row.locator("td").nth(1).text_content() or 0) for row in await rows.all()]
    assert values[0] == 50.0 > values[-1]
    curve = page.locator('[data-plot="uncertainty"] .u-over')
    await curve.scroll_into_view_if_needed()
    box = await bounding_box(curve)
    await page.mouse.move(box["x"] + box["width"] - 1, box["y"] + 20)
    await expect(page.locator('[data-readout="uncertainty"]')).to_have_text(f"After 4 tasks: ± {values[-1]:.2f} points")
    judged = next(
        row
        for row in await campaign.rows(
            "SELECT number, judgments FROM current_posteriors WHERE campaign_id = :campaign ORDER BY judgments DESC"
        )
    )
    page = await watch(campaign, f"?item={judged.number}")
    moments = page.get_by_role("region", name="The score over time").locator("tbody tr td:first-child")
    await expect(moments).to_have_text(["1 judgment", f"{judged.judgments} judgments, now"])


WRITTEN = """() => {
    window.written = [];
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (words, x, y) {
      const width = this.measureText(words).width;
      const left = this.textAlign === "center" ? x - width / 2 : x - width;
      const lies = Math.abs(this.getTransform().a) > 0.5;
      const [align, end, room] = [this.textAlign, left + width, this.canvas.width];
      if (lies) window.written.push({ words, align, left, end, room });
      return fillText.apply(this, arguments);
    };
}"""
FAST = """async () => {
    window.written.length = 0;
    const { bars } = await import("/static/admin/charts.js");
    const place = document.querySelector('[data-plot="pace"]').cloneNode(false);
    document.querySelector('[data-plot="pace"]').after(place);
    const chart = { begin: 1767603600, width: 3600, heights: [98765, 12000, 50000], time: true };
    bars(place, { ...chart, xLabel: "time", yLabel: "tasks per hour" }, () => {});
    await new Promise((done) => setTimeout(done, 100));
    return window.written;
}"""
TITLE_ROOM = 18  # what the axis's title takes at the left


@pytest.mark.parametrize("width", [1280, 390])
async def test_no_number_of_a_chart_is_cut_off_or_lies_on_the_title(
    visit: Any, watch: Any, task: Any, width: int
) -> None:
    page = await watch(await task(), **looks(width))
    await page.evaluate(WRITTEN)
    written = await page.evaluate(FAST)
    assert "50,000" in [one["words"] for one in written]
    assert len([one for one in written if one["align"] == "center"]) > 1
    for one in written:
        assert one["left"] >= (TITLE_ROOM if one["align"] == "right" else 0), one
        assert one["end"] <= one["room"], one


async def test_without_javascript_counts_table_and_drawings_are_there(watch: Any, task: Any) -> None:
    campaign = await task(judgments_per_item=3)
    await answered(campaign, [0.0, 20.0, 40.0, 80.0, 100.0])
    page = await watch(campaign, "?item=1&columns=sd", java_script_enabled=False)
    await expect(page.locator('[data-word="judgments"]')).to_have_text("5 of 30")
    await expect(page.locator(".scores tbody tr")).to_have_count(10)
    for image in await page.locator("noscript img").all():
        assert await image.evaluate("image => image.decode().then(() => image.naturalWidth)") == 640
    await page.locator(".scores thead").get_by_role("link", name="SD").click()
    await expect(page.locator("[aria-sort=descending]")).to_contain_text("SD")


async def test_the_page_is_accessible_and_fits(watch: Any, task: Any) -> None:
    campaign = await task(judgments_per_item=3)
    empty = await watch(campaign, **looks(1280))
    async for width in each_width(empty, 1280, 390):
        assert await violations(empty) == "", width
    await answered(campaign, [0.0, 20.0, 40.0, 80.0, 100.0])
    page = await watch(campaign, "?item=1", **looks(1280))
    for details in await page.locator(".dashboard details").filter(visible=True).all():
        await details.locator("summary").click()
        await expect(details).to_have_attribute("open", "")
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/match-quality")
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width


async def test_a_draft_is_accessible(watch: Any, task: Any) -> None:
    page = await watch(await task(launched=False))
    await expect(page.get_by_role("link", name="Launch …").first).to_be_visible()
    assert await violations(page) == ""


async def test_charts_follow_the_theme(watch: Any, answered_task: Any) -> None:
    page = await watch(await answered_task(), "?chart=distribution", color_scheme="light")
    ink = "document.querySelector('[data-plot=histogram] canvas').toDataURL()"
    light = await page.evaluate(ink)
    await page.emulate_media(color_scheme="dark")
    await page.wait_for_function(f"light => {ink} !== light", arg=light)


async def test_a_logged_out_page_goes_to_the_login(watch: Any, served: Any, session: str, answered_task: Any) -> None:
    page = await watch(await answered_task())
    await expect(page.locator("#updated")).to_contain_text("live")
    async with served.begin() as connection:
        await login.end_session(connection, session)
    await page.wait_for_url("**/login?next=**")


async def test_an_item_opens_in_a_drawer_arrows_walk_and_escape_closes(watch: Any, answered_task: Any) -> None:
    page = await watch(await answered_task(), "?sort=name&order=up", viewport={"width": 1280, "height": 900})
    await page.locator(".scores tbody").get_by_role("link", name="bring").press("Enter")
    title = page.locator("#item-title")
    await expect(title).to_have_text("bring")
    await expect(title).to_be_focused()
    table, item = await bounding_box(page.locator(".scores table")), await bounding_box(page.locator("#item"))
    assert item["x"] >= table["x"] + table["width"]
    await page.keyboard.press("ArrowDown")
    await expect(title).to_have_text("eat")
    await expect(page.locator(".scores [aria-current]")).to_have_text("eat")
    await expect(title).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(title).to_have_text("bring")
    await expect(page).to_have_url(re.compile("item=7#item$"))
    await page.keyboard.press("Escape")
    await expect(page.locator("#item")).to_be_hidden()
    await expect(page.locator(".scores").get_by_role("link", name="bring")).to_be_focused()


async def test_a_search_shows_items_while_it_is_typed_and_columns_are_chosen_from_a_menu(
    watch: Any, answered_task: Any
) -> None:
    page = await watch(await answered_task())
    search = page.get_by_role("searchbox")
    await search.press_sequentially("run")
    await expect(page).to_have_url(re.compile(r"\?search=run\b"))  # its first letters may find the same item
    await expect(page.locator(".scores tbody th")).to_have_text(["run"])
    await expect(search).to_be_focused()
    await expect(search).to_have_value("run")
    await page.locator("main .menu summary").click()
    await page.get_by_label("Variance of the score").check()
    await expect(page.locator(".scores thead")).to_contain_text("Variance")
    await expect(page).to_have_url(re.compile(r"\?search=run&columns=interval&columns=variance#scores$"))
    await page.keyboard.press("Escape")
    await expect(page.get_by_label("Variance of the score")).to_be_hidden()


async def test_arrows_go_on_over_the_end_of_a_page(visit: Any, cookie: Any, answered_task: Any) -> None:
    campaign = await answered_task(texts=[f"verb {k:02}" for k in range(25)])
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}?sort=name&order=up&item=19#item")
    await page.locator(".scores tbody").get_by_role("link", name="verb 19").focus()
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#item-title")).to_have_text("verb 20")
    await expect(page.locator(".scores").get_by_role("link", name="verb 20")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(page.locator("#item-title")).to_have_text("verb 19")
    await page.get_by_label("Page", exact=True).fill("2")
    await page.get_by_label("Page", exact=True).press("Enter")
    await expect(page.locator(".scores tbody th").first).to_have_text("verb 20")


CHANGES = """() => {
    window.slid = 0;
    const animate = Element.prototype.animate;
    Element.prototype.animate = function (...how) { window.slid += 1; return animate.apply(this, how); };
}"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
async def test_rows_that_moved_slide(watch: Any, answered_task: Any, motion: str) -> None:
    campaign = await answered_task()
    page = await watch(campaign, reduced_motion=motion)
    await expect(page.locator("#updated")).to_have_text(re.compile(r"^live · updated \d+ s ago$"))
    await page.evaluate(CHANGES)
    await answered(campaign, [0.0, 25.0, 50.0, 75.0, 100.0])
    await expect(page.locator(".scores .score").first).not_to_have_text("50.0")
    assert (await page.evaluate("slid") > 0) == (motion == "no-preference")


async def test_what_cannot_be_judged_is_listed_as_it_is_said(answered_task: Any, watch: Any) -> None:
    campaign = await answered_task(cannot_be_judged=True)
    page = await watch(campaign)
    heading = page.get_by_role("heading", name="Cannot be judged")
    await expect(heading).to_have_count(0)
    for k in range(2):
        me = await create_annotator(campaign.engine, campaign.row, f"unable {k}")
        hit = await try_to_lease_hit(campaign.engine, me, now=datetime.now(UTC))
        await answer_unable(campaign.engine, me, hit, hit.items)
    await expect(heading).to_be_visible()
    assert await violations(page) == ""
    item = page.locator("#unjudged tbody a").first
    await item.click()
    await expect(page.get_by_role("region", name="Annotators who could not judge it")).to_contain_text("It is broken")
