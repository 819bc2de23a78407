"""Posteriors and prevalences that allow for what is unknown: by hand, by their properties, and by simulation."""

import numpy as np
import pytest

from app.inference.labels import dawid_skene
from app.inference.labels.cautious_posterior import result_with_cautious_posteriors
from app.inference.labels.prevalence_interval import ends_of_bootstrap_prevalence_intervals
from benchmarks.label_confidence import LABEL_CROWDS, label_figures, simulate_labels


def fitted(judgments):
    return dawid_skene.fit(*judgments, max_iterations=10_000)


def test_an_item_is_judged_by_the_labels_of_the_others_by_hand():
    # Three annotators agree on items 0 and 1, which are of class 0 and 1.
    judgments = [np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), np.repeat([0, 1], 3)]
    fit = fitted(judgments)
    found = result_with_cautious_posteriors(fit, *judgments)
    # Without item 0 nobody has labelled an item of class 0, so its rows are the typical ones; for class 1 there is the
    # label 1 of item 1 and ten typical labels.
    typical = fit.typical_response
    right = fit.prevalence[0] * typical[0, 0] ** 3
    wrong = fit.prevalence[1] * (10 * typical[1, 0] / 11) ** 3
    assert found.posterior[0, 0] == pytest.approx(right / (right + wrong), abs=1e-6)
    assert found.prevalence.tolist() == fit.prevalence.tolist()


def test_it_is_the_formula_one_label_after_the_other():
    crowd = LABEL_CROWDS["200 items, 3 labels, 40 uneven, 3 classes"]
    _, judgments = simulate_labels(crowd, np.random.default_rng(3))
    rows = np.column_stack(judgments)
    fit = fitted(judgments)
    found = result_with_cautious_posteriors(fit, *judgments)
    for item in range(8):
        joint = fit.prevalence.copy()
        for _, annotator, label in rows[rows[:, 0] == item]:
            others = rows[(rows[:, 1] == annotator) & (rows[:, 0] != item)]
            for k in range(3):
                same = fit.posterior[others[others[:, 2] == label, 0], k].sum()
                every = fit.posterior[others[:, 0], k].sum()
                joint[k] *= (same + 10 * fit.typical_response[k, label]) / (every + 10)
        np.testing.assert_allclose(found.posterior[item], joint / joint.sum(), rtol=1e-6)


def test_an_item_without_labels_keeps_the_prevalence():
    judgments = [np.repeat([0, 1], 3), np.tile([0, 1, 2], 2), np.repeat([0, 1], 3)]
    fit = dawid_skene.fit(*judgments, n_items=3)
    assert result_with_cautious_posteriors(fit, *judgments).posterior[2].tolist() == fit.prevalence.tolist()


def test_with_many_labels_of_each_annotator_posteriors_hardly_change():
    rng = np.random.default_rng(4)
    truth = rng.integers(2, size=4_000)
    items, annotators = np.repeat(np.arange(4_000), 3), np.tile(np.arange(3), 4_000)
    labels = np.where(rng.random(12_000) < 0.8, truth[items], 1 - truth[items])
    fit = fitted([items, annotators, labels])
    assert result_with_cautious_posteriors(fit, items, annotators, labels).posterior == pytest.approx(
        fit.posterior, abs=0.01
    )


@pytest.mark.parametrize("title", ["100 items, 3 labels, 20 uneven", "200 items, 3 labels, 40 uneven, 3 classes"])
def test_labels_that_seem_certain_are_right_as_often_as_they_say(title):
    figures = np.mean([label_figures(LABEL_CROWDS[title], seed, draws=2) for seed in range(15)], axis=0)
    right, certain, both, cautiously_right, cautiously_certain, cautiously_both, _ = figures
    assert both / certain < 0.9
    assert cautiously_both / cautiously_certain > 0.95
    assert cautiously_right > right


def test_intervals_hold_the_prevalence_about_as_often_as_they_say():
    crowd = LABEL_CROWDS["100 items, 5 labels, 20 annotators"]
    held = [label_figures(crowd, seed, draws=40)[-1] for seed in range(40)]
    assert np.mean(held) >= 0.875  # 40 times; .88 if only the draw of items counts


def test_the_interval_holds_the_estimate_and_is_the_same_for_the_same_rng():
    _, judgments = simulate_labels(LABEL_CROWDS["100 items, 5 labels, 20 annotators"], np.random.default_rng(3))
    fit = fitted(judgments)
    one, other = (
        ends_of_bootstrap_prevalence_intervals(fit, *judgments, draws=20, rng=np.random.default_rng(1))
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, other)
    assert ((one[0] > 0) & (one[0] < fit.prevalence) & (fit.prevalence < one[1]) & (one[1] < 1)).all()


def test_as_many_items_of_perfect_annotators_as_wide_as_a_share():
    truth = np.repeat([0, 1], [90, 10])
    items, annotators = np.repeat(np.arange(100), 3), np.tile(np.arange(3), 100)
    fit = fitted([items, annotators, truth[items]])
    low, high = ends_of_bootstrap_prevalence_intervals(
        fit, items, annotators, truth[items], draws=400, rng=np.random.default_rng(1)
    )
    error = 1 / np.sqrt(100 * 0.9 * 0.1)  # of log odds
    assert np.log(high / (1 - high)) - np.log(low / (1 - low)) == pytest.approx(2 * 1.96 * error, rel=0.1)
