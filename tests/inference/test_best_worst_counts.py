import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from app.inference.ground.inestimable import Inestimable
from app.inference.preferences import best_worst_counts


def fit(*hits, **chosen):
    """Fit HITs given as {item: score}."""
    rows = [(number, item, score) for number, hit in enumerate(hits) for item, score in hit.items()]
    numbers, items, scores = zip(*rows, strict=True) if rows else ([], [], [])
    return best_worst_counts.fit(
        np.array(numbers, np.intp), np.array(items, np.intp), np.array(scores, float), **chosen
    )


BEST_0, WORST_2 = {0: 1.0, 1: 0.5, 2: 0.0, 3: 0.5}, {0: 0.5, 1: 1.0, 2: 0.0}


def test_the_share_of_hits_as_the_best_less_that_as_the_worst_by_hand():
    found = fit(BEST_0, WORST_2, {0: 1.0, 1: 0.5, 2: 0.0, 4: 0.5})
    np.testing.assert_allclose(found.score, [2 / 3, 1 / 3, -1.0, 0.0, 0.0])
    assert found.hits.tolist() == [3, 3, 3, 1, 1]
    # Item 0: best in 2 of 3; by chance in 1/4, 1/3 and 1/4, on average 5/18. So 41/72 and 5/72 of one more HIT.
    best, worst = (2 + 5 / 18) / 4, (5 / 18) / 4
    assert found.standard_error[0] == pytest.approx(np.sqrt((best + worst - (best - worst) ** 2) / 3))


def test_of_two_items_it_is_wins_less_losses_with_the_error_of_a_share():
    found = fit({0: 1, 1: 0}, {0: 1, 1: 0}, {0: 0, 1: 1})
    np.testing.assert_allclose(found.score, [1 / 3, -1 / 3])
    share = 2.5 / 4
    np.testing.assert_allclose(found.standard_error, 2 * np.sqrt(share * (1 - share) / 3))


def test_ties_share_the_place_and_an_all_equal_hit_says_zero():
    np.testing.assert_allclose(fit({0: 7, 1: 7, 2: 1}).score, [0.5, 0.5, -1.0])
    np.testing.assert_allclose(fit({0: 7, 1: 7, 2: 7}).score, 0.0, atol=1e-15)
    np.testing.assert_allclose(fit({0: 0.72, 1: 0.70, 2: 0.1}, tie_margin=0.05).score, [0.5, 0.5, -1.0])


HITS = st.lists(
    st.dictionaries(st.integers(0, 5), st.integers(0, 3).map(float), min_size=2, max_size=5), min_size=1, max_size=9
)


@given(HITS)
def test_what_is_won_is_lost_and_every_end_is_given_once(hits):
    found = fit(*hits, n_items=6)
    seen = found.estimable
    assert np.nansum(found.score * found.hits) == pytest.approx(0.0, abs=1e-9)
    assert (np.abs(found.score[seen]) <= 1 + 1e-12).all()
    assert (found.standard_error[seen] > 0).all()
    assert np.isnan(found.score[~seen]).all()


@given(HITS, st.randoms(use_true_random=False))
def test_it_is_what_counting_by_hand_gives_whatever_the_order_of_judgments(hits, chance):
    told: dict[int, list[float]] = {item: [] for item in range(6)}
    for hit in hits:
        ends = [[k for k, v in hit.items() if v == end] for end in (max(hit.values()), min(hit.values()))]
        for item in hit:
            told[item].append((item in ends[0]) / len(ends[0]) - (item in ends[1]) / len(ends[1]))
    chance.shuffle(hits)
    expected = np.array([sum(outcomes) / len(outcomes) if outcomes else np.nan for outcomes in told.values()])
    np.testing.assert_allclose(fit(*hits, n_items=6).score, expected, atol=1e-12)


def test_errors_are_as_wide_as_scores_scatter():
    rng = np.random.default_rng(7)
    truth, fits = np.arange(8) / 4, []
    for _ in range(200):
        shown = [rng.permutation(8)[:4] for _ in range(60)]
        seen = [dict(zip(hit.tolist(), truth[hit] + rng.gumbel(size=4), strict=True)) for hit in shown]
        fits.append(fit(*seen, n_items=8))
    scatter = np.std([found.score for found in fits], axis=0)
    np.testing.assert_allclose(np.mean([found.standard_error for found in fits], axis=0), scatter, rtol=0.15)
    assert spearmanr(np.mean([found.score for found in fits], axis=0), truth).statistic == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("outcomes", "count"),
    [
        ([1, 1, 0, 0], 2.0),  # a tuple decides the outcome: its second answer adds nothing
        ([1, 0, 1, 0], 4.0),
        # Mean squares 1/2 within and 1 between, so the tuples' variance is 1/4, rho 1/3, and 4 count as 4 / (1 + 1/3).
        ([1, 0, 0, -1], 3.0),
    ],
)
def test_answers_to_one_tuple_count_as_fewer_by_hand(outcomes, count):
    found = best_worst_counts.hit_counts_discounted_for_same_tuple(
        np.zeros(4, np.intp), np.array([0, 0, 1, 1]), np.array(outcomes, float), n_items=2
    )
    np.testing.assert_allclose(found, [count, 0.0])


def test_hits_of_the_same_items_are_one_tuple_whatever_their_order():
    numbers = best_worst_counts.tuple_number_of_each_hit(
        np.array([0, 0, 1, 1, 2, 2, 2, 3, 3]), np.array([4, 7, 7, 4, 4, 7, 1, 4, 1]), 4
    )
    assert numbers[0] == numbers[1]
    assert len(set(numbers.tolist())) == 3


def answers_to_tuples(rng, truth, *, tuples, answers):
    shown = np.repeat(np.argsort(rng.random((tuples, len(truth))), axis=1)[:, :4], answers, axis=0)
    scores = truth[shown] + 0.5 * rng.gumbel(size=shown.shape)
    return np.repeat(np.arange(len(shown)), 4), shown.ravel(), scores.ravel()


def test_errors_are_those_of_resampled_tuples():
    rng = np.random.default_rng(5)
    hits, items, scores = answers_to_tuples(rng, np.zeros(12), tuples=150, answers=4)
    found = best_worst_counts.fit(hits, items, scores)
    by_tuple = np.arange(len(hits)).reshape(150, -1)
    draws = []
    for _ in range(200):
        rows = by_tuple[rng.integers(150, size=150)].ravel()
        draws.append(best_worst_counts.fit(np.repeat(np.arange(600), 4), items[rows], scores[rows], n_items=12).score)
    assert found.standard_error.mean() == pytest.approx(np.std(draws, axis=0).mean(), rel=0.05)


@pytest.mark.parametrize(("tuples", "answers"), [(40, 5), (60, 3), (200, 1)])
def test_intervals_hold_the_score_of_very_many_tuples_as_often_as_they_say(tuples, answers):
    truth = np.random.default_rng(1).normal(0, 1, 20)
    many = best_worst_counts.fit(*answers_to_tuples(np.random.default_rng(2), truth, tuples=100_000, answers=1)).score
    held = []
    for seed in range(60):
        found = best_worst_counts.fit(
            *answers_to_tuples(np.random.default_rng([3, seed]), truth, tuples=tuples, answers=answers), n_items=20
        )
        held.append(np.abs(found.score - many) <= 1.96 * found.standard_error)
    assert 0.925 < np.mean(held) < 0.975  # by answers .88 with five to a tuple


def test_items_alone_or_never_seen_have_no_count():
    found = fit({0: 1, 1: 0}, {2: 5}, n_items=4)
    assert found.estimable.tolist() == [True, True, False, False]
    assert "No task shows items 2 and 3 with another item, so there is no count." in found.notes[-1]
    assert found.notes[0].code == "counts_depend_on_company"
    with pytest.raises(Inestimable) as refusal:
        fit({0: 1}, {1: 0})
    assert refusal.value.code == "nothing_side_by_side"


@pytest.mark.parametrize(
    "broken", [([0], [0, 1], [1.0, 0.0]), ([0, 0], [0, 9], [1.0, 0.0]), ([0, 0], [0, 1], [1.0, np.nan])]
)
def test_arrays_that_make_no_sense_are_refused(broken):
    hits, items, scores = broken
    with pytest.raises(ValueError, match=r"items|lengths|finite"):
        best_worst_counts.fit(hits, items, scores, n_items=4)
