"""Gold outputs of a campaign of systems in the browser: alike among the others, and explained with their source."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.campaigns import lifecycle
from app.imports import outputs
from app.uploads import table_from_objects
from tests.browser.acts import item_texts, open_hit, press_submit, sliders, violations

SYSTEMS = ("ape", "bee", "cat", "doe")


def rows() -> list[tuple[int, dict[str, Any]]]:
    shown = [
        {"system": system, "segment": f"s{k}", "output": f"{system} says {k}", "source": f"Source {k}"}
        for k in range(9)
        for system in SYSTEMS
    ]
    gold = {"system": "bad", "segment": "s2", "output": "broken words", "check": "gold", "expected": "90"}
    return [*enumerate([*shown, gold], start=1)]


@pytest.fixture
async def campaign(task: Any) -> Any:
    """Every second task or so shows the gold output, until it was seen."""
    settings = {"items_per_hit": 3, "judgments_per_item": 90, "repeat_items": False}
    made = await task(launched=False, checks_percent=50, gold_feedback=True, **settings)
    async with made.engine.begin() as connection:
        slug = made.row.slug
        await outputs.import_outputs_of_systems_and_return_counts(
            connection, slug, table_from_objects(rows()), replace=True, progress=lambda _: None
        )
        made.row = await lifecycle.change_campaign_status_or_refuse(connection, slug, "launch", now=made.row.created_at)
    return made


async def test_a_gold_output_looks_like_the_others_and_is_told_with_its_source_after_the_task(
    campaign: Any, visit: Any, cookie: Any
) -> None:
    page: Page = (await visit(viewport={"width": 390, "height": 800})).page
    await open_hit(page, campaign.prolific())
    while "broken words" not in (texts := await item_texts(page)):
        await answer(page)
    assert len(texts) == 3
    assert {text for text in texts if text != "broken words"} < {f"{system} says 2" for system in SYSTEMS}
    await expect(page.locator(".beside-items .beside-text")).to_have_text(["Source 2"])
    form = await page.locator("form.answer").inner_html()
    assert "gold" not in form
    assert "bad" not in form
    assert await violations(page) == ""
    await answer(page)
    feedback = page.locator(".told")
    await expect(feedback).to_contain_text("another answer was expected")
    await expect(feedback.locator(".beside-text")).to_have_text(["Source 2"])
    await expect(feedback.locator(".explained-item .text")).to_have_text(["broken words"])
    assert await violations(page) == ""
    await page.context.add_cookies([cookie])
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/items?segment=s2")
    await expect(page.locator("#segment .as-uploaded").last).to_have_text("broken words")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""


async def answer(page: Page) -> None:
    """Give every output a low score of its own, and submit."""
    for row, key in enumerate("678"):
        await sliders(page).nth(row).press(key)
    await press_submit(page)
