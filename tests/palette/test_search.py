"""The search over everything: what it finds, and that it shows a researcher only what their role allows."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import update

from app.accounts import shared_links
from app.database.tables import campaigns
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, execute_sql, fetch_value


async def entries_for(client, words="", campaign=None):
    """Return the rows as (group, title)."""
    parameters = {"q": words} | ({"campaign": campaign.slug} if campaign else {})
    reply = await client.get("/admin/search", params=parameters, headers={"accept": "application/json"})
    assert reply.status_code == 200, reply.text
    return [(entry["group"], entry["title"]) for entry in reply.json()["entries"]]


async def groups_for(client, words, campaign):
    return {group for group, _ in await entries_for(client, words, campaign)}


@pytest.fixture
async def verbs(engine):
    return await create_running_campaign(engine, name="Verbs")


async def test_a_researcher_finds_campaigns_pages_settings_items_annotators_and_help(researcher, engine, verbs):
    await create_annotator(engine, verbs, "ann", "api")
    assert ("Campaigns", "Verbs") in await entries_for(researcher, "verb")
    assert ("Verbs", "Quality") in await entries_for(researcher, "QUAL", verbs)
    assert ("Settings", "Judgments per item") in await entries_for(researcher, "item judgments", verbs)
    assert ("Items", await fetch_value(engine, "SELECT shown FROM items WHERE number = 1")) in await entries_for(
        researcher, await fetch_value(engine, "SELECT external_id FROM items WHERE number = 1"), verbs
    )
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators")
    assert ("Annotators", "A1") in await entries_for(researcher, "a1", verbs)
    assert ("Annotators", "A1") in await entries_for(researcher, pseudonym, verbs)
    assert ("Help", "Find a campaign") in await entries_for(researcher, "find a campaign")
    assert ("Easel", "Account") in await entries_for(researcher, "account")


async def test_every_row_opens_a_page(researcher, engine, verbs):
    await create_annotator(engine, verbs, "ann", "api")
    for words in ("", "a", "1", "goal"):
        reply = await researcher.get(
            "/admin/search", params={"q": words, "campaign": verbs.slug}, headers={"accept": "application/json"}
        )
        for entry in reply.json()["entries"]:
            page = await researcher.get(entry["url"], follow_redirects=True)
            assert page.status_code == 200, entry


async def test_without_words_there_are_the_pages_and_the_newest_campaigns(researcher, engine, verbs):
    await create_running_campaign(engine, name="Nouns")
    found = await entries_for(researcher, "", verbs)
    assert found[0] == ("Verbs", "Overview")
    assert [title for group, title in found if group == "Campaigns"] == ["Nouns", "Verbs"]
    assert {group for group, _ in found} == {"Verbs", "Campaigns", "Easel"}


async def test_the_rows_are_the_tabs_that_the_campaign_shows(app, client, verbs):
    await log_in_with_role(app, client, "guest", "viewer", verbs)
    titles = [title for group, title in await entries_for(client, "", verbs) if group == "Verbs"]
    assert titles == ["Overview", "Plan", "Analysis"]


async def test_a_viewer_finds_items_but_no_settings_and_no_annotators(app, client, engine, verbs):
    await create_annotator(engine, verbs, "ann", "api")
    await execute_sql(engine, "UPDATE items SET shown = 'a pass mark' WHERE number = 1")
    await log_in_with_role(app, client, "guest", "viewer", verbs)
    assert "Items" in await groups_for(client, "pass mark", verbs)
    assert "Settings" not in await groups_for(client, "pass mark", verbs)
    assert "Annotators" not in await groups_for(client, "a1", verbs)
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators")
    assert "Annotators" not in await groups_for(client, pseudonym, verbs)


async def test_a_viewer_finds_no_items_of_a_draft(app, client, engine, verbs):
    await execute_sql(engine, "UPDATE items SET shown = 'gallop' WHERE number = 1")
    async with engine.begin() as connection:
        await connection.execute(update(campaigns).values(status="draft", launched_at=None))
    await log_in_with_role(app, client, "guest", "viewer", verbs)
    assert "Items" not in await groups_for(client, "gallop", verbs)


async def test_a_manager_of_one_campaign_finds_nothing_of_another(app, client, engine, verbs):
    other = await create_running_campaign(engine, name="Secret nouns")
    await create_annotator(engine, other, "ann", "api")
    await log_in_with_role(app, client, "guest", "manager", verbs)
    assert "Settings" in await groups_for(client, "pass mark", verbs)
    for words in ("", "nouns", "a1", "1", "pass mark", "overview"):
        found = await entries_for(client, words, other)
        assert found == await entries_for(client, words), words
        assert not [title for _, title in found if title == "Secret nouns"]


async def test_a_guest_finds_no_pages_that_need_more(app, client, verbs):
    await log_in_with_role(app, client, "guest")
    titles = [title for group, title in await entries_for(client) if group == "Easel"]
    assert titles == ["Campaigns", "Account", "Help", "API"]
    assert await groups_for(client, "verbs", verbs) == {"Help"}


async def test_strangers_and_read_only_links_are_sent_to_the_login(client, engine, verbs):
    assert (await client.get("/admin/search")).status_code == 303
    async with engine.begin() as connection:
        secret = await shared_links.create_shared_link_and_return_secret(
            connection, verbs, "", maker_name="ada", now=datetime.now(UTC)
        )
    await client.get(f"/shared/{secret}")
    assert (await client.get("/admin/search", params={"campaign": verbs.slug})).status_code == 303
    assert "/admin/search" not in (await client.get(f"/admin/campaigns/{verbs.slug}")).text


async def test_signs_of_patterns_are_ordinary_characters_and_lists_are_short(researcher, engine, verbs):
    await execute_sql(engine, "UPDATE items SET shown = '100 % sure_' WHERE number = 1")
    await create_annotator(engine, verbs, "ann", "api")
    for words in ("%", "_", "% sure_"):
        found = await entries_for(researcher, words, verbs)
        assert [title for group, title in found if group == "Items"] == ["100 % sure_"], words
        assert not [title for group, title in found if group == "Annotators"], words
    for number in range(8):
        await create_running_campaign(engine, name=f"Many {number}")
    found = await entries_for(researcher, "many")
    assert len([title for group, title in found if group == "Campaigns"]) == 6


async def test_too_many_words_and_a_nul_are_refused(researcher):
    for words in ("x" * 201, "a\0b"):
        reply = await researcher.get("/admin/search", params={"q": words}, headers={"accept": "application/json"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")


async def test_the_page_lists_the_same_rows_and_keeps_the_campaign(researcher, verbs):
    page = (await researcher.get("/admin/search", params={"q": "<pass>", "campaign": verbs.slug})).text
    assert 'value="&lt;pass&gt;"' in page
    assert f'name="campaign" value="{verbs.slug}"' in page
    page = (await researcher.get("/admin/search", params={"q": "pass mark", "campaign": verbs.slug})).text
    assert "Pass mark (%)" in page
    assert f"/admin/search?campaign={verbs.slug}" in page
