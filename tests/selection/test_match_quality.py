import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.selection.match_quality import match_quality, match_quality_matrix

score = st.floats(0, 1)
variance = st.floats(0, 0.25)
gamma = st.floats(0.05, 10)


def test_match_quality_of_two_unknown_items():
    # c^2 = 2 * 0.01 + 1/12 + 1/12, no difference in mode.
    assert match_quality(0.5, 1 / 12, 0.5, 1 / 12, 0.1) == pytest.approx(math.sqrt(0.02 / (0.02 + 1 / 6)))


def test_match_quality_falls_with_the_difference():
    c2 = 0.02 + 0.01 + 0.03
    expected = math.sqrt(0.02 / c2) * math.exp(-(0.4**2) / (2 * c2))
    assert match_quality(0.3, 0.01, 0.7, 0.03, 0.1) == pytest.approx(expected)


def test_two_items_known_exactly_to_be_equal_match_perfectly():
    assert match_quality(0.3, 0.0, 0.3, 0.0, 0.1) == 1.0


@given(score, variance, score, variance, gamma)
def test_match_quality_is_symmetric_to_the_bit_and_lies_in_0_to_1(s, v, t, w, gamma):
    q = match_quality(s, v, t, w, gamma)
    assert q == match_quality(t, w, s, v, gamma)
    assert 0 < q <= 1


@given(score, variance, score, variance, gamma)
def test_match_quality_is_at_most_that_of_equal_scores_known_exactly(s, v, t, w, gamma):
    same_score = match_quality(s, v, s, w, gamma)
    assert match_quality(s, v, t, w, gamma) <= same_score <= match_quality(s, 0, s, w, gamma)


def test_the_matrix_holds_every_pair():
    rng = np.random.default_rng(1)
    scores, variances = rng.uniform(size=7), rng.uniform(0, 0.1, size=7)
    matrix = match_quality_matrix(scores, variances, 0.1)
    assert matrix.shape == (7, 7)
    np.testing.assert_array_equal(matrix, matrix.T)
    for i in range(7):
        for j in range(7):
            assert matrix[i, j] == match_quality(scores[i], variances[i], scores[j], variances[j], 0.1)


def test_a_gamma_that_cannot_be_is_refused(subtests):
    for gamma in (0.0, -0.1, np.nan, np.inf):
        with subtests.test(gamma=gamma), pytest.raises(ValueError, match="gamma"):
            match_quality(0.5, 0.1, 0.5, 0.1, gamma)


@pytest.mark.parametrize("variance", [-0.1, np.nan])
def test_a_variance_that_cannot_be_is_refused(variance):
    with pytest.raises(ValueError, match="variance"):
        match_quality([0.5], [0.1], [0.5], [variance], 0.1)


def test_a_score_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match="NaN"):
        match_quality([0.5, np.nan], 0.1, 0.5, 0.1, 0.1)


def test_a_matrix_of_unlike_shapes_is_refused():
    with pytest.raises(ValueError, match=r"\(N,\)"):
        match_quality_matrix([0.5, 0.6], [0.1], 0.1)
    with pytest.raises(ValueError, match=r"\(N,\)"):
        match_quality_matrix(0.5, 0.1, 0.1)
