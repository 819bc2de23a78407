"""Items that cannot be judged, as researchers see them: settings, pages, exports, and the way back by an import."""

import csv
import io
import math

import numpy as np
import pytest
from pydantic import ValidationError

from app.analysis import load_answers
from app.campaigns import form_input, form_values
from app.campaigns.settings import CampaignSettings
from app.database.bulk import open_snapshot
from app.exports import registry as export
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.crowd import answer_hits_by_simulated_annotators_and_count
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    try_to_lease_hit,
)
from tests.annotation.hits.test_unjudged import BROKEN, answer, asking
from tests.campaigns.drafts import import_results, replay_is_clean


async def exported(engine, campaign, what="responses", kind="csv") -> str:
    made = await export.open_export_or_refuse(engine, campaign.slug, what, kind, spreadsheet=False)
    return "".join([piece async for piece in made.chunks])


def rows_in(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


POSTERIORS = "SELECT number, state, score, variance, judgments, unjudged FROM current_posteriors WHERE campaign_id = :c"


@pytest.mark.parametrize("design", ["slider", "pairwise", "categories"])
async def test_an_export_of_responses_has_the_reasons_and_gives_them_back(engine, design):
    campaign = await asking(engine, design=design)
    for k in range(4):
        me = await create_annotator(engine, campaign, f"ann {k}")
        while (work := await find_or_lease_next_hit(engine, me)).hit is not None and work.assignment.hits_answered < 2:
            await answer(engine, me, work.hit, [0] if 0 in work.hit.items else work.hit.items[:k])
    file = await exported(engine, campaign)
    marked = [row for row in rows_in(file) if row["not_applicable"] == "true"]
    assert {row["reason"] for row in marked} == {BROKEN}
    assert {row["score"] for row in marked} == {""}
    copy = await asking(engine, design=design, name="Again")
    await import_results(engine, copy, file)
    before, after = [await fetch_rows(engine, POSTERIORS + " ORDER BY 1", c=one.id) for one in (campaign, copy)]
    assert after == before
    assert await replay_is_clean(engine, copy.slug)
    assert [(row["item"], row["score"], row["reason"]) for row in rows_in(await exported(engine, copy))] == [
        (row["item"], row["score"], row["reason"]) for row in rows_in(file)
    ]
    with pytest.raises(Exception, match="already"):
        await import_results(engine, campaign, file)


async def test_json_lines_have_null_and_not_nan(engine):
    campaign = await asking(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await answer(engine, me, hit, hit.items)
    text = await exported(engine, campaign, kind="jsonl")
    assert "NaN" not in text
    assert text.count('"score":null') + text.count('"score": null') == 2


async def test_an_export_of_items_has_how_many_could_not_judge_each_and_why(engine):
    campaign = await asking(engine, items=2)
    for k, reason in enumerate((BROKEN, "Another reason")):
        me = await create_annotator(engine, campaign, f"ann {k}")
        await answer(engine, me, await try_to_lease_hit(engine, me), [0], reason)
    told = [
        (row["id"], row["judgments"], row["unjudged_by"], row["unjudged_reasons"], row["left_pool"])
        for row in rows_in(await exported(engine, campaign, "items"))
    ]
    assert told == [
        ("v0", "0", "2", f"Another reason: 1; {BROKEN}: 1", "true"),
        ("v1", "2", "0", "", "false"),
    ]


async def test_exports_of_other_campaigns_are_as_they_were(engine):
    campaign = await create_running_campaign(engine)
    for what in ("items", "responses"):
        header = (await exported(engine, campaign, what)).splitlines()[0].split(",")
        assert not {"reason", "unjudged_by", "unjudged_reasons", "left_pool"} & set(header)


async def test_a_mark_from_elsewhere_counts_in_a_campaign_that_offers_it(engine):
    campaign = await asking(engine, items_per_hit=3)
    file = "hit,annotator,item,value,not_applicable,reason\nh,Ann,v0,80,,\nh,Ann,v1,,true,too long\nh,Ann,v2,5,,\n"
    done = await import_results(engine, campaign, file)
    assert (done.responses, done.not_applicable) == (1, 1)
    ((given, extra),) = await fetch_rows(engine, "SELECT values, extra FROM responses")
    assert given[0] == 80
    assert math.isnan(given[1])
    assert extra == {"cannot_be_judged": {"1": "too long"}}
    assert await fetch_value(engine, "SELECT unjudged FROM current_posteriors WHERE number = 1") == 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_simulated_crowd_finds_items_that_cannot_be_judged(engine):
    campaign = await asking(engine, items=30, items_per_hit=5, design="best_worst", judgments_per_item=4)
    await answer_hits_by_simulated_annotators_and_count(
        engine, campaign, hits=500, annotators=8, population=population_with_random_bias_only(0.1), truth_column=None,
        rng=np.random.default_rng(1), clock=lambda: NOW, unjudgeable=0.3,
    )  # fmt: skip
    gone = await fetch_value(engine, "SELECT count(*) FROM current_posteriors WHERE unjudged > 0")
    assert 4 <= gone <= 14
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await replay_is_clean(engine, campaign.slug)


def test_the_form_asks_for_reasons_one_a_line():
    settings = CampaignSettings(name="a", question="b", cannot_be_judged=True, unjudged_reasons=["c d", "e"])
    browser = {name: value for name, value in form_values.form_values_of_settings(settings).items() if value}
    assert browser["unjudged_reasons"] == "c d\ne"
    assert form_input.parse_settings_form(browser) == settings
    assert form_input.parse_settings_form(browser | {"unjudged_reasons": "  "}).unjudged_reasons == []


def test_reasons_that_cannot_be_are_refused(subtests):
    for reasons in (["a", "a"], ["a\nb"], [""], ["x" * 81], [str(k) for k in range(21)]):
        with subtests.test(reasons=reasons), pytest.raises(ValidationError):
            CampaignSettings(name="a", question="b", unjudged_reasons=reasons)


async def test_of_each_annotator_the_share_that_they_could_not_judge_stands_in_the_analysis(engine, researcher):
    campaign = await asking(engine)
    for k in range(3):
        me = await create_annotator(engine, campaign, f"ann {k}")
        hit = await try_to_lease_hit(engine, me)
        await answer(engine, me, hit, hit.items[:k])
    async with open_snapshot(engine) as connection:
        read = await load_answers.load_campaign_answers(connection, campaign.criteria[0])
    assert read.unjudged_counts is not None
    assert (read.names, read.unjudged_counts.tolist(), read.names_without_judgment) == (["A1", "A2"], [0, 1], ["A3"])
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/annotators")).text
    assert "Share that could not be judged" in page
    assert "could not judge any item: A3." in page
