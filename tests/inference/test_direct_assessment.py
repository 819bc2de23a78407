import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, zscore

from app.inference.ground.inestimable import Inestimable
from app.inference.observations.tally import Tally
from app.inference.ratings.direct_assessment import assess_standardised_scores, fit, mean_and_median_labels
from app.inference.ratings.moderated_means import moderated_means_of_tally


def rng(seed=1):
    return np.random.default_rng(seed)


def alone(items):
    """Return a different annotator for each judgment."""
    return np.arange(len(items))


def test_mean_and_standard_error_by_hand():
    # .2, .4, .9: mean .5, squares .09 + .01 + .16 = .26, variance .26 / 2; nothing else tells of the variance.
    items = [0, 0, 0, 1]
    found = fit(items, alone(items), [0.2, 0.4, 0.9, 0.7])
    assert found.score == pytest.approx([0.5, 0.7])
    assert found.standard_error == pytest.approx(np.sqrt([0.13 / 3, 0.13]))
    assert found.judgments.tolist() == [3, 1]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 100)), min_size=1, max_size=30))
def test_means_are_those_of_each_item_by_itself(judgments):
    items, scores = (np.array(column) for column in zip(*judgments, strict=True))
    found = fit(items, alone(items), scores / 100, n_items=6)
    for item in range(6):
        own = scores[items == item] / 100
        if len(own):
            assert found.score[item] == pytest.approx(own.mean(), abs=1e-12)
        assert found.estimable[item] == bool(len(own))


@pytest.mark.parametrize("scale", [None, (0.0, 1.0)])
def test_errors_and_intervals_are_the_moderated_ones(scale):
    random = rng(3)
    items, annotators, scores = random.integers(20, size=100), random.integers(9, size=100), random.random(100)
    found = fit(items, annotators, scores, n_items=21, scale=scale, level=0.9)
    expected = moderated_means_of_tally(Tally.empty(21).with_judgments_added(items, annotators, scores), scale)
    np.testing.assert_array_equal(found.standard_error, expected.standard_error)
    np.testing.assert_allclose([found.low, found.high], expected.interval(0.9))


def test_what_cannot_be_estimated_is_nan_and_said():
    items = [0, 2, 2, 3, 3]
    found = fit(items, alone(items), [0.5, 0.1, 0.1, 0.2, 0.4], n_items=6)
    assert found.estimable.tolist() == [True, False, True, True, False, False]
    assert np.isnan(found.score).tolist() == [False, True, False, False, True, True]
    assert np.isfinite(found.low).tolist() == [True, False, True, True, False, False]
    assert found.notes == (
        "3 items have no judgment and no score.",
        "1 item has one judgment: its error is estimated from the other items.",
    )


def test_why_there_is_no_interval_is_said():
    once, alike = fit([0, 1], [0, 1], [0.1, 0.3]), fit([0, 0], [0, 1], [0.1, 0.1])
    assert np.isnan([*once.low, *once.standard_error, *alike.low, *alike.standard_error]).all()
    assert once.notes[0].startswith("No item was judged by two annotators")
    assert alike.notes == (
        (
            "Annotators never gave an item different scores, so their differences are unknown and there "
            "are no intervals."
        ),
    )


def test_judgments_of_the_same_annotator_are_said():
    found = fit([0, 0, 0, 1, 1], [0, 1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.9])
    assert "1 item was judged again by the same annotator, which does not narrow any interval." in found.notes


def test_equal_scores_have_no_error_of_rounding():
    found = fit([0] * 10, alone(range(10)), [0.1] * 10)
    assert found.score[0] == pytest.approx(0.1, abs=1e-16)


def test_ordinal_labels_have_a_mean_and_a_median():
    items, labels = [0, 0, 0, 1, 1, 1, 1, 3], [4, 0, 1, 3, 0, 2, 1, 2]
    found = mean_and_median_labels(items, alone(items), labels, n_labels=5, n_items=5)
    assert found.mean.score[[0, 1, 3]] == pytest.approx([5 / 3, 1.5, 2.0])
    assert found.median[[0, 1, 3]].tolist() == [1.0, 1.5, 2.0]
    assert np.isnan(found.median[[2, 4]]).all()


def test_a_medians_interval_is_as_much_wider_as_medians_vary_more_and_stays_on_the_scale():
    items, labels = [0, 0, 0, 1, 1, 2], [2, 3, 3, 0, 2, 4]
    found = mean_and_median_labels(items, alone(items), labels, n_labels=5)
    assert found.standard_error[1:] == pytest.approx(found.mean.standard_error[1:])  # of one and two it is the mean
    assert found.standard_error[0] == pytest.approx(1.16 * found.mean.standard_error[0], rel=0.01)
    assert (found.low[0] + found.high[0]) / 2 == pytest.approx(3.0) or found.high[0] == 4.0
    assert (found.low.min(), found.high.max()) == (0.0, 4.0)


def test_medians_of_normal_judgments_vary_as_is_assumed(subtests):
    for n in (3, 4, 5, 6, 7, 10, 21):
        with subtests.test(n=n):
            drawn = norm.ppf((np.arange(200_000) + 0.5) / 200_000)[rng(2).permutation(200_000)[: 200_000 // n * n]]
            seen = np.median(drawn.reshape(-1, n), axis=1).std() * n**0.5
            items = np.repeat([0, 1], n)
            found = mean_and_median_labels(items, alone(items), np.arange(2 * n), n_labels=2 * n)
            assert found.standard_error[0] / found.mean.standard_error[0] == pytest.approx(seen, rel=0.02)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 6)), min_size=1, max_size=30))
def test_medians_are_those_of_each_item_by_itself(judgments):
    items, labels = (np.array(column) for column in zip(*judgments, strict=True))
    found = mean_and_median_labels(items, alone(items), labels)
    assert [found.median[i] for i in set(items)] == [np.median(labels[items == i]) for i in set(items)]


def test_z_scores_are_taken_annotator_by_annotator():
    table = rng(4).random((12, 3))
    items, annotators = np.divmod(np.arange(36), 3)
    found = assess_standardised_scores(items, annotators, table.ravel())
    assert found.scores.score == pytest.approx(zscore(table, axis=0, ddof=1).mean(axis=1))
    assert found.annotator_mean == pytest.approx(table.mean(axis=0))
    assert found.annotator_sd == pytest.approx(table.std(axis=0, ddof=1))
    assert found.scores.notes == ()


def test_strictness_and_a_narrow_use_of_the_scale_vanish():
    truth = rng(5).random(40)
    items = np.tile(np.arange(40), 3)
    annotators = np.repeat(np.arange(3), 40)
    scores = np.concatenate([truth, 0.2 * truth, 0.5 + 0.5 * truth])
    found = assess_standardised_scores(items, annotators, scores)
    assert found.scores.score == pytest.approx(zscore(truth, ddof=1))
    assert "never gave an item different scores" in found.scores.notes[0]  # what is left is rounding


def test_annotators_without_z_scores_are_named_not_silent():
    # Annotator 1 always gives .5, 2 judges once, 3 not at all.
    items, annotators = [0, 1, 2, 0, 1, 2, 2, 3], [0, 0, 0, 1, 1, 1, 4, 2]
    scores = [0.1, 0.2, 0.3, 0.5, 0.5, 0.5, 0.9, 0.4]
    found = assess_standardised_scores(items, annotators, scores)
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
        assess_standardised_scores([0, 1, 0], [0, 0, 1], [0.5, 0.5, 0.9])
    assert refused.value.code == "nothing_varies"


@pytest.mark.parametrize("method", [fit, mean_and_median_labels, assess_standardised_scores])
def test_without_judgments_there_is_nothing_to_estimate(method):
    with pytest.raises(Inestimable) as refused:
        method([], [], [], n_items=3)
    assert refused.value.code == "no_judgments"


def test_options_that_cannot_be_are_refused(subtests):
    for method in (fit, assess_standardised_scores):
        for options, words in (
            ({"level": 0.0}, "between 0 and 1"),
            ({"n_items": 1}, "items are numbered"),
            ({"n_annotators": 1}, "annotators are numbered"),
        ):
            with (
                subtests.test(method=method, options=options, words=words),
                pytest.raises(ValueError, match=words),
            ):
                method([0, 1, 1], [0, 1, 1], [0.1, 0.2, 0.3], **options)


def test_arrays_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="lengths"):
        fit([0, 1], [0, 1], [0.5])
    with pytest.raises(ValueError, match="labels are numbered"):
        mean_and_median_labels([0, 1], [0, 1], [0, 5], n_labels=5)
