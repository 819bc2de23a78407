"""Arriving from Prolific and MTurk, and going back with proof of work."""

from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from playwright.async_api import Frame, Page, Route, expect

from tests.browser.acts import press_submit, score_all, start_by_link, wait_for_hit

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
STORED = """
    SELECT (SELECT count(*) FROM annotators WHERE campaign_id = :campaign)
         + (SELECT count(*) FROM hits WHERE campaign_id = :campaign)
"""


async def framed(page: Page, crowd: Any, url: str) -> Frame:
    """The HIT page inside the crowd platform's page; it has loaded, and so has the frame."""
    await page.goto(crowd.frame(url))
    frame = page.frame(name="task")
    assert frame
    await frame.locator(".row").first.wait_for()
    return frame


@pytest.mark.parametrize("scripted", [True, False])
async def test_mturk_in_a_frame_of_another_origin(task: Any, visit: Any, crowd: Any, scripted: bool) -> None:
    campaign = await task()
    page = (await visit(java_script_enabled=scripted)).page
    frame = await framed(page, crowd, campaign.mturk(crowd))
    await expect(frame.locator(".progress")).to_have_count(0)
    if scripted:
        await score_all(frame, [71, 93, 17, 4, 41])
    else:
        for field in await frame.locator(".row input").all():
            await field.fill("7")
    await frame.get_by_role("button", name="Submit").click()
    await expect(frame.get_by_role("heading", name="Your answer is stored")).to_be_visible()
    await expect(frame.get_by_text("Keep this code.")).to_be_visible()
    assert crowd.posted == []
    await frame.get_by_role("button", name="Submit to Mechanical Turk").click()
    await expect(frame.get_by_text("Taken by the crowd platform.")).to_be_visible()
    assert crowd.posted == [{"assignmentId": "A1", "hitId": "H1", "answered": "yes", "path": "/mturk/externalSubmit"}]
    assert len(await campaign.responses()) == 1
    assert await page.context.cookies() == []


async def test_coming_back_to_an_answered_mturk_assignment_lets_it_be_submitted_again(
    task: Any, visit: Any, crowd: Any
) -> None:
    campaign = await task()
    page = (await visit()).page
    for _ in range(2):
        await page.goto(crowd.frame(campaign.mturk(crowd)))
        frame = page.frame(name="task")
        assert frame
        if not crowd.posted:
            await wait_for_hit(frame)
            await score_all(frame, [71, 93, 17, 4, 41])
            await frame.get_by_role("button", name="Submit").click()
        await frame.get_by_role("button", name="Submit to Mechanical Turk").click()
        await expect(frame.get_by_text("Taken by the crowd platform.")).to_be_visible()
    assert [form["assignmentId"] for form in crowd.posted] == ["A1", "A1"]
    assert len(await campaign.responses()) == 1


async def test_an_mturk_preview_leases_and_stores_nothing(task: Any, visit: Any, crowd: Any) -> None:
    campaign = await task()
    page = (await visit()).page
    frame = await framed(page, crowd, campaign.mturk(crowd, PREVIEW))
    await expect(frame.get_by_text("This is a preview. Nothing you do here is stored.")).to_be_visible()
    await expect(frame.locator(".row input:enabled")).to_have_count(0)
    await expect(frame.get_by_role("button", name="Submit")).to_have_count(0)
    rail = frame.locator(".row .rail").first
    await rail.click(force=True)
    await page.keyboard.press("1")
    await page.keyboard.press("ArrowRight")
    await expect(frame.locator(".thumb:visible")).to_have_count(0)
    (count,) = await campaign.rows(STORED)
    assert count == (0,)


async def test_another_site_cannot_frame_the_page(task: Any, crowd: Any) -> None:
    campaign = await task()
    async with httpx.AsyncClient() as client:
        mturk, *others = [
            (await client.get(url)).headers for url in (campaign.mturk(crowd), campaign.link, campaign.prolific())
        ]
    framing = mturk["content-security-policy"].partition("frame-ancestors ")[2].split()
    assert {"https://www.mturk.com", "https://worker.mturk.com", crowd.origin} <= set(framing)
    for headers in others:
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"


async def test_an_mturk_worker_who_answered_nothing_is_not_handed_in(task: Any, visit: Any, crowd: Any) -> None:
    campaign = await task()
    await campaign.set("status = 'finished'")
    page = (await visit()).page
    await page.goto(crowd.frame(campaign.mturk(crowd)))
    frame = page.frame(name="task")
    assert frame
    await expect(frame.get_by_text("Please return the study on Mechanical Turk.")).to_be_visible()
    assert crowd.posted == []


@pytest.fixture
async def returned(visit: Any) -> Page:
    """A page whose clock stands still, on which Prolific answers."""
    page: Page = (await visit()).page
    await page.clock.install(time=NOON)
    await page.clock.pause_at(NOON + timedelta(seconds=1))

    async def prolific(route: Route) -> None:
        await route.fulfill(body="<title>Prolific</title>", content_type="text/html")

    await page.route("https://app.prolific.com/**", prolific)
    return page


async def test_prolific_there_and_back_once_the_code_is_kept(task: Any, returned: Page) -> None:
    campaign = await task(hits_per_annotator=1, prolific_completion_code="C0DE")
    await returned.goto(campaign.prolific())
    await expect(returned.locator(".progress")).to_have_text("0 of 1 task done")
    await expect(returned.get_by_text("Think of all texts you read.")).to_be_visible()
    await score_all(returned, [71, 93, 17, 4, 41])
    await press_submit(returned)
    back = returned.get_by_role("link", name="Return to Prolific")
    await expect(back).to_be_visible()
    await expect(returned.get_by_text("Keep this code.")).to_be_visible()
    await returned.clock.fast_forward("10:00")
    await expect(back).to_be_visible()  # the page waits for the person, however long they read
    for _ in range(2):  # behind the button that reopens the last answer
        await returned.keyboard.press("Tab")
    await expect(back).to_be_focused()
    await back.press("Enter")
    await returned.wait_for_url("https://app.prolific.com/submissions/complete?cc=C0DE")
    assert len(await campaign.responses()) == 1


async def test_prolific_without_a_code_says_where_to_finish(task: Any, returned: Page) -> None:
    campaign = await task(hits_per_annotator=1)
    await returned.goto(campaign.prolific())
    await score_all(returned, [71, 93, 17, 4, 41])
    await press_submit(returned)
    await expect(returned.get_by_text("You can now finish on Prolific’s own page.")).to_be_visible()


async def test_a_visitor_by_link_is_thanked(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await start_by_link(page, (await task(hits_per_annotator=1)).link)
    await expect(page.get_by_role("button", name="Submit", exact=True)).to_be_visible()
    await score_all(page, [71, 93, 17, 4, 41])
    await press_submit(page)
    await expect(page.get_by_text("Thank you. You answered 1 task.")).to_be_visible()
    await expect(page.get_by_text("You can close this page.")).to_be_visible()


async def test_a_link_that_lacks_the_person_is_explained(task: Any, visit: Any) -> None:
    page = (await visit()).page
    await page.goto((await task()).prolific().replace("PROLIFIC_PID", "OTHER"))
    await expect(page.get_by_role("heading")).to_contain_text("lacks a usable PROLIFIC_PID")
