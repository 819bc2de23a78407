"""Outputs of systems in the browser: what stands above them, each text once, and the page about segments."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.campaigns import lifecycle
from app.imports import outputs
from app.uploads import table_from_objects
from tests.browser.acts import item_texts, open_hit, press_submit, sliders, violations, wait_for_value
from tests.media.files import packed, wav

LONG = "A long sentence, in which much happens. " * 30


def rows() -> list[tuple[int, dict[str, Any]]]:
    """Two systems whose outputs are the same, and one whose are not."""
    named = [("ape", "same"), ("bee", "same"), ("cat", "other")]
    return [
        (
            1,
            {
                "system": system,
                "segment": f"s{k}",
                "output": f"{text} {k}",
                "source": LONG,
                "reference": f"Reference {k}",
            },
        )
        for k in range(3)
        for system, text in named
    ]


@pytest.fixture
async def campaign(task: Any) -> Any:
    made = await task(launched=False, items_per_hit=3, judgments_per_item=5)
    async with made.engine.begin() as connection:
        slug = made.row.slug
        await outputs.import_outputs_of_systems_and_return_counts(
            connection, slug, table_from_objects(rows()), replace=True, progress=lambda _: None
        )
        made.row = await lifecycle.change_campaign_status_or_refuse(connection, slug, "launch", now=made.row.created_at)
    return made


async def test_outputs_stand_below_source_and_reference_each_once(campaign: Any, visit: Any) -> None:
    page: Page = (await visit()).page
    await open_hit(page, campaign.prolific())
    first = await item_texts(page)
    segment = first[0].split()[1]
    assert sorted(first) == [f"other {segment}", f"same {segment}"]
    await expect(page.locator(".beside-items .beside-text")).to_have_text([LONG.strip(), f"Reference {segment}"])
    assert await violations(page) == ""
    for row, text in enumerate(first):
        await sliders(page).nth(row).press("8" if text.startswith("same") else "2")
    await page.keyboard.press("Enter")
    await expect(page.locator(".progress")).to_have_text("1 task done")
    (stored,) = await campaign.responses()
    scores = dict(zip(stored.items, stored.scores, strict=True))
    assert scores[0] == scores[1] > scores[2]


async def test_outputs_are_answered_without_javascript(campaign: Any, plain: Any) -> None:
    page = await plain(campaign.link)
    await page.press("Start")
    (beside,) = page.all(class_="beside-items")
    assert [term.text for term in beside if term.tag == "dt"] == ["Source", "Reference"]
    assert len(page.numbers()) == 2
    for field in page.numbers():
        page.fill(field, "40")
    assert await page.press("Submit") == []
    assert page.texts("progress") == ["1 task done"]
    (stored,) = await campaign.responses()
    assert stored.scores == [40.0] * 3


@pytest.mark.parametrize("width", [390, 1280])
async def test_a_segment_is_opened_from_the_table_of_means(campaign: Any, visit: Any, cookie: Any, width: int) -> None:
    page: Page = (await visit(viewport={"width": width, "height": 800})).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/items")
    await page.get_by_role("link", name="s1", exact=True).click()
    await expect(page.locator("#segment .as-uploaded")).to_have_text(["same 1", "same 1", "other 1"])
    assert await violations(page) == ""
    await page.get_by_role("link", name="Close").click()
    await expect(page.locator("#segment")).to_have_count(0)


SPEECH = {f"{system}.wav": wav(seconds) for system, seconds in (("ape", 0.5), ("bee", 0.5), ("cat", 0.7))}
HEARD = "players => players.map(player => player.duration.toFixed(1))"


@pytest.fixture
async def speech(task: Any) -> Any:
    """Three systems that read a sentence aloud, of which two sound the same."""
    made = await task(launched=False, content="audio", items_per_hit=3, judgments_per_item=5)
    spoken = [
        (1, {"system": name[:3], "segment": "s", "output": name, "source": "Good morning, everybody."})
        for name in SPEECH
    ]
    async with made.engine.begin() as connection:
        slug, zip_ = made.row.slug, packed(SPEECH)
        await outputs.import_outputs_of_systems_and_return_counts(
            connection, slug, table_from_objects(spoken), replace=True, media=zip_, progress=lambda _: None
        )
        made.row = await lifecycle.change_campaign_status_or_refuse(connection, slug, "launch", now=made.row.created_at)
    return made


@pytest.mark.parametrize("width", [320, 1280])
async def test_recordings_are_heard_below_what_they_say_each_once(speech: Any, visit: Any, width: int) -> None:
    page: Page = (await visit(viewport={"width": width, "height": 800})).page
    await open_hit(page, speech.prolific())
    await expect(page.locator(".beside-items .beside-text")).to_have_text(["Good morning, everybody."])
    players = page.locator(".row audio")

    async def durations() -> list[str]:
        return sorted(await players.evaluate_all(HEARD))

    await wait_for_value(durations, ["0.5", "0.7"])
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""
    for row, key in enumerate("37"):
        await sliders(page).nth(row).press(key)
    await press_submit(page)
    (stored,) = await speech.responses()
    assert len(stored.scores) == 3


async def test_of_a_segment_the_recordings_are_heard_by_system(speech: Any, visit: Any, cookie: Any) -> None:
    page: Page = (await visit(viewport={"width": 390, "height": 800})).page
    await page.context.add_cookies([cookie])
    await page.goto(f"{speech.origin}/admin/campaigns/{speech.row.slug}/items?segment=s")
    await expect(page.locator("#segment audio")).to_have_count(3)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""
