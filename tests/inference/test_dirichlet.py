"""Labels that are counted, and which item a next label tells most about."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import digamma, xlogy

from app.inference.online import dirichlet
from app.inference.online.law import AnsweredHit
from app.selection.index import AlgorithmOne
from app.selection.rule import ItemValues, SelectionSettings
from tests.inference.beliefs import initial_beliefs, posteriors_after

CLASSES = 4
COUNTS = st.integers(2, 30).flatmap(lambda k: st.lists(st.floats(0.01, 1e6), min_size=k, max_size=k))


def labels(counts):
    """Return the posterior after these counts of labels by class, from the law's prior."""
    return [1.0 / len(counts) + count for count in counts]


def test_by_hand():
    # Four classes and the labels 2, 0, 2: counts 5/4, 1/4, 9/4, 1/4 of 4, so shares 5/16, 1/16, 9/16, 1/16.
    hits = [AnsweredHit(who, [0], [label]) for who, label in enumerate((2.0, 0.0, 2.0))]
    state = posteriors_after(dirichlet.make_dirichlet_law(4), 1, hits)
    assert state.tolist() == [[1.25], [0.25], [2.25], [0.25]]
    assert dirichlet.score(*state) == pytest.approx(9 / 16)
    assert dirichlet.variance(*state) == pytest.approx((5 * 11 + 2 * 1 * 15 + 9 * 7) / 256 / 5)


def test_each_item_of_a_hit_gets_its_own_label():
    state = posteriors_after(dirichlet.make_dirichlet_law(4), 3, [AnsweredHit(0, [2, 0], [3.0, 1.0])])
    assert (state.T - 0.25).tolist() == [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_it_begins_with_as_much_as_one_label_whatever_the_number_of_classes():
    assert [sum(dirichlet.make_dirichlet_law(k).family.default_prior) for k in (2, 5, 30)] == pytest.approx([1, 1, 1])
    assert dirichlet.score(*labels([10] + [0] * 29)) == pytest.approx((10 + 1 / 30) / 11)


@given(COUNTS)
def test_means_variances_and_marginals_are_those_of_the_distribution(counts):
    oracle, place = stats.dirichlet(counts), int(np.argmax(counts))
    assert dirichlet.score(*counts) == pytest.approx(oracle.mean()[place])
    assert dirichlet.variance(*counts) == pytest.approx(oracle.var().sum())
    marginal = stats.beta(counts[place], sum(counts) - counts[place])
    assert dirichlet.interval(*counts, level=0.9) == pytest.approx(marginal.interval(0.9), abs=1e-9)
    assert dirichlet.density(*counts, 0.4) == pytest.approx(marginal.pdf(0.4), rel=1e-6, abs=1e-12)


def test_for_two_classes_it_is_the_beta_of_scores_that_are_0_or_1():
    assert dirichlet.variance(3.0, 5.0) == pytest.approx(2 * stats.beta(3, 5).var())  # both shares vary alike


@given(COUNTS, st.data())
def test_the_order_of_the_classes_means_nothing(counts, data):
    other = data.draw(st.permutations(counts))
    assert dirichlet.score(*counts) == pytest.approx(dirichlet.score(*other))
    assert dirichlet.variance(*counts) == pytest.approx(dirichlet.variance(*other))


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30))
def test_a_label_that_agrees_makes_it_surer(counts):
    state = labels(counts)
    agreed = state.copy()
    agreed[int(np.argmax(state))] += 1
    assert dirichlet.score(*agreed) > dirichlet.score(*state)
    assert dirichlet.variance(*agreed) < dirichlet.variance(*state)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30))
def test_whatever_was_labelled_less_often_with_the_same_shares_is_asked_first(counts):
    once, twice = np.array(labels(counts)), 2 * np.array(labels(counts))
    assert dirichlet.variance(*twice) < dirichlet.variance(*once)


@given(st.lists(st.integers(0, 50), min_size=2, max_size=30).filter(any))
def test_what_has_no_label_leads_whatever_has_one(counts):
    nothing = dirichlet.variance(*labels([0] * len(counts)))
    assert nothing > dirichlet.variance(*labels(counts))


@given(COUNTS)
def test_the_variance_is_what_the_next_label_tells_of_the_shares_by_ginis_index(counts):
    def gini(shares):
        return 1.0 - (shares**2).sum()

    a, total = np.array(counts), sum(counts)
    within = 1.0 - (a * (a + 1)).sum() / (total * (total + 1))  # the mean of Gini's index: E p^2 = a (a+1) / A (A+1)
    assert dirichlet.variance(*counts) == pytest.approx(gini(a / total) - within, rel=1e-3, abs=1e-10)


def information(a):
    """Return the information of one more label about the shares, in nats: the entropy of the mean minus the mean
    entropy; a: (K, N).
    """
    total = a.sum(axis=0)
    mean = a / total
    return -xlogy(mean, mean).sum(axis=0) + (mean * (digamma(a + 1) - digamma(total + 1))).sum(axis=0)


@pytest.mark.parametrize("classes", [2, 4, 12])
def test_who_leads_is_nearly_the_item_of_the_largest_expected_information(classes):
    rng = np.random.default_rng(classes)
    ratios, correlations = [], []
    for _ in range(60):
        shares = rng.dirichlet(np.full(classes, 0.5), 50)
        state = 1.0 / classes + np.array([rng.multinomial(rng.integers(0, 12), share) for share in shares]).T
        told, variance = information(state), dirichlet.variance(*state)
        ratios.append(told[np.argmax(variance)] / told.max())
        correlations.append(stats.spearmanr(told, variance).statistic)
    assert np.mean(ratios) > 0.99
    assert np.mean(correlations) > 0.85


def test_an_item_on_which_people_are_divided_does_not_lead_for_ever():
    divided, little_known = labels([40, 40, 0]), labels([3, 1, 0])

    def entropy(a):
        return stats.entropy(np.array(a) / sum(a))

    assert entropy(divided) > entropy(little_known) * 0.7  # by entropy it would compete for good
    assert dirichlet.variance(*divided) < dirichlet.variance(*little_known) / 3
    assert information(np.array(divided)[:, None]) < information(np.array(little_known)[:, None]) / 3


def share_right(truth, skill, judgments, leads, *, rng):
    """Return the share of items whose likeliest class is correct after a budget of labels; `leads` chooses the item."""
    beliefs = initial_beliefs(dirichlet.make_dirichlet_law(CLASSES), len(truth))
    for who in range(judgments):
        item = leads(beliefs.state, rng)
        right = rng.random() < skill[item]
        label = truth[item] if right else rng.choice([k for k in range(CLASSES) if k != truth[item]])
        beliefs.apply_hits([AnsweredHit(who, [item], [float(label)])])
    return float(np.mean(np.argmax(beliefs.state, axis=0) == truth))


def by_algorithm_1(state, rng):
    index = AlgorithmOne().make_selection_index(
        ItemValues(dirichlet.score(*state), dirichlet.variance(*state), np.zeros(state.shape[1])),
        SelectionSettings(10**6, 1, 0.1),
    )
    drawn = index.draw_hit_or_none(1, seen=set(), full=set(), leaders_to_avoid=set(), seen_as_last_resort=True, rng=rng)
    assert drawn is not None
    return drawn.leader


def by_entropy(state, rng):
    entropy = stats.entropy(state / state.sum(axis=0))
    return int(rng.choice(np.flatnonzero(entropy >= entropy.max() - 1e-12)))


def at_random(state, rng):
    return int(rng.integers(state.shape[1]))


def test_the_true_class_is_found_more_often_with_more_labels():
    rng = np.random.default_rng(5)
    truth, skill = rng.integers(0, 4, 60), np.full(60, 0.6)
    found = [share_right(truth, skill, judgments, by_algorithm_1, rng=rng) for judgments in (30, 120, 600)]
    assert found[0] < found[1] < found[2]
    assert found[2] > 0.95


def test_algorithm_1_finds_more_true_classes_than_chance_and_than_the_largest_entropy():
    """Every third item is one on which people are divided; asking about it again and again costs the others."""
    rng = np.random.default_rng(11)
    found: dict[Any, list[float]] = {leads: [] for leads in (by_algorithm_1, by_entropy, at_random)}
    for _ in range(12):
        truth, skill = rng.integers(0, 4, 45), np.where(np.arange(45) % 3 == 0, 0.3, 0.75)
        for leads, shares in found.items():
            shares.append(share_right(truth, skill, 180, leads, rng=rng))
    means = {leads.__name__: np.mean(shares) for leads, shares in found.items()}
    assert means["by_algorithm_1"] > means["at_random"] + 0.02
    assert means["by_algorithm_1"] > means["by_entropy"] + 0.02


def test_counts_that_cannot_be_are_refused(subtests):
    for state in ((0.0, 1.0), (1.0, -1.0), (float("nan"), 1.0), (float("inf"), 1.0)):
        with subtests.test(state=state):
            for function in (dirichlet.score, dirichlet.variance, dirichlet.interval):
                with pytest.raises(ValueError, match="counts"):
                    function(*state)
            with pytest.raises(ValueError, match="counts"):
                dirichlet.update(*[[count] for count in state], [0.0], None)


def test_a_label_that_is_none_is_refused(subtests):
    for label in (2.0, -1.0, 0.5, float("nan")):
        with subtests.test(label=label), pytest.raises(ValueError, match="whole number"):
            dirichlet.update([1.0], [1.0], [label], None)


def test_there_is_one_law_for_each_number_of_classes():
    assert dirichlet.LAW.law_with_class_count(7) is dirichlet.make_dirichlet_law(7)
    assert dirichlet.make_dirichlet_law(7).family.parameter_names[-1] == "class_7"
    with pytest.raises(ValueError, match="two classes"):
        dirichlet.make_dirichlet_law(1)
