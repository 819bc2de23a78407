"""Gold and attention items that a form of their own adds to a draft, and how many of them annotators meet."""

import re

import pytest

from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.annotation.hits.criteria import criteria_settings
from tests.campaigns.drafts import VERBS, apply_action, create_draft, import_items

GOLD = "id,text,expected,tolerance,explanation\ng1,to run,90,10,fast\ng2,to sleep,10,,\ng3,to walk,50,,\n"


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    campaign = await create_draft(engine, hits_per_annotator=6, checks_percent=20, judgments_per_item=10)
    await import_items(engine, campaign, VERBS)
    return campaign


def words(html):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html))


async def add_gold(researcher, campaign, content=GOLD, **more):
    address = f"/admin/campaigns/{campaign.slug}/items/gold"
    return await researcher.post(address, data={"kind": "gold", "pasted": content, "read_as": "table"} | more)


async def test_a_pasted_table_adds_gold_items_apart_from_the_items(researcher, engine, campaign):
    items = await fetch_value(engine, "SELECT count(*) FROM items")
    reply = await add_gold(researcher, campaign)
    assert reply.status_code == 303, words(reply.text)
    checks = await fetch_rows(engine, "SELECT external_id, kind, shown, expected FROM check_items ORDER BY number")
    assert checks[0] == ("g1", "gold", "to run", {"value": 90.0, "tolerance": 10.0})
    assert [row[0] for row in checks] == ["g1", "g2", "g3"]
    assert (
        await fetch_value(engine, "SELECT fields->>'explanation' FROM check_items WHERE external_id = 'g1'") == "fast"
    )
    assert await fetch_value(engine, "SELECT count(*) FROM items") == items
    page = words((await researcher.get(reply.headers["location"])).text)
    assert "Imported 3 gold items." in page
    assert "Item ids come from" not in page


async def test_a_file_adds_attention_items_and_a_row_may_name_another_kind(researcher, engine, campaign):
    content = "id,text,check,expected\na1,far right,,100\ng1,to run,gold,90\n"
    reply = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/items/gold",
        data={"kind": "attention"},
        files={"file": ("attention.csv", content)},
    )
    assert reply.status_code == 303, words(reply.text)
    kinds = await fetch_rows(engine, "SELECT external_id, kind FROM check_items ORDER BY number")
    assert kinds == [("a1", "attention"), ("g1", "gold")]
    page = words((await researcher.get(reply.headers["location"])).text)
    assert "Imported 1 gold item and 1 attention item." in page
    assert "6 items, 1 gold item and 1 attention item" in page


async def test_each_field_has_an_id_of_its_own_and_the_file_names_its_columns(researcher, campaign):
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'<label for="([^"]+)"', page)) <= set(ids)
    columns = "the columns text, expected and, if you like, id, tolerance and explanation."
    assert f"A table with {columns}" in words(page)
    assert '<a class="button" href="#gold">Add gold items</a>' in page
    assert "<details><summary>Outputs of systems</summary>" in page


async def test_a_wrong_row_adds_nothing_and_the_form_keeps_what_was_pasted(researcher, engine, campaign):
    reply = await add_gold(researcher, campaign, GOLD + "g4,to jump,400,,\n")
    assert reply.status_code == 422
    assert "400 is not a possible score" in reply.text
    assert "g4,to jump,400" in reply.text
    assert '<details class="add" id="gold" open>' in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM check_items") == 0


async def test_the_items_and_the_step_quality_count_how_many_an_annotator_meets(researcher, campaign):
    await add_gold(researcher, campaign)
    address = f"/admin/campaigns/{campaign.slug}"
    pages = [words((await researcher.get(address + path)).text) for path in ("/items", "/settings/quality")]
    for page in pages:
        assert re.search(
            r"3 gold items; with \d tasks? per person an annotator sees about [\d.]+\. "
            r"The rule “Fails gold items” flags no one before 5 failures",
            page,
        )


async def test_where_no_check_fits_the_pages_say_why_in_the_words_of_the_refusal(researcher, engine):
    campaign = await create_draft(engine, selection="iterations")
    await import_items(engine, campaign, VERBS)
    reason = "iterations plan which items are shown together; checks need streaming"
    address = f"/admin/campaigns/{campaign.slug}"
    for path in ("/items", "/settings/quality"):
        page = words((await researcher.get(address + path)).text)
        assert f"This campaign cannot have gold or attention items: {reason}." in page
    refused = await add_gold(researcher, campaign)
    assert refused.status_code == 409
    assert "Import gold items" not in refused.text


async def test_where_no_goal_fits_the_step_says_why_in_the_words_of_the_refusal(researcher, engine):
    campaign = await create_draft(engine, criteria=criteria_settings(2))
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/how-much")).text)
    reason = "a goal is about one criterion, so a draft first needs a “Deciding criterion”"
    assert f"This campaign cannot have a goal: {reason}. It collects all judgments." in page


async def test_gold_items_without_ids_get_the_next_numbers(researcher, engine, campaign):
    reply = await add_gold(researcher, campaign, "text,expected\nto run,90\nto sleep,10\n")
    assert reply.status_code == 303, words(reply.text)
    checks = await fetch_rows(engine, "SELECT external_id, shown FROM check_items ORDER BY number")
    assert checks == [("7", "to run"), ("8", "to sleep")]


async def test_the_page_says_what_an_expected_answer_is_and_what_becomes_of_gold_items(researcher, engine, campaign):
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/items")).text)
    assert (
        "Expected answer: points, from 0 to 100. Tolerance: how many points away an answer may be; empty means 15."
        in page
    )
    assert "They then leave the study and get no score, unless you keep them there, too." in page
    labelled = await create_draft(engine, design="categories", design_settings={"labels": ["rude", "polite"]})
    await import_items(engine, labelled, VERBS)
    page = words((await researcher.get(f"/admin/campaigns/{labelled.slug}/items")).text)
    assert "Expected answer: a label, or several separated by |: rude, polite." in page


@pytest.mark.parametrize(
    ("limit", "percent", "reason"),
    [
        (None, 50, "In about 2 tasks, a person then sees about 1 of 3 checks; a share above 50 % is not possible."),
        (
            2,
            50,
            "With 2 tasks per person, a person then sees about 1 of 3 checks; a share above 50 % is not possible.",
        ),
        (10, 30, "With 10 tasks per person, a person then sees all 3 checks."),
    ],
)
async def test_a_share_of_tasks_is_proposed_for_the_first_gold_items_and_set_by_a_press(
    researcher, engine, limit, percent, reason
):
    draft = await create_draft(engine, hits_per_annotator=limit, repeat_items=True, judgments_per_item=10)
    await import_items(engine, draft, VERBS)
    address = f"/admin/campaigns/{draft.slug}/items"
    button = f"Show them in {percent} % of tasks"
    assert button not in words((await researcher.get(address)).text)
    await add_gold(researcher, draft)
    page = words((await researcher.get(address)).text)
    assert reason in page
    assert button in page
    assert (await researcher.post(f"{address}/show-checks")).status_code == 303
    assert await fetch_value(engine, "SELECT checks_percent FROM campaigns") == percent
    assert button not in words((await researcher.get(address)).text)
    await researcher.post(f"{address}/show-checks")
    assert await fetch_value(engine, "SELECT checks_percent FROM campaigns") == percent


async def test_the_share_of_a_launched_campaign_is_left_to_its_settings(researcher, engine, campaign):
    await add_gold(researcher, campaign)
    await apply_action(engine, campaign, "launch")
    assert (await researcher.post(f"/admin/campaigns/{campaign.slug}/items/show-checks")).status_code == 409
