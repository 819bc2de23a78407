"""Items that are more than text: how annotators see them, and how they report broken files."""

import re

import pytest

from app.annotation.hits import media_report
from app.annotation.platforms.assignments import AssignmentId
from app.database.session import borrow_autocommit_driver
from tests.annotation.hits.campaigns import NOW, create_annotator, fetch_value, try_to_lease_hit
from tests.campaigns.drafts import apply_action, create_draft, import_items
from tests.media.files import png, with_files

FIVE = {f"{name}.png": png(grey=k) for k, name in enumerate("abcde")}
REPORTS = "SELECT count(*) FROM media_reports"


async def started(client, campaign):
    page = await client.post(f"/link/{campaign.link_key}", follow_redirects=True)
    assert page.status_code == 200
    return page


async def test_images_are_shown_from_addresses_that_say_nothing_of_their_names(engine, client):
    campaign = await with_files(engine, FIVE, content="image")
    shown: list[str] = []
    for page in (await started(client, campaign), await client.get(f"/mturk/{campaign.link_key}")):
        shown = re.findall(r'<img src="(/media/[0-9a-f]{32})" alt="Image"', page.text)
        assert len(set(shown)) == 5
        assert ".png" not in page.text
        assert "img-src 'self' data:;" in page.headers["content-security-policy"]
    assert (await client.get(shown[0])).status_code == 200


async def test_a_page_may_load_from_elsewhere_only_where_the_campaign_allows_it(engine, client):
    campaign = await create_draft(engine, content="image", https_media=True)
    await import_items(engine, campaign, "id,text\n" + "".join(f"{k},https://e.org/{k}.png\n" for k in range(5)))
    page = await started(client, await apply_action(engine, campaign))
    assert page.headers["content-security-policy"].startswith("img-src 'self' data: https:; media-src 'self' https:; ")
    assert 'src="https://e.org/1.png"' in page.text


async def test_source_and_reference_stand_beside_the_items(engine, client):
    campaign = await create_draft(engine, source_column="de", reference_column="en", differences="reference")
    rows = "".join(f"{k},ein Haus,a house {k},a house\n" for k in range(5))
    await import_items(engine, campaign, "id,de,text,en\n" + rows)
    page = await started(client, await apply_action(engine, campaign))
    assert page.text.count("ein Haus") == 1
    assert page.text.count("<ins>") == 5


async def test_what_does_not_load_is_reported_once_for_each_annotator_and_item(engine):
    campaign = await with_files(engine, FIVE, content="image")
    first, second = [await create_annotator(engine, campaign, name) for name in ("w1", "w2")]
    hit = await try_to_lease_hit(engine, first)
    async with borrow_autocommit_driver(engine) as connection:
        for who in (first, first, second):
            await media_report.store_media_report(connection, who, hit.id, hit.items[0], now=NOW)
        await media_report.store_media_report(connection, first, hit.id, 99, now=NOW)
        await media_report.store_media_report(
            connection, AssignmentId(first.campaign_id, 10**9), hit.id, hit.items[1], now=NOW
        )
    assert await fetch_value(engine, REPORTS) == 1


async def test_without_a_script_a_report_keeps_what_was_entered_and_researchers_see_it(engine, client, researcher):
    campaign = await with_files(engine, FIVE, content="image")
    page = await started(client, campaign)
    fields = dict(re.findall(r'name="(token|hit)" value="([^"]*)"', page.text))
    item = re.findall(r'name="broken" value="(\d+)"', page.text)[0]
    again = await client.post(
        str(page.url.copy_with(query=None)), data=fields | {"broken": item, f"score-{item}": "37"}
    )
    assert "Thank you, that is reported" in again.text
    assert 'value="37"' in again.text
    assert await fetch_value(engine, REPORTS) == 1
    shown = await researcher.get(f"/admin/campaigns/{campaign.slug}/items")
    assert "Did not load for 1 annotator." in shown.text
    assert shown.text.count("/media/") == 5


@pytest.mark.parametrize("content", ["text", "image"])
async def test_items_can_be_tried_as_they_will_be_seen(engine, researcher, content):
    campaign = await with_files(engine, FIVE, content="image") if content == "image" else await create_draft(engine)
    page = await researcher.get(f"/admin/campaigns/{campaign.slug}/try/hit")
    assert page.text.count('<img src="/media/') == (5 if content == "image" else 0)
