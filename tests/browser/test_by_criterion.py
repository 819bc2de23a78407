"""A researcher reads a campaign by one of its criteria: it moves with that one's answers, and looks right."""

import secrets
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.annotation.hits import submission
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, AnswerByCriterion
from tests.annotation.hits.campaigns import create_annotator, try_to_lease_hit
from tests.annotation.hits.criteria import criteria_settings
from tests.browser.acts import each_width, violations
from tests.browser.test_appearance import looks

SAID = {"adequacy": [0.0, 20.0, 40.0, 60.0, 80.0], "fluency": [100.0, 75.0, 50.0, 25.0, 0.0]}


async def answered(campaign: Any, said: dict[str, list[float]] = SAID) -> None:
    """Someone answers a HIT behind the browser's back."""
    now = datetime.now(UTC)
    me = await create_annotator(campaign.engine, campaign.row, secrets.token_hex(4))
    hit = await try_to_lease_hit(campaign.engine, me, now=now)
    answers = {name: Answer(dict(zip(hit.items, values, strict=True))) for name, values in said.items()}
    async with borrow_autocommit_driver(campaign.engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(
            connection, me, hit.id, AnswerByCriterion(answers), now=now
        )


@pytest.fixture
def read(visit: Any, origin: str, cookie: Any) -> Any:
    """Opens a page of a campaign for a researcher."""

    async def open_page(campaign: Any, part: str = "", **options: Any) -> Page:
        page: Page = (await visit(**options)).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}{part}")
        return page

    return open_page


@pytest.fixture
async def campaign(task: Any) -> Any:
    """A running campaign of ten verbs by two criteria."""
    return await task(judgments_per_item=20, criteria=criteria_settings(2))


async def test_the_page_moves_with_the_answers_by_the_criterion_that_is_chosen(read: Any, campaign: Any) -> None:
    page = await read(campaign)
    await page.get_by_role("link", name="fluency").click()
    await expect(page.locator(".by-criterion [aria-current]")).to_have_text("fluency")
    await expect(page.locator(".by-criterion p")).to_have_text("How is its fluency?")
    await page.evaluate("window.loadedOnce = true")
    await answered(campaign)
    await expect(page.locator(".scores .score").first).to_have_text("100.0")
    await page.locator(".scores tbody a").first.click()
    await expect(page.get_by_role("region", name="The score by each criterion")).to_contain_text("adequacy")
    await expect(page.get_by_role("region", name="Answers", exact=True).locator("td.figure")).to_have_text(["0", "100"])
    assert await page.evaluate("window.loadedOnce")
    await page.get_by_role("region", name="The score by each criterion").get_by_role("link").click()
    await expect(page.locator(".by-criterion [aria-current]")).to_have_text("adequacy")
    await expect(page.locator("#item tbody b")).to_have_text("adequacy")


async def test_a_halo_is_warned_of_as_it_appears(read: Any, campaign: Any) -> None:
    page = await read(campaign, "?criterion=fluency")
    warning = page.locator('[data-word="halo_warning"]')
    await expect(warning).to_be_hidden()
    for k in range(8):
        scores = [float((37 * k + 23 * place) % 101) for place in range(5)]
        await answered(campaign, {"adequacy": scores, "fluency": scores})
    await expect(warning).to_contain_text("“adequacy” and “fluency” are hardly judged separately")
    await expect(page.locator('[data-word="halo"]')).to_contain_text("judgments within items 1.00")


async def test_pages_by_a_criterion_have_nothing_to_object_to_and_no_line_too_long(read: Any, campaign: Any) -> None:
    for _ in range(8):
        await answered(campaign)
    for part in ("?criterion=fluency&item=3", "/analysis/criteria?criterion=fluency", "/export?criterion=fluency"):
        page = await read(campaign, part, **looks(1280))
        await expect(page.locator(".by-criterion [aria-current]")).to_have_text("fluency")
        async for width in each_width(page, 1280, 390, 320):
            # Charts take on the width of the window with its next frame.
            await page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
            if width != 320:
                assert await violations(page) == "", (part, width)


async def test_criteria_are_switched_without_javascript_and_by_keyboard(read: Any, campaign: Any) -> None:
    await answered(campaign)
    plain = await read(campaign, "/analysis/scores", java_script_enabled=False)
    await plain.get_by_role("navigation", name="Criteria").get_by_role("link", name="fluency").focus()
    await plain.keyboard.press("Enter")
    await expect(plain.locator(".by-criterion [aria-current]")).to_have_text("fluency")
    await expect(plain.get_by_role("heading", name="Scores")).to_be_visible()
