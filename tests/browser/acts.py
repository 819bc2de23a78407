"""What annotators do on a HIT page, and what they see there."""

import json
from collections.abc import Sequence
from typing import Any

from axe_playwright_python.async_playwright import Axe
from playwright.async_api import ElementHandle, Frame, Locator, Page

SUBMIT = ".answer .primary"


def sliders(page: Page | Frame) -> Locator:
    return page.locator(".scripted .row input")


async def open_hit(page: Page, link: str) -> None:
    """Arrive by link and start; the sliders are ready when this returns."""
    await page.goto(link)
    await page.get_by_role("button", name="Start").click()
    await sliders(page).first.wait_for()


async def texts(page: Page | Frame) -> list[str]:
    return [text.strip() for text in await page.locator(".row .text").all_inner_texts()]


async def rank_words(page: Page | Frame) -> list[str]:
    return await page.locator(".row .rank").all_inner_texts()


async def scores(page: Page | Frame) -> list[int | None]:
    """What each row shows, top to bottom; None where there is no thumb."""
    return [
        int(await row.locator("input").input_value()) if await row.locator(".thumb").is_visible() else None
        for row in await page.locator(".row").all()
    ]


async def click_at(page: Page | Frame, row: int, score: float) -> None:
    """Click on a row's rail at `score`."""
    rail = page.locator(".row .rail").nth(row)
    await rail.evaluate("rail => rail.scrollIntoView({block: 'center'})")  # the strip may cover it
    box = await rail.bounding_box()
    assert box
    await rail.click(position={"x": box["width"] * score / 100, "y": box["height"] / 2}, force=True)


async def score_all(page: Page | Frame, values: Sequence[float]) -> None:
    for row, value in enumerate(values):
        await click_at(page, row, value)


async def point_on_strip(page: Page, score: float) -> tuple[float, float]:
    box = await page.locator(".strip > .rail").bounding_box()
    assert box
    return box["x"] + box["width"] * score / 100, box["y"] + box["height"] - 9


async def grab(page: Page, selector: str) -> None:
    box = await page.locator(selector).bounding_box()
    assert box
    await page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    await page.mouse.down()


async def submit(page: Page | Frame) -> None:
    """Submit and wait until this HIT is gone from the page."""
    form: ElementHandle | None = await page.locator("form.answer").element_handle()
    await page.locator(SUBMIT).click()
    await page.wait_for_function("form => !form.isConnected", arg=form)


async def violations(page: Page) -> str:
    """What axe-core finds, as text; empty when it finds nothing."""
    await page.evaluate("Promise.all(document.getAnimations().map(animation => animation.finished))")
    found = await Axe().run(page)
    rules: list[dict[str, Any]] = found.response["violations"]
    return "\n".join(f"{rule['id']}: {json.dumps([node['html'] for node in rule['nodes']])}" for rule in rules)
