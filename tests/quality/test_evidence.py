"""How sure one can be of somebody who is looked at after every answer."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from app.quality.sequential_limits import (
    ends_of_sequential_correlation_interval,
    is_event_share_above_limit,
    log_bayes_factor,
    median_of_other_annotators_or_nan,
    pearson_correlation_or_zero,
)

ALARM = 0.02


def test_surprise_is_the_mean_likelihood_of_the_shares_above_beside_that_of_the_share_itself():
    above = quad(lambda p: p**3 * (1 - p) ** 2, 0.2, 1)[0] / 0.8
    assert log_bayes_factor(3, 5, 0.2) == pytest.approx(math.log(above / (0.2**3 * 0.8**2)))


def test_what_never_happened_surprises_nobody():
    assert log_bayes_factor(0, 10, 0.2) < 0
    assert not is_event_share_above_limit(0, 0, 0.2, 0.5)


def test_what_always_happens_is_too_often_after_a_few_cases_only():
    failed_all = [is_event_share_above_limit(n, n, 0.2, 0.002) for n in range(1, 8)]
    assert failed_all == [False] * 4 + [True] * 3
    assert is_event_share_above_limit(1, 1, 0.2, 0.5)  # three times as likely as at a share of a fifth


def test_of_those_in_whom_it_happens_just_so_often_few_are_ever_found_though_looked_at_after_every_case():
    rng = np.random.default_rng(1)
    found = 0
    for _ in range(600):
        times = np.cumsum(rng.random(150) < 0.3).tolist()
        found += any(is_event_share_above_limit(times[n - 1], n, 0.3, ALARM) for n in range(1, 151))
    assert found <= 600 * ALARM + 3 * math.sqrt(600 * ALARM)
    assert found < sum(is_event_share_above_limit(90, 150, 0.3, ALARM) for _ in range(600))


def test_an_interval_holds_the_truth_at_all_looks_together_and_gets_narrower():
    rng = np.random.default_rng(2)
    missed, looks = 0, []
    for _ in range(300):
        x = rng.standard_normal(200)
        y = 0.6 * x + 0.8 * rng.standard_normal(200)
        looks = [
            ends_of_sequential_correlation_interval(pearson_correlation_or_zero(x[:n], y[:n]), n, ALARM)
            for n in range(20, 201, 5)
        ]
        missed += any(not low <= 0.6 <= high for low, high in looks)
    assert missed <= 300 * ALARM + 3 * math.sqrt(300 * ALARM)
    assert looks[-1][1] - looks[-1][0] < looks[0][1] - looks[0][0]


def test_too_few_judgments_tell_nothing_of_a_correlation():
    assert ends_of_sequential_correlation_interval(0.99, 3, ALARM) == (-1.0, 1.0)


def test_an_interval_is_narrowest_for_its_judgments_where_there_are_about_eighty():
    """Widths on Fisher's scale, where an interval for a single look has the same width for any number of judgments."""
    widths = [
        math.atanh(ends_of_sequential_correlation_interval(0.0, judgments, ALARM)[1]) * math.sqrt(judgments - 3)
        for judgments in (10, 20, 40, 83, 160, 400)
    ]
    assert sorted(widths[:4], reverse=True) == widths[:4]
    assert sorted(widths[3:]) == widths[3:]
    assert widths[3] == pytest.approx(3.3, abs=0.1)


def test_nothing_goes_with_what_is_always_the_same():
    assert pearson_correlation_or_zero(np.full(5, 0.5), np.arange(5.0)) == 0.0


def test_what_is_usual_is_known_from_five_others_on_and_two_of_them_may_be_anything():
    assert math.isnan(median_of_other_annotators_or_nan(np.array([1.0, 2.0, 3.0, 4.0, math.nan])))
    assert median_of_other_annotators_or_nan(np.array([1.0, 1.1, 0.9, 99.0, 98.0])) == 1.1
