"""The page Adjudicate in a browser: by keyboard alone, without scripts, on a phone."""

import asyncio
from typing import Any

import pytest
from playwright.async_api import expect

from app.annotation.hits import submission
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.remarks import Remark
from tests.annotation.hits.campaigns import NOW, create_annotator, try_to_lease_hit
from tests.browser.acts import violations

LABELS = ["bank: a financial institution", "shore: land beside a river", "unclear: the sentence does not tell"]
TEXTS = [
    "She sat on the bank and watched the boats.",
    "He sat down by the bank.",
    "The bank has raised its rates again.",
    "They met at the bank after the flood.",
]
VOTES = [[1, 0, 0, 0], [1, 1, 0, 1], [1, 2, 0, 1], [1, 0, 0, 2]]  # by annotator, of each item


async def sentences(served: Any, task: Any) -> Any:
    """Return a campaign on which four annotators have answered; two items have no majority."""
    settings = {"design": "categories", "design_settings": {"labels": LABELS}, "comment_on": "items"}
    campaign = await task(TEXTS, **settings, name="Word senses", items_per_hit=4, judgments_per_item=9)
    for number, votes in enumerate(VOTES):
        person = await create_annotator(served, campaign.row, name=f"person {number}")
        hit = await try_to_lease_hit(served, person)
        answer = Answer(
            {item: float(votes[item]) for item in hit.items},
            remarks={"1": Remark("One can sit at both.")},
            source="page",
        )
        async with borrow_autocommit_driver(served) as connection:
            await submission.store_answer_of_hit_and_return_receipt(connection, person, hit.id, answer, now=NOW)
    return campaign


@pytest.mark.parametrize(("wide", "scheme"), [(1280, "light"), (390, "dark"), (1280, "dark"), (390, "light")])
async def test_disagreements_are_settled_and_undone_by_keys_alone(
    served: Any, task: Any, visit: Any, origin: str, *, cookie: Any, wide: int, scheme: str
) -> None:
    campaign = await sentences(served, task)
    page = (await visit(viewport={"width": wide, "height": 900}, color_scheme=scheme)).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/adjudicate")
    await expect(page.get_by_text("0 of 2 items without a majority are settled.")).to_be_visible()
    first = await page.locator("#item-title code").inner_text()
    assert await violations(page) == ""
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator("#item-title code")).not_to_have_text(first)
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator("#item-title code")).to_have_text(first)
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.keyboard.press("2")
    await expect(page.get_by_text("1 of 2 items without a majority is settled.")).to_be_visible()
    await expect(page.locator("#item-title code")).not_to_have_text(first)
    assert await violations(page) == ""
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.keyboard.press("u")
    await expect(page.get_by_text("0 of 2 items without a majority are settled.")).to_be_visible()
    await expect(page.locator("#item-title code")).to_have_text(first)
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.keyboard.press("n")
    await expect(page.locator("#item-title code")).not_to_have_text(first)


async def test_a_digit_in_the_reason_chooses_nothing_and_a_press_stores_the_reason(
    served: Any, task: Any, visit: Any, origin: str, *, cookie: Any
) -> None:
    campaign = await sentences(served, task)
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/adjudicate?item=1")
    await page.get_by_label("Reason (optional)").focus()
    await page.keyboard.type("2 of 4 say so")
    await page.get_by_role("button", name="shore").press("Enter")
    await expect(page.get_by_text("1 of 2 items without a majority is settled.")).to_be_visible()
    rows = await campaign.rows("SELECT label, reason FROM adjudications WHERE campaign_id = :campaign")
    assert [tuple(row) for row in rows] == [("shore", "2 of 4 say so")]


async def test_the_page_works_without_scripts(served: Any, task: Any, visit: Any, origin: str, *, cookie: Any) -> None:
    campaign = await sentences(served, task)
    page = (await visit(java_script_enabled=False)).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/adjudicate")
    await expect(page.get_by_text("Keys:")).to_be_hidden()
    await page.get_by_role("link", name="Hide votes until I choose").click()
    await expect(page.get_by_text("Votes, comments and the estimated label are hidden")).to_be_visible()
    await page.get_by_role("button", name="bank").click()
    await expect(page.get_by_role("status")).to_contain_text("votes:")
    await page.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("0 of 2 items without a majority are settled.")).to_be_visible()
    await page.get_by_role("link", name="All items").click()
    await expect(page.locator("table.queue tbody tr")).to_have_count(4)


async def test_enter_in_the_reason_settles_nothing(
    served: Any, task: Any, visit: Any, origin: str, *, cookie: Any
) -> None:
    campaign = await sentences(served, task)
    for has_scripts in (True, False):
        page = (await visit(java_script_enabled=has_scripts)).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/adjudicate?item=1")
        await page.get_by_label("Reason (optional)").fill("The context says so.")
        await page.get_by_label("Reason (optional)").press("Enter")
        await page.wait_for_timeout(300)
        await expect(page.get_by_label("Reason (optional)")).to_have_value("The context says so.")
    assert await campaign.rows("SELECT label FROM adjudications WHERE campaign_id = :campaign") == []


PRESS_KEY = (
    "key => document.body.dispatchEvent(new KeyboardEvent('keydown', {...key, bubbles: true, cancelable: true}))"
)


async def test_keys_that_scroll_choose_nothing_and_other_alphabets_have_the_keys_of_latin_ones(
    served: Any, task: Any, visit: Any, origin: str, *, cookie: Any
) -> None:
    campaign = await sentences(served, task)
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/adjudicate")
    first = await page.locator("#item-title code").inner_text()
    for key, code in [("PageDown", "Numpad3"), ("ArrowDown", "Numpad2"), ("Home", "Numpad7"), ("End", "Numpad1")]:
        await page.evaluate(PRESS_KEY, {"key": key, "code": code})
    await page.wait_for_timeout(300)
    await expect(page.get_by_text("0 of 2 items without a majority are settled.")).to_be_visible()
    await page.evaluate(PRESS_KEY, {"key": "т", "code": "KeyN"})
    await expect(page.locator("#item-title code")).not_to_have_text(first)
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.evaluate(PRESS_KEY, {"key": "2", "code": "Numpad2"})
    await expect(page.get_by_text("1 of 2 items without a majority is settled.")).to_be_visible()
    await expect(page.get_by_text("Keys:")).to_be_visible()
    await page.evaluate(PRESS_KEY, {"key": "г", "code": "KeyU"})
    await expect(page.get_by_text("0 of 2 items without a majority are settled.")).to_be_visible()


async def test_two_quick_clicks_send_one_label(served: Any, task: Any, visit: Any, origin: str, *, cookie: Any) -> None:
    campaign = await sentences(served, task)
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{origin}/admin/campaigns/{campaign.row.slug}/adjudicate?item=1")
    sent: list[str] = []

    async def delay(route: Any) -> None:
        sent.append(route.request.method)
        await asyncio.sleep(0.6 if route.request.method == "POST" else 0)
        await route.continue_()

    await page.route("**/adjudicate*", delay)
    button = page.get_by_role("button", name="shore")
    await button.evaluate("button => [0, 200].forEach((pause) => setTimeout(() => button.click(), pause))")
    await expect(page.get_by_text("1 of 2 items without a majority is settled.")).to_be_visible()
    assert sent.count("POST") == 1
    rows = await campaign.rows("SELECT label FROM adjudications WHERE campaign_id = :campaign")
    assert [tuple(row) for row in rows] == [("shore",)]
