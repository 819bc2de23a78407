"""Takes all pictures of the README and of docs: `python docs/pictures.py`, from the project's root.

It starts `easel serve --demo` on data of its own, lets made-up annotators answer, and opens the pages in Chromium; then
a campaign of each design.
"""

import asyncio
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from docs import design_pictures  # noqa: E402  (only after the line above)
from tests import chromium  # noqa: E402

PICTURES = Path(__file__).resolve().parent / "pictures"
EASEL = [sys.executable, "-m", "app.cli"]
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
CAMPAIGN = "/admin/campaigns/lexical-frequency"
SCORES = (22, 93, 8, 55)  # four of five: the last row shows what an untouched slider looks like


@contextmanager
def demo(environment: dict[str, str]) -> Iterator[tuple[str, str]]:
    """A demo server; yields the researchers' login link and the annotators' link."""
    serve = [*EASEL, "serve", "--demo", "--port", "0"]
    server = subprocess.Popen(serve, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = ""
        while "Annotators" not in said and (line := server.stdout.readline()):
            said += line
        (link,) = re.findall(r"Annotators\s+(http\S+)", said)
        login = subprocess.run(
            [*EASEL, "login"], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        yield login.stdout.strip(), link
    finally:
        server.terminate()
        server.wait(30)


async def opened(browser: Browser, size: dict[str, int], scheme: str) -> Page:
    context = await browser.new_context(viewport=size, color_scheme=scheme, device_scale_factor=2)  # type: ignore[arg-type]  # dicts
    return await context.new_page()


async def take_hit(browser: Browser, link: str, name: str, size: dict[str, int], scheme: str = "light") -> None:
    page = await opened(browser, size, scheme)
    await page.goto(link)
    await page.get_by_role("button", name="Start").click()
    sliders = page.locator(".scripted .row input")
    await sliders.first.wait_for()
    for row, score in enumerate(SCORES):
        await sliders.nth(row).fill(str(score))
    await page.wait_for_timeout(400)  # the marks slide to their place
    await page.screenshot(path=PICTURES / f"{name}.png")


async def take_researcher(browser: Browser, login: str) -> None:
    page = await opened(browser, WIDE, "light")
    await page.goto(login)
    await page.get_by_role("button").first.click()
    await page.wait_for_url("**/admin**")
    await page.screenshot(path=PICTURES / "campaigns.png")
    state = await page.context.storage_state()
    for name, address, size, scheme in (
        ("dashboard", CAMPAIGN, WIDE, "light"),
        ("dashboard-dark", CAMPAIGN, WIDE, "dark"),
        ("dashboard-phone", CAMPAIGN, PHONE, "light"),
        ("analysis", f"{CAMPAIGN}/analysis", WIDE, "light"),
        ("share", f"{CAMPAIGN}/share", WIDE, "light"),
        ("new-campaign", "/admin/campaigns/new", WIDE, "light"),
    ):
        context = await browser.new_context(
            viewport=size,
            color_scheme=scheme,
            device_scale_factor=2,
            storage_state=state,  # type: ignore[arg-type]  # a plain dict, as it was given
        )
        page = await context.new_page()
        await page.goto(re.match(r"https?://[^/]+", login)[0] + address)  # type: ignore[index]  # it is an address
        await page.wait_for_timeout(5000)  # the first live event has been drawn, or the scores fitted
        await page.screenshot(path=PICTURES / f"{name}.png")


async def take(login: str, link: str, keys: dict[str, str]) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium.find(), chromium_sandbox=False)
        await take_hit(browser, link, "hit", WIDE)
        await take_hit(browser, link, "hit-dark", WIDE, "dark")
        await take_hit(browser, link, "hit-phone", PHONE)
        await take_researcher(browser, login)
        await design_pictures.take(browser, link.partition("/link/")[0], keys, PICTURES)
        await browser.close()


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="easel-pictures-") as directory:
        os.environ.pop("DATABASE_URL", None)
        os.environ["EASEL_DATA_DIR"] = directory
        with demo(dict(os.environ)) as (login, link):
            crowd = ["simulate", "lexical-frequency", "--hits", "240", "--truth", "oracle", "--pace", "0"]
            subprocess.run([*EASEL, *crowd], cwd=ROOT, check=True)
            asyncio.run(take(login, link, design_pictures.make_campaigns()))


if __name__ == "__main__":
    main()
