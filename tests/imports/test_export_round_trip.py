"""Exports of responses that another campaign imports: its own export then has the same cells."""

import json
from typing import Any

import pytest

from app.errors import Invalid
from tests.annotation.hits.campaigns import create_annotator
from tests.annotation.hits.test_condition_blocks import LISTS, create_campaign_with_conditions, judge
from tests.campaigns.drafts import import_results
from tests.exports.test_export import written

# Numbers and names that the other campaign gives, and what an import leaves out.
OTHERS = frozenset(
    {"seq", "annotator", "name", "source", "hit", "revision", "leader", "drawn_because", "leader_probability"}
)


async def exported_cells(engine, campaign) -> list[dict[str, Any]]:
    lines = (await written(engine, campaign.slug, "responses", "jsonl")).splitlines()
    return [{name: cell for name, cell in json.loads(line).items() if name not in OTHERS} for line in lines]


@pytest.mark.parametrize(("format_", "file"), [("csv", "a.csv"), ("jsonl", "a.jsonl")])
async def test_blocks_and_lists_of_an_export_are_kept_by_a_campaign_that_imports_it(engine, format_, file):
    settings = LISTS | {"block_order": "balanced"}
    first = await create_campaign_with_conditions(engine, contents=6, **settings)
    for name in "abcd":
        await judge(engine, await create_annotator(engine, first, name))
    again = await create_campaign_with_conditions(engine, contents=6, **settings)
    await import_results(engine, again, await written(engine, first.slug, "responses", format_), file)
    cells = await exported_cells(engine, again)
    assert {(row["block"], row["condition_list"]) for row in cells} == {(b, k) for b in (1, 2, 3) for k in (1, 2, 3)}
    assert cells == await exported_cells(engine, first)


@pytest.mark.parametrize("column", ["condition_list", "criterion_position"])
async def test_rows_of_a_hit_that_differ_in_their_place_are_refused(engine, column):
    campaign = await create_campaign_with_conditions(engine, **LISTS)
    table = f"seq,hit,annotator,item,value,{column}\n1,h,a,v0,5,1\n1,h,a,v1,6,2\n"
    with pytest.raises(Invalid, match=f"Line 2: the rows of this HIT differ in {column}") as refusal:
        await import_results(engine, campaign, table)
    assert refusal.value.code == "place_differs"


async def test_a_block_that_is_no_number_is_refused_with_its_line(engine):
    campaign = await create_campaign_with_conditions(engine, **LISTS)
    table = "seq,hit,annotator,item,value,block\n1,h,a,v0,5,second\n"
    with pytest.raises(Invalid, match=r"Line 2: the block “second” is not one of 1, 2") as refusal:
        await import_results(engine, campaign, table)
    assert refusal.value.code == "position_unusable"


@pytest.mark.parametrize(("column", "largest"), [("block", 24), ("condition_list", 24), ("criterion_position", 12)])
async def test_a_place_that_no_campaign_has_is_refused_with_its_line(engine, column, largest):
    campaign = await create_campaign_with_conditions(engine, **LISTS)
    table = f"seq,hit,annotator,item,value,{column}\n1,h,a,v0,5,{largest}\n2,g,a,v1,6,{largest + 1}\n"
    with pytest.raises(Invalid, match=f"Line 3: the {column} {largest + 1} is not one of 1 to {largest}") as refusal:
        await import_results(engine, campaign, table)
    assert refusal.value.code == "position_unusable"
