"""The steps before the work: by mouse and by keyboard, without scripts, narrow and wide, in light and dark."""

import os
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import each_width, violations, wait_for_hit

CONSENT = """## Your data

We keep **your answers** and how long they took. We do not ask for your name.

- You may stop at any time.
- Questions? Write to *study@example.org*.
"""
SCRIPTED, PLAIN = True, False


@pytest.fixture(params=[SCRIPTED, PLAIN], ids=["scripts", "no scripts"])
async def page(request: pytest.FixtureRequest, visit: Any) -> Page:
    return await narrow(visit, scripted=request.param)


async def narrow(visit: Any, *, scripted: bool = True) -> Page:
    phone = {"viewport": {"width": 320, "height": 844}, "reduced_motion": "reduce"}
    page: Page = (await visit(**phone, java_script_enabled=scripted)).page
    page.scripted = scripted  # type: ignore[attr-defined]
    return page


async def is_good(page: Page, name: str) -> None:
    """Wide and narrow, nothing sticks out, and axe finds nothing; a picture is kept where somebody wants to look."""
    async for width in each_width(page, 1280, 320):
        if page.scripted:  # type: ignore[attr-defined]
            assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
        await keep_a_picture(page, f"{name}-{width}")


async def keep_a_picture(page: Page, name: str) -> None:
    if folder := os.environ.get("EASEL_PICTURES"):
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme)
            plain = "" if page.scripted else "-plain"  # type: ignore[attr-defined]
            await page.screenshot(path=f"{folder}/{name}{plain}-{scheme}.png", full_page=True)
        await page.emulate_media(color_scheme="light")


async def test_from_prolific_by_keyboard_to_the_first_set(page: Page, task: Any) -> None:
    campaign = await task(welcome=True, consent=CONSENT, minutes_per_hit=2, pay="$0.35 per set")
    await page.goto(campaign.prolific())
    await expect(page.get_by_role("heading", name=campaign.row.question)).to_be_visible()
    await expect(page.get_by_role("heading", name="Before you begin")).to_be_visible()
    await expect(page.get_by_text("Step ")).to_have_count(0)
    start = page.get_by_role("button", name="Start", exact=True)
    await expect(start).to_have_count(0)  # nothing starts before they agree
    await is_good(page, "welcome")
    await page.get_by_role("button", name="I agree and start", exact=True).press("Enter")
    await wait_for_hit(page)


async def test_the_page_of_a_link_is_the_first_step_of_all(page: Page, task: Any) -> None:
    campaign = await task(consent=CONSENT, questions=["job: What do you do?"])
    await page.goto(campaign.link)
    await expect(page.get_by_text("Step 1 of 2")).to_be_visible()
    await is_good(page, "start")
    await page.get_by_role("button", name="I agree and start", exact=True).press("Enter")
    await expect(page.get_by_text("Step 2 of 2")).to_be_visible()
    await page.get_by_label("What do you do?").fill("nurse")
    await page.get_by_label("What do you do?").press("Enter")
    await wait_for_hit(page)
    await expect(page.get_by_text("Step ")).to_have_count(0)


async def test_who_comes_back_by_the_link_may_go_on_or_agree_as_someone_new(visit: Any, task: Any) -> None:
    campaign = await task(consent=CONSENT)
    page = await narrow(visit)
    await page.goto(campaign.link)
    await page.get_by_role("button", name="I agree and start", exact=True).press("Enter")
    await wait_for_hit(page)
    await page.goto(campaign.link)
    await is_good(page, "again")
    await expect(page.get_by_role("button", name="I agree and start as someone new")).to_be_visible()
    await page.get_by_role("link", name="Continue where you were").press("Enter")
    await wait_for_hit(page)


async def test_saying_no_by_keyboard_ends_kindly(page: Page, task: Any) -> None:
    campaign = await task(consent=CONSENT)
    await page.goto(campaign.prolific())
    await page.get_by_role("button", name="I do not agree").press("Enter")
    await expect(page.get_by_text("That is all right.")).to_be_visible()
    await is_good(page, "declined")
    assert await campaign.rows("SELECT 1 FROM hits WHERE campaign_id = :campaign") == []


async def test_an_example_can_be_looked_at_and_stores_nothing(page: Page, task: Any) -> None:
    campaign = await task(welcome=True)
    await page.goto(campaign.link)
    await page.get_by_text("What a task looks like").press("Enter")
    await expect(page.locator(".example .row").first).to_be_visible()
    await is_good(page, "example")
    await expect(page.locator(".example input:enabled")).to_have_count(0)


async def test_questions_by_keyboard(page: Page, task: Any) -> None:
    asked = [
        "language: What is your native language? | English | German | another",
        "country: Where do you live? | " + " | ".join(f"Country {k}" for k in range(9)),
        "job?: What do you do?",
    ]
    campaign = await task(questions=asked)
    await page.goto(campaign.prolific())
    await page.get_by_label("German").press("Space")
    await page.get_by_label("Where do you live?").select_option("Country 3")
    await is_good(page, "questions")
    await page.get_by_label("What do you do?").fill("nurse")
    await page.get_by_label("What do you do?").press("Enter")
    await wait_for_hit(page)
    ((said,),) = await campaign.rows("SELECT said FROM visits WHERE campaign_id = :campaign")
    assert said == {"language": "German", "country": "Country 3", "job": "nurse"}


async def test_a_question_that_depends_on_another_answer_comes_and_goes_with_it(page: Page, task: Any) -> None:
    asked = [
        "pet: Do you have a pet? | no | yes",
        "kind: What is it? | only if: pet = yes",
        "trained: Is it trained? | no | yes | only if: pet = yes",
        "trainer: Who trained it? | only if: trained = yes",
    ]
    campaign = await task(questions=asked)
    await page.goto(campaign.prolific())
    kind, trainer = page.get_by_label("What is it?"), page.get_by_label("Who trained it?")
    shown = page.scripted  # type: ignore[attr-defined]
    await expect(kind).to_be_visible(visible=not shown)
    await expect(page.get_by_text("Answer this only if")).to_have_count(3)
    await expect(page.get_by_text("Answer this only if").first).to_be_visible(visible=not shown)
    pet = page.get_by_role("group", name="Do you have a pet?", exact=True)
    await pet.get_by_label("yes").press("Space")
    await page.get_by_role("group", name="Is it trained?").get_by_label("yes").press("Space")
    await expect(trainer).to_be_visible()
    await is_good(page, "questions-that-depend")
    await kind.fill("a cat")
    await trainer.fill("me")
    await pet.get_by_label("no").press("Space")
    await expect(kind).to_be_visible(visible=not shown)
    await expect(trainer).to_be_visible(visible=not shown)
    await page.get_by_role("button", name="Continue").press("Enter")
    await wait_for_hit(page)
    assert await campaign.rows("SELECT said FROM visits WHERE campaign_id = :campaign") == [({"pet": "no"},)]


async def test_a_number_that_screens_people_out_ends_kindly(page: Page, task: Any) -> None:
    campaign = await task(questions=["age: How old are you? | number from 0 to 120 | screen out: under 18"])
    await page.goto(campaign.prolific())
    age = page.get_by_label("How old are you?")
    await age.fill("200")
    await age.press("Enter")
    await is_good(page, "number")
    await age.fill("17")
    await age.press("Enter")
    await expect(page.get_by_text("Thank you for your interest")).to_be_visible()
    await is_good(page, "screened")


async def test_the_passphrase_by_keyboard(page: Page, task: Any) -> None:
    campaign = await task(passphrase="apples")
    await page.goto(campaign.link)
    await page.get_by_label("Enter the passphrase").fill("pears")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("This is not the passphrase.")).to_be_visible()
    await is_good(page, "passphrase")
    await page.get_by_label("Enter the passphrase").fill("apples")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Start").press("Enter")
    await wait_for_hit(page)


async def test_a_link_of_ones_own_on_two_devices(page: Page, task: Any, visit: Any) -> None:
    campaign = await task(welcome=True)
    await campaign.execute(
        "INSERT INTO personal_links (campaign_id, number, name, link, added_at) "
        "VALUES (:campaign, 1, 'Ann', 'a-link-of-her-own', now())"
    )
    address = f"{campaign.origin}/personal/{campaign.row.link_key}?person=a-link-of-her-own"
    await page.goto(address)
    await page.get_by_role("button", name="Start").press("Enter")
    await wait_for_hit(page)
    other = (await visit()).page
    await other.goto(address)
    await wait_for_hit(other)
    hits = {await one.locator("form.answer").get_attribute("data-hit") for one in (page, other)}
    assert len(hits) == 1


TABLE = """text,expected,explanation
never,10,It is *rare* in all texts.
always,90,
"""


async def test_training_and_qualification_by_keyboard(page: Page, task: Any) -> None:
    campaign = await task(items_per_hit=2, training=TABLE, qualification=TABLE)
    await page.goto(campaign.prolific())
    await expect(page.get_by_text("Training, task 1 of 1.")).to_be_visible()
    await is_good(page, "training")
    wrong, right = "✗ Not as expected", "✓ As expected"  # said by words and a sign, not by a colour alone
    for scores, button, verdict in ((("90", "10"), "Try this task again", wrong), (("10", "90"), "Continue", right)):
        await answer(page, scores)
        await page.get_by_role("button", name="Check").press("Enter")
        await expect(page.get_by_role("button", name=button)).to_be_visible()
        await expect(page.locator(".explained-item .verdict")).to_have_text([verdict] * 2)
        await is_good(page, f"explained-{button.split()[0]}")
        await page.get_by_role("button", name=button).press("Enter")
    await expect(page.get_by_text("A short test, task 1 of 1.")).to_be_visible()
    await answer(page, ("10", "90"))
    await page.get_by_role("button", name="Next").press("Enter")
    await expect(page.get_by_role("button", name="Submit and next")).to_be_visible()
    assert await campaign.responses() == []


async def answer(page: Page, scores: tuple[str, str]) -> None:
    """By the keys of the sliders, or in the fields of the plain form."""
    await wait_for_hit(page)
    for field, score in zip(await page.locator(".row input").all(), scores, strict=True):
        if not page.scripted:  # type: ignore[attr-defined]
            await field.fill(score)
            continue
        await field.focus()
        await page.keyboard.press("Home" if int(score) < 50 else "End")
        for _ in range(10):
            await page.keyboard.press("ArrowRight" if int(score) < 50 else "ArrowLeft")


async def test_who_fails_is_thanked(page: Page, task: Any) -> None:
    campaign = await task(items_per_hit=2, qualification=TABLE)
    await page.goto(campaign.prolific())
    await answer(page, ("90", "10"))
    await page.get_by_role("button", name="Next").press("Enter")
    await expect(page.get_by_role("heading", name="Thank you for trying")).to_be_visible()
    await is_good(page, "failed")


@pytest.mark.parametrize(("language", "heading"), [("de", "Bevor Sie beginnen"), ("ar", "قبل أن تبدأ")])
async def test_steps_speak_the_language_of_the_campaign(visit: Any, task: Any, language: str, heading: str) -> None:
    campaign = await task(items_per_hit=2, consent=CONSENT, training=TABLE, language=language)
    page = await narrow(visit)
    await page.goto(campaign.prolific())
    await expect(page.get_by_role("heading", name=heading)).to_be_visible()
    assert await page.locator("html").get_attribute("dir") == ("rtl" if language == "ar" else "ltr")
    await is_good(page, f"consent-{language}")
    await page.locator("button[value=yes]").press("Enter")
    await answer(page, ("90", "10"))
    await page.locator(".answer .primary").press("Enter")
    await expect(page.locator(".explained-item").first).to_be_visible()
    await is_good(page, f"explained-{language}")
