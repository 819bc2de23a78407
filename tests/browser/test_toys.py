"""A design that brings no script: its plain form is sent, kept and shown again like every other."""

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import expect
from sqlalchemy.ext.asyncio import AsyncEngine

from tests import servers
from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows
from tests.browser.conftest import Task
from tests.toys import register

pytestmark = pytest.mark.slow


@pytest_asyncio.fixture
async def smileys(engine: AsyncEngine, database_url: str, tmp_path, monkeypatch) -> AsyncIterator[Task]:
    """A campaign of smileys on a server that has them."""
    register(monkeypatch.setitem)
    toys: dict[str, Any] = {"design": "smiley", "update_law": "smiles", "rule": "in_order", "items_per_hit": 3}
    campaign = await create_running_campaign(engine, items=6, judgments_per_item=4, **toys)
    environment = os.environ | {"DATABASE_URL": database_url}
    with servers.serving(environment, tmp_path / "said", "tests.browser.hasty:create_app_with_toys") as (_, origin):
        yield Task(engine, origin, campaign)


@pytest.mark.own_database
async def test_its_answers_are_sent_and_its_drafts_are_kept_and_it_works_without_scripts(smileys, visit, plain):
    page = (await visit()).page
    await page.goto(smileys.prolific())
    await page.get_by_role("group", name="verb 0").get_by_label("happy").check()
    await expect(page.locator(".status .message")).to_have_text("2 left")
    assert [*(await smileys.draft_saved()).values()] == [{"value": "2"}]
    await page.evaluate("sessionStorage.clear()")
    await page.reload()
    await expect(page.get_by_role("group", name="verb 0").get_by_label("happy")).to_be_checked()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#announcer")).to_have_text("Not finished yet: 2 left.")  # nothing was sent
    for item, face in (("verb 1", "sad"), ("verb 2", "so so")):
        await page.get_by_role("group", name=item).get_by_label(face).check()
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("1 task done")).to_be_visible()
    await expect(page.get_by_role("group", name="verb 3")).to_be_visible()
    ((items, faces, source),) = await fetch_rows(smileys.engine, "SELECT items, values, source FROM responses")
    assert dict(zip(items, faces, strict=True)) == {0: 2.0, 1: 0.0, 2: 1.0}
    assert source == "page"
    await check_form_without_scripts(smileys, plain)


async def check_form_without_scripts(smileys: Task, plain: Callable[..., Any]) -> None:
    """Let a second person answer the items that have the fewest judgments and open HITs."""
    page = await plain(smileys.prolific("p2", "s2"))
    for item, face in (("verb 4", "sad"), ("verb 5", "so so"), ("verb 0", "happy")):
        page.check(face, page.group(item))
    assert await page.press("Submit and next") == []
    assert "1 task done" in page.text
    stored = await fetch_rows(smileys.engine, "SELECT items, values, source FROM responses ORDER BY seq")
    items, faces, source = stored[1]
    assert dict(zip(items, faces, strict=True)) == {4: 0.0, 5: 1.0, 0: 2.0}
    assert source == "form"
