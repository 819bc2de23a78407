"""Result files in which annotators could mark an item N/A, as a fork of the EASL program writes them."""

import csv
import io

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.errors import Invalid
from app.exports.registry import open_export_or_refuse
from app.imports.response_receipt import response_receipt_sentences
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import create_launched_campaign, import_results, replay_is_clean

COLUMNS = "AssignmentId,WorkerId,Input.id1,Input.id2,Answer.range1,Answer.range2,Answer.na1,Answer.na2\n"
MARKED = COLUMNS + "A1,W1,v0,v1,70,50,,on\nA2,W2,v2,v3,,50,on,on\nA3,W1,v1,v0,20,100,,\n"


async def exported(engine: AsyncEngine, slug: str) -> list[dict[str, str]]:
    file = await open_export_or_refuse(engine, slug, "responses")
    return list(csv.DictReader(io.StringIO("".join([piece async for piece in file.chunks]))))


@pytest.mark.parametrize("law", ["easl", "ra", "trueskill", "easl-aware"])
async def test_an_item_marked_na_gets_no_score_and_the_others_of_its_hit_do(engine, law):
    campaign = await create_launched_campaign(engine, update_law=law)
    imported = await import_results(engine, campaign, MARKED)
    assert (imported.responses, imported.items, imported.not_applicable, imported.without_score) == (2, 2, 3, 1)
    assert await fetch_rows(engine, "SELECT items, values FROM responses ORDER BY seq") == [
        ([0], [70]),
        ([1, 0], [20, 100]),
    ]
    assert await fetch_rows(
        engine, "SELECT number, judgments FROM current_posteriors WHERE judgments > 0 ORDER BY number"
    ) == [
        (0, 2),
        (1, 1),
    ]
    assert await replay_is_clean(engine, campaign.slug)


async def test_what_was_marked_is_kept_with_the_hit_also_when_all_of_it_was(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, MARKED)
    assert await fetch_rows(engine, "SELECT items, not_applicable, closed_at IS NOT NULL FROM hits ORDER BY id") == [
        ([0, 1], [1], True),
        ([2, 3], [2, 3], True),
        ([1, 0], None, True),
    ]


async def test_the_export_of_responses_has_a_row_without_a_score_for_it(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, MARKED)
    rows = await exported(engine, campaign.slug)
    assert [(row["item"], row["position"], row["score"], row["rank"], row["not_applicable"]) for row in rows] == [
        ("v0", "1", "70.0", "1", "false"),
        ("v1", "2", "", "", "true"),
        ("v1", "1", "20.0", "2", "false"),
        ("v0", "2", "100.0", "1", "false"),
        ("v2", "1", "", "", "true"),
        ("v3", "2", "", "", "true"),
    ]
    assert [row["seq"] != "" for row in rows] == [True] * 4 + [False] * 2


async def test_a_score_beside_na_need_not_be_one(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, COLUMNS + "A1,W1,v0,v1,70,undefined,,on\n")
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


@pytest.mark.parametrize(("cell", "marked"), [("on", 1), ("true", 1), ("TRUE", 1), ("off", 0), ("false", 0), ("", 0)])
async def test_a_box_is_ticked_or_not(engine, cell, marked):
    campaign = await create_launched_campaign(engine)
    assert (await import_results(engine, campaign, COLUMNS + f"A1,W1,v0,v1,70,30,,{cell}\n")).not_applicable == marked


async def test_a_box_that_is_neither_is_refused_with_its_line(engine):
    campaign = await create_launched_campaign(engine)
    with pytest.raises(Invalid, match=r"Line 2: Answer\.na2 is “maybe”") as problem:
        await import_results(engine, campaign, COLUMNS + "A1,W1,v0,v1,70,30,,maybe\n")
    assert problem.value.code == "na_unknown"


@pytest.mark.parametrize("column", ["Answer.skip1", "Answer.na3", "Answer.na1.on", "Answer.2_comment"])
async def test_a_column_about_an_item_that_easel_does_not_understand_is_named(engine, column):
    campaign = await create_launched_campaign(engine)
    content = f"Input.id1,Input.id2,Answer.range1,Answer.range2,{column}\nv0,v1,1,2,x\n"
    with pytest.raises(Invalid, match=column.replace(".", r"\.")) as problem:
        await import_results(engine, campaign, content)
    assert (problem.value.code, problem.value.details["columns"]) == ("answer_column_unknown", [column])
    assert await fetch_value(engine, "SELECT count(*) FROM hits") == 0


async def test_json_lines_may_name_a_box_where_it_is_ticked_and_no_column_that_is_not_understood(engine):
    campaign = await create_launched_campaign(engine)
    plain = '{"Input.id1": "v0", "Answer.range1": 5}\n'
    imported = await import_results(engine, campaign, plain + plain.replace("}", ', "Answer.na1": "on"}'), "r.jsonl")
    assert (imported.responses, imported.not_applicable) == (1, 1)
    with pytest.raises(Invalid) as problem:
        await import_results(engine, campaign, plain + plain.replace("}", ', "Answer.skip1": "on"}'), "r.jsonl")
    assert (problem.value.code, problem.value.details["line"]) == ("answer_column_unknown", 2)


async def test_what_the_whole_hit_was_answered_is_no_item(engine):
    campaign = await create_launched_campaign(engine)
    content = "Input.id1,Input.id2,Answer.range1,Answer.range2,Answer.comment\nv0,v1,1,2,nice\n"
    assert (await import_results(engine, campaign, content)).responses == 1


async def test_a_person_is_told_how_many_were_marked(engine):
    campaign = await create_launched_campaign(engine)
    assert response_receipt_sentences(await import_results(engine, campaign, MARKED)) == [
        "Imported 2 responses on 2 items.",
        "Scores left out because their item was marked N/A: 3. The export of responses has these marks.",
        "Tasks in which every item was marked N/A, kept without a response: 1.",
        "The file has 3 rows on 4 lines.",
    ]
