from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp

from app.inference.ground.inestimable import Inestimable, NotConverged
from app.inference.ground.information import entropy
from app.inference.labels import latent_classes
from app.inference.labels.dawid_skene import (
    DawidSkeneResult,
    consensus,
    expected_information,
    fit,
    probability_of_each_label_being_right,
)
from app.inference.labels.latent_classes import ClassParameters

DATA = Path(__file__).parents[2] / "examples" / "data"
UNSMOOTHED: dict[str, Any] = {"alpha": 1.0, "beta": 1.0}


def word_senses(word):
    """Return items, annotators and labels, numbered from 0."""
    table = np.genfromtxt(
        DATA / "masc_wordsense" / f"{word}.csv", delimiter=",", skip_header=1, dtype=int, filling_values=0
    )[:, 1:]
    items, annotators = table.nonzero()
    return items, annotators, table[items, annotators] - 1


def anesthesia():
    return np.loadtxt(DATA / "anesthesia" / "anesthesia.csv", delimiter=",", skiprows=1, dtype=int).T - 1


def simulated(rng, response, *, n_items, per_item, prevalence):
    """Return true classes, (n_items,), and labels in long form by `per_item` different annotators per item."""
    truth = rng.choice(len(prevalence), n_items, p=prevalence)
    annotators = rng.permuted(np.tile(np.arange(len(response)), (n_items, 1)), axis=1)[:, :per_item].ravel()
    items = np.repeat(np.arange(n_items), per_item)
    cumulated = response[annotators, truth[items]].cumsum(axis=1)
    return truth, items, annotators, (rng.random((len(items), 1)) > cumulated[:, :-1]).sum(axis=1)


def by_definition(result, items, annotators, labels):
    """Return posteriors and log-likelihood by the paper's formula, one label after another."""
    joint = np.tile(np.log(result.prevalence), (len(result.posterior), 1))
    for item, annotator, label in zip(items, annotators, labels, strict=True):
        joint[item] += np.log(result.response[annotator, :, label])
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), total[np.unique(items)].sum()


@st.composite
def campaigns(draw):
    """Draw a few labels of few items by few annotators; the first item has two, so that something is estimable."""
    n_labels = draw(st.integers(2, 3))
    judgment = st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, n_labels - 1))
    judgments = [(0, 0, 0), (0, 1, draw(st.integers(0, n_labels - 1))), *draw(st.lists(judgment, max_size=30))]
    items, annotators, labels = np.array(judgments).T
    return items, annotators, labels, n_labels


# Values by hand and from the papers


def test_the_posterior_of_the_papers_example_goes_against_the_majority():
    response = np.array([[[0.65, 0.35], [0.5, 0.5]], [[0.75, 0.25], [0.24, 0.76]], [[0.9, 0.1], [0.2, 0.8]]])
    labels = latent_classes.make_label_matrix(np.zeros(3, int), np.arange(3), np.array([0, 0, 1]), 3, 2)
    posterior, log_likelihood = latent_classes.class_posteriors_and_log_likelihood(
        labels, ClassParameters(np.array([0.2, 0.8]), response)
    )
    np.testing.assert_allclose(posterior[:, 0], [0.1127, 0.8873], atol=5e-5)
    assert np.exp(log_likelihood) == pytest.approx(0.2 * 0.04875 + 0.8 * 0.096)


def test_annotators_who_always_agree_are_right():
    labels = np.array([0, 0, 0, 1])
    result = fit(np.tile(np.arange(4), 3), np.repeat([0, 1, 2], 4), np.tile(labels, 3), **UNSMOOTHED)
    np.testing.assert_allclose(result.prevalence, [0.75, 0.25])
    np.testing.assert_allclose(result.response, np.tile(np.eye(2), (3, 1, 1)))
    np.testing.assert_allclose(result.posterior, np.eye(2)[labels])
    np.testing.assert_allclose(result.mutual_information, entropy([0.75, 0.25]))
    assert result.log_likelihood == pytest.approx(3 * np.log(0.75) + np.log(0.25))
    assert result.notes == ()


def test_smoothing_adds_a_hundredth_to_every_count():
    labels = np.array([0, 0, 0, 1])
    result = fit(np.tile(np.arange(4), 3), np.repeat([0, 1, 2], 4), np.tile(labels, 3))
    np.testing.assert_allclose(result.prevalence, [3.01 / 4.02, 1.01 / 4.02], rtol=1e-6)
    np.testing.assert_allclose(result.class_accuracy[1], [3.01 / 3.02, 1.01 / 1.02], rtol=1e-6)
    np.testing.assert_allclose(result.evidence[2], [3, 1], atol=1e-5)


def test_the_senses_of_add_are_as_prevalent_as_the_paper_says():
    items, annotators, labels = word_senses("add-v")
    assert (labels == 0).mean() == pytest.approx(0.637, abs=0.0005)
    assert round(fit(items, annotators, labels, start=0.7).prevalence[0], 2) == 0.51


@pytest.mark.parametrize(("word", "certain"), [("date-n", 0.97), ("help-v", 0.81)])
def test_as_many_senses_are_certain_as_the_paper_says(word, certain):
    result = fit(*word_senses(word), start=0.7)
    assert round((result.posterior.max(axis=1) >= 0.99).mean(), 2) == certain


def test_the_labels_of_1979_from_shares_of_votes():
    result = fit(*anesthesia(), **UNSMOOTHED)
    assert result.log_likelihood == pytest.approx(-190.73, abs=0.005)


def test_random_restarts_find_a_better_end_for_the_labels_of_1979():
    result = fit(*anesthesia(), **UNSMOOTHED, restarts=200, rng=np.random.default_rng(1))
    assert result.log_likelihood >= -189.41
    assert "random starts ended higher than the requested start, the best by 1.33" in result.notes[0]
    # The classes carry the names that the labels give them, whatever they were called where the start was drawn.
    assert (result.typical_response.argmax(axis=1) == np.arange(4)).all()


# Where it ends


def test_a_plateau_on_the_way_is_not_taken_for_the_end():
    """On the way to the top for *add* a step gains .0001 of 14,784, and the top is 4.3 higher."""
    result = fit(*word_senses("add-v"), start=0.7)
    assert result.log_likelihood == pytest.approx(fit(*word_senses("add-v"), start=0.7, tolerance=0.0).log_likelihood)


@pytest.mark.parametrize("seed", range(3))
def test_with_few_labels_posteriors_are_where_em_leads(seed):
    """2,000 items with two labels of many annotators; most gave a few."""
    rng = np.random.default_rng(seed)
    truth, items, annotators = rng.choice(4, 2000), np.repeat(np.arange(2000), 2), rng.zipf(1.6, 4000) % 300
    right = rng.random(4000) < rng.beta(4, 2, 300)[annotators]
    labels = np.where(right, truth[items], rng.choice(4, 4000))
    result = fit(items, annotators, labels)
    end = fit(items, annotators, labels, start=result, tolerance=1e-10, max_iterations=10_000)
    np.testing.assert_allclose(result.posterior, end.posterior, atol=1e-3)


def plain_em(items, annotators, labels, *, n_annotators, n_labels, steps):
    """Return the penalised log-likelihood that EM without leaps reaches from vote shares, with smoothing .01."""
    said, rater = np.eye(n_labels)[labels], np.eye(n_annotators)[annotators]
    posterior = np.array([said[items == item].mean(axis=0) for item in range(items.max() + 1)])
    height = -np.inf
    for _ in range(steps):
        prevalence = posterior.sum(axis=0) + 0.01
        response = np.einsum("nj,nk,nl->jkl", rater, posterior[items], said) + 0.01
        log_prevalence = np.log(prevalence / prevalence.sum())
        log_response = np.log(response / response.sum(axis=2, keepdims=True))
        joint = np.tile(log_prevalence, (len(posterior), 1))
        np.add.at(joint, items, log_response[annotators, :, labels])
        total = logsumexp(joint, axis=1)
        posterior = np.exp(joint - total[:, None])
        height = total.sum() + 0.01 * (log_prevalence.sum() + log_response.sum())
    return height


@pytest.mark.parametrize("seed", [323, 7, 8])
def test_a_leap_into_another_basin_does_not_end_lower_than_plain_steps(seed):
    """From seed 323 a leap ends .67 lower than the plain steps do."""
    rng = np.random.default_rng(seed)
    n_items, n_annotators, n_labels, per_item = (
        int(rng.integers(*ends)) for ends in ((6, 40), (3, 12), (2, 5), (2, 5))
    )
    per_item = min(per_item, n_annotators)
    truth, accuracy = rng.integers(n_labels, size=n_items), rng.uniform(0.3, 0.95, n_annotators)
    annotators = np.argsort(rng.random((n_items, n_annotators)), axis=1)[:, :per_item]
    is_right = rng.random((n_items, per_item)) < accuracy[annotators]
    labels = np.where(is_right, truth[:, None], rng.integers(n_labels, size=(n_items, per_item))).ravel()
    items, annotators = np.repeat(np.arange(n_items), per_item), annotators.ravel()
    found = fit(items, annotators, labels, n_annotators=n_annotators, n_labels=n_labels)
    height = plain_em(items, annotators, labels, n_annotators=n_annotators, n_labels=n_labels, steps=2000)
    assert found.trace[-1] > height - 1e-3
    assert (np.diff(found.trace) > -1e-9).all()


# Oracle


def test_crowd_kit_comes_to_the_same_end():
    # crowd-kit 1.4.2, DawidSkene(n_iter=300, tol=-1e9): 300 iterations, without its rule for stopping.
    result = fit(*anesthesia(), **UNSMOOTHED, tolerance=0.0)
    np.testing.assert_allclose(result.prevalence, [0.3999689976, 0.4215763205, 0.1117880152, 0.0666666667], atol=2e-9)
    np.testing.assert_allclose(result.posterior[6, :2], [0.9997879636, 0.0002120364], atol=2e-9)
    np.testing.assert_allclose(result.posterior[37, 1:3], [0.0213031367, 0.9786968633], atol=2e-9)
    np.testing.assert_allclose(
        result.response[0],
        [
            [0.9074260291, 0.0925739709, 0.0, 0.0],
            [0.0703320179, 0.8765803491, 0.0530876330, 0.0],
            [0.0, 0.3387859406, 0.6612140594, 0.0],
            [0.0, 0.0, 0.5555555555, 0.4444444444],
        ],
        atol=2e-9,
    )


# Properties


@given(campaigns(), st.sampled_from([1.0, 1.01, 2.5]))
def test_the_penalised_log_likelihood_never_falls(campaign, parameter):
    items, annotators, labels, n_labels = campaign
    result = fit(items, annotators, labels, n_labels=n_labels, alpha=parameter, beta=parameter)
    slack = 1e-12 * max(1.0, abs(result.trace[-1]))
    assert all(later >= earlier - slack for earlier, later in pairwise(result.trace.tolist()))


@given(campaigns())
def test_posteriors_and_likelihood_are_those_of_the_formula(campaign):
    items, annotators, labels, n_labels = campaign
    result = fit(items, annotators, labels, n_labels=n_labels, tolerance=1e-4)
    used = result.estimable_annotators[annotators]
    posterior, log_likelihood = by_definition(result, items[used], annotators[used], labels[used])
    np.testing.assert_allclose(result.posterior, posterior, atol=1e-12)
    assert result.log_likelihood == pytest.approx(log_likelihood)
    np.testing.assert_allclose(result.entropy, entropy(posterior), atol=1e-9)


def test_neither_the_order_of_labels_nor_the_numbers_of_items_and_annotators_matter():
    rng, (items, annotators, labels) = np.random.default_rng(4), anesthesia()
    order, new_item, new_annotator = (rng.permutation(n) for n in (315, 45, 5))
    result = fit(items, annotators, labels)
    moved = fit(new_item[items][order], new_annotator[annotators][order], labels[order])
    np.testing.assert_allclose(moved.posterior[new_item], result.posterior, atol=1e-9)
    np.testing.assert_allclose(moved.response[new_annotator], result.response, atol=1e-9)


def test_renamed_labels_rename_the_classes():
    items, annotators, labels = anesthesia()
    new = np.array([2, 0, 3, 1])
    result, renamed = fit(items, annotators, labels), fit(items, annotators, new[labels])
    np.testing.assert_allclose(renamed.posterior[:, new], result.posterior, atol=1e-9)
    np.testing.assert_allclose(renamed.response[:, new][:, :, new], result.response, atol=1e-9)


# Recovery


def test_known_annotators_are_recovered_a_spammer_and_a_liar_among_them():
    rng = np.random.default_rng(7)
    response = np.array([0.8 * row + 0.2 / 3 for row in np.tile(np.eye(3), (12, 1, 1))])
    response[0] = [0.5, 0.3, 0.2]
    response[1] = 0.9 * np.eye(3)[[1, 2, 0]] + 0.1 / 3
    prevalence = np.array([0.6, 0.3, 0.1])
    truth, *judgments = simulated(rng, response, n_items=3000, per_item=6, prevalence=prevalence)
    result = fit(*judgments)
    np.testing.assert_allclose(result.prevalence, prevalence, atol=0.03)
    np.testing.assert_allclose(result.response, response, atol=0.12)
    assert result.mutual_information[0] < 0.01
    assert result.mutual_information[1] > result.mutual_information[2:].max()
    assert result.accuracy[1] < 0.1
    np.testing.assert_allclose(result.accuracy[2:], 0.8 + 0.2 / 3, atol=0.04)

    votes = np.zeros((3000, 3))
    np.add.at(votes, (judgments[0], judgments[2]), 1)
    best, probability = consensus(result)
    right = best == truth
    assert (~right).mean() < 0.5 * (votes.argmax(axis=1) != truth).mean()
    # And it knows how often it is right.
    assert probability.mean() == pytest.approx(right.mean(), abs=0.01)


# Starts


def test_one_more_batch_goes_on_from_the_last_result():
    rng = np.random.default_rng(3)
    response = np.array([[[a, 1 - a], [1 - a, a]] for a in rng.uniform(0.6, 0.95, 30)])
    _, items, annotators, labels = simulated(rng, response, n_items=3000, per_item=5, prevalence=np.array([0.7, 0.3]))
    before = (items < 2700) & (annotators < 29)
    last = fit(items[before], annotators[before], labels[before])
    warm, cold = (fit(items, annotators, labels, start=start) for start in (last, "votes"))
    assert warm.posterior.shape == (3000, 2)
    assert warm.iterations < cold.iterations
    np.testing.assert_allclose(warm.posterior, cold.posterior, atol=0.01)
    np.testing.assert_allclose(warm.response, cold.response, atol=0.01)


def test_from_its_own_end_a_fit_stays_there():
    result = fit(*anesthesia())
    again = fit(*anesthesia(), start=result)
    assert again.iterations == 2
    np.testing.assert_allclose(again.posterior, result.posterior, atol=1e-3)


def test_what_was_impossible_before_the_batch_may_happen_in_it():
    items, annotators, labels = anesthesia()
    last = fit(items, annotators, labels, **UNSMOOTHED)
    more = (np.append(items, [0, 0]), np.append(annotators, [0, 5]), np.append(labels, [3, 3]))
    result = fit(*more, **UNSMOOTHED, start=last)
    assert np.isfinite(result.log_likelihood)
    assert result.response[0, 0, 3] > 0


def test_a_start_of_other_classes_is_refused():
    last = fit([0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="has 2 classes, not 3"):
        fit([0, 0, 1, 1], [0, 1, 0, 1], [0, 2, 1, 1], start=last)


def test_a_start_that_leads_nowhere_is_refused(subtests):
    for accuracy in (0.25, 0.1, 1.0, np.nan):
        with subtests.test(accuracy=accuracy), pytest.raises(ValueError, match=r"between 1/4 and 1"):
            fit(*anesthesia(), start=accuracy)


def test_restarts_do_not_replace_an_end_that_is_as_high():
    items, annotators = np.tile(np.arange(6), 3), np.repeat([0, 1, 2], 6)
    labels = np.tile([0, 0, 0, 1, 1, 1], 3)
    alone = fit(items, annotators, labels)
    result = fit(items, annotators, labels, restarts=10, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(result.posterior, alone.posterior)
    assert result.notes == ()


def test_a_prior_that_tells_classes_apart_names_them():
    # The prior says that all lie. Votes lead to a top where they do not; from random starts the higher one is found.
    labels = np.repeat([0, 1], [20, 10])
    liars = [[1.0, 3.0], [3.0, 1.0]]
    np.testing.assert_array_equal(consensus(fit(*complete(3, labels), alpha=liars))[0], labels)
    result = fit(*complete(3, labels), alpha=liars, restarts=10, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(consensus(result)[0], 1 - labels)


def test_restarts_need_a_source_of_randomness():
    with pytest.raises(ValueError, match="rng"):
        fit(*anesthesia(), restarts=1)


def test_the_same_seed_gives_the_same_bits():
    first, second = (fit(*anesthesia(), restarts=3, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.posterior, second.posterior)


# What to ask next, and how sure a label is


def with_one_more(result, item, response):
    """Return the expected entropy of an item after one more label, by Bayes' rule for each possible label."""
    joint = result.posterior[item][:, None] * response
    return sum(label.sum() * entropy(label / label.sum()) for label in joint.T)


def test_expected_information_is_the_expected_loss_of_entropy():
    result = fit(*word_senses("add-v"))
    most = int(result.entropy.argmax())
    for annotator, response in ((3, result.response[3]), (None, result.typical_response)):
        bits = expected_information(result, annotator)
        assert bits.shape == (967,)
        assert bits[most] == pytest.approx(result.entropy[most] - with_one_more(result, most, response), abs=1e-12)
        assert (bits <= result.entropy + 1e-12).all()


def test_of_a_stranger_one_expects_what_is_typical():
    items, annotators, labels = anesthesia()
    result = fit(items, annotators, labels, n_annotators=6)
    np.testing.assert_array_equal(expected_information(result, 5), expected_information(result))


def test_the_confidence_of_a_label_is_the_posterior_of_what_it_says():
    items, annotators, labels = anesthesia()
    result = fit(items, annotators, labels, n_items=46)
    sure = probability_of_each_label_being_right(result, items, labels)
    assert sure.shape == labels.shape
    assert sure[10] == result.posterior[items[10], labels[10]]
    best, probability = consensus(result)
    np.testing.assert_array_equal(
        probability_of_each_label_being_right(result, np.arange(45), best[:45]), probability[:45]
    )


def test_an_item_without_a_label_has_no_consensus():
    result = fit(*anesthesia(), n_items=46)
    best, probability = consensus(result)
    assert best[45] == -1
    assert np.isnan(probability[45])
    assert np.isnan(probability_of_each_label_being_right(result, [45], [0])).all()


def test_confidence_is_asked_only_of_what_was_fitted():
    result = fit(*anesthesia())
    with pytest.raises(ValueError, match="items are numbered from 0 to 44"):
        probability_of_each_label_being_right(result, [45], [0])
    with pytest.raises(ValueError, match="labels are numbered from 0 to 3"):
        probability_of_each_label_being_right(result, [0], [4])
    with pytest.raises(ValueError, match="lengths"):
        probability_of_each_label_being_right(result, [0, 1], [0])


# What cannot be estimated


def complete(n_annotators, labels):
    """Return labels of all items by all annotators."""
    n_items = len(labels)
    return (
        np.tile(np.arange(n_items), n_annotators),
        np.repeat(np.arange(n_annotators), n_items),
        np.tile(labels, n_annotators),
    )


def test_where_nothing_can_be_estimated_it_says_so(subtests):
    for judgments, code in (
        (([], [], []), "no_labels"),
        (([0, 0], [0, 1], [0, 0]), "one_class"),
        (([0, 1, 2], [0, 0, 0], [0, 1, 0]), "no_overlap"),
        (([0, 1, 2], [0, 1, 2], [0, 1, 0]), "no_overlap"),
    ):
        with subtests.test(judgments=judgments, code=code):
            with pytest.raises(Inestimable) as refusal:
                fit(*judgments)
            assert refusal.value.code == code
            assert str(refusal.value).endswith(".")


def test_an_item_nobody_saw_is_known_by_the_prevalence_alone():
    result = fit(*complete(3, [0, 0, 1]), n_items=5)
    np.testing.assert_array_equal(result.estimable, [True, True, True, False, False])
    np.testing.assert_array_equal(result.posterior[3], result.prevalence)
    assert result.entropy[4] == entropy(result.prevalence)
    assert result.notes == ("No label was given to these items, so only the prevalence is known: items 3 and 4.",)


def test_an_annotator_without_labels_is_not_rated():
    result = fit(*complete(3, [0, 0, 1]), n_annotators=15)
    np.testing.assert_array_equal(result.estimable_annotators, np.arange(15) < 3)
    assert np.isnan(result.response[3:]).all()
    assert np.isnan(result.class_accuracy[3:]).all()
    assert np.isnan(result.accuracy[3:]).all()
    assert np.isnan(result.mutual_information[3:]).all()
    assert not np.isnan(result.accuracy[:3]).any()
    assert (result.evidence[3:] == 0).all()
    (note,) = result.notes
    assert note == (
        "These annotators gave no label, so nothing is known about them: 12 annotators (3, 4, 5, 6, 7, 8, 9, 10, 11, "
        "12, ...)."
    )


def test_labels_that_nothing_can_be_compared_with_are_set_aside():
    items, annotators, labels = complete(3, [0, 0, 1, 1])
    alone = fit(items, annotators, labels, n_items=6, n_annotators=4)
    result = fit(np.append(items, [4, 5]), np.append(annotators, [3, 3]), np.append(labels, [1, 1]))
    np.testing.assert_array_equal(result.posterior, alone.posterior)
    np.testing.assert_array_equal(result.prevalence, alone.prevalence)
    assert not result.estimable[4:].any()
    assert not result.estimable_annotators[3]
    assert result.notes == (
        (
            "Only annotators whose labels were set aside labelled these items, so only the prevalence is known: items "
            "4 and 5."
        ),
        ("These annotators’ labels were set aside, because none of their items has a second label: annotator 3."),
    )


def test_one_annotator_who_labels_twice_is_consistent_not_right():
    result = fit(np.repeat(np.arange(6), 3), np.zeros(18, int), np.repeat([0, 0, 0, 1, 1, 1], 3))
    assert result.notes == ("All labels are by one annotator, so this measures consistency, not accuracy.",)


def test_one_label_for_all_tells_nothing_of_the_others():
    result = fit(*complete(3, [1, 1, 1]), n_labels=3)
    assert np.isfinite(result.posterior).all()
    np.testing.assert_array_equal(consensus(result)[0], [1, 1, 1])
    assert result.notes == ("Every label is 1, so nothing is known about how annotators use other labels.",)


def test_two_labels_an_item_leave_something_open():
    assert "No item has three labels." in fit(*complete(2, [0, 0, 1])).notes[0]


def test_groups_that_share_no_item_are_named():
    items, annotators, labels = complete(3, [0, 0, 1])
    result = fit(np.concatenate([items, items + 3]), np.concatenate([annotators, annotators + 4]), np.tile(labels, 2))
    assert result.notes[1].startswith(
        "The annotators fall into 2 groups that share no item: annotators 0, 1 and 2; annotators 4, 5 and 6. "
    )


def test_many_groups_are_not_all_named():
    items, annotators, labels = complete(3, [0, 0, 1])
    apart = np.repeat(np.arange(12), len(items)) * 3
    result = fit(np.tile(items, 12) + apart, np.tile(annotators, 12) + apart, np.tile(labels, 12))
    assert result.notes[0].startswith("The annotators fall into 12 groups")
    assert "annotators 27, 28 and 29; ... The classes" in result.notes[0]


def test_without_smoothing_a_class_that_an_annotator_never_met_is_not_rated():
    # Annotator 3 saw only items that all others call 0.
    items, annotators, labels = complete(3, [0, 0, 1, 1])
    judgments = np.append(items, [0, 1]), np.append(annotators, [3, 3]), np.append(labels, [0, 0])
    result = fit(*judgments, **UNSMOOTHED)
    np.testing.assert_array_equal(result.response[3], [[1, 0], [np.nan, np.nan]])
    assert np.isnan(result.accuracy[3])
    assert np.isnan(result.mutual_information[3])
    assert not np.isnan(result.accuracy[:3]).any()
    assert "never labelled an item of some class" in result.notes[0]
    assert np.isfinite(expected_information(result, 3)).all()
    # With smoothing the row is the prior's, and the evidence says how little it rests on.
    smoothed = fit(*judgments)
    np.testing.assert_allclose(smoothed.response[3, 1], [0.5, 0.5], atol=1e-3)
    assert smoothed.evidence[3, 1] < 1e-4


def test_without_smoothing_a_class_that_no_item_has_is_nobodys_to_be_right_about():
    result = fit(*complete(3, [0, 0, 1]), n_labels=3, **UNSMOOTHED)
    assert result.prevalence[2] == 0.0
    np.testing.assert_allclose(result.accuracy, 1.0)
    np.testing.assert_allclose(result.mutual_information, entropy(result.prevalence))
    assert result.notes == ()


def test_a_fit_that_does_not_settle_is_not_reported():
    with pytest.raises(NotConverged, match="did not converge in 3 iterations") as refusal:
        fit(*anesthesia(), max_iterations=3)
    assert refusal.value.code == "not_converged"


def test_random_starts_that_do_not_settle_are_left_out():
    result = fit(*anesthesia(), **UNSMOOTHED, max_iterations=25, restarts=20, rng=np.random.default_rng(2))
    assert "random starts did not converge and were left out." in result.notes[0]


def test_a_random_start_that_settles_is_taken_where_the_first_does_not():
    with pytest.raises(NotConverged):
        fit(*anesthesia(), **UNSMOOTHED, max_iterations=10)
    result = fit(*anesthesia(), **UNSMOOTHED, max_iterations=10, restarts=100, rng=np.random.default_rng(1))
    assert result.iterations <= 10
    assert result.notes[1] == "The requested start did not converge either. The result is from the best random start."


# What cannot be


def test_options_that_cannot_be_are_refused(subtests):
    for options, message in (
        ({"alpha": 0.5}, "alpha must be finite and at least 1"),
        ({"beta": np.nan}, "beta must be finite and at least 1"),
        ({"alpha": [1.0, 1.0]}, r"alpha must be a number or of shape \(4, 4\), not \(2,\)"),
        ({"beta": [1.0]}, r"beta must be a number or of shape \(4,\)"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": np.nan}, "tolerance"),
        ({"max_iterations": 1}, "max_iterations"),
        ({"n_labels": 3}, "labels are numbered from 0 to 2"),
        ({"n_items": 3}, "items are numbered"),
        ({"n_annotators": 3}, "annotators are numbered"),
    ):
        with subtests.test(options=options, message=message), pytest.raises(ValueError, match=message):
            fit(*anesthesia(), **options)


def test_arrays_of_unlike_length_are_refused():
    with pytest.raises(ValueError, match="labels 1"):
        fit([0, 0], [0, 1], [1])


def test_a_result_cannot_be_changed():
    result = fit(*anesthesia())
    assert isinstance(result, DawidSkeneResult)
    with pytest.raises(AttributeError):
        result.prevalence = np.ones(4)  # type: ignore[misc]  # it is frozen: that is the test
