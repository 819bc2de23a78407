"""An ordinal scale and categories: by mouse, by keys alone, by touch, without JavaScript."""

from playwright.async_api import expect

from tests.browser.acts import press_submit, violations, wait_for_hit

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
TEXTS = ["abide", "run", "accrue", "accuse"]
SENSES = ["bank: a financial institution", "shore: sloping land beside a river", "none of these"]
LANGUAGES = ["Arabic", "Bengali: Bangla", "Czech", "Danish", "Dutch: Nederlands", "English", "Finnish: Suomi",
             "French: Français", "German: Deutsch", "Greek", "Hebrew", "Hindi", "Italian", "Japanese"]  # fmt: skip
OFTEN = {"labels": ["never", "-", "sometimes", "-", "always"]}


async def ordinal(task, **settings):
    chosen = {"texts": TEXTS, "items_per_hit": 4, "design": "ordinal", "design_settings": OFTEN}
    return await task(**chosen | settings)


async def categories(task, labels, **settings):
    chosen = {"texts": TEXTS[:2], "design": "categories", "design_settings": {"labels": labels}}
    return await task(**chosen | settings)


async def open_page(visit, campaign, **options):
    page = (await visit(**options)).page
    await page.goto(campaign.prolific())
    await wait_for_hit(page)
    return page


def row(page, text):
    return page.get_by_role("radiogroup", name=text, exact=True)


async def texts(page):
    return [text.strip() for text in await page.locator(".row .text").all_inner_texts()]


async def test_points_are_chosen_by_mouse_and_kept_as_a_draft(task, visit):
    campaign = await ordinal(task)
    page = await open_page(visit, campaign)
    await expect(page.locator(".names")).to_have_text("never 1 2 sometimes 3 4 always 5", use_inner_text=True)
    await row(page, "run").get_by_label("sometimes").click()
    await expect(page.locator(".status .message")).to_have_text("3 left")
    assert await campaign.draft_saved() == {f"score-0{(await texts(page)).index('run')}": {"value": "2"}}
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await expect(row(page, "run").get_by_label("sometimes")).to_be_checked()
    await page.get_by_role("button", name="Submit").click(force=True)  # it is not ready, and says why
    await expect(page.locator("#announcer")).to_have_text("Not finished yet: 3 left.")
    for text, point in (("abide", "never"), ("accrue", "2"), ("accuse", "always"), ("run", "4")):
        await row(page, text).get_by_label(point, exact=True).click()
    assert await violations(page) == ""
    await press_submit(page)
    assert await campaign.scores() == [{"abide": 0.0, "run": 3.0, "accrue": 1.0, "accuse": 4.0}]
    (response,) = await campaign.responses()
    assert set(response.input_kinds) == {"mouse"}


async def test_points_are_chosen_by_keys_which_go_on_to_the_next_row(task, visit):
    campaign = await ordinal(task)
    page = await open_page(visit, campaign)
    shown = await texts(page)
    await page.keyboard.press("3")
    await expect(row(page, shown[1]).locator("input").first).to_be_focused()
    await page.keyboard.press("9")  # there is no ninth point
    await page.keyboard.press("5")
    await page.keyboard.press("1")
    await page.keyboard.press("ArrowRight")  # moves within the row that is next, and chooses
    await expect(row(page, shown[3]).get_by_label("2", exact=True)).to_be_checked()
    await page.keyboard.press("4")
    await expect(page.locator(".primary")).to_be_focused()
    await row(page, shown[0]).get_by_label("sometimes").focus()
    await page.keyboard.press("1")
    await expect(page.locator(".primary")).to_be_focused()
    await page.keyboard.press("?")
    await expect(page.get_by_text("choose that point, and go on to the next row")).to_be_visible()
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert await campaign.scores() == [dict(zip(shown, [0.0, 4.0, 0.0, 3.0], strict=True))]
    (response,) = await campaign.responses()
    assert set(response.input_kinds) == {"keyboard"}
    assert response.changes == [2, 1, 1, 2]


async def test_on_a_phone_each_point_has_its_label_beside_it(task, visit):
    campaign = await ordinal(task)
    page = await open_page(visit, campaign, **PHONE)
    await expect(page.locator(".names")).to_be_hidden()
    for text in await texts(page):
        label = row(page, text).get_by_text("sometimes")
        await expect(label).to_be_visible()
        box = await row(page, text).locator(".point").nth(2).bounding_box()
        assert box
        assert box["height"] >= 44
        await label.tap()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""
    await page.get_by_role("button", name="Submit").tap()
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert (await campaign.responses())[0].scores == [2.0] * 4


async def test_both_work_without_javascript(task, plain):
    scale, senses = await ordinal(task), await categories(task, LANGUAGES, items_per_hit=2)
    page = await plain(scale.prolific())
    for text, point in zip(TEXTS, ("always", "4", "sometimes", "never"), strict=True):
        page.check(point, page.group(text))
    assert await page.press("Submit") == []
    assert await scale.scores() == [dict(zip(TEXTS, [4.0, 3.0, 2.0, 0.0], strict=True))]
    page = await plain(senses.prolific())
    page.check("Czech", page.group("abide"))
    assert len(await page.press("Submit")) == 1  # the browser asks for the other
    page.check("Danish", page.group("run"))
    assert await page.press("Submit") == []
    assert "All done" in page.text
    assert await senses.scores() == [{"abide": 2.0, "run": 3.0}]


async def test_a_label_is_chosen_by_its_letter_and_can_be_changed_until_it_is_sent(task, visit):
    campaign = await categories(task, SENSES)
    page = await open_page(visit, campaign)
    (first,) = await texts(page)
    await expect(row(page, first).get_by_text("sloping land beside a river")).to_be_visible()
    await expect(page.get_by_role("searchbox")).to_have_count(0)
    await page.keyboard.press("b")
    await expect(page.locator(".primary")).to_be_focused()
    await page.keyboard.press("c")
    await expect(row(page, first).get_by_label("none of these")).to_be_checked()
    await page.keyboard.press("x")
    assert await violations(page) == ""
    await page.keyboard.press("Enter")
    await expect(page.locator(".progress")).to_have_text("1 task done")
    (second,) = await texts(page)
    await row(page, second).get_by_text("a financial institution").click()
    await press_submit(page)
    assert await campaign.scores() == [{first: 2.0}, {second: 0.0}]


async def test_many_labels_are_searched_by_their_words(task, visit):
    campaign = await categories(task, LANGUAGES, items_per_hit=2)
    page = await open_page(visit, campaign)
    one, other = await texts(page)
    await page.keyboard.press("/")
    await page.keyboard.type("FRANCAIS")  # as it is typed without an accent
    await expect(page.get_by_text("1 found")).to_be_visible()
    await expect(row(page, one).get_by_role("radio")).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(row(page, one).get_by_label("French")).to_be_checked()
    await expect(row(page, one).get_by_role("radio")).to_have_count(len(LANGUAGES))
    await expect(row(page, other).locator("input").first).to_be_focused()
    await page.keyboard.press("/")
    await page.keyboard.type("nothing like it")
    await expect(page.get_by_text("0 found")).to_be_visible()
    await page.keyboard.press("Enter")  # chooses nothing, and sends nothing
    await expect(row(page, other).get_by_role("radio")).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.keyboard.press("m")
    await expect(row(page, other).get_by_label("Italian")).to_be_checked()
    assert await violations(page) == ""
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="All done")).to_be_visible()
    assert await campaign.scores() == [{one: 7.0, other: 12.0}]


async def test_a_label_is_tapped_on_a_phone_and_letters_are_not_shown(task, visit):
    campaign = await categories(task, LANGUAGES)
    page = await open_page(visit, campaign, **PHONE)
    (text,) = await texts(page)
    await page.get_by_role("searchbox").fill("suomi")
    await row(page, text).get_by_text("Finnish").tap()
    await expect(row(page, text).get_by_label("Finnish")).to_be_checked()
    await expect(page.locator(".option kbd").first).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await violations(page) == ""
    await press_submit(page)
    (response,) = await campaign.responses()
    assert (response.scores, response.input_kinds) == ([6.0], ["touch"])


async def test_a_campaign_of_labels_is_watched_without_a_word_of_points(task, visit, cookie):
    campaign = await categories(task, SENSES, judgments_per_item=2)
    watcher = (await visit()).page
    await watcher.context.add_cookies([cookie])
    await watcher.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}")
    page = await open_page(visit, campaign)
    (text,) = await texts(page)
    await page.keyboard.press("b")
    await press_submit(page)
    await expect(watcher.locator("[data-counts=classes] tr").nth(1)).to_have_text("shore 1", use_inner_text=True)
    await expect(watcher.get_by_role("row", name=text).get_by_text("shore")).to_be_visible()
    await watcher.get_by_role("link", name=text).click()
    await expect(watcher.get_by_text("Expected is the share of all annotators")).to_be_visible()
    await expect(watcher.get_by_text("share of the likeliest label, %").first).to_be_visible()
    assert await violations(watcher) == ""
