"""Reliability of scores from comparisons, and the fit of annotators and items, as tables of a campaign."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from app.analysis.available_methods import available_methods_for_design
from app.analysis.load_answers import load_campaign_answers, seconds_of_responses_or_nan
from app.analysis.misfit_tables import build_annotator_misfit_table, build_item_misfit_table, lazy_winner_loser_table
from app.analysis.reliability_table import build_reliability_table, choose_split_count
from app.analysis.result_types import Options
from app.analysis.subgroups import answers_of_annotators
from app.database.bulk import open_snapshot
from app.designs.registry import DESIGNS
from app.inference.preferences import bradley_terry
from app.inference.preferences.scale_reliability import scale_separation
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.analysis.answers import answers, simulated_answers
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)

TABLES = {"reliability", "misfit_items", "misfit_annotators"}
PAIRS = simulated_answers(DESIGNS["pairwise"](), hits=240)
TUPLES = simulated_answers(DESIGNS["best_worst"](), hits=120)


def cells(table):
    names = [column.name for column in table.columns]
    return {row[0]: dict(zip(names, row, strict=True)) for row in table.rows}


def test_orders_alone_have_these_tables():
    offered = {name: TABLES & available_methods_for_design(design()).tables.keys() for name, design in DESIGNS.items()}
    assert {name for name, tables in offered.items() if tables == TABLES} == {
        "pairwise",
        "best_worst",
        "ranking",
        "baseline",
    }
    assert all(tables in (TABLES, set()) for tables in offered.values())


def test_split_halves_come_before_scale_separation():
    found = cells(build_reliability_table(PAIRS, Options()))
    assert [*found] == ["split_half", "split_half_full", "separation_reliability", "separation"]
    assert found["split_half"]["low"] <= found["split_half"]["value"] <= found["split_half"]["high"]
    assert found["split_half_full"]["value"] > found["split_half"]["value"] > 0.8


def test_scale_separation_is_that_of_the_bradley_terry_scores():
    rows = []
    for hit in range(PAIRS.n_hits):
        (one, other), (first, second) = PAIRS.item[PAIRS.hit == hit], PAIRS.score[PAIRS.hit == hit]
        rows.append((one, other, np.sign(first - second)))
    first, second, outcomes = np.array(rows, np.intp).T
    fit = bradley_terry.fit(first, second, outcomes, n_items=PAIRS.n_items)
    expected = scale_separation(fit.score, fit.standard_error)
    found = cells(build_reliability_table(PAIRS, Options()))
    assert found["separation_reliability"]["value"] == pytest.approx(expected.reliability)
    assert found["separation"]["value"] == pytest.approx(expected.separation)


def test_best_worst_answers_are_also_split_within_tuples():
    found = cells(build_reliability_table(TUPLES, Options()))
    assert found["tuple_halves"]["value"] > 0.6
    assert found["tuple_halves_full"]["value"] > found["tuple_halves"]["value"]


def test_the_same_answers_give_the_same_figures():
    assert build_reliability_table(PAIRS, Options()).rows == build_reliability_table(PAIRS, Options()).rows


@pytest.mark.parametrize(
    ("matches_by_score", "seconds", "warns"),
    [(True, 3.0, True), (False, 3.0, False), (True, np.nan, False)],
    ids=["a rule that matches by score", "another rule", "imported answers only"],
)
def test_a_warning_says_if_easel_matched_items_by_score(matches_by_score, seconds, warns):
    made = replace(PAIRS, matches_by_score=matches_by_score, seconds=np.full(PAIRS.n_hits, seconds))
    notes = build_reliability_table(made, Options()).notes
    assert ("pairs_matched_by_score" in {note.code for note in notes}) == warns


def test_large_campaigns_are_split_less_often():
    assert choose_split_count(50, 500) == 100
    assert choose_split_count(1_000, 10_000) == 30
    assert choose_split_count(100_000, 1_000_000) == 10


LEFT, RIGHT = {0: 100.0, 1: 0.0}, {0: 0.0, 1: 100.0}
SIDES = answers(
    [(0, LEFT)] * 8 + [(0, RIGHT)] * 2 + [(1, {0: 50.0, 1: 50.0}), (1, LEFT)],
    compares_pairs=True,
    value_kind="order",
    seconds=np.array([*range(1, 11), 4.0, np.nan]),
)


def test_annotators_have_their_median_time_and_share_of_choices_on_the_left():
    found = cells(build_annotator_misfit_table(SIDES, Options()))
    assert found["a0"]["seconds"] == 5.5
    assert found["a0"]["left"] == pytest.approx(0.8)
    assert (found["a0"]["left_low"], found["a0"]["left_high"]) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert found["a0"]["comparisons"] == 10


def test_ties_and_imported_answers_are_no_choice_of_a_side():
    found = cells(build_annotator_misfit_table(SIDES, Options()))
    assert found["a1"]["left"] is None
    assert found["a1"]["seconds"] == 4.0
    assert found["a1"]["comparisons"] == 2
    assert "ties_lower_misfit" in {note.code for note in build_annotator_misfit_table(SIDES, Options()).notes}


def test_every_item_has_its_fit():
    found = cells(build_item_misfit_table(PAIRS, Options()))
    assert [*found] == [*PAIRS.ids]
    assert sum(row["comparisons"] for row in found.values()) == 2 * PAIRS.n_hits
    assert {row["flag"] for row in found.values()} <= {None, "high infit"}


def test_a_group_of_annotators_keeps_the_times_of_its_hits():
    own = answers_of_annotators(SIDES, np.array([False, True]))
    assert own.seconds is not None
    assert own.seconds.tolist()[0] == 4.0
    assert len(own.seconds) == own.n_hits == 2


async def test_answers_given_in_easel_have_a_time(engine):
    campaign = await create_running_campaign(engine, design="pairwise", items_per_hit=2)
    annotator = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, annotator)
    await submit_scores(engine, annotator, hit, now=NOW + timedelta(seconds=7), scores=[1.0, 2.0])
    async with open_snapshot(engine) as connection:
        loaded = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        made = await load_campaign_answers(connection, loaded.criteria[0])
    assert made.seconds is not None
    assert made.seconds.tolist() == [7.0]
    assert made.matches_by_score


def test_times_belong_to_their_answers_and_are_missing_for_others():
    found = seconds_of_responses_or_nan(np.array([2, 5, 9]), np.array([9, 2, 7, 11]), np.array([1.0, 3.0, 8.0, 2.0]))
    np.testing.assert_array_equal(found, [3.0, np.nan, 1.0])


def test_choices_are_listed_in_the_columns_of_no_more_marking_without_ties():
    found = lazy_winner_loser_table(SIDES, Options())
    assert found.columns == ("judge", "candidate_chosen", "candidate_not_chosen", "time_taken")
    rows = list(found.make_rows(0, found.row_count))
    assert rows[0] == ("a0", "i0", "i1", 1.0)
    assert rows[8] == ("a0", "i1", "i0", 9.0)
    assert rows[10:] == [("a1", "i0", "i1", None)]
    assert [*found.make_rows(0, 4), *found.make_rows(4, 100)] == rows
