"""Infit and outfit of comparisons: a worked annotator, an oracle, and simulated careless annotators."""

import numpy as np
import pytest

from app.inference.preferences import bradley_terry
from app.inference.preferences.misfit import mask_of_high_infit, misfit_of_annotators_and_items

A, B, C, D = range(4)
WON = [(A, B), (A, C), (C, B), (D, A), (C, D), (B, D)]


def worked():
    first, second = zip(*WON, strict=True)
    return misfit_of_annotators_and_items(first, second, [1] * 6, [0] * 6, [0.8, 0.2, -0.4, -0.6])


def test_infit_and_outfit_of_one_annotator_by_hand():
    annotators, _ = worked()
    assert annotators.outfit[0] == pytest.approx(1.332564055, abs=1e-9)
    assert annotators.infit[0] == pytest.approx(1.225157920, abs=1e-9)
    assert annotators.comparisons.tolist() == [6]


def test_each_comparison_counts_for_both_of_its_items():
    scores = np.array([0.8, 0.2, -0.4, -0.6])
    _, items = worked()
    own = [(winner, loser) for winner, loser in WON if B in (winner, loser)]
    chances = np.array([1 / (1 + np.exp(scores[loser] - scores[winner])) for winner, loser in own])
    squares, variances = (1 - chances) ** 2, chances * (1 - chances)
    assert items.outfit[B] == pytest.approx((squares / variances).mean())
    assert items.infit[B] == pytest.approx(squares.sum() / variances.sum())
    assert items.comparisons.tolist() == [3, 3, 3, 3]


def test_the_side_on_which_an_item_was_shown_does_not_matter():
    first, second = zip(*WON, strict=True)
    turned = misfit_of_annotators_and_items(second, first, [-1] * 6, [0] * 6, [0.8, 0.2, -0.4, -0.6])
    np.testing.assert_allclose(turned[0].infit, worked()[0].infit)


def test_answers_as_noisy_as_the_model_have_an_infit_near_one_and_a_random_annotator_is_flagged():
    rng = np.random.default_rng(5)
    truth, annotators, each = np.linspace(-2, 2, 15), 20, 150
    first = rng.integers(15, size=annotators * each)
    second = (first + rng.integers(1, 15, size=len(first))) % 15
    who = np.repeat(np.arange(annotators), each)
    chance = np.where(who == 7, 0.5, 1 / (1 + np.exp(truth[second] - truth[first])))
    outcomes = np.where(rng.random(len(first)) < chance, 1, -1)
    scores = bradley_terry.fit(first, second, outcomes).score
    found, _ = misfit_of_annotators_and_items(first, second, outcomes, who, scores)
    assert np.flatnonzero(found.is_flagged).tolist() == [7]
    np.testing.assert_allclose(np.delete(found.infit, 7), 1.0, atol=0.25)
    assert found.infit[7] > 1.3


def test_annotators_without_comparisons_have_no_figures_and_two_are_too_few_to_flag():
    found, _ = misfit_of_annotators_and_items([0], [1], [1], [1], [0.5, -0.5], n_annotators=3)
    assert np.isnan(found.infit).tolist() == [True, False, True]
    assert not mask_of_high_infit(np.array([1.0, 9.0])).any()
    assert mask_of_high_infit(np.array([1.0] * 9 + [2.0, np.nan])).tolist() == [False] * 9 + [True, False]


def test_a_compared_item_without_a_score_is_refused():
    with pytest.raises(ValueError, match="finite score"):
        misfit_of_annotators_and_items([0], [1], [1], [0], [0.5, np.nan])
