"""Answers from the database, fits that are kept and run one at a time, and the exports made of them."""

import asyncio
import csv
import io
import json
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.analysis import fit_cache as fits_module
from app.analysis.fit_cache import FitCache
from app.analysis.load_answers import load_campaign_answers
from app.analysis.method_types import ScoreMethod
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.result_types import Options, ResultTable, Scores
from app.annotation.hits import submission
from app.database.bulk import open_snapshot
from app.database.session import borrow_driver_in_transaction
from app.designs.answer import Answer
from app.errors import Conflict, NotFound
from app.exports.registry import export_names, open_export_or_refuse
from app.record import responses
from tests.analysis.answers import OFFERED
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import (
    VERBS,
    apply_action,
    create_draft,
    create_launched_campaign,
    import_items,
    import_results,
)
from tests.laws import SCORE_LAWS

ROOT = Path(__file__).resolve().parents[2]
RESULTS = (
    "AssignmentId,WorkerId,Input.id1,Input.id2,Input.id3,Answer.range1,Answer.range2,Answer.range3\n"
    "A1,SECRET1,v0,v1,v2,10,50,90\nA2,SECRET2,v0,v1,v3,20,60,30\nA3,SECRET1,v3,v4,v2,40,70,80\n"
    "A4,SECRET3,v0,v2,v4,0,100,65\n"
)


async def create_answered_campaign(engine, **settings):
    campaign = await create_launched_campaign(engine, **settings)
    await import_results(engine, campaign, RESULTS)
    return campaign


async def answers_of(engine, campaign):
    async with open_snapshot(engine) as connection:
        return await load_campaign_answers(connection, campaign.criteria[0])


async def written(engine, slug: str, what: str, format_="csv", **how) -> str:
    file = await open_export_or_refuse(engine, slug, what, format_, **how)
    return "".join([piece async for piece in file.chunks])


async def test_answers_are_all_judgments_in_the_order_of_the_responses(engine):
    campaign = await create_answered_campaign(engine)
    found = await answers_of(engine, campaign)
    assert [found.ids[k] for k in found.item] == [
        "v0",
        "v1",
        "v2",
        "v0",
        "v1",
        "v3",
        "v3",
        "v4",
        "v2",
        "v0",
        "v2",
        "v4",
    ]
    assert found.score.tolist() == [10, 50, 90, 20, 60, 30, 40, 70, 80, 0, 100, 65]
    assert found.hit.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3
    assert found.annotator.tolist() == [0] * 3 + [1] * 3 + [0] * 3 + [2] * 3
    assert (np.diff(found.seq) > 0).all()
    assert (found.n_items, found.n_annotators, found.n_hits) == (6, 3, 4)
    assert found.judgment_counts.tolist() == [3, 2, 3, 2, 2, 0]
    assert len(set(found.annotators)) == 3
    assert not any("SECRET" in name for name in found.annotators)


async def test_answers_hold_the_stored_posteriors_and_each_items_prior(engine):
    content = "id,text,alpha,beta,system,segment\nv0,a,3,2,x,1\nv1,b,1,1,y,1\n"
    campaign = await create_launched_campaign(engine, content, priors=True, gamma=0.25, tie_margin_points=5)
    found = await answers_of(engine, campaign)
    assert found.prior.tolist() == [[3.0, 1.0], [2.0, 1.0]]
    assert found.state is not None
    assert found.state.tolist() == [[3.0, 1.0], [2.0, 1.0]]
    assert (found.systems, found.segments) == (["x", "y"], ["1", "1"])
    assert (found.parameters.gamma, found.parameters.tie_margin) == (0.25, 0.05)


async def test_a_draft_has_answers_without_posteriors(engine):
    found = await answers_of(engine, await create_draft(engine))
    assert (found.n_items, found.n_hits, found.state) == (0, 0, None)


async def test_more_responses_than_are_read_at_once_are_all_there(engine, monkeypatch):
    monkeypatch.setattr("app.analysis.load_answers.ITEM_ROWS_PER_BATCH", 2)
    found = await answers_of(engine, await create_answered_campaign(engine))
    assert found.hit.tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_what_is_stored_is_what_a_replay_of_the_answers_gives(engine, law):
    campaign = await create_answered_campaign(engine, update_law=law)
    found = await answers_of(engine, campaign)
    stored = SCORE_METHODS[law].fit(found)
    replayed = SCORE_METHODS[law].fit(replace(found, state=None))
    np.testing.assert_array_equal(stored.values, replayed.values)
    np.testing.assert_array_equal(stored.low, replayed.low)


async def test_asked_again_without_a_new_answer_nothing_is_fitted(engine):
    campaign, fits = await create_answered_campaign(engine), FitCache()
    answers, first = await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean")
    again, second = await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean")
    assert first is second
    assert answers is again
    assert await fits.load_cached_or_fit_table(engine, campaign.slug, "labels") is await fits.load_cached_or_fit_table(
        engine, campaign.slug, "labels"
    )
    three = Options(classes=3)
    assert len((await fits.load_cached_or_fit_table(engine, campaign.slug, "labels", three)).rows) == 3


@pytest.mark.parametrize("name", [name for name, one in TABLE_METHODS.items() if not one.needs_groups])
async def test_a_table_is_made_again_only_for_an_option_that_it_reads(engine, name):
    campaign, fits = await create_answered_campaign(engine), FitCache()

    async def made(options: Options) -> ResultTable | str:
        try:
            return await fits.load_cached_or_fit_table(engine, campaign.slug, name, options)
        except Conflict as refusal:
            return refusal.code

    plain, classes, baseline = [await made(o) for o in (Options(), Options(classes=3), Options(baseline="none"))]
    assert (classes is plain) == ("classes" not in TABLE_METHODS[name].options)
    assert baseline is plain or "baseline" in TABLE_METHODS[name].options


async def test_a_new_answer_is_in_the_next_fit(engine):
    campaign, fits = await create_running_campaign(engine, judgments_per_item=5), FitCache()
    someone = await create_annotator(engine, campaign)
    for done in (1, 2):
        hit = await try_to_lease_hit(engine, someone)
        await submit_scores(engine, someone, hit)
        answers, _ = await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean")
        assert answers.n_hits == done


async def test_an_answer_with_a_lower_number_that_is_committed_later_is_seen(engine):
    campaign, fits = await create_running_campaign(engine, judgments_per_item=5), FitCache()
    slow = await create_annotator(engine, campaign, "slow")
    hit = await try_to_lease_hit(engine, slow)
    free = [f"v{number}" for number in range(12) if number not in hit.items]
    async with borrow_driver_in_transaction(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(
            connection, slow, hit.id, Answer(dict.fromkeys(hit.items, 50.0)), now=NOW
        )
        await import_results(
            engine, campaign, f"Input.id1,Input.id2,Answer.range1,Answer.range2\n{free[0]},{free[1]},1,2\n"
        )
        assert (await fits.load_answers(engine, campaign.slug)).n_hits == 1
        assert (await intervals_of(engine, campaign, fits)).mean[hit.items[0]] != 0.5
    assert (await fits.load_answers(engine, campaign.slug)).n_hits == 2
    assert (await intervals_of(engine, campaign, fits)).mean[hit.items[0]] == 0.5


async def intervals_of(engine, campaign, fits):
    async with fits.open_answers_snapshot(engine) as connection:
        return (await fits.load_and_cache_calibrated_evidence(connection, campaign.criteria[0])).intervals


async def test_of_the_calibrated_intervals_each_answer_is_read_once(engine, monkeypatch):
    read = []

    async def counting(*arguments, **columns):
        rows = await responses.load_judgment_column_by_name(*arguments, **columns)
        read.append(len(np.unique(rows["seq"])))
        return rows

    monkeypatch.setattr("app.analysis.load_answers.load_judgment_column_by_name", counting)
    campaign, fits = await create_running_campaign(engine, judgments_per_item=20), FitCache()
    people = [await create_annotator(engine, campaign, name) for name in ("me", "you")]
    for k in range(8):
        await submit_scores(
            engine, people[k % 2], await try_to_lease_hit(engine, people[k % 2]), scores=[10.0 * k, 20, 30, 40, 50]
        )
        read.clear()
        found = await intervals_of(engine, campaign, fits)
        assert sum(read) == 1
        assert await intervals_of(engine, campaign, fits) is found
        np.testing.assert_array_equal(found.interval(), (await intervals_of(engine, campaign, FitCache())).interval())


async def test_who_asked_for_the_intervals_of_a_draft_gets_those_of_the_launched_campaign(engine):
    campaign, fits = await create_draft(engine), FitCache()
    await intervals_of(engine, campaign, fits)
    await import_items(engine, campaign, VERBS)
    assert len((await intervals_of(engine, await apply_action(engine, campaign), fits)).mean) == 6


async def test_a_refusal_has_the_estimators_code_and_is_kept_too(engine, monkeypatch):
    campaign, fits, asked = await create_launched_campaign(engine), FitCache(), []
    mean = SCORE_METHODS["mean"].fit

    def counting(answers):
        asked.append(1)
        return mean(answers)

    monkeypatch.setitem(SCORE_METHODS, "mean", ScoreMethod("t", "a.", "u", counting))
    for _ in range(2):
        with pytest.raises(Conflict) as refusal:
            await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean")
        assert refusal.value.code == "no_judgments"
    assert asked == [1]


async def test_unknown_names_are_refused_with_those_that_there_are(engine):
    campaign, fits = await create_answered_campaign(engine), FitCache()
    with pytest.raises(NotFound) as refusal:
        await fits.load_answers_and_fit_scores(engine, campaign.slug, "median")
    assert (refusal.value.code, refusal.value.details["names"]) == ("method_not_found", [*SCORE_METHODS])
    with pytest.raises(NotFound) as refusal:
        await fits.load_cached_or_fit_table(engine, campaign.slug, "tables")
    assert refusal.value.code == "table_not_found"
    with pytest.raises(NotFound) as refusal:
        await fits.compare_methods(engine, campaign.slug, "mean", "none")
    assert refusal.value.code == "method_not_found"
    with pytest.raises(NotFound) as refusal:
        await fits.load_answers_and_fit_scores(engine, "none", "mean")
    assert refusal.value.code == "campaign_not_found"


async def test_results_and_campaigns_that_were_kept_longest_give_way(engine, monkeypatch):
    monkeypatch.setattr(fits_module, "MAX_CACHED_RESULTS", 2)
    monkeypatch.setattr(fits_module, "MAX_CACHED_CAMPAIGNS", 1)
    fits, campaigns = FitCache(), [await create_answered_campaign(engine, name=name) for name in ("One", "Two")]
    for campaign in campaigns:
        for method in ("mean", "easl", "ra"):
            await fits.load_answers_and_fit_scores(engine, campaign.slug, method)
    assert {number: [*cache[0].results] for number, cache in fits.fits_by_criterion.items()} == {
        campaigns[1].id: [("scores", "easl"), ("scores", "ra")]
    }


async def test_what_was_made_of_older_answers_is_not_kept(engine):
    campaign, fits = await create_running_campaign(engine, judgments_per_item=5), FitCache()
    someone = await create_annotator(engine, campaign)
    for _ in range(2):
        await submit_scores(engine, someone, await try_to_lease_hit(engine, someone))
        await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean")
        await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean")
    assert [len(cache[0].results) for cache in fits.fits_by_criterion.values()] == [1]


async def test_fits_run_one_at_a_time_beside_the_event_loop(engine, monkeypatch):
    campaign, fits = await create_answered_campaign(engine), FitCache()
    at_work: list[int] = []
    most: list[int] = []

    def slow(answers):
        at_work.append(1)
        most.append(len(at_work))
        assert threading.current_thread() is not threading.main_thread()
        time.sleep(0.05)
        at_work.pop()
        return Scores(np.zeros(answers.n_items), answers.has_judgments)

    for name in OFFERED.scores:
        monkeypatch.setitem(SCORE_METHODS, name, ScoreMethod("t", "a.", "u", slow))
    asked = [fits.load_answers_and_fit_scores(engine, campaign.slug, name) for name in ("mean", "easl", "mean", "ra")]
    ticks = 0
    everything = asyncio.gather(*asked)
    while not everything.done():
        await asyncio.sleep(0.005)
        ticks += 1
    await everything
    assert most == [1, 1, 1]
    assert ticks > 5


async def test_who_stops_waiting_leaves_the_fit_to_those_who_come_after(engine, monkeypatch):
    campaign, fits, started, times = await create_answered_campaign(engine), FitCache(), threading.Event(), []

    def slow(answers):
        times.append(1)
        started.set()
        time.sleep(0.2)
        return Scores(np.zeros(answers.n_items), answers.has_judgments)

    monkeypatch.setitem(SCORE_METHODS, "mean", ScoreMethod("t", "a.", "u", slow))
    waiting = asyncio.create_task(fits.load_answers_and_fit_scores(engine, campaign.slug, "mean"))
    await asyncio.to_thread(started.wait)
    waiting.cancel()
    await asyncio.wait([waiting])
    assert (await fits.load_answers_and_fit_scores(engine, campaign.slug, "mean"))[1].values.tolist() == [0.0] * 6
    assert times == [1]


@pytest.mark.slow
def test_a_process_that_ends_does_not_wait_for_a_fit():
    program = (
        "import asyncio, time\nfrom app.background.process import run_in_daemon_thread\n"
        "async def main():\n"
        "    asyncio.create_task(run_in_daemon_thread(lambda: time.sleep(600), 'fit'))\n    await asyncio.sleep(0.1)\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True, check=True, cwd=ROOT)
    assert done.stderr == b""


async def test_scores_by_every_method_are_exported_with_intervals(engine):
    campaign = await create_answered_campaign(engine)
    rows = list(csv.DictReader(io.StringIO(await written(engine, campaign.slug, "scores"))))
    assert [row["id"] for row in rows] == [f"v{k}" for k in range(6)]
    assert [*rows[0]] == [
        *("id", "shown", "judgments"),
        *(name + end for name in OFFERED.scores for end in ("", "_low", "_high")),
    ]
    assert (rows[0]["shown"], rows[0]["mean"], rows[0]["ordinal_median_low"]) == ("verb 0", "10.0", "0.0")
    assert float(rows[0]["easl_low"]) < float(rows[0]["easl"]) < float(rows[0]["easl_high"])
    assert set(rows[5].values()) == {"v5", "verb 5", "0", ""}


async def test_a_method_that_cannot_score_leaves_its_columns_empty_in_the_export(engine):
    campaign = await create_launched_campaign(engine)
    await import_results(engine, campaign, RESULTS.replace(",10,50,90", ",50,50,50").split("A2")[0])
    (first, *_) = csv.DictReader(io.StringIO(await written(engine, campaign.slug, "scores")))
    assert (first["mean"], first["rao_kupper"], first["z_scores"]) == ("50.0", "", "")


async def test_json_lines_of_scores_hold_null_for_what_is_not_known(engine):
    campaign = await create_answered_campaign(engine)
    lines = [json.loads(line) for line in (await written(engine, campaign.slug, "scores", "jsonl")).splitlines()]
    assert (lines[0]["mean"], lines[5]["mean"], lines[0]["judgments"]) == (10.0, None, 3)


async def test_every_label_is_exported_with_its_confidence(engine):
    campaign = await create_answered_campaign(engine)
    rows = list(csv.DictReader(io.StringIO(await written(engine, campaign.slug, "labels"))))
    assert len(rows) == 12
    assert [(row["item"], row["score"], row["label"]) for row in rows[:3]] == [
        ("v0", "10.0", "0 to 50"),
        ("v1", "50.0", "50 to 100"),
        ("v2", "90.0", "50 to 100"),
    ]
    responses = list(csv.DictReader(io.StringIO(await written(engine, campaign.slug, "responses"))))
    who_and_what = [[row[name] for name in ("seq", "annotator", "name", "item")] for row in responses]
    assert [[row[name] for name in ("seq", "annotator", "name", "item")] for row in rows] == who_and_what
    assert {row["name"] for row in rows} == {"A1", "A2", "A3"}
    for row in rows:
        confidence, of_item = float(row["confidence"]), float(row["item_confidence"])
        assert confidence == of_item if row["label"] == row["item_label"] else confidence < of_item


async def test_labels_of_items_are_cut_into_as_many_as_asked_for(engine):
    campaign = await create_answered_campaign(engine)
    content = await written(engine, campaign.slug, "item_labels", options=Options(classes=3))
    rows = list(csv.DictReader(io.StringIO(content)))
    assert (rows[0]["shown"], rows[0]["label"], rows[2]["label"]) == ("verb 0", "0 to 33.33", "66.67 to 100")
    assert 0.34 < float(rows[0]["confidence"]) <= 1
    assert (rows[5]["label"], rows[5]["confidence"]) == ("", "")


@pytest.mark.parametrize("what", ["scores", "labels", "item_labels"])
async def test_an_export_that_cannot_be_fitted_is_refused_before_its_first_line(engine, what):
    campaign = await create_launched_campaign(engine)
    with pytest.raises(Conflict) as refusal:
        await open_export_or_refuse(engine, campaign.slug, what)
    assert refusal.value.code == "no_judgments"


# Items have no segments and no labels, scores imply no pairs and are no choices, and there is one criterion.
NO_FILES_OF_SLIDERS = {"segments", "adjudications", "pairs", "choices", "halo", "label_sets", "item_label_sets"}


@pytest.mark.parametrize("what", [name for name in export_names() if name not in NO_FILES_OF_SLIDERS])
async def test_no_export_tells_who_the_workers_are(engine, what):
    campaign = await create_answered_campaign(engine)
    for format_ in ("csv", "jsonl"):
        assert "SECRET" not in await written(engine, campaign.slug, what, format_)


async def test_exports_are_written_piece_by_piece(engine, monkeypatch):
    monkeypatch.setattr("app.exports.fitted.FITTED_ROWS_PER_BATCH", 2)
    campaign = await create_answered_campaign(engine)
    for what, pieces in (("scores", 4), ("item_labels", 4), ("labels", 7)):
        file = await open_export_or_refuse(engine, campaign.slug, what)
        assert len([piece async for piece in file.chunks]) == pieces
