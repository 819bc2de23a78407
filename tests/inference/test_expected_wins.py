import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.ground.inestimable import Inestimable
from app.inference.preferences import expected_wins


def test_the_mean_over_opponents_of_the_share_of_wins_by_hand():
    # 0 beats 1 in 3 of 4 and 2 in 1 of 1; ties do not count.
    fit = expected_wins.fit([0, 0, 1, 0, 0, 1], [1, 1, 0, 1, 2, 2], [1, 1, -1, -1, 1, 0])
    np.testing.assert_allclose(fit.score, [(3 / 4 + 1) / 2, 1 / 4, 0])
    assert fit.opponents.tolist() == [2, 1, 1]
    # Binomial variances at (wins + 1/2) / (comparisons + 1): 3.5/5 of 4 and 1.5/2 of 1.
    assert fit.standard_error[0] == pytest.approx(np.sqrt(0.7 * 0.3 / 4 + 0.75 * 0.25) / 2)
    assert "2 of 3 items met only some" in fit.notes[0]


def test_ties_may_count_half():
    fit = expected_wins.fit([0, 0], [1, 1], [1, 0], ties="half")
    np.testing.assert_allclose(fit.score, [0.75, 0.25])
    np.testing.assert_allclose(expected_wins.fit([0, 0], [1, 1], [1, 0]).score, [1, 0])


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.sampled_from([-1, 1])), min_size=1, max_size=30))
def test_scores_are_those_of_the_definition(rows):
    first, shift, outcomes = map(np.array, zip(*rows, strict=True))
    second = (first + shift) % 4
    fit = expected_wins.fit(first, second, outcomes, n_items=4)
    wins = np.zeros((4, 4))
    np.add.at(wins, (np.where(outcomes > 0, first, second), np.where(outcomes > 0, second, first)), 1)
    for i in range(4):
        shares = [wins[i, j] / (wins[i, j] + wins[j, i]) for j in range(4) if wins[i, j] + wins[j, i]]
        assert fit.opponents[i] == len(shares)
        if shares:
            assert fit.score[i] == pytest.approx(np.mean(shares))
        else:
            assert np.isnan(fit.score[i])
            assert not fit.estimable[i]


def test_errors_are_as_wide_as_scores_scatter():
    rng = np.random.default_rng(15)
    first, second = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    first, second = first[first < second], second[first < second]
    chance = 0.5 + 0.08 * (second - first)
    fits = []
    for _ in range(200):
        wins = rng.random((20, first.size)) < chance
        fits.append(expected_wins.fit(np.tile(first, 20), np.tile(second, 20), np.where(wins, 1, -1).ravel()))
    scatter = np.std([fit.score for fit in fits], axis=0)
    np.testing.assert_allclose(np.mean([fit.standard_error for fit in fits], axis=0), scatter, rtol=0.15)


def test_items_with_only_ties_and_items_never_seen_have_no_score():
    fit = expected_wins.fit([0, 2], [1, 0], [1, 0], n_items=4)
    assert fit.estimable.tolist() == [True, True, False, False]
    assert np.isnan(fit.score[2:]).all()
    assert "item 3" in fit.notes[0]
    assert "no score for item 2" in fit.notes[1]


def test_ties_alone_are_inestimable_unless_they_count_half():
    with pytest.raises(Inestimable) as refusal:
        expected_wins.fit([0], [1], [0])
    assert refusal.value.code == "all_ties"
    np.testing.assert_allclose(expected_wins.fit([0], [1], [0], ties="half").score, 0.5)
