"""Moderated Neyman allocation by hand, and the table of what it gains, in small."""

from functools import partial

import numpy as np
import pytest

from app.selection.even_rule import EVEN_RULE
from app.selection.rule import ItemValues, SelectionSettings
from benchmarks.goals import StudySource
from benchmarks.neyman import (
    CHECKS_PER_JUDGMENT,
    Checkpoint,
    PairedRuns,
    judgments_until_error,
    simulate_annotators_and_truth,
    simulate_checkpoints,
)
from benchmarks.systems.neyman import NEYMAN, error_reductions, tally_of_separate_annotators

pytestmark = pytest.mark.slow

NOISY, QUIET = [0.0, 1.0], [0.5, 0.5]


def after(answers):
    """A HIT of one item, once these answers are in, (items, answers of each)."""
    none = np.zeros(len(answers))
    index = NEYMAN.make_selection_index(
        ItemValues(none + 0.5, none + 0.05, none),
        SelectionSettings(judgments_per_item=100, items_per_hit=1, gamma=0.1),
    )
    for item, own in enumerate(answers):
        for n in range(1, len(own) + 1):
            index.update([item], [np.mean(own[:n])], [0.05], [n])
    nobody: set[int] = set()
    return index.draw_hit_or_none(
        1, seen=nobody, full=nobody, leaders_to_avoid=nobody, seen_as_last_resort=True, rng=np.random.default_rng(1)
    )


def test_what_another_judgment_gains_by_hand():
    # .2, .4 and .5, .9, with the variances 50.02 / 1001 and 50.08 / 1001 of the test of `moderated`; n (n + 1) is 6.
    tally = tally_of_separate_annotators(np.array([2, 2]), np.array([0.3, 0.7]), np.array([0.02, 0.08]))
    assert error_reductions(tally) == pytest.approx(np.array([50.02, 50.08]) / 1001 / 6)


def test_where_variances_demonstrably_differ_the_noisiest_lead():
    # Of k = 24 items with a degree of freedom each, the standard error is 2 / 24 sqrt(6 * 24) = 1. Variances that are 0
    # but for 4 items have a squared spread of 24 / 4 - 1 = 5, which is 3 beyond chance, and more than 2.33.
    draw = after([NOISY] * 4 + [QUIET] * 20)
    assert draw.leader < 4
    assert draw.probability == 1 / 4


def test_where_they_may_be_alike_any_item_leads():
    # 24 / 5 - 1 is 1.8 beyond chance.
    assert after([NOISY] * 5 + [QUIET] * 19).probability == 1 / 24
    assert after([QUIET] * 24).probability == 1 / 24


@pytest.mark.parametrize(("judgments", "leads"), [(11, True), (12, False)])
def test_nobody_is_left_below_the_floor(judgments, leads):
    # On average there are 19.6 or 19.7 judgments, .6 of which are 11.8.
    draw = after([NOISY * 10] * 4 + [QUIET * 10] * 19 + [[0.5] * judgments])
    assert (draw.leader == 23) == leads


def test_without_evidence_it_asks_as_scores_does():
    alike = StudySource("alike", partial(simulate_annotators_and_truth, 0.0))
    even, neyman = (simulate_checkpoints(alike, rule, 5, 3, 0) for rule in (EVEN_RULE, NEYMAN))
    assert neyman == even
    assert even[-1].error < even[4].error


@pytest.mark.parametrize("n", [1, 5])
def test_of_items_that_differ_there_is_evidence(n):
    harder = StudySource("harder", partial(simulate_annotators_and_truth, 1.5))
    even, neyman = (simulate_checkpoints(harder, rule, n, 3, 0) for rule in (EVEN_RULE, NEYMAN))
    assert neyman[-1].evidence == 1 > even[-1].evidence
    assert neyman != even


def test_rows_by_hand():
    even = np.array([[Checkpoint(0.5, 12 - look / 10, 0) for look in range(110)]] * 3)
    pair = PairedRuns(even, even + np.array([0.01, -0.15, 1]))
    assert pair.format_difference(0, 14, 4) == "0.500 +0.0100 (+0.0100 to +0.0100)"
    assert pair.format_difference(1, 49, 2) == "7.1 -0.15 (-0.15 to -0.15)"
    assert pair.format_judgments_for_same_error(49) == "9.8 (9.8 to 9.8)"
    assert pair.format_evidence_shares() == "100%, 100%, 100%, 100%"


def test_an_error_is_met_where_the_mean_of_the_runs_is_first_down_to_it():
    errors = np.array([[9.0, 6.0, 3.0], [9.0, 4.0, 1.0]])
    assert judgments_until_error(errors, 5.0) == 2 / CHECKS_PER_JUDGMENT
    assert judgments_until_error(errors, 1.0) == np.inf
