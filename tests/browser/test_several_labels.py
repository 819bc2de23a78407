"""Several labels, ticked below each item: by mouse, by keys alone, by touch, from right to left, without JavaScript."""

from typing import Any

import httpx
from playwright.async_api import Locator, Page, expect

from tests.browser.acts import SUBMIT, bounding_box, press_submit, violations, wait_for_hit

PHONE = {"viewport": {"width": 320, "height": 640}, "has_touch": True, "is_mobile": True}
TEXTS = ["We won!", "They left without a word."]
LABELS = ["joy: happy or pleased", "sadness", "anger", "fear"]
NAMES = ["joy", "sadness", "anger", "fear"]
NONE = "None of these"


async def create_labelled(task: Any, texts: list[str] = TEXTS, labels: list[str] = LABELS, **more: Any) -> Any:
    """A campaign of several labels with one HIT."""
    asked = {"question": "Which emotions are expressed?", "design_settings": {"labels": labels}}
    asked |= {"items_per_hit": len(texts)} | more
    return await task(texts, design="several_labels", **asked)


async def open_page(visit: Any, campaign: Any, **options: Any) -> Page:
    page: Page = (await visit(**options)).page
    await page.goto(campaign.prolific())
    await wait_for_hit(page)
    return page


def row(page: Page, place: int) -> Locator:
    return page.locator(".row.labels").nth(place)


def box(page: Page, place: int, name: str) -> Locator:
    return row(page, place).get_by_role("checkbox", name=name)


async def stored_sets(campaign: Any) -> list[set[str]]:
    """The labels of each item of the only answer, in the order in which the page showed the items."""
    (response,) = await campaign.responses()
    count = len(response.items)
    return [{name for k, name in enumerate(NAMES) if response.scores[k * count + place] == 1} for place in range(count)]


async def test_labels_are_ticked_by_mouse_and_an_untouched_item_is_no_answer(task: Any, visit: Any) -> None:
    campaign = await create_labelled(task)
    page = await open_page(visit, campaign)
    await expect(page.locator(".status .message")).to_have_text("2 left")
    await box(page, 0, "joy").check()
    await box(page, 0, "fear").check()
    await expect(page.locator(".status .message")).to_have_text("1 left")
    await page.locator(SUBMIT).click(force=True)
    await expect(row(page, 1).get_by_role("checkbox").first).to_be_focused()
    await expect(page.locator("#announcer")).to_have_text("Not finished yet: 1 left.")
    await box(page, 1, NONE).check()
    assert await violations(page) == ""
    await press_submit(page)
    assert await stored_sets(campaign) == [{"joy", "fear"}, set()]
    (response,) = await campaign.responses()
    assert set(response.input_kinds) == {"mouse"}
    assert response.changes == [2, 1] * len(LABELS)


async def test_none_of_these_and_the_labels_exclude_each_other(task: Any, visit: Any) -> None:
    page = await open_page(visit, await create_labelled(task))
    await box(page, 0, "joy").check()
    await box(page, 0, "anger").check()
    await box(page, 0, NONE).check()
    await expect(row(page, 0).locator(":checked")).to_have_count(1)
    await box(page, 0, "fear").check()
    await expect(box(page, 0, NONE)).not_to_be_checked()
    await box(page, 0, "fear").uncheck()
    await expect(page.locator(".status .message")).to_have_text("2 left")


async def test_labels_are_ticked_by_keys_alone(task: Any, visit: Any) -> None:
    campaign = await create_labelled(task)
    page = await open_page(visit, campaign)
    shown = [(await label.inner_text()).split()[0] for label in await row(page, 0).locator(".means b").all()]
    for key in ("2", "3", "2", "n", "4", "p", "1", "?"):
        await page.keyboard.press(key)
    await expect(page.locator(".keys")).to_have_attribute("open", "")
    await expect(row(page, 0).locator("input").first).to_be_focused()
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert await stored_sets(campaign) == [{shown[0], shown[2]}, {shown[3]}]
    assert set((await campaign.responses())[0].input_kinds) == {"keyboard"}


async def test_a_draft_keeps_what_is_ticked_and_what_is_ticked_no_longer(task: Any, visit: Any) -> None:
    campaign = await create_labelled(task)
    page = await open_page(visit, campaign)
    await box(page, 0, "joy").check()
    await box(page, 0, "anger").check()
    await box(page, 1, NONE).check()
    assert "none-01" in await campaign.draft_saved()
    await box(page, 0, "anger").uncheck()
    await page.reload()
    await expect(box(page, 0, "joy")).to_be_checked()
    await expect(box(page, 0, "anger")).not_to_be_checked()
    await expect(box(page, 1, NONE)).to_be_checked()
    await press_submit(page)
    assert await stored_sets(campaign) == [{"joy"}, set()]


async def test_an_answer_that_is_changed_shows_what_was_ticked(task: Any, visit: Any) -> None:
    campaign = await create_labelled(task, ["One.", "Two."], items_per_hit=1, undo=True)
    page = await open_page(visit, campaign)
    await box(page, 0, NONE).check()
    await page.locator(SUBMIT).click()
    await page.get_by_role("button", name="Change my last answers").click()
    await expect(box(page, 0, NONE)).to_be_checked()


async def test_labels_are_large_targets_on_the_smallest_phone(task: Any, visit: Any) -> None:
    labels = [*LABELS, *(f"label {k}" for k in range(5, 13))]
    campaign = await create_labelled(task, labels=labels, cannot_be_judged=True)
    page = await open_page(visit, campaign, **PHONE)
    for option in await row(page, 0).locator(".option").all():
        assert (await bounding_box(option))["height"] >= 44
    await row(page, 0).get_by_text("joy").tap()
    await expect(box(page, 0, "joy")).to_be_checked()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""
    await page.get_by_text("Cannot be judged?").click()
    await page.locator(".cannot-judge").get_by_role("combobox").nth(0).select_option("It is in another language")
    await expect(page.locator(".status .message")).to_have_text("1 left")


async def test_in_arabic_the_boxes_are_on_the_right(task: Any, visit: Any) -> None:
    page = await open_page(visit, await create_labelled(task, language="ar"), viewport={"width": 390, "height": 800})
    option = row(page, 0).locator(".option").first
    box_side = await bounding_box(option.locator("input"))
    words_side = await bounding_box(option.locator(".means"))
    assert box_side["x"] > words_side["x"]
    await expect(row(page, 0).get_by_text("لا شيء من هذه")).to_be_visible()


async def test_a_screen_reader_hears_the_item_the_label_and_its_description(task: Any, visit: Any) -> None:
    page = await open_page(visit, await create_labelled(task, TEXTS[:1]))
    group = page.get_by_role("group", name="We won!")
    await expect(group.get_by_role("checkbox")).to_have_count(len(LABELS) + 1)
    await expect(group.get_by_role("checkbox", name="joy happy or pleased")).to_have_count(1)


async def test_without_javascript_labels_and_none_are_sent_as_they_are(task: Any, plain: Any) -> None:
    campaign = await create_labelled(task)
    page = await plain(campaign.prolific())
    first, second = page.all(data_item="00")[0], page.all(data_item="01")[0]
    page.check("sadness", first)
    page.check(NONE, second)
    assert await page.press("Submit") == []
    assert "All done" in page.text
    assert await stored_sets(campaign) == [{"sadness"}, set()]


async def post_fields(campaign: Any, fields: dict[str, str]) -> str:
    async with httpx.AsyncClient(headers={"accept": "text/html"}) as client:
        shown = (await client.get(campaign.prolific())).text
        hidden = {name: shown.split(f'name="{name}" value="', 1)[1].split('"', 1)[0] for name in ("token", "hit")}
        return (await client.post(campaign.prolific(), data=hidden | fields)).text


async def test_an_item_without_a_tick_is_refused_and_what_was_ticked_is_kept(task: Any) -> None:
    campaign = await create_labelled(task)
    refused = await post_fields(campaign, {"c1-score-00": "1", "c2-score-00": "1"})
    assert "Not all items have an answer yet: 2 of 2. Tick every label that applies" in refused
    assert "sadness: Not all" not in refused
    assert refused.count(" checked>") == 2
    assert await campaign.responses() == []


async def test_a_label_and_none_of_these_at_once_are_refused(task: Any) -> None:
    campaign = await create_labelled(task)
    refused = await post_fields(campaign, {"c1-score-00": "1", "none-00": "1", "none-01": "1"})
    assert "excludes the other labels" in refused
    assert refused.count(" checked>") == 3
    assert await campaign.responses() == []


async def test_whoever_comes_by_the_link_reads_the_labels_once(task: Any, visit: Any) -> None:
    campaign = await create_labelled(task, TEXTS[:1])
    page = (await visit()).page
    await page.goto(campaign.link)
    said = await page.locator(".welcome .questions li").all_inner_texts()
    assert sorted(said) == ["anger", "fear", "joy: happy or pleased", "sadness"]
    assert await page.get_by_text("tick every label that applies").count() == 1
