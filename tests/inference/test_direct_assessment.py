import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import bootstrap, zscore

from app.inference.direct_assessment import fit, ordinal, standardised
from app.inference.inestimable import Inestimable


def rng(seed=1):
    return np.random.default_rng(seed)


def alone(items):
    """Every judgment by its own annotator."""
    return np.arange(len(items))


def test_mean_and_standard_error_by_hand():
    # .2, .4, .9: mean .5, squares .09 + .01 + .16 = .26, error sqrt(.26 / 2 / 3).
    items = [0, 0, 0, 1]
    found = fit(items, alone(items), [0.2, 0.4, 0.9, 0.7], rng=rng())
    assert found.score == pytest.approx([0.5, 0.7])
    assert found.standard_error[0] == pytest.approx(np.sqrt(0.26 / 6))
    assert found.judgments.tolist() == [3, 1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 100)), min_size=1, max_size=30))
def test_means_and_errors_are_those_of_each_item_by_itself(judgments):
    items, scores = (np.array(column) for column in zip(*judgments, strict=True))
    found = fit(items, alone(items), scores / 100, n_items=6, rng=rng(), draws=20)
    for item in range(6):
        own = scores[items == item] / 100
        if len(own):
            assert found.score[item] == pytest.approx(own.mean(), abs=1e-12)
        if len(own) > 1:
            assert found.standard_error[item] == pytest.approx(own.std(ddof=1) / len(own) ** 0.5, abs=1e-9)
            assert own.min() - 1e-12 <= found.low[item] <= found.high[item] <= own.max() + 1e-12
        assert found.estimable[item] == bool(len(own))
        assert np.isnan(found.standard_error[item]) == np.isnan(found.low[item]) == (len(own) < 2)


def test_the_interval_agrees_with_scipys_bootstrap():
    scores = rng(3).random(20)
    found = fit(np.zeros(20, int), alone(scores), scores, draws=20_000, rng=rng())
    expected = bootstrap((scores,), np.mean, n_resamples=20_000, method="percentile", rng=rng(2)).confidence_interval
    assert (found.low[0], found.high[0]) == pytest.approx((expected.low, expected.high), abs=0.004)


def test_the_interval_does_not_depend_on_what_other_items_there_are_beyond_chance():
    # 4 million cells are more than are held at once, so the items come in blocks.
    scores = np.tile(rng(3).random(10), 400)
    items = np.repeat(np.arange(400), 10)
    found = fit(items, alone(items), scores, rng=rng())
    assert np.ptp(found.low) < 0.06
    assert np.ptp(found.high) < 0.06
    assert np.isfinite(found.low).all()


@pytest.mark.parametrize("seed", range(3))
def test_the_interval_holds_the_true_score_as_often_as_it_says(seed):
    random = rng(seed)
    truth, items = random.uniform(0.3, 0.7, 400), np.repeat(np.arange(400), 25)
    found = fit(items, alone(items), truth[items] + random.normal(0, 0.1, len(items)), level=0.9, draws=300, rng=random)
    # With 25 judgments the percentile interval is about 3 % too narrow; less four standard errors of a share.
    assert ((found.low <= truth) & (truth <= found.high)).mean() > 0.88 - 4 * (0.9 * 0.1 / 400) ** 0.5


def test_one_item_may_have_more_judgments_than_are_held_at_once():
    scores = rng(7).random(5000)
    found = fit(np.zeros(5000, int), alone(scores), scores, draws=500, rng=rng())
    reach = 1.96 * scores.std() / 5000**0.5
    assert (found.low[0], found.high[0]) == pytest.approx((scores.mean() - reach, scores.mean() + reach), abs=reach / 5)


def test_what_cannot_be_estimated_is_nan_and_said():
    items = [0, 2, 2, 3, 3]
    found = fit(items, alone(items), [0.5, 0.1, 0.1, 0.2, 0.4], n_items=6, rng=rng())
    assert found.estimable.tolist() == [True, False, True, True, False, False]
    assert np.isnan(found.score).tolist() == [False, True, False, False, True, True]
    assert found.standard_error[2] == 0.0
    assert found.notes[0] == "3 items have no judgment, and so no score."
    assert found.notes[1].startswith("1 item has one judgment")
    assert found.notes[2].startswith("1 item was given the same score every time.")


def test_equal_scores_have_no_error_of_rounding():
    found = fit([0] * 10, alone(range(10)), [0.1] * 10, rng=rng())
    assert found.standard_error[0] == 0.0
    assert found.score[0] == found.low[0] == found.high[0] == pytest.approx(0.1, abs=1e-16)


def test_without_draws_or_pairs_there_are_no_intervals():
    assert np.isnan(fit([0, 0], [0, 1], [0.1, 0.3], draws=0, rng=rng()).low).all()
    assert np.isnan(fit([0, 1], [0, 1], [0.1, 0.3], rng=rng()).low).all()


def test_ordinal_labels_have_a_mean_and_a_median():
    items, labels = [0, 0, 0, 1, 1, 1, 1, 3], [4, 0, 1, 3, 0, 2, 1, 2]
    found = ordinal(items, alone(items), labels, n_labels=5, n_items=5, rng=rng())
    assert found.mean.score[[0, 1, 3]] == pytest.approx([5 / 3, 1.5, 2.0])
    assert found.median[[0, 1, 3]].tolist() == [1.0, 1.5, 2.0]
    assert np.isnan(found.median[[2, 4]]).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=30))
def test_medians_are_those_of_each_item_by_itself(judgments):
    items, labels = (np.array(column) for column in zip(*judgments, strict=True))
    found = ordinal(items, alone(items), labels, draws=0, rng=rng())
    assert [found.median[i] for i in set(items)] == [np.median(labels[items == i]) for i in set(items)]


def test_z_scores_are_taken_annotator_by_annotator():
    table = rng(4).random((12, 3))
    items, annotators = np.divmod(np.arange(36), 3)
    found = standardised(items, annotators, table.ravel(), rng=rng())
    assert found.scores.score == pytest.approx(zscore(table, axis=0, ddof=1).mean(axis=1))
    assert found.annotator_mean == pytest.approx(table.mean(axis=0))
    assert found.annotator_sd == pytest.approx(table.std(axis=0, ddof=1))
    assert found.scores.notes == ()


def test_strictness_and_a_narrow_use_of_the_scale_vanish():
    truth = rng(5).random(40)
    items = np.tile(np.arange(40), 3)
    annotators = np.repeat(np.arange(3), 40)
    scores = np.concatenate([truth, 0.2 * truth, 0.5 + 0.5 * truth])
    found = standardised(items, annotators, scores, rng=rng())
    assert found.scores.score == pytest.approx(zscore(truth, ddof=1))
    assert found.scores.standard_error == pytest.approx(np.zeros(40), abs=1e-12)


def test_annotators_without_z_scores_are_named_not_silent():
    # Annotator 1 always gives .5, 2 judges once, 3 not at all.
    items, annotators = [0, 1, 2, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 1, 4, 2]
    scores = [0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.9, 0.4]
    found = standardised(items, annotators, scores, rng=rng())
    assert found.usable.tolist() == [True, False, False, False, False]
    assert found.scores.score[:3] == pytest.approx([-1.0, 0.0, 1.0])
    assert not found.scores.estimable[3]
    assert found.scores.notes[:2] == (
        "2 annotators gave one judgment, which cannot be standardised: 2 judgments left out.",
        "1 annotator always gave the same score, which cannot be standardised: 3 judgments left out.",
    )
    assert found.annotator_mean[[1, 2]].tolist() == [0.5, 0.4]
    assert np.isnan(found.annotator_sd[[2, 3]]).all()


def test_if_nobody_has_z_scores_it_is_said():
    with pytest.raises(Inestimable) as refused:
        standardised([0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.9], rng=rng())
    assert refused.value.code == "nothing_varies"


@pytest.mark.parametrize("method", [fit, ordinal, standardised])
def test_without_judgments_there_is_nothing_to_estimate(method):
    with pytest.raises(Inestimable) as refused:
        method([], [], [], n_items=3, rng=rng())
    assert refused.value.code == "no_judgments"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"level": 0.0}, "between 0 and 1"),
        ({"draws": -1}, "number of draws"),
        ({"n_items": 1}, "items are numbered"),
        ({"n_annotators": 1}, "annotators are numbered"),
    ],
)
@pytest.mark.parametrize("method", [fit, standardised])
def test_options_that_cannot_be_are_refused(method, options, words):
    with pytest.raises(ValueError, match=words):
        method([0, 1, 1], [0, 1, 1], [0.1, 0.2, 0.3], **options, rng=rng())


def test_arrays_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="lengths"):
        fit([0, 1], [0, 1], [0.5], rng=rng())
    with pytest.raises(ValueError, match="labels are numbered"):
        ordinal([0, 1], [0, 1], [0, 5], n_labels=5, rng=rng())
