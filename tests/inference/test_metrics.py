import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.ground import metrics
from app.inference.ground.inestimable import Inestimable


def test_correlations_by_hand():
    reference, score = [1, 2, 3, 4], [1, 3, 2, 9]
    assert metrics.pearson(reference, score) == pytest.approx(11.5 / np.sqrt(5 * 38.75))
    assert metrics.spearman(reference, score) == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert metrics.kendall(reference, score) == pytest.approx(4 / 6)


def test_kendall_allows_for_ties():
    # One pair of six tied on one side: 4 concordant, 1 discordant.
    assert metrics.kendall([1, 2, 3, 4], [1, 1, 3, 2]) == pytest.approx((4 - 1) / np.sqrt(6 * 5))


def test_ndcg_by_hand():
    # Best order 3, 2, 0; the score puts the 2 first.
    ideal = 3 + 2 / np.log2(3)
    assert metrics.ndcg([3, 2, 0], [1, 5, 0]) == pytest.approx((2 + 3 / np.log2(3)) / ideal)
    assert metrics.ndcg([3, 2, 0], [1, 5, 0], cutoff=1) == pytest.approx(2 / 3)


def test_ndcg_of_ties_is_the_mean_over_their_orders():
    orders = [metrics.ndcg([3, 2, 0], [5, tie, 4.5 - tie / 2]) for tie in (1, 4)]
    assert metrics.ndcg([3, 2, 0], [5, 1, 1]) == pytest.approx(np.mean(orders))


def test_ndcg_of_scikit_learn_1_7():
    # Frozen: sklearn.metrics.ndcg_score([[10, 0, 0, 1, 5]], [[.1, .2, .3, 4, 70]]), an example of its documentation.
    assert metrics.ndcg([10, 0, 0, 1, 5], [0.1, 0.2, 0.3, 4, 70]) == pytest.approx(0.69569, abs=1e-5)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-5, 5)), min_size=1, max_size=20))
def test_ndcg_lies_in_0_to_1_and_does_not_depend_on_the_order_of_items(rows):
    gain, score = map(np.array, zip(*rows, strict=True))
    if not gain.any():
        with pytest.raises(Inestimable):
            metrics.ndcg(gain, score)
        return
    value = metrics.ndcg(gain, score)
    assert 0 <= value <= 1 + 1e-12
    assert metrics.ndcg(gain[::-1], score[::-1]) == pytest.approx(value)
    assert metrics.ndcg(gain, gain) == pytest.approx(1)


def test_two_sets_of_scores_are_compared_where_both_have_one():
    reference = np.array([-1.0, 0.0, np.nan, 2.0, 1.0])
    score = np.array([0.1, 0.3, 0.9, 0.8, np.nan])
    agreement = metrics.correlate_scores(reference, score)
    assert agreement.n == 3
    assert agreement.spearman == 1
    assert agreement.kendall == pytest.approx(1)
    assert agreement.pearson == pytest.approx(np.corrcoef([-1, 0, 2], [0.1, 0.3, 0.8])[0, 1])
    assert agreement.ndcg == pytest.approx(1)
    assert agreement.notes == ("Items left out because one side has no score for them: 2 of 5 items.",)


def test_equal_scores_leave_no_correlation_and_a_word():
    agreement = metrics.correlate_scores([0.5, 0.5, 0.5], [1, 2, 3])
    assert np.isnan([agreement.pearson, agreement.spearman, agreement.kendall, agreement.ndcg]).all()
    assert agreement.notes == (
        "All reference scores are equal, so there is no correlation.",
        "All reference scores are equal, so no order is better than another.",
    )


def test_scores_equal_up_to_rounding_are_equal():
    with pytest.raises(Inestimable) as refusal:
        metrics.pearson([1, 2, 3], [0.1 + 0.2, 0.3, 0.3])
    assert refusal.value.code == "constant"


@pytest.mark.parametrize("pair", [([], []), ([1.0], [2.0]), ([1.0, np.nan], [2.0, 3.0])])
def test_fewer_than_two_items_cannot_be_compared(pair):
    with pytest.raises(Inestimable) as refusal:
        metrics.correlate_scores(*pair)
    assert refusal.value.code == "too_few"


def test_ndcg_of_no_items_is_inestimable():
    with pytest.raises(Inestimable):
        metrics.ndcg([], [])


def test_what_cannot_be_compared_is_refused(subtests):
    for measure, message in (
        (lambda: metrics.pearson([1, 2], [1, 2, 3]), "both must be"),
        (lambda: metrics.correlate_scores([1, 2], [1, 2, 3]), "both must be"),
        (lambda: metrics.spearman([1, np.inf], [1, 2]), "finite"),
        (lambda: metrics.ndcg([-1, 2], [1, 2]), "at least 0"),
        (lambda: metrics.ndcg([1, 2], [1, 2], cutoff=0), "cutoff"),
    ):
        with subtests.test(measure=measure, message=message), pytest.raises(ValueError, match=message):
            measure()
