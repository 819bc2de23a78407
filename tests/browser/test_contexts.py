"""A browser context that tests use one after another has nothing of the test before."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route

from tests.browser.contexts import BrowserContexts

OPTIONS: dict[str, Any] = {"viewport": {"width": 700, "height": 500}}
STORE_EVERYWHERE = """async () => {
    document.cookie = "who=somebody";
    localStorage.setItem("who", "somebody");
    sessionStorage.setItem("who", "somebody");
    await (await caches.open("who")).put("/somebody", new Response("somebody"));
    await new Promise((opened) => (indexedDB.open("who").onsuccess = opened));
}"""
LIST_STORED = """async () => [
    ...document.cookie.split(";").filter(Boolean), ...Object.keys(localStorage), ...Object.keys(sessionStorage),
    ...(await caches.keys()), ...(await indexedDB.databases()).map((database) => database.name),
]"""


@pytest_asyncio.fixture
async def contexts(browser: Browser) -> AsyncIterator[BrowserContexts]:
    contexts = BrowserContexts(browser)
    yield contexts
    await contexts.close()


@pytest.fixture
def address(origin: str) -> str:
    return f"{origin}/login"


async def open_again(contexts: BrowserContexts, page: Page, *requested: str) -> Page:
    """End the use of this page's context, and open a page with the same options."""
    await contexts.reset_and_keep(page.context, {*requested})
    return await contexts.open_page(OPTIONS)


async def test_it_has_no_cookies_and_no_storage(contexts: BrowserContexts, address: str) -> None:
    page = await contexts.open_page(OPTIONS)
    await page.goto(address)
    await page.evaluate(STORE_EVERYWHERE)
    assert len(await page.evaluate(LIST_STORED)) == 5
    again = await open_again(contexts, page, address)
    assert again.context is page.context
    await again.goto(address)
    assert await again.evaluate(LIST_STORED) == []


async def test_it_has_no_cookie_of_an_address_that_no_page_requested(contexts: BrowserContexts, address: str) -> None:
    page = await contexts.open_page(OPTIONS)
    await page.context.add_cookies([{"name": "who", "value": "somebody", "url": address}])
    again = await open_again(contexts, page)
    assert again.context is page.context
    assert await again.context.cookies() == []


async def test_it_is_online_and_intercepts_no_request(contexts: BrowserContexts, address: str) -> None:
    async def answer(route: Route) -> None:
        await route.fulfill(body="intercepted")

    page = await contexts.open_page(OPTIONS)
    await page.context.route("**", answer)
    await page.context.set_offline(True)
    again = await open_again(contexts, page)
    assert again.context is page.context
    await again.goto(address)
    assert "intercepted" not in await again.content()
    assert await again.evaluate("navigator.onLine")


async def test_it_has_no_page_of_before_and_the_size_that_was_asked_for(contexts: BrowserContexts) -> None:
    page = await contexts.open_page(OPTIONS)
    other = await page.context.new_page()
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.emulate_media(color_scheme="dark", forced_colors="active")
    again = await open_again(contexts, page)
    assert again.context is page.context
    assert (page.is_closed(), other.is_closed()) == (True, True)
    assert await again.evaluate("[innerWidth, innerHeight]") == [700, 500]
    assert not await again.evaluate("matchMedia('(prefers-color-scheme: dark), (forced-colors: active)').matches")


async def test_pages_of_another_size_in_other_colours_share_it(contexts: BrowserContexts) -> None:
    page = await contexts.open_page({"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"})
    assert await page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [390, True]
    again = await open_again(contexts, page)
    assert again.context is page.context
    assert await again.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]") == [700, False]


async def test_a_new_page_has_the_focus(contexts: BrowserContexts, address: str) -> None:
    page = await contexts.open_page(OPTIONS)
    again = await open_again(contexts, page)
    await again.goto(address)
    assert await again.evaluate("document.hasFocus()")


async def test_one_whose_pages_have_a_clock_or_a_script_of_a_test_is_not_used_again(contexts: BrowserContexts) -> None:
    page = await contexts.open_page(OPTIONS)
    await page.clock.install(time=datetime(2020, 1, 1, tzinfo=UTC))
    again = await open_again(contexts, page)
    assert again.context is not page.context
    assert await again.evaluate("new Date().getFullYear()") != 2020
    await again.context.add_init_script("window.left = 1")
    third = await open_again(contexts, again)
    assert third.context is not again.context
    assert await third.evaluate("window.left") is None


async def test_two_at_a_time_are_two_people(contexts: BrowserContexts) -> None:
    one, other = await contexts.open_page(OPTIONS), await contexts.open_page(OPTIONS)
    assert one.context is not other.context


async def test_one_that_sends_other_headers_is_used_only_by_visits_that_send_them(contexts: BrowserContexts) -> None:
    headers = {"extra_http_headers": {"who": "somebody"}}
    other = await contexts.open_page(OPTIONS | headers)
    await contexts.reset_and_keep(other.context, set())
    usual = await contexts.open_page(OPTIONS)
    assert usual.context is not other.context
    assert (await contexts.open_page(OPTIONS | headers)).context is other.context
