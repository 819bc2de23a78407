"""Scores that know their annotators, with errors: who answers at random widens no interval, and neither lie."""

import numpy as np
import pytest

from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_aware import moderated_means_by_annotator_aware_fit_or_none
from app.inference.ratings.moderated_means import moderated_means_of_tally

ITEMS, PEOPLE = 60, 12


def judgments(seed, at_random=4):
    """Return the truth and the columns of a study in which all annotators, some of them random, judge all items
    once.
    """
    rng = np.random.default_rng(seed)
    truth = rng.beta(3, 3, ITEMS)
    scores = np.clip(truth + 0.08 * rng.standard_normal((PEOPLE, ITEMS)), 0, 1)
    scores[:at_random] = rng.random((at_random, ITEMS))
    return truth, np.tile(np.arange(ITEMS), PEOPLE), np.repeat(np.arange(PEOPLE) + 1000, ITEMS), scores.ravel()


def both(items, who, scores):
    said, tally = (
        LongJudgments.empty(ITEMS).with_judgments_added(items, who, scores),
        Tally.empty(ITEMS).with_judgments_added(items, who, scores),
    )
    return moderated_means_by_annotator_aware_fit_or_none(said, tally), moderated_means_of_tally(tally)


def width(known):
    low, high = known.interval()
    return np.median(high - low)


def test_its_intervals_hold_the_truth_and_are_narrower_than_those_of_means_where_some_answer_at_random():
    held, narrower = [], []
    for seed in range(6):
        truth, *three = judgments(seed)
        aware, means = both(*three)
        low, high = aware.interval()
        held.append(((low <= truth) & (truth <= high)).mean())
        narrower.append(width(aware) / width(means))
    assert np.mean(held) >= 0.92
    assert np.median(narrower) < 0.6


def test_the_same_judgments_by_the_same_people_again_make_nothing_surer():
    _, items, who, scores = judgments(1, at_random=0)
    once, _ = both(items, who, scores)
    twice, _ = both(np.tile(items, 2), np.tile(who, 2), np.tile(scores, 2))
    np.testing.assert_allclose(twice.standard_error, once.standard_error, rtol=0.03)
    assert twice.freedom[0] <= once.freedom[0]


def test_an_item_that_nobody_judged_has_no_error():
    _, items, who, scores = judgments(1)
    aware, _ = both(*(column[items > 0] for column in (items, who, scores)))
    assert np.flatnonzero(np.isnan(aware.standard_error)).tolist() == [0]
    assert np.isfinite(aware.interval()[0][1:]).all()


@pytest.mark.parametrize("scores", [np.full(PEOPLE * ITEMS, 0.5), judgments(1)[3][:ITEMS]])
def test_nothing_is_said_before_it_is_known_how_far_annotators_differ(scores):
    _, items, who, _ = judgments(1)
    assert both(items[: len(scores)], who[: len(scores)], scores)[0] is None


def test_what_was_said_of_some_items_is_what_their_judgments_alone_say():
    _, items, who, scores = judgments(1)
    some = np.array([3, 10, 59])
    kept = np.isin(items, some)
    alone = LongJudgments.empty(3).with_judgments_added(np.searchsorted(some, items[kept]), who[kept], scores[kept])
    of_some = LongJudgments.empty(ITEMS).with_judgments_added(items, who, scores).select_items(some)
    for name in ("n_items", "items", "annotators", "scores"):
        assert np.array_equal(getattr(of_some, name), getattr(alone, name))
