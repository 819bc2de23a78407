"""Changes of HITs that a law runner keeps until they are stored, without a database."""

from typing import Any

import numpy as np
import pytest

from app.inference.online.law import AnsweredHit, HitChange, LawParameters, LawState
from app.inference.online.laws import ONLINE_LAWS
from app.inference.online.state_queries import ReadItemHeads, ReadItemTails, ReadNextItems, ReadPosteriors
from app.record import law_storage
from app.record.law_runner import LawRunner
from app.record.law_storage import Revision

NO_DATABASE: Any = object()


def runner_of(law: str = "easl-aware", heads: dict[int, Any] | None = None) -> LawRunner:
    """A runner for five items, which has read the heads of some of them."""
    runner = LawRunner(NO_DATABASE, Revision(1, 0), ONLINE_LAWS[law], {item: [1.0, 2.0] for item in range(5)})
    runner.item_heads |= heads or {}
    return runner


def change(changed: list[int], **state: Any) -> HitChange:
    return HitChange(changed, ([3.0 + item for item in changed], [4.0 + item for item in changed]), LawState(**state))


def hit_of(items: list[int], annotator: int = 7) -> AnsweredHit:
    return AnsweredHit(annotator, items, [0.5] * len(items))


async def test_posteriors_and_judgments_of_hits_add_up():
    runner = runner_of(heads=dict.fromkeys(range(5)))
    runner.cache_changes_of_hit(hit_of([1, 2]), change([1, 2, 4], campaign=[0.5], annotators={7: [1.5]}))
    runner.cache_changes_of_hit(hit_of([2]), change([2], campaign=[0.6], annotators={8: [2.5]}))
    assert runner.judgment_counts == {1: 1, 2: 2}
    assert runner.changed_items == {1, 2, 4}
    assert await runner.answer_state_query(ReadPosteriors([0, 4, 2])) == ([1.0, 7.0, 5.0], [2.0, 8.0, 6.0])
    assert await runner.answer_state_query(ReadPosteriors([])) == ()
    assert (runner.campaign_state, runner.changed_annotator_states) == ([0.6], {7: [1.5], 8: [2.5]})
    assert runner.annotator_states == {7: [1.5], 8: [2.5]}


async def test_a_head_comes_with_the_length_of_its_tail_whether_that_is_new_stored_or_missing():
    runner = runner_of(heads={1: None, 2: ([9.0], 6), 3: None})
    tail = np.array([0.1, 0.2])
    runner.cache_changes_of_hit(hit_of([1]), change([1], items={1: ([1.0], None), 2: ([2.0], None), 3: ([3.0], tail)}))
    assert await runner.answer_state_query(ReadItemHeads([1, 2, 3])) == {1: ([1.0], 0), 2: ([2.0], 6), 3: ([3.0], 2)}
    assert (await runner.answer_state_query(ReadItemTails([3])))[3] is tail


def test_an_item_keeps_the_tail_of_an_earlier_hit_until_another_comes():
    runner = runner_of(heads=dict.fromkeys(range(5)))
    first, second = np.array([0.1]), np.array([0.2, 0.3])
    runner.cache_changes_of_hit(hit_of([3]), change([3], items={3: ([1.0], first)}))
    runner.cache_changes_of_hit(hit_of([3]), change([3], items={3: ([2.0], None), 1: ([5.0], None)}))
    assert runner.changed_item_states[3] == ([2.0], first)
    assert runner.changed_item_states[1] == ([5.0], None)
    runner.cache_changes_of_hit(hit_of([3]), change([3], items={3: ([3.0], second)}))
    assert runner.changed_item_states[3] == ([3.0], second)
    assert runner.changed_item_numbers == [1, 3]
    assert runner.item_tails[3] is second


@pytest.mark.parametrize(
    ("last", "limit", "numbers"),
    [(0, 2, [1, 2]), (2, 2, [3, 4]), (3, 3, [4, 0, 1]), (4, 2, [0, 1]), (1, 9, [2, 3, 4, 0, 1])],
)
async def test_the_next_items_are_stored_and_changed_ones_from_a_number_on_and_around(
    monkeypatch, last, limit, numbers
):
    stored = [0, 2, 4]

    async def load_stored(_driver: object, _revision: object, after: int, most: int) -> list[Any]:
        rotated = [number for number in stored if number > after] + [number for number in stored if number <= after]
        return [(number, [float(number)], 0) for number in rotated[:most]]

    monkeypatch.setattr(law_storage, "load_next_item_numbers_heads_tail_lengths", load_stored)
    runner = runner_of(heads=dict.fromkeys(range(5)))
    for number in (3, 1, 2):
        runner.cache_changes_of_hit(hit_of([number]), change([number], items={number: ([10.0 + number], None)}))
    found = await runner.answer_state_query(ReadNextItems(last, limit))
    assert [number for number, _, _ in found] == numbers
    assert {number: head for number, head, _ in found if number in (1, 2, 3)} == {
        number: [10.0 + number] for number in numbers if number in (1, 2, 3)
    }


async def test_hits_together_give_the_bits_of_one_after_another():
    hits = [AnsweredHit(7, [0, 2], [0.2, 0.9]), AnsweredHit(8, [2, 4], [0.7, 0.1]), AnsweredHit(7, [4], [0.4])]
    together, alone = runner_of("easl"), runner_of("easl")
    await together.apply_hits(hits, LawParameters())
    for hit in hits:
        await alone.apply_hits([hit], LawParameters())
    assert together.posteriors == alone.posteriors
    assert together.judgment_counts == alone.judgment_counts == {0: 1, 2: 2, 4: 2}
    assert together.changed_items == alone.changed_items == {0, 2, 4}
    assert together.posteriors[1] == [1.0, 2.0]
    parameters = await together.store_law_state_and_return_posterior_parameters()
    assert (parameters["numbers"], parameters["more"], parameters["width"]) == ([0, 2, 4], [1, 2, 2], 2)
    assert (parameters["campaign"], parameters["revision"], parameters["criterion"]) == (1, 0, 0)
