import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.inference.online import beta

parameter = st.floats(1e-6, 1e9)


def test_mode_of_a_peaked_posterior_is_equation_12():
    assert beta.score(5.0, 2.0) == 4 / 5
    np.testing.assert_array_equal(beta.score([2.0, 3.0, 1.0], [2.0, 1.0, 4.0]), [0.5, 1.0, 0.0])


def test_mode_of_the_flat_posterior_is_one_half():
    assert beta.score(1.0, 1.0) == 0.5


def test_mode_is_sane_where_a_parameter_is_below_one(subtests):
    for a, b, expected in (
        (0.5, 2.0, 0.0),
        (2.0, 0.5, 1.0),
        (0.5, 1.2, 0.0),
        (1.2, 0.5, 1.0),
        (0.5, 0.5, 0.5),
        (0.9, 0.1, 0.9),
    ):
        with subtests.test(a=a, b=b, expected=expected):
            assert beta.score(a, b) == pytest.approx(expected)


@given(parameter, parameter)
def test_mode_stays_between_0_and_1(a, b):
    assert 0.0 <= beta.score(a, b) <= 1.0


def test_variance_is_equation_13():
    assert beta.variance(1.0, 1.0) == pytest.approx(1 / 12, rel=1e-15)
    assert beta.variance([5.0], [2.0]) == pytest.approx([10 / (49 * 8)], rel=1e-15)


@given(parameter, parameter)
def test_one_posterior_and_arrays_of_them_have_the_same_bits(a, b):
    assert beta.beta_mode_and_variance_in_floats(a, b) == (beta.score([a], [b])[0], beta.variance([a], [b])[0])


def test_interval_holds_its_share_between_equal_tails():
    a, b = np.array([1.0, 0.7, 5.0, 300.0]), np.array([1.0, 3.0, 2.0, 200.0])
    low, high = beta.interval(a, b, level=0.8)
    np.testing.assert_allclose(stats.beta.cdf(low, a, b), 0.1, rtol=1e-9)
    np.testing.assert_allclose(stats.beta.cdf(high, a, b), 0.9, rtol=1e-9)


def test_interval_of_the_flat_posterior_is_95_percent_by_default():
    low, high = beta.interval(1.0, 1.0)
    assert (low, high) == pytest.approx((0.025, 0.975))


def test_density_agrees_with_an_independent_one_and_is_zero_outside():
    x = np.linspace(-0.25, 1.25, 31)
    a, b = np.array([[1.0], [2.5], [40.0]]), np.array([[1.0], [1.5], [60.0]])
    np.testing.assert_allclose(beta.density(a, b, x), stats.beta.pdf(x, a, b), rtol=1e-10, atol=1e-300)


def test_density_is_infinite_at_an_end_whose_parameter_is_below_one():
    assert beta.density(0.5, 2.0, 0.0) == np.inf


def test_a_parameter_that_cannot_be_is_refused(subtests):
    for read in (beta.score, beta.variance, beta.interval):
        for bad in (0.0, -1.0, np.nan, np.inf):
            with subtests.test(read=read, bad=bad):
                with pytest.raises(ValueError, match="finite and above 0"):
                    read([1.0, bad], [1.0, 1.0])
                with pytest.raises(ValueError, match="finite and above 0"):
                    read([1.0, 1.0], [bad, 1.0])


def test_a_level_outside_0_to_1_is_refused(subtests):
    for level in (0.0, 1.0, -0.5, 95.0, np.nan):
        with subtests.test(level=level), pytest.raises(ValueError, match="level"):
            beta.interval(1.0, 1.0, level)


def test_priors_where_floats_would_lose_the_updates_are_not_valid():
    assert beta.is_valid_beta_prior(1.0, 1.0)
    assert beta.is_valid_beta_prior(1e-6, 1e9)
    for bad in (0.0, -1.0, 1e-7, 1e10, float("nan"), float("inf")):
        assert not beta.is_valid_beta_prior(bad, 1.0)
        assert not beta.is_valid_beta_prior(1.0, bad)
