"""Annotators who come back by link in the same browser may go on where they were, or begin again."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import (
    expect_scores,
    item_texts,
    press_submit,
    score_all,
    start_by_link,
    violations,
    wait_for_hit,
)

CONTINUE, NEW = "Continue where you were", "Start as someone new"
ANNOTATORS = "SELECT id FROM annotators WHERE campaign_id = :campaign"


@pytest.fixture
async def campaign(task: Any) -> Any:
    return await task(hits_per_annotator=1)


@pytest.fixture
async def page(campaign: Any, visit: Any) -> Page:
    """A HIT with three of five scores."""
    opened: Page = (await visit()).page
    await start_by_link(opened, campaign.link)
    await score_all(opened, [71, 93, 17])
    return opened


async def go_on(page: Page) -> None:
    await page.get_by_role("link", name=CONTINUE).click()
    await wait_for_hit(page)


async def test_back_leads_to_the_choice_to_go_on_with_the_same_hit(page: Page, campaign: Any) -> None:
    order = await item_texts(page)
    await page.go_back()
    await expect(page.get_by_role("button", name=NEW)).to_be_visible()
    await expect(page.get_by_role("button", name="Start", exact=True)).to_have_count(0)
    assert await violations(page) == ""
    await go_on(page)
    assert await item_texts(page) == order
    await expect_scores(page, [71, 93, 17, None, None])
    assert len(await campaign.rows(ANNOTATORS)) == 1


async def test_the_link_opened_again_offers_it_too(page: Page, campaign: Any) -> None:
    order = await item_texts(page)
    again = await page.context.new_page()
    await again.goto(campaign.link)
    await go_on(again)
    assert await item_texts(again) == order


async def test_someone_else_at_the_same_computer_can_start(page: Page, campaign: Any) -> None:
    await page.goto(campaign.link)
    await page.get_by_role("button", name=NEW).click()
    await wait_for_hit(page)
    await expect_scores(page, [None] * 5)
    assert len(await campaign.rows(ANNOTATORS)) == 2


async def test_who_has_done_all_their_sets_is_told_so_again(page: Page, campaign: Any) -> None:
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    await page.goto(campaign.link)
    await page.get_by_role("link", name=CONTINUE).click()
    await expect(page.get_by_role("heading", name="You have done all your tasks")).to_be_visible()


async def test_a_place_of_another_task_or_browser_or_of_long_ago_is_not_offered(
    page: Page, campaign: Any, task: Any, visit: Any
) -> None:
    elsewhere = (await visit()).page
    await elsewhere.goto(campaign.link)
    await expect(elsewhere.get_by_role("button", name="Start", exact=True)).to_be_visible()
    await page.goto((await task()).link)
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()
    await page.evaluate(
        """key => {
      const visit = JSON.parse(localStorage.getItem(key));
      localStorage.setItem(key, JSON.stringify({...visit, at: 0}));
    }""",
        f"easel:visit:/link/{campaign.row.link_key}",
    )
    await page.goto(campaign.link)
    await expect(page.get_by_role("button", name="Start", exact=True)).to_be_visible()


async def test_no_cookie_is_set_for_it(page: Page) -> None:
    assert await page.context.cookies() == []
