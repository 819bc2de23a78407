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
    ItemEvidence,
    ItemPrior,
    ItemShrinkage,
    estimate_item_prior,
    fit_item_shrinkage,
    shrink_means_to_prior,
)

SURE = 1e6  # degrees of freedom at which a t distribution is normal
MIDDLES = np.arange(0.005, 1, 0.01)
FLAT = np.full(100, 0.01)


def evidence_of(means, judgments=4.0, squares=0.0, freedom=SURE):
    count = len(means)
    return ItemEvidence(np.asarray(means, float), np.full(count, judgments), np.full(count, squares), freedom)


def tally_of(judgments, n_items=None):
    """Return the tally of lists of scores per item, with a different annotator for each judgment."""
    scores = np.array([score for own in judgments for score in own], float)
    items = np.repeat(np.arange(len(judgments)), [len(own) for own in judgments])
    return Tally.empty(n_items or len(judgments)).with_judgments_added(items, np.arange(len(items)), scores)


def test_by_hand_a_flat_prior_changes_nothing():
    # A variance of .01 and 4 judgments: an error of .05.
    found = ItemPrior(FLAT, np.full(100, 0.01)).shrink(evidence_of([0.3, 0.5]))
    assert found.score == pytest.approx([0.3, 0.5], abs=1e-6)
    assert found.low == pytest.approx([0.3 - 1.96 * 0.05, 0.5 - 1.96 * 0.05], abs=1e-3)
    assert found.high == pytest.approx([0.3 + 1.96 * 0.05, 0.5 + 1.96 * 0.05], abs=1e-3)


def test_by_hand_a_prior_that_prefers_the_lower_half():
    # Three times as likely below .5 as above: a normal belief around .5 is below it with 3/4, and the mean of a half
    # is .05 sqrt(2 / pi) = .0399 from .5, so the score is .5 - (3/4 - 1/4) .0399.
    prior = ItemPrior(np.repeat([0.015, 0.005], 50), np.full(100, 0.01))
    found = prior.shrink(evidence_of([0.5]))
    score = 0.5 - 0.5 * 0.0399
    assert found.score == pytest.approx([score], abs=2e-4)
    # 2.5 % below: 3/2 Phi(z) = .025, so z = -2.128; above: 1/2 (1 - Phi(z)) = .025, so z = 1.645.
    low, high = 0.5 - 2.128 * 0.05, 0.5 + 1.645 * 0.05
    assert [*found.low, *found.high] == pytest.approx([low, high], abs=1e-3)
    # That is 3.773 errors wide, and the plain interval 3.920: so both arms are stretched by 3.920 / 3.773 = 1.039.
    plain = ModeratedMeans(np.array([0.5]), np.array([0.05]), np.array([SURE]), (0.0, 1.0))
    widened = ItemShrinkage(plain, evidence_of([0.5]), prior).shrink_items([0])
    assert widened.low == pytest.approx([score - 1.039 * (score - low)], abs=1e-3)
    assert widened.high == pytest.approx([score + 1.039 * (high - score)], abs=1e-3)


def test_by_hand_the_variance_is_that_of_the_candidate_value():
    # Items below .5 are judged with the variance .04, others with .01; with 4 judgments the errors are .1 and .05. Each
    # side of .5 has half of the belief, and the mean of a half of a normal one is sqrt(2 / pi) = .798 errors away.
    found = ItemPrior(FLAT, np.repeat([0.04, 0.01], 50)).shrink(evidence_of([0.5]))
    assert found.low == pytest.approx([0.5 - 1.96 * 0.1], abs=2e-3)
    assert found.high == pytest.approx([0.5 + 1.96 * 0.05], abs=2e-3)
    assert found.score == pytest.approx([0.5 + 0.798 * (0.05 - 0.1) / 2], abs=2e-3)


def plain_variances(evidence, posterior, kernel, base, base_variances):
    """Return v(x) by its formula, one bin and one item at a time."""
    total, weight = np.zeros(100), np.zeros(100)
    for own, mean, n, squares in zip(posterior, evidence.mean, evidence.judgments, evidence.squares, strict=True):
        for place in range(100):
            total[place] += own[place] * (squares + n * (mean - MIDDLES[place]) ** 2)
            weight[place] += own[place] * n
    base_weight = BASE_ITEMS * np.mean(evidence.judgments) * base
    return (kernel @ total + base_weight * base_variances) / (kernel @ weight + base_weight)


def plain_prior(evidence, base_variances):
    """Return the prior by the formulas of `estimate_item_prior`, one distribution and one item at a time."""
    edges, ends = np.linspace(0, 1, 101), (MIDDLES, -MIDDLES, 2 - MIDDLES)
    betas = [
        np.diff(stats.beta.cdf(edges, mean * concentration, (1 - mean) * concentration))
        for mean in np.arange(0.0125, 1, 0.025)
        for concentration in np.geomspace(0.5, 500, 16)
    ]
    kernel = sum(stats.norm.pdf(MIDDLES[:, None], at, 0.05) for at in ends)
    kernel /= kernel.sum(axis=0)
    variances, shares = base_variances, None
    for _ in range(5):
        likelihood = [
            stats.t.pdf(MIDDLES, evidence.freedom, mean, np.sqrt(variances / n + 0.01**2 / 12))
            for mean, n in zip(evidence.mean, evidence.judgments, strict=True)
        ]
        weights = [np.prod([own / own.max() @ beta for own in likelihood]) for beta in betas]
        base = np.average(betas, axis=0, weights=weights)
        shares = base if shares is None else shares
        for _ in range(12):
            expected = sum(own * shares / (own @ shares) for own in likelihood)
            shares = (kernel @ expected + BASE_ITEMS * base) / (len(likelihood) + BASE_ITEMS)
        posterior = [own * shares / (own @ shares) for own in likelihood]
        variances = plain_variances(evidence, posterior, kernel, base, base_variances)
    return shares, variances


def test_the_prior_and_the_variances_are_what_the_formulas_say():
    evidence = ItemEvidence(
        np.array([0.2, 0.25, 0.4, 0.9]), np.array([3.0, 1.0, 2.0, 5.0]), np.array([0.1, 0.0, 0.05, 0.02]), 5.0
    )
    base_variances = 0.01 + 0.1 * MIDDLES * (1 - MIDDLES)
    found = estimate_item_prior(evidence, base_variances)
    shares, variances = plain_prior(evidence, base_variances)
    assert found.shares == pytest.approx(shares, abs=1e-6)
    assert found.shares.sum() == pytest.approx(1)
    assert found.variances == pytest.approx(variances, rel=1e-3)


@pytest.mark.parametrize(("mean", "judgments", "freedom"), [(0.3, 2, 5.0), (0.95, 1, 4.0), (0.0, 50, 12.0)])
def test_the_posterior_is_the_integral_of_likelihood_and_prior(mean, judgments, freedom):
    shares, variances = stats.beta.pdf(MIDDLES, 2, 4), 0.01 + 0.1 * MIDDLES * (1 - MIDDLES)
    found = ItemPrior(shares / shares.sum(), variances).shrink(evidence_of([mean], judgments, freedom=freedom))

    places = np.linspace(0, 1, 400_001)
    error = np.sqrt(np.interp(places, MIDDLES, variances) / judgments)
    density = stats.t.pdf(mean, freedom, places, error) * np.interp(places, MIDDLES, shares)
    below = integrate.cumulative_trapezoid(density, places, initial=0)
    at_mean = np.interp(mean, places, error)
    assert found.score[0] == pytest.approx(density @ places / density.sum(), abs=0.01 * at_mean)
    low, high = (np.interp(np.array(mass) * below[-1], below, places) for mass in ((0.025, 0, 0.05), (0.975, 0.95, 1)))
    shortest = (high - low).argmin()
    assert found.low[0] == pytest.approx(0 if shortest == 1 else low[0], abs=0.03 * at_mean)
    assert found.high[0] == pytest.approx(1 if shortest == 2 else high[0], abs=0.03 * at_mean)


JUDGMENTS = st.lists(st.lists(st.integers(0, 20).map(lambda k: k / 20), min_size=1, max_size=6), min_size=1, max_size=8)


@settings(max_examples=25, deadline=None)
@given(JUDGMENTS)
def test_scores_lie_in_their_intervals_and_mirror_with_the_scale(judgments):
    found = shrink_means_to_prior(tally_of(judgments))
    if np.isnan(found.score).any():
        assert all(len(set(own)) == 1 for own in judgments)
        return
    assert ((found.low >= 0) & (found.low <= found.score) & (found.score <= found.high) & (found.high <= 1)).all()
    mirrored = shrink_means_to_prior(tally_of([[1 - score for score in own] for own in judgments]))
    assert mirrored.score == pytest.approx(1 - found.score, abs=1e-6)
    assert mirrored.low == pytest.approx(1 - found.high, abs=1e-6)
    points = shrink_means_to_prior(tally_of([[100 * score for score in own] for own in judgments]), (0.0, 100.0))
    assert points.high == pytest.approx(100 * found.high, abs=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 1), st.integers(1, 20), st.floats(4, 100))
def test_more_judgments_with_the_same_mean_never_widen_an_interval(mean, judgments, freedom):
    prior = ItemPrior(FLAT, np.full(100, 0.02))
    fewer, more = (prior.shrink(evidence_of([mean], n, freedom=freedom)) for n in (judgments, 2 * judgments))
    assert (more.high - more.low <= fewer.high - fewer.low + 1e-9).all()


def test_annotators_who_agree_on_an_item_by_luck_do_not_make_its_score_surer():
    judgments = [[1.0, 1.0, 0.4], [0.8, 0.8, 0.8], [0.3, 0.9, 0.6], [0.5, 0.4, 0.9]]
    shrinkage = fit_item_shrinkage(tally_of(judgments))
    found = shrinkage.prior.shrink(shrinkage.evidence.select_items([0, 1]))
    assert found.score[0] == pytest.approx(found.score[1])
    assert found.low[0] == pytest.approx(found.low[1])


def test_items_without_an_error_have_no_score_and_do_not_change_the_others():
    judgments = [[0.2, 0.4], [0.6, 0.5], [0.7, 0.9]]
    found = shrink_means_to_prior(tally_of(judgments, n_items=4))
    assert np.isnan([found.score[3], found.low[3], found.high[3]]).all()
    assert found.score[:3] == pytest.approx(shrink_means_to_prior(tally_of(judgments)).score)
    nothing = shrink_means_to_prior(Tally.empty(2))
    assert np.isnan(nothing.score).all()


def test_items_of_a_page_get_the_scores_that_they_have_among_all():
    items = np.tile(np.arange(30), 2)
    tally = Tally.empty(30).with_judgments_added(items, np.arange(60), np.random.default_rng(1).random(60))
    of_all = shrink_means_to_prior(tally)
    assert fit_item_shrinkage(tally).shrink_items([29, 3]).high == pytest.approx(of_all.high[[29, 3]])


def test_somebody_who_judges_an_item_again_does_not_make_it_surer():
    items, scores = [0, 0, 1, 1], [0.2, 0.6, 0.3, 0.9]
    once = Tally.empty(2).with_judgments_added(items, [0, 1, 0, 1], scores)
    again = once.with_judgments_added(items, [0, 1, 0, 1], scores)
    assert fit_item_shrinkage(again).evidence.judgments.tolist() == [2.0, 2.0]
    assert shrink_means_to_prior(again).low == pytest.approx(shrink_means_to_prior(once).low)


def test_intervals_reach_the_end_of_the_scale_where_all_annotators_may_agree_on_it():
    items = np.repeat(np.arange(20), 4)
    scores = np.where(items < 8, 1.0, np.random.default_rng(3).choice([0.4, 0.6, 0.8, 1.0], len(items)))
    found = shrink_means_to_prior(Tally.empty(20).with_judgments_added(items, np.arange(len(items)), scores))
    assert (found.high[:8] == 1).all()
    assert (found.low[:8] < found.score[:8]).all()


def test_one_item_is_hardly_shrunk():
    found = estimate_item_prior(evidence_of([0.8]), np.full(100, 0.01)).shrink(evidence_of([0.8]))
    assert found.score == pytest.approx([0.8], abs=0.01)


# How well the variance is known, and how often the intervals are right


@pytest.mark.parametrize("low", [0.0, 0.5])
def test_the_variance_at_each_value_is_found_from_few_judgments_of_each_item(low):
    # Scores are 1 or `low`, so an item with the mean x is judged with the variance (1 - x)(x - low).
    rng = np.random.default_rng(5)
    truth = low + (1 - low) * rng.beta(4, 2, 600)
    scores = np.where(rng.random((600, 4)) < ((truth - low) / (1 - low))[:, None], 1.0, low)
    found = fit_item_shrinkage(tally_of(scores)).prior.variances
    middle = (np.quantile(truth, 0.1) < MIDDLES) & (np.quantile(truth, 0.9) > MIDDLES)
    assert found[middle] == pytest.approx(((1 - MIDDLES) * (MIDDLES - low))[middle], rel=0.25)


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


def coverage_of_leading_items_where_scores_pile_up(seed, top):
    """Return the share of the intervals of the 10 highest of 100 items that hold the truth.

    Most judgments are `top`; the others, more of them for worse items, are between 0 and `top`. Each item was asked
    twice, and then one of the 20 with the highest means, 200 times.
    """
    rng = np.random.default_rng(seed)
    is_below = 0.5 * rng.beta(1, 3, 100)
    truth = top * (1 - is_below / 2)

    def judge(item):
        return top * float(rng.random() if rng.random() < is_below[item] else 1.0)

    scores = [[judge(item), judge(item)] for item in range(100)]
    for _ in range(200):
        asked = np.argsort([-np.mean(own) for own in scores], kind="stable")[rng.integers(20)]
        scores[asked].append(judge(asked))
    found = shrink_means_to_prior(tally_of(scores))
    leading = np.argsort(-found.score, kind="stable")[:10]
    return np.mean((found.low <= truth)[leading] & (truth <= found.high)[leading])


@pytest.mark.parametrize("top", [0.5, 1.0])
def test_intervals_of_leading_items_hold_the_truth_where_scores_pile_up_at_one_value(top):
    assert np.mean([coverage_of_leading_items_where_scores_pile_up(seed, top) for seed in range(12)]) >= 0.93
