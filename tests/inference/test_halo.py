import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.agreement import halo
from app.inference.agreement.halo import HaloSums


def measure(items, one, other, **more):
    return halo.measure_halo(items, one, other, rng=np.random.default_rng(1), **more)


def of_means(items, one, other, **more):
    return halo.correlate_item_means(items, one, other, rng=np.random.default_rng(1), **more)


def warns(found):
    return halo.is_strong_halo(found.value, found.judgments)


def crowd(*, items, judgments, shared, quality, seed):
    """Return scores of two criteria whose true scores correlate by `quality` and whose errors correlate by `shared`."""
    rng = np.random.default_rng(seed)
    truth = rng.multivariate_normal([50, 50], [[100, 100 * quality], [100 * quality, 100]], items)
    item = np.repeat(np.arange(items), judgments)
    errors = rng.multivariate_normal([0, 0], [[225, 225 * shared], [225 * shared, 225]], len(item))
    one, other = (truth[item] + errors).T
    return item, one, other


def test_halo_by_hand():
    # Item 0: 1 and 3 by one criterion, 2 and 6 by the other; item 1: 5 and 5, 1 and 3; item 2 has a single judgment.
    judged = [0, 0, 1, 1, 2], [1, 3, 5, 5, 9], [2, 6, 1, 3, 8]
    # Deviations -1, 1, 0, 0 and -2, 2, -1, 1: their products add up to 4, their squares to 2 and 10.
    found = measure(*judged)
    assert found.value == pytest.approx(4 / np.sqrt(20))
    assert (found.items, found.judgments) == (2, 4)
    # Means 2, 5, 9 and 4, 2, 8.
    found = of_means(*judged)
    assert found.value == pytest.approx(np.corrcoef([2, 5, 9], [4, 2, 8])[0, 1])
    assert (found.items, found.judgments) == (3, 5)


def test_criteria_that_are_judged_apart_have_no_halo_however_alike_items_are():
    judged = crowd(items=400, judgments=5, shared=0.0, quality=0.9, seed=2)
    found = measure(*judged)
    assert found.value == pytest.approx(0.0, abs=0.06)
    assert found.low < 0 < found.high
    assert not warns(found)
    assert of_means(*judged).value > 0.5


def test_halo_is_recovered_however_different_items_are():
    found = measure(*crowd(items=400, judgments=5, shared=0.7, quality=0.0, seed=3))
    assert found.value == pytest.approx(0.7, abs=0.04)
    assert found.low < 0.7 < found.high
    assert warns(found)


def test_an_interval_holds_the_true_halo_as_often_as_it_says():
    held = 0
    for seed in range(60):
        found = measure(*crowd(items=40, judgments=4, shared=0.5, quality=0.4, seed=seed), draws=300)
        held += found.low < 0.5 < found.high
    assert held >= 50


def test_items_judged_once_tell_nothing_of_halo():
    judged = [0, 1, 2], [10, 20, 60], [20, 30, 40]
    assert np.isnan(measure(*judged).value)
    assert measure(*judged).judgments == 0
    assert of_means(*judged).value > 0.9


def test_scores_that_do_not_vary_have_no_correlation_and_those_of_nobody_neither():
    assert np.isnan(measure([0, 0, 1, 1], [0.1 + 0.2, 0.3, 0.7, 0.7], [1, 2, 3, 4]).value)
    for figure in (measure, of_means):
        assert np.isnan(figure(np.zeros(0, int), [], []).value)
    assert not warns(measure(np.zeros(0, int), [], []))


def test_few_judgments_are_no_reason_to_warn():
    assert not warns(measure(np.repeat(np.arange(14), 2), np.arange(28.0), np.arange(28.0)))
    assert warns(measure(np.repeat(np.arange(15), 2), np.arange(30.0), np.arange(30.0)))


def test_judgments_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="other 1"):
        measure([0, 0], [1, 2], [1])
    with pytest.raises(ValueError, match="finite"):
        of_means([0, 0], [1, np.nan], [1, 2])


JUDGMENTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=40)


@given(JUDGMENTS, st.floats(0.1, 9.0), st.floats(-50, 50))
def test_halo_depends_on_neither_scale_nor_the_order_of_criteria(judgments, factor, shift):
    items, one, other = (np.array(column) for column in zip(*judgments, strict=True))
    for figure in (measure, of_means):
        here, there = figure(items, one, other, draws=0), figure(items, other, factor * one + shift, draws=0)
        assert here.value == pytest.approx(there.value, nan_ok=True, abs=1e-6)
        assert np.isnan(here.value) or -1 <= here.value <= 1


@given(JUDGMENTS, st.integers(0, 40))
def test_sums_that_are_kept_up_with_give_the_same_in_any_pieces(judgments, cut):
    items, one, other = (np.array(column) for column in zip(*judgments, strict=True))
    scores = np.stack([one, other]) / 10
    known = (
        HaloSums.empty(5, 2)
        .with_judgments_added(items[:cut], scores[:, :cut])
        .with_judgments_added(items[cut:], scores[:, cut:])
    )
    found = measure(items, *scores, draws=0)
    assert known.halo_matrix[0, 1] == pytest.approx(found.value, nan_ok=True, abs=1e-9)
    assert known.mean_correlation_matrix[0, 1] == pytest.approx(
        of_means(items, *scores, draws=0).value, nan_ok=True, abs=1e-9
    )
    assert known.shared_judgment_count == found.judgments


def test_sums_of_nothing_have_no_figure():
    known = HaloSums.empty(3, 2)
    assert np.isnan(known.halo_matrix).all()
    assert np.isnan(known.mean_correlation_matrix).all()
    assert known.nbytes > 0
