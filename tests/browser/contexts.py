"""Browser contexts that tests use one after another, each as if it were new.

What a context has fetched stays, and a page that is never closed keeps the process that has compiled it. To start a
process, fetch and compile for each test takes a quarter of the browser's time. For the same reason, tests whose pages
differ in size or colours share contexts: these belong to a page.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Route, ViewportSize

# With the page that is never closed, all pages of a context use one process.
ONE_PROCESS_SWITCH = "--renderer-process-limit=1"
# A port is no part of a site, so this is the site of all servers of the tests, and a process belongs to a site.
ADDRESS_ON_SITE = "http://127.0.0.1/"
DEFAULT_VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
MEDIA_OPTIONS = {"color_scheme", "forced_colors", "reduced_motion"}
# Of a page without content: a clock or a script that a test installs for all pages of a context shows here.
LIST_GLOBAL_NAMES = "() => Object.getOwnPropertyNames(window).sort().join(' ')"


@dataclass(frozen=True)
class ReusableContext:
    """A context, what was asked for when it was made, and a session of DevTools that clears its storage."""

    context: BrowserContext
    kind: str
    unclosed_page: Page
    session: CDPSession


class BrowserContexts:
    """Opens pages in contexts that have no cookies, storage and pages of an earlier test."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._resting: defaultdict[str, list[ReusableContext]] = defaultdict(list)
        self._used: dict[BrowserContext, ReusableContext] = {}
        self._global_names: dict[str, str] = {}

    async def open_page(self, options: dict[str, Any]) -> Page:
        """Open a page in a context that no one else uses, until `reset_and_keep` is called with it.

        Args:
            options: Those of Playwright's `new_context`. Other pages of the context, which only the test itself opens,
                have the viewport and the media of a context without options.

        """
        media = {name: value for name, value in options.items() if name in MEDIA_OPTIONS}
        viewport = options.get("viewport", DEFAULT_VIEWPORT)
        page = await self._open_page_of_context(
            {name: value for name, value in options.items() if name not in media} | {"viewport": DEFAULT_VIEWPORT}
        )
        if viewport != DEFAULT_VIEWPORT:
            await page.set_viewport_size(viewport)
        if media:
            await page.emulate_media(**media)
        return page

    async def _open_page_of_context(self, options: dict[str, Any]) -> Page:
        kind = json.dumps(options, sort_keys=True)
        while self._resting[kind]:
            reusable = self._resting[kind].pop()
            page = await reusable.context.new_page()
            if await page.evaluate(LIST_GLOBAL_NAMES) == self._global_names[kind]:
                self._used[reusable.context] = reusable
                return page
            await reusable.context.close()
        reusable = await self._make(options, kind)
        page = await reusable.context.new_page()
        self._global_names.setdefault(kind, await page.evaluate(LIST_GLOBAL_NAMES))
        self._used[reusable.context] = reusable
        return page

    async def open_page_in_new_context(self, options: dict[str, Any]) -> Page:
        """Open a page in a context that `reset_and_keep` closes."""
        return await (await self._browser.new_context(**options)).new_page()

    async def _make(self, options: dict[str, Any], kind: str) -> ReusableContext:
        context = await self._browser.new_context(**options)
        page = await context.new_page()

        async def answer(route: Route) -> None:
            await route.fulfill(body="", content_type="text/html")

        await page.route(ADDRESS_ON_SITE, answer)
        await page.goto(ADDRESS_ON_SITE)
        await page.unroute_all()
        return ReusableContext(context, kind, page, await context.new_cdp_session(page))

    async def reset_and_keep(self, context: BrowserContext, addresses: set[str]) -> None:
        """Remove what a test left in a context whose pages showed these addresses, or close one of a single test."""
        reusable = self._used.pop(context, None)
        if reusable is None:
            await context.close()
            return
        await context.unroute_all(behavior="ignoreErrors")  # a script that is on its way is of no interest any more
        for page in context.pages:
            if page is not reusable.unclosed_page:
                await page.close()
        await context.set_offline(False)
        await context.clear_cookies()
        await context.clear_permissions()
        for origin in {f"{url.scheme}://{url.netloc}" for url in map(urlsplit, addresses) if url.netloc}:
            await reusable.session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self._resting[reusable.kind].append(reusable)

    async def close(self) -> None:
        for kept in self._resting.values():
            for reusable in kept:
                await reusable.context.close()
