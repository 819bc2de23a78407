"""Items that are more than text, in a browser: what is hostile does nothing, what is broken can be reported."""

from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect

from app.campaigns import lifecycle
from app.campaigns.settings import CampaignSettings
from app.imports import items
from tests.browser.acts import press_submit, score_all, start_by_link, violations
from tests.browser.conftest import Task
from tests.designs.hostile import HOSTILE
from tests.media.files import packed, png, table, wav

LOADED = "images => images.map(image => image.complete && image.naturalWidth > 0)"


@pytest_asyncio.fixture
async def files(served, origin):
    """Makes a running campaign whose items are these files: `await files({name: bytes}, content="image")`."""

    async def make(given, content_of_table=None, **settings):
        now = datetime.now(UTC)
        values: dict[str, Any] = {"name": "Files", "question": "How good?", "judgments_per_item": 3} | settings
        chosen = CampaignSettings(**values)
        async with served.begin() as connection:
            row = await lifecycle.create_draft_campaign_or_refuse(connection, chosen, now=now)
            file = BytesIO((content_of_table or table(*given)).encode())
            await items.import_items_and_return_receipt(
                connection, row.slug, file, "a.csv", max_mb=1, media=packed(given)
            )
            row = await lifecycle.change_campaign_status_or_refuse(connection, row.slug, "launch", now=now)
        return Task(served, origin, row)

    return make


@pytest.mark.parametrize("content", ["markdown", "html"])
async def test_nothing_of_a_hostile_item_runs_or_is_fetched(task, visit, origin, content):
    person = await visit(requests_noted=True)
    for start in range(0, len(HOSTILE), 10):
        texts = HOSTILE[start : start + 10]
        campaign = await task(texts, content="text", design="rating", items_per_hit=len(texts))
        await campaign.set(f"content = '{content}'")
        await person.page.goto(campaign.prolific())
        await person.page.locator(".ready").wait_for()
        assert await person.page.locator(".row").count() == len(texts)
        assert await person.page.evaluate("window.hacked") is None
        assert len(person.page.frames) == await person.page.locator("form").count() == 1
    assert [url for url in person.requested if not url.startswith((origin, "data:,"))] == []


async def test_images_are_seen_and_one_that_is_broken_is_reported_with_the_keyboard(files, visit):
    given = {f"{k}.png": png(200, 100, grey=40 * k) for k in range(4)}
    campaign = await files(given | {"4.png": png()[:40]}, content="image")
    page = (await visit()).page
    await start_by_link(page, campaign.link)
    note = page.locator(".broken.seen")
    await expect(note).to_have_count(1)
    await expect(note).to_contain_text("This could not be loaded.")
    await page.wait_for_function(
        f"({LOADED})([...document.querySelectorAll('.content img')]).filter(Boolean).length === 4"
    )
    loaded = await page.locator(".content img").evaluate_all(LOADED)
    assert sorted(loaded) == [False, True, True, True, True]
    assert await violations(page) == ""
    await score_all(page, [10, 20, 30, 40, 50])
    await note.get_by_role("button").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("Reported, thank you.").first).to_be_visible()
    (report,) = await campaign.rows("SELECT item FROM media_reports WHERE campaign_id = :campaign")
    assert report.item == 4
    await press_submit(page)
    (response,) = await campaign.responses()
    assert len(response.scores) == 5


async def test_without_a_script_enter_submits_and_does_not_report(files, plain):
    campaign = await files({f"{k}.png": png() for k in range(5)}, content="image")
    page = await plain(campaign.link)
    await page.press("Start")
    for row, field in enumerate(page.numbers()):
        page.fill(field, str(10 * row))
    await page.press("Tell the researcher that this does not load")
    assert "Thank you, that is reported." in page.text
    await page.enter(page.numbers()[-1])
    assert page.texts("progress") == ["1 task done"]
    assert len(await campaign.rows("SELECT 1 FROM media_reports WHERE campaign_id = :campaign")) == 1


async def test_a_recording_can_be_played_without_choosing_its_side(files, visit):
    campaign = await files({f"{k}.wav": wav(0.5) for k in range(2)}, content="audio", design="pairwise")
    page = (await visit()).page
    await start_by_link(page, campaign.link)
    player = page.locator("audio").first
    await expect(player).to_be_visible()
    box = await player.bounding_box()
    await page.mouse.click(box["x"] + 24, box["y"] + box["height"] / 2)
    await page.wait_for_function("() => document.querySelector('audio').played.length > 0")
    assert await page.locator("[name=preferred]:checked").count() == 0


async def test_source_and_marked_differences_are_accessible_in_every_direction(files, visit):
    rows = "".join(f"{k},שלום עולם,the big house {k},the house\n" for k in range(5))
    columns = {"source_column": "he", "reference_column": "en", "differences": "reference"}
    languages = {"items_language": "en-GB", "source_language": "he"}
    campaign = await files({}, f"id,he,text,en\n{rows}", **columns, **languages)
    page = (await visit(viewport={"width": 320, "height": 800})).page
    await start_by_link(page, campaign.link)
    source = page.locator(".beside-items .beside-text").first
    await expect(source).to_have_text("שלום עולם")
    assert await source.evaluate("it => getComputedStyle(it).direction") == "rtl"
    parts = page.locator(".beside-items .beside-text")
    spoken = await parts.evaluate_all("parts => parts.slice(0, 2).map((part) => part.lang)")
    assert spoken == ["he", "en-GB"]
    await expect(page.locator("ins").first).to_contain_text("[added: big")
    assert await violations(page) == ""
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
