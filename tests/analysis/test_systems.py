"""Exports of campaigns of systems, and the way back."""

import csv
import io
from typing import Any

import pytest

from app.analysis.available_methods import fit_table_or_refuse, load_available_methods
from app.analysis.load_answers import load_campaign_answers
from app.analysis.methods import TABLE_METHODS
from app.analysis.result_types import Options
from app.database.bulk import open_snapshot
from app.errors import Conflict, Invalid
from tests.annotation.hits.campaigns import create_annotator, fetch_rows, fetch_value, submit_scores, try_to_lease_hit
from tests.annotation.hits.systems import answer_hits_of_systems, create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import (
    apply_action,
    create_draft,
    create_launched_campaign,
    import_items,
    import_results,
    replay_is_clean,
)
from tests.exports.test_export import cells, written

ALIKE = "system,segment,output,source\n" + "".join(
    f"{system},s{k},{text} {k},source {k}\n"
    for k in range(3)
    for system, text in (("ape", "same"), ("bee", "same"), ("cat", "other"))
)
POSTERIORS = "SELECT state, judgments FROM current_posteriors WHERE campaign_id = :id ORDER BY number"


def dicts(content):
    return list(csv.DictReader(io.StringIO(content)))


async def test_responses_say_the_segment_and_under_which_system_an_output_was_shown(engine):
    campaign = await create_campaign_of_systems(engine, ALIKE, items_per_hit=3)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[80.0 if text.startswith("same") else 20.0 for text in hit.texts])
    rows = dicts(await written(engine, campaign.slug, "responses"))
    assert {row["segment"] for row in rows} == {f"s{hit.segment}"}
    shown = {row["item"]: row["shown_as"] for row in rows}
    assert shown["cat"] == "cat"
    assert shown["ape"] == shown["bee"] in ("ape", "bee")
    assert {row["item"]: row["score"] for row in rows} == {"ape": "80.0", "bee": "80.0", "cat": "20.0"}


async def test_segments_say_how_often_each_output_was_judged_and_what_it_got(engine):
    campaign = await create_campaign_of_systems(engine, ALIKE, items_per_hit=3)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[80.0 if text.startswith("same") else 20.0 for text in hit.texts])
    rows = dicts(await written(engine, campaign.slug, "segments"))
    assert len(rows) == 9
    here = {row["system"]: row for row in rows if row["segment"] == f"s{hit.segment}"}
    assert here["ape"] == {
        "segment": f"s{hit.segment}",
        "system": "ape",
        "output": f"same {hit.segment}",
        "source": f"source {hit.segment}",
        "reference": "",
        "judgments": "1",
        "mean_score": "80.0",
    }
    assert {row["judgments"] for row in rows if row["segment"] != f"s{hit.segment}"} == {"0"}


async def test_items_have_no_segments(engine):
    campaign = await create_launched_campaign(engine)
    with pytest.raises(Conflict) as refused:
        await written(engine, campaign.slug, "segments")
    assert refused.value.code == "no_segments"


@pytest.mark.parametrize("design", ["slider", "pairwise", "best_worst"])
async def test_an_export_of_responses_gives_the_same_posteriors_to_the_bit(engine, design):
    both = []
    content = ALIKE if design != "best_worst" else outputs_table(("ape", "bee", "cat", "doe", "elk"))
    for name in ("One", "Copy"):
        campaign = await create_draft(engine, name=name, design=design)
        await import_items(engine, campaign, content)
        both.append(await apply_action(engine, campaign))
    campaign, copy = both
    await answer_hits_of_systems(engine, campaign, by=3, each=3)
    exported = await written(engine, campaign.slug, "responses")
    await import_results(engine, copy, exported)
    assert await fetch_rows(engine, POSTERIORS, id=copy.id) == await fetch_rows(engine, POSTERIORS, id=campaign.id)
    shown = "SELECT items, segment, shown_as FROM hits WHERE campaign_id = :id ORDER BY id"
    assert await fetch_rows(engine, shown, id=copy.id) == await fetch_rows(engine, shown, id=campaign.id)
    assert await replay_is_clean(engine, copy.slug)
    with pytest.raises(Conflict, match="already in “One”"):
        await import_results(engine, campaign, exported)


async def test_outputs_that_are_the_same_and_got_different_values_were_shown_apart(engine):
    campaign = await create_campaign_of_systems(engine, ALIKE)
    header = "hit,annotator,item,value,segment\n"
    await import_results(engine, campaign, header + "h,Ann,ape,10,s1\nh,Ann,bee,20,s1\n")
    assert await fetch_rows(engine, "SELECT values, segment FROM responses") == [([10.0, 20.0], 1)]
    assert await fetch_value(engine, "SELECT shown_as FROM hits") is None


REFUSED = {
    "segment_missing": "h,Ann,ape,10,\nh,Ann,bee,20,\n",
    "segment_unknown": "h,Ann,ape,10,s9\nh,Ann,bee,20,s9\n",
    "segment_differs": "h,Ann,ape,10,s1\nh,Ann,bee,20,s2\n",
    "output_unknown": "h,Ann,doe,10,s1\nh,Ann,bee,20,s1\n",
}


async def test_answers_about_what_nobody_can_have_seen_are_refused(engine, subtests):
    for code, rows in REFUSED.items():
        with subtests.test(code=code):
            campaign = await create_campaign_of_systems(engine, ALIKE + "doe,s2,third,\n")
            with pytest.raises(Invalid) as refused:
                await import_results(engine, campaign, "hit,annotator,item,value,segment\n" + rows)
            assert refused.value.code == code
            assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_answers_about_items_have_no_segment(engine):
    campaign = await create_launched_campaign(engine)
    with pytest.raises(Invalid) as refused:
        await import_results(engine, campaign, "hit,annotator,item,value,segment\nh,Ann,v0,10,s1\n")
    assert refused.value.code == "segment_unknown"


async def test_the_settings_of_a_campaign_of_systems_can_be_given_to_a_new_one(engine):
    campaign = await create_campaign_of_systems(engine)
    assert "segment" not in await written(engine, campaign.slug, "settings", "json")
    assert cells(await written(engine, campaign.slug, "items"))[1][:2] == ["ape", "ape"]


async def test_systems_are_ranked_in_clusters(engine):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=8), items_per_hit=2, judgments_per_item=30
    )
    await answer_hits_of_systems(engine, campaign, by=10, each=6)
    async with open_snapshot(engine) as connection:
        offer = await load_available_methods(connection, campaign.criteria[0])
        answers = await load_campaign_answers(connection, campaign.criteria[0])
    found = fit_table_or_refuse(offer.tables["systems"], answers, Options())
    assert [row[:3] for row in found.rows] == [(name, k, k) for k, name in enumerate(("doe", "cat", "bee", "ape"), 1)]
    assert found.verdict.startswith("4 clusters")


async def test_judgments_of_a_system_on_other_segments_are_no_repeats(engine):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=8), design="rating", items_per_hit=1, judgments_per_item=30
    )
    await answer_hits_of_systems(engine, campaign, by=6, each=8)
    async with open_snapshot(engine) as connection:
        answers = await load_campaign_answers(connection, campaign.criteria[0])
    consistency = fit_table_or_refuse(TABLE_METHODS["consistency"], answers, Options())
    rows = {row[0]: row for row in consistency.rows}
    assert rows["retest"][2] is None
    assert rows["retest"][5] == "Judgments of a system are of different segments, so none repeats another."
    assert "retest_same" not in rows
    agreement = fit_table_or_refuse(TABLE_METHODS["agreement"], answers, Options())
    assert any("Judgments of the same output are compared" in note for note in agreement.notes)
    stored = await fetch_rows(engine, "SELECT segment FROM responses ORDER BY seq")
    assert answers.hit_segments is not None
    assert answers.hit_segments.tolist() == [segment for (segment,) in stored]


async def test_items_are_not_ranked_as_systems(engine):
    async with open_snapshot(engine) as connection:
        assert (
            "systems"
            not in (
                await load_available_methods(connection, (await create_launched_campaign(engine)).criteria[0])
            ).tables
        )


async def test_means_of_segments_are_in_the_unit_of_the_design(engine):
    of_one: dict[str, Any] = {
        "content": outputs_table(("ape", "bee"), segments=1),
        "judgments_per_item": 5,
        "items_per_hit": None,
    }
    compared = await create_campaign_of_systems(engine, design="pairwise", **of_one)
    labelled = await create_campaign_of_systems(
        engine, design="categories", design_settings={"labels": ["good", "bad"]}, **of_one
    )
    for campaign, scores in ((compared, [1.0, 2.0]), (labelled, [0.0, 0.0])):
        me = await create_annotator(engine, campaign)
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=scores[: len(hit.items)])
    rows = dicts(await written(engine, compared.slug, "segments"))
    assert {row["mean_percent_beaten"] for row in rows} == {"0.0", "100.0"}
    assert "judgments" in list(dicts(await written(engine, labelled.slug, "segments"))[0])[-1]
