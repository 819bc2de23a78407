"""Comments and flags on the HIT page: out of the way, by keyboard, kept by drafts, and without scripts."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.acts import expect_scores, open_hit, press_submit, violations, wait_for_hit

REASON = "It is offensive"
ASKING: dict[str, Any] = {"comment_on": "both", "flag_on": "both", "items_per_hit": 2, "texts": ["go", "run"]}


async def test_by_keys_a_comment_takes_its_digits_and_the_sliders_keep_theirs(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    fold = page.locator(".remarks > summary")
    for key in ["a", "7", "Tab", "5"]:
        await page.keyboard.press(key)
    await expect_scores(page, [7, 5])
    await fold.press("Enter")
    for key in ["Tab", "ArrowDown", "ArrowDown", "Tab", "3", "a", "?", "Enter", "b"]:
        await page.keyboard.press(key)
    await expect_scores(page, [7, 5])
    assert await violations(page) == ""
    await press_submit(page)
    (stored,) = await campaign.responses()
    said = {"flag": REASON, "comment": "3a?\nb"}
    assert stored.extra == {"remarks": {str(stored.items[0]): said}}


@pytest.mark.parametrize("design", ["slider", "pairwise"])
async def test_a_draft_keeps_what_was_said_over_a_reload(task: Any, visit: Any, design: str) -> None:
    campaign = await task(**ASKING, design=design)
    page = (await visit(viewport={"width": 320, "height": 640}, has_touch=True, is_mobile=True)).page
    await open_hit(page, campaign.prolific())
    await page.locator(".remarks > summary").click()
    async with page.expect_response(lambda reply: reply.request.method == "PUT"):
        await page.get_by_label("Comment on the whole task").fill("It's <b>alike</b>")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await wait_for_hit(page)
    await expect(page.get_by_label("Comment on the whole task")).to_have_value("It's <b>alike</b>")
    assert await violations(page) == ""


async def test_without_scripts(task: Any, plain: Any) -> None:
    campaign = await task(**ASKING, flag_reasons=[])
    page = await plain(campaign.link)
    await page.press("Start")
    for field in page.numbers():
        page.fill(field, "40")
    page.select(page.all("select")[-1], "something is wrong")
    page.fill("Comment on item 1", "one\ntwo")
    assert await page.press("Submit") == []
    assert page.texts("progress") == ["1 task done"]
    (stored,) = await campaign.responses()
    assert stored.extra == {"remarks": {str(stored.items[0]): {"comment": "one\ntwo"}, "hit": {"flag": ""}}}


async def test_a_choice_that_would_submit_waits_for_who_is_about_to_say_something(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING, design="pairwise", design_settings={"submit_on_choice": True})
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await page.locator(".remarks > summary").click()
    await page.locator(".choice input").first.click()
    await expect(page.locator(".side[data-chosen]")).to_have_count(1)
    await page.get_by_label("Comment on the whole task").fill("Nearly the same.")
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert stored.extra == {"remarks": {"hit": {"comment": "Nearly the same."}}}
