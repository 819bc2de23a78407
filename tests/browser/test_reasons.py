"""Required comments on the HIT page: by keyboard, on a phone, from right to left, kept by drafts, without scripts."""

from typing import Any

from playwright.async_api import Page, expect

from tests.browser.acts import expect_scores, open_hit, press_submit, violations, wait_for_hit

ASKING: dict[str, Any] = {
    "comment_on": "items", "comment_request": "required", "items_per_hit": 2, "texts": ["go", "run"],
}  # fmt: skip
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 640}, "has_touch": True, "is_mobile": True}
PROBLEM = "Please write an answer here."


async def test_by_keys_a_missing_comment_is_told_beside_its_field(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    first, second = page.locator(".reason textarea").nth(0), page.locator(".reason textarea").nth(1)
    for key in ["a", "7", "Tab", "5"]:
        await page.keyboard.press(key)
    await first.fill("7a?")
    await expect_scores(page, [7, 5])
    await page.keyboard.press("Control+Enter")
    await expect(second).to_be_focused()
    await expect(second).to_have_attribute("aria-invalid", "true")
    await expect(second).to_have_accessible_description(PROBLEM)
    await expect(page.locator(".field-problem:visible")).to_have_text([PROBLEM])
    assert await violations(page) == ""
    await page.keyboard.type("b")
    await expect(page.locator(".field-problem:visible")).to_have_count(0)
    await press_submit(page)
    (stored,) = await campaign.responses()
    said = [stored.extra["remarks"][str(item)]["comment"] for item in stored.items]
    assert said == ["7a?", "b"]


async def test_an_item_that_cannot_be_judged_needs_no_comment(task: Any, visit: Any) -> None:
    campaign = await task(**ASKING, design="rating", cannot_be_judged=True, unjudged_reasons=[])
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await page.keyboard.press("a")
    await page.keyboard.press("7")
    await page.locator(".cannot-judge > summary").click()
    await page.locator(".cannot-judge select").nth(1).select_option("yes")
    await page.locator(".reason textarea").nth(0).fill("Good.")
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert stored.extra["remarks"] == {str(stored.items[0]): {"comment": "Good."}}


async def test_after_the_last_digit_the_first_empty_comment_has_the_focus(task: Any, visit: Any) -> None:
    labels = {"labels": ["low", "middle", "high"]}
    campaign = await task(**ASKING, design="ordinal", design_settings=labels)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    fields = page.locator(".row > .reason textarea")
    await page.keyboard.type("1")
    await fields.nth(0).fill("3rd")
    await page.locator("#question").focus()
    await page.keyboard.type("2")
    await expect(fields.nth(1)).to_be_focused()
    await expect(fields.nth(1)).to_have_accessible_name("Why? run" if await first_text(page) == "go" else "Why? go")
    await page.keyboard.type("1")
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".progress")).to_contain_text("1 task done")
    (stored,) = await campaign.responses()
    assert [stored.extra["remarks"][str(item)]["comment"] for item in stored.items] == ["3rd", "1"]
    assert stored.values == [0, 1]


async def test_a_page_from_before_comments_were_required_gets_the_field_and_keeps_what_was_entered(
    task: Any, visit: Any
) -> None:
    campaign = await task(**ASKING | {"comment_request": "offered"})
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    for key in ["a", "7", "Tab", "5"]:
        await page.keyboard.press(key)
    await campaign.set("general_settings = general_settings || jsonb_build_object('comment_request', 'required')")
    await page.locator(".primary").click()
    await page.locator(".reason textarea").nth(1).fill("b")
    await page.locator(".reason textarea").nth(0).fill("a")
    await expect_scores(page, [7, 5])
    await press_submit(page)
    assert len(await campaign.responses()) == 1


async def first_text(page: Page) -> str:
    return (await page.locator(".row .text").first.inner_text()).strip()


async def test_on_a_phone_from_right_to_left_a_pair_waits_for_its_comment_and_a_draft_keeps_it(
    task: Any, visit: Any
) -> None:
    settings = {"comment_on": "HIT", "design": "pairwise", "design_settings": {"submit_on_choice": True}}
    campaign = await task(**ASKING | settings, language="ar")
    page = (await visit(**PHONE)).page
    await open_hit(page, campaign.prolific())
    await page.locator(".choice input").first.click()
    await expect(page.locator(".side[data-chosen]")).to_have_count(1)
    field = page.locator(".reason textarea")
    async with page.expect_response(lambda reply: reply.request.method == "PUT"):
        await field.fill("أوضح")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await wait_for_hit(page)
    await expect(field).to_have_value("أوضح")
    assert await violations(page) == ""
    await press_submit(page)
    (stored,) = await campaign.responses()
    assert stored.extra == {"remarks": {"hit": {"comment": "أوضح"}}}


async def test_without_scripts(task: Any, plain: Any) -> None:
    campaign = await task(**ASKING, cannot_be_judged=True)
    page = await plain(campaign.link)
    await page.press("Start")
    for field in page.numbers():
        page.fill(field, "40")
    await page.press("Submit")
    assert page.texts("notice") == ["Please answer “Why?” for every item. What you entered is kept."]
    for field in page.all("textarea"):
        page.fill(field, "one\ntwo")
    await page.press("Submit")
    assert page.texts("progress") == ["1 task done"]
    (stored,) = await campaign.responses()
    assert {remark["comment"] for remark in stored.extra["remarks"].values()} == {"one\ntwo"}
