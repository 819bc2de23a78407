"""Take all pictures of README and docs: `.venv/bin/python docs/pictures.py`, about two minutes on an idle machine.

With names of pictures, it takes only these: `.venv/bin/python docs/pictures.py design-rating`.
It serves the demo and a campaign of each scene on data of its own, lets a simulated crowd answer, opens the pages in
Chromium and stores small pictures, and the outlines by which `tests/test_pictures.py` finds that they are out of date.
"""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from click.testing import CliRunner
from PIL import Image
from playwright.async_api import Browser, Page, async_playwright

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from app.cli import commands  # noqa: E402  (only after the line above)
from docs.picture_outlines import (  # noqa: E402
    DEMO,
    MAX_BYTES,
    PICTURES,
    RESEARCHERS_PAGES,
    SEGMENT,
    VARIANTS,
    fetch_outlines,
    read_outlines,
    write_outlines,
)
from docs.picture_scenes import SCENES, Scene, SystemsScene  # noqa: E402
from tests import chromium  # noqa: E402

WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}
SCORES = (22, 93, 8, 55)  # four of five: the last row shows what an untouched slider looks like
DRAWN_MS = 5000  # the first live event is drawn by then, or the scores are fitted
IGNORED_MS = 800  # a new HIT ignores clicks and keys for a moment
BELOW = 20  # pixels under the last line
COLOURS = (256, 128, 64, 32)
DEMO_HITS = (("hit", WIDE, "light"), ("hit-dark", WIDE, "dark"), ("hit-phone", PHONE, "light"))
ALL_PICTURES = ("hit", *RESEARCHERS_PAGES, "segments", *VARIANTS, *(scene.file for scene in SCENES))


def easel(*arguments: str) -> str:
    """Run a command of Easel in this process, which is quicker, and return what it prints."""
    return CliRunner().invoke(commands.easel, arguments, catch_exceptions=False).stdout.strip()


@contextmanager
def serve_demo() -> Iterator[str]:
    """Serve the demo; yield the annotators' link."""
    serve = [sys.executable, "-m", "app.cli", "serve", "--demo", "--port", "0"]
    server = subprocess.Popen(serve, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        printed = ""
        while "Annotators" not in printed and (line := server.stdout.readline()):
            printed += line
        (link,) = re.findall(r"Annotators\s+(http\S+)", printed)
        yield link
    finally:
        server.terminate()
        server.wait(30)


def launch(scene: Scene, folder: Path) -> tuple[str, str]:
    """Create and launch the campaign of a scene; return its slug and the path of the annotators' link."""
    file = folder / f"{scene.file}.yaml"
    file.write_text(json.dumps(scene.campaign_file(), ensure_ascii=False))
    slug = easel("campaign", "create", str(file))
    easel("campaign", "launch", slug, "--yes")
    link = json.loads(easel("campaign", "show", slug, "--json"))["links"]["link"]
    return slug, httpx.URL(link).path


async def open_page(
    browser: Browser, size: Mapping[str, int], scheme: str = "light", scale: float = 1.5, **more: Any
) -> Page:
    """Open a page of this size and colour scheme, without animations."""
    context = await browser.new_context(
        viewport=size,  # type: ignore[arg-type]  # a plain dict
        color_scheme=scheme,  # type: ignore[arg-type]  # "light" or "dark"
        device_scale_factor=scale,
        reduced_motion="reduce",
        **more,
    )
    return await context.new_page()


async def store(page: Page, picture: str, **more: Any) -> None:
    """Take a picture, with as many colours as its size allows."""
    taken = Image.open(io.BytesIO(await page.screenshot(animations="disabled", **more))).convert("RGB")
    for colours in COLOURS:
        small = io.BytesIO()
        taken.quantize(colours, kmeans=2, dither=Image.Dither.NONE).save(small, "PNG", optimize=True)
        if small.tell() < MAX_BYTES:
            (PICTURES / f"{picture}.png").write_bytes(small.getvalue())
            print(f"{picture}.png: {colours} colours, {small.tell()} bytes", flush=True)
            return
    sys.exit(f"{picture}.png has more than {MAX_BYTES} bytes even with {COLOURS[-1]} colours.")


async def start(page: Page, link: str) -> None:
    """Start at an annotators' link, and wait until the first HIT takes answers."""
    await page.goto(link)
    await page.get_by_role("button", name="Start").click()
    await page.locator(".scripted [data-send]").wait_for()
    await page.wait_for_timeout(IGNORED_MS)


async def store_to_last_line(page: Page, picture: str) -> None:
    """Take a picture of a HIT from the top of the page to its last line, without the choice of the language below."""
    end = await page.locator("details.keys summary").bounding_box()
    assert end is not None
    clip = {"x": 0, "y": 0, "width": WIDE["width"], "height": end["y"] + end["height"] + BELOW}
    await store(page, picture, clip=clip, full_page=True)


async def take_demo_hit(
    browser: Browser, link: str, picture: str, size: Mapping[str, int], scheme: str = "light"
) -> None:
    """Take a picture of the demo's HIT with four of five scores."""
    page = await open_page(browser, size, scheme)
    await start(page, link)
    for row, score in enumerate(SCORES):
        await page.locator(".scripted .row input").nth(row).fill(str(score))
    await page.mouse.move(0, 0)
    await (store if size == PHONE else store_to_last_line)(page, picture)
    await page.context.close()


async def take_scene(browser: Browser, base: str, scene: Scene, path: str) -> None:
    """Take a picture of a scene's HIT, from the top of the page to its last line."""
    page = await open_page(browser, WIDE)
    await start(page, base + path)
    await scene.act(page)
    await page.mouse.move(0, 0)
    await store_to_last_line(page, scene.file)
    await page.context.close()


async def log_in(browser: Browser, login: str) -> Any:
    """Log in by a link that works once; return the cookies."""
    page = await open_page(browser, WIDE)
    await page.goto(login)
    await page.get_by_role("button").first.click()
    await page.wait_for_url("**/admin**")
    return await page.context.storage_state()


async def take_researchers_pages(
    browser: Browser, base: str, cookies: Any, systems: str, pictures: Collection[str]
) -> None:
    """Take those of these pictures that show researchers' pages."""
    segments = f"/admin/campaigns/{systems}/items?segment={SEGMENT}"
    shots = [(picture, path, WIDE, "light") for picture, path in (RESEARCHERS_PAGES | {"segments": segments}).items()]
    shots += [
        ("dashboard-dark", RESEARCHERS_PAGES["dashboard"], WIDE, "dark"),
        ("dashboard-phone", RESEARCHERS_PAGES["dashboard"], PHONE, "light"),
    ]
    for picture, path, size, scheme in (shot for shot in shots if shot[0] in pictures):
        page = await open_page(browser, size, scheme, storage_state=cookies)
        await page.goto(base + path)
        await page.wait_for_timeout(DRAWN_MS)
        await store(page, picture)
        await page.context.close()


async def take_outlines(
    base: str, cookies: Any, hits: Mapping[str, str], systems: str, pictures: Collection[str]
) -> None:
    """Store the outlines of the pages in these pictures; of other pictures the stored ones remain."""
    jar = {cookie["name"]: cookie["value"] for cookie in cookies["cookies"]}
    accept = {"accept": "text/html"}
    async with (
        httpx.AsyncClient(base_url=base, cookies=jar, headers=accept) as researcher,
        httpx.AsyncClient(base_url=base, headers=accept, follow_redirects=True) as annotator,
    ):

        async def read(path: str) -> str:
            return (await researcher.get(path)).raise_for_status().text

        async def begin(path: str) -> str:
            return (await annotator.post(path)).raise_for_status().text

        outlines = await fetch_outlines(read, begin, hits, systems)
    others = {picture: lines for picture, lines in read_outlines().items() if picture in ALL_PICTURES}
    write_outlines(others | {picture: lines for picture, lines in outlines.items() if picture in pictures})


async def take(link: str, login: str, campaigns: Mapping[str, tuple[str, str]], pictures: Collection[str]) -> None:
    """Take these pictures.

    Args:
        link: annotators' link of the demo.
        login: researchers' login link.
        campaigns: slug and path of the annotators' link, by picture.
        pictures: names of the pictures.
    """
    base, _, key = link.partition("/link/")
    systems = campaigns["systems"][0]
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium.find(), chromium_sandbox=False)
        for picture, size, scheme in DEMO_HITS:
            if picture in pictures:
                await take_demo_hit(browser, link, picture, size, scheme)
        cookies = await log_in(browser, login)
        await take_researchers_pages(browser, base, cookies, systems, pictures)
        for scene in (scene for scene in SCENES if scene.file in pictures):
            await take_scene(browser, base, scene, campaigns[scene.file][1])
        hits = {picture: path for picture, (_, path) in campaigns.items()} | {"hit": f"/link/{key}"}
        await take_outlines(base, cookies, hits, systems, pictures)
        await browser.close()


def main(names: Sequence[str]) -> None:
    """Serve, simulate, and take the pictures with these names, or all."""
    if unknown := set(names) - set(ALL_PICTURES):
        sys.exit(
            f"There is no picture {', '.join(sorted(unknown))}. The pictures are {', '.join(sorted(ALL_PICTURES))}."
        )
    pictures = names or ALL_PICTURES
    scenes = [scene for scene in SCENES if scene.file in pictures or isinstance(scene, SystemsScene)]
    PICTURES.mkdir(exist_ok=True)
    for name in [name for name in os.environ if name == "DATABASE_URL" or name.startswith("EASEL_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory(prefix="easel-pictures-") as folder:
        os.environ["EASEL_DATA_DIR"] = folder
        with serve_demo() as link:
            campaigns = {scene.file: launch(scene, Path(folder)) for scene in scenes}
            easel("simulate", DEMO, "--hits", "240", "--truth", "oracle", "--pace", "0.1")
            (systems,) = [campaigns[scene.file][0] for scene in scenes if isinstance(scene, SystemsScene)]
            easel("simulate", systems, "--hits", "24", "--pace", "0")
            asyncio.run(take(link, easel("login"), campaigns, pictures))


if __name__ == "__main__":
    main(sys.argv[1:])
