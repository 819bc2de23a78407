"""The page Quality in a browser."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.browser.acts import violations


@pytest.mark.parametrize(("wide", "scheme"), [(1280, "light"), (390, "dark")])
async def test_several_are_held_and_the_decision_is_undone_without_javascript(
    served: Any, task: Any, visit: Any, origin: str, *, cookie: Any, wide: int, scheme: str
) -> None:
    campaign = await task(judgments_per_item=4)
    for person in range(2):
        me = await create_annotator(served, campaign.row, name=f"person {person}")
        hit = await try_to_lease_hit(served, me)
        await submit_scores(served, me, hit, scores=[float((11 * item + 7 * person) % 101) for item in hit.items])
    options = {"viewport": {"width": wide, "height": 900}, "color_scheme": scheme}
    page = (await visit(java_script_enabled=False, **options)).page
    await page.context.add_cookies([cookie])
    address = f"{origin}/admin/campaigns/{campaign.row.slug}/checks"
    await page.goto(address)
    await page.get_by_label("Choose A1").check()
    await page.get_by_label("Choose A2").check()
    await page.get_by_label("Reason").fill("too fast")
    await page.get_by_role("button", name="Hold all chosen annotators").click()
    await expect(page.locator(".matrix td b")).to_have_text(["held", "held"])
    seen = (await visit(**options)).page
    await seen.context.add_cookies([cookie])
    await seen.goto(page.url)
    assert await violations(seen) == ""
    assert await seen.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(".matrix td b")).to_have_count(0)
    await expect(page.get_by_text("Undone. The log keeps both decisions.")).to_be_visible()
