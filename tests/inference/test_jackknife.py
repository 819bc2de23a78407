"""A band tells how a figure would be with other people."""

import numpy as np
import pytest
from scipy.stats import t

from app.inference.ground.jackknife import (
    ends_of_jackknife_correlation_band,
    fisher_z,
    half_width_of_student_t_band,
    jackknife_error,
)

ALL = np.ones((4, 1), bool)


def test_of_a_mean_the_error_is_what_everybody_knows():
    values = np.array([1.0, 4.0, 6.0, 9.0])
    without = np.array([[np.delete(values, k).mean()] for k in range(4)])
    assert jackknife_error(without, ALL) == pytest.approx(values.std(ddof=1) / 2)


def test_who_had_not_answered_by_then_changes_nothing():
    without = np.array([[0.5, 0.5], [0.7, 0.7], [0.6, 0.6]])
    there = np.array([[True, True], [True, True], [False, True]])
    two, three = jackknife_error(without, there)
    assert two == pytest.approx(jackknife_error(without[:2, :1], ALL[:2])[0])
    assert three != two


def test_one_person_alone_tells_nothing_of_how_people_differ():
    assert np.isnan(jackknife_error(np.array([[np.nan]]), ALL[:1])).all()
    assert np.isnan(ends_of_jackknife_correlation_band(np.array([0.5]), np.array([[np.nan]]), ALL[:1])).all()


def test_few_people_reach_further():
    assert half_width_of_student_t_band(np.ones(2), [3, 100]) == pytest.approx([t.ppf(0.975, 2), t.ppf(0.975, 99)])


def test_a_band_of_correlations_holds_the_figure_and_stays_within_its_ends():
    whole, without = np.array([0.98]), np.array([[0.9], [0.99], [0.97], [0.98]])
    low, high = ends_of_jackknife_correlation_band(whole, without, ALL)
    assert -1 < low < whole < high < 1
    assert fisher_z(whole) - fisher_z(low) == pytest.approx(fisher_z(high) - fisher_z(whole))
    low, high = ends_of_jackknife_correlation_band(np.ones(1), np.ones((4, 1)), ALL)
    assert low == pytest.approx(1)
    assert high == 1
