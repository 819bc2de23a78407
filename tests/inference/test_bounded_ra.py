import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.inference.online.bounded_ra import LAW, update, win_probability
from app.inference.online.law import LawParameters
from app.inference.online.pair_updates import Posterior

scores = st.floats(0, 1)
parameter = st.floats(1e-3, 1e4)
posterior = st.tuples(parameter, parameter)
hit = st.lists(st.tuples(posterior, scores), min_size=1, max_size=10)
parameters = st.builds(LawParameters, gamma=st.floats(1e-3, 10), epsilon=st.floats(0, 5), tie_margin=st.floats(0, 1))


def pair(
    first: Posterior, second: Posterior, scores_of_both: list[float], tuned: LawParameters | None = None
) -> list[Posterior]:
    tuned = tuned or LawParameters()
    alphas, betas = update([first[0], second[0]], [first[1], second[1]], scores_of_both, tuned)
    return list(zip(alphas, betas, strict=True))


def test_a_preference_between_two_unknown_items_moves_one_parameter_of_each():
    moved = 1.1012575591104719
    first, second = pair((1.0, 1.0), (1.0, 1.0), [0.7, 0.2])
    assert [*first, *second] == [pytest.approx(moved, rel=1e-15), 1.0, 1.0, pytest.approx(moved, rel=1e-15)]


def test_a_tie_between_two_unknown_items_moves_all_four():
    first, second = pair((1.0, 1.0), (1.0, 1.0), [0.4, 0.4])
    assert first == second == pytest.approx((1.1832432566842859,) * 2, rel=1e-15)


def test_an_unexpected_tie_draws_the_two_together():
    moved = pytest.approx(2.091347008935645, rel=1e-15)
    assert pair((5.0, 2.0), (2.0, 5.0), [0.5, 0.5]) == [(5.0, moved), (moved, 5.0)]
    assert pair((2.0, 5.0), (5.0, 2.0), [0.5, 0.5]) == [(moved, 5.0), (5.0, moved)]


def test_a_tie_within_epsilon_moves_each_by_its_own_variance():
    first, second = pair((2.0, 2.0), (20.0, 20.0), [0.5, 0.5])
    step_first, step_second = first[0] - 2.0, second[0] - 20.0
    assert first == (2.0 + step_first, 2.0 + step_first)
    assert step_first / step_second == pytest.approx(LAW.family.variance(2.0, 2.0) / LAW.family.variance(20.0, 20.0))


def test_a_surprise_moves_more_than_what_was_expected():
    expected = pair((5.0, 2.0), (2.0, 5.0), [0.9, 0.1])[0][0] - 5.0
    surprising = pair((5.0, 2.0), (2.0, 5.0), [0.1, 0.9])[1][0] - 2.0
    assert surprising > expected


def test_pairs_are_applied_one_after_another_as_presented():
    state = dict.fromkeys(range(3), (1.0, 1.0))
    shown = [0.9, 0.1, 0.5]
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        state[i], state[j] = pair(state[i], state[j], [shown[i], shown[j]])
    alphas, betas = update([1.0] * 3, [1.0] * 3, shown, LawParameters())
    assert list(zip(alphas, betas, strict=True)) == list(state.values())


def test_one_item_alone_changes_nothing():
    assert update([1.5], [2.5], [0.3], LawParameters()) == ([1.5], [2.5])


@given(st.floats(-1, 1), st.floats(0, 5))
def test_the_three_probabilities_of_a_pair_sum_to_1(difference, epsilon):
    # Equations 20 to 22 as printed, with M_j = 0.
    pi_i, pi_j, theta = math.exp(difference), 1.0, math.exp(epsilon)
    win = pi_i / (pi_i + theta * pi_j)
    loss = pi_j / (theta * pi_i + pi_j)
    tie = (theta**2 - 1) * pi_i * pi_j / ((pi_i + theta * pi_j) * (theta * pi_i + pi_j))
    ours = [win_probability(difference, epsilon), win_probability(-difference, epsilon)]
    assert ours == pytest.approx([win, loss], rel=1e-12)
    assert sum(ours) + tie == pytest.approx(1)


@given(posterior, posterior, scores, scores, parameters)
@example((2.125, 1.0), (3.75, 1.0), 0.5, 0.5, LawParameters())  # where the order of summing c^2 shows in the last bit
def test_swapping_the_two_items_of_a_pair_swaps_the_answer_to_the_bit(first, second, s, t, tuned):
    assert pair(first, second, [s, t], tuned) == pair(second, first, [t, s], tuned)[::-1]


@given(posterior, posterior, scores, scores, parameters)
def test_a_mirrored_scale_mirrors_the_posteriors(first, second, s, t, tuned):
    # Far from the tie margin and from |D| = epsilon, where rounding decides.
    gap = abs(LAW.family.score(*first) - LAW.family.score(*second))
    if min(abs(abs(s - t) - tuned.tie_margin), abs(gap - tuned.epsilon), gap) < 1e-6:
        return
    forward = pair(first, second, [s, t], tuned)
    mirrored = pair(first[::-1], second[::-1], [1 - s, 1 - t], tuned)
    for one, other in zip(forward, mirrored, strict=True):
        assert other == pytest.approx(one[::-1], rel=1e-9)


@given(hit, parameters)
def test_alpha_and_beta_never_fall_and_the_mode_stays_in_the_scale(items, tuned):
    alphas, betas = [p[0] for p, _ in items], [p[1] for p, _ in items]
    new_alphas, new_betas = update(alphas, betas, [s for _, s in items], tuned)
    assert all(new >= old for new, old in zip(new_alphas + new_betas, alphas + betas, strict=True))
    modes = LAW.family.score(new_alphas, new_betas)
    assert ((modes >= 0) & (modes <= 1)).all()


def test_the_variance_can_rise_although_the_paper_says_it_cannot():
    # An item thought low wins against one thought high: only its alpha grows.
    (alpha, beta), _ = pair((1.0, 10.0), (10.0, 1.0), [1.0, 0.0])
    assert alpha > 1.0
    assert beta == 10.0
    assert LAW.family.variance(alpha, beta) > LAW.family.variance(1.0, 10.0)


def test_a_huge_epsilon_overflows_nothing():
    (alpha, _), (_, beta) = pair((1.0, 1.0), (1.0, 1.0), [1.0, 0.0], LawParameters(epsilon=1e6))
    assert alpha == beta == pytest.approx(1 + (1 / 12) / math.sqrt(0.02 + 1 / 6))
