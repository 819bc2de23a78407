"""Nothing that was entered is lost, and no answer counts twice, whatever the connection or the clock does."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.async_api import Page, Request, Route, expect

from tests.browser.acts import (
    SUBMIT,
    click_at,
    expect_scores,
    item_texts,
    press_submit,
    score_all,
    sliders,
    start_by_link,
    wait_for_hit,
)

KEPT = "Your answer is kept and will be sent."
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
async def campaign(task: Any) -> Any:
    return await task()


@pytest.fixture
async def page(campaign: Any, visit: Any) -> Page:
    """A fresh HIT; its page's clock stands still, so that a timer fires when a test says so and at no other moment."""
    opened: Page = (await visit()).page
    await opened.clock.install(time=NOON)
    await opened.clock.pause_at(NOON + timedelta(seconds=1))
    await start_by_link(opened, campaign.link)
    return opened


async def cut(page: Page, *, after_arrival: bool) -> list[str]:
    """Let every answer's connection break, before or after the server got it; the bodies that were sent."""
    sent: list[str] = []

    async def handle(route: Route, request: Request) -> None:
        if request.method != "POST":
            await route.fallback()
            return
        sent.append(request.post_data or "")
        if after_arrival:
            await route.fetch()
        await route.abort("connectionreset")

    await page.route("**/link/**", handle)
    return sent


@pytest.mark.parametrize("after_arrival", [False, True])
async def test_a_connection_lost_in_mid_submit_costs_nothing(page: Page, campaign: Any, after_arrival: bool) -> None:
    order = await item_texts(page)
    sent = await cut(page, after_arrival=after_arrival)
    await score_all(page, [71, 93, 17, 4, 41])
    await page.locator(SUBMIT).click()
    await expect(page.locator(".status")).to_contain_text(f"Not connected. {KEPT}")
    await expect(page.locator(".status")).to_have_class("status problem warning")  # it passes by itself: no error
    assert len(await campaign.responses()) == int(after_arrival)
    await expect_scores(page, [71, 93, 17, 4, 41])
    await page.unroute_all()
    await page.get_by_role("button", name="Try now").click()
    await expect(page.locator(".progress")).to_have_text("1 task done")
    await expect(page.get_by_text("Your answer had been stored already.")).to_have_count(int(after_arrival))
    assert len(sent) == 1
    assert await campaign.scores() == [dict(zip(order, [71, 93, 17, 4, 41], strict=True))]


@pytest.mark.new_browser_context
async def test_an_answer_is_sent_by_itself_when_the_connection_returns(page: Page, campaign: Any) -> None:
    await score_all(page, [71, 93, 17, 4, 41])
    await page.context.set_offline(offline=True)
    await page.locator(SUBMIT).click()
    await expect(page.locator(".status")).to_contain_text(KEPT)
    await page.context.set_offline(offline=False)
    await expect(page.locator(".progress")).to_have_text("1 task done")
    assert len(await campaign.responses()) == 1


async def test_an_answer_is_tried_again_after_a_while(page: Page, campaign: Any) -> None:
    refusals = iter([503, None, 500, None, 429])  # None: the connection breaks; each differs from the one before

    async def refuse(route: Route, request: Request) -> None:
        status = next(refusals, 200) if request.method == "POST" else 200
        if status is None:
            await route.abort("connectionreset")
        else:
            await (route.fallback() if status == 200 else route.fulfill(status=status, body="{}"))

    await page.route("**/link/**", refuse)
    await score_all(page, [71, 93, 17, 4, 41])
    await page.locator(SUBMIT).click()
    causes = ["The server is busy.", "Not connected."] * 3
    for wait_ms, cause in zip((1000, 2000, 4000, 8000, 15_000), causes, strict=False):
        await expect(page.locator(".status")).to_contain_text(f"{cause} {KEPT}")
        await page.clock.fast_forward(wait_ms)
    await expect(page.locator(".progress")).to_have_text("1 task done")
    assert len(await campaign.responses()) == 1


async def test_an_answer_that_is_being_sent_cannot_be_changed(page: Page, campaign: Any) -> None:
    await cut(page, after_arrival=False)
    await score_all(page, [71, 93, 17, 4, 41])
    await page.locator(SUBMIT).click()
    await expect(page.locator(".status")).to_contain_text(KEPT)
    await click_at(page, 0, 20)
    await sliders(page).nth(1).press("Home")
    await page.get_by_label("Raise c by 1").click()
    await sliders(page).nth(3).fill("99")
    await expect_scores(page, [71, 93, 17, 4, 41])


async def test_a_double_click_on_submit_counts_once(page: Page, campaign: Any) -> None:
    await score_all(page, [71, 93, 17, 4, 41])
    await page.locator(SUBMIT).dblclick()
    await expect(page.locator(".progress")).to_have_text("1 task done")
    assert len(await campaign.responses()) == 1


async def test_a_refused_answer_says_why_and_can_be_corrected(page: Page, campaign: Any) -> None:
    await score_all(page, [71, 93, 17, 4, 41])
    token = page.locator("form.answer input[name=token]")
    good = await token.input_value()
    await token.evaluate("field => { field.value = 'forged'; }")
    await page.locator(SUBMIT).click()
    await expect(page.locator(".status")).to_contain_text(
        "This page's link is damaged. Answers you submitted are safe."
    )
    await expect(page.locator(".status")).to_have_class("status problem")
    await expect_scores(page, [71, 93, 17, 4, 41])
    await token.evaluate("(field, token) => { field.value = token; }", good)
    await press_submit(page)
    assert len(await campaign.responses()) == 1


async def test_a_reload_returns_the_same_hit_with_what_was_entered(page: Page, campaign: Any) -> None:
    order = await item_texts(page)
    await score_all(page, [71, 93, 17])
    async with page.expect_response(lambda response: response.request.method == "PUT") as saved:
        await page.clock.fast_forward(600)
    assert (await saved.value).status == 204
    draft = await campaign.draft()
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await wait_for_hit(page)
    assert await item_texts(page) == order
    await expect_scores(page, [71, 93, 17, None, None])
    await click_at(page, 0, 20)
    await click_at(page, 3, 30)
    await click_at(page, 4, 40)
    await press_submit(page)
    response, *_ = await campaign.responses()
    assert response.changes == [2, 1, 1, 1, 1]
    assert response.first_touch_ms[0] == draft["00"]["first_touch_ms"]


async def test_a_reload_without_a_saved_draft_finds_it_in_the_tab(page: Page) -> None:
    await page.route("**/link/**", lambda route: route.abort() if route.request.method == "PUT" else route.fallback())
    await score_all(page, [71, 93, 17])
    await page.reload()
    await wait_for_hit(page)
    await expect_scores(page, [71, 93, 17, None, None])


async def test_a_draft_that_an_earlier_version_left_in_the_tab_is_shown_at_its_items(page: Page, campaign: Any) -> None:
    (hit,) = await campaign.rows("SELECT id, items FROM hits WHERE campaign_id = :campaign AND closed_at IS NULL")
    entry = {"first_touch_ms": 5, "changes": 1, "input_kind": "mouse"}
    draft = json.dumps({str(item): {"score": 10 * k, **entry} for k, item in enumerate(hit.items[:4])})
    await page.evaluate("([key, draft]) => sessionStorage.setItem(key, draft)", [f"easel:{hit.id}", draft])
    await page.reload()
    await expect_scores(page, [0, 10, 20, 30, None])
    assert await page.evaluate("key => sessionStorage.getItem(key)", f"easel:{hit.id}") is None


async def test_a_page_works_where_storage_is_blocked(page: Page) -> None:
    blocked = "Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('blocked'); }})"
    await page.add_init_script(blocked)
    await page.reload()
    await wait_for_hit(page)
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    await expect(page.locator(".progress")).to_have_text("1 task done")


async def test_leaving_the_page_saves_the_draft(page: Page, campaign: Any, visit: Any) -> None:
    address = page.url
    await score_all(page, [71, 93])
    await page.goto("about:blank")
    draft = await campaign.draft_saved()
    assert {entry["input_kind"] for entry in draft.values()} == {"mouse"}
    elsewhere = (await visit()).page
    await elsewhere.goto(address)
    await expect_scores(elsewhere, [71, 93, None, None, None])


async def test_a_newer_token_is_kept_in_the_address(page: Page) -> None:
    before = page.url
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    token = await page.locator("form.answer input[name=token]").input_value()
    await expect(page).to_have_url(f"{before.split('?')[0]}?t={token}")


async def test_an_answer_that_others_gave_meanwhile_is_refused_kindly(page: Page, task: Any, visit: Any) -> None:
    campaign = await task(texts=["abide", "run", "accrue"], items_per_hit=3)
    late, quick = page, (await visit()).page
    await start_by_link(late, campaign.link)
    await score_all(late, [1, 2, 3])
    await campaign.expire_leases()
    await start_by_link(quick, campaign.link)
    await score_all(quick, [4, 5, 6])
    await press_submit(quick)
    await press_submit(late)
    await expect(late.get_by_role("alert")).to_contain_text("they are no longer yours to answer")
    await expect(late.get_by_role("heading", name="All done")).to_be_visible()
    assert len(await campaign.responses()) == 1


async def test_who_has_to_wait_gets_the_next_free_hit_by_itself(page: Page, task: Any) -> None:
    campaign = await task(texts=["abide", "run", "accrue"], items_per_hit=3)
    await campaign.someone_else_holds_a_hit()
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    await expect(page.get_by_role("heading", name="Please try again in a minute")).to_be_visible()
    await expect(page.locator("html.started")).to_be_attached()
    await page.clock.resume()
    await page.get_by_role("link", name="Look again now").click()
    await expect(page.locator("#announcer")).to_have_text("Nothing yet.")
    await campaign.expire_leases()
    await page.clock.fast_forward(10_000)
    await wait_for_hit(page)
    await expect(page.locator("#question")).to_be_focused()


@pytest.mark.new_browser_context
async def test_someone_who_waits_without_a_connection_is_told(page: Page, task: Any) -> None:
    campaign = await task(texts=["abide", "run", "accrue"], items_per_hit=3)
    await campaign.someone_else_holds_a_hit()
    await page.goto(campaign.link)
    await page.get_by_role("button", name="Start").click()
    await expect(page.get_by_role("heading", name="Please try again in a minute")).to_be_visible()
    await expect(page.locator("html.started")).to_be_attached()  # before, the link loads the page again
    await page.clock.resume()
    await page.context.set_offline(offline=True)
    await page.get_by_role("link", name="Look again now").click()
    await expect(page.locator("#announcer")).to_have_text("Not connected. This page looks again by itself.")


@pytest.mark.parametrize(
    ("change", "heading"),
    [
        ("status = 'paused'", "Paused"),
        ("hits_per_annotator = 1", "You have done all your tasks"),
        ("status = 'finished'", "All done"),
    ],
)
async def test_each_reason_for_no_hit_has_its_own_words(page: Page, campaign: Any, change: str, heading: str) -> None:
    await score_all(page, [71, 93, 17, 4, 41])
    await campaign.set(change)
    await press_submit(page)
    await expect(page.get_by_role("heading", name=heading)).to_be_focused()


async def test_who_has_seen_everything_is_told_that_nothing_is_left_for_them(page: Page, task: Any) -> None:
    campaign = await task(texts=["abide", "run"], items_per_hit=2, judgments_per_item=2, repeat_items=False)
    await start_by_link(page, campaign.link)
    await score_all(page, [1, 2])
    await press_submit(page)
    await expect(page.get_by_role("heading", name="Nothing left for you")).to_be_visible()
    await expect(page.get_by_text("You answered 1 task.")).to_be_visible()


async def test_a_damaged_link_is_explained(visit: Any, origin: str) -> None:
    page = (await visit()).page
    await page.goto(f"{origin}/link/nothing-here")
    await expect(page.get_by_role("heading")).to_have_text(
        "There is no study at this address. Please check that the link is complete."
    )
