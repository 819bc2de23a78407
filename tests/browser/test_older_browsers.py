"""Annotators' pages in browsers of 2022 (Chrome 100, Firefox 100, Safari 15.4), without what these lack."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from tests.browser.acts import expect_scores, open_hit, press_submit, score_all, wait_for_hit

NEWER_FUNCTIONS = """
  for (const [owner, names] of [
    [AbortSignal, ["timeout", "any"]], [URL, ["canParse", "parse"]],
    [Promise, ["withResolvers", "try"]], [Object, ["groupBy"]],
    [Map, ["groupBy"]], [Array, ["fromAsync"]],
    [Array.prototype, ["findLast", "findLastIndex", "toSorted", "toReversed", "toSpliced", "with"]],
    [Set.prototype, ["union", "intersection", "difference", "symmetricDifference", "isSubsetOf", "isSupersetOf"]],
    [String.prototype, ["isWellFormed", "toWellFormed"]], [Element.prototype, ["setHTML"]],
    [HTMLElement.prototype, ["showPopover", "togglePopover"]], [document, ["startViewTransition"]],
    [window, ["requestIdleCallback", "scheduler", "navigation", "TextDecoderStream", "CloseWatcher"]],
  ]) for (const name of names) { delete owner[name]; delete Object.getPrototypeOf(owner)?.[name]; }
"""
NEWER_SELECTOR = re.compile(r":has\(|:nth-child\([^)]* of |:popover")
NEWER_BLOCK = re.compile(r"@container|@starting-style|@scope|@supports selector\(:has")
NEWER_VALUE = re.compile(
    r"[\w-]+\s*:[^;{}]*(light-dark\(|color-mix\(|\d(cqi|cqw|dvh|svh|lvh|dvb)\b|subgrid|oklch|oklab)[^;{}]*;?"
)
BLOCK = re.compile(r"[^{};]*\{")


def css_of_2022(css: str) -> str:
    """Return a stylesheet without what a browser of 2022 drops: container queries, newer selectors and values."""
    css = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    kept, at = [], 0
    for block in BLOCK.finditer(css):
        begin = block.group().lstrip()
        dropped = NEWER_BLOCK.match(begin) if begin.startswith("@") else NEWER_SELECTOR.search(begin)
        if block.start() >= at and dropped:
            kept.append(css[at : block.start()])
            at = end_of_block(css, block.end())
    return NEWER_VALUE.sub("", "".join([*kept, css[at:]]))


def end_of_block(css: str, at: int) -> int:
    """Return where the block ends whose content begins at this place."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(css[at], 0)
        at += 1
    return at


async def older(visit: Any, width: int = 1280, **options: Any) -> Page:
    """Open a page in a browser without what is newer than 2022."""
    page: Page = (await visit(viewport={"width": width, "height": 844}, **options)).page
    await page.add_init_script(NEWER_FUNCTIONS)

    async def serve_older(route: Route) -> None:
        reply = await route.fetch()
        await route.fulfill(response=reply, body=css_of_2022(await reply.text()))

    await page.route("**/*.css*", serve_older)
    return page


def test_what_a_browser_of_2022_drops_is_taken_away() -> None:
    css = """a{b:c} @container page (max-width:1px){x{y:z} u{v:w}} .p:has(q) r{s:t}
        @supports selector(:has(*)){f{g:h}} @media print{i{j:k}} k{l:light-dark(m,n);o:p}"""
    assert css_of_2022(css).split() == ["a{b:c}", "@media", "print{i{j:k}}", "k{o:p}"]


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_set_of_sliders_is_scored_and_sent(task: Any, visit: Any, width: int, scheme: str) -> None:
    campaign = await task()
    page = await older(visit, width, color_scheme=scheme)
    await open_hit(page, campaign.prolific())
    await score_all(page, [71, 93, 17, 4, 41])
    await expect_scores(page, [71, 93, 17, 4, 41])
    thumb = page.locator(".row .thumb").first
    assert await thumb.evaluate("thumb => getComputedStyle(thumb).backgroundColor") not in (
        "rgba(0, 0, 0, 0)",
        "transparent",
    )
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if width == 390:
        text, track = [await page.locator(selector).first.bounding_box() for selector in (".row .text", ".row .track")]
        assert text
        assert track
        assert track["y"] >= text["y"] + text["height"] - 1  # the slider has a line of its own
        await expect(page.locator(".dock .primary")).to_be_in_viewport()
    await press_submit(page)
    assert len(await campaign.responses()) == 1


@pytest.mark.parametrize(
    "design", ["rating", "ordinal", "magnitude", "categories", "pairwise", "best_worst", "ranking"]
)
async def test_every_design_sends_its_answer(task: Any, visit: Any, design: str) -> None:
    items = {"pairwise": 2, "best_worst": 4}.get(design, 3)
    settings = {"design_settings": {"labels": ["one", "two"]}} if design == "categories" else {}
    campaign = await task(["abide", "run", "hum", "eat"][:items], design=design, items_per_hit=items, **settings)
    page = await older(visit, 390)
    await open_hit(page, campaign.prolific())
    await ANSWER[design](page)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await press_submit(page)
    assert len(await campaign.responses()) == 1


CRITERIA = [{"name": name, "question": f"Which is {name}?"} for name in ("clearer", "shorter")]


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_comparison_by_several_criteria_is_sent_and_its_tray_stays(task: Any, visit: Any, width: int) -> None:
    campaign = await task(["abide. " * 200, "run. " * 200], design="pairwise", criteria=CRITERIA)
    page = await older(visit, width)
    await open_hit(page, campaign.prolific())
    await press_keys(page, "2", "ArrowLeft", "1", "ArrowRight")
    for choice in await page.locator(".choice label").all():
        await expect(choice).to_be_in_viewport(ratio=1)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await press_submit(page)
    assert len(await campaign.responses()) == 1


async def rate(page: Page) -> None:
    await score_all(page, [10, 20, 30])


async def press_keys(page: Page, *keys: str) -> None:
    for key in keys:
        await page.keyboard.press(key)


async def give_numbers(page: Page) -> None:
    for field in await page.locator(".judged input").all():
        await field.fill("50")


ANSWER = {
    "rating": rate,
    "ordinal": lambda page: press_keys(page, "1", "2", "3"),
    "magnitude": give_numbers,
    "categories": lambda page: press_keys(page, "a", "b", "a"),
    "pairwise": lambda page: press_keys(page, "ArrowLeft"),
    "best_worst": lambda page: press_keys(page, "a", "Shift+B"),
    "ranking": lambda page: press_keys(page, "a", "b", "c"),
}


@pytest.mark.parametrize("design", ["slider", "rating"])
async def test_the_ends_of_the_scale_stay_in_sight_in_a_low_window(task: Any, visit: Any, design: str) -> None:
    campaign = await task(design=design, items_per_hit=5)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    for width, height in ((640, 330), (1280, 400)):
        await page.set_viewport_size({"width": width, "height": height})
        for row in range(5):
            track = page.locator(".row .track").nth(row)
            await track.evaluate("track => track.scrollIntoView({ block: 'center' })")
            await expect(page.locator(".strip .ends")).to_be_in_viewport(ratio=1)
            ends, rail = [await element.bounding_box() for element in (page.locator(".strip .ends"), track)]
            assert ends
            assert rail
            is_above, is_below = ends["y"] + ends["height"] <= rail["y"], ends["y"] >= rail["y"] + rail["height"]
            assert is_above or is_below, (width, row)  # it covers no slider in use
        await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)


async def test_browsers_are_told_not_to_translate_what_is_judged(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await page.goto((await task()).prolific())
    await wait_for_hit(page)
    translated = "element => !element.translate"
    for selector in (".row .text >> nth=0", "#question", ".ends span >> nth=0"):
        assert await page.locator(selector).evaluate(translated)
    assert not await page.locator(".instructions .prose").evaluate(translated)
