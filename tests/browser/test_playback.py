"""Recordings that must be played: the page says so, waits for it, and counts plays and seconds."""

from typing import Any

from playwright.async_api import Page, expect

from tests.browser.acts import SUBMIT, open_hit, press_submit, violations
from tests.browser.test_content import files as files  # noqa: PLC0414  (a fixture)
from tests.media.files import wav

SOUNDS = {f"{k}.wav": wav(0.6) for k in range(2)}
TO_END = "Play this to the end before you submit."
STARTED_AGAIN = """button => {  // whether the recording is at an earlier place than the last time
    const [before, now] = [button.placeBefore ?? 0, Number(button.style.getPropertyValue("--at"))];
    button.placeBefore = now;
    return now < before;
}"""


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


async def test_the_page_stops_asking_for_plays_once_all_were_played(files: Any, visit: Any) -> None:
    _, page = await open_sounds(files, visit, design="pairwise", must_play="end")
    await page.get_by_role("radio", name="A", exact=True).check()
    await page.locator(SUBMIT).click()
    message = page.locator(".status .message")
    await expect(message).to_have_text("Play everything to the end first")
    await play(page, 0)
    await expect(page.locator(".was-played:visible")).to_have_count(1)
    await expect(message).to_have_text("Play everything to the end first")
    await play(page, 1)
    await expect(message).to_have_text("")


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


async def test_space_plays_and_stops_in_the_players_of_the_browser_and_the_list_of_keys_says_so(
    files: Any, visit: Any
) -> None:
    sounds = {f"{k}.wav": wav(20) for k in range(2)}
    campaign = await files(sounds, content="audio", welcome=False, design="pairwise")
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await page.keyboard.press("?")
    await expect(page.locator(".keys").get_by_text("play or stop the recording")).to_be_visible()
    await expect(page.locator(".keys").get_by_text("only act on the player")).to_be_visible()
    await page.locator("#question").click()
    await page.keyboard.press("Space")
    await page.wait_for_function("() => !document.querySelectorAll('audio')[0].paused")
    await page.keyboard.press("ArrowLeft")  # the player has no focus, so the arrow chooses
    await expect(page.get_by_role("radio", name="A", exact=True)).to_be_checked()
    await page.keyboard.press("Space")
    await page.wait_for_function("() => document.querySelectorAll('audio')[0].paused")
    assert await violations(page) == ""
    await page.locator("audio").nth(0).evaluate("player => { player.currentTime = player.duration - 0.1; }")
    await page.keyboard.press("Space")
    await page.wait_for_function("() => document.querySelectorAll('audio')[0].ended")
    await page.keyboard.press("Space")  # the other one, which was not played yet
    await page.wait_for_function("() => !document.querySelectorAll('audio')[1].paused")
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [1, 1]


async def open_switching(files: Any, visit: Any, mode: str, seconds: float = 0.6, **settings: Any) -> tuple[Any, Page]:
    """Two recordings that the page has decoded, so that it has buttons in the place of players."""
    sounds = {f"{k}.wav": wav(seconds) for k in range(2)}
    chosen: dict[str, Any] = {"design": "pairwise", "welcome": False, "switch_sounds": mode} | settings
    campaign = await files(sounds, content="audio", **chosen)
    page: Page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await expect(page.locator(".sound")).to_have_count(2)
    return campaign, page


def pressed(page: Page, name: str) -> Any:
    return page.get_by_role("button", name=f"Play {name}", exact=True, pressed=True)


async def test_people_switch_between_recordings_by_button_and_by_key(files: Any, visit: Any) -> None:
    campaign, page = await open_switching(files, visit, "same position", seconds=20)
    await expect(page.locator("audio:visible")).to_have_count(0)
    await page.get_by_role("button", name="Play A").click()
    await expect(pressed(page, "A")).to_be_visible()
    await page.keyboard.press("b")
    await expect(pressed(page, "B")).to_be_visible()
    await expect(pressed(page, "A")).to_have_count(0)
    await page.locator("#question").click()
    await page.keyboard.press("Space")  # stops
    await expect(page.locator(".sound[aria-pressed=true]")).to_have_count(0)
    at = await page.locator(".sound").last.evaluate("button => Number(button.style.getPropertyValue('--at'))")
    assert 0 < at < 1
    await page.keyboard.press("a")  # goes on where it stopped
    await expect(pressed(page, "A")).to_be_visible()
    later = await page.locator(".sound").first.evaluate("button => Number(button.style.getPropertyValue('--at'))")
    assert later > 0.99 * at
    await page.get_by_role("button", name="Play A").click()  # stops, too
    await expect(page.locator(".sound[aria-pressed=true]")).to_have_count(0)
    await page.keyboard.press("?")
    await expect(page.locator(".keys").get_by_text("play or stop the recording")).to_be_visible()
    await expect(page.locator(".keys").get_by_text("go to the reference")).to_be_hidden()
    await expect(page.locator(".keys").get_by_text("only act on the player")).to_be_hidden()
    assert await violations(page) == ""
    await page.get_by_role("radio", name="A", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [1, 1]
    assert sorted(response.telemetry["switches"]) == [1, 1]


async def test_each_recording_starts_at_its_beginning_where_the_campaign_says_so(files: Any, visit: Any) -> None:
    campaign, page = await open_switching(files, visit, "restart", must_play="end", max_plays=2)
    for name in ("A", "B", "A"):
        await page.get_by_role("button", name=f"Play {name}").click()
        await expect(pressed(page, name)).to_be_visible()
        await expect(page.locator(".sound[aria-pressed=true]")).to_have_count(0)  # it has come to its end
    await expect(page.locator(".plays-left").first).to_have_text("Plays left: 0")
    await page.get_by_role("button", name="Play A").click()
    await expect(page.locator(".sound[aria-pressed=true]")).to_have_count(0)
    await page.get_by_role("radio", name="A", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [2, 1]
    assert response.telemetry["switches"] == [1, 1]
    assert all(0.5 < seconds <= 0.6 for seconds in response.telemetry["seconds_heard"])


async def test_a_looping_recording_goes_on_until_it_is_stopped(files: Any, visit: Any) -> None:
    campaign, page = await open_switching(files, visit, "same position", seconds=0.4, loop=True)
    await page.get_by_role("button", name="Play B").click()
    await page.wait_for_function(STARTED_AGAIN, arg=await page.locator(".sound").last.element_handle())
    await expect(pressed(page, "B")).to_be_visible()
    await page.get_by_role("button", name="Play B").click()
    await page.get_by_role("radio", name="B", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"][1] >= 2


async def test_recordings_of_different_lengths_keep_the_players_of_the_browser(files: Any, visit: Any) -> None:
    sounds = {"0.wav": wav(0.6), "1.wav": wav(0.9)}
    campaign = await files(sounds, content="audio", welcome=False, design="pairwise", switch_sounds="same position")
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await play(page, 0)
    await expect(page.locator(".sound")).to_have_count(0)
    await expect(page.locator("audio:visible")).to_have_count(2)
    await page.get_by_role("radio", name="A", exact=True).check()
    await press_submit(page)
    (response,) = await campaign.responses()
    assert response.telemetry["plays"] == [1, 0]
    assert "switches" not in response.telemetry


async def test_a_reference_has_a_button_and_a_key_of_its_own(files: Any, visit: Any) -> None:
    sounds = {f"{k}.wav": wav(20) for k in range(3)}
    table = "id,text,original\na,0.wav,2.wav\nb,1.wav,2.wav\n"
    campaign = await files(
        sounds, content_of_table=table, content="audio", welcome=False, design="slider", items_per_hit=2,
        reference_column="original", switch_sounds="same position",
    )  # fmt: skip
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    await expect(page.locator(".sound").first).to_be_visible()
    await page.keyboard.press("r")
    await expect(pressed(page, "Reference").first).to_be_visible()
    await page.keyboard.press("a")  # a letter is for a row here
    await expect(pressed(page, "Reference").first).to_be_visible()
    await page.keyboard.press("Space")
    await expect(page.locator(".sound[aria-pressed=true]")).to_have_count(0)
    assert await violations(page) == ""


async def test_without_scripts_nothing_is_demanded_and_the_page_still_asks_for_it(files: Any, plain: Any) -> None:
    campaign = await files(SOUNDS, content="audio", welcome=False, design="pairwise", must_play="start")
    page = await plain(campaign.prolific())
    assert "Play this before you submit." in page.text
    page.check("A")
    assert await page.press("Submit") == []
    (response,) = await campaign.responses()
    assert "plays" not in (response.telemetry or {})
