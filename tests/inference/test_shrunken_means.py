"""Shrunken means: by hand, against a plain transcription and integrals, by their properties, and by simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.inference.ratings.shrunken_means import (
    BASE_ITEMS,
    ItemPrior,
    estimate_item_prior,
    fit_item_shrinkage,
    shrink_means_to_prior,
)

SURE = 1e6  # degrees of freedom at which a t distribution is normal


def believed(mean, error, freedom=SURE, scale=(0.0, 1.0)):
    mean = np.asarray(mean, float)
    return ModeratedMeans(mean, np.full(len(mean), error), np.full(len(mean), float(freedom)), scale)


def shrink_to_items(means):
    return estimate_item_prior(means).shrink(means)


def test_by_hand_a_flat_prior_changes_nothing():
    found = ItemPrior(np.full(100, 0.01)).shrink(believed([0.3, 0.5], 0.05))
    assert found.score == pytest.approx([0.3, 0.5], abs=1e-6)
    assert found.low == pytest.approx([0.3 - 1.96 * 0.05, 0.5 - 1.96 * 0.05], abs=1e-3)
    assert found.high == pytest.approx([0.3 + 1.96 * 0.05, 0.5 + 1.96 * 0.05], abs=1e-3)


def test_by_hand_a_prior_that_prefers_the_lower_half():
    # Three times as likely below .5 as above: a normal belief around .5 is below it with 3/4, and the mean of a half
    # is .05 sqrt(2 / pi) = .0399 from .5, so the score is .5 - (3/4 - 1/4) .0399.
    found = ItemPrior(np.repeat([0.015, 0.005], 50)).shrink(believed([0.5], 0.05))
    assert found.score == pytest.approx([0.5 - 0.5 * 0.0399], abs=2e-4)
    # 2.5 % below: 3/2 Phi(z) = .025, so z = -2.128; above: 1/2 (1 - Phi(z)) = .025, so z = 1.645.
    # That is 3.773 errors wide, and the plain interval 3.920: so both arms are stretched by 3.920 / 3.773 = 1.039.
    low, score, high = 0.5 - 2.128 * 0.05, 0.5 - 0.5 * 0.0399, 0.5 + 1.645 * 0.05
    assert found.low == pytest.approx([score - 1.039 * (score - low)], abs=1e-3)
    assert found.high == pytest.approx([score + 1.039 * (high - score)], abs=1e-3)


def plain_prior(means):
    """Return the prior by the formulas of `estimate_item_prior`, one distribution and one item at a time."""
    edges, middles = np.linspace(0, 1, 101), np.arange(0.005, 1, 0.01)
    columns = zip(means.mean, means.standard_error, means.freedom, strict=True)
    likelihood = [np.diff(stats.t.cdf(edges, freedom, mean, error)) for mean, error, freedom in columns]
    base, total = np.zeros(100), 0.0
    for mean in np.arange(0.0125, 1, 0.025):
        for concentration in np.geomspace(0.5, 500, 16):
            shares = np.diff(stats.beta.cdf(edges, mean * concentration, (1 - mean) * concentration))
            weight = np.prod([shares @ own for own in likelihood])
            base, total = base + weight * shares, total + weight
    base /= total
    kernel = sum(stats.norm.pdf(middles[:, None], at, 0.05) for at in (middles, -middles, 2 - middles))
    kernel /= kernel.sum(axis=0)
    shares = base
    for _ in range(60):
        expected = sum(own * shares / (own @ shares) for own in likelihood)
        shares = (kernel @ expected + BASE_ITEMS * base) / (len(likelihood) + BASE_ITEMS)
    return shares


def test_the_prior_is_what_the_formulas_say():
    means = ModeratedMeans(
        np.array([0.2, 0.25, 0.4, 0.9]), np.array([0.1, 0.05, 0.2, 0.1]), np.array([4.0, 9.0, 5.0, 30.0]), (0.0, 1.0)
    )
    found = estimate_item_prior(means).shares
    assert found == pytest.approx(plain_prior(means), abs=1e-6)
    assert found.sum() == pytest.approx(1)


@pytest.mark.parametrize(("mean", "error", "freedom"), [(0.3, 0.1, 5.0), (0.95, 0.2, 4.0), (0.0, 0.02, 12.0)])
def test_the_posterior_is_the_integral_of_likelihood_and_prior(mean, error, freedom):
    middles = np.arange(0.005, 1, 0.01)
    shares = stats.beta.pdf(middles, 2, 4)
    found = ItemPrior(shares / shares.sum()).shrink(believed([mean], error, freedom))

    places = np.linspace(0, 1, 400_001)
    density = stats.t.pdf((places - mean) / error, freedom) * np.interp(places, middles, shares)
    below = integrate.cumulative_trapezoid(density, places, initial=0)
    assert found.score[0] == pytest.approx(density @ places / density.sum(), abs=0.01 * error)
    low, high = (np.interp(np.array(mass) * below[-1], below, places) for mass in ((0.025, 0, 0.05), (0.975, 0.95, 1)))
    shortest = (high - low).argmin()
    score = density @ places / density.sum()
    low, high = 0 if shortest == 1 else low[0], 1 if shortest == 2 else high[0]
    plain = np.clip(mean + error * stats.t.ppf([0.025, 0.975], freedom), 0, 1)
    stretch = max(1, (plain[1] - plain[0]) / (high - low))
    assert found.low[0] == pytest.approx(max(0, score - stretch * (score - low)), abs=0.03 * error)
    assert found.high[0] == pytest.approx(min(1, score + stretch * (high - score)), abs=0.03 * error)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.005, 0.4), st.floats(1, 100))
def test_scores_lie_in_their_intervals_and_mirror_with_the_scale(means, error, freedom):
    found = shrink_to_items(believed(means, error, freedom))
    assert ((found.low >= 0) & (found.low <= found.score) & (found.score <= found.high) & (found.high <= 1)).all()
    mirrored = shrink_to_items(believed([1 - mean for mean in means], error, freedom))
    assert mirrored.score == pytest.approx(1 - found.score, abs=1e-6)
    assert mirrored.low == pytest.approx(1 - found.high, abs=1e-6)
    points = shrink_to_items(believed([100 * mean for mean in means], 100 * error, freedom, (0.0, 100.0)))
    assert points.high == pytest.approx(100 * found.high, abs=1e-6)


def test_items_without_an_error_have_no_score_and_do_not_change_the_others():
    means = believed([0.2, 0.6, 0.7, np.nan], 0.1)
    means.standard_error[3] = np.nan
    found = shrink_to_items(means)
    assert np.isnan([found.score[3], found.low[3], found.high[3]]).all()
    assert found.score[:3] == pytest.approx(shrink_to_items(means.select_items([0, 1, 2])).score)
    nothing = shrink_means_to_prior(Tally.empty(2))
    assert np.isnan(nothing.score).all()


def test_items_of_a_page_get_the_scores_that_they_have_among_all():
    items = np.tile(np.arange(30), 2)
    tally = Tally.empty(30).with_judgments_added(items, np.arange(60), np.random.default_rng(1).random(60))
    of_all = shrink_means_to_prior(tally)
    assert fit_item_shrinkage(tally).shrink_items([29, 3]).high == pytest.approx(of_all.high[[29, 3]])


def test_by_hand_the_variance_of_an_item_is_that_of_one_with_three_typical_judgments_more():
    # .9, 1 and .4, .5: SS .005 each, pooled .005, and the mean of all .7. With three more judgments of .7, totals are
    # 4 and 3, so m' = 4.5 / 6 and 3.5 / 6, and m'(1 - m') = .1875 and .2431; phi = .01 / .4306.
    tally = Tally.empty(2).with_judgments_added([0, 0, 1, 1], [0, 1, 2, 3], [0.9, 1.0, 0.4, 0.5])
    prior = (0.005 + 0.01 / 0.430556 * np.array([0.1875, 0.243056])) / 2
    error = np.sqrt((1000 * prior + 0.005) / 1001 / 2)  # no item varies more than others, so d0 is 1000
    assert fit_item_shrinkage(tally).means.standard_error == pytest.approx(error, rel=1e-4)
    assert moderated_means_of_tally(tally).standard_error[0] < error[0]


def test_intervals_reach_the_end_of_the_scale_where_all_annotators_may_agree_on_it():
    items = np.repeat(np.arange(20), 4)
    scores = np.where(items < 8, 1.0, np.random.default_rng(3).choice([0.4, 0.6, 0.8, 1.0], len(items)))
    found = shrink_means_to_prior(Tally.empty(20).with_judgments_added(items, np.arange(len(items)), scores))
    assert (found.high[:8] == 1).all()
    assert (found.low[:8] < found.score[:8]).all()


def test_one_item_is_hardly_shrunk():
    (score,) = shrink_to_items(believed([0.8], 0.05)).score
    assert score == pytest.approx(0.8, abs=0.01)


def coverage_of_leading_items(seed):
    """Return the shares of the intervals of the 10 highest of 100 items that hold the truth, plain and shrunken.

    Each item was asked twice, and then the one that was at some place from the 21st to the 50th, 100 times.
    """
    rng = np.random.default_rng(seed)
    truth = rng.beta(6, 6, 100)
    scores = [list(pair) for pair in (truth[:, None] + rng.normal(0, 0.2, (100, 2))).clip(0, 1)]
    for _ in range(100):
        asked = np.argsort([-np.mean(own) for own in scores])[rng.integers(20, 50)]
        scores[asked].append(float((truth[asked] + rng.normal(0, 0.2)).clip(0, 1)))
    items = np.repeat(np.arange(100), [len(own) for own in scores])
    tally = Tally.empty(100).with_judgments_added(items, np.arange(len(items)), np.concatenate(scores))
    means, shrunken = moderated_means_of_tally(tally), shrink_means_to_prior(tally)
    columns = (means.mean, *means.interval()), (shrunken.score, shrunken.low, shrunken.high)
    leading = [np.argsort(-score)[:10] for score, _, _ in columns]
    return [
        np.mean((low[first] <= truth[first]) & (truth[first] <= high[first]))
        for first, (_, low, high) in zip(leading, columns, strict=True)
    ]


def test_intervals_of_leading_items_hold_the_truth_although_their_scores_chose_them():
    plain, shrunken = np.mean([coverage_of_leading_items(seed) for seed in range(12)], axis=0)
    assert plain < 0.85
    assert shrunken >= 0.93
