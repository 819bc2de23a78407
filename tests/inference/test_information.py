import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.inference.ground.information import entropy, mutual_information

weights = st.floats(0.01, 1)


def shares(*shape):
    return arrays(np.float64, shape, elements=weights).map(lambda w: w / w.sum(axis=-1, keepdims=True))


def after_one_label(prior, response):
    """Return H[Z] - sum_l p(l) H[Z | Y = l] by the paper's formula, one label at a time."""
    left = 0.0
    for label in range(response.shape[1]):
        joint = prior * response[:, label]
        left += joint.sum() * entropy(joint / joint.sum())
    return entropy(prior) - left


def test_the_entropy_of_a_fair_coin_is_one_bit():
    np.testing.assert_allclose(entropy([[0.5, 0.5], [1.0, 0.0], [0.25, 0.75]]), [1.0, 0.0, 0.8112781244591328])


@pytest.mark.parametrize(
    ("response", "bits"),
    [
        ([[0.65, 0.35], [0.5, 0.5]], 0.01),
        ([[0.75, 0.25], [0.24, 0.76]], 0.13),
        ([[0.9, 0.1], [0.2, 0.8]], 0.25),
    ],
)
def test_the_three_annotators_of_the_paper_tell_what_the_paper_says(response, bits):
    assert mutual_information([0.2, 0.8], response) == pytest.approx(bits, abs=0.005)


def test_mutual_information_by_hand():
    # p(Y = 1) = .2 * .9 + .8 * .2 = .34; p(Z = 1 | Y = 1) = .18 / .34, p(Z = 1 | Y = 2) = .02 / .66.
    def binary_entropy(p):
        return -p * math.log2(p) - (1 - p) * math.log2(1 - p)

    by_hand = binary_entropy(0.2) - 0.34 * binary_entropy(0.18 / 0.34) - 0.66 * binary_entropy(0.02 / 0.66)
    assert by_hand == pytest.approx(0.253, abs=0.0005)
    assert mutual_information([0.2, 0.8], [[0.9, 0.1], [0.2, 0.8]]) == pytest.approx(by_hand, abs=1e-15)


@given(shares(3), shares(3, 4))
def test_it_is_the_expected_loss_of_entropy(prior, response):
    assert mutual_information(prior, response) == pytest.approx(after_one_label(prior, response), abs=1e-12)


@given(shares(3), shares(4))
def test_a_spammer_tells_nothing(prior, answers):
    assert mutual_information(prior, np.tile(answers, (3, 1))) == pytest.approx(0.0, abs=1e-14)


@given(shares(3))
def test_one_who_is_always_right_or_always_wrong_in_the_same_way_tells_all(prior):
    for response in (np.eye(3), np.eye(3)[[1, 2, 0]]):
        assert mutual_information(prior, response) == pytest.approx(entropy(prior), abs=1e-12)


@given(shares(4), shares(4, 3))
def test_it_lies_between_0_and_the_entropy_of_the_class(prior, response):
    assert 0.0 <= mutual_information(prior, response) <= entropy(prior) + 1e-12


def test_many_items_and_many_annotators_at_once():
    rng = np.random.default_rng(1)
    posterior, response = rng.dirichlet(np.ones(3), 5), rng.dirichlet(np.ones(3), (4, 3))
    table = mutual_information(posterior[:, None], response)
    assert table.shape == (5, 4)
    assert table[2, 3] == mutual_information(posterior[2], response[3])


def test_what_is_not_known_stays_not_known():
    assert np.isnan(mutual_information([0.5, 0.5], [[np.nan, np.nan], [0.5, 0.5]]))
