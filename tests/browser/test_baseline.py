"""Against a baseline: the page of pairwise comparison, with one item that comes back in every HIT."""

from typing import Any

from playwright.async_api import expect

from tests.browser.acts import open_hit, violations, wait_for_hit


async def test_the_baseline_is_in_every_hit_and_not_marked(task: Any, visit: Any) -> None:
    campaign = await task(
        texts=["abide", "run", "make"], design="baseline", design_settings={"baseline": "1"}, judgments_per_item=1
    )
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    others = set()
    for done in (1, 2):
        await wait_for_hit(page)
        texts = {text.strip() for text in await page.locator(".side .text").all_inner_texts()}
        others |= texts - {"run"}
        assert "run" in texts
        assert await violations(page) == ""
        assert "baseline" not in await page.locator("main").inner_html()
        await page.keyboard.press("ArrowLeft")
        await page.keyboard.press("Enter")
        if done == 1:
            await expect(page.locator(".progress")).to_have_text("1 task done")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert others == {"abide", "make"}
    assert [len(response.items) for response in await campaign.responses()] == [2, 2]


async def test_it_is_answered_without_scripts_too(task: Any, plain: Any) -> None:
    campaign = await task(texts=["abide", "run"], design="baseline", design_settings={"baseline": "0"})
    page = await plain(campaign.prolific())
    page.check("about equal")
    assert await page.press("Submit") == []
    assert "All done" in page.text
    assert [response.values for response in await campaign.responses()] == [[1.0, 1.0]]
