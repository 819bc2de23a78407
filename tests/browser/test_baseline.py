"""Against a baseline: the page of pairwise comparison, with one item that comes back in every HIT."""

from typing import Any

from playwright.async_api import expect

from tests.browser.acts import hit_shown, open_hit, violations


async def test_the_baseline_is_in_every_hit_and_not_marked(task: Any, visit: Any) -> None:
    campaign = await task(
        texts=["abide", "run", "make"], design="baseline", design_settings={"baseline": "1"}, judgments_per_item=1
    )
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    others = set()
    for done in (1, 2):
        await hit_shown(page)
        texts = {text.strip() for text in await page.locator(".side .text").all_inner_texts()}
        others |= texts - {"run"}
        assert "run" in texts
        assert await violations(page) == ""
        assert "baseline" not in await page.locator("main").inner_html()
        await page.keyboard.press("ArrowLeft")
        await page.keyboard.press("Enter")
        if done == 1:
            await expect(page.locator(".progress")).to_have_text("1 set done")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert others == {"abide", "make"}
    assert [len(response.items) for response in await campaign.responses()] == [2, 2]


async def test_a_finger_without_scripts_answers_it_too(task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide", "run"], design="baseline", design_settings={"baseline": "0"})
    phone = {"width": 390, "height": 720}
    page = (await visit(java_script_enabled=False, viewport=phone, has_touch=True, is_mobile=True)).page
    await page.goto(campaign.prolific())
    await page.get_by_role("radio", name="about equal").tap()
    await page.get_by_role("button", name="Submit").tap()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert [response.values for response in await campaign.responses()] == [[1.0, 1.0]]
