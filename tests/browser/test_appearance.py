"""Promises of every annotator's page: accessible, light, still, self-contained, and silent about estimates."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.acts import (
    SUBMIT,
    click_at,
    each_width,
    expect_scores,
    grab,
    open_hit,
    point_on_strip,
    press_submit,
    score_all,
    violations,
    wait_for_hit,
)

LIGHTEST_BYTES = 100_000
STATIC = Path(__file__).resolve().parents[2] / "static"
LONG = ["A sentence that is long enough to stand above the slider, over the whole width of the page. " * 12, "short"]
LOADED = """
    Object.fromEntries(["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type))
      .filter((entry) => !entry.name.startsWith("data:")).map((entry) => [entry.name, entry.decodedBodySize]))
"""
SHIFTS = """
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.shifts.push(entry.value);
    }).observe({type: 'layout-shift', buffered: true});
"""


def looks(width: int) -> dict[str, Any]:
    """A desk's screen or a phone's, for somebody who wants no motion."""
    return {"viewport": {"width": width, "height": 900 if width > 500 else 844}, "reduced_motion": "reduce"}


FITS = "document.documentElement.scrollWidth <= innerWidth"


@pytest.fixture(params=[1280, 390])
async def page(request: pytest.FixtureRequest, visit: Any) -> AsyncIterator[Page]:
    page: Page = (await visit(**looks(request.param))).page
    yield page
    assert await page.evaluate(FITS)


@pytest.fixture
async def phone(visit: Any) -> Page:
    page: Page = (await visit(**looks(390))).page
    return page


async def is_good(page: Page) -> None:
    """On a desk's screen and on a phone's, axe finds nothing and nothing sticks out."""
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.evaluate(FITS), width


async def test_scoring_is_accessible(phone: Page, task: Any) -> None:
    campaign = await task(middle_label="now and then")
    await phone.goto(campaign.link)
    await is_good(phone)
    await phone.get_by_role("button", name="Start").click()
    await wait_for_hit(phone)
    await is_good(phone)
    await score_all(phone, [71, 93, 17])
    await phone.keyboard.press("?")
    await is_good(phone)
    await score_all(phone, [50] * 5)
    await phone.locator(SUBMIT).click()
    await expect(phone.locator(SUBMIT)).to_have_text("Submit all equal")
    await is_good(phone)
    await phone.route("**/link/**", lambda route: route.abort())
    await phone.locator(SUBMIT).click()
    await expect(phone.get_by_role("button", name="Try now")).to_be_visible()
    await is_good(phone)


async def test_long_texts_are_accessible(phone: Page, task: Any) -> None:
    await open_hit(phone, (await task(texts=LONG, items_per_hit=2, show_numbers=False)).prolific())
    await score_all(phone, [71, 71])
    await is_good(phone)


async def test_pages_without_a_hit_are_accessible(phone: Page, task: Any, crowd: Any) -> None:
    campaign = await task(texts=["abide", "run"], items_per_hit=2, prolific_completion_code="C0DE")
    await phone.goto(campaign.mturk(crowd, "ASSIGNMENT_ID_NOT_AVAILABLE"))
    await is_good(phone)
    await phone.goto(campaign.prolific())
    await score_all(phone, [71, 93])
    await press_submit(phone)
    await is_good(phone)
    await phone.goto((await task(launched=False)).prolific())
    await is_good(phone)
    await phone.goto(f"{campaign.link}-unknown")
    await is_good(phone)


async def test_nothing_jumps_while_a_hit_is_loaded_and_scored(page: Page, task: Any) -> None:
    await page.add_init_script(SHIFTS)
    await open_hit(page, (await task()).prolific())
    await score_all(page, [71, 93, 17])
    await grab(page, ".chip:nth-child(4)")
    for score in range(5, 60, 5):
        await page.mouse.move(*await point_on_strip(page, score))
    await page.mouse.up()
    await page.keyboard.press("e")
    for key in ("Home", "End", "PageDown", "ArrowLeft"):
        await page.keyboard.press(key)
    await expect(page.locator(SUBMIT)).to_have_attribute("aria-disabled", "false")
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert sum(await page.evaluate("shifts")) < 0.01


@pytest.fixture
async def in_halves() -> AsyncIterator[Callable[[str], Awaitable[tuple[str, asyncio.Event]]]]:
    """Serves a page whose connection stalls after the last row; its address, and the event that lets the rest come."""
    servers = []

    async def serve(html: str) -> tuple[str, asyncio.Event]:
        go_on, half = asyncio.Event(), html.index("</ol>", html.index('class="rows"'))

        async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n")
            writer.write(html[:half].encode())
            await go_on.wait()
            writer.write(html[half:].encode())
            writer.close()

        servers.append(await asyncio.start_server(reply, "127.0.0.1"))
        host, port = servers[-1].sockets[0].getsockname()
        return f"http://{host}:{port}", go_on

    yield serve
    for server in servers:
        server.close()


async def test_sliders_show_when_they_work_also_on_a_slow_connection(page: Page, task: Any, in_halves: Any) -> None:
    campaign = await task()
    async with httpx.AsyncClient(headers={"accept": "text/html"}) as client:
        html = (await client.get(campaign.prolific())).text
    address, go_on = await in_halves(html)

    async def from_there(route: Route) -> None:
        await route.fulfill(response=await route.fetch(url=route.request.url.replace(address, campaign.origin)))

    await page.route(f"{address}/static/**", from_there)
    await page.goto(address, wait_until="commit")
    await expect(page.locator(".scripted .row .hint")).to_have_count(5)
    await expect(page.get_by_role("heading", name="Lexical frequency")).to_be_visible()
    await expect(page.locator(".hit :visible")).to_have_count(0)
    go_on.set()
    await expect(page.locator(".row .hint:visible")).to_have_count(1)
    await click_at(page, 0, 30)
    await expect_scores(page, [30, None, None, None, None])


async def test_page_script_and_style_are_light_and_come_from_here_alone(task: Any, visit: Any, origin: str) -> None:
    opened = await visit(requests_noted=True)
    await open_hit(opened.page, (await task(items_per_hit=10)).prolific())
    loaded = await opened.page.evaluate(LOADED)
    names = {name.removeprefix(f"{origin}/static/").partition("?")[0] for name in list(loaded)[1:]}
    folders = [STATIC / "hit", STATIC / "designs" / "slider"]
    parts = {path.relative_to(STATIC).as_posix() for folder in folders for path in folder.iterdir()}
    parts -= {"hit/native.js", "hit/choices.js", "hit/letters.js"}  # of designs made of native controls
    parts -= {"hit/remarks.js"}  # of campaigns that offer comments or flags
    # of items that are more than texts
    parts -= {"hit/playback.js", "hit/player_keys.js", "hit/switching.js", "hit/zoom.js"}
    assert names == {"easel.css", "scripted.js", "hit.js", "designs/slider.js", *parts}
    assert 10_000 < sum(loaded.values()) < LIGHTEST_BYTES
    await score_all(opened.page, range(10))
    await press_submit(opened.page)
    assert [url for url in opened.requested if not url.startswith((origin, "data:"))] == []


async def test_the_policy_allows_nothing_inline(task: Any, visit: Any) -> None:
    reply = await (await visit()).page.goto((await task()).prolific())
    policy = reply.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy


async def test_the_current_estimate_is_not_in_the_page(task: Any, visit: Any) -> None:
    campaign = await task(prior=[123457.0, 234567.0])
    page = (await visit()).page
    sources: list[str] = []
    await open_hit(page, campaign.prolific())
    sources.append(await page.content())
    await score_all(page, [1, 2, 3, 4, 5])
    async with page.expect_response(lambda response: response.request.method == "POST") as reply:
        await page.locator(SUBMIT).click()
    sources.append(await (await reply.value).text())
    for posterior in await campaign.rows(
        "SELECT state[1], state[2], score, variance FROM current_posteriors WHERE campaign_id = :campaign"
    ):
        for value in posterior:
            assert all(f"{value:.6g}" not in source for source in sources)


async def test_colours_are_left_to_the_reader_who_forces_them(task: Any, visit: Any) -> None:
    page = (await visit(forced_colors="active")).page
    await open_hit(page, (await task()).prolific())
    await score_all(page, [71, 93])
    assert await violations(page) == ""
    thumb, rail = page.locator(".thumb").first, page.locator(".row .rail").first
    dots = "rail => getComputedStyle(rail, '::before').backgroundImage"
    assert [await rail.evaluate(dots) != "none" for rail in await page.locator(".row .rail").all()] == [
        False, False, True, True, True,
    ]  # fmt: skip
    assert await thumb.evaluate("thumb => getComputedStyle(thumb).backgroundColor") != await rail.evaluate(
        "rail => getComputedStyle(rail, '::before').backgroundColor"
    )


async def test_rows_slide_to_their_new_place_unless_motion_is_unwanted(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await open_hit(page, (await task()).prolific())
    await score_all(page, [1, 2, 3, 4, 5])
    moving = await page.evaluate(
        "() => { document.querySelector('.sort').click(); return document.getAnimations().length; }"
    )
    assert moving >= 4
