"""Reliability of scores from comparisons: worked numbers, and halves that are simulated or brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.ground.inestimable import Inestimable
from app.inference.ground.proportions import wilson_shares_and_interval_ends
from app.inference.preferences import best_worst_counts
from app.inference.preferences.scale_reliability import (
    best_worst_split_halves_within_tuples,
    correlate_scores_of_annotator_halves_or_raise,
    random_half_of_each_tuple,
    scale_separation,
)

SCORES = [-1.8, -0.9, -0.3, 0.1, 0.6, 1.1, 1.9]
ERRORS = [0.45, 0.38, 0.36, 0.35, 0.36, 0.39, 0.47]


def simulated_pairs(*, items=12, annotators=10, each=60, spread=1.0, seed=1):
    rng = np.random.default_rng(seed)
    truth = spread * np.linspace(-2, 2, items)
    count = annotators * each
    first = rng.integers(items, size=count)
    second = (first + rng.integers(1, items, size=count)) % items
    outcomes = np.where(rng.random(count) < 1 / (1 + np.exp(truth[second] - truth[first])), 1, -1)
    return first, second, outcomes, np.repeat(np.arange(annotators), each)


def test_scale_separation_is_the_share_of_variance_beyond_the_errors_by_hand():
    found = scale_separation(SCORES, ERRORS)
    # Variance 1.543333333 and mean squared error .157371429.
    assert found.reliability == pytest.approx(0.898031472, abs=1e-9)
    assert found.separation == pytest.approx(2.967650160, abs=1e-9)
    assert found.n_items == 7


def test_items_without_a_score_do_not_count_and_too_few_are_refused():
    assert scale_separation([*SCORES, np.nan], [*ERRORS, 1.0]) == scale_separation(SCORES, ERRORS)
    with pytest.raises(Inestimable) as refused:
        scale_separation([1.0, 2.0, np.nan], [0.1, 0.1, 0.1])
    assert refused.value.code == "too_few_on_scale"
    with pytest.raises(Inestimable) as refused:
        scale_separation([1.0, 1.0, 1.0], [0.1, 0.1, 0.1])
    assert refused.value.code == "scale_of_one_point"


@given(st.lists(st.floats(-5, 5), min_size=3, max_size=20), st.floats(0.1, 3), st.floats(0.1, 10))
def test_reliability_follows_from_separation_and_the_unit_does_not_matter(scores, error, unit):
    if np.ptp(scores) < 1e-3:
        return
    found = scale_separation(scores, np.full(len(scores), error))
    assert found.reliability < 1
    if found.reliability > 0:
        assert found.reliability == pytest.approx(found.separation**2 / (1 + found.separation**2))
    else:
        assert found.separation == 0
    scaled = scale_separation(unit * np.array(scores), np.full(len(scores), unit * error))
    assert scaled.reliability == pytest.approx(found.reliability, abs=1e-6)


def test_halves_of_annotators_agree_if_items_differ_and_do_not_if_they_are_alike():
    apart = correlate_scores_of_annotator_halves_or_raise(*simulated_pairs(), splits=30, rng=np.random.default_rng(2))
    alike = correlate_scores_of_annotator_halves_or_raise(
        *simulated_pairs(spread=0.0), splits=30, rng=np.random.default_rng(2)
    )
    assert apart.correlation > 0.9
    assert abs(alike.correlation) < 0.3
    assert apart.low <= apart.correlation <= apart.high
    assert apart.full_length == pytest.approx(2 * apart.correlation / (1 + apart.correlation))
    assert apart.n_splits == 30


def test_the_same_seed_gives_the_same_figures():
    one, again = (
        correlate_scores_of_annotator_halves_or_raise(*simulated_pairs(), splits=5, rng=np.random.default_rng(4))
        for _ in range(2)
    )
    assert one == again


def test_comparisons_by_one_annotator_cannot_be_split():
    first, second, outcomes, _ = simulated_pairs()
    with pytest.raises(Inestimable) as refused:
        correlate_scores_of_annotator_halves_or_raise(
            first, second, outcomes, np.zeros_like(first), rng=np.random.default_rng(1)
        )
    assert refused.value.code == "one_judge"


def test_halves_without_common_items_are_refused():
    with pytest.raises(Inestimable) as refused:
        correlate_scores_of_annotator_halves_or_raise([0, 2], [1, 3], [1, 1], [0, 1], rng=np.random.default_rng(1))
    assert refused.value.code == "halves_without_scale"


TUPLES = st.lists(st.integers(0, 6), min_size=1, max_size=60)


@given(TUPLES, st.integers(0, 100))
def test_each_half_has_half_of_the_answers_to_every_tuple(tuples, seed):
    numbers = np.unique(np.array(tuples, np.intp), return_inverse=True)[1]
    half = random_half_of_each_tuple(numbers, np.random.default_rng(seed))
    for number in np.unique(numbers):
        own = half[numbers == number]
        assert abs(2 * own.sum() - len(own)) <= 1


def test_halves_of_two_answers_to_each_tuple_are_the_two_answers():
    # Two answers to each of four tuples; a split gives one of them to each half, so brute force needs 16 splits.
    rng = np.random.default_rng(3)
    shown = [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 0, 1], [1, 2, 5, 0]]
    rows = [(2 * k + c, item, rng.random()) for k, some in enumerate(shown) for c in range(2) for item in some]
    hits, items, scores = (np.array(column) for column in zip(*rows, strict=True))
    possible = []
    for choice in range(16):
        mask = np.isin(hits, [2 * k + (choice >> k & 1) for k in range(4)])
        one, other = (best_worst_counts.fit(hits[m], items[m], scores[m], n_items=6).score for m in (mask, ~mask))
        possible.append(np.corrcoef(one, other)[0, 1])
    found = best_worst_split_halves_within_tuples(hits, items, scores, splits=1000, rng=rng)
    assert found.correlation == pytest.approx(np.mean(possible), abs=0.03)
    assert found.low >= min(possible) - 1e-9
    assert found.high <= max(possible) + 1e-9


def test_wilsons_interval_of_eight_in_ten_as_published():
    share, low, high = wilson_shares_and_interval_ends([8, 0, 0], [10, 10, 0])
    np.testing.assert_allclose(share, [0.8, 0.0, np.nan])
    np.testing.assert_allclose(low, [0.4902, 0.0, np.nan], atol=5e-5)
    np.testing.assert_allclose(high, [0.9433, 0.2775, np.nan], atol=5e-5)
