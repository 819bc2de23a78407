"""Unsaved settings of researchers are kept in their browser, offered, and forgotten in time."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import each_width, violations, wait_for_value

OFFER = re.compile(r"^Continue with what you had typed at \d+:\d\d [AP]M\? It was not saved\.")
STORED = "Object.entries(localStorage).filter(([key]) => key.startsWith('easel:entries:')).map(String).join()"


@pytest.fixture
def open_step(origin: str, visit: Callable[..., Any], cookie: Any) -> Callable[..., Any]:
    """Open a step of a draft's settings as a researcher, in a new browser or in that of an earlier page."""

    async def open_page(draft: Any, step: str = "visit", *, beside: Page | None = None) -> Page:
        page: Page = await beside.context.new_page() if beside else (await visit()).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin/campaigns/{draft.row.slug}/settings/{step}")
        return page

    return open_page


async def wait_until_kept(page: Page, words: str) -> None:
    async def is_kept() -> bool:
        return words in await page.evaluate(STORED)

    await wait_for_value(is_kept, True)


def offer_on(page: Page) -> Any:
    return page.locator("#kept-entries")


async def type_visit_and_close(page: Page) -> None:
    await page.get_by_label("Contact").first.fill("lab@uni.example")
    await page.locator("textarea#consent").fill("You may stop at any time.")
    await page.get_by_role("button", name="Add a question").press("Enter")
    await page.keyboard.type("How old are you?")
    await wait_until_kept(page, "How old")
    await page.close()


async def test_entries_survive_a_closed_page_and_are_used_on_request_only(task: Any, open_step: Any) -> None:
    draft = await task(launched=False)
    page = await open_step(draft)
    other = await open_step(draft, "question", beside=page)
    await type_visit_and_close(page)
    page = await open_step(draft, beside=other)
    await expect(offer_on(page)).to_contain_text(OFFER)
    await expect(page.locator("textarea#consent")).to_have_value("")
    await expect(offer_on(other)).to_have_count(0)
    async for width in each_width(page, 1280, 390):
        assert await violations(page) == "", width
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
    await offer_on(page).get_by_role("button", name="Use").click()
    await expect(offer_on(page)).to_have_count(0)
    await expect(page.get_by_label("Contact").first).to_have_value("lab@uni.example")
    await expect(page.locator("textarea#consent")).to_have_value("You may stop at any time.")
    card = page.locator(".question-cards > li").first
    await expect(card.locator("textarea, input").first).to_have_value("How old are you?")
    await expect(page.get_by_text("Not saved yet")).to_be_visible()
    await card.get_by_label("Name in exports").fill("age")
    await page.get_by_role("button", name="Save settings").press("Enter")
    await page.wait_for_url("**?done=saved")
    assert await page.evaluate(STORED) == ""
    await page.reload()
    await expect(offer_on(page)).to_have_count(0)


async def test_entries_are_discarded_on_request_and_a_refused_form_keeps_them(task: Any, open_step: Any) -> None:
    draft = await task(launched=False)
    first = await open_step(draft, "question")
    page = await open_step(draft, beside=first)
    await type_visit_and_close(page)
    page = await open_step(draft, beside=first)
    await offer_on(page).get_by_role("button", name="Discard").click()
    assert await page.evaluate(STORED) == ""
    await page.reload()
    await expect(page.locator("textarea#consent")).to_have_value("")
    await expect(offer_on(page)).to_have_count(0)
    await page.locator("textarea#consent").fill("You may stop.")
    await page.locator("textarea[name=questions]").evaluate("(field) => { field.value = 'age'; }")  # has no question
    await page.get_by_role("button", name="Save settings").press("Enter")
    await expect(page.get_by_text("Nothing has been saved.")).to_be_visible()
    await page.get_by_label("Purpose").fill("research on politeness")
    await wait_until_kept(page, "politeness")
    await page.close()
    page = await open_step(draft, beside=first)
    await offer_on(page).get_by_role("button", name="Use").click()
    await expect(page.locator("textarea#consent")).to_have_value("You may stop.")
    await expect(page.get_by_label("Purpose")).to_have_value("research on politeness")


async def test_what_is_typed_before_the_decision_stays(task: Any, open_step: Any) -> None:
    draft = await task(launched=False)
    first = await open_step(draft, "question")
    await type_visit_and_close(await open_step(draft, beside=first))
    page = await open_step(draft, beside=first)
    await page.locator("textarea#consent").fill("Another text.")
    await wait_until_kept(page, "Another text")
    assert "How old" in await page.evaluate(STORED)
    await offer_on(page).get_by_role("button", name="Use").click()
    await expect(page.locator("textarea#consent")).to_have_value("Another text.")
    await expect(page.get_by_label("Contact").first).to_have_value("lab@uni.example")


async def test_secrets_are_not_kept_and_a_log_out_forgets_everything(task: Any, open_step: Any, served: Any) -> None:
    draft = await task(launched=False)
    page = await open_step(draft)
    await page.get_by_label("Purpose").fill("research on politeness")
    await page.locator("#passphrase").evaluate(
        "(field) => { field.value = 'open sesame'; field.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    await wait_until_kept(page, "politeness")
    assert "sesame" not in await page.evaluate(STORED)
    page.on("dialog", lambda dialog: dialog.accept())
    # Only the page's side: the session is that of other tests.
    await page.route("**/logout", lambda route: route.fulfill(body="<p>Logged out</p>", content_type="text/html"))
    await page.get_by_role("button", name="Log out").click()
    await expect(page.get_by_text("Logged out")).to_be_visible()
    assert await page.evaluate(STORED) == ""


async def test_another_researcher_is_offered_nothing(task: Any, open_step: Any) -> None:
    draft = await task(launched=False)
    first = await open_step(draft, "question")
    await type_visit_and_close(await open_step(draft, beside=first))
    await first.evaluate("""Object.entries(localStorage).forEach(([key, value]) => {
      if (!key.startsWith("easel:entries:")) return;
      localStorage.removeItem(key);
      localStorage.setItem(key.replace(/entries:(\\d+)/, (_, user) => `entries:${Number(user) + 1}`), value);
    })""")
    page = await open_step(draft, beside=first)
    await expect(page.get_by_role("button", name="Save settings")).to_be_visible()
    await expect(offer_on(page)).to_have_count(0)


async def test_a_new_campaign_is_offered_until_its_draft_is_created(open_step: Any, task: Any, origin: str) -> None:
    first = await open_step(await task(launched=False), "question")
    page = await first.context.new_page()
    await page.goto(f"{origin}/admin/campaigns/new")
    await page.get_by_label("Name", exact=True).fill("Kept draft")
    await page.locator("#question").fill("How kind is it?")
    await wait_until_kept(page, "How kind")
    await page.close()
    page = await first.context.new_page()
    await page.goto(f"{origin}/admin/campaigns/new")
    await offer_on(page).get_by_role("button", name="Use").click()
    await expect(page.locator("#question")).to_have_value("How kind is it?")
    await page.get_by_role("button", name="Create draft").press("Enter")
    await page.wait_for_url("**?done=created")
    assert await page.evaluate(STORED) == ""
