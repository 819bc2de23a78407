"""Draws of pairs beside what an annotator's answers tell already."""

import numpy as np
import pytest

from app.inference.preferences.implied_pairs import Implications
from app.selection.implied_pairs import ImpliedPairFilter, mask_of_implied_pairs_asked_anyway
from app.selection.registry import SELECTION_RULES
from app.selection.rule import ItemValues, SelectionSettings
from tests.selection.pairs_with_comparisons import PairsWithComparisons

ITEMS = 20
ASKING = SelectionSettings(judgments_per_item=100, items_per_hit=2, gamma=0.1, min_items=2)
ANYBODY = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": True}


@pytest.fixture(
    params=[*(rule for rule in SELECTION_RULES.values() if not rule.reads_labels), PairsWithComparisons],
    ids=lambda rule: rule.name,
)
def index(request):
    rng = np.random.default_rng(1)
    return request.param.make_selection_index(
        ItemValues(rng.random(ITEMS), rng.random(ITEMS) / 12 + 0.001, np.zeros(ITEMS)), ASKING
    )


def not_asked(percent=1, annotator=3):
    return ImpliedPairFilter(Implications(), 2018, annotator, percent)


def test_no_pair_is_drawn_that_is_known_until_all_are(index):
    mine, rng, drawn = not_asked(), np.random.default_rng(2), 0
    while (draw := index.draw_hit_or_none(2, **ANYBODY, pair_filter=mine, rng=rng)) is not None:
        first, second = draw.items
        implied = mine.implications.implied_outcome_or_none(first, second)
        assert implied is None or mask_of_implied_pairs_asked_anyway(2018, 3, first, [second], 1).item()
        mine.implications.add_outcome_and_return_implied_or_none(first, second, 1 if first > second else -1)
        drawn += 1
    assert mine.exhausted_leaders == set(range(ITEMS))
    assert mine.implications.tally.answered == drawn
    assert mine.implications.tally.answered + mine.implications.tally.not_asked == ITEMS * (ITEMS - 1) // 2


def test_what_others_hold_is_no_reason_to_give_an_item_up(index):
    mine, rng = not_asked(), np.random.default_rng(2)
    full = set(range(ITEMS)) - {4}
    assert index.draw_hit_or_none(2, **(ANYBODY | {"full": full}), pair_filter=mine, rng=rng) is None
    assert mine.exhausted_leaders == set()


def test_who_has_only_items_left_that_are_not_asked_about_at_all_is_done(index):
    mine, rng = not_asked(), np.random.default_rng(2)
    mine.excluded_items = set(range(2, ITEMS))
    mine.implications.add_outcome_and_return_implied_or_none(0, 1, 1)
    assert index.draw_hit_or_none(2, **(ANYBODY | {"full": mine.excluded_items}), pair_filter=mine, rng=rng) is None
    assert mine.exhausted_leaders == {0, 1}


def test_items_that_nobody_has_seen_come_first(index):
    mine, rng = not_asked(), np.random.default_rng(2)
    seen = set(range(ITEMS - 2))
    assert set(index.draw_hit_or_none(2, **(ANYBODY | {"seen": seen}), pair_filter=mine, rng=rng).items) == {
        ITEMS - 2,
        ITEMS - 1,
    }
    mine.implications.add_outcome_and_return_implied_or_none(ITEMS - 2, ITEMS - 1, 1)
    again = index.draw_hit_or_none(2, **(ANYBODY | {"seen": seen}), pair_filter=mine, rng=rng)
    assert len({*again.items} & {ITEMS - 2, ITEMS - 1}) == 1


def test_the_set_share_of_pairs_is_asked_anyway_and_always_the_same(subtests):
    for percent in (1, 10, 50, 100):
        with subtests.test(percent=percent):
            others = np.arange(1, 20_001)
            chosen = mask_of_implied_pairs_asked_anyway(2018, 5, 0, others, percent)
            assert chosen.mean() == pytest.approx(percent / 100, abs=0.012)
            assert np.array_equal(chosen, mask_of_implied_pairs_asked_anyway(2018, 5, 0, others, percent))
            assert [
                mask_of_implied_pairs_asked_anyway(2018, 5, other, [0], percent).item() for other in (1, 2, 3)
            ] == chosen[:3].tolist()


def test_annotators_and_campaigns_differ_in_which_pairs_those_are():
    others = np.arange(1, 2001)
    mine, theirs, elsewhere = (
        mask_of_implied_pairs_asked_anyway(seed, who, 0, others, 50) for seed, who in ((1, 1), (1, 2), (2, 1))
    )
    assert 0.4 < np.mean(mine == theirs) < 0.6
    assert 0.4 < np.mean(mine == elsewhere) < 0.6
