"""The search over everything and the shortcuts of researchers' pages, by keyboard."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import each_width, violations, wait_for_value
from tests.browser.test_appearance import looks


@pytest.fixture
async def campaign(task: Any) -> Any:
    return await task(name="Palette verbs", texts=["gallop", "glide", "hum"])


@pytest.fixture
async def page(visit: Any, cookie: Any, origin: str, campaign: Any) -> Page:
    """The overview of the campaign."""
    page: Page = (await visit(**looks(1280))).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}")
    return page


async def test_an_item_is_found_and_opened_by_keyboard_alone(page: Page) -> None:
    await page.keyboard.press("Control+k")
    words = page.get_by_role("combobox", name="Search")
    await expect(words).to_be_focused()
    await expect(words).to_have_attribute("aria-expanded", "true")
    await words.fill("GLIDE")
    item = page.get_by_role("group", name="Items").get_by_role("option")
    await expect(item).to_have_text(re.compile("glide"))
    await expect(item).to_have_attribute("aria-selected", "true")
    await expect(words).to_have_attribute("aria-activedescendant", str(await item.get_attribute("id")))
    await page.keyboard.press("ArrowDown")
    await expect(item).to_have_attribute("aria-selected", "false")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile(r"\?item=1#item$"))
    await expect(words).to_have_count(0)


async def test_enter_opens_the_first_row_for_the_words_even_before_it_is_shown(page: Page) -> None:
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox")).to_be_focused()
    await page.keyboard.type("settings")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/settings/question")


async def test_escape_closes_the_search_and_the_focus_returns(page: Page) -> None:
    button = page.get_by_role("link", name="Search", exact=True)
    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("combobox")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()


async def test_the_search_fits_and_axe_finds_nothing(page: Page) -> None:
    await page.keyboard.press("/")
    await page.get_by_role("combobox").fill("items")
    await expect(page.get_by_role("listbox", name="Results").get_by_role("option").first).to_contain_text("Items")
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    await page.keyboard.press("Escape")
    await wait_for_value(lambda: page.evaluate("document.activeElement.tagName"), "BODY")
    await page.keyboard.press("?")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert await violations(page) == ""


async def test_keys_open_the_pages_of_the_campaign_but_not_while_one_types(page: Page) -> None:
    for keys, address in (("gi", "/items"), ("gq", "/checks"), ("go", "")):
        await page.keyboard.type(keys)
        await page.wait_for_url(re.compile(rf"/campaigns/[\w-]+{address}$"))
    await page.keyboard.type("gi")
    await page.wait_for_url("**/items")
    await page.get_by_role("searchbox").first.press_sequentially("/?gq")
    await expect(page.get_by_role("searchbox").first).to_have_value("/?gq")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    assert page.url.endswith("/items")


async def test_single_keys_can_be_switched_off_and_on_again(page: Page) -> None:
    dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    await page.keyboard.press("?")
    await dialog.get_by_role("checkbox").uncheck()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.reload()
    await page.keyboard.type("?/")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await page.get_by_role("button", name="Keyboard shortcuts").click()
    await dialog.get_by_role("checkbox").check()
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    await page.keyboard.press("?")
    await expect(dialog).to_be_visible()


async def test_a_key_pressed_right_after_the_shortcuts_were_closed_is_heard(page: Page) -> None:
    await page.keyboard.press("?")
    await page.evaluate("""() => {
        document.getElementById("single-keys").focus();
        document.getElementById("shortcuts").close();
        document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
    }""")
    await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()


async def test_without_a_script_the_button_opens_a_page_with_the_same_rows(
    plain: Any, cookie: Any, campaign: Any
) -> None:
    page = await plain(f"/admin/search?campaign={campaign.row.slug}&q=glide", cookie)
    (found,) = page.all("a", href=f"/admin/campaigns/{campaign.row.slug}?item=1#item")
    assert found.text == "glide"


async def test_annotators_have_neither_the_search_nor_the_keys(visit: Any, campaign: Any) -> None:
    page = (await visit()).page
    await page.goto(campaign.link)
    await page.keyboard.press("Control+k")
    await page.keyboard.type("?/")
    await expect(page.locator("dialog")).to_have_count(0)
    assert "/admin/search" not in await page.content()
