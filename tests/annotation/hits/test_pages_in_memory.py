"""Pages that are put together from pieces, last HITs, tasks of blocks, and requests of programs, without a database."""

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cachetools import LRUCache
from pydantic import ValidationError

from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.api import ResponseRequest, TouchSchema, kind_of_telemetry_keys
from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.check_placement import count_check_slots, proposal_with_checks_or_none
from app.annotation.hits.condition_blocks import count_own_tasks
from app.annotation.hits.gold_feedback import GoldFeedback, criterion_feedback, feedback_without_order_of_one_place
from app.annotation.hits.hit_proposal import HitProposal
from app.annotation.hits.index_settings import needs_extended_query
from app.annotation.hits.item_audiences import NO_ITEMS_OF_OTHERS, ItemsOfOthers
from app.annotation.hits.item_conditions import NO_BLOCKS, PlaceInBlocks, build_item_conditions
from app.annotation.hits.next_hit import HitOnPage, NextHit, is_last_hit_as_far_as_known
from app.annotation.hits.no_hit_reasons import has_hit_left_after_answering, no_hit_reason_from_index_or_none
from app.annotation.hits.pages.annotator import parse_hit_id_or_refuse
from app.annotation.hits.pages.page_pieces import (
    MARK_PREFIX,
    CampaignOfPieces,
    PageKey,
    PagePieces,
    PagePiecesCache,
    approximate_bytes_of_pieces,
    build_page_key,
    can_page_be_made_of_pieces,
)
from app.annotation.hits.pages.steps import PageState
from app.designs.content import SourceAndReference
from app.designs.registry import make_design
from app.errors import Gone, Invalid, NotFound
from app.quality.expected_answers import Feedback
from app.selection.index import AlgorithmOne
from app.selection.rule import ItemValues, SelectionSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HIT = HitOnPage(7, [0, 1], ["a", "b"], ["to walk", "to run"], {}, NOW, items_without_checks=[0, 1])


def campaign_with(**changes: Any) -> Any:
    """A campaign whose pages can be put together from pieces, unless that is changed."""
    usual: dict[str, Any] = {
        "content": "text",
        "source_column": None,
        "reference_column": None,
        "differences": "none",
        "https_media": False,
        "latex": False,
        "has_criteria": False,
        "segment_count": 0,
        "cannot_be_judged": False,
        "gold_feedback": False,
        "flag_on": "none",
        "comment_on": "none",
    }
    return SimpleNamespace(**usual | changes)


def assignment_with(**changes: Any) -> Any:
    usual: dict[str, Any] = {
        "campaign": campaign_with(),
        "campaign_id": 1,
        "campaign_version": "v",
        "platform": "link",
        "hits_answered": 0,
        "answered_here": False,
        "place_in_blocks": NO_BLOCKS,
        "block_pause": None,
        "one_hit": False,
        "hits_per_annotator": None,
        "has_fixed_set": False,
        "always_shown": [],
        "seen": set(),
        "not_judged": None,
        "repeat_items": False,
        "condition_column": None,
        "items_of_others": NO_ITEMS_OF_OTHERS,
        "items_per_hit": 2,
        "fewest_items": 1,
    }
    values = usual | changes
    return SimpleNamespace(**{"seen_or_met_as_checks": values["seen"]} | values)


@pytest.mark.parametrize(
    "changes",
    [
        {"content": "markdown"},
        {"source_column": "source"},
        {"differences": "pair"},
        {"latex": True},
        {"has_criteria": True},
        {"segment_count": 3},
        {"cannot_be_judged": True},
        {"gold_feedback": True},
        {"flag_on": "items"},
        {"comment_on": "hit"},
        {"flag_on": "items", "comment_on": "items"},
    ],
)
def test_pages_of_a_campaign_that_shows_more_than_items_are_rendered_each_time(changes):
    assert can_page_be_made_of_pieces(NextHit(assignment_with(), HIT), PageState())
    assert not can_page_be_made_of_pieces(NextHit(assignment_with(campaign=campaign_with(**changes)), HIT), PageState())


@pytest.mark.parametrize(
    ("page_state", "is_from_pieces"),
    [
        (PageState(receipt=AnswerReceipt(1, 2), answered_hit_id=1), True),
        (PageState(receipt=AnswerReceipt(1, 2, repeated=True)), False),
        (PageState(notice=Gone("", code="x")), False),
        (PageState(reported=True), False),
        (PageState(form={"score-00": "4"}), False),
        (PageState(replaces=3), False),
    ],
)
def test_a_page_that_says_more_than_that_an_answer_is_stored_is_rendered(page_state, is_from_pieces):
    assert can_page_be_made_of_pieces(NextHit(assignment_with(), HIT), page_state) is is_from_pieces


@pytest.mark.parametrize(
    "hit",
    [
        None,
        replace(HIT, draft={"00": {"value": 3}}),
        replace(HIT, source_and_reference=SourceAndReference("x", None)),
        replace(HIT, texts=["short", "long " * 200]),
    ],
)
def test_a_page_without_a_hit_or_with_a_draft_a_source_or_a_long_text_is_rendered(hit):
    assert not can_page_be_made_of_pieces(NextHit(assignment_with(), hit, reason=None if hit else "wait"), PageState())


def test_a_page_with_a_notice_of_a_block_is_rendered():
    first = assignment_with(place_in_blocks=PlaceInBlocks(is_first_task=True), block_pause="Rest.")
    assert not can_page_be_made_of_pieces(NextHit(first, HIT), PageState())


def test_pages_share_pieces_from_the_second_answer_on():
    def key(page_state: PageState | None = None, *, hit: HitOnPage = HIT, **changes: Any) -> PageKey:
        next_hit = NextHit(assignment_with(**changes), hit)
        return build_page_key(next_hit, page_state or PageState(), language="en", is_last=False)

    assert key() == key(hit=replace(HIT, id=8, texts=["to be", "to go"]))
    assert [key(hits_answered=count).hits_answered_at_most for count in (0, 1, 2, 3)] == [0, 1, 2, 2]
    assert key(PageState(receipt=AnswerReceipt(1, 2))).has_receipt
    assert not key().has_receipt
    assert key().item_count == 2
    others = [
        key(answered_here=True),
        key(platform="mturk"),
        key(hit=replace(HIT, items=[0], texts=["to be"])),
        key(hit=replace(HIT, texts=["to be", "many words " * 8])),
    ]
    assert len({key(), *others}) == 5


def test_a_page_that_tells_the_number_of_answers_beyond_the_second_never_equals_its_pieces():
    counts = [CampaignOfPieces(assignment_with(hits_answered=count)).hits_answered for count in (0, 1, 2, 3)]
    assert counts == [0, 1, 3, 4]


def context_of(next_hit: NextHit) -> dict[str, Any]:
    rendered = SimpleNamespace(items=[*HIT.texts], is_wide=False)
    return {"next_hit": next_hit, "rendered": rendered, "campaign": next_hit.assignment}


@pytest.mark.parametrize(("shown", "is_kept"), [("{token}: {progress}", True), ("{token}: {progress} 7", False)])
def test_pieces_are_kept_from_the_second_page_with_a_key_if_they_give_the_same_page(shown, is_kept):
    """The second page shows an id that its pieces do not know of, so they would give another one."""
    cache, next_hit = PagePiecesCache(), NextHit(assignment_with(), HIT)
    key = build_page_key(next_hit, PageState(), language="en", is_last=False)
    values, renders = {"token": "t", "progress": "p", "hit": "7"}, []

    def render(variables: Any) -> str:
        renders.append(True)
        return "{token}: {progress}".format(**variables)

    page = shown.format(**values)
    assert cache.page_html_or_none(key, values) is None
    cache.learn_pieces_of_rendered_page(key, context_of(next_hit), values, page, render)
    assert (cache.page_html_or_none(key, values), renders) == (None, [])
    cache.learn_pieces_of_rendered_page(key, context_of(next_hit), values, page, render)
    assert cache.page_html_or_none(key, values) == ("t: p" if is_kept else None)
    for _ in range(2):
        cache.learn_pieces_of_rendered_page(key, context_of(next_hit), values, page, render)
    assert len(renders) == 1
    assert not cache.missed


def test_a_page_of_more_pieces_than_there_is_room_for_is_not_kept():
    pieces = PagePieces.from_marked_page(f"12345{MARK_PREFIX}token;678")
    assert approximate_bytes_of_pieces(pieces) == 1008
    assert approximate_bytes_of_pieces(None) == 1000
    next_hit = NextHit(assignment_with(), HIT)
    key, values = build_page_key(next_hit, PageState(), language="en", is_last=False), {"token": "t"}
    for room, is_kept in ((1008, True), (1007, False)):
        cache = PagePiecesCache(LRUCache(room, approximate_bytes_of_pieces))
        for _ in range(2):
            cache.learn_pieces_of_rendered_page(
                key, context_of(next_hit), values, "12345t678", lambda variables: f"12345{variables['token']}678"
            )
        assert (cache.page_html_or_none(key, values) is not None) is is_kept


def index_of(judgments: list[int], wanted: int = 3) -> CampaignIndex:
    values = ItemValues([0.5] * len(judgments), [0.08] * len(judgments), judgments)
    index = AlgorithmOne().make_selection_index(values, SelectionSettings(wanted, 2, gamma=0.1))
    return CampaignIndex(index, np.random.default_rng(1), wanted, 2, 1, "1:5:", NOW)


def is_last(assignment: Any, judgments: list[int] | None, hit: HitOnPage | None = HIT) -> bool:
    cache = PosteriorCache()
    if judgments is not None:
        cache.cache_index(1, index_of(judgments))
    return is_last_hit_as_far_as_known(cache, NextHit(assignment, hit, reason=None if hit else "wait"))


@pytest.mark.parametrize(
    ("changes", "judgments", "last"),
    [
        ({}, [0] * 4, False),
        ({}, [2, 2, 3, 3], True),
        ({}, [0, 0, 3, 3], True),
        ({"repeat_items": True}, [0, 0, 3, 3], False),
        ({"repeat_items": True}, [2, 2, 3, 3], True),
        ({"seen": {2, 3}}, [0] * 4, True),
        ({"seen": {2}}, [0] * 4, False),
        ({"not_judged": [0, 1], "repeat_items": True}, [0, 0, 3, 3], True),
        ({"items_of_others": ItemsOfOthers(np.array([False, False, True, True]))}, [0] * 4, True),
        ({"one_hit": True}, [0] * 4, True),
        ({"hits_per_annotator": 4, "hits_answered": 3}, [0] * 4, True),
        ({"hits_per_annotator": 4, "hits_answered": 2}, [0] * 4, False),
        ({"has_fixed_set": True, "always_shown": [3]}, [3] * 4, False),
        ({"has_fixed_set": True, "always_shown": [3], "seen": {3}}, [3] * 4, True),
        ({"has_fixed_set": True, "always_shown": [1]}, [3] * 4, True),
        ({}, None, False),
    ],
)
def test_a_hit_is_the_last_if_nothing_is_left_for_its_annotator_once_it_is_answered(changes, judgments, last):
    assert is_last(assignment_with(**changes), judgments) is last


def test_without_a_hit_nothing_is_known_of_the_last_one():
    assert not is_last(assignment_with(), [3] * 4, None)
    assert is_last(assignment_with(one_hit=True), [3] * 4, None)


@pytest.mark.parametrize(
    ("place", "answered", "is_left"),
    [
        (PlaceInBlocks(ItemsOfOthers(np.array([False, False, True, True]))), (), True),
        (PlaceInBlocks(ItemsOfOthers(np.array([False, False, True, True]))), (0, 1), False),
        (PlaceInBlocks(ItemsOfOthers(np.array([False, False, True, True])), is_last_task=True), (), True),
        (PlaceInBlocks(ItemsOfOthers(np.array([False] * 3 + [True])), is_last_task=True), (0, 1), False),
        (
            PlaceInBlocks(
                ItemsOfOthers(np.array([False] * 3 + [True])),
                [ItemsOfOthers(np.array([True, True, True, False]))],
                is_last_task=True,
            ),
            (0, 1),
            True,
        ),
    ],
)
def test_with_blocks_a_hit_is_left_in_this_block_unless_the_task_ends_it_or_in_a_later_one(place, answered, is_left):
    assignment = assignment_with(condition_column="system", place_in_blocks=place)
    assert has_hit_left_after_answering(assignment, index_of([0] * 4), answered) is is_left


@pytest.mark.parametrize(("judgments", "reason"), [([0, 0, 3, 3], "wait"), ([3, 3, 0, 0], None), ([3, 3, 3, 3], None)])
def test_who_has_items_left_waits_as_far_as_this_process_knows(judgments, reason):
    assert no_hit_reason_from_index_or_none(assignment_with(seen={2, 3}), index_of(judgments)) == reason


@pytest.mark.parametrize(
    ("open_items", "fewest_items", "reason"),
    [(2, 2, None), (3, 2, "seen_all"), (4, 3, None), (4, 1, "seen_all"), (0, 1, None)],
)
def test_with_conditions_so_many_open_items_are_enough_for_a_task_of_some_block(open_items, fewest_items, reason):
    index = index_of([0] * open_items + [3] * (4 - open_items))
    rows = [(0, "a", None), (1, "a", None), (2, "b", None), (3, "b", None)]
    index.conditions = build_item_conditions(rows, 4, "random", has_contents=False)
    assignment = assignment_with(seen={0, 1, 2, 3}, fewest_items=fewest_items)
    assert no_hit_reason_from_index_or_none(assignment, index) == reason


@pytest.mark.parametrize(
    ("changes", "is_extended"),
    [
        ({}, False),
        ({"segment_count": 1}, True),
        ({"cannot_be_judged": True}, False),
        ({"repeat_items": True}, False),
        ({"cannot_be_judged": True, "repeat_items": True}, True),
        ({"asked_criterion": 1}, True),
        ({"asked_criterion": None}, True),
    ],
)
def test_segments_unjudged_items_and_several_criteria_need_the_extended_query(changes, is_extended):
    usual = {"segment_count": 0, "cannot_be_judged": False, "repeat_items": False, "asked_criterion": 0}
    campaign: Any = SimpleNamespace(**usual | changes)
    assert needs_extended_query(campaign) is is_extended


def test_checks_take_places_unless_they_are_as_many_as_the_items():
    checks: list[Any] = [SimpleNamespace(number=number) for number in (4, 9)]
    assert [count_check_slots(assignment_with(), checks[:count]) for count in (0, 1, 2)] == [0, 1, 0]


def test_a_proposal_gets_checks_or_gives_way_to_a_hit_of_checks_or_stays_where_no_number_is_free():
    checks: list[Any] = [SimpleNamespace(number=number, segment=None) for number in (4, 9)]
    cache, proposal = PosteriorCache(), HitProposal(1, [1], "r", 0.5)
    assert proposal_with_checks_or_none(assignment_with(), cache, proposal, checks) is None
    cache.cache_index(1, index_of([0] * 5))
    with_check = proposal_with_checks_or_none(assignment_with(), cache, proposal, checks[:1])
    assert with_check is not None
    assert replace(with_check, checks=()) == proposal
    ((place, number, shown),) = with_check.checks
    assert (place in (0, 1), number, shown in {0, 2, 3, 4}) == (True, 4, True)
    alone = proposal_with_checks_or_none(assignment_with(), cache, proposal, checks)
    assert alone is not None
    assert (alone.leader, alone.items, sorted(check.check_number for check in alone.checks)) == (None, [], [4, 9])
    assert alone.reason == "checks"
    cache.cache_index(1, index_of([0]))
    only_item = HitProposal(0, [0], "r", 0.5)
    assert proposal_with_checks_or_none(assignment_with(), cache, only_item, checks[:1]) is only_item


def own_hit(number: int, item: int | None, *, is_open: bool = False) -> Any:
    return SimpleNamespace(id=number, item=item, is_open=is_open)


@pytest.mark.parametrize(
    ("hits", "held_hit", "place", "counts"),
    [
        ([], None, 0, [0, 0]),
        ([own_hit(1, 0), own_hit(2, 1)], None, 0, [2, 0]),
        ([own_hit(1, 0), own_hit(2, 3)], None, 1, [1, 1]),
        ([own_hit(1, 3), own_hit(2, 0)], None, 1, [1, 1]),
        ([own_hit(1, 0), own_hit(8, 1), own_hit(9, 1, is_open=True)], None, 0, [2, 0]),
        ([own_hit(1, 0), own_hit(9, 1, is_open=True)], 9, 0, [1, 0]),
        ([own_hit(1, 3), own_hit(9, 1, is_open=True)], 9, 0, [0, 1]),
        ([own_hit(1, 0), own_hit(2, None)], None, 0, [2, 0]),
        ([own_hit(1, 0), own_hit(2, 1), own_hit(3, None)], None, 1, [2, 1]),
        ([own_hit(1, 3), own_hit(2, 4), own_hit(3, None)], None, 1, [0, 3]),
        ([own_hit(1, 0), own_hit(2, 1), own_hit(9, None, is_open=True)], 9, 1, [2, 0]),
    ],
)
def test_tasks_count_for_the_block_of_their_items_and_checks_for_the_block_they_came_in(hits, held_hit, place, counts):
    rows = [(0, "a", None), (1, "a", None), (3, "b", None), (4, "b", None)]
    conditions = build_item_conditions(rows, 5, "fixed", has_contents=False)
    tasks = count_own_tasks(hits, [0, 1], conditions, [2, 2], held_hit=held_hit, answered_hits={1, 2, 3, 4})
    assert (tasks.place, tasks.counts) == (place, counts)


def test_no_order_is_expected_of_items_that_are_all_at_one_place():
    one_place = Feedback("order", 0, met=True, order=[[0, 1]])
    score, order = Feedback("score", 2, met=True), Feedback("order", 0, met=True, order=[[0], [1]])
    assert feedback_without_order_of_one_place([one_place]) == []
    assert feedback_without_order_of_one_place([score, one_place]) == [score]
    assert feedback_without_order_of_one_place([score, order]) == [score, order]


def test_feedback_says_the_order_or_each_value_and_is_as_expected_if_all_of_it_is_met():
    slider = make_design("slider", {})
    values = criterion_feedback("", slider, [42.0, float("nan")], [Feedback("score", 0, met=True, lowest=40)])
    assert ([*values.answer_texts], [*values.answered_order]) == (["42", None], [])
    pair = criterion_feedback(
        "", make_design("pairwise", {}), [2.0, 1.0], [Feedback("order", 0, met=False, order=[[0], [1]])]
    )
    assert ([*pair.answer_texts], [[*group] for group in pair.answered_order]) == ([], [[1], [0]])
    items: Any = None
    assert GoldFeedback(items, [values]).is_as_expected
    assert not GoldFeedback(items, [values, pair]).is_as_expected


@pytest.mark.parametrize(
    ("form_value", "error", "code"),
    [(None, Invalid, "hit_missing"), ("", Invalid, "hit_missing"), ("x", NotFound, "hit_not_found")],
)
def test_a_form_names_its_hit(form_value, error, code):
    assert parse_hit_id_or_refuse("12") == 12
    with pytest.raises(error) as refusal:
        parse_hit_id_or_refuse(form_value)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    ("telemetry", "kind"),
    [
        ({"a": {"changes": 1}}, "items"),
        ({"adequacy": {"a": {"changes": 1}}}, "criteria"),
        ({"a": {}}, "criteria"),
        ({}, "criteria"),
        (3, "items"),
        ({"adequacy": {"a": {}}, "b": {"changes": 1}}, "items"),
        ({"a": 3}, "items"),
    ],
)
def test_telemetry_is_by_criterion_if_it_is_nested_throughout(telemetry, kind):
    assert kind_of_telemetry_keys(telemetry) == kind


def test_a_program_gives_scores_or_values_and_names_criteria_in_all_or_nothing():
    scores = ResponseRequest.model_validate({"annotator": "p", "scores": [1, 2], "telemetry": {"a": {"changes": 1}}})
    assert scores.values_and_touches_by_criterion_or_refuse() == {"": ([1, 2], {"a": TouchSchema(changes=1)})}
    by_name = {"annotator": "p", "values": {"adequacy": [1], "fluency": [2]}}
    named = ResponseRequest.model_validate(by_name | {"telemetry": {"fluency": {"a": {"changes": 1}}}})
    assert named.has_criteria
    assert named.values_and_touches_by_criterion_or_refuse() == {
        "adequacy": ([1], {}),
        "fluency": ([2], {"a": TouchSchema(changes=1)}),
    }
    unknown = ResponseRequest.model_validate(by_name | {"telemetry": {"style": {"a": {"changes": 1}}}})
    with pytest.raises(Invalid) as refusal:
        unknown.values_and_touches_by_criterion_or_refuse()
    assert refusal.value.code == "criterion_unknown"
    for wrong in (
        {"annotator": "p"},
        {"annotator": "p", "scores": [1], "values": [1]},
        by_name | {"telemetry": {"a": {"changes": 1}}},
        {"annotator": "p", "values": [1], "telemetry": {"adequacy": {"a": {"changes": 1}}}},
    ):
        with pytest.raises(ValidationError):
            ResponseRequest.model_validate(wrong)
