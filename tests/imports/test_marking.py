"""Items of a draft that become checks, and items again, on their pages."""

import re

import pytest

from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.api.conftest import api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import apply_action, create_draft, import_items

ITEMS = "id,text,alpha,beta\n" + "".join(f"v{k},verb {k},{k + 2},3\n" for k in range(4))
GOLD = {"item": "v1", "action": "gold", "expected": "80", "tolerance": "10"}


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, ITEMS, priors=True)
    return campaign


async def items_of(engine):
    return await fetch_rows(engine, "SELECT number, external_id, prior FROM items ORDER BY number")


async def mark(researcher, campaign, **said):
    return await researcher.post(f"/admin/campaigns/{campaign.slug}/items/checks", data=GOLD | said)


async def test_an_item_becomes_a_check_and_no_number_is_left_out(researcher, engine, campaign):
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text
    assert 'name="item" value="v1"' in page
    chosen = await researcher.post(f"/admin/campaigns/{campaign.slug}/items/chosen", data=GOLD)
    assert 'aria-label="Expected answer of v1"' in chosen.text
    assert (await mark(researcher, campaign)).status_code == 303
    checks = await fetch_rows(engine, "SELECT number, external_id, kind, shown, expected FROM check_items")
    assert checks == [(0, "v1", "gold", "verb 1", {"value": 80.0, "tolerance": 10.0})]
    assert [(row[0], row[1]) for row in await items_of(engine)] == [(0, "v0"), (1, "v2"), (2, "v3")]
    assert await fetch_value(engine, "SELECT has_checks FROM campaigns")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items?done=marked")).text
    assert "Marked as checks" in page
    assert "1 gold item; no task shows them until you set “Tasks with a check (%)”." in page
    assert 'v1 <span class="use">gold</span>' in page


async def test_it_becomes_an_item_again_with_its_prior_the_last_one(researcher, engine, campaign):
    before = await fetch_rows(engine, "SELECT fields FROM items WHERE external_id = 'v1'")
    await mark(researcher, campaign)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    assert re.search(r'name="item" value="v1"><button class="quiet" aria-label="Use v1 as an item again">', page)
    reply = await researcher.post(f"/admin/campaigns/{campaign.slug}/items/unmark", data={"item": "v1"})
    assert reply.status_code == 303, reply.text
    assert (await items_of(engine))[-1] == (3, "v1", [3.0, 3.0])
    assert await fetch_rows(engine, "SELECT fields FROM items WHERE external_id = 'v1'") == before
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0
    assert not await fetch_value(engine, "SELECT has_checks FROM campaigns")


async def test_what_makes_no_check_is_told_with_what_was_entered_and_changes_nothing(
    researcher, engine, campaign, subtests
):
    for said, status, words in (
        ({"expected": "400"}, 422, "400 is not a possible score"),
        ({"expected": ""}, 422, "its expected answer in the column"),
        ({"action": "silver"}, 422, "gold, attention or nothing"),
        ({"item": "v9"}, 404, "has no item “v9”"),
    ):
        with subtests.test(said=said, status=status, words=words):
            reply = await mark(researcher, campaign, **said)
            assert reply.status_code == status
            assert words in reply.text
            assert status == 404 or 'name="tolerance" value="10"' in reply.text
            assert len(await items_of(engine)) == 4
            assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0


async def edit_form_of_v1(researcher, campaign):
    return (await researcher.post(f"/admin/campaigns/{campaign.slug}/items/chosen", data={"edit": "v1"})).text


async def test_a_gold_item_of_a_draft_shows_its_answer_and_is_edited(researcher, engine, campaign):
    await mark(researcher, campaign)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text
    assert "Expected: 70 to 90</span>" in page
    assert 'name="edit" value="v1" aria-label="Edit v1">Edit</button>' in page
    form = await edit_form_of_v1(researcher, campaign)
    assert "Edit gold item</h2>" in form
    assert re.search(r'name="expected" value="80"', form)
    assert re.search(r'name="tolerance" value="10"', form)
    assert "verb 1</textarea>" in form
    assert "Keep in the study, too" not in form
    changed = {"edits": "yes", "text": "to\r\nrun", "expected": "60", "tolerance": "", "explanation": "usual"}
    reply = await mark(researcher, campaign, **changed)
    assert reply.status_code == 303, reply.text
    rows = await fetch_rows(
        engine,
        "SELECT number, external_id, kind, shown, expected, fields->>'expected', fields->>'tolerance', "
        "fields->>'explanation' FROM check_items",
    )
    assert rows == [(0, "v1", "gold", "to\nrun", {"value": 60.0}, "60", None, "usual")]
    assert len(await items_of(engine)) == 3
    assert "Saved." in (await researcher.get(reply.headers["location"])).text
    assert "changed a check" in (await researcher.get(f"/admin/campaigns/{campaign.slug}/log")).text


async def test_what_cannot_be_a_gold_item_leaves_the_edited_one_as_it_is(researcher, engine, campaign, subtests):
    await mark(researcher, campaign)
    before = await fetch_rows(engine, "SELECT kind, shown, expected, CAST(fields AS text) FROM check_items")
    for wrong, words in (
        ({"expected": "400", "text": "to run"}, "400 is not a possible score"),
        ({"text": "  "}, "There is nothing to show to annotators."),
        ({"text": "x" * 200_000}, "The text has more than"),
    ):
        with subtests.test(words=words):
            reply = await mark(researcher, campaign, edits="yes", explanation="why", **wrong)
            assert reply.status_code == 422
            assert words in reply.text
            assert 'name="explanation" value="why"' in reply.text
            after = await fetch_rows(engine, "SELECT kind, shown, expected, CAST(fields AS text) FROM check_items")
            assert after == before


async def test_ticked_gold_items_become_attention_items_with_their_answers_filled_in(researcher, engine, campaign):
    await mark(researcher, campaign)
    ticked = {"action": "attention", "item": ["v1", "v2"]}
    form = (await researcher.post(f"/admin/campaigns/{campaign.slug}/items/chosen", data=ticked)).text
    assert re.findall(r'name="expected" value="(.*?)"', form) == ["80", ""]
    both = ticked | {"expected": ["80", "20"], "tolerance": ["10", ""]}
    assert (await mark(researcher, campaign, **both)).status_code == 303
    kinds = await fetch_rows(engine, "SELECT external_id, kind FROM check_items ORDER BY number")
    assert kinds == [("v1", "attention"), ("v2", "attention")]


async def test_a_program_edits_a_gold_item(api_client, researcher, engine, campaign):  # noqa: F811
    await mark(researcher, campaign)
    check = {"id": "v1", "expected": "70", "text": "to run", "explanation": "usual"}
    address = f"/api/v1/campaigns/{campaign.slug}/items/checks"
    reply = await api_client.post(address, json={"kind": "gold", "checks": [check]})
    assert reply.json() == {"changed": 1}
    rows = await fetch_rows(engine, "SELECT shown, expected, fields->>'explanation' FROM check_items")
    assert rows == [("to run", {"value": 70.0}, "usual")]
    refused = await api_client.post(address, json={"kind": "gold", "checks": [check | {"text": ""}]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "shown_empty")


async def test_the_launch_fixes_what_is_a_check(researcher, engine, campaign):
    await mark(researcher, campaign)
    await apply_action(engine, campaign)
    assert (await mark(researcher, campaign, item="v2")).status_code == 409
    address = f"/admin/campaigns/{campaign.slug}"
    assert (await researcher.post(f"{address}/items/unmark", data={"item": "v1"})).status_code == 409
    assert "Use as gold" not in (await researcher.get(f"{address}/items")).text
    assert "Use as item" not in (await researcher.get(f"{address}/checks")).text


async def test_marking_items_is_proposed_before_the_launch_alone(researcher, engine):
    campaign = await create_draft(engine, checks_percent=10)
    await import_items(engine, campaign, "id,text\nv0,verb 0\nv1,verb 1\n")
    address = f"/admin/campaigns/{campaign.slug}"
    assert "Mark items as checks</a>" in (await researcher.get(f"{address}/launch/confirm")).text
    await apply_action(engine, campaign, "launch")
    shared = (await researcher.get(f"{address}/share")).text
    assert "but there are no checks. <a" in shared
    assert "Mark items" not in shared


async def test_where_a_campaign_takes_no_checks_it_says_why(researcher, engine):
    campaign = await create_draft(engine, selection="iterations")
    await import_items(engine, campaign, ITEMS, priors=True)
    assert "checks need streaming" in (await mark(researcher, campaign)).text


async def test_several_items_become_checks_at_once_all_or_none(researcher, engine, campaign):
    address = f"/admin/campaigns/{campaign.slug}/items/checks"
    several = {"action": "attention", "item": ["v0", "v3"], "expected": ["100", "x"], "tolerance": ["", "5"]}
    refused = await researcher.post(address, data=several)
    assert refused.status_code == 422
    assert "Item v3: " in refused.text
    assert re.findall(r'aria-label="Expected answer of (v.)"[^>]* aria-invalid="true"', refused.text) == ["v3"]
    assert len(await items_of(engine)) == 4
    refused = await researcher.post(address, data=several | {"expected": ["100", "0"], "tolerance": ["", "much"]})
    assert re.findall(r'aria-label="(\w+) of (v.)"[^>]* aria-invalid="true"', refused.text) == [("Tolerance", "v3")]
    done = await researcher.post(address, data=several | {"expected": ["100", "0"]})
    assert done.status_code == 303, done.text
    assert await fetch_rows(engine, "SELECT external_id, kind FROM check_items ORDER BY number") == [
        ("v0", "attention"), ("v3", "attention")]  # fmt: skip


async def test_a_check_can_stay_in_the_study_as_an_item_of_its_own(researcher, engine, campaign):
    assert (await mark(researcher, campaign, keep="on")).status_code == 303
    assert len(await items_of(engine)) == 4
    log = (await researcher.get(f"/admin/campaigns/{campaign.slug}/log")).text
    assert "copied an item as a check" in log
    assert "turned an item into a check" not in log
    assert await fetch_rows(engine, "SELECT external_id, shown FROM check_items") == [("v1 (gold)", "verb 1")]
    assert (await mark(researcher, campaign, keep="on")).status_code == 409
    await researcher.post(f"/admin/campaigns/{campaign.slug}/items/unmark", data={"item": "v1 (gold)"})
    assert len(await items_of(engine)) == 4
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0
