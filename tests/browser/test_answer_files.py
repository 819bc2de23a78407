"""A researcher imports another tool's file: the page proposes its columns and takes it with them."""

import os
from collections.abc import Callable
from typing import Any

from playwright.async_api import expect

from tests.browser.acts import violations

HEADER = "AssignmentId,WorkerId,AssignmentStatus,Input.verb,Answer.rating\n"
ROWS = "A1,W1,Approved,abide,70\nA2,W2,Rejected,run,0\nA3,W2,Approved,run,30\n"
BATCH: Any = {"name": "batch.csv", "mimeType": "text/csv", "buffer": (HEADER + ROWS).encode()}


async def test_columns_are_proposed_and_filled_in_and_the_receipt_tells_what_was_left_out(
    visit: Callable[..., Any], cookie: Any, task: Callable[..., Any]
) -> None:
    page = (await visit()).page
    await page.context.add_cookies([cookie])
    running = await task(judgments_per_item=9)
    await page.goto(f"{running.origin}/admin/campaigns/{running.row.slug}/items")
    item = page.get_by_label("Column: Item")
    await expect(item).to_be_hidden()
    await page.get_by_label("File", exact=True).set_input_files(BATCH)
    await page.get_by_role("heading", name="What the first answers become").wait_for()
    await expect(item).to_have_value("Input.verb")
    await expect(page.get_by_label("Column: Answer", exact=True)).to_have_value("Answer.rating")
    assert await violations(page) == ""
    if folder := os.environ.get("EASEL_SHOTS"):
        for width, scheme in ((1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")):
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": 900})
            await page.screenshot(path=f"{folder}/options-{width}-{scheme}.png", full_page=True)
        await page.set_viewport_size({"width": 1280, "height": 900})
    await page.get_by_role("button", name="Import 2 responses").click()
    await page.get_by_text("Imported 2 responses on 2 items.").wait_for()
    await page.get_by_text("Tasks left out because they were rejected, cancelled or ignored: 1.").wait_for()
    assert len(await running.responses()) == 2
    if folder:
        await page.screenshot(path=f"{folder}/receipt.png")
