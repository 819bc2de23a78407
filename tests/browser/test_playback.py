"""Recordings that must be played: the page says so, waits for it, and counts plays and seconds."""

from typing import Any

from playwright.async_api import Page, expect

from tests.browser.acts import SUBMIT, open_hit, press_submit, violations
from tests.browser.test_content import files as files  # noqa: PLC0414  (a fixture)
from tests.media.files import wav

SOUNDS = {f"{k}.wav": wav(0.6) for k in range(2)}
TO_END = "Play this to the end before you submit."


async def open_sounds(files: Any, visit: Any, **settings: Any) -> tuple[Any, Page]:
    campaign = await files(SOUNDS, content="audio", welcome=False, **settings)
    page: Page = (await visit()).page
    await open_hit(page, campaign.prolific())
    return campaign, page


async def play(page: Page, place: int) -> None:
    await page.locator("audio").nth(place).evaluate("player => player.play()")
    await page.wait_for_function("place => document.querySelectorAll('audio')[place].ended", arg=place)


async def test_an_answer_waits_until_all_was_played_to_the_end(files: Any, visit: Any) -> None:
    campaign, page = await open_sounds(files, visit, design="pairwise", must_play="end", items_language="pt-BR")
    assert await page.locator(".side .text").first.get_attribute("lang") == "pt-BR"
    await expect(page.get_by_text(TO_END)).to_have_count(2)
    await page.get_by_role("radio", name="A", exact=True).check()
    await page.locator(SUBMIT).click()
    await expect(page.locator(".status .message")).to_have_text("Play everything to the end first")
    await expect(page.locator("audio").first).to_be_focused()
    assert await campaign.responses() == []
    await play(page, 0)
    await expect(page.locator(".was-played:visible")).to_have_count(1)
    assert await violations(page) == ""
    await campaign.draft_saved()
    await page.reload()  # what was played stays played
    await expect(page.locator(".was-played:visible")).to_have_count(1)
    await play(page, 1)
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [1, 1]
    assert all(0.5 < seconds <= 0.6 for seconds in response.telemetry["seconds_heard"])


async def test_one_plays_at_a_time_and_plays_are_counted_where_none_is_demanded(files: Any, visit: Any) -> None:
    campaign, page = await open_sounds(files, visit, design="pairwise")
    await expect(page.locator(".playback:visible")).to_have_count(0)
    await play(page, 0)
    await play(page, 0)
    await page.locator("audio").first.evaluate("player => player.play()")
    await page.locator("audio").last.evaluate("player => player.play()")
    assert await page.locator("audio").first.evaluate("player => player.paused")
    await page.get_by_role("radio", name="B", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [3, 1]


async def test_a_recording_cannot_be_played_more_often_than_the_campaign_allows(files: Any, visit: Any) -> None:
    campaign, page = await open_sounds(files, visit, design="pairwise", max_plays=2)
    left = page.locator(".plays-left").first
    await expect(left).to_have_text("Plays left: 2")
    await play(page, 0)
    await page.locator("audio").first.evaluate("player => { player.currentTime = 0; }")
    await play(page, 0)
    await expect(left).to_have_text("Plays left: 0")
    await page.locator("audio").first.evaluate("player => player.play().catch(() => {})")
    assert await page.locator("audio").first.evaluate("player => player.paused")
    assert await violations(page) == ""
    await page.get_by_role("radio", name="A", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [2, 0]


async def test_what_must_be_heard_to_its_end_can_be_played_again_after_a_reload(files: Any, visit: Any) -> None:
    campaign, page = await open_sounds(files, visit, design="pairwise", must_play="end", max_plays=1)
    player = page.locator("audio").first
    await player.evaluate("player => { player.playbackRate = 0.25; player.play(); }")
    await page.wait_for_function("() => document.querySelector('audio').currentTime > 0.05")
    await player.evaluate("player => player.pause()")
    await campaign.draft_saved()
    await page.reload()
    await expect(page.locator(".plays-left").first).to_have_text("Plays left: 0")
    await play(page, 0)
    await expect(page.locator(".was-played:visible")).to_have_count(1)


async def test_a_recording_in_a_loop_starts_again_until_its_plays_are_used_up(files: Any, visit: Any) -> None:
    campaign, page = await open_sounds(files, visit, design="pairwise", loop=True, max_plays=3)
    await page.locator("audio").first.evaluate("player => player.play()")
    await expect(page.locator(".plays-left").first).to_have_text("Plays left: 0")
    await page.wait_for_function("() => document.querySelector('audio').ended")
    await page.get_by_role("radio", name="A", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [3, 0]


async def test_without_scripts_nothing_is_demanded_and_the_page_still_asks_for_it(files: Any, plain: Any) -> None:
    campaign = await files(SOUNDS, content="audio", welcome=False, design="pairwise", must_play="start")
    page = await plain(campaign.prolific())
    assert "Play this before you submit." in page.text
    page.check("A")
    assert await page.press("Submit") == []
    (response,) = await campaign.responses()
    assert "plays" not in (response.telemetry or {})
