"""Best-worst scaling in a browser: two columns, one choice in each, never on the same item."""

import re
from typing import Any

import httpx
from playwright.async_api import Locator, Page, expect

from tests.browser.acts import item_texts, open_hit, press_submit, violations

PHONE: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
ASKED = {"design": "best_worst", "question": "How often are these verbs used?"}


def choice(page: Page, name: str, item: str) -> Locator:
    return page.get_by_role("radio", name=f"{name} {item}", exact=True)


def places(best: str, worst: str, items: list[str]) -> dict[str, float]:
    return dict.fromkeys(items, 2.0) | {best: 1.0, worst: 3.0}


async def test_by_mouse_a_choice_moves_the_other_one_away(task: Any, visit: Any) -> None:
    campaign = await task(texts=["go", "abide", "run", "hum"], **ASKED)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    items = await item_texts(page)
    status = page.locator(".status .message")
    await expect(status).to_have_text("Still to choose: most and least")
    assert await violations(page) == ""
    await page.locator(".primary").press("Enter")
    await expect(choice(page, "most", items[0])).to_be_focused()
    await choice(page, "most", items[2]).click()
    await choice(page, "least", items[2]).click()
    await expect(choice(page, "most", items[2])).not_to_be_checked()
    await expect(status).to_have_text("Still to choose: most")
    await expect(page.locator("#announcer")).to_have_text(f"least: {items[2]}. Still to choose: most.")
    await choice(page, "most", items[0]).locator("xpath=..").click(position={"x": 4, "y": 4})  # the whole cell is it
    assert await campaign.draft_saved()
    await page.evaluate("sessionStorage.clear()")
    await expect(page.locator(".primary")).to_have_attribute("aria-disabled", "false")
    await press_submit(page)
    (response,) = await campaign.responses()
    assert await campaign.scores() == [places(items[0], items[2], items)]
    told = dict(zip(response.items, response.input_kinds, strict=True))
    assert sorted(kind or "" for kind in told.values()) == ["", "", "mouse", "mouse"]


# How many lines each word of the heads is on.
LINES_OF_WORDS = """
    [...document.querySelectorAll(".heads span")].flatMap(({ firstChild }) =>
        [...firstChild.data.matchAll(/\\S+/g)].map(({ 0: word, index }) => {
            const range = document.createRange();
            range.setStart(firstChild, index);
            range.setEnd(firstChild, index + word.length);
            return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size;
        }))
"""


async def test_no_word_of_a_head_is_broken_on_a_phone(task: Any, visit: Any) -> None:
    labels = {"best_label": "am konkretesten", "worst_label": "am allerabstraktesten"}
    campaign = await task(texts=["go", "abide", "run", "hum"], design_settings=labels, **ASKED)
    page = (await visit(**PHONE)).page
    await open_hit(page, campaign.prolific())
    assert await page.evaluate(LINES_OF_WORDS) == [1, 1, 1, 1]
    assert await violations(page) == ""


async def test_by_keyboard_alone(task: Any, visit: Any) -> None:
    campaign = await task(**ASKED, judgments_per_item=2)
    page = (await visit()).page
    await open_hit(page, campaign.prolific())
    first = await item_texts(page)
    for key in (
        "b",
        "Shift+D",
        "ArrowDown",
    ):  # the last passes by the fourth? It stays least: it is gone round to itself
        await page.keyboard.press(key)
    await expect(choice(page, "least", first[0])).to_be_checked()
    await page.keyboard.press("ArrowDown")  # over the one that is most
    await expect(choice(page, "least", first[2])).to_be_checked()
    await expect(choice(page, "most", first[1])).to_be_checked()
    await page.keyboard.press("?")
    await expect(page.get_by_text("this one is least")).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(page.locator(".progress")).to_have_text("1 task done")
    second = await item_texts(page)
    await page.keyboard.press("Tab")
    for key in ("Space", "Tab", "ArrowUp"):
        await page.keyboard.press(key)
    await page.keyboard.press("Enter")
    await expect(page.locator(".progress")).to_have_text("2 tasks done")
    assert await campaign.scores() == [places(first[1], first[2], first), places(second[0], second[-1], second)]


async def test_by_touch_and_of_two_items_one_choice_is_both(task: Any, visit: Any) -> None:
    campaign = await task(texts=["go", "abide"], items_per_hit=4, **ASKED)
    page = (await visit(**PHONE)).page
    await open_hit(page, campaign.prolific())
    items = await item_texts(page)
    assert await violations(page) == ""
    box = await choice(page, "least", items[0]).locator("xpath=..").bounding_box()
    assert box
    assert min(box["width"], box["height"]) >= 44
    await choice(page, "least", items[0]).tap()
    await expect(choice(page, "most", items[1])).to_be_checked()
    await press_submit(page)
    assert await campaign.scores() == [places(items[1], items[0], items)]


async def test_without_scripts_the_same_item_for_both_is_refused_and_kept(task: Any, plain: Any) -> None:
    campaign = await task(texts=["go", "abide", "run", "hum"], **ASKED)
    page = await plain(campaign.prolific())
    items = page.texts("text")
    assert len({page.name_of(one) for one in page.all("input", type="radio")}) == 8
    for name in ("most", "least"):
        page.check(f"{name} {items[1]}")
    assert await page.press("Submit") == []
    (alert,) = page.all(role="alert")
    assert alert.text == "Choose one item as “most” and another one as “least”. What you entered is kept."
    assert await campaign.responses() == []
    assert "checked" in page.control(f"most {items[1]}").attributes
    page.check(f"least {items[3]}")
    assert await page.press("Submit") == []
    assert "All done" in page.text
    assert await campaign.scores() == [places(items[1], items[3], items)]


async def names_of_choices(page: Page) -> int:
    """How many of them have a name of their own."""
    names = [await one.get_attribute("aria-labelledby") for one in await page.get_by_role("radio").all()]
    return len(set(names))


async def test_a_post_counts_once_however_often_it_is_sent(task: Any) -> None:
    campaign = await task(texts=["go", "abide", "run", "hum"], **ASKED)
    async with httpx.AsyncClient(headers={"accept": "text/html"}) as client:
        page = (await client.get(campaign.prolific())).text
        fields = dict(re.findall(r'name="(token|hit)" value="([^"]+)"', page)) | {"best": "0", "worst": "3"}
        for _ in range(3):
            await client.post(campaign.prolific(), data=fields)
    assert len(await campaign.responses()) == 1
