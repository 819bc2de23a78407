"""The pages of a campaign's annotators in a browser."""

from typing import Any

import pytest
from playwright.async_api import expect

from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.browser.acts import each_width, violations
from tests.campaigns.drafts import create_launched_campaign


@pytest.mark.parametrize(("wide", "scheme"), [(1280, "light"), (390, "dark")])
async def test_somebody_is_excluded_and_restored_without_javascript(
    served: Any, task: Any, visit: Any, origin: str, *, cookie: Any, wide: int, scheme: str
) -> None:
    campaign = await task(judgments_per_item=4)
    for person in range(3):
        me = await create_annotator(served, campaign.row, name=f"person {person}")
        for _ in range(2):
            hit = await try_to_lease_hit(served, me)
            await submit_scores(served, me, hit, scores=[float((11 * item + 7 * person) % 101) for item in hit.items])
    options = {"viewport": {"width": wide, "height": 900}, "color_scheme": scheme}
    page = (await visit(java_script_enabled=False, **options)).page
    await page.context.add_cookies([cookie])
    address = f"{origin}/admin/campaigns/{campaign.row.slug}/annotators"
    await page.goto(address)
    await page.get_by_role("link", name="A2", exact=True).click()
    await page.get_by_label("Reason").first.fill("Sets all to the middle.")
    await page.get_by_role("button", name="Exclude", exact=True).first.click()
    await expect(page.locator(".notice.warning")).to_contain_text("their answers do not count")
    await expect(page.locator(".answers tr.left-out")).to_have_count(2)
    await page.goto(address)
    await expect(page.locator("tr.left-out")).to_contain_text("excluded")
    seen = (await visit(**options)).page
    await seen.context.add_cookies([cookie])
    for path in ("", "/A2"):
        await seen.goto(address + path)
        assert await violations(seen) == ""
    await page.goto(f"{address}/A2")
    await page.get_by_label("Reason").first.fill("They wrote to us.")
    await page.get_by_role("button", name="Restore", exact=True).first.click()
    await expect(page.locator("tr.left-out")).to_have_count(0)


async def test_the_table_with_all_its_columns_fits_a_small_laptop_and_a_phone(
    served: Any, visit: Any, origin: str, cookie: Any
) -> None:
    items = "".join(f"v{number},verb {number},,\n" for number in range(20))
    settings = {"update_law": "easl-aware", "checks_percent": 50, "repeat_items": True, "judgments_per_item": 50}
    campaign = await create_launched_campaign(
        served, f"id,text,check,expected\n{items}g1,to run,gold,90\n", pay_per_hit=0.5, currency="GBP", **settings
    )
    for person in range(4):
        me = await create_annotator(served, campaign, name=f"person {person}")
        for _ in range(10):
            hit = await try_to_lease_hit(served, me)
            await submit_scores(served, me, hit, scores=[float((11 * item + 7 * person) % 101) for item in hit.items])
    page = (await visit(viewport={"width": 1280, "height": 900})).page
    await page.context.add_cookies([cookie])
    address = f"{origin}/admin/campaigns/{campaign.slug}/annotators"
    await page.goto(f"{address}/A2")
    await page.get_by_label("Reason").first.fill("Sets all to the middle.")
    await page.get_by_role("button", name="Exclude", exact=True).first.click()
    await page.goto(address)
    for title in ("Time per task", "Pay per hour", "Agreement with others", "Reliability", "Bias", "Checks passed"):
        await expect(page.get_by_role("columnheader", name=title)).to_be_visible()
    await expect(page.get_by_role("row", name="A2")).to_contain_text("excluded")
    async for width in each_width(page, 1280, 390):
        assert await page.locator(".scroll").evaluate("it => it.scrollWidth <= it.clientWidth"), width
        assert await violations(page) == "", width
    await page.get_by_role("link", name="Tasks", exact=True).click()
    await expect(page).to_have_url(f"{address}?sort=answers")
