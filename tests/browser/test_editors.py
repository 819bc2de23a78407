"""Editors of the visit's parts: by keyboard, with the text field behind them, and without scripts."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.browser.acts import each_width, violations

STUDY_QUESTIONS = "native_language: What is your native language? | English | German | another\nage?: How old are you?"


@pytest.fixture
def open_visit_step(origin: str, visit: Callable[..., Any], cookie: Any) -> Callable[..., Any]:
    """Open the step of the settings that has the visit of a draft, as a researcher."""

    async def open_page(draft: Any, **options: Any) -> Page:
        page: Page = (await visit(**options)).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin/campaigns/{draft.row.slug}/settings/visit")
        return page

    return open_page


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save settings").press("Enter")


async def test_questions_are_built_by_keyboard_and_shown_again(task: Any, open_visit_step: Any) -> None:
    draft = await task(launched=False)
    page = await open_visit_step(draft)
    add_question = page.get_by_role("button", name="Add a question")
    await add_question.press("Enter")
    await page.keyboard.type("What is your native language?")
    cards = page.locator(".question-cards > li")
    await cards.nth(0).get_by_label("Name in exports").fill("native_language")
    await cards.nth(0).locator(".question-kind").select_option("One of several choices")
    await page.keyboard.type("German")
    await page.keyboard.press("Enter")
    await page.keyboard.type("English")
    await page.keyboard.press("Alt+ArrowUp")
    await cards.nth(0).get_by_role("button", name="Add a choice").press("Enter")
    await page.keyboard.type("another")
    await add_question.press("Enter")
    await page.keyboard.type("How old are you?")
    await cards.nth(1).get_by_label("Name in exports").fill("age")
    await cards.nth(1).get_by_label("Must be answered").press("Space")
    await expect(page.get_by_text("Not saved yet")).to_be_visible()
    await save(page)
    await page.wait_for_url("**?done=saved")
    await expect(page.locator("textarea[name=questions]")).to_have_value(STUDY_QUESTIONS)
    await expect(cards).to_have_count(2)
    await expect(cards.nth(0).get_by_label("Choice 2", exact=True)).to_have_value("German")
    await expect(page.get_by_text("Not saved yet")).to_have_count(0)
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width


async def test_a_number_and_answers_that_screen_people_out_are_built_by_keyboard(
    task: Any, open_visit_step: Any
) -> None:
    draft = await task(launched=False, questions="sight: Do you see colours? | yes | no")
    page = await open_visit_step(draft)
    cards = page.locator(".question-cards > li")
    await cards.nth(0).get_by_label("Screen out people with choice 2").press("Space")
    await page.get_by_role("button", name="Add a question").press("Enter")
    await page.keyboard.type("How old are you?")
    await cards.nth(1).get_by_label("Name in exports").fill("age")
    await cards.nth(1).locator(".question-kind").select_option("A number")
    await page.keyboard.type("0")
    await cards.nth(1).get_by_label("Screen out over").fill("65")
    await save(page)
    await page.wait_for_url("**?done=saved")
    await expect(page.locator("textarea[name=questions]")).to_have_value(
        "sight: Do you see colours? | yes | screen out: no\nage: How old are you? | number from 0 | screen out: over 65"
    )
    await expect(cards.nth(0).get_by_label("Screen out people with choice 2")).to_be_checked()
    await expect(cards.nth(1).get_by_label("Least possible")).to_have_value("0")
    await cards.nth(1).get_by_label("Greatest possible").fill("-1")
    await save(page)
    await expect(cards.nth(1).get_by_text("at least one number must let people take part")).to_be_visible()
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width


async def test_a_question_is_asked_only_after_an_answer_and_follows_when_this_is_renamed(
    task: Any, open_visit_step: Any
) -> None:
    asked = ["pet: Do you have a pet? | no | a dog | a cat", "leash: Which leash?"]
    draft = await task(launched=False, questions=asked)
    page = await open_visit_step(draft)
    field, cards = page.locator("textarea[name=questions]"), page.locator(".question-cards > li")
    await expect(cards.nth(0).get_by_label("Asked of")).to_have_count(0)
    await cards.nth(1).get_by_label("Asked of").select_option("People by their answer to “Do you have a pet?”")
    await cards.nth(1).get_by_label("no", exact=True).press("Space")
    assert not await field.evaluate("it => it.form.checkValidity()")  # one answer must be ticked
    await cards.nth(1).get_by_label("a dog").press("Space")
    await cards.nth(1).get_by_label("a cat").press("Space")
    for text in ("", "a tiger"):
        await cards.nth(0).get_by_label("Choice 3", exact=True).fill(text)
    await cards.nth(0).get_by_label("Name in exports").fill("animal")
    dependent = "leash: Which leash? | only if: animal = a dog | only if: animal = a tiger"
    await expect(field).to_have_value(f"animal: Do you have a pet? | no | a dog | a tiger\n{dependent}")
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await save(page)
    await page.wait_for_url("**?done=saved")
    await expect(cards.nth(1).get_by_label("a tiger")).to_be_checked()
    await expect(cards.nth(1).get_by_label("no", exact=True)).not_to_be_checked()
    await cards.nth(1).get_by_label("Move question 2 up").press("Enter")
    await save(page)
    await expect(cards.nth(0)).to_contain_text("no question with choices before it has the name “animal”")
    await cards.nth(0).get_by_label("Asked of").select_option("Everyone")
    await expect(field).to_have_value("leash: Which leash?\nanimal: Do you have a pet? | no | a dog | a tiger")


async def test_enter_leads_to_the_next_choice_and_empty_choices_are_not_saved(task: Any, open_visit_step: Any) -> None:
    page = await open_visit_step(await task(launched=False))
    await page.get_by_role("button", name="Add a question").press("Enter")
    await page.keyboard.type("Do you see colours?")
    card = page.locator(".question-cards > li").first
    await card.get_by_label("Name in exports").fill("sight")
    await card.locator(".question-kind").select_option("One of several choices")
    await page.keyboard.type("yes")
    await page.keyboard.press("Enter")
    await expect(card.locator(".question-choice")).to_have_count(2)
    await expect(card.get_by_label("Choice 2", exact=True)).to_be_focused()
    await save(page)
    await expect(card.get_by_label("Choice 2", exact=True)).to_be_focused()  # a question has two choices
    await page.keyboard.type("no")
    await page.keyboard.press("Enter")
    await expect(card.get_by_label("Choice 3", exact=True)).to_be_focused()
    await card.get_by_label("Choice 1", exact=True).press("Enter")
    await expect(card.locator(".question-choice")).to_have_count(4)
    await save(page)
    await page.wait_for_url("**?done=saved")
    await expect(page.locator("textarea[name=questions]")).to_have_value("sight: Do you see colours? | yes | no")


async def test_a_deleted_question_comes_back_and_questions_change_places(task: Any, open_visit_step: Any) -> None:
    draft = await task(launched=False, questions=STUDY_QUESTIONS)
    page = await open_visit_step(draft)
    texts = page.locator(".question-text")
    await page.get_by_role("button", name="Delete").first.press("Enter")
    await expect(texts).to_have_count(1)
    await page.get_by_role("button", name="Undo").press("Enter")
    await expect(texts.nth(0)).to_have_value("What is your native language?")
    await page.get_by_role("button", name="Move question 1 down").press("Enter")
    await expect(texts.nth(1)).to_have_value("What is your native language?")
    await page.get_by_role("button", name="Duplicate").nth(1).press("Enter")
    await expect(page.locator(".question-name").nth(2)).to_have_value("native_language_1")
    await page.get_by_role("button", name="Edit as text").press("Enter")
    age, language = reversed(STUDY_QUESTIONS.split("\n"))
    copy = language.replace("native_language", "native_language_1")
    await expect(page.locator("textarea[name=questions]")).to_have_value(f"{age}\n{language}\n{copy}")


async def test_a_mistake_is_shown_at_its_card(task: Any, open_visit_step: Any) -> None:
    draft = await task(launched=False, questions=STUDY_QUESTIONS)
    page = await open_visit_step(draft)
    cards = page.locator(".question-cards > li")
    await cards.nth(0).get_by_label("Choice 2", exact=True).fill("English")
    await save(page)
    await expect(cards.nth(0).get_by_text("give each choice only once")).to_be_visible()
    await expect(cards.nth(1).locator(".problem")).to_be_hidden()
    await cards.nth(0).get_by_label("Choice 2", exact=True).fill("German")
    await expect(cards.nth(0).locator(".problem")).to_be_hidden()


async def test_a_card_that_is_filled_in_while_the_page_still_loads_keeps_the_focus(
    task: Any, open_visit_step: Any
) -> None:
    page = await open_visit_step(await task(launched=False, questions=STUDY_QUESTIONS))
    text = page.locator(".question-text").first
    await text.fill("Which language do you speak?")
    await page.evaluate("dispatchEvent(new Event('pageshow'))")
    await expect(text).to_be_focused()
    await page.locator("textarea[name=questions]").evaluate("(field) => { field.value = 'age: How old are you?'; }")
    await page.evaluate("dispatchEvent(new Event('pageshow'))")
    await expect(text).to_have_value("How old are you?")


async def test_a_consent_text_is_written_from_the_settings_and_previewed(task: Any, open_visit_step: Any) -> None:
    draft = await task(launched=False, consent="My *own* text.")
    page = await open_visit_step(draft)
    text = page.locator("textarea[name=consent]")
    warning_on_saved_text = page.get_by_text("The settings do not say who is responsible")
    await expect(warning_on_saved_text).to_be_visible()
    preview = page.get_by_role("region", name="Preview of the consent text")
    await page.get_by_text("Preview", exact=True).press("Enter")
    await expect(preview.locator("em")).to_have_text("own")
    await page.get_by_label("Responsible for the data").fill("the University of York")
    await page.get_by_label("Contact", exact=True).fill("study@example.org")
    await page.get_by_role("button", name="Write a text from the settings").press("Enter")
    await expect(preview.get_by_role("heading", name="About this study")).to_be_visible()
    await expect(preview.get_by_text("run by the University of York")).to_be_visible()
    await expect(warning_on_saved_text).to_be_hidden()
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await page.get_by_role("button", name="Undo").press("Enter")
    await expect(text).to_have_value("My *own* text.")
    await expect(warning_on_saved_text).to_be_visible()
    await text.fill("<b>No</b> HTML, **yes** Markdown.")
    await expect(preview.locator("strong", has_text="yes")).to_be_visible()
    await expect(preview.locator("strong")).to_have_count(1)
    await expect(preview.locator("b")).to_have_count(0)
    await save(page)
    await page.wait_for_url("**?done=saved")
    await expect(text).to_have_value("<b>No</b> HTML, **yes** Markdown.")


async def test_a_text_as_written_follows_the_settings_and_another_text_is_said_to_lack_them(
    task: Any, open_visit_step: Any
) -> None:
    page = await open_visit_step(await task(launched=False))
    text = page.locator("textarea[name=consent]")
    await page.get_by_role("button", name="Write a text from the settings").press("Enter")
    await page.get_by_role("link", name="Say how long they are kept").press("Enter")
    days = page.get_by_label("Keep ids and names for (days)")
    await days.fill("90")
    field = page.locator(".field", has=days)
    await expect(field.get_by_text("The consent text now says this.")).to_be_visible()
    await expect(text).to_have_value(re.compile("ids and names: 90 days after the study ends"))
    await page.get_by_label("Contact", exact=True).fill("study@example.org")
    await expect(text).to_have_value(re.compile("write to study@example.org"))
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await text.fill("We keep your id for 90 days.")
    await days.fill("30")
    await expect(field.get_by_text("The consent text does not say this yet.")).to_be_visible()
    await field.get_by_role("button", name="Write it again").press("Enter")
    await expect(text).to_have_value(re.compile("ids and names: 30 days after the study ends"))


async def test_a_number_of_days_that_is_refused_does_not_enter_the_consent_text(
    task: Any, open_visit_step: Any
) -> None:
    page = await open_visit_step(await task(launched=False))
    text = page.locator("textarea[name=consent]")
    await page.get_by_role("button", name="Write a text from the settings").press("Enter")
    await expect(text).to_have_value(re.compile("Your answers are kept without your name"))
    await page.get_by_role("link", name="Say how long they are kept").press("Enter")
    days = page.get_by_label("Keep the campaign for (days)")
    await days.fill("0")
    await page.get_by_label("Contact", exact=True).fill("study@example.org")
    await expect(text).to_have_value(re.compile("write to study@example.org"))
    await expect(text).not_to_have_value(re.compile("0 days"))
    await days.fill("90")
    await expect(text).to_have_value(re.compile("All answers are deleted 90 days after the study ends"))


async def test_undo_at_the_changed_field_keeps_the_former_text(task: Any, open_visit_step: Any) -> None:
    page = await open_visit_step(await task(launched=False))
    text = page.locator("textarea[name=consent]")
    await page.get_by_role("button", name="Write a text from the settings").press("Enter")
    await expect(text).to_have_value(re.compile("no fixed end"))
    former = await text.input_value()
    days = page.get_by_label("Keep ids and names for (days)")
    await page.get_by_role("link", name="Say how long they are kept").press("Enter")
    await days.fill("90")
    await page.locator(".field", has=days).get_by_role("button", name="Undo").press("Enter")
    await expect(text).to_have_value(former)
    await days.fill("60")
    await expect(page.locator(".field", has=days).get_by_text("does not say this yet")).to_be_visible()
    await expect(text).to_have_value(former)


async def test_saving_leads_to_the_notice_even_if_a_link_led_to_a_field(task: Any, open_visit_step: Any) -> None:
    page = await open_visit_step(await task(launched=False))
    await page.goto(f"{page.url}#consent")
    await page.get_by_label("Contact", exact=True).fill("study@example.org")
    await save(page)
    await page.wait_for_url("**?done=saved")
    await expect(page.get_by_text("Settings saved.")).to_be_in_viewport()


async def test_practice_items_are_built_by_keyboard_and_a_mistake_is_shown_at_its_card(
    task: Any, open_visit_step: Any
) -> None:
    draft = await task(launched=False, items_per_hit=2)
    page = await open_visit_step(draft)
    table = page.locator("textarea[name=training]")
    editor = page.get_by_role("group", name="Training")
    cards = editor.locator("li")
    for number, text in enumerate(['Terrible, "never" again.', "Best day of my life!"]):
        await editor.get_by_role("button", name="Add a practice item").press("Enter")
        await page.keyboard.type(text)
        await cards.nth(number).get_by_role("slider").press(("Home", "End")[number])
    await cards.nth(0).get_by_label("Explanation").fill("It is negative.")
    await cards.nth(1).get_by_label("Tolerance").fill("wide")
    await save(page)
    await expect(cards.nth(1).get_by_text("it must be a number from 0")).to_be_visible()
    await expect(cards.nth(0).locator(".problem")).to_be_hidden()
    await cards.nth(1).get_by_label("Tolerance").fill("5")
    await save(page)
    await page.wait_for_url("**?done=saved")
    rows = [
        "text,expected,tolerance,explanation",
        '"Terrible, ""never"" again.",0,,It is negative.',
        "Best day of my life!,100,5,",
    ]
    await expect(table).to_have_value("\n".join(rows))
    await expect(cards).to_have_count(2)
    await expect(cards.nth(0).get_by_label("Text")).to_have_value('Terrible, "never" again.')
    await expect(page.get_by_text("Not saved yet")).to_have_count(0)
    await cards.nth(0).get_by_role("button", name="Delete").press("Enter")
    await editor.get_by_role("button", name="Undo").press("Enter")
    await expect(cards).to_have_count(2)
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width


async def test_expected_labels_are_ticked_as_annotators_see_them(task: Any, open_visit_step: Any) -> None:
    labels = {"labels": ["good", "so-so", "bad"]}
    table = "text,expected\nFine.,good\nHm.,so-so|bad\n"
    draft = await task(launched=False, design="categories", design_settings=labels, items_per_hit=1, training=table)
    page = await open_visit_step(draft)
    cards = page.get_by_role("group", name="Training").locator("li")
    await expect(cards.nth(0).get_by_role("checkbox", name="good")).to_be_checked()
    await cards.nth(0).get_by_role("checkbox", name="so-so").press("Space")
    await expect(cards.nth(1).get_by_role("checkbox", checked=True)).to_have_count(2)
    expected = "text,expected\nFine.,good | so-so\nHm.,so-so|bad"
    await expect(page.locator("textarea[name=training]")).to_have_value(expected)
    async for width in each_width(page, 1280, 320):
        assert await violations(page) == "", width
        assert await page.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth"), width
    await save(page)
    await page.wait_for_url("**?done=saved")


async def test_a_practice_item_of_recordings_names_a_file(task: Any, open_visit_step: Any) -> None:
    table = "text,expected\na.wav,1\nb.wav,2"
    draft = await task(launched=False, design="pairwise", content="audio", items_per_hit=2, training=table)
    page = await open_visit_step(draft)
    cards = page.get_by_role("group", name="Training").locator("li")
    await expect(cards.nth(0).get_by_label("File name")).to_have_value("a.wav")
    await expect(cards.nth(0).get_by_text("A file that you uploaded with the items.")).to_be_visible()
    await cards.nth(0).get_by_label("File name").fill("c.wav")
    await expect(page.locator("textarea[name=training]")).to_have_value(table.replace("a.wav", "c.wav"))
    assert await violations(page) == ""


async def test_a_new_practice_item_on_an_ordinal_scale_accepts_the_neighbouring_label_and_says_why(
    task: Any, open_visit_step: Any
) -> None:
    labels = {"labels": ["awful", "bad", "so-so", "good", "great"]}
    draft = await task(launched=False, design="ordinal", design_settings=labels, items_per_hit=1)
    page = await open_visit_step(draft)
    editor = page.get_by_role("group", name="Training")
    await editor.get_by_role("button", name="Add a practice item").press("Enter")
    await page.keyboard.type("Best day of my life!")
    await editor.get_by_role("checkbox", name="great").press("Space")
    await expect(editor.get_by_label("Tolerance")).to_have_value("1")
    await expect(
        editor.get_by_text("1 step leaves room for people who choose a neighbouring label, so one label is enough.")
    ).to_be_visible()
    await save(page)
    await page.wait_for_url("**?done=saved")
    expected = "text,expected,tolerance\nBest day of my life!,great,1"
    await expect(page.locator("textarea[name=training]")).to_have_value(expected)


async def test_items_of_a_qualification_are_test_items_and_not_practice(task: Any, open_visit_step: Any) -> None:
    page = await open_visit_step(await task(launched=False))
    await page.locator("summary", has_text="Qualification").click()
    editor = page.get_by_role("group", name="Qualification")
    await editor.get_by_role("button", name="Add a test item").press("Enter")
    await expect(editor.get_by_role("button", name="Add a practice item")).to_have_count(0)


async def test_a_table_that_cards_cannot_show_stays_a_table(task: Any, open_visit_step: Any) -> None:
    draft = await task(launched=False, training='text\texpected\n5" screen\t20\n7" screen\t40', items_per_hit=2)
    page = await open_visit_step(draft)
    table = page.locator("textarea[name=training]")
    await expect(table).to_be_visible()
    await table.fill("text;expected;set\na;10;x\nb;20;x\nc;30;y\nd;40;y")
    await page.get_by_role("button", name="Edit as cards").press("Enter")
    editor = page.get_by_role("group", name="Training")
    await editor.get_by_label("Text").first.fill("a; b, c")
    await page.locator("p").get_by_role("button", name="Edit as table").first.press("Enter")
    await expect(table).to_have_value('text,expected,set\n"a; b, c",10,x\nb,20,x\nc,30,y\nd,40,y')


async def test_without_scripts_questions_are_a_text(task: Any, plain: Any, cookie: Any) -> None:
    draft = await task(launched=False, questions=STUDY_QUESTIONS)
    page = await plain(f"/admin/campaigns/{draft.row.slug}/settings/visit", cookie)
    (text,) = page.all("textarea", name="questions")
    assert text.text == " ".join(STUDY_QUESTIONS.split())


async def test_a_question_gets_a_name_of_its_own_from_its_text_until_one_is_written(
    task: Any, open_visit_step: Any
) -> None:
    page = await open_visit_step(await task(launched=False))
    cards, add = page.locator(".question-cards > li"), page.get_by_role("button", name="Add a question")
    for place, (question, name) in enumerate(
        (
            ("What is your native language?", "native_language"),
            ("What is your native language?", "native_language_1"),
            ("How old are you?", "how_old_are_you"),
            ("何歳ですか", "question_1"),
        )
    ):
        await add.press("Enter")
        await cards.nth(place).get_by_label("Question", exact=True).fill(question)
        await expect(cards.nth(place).get_by_label("Name in exports")).to_have_value(name)
    await cards.nth(2).get_by_label("Name in exports").fill("age")
    await cards.nth(2).get_by_label("Question", exact=True).fill("How many years old are you?")
    await expect(cards.nth(2).get_by_label("Name in exports")).to_have_value("age")
