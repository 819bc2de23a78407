"""After a slip, annotators change the answers that they gave last."""

from typing import Any

from playwright.async_api import expect

from tests.browser.acts import SUBMIT, expect_scores, item_texts, press_submit, score_all, start_by_link

CHANGE = "Change my last answers"


async def test_the_last_set_comes_back_as_it_was_filled_in_and_the_newer_scores_are_sent(task: Any, visit: Any) -> None:
    campaign, page = await task(), (await visit()).page
    await start_by_link(page, campaign.link)
    order = await item_texts(page)
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    following = await item_texts(page)
    await page.get_by_role("button", name=CHANGE).press("Enter")
    await expect(page.get_by_text("These are the answers that you gave last.")).to_be_visible()
    assert await item_texts(page) == order
    await expect_scores(page, [71, 93, 17, 4, 41])
    await expect(page.get_by_role("button", name=CHANGE)).to_have_count(0)
    await page.get_by_role("slider").first.press("ArrowUp")
    await page.locator(SUBMIT).click()
    await expect(page.locator(".progress")).to_have_text("1 task done")
    await expect(page.get_by_text("These are the answers")).to_have_count(0)
    assert await item_texts(page) == following
    assert [list(said.values()) for said in await campaign.scores()] == [[71, 93, 17, 4, 41], [72, 93, 17, 4, 41]]


async def test_who_keeps_them_goes_on_where_they_were(task: Any, visit: Any) -> None:
    campaign, page = await task(), (await visit()).page
    await start_by_link(page, campaign.link)
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    following = await item_texts(page)
    await score_all(page, [5, 6])
    await page.get_by_role("button", name=CHANGE).click()
    await expect(page.get_by_text("These are the answers that you gave last.")).to_be_visible()
    await page.get_by_role("link", name="Keep them").click()
    await expect(page.get_by_text("These are the answers")).to_have_count(0)
    assert await item_texts(page) == following
    await expect_scores(page, [5, 6, None, None, None])
    assert len(await campaign.responses()) == 1
