import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.agreement import retest
from app.inference.ground.inestimable import Inestimable


def test_scores_given_again_by_hand():
    # Annotator 1: item 0 scored .2, .3, .3 and item 5 scored .8, .5; annotator 0 nothing twice.
    fit = retest.compare_repeated_scores([0, 5, 0, 0, 0, 5], [1, 1, 0, 1, 1, 1], [0.2, 0.8, 0.9, 0.3, 0.3, 0.5])
    assert fit.repeats.tolist() == [0, 3]
    assert fit.same[1] == pytest.approx(1 / 3)
    assert fit.shift[1] == pytest.approx((0.1 + 0 - 0.3) / 3)
    assert fit.error[1] == pytest.approx(np.sqrt((0.01 + 0.09) / 3 / 2))
    assert fit.correlation[1] == pytest.approx(np.corrcoef([0.2, 0.3, 0.8], [0.3, 0.3, 0.5])[0, 1])
    assert fit.estimable.tolist() == [False, True]
    assert np.isnan([fit.same[0], fit.shift[0], fit.error[0], fit.correlation[0]]).all()
    assert fit.pooled_same == fit.same[1]
    assert fit.notes == ("1 of 2 annotators never judged anything twice, so they have no value.",)


def test_scores_within_the_margin_are_the_same():
    assert retest.compare_repeated_scores([0, 0], [0, 0], [0.5, 0.55], margin=0.05).same.tolist() == [1]
    assert retest.compare_repeated_scores([0, 0], [0, 0], [0.5, 0.55], margin=0.04).same.tolist() == [0]


def test_an_annotators_noise_and_drift_are_recovered():
    rng = np.random.default_rng(21)
    truth = rng.uniform(0.3, 0.7, 4000)
    first, again = truth + rng.normal(0, 0.05, 4000), truth + 0.02 + rng.normal(0, 0.05, 4000)
    items, annotators = np.tile(np.arange(4000), 2), np.zeros(8000, dtype=int)
    fit = retest.compare_repeated_scores(items, annotators, np.concatenate([first, again]))
    assert fit.shift[0] == pytest.approx(0.02, abs=0.004)
    assert fit.error[0] == pytest.approx(np.sqrt(0.05**2 + 0.02**2 / 2), rel=0.05)
    assert fit.correlation[0] == pytest.approx((0.16 / 12) / (0.16 / 12 + 0.0025), abs=0.02)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 100)), min_size=1, max_size=40))
def test_figures_are_those_of_looking_judgment_by_judgment(rows):
    items, annotators, percent = map(np.array, zip(*rows, strict=True))
    last: dict[tuple[int, int], float] = {}
    old: list[list[float]] = [[], [], []]
    new: list[list[float]] = [[], [], []]
    for item, annotator, value in zip(items.tolist(), annotators.tolist(), percent / 100, strict=True):
        if (item, annotator) in last:
            old[annotator].append(last[item, annotator])
            new[annotator].append(value)
        last[item, annotator] = value
    if not any(old):
        with pytest.raises(Inestimable) as refusal:
            retest.compare_repeated_scores(items, annotators, percent / 100)
        assert refusal.value.code == "no_repeats"
        return
    fit = retest.compare_repeated_scores(items, annotators, percent / 100, n_annotators=3)
    for annotator in range(3):
        x, y = np.array(old[annotator]), np.array(new[annotator])
        assert fit.repeats[annotator] == x.size
        if x.size:
            assert fit.same[annotator] == pytest.approx((x == y).mean())
            assert fit.error[annotator] == pytest.approx(np.sqrt(((y - x) ** 2).mean() / 2))
        if x.size >= 3 and np.ptp(x) and np.ptp(y):
            assert fit.correlation[annotator] == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-9)
        else:
            assert np.isnan(fit.correlation[annotator])


def test_labels_given_again_have_cohens_kappa():
    old, new = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 0]
    fit = retest.compare_repeated_labels([*range(6)] * 2, [0] * 12, old + new)
    assert fit.repeats.tolist() == [6]
    assert fit.same[0] == pytest.approx(4 / 6)
    chance = (3 * 3 + 2 * 3 + 1 * 0) / 36
    assert fit.kappa[0] == pytest.approx((4 / 6 - chance) / (1 - chance))
    assert fit.pooled_kappa == fit.kappa[0]
    assert fit.notes == ()


def test_kappa_of_one_label_throughout_is_undefined_and_says_so():
    fit = retest.compare_repeated_labels([0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 2, 2], [1, 1, 1, 1, 0, 1])
    assert fit.same[0] == 1
    assert np.isnan(fit.kappa[0])
    assert fit.kappa[2] == 0
    assert "1 of 2 annotators who were asked again gave the same label throughout" in fit.notes[-1]


def test_a_pair_is_the_same_whichever_item_is_shown_first():
    fit = retest.compare_repeated_pair_judgments_with_previous([0, 1, 0, 2], [1, 0, 2, 0], [1, -1, 1, 1], [0, 0, 0, 0])
    assert fit.repeats.tolist() == [2]
    assert fit.same.tolist() == [0.5]


def test_arrays_that_do_not_fit_together_are_refused():
    with pytest.raises(ValueError, match="scores 1"):
        retest.compare_repeated_scores([0, 0], [0, 0], [0.5])
    with pytest.raises(ValueError, match="finite"):
        retest.compare_repeated_scores([0, 0], [0, 0], [0.5, np.nan])
    with pytest.raises(ValueError, match="labels 3"):
        retest.compare_repeated_labels([0, 0], [0, 0], [0, 1, 1])
