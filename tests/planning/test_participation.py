"""How many annotators a simulated campaign has in all."""

from typing import Any

import numpy as np
import pytest

from app.errors import Invalid
from app.inference.observations.tally import Tally
from app.planning.forecast_defaults import DEFAULT_ANNOTATORS_IN_TOTAL
from app.planning.participation import (
    MAX_NEW_ANNOTATORS,
    MIN_ANNOTATORS_IN_TOTAL,
    annotator_numbers_and_done_hit_counts,
    chosen_or_likely_annotator_count_or_refuse,
    estimate_annotator_count_by_chao1,
    sentence_on_origin_of_annotator_count,
)
from tests.unsaved import unsaved

ITEMS = 10


def campaign(**changed: Any) -> Any:
    asked = {"judgments_per_item": 6, "items_per_hit": 5, "always_shown": [], "fewest_items": 1, "gamma": 0.1}
    more = {"hits_per_iteration": None, "leaders_as_companions": False, "best_items": 2, "threshold": 50}
    return unsaved(**(asked | more | {"repeat_items": True, "hits_per_annotator": None} | changed))


def answered(often: dict[int, int]) -> Tally:
    """Return a tally of HITs of five items by these annotators, alternating between both halves of the items."""
    hits = [(who, k) for who, count in often.items() for k in range(count)]
    items = [5 * (k % 2) + item for _, k in hits for item in range(5)]
    return Tally.empty(ITEMS).with_judgments_added(
        items, [who for who, _ in hits for _ in range(5)], np.full(len(items), 0.5)
    )


def test_how_many_people_answer_is_guessed_from_how_many_did_so_once_and_twice():
    """Of 30, 20 answered once and 4 twice: 30 + 20 * 19 / (2 * 5)."""
    often = np.array([1] * 20 + [2] * 4 + [3] * 6)
    assert estimate_annotator_count_by_chao1(often) == 68
    assert estimate_annotator_count_by_chao1(often[:3]) == MIN_ANNOTATORS_IN_TOTAL


def test_where_everybody_answered_once_no_millions_are_supposed():
    assert estimate_annotator_count_by_chao1(np.ones(3000, np.intp)) == 3000 + MAX_NEW_ANNOTATORS


def test_who_answered_is_known_with_how_often():
    there, done = annotator_numbers_and_done_hit_counts(answered({7: 3, 2: 1}), 5)
    assert (there.tolist(), done.tolist()) == ([2, 7], [1, 3])


def test_a_draft_supposes_a_round_number_until_somebody_comes_back(subtests):
    for often, supposed in (
        ({}, DEFAULT_ANNOTATORS_IN_TOTAL),
        ({7: 1, 2: 1}, DEFAULT_ANNOTATORS_IN_TOTAL),
        ({k: 1 + k % 2 for k in range(40)}, 49),
        ({7: 3, 2: 1}, MIN_ANNOTATORS_IN_TOTAL),
    ):
        with subtests.test(often=often, supposed=supposed):
            assert chosen_or_likely_annotator_count_or_refuse(campaign(), answered(often), None) == supposed


def test_it_needs_enough_for_the_judgments_that_are_wanted(subtests):
    for asked, often, least, why in (
        ({}, {}, 1, ""),
        ({}, {1: 2, 2: 2, 3: 1}, 3, "3 have answered"),
        ({"hits_per_annotator": 1, "judgments_per_item": 150}, {}, 300, "300 more tasks, and each annotator may"),
        ({"hits_per_annotator": 3}, {1: 2, 2: 2, 3: 1}, 4, "7 more tasks, and each annotator may answer 3"),
        ({"repeat_items": False, "judgments_per_item": 250}, {}, 250, "250 judgments by different people"),
        ({"repeat_items": False}, {1: 4, 2: 2}, 5, "5 judgments by different people"),
    ):
        with subtests.test(asked=asked, often=often, least=least, why=why):
            mine, tally = campaign(**asked), answered(often)
            assert chosen_or_likely_annotator_count_or_refuse(mine, tally, least) == least
            assert chosen_or_likely_annotator_count_or_refuse(mine, tally, None) >= least
            if least > 1:
                with pytest.raises(Invalid, match=why) as refused:
                    chosen_or_likely_annotator_count_or_refuse(mine, tally, least - 1)
                assert refused.value.code == "too_few_annotators"


def test_it_says_where_the_number_comes_from():
    mine, tally = campaign(), answered({1: 1})
    assert sentence_on_origin_of_annotator_count(mine, tally, 30, 30) == "Planned for 30 annotators."
    assert sentence_on_origin_of_annotator_count(mine, tally, 200, None).startswith(
        "Assumes 200 annotators; 1 has answered so far."
    )
