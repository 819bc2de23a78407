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


@pytest.mark.parametrize("has_scripts", [True, False])
async def test_pay_is_asked_for_a_person_or_for_a_task_and_a_change_of_mind_loses_nothing(
    task: Any, open_page: Any, has_scripts: bool
) -> None:
    campaign = await task(launched=False)
    page = await open_page(campaign, "settings/visit", java_script_enabled=has_scripts)
    way = page.get_by_label("Where do people come from?")
    reward, tasks, minutes = (
        page.get_by_label(title, exact=True)
        for title in ("Reward of one person", "Tasks per annotator", "Minutes of one person")
    )
    of_task = page.get_by_label("Pay per task", exact=True)
    await expect(reward).to_be_hidden()
    await way.select_option("Prolific")
    await expect(of_task).to_be_hidden()
    for field, value in ((reward, "1.50"), (tasks, "12"), (minutes, "10")):
        await field.fill(value)
    if has_scripts:
        await expect(page.locator(".pay-rate")).to_contain_text("That is $0.125 a task and $9.00 an hour.")
    await way.select_option("A link that I share")
    await expect(of_task).to_be_visible()
    await way.select_option("Prolific")
    await expect(reward).to_have_value("1.50")
    await page.get_by_role("button", name="Save settings").last.press("Enter")
    await page.wait_for_url("**?done=saved")
    await expect(reward).to_have_value("1.50")
    await expect(page.locator(".pay-rate")).to_contain_text("That is $0.125 a task and $9.00 an hour.")
    await way.select_option("A link that I share")
    await expect(of_task).to_have_value("0.125")
