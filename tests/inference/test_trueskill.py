import math
import warnings
from statistics import NormalDist

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from app.inference.online import truncated_normal
from app.inference.online.law import LawParameters
from app.inference.online.pair_updates import Posterior
from app.inference.online.trueskill import LAW, is_valid_trueskill_prior, update

with warnings.catch_warnings():
    # Python warns of an escape in its source, once, when it is first compiled.
    warnings.simplefilter("ignore")
    import trueskill as oracle

# The package's own cdf is right to 7 digits only; it takes a better one.
EXACT = (ndtr, NormalDist().pdf, ndtri)

scores = st.floats(0, 1)
posterior = st.tuples(st.floats(-10, 10), st.floats(1e-6, 100))
parameters = st.builds(LawParameters, gamma=st.floats(1e-3, 10), epsilon=st.floats(0, 5), tie_margin=st.floats(0, 1))

# (t / c, epsilon / c, v, w): equations 5, 9 and 6, 10 as printed, evaluated by mpmath 1.4.1 with 200 digits.
WINS = [
    (0.0, 0.1, 0.8626174715309362, 0.6578471550373318),
    (0.0, 1.0, 1.525135276160981, 0.8009023344296512),
    (1.0, 0.5, 0.5091604338370335, 0.5138245643036329),
    (-1.0, 0.5, 1.938677166622543, 0.8504534064497973),
    (-4.9, 0.0625, 5.150237740256833, 0.9668939951412776),
    (-5.1, 0.0625, 5.343830177448881, 0.9689976743334906),
    (8.0, 0.25, 3.618294451112534e-14, 2.8041781996122267e-13),
    (-20.0, 0.5, 20.548551052435847, 0.9976537796275292),
    (20.0, 0.5, 1.0731778340682652e-83, 2.092696776433117e-82),
    (-40.0, 1.0, 41.02436131110692, 0.9994072288625213),
    (40.0, 1.0, 0.0, 0.0),
    (-40.0, 1e-06, 40.0249698465846, 0.999377331652426),
    (0.25, 0.001, 0.6464180623982572, 0.5788144089318832),
    (3.0, 0.125, 0.006411071556726025, 0.018472932564092784),
    (0.5, 0.69, 0.9226463182785544, 0.6759734281600461),
    (0.5, 0.71, 0.9362048936102544, 0.6798765751616344),
    (2.0, 2.5, 1.1410777703680646, 0.731519592844121),
    (2.5, 2.0, 0.5091604338370335, 0.5138245643036329),
    (-36.0, 36.5, 72.513787860166, 0.9998099671233346),
    (1000.0, 0.5, 0.0, 0.0),
]
DRAWS = [
    (0.0, 0.1, 0.0, 0.9966711089933002),
    (0.0, 1.0, 0.0, 0.7088749052272068),
    (1.0, 0.5, -0.9206446052220353, 0.9230579020575508),
    (-1.0, 0.5, 0.9206446052220353, 0.9230579020575508),
    (-4.9, 0.0625, 4.893662595460508, 0.9987226245656913),
    (-5.1, 0.0625, 5.093407316120777, 0.9987245943635737),
    (8.0, 0.25, -7.866411262611234, 0.9891221021479008),
    (-20.0, 0.5, 19.55101580062436, 0.9974107643860123),
    (20.0, 0.5, -19.55101580062436, 0.9974107643860123),
    (-40.0, 1.0, 39.02560741993011, 0.9993451172297068),
    (40.0, 1.0, -39.02560741993011, 0.9993451172297068),
    (-40.0, 1e-06, 39.99999999998667, 0.9999999999996667),
    (0.25, 0.001, -0.24999991666667812, 0.9999996666667152),
    (3.0, 0.125, -2.9845512256613826, 0.994944946985426),
    (0.5, 0.69, -0.42608770822231756, 0.8542270796655921),
    (0.5, 0.71, -0.4220647798628012, 0.8464019283542882),
    (2.0, 2.5, -0.5091398197744881, 0.5139088457748425),
    (2.5, 2.0, -1.1410385308473034, 0.7316568851389981),
    (-36.0, 36.5, 0.5091604338370335, 0.5138245643036329),
    (1000.0, 0.5, -999.5010004982471, 0.9999989990052615),
]


def pair(first: Posterior, second: Posterior, scores_of_both: list[float], tuned: LawParameters) -> list[Posterior]:
    mus, sigma2s = update([first[0], second[0]], [first[1], second[1]], scores_of_both, tuned)
    return list(zip(mus, sigma2s, strict=True))


def test_surprise_of_a_win_is_right_in_the_far_tails(subtests):
    for t, epsilon, v, w in WINS:
        with subtests.test(t=t, epsilon=epsilon, v=v, w=w):
            assert truncated_normal.v_and_w_of_win(t, epsilon) == pytest.approx((v, w), rel=1e-12, abs=1e-300)


def test_surprise_of_a_draw_is_right_in_the_far_tails(subtests):
    for t, epsilon, v, w in DRAWS:
        with subtests.test(t=t, epsilon=epsilon, v=v, w=w):
            assert truncated_normal.v_and_w_of_tie(t, epsilon) == pytest.approx((v, w), rel=1e-12, abs=1e-300)


def test_a_draw_without_a_margin_has_the_limits_of_its_surprise():
    assert truncated_normal.v_and_w_of_tie(2.0, 0.0) == (-2.0, 1.0)
    assert truncated_normal.v_and_w_of_tie(2.0, 1e-9) == pytest.approx((-2.0, 1.0), abs=1e-15)


@given(st.floats(-1e9, 1e9), st.floats(0, 1e3))
@example(104473564.97123738, 1.2418464842533652e-08)  # where w would round to a little more than 1
def test_surprises_are_bounded_however_far_out(t, epsilon):
    v_win, w_win = truncated_normal.v_and_w_of_win(t, epsilon)
    v_draw, w_draw = truncated_normal.v_and_w_of_tie(t, epsilon)
    assert max(0.0, (epsilon - t) * (1 - 1e-12)) <= v_win <= max(0.0, epsilon - t) + 1
    assert abs(v_draw) <= abs(t)
    assert v_draw * t <= 0
    assert 0 <= w_win <= 1
    assert 0 <= w_draw <= 1


@given(st.floats(-4, 4), st.floats(0.05, 3))  # beyond, its differences of tails lose digits
def test_surprises_agree_with_the_trueskill_package(t, epsilon):
    env = oracle.TrueSkill(backend=EXACT)
    win = env.v_win(t, epsilon), env.w_win(t, epsilon)
    draw = env.v_draw(t, epsilon), env.w_draw(t, epsilon)
    assert truncated_normal.v_and_w_of_win(t, epsilon) == pytest.approx(win, rel=1e-6, abs=1e-9)
    assert truncated_normal.v_and_w_of_tie(t, epsilon) == pytest.approx(draw, rel=1e-6, abs=1e-9)


def test_first_wins_gives_the_hand_checked_posteriors():
    # A draw probability of 0.2 between equals is |N(0, 2 beta^2)| <= epsilon.
    gamma = 0.5
    epsilon = NormalDist().inv_cdf(0.6) * 2**0.5 * gamma
    first, second = pair((0.3, 1.0), (-0.1, 0.64), [1.0, 0.0], LawParameters(gamma=gamma, epsilon=epsilon))
    # Figures known to 8 digits ...
    assert first == pytest.approx((0.7814642766, 0.7185031217), abs=2e-8)
    assert second == pytest.approx((-0.4081371370, 0.5246988787), abs=2e-8)
    # ... and those of the trueskill package 0.4.5 with the cdf of mpmath 1.4.1 at 50 digits.
    assert first == pytest.approx((0.78146426751494336, 0.71850312413123328), rel=1e-13)
    assert second == pytest.approx((-0.4081371312095638, 0.52469887964415315), rel=1e-13)


@given(
    st.tuples(st.floats(-1, 2), st.floats(0.01, 2)),
    st.tuples(st.floats(-1, 2), st.floats(0.01, 2)),
    st.floats(0.3, 2),
    st.floats(0.05, 0.9),
    st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)]),
)
def test_a_pair_agrees_with_the_trueskill_package(first, second, gamma, draw_probability, shown):
    env = oracle.TrueSkill(beta=gamma, tau=0, draw_probability=draw_probability, backend=EXACT)
    epsilon = oracle.calc_draw_margin(draw_probability, 2, env)
    ratings = [env.create_rating(mu, sigma2**0.5) for mu, sigma2 in (first, second)]
    if shown[0] < shown[1]:
        expected = oracle.rate_1vs1(*ratings[::-1], env=env)[::-1]
    else:
        expected = oracle.rate_1vs1(*ratings, drawn=shown[0] == shown[1], env=env)
    got = pair(first, second, list(shown), LawParameters(gamma=gamma, epsilon=epsilon))
    for ours, theirs in zip(got, expected, strict=True):
        assert ours == pytest.approx((theirs.mu, theirs.sigma**2), rel=1e-8, abs=1e-8)


@given(posterior, posterior, scores, scores, parameters)
def test_swapping_the_two_items_of_a_pair_swaps_the_answer_to_the_bit(first, second, s, t, tuned):
    assert pair(first, second, [s, t], tuned) == pair(second, first, [t, s], tuned)[::-1]


@given(posterior, posterior, scores, scores, parameters)
def test_the_variance_never_rises_and_stays_above_0(first, second, s, t, tuned):
    for (_, before), (_, after) in zip((first, second), pair(first, second, [s, t], tuned), strict=True):
        assert 0 < after <= before


def test_near_certainty_beside_ignorance_does_not_round_the_variance_to_0():
    _, (_, sigma2) = pair((0.0, 1e-12), (1e6, 1e6), [1.0, 0.0], LawParameters(gamma=1e-9))
    assert sigma2 > 0


def test_one_item_alone_changes_nothing():
    assert update([0.5], [0.1], [0.3], LawParameters()) == ([0.5], [0.1])


def test_the_start_has_the_mean_and_variance_of_a_flat_scale():
    assert LAW.family.default_prior == (0.5, 1 / 12)


def test_score_is_the_mean_and_the_interval_holds_95_percent():
    mu, sigma2 = [0.5, -2.0], [1 / 12, 4.0]
    assert LAW.family.score(mu, sigma2).tolist() == mu
    assert LAW.family.variance(mu, sigma2).tolist() == sigma2
    low, high = LAW.family.interval(mu, sigma2)
    assert low[1] == pytest.approx(NormalDist(-2, 2).inv_cdf(0.025))
    assert high[1] == pytest.approx(NormalDist(-2, 2).inv_cdf(0.975))


def test_density_is_the_normal_one():
    assert LAW.family.density(0.5, 0.04, [0.1, 0.5]).tolist() == pytest.approx(
        [NormalDist(0.5, 0.2).pdf(0.1), NormalDist(0.5, 0.2).pdf(0.5)]
    )


def test_reading_a_posterior_that_cannot_be_is_refused(subtests):
    for mu, sigma2 in ((math.nan, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.nan)):
        for read in (LAW.family.score, LAW.family.variance, LAW.family.interval):
            with (
                subtests.test(mu=mu, sigma2=sigma2, read=read),
                pytest.raises(ValueError, match="must be finite"),
            ):
                read([mu], [sigma2])


def test_priors_where_floats_would_lose_the_updates_are_not_valid():
    assert is_valid_trueskill_prior(25.0, (25 / 3) ** 2)
    for mu, sigma2 in [(0, 0), (0, -1), (float("nan"), 1), (float("inf"), 1), (0, float("nan")), (1e10, 1)]:
        assert not is_valid_trueskill_prior(mu, sigma2)
