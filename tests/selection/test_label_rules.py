"""Which item gets the next label: by hand, by the fit that knows each annotator, and on simulated crowds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.inference.labels import dawid_skene, pooled_dawid_skene
from app.inference.labels.pooled_dawid_skene import PooledModel
from app.selection.label_rules import (
    ENTROPY_RULE,
    INFORMATION_RULE,
    distinct_label_counts_and_kind_of_each_posterior,
    expected_label_information,
    label_counts_of_each_posterior,
    true_class_entropy_bits,
)
from app.selection.rule import ItemValues, SelectionSettings
from benchmarks import label_selection

ASKING = SelectionSettings(judgments_per_item=5, items_per_hit=1, gamma=0.1)
ANYBODY = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}
TWO = PooledModel(np.array([0.2, 0.8]), np.array([[0.9, 0.1], [0.2, 0.8]]))


def states(*counts):
    return np.array(counts, np.float64) + 1.0 / len(counts[0])


def index_of(rule, *counts):
    told = states(*counts)
    judgments = np.array(counts).sum(axis=1)
    return rule.make_selection_index(
        ItemValues(np.full(len(counts), 0.5), np.full(len(counts), 0.1), judgments), ASKING, states=told
    )


def test_the_posterior_of_an_items_class_by_hand():
    # .2 * .9 * .9 = .162 and .8 * .2 * .2 = .032; .2 * .9 * .1 = .018 and .8 * .2 * .8 = .128
    assert TWO.posterior([[2, 0], [1, 1]]) == pytest.approx(
        np.array([[0.162, 0.032], [0.018, 0.128]]) / [[0.194], [0.146]]
    )


def test_what_is_left_open_and_what_a_label_tells_by_hand():
    prior = TWO.posterior([[0, 0]])
    assert true_class_entropy_bits(prior, TWO) == pytest.approx([0.721928], abs=1e-6)
    # The paper's third annotator: .25 bits.
    assert expected_label_information(prior, TWO) == pytest.approx([0.253], abs=5e-4)


@pytest.mark.parametrize("measure", [true_class_entropy_bits, expected_label_information])
@given(counts=st.lists(st.tuples(*[st.integers(0, 8)] * 3), min_size=1, max_size=10))
def test_a_label_tells_no_more_than_is_open_and_that_is_no_more_than_of_equal_classes(measure, counts):
    model = pooled_dawid_skene.fit(counts, np.ones(len(counts)))
    posterior = model.posterior(counts)
    worth = measure(posterior, model)
    assert posterior.sum(axis=1) == pytest.approx(1.0)
    assert np.all(worth >= -1e-12)
    assert np.all(worth <= true_class_entropy_bits(posterior, model) + 1e-12)
    assert np.all(worth <= np.log2(3) + 1e-12)


def test_the_expected_entropy_after_one_more_label_is_as_much_lower_as_it_tells():
    counts = np.array([[2.0, 1.0]])
    posterior = TWO.posterior(counts)
    after = [TWO.posterior(counts + label) for label in np.eye(2)]
    chance = (posterior @ TWO.response)[0]
    left = sum(p * true_class_entropy_bits(one, TWO)[0] for p, one in zip(chance, after, strict=True))
    assert true_class_entropy_bits(posterior, TWO)[0] - left == pytest.approx(
        expected_label_information(posterior, TWO)[0]
    )


def test_with_many_labels_it_is_dawid_and_skenes_fit_of_one_annotator():
    rng = np.random.default_rng(3)
    truth = rng.choice(3, size=4000, p=[0.5, 0.3, 0.2])
    response = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.05, 0.15, 0.8]])
    labels = np.array([rng.choice(3, size=6, p=response[k]) for k in truth])
    counts = np.array([np.bincount(row, minlength=3) for row in labels])
    found = pooled_dawid_skene.fit(counts, np.ones(len(counts)))
    items = np.repeat(np.arange(4000), 6)
    oracle = dawid_skene.fit(items, np.zeros(24_000, int), labels.ravel(), n_labels=3)
    assert found.prevalence == pytest.approx(oracle.prevalence, abs=0.01)
    assert found.response == pytest.approx(oracle.response[0], abs=0.01)
    assert found.response == pytest.approx(response, abs=0.03)


def test_the_same_counts_of_many_items_count_as_often():
    counts, items = [[3, 0], [2, 1], [0, 3]], [5, 2, 4]
    one, other = (
        pooled_dawid_skene.fit(counts, items),
        pooled_dawid_skene.fit(np.repeat(counts, items, axis=0), np.ones(11)),
    )
    assert one.response == pytest.approx(other.response)
    assert one.prevalence == pytest.approx(other.prevalence)


def test_before_the_first_label_annotators_are_believed_to_be_right_more_often_than_not():
    assert pooled_dawid_skene.initial_pooled_model(3).response == pytest.approx(
        np.full((3, 3), 0.125) + np.eye(3) * 0.625
    )
    assert pooled_dawid_skene.fit([[0, 0, 0]], [9]).response == pytest.approx(
        pooled_dawid_skene.initial_pooled_model(3).response
    )


def test_counts_that_cannot_be_are_refused(subtests):
    for counts, items in (([1, 2], [1]), ([[1]], [1]), ([[1, -1]], [1]), ([[1, 2]], [np.nan])):
        with subtests.test(counts=counts, items=items), pytest.raises(ValueError, match="counts must"):
            pooled_dawid_skene.fit(counts, items)


@pytest.mark.parametrize("rule", [ENTROPY_RULE, INFORMATION_RULE], ids=lambda rule: rule.name)
def test_an_item_that_divides_its_annotators_comes_before_one_on_which_they_agree(rule):
    index = index_of(rule, (2, 0), (1, 1), (0, 2), (4, 0), (4, 0), (0, 4))
    assert {index.draw_hit_or_none(1, **ANYBODY, rng=np.random.default_rng(k)).leader for k in range(20)} == {1}


@pytest.mark.parametrize("rule", [ENTROPY_RULE, INFORMATION_RULE], ids=lambda rule: rule.name)
def test_what_nobody_has_labelled_comes_before_what_two_agree_on_and_ties_are_broken_by_chance(rule):
    index = index_of(rule, (2, 0), (0, 0), (0, 2), (0, 0), (2, 0))
    assert {index.draw_hit_or_none(1, **ANYBODY, rng=np.random.default_rng(k)).leader for k in range(20)} == {1, 3}


def test_it_hears_of_labels_and_of_two_reports_believes_the_newer():
    index = index_of(ENTROPY_RULE, (1, 0), (1, 0), (1, 0))
    index.update([1], [0.5], [0.1], [2])
    assert index.items_with_unread_labels == {1}
    index.update_label_posteriors([1], states((1, 1)))
    index.update_label_posteriors([1], states((1, 0)))
    assert index.items_with_unread_labels == set()
    assert index.draw_hit_or_none(1, **ANYBODY, rng=np.random.default_rng(1)).leader == 1
    index.require_consistency()


def test_what_items_begin_with_is_no_label():
    assert label_counts_of_each_posterior(states((0, 0, 2), (1, 0, 0))) == [(0, 0, 2), (1, 0, 0)]


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), max_size=30))
def test_each_posterior_has_one_of_the_different_counts(counts):
    posteriors = np.array(counts, np.float64).reshape(-1, 3) + 0.25
    distinct, kinds = distinct_label_counts_and_kind_of_each_posterior(posteriors)
    assert [distinct[kind] for kind in kinds] == counts
    assert sorted(distinct) == sorted({*counts})


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.booleans()), max_size=40))
def test_each_item_lies_in_the_bag_of_its_labels_whatever_happens(events):
    index, counts = index_of(INFORMATION_RULE, *[(0, 0, 0)] * 6), np.zeros((6, 3))
    for item, label, told in events:
        if counts[item].sum() == 5:
            continue
        counts[item, label] += 1
        index.update([item], [0.5], [0.1], [int(counts[item].sum())])
        if told:
            index.update_label_posteriors([item], states(counts[item]))
        index.require_consistency()
        draw = index.draw_hit_or_none(2, **ANYBODY, rng=np.random.default_rng(1))
        assert draw is None or (counts[draw.items].sum(axis=1) < 5).all()


def test_at_an_equal_budget_more_labels_are_right_than_by_uniform_asking(subtests):
    crowds = [
        (seed, *label_selection.simulate_classes_and_label_probabilities(seed, split_share=0.1)) for seed in (1, 2)
    ]
    right = {
        name: np.mean(
            [label_selection.correct_shares_by_budget(name, truth, chance, seed) for seed, truth, chance in crowds],
            axis=0,
        )
        for name in ("uniform", "entropy", "information")
    }
    for rule in ("entropy", "information"):
        with subtests.test(rule=rule):
            assert right[rule].mean() > right["uniform"].mean() + 0.015
