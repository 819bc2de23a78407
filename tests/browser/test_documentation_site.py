"""The documentation as readers see it: formulas and search work, and nothing comes from another host."""

import asyncio
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.acts import PATIENT_MS
from tests.documentation_site import build_site

pytestmark = pytest.mark.slow

PAUSE_MS = 200  # between two presses, for the search to answer


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    site = build_site(tmp_path_factory.mktemp("site"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


async def open_first_result(page: Page) -> None:
    """Press Enter until the search has a result and opens it; results are in a closed shadow root."""
    before = page.url
    async with asyncio.timeout(PATIENT_MS / 1000):
        while page.url == before:
            await page.wait_for_timeout(PAUSE_MS)
            await page.keyboard.press("Enter")


async def test_formulas_and_search_need_no_other_host(browser: Browser, site_address: str) -> None:
    context = await browser.new_context()
    page = await context.new_page()
    requested: list[str] = []
    context.on("request", lambda request: requested.append(request.url))
    await page.goto(f"{site_address}/statistics/laws.html")
    await expect(page.locator(".arithmatex .katex").first).to_be_visible()
    assert await page.locator(".katex-error").count() == 0
    assert await page.locator(".arithmatex").count() == await page.locator(".arithmatex .katex-display").count()
    await page.keyboard.press("Control+k")
    await page.keyboard.insert_text("attention item")  # at once: what is found for its first letters never shows
    await open_first_result(page)
    assert "/researchers/quality.html" in page.url
    assert {urlsplit(url).netloc for url in requested if not url.startswith(("data:", "blob:"))} == {
        urlsplit(site_address).netloc
    }
    await context.close()
