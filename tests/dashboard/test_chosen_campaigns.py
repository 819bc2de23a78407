"""Several campaigns are archived, restored, tagged or deleted at once, each as the role there allows."""

import re
from html import unescape

import pytest

from app.accounts import members
from app.campaigns import lifecycle
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.accounts.reaching import log_in_with_role
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows, fetch_value

CHOSEN = "/admin/campaigns/chosen"

pytestmark = pytest.mark.usefixtures("app")


async def create_campaign(engine, name, *actions, launched=True, **settings):
    campaign = await create_running_campaign(engine, launched=launched, name=name, **settings)
    async with engine.begin() as connection:
        for action in actions:
            await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, action, now=NOW)
    return campaign


async def create_rehearsal(engine, campaign):
    async with engine.begin() as connection:
        return await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW, is_rehearsal=True)


@pytest.fixture
async def campaigns(engine):
    """Create a draft, a finished and a running campaign."""
    draft = await create_campaign(engine, "Nouns", launched=False, tags=["pilot"])
    finished = await create_campaign(engine, "Verbs", "finish", tags=["German"])
    return draft, finished, await create_campaign(engine, "Adverbs")


async def send(client, action, *chosen, **more):
    return await client.post(CHOSEN, data={"action": action, "campaign": [one.slug for one in chosen]} | more)


async def archived_slugs(engine):
    rows = await fetch_rows(engine, "SELECT slug FROM campaigns WHERE archived_at IS NOT NULL ORDER BY slug")
    return [slug for (slug,) in rows]


async def tags(engine, campaign):
    async with engine.begin() as connection:
        return (await load_campaign_by_slug_or_refuse(connection, campaign.slug)).tags


async def test_ticked_campaigns_are_archived_and_one_press_restores_them(engine, researcher, campaigns):
    draft, finished, _ = campaigns
    reply = await send(researcher, "archive", draft, finished, view="?sort=name")
    assert reply.status_code == 303
    assert reply.headers["location"] == (f"/admin?sort=name&did=archive&count=2&changed={draft.id},{finished.id}")
    assert await archived_slugs(engine) == ["nouns", "verbs"]
    page = (await researcher.get(reply.headers["location"])).text
    assert "2 campaigns archived: Nouns, Verbs." in page
    undo = page.partition('<form class="notice undo"')[2].partition("</form>")[0]
    assert re.findall(r'name="campaign" value="([^"]*)"', undo) == ["nouns", "verbs"]
    reply = await send(researcher, "restore", draft, finished)
    assert await archived_slugs(engine) == []
    assert "2 campaigns back in the list." in (await researcher.get(reply.headers["location"])).text


async def test_an_undo_is_offered_only_while_there_is_something_to_undo(engine, researcher, campaigns):
    draft, finished, _ = campaigns
    page = (await researcher.get(f"/admin?did=archive&count=2&changed={draft.id},{finished.id},0")).text
    assert "notice undo" not in page
    changed = ("nouns", "%00", "9" * 30, "-1")
    for odd in (
        "did=archive&count=x",
        "did=nonsense&count=1",
        *(f"did=archive&count=1&changed={one}" for one in changed),
    ):
        assert (await researcher.get(f"/admin?{odd}")).status_code == 200


async def test_a_refused_campaign_is_named_with_its_reason_and_keeps_no_other_from_changing(
    engine, researcher, campaigns
):
    draft, _, running = campaigns
    reply = await send(researcher, "archive", draft, running)
    assert reply.status_code == 409
    page = unescape(reply.text)
    assert "1 campaign not changed:" in page
    assert "“Adverbs” is running, so it cannot be archived; pause or finish it first." in page
    assert "1 campaign archived: Nouns." in page
    assert await archived_slugs(engine) == ["nouns"]
    again = await send(researcher, "archive", draft)
    assert (again.status_code, "“Nouns” is archived already." in again.text) == (409, True)


async def test_each_change_of_chosen_campaigns_is_in_the_log(engine, researcher, campaigns):
    draft, finished, _ = campaigns
    await send(researcher, "archive", draft, finished)
    noted = "SELECT count(*) FROM audit_log WHERE action = 'campaign.archive'"
    assert await fetch_value(engine, noted) == 2


async def test_tags_are_added_to_and_removed_from_ticked_campaigns(engine, researcher, campaigns):
    draft, finished, running = campaigns
    reply = await send(researcher, "add-tags", draft, finished, running, tags="german, main")
    assert "Tags added to 3 campaigns." in (await researcher.get(reply.headers["location"])).text
    assert await tags(engine, draft) == ["pilot", "german", "main"]
    assert await tags(engine, finished) == ["German", "main"]
    await send(researcher, "remove-tags", draft, finished, tags="GERMAN")
    assert (await tags(engine, draft), await tags(engine, finished)) == (["pilot", "main"], ["main"])
    assert await tags(engine, running) == ["german", "main"]


async def test_no_campaign_gets_more_tags_than_it_may_have(engine, researcher):
    full = await create_campaign(engine, "Full", launched=False, tags=list("abcdefghij"))
    empty = await create_campaign(engine, "Empty", launched=False)
    reply = await send(researcher, "add-tags", full, empty, tags="A, k")
    assert (reply.status_code, "at most 10 tags" in reply.text) == (409, True)
    assert (await tags(engine, full), await tags(engine, empty)) == (list("abcdefghij"), ["A", "k"])


@pytest.mark.parametrize(
    ("action", "chosen", "fields", "status", "message"),
    [
        ("archive", 0, {}, 422, "Tick the campaigns first."),
        ("add-tags", 1, {"tags": " , "}, 422, "Enter one tag at least."),
        ("add-tags", 1, {"tags": "x" * 41}, 422, "at most 10 tags"),
        ("launch", 1, {}, 404, "Campaigns cannot “launch”."),
        ("archive", 101, {}, 422, "Choose at most 100 campaigns at once."),
    ],
)
async def test_an_impossible_request_changes_nothing_and_shows_the_list_with_the_reason(
    engine, researcher, campaigns, *, action, chosen, fields, status, message
):
    slugs = ["nouns", *(f"other-{k}" for k in range(200))][:chosen]
    reply = await researcher.post(CHOSEN, data={"action": action, "campaign": slugs} | fields)
    assert (reply.status_code, message in unescape(reply.text)) == (status, True)
    assert 'name="campaign" value="nouns"' in reply.text
    assert await archived_slugs(engine) == []


async def test_a_deletion_asks_first_and_says_which_campaigns_stay(engine, researcher, campaigns):
    draft, finished, running = campaigns
    rehearsal = await create_rehearsal(engine, draft)
    question = await send(researcher, "delete", draft, finished, running, rehearsal)
    page = unescape(question.text)
    assert question.status_code == 200
    assert '<h1 id="title">Delete 3 campaigns</h1>' in page
    assert "1 campaign will stay:" in page
    assert "“Adverbs” is running: only a draft, or a finished campaign without answers, can be deleted." in page
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 4
    named = re.findall(r'name="campaign" value="([^"]*)"', question.text)
    assert named == [draft.slug, finished.slug, rehearsal.slug]
    reply = await researcher.post(CHOSEN, data={"action": "delete", "sure": "yes", "campaign": named[1:]})
    assert "2 campaigns deleted." in (await researcher.get(reply.headers["location"])).text
    left = await fetch_rows(engine, "SELECT slug FROM campaigns ORDER BY slug")
    assert [slug for (slug,) in left] == ["adverbs", "nouns"]


async def test_a_rehearsal_is_neither_archived_nor_tagged(engine, researcher, campaigns):
    rehearsal = await create_rehearsal(engine, campaigns[0])
    for action in ("archive", "restore", "add-tags"):
        reply = await send(researcher, action, rehearsal, tags="main")
        assert (reply.status_code, "is a rehearsal, which can only be deleted" in reply.text) == (409, True), action


async def test_every_campaign_is_changed_only_if_the_role_there_allows_it(app, client, engine, campaigns):
    seen, changed, hidden = campaigns
    user, _ = await log_in_with_role(app, client, "guest", "viewer", seen)
    async with engine.begin() as connection:
        await members.try_to_insert_member(connection, changed, user, "manager", now=NOW)
    listed = (await client.get("/admin")).text
    assert re.findall(r'name="campaign" value="([^"]*)"', listed) == ["verbs"]
    for action, fields in (("archive", {}), ("add-tags", {"tags": "mine"}), ("delete", {"sure": "yes"})):
        reply = await send(client, action, seen, hidden, **fields)
        page = unescape(reply.text)
        assert reply.status_code == 409, action
        assert "Your role here is viewer, which does not let you change campaigns." in page
        assert "There is no campaign “adverbs”." in page
        assert "“Adverbs”" not in page, "its name is not told"
    question = unescape((await send(client, "delete", seen, hidden)).text)
    assert "None of these campaigns can be deleted" in question
    assert await fetch_value(engine, "SELECT count(*) FROM campaigns") == 3
    assert await archived_slugs(engine) == []
    await send(client, "archive", seen, changed, hidden)
    assert await archived_slugs(engine) == ["verbs"]


async def test_who_may_change_no_campaign_ticks_none(app, client, engine, campaigns):
    await log_in_with_role(app, client, "viewer")
    page = (await client.get("/admin")).text
    assert ("Nouns" in page, "chosen-campaigns" in page) == (True, False)


async def test_the_buttons_for_several_campaigns_wait_for_a_tick_if_there_is_one_campaign_only(engine, researcher):
    bar = '<form class="chosen-campaigns{}" id="chosen-campaigns"'
    await create_campaign(engine, "Nouns")
    assert bar.format(" until-ticked") in (await researcher.get("/admin")).text
    await create_campaign(engine, "Verbs")
    for query in ("", "?search=verbs"):
        assert bar.format("") in (await researcher.get(f"/admin{query}")).text
