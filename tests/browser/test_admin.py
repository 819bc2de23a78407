"""Researchers' pages in a real browser: by mouse, by keyboard, without JavaScript; axe-core on every page."""

import asyncio
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.async_api import Dialog, Page, Route, expect
from sqlalchemy.ext.asyncio import AsyncEngine

from app.accounts import login
from app.accounts.secrets import csrf_token_of_session
from app.designs.registry import DESIGNS
from tests.browser.acts import bounding_box, each_width, violations, wait_for_value
from tests.browser.conftest import VERBS
from tests.media.files import png, zipped

CSV = "id,verb,gloss\n" + "".join(f"{k},verb {k},what it means\n" for k in range(1, 121))
FILE = {"name": "verbs.csv", "mimeType": "text/csv", "buffer": CSV.encode()}
IMPORT = re.compile(r"^Import (\d+ )?items$")
IMPORT_RESPONSES = re.compile(r"^Import (\d+ )?responses?$")
FIRST_FIELD = {"pairwise": "preferred", "baseline": "preferred", "best_worst": "best"}  # else one for each item
PAGES = (
    "analysis",
    "items",
    *(f"settings/{step}" for step in ("question", "visit", "items", "how-much", "quality", "advanced")),
    "share",
    "people",
    "members",
    "export",
    "launch/confirm",
    "finish/confirm",
    "log",
    "alerts",
)

Enter = Callable[..., Any]


@pytest.fixture
def enter(origin: str, visit: Callable[..., Any], cookie: Any) -> Enter:
    """Opens a browser in which a researcher has logged in."""

    async def open_page(**options: Any) -> Page:
        page: Page = (await visit(**options)).page
        await page.context.add_cookies([cookie])
        await page.goto(f"{origin}/admin")
        return page

    return open_page


async def create(page: Page, name: str) -> None:
    """Create a draft as the form does; ends on its items page."""
    home = "/".join(page.url.split("/")[:3]) + "/admin/campaigns"
    (cookie,) = await page.context.cookies(home)
    created = await page.context.request.post(
        f"{home}/new",
        form={"name": name, "question": "How often is this verb used?"},
        headers={"X-CSRF-Token": csrf_token_of_session(cookie["value"]), "accept": "text/html"},
        max_redirects=0,
    )
    assert created.status == 303, await created.text()
    await page.goto(urljoin(home, created.headers["location"].replace("settings/visit?done=created", "items")))


async def create_by_form(page: Page, name: str) -> None:
    """Create a draft by the form; ends on its items page."""
    await page.goto("/".join(page.url.split("/")[:3]) + "/admin/campaigns/new")
    await page.get_by_label("Name", exact=True).fill(name)
    await page.get_by_label("Question", exact=True).fill("How often is this verb used?")
    await page.get_by_role("button", name="Create draft").click()
    await page.wait_for_url("**/settings/visit?done=created")
    await page.goto(page.url.replace("settings/visit?done=created", "items"))


async def launch(page: Page) -> None:
    await page.get_by_role("link", name="Launch …").click()
    await page.get_by_role("button", name="Launch campaign").click()
    await page.wait_for_url("**/share?done=launched")


async def test_a_campaign_is_set_up_by_mouse_from_login_to_shared_link(
    served: AsyncEngine, origin: str, visit: Callable[..., Any]
) -> None:
    async with served.begin() as connection:
        token = await login.create_one_time_login_and_return_secret(connection, now=datetime.now(UTC))
    page = (await visit()).page
    await page.goto(origin + login.one_time_login_path(token))
    await page.get_by_role("button", name="Log in with this link").click()
    await page.wait_for_url("**/admin")
    await create_by_form(page, "Verbs by mouse")
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await expect(page.get_by_text("120 rows")).to_be_in_viewport()
    await expect(page.get_by_label("Or paste them")).to_be_hidden()
    await expect(page.locator("[data-preview] thead th")).to_have_text(["Line", "id id", "verb shown", "gloss"])
    await page.get_by_label("Template that combines columns").fill("{verb}: {gloss}")
    await expect(page.get_by_label("the template")).to_be_checked()
    await page.get_by_label("Template that combines columns").blur()
    await page.get_by_role("cell", name="verb 1: what it means").wait_for()
    await page.get_by_role("button", name="Import 120 items").click()
    await page.wait_for_url("**/items?done=imported")
    await expect(page.get_by_text("verb 1: what it means", exact=True)).to_have_count(1)
    await page.get_by_role("link", name="Next").click()
    await page.get_by_text("51 to 100").wait_for()
    await page.get_by_label("Page", exact=True).fill("3")
    await page.get_by_label("Page", exact=True).press("Enter")
    await page.get_by_text("101 to 120").wait_for()
    await launch(page)
    link = await page.get_by_label("Annotator link").input_value()
    await page.goto(link)
    await page.get_by_role("button", name="Start").wait_for()


async def test_a_zip_of_media_is_sent_with_the_import_and_not_with_what_is_looked_at_before(enter: Enter) -> None:
    page = await enter()
    await create(page, "Pictures")
    await page.goto(page.url.split("/items")[0] + "/settings/items")
    await page.locator("select[name=content]").select_option("image")
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**done=saved**")
    await page.goto(page.url.split("/settings/")[0] + "/items")
    previews: list[bytes] = []
    page.on("request", lambda sent: previews.append(sent.post_data_buffer or b"") if "/preview" in sent.url else None)
    rows = FILE | {"buffer": b"id,one,two\n1,a.png,b.png\n"}
    await page.get_by_label("File", exact=True).set_input_files(rows)
    await page.get_by_text("1 row", exact=False).first.wait_for()
    await page.locator("[name=media]").set_input_files(
        {"name": "media.zip", "mimeType": "application/zip", "buffer": bytes(2**21) + zipped({"b.png": png()})}
    )
    await page.get_by_text("The zip lacks 1 file that rows name: a.png.").wait_for()
    async with page.expect_response("**/items/preview") as reply:
        await page.get_by_label("Column that annotators see").select_option("two")
    assert (await reply.value).ok
    await page.get_by_text("The row can be imported.").wait_for()
    assert len(previews) == 3
    assert all(len(sent) < 2**17 for sent in previews)  # the list of its files alone


async def test_a_zip_of_media_alone_is_previewed_and_imported_with_an_item_for_each_file(enter: Enter) -> None:
    page = await enter()
    await create(page, "Pictures alone")
    await page.goto(page.url.split("/items")[0] + "/settings/items")
    await page.locator("select[name=content]").select_option("image")
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**done=saved**")
    await page.goto(page.url.split("/settings/")[0] + "/items")
    zip_ = {"name": "media.zip", "mimeType": "application/zip", "buffer": zipped({"a.png": png(), "b.png": png()})}
    await page.locator("[name=media]").set_input_files(zip_)
    await page.get_by_text("All rows can be imported.").wait_for()
    await page.get_by_role("button", name="Import 2 items").click()
    await page.get_by_text("Imported 2 items.").wait_for()


async def test_the_button_of_an_import_counts_items_and_checks(enter: Enter) -> None:
    page = await enter()
    await create(page, "Checks beside items")
    table = "id,text,check,expected\n1,one,,\n2,two,,\ng1,three,gold,80\n"
    file = {"name": "items.csv", "mimeType": "text/csv", "buffer": table.encode()}
    await page.locator("[name=file]").first.set_input_files(file)
    await page.get_by_role("button", name="Import 2 items and 1 check", exact=True).click()
    await page.get_by_text("Imported 2 items.").wait_for()


SEEN_PARTS = """all => all.map(summary => [...summary.querySelectorAll("span")]
    .filter(span => getComputedStyle(span).display !== "none")
    .map(span => {
        const before = getComputedStyle(span, "::before").content;
        return (before.startsWith('"') ? before.slice(1, -1) : "") + span.textContent;
    }))"""


async def test_folded_settings_are_separated_only_where_they_are_seen(enter: Enter) -> None:
    page = await enter()
    await page.goto("/".join(page.url.split("/")[:3]) + "/admin/campaigns/new")
    summaries = page.locator("form.settings fieldset > details > summary", has_text="More:")
    longest, wrong = 0, []
    for design in DESIGNS:
        await page.locator(f"input[name=design][value={design}]").check(force=True)
        for parts in await summaries.evaluate_all(SEEN_PARTS):
            longest = max(longest, len(parts))
            seen = " ".join(" ".join(parts).split())
            if seen != " · ".join(part.replace("·", "").strip() for part in parts):
                wrong.append((design, seen))
    assert longest > 1
    assert wrong == []


async def test_the_button_says_how_many_items_it_imports_and_is_off_where_none_would_be(enter: Enter) -> None:
    page = await enter()
    await create(page, "Verbs to count")
    twice = FILE | {"buffer": (CSV + "1,again,x\n").encode()}
    await page.get_by_label("File", exact=True).set_input_files(twice)
    await page.get_by_role("alert").get_by_text("1 row with a duplicate id: line 122").wait_for()
    await expect(page.get_by_role("button", name="Import items", exact=True)).to_be_disabled()
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await expect(page.get_by_role("button", name="Import 120 items", exact=True)).to_be_enabled()


async def test_a_refusal_of_the_zip_takes_the_sentence_away_that_all_is_well(enter: Enter) -> None:
    page = await enter()
    await create(page, "More pictures")
    await page.goto(page.url.split("/items")[0] + "/settings/items")
    await page.locator("select[name=content]").select_option("image")
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**done=saved**")
    await page.goto(page.url.split("/settings/")[0] + "/items")
    rows = FILE | {"buffer": b"id,one\n1,a.png\n2,nothere.png\n"}
    await page.get_by_label("File", exact=True).set_input_files(rows)
    await page.get_by_text("2 files that rows name have not been uploaded yet: a.png, nothere.png.").wait_for()

    async def choose_zip(files: dict[str, bytes]) -> None:
        zip_ = {"name": "media.zip", "mimeType": "application/zip", "buffer": zipped(files)}
        await page.locator("[name=media]").set_input_files(zip_)

    await choose_zip({"a.png": png(), "over.png": png()})
    await page.get_by_text("The zip lacks 1 file that rows name: nothere.png.").wait_for()
    await page.get_by_text("It has 1 file that no row names: over.png.").wait_for()
    await expect(page.get_by_role("button", name="Import items")).to_be_disabled()
    await choose_zip({"a.png": png(), "nothere.png": b"no picture"})
    await page.get_by_text("All rows can be imported.").wait_for()
    await page.get_by_role("button", name=IMPORT).click()
    await expect(page.get_by_role("alert").filter(has_text="nothere.png")).to_be_visible()
    await expect(page.get_by_text("All rows can be imported.")).to_be_hidden()
    await page.get_by_text("“nothere.png” in the zip is neither an image").wait_for()


async def test_a_file_with_a_mistake_says_the_line_and_can_be_chosen_again(enter: Enter) -> None:
    page = await enter()
    await create(page, "Verbs with a mistake")
    twice = FILE | {"buffer": (CSV + "1,again,x\n").encode()}
    await page.get_by_label("File", exact=True).set_input_files(twice)
    await page.get_by_role("alert").get_by_text("1 row with a duplicate id: line 122").wait_for()
    nothing_to_show = FILE | {"buffer": (CSV + "last,,x\n").encode()}
    await page.get_by_label("File", exact=True).set_input_files(nothing_to_show)
    await page.get_by_text("121 rows").wait_for()
    await page.get_by_role("alert").get_by_text("with nothing to show: line 122").wait_for()
    await page.get_by_label("Column that annotators see").select_option("gloss")
    await page.get_by_text("All rows can be imported").wait_for()
    await page.get_by_label("Column that annotators see").select_option("verb")
    await page.get_by_role("alert").get_by_text("with nothing to show: line 122").wait_for()
    await expect(page.get_by_role("button", name="Import items", exact=True)).to_be_disabled()
    unreadable = FILE | {"buffer": b"id,verb\n1,\xff\n"}
    await page.get_by_label("File", exact=True).set_input_files(unreadable)
    await page.get_by_role("alert").get_by_text("not UTF-8").wait_for()
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await page.get_by_text("120 rows").wait_for()
    await expect(page.get_by_role("alert")).to_be_hidden()
    await page.get_by_label("Column that annotators see").select_option("verb")
    await page.get_by_role("button", name="Import 120 items").click()
    await page.wait_for_url("**/items?done=imported")


@pytest.mark.new_browser_context
async def test_a_lost_connection_while_importing_is_said(enter: Enter) -> None:
    page = await enter()
    await create(page, "Verbs lost")
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await page.get_by_text("120 rows").wait_for()
    await page.context.set_offline(True)
    await page.get_by_role("button", name="Import 120 items").click()
    await page.get_by_role("alert").get_by_text("The connection was lost").wait_for()
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await page.get_by_role("alert").get_by_text("could not be sent").wait_for()
    await page.context.set_offline(False)
    await expect(page.get_by_role("button", name="Import items")).to_be_enabled()


RESULTS = "AssignmentId,Input.id1,Input.id2,Answer.range1,Answer.range2\n" + "".join(
    f"A{k},{k % 10},{(k + 1) % 10},10,90\n" for k in range(30)
)


async def test_results_are_imported_and_a_mistake_in_them_is_said_in_place(
    enter: Enter, task: Callable[..., Any]
) -> None:
    page = await enter()
    running = await task(judgments_per_item=9)
    await page.goto(f"{running.origin}/admin/campaigns/{running.row.slug}/items")

    async def send(name: str, content: str) -> None:
        chosen: Any = {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
        await page.get_by_label("File", exact=True).set_input_files(chosen)
        await expect(page.get_by_role("alert")).to_be_hidden()
        await page.get_by_role("button", name=IMPORT_RESPONSES).click()

    await send("results.csv", RESULTS + "B,1,nothing,1,2\n")
    await page.get_by_role("alert").get_by_text("Line 32").wait_for()
    assert await running.responses() == []
    await send("results.csv", RESULTS)
    await page.wait_for_url("**/items?done=responses&*")
    assert len(await running.responses()) == 30
    await send("example.csv", await page.locator(".example").text_content() or "")
    await page.get_by_text("Imported 1 response on 5 items.").wait_for()
    assert len(await running.responses()) == 31


async def test_a_removal_is_asked_about(enter: Enter, origin: str) -> None:
    page = await enter()
    await page.goto(f"{origin}/admin/people")
    await page.get_by_label("Login name of a new researcher").fill("hedy")
    await page.get_by_role("button", name="Add researcher").click()
    await page.get_by_role("link", name="Remove hedy").click()
    await expect(page.get_by_role("button", name="Remove researcher")).to_be_visible()
    assert await violations(page) == ""
    await page.get_by_role("link", name="Cancel").click()
    await page.get_by_role("link", name="Remove hedy").click()
    await page.get_by_role("button", name="Remove researcher").click()
    await page.get_by_text("Researcher removed").wait_for()
    await expect(page.get_by_text("hedy")).to_have_count(0)


async def test_a_campaign_is_set_up_by_keyboard_alone(enter: Enter) -> None:
    page = await enter()
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("#"))
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="New campaign")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/new/question")
    await page.get_by_role("link", name="Start from scratch").focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/new")
    await page.get_by_label("Question", exact=True).focus()
    await page.keyboard.type("How often?")
    await page.keyboard.press("Tab")
    await page.keyboard.type("Verbs by keyboard")
    await page.get_by_label("Label at 0", exact=True).focus()
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/settings/visit?done=created")


DROP = """async (content) => {
  const carried = new DataTransfer();
  carried.items.add(new File([content], "words.csv", { type: "text/csv" }));
  for (const kind of ["dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(kind, { dataTransfer: carried, bubbles: true, cancelable: true }));
}"""


async def test_the_button_counts_the_outputs_of_a_table_of_systems(enter: Enter) -> None:
    page = await enter()
    await create(page, "Systems")
    await page.evaluate(DROP, "system,segment,output\nape,s1,one\nbee,s1,two\n")
    await page.get_by_text("All rows can be imported").wait_for()
    await expect(page.get_by_role("button", name="Import 2 outputs", exact=True)).to_be_enabled()


async def test_a_file_is_dropped_and_its_columns_are_matched(enter: Enter) -> None:
    page = await enter()
    await create(page, "Dropped")
    await page.evaluate(DROP, "word,sense\nbank,river\nbank,money\n")
    await page.get_by_text("All rows can be imported").wait_for()
    assert await violations(page) == ""
    await page.get_by_role("group", name="Columns").get_by_label("Id", exact=True).select_option("word")
    await page.get_by_role("alert").get_by_text("1 row with a duplicate id: line 3").wait_for()
    assert await violations(page) == ""
    await (
        page.get_by_role("group", name="Columns").get_by_label("Id", exact=True).select_option("none: number the rows")
    )
    await page.get_by_label("Column that annotators see").select_option("sense")
    await page.get_by_text("All rows can be imported").wait_for()
    await page.get_by_role("button", name="Import 2 items").click()
    await page.wait_for_url("**/items?done=imported")
    await expect(page.locator(".items tbody tr")).to_have_text([re.compile(r"1\s+river"), re.compile(r"2\s+money")])


async def test_a_mended_file_is_looked_at_when_it_is_chosen_again(enter: Enter, tmp_path: Path) -> None:
    page = await enter()
    await create(page, "Mended")
    words = tmp_path / "words.csv"
    words.write_text("id,word\nw1,bank\nw1,river\n")
    await page.get_by_label("File", exact=True).set_input_files(words)
    await page.get_by_role("alert").get_by_text("1 row with a duplicate id: line 3").wait_for()
    words.write_text("id,word\nw1,bank\nw2,river\n")
    await page.get_by_label("File", exact=True).set_input_files(words)  # the same path: Chromium reports no change
    await page.get_by_text("All rows can be imported").wait_for()
    await (
        page.get_by_role("group", name="Columns").get_by_label("Id", exact=True).select_option("none: number the rows")
    )
    await page.get_by_label("File", exact=True).dispatch_event("cancel")  # the dialog was closed: nothing is read again
    await expect(page.get_by_role("group", name="Columns").get_by_label("Id", exact=True)).to_have_value(
        ":row numbers:"
    )
    await page.get_by_role("button", name="Import 2 items").click()
    await page.wait_for_url("**/items?done=imported")


async def test_a_file_that_changes_after_it_was_chosen_must_be_chosen_again(enter: Enter, tmp_path: Path) -> None:
    page = await enter()
    await create(page, "Changed on the disk")
    words = tmp_path / "words.csv"
    words.write_text("id,word\nw1,bank\n")
    await page.get_by_label("File", exact=True).set_input_files(words)
    await page.get_by_role("button", name="Import 1 item").wait_for()
    words.write_text("id,word\nw1,bank\nw2,river\n")
    os.utime(words, (0, 0))  # Chromium compares whole seconds
    await page.get_by_role("button", name="Import 1 item").click()
    await page.get_by_text("The file was changed or moved after you chose it").wait_for()
    await page.get_by_label("File", exact=True).set_input_files(words)
    await page.get_by_role("button", name="Import 2 items").click()
    await page.wait_for_url("**/items?done=imported")


async def test_a_file_is_looked_at_and_then_imported_without_javascript(enter: Enter) -> None:
    page = await enter(java_script_enabled=False)
    await create(page, "Looked at without scripts")
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await page.get_by_role("button", name="Preview").click()
    await page.get_by_text("All rows can be imported").wait_for()
    await page.get_by_label("Column that annotators see").select_option("gloss")
    await page.get_by_role("button", name="Import items").click()
    await page.wait_for_url("**/items?done=imported")
    await expect(page.locator(".items tbody tr")).to_have_count(50)


PADDED = "title => parseFloat(getComputedStyle(title.parentElement).paddingInlineStart) > 0"


async def test_an_open_page_says_when_the_crowd_of_a_rehearsal_is_gone(
    enter: Enter, task: Callable[..., Any], served: AsyncEngine
) -> None:
    page = await enter()
    running = await task(name="Abandoned")
    copy = await task(name="Abandoned copy")
    await copy.set(f"rehearsal_of = {running.row.id}")
    led_until = "now() + interval '1 minute'"
    await copy.execute(
        f"INSERT INTO crowds (campaign_id, described, led_until) VALUES (:campaign, '{{}}', {led_until})"
    )
    await page.goto(f"{copy.origin}/admin/campaigns/{copy.row.slug}")
    gone = page.get_by_role("heading", name="The simulated annotators stopped")
    await expect(gone).to_be_hidden()
    await copy.execute("UPDATE crowds SET led_until = now() - interval '1 second' WHERE campaign_id = :campaign")
    await gone.wait_for()
    assert await violations(page) == ""
    assert await page.locator("#crowd-gone").evaluate(PADDED)
    await copy.execute(f"UPDATE crowds SET led_until = {led_until} WHERE campaign_id = :campaign")
    await expect(gone).to_be_hidden()


async def test_a_rehearsal_is_watched_live_and_removed(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter()
    running = await task([f"verb {k}" for k in range(10)], name="Rehearsed", judgments_per_item=4)
    await page.goto(f"{running.origin}/admin/campaigns/{running.row.slug}")
    await page.get_by_text("12 simulated annotators, some noise").click()
    assert await violations(page) == ""
    await page.get_by_label("Simulated annotators").fill("3")
    await page.get_by_role("button", name="Rehearse", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Rehearsed (rehearsal)")
    await expect(page.get_by_text("40 of 40")).to_be_visible()
    await expect(page.get_by_text("All answers here are simulated")).to_be_visible()
    lessons = page.get_by_role("region", name="What you can learn from this rehearsal")
    await expect(lessons).to_contain_text("3 annotators answered")
    assert await violations(page) == ""
    await page.goto(f"{running.origin}/admin")
    assert await violations(page) == ""
    await page.get_by_role("button", name="Remove Rehearsed (rehearsal)").click()
    await page.get_by_text("Rehearsal removed").wait_for()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Rehearsed")


async def test_a_plan_shows_how_far_it_is_and_can_be_stopped(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter()
    # A goal that nobody reaches, so that it takes long.
    draft = await task(texts=VERBS[:5], launched=False, goal="intervals", goal_width=2)
    await page.goto(f"{draft.origin}/admin/campaigns/{draft.row.slug}/plan")
    await page.get_by_text("Assumptions: annotators like").click()
    await page.get_by_label("Annotators at a time").fill("3")
    await page.get_by_role("button", name="Plan", exact=True).click()
    await expect(page.get_by_role("progressbar")).to_be_visible()
    asked: list[str] = []

    async def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.once("dialog", stay)
    await page.get_by_role("link", name="Analysis", exact=True).click(no_wait_after=True)
    await expect(page.get_by_role("progressbar")).to_be_visible()
    assert asked == ["beforeunload"]
    await page.get_by_role("button", name="Stop").click()
    await expect(page.get_by_text("Stopped. Nothing has changed.")).to_be_visible()
    await expect(page.get_by_role("progressbar")).to_be_hidden()
    await page.get_by_role("button", name="Plan", exact=True).click()
    outcome = page.get_by_text("The goal needs more than 60 judgments per item")
    await expect(outcome).to_be_visible(timeout=120_000)  # 20 simulated campaigns take minutes on a busy machine
    assert "at_once=3" in page.url
    assert await violations(page) == ""


async def test_judgments_per_item_are_chosen_on_the_curve_of_the_plan(enter: Enter, task: Callable[..., Any]) -> None:
    draft = await task(goal="intervals", goal_width=30, judgments_per_item=2, launched=False)
    page = await enter()
    await page.goto(f"{draft.origin}/admin/campaigns/{draft.row.slug}/plan")
    await page.get_by_role("button", name="Plan", exact=True).click()
    slider = page.get_by_role("slider")
    await expect(page.get_by_role("status").filter(has_text="simulated campaigns reach the goal")).to_be_visible()
    await slider.focus()
    await page.keyboard.press("Home")
    await expect(page.get_by_role("button", name="Use 1", exact=True)).to_be_visible()
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_label("Judgments per item", exact=True)).to_have_value("2")
    curve = await bounding_box(page.locator(".plan svg"))
    await page.mouse.move(curve["x"] + curve["width"] * 0.2, curve["y"] + curve["height"] / 2)
    await page.mouse.down()
    await page.mouse.move(curve["x"] + curve["width"] * 0.95, curve["y"] + curve["height"] / 2)
    await page.mouse.up()
    chosen = await slider.get_attribute("max")
    await expect(page.get_by_label("Judgments per item", exact=True)).to_have_value(str(chosen))
    assert await violations(page) == ""
    await page.get_by_role("button", name=f"Use {chosen}", exact=True).click()
    await expect(page.get_by_text("Settings saved.")).to_be_visible()


async def test_a_plan_is_made_without_javascript(
    plain: Callable[..., Any], cookie: Any, task: Callable[..., Any]
) -> None:
    draft = await task(launched=False, goal="intervals", goal_width=30, minutes_per_hit=2)
    page = await plain(f"/admin/campaigns/{draft.row.slug}/plan", cookie)
    assert await page.press("Plan") == []
    assert "with 5 annotators at the same time" in page.text


async def test_a_campaign_is_set_up_without_javascript(enter: Enter) -> None:
    page = await enter(java_script_enabled=False)
    await create_by_form(page, "Verbs without scripts")
    await page.get_by_label("File", exact=True).set_input_files(FILE)
    await page.get_by_label("Column that annotators see").fill("gloss")
    await page.get_by_role("button", name="Import items").click()
    await page.wait_for_url("**/items?done=imported")
    await launch(page)
    await page.get_by_role("link", name="Finish …").click()
    await page.get_by_role("button", name="Finish campaign").click()
    await page.wait_for_url("**?done=finished")


async def test_a_mistake_in_the_settings_is_shown_and_led_to(enter: Enter) -> None:
    page = await enter()
    await create(page, "Mistaken")
    await page.get_by_role("link", name="Settings", exact=True).click()
    await page.get_by_role("link", name="Advanced").click()
    await page.get_by_label("Prior", exact=True).fill("-1, 1")
    await page.get_by_role("button", name="Save settings").click()
    await page.get_by_role("alert").get_by_role("link", name="Prior", exact=True).click()
    await expect(page.get_by_label("Prior", exact=True)).to_have_value("-1, 1")
    assert await violations(page) == ""


async def test_unsaved_settings_are_asked_about_before_the_page_is_left(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter()
    draft = await task(launched=False)
    asked: list[str] = []

    async def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        await dialog.dismiss()

    page.on("dialog", stay)
    address = f"{draft.origin}/admin/campaigns/{draft.row.slug}"
    await page.goto(f"{address}/settings/question")
    await page.get_by_label("Name", exact=True).press_sequentially("!")
    await expect(page.get_by_text("Not saved yet")).to_be_visible()
    async with page.expect_event("dialog"):
        await page.get_by_role("navigation", name="Lexical frequency").get_by_role("link", name="Items").click()
    await expect(page).to_have_url(f"{address}/settings/question")
    await page.get_by_label("Name", exact=True).fill(draft.row.name)
    await expect(page.get_by_text("Not saved yet")).to_have_count(0)
    await page.get_by_label("Name", exact=True).fill("Frequency")
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**/settings/question?done=saved")
    await page.get_by_role("navigation", name="Frequency").get_by_role("link", name="Items").click()
    await page.wait_for_url("**/items")
    assert asked == ["beforeunload"]


async def test_a_hit_follows_the_form_with_every_way_of_asking(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter()
    draft = await task(["abide", "accrue", "accuse", "achieve", "adjust"], launched=False)
    await page.goto(f"{draft.origin}/admin/campaigns/{draft.row.slug}/settings/question")
    shown = page.frame_locator("iframe[name=seen]")
    await page.get_by_label("Question", exact=True).fill("How loud?")
    await page.get_by_label("Items per task").fill("3")
    await page.get_by_label("Label at 100", exact=True).fill("deafening")
    await expect(shown.get_by_text("deafening", exact=True)).to_be_visible()
    await expect(shown.get_by_role("slider")).to_have_count(3)
    for name in DESIGNS:
        await page.locator(f"input[value={name}]").check()
        await expect(
            shown.locator(f"fieldset.hit.ready:has([name^={FIRST_FIELD.get(name, 'score-')}])")
        ).to_be_visible()
        await expect(shown.locator("legend")).to_have_text("How loud?")
    await page.locator("input[value=pairwise]").check()
    await page.get_by_role("checkbox", name="Allow ties").uncheck()
    await expect(shown.get_by_text("about equal")).to_have_count(0)
    await shown.get_by_role("radio").first.check()
    await shown.get_by_role("button", name="Submit and next").click()
    await expect(shown.get_by_text("1 task done")).to_be_visible()  # checked with the settings as the form has them
    page.on("dialog", lambda dialog: dialog.accept())
    await page.go_back()
    await page.wait_for_url("**/admin")  # the frame left nothing to go back through


async def test_the_totals_follow_what_is_typed(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter()
    draft = await task(launched=False, items_per_hit=5, judgments_per_item=1)
    await page.goto(f"{draft.origin}/admin/campaigns/{draft.row.slug}/settings/how-much")
    tasks = page.locator(".totals div", has_text="Tasks").locator("dd")
    before = int(await tasks.inner_text())
    await page.get_by_label("Judgments per item", exact=True).fill("10")
    await expect(tasks).to_have_text(str(10 * before))
    page.on("dialog", lambda dialog: dialog.accept())


async def test_a_hit_follows_the_form_without_javascript_when_it_is_asked_to(enter: Enter) -> None:
    page = await enter(java_script_enabled=False)
    await page.goto(page.url + "/campaigns/new")
    await page.locator("input[value=magnitude]").check()
    await page.get_by_label("Question", exact=True).fill("How loud?")
    await page.get_by_role("button", name="Update the preview").click()
    shown = page.frame_locator("iframe[name=seen]")
    await expect(shown.get_by_text("How loud?")).to_be_visible()
    await expect(shown.get_by_text("An item of average quality")).to_be_visible()
    await expect(page.get_by_label("Question", exact=True)).to_have_value("How loud?")


HIDDEN_FOCUS = """() => {
  const fields = document.querySelectorAll(".sections :is(input:not([type=hidden]), select, textarea, summary)");
  return [...fields].filter((field) => {
    field.focus();
    field.scrollIntoView({ block: "nearest" });
    const box = field.getBoundingClientRect();
    if (!box.width || document.activeElement !== field) return false;
    const seen = document.elementFromPoint(box.left + box.width / 2, box.top + Math.min(box.height / 2, 12));
    return seen?.closest(".submit");
  }).map((field) => field.outerHTML);
}"""


async def test_the_buttons_of_a_step_stay_in_sight_and_hide_no_field_that_has_the_focus(enter: Enter) -> None:
    page = await enter()
    await page.goto(page.url + "/campaigns/new")
    for width, height in [(390, 844), (800, 900), (1280, 500), (1280, 900)]:
        await page.set_viewport_size({"width": width, "height": height})
        assert await page.evaluate(HIDDEN_FOCUS) == [], (width, height)
        await page.evaluate("scrollTo(0, 0)")
        await expect(page.get_by_role("button", name="Create draft")).to_be_in_viewport()


async def test_a_password_of_ones_own_logs_in(enter: Enter, origin: str) -> None:
    page = await enter()
    await page.goto(f"{origin}/admin/people")
    await page.get_by_label("Login name of a new researcher").fill("grace")
    await page.get_by_role("button", name="Add researcher").click()
    link = await page.locator("#new-link").inner_text()
    await page.get_by_role("button", name="Log out", exact=True).click()
    await page.goto(link)
    await page.get_by_role("button", name="Log in with this link").click()
    await page.goto(f"{origin}/admin/account")
    await page.get_by_label("New password").fill("ten small verbs")
    await page.get_by_role("button", name="Set password").click()
    await page.get_by_text("Password changed").wait_for()
    await page.get_by_role("button", name="Log out", exact=True).click()
    await page.goto(f"{origin}/admin/account")
    await page.get_by_label("Name").fill("grace")
    await page.get_by_label("Password").fill("ten small verbs")
    await page.get_by_role("button", name="Log in").click()
    await page.wait_for_url("**/admin/account")


async def test_copying_puts_the_link_on_the_clipboard(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter(permissions=["clipboard-read", "clipboard-write"])
    running = await task()
    await page.goto(f"{running.origin}/admin/campaigns/{running.row.slug}/share")
    await page.get_by_role("button", name="Copy Annotator link").click()
    await page.get_by_role("button", name="Copied").wait_for()
    assert await page.evaluate("navigator.clipboard.readText()") == running.link
    again = page.get_by_role("button", name="Copy Annotator link")
    assert (
        await again.locator(".visually-hidden").inner_text() == "Annotator link"
    )  # words for screen readers stay unseen


async def test_a_browser_that_denies_the_clipboard_leaves_the_text_selected_and_a_message(
    enter: Enter, task: Callable[..., Any]
) -> None:
    page = await enter()
    running = await task(prolific_completion_code="CODE1")
    await page.goto(f"{running.origin}/admin/campaigns/{running.row.slug}/share")
    denial = "new DOMException('Write permission denied.', 'NotAllowedError')"
    await page.evaluate(f"() => {{ navigator.clipboard.writeText = () => Promise.reject({denial}); }}")
    await page.get_by_text("Other ways to take part").click()
    message = page.get_by_role("alert").filter(has_text="Your browser did not allow copying. The text is selected")
    for button, copied in [("Annotator link", running.link), ("the code of people who have finished", "CODE1")]:
        await page.get_by_role("button", name=f"Copy {button}").click()
        await wait_for_value(lambda: page.evaluate("getSelection().toString()"), copied)
        await expect(message).to_have_count(1)


WIDTH_OUT_OF_SIGHT = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def nothing_to_object_to(page: Page, *addresses: str) -> None:
    for address in addresses:
        await page.goto(address)
        await nothing_at_any_width(page)


async def nothing_at_any_width(page: Page, **options: Any) -> None:
    """On a desk's screen and on a phone's."""
    async for width in each_width(page, 1280, 390):
        assert await violations(page, **options) == "", (page.url, width)
        assert await page.evaluate(WIDTH_OUT_OF_SIGHT) == 0, (page.url, width)


async def test_no_page_of_a_running_campaign_has_a_violation_or_scrolls_sideways(
    enter: Enter, task: Callable[..., Any]
) -> None:
    page = await enter()
    running = await task([f"verb {k}" for k in range(60)], alert_webhook="https://hook.example/")
    home = f"{running.origin}/admin"
    campaign = f"{home}/campaigns/{running.row.slug}"
    await page.goto(campaign)
    for change in ("Pause", "Resume"):  # so that there is a change to show
        await page.get_by_role("button", name=change).click()
    await nothing_to_object_to(page, home, f"{home}/log", *(f"{campaign}/{part}" for part in PAGES))


async def test_no_page_of_a_draft_has_a_violation_or_scrolls_sideways(enter: Enter, task: Callable[..., Any]) -> None:
    draft = await task(launched=False)
    campaign = f"{draft.origin}/admin/campaigns/{draft.row.slug}"
    await nothing_to_object_to(await enter(), *(f"{campaign}/{part}" for part in (*PAGES, "delete/confirm")))


async def test_no_page_outside_of_campaigns_has_a_violation_or_scrolls_sideways(enter: Enter, origin: str) -> None:
    page = await enter()
    parts = ["account", "campaigns/new/question", "campaigns/none/items"]
    forms = ["campaigns/new", "campaigns/new?template=word-senses"]
    await nothing_to_object_to(page, *(f"{origin}/admin/{part}" for part in parts + forms))
    await page.context.clear_cookies()
    await nothing_to_object_to(page, f"{origin}/admin", f"{origin}{login.one_time_login_path('x')}")


async def test_the_api_reference_has_no_violation_and_does_not_scroll_sideways(enter: Enter, origin: str) -> None:
    page = await enter()
    await page.goto(f"{origin}/admin/api")
    assert await violations(page, colours=False) == ""
    async for width in each_width(page, 390, 1280):
        assert await page.evaluate(WIDTH_OUT_OF_SIGHT) == 0, width
    # Its calls look alike, and to look at the colours of all takes a minute.
    alike = ".calls li:nth-child(n + 9), .call:nth-of-type(n + 9):nth-last-of-type(n + 9)"
    await page.evaluate("alike => document.querySelectorAll(alike).forEach((call) => call.remove())", alike)
    assert 0 < await page.locator(".call").count() < 20
    await nothing_at_any_width(page)


@pytest.mark.parametrize("width", [390, 320])
async def test_on_a_phone_all_pages_of_a_campaign_and_all_steps_are_seen_without_scrolling_sideways(
    enter: Enter, task: Callable[..., Any], width: int
) -> None:
    page = await enter(viewport={"width": width, "height": 844})
    draft = await task(launched=False)
    campaign = f"{draft.origin}/admin/campaigns/{draft.row.slug}"
    await page.goto(f"{campaign}/export")
    tabs = page.get_by_role("navigation", name=draft.row.name).get_by_role("link")
    await expect(page.locator(".tabs [aria-current]")).to_have_text("Export")
    await page.goto(f"{campaign}/settings/quality")
    steps = page.get_by_role("navigation", name="Steps").get_by_role("listitem")
    await expect(page.locator(".rail [aria-current]")).to_have_text("Quality")
    assert await tabs.count() >= 11
    assert await steps.count() == 7
    for place in (*await tabs.all(), *await steps.all()):
        await expect(place).to_be_in_viewport(ratio=0.95)  # but for parts of a pixel
    await page.get_by_role("link", name="Participants’ visit", exact=True).click()
    await expect(page.locator(".rail [aria-current]")).to_have_text("Participants’ visit")


async def test_another_way_of_asking_shows_its_own_settings_and_the_first_one_finds_its_own_again(enter: Enter) -> None:
    page = await enter()
    await create(page, "Ways")
    await page.get_by_role("link", name="Settings", exact=True).click()
    await page.get_by_role("link", name="Advanced").click()
    await expect(page.get_by_label("Epsilon")).to_be_hidden()
    await page.get_by_label("Update law", exact=True).select_option("ra")
    await expect(page.get_by_label("Epsilon")).to_be_visible()
    await page.get_by_label("Update law", exact=True).select_option("easl")
    await page.get_by_role("link", name="Question", exact=True).click()
    design = page.get_by_role("group", name="Design")
    await page.get_by_label("Items per task").fill("3")
    await page.get_by_label("Label at 100", exact=True).fill("deafening")
    await expect(page.get_by_text("How often is this verb used?").first).to_be_visible()
    await design.get_by_label("Best-worst scaling").check()
    await expect(page.get_by_label("Label at 100", exact=True)).to_be_hidden()
    await expect(page.get_by_label("Items per task")).to_have_value("")
    await design.get_by_label("Ranking with scores").check()
    await expect(page.get_by_label("Items per task")).to_have_value("3")
    await expect(page.get_by_label("Label at 100", exact=True)).to_have_value("deafening")
    await design.get_by_label("Best-worst scaling").check()
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**done=saved")
    await page.get_by_role("link", name="Advanced").click()
    await expect(page.get_by_text("mu, sigma2 of the Normal").filter(visible=True)).to_have_count(1)
    laws = page.get_by_label("Update law", exact=True).locator("option")
    assert await laws.evaluate_all("(options) => options.map(({ value }) => value)") == [
        "",
        "ra",
        "trueskill",
        "trueskill-aware",
    ]


async def test_a_number_of_items_entered_for_the_chosen_way_of_asking_is_saved(enter: Enter) -> None:
    page = await enter()
    await page.goto("/".join(page.url.split("/")[:3]) + "/admin/campaigns/new")
    await page.get_by_label("Question", exact=True).fill("How concrete is this word?")
    await page.get_by_role("group", name="Design").get_by_label("Rating").check()
    await page.get_by_label("Items per task").fill("5")
    await page.get_by_role("button", name="Create draft").click()
    await page.wait_for_url("**/settings/visit?done=created")
    await page.get_by_role("link", name="Question", exact=True).click()
    await expect(page.get_by_label("Items per task")).to_have_value("5")


async def test_a_page_is_shown_when_its_scripts_have_come_so_that_no_press_is_missed(enter: Enter) -> None:
    page = await enter()
    await create(page, "Slow scripts")

    async def come_late(route: Route) -> None:
        await asyncio.sleep(0.7)
        await route.continue_()

    await page.route("**/static/admin/settings.js*", come_late)
    await page.get_by_role("link", name="Settings", exact=True).click()
    await page.get_by_label("Best-worst scaling").check()
    await expect(page.get_by_label("Items per task")).to_have_value("")


async def test_a_need_shows_its_numbers_and_sets_goal_and_rule(enter: Enter) -> None:
    page = await enter()
    await create(page, "Needs")
    await page.get_by_role("link", name="Settings", exact=True).click()
    await page.get_by_role("link", name="How much").click()
    number = page.get_by_label("Best items", exact=True).locator("visible=true")
    await expect(number).to_have_count(0)
    await page.get_by_label("The best items").check()
    await number.fill("7")
    assert await violations(page) == ""
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**done=saved")
    await expect(page.get_by_label("The best items")).to_be_checked()
    await page.get_by_role("link", name="Advanced").click()
    await expect(page.get_by_label("Selection rule", exact=True)).to_have_value("best")
    await expect(page.get_by_text("Chosen by “The best items” under How much.")).to_be_visible()


async def test_changes_of_a_launched_campaign_are_counted_and_listed_before_they_are_saved(
    enter: Enter, task: Callable[..., Any]
) -> None:
    page = await enter()
    running = await task(judgments_per_item=4)
    await page.goto(f"{running.origin}/admin/campaigns/{running.row.slug}/settings/how-much")
    await page.get_by_label("Judgments per item").fill("6")
    await page.get_by_label("When the goal is reached").select_option("pause")
    await expect(page.get_by_text("2 changes not saved yet")).to_be_in_viewport()
    await expect(page.locator(".changes li")).to_have_text(
        ["When the goal is reached: Only alert me → Pause the campaign", "Judgments per item: 4 → 6"]
    )
    assert await violations(page) == ""
    await page.get_by_role("button", name="Save settings").click()
    await page.wait_for_url("**done=saved")
    await expect(page.get_by_label("Judgments per item")).to_have_value("6")


@pytest.mark.parametrize("launched", [False, True])
async def test_only_the_numbers_of_the_chosen_goal_are_asked_for(
    enter: Enter, task: Callable[..., Any], launched: bool
) -> None:
    page = await enter()
    campaign = await task(goal="best", best_items=2, rule="easl", launched=launched)
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/settings/how-much")
    shown = page.locator(".need:has(input[value=custom])" if not launched else "form.settings")
    titles = ["How sure (%)", "Negligible differences (points)", "Narrow intervals (± points)", "Agreement of halves"]
    for goal, numbers in (
        ("best", (1, 1, 0, 0)),
        ("intervals", (1, 0, 1, 0)),
        ("halves", (0, 0, 0, 1)),
        ("none", (0,) * 4),
    ):
        await shown.get_by_label("Goal", exact=True).select_option(goal)
        for title, is_shown in zip(titles, numbers, strict=True):
            await expect(shown.get_by_label(title, exact=True)).to_be_visible(visible=bool(is_shown))
    page.on("dialog", lambda dialog: dialog.accept())


async def test_people_get_links_of_their_own(enter: Enter, task: Any) -> None:
    campaign = await task()
    page = await enter()
    await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/share")
    await page.get_by_text("Other ways to take part").click()
    await page.get_by_role("link", name="Personal links").click()
    await page.get_by_label("Or names and mail addresses").fill("Ann\nbea@example.org")
    await page.get_by_role("button", name="Create links").click()
    await expect(page.get_by_text("2 people have a link (0 used so far).")).to_be_visible()
    await nothing_at_any_width(page)
    if folder := os.environ.get("EASEL_PICTURES"):
        async for width in each_width(page, 1280, 390):
            await page.screenshot(path=f"{folder}/people-{width}.png", full_page=True)
        await page.goto(f"{campaign.origin}/admin/campaigns/{campaign.row.slug}/share")
        async for width in each_width(page, 1280, 390):
            await page.screenshot(path=f"{folder}/share-{width}.png", full_page=True)


async def test_an_older_link_to_a_setting_leads_to_the_step_that_has_it(enter: Enter, task: Callable[..., Any]) -> None:
    page = await enter()
    running = await task()
    address = f"{running.origin}/admin/campaigns/{running.row.slug}"
    await page.goto(f"{address}/edit#prolific_completion_code")
    await page.wait_for_url(f"{address}/settings/visit#prolific_completion_code")
    await expect(page.get_by_label("Prolific completion code")).to_be_in_viewport()
