"""Annotator-aware Bradley-Terry as a method of analysis, and what its fit says of annotators in their table."""

from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from app.analysis.available_methods import (
    available_methods_for_design,
    fit_scores_with_reading_notes,
    fit_table_or_refuse,
)
from app.analysis.methods import SCORE_METHODS, TABLE_METHODS
from app.analysis.result_types import Options
from app.designs.registry import DESIGNS
from app.inference.ground.metrics import spearman
from tests.analysis.answers import answers, crowd_answers

pytestmark = pytest.mark.usefixtures("all_posterior_draws")

ITEMS, ANNOTATORS = 20, 6
TRUTH = np.linspace(-2.5, 2.5, ITEMS)


def pairs_with_one_random_annotator(hits=600):
    """Return comparisons by the careful annotators a1 to a5, and by a0, who answers at random."""
    rng = np.random.default_rng(1)
    made = []
    for number in range(hits):
        who = number % ANNOTATORS
        first, second = rng.permutation(ITEMS)[:2].tolist()
        chance = 0.5 if who == 0 else expit(TRUTH[first] - TRUTH[second])
        won = 100.0 * (rng.random() < chance)
        made.append((who, {first: won, second: 100.0 - won}))
    return answers(made, n_items=ITEMS, value_kind="order")


def annotator_rows(made):
    found = fit_table_or_refuse(TABLE_METHODS["annotators"], made, Options())
    names = [column.name for column in found.columns]
    return [dict(zip(names, row, strict=True)) for row in found.rows], found.notes


def test_who_answers_at_random_hardly_counts_and_a_note_says_so_without_a_name():
    made = pairs_with_one_random_annotator()
    aware = fit_scores_with_reading_notes(SCORE_METHODS["aware_bradley_terry"], made)
    plain = fit_scores_with_reading_notes(SCORE_METHODS["bradley_terry"], made)
    assert np.ptp(aware.values) > 1.2 * np.ptp(plain.values)
    (note,) = [note for note in aware.notes if note.code == "careless_annotators"]
    assert note.startswith("1 annotator probably answers at random")
    assert not any(name in note for name in (*made.names, *made.annotators))
    assert aware.low is not None
    assert aware.high is not None
    assert (aware.low < aware.values).all()
    assert (aware.values < aware.high).all()


def test_the_table_of_annotators_has_their_discrimination_with_its_error_and_interval():
    rows, _ = annotator_rows(pairs_with_one_random_annotator(hits=1200))
    assert rows[0]["random"] > 0.9
    assert abs(rows[0]["discrimination"]) < 0.2
    assert max(row["random"] for row in rows[1:]) < 0.1
    assert all(0.6 < row["discrimination"] < 1.5 for row in rows[1:])
    assert all(0.0 < row["discrimination_error"] < 0.5 for row in rows[1:])
    assert all(row["discrimination_low"] < row["discrimination"] < row["discrimination_high"] for row in rows)
    assert rows[0]["discrimination_low"] < 0.0 < rows[0]["discrimination_high"]
    assert all(0.2 < row["discrimination_low"] < 1.0 < row["discrimination_high"] < 2.0 for row in rows[1:])


@pytest.mark.parametrize("design", ["pairwise", "baseline", "ranking", "best_worst", "slider", "magnitude", "ordinal"])
def test_every_design_with_an_order_has_the_method(design):
    assert "aware_bradley_terry" in available_methods_for_design(DESIGNS[design]()).scores


def test_categories_do_not_have_it():
    assert "aware_bradley_terry" not in available_methods_for_design(DESIGNS["categories"]()).scores


def test_annotators_who_give_scores_have_a_reliability_and_no_discrimination():
    rows, _ = annotator_rows(crowd_answers())
    assert "reliability" in rows[0]
    assert "discrimination" not in rows[0]


def test_without_pairs_the_cells_are_empty_and_a_note_says_why():
    made = answers([(0, {0: 100.0}), (1, {1: 100.0})], value_kind="order")
    rows, notes = annotator_rows(made)
    for name in ("discrimination", "discrimination_error", "discrimination_low", "discrimination_high"):
        assert [row[name] for row in rows] == [None, None]
    assert any(note.code == "no_discrimination" for note in notes)


def test_rankings_weigh_less_than_as_many_independent_pairs():
    rng = np.random.default_rng(2)
    ranked, pairs = [], []
    for number in range(40):
        order = np.argsort(np.arange(5) + rng.gumbel(0, 1.5, 5))
        places = {int(item): 25.0 * place for place, item in enumerate(order)}
        ranked.append((number % 4, places))
        pairs += [(number % 4, {i: places[i], j: places[j]}) for i, j in combinations(range(5), 2)]
    ranking, pairwise = (
        fit_scores_with_reading_notes(SCORE_METHODS["aware_bradley_terry"], answers(hits, value_kind="order"))
        for hits in (ranked, pairs)
    )
    assert ranking.standard_error is not None
    assert pairwise.standard_error is not None
    assert np.all(ranking.standard_error > 1.1 * pairwise.standard_error)
    assert spearman(ranking.values, np.arange(5.0)) > 0.8
