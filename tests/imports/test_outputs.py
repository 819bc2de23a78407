"""Tables of systems' outputs: taken in whole, or refused with the line."""

import pytest

from app.campaigns import campaign_file, lifecycle
from app.errors import Conflict, Invalid, Refusal
from app.imports import campaign_file_io
from app.imports.campaign_zip import SentCampaign
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import VERBS, apply_action, create_draft, create_launched_campaign, import_items

HEADER = "system,segment,output,source,reference\n"


async def test_items_are_the_systems_and_outputs_stand_by_segment(engine):
    campaign = await create_draft(engine)
    content = HEADER + "ape,s1,Hello,Hallo,Hi\nbee,s1,Hullo,Hallo,\nape,s2,Bye,,\n"
    assert await import_items(engine, campaign, content) == 3
    assert await fetch_rows(engine, "SELECT number, external_id, shown FROM items ORDER BY 1") == [
        (0, "ape", "ape"),
        (1, "bee", "bee"),
    ]
    assert await fetch_rows(engine, "SELECT number, external_id, source, reference FROM segments ORDER BY 1") == [
        (0, "s1", "Hallo", "Hi"),
        (1, "s2", None, None),
    ]
    assert await fetch_rows(engine, "SELECT segment, item, shown FROM outputs ORDER BY 1, 2") == [
        (0, 0, "Hello"),
        (0, 1, "Hullo"),
        (1, 0, "Bye"),
    ]
    assert await fetch_value(engine, "SELECT segment_count FROM campaigns") == 2


async def test_a_file_for_each_system_will_do(engine):
    campaign = await create_draft(engine)
    for system in ("ape", "bee"):
        await import_items(engine, campaign, outputs_table((system,)))
    await apply_action(engine, campaign)
    assert await fetch_value(engine, "SELECT count(*) FROM outputs") == 12


async def test_jsonl_will_do(engine):
    campaign = await create_draft(engine)
    rows = '{"system": "ape", "segment": 7, "output": "a"}\n{"system": "bee", "segment": 7, "output": "b"}\n'
    assert await import_items(engine, campaign, rows, "outputs.jsonl") == 2
    assert await fetch_value(engine, "SELECT external_id FROM segments") == "7"


async def test_a_table_with_an_id_is_one_of_items(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, "id,system,segment,output\n1,ape,s1,Hello\n", shown="output")
    assert await fetch_value(engine, "SELECT segment_count FROM campaigns") == 0
    assert await fetch_value(engine, "SELECT shown FROM items") == "Hello"


REFUSED = {
    "output_twice": "ape,s1,a,,\nape,s1,b,,\n",
    "output_empty": "ape,s1,a,,\nbee,s1, ,,\n",
    "system_missing": "ape,s1,a,,\n,s1,b,,\n",
    "segment_missing": "ape,s1,a,,\nbee,,b,,\n",
    "source_differs": "ape,s1,a,x,\nbee,s1,b,y,\n",
    "id_too_long": f"ape,s1,a,,\nbee,{'s' * 201},b,,\n",
    "cell_too_long": f"ape,s1,a,,\nbee,s1,b,,{'r' * 100_001}\n",
}


async def test_a_mistake_is_named_with_its_line_and_nothing_is_imported(engine, subtests):
    for code, rows in REFUSED.items():
        with subtests.test(code=code):
            campaign = await create_draft(engine)
            with pytest.raises(Invalid) as refused:
                await import_items(engine, campaign, HEADER + rows)
            assert (refused.value.code, refused.value.details["line"]) == (code, 3)
            assert await fetch_value(engine, "SELECT count(*) FROM items") == 0


async def test_other_columns_are_refused(engine):
    with pytest.raises(Invalid, match="mood") as refused:
        await import_items(engine, await create_draft(engine), "system,segment,output,mood\nape,s1,a,good\n")
    assert refused.value.code == "column_unknown"


async def test_a_header_alone_is_refused(engine):
    with pytest.raises(Invalid) as refused:
        await import_items(engine, await create_draft(engine), HEADER)
    assert refused.value.code == "file_empty"


async def test_an_output_that_is_there_is_refused(engine):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, outputs_table())
    with pytest.raises(Invalid, match="already in the campaign") as refused:
        await import_items(engine, campaign, outputs_table(("ape",), segments=1))
    assert refused.value.code == "output_twice"


@pytest.mark.parametrize(("first", "then"), [(VERBS, outputs_table()), (outputs_table(), VERBS)])
async def test_items_and_systems_do_not_mix(engine, first, then):
    campaign = await create_draft(engine)
    await import_items(engine, campaign, first)
    with pytest.raises(Conflict) as refused:
        await import_items(engine, campaign, then)
    assert refused.value.code == "kinds_mixed"
    assert await import_items(engine, campaign, then, replace=True)
    await apply_action(engine, campaign)


async def test_items_do_not_join_systems_that_run_nor_the_other_way_round(engine):
    for campaign, content, code in (
        (await create_launched_campaign(engine), outputs_table(), "not_a_draft"),
        (await create_campaign_of_systems(engine), VERBS, "kinds_mixed"),
    ):
        with pytest.raises(Conflict) as refused:
            await import_items(engine, campaign, content)
        assert refused.value.code == code


async def test_nothing_joins_what_is_finished(engine):
    campaign = await create_campaign_of_systems(engine)
    await apply_action(engine, campaign, "finish")
    with pytest.raises(Conflict) as refused:
        await import_items(engine, campaign, outputs_table(("elk",)))
    assert refused.value.code == "not_a_draft"


UNLIKE = "system,segment,output\nape,s1,a\nbee,s1,b\ncat,s2,c\n"
SAME = "system,segment,output\nape,s1,a\nbee,s1,b\ncat,s2,c\ndoe,s2,c\n"


@pytest.mark.parametrize(
    ("code", "content", "settings"),
    [
        ("one_system", outputs_table(("ape",)), {}),
        ("too_few_common_segments", UNLIKE, {}),
        ("too_few_common_segments", SAME, {"design": "pairwise"}),
        ("iterations_of_systems", outputs_table(), {"selection": "iterations"}),
        ("implied_of_systems", outputs_table(), {"design": "pairwise", "implied_asked_percent": 10}),
        ("content_of_systems", outputs_table(), {"source_column": "source"}),
        ("baseline_unknown", outputs_table(), {"design": "baseline", "design_settings": {"baseline": "elk"}}),
    ],
)
async def test_what_nobody_could_be_asked_is_not_launched(engine, code, content, settings):
    campaign = await create_draft(engine, **settings)
    await import_items(engine, campaign, content)
    with pytest.raises(Refusal) as refused:
        await apply_action(engine, campaign)
    assert refused.value.code == code


async def test_a_system_that_could_not_be_asked_about_does_not_join(engine):
    campaign = await create_campaign_of_systems(engine)
    with pytest.raises(Refusal) as refused:
        await import_items(engine, campaign, "system,segment,output\nyak,alone,y\n")
    assert refused.value.code == "too_few_common_segments"


async def test_a_copy_has_the_outputs(engine):
    campaign = await create_campaign_of_systems(engine, outputs_table(above=True))
    async with engine.begin() as connection:
        copy = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW)
    for rows in ("SELECT segment, item, shown FROM outputs", "SELECT external_id, source, reference FROM segments"):
        here, there = [
            await fetch_rows(engine, f"{rows} WHERE campaign_id = :id ORDER BY 1, 2", id=id_)
            for id_ in (campaign.id, copy.id)
        ]
        assert here == there
    await apply_action(engine, copy)


async def test_a_campaign_file_has_the_outputs(engine):
    campaign = await create_draft(engine, items_per_hit=2)
    await import_items(engine, campaign, HEADER + "ape,s1,Hello,Hallo,Hi\nbee,s1,Hullo,Hallo,Hi\nape,s2,Bye,,\n")
    async with engine.begin() as connection:
        file = await campaign_file_io.build_campaign_yaml_or_zip(connection, campaign.slug, with_items=True)
        read = campaign_file.parse_campaign_file(
            b"".join(campaign_file_io.iterate_archive_bytes_then_close(file)), "a.yaml"
        )
        copy = await campaign_file_io.create_draft_from_campaign_file(connection, SentCampaign(read), now=NOW, max_mb=1)
    both = [
        await fetch_rows(engine, f"{OF_BOTH} WHERE o.campaign_id = {id_} ORDER BY 1, 2")
        for id_ in (campaign.id, copy.id)
    ]
    assert both[0] == both[1]
    assert len(both[0]) == 3


OF_BOTH = """
    SELECT i.external_id, s.external_id, o.shown, s.source, s.reference FROM outputs o
    JOIN items i ON i.campaign_id = o.campaign_id AND i.number = o.item
    JOIN segments s ON s.campaign_id = o.campaign_id AND s.number = o.segment
"""
