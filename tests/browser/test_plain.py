"""Without JavaScript, by choice or because the script did not arrive, the page is a plain form of numbers."""

import re
from typing import Any

import httpx
import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import hit_shown, texts, violations


@pytest.fixture
async def page(visit: Any) -> Page:
    opened: Page = (await visit(java_script_enabled=False)).page
    return opened


async def fill(page: Page, values: list[int]) -> None:
    await hit_shown(page)
    for field, value in zip(await page.locator(".row input").all(), values, strict=True):
        await field.fill(str(value))


async def test_a_campaign_without_javascript(task: Any, page: Page) -> None:
    campaign = await task()
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    first = await texts(page)
    await expect(page.get_by_text("Give each one a number from 0 (very rare) to 100 (very frequent)")).to_be_visible()
    await expect(page.locator(".strip, .steps, .tools").filter(visible=True)).to_have_count(0)
    await fill(page, [71, 93, 17, 4, 71])
    await page.get_by_role("button", name="Submit and next").click()
    await expect(page.locator(".progress")).to_have_text("1 set done")
    assert not set(first) & set(await texts(page))
    await fill(page, [1, 2, 3, 4, 5])
    await page.get_by_role("button", name="Submit", exact=True).click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert (await campaign.scores())[0] == dict(zip(first, [71, 93, 17, 4, 71], strict=True))
    assert {response.source for response in await campaign.responses()} == {"form"}


async def test_nothing_is_said_of_ties_where_an_item_comes_alone(task: Any, page: Page) -> None:
    await page.goto((await task(texts=["abide"])).prolific())
    await expect(page.get_by_text("Give it a number from 0 (very rare) to 100 (very frequent).")).to_be_visible()
    await expect(page.get_by_text("makes a tie")).to_have_count(0)


async def test_the_browser_asks_for_a_number_that_is_missing(task: Any, page: Page) -> None:
    campaign = await task()
    await page.goto(campaign.prolific())
    await page.locator(".row input").first.fill("7")
    await page.get_by_role("button", name="Submit and next").click()
    await expect(page.locator(".row input").nth(1)).to_be_focused()
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


async def test_a_draft_is_shown_in_the_plain_form_too(task: Any, page: Page) -> None:
    campaign = await task()
    await page.goto(campaign.prolific())
    await campaign.execute(
        "UPDATE hits SET draft = jsonb_build_object('00', jsonb_build_object('score', 64)) "
        "WHERE campaign_id = :campaign"
    )
    await page.reload()
    assert [await field.input_value() for field in await page.locator(".row input").all()] == ["64", "", "", "", ""]


@pytest.mark.parametrize("missing", ["**/hit.js*", "**/slider/strip.js", "**/scripted.js*"])
async def test_the_form_works_when_a_script_did_not_arrive(task: Any, visit: Any, missing: str) -> None:
    campaign = await task(texts=["abide", "run"], items_per_hit=2)
    page = (await visit()).page
    await page.route(missing, lambda route: route.abort())
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    await hit_shown(page)
    assert await violations(page) == ""
    await fill(page, [71, 93])
    await page.get_by_role("button", name="Submit", exact=True).click()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert len(await campaign.responses()) == 1
