"""A visit in German and in Arabic: by keyboard, without scripts, narrow and wide."""

import os
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from app.http.languages.catalogue import LANGUAGES, text_direction
from tests.browser.acts import SUBMIT, each_width, expect_scores, violations, wait_for_hit

ARABIC, GERMAN = {"locale": "ar-EG"}, {"locale": "de-DE"}
QUESTION = "كم مرة تُستعمل هذه الكلمة؟"
WORDS = ["كتب", "قرأ", "مشى", "أكل", "نام", "شرب"]


async def sticks_out(page: Page) -> bool:
    return bool(await page.locator("html").evaluate("it => it.scrollWidth > it.clientWidth"))


@pytest.mark.parametrize(
    ("reader", "done"),
    [(ARABIC, "أنجزت كل مهامك"), (GERMAN, "Sie haben alle Ihre Aufgaben erledigt")],
    ids=["arabic", "german"],
)
async def test_a_set_is_scored_by_keyboard(task: Any, visit: Any, reader: dict[str, str], done: str) -> None:
    campaign = await task(WORDS, question=QUESTION, low_label="نادر", high_label="شائع", hits_per_annotator=1)
    page = (await visit(**reader, viewport={"width": 320, "height": 844}, reduced_motion="reduce")).page
    await page.goto(campaign.link)
    await expect(page.locator("html")).to_have_attribute("dir", text_direction(reader["locale"][:2]))
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
    await page.keyboard.press("Tab")
    for _ in range(8):
        if await page.evaluate("document.activeElement.type") == "submit":
            break
        await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await wait_for_hit(page)
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert not await sticks_out(page), width
    for letter, digits in zip("abcde", ("72", "100", "5", "33", "50"), strict=True):
        await page.keyboard.press(letter)
        await page.keyboard.type(digits)
    await page.keyboard.press("a")
    await page.keyboard.press("ArrowRight")  # towards the end that stands on the right
    await expect_scores(page, [73, 100, 5, 33, 50])
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name=done)).to_be_visible()
    assert len(await campaign.responses()) == 1


async def test_the_high_end_stands_on_the_right_also_where_words_run_to_the_left(task: Any, visit: Any) -> None:
    page = (await visit(**ARABIC)).page
    await page.goto((await task(WORDS, low_label="نادر", high_label="شائع")).prolific())
    await wait_for_hit(page)
    low, high = [await page.locator(".dock .ends span").nth(place).bounding_box() for place in (0, 1)]
    assert low["x"] < high["x"]


async def test_what_is_missing_is_said_in_german(task: Any, visit: Any) -> None:
    page = (await visit(**GERMAN)).page
    await page.goto((await task()).prolific())
    await expect(page.locator(SUBMIT)).to_have_text("Absenden und weiter")
    await expect(page.locator(".status .message")).to_have_text("noch 5")
    await page.locator(SUBMIT).click(force=True)
    await expect(page.locator("#announcer")).to_contain_text("Noch nicht bewertet: a, b, c, d, e.")


async def test_a_set_is_answered_in_german_without_scripts(task: Any, plain: Any) -> None:
    campaign = await task(hits_per_annotator=2)
    page = await plain(campaign.prolific(), **{"accept-language": "de-DE"})
    assert "Geben Sie jedem eine Zahl von 0 (very rare) bis 100" in page.text
    for field in page.numbers():
        page.fill(field, "7")
    await page.press("Absenden und weiter")
    assert page.texts("progress") == ["1 von 2 Aufgaben erledigt"]


async def test_another_language_is_chosen_in_the_middle_of_a_set_and_nothing_entered_is_lost(
    task: Any, visit: Any
) -> None:
    page = (await visit(**GERMAN)).page
    await page.goto((await task(hits_per_annotator=2)).prolific())
    await wait_for_hit(page)
    await page.keyboard.press("a")
    await page.keyboard.type("72")
    await page.get_by_role("navigation", name="Sprache").get_by_role("link", name="Français").click()
    await expect(page.locator(SUBMIT)).to_have_text("Envoyer et continuer")
    await expect_scores(page, [72, None, None, None, None])
    await expect(page.locator(".status .message")).to_have_text("reste 4")


async def test_in_no_language_anything_sticks_out_of_a_narrow_page(task: Any, visit: Any) -> None:
    """Pictures are kept where EASEL_PICTURES names a folder."""
    for language in LANGUAGES:
        said = {"cannot_be_judged": True, "comment_on": "both", "flag_on": "both"}
        campaign = await task(
            language=language, hits_per_annotator=40, judgments_per_item=3, minutes_per_hit=2.5, **said
        )
        for width in (320, 390, 1280) if "EASEL_PICTURES" in os.environ else (320,):
            page = (await visit(viewport={"width": width, "height": 844})).page
            await page.goto(campaign.prolific(f"{language}-{width}"))
            await wait_for_hit(page)
            await page.keyboard.press("?")
            await page.locator(".remarks > summary").click()
            assert not await sticks_out(page), language
            if folder := os.environ.get("EASEL_PICTURES"):
                await page.screenshot(path=Path(folder) / f"{language}-{width}.png", full_page=True)
