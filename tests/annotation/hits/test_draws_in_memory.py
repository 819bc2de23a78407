"""Draws of HITs without a database: what open HITs hold, the fixed set, and items that are not for an annotator."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from app.annotation.hits.campaign_index import CampaignIndex, PosteriorCache
from app.annotation.hits.draw_hit import draw_streaming_hit_or_none
from app.annotation.hits.fixed_set import (
    choose_fixed_items,
    proposal_filled_up_from_fixed_set_or_none,
    unjudged_fixed_items,
)
from app.annotation.hits.hit_proposal import items_never_asked_again
from app.annotation.hits.item_audiences import NO_ITEMS_OF_OTHERS, ItemsOfOthers
from app.annotation.hits.lease_sql import items_with_judgment_limit, lease_minutes
from app.annotation.hits.leases import should_retry_with_fresh_open_hits
from app.annotation.hits.open_hits import MANY_OPEN_HITS, OpenHits
from app.selection.index import AlgorithmOne
from app.selection.rule import ItemValues, SelectionSettings
from tests.annotation.hits.campaigns import NOW

RNG = np.random.default_rng(5)


def index_of(judgments: list[int], *, wanted: int = 3, hit_size: int = 2) -> Any:
    """An index of items that want so many judgments and have some; the first items are the most uncertain ones."""
    variance = [0.08 - 0.001 * item for item in range(len(judgments))]
    values = ItemValues([0.5] * len(judgments), variance, judgments)
    return AlgorithmOne().make_selection_index(values, SelectionSettings(wanted, hit_size, gamma=0.1))


def campaign_index_of(judgments: list[int], **settings: Any) -> CampaignIndex:
    return CampaignIndex(index_of(judgments, **settings), np.random.default_rng(1), 3, 2, 1, "1:5:", NOW)


def assignment_with(**changes: Any) -> Any:
    """An annotator of a campaign of two items per HIT, who has seen nothing, unless that is changed."""
    usual: dict[str, Any] = {
        "campaign_id": 1,
        "selection_settings": SelectionSettings(3, 2, gamma=0.1),
        "items_per_hit": 2,
        "fewest_items": 1,
        "has_fixed_set": False,
        "fixed_set": None,
        "always_shown": [],
        "items_in_every_hit": [],
        "seen": set(),
        "held_elsewhere": [],
        "not_judged": None,
        "repeat_items": False,
        "items_of_others": NO_ITEMS_OF_OTHERS,
    }
    values = usual | changes
    return SimpleNamespace(**{"seen_or_met_as_checks": values["seen"]} | values)


def row_of(held: list[int] | None, leading: list[int] | None = None) -> Any:
    return SimpleNamespace(held=held, leading=leading or [], held_segments=None)


def draw(assignment: Any, index: CampaignIndex, *, held: list[int], cache: PosteriorCache | None = None) -> Any:
    row = row_of(held, held[:1])
    return draw_streaming_hit_or_none(assignment, index, cache or PosteriorCache(), row, pair_filter=None)


def test_open_hits_are_many_from_a_number_on_and_serve_for_a_second():
    index = index_of([0] * 3)
    few, many = [OpenHits([0] * count, [], index, read_at=7.0) for count in (MANY_OPEN_HITS - 1, MANY_OPEN_HITS)]
    assert (few.many, many.many) == (False, True)
    assert [many.is_fresh(now) for now in (7.0, 7.9, 8.0)] == [True, True, False]
    assert not few.is_fresh(7.0)


def test_an_item_is_full_once_its_judgments_and_open_hits_are_as_many_as_wanted():
    index = index_of([2, 1, 0])
    open_hits = OpenHits([0], [0, 1], index, read_at=0.0)
    assert open_hits.full == {0}
    assert open_hits.full_items_after_leasing([1], index) == {0, 1}
    assert open_hits.full_items_after_leasing([2, 2], index) == {0}
    assert open_hits.full_items_after_leasing([2, 2, 2], index) == {0, 2}
    assert open_hits.full == {0}
    open_hits.add_hit(2, [1, 2], index, segment=4)
    assert (open_hits.full, open_hits.leading) == ({0, 1}, {0, 2})
    assert (open_hits.leases, open_hits.segments) == ({0: 1, 1: 2, 2: 1}, {4: 1})
    open_hits.add_hit(2, [2], index)
    assert open_hits.segments == {4: 1}


def test_a_draw_leaves_out_what_open_hits_hold_and_what_this_process_is_about_to_lease():
    assignment, cache = assignment_with(), PosteriorCache()
    free = campaign_index_of([2] * 6)
    assert {*draw(assignment, free, held=[0, 1]).items} <= {2, 3, 4, 5}
    with cache.reserve_items_during_context(1, 2, [2, 3]), cache.reserve_items_during_context(9, 4, [4, 5]):
        assert [lease.leader for lease in cache.pending_leases(1)] == [2]
        assert {*draw(assignment, campaign_index_of([2] * 6), held=[0, 1], cache=cache).items} == {4, 5}
    assert cache.pending_leases(1) == []


def test_a_hit_shares_its_leader_only_if_every_item_leads_one():
    index = campaign_index_of([0] * 3)
    first = draw_streaming_hit_or_none(
        assignment_with(), index, PosteriorCache(), row_of([0, 1], [0, 1]), pair_filter=None
    )
    assert first is not None
    assert (first.leader, first.shared_leader) == (2, False)
    index = campaign_index_of([0] * 3)
    shared = draw_streaming_hit_or_none(
        assignment_with(), index, PosteriorCache(), row_of([0, 1, 2], [0, 1, 2]), pair_filter=None
    )
    assert shared is not None
    assert shared.shared_leader


@pytest.mark.parametrize(
    ("changes", "drawn"),
    [
        ({"seen": {0, 1}, "held_elsewhere": [2]}, {3}),
        ({"seen": {0}, "seen_or_met_as_checks": {0, 1, 2}}, {3}),
        ({"seen": {0, 1, 2, 3}}, None),
        ({"not_judged": [0, 1, 2], "repeat_items": True}, {3}),
        ({"seen": {0, 1, 2}, "not_judged": [0, 1], "repeat_items": True}, {2, 3}),
        ({"items_of_others": ItemsOfOthers(np.array([True, True, True, False]))}, {3}),
        ({"seen": {3}, "items_of_others": ItemsOfOthers(np.array([True, True, False, False]))}, {2}),
        (
            {"seen": {3}, "repeat_items": True, "items_of_others": ItemsOfOthers(np.array([True] * 3 + [False]))},
            {3},
        ),
        (
            {
                "not_judged": [3],
                "repeat_items": True,
                "items_of_others": ItemsOfOthers(np.array([True, True, False, False])),
            },
            {2},
        ),
    ],
)
def test_an_annotator_is_asked_about_nothing_that_is_seen_held_unjudgeable_or_for_others(changes, drawn):
    proposal = draw(assignment_with(**changes), campaign_index_of([0] * 4), held=[])
    assert (proposal and {*proposal.items}) == drawn


@pytest.mark.parametrize(
    ("changes", "nothing_left"), [({}, True), ({"seen": {0}}, False), ({"seen": {0}, "repeat_items": True}, True)]
)
def test_nothing_is_left_for_anyone_if_a_draw_for_an_annotator_without_limits_finds_nothing(changes, nothing_left):
    index = campaign_index_of([2] * 2)
    assert draw(assignment_with(**changes), index, held=[0, 1]) is None
    assert index.open_hits is not None
    assert index.open_hits.nothing_left is nothing_left


def test_checks_take_places_of_items():
    proposal = draw_streaming_hit_or_none(
        assignment_with(), campaign_index_of([0] * 4), PosteriorCache(), row_of([]), pair_filter=None, check_count=1
    )
    assert proposal is not None
    assert len(proposal.items) == 1


@pytest.mark.parametrize(("untouched_minutes", "minutes"), [(None, 30), (10, 10), (45, 30)])
def test_a_lease_is_short_only_before_the_first_touch_of_a_visitor(untouched_minutes, minutes):
    limits = SimpleNamespace(untouched_minutes=untouched_minutes)
    visitor: Any = SimpleNamespace(limits=limits) if untouched_minutes else None
    assert lease_minutes(assignment_with(lease_minutes=30), visitor) == minutes


def test_items_of_every_hit_have_no_limit_of_judgments():
    assert items_with_judgment_limit(assignment_with(always_shown=[4]), [3, 4, 5]) == [3, 5]


FIXED = {"has_fixed_set": True, "fixed_set": "first", "always_shown": [5, 6, 7]}


def test_the_items_of_a_fixed_set_that_are_left_come_in_its_order():
    assert unjudged_fixed_items(assignment_with(**FIXED), {6}) == [5, 7]
    assert unjudged_fixed_items(assignment_with(always_shown=[5]), set()) == []
    held = assignment_with(**FIXED, seen={5}, held_elsewhere=[6])
    assert choose_fixed_items(held, 2, RNG) == [7]
    assert choose_fixed_items(assignment_with(**FIXED), 2, RNG) == [5, 6]
    assert choose_fixed_items(assignment_with(**FIXED), 0, RNG) == []
    assert choose_fixed_items(assignment_with(**FIXED, seen={5, 6, 7}), 2, RNG) == []


def test_a_mixed_set_puts_one_item_into_each_hit_or_into_half_of_those_with_one_item():
    mixed = assignment_with(**FIXED | {"fixed_set": "mixed"})
    several = [choose_fixed_items(mixed, 2, RNG) for _ in range(40)]
    assert {len(items) for items in several} == {1}
    assert {item for items in several for item in items} == {5, 6, 7}
    assert {len(choose_fixed_items(mixed, 1, RNG)) for _ in range(40)} == {0, 1}


def test_a_hit_of_the_fixed_set_alone_is_filled_up_from_the_set_unless_these_are_too_few():
    assignment = assignment_with(**FIXED)
    filled = proposal_filled_up_from_fixed_set_or_none(assignment, [7], 2, RNG)
    assert filled is not None
    assert (filled.leader, {*filled.items}, filled.reason) == (7, {7, 5}, "fixed_set")
    few = assignment_with(**FIXED, seen={5, 6}, fewest_items=2)
    assert proposal_filled_up_from_fixed_set_or_none(few, [7], 2, RNG) is None
    one = assignment_with(**FIXED, seen={5, 6})
    assert proposal_filled_up_from_fixed_set_or_none(one, [7], 2, RNG) is not None
    nothing = assignment_with(**FIXED, seen={5, 6, 7}, fewest_items=0)
    assert proposal_filled_up_from_fixed_set_or_none(nothing, [], 2, RNG) is None


def test_a_mixed_set_of_which_nothing_is_left_or_that_has_no_place_gives_no_item():
    mixed = FIXED | {"fixed_set": "mixed"}
    assert [choose_fixed_items(assignment_with(**mixed, seen={5, 6, 7}), size, RNG) for size in (1, 2)] == [[], []]
    assert [choose_fixed_items(assignment_with(**mixed), 0, RNG) for _ in range(20)] == [[]] * 20


@pytest.mark.parametrize(("check_count", "items"), [(0, {5, 6}), (1, {5})])
def test_a_set_that_comes_first_fills_hits_of_its_own(check_count, items):
    proposal = draw_streaming_hit_or_none(
        assignment_with(**FIXED),
        campaign_index_of([0] * 8),
        PosteriorCache(),
        row_of([]),
        pair_filter=None,
        check_count=check_count,
    )
    assert proposal is not None
    assert ({*proposal.items}, proposal.reason) == (items, "fixed_set")


def test_a_hit_has_one_item_of_a_mixed_set_beside_drawn_ones():
    for _ in range(5):
        assignment = assignment_with(**FIXED | {"fixed_set": "mixed"}, selection_settings=SelectionSettings(3, 4, 0.1))
        proposal = draw(assignment, campaign_index_of([0] * 5 + [3] * 3), held=[])
        assert len(proposal.items) == len({*proposal.items}) == 4
        assert len({5, 6, 7} & {*proposal.items}) == 1
        assert proposal.leader in {0, 1, 2, 3, 4}
        assert not proposal.shared_leader


def test_with_repeats_items_for_the_annotator_that_were_not_seen_come_first():
    own = {"repeat_items": True, "items_of_others": ItemsOfOthers(np.array([True, True, False, False]))}
    for seen, expected in (({2}, [3]), ({3}, [2])):
        proposal = draw_streaming_hit_or_none(
            assignment_with(**own, seen=seen),
            campaign_index_of([0] * 4),
            PosteriorCache(),
            row_of([]),
            pair_filter=None,
            check_count=1,
        )
        assert proposal is not None
        assert proposal.items == expected


def test_where_all_other_items_are_full_the_fixed_set_is_asked_alone():
    full = campaign_index_of([3] * 5 + [0] * 3)
    proposal = draw(assignment_with(**FIXED | {"always_shown": [5]}), full, held=[5, 6, 7] * 3)
    assert (proposal.leader, proposal.items) == (5, [5])
    assert draw(assignment_with(), campaign_index_of([3] * 3), held=[]) is None


@pytest.mark.parametrize(
    ("changes", "barred"),
    [
        ({"seen": {1}, "not_judged": [2]}, {1}),
        ({"seen": {1}, "not_judged": [2], "repeat_items": True}, {2}),
        ({"seen": {1}, "repeat_items": True}, set()),
        ({"seen": {1}, "items_of_others": ItemsOfOthers(np.array([True, False, False]))}, {0, 1}),
    ],
)
def test_an_annotator_is_never_asked_again_about_what_is_seen_or_where_items_repeat_was_unjudgeable(changes, barred):
    assert {*items_never_asked_again(assignment_with(**changes))} == barred


@pytest.mark.parametrize(
    ("items", "check_count", "shared", "is_retried"),
    [([1, 2], 0, False, False), ([1], 0, False, True), ([1], 1, False, False), ([1, 2], 0, True, True)],
)
def test_a_hit_that_is_small_or_shares_its_leader_is_drawn_again_from_a_fresh_read(
    items, check_count, shared, is_retried
):
    proposal: Any = SimpleNamespace(items=items, shared_leader=shared)
    assert should_retry_with_fresh_open_hits(assignment_with(), proposal, check_count) is is_retried
    assert not should_retry_with_fresh_open_hits(assignment_with(), None, check_count)


def test_open_hits_of_a_row_are_counted_once_and_remembered():
    cache, index = PosteriorCache(clock=lambda: 3.0), campaign_index_of([0] * 3)
    row = row_of([0, 1], [0])
    open_hits = cache.open_hits_of_row_or_remembered(row, index)
    assert (open_hits.leases, open_hits.leading, open_hits.read_at) == ({0: 1, 1: 1}, {0}, 3.0)
    assert cache.open_hits_of_row_or_remembered(row, index) is open_hits
    assert cache.open_hits_of_row_or_remembered(row_of(None), index) is open_hits
    row_with_segments = row_of([2])
    row_with_segments.held_segments = [7, 7]
    other = cache.open_hits_of_row_or_remembered(row_with_segments, index)
    assert (other.leases, other.segments) == ({2: 1}, {7: 2})
    assert cache.open_hits_of_row_or_remembered(row_of(None), campaign_index_of([0])).leases == {}


def test_a_leased_hit_is_remembered_only_where_open_hits_are_many():
    cache, index = PosteriorCache(clock=lambda: 3.0), campaign_index_of([0] * 3)
    cache.remember_leased_hit(1, 0, [0])  # without a copy nothing is remembered
    cache.cache_index(1, index)
    cache.remember_leased_hit(1, 0, [0])
    assert index.open_hits is None
    for count, leases in ((MANY_OPEN_HITS - 1, {}), (MANY_OPEN_HITS, {0: 1, 2: 1})):
        index.open_hits = OpenHits([1] * count, [], index.index, read_at=3.0)
        cache.remember_leased_hit(1, 0, [0, 2])
        assert index.open_hits.leases == leases


@pytest.mark.parametrize(
    ("changes", "is_stale", "keeps_previous"),
    [
        ({}, False, False),
        ({"revision": 1}, False, False),
        ({"revision": 3}, True, True),
        ({"releases": 0}, False, False),
        ({"releases": 2}, True, True),
        ({"wanted": 2}, False, False),
        ({"wanted": 4}, True, True),
        ({"server_started": NOW + timedelta(seconds=1)}, True, False),
    ],
)
def test_a_copy_is_dropped_if_it_is_of_an_earlier_revision_release_wish_or_another_run_of_the_server(
    changes, is_stale, keeps_previous
):
    cache, index = PosteriorCache(), campaign_index_of([0] * 3)
    cache.cache_index(1, index)
    news: Any = SimpleNamespace(**{"revision": 2, "releases": 1, "server_started": NOW} | changes)
    campaign: Any = SimpleNamespace(id=1, judgments_per_item=changes.get("wanted", 3))
    assert cache.drop_index_if_stale_and_return_whether_stale(campaign, index, news) is is_stale
    assert (cache.indexes.get(1) is index) is not is_stale
    assert (cache.previous_indexes.get(1) is index) is keeps_previous


def test_a_copy_that_another_has_replaced_is_stale_and_the_other_stays():
    cache, index, newer = PosteriorCache(), campaign_index_of([0] * 3), campaign_index_of([0] * 3)
    cache.cache_index(1, newer)
    news: Any = SimpleNamespace(revision=3, releases=1, server_started=NOW)
    campaign: Any = SimpleNamespace(id=1, judgments_per_item=3)
    assert cache.drop_index_if_stale_and_return_whether_stale(campaign, index, news)
    assert cache.indexes[1] is newer
    assert not cache.previous_indexes


def test_a_request_reads_open_hits_unless_many_were_read_within_a_second():
    time = [3.0]
    cache, index = PosteriorCache(clock=lambda: time[0]), campaign_index_of([0] * 3)
    assert cache.watermark_query_parameters(1) == {"since": None, "remembered": False}
    cache.cache_index(1, index)
    assert cache.watermark_query_parameters(1) == {"since": "1:5:", "remembered": False}
    index.open_hits = OpenHits([1] * MANY_OPEN_HITS, [], index.index, read_at=3.0)
    assert cache.watermark_query_parameters(1)["remembered"] is True
    assert cache.watermark_query_parameters(1, refresh=True)["remembered"] is False
    time[0] = 4.0
    assert cache.watermark_query_parameters(1)["remembered"] is False


async def test_a_copy_of_the_revision_before_serves_while_another_loads_if_it_has_all_items():
    cache, index = PosteriorCache(), campaign_index_of([0] * 3)
    cache.previous_indexes[1] = index
    assert cache.loaded_index_or_none(1) is None
    async with cache.load_lock:
        assert cache.loaded_index_or_none(1) is index
        assert cache.loaded_index_or_none(1, [2]) is index
        assert cache.loaded_index_or_none(1, [3]) is None
        assert cache.loaded_index_or_none(2) is None
        index.segments = ANY_SEGMENTS
        assert cache.loaded_index_or_none(1) is None


ANY_SEGMENTS: Any = object()
