"""Comments and flags on the HIT page: out of the way, by keyboard, kept by drafts, and without scripts."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.browser.acts import hit_shown, open_hit, see_scores, submit, violations

REASON = "It is offensive"
ASKING: dict[str, Any] = {"comment_on": "both", "flag_on": "both", "items_per_hit": 2, "texts": ["go", "run"]}


async def test_by_keys_a_comment_takes_its_digits_and_the_sliders_keep_theirs(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    fold = page.locator(".remarks > summary")
    for key in ["a", "7", "Tab", "5"]:
        await page.keyboard.press(key)
    await see_scores(page, [7, 5])
    await fold.press("Enter")
    for key in ["Tab", "ArrowDown", "ArrowDown", "Tab", "3", "a", "?", "Enter", "b"]:
        await page.keyboard.press(key)
    await see_scores(page, [7, 5])
    assert await violations(page) == ""
    await submit(page)
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
        await page.get_by_label("Comment on the whole set").fill("It's <b>alike</b>")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await hit_shown(page)
    await expect(page.get_by_label("Comment on the whole set")).to_have_value("It's <b>alike</b>")
    assert await violations(page) == ""


async def test_without_scripts(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING, flag_reasons=[])
    page = (await visit(java_script_enabled=False)).page
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    for field in await page.locator(".row input").all():
        await field.fill("40")
    await page.locator(".remarks > summary").click()
    await page.locator(".remarks select").last.select_option("something is wrong")
    await page.get_by_label("Comment on item 1").fill("one\ntwo")
    await page.locator(".primary").click()
    await expect(page.locator(".progress")).to_have_text("1 set done")
    (stored,) = await campaign.responses()
    assert stored.extra == {"remarks": {str(stored.items[0]): {"comment": "one\ntwo"}, "hit": {"flag": ""}}}


async def test_a_choice_that_would_submit_waits_for_who_is_about_to_say_something(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING, design="pairwise", design_settings={"submit_on_choice": True})
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await page.locator(".remarks > summary").click()
    await page.locator(".choice input").first.click()
    await expect(page.locator(".side[data-chosen]")).to_have_count(1)
    await page.get_by_label("Comment on the whole set").fill("Nearly the same.")
    await submit(page)
    (stored,) = await campaign.responses()
    assert stored.extra == {"remarks": {"hit": {"comment": "Nearly the same."}}}
