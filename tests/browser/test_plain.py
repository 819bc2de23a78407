"""Without JavaScript, by choice or because the script did not arrive, the page is a plain form of numbers."""

import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from app.designs.registry import DESIGNS
from tests.browser.acts import item_texts, violations, wait_for_hit


@pytest.fixture
async def page(visit: Any) -> Page:
    opened: Page = (await visit(java_script_enabled=False)).page
    return opened


async def fill(page: Page, values: list[int]) -> None:
    await wait_for_hit(page)
    for field, value in zip(await page.locator(".row input").all(), values, strict=True):
        await field.fill(str(value))


async def test_a_campaign_without_javascript(task: Any, page: Page) -> None:
    campaign = await task()
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    first = await item_texts(page)
    await expect(page.get_by_text("Give each one a number from 0 (very rare) to 100 (very frequent)")).to_be_visible()
    await expect(page.locator(".strip, .steps, .tools").filter(visible=True)).to_have_count(0)
    await fill(page, [71, 93, 17, 4, 71])
    await page.get_by_role("button", name="Submit and next").click()
    await expect(page.locator(".progress")).to_have_text("1 task done")
    assert not set(first) & set(await item_texts(page))
    await fill(page, [1, 2, 3, 4, 5])
    await page.get_by_role("button", name="Submit", exact=True).click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert (await campaign.scores())[0] == dict(zip(first, [71, 93, 17, 4, 71], strict=True))
    assert {response.source for response in await campaign.responses()} == {"form"}


# What each design asks for on a page without scripts, and how many items.
ASKED_BY_DESIGN = {
    "slider": 5, "rating": 1, "ordinal": 4, "categories": 2, "ranking": 4, "best_worst": 4, "pairwise": 2,
    "baseline": 2, "magnitude": 3, "several_labels": 2,
}  # fmt: skip
SCRIPT_ONLY = ".script-only, .strip, .steps, .tools, .keys, .times, .ends"


async def test_no_design_shows_what_needs_scripts_and_every_page_fits_the_smallest_phone(task: Any, page: Page) -> None:
    await page.set_viewport_size({"width": 320, "height": 640})
    assert ASKED_BY_DESIGN.keys() == DESIGNS.keys()
    for design, count in ASKED_BY_DESIGN.items():
        own = {"design_settings": {"baseline": "0"}} if design == "baseline" else {}
        campaign = await task(design=design, items_per_hit=count, cannot_be_judged=True, **own)
        await page.goto(campaign.prolific())
        await wait_for_hit(page)
        await expect(page.locator(".cannot-judge > summary")).to_be_visible()
        await expect(page.locator(SCRIPT_ONLY).filter(visible=True)).to_have_count(0)
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), design


async def test_nothing_is_said_of_ties_where_an_item_comes_alone(task: Any, plain: Any) -> None:
    page = await plain((await task(texts=["abide"])).prolific())
    assert "Give it a number from 0 (very rare) to 100 (very frequent)." in page.text
    assert "makes a tie" not in page.text


async def test_the_browser_asks_for_a_number_that_is_missing(task: Any, plain: Any) -> None:
    campaign = await task()
    page = await plain(campaign.prolific())
    first, *others = page.numbers()
    page.fill(first, "7")
    assert await page.press("Submit and next") == [field.attributes["name"] for field in others]
    assert await campaign.responses() == []


async def test_a_refused_form_keeps_what_was_entered(task: Any) -> None:
    campaign = await task()
    async with httpx.AsyncClient(headers={"accept": "text/html"}) as client:
        page = (await client.get(campaign.prolific())).text
        names = re.findall(r'name="(score-\d+)"', page)
        hidden = dict(re.findall(r'name="(token|hit)" value="([^"]+)"', page))
        reply = await client.post(campaign.prolific(), data=hidden | {names[0]: "71", names[1]: "101", names[2]: ""})
    fields = dict(re.findall(r'name="(score-\d+)"[^>]*?value="([^"]*)"', reply.text, re.DOTALL))
    assert fields == dict.fromkeys(names, "") | {names[0]: "71", names[1]: "101"}
    assert "Not all items have a score yet: 3, 4, 5 of 5. What you entered is kept." in reply.text
    assert await campaign.responses() == []


async def test_a_draft_is_shown_in_the_plain_form_too(task: Any, plain: Any) -> None:
    campaign = await task()
    page = await plain(campaign.prolific())
    await campaign.execute(
        "UPDATE hits SET draft = jsonb_build_object('00', jsonb_build_object('score', 64)) "
        "WHERE campaign_id = :campaign"
    )
    await page.goto(page.url)
    assert [field.attributes["value"] for field in page.numbers()] == ["64", "", "", "", ""]


@pytest.mark.parametrize("missing", ["**/hit.js*", "**/slider/strip.js", "**/scripted.js*"])
async def test_the_form_works_when_a_script_did_not_arrive(task: Any, visit: Any, missing: str) -> None:
    campaign = await task(texts=["abide", "run"], items_per_hit=2)
    page = (await visit()).page
    await page.route(missing, lambda route: route.abort())
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    await wait_for_hit(page)
    assert await violations(page) == ""
    await fill(page, [71, 93])
    await page.get_by_role("button", name="Submit", exact=True).click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert len(await campaign.responses()) == 1
