import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import expit, logit

from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.log_normal import LAW, LOGARITHM_PER_SCORE, update
from tests.inference.beliefs import posteriors_after

RANKME = Path(__file__).parents[2] / "examples" / "data" / "rankme" / "judgments.csv.gz"
ONE = LawParameters(gamma=0.25)  # a noise of 1 on the logarithm
family = LAW.family

share = st.floats(1e-6, 1 - 1e-6)
posterior = st.tuples(st.floats(-15, 15), st.floats(1e-4, 10))
hit = st.lists(st.tuples(posterior, share), min_size=1, max_size=10)
parameters = st.builds(LawParameters, gamma=st.floats(0.01, 2))


def columns(items):
    return [[p[0] for p, _ in items], [p[1] for p, _ in items], [s for _, s in items]]


def test_twice_the_reference_moves_an_unknown_item_half_of_the_way_on_the_logarithm():
    # Prior and judgment are as certain as each other: mu is halfway between log 1 and log 2, sigma2 half of 1.
    (mu,), (sigma2,) = update([0.0], [1.0], [2 / 3], ONE)
    assert [mu, sigma2] == pytest.approx([math.log(2) / 2, 0.5])
    # Half the reference takes it back, and a third of the variance is left.
    (mu,), (sigma2,) = update([mu], [sigma2], [1 / 3], ONE)
    assert [mu, sigma2] == pytest.approx([0.0, 1 / 3], abs=1e-15)


@given(st.lists(share, min_size=1, max_size=12), posterior, parameters)
def test_judgment_after_judgment_leads_to_the_conjugate_posterior_of_all_at_once(shares, prior, tuned):
    mu, sigma2 = prior
    for one in shares:
        (mu,), (sigma2,) = update([mu], [sigma2], [one], tuned)
    noise = (4 * tuned.gamma) ** 2
    precision = 1 / prior[1] + len(shares) / noise
    assert sigma2 == pytest.approx(1 / precision, rel=1e-9)
    assert mu == pytest.approx((prior[0] / prior[1] + logit(shares).sum() / noise) / precision, rel=1e-6, abs=1e-9)


@given(hit, parameters)
def test_a_judgment_draws_an_item_towards_itself_and_makes_it_surer(items, tuned):
    mus, sigma2s, shares = columns(items)
    new_mus, new_sigma2s = update(mus, sigma2s, shares, tuned)
    for mu, new, one in zip(mus, new_mus, shares, strict=True):
        low, high = sorted([mu, math.log(one) - math.log1p(-one)])
        assert low - 1e-9 <= new <= high + 1e-9
    assert all(0 < new < old for new, old in zip(new_sigma2s, sigma2s, strict=True))


@given(hit, parameters)
def test_how_far_above_the_reference_is_how_far_below_it_upside_down(items, tuned):
    mus, sigma2s, shares = columns(items)
    upright = update(mus, sigma2s, shares, tuned)
    mirrored = update([-mu for mu in mus], sigma2s, [1 - one for one in shares], tuned)
    assert [-mu for mu in mirrored[0]] == pytest.approx(upright[0], rel=1e-6, abs=1e-6)
    assert mirrored[1] == upright[1]


def test_what_is_the_share_of_no_ratio_is_refused(subtests):
    for impossible in (0.0, 1.0, -0.1, 1.1, math.nan):
        with subtests.test(impossible=impossible), pytest.raises(ValueError, match=r"share|score"):
            update([0.0, 0.0], [1.0, 1.0], [0.5, impossible], ONE)


def test_what_is_no_posterior_is_refused(subtests):
    for mu, sigma2 in ((math.nan, 1.0), (math.inf, 1.0), (0.0, 0.0), (0.0, -1.0), (0.0, math.nan)):
        with subtests.test(mu=mu, sigma2=sigma2):
            with pytest.raises(ValueError, match=r"mu|sigma2"):
                update([mu], [sigma2], [0.5], ONE)
            with pytest.raises(ValueError, match=r"mu|sigma2"):
                family.score(mu, sigma2)
            assert not family.is_valid_prior(mu, sigma2)


def test_a_score_is_the_share_of_the_median_ratio():
    assert family.score(np.log([1.0, 2.0, 0.5]), 0.3) == pytest.approx([1 / 2, 2 / 3, 1 / 3])


@pytest.mark.parametrize("mu", [0.0, 1.0, -4.0])
@pytest.mark.parametrize("sigma2", [1e-4, 0.04, 1.0, math.pi**2 / 3])
def test_the_variance_of_the_share_is_that_of_its_density(mu, sigma2):
    low, high = expit([mu - 9 * sigma2**0.5, mu + 9 * sigma2**0.5])

    def moment(power, around):
        whole = integrate.quad(lambda x: (x - around) ** power * family.density(mu, sigma2, x), low, high, limit=400)
        return whole[0]

    mean = moment(1, 0.0)
    assert moment(0, 0.0) == pytest.approx(1, rel=1e-6)
    assert family.variance(mu, sigma2) == pytest.approx(moment(2, mean), rel=1e-5)


def test_interval_and_density_are_those_of_a_normal_on_the_log_odds():
    low, high = family.interval(0.7, 0.25, level=0.9)
    assert logit([low, high]) == pytest.approx(stats.norm(0.7, 0.5).interval(0.9))
    x = np.linspace(0.05, 0.95, 19)
    odds = x / (1 - x)
    of_ratio = stats.lognorm(0.5, scale=math.exp(0.7)).pdf(odds)  # of the ratio, which has the share x
    assert family.density(0.7, 0.25, x) == pytest.approx(of_ratio / (1 - x) ** 2)
    assert family.density(0.7, 0.25, [-0.1, 0.0, 1.0, 1.1]).tolist() == [0.0] * 4


def test_the_default_prior_is_nearly_flat_on_the_scale():
    x = np.linspace(0.1, 0.9, 81)
    assert family.density(*family.default_prior, x) == pytest.approx(1.0, abs=0.2)
    assert family.variance(*family.default_prior) == pytest.approx(1 / 12, rel=0.1)


def test_the_default_noise_is_about_that_of_published_judgments_beside_a_reference():
    logs: dict[tuple[str, str], dict[str, list[float]]] = {}
    with gzip.open(RANKME, "rt") as lines:
        for row in csv.DictReader(lines):
            if row["arm"].endswith("rankME"):
                of_arm = logs.setdefault((row["arm"], row["criterion"]), {})
                of_arm.setdefault(row["item"], []).append(math.log(float(row["score"]) / 100))

    def pooled(of_items):
        squares = sum(np.var(values) * len(values) for values in of_items)
        return squares / sum(len(values) - 1 for values in of_items)

    assert len(logs) == 6
    published = math.sqrt(np.mean([pooled(of_arm.values()) for of_arm in logs.values()]))
    assert published == pytest.approx(0.38, abs=0.01)
    assert LOGARITHM_PER_SCORE * LawParameters().gamma == pytest.approx(published, rel=0.1)


@pytest.mark.parametrize("seed", range(3))
def test_it_recovers_known_ratios_and_its_intervals_hold_as_many_as_they_say(seed):
    rng = np.random.default_rng(seed)
    items, judgments = 400, 5
    truth = rng.normal(0.0, 1.0, items)
    seen = truth[:, None] + rng.normal(0.0, 0.4, (items, judgments))
    hits = [AnsweredHit(k, range(items), expit(column).tolist()) for k, column in enumerate(seen.T)]
    state = posteriors_after(LAW, items, hits)
    # The mean of 5 judgments is off by 0.4 / sqrt(5) = 0.18 on the logarithm.
    assert np.sqrt(np.mean((state[0] - truth) ** 2)) == pytest.approx(0.4 / judgments**0.5, rel=0.15)
    low, high = family.interval(*state)
    held = np.mean((low <= expit(truth)) & (expit(truth) <= high))
    assert held == pytest.approx(0.95, abs=0.035)
