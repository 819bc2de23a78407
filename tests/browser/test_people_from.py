"""The step of the visit shows only what the chosen way of recruiting needs."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import each_width, violations


@pytest.fixture
def open_page(origin: str, visit: Callable[..., Any], cookie: Any) -> Callable[..., Any]:
    """Open a page of a campaign, as a researcher."""

    async def open_page_of(campaign: Any, part: str, **options: Any) -> Page:
        page: Page = (await visit(**options)).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/{part}")
        return page

    return open_page_of


async def test_only_what_the_chosen_way_of_recruiting_needs_is_shown(task: Any, open_page: Any) -> None:
    page = await open_page(await task(launched=False), "settings/visit")
    way = page.get_by_label("Where do people come from?")
    code, panel = page.get_by_label("Prolific completion code"), page.get_by_label("Platform name")
    await expect(page.get_by_text("Anyone with the link can take part.")).to_be_visible()
    await expect(code).to_be_hidden()
    await way.select_option("Prolific")
    await expect(page.get_by_text("Anyone with the link can take part.")).to_be_hidden()
    await code.fill("C0DE")
    await way.select_option("Another platform, such as SONA")
    await expect(panel).to_be_visible()
    await expect(code).to_be_hidden()
    await way.select_option("Prolific")
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await page.get_by_role("button", name="Save settings").press("Enter")
    await page.wait_for_url("**?done=saved")
    await expect(way).to_have_value("prolific")
    await way.select_option("A link that I share")
    await expect(code).to_have_value("C0DE")
    await expect(code).to_be_visible()  # what is filled in stays in sight


async def test_an_address_that_names_a_setting_shows_it_whatever_is_chosen(task: Any, open_page: Any) -> None:
    page = await open_page(await task(launched=False), "settings?setting=prolific_completion_code")
    await expect(page.get_by_label("Prolific completion code")).to_be_in_viewport()


async def test_without_scripts_the_choice_shows_its_settings_too(task: Any, open_page: Any) -> None:
    page = await open_page(await task(launched=False), "settings/visit", java_script_enabled=False)
    await expect(page.get_by_label("Platform name")).to_be_hidden()
    await page.get_by_label("Where do people come from?").select_option("Another platform, such as SONA")
    await expect(page.get_by_label("Platform name")).to_be_visible()
