"""Everything beside the work: the instructions in one line, how far it is, a break, and the end with its code."""

import os
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.browser.acts import each_width, press_submit, score_all, start_by_link, violations, wait_for_hit


async def test_what_stands_beside_the_work_is_quiet_and_the_end_says_what_was_earned(task: Any, visit: Any) -> None:
    campaign = await task(
        hits_per_annotator=2, leave_early=True, pay_per_hit=0.35, minutes_per_hit=1.5, return_completed="D0NE-7",
        in_short="Judge how often you meet the verb, not how you like it.",
    )  # fmt: skip
    page = (await visit(viewport={"width": 320, "height": 844}, reduced_motion="reduce")).page
    await start_by_link(page, campaign.link)
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    await wait_for_hit(page)
    await expect(page.locator(".progress")).to_have_text("1 of 2 tasks done · about 2 min left · $0.35 earned")
    folder = os.environ.get("EASEL_PICTURES")  # to look at
    for name in ("work", "end"):
        async for width in each_width(page, 1280, 320):
            assert await violations(page) == "", width
            assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
            if folder:
                await page.screenshot(path=Path(folder) / f"{name}-{width}.png", full_page=True)
        if name == "work":
            await page.get_by_role("button", name="Finish here").click()
            await expect(page.get_by_text("D0NE-7")).to_be_visible()


async def test_after_so_many_minutes_a_line_reminds_of_a_break_until_it_is_put_away(task: Any, visit: Any) -> None:
    campaign = await task(break_minutes=20)
    page = (await visit()).page
    await page.clock.install()
    await page.goto(campaign.prolific())
    await wait_for_hit(page)
    line = page.get_by_text("You have worked for a while.")
    await page.clock.fast_forward("19:00")
    await expect(line).to_be_hidden()
    await page.clock.fast_forward("02:00")
    await expect(line).to_be_visible()
    await page.get_by_role("button", name="Continue").click()
    await expect(line).to_be_hidden()
    await page.clock.fast_forward("21:00")
    await expect(line).to_be_visible()
