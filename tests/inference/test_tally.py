import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.inference.observations import tally
from app.inference.observations.tally import Tally

SUMS = ("judgments", "total", "annotators", "first_total", "first_squares", "repeats")
JUDGMENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 100)), max_size=30)


def columns(judgments):
    return [np.array([row[k] for row in judgments], int) for k in range(3)]


def tally_of(judgments, n_items=4):
    items, annotators, points = columns(judgments)
    return Tally.empty(n_items).with_judgments_added(items, annotators, points / 100)


def test_by_hand():
    # Annotator 7 judges item 0 three times, annotator 8 once: 4 judgments, 9 + 1; item 1 is judged once.
    found = Tally.empty(3).with_judgments_added([0, 0, 1, 0, 0], [7, 8, 7, 7, 7], [0.5, 0.25, 1.0, 0.75, 0.0])
    assert found.judgments.tolist() == [4, 1, 0]
    assert found.total.tolist() == [1.5, 1.0, 0.0]
    assert found.annotators.tolist() == [2, 1, 0]
    assert found.first_total.tolist() == [0.75, 1.0, 0.0]
    assert found.first_squares.tolist() == [0.3125, 1.0, 0.0]
    assert found.repeats.tolist() == [10, 1, 0]
    np.testing.assert_equal(found.mean, [0.375, 1.0, np.nan])


@given(JUDGMENTS)
def test_sums_are_those_of_each_item_by_itself(judgments):
    found = tally_of(judgments)
    for item in range(4):
        own = [(who, points / 100) for shown, who, points in judgments if shown == item]
        first = dict(reversed(own))
        counts = [sum(who == other for other, _ in own) for who in first]
        assert (found.judgments[item], found.annotators[item]) == (len(own), len(first))
        assert found.total[item] == pytest.approx(sum(score for _, score in own))
        assert found.first_total[item] == pytest.approx(sum(first.values()))
        assert found.first_squares[item] == pytest.approx(sum(score**2 for score in first.values()))
        assert found.repeats[item] == sum(count**2 for count in counts)


@given(JUDGMENTS, st.lists(st.integers(0, 30), max_size=4))
def test_the_same_to_the_last_bit_in_any_pieces(judgments, cuts):
    whole, pieces = tally_of(judgments), tally_of([])
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), 30], strict=True):
        items, annotators, points = columns(judgments[start:stop])
        pieces = pieces.with_judgments_added(items, annotators, points / 100)
    for name in SUMS:
        np.testing.assert_array_equal(getattr(whole, name), getattr(pieces, name))


def test_who_judged_what_is_remembered_over_millions(monkeypatch):
    monkeypatch.setattr(tally, "MIN_MERGED_PAIRS", 10)
    rng = np.random.default_rng(1)
    items, annotators = rng.integers(50, size=2000), rng.integers(20, size=2000) * 1_000_000
    grown = Tally.empty(50)
    for piece in np.array_split(np.arange(2000), 100):
        grown = grown.with_judgments_added(items[piece], annotators[piece], np.zeros(len(piece)))
    _, counts = np.unique(annotators + items, return_counts=True)
    assert grown.repeats.sum() == (counts**2).sum()
    assert grown.annotators.sum() == len(counts)


def test_going_on_leaves_the_tally_before_as_it_was():
    before = tally_of([(0, 0, 50)])
    before.with_judgments_added([0], [0], [1.0])
    assert (before.judgments.tolist(), before.repeats.tolist()) == ([1, 0, 0, 0], [1, 0, 0, 0])


@pytest.mark.parametrize("settled", [True, False])
def test_that_of_some_items_is_what_their_judgments_alone_add_up_to(monkeypatch, settled):
    if settled:
        monkeypatch.setattr(tally, "MIN_MERGED_PAIRS", 1)
    rng = np.random.default_rng(3)
    items, who, scores = rng.integers(20, size=200), rng.integers(6, size=200), rng.random(200)
    some = np.array([2, 3, 7, 19])
    chosen = np.isin(items, some)
    found = Tally.empty(20).with_judgments_added(items, who, scores).select_items(some)
    alone = Tally.empty(4).with_judgments_added(np.searchsorted(some, items[chosen]), who[chosen], scores[chosen])
    more = ([0, 1, 3], [1, 9, 2], [0.1, 0.2, 0.3])
    for name in SUMS:
        np.testing.assert_array_equal(
            getattr(found.with_judgments_added(*more), name), getattr(alone.with_judgments_added(*more), name)
        )
