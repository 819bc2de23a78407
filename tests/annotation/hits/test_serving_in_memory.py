"""Parts of serving without a database: groups of items, positions of answers, pieces of pages, copies of posteriors."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.annotation.hits.answer_storage import (
    first_and_last_positions_and_concatenation,
    refuse_as_lease_lost_if_item_is_fully_judged,
)
from app.annotation.hits.campaign_index import AnnotatorHistory, CampaignIndex
from app.annotation.hits.condition_blocks import has_enough_tasks, task_limit_or_none_of_each_block
from app.annotation.hits.item_audiences import build_item_audiences, parse_audiences
from app.annotation.hits.item_conditions import build_item_conditions
from app.annotation.hits.locked_answers import MIN_LEASE_LEFT_SECONDS
from app.annotation.hits.pages.page_pieces import MARK_PREFIX, PagePieces
from app.annotation.hits.program_annotators import (
    reason_or_empty_by_unjudged_number_or_refuse,
    values_by_item_number_or_refuse,
)
from app.annotation.hits.withdrawal_code import WithdrawalCodes, withdrawal_code_hash
from app.database.session import SERVING_LIMITS
from app.errors import Gone, Invalid
from app.record.changes import sort_key_of_watermark
from app.selection.index import AlgorithmOne
from app.selection.rule import ItemStatus, ItemValues, SelectionSettings

# Contents x and y under the conditions a and b, an item without a condition, and one that joined later.
ROWS = [(0, "a", "x"), (1, "b", "x"), (2, "a", "y"), (3, "b", "y"), (5, "c", "z")]


def test_each_list_has_every_content_under_one_condition():
    conditions = build_item_conditions(ROWS, 5, "none", has_contents=True)
    assert conditions.names == ["a", "b"]
    masks = [conditions.mask_of_items_shown_to_square_row(row).tolist() for row in range(2)]
    assert sorted(masks) == [[False, True, True, False, False], [True, False, False, True, False]]
    for row, mask in enumerate(masks):
        assert conditions.mask_outside_block(row, None).tolist() == [not shown for shown in mask]


def test_without_contents_everybody_sees_all_items_with_a_condition():
    conditions = build_item_conditions(ROWS, 5, "random", has_contents=False)
    assert conditions.mask_of_items_shown_to_square_row(1).tolist() == [True, True, True, True, False]
    assert conditions.mask_outside_block(0, 1).tolist() == [True, False, True, False, True]
    mask = conditions.all_items().mask
    assert mask is not None
    assert mask.tolist() == [True] * 5


@pytest.mark.parametrize(("items", "condition"), [([4], None), ([9], None), ([4, 1], 1), ([2, 1], 0), ([], None)])
def test_the_condition_of_a_hit_is_that_of_its_first_item_with_one(items, condition):
    conditions = build_item_conditions(ROWS, 5, "random", has_contents=False)
    assert conditions.condition_of_hit_or_none(items) == condition


def test_a_cell_names_groups_and_answers():
    assert parse_audiences(" experts | native_language =  German = yes| ") == [
        "experts",
        "native_language=German = yes",
    ]


def test_items_are_for_the_people_that_their_cells_name():
    audiences = build_item_audiences([("experts|novices", [0, 1]), ("novices", [2, 7])], 4)
    own = {name: audiences.own_audiences([name, "others"]) for name in ("experts", "novices", "others")}
    assert own == {"experts": {"experts"}, "novices": {"novices"}, "others": frozenset()}
    masks: dict[str, Any] = {name: audiences.items_of_others_than(names).mask for name, names in own.items()}
    assert {name: mask.tolist() for name, mask in masks.items()} == {
        "experts": [False, False, True, False],
        "novices": [False] * 4,
        "others": [True, True, True, False],
    }
    assert audiences.items_of_others_than(own["experts"]).mask is masks["experts"]


def test_positions_in_all_answers_together_are_counted_from_1():
    assert first_and_last_positions_and_concatenation([[5, 6], [], [7]]) == ([1, 3, 3], [2, 2, 3], [5, 6, 7])


@pytest.mark.parametrize(
    ("per_block", "total", "limits"),
    [(None, 7, [2, 2, 3]), (None, 2, [0, 1, 1]), (None, None, [None] * 3), (4, None, [4] * 3), (4, 7, [4] * 3)],
)
def test_tasks_are_divided_among_the_blocks_unless_each_has_a_number(per_block, total, limits):
    assignment: Any = SimpleNamespace(tasks_per_block=per_block, hits_per_annotator=total)
    assert task_limit_or_none_of_each_block(assignment, 3) == limits


@pytest.mark.parametrize(("count", "limit", "is_enough"), [(2, 3, False), (3, 3, True), (4, 3, True), (9, None, False)])
def test_a_block_has_enough_tasks_at_its_limit(count, limit, is_enough):
    assert has_enough_tasks(count, limit) is is_enough


def test_a_code_is_the_persons_own_and_is_found_however_it_is_typed():
    codes = WithdrawalCodes("secret")
    code = codes.code_of_annotator(1, 2)
    assert [len(group) for group in code.split("-")] == [5, 5]
    others = (
        codes.code_of_annotator(1, 3),
        codes.code_of_annotator(2, 2),
        WithdrawalCodes("x").code_of_annotator(1, 2),
    )
    assert len({code, *others}) == 4
    assert withdrawal_code_hash(code.lower().replace("-", " ")) == withdrawal_code_hash(code)
    assert withdrawal_code_hash(others[0]) != withdrawal_code_hash(code)


def test_a_page_in_pieces_is_filled_with_escaped_values():
    pieces = PagePieces.from_marked_page(f"<p>{MARK_PREFIX}who; and {MARK_PREFIX}what;</p>")
    assert pieces.page_html_with_values({"who": "a<b", "what": "c"}) == "<p>a&lt;b and c</p>"
    assert PagePieces.from_marked_page("plain").page_html_with_values({}) == "plain"


HIT: Any = SimpleNamespace(item_numbers_by_id={"a": 4, "b": 2}, ids=["a", "b"], hit_items=[4, 2])


def test_programs_give_values_in_the_order_of_the_hit_or_by_id():
    assert values_by_item_number_or_refuse(HIT, [10.0, 20.0]) == {4: 10.0, 2: 20.0}
    assert values_by_item_number_or_refuse(HIT, {"b": 20.0}) == {2: 20.0}
    wrong: tuple[Any, ...] = ([10.0], [1.0, 2.0, 3.0], {"c": 1.0})
    for values in wrong:
        with pytest.raises(Invalid) as refusal:
            values_by_item_number_or_refuse(HIT, values)
        assert refusal.value.code == "scores_unknown"


def test_reasons_are_of_items_without_a_value():
    assert reason_or_empty_by_unjudged_number_or_refuse(HIT, {"a": "broken"}, [4, 2]) == {4: "broken", 2: ""}
    assert reason_or_empty_by_unjudged_number_or_refuse(HIT, {}, []) == {}
    with pytest.raises(Invalid) as refusal:
        reason_or_empty_by_unjudged_number_or_refuse(HIT, {"a": "broken", "b": "broken"}, [4])
    assert (refusal.value.code, refusal.value.details["item"]) == ("reason_unknown", "b")


def test_a_later_watermark_ends_at_a_higher_id_or_has_fewer_running_before_it():
    ordered = ["1:4:2", "1:5:2,3", "1:5:2", "1:5:", "3:6:4,5"]
    assert [sort_key_of_watermark(watermark) for watermark in ordered] == [(4, -1), (5, -2), (5, -1), (5, 0), (6, -2)]


def changes(watermark: str = "1:9:", *, revision: int = 2, releases: int = 1, **columns: Any) -> Any:
    """Changes of item 0, which has a judgment more than in `copy`, unless given otherwise."""
    usual = {"numbers": [0], "scores": [0.9], "variances": [0.05], "judgments": [4], "status": [0]} | columns
    news = {f"new_{name}": column for name, column in usual.items()}
    nothing = dict.fromkeys(("new_uses", "new_hits", "new_annotators", "new_items"))
    return SimpleNamespace(watermark=watermark, revision=revision, releases=releases, **news, **nothing)


def copy_of_posteriors(items: int = 2) -> CampaignIndex:
    values = ItemValues([0.5] * items, [0.1] * items, [3] * items)
    index = AlgorithmOne().make_selection_index(values, SelectionSettings(9, items_per_hit=2, gamma=0.1))
    return CampaignIndex(index, np.random.default_rng(1), 9, 2, 1, "1:5:", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("news", "score", "watermark"),
    [
        (changes(), 0.9, "1:9:"),
        (changes("1:5:"), 0.9, "1:5:"),
        (changes("1:4:"), 0.5, "1:5:"),
        (changes("1:5:3"), 0.5, "1:5:"),
        (changes(revision=1), 0.5, "1:5:"),
        (changes(revision=3), 0.5, "1:5:"),
        (changes(releases=0), 0.5, "1:5:"),
        (changes(judgments=[3]), 0.5, "1:9:"),
        (changes(judgments=[2]), 0.5, "1:9:"),
        (changes(judgments=[3], status=[int(ItemStatus.SETTLED)]), 0.9, "1:9:"),
        (changes(numbers=None, scores=None, variances=None, judgments=None, status=None), 0.5, "1:9:"),
    ],
)
def test_a_copy_takes_what_is_newer_of_its_own_revision(news, score, watermark):
    copy = copy_of_posteriors()
    copy.merge_changes(news)
    assert (copy.index.score[0], copy.watermark) == (score, watermark)
    assert copy.index.score[1] == 0.5


def test_a_copy_remembers_what_annotators_answered_and_adds_new_answers_to_it():
    copy, history = copy_of_posteriors(), AnnotatorHistory({11}, {0})
    copy.remember_history(7, 3, history)
    assert copy.remembered_history_or_none(7) is history
    assert copy.remembered_history_or_none(3) is None
    news = changes()
    news.new_hits, news.new_annotators, news.new_items = [12, 13], [3, 4], ["{1}", "{0}"]
    copy.merge_changes(news)
    assert (history.answered_hits, history.seen) == ({11, 12}, {0, 1})


@pytest.mark.parametrize(
    ("judgments", "is_refused"), [({1: 2, 9: 7}, False), ({1: 3, 9: 0}, True), ({1: 4, 9: 0}, True), ({9: 7}, False)]
)
def test_an_answer_about_an_item_with_all_judgments_is_refused_unless_every_hit_shows_the_item(judgments, is_refused):
    campaign: Any = SimpleNamespace(judgments_per_item=3, always_shown=[9])
    hit: Any = SimpleNamespace(hit_items=[item for item in (1, 9) if item in judgments])
    if is_refused:
        with pytest.raises(Gone):
            refuse_as_lease_lost_if_item_is_fully_judged(campaign, hit, judgments)
    else:
        refuse_as_lease_lost_if_item_is_fully_judged(campaign, hit, judgments)


def test_a_copy_takes_as_much_more_memory_as_it_has_more_items():
    small, larger, largest = [copy_of_posteriors(items).approximate_bytes for items in (10, 20, 40)]
    assert 2 * (larger - small) == largest - larger > 0


def test_an_answer_in_time_is_stored_and_committed_before_its_lease_ends():
    assert SERVING_LIMITS.statement is not None
    assert 2 * SERVING_LIMITS.statement <= MIN_LEASE_LEFT_SECONDS
