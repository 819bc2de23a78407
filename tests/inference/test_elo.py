import evalica
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.ground.inestimable import Inestimable
from app.inference.observations.comparisons import pair_outcome_columns_from_hits
from app.inference.preferences import elo
from tests.inference.preferences import simulate_preferences


def test_a_win_among_equals_moves_half_of_k():
    fit = elo.fit([0], [1], [1], k=32)
    np.testing.assert_allclose(fit.score, [1516, 1484])


def test_an_underdog_gains_more():
    fit = elo.fit([0, 1], [1, 0], [1, 1], k=32)
    expected = 1 / (1 + 10 ** (32 / 400))  # of the one 32 points below
    np.testing.assert_allclose(fit.score, [1516 - 32 * (1 - expected), 1484 + 32 * (1 - expected)])


def test_ratings_are_those_of_evalica():
    rng = np.random.default_rng(16)
    first, second, outcomes = simulate_preferences(rng.normal(0, 1, 10), 500, rng, threshold=0.5)
    winner = {1: evalica.Winner.X, 0: evalica.Winner.Draw, -1: evalica.Winner.Y}
    theirs = evalica.elo(first.tolist(), second.tolist(), [winner[o] for o in outcomes.tolist()], initial=1000, k=30)
    ours = elo.fit(first, second, outcomes, k=30, initial=1000)
    np.testing.assert_allclose(ours.score, theirs.scores.sort_index())


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(-1, 1)), min_size=1, max_size=40))
def test_points_are_only_passed_on(rows):
    first, shift, outcomes = map(np.array, zip(*rows, strict=True))
    fit = elo.fit(first, (first + shift) % 4, outcomes, n_items=4)
    assert np.nansum(fit.score) == pytest.approx(1500 * fit.estimable.sum())


def test_bootstrap_intervals_hold_the_rating_and_are_the_same_for_the_same_rng():
    rng = np.random.default_rng(17)
    judgments = simulate_preferences(np.array([-1.0, 0.0, 1.0]), 300, rng)
    fits = [elo.fit(*judgments, resamples=50, rng=np.random.default_rng(1)) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].low, fits[1].low)
    assert (fits[0].low < fits[0].high).all()
    assert fits[0].high[0] < fits[0].low[2]
    assert np.isnan(elo.fit(*judgments).low).all()


def test_judgments_that_belong_together_are_drawn_together():
    # Four copies of every judgment tell no more than one of them, if they come together.
    rng = np.random.default_rng(20)
    judgments = simulate_preferences(rng.normal(0, 1, 6), 60, rng)
    fourfold = [np.repeat(column, 4) for column in judgments]
    apart, together = (
        elo.fit(*fourfold, dependence_blocks=blocks, k=4.0, resamples=200, rng=np.random.default_rng(1))
        for blocks in (None, np.repeat(np.arange(60), 4))
    )
    assert together.standard_error == pytest.approx(2 * apart.standard_error, rel=0.35)
    np.testing.assert_array_equal(apart.score, together.score)


def test_an_item_judged_once_takes_its_error_from_the_others():
    first, second, outcomes = simulate_preferences(np.array([-1.0, 0.0, 1.0]), 60, np.random.default_rng(3))
    found = elo.fit([*first, 3], [*second, 0], [*outcomes, 1], resamples=100, rng=np.random.default_rng(1))
    assert found.standard_error[3] == pytest.approx(found.standard_error[:3].mean(), rel=0.25)
    assert (found.low[3] + found.high[3]) / 2 == pytest.approx(found.score[3])


@pytest.mark.parametrize(
    ("judgments", "hits"),
    [
        (([0], [1], [1]), [0]),
        (([0, 1, 2], [1, 2, 0], [0, 0, 0]), [0, 1, 2]),
        (([0, 0], [1, 1], [1, 1]), [0, 1]),
        (([0, 0, 1, 0, 0, 1], [1, 2, 2, 1, 2, 2], [1, 1, -1, 1, 1, -1]), [0, 0, 0, 1, 1, 1]),
    ],
    ids=["one judgment", "only ties", "equal judgments", "equal HITs"],
)
def test_resamples_that_are_all_alike_give_no_error(judgments, hits):
    found = elo.fit(*judgments, dependence_blocks=hits, resamples=50, rng=np.random.default_rng(1))
    assert np.isfinite(found.score).all()
    assert np.isnan([found.standard_error, found.low, found.high]).all()
    assert found.notes[-1].code == "rating_error_unknown"
    assert "no interval for items 0" in found.notes[-1]


def test_only_items_whose_resamples_are_alike_have_no_error():
    found = elo.fit([0, 2, 2], [1, 3, 3], [0, 1, -1], resamples=50, rng=np.random.default_rng(1))
    assert (found.standard_error > 0).all()  # items 0 and 1 have one judgment, so that of the others is theirs
    ties = elo.fit([0, 0, 2, 2], [1, 1, 3, 3], [0, 0, 0, 0], resamples=50, rng=np.random.default_rng(1), n_items=5)
    assert ties.notes[-1].about == {"item": [0, 1, 2, 3]}


@pytest.mark.parametrize("per_item", [2, 5])
def test_intervals_hold_the_rating_that_such_hits_lead_to_as_often_as_they_say(per_item):
    truth = np.random.default_rng(1).normal(0, 1, 40)

    def campaign(seed):
        random = np.random.default_rng(seed)
        shown = np.concatenate([random.permutation(40) for _ in range(per_item)]).reshape(-1, 4)
        scores = truth[shown] + random.normal(0, 0.8, shown.shape)
        return pair_outcome_columns_from_hits(np.repeat(np.arange(len(shown)), 4), shown.ravel(), scores.ravel())

    ratings = np.mean([elo.fit(*campaign(seed)[:3]).score for seed in range(200)], axis=0)
    held = []
    for seed in range(1000, 1030):
        *judgments, hits = campaign(seed)
        found = elo.fit(*judgments, dependence_blocks=hits, resamples=100, rng=np.random.default_rng(seed))
        held.append((found.low <= ratings) & (ratings <= found.high))
    assert 0.93 < np.mean(held) < 0.975  # 1200 intervals: a standard error of .006


def test_strong_items_come_out_above_weak_ones():
    rng = np.random.default_rng(18)
    truth = np.linspace(-2, 2, 8)
    fit = elo.fit(*simulate_preferences(truth, 4000, rng), k=8)
    assert np.corrcoef(fit.score, truth)[0, 1] > 0.97
    # 400 points are odds of 10.
    assert fit.score[-1] - fit.score[0] == pytest.approx(4 * 400 / np.log(10), rel=0.2)


def test_an_item_without_judgments_has_no_rating():
    fit = elo.fit([0], [2], [1], n_items=4)
    assert fit.estimable.tolist() == [True, False, True, False]
    assert np.isnan(fit.score[1])
    assert "items 1 and 3" in fit.notes[1]


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="rng"):
        elo.fit([0], [1], [1], resamples=10)
    with pytest.raises(ValueError, match="lengths"):
        elo.fit([0], [1], [1], dependence_blocks=[0, 1])
    with pytest.raises(ValueError, match="k and scale"):
        elo.fit([0], [1], [1], k=0)
    with pytest.raises(Inestimable):
        elo.fit([], [], [])
