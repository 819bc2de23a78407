import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.inference.ground.inestimable import Inestimable
from app.inference.ratings.geometric_mean import fit

judgments = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.floats(1e-6, 1e6)), min_size=1, max_size=30)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def test_half_and_twice_the_reference_are_together_as_good_as_it():
    found = fit([0, 0, 1, 1], [0, 1, 0, 1], [0.5, 2.0, 1.0, 9.0])
    assert found.score == pytest.approx([1.0, 3.0])
    assert found.judgments.tolist() == [2, 2]


@given(judgments)
def test_it_is_scipys_geometric_mean(rows):
    items, annotators, ratios = columns(rows)
    found = fit(items, annotators, ratios, n_items=4)
    for item in range(4):
        own = [ratio for k, ratio in zip(items, ratios, strict=True) if k == item]
        if own:
            assert found.score[item] == pytest.approx(stats.gmean(own), rel=1e-9)
        else:
            assert np.isnan(found.score[item])


@given(judgments, st.floats(0.01, 100))
def test_with_a_reference_of_another_value_everything_is_so_many_times_as_large(rows, times):
    items, annotators, ratios = columns(rows)
    one, other = (fit(items, annotators, np.array(ratios) * factor) for factor in (1.0, times))
    for name in ("score", "standard_error", "low", "high"):
        np.testing.assert_allclose(getattr(other, name), times * getattr(one, name), rtol=1e-6)


def test_a_ratio_and_its_reverse_have_reverse_intervals():
    items, annotators, ratios = [0, 0, 1, 1, 1], [0, 1, 0, 1, 2], np.array([0.5, 1.0, 2.0, 3.0, 8.0])
    one, other = fit(items, annotators, ratios), fit(items, annotators, 1 / ratios)
    np.testing.assert_allclose([one.score, one.low, one.high], [1 / other.score, 1 / other.high, 1 / other.low])
    assert (one.high - one.score > one.score - one.low).all()


@pytest.mark.parametrize("seed", range(3))
def test_intervals_hold_the_true_ratio_as_often_as_they_say(seed):
    rng = np.random.default_rng(seed)
    items, people = np.divmod(np.arange(400 * 4), 4)
    truth = np.exp(rng.normal(0.0, 0.7, 400))
    ratios = truth[items] * np.exp(rng.normal(0.0, 0.4, len(items)))
    found = fit(items, people, ratios)
    assert np.corrcoef(np.log(found.score), np.log(truth))[0, 1] > 0.94
    assert np.mean((found.low <= truth) & (truth <= found.high)) == pytest.approx(0.95, abs=0.035)
    # The error, first order: that of the logarithm times the score.
    assert np.median(found.standard_error / found.score) == pytest.approx(0.4 / 2, rel=0.1)


def test_what_is_no_ratio_is_refused(subtests):
    for impossible in (0.0, -1.0, np.nan, np.inf):
        with subtests.test(impossible=impossible), pytest.raises(ValueError, match="ratios"):
            fit([0, 0], [0, 1], [1.0, impossible])


def test_without_judgments_there_is_nothing_to_estimate():
    with pytest.raises(Inestimable) as refusal:
        fit([], [], [], n_items=3)
    assert refusal.value.code == "no_judgments"
