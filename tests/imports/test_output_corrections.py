"""Corrections of systems' outputs: versions are kept, and open HITs show the former text."""

import asyncio
import csv
import io

import pytest

from app.errors import Conflict, Invalid, NotFound
from app.imports import text_corrections
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    fetch_rows,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.campaigns.drafts import create_draft, create_launched_campaign, import_file, replay_is_clean

# Ape and bee give the same output for s1.
OUTPUTS = """system,segment,output
ape,s1,one
bee,s1,one
cat,s1,two
ape,s2,three
bee,s2,four
cat,s2,five
"""


@pytest.fixture
def engine(app):
    return app.state.database


async def correct(engine, campaign, system, segment, new_text):
    async with engine.begin() as connection:
        return await text_corrections.store_corrected_text_returning_version(
            connection, campaign.slug, system, new_text, now=NOW, segment_id=segment
        )


async def shown_outputs(engine):
    rows = await fetch_rows(
        engine,
        "SELECT i.external_id, o.shown FROM outputs o JOIN items i ON i.number = o.item ORDER BY o.segment, o.item",
    )
    return [tuple(row) for row in rows]


async def launch(engine, **settings):
    return await create_launched_campaign(engine, OUTPUTS, **{"items_per_hit": 2, "judgments_per_item": 50} | settings)


async def test_systems_with_the_same_output_get_the_correction_together(engine):
    campaign = await launch(engine)
    assert await correct(engine, campaign, "bee", "s1", "one!") == 2
    assert (await shown_outputs(engine))[:3] == [("ape", "one!"), ("bee", "one!"), ("cat", "two")]
    assert await correct(engine, campaign, "ape", "s1", "One!") == 3


async def test_open_hits_keep_the_former_output_and_exports_say_which_was_judged(engine, researcher):
    campaign = await launch(engine, items_per_hit=3)
    first, second = [await create_annotator(engine, campaign, name=name) for name in "ab"]
    held = await try_to_lease_hit(engine, first)
    segment = "s1" if "two" in held.texts else "s2"
    await correct(engine, campaign, "cat", segment, "corrected")
    assert (await try_to_lease_hit(engine, first)).texts == held.texts
    await submit_scores(engine, first, held)
    while "corrected" not in (hit := await try_to_lease_hit(engine, second)).texts:
        await submit_scores(engine, second, hit)
    await submit_scores(engine, second, hit)
    exported = (await researcher.get(f"/admin/campaigns/{campaign.slug}/export/responses.csv")).text
    rows = [row for row in csv.DictReader(io.StringIO(exported)) if (row["item"], row["segment"]) == ("cat", segment)]
    assert [row["item_version"] for row in rows] == ["1", "2"]
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_lease_that_waits_for_a_correction_shows_the_corrected_output(engine):
    campaign = await launch(engine, items_per_hit=3)
    annotator = await create_annotator(engine, campaign)
    async with engine.begin() as connection:
        for segment in ("s1", "s2"):
            await text_corrections.store_corrected_text_returning_version(
                connection, campaign.slug, "cat", "corrected", now=NOW, segment_id=segment
            )
        lease = asyncio.create_task(try_to_lease_hit(engine, annotator))
        await wait_until(engine, requests_are_waiting_sql(1))
    assert "corrected" in (await lease).texts


async def test_an_output_does_not_become_that_of_another_system(engine):
    campaign = await launch(engine)
    for system, segment, new_text, refusal, code in (
        ("cat", "s1", "one", Conflict, "output_taken"),
        ("cat", "s1", "two", Invalid, "text_unchanged"),
        ("cat", "s9", "six", NotFound, "output_not_found"),
        ("cat", None, "six", Invalid, "segment_missing"),
    ):
        with pytest.raises(refusal) as refused:
            await correct(engine, campaign, system, segment, new_text)
        assert refused.value.code == code
    assert (await shown_outputs(engine))[2] == ("cat", "two")


async def test_a_draft_keeps_no_former_outputs(engine):
    campaign = await create_draft(engine, items_per_hit=2)
    await import_file(engine, campaign, OUTPUTS)
    assert await correct(engine, campaign, "cat", "s1", "2") == 1
    assert await fetch_rows(engine, "SELECT count(*) FROM output_versions") == [(0,)]


async def test_the_page_of_a_segment_leads_to_the_correction_and_shows_former_texts(engine, researcher):
    campaign = await launch(engine)
    items = f"/admin/campaigns/{campaign.slug}/items"
    assert f"{items}/text?item=cat&amp;segment=s1" in (await researcher.get(f"{items}?segment=s1")).text
    form = {"item": "cat", "segment": "s1", "text": "2"}
    done = await researcher.post(f"{items}/text", data=form)
    assert (done.status_code, done.headers["location"]) == (303, f"{items}?segment=s1&done=item-corrected#segment")
    page = (await researcher.get(f"{items}/text", params={"item": "cat", "segment": "s1"})).text
    assert "two</div>" in page
    refused = await researcher.post(f"{items}/text", data=form | {"text": "one"})
    assert refused.status_code == 409
    assert "Another system has this output" in refused.text


async def test_in_a_draft_a_correction_is_of_one_system_alone_and_may_make_outputs_equal(engine):
    campaign = await create_draft(engine, items_per_hit=2)
    await import_file(engine, campaign, OUTPUTS)
    await correct(engine, campaign, "bee", "s1", "other")
    await correct(engine, campaign, "ape", "s1", "two")
    assert (await shown_outputs(engine))[:3] == [("ape", "two"), ("bee", "other"), ("cat", "two")]
