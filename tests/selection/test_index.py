"""Every distribution is checked by chi-square against the formula, worked out here a second time by brute force."""

import math
import tracemalloc
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from app.selection import companions
from app.selection.index import SelectionIndex, draw_hits_of_first_iteration, draw_hits_of_later_iteration
from app.selection.item_sets import MaskedItems
from app.selection.leaders import HighestVarianceLeaders
from app.selection.match_quality import match_quality
from app.selection.registry import SELECTION_RULES
from app.selection.rule import Draw, ItemValues, SelectionSettings

GAMMA = 0.1
SCORE = [0.5, 0.45, 0.62, 0.1, 0.9, 0.3, 0.55, 0.72]
VARIANCE = [0.08, 0.05, 0.02, 0.06, 0.01, 0.07, 0.03, 0.04]
NOBODY: dict[str, Any] = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}


@pytest.fixture(params=["cells", "pass", "a few tries in cells, then a pass"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use each way of drawing a companion; all must have the same distribution."""
    if request.param != "pass":
        monkeypatch.setattr(companions, "MAX_ITEMS_FOR_FULL_PASS", 0)
    if request.param == "a few tries in cells, then a pass":
        monkeypatch.setattr(companions, "TRIES_PER_ROUND", 2)
        monkeypatch.setattr(companions, "MAX_REJECTION_ROUNDS", 1)


def index_of(
    score: Any = SCORE, variance: Any = VARIANCE, judgments: Any = None, *, wanted: int = 10
) -> SelectionIndex:
    judgments = [0] * len(score) if judgments is None else judgments
    return SelectionIndex(
        ItemValues(score, variance, judgments),
        SelectionSettings(judgments_per_item=wanted, items_per_hit=5, gamma=GAMMA),
    )


def may_draw(index: SelectionIndex, n: int, rng: np.random.Generator, **around: Any) -> Draw | None:
    return index.draw_hit_or_none(n, **(NOBODY | around), rng=rng)


def draw(index: SelectionIndex, n: int, rng: np.random.Generator, **around: Any) -> Draw:
    hit = may_draw(index, n, rng, **around)
    assert hit is not None
    return hit


def weights(leader: int, score: Any, variance: Any) -> list[float]:
    """Return equation 11 or 23 for all items, scaled so that the largest is 1."""
    logs = []
    for s, v in zip(score, variance, strict=True):
        c2 = 2 * GAMMA**2 + variance[leader] + v
        logs.append(0.5 * math.log(2 * GAMMA**2 / c2) - (score[leader] - s) ** 2 / (2 * c2))
    top = max(log for item, log in enumerate(logs) if item != leader)
    return [math.exp(log - top) if item != leader else 0.0 for item, log in enumerate(logs)]


def set_probabilities(weight: Sequence[float], allowed: Collection[int], size: int) -> dict[Any, float]:
    """Return the probability of every set that successive draws without replacement can give."""
    chances: dict[Any, float] = defaultdict(float)
    for order in permutations(allowed, size):
        chance = 1.0
        for place, item in enumerate(order):
            chance *= weight[item] / sum(weight[other] for other in allowed if other not in order[:place])
        chances[frozenset(order)] += chance
    return chances


def assert_drawn_from(chances: Mapping[Any, float], observed: Counter[Any]) -> None:
    """Assert by chi-square that the observed sets have these probabilities; rare sets are merged until 8 are
    expected.
    """
    count = sum(observed.values())
    assert {outcome for outcome in observed if not chances[outcome]} == set()
    expected, seen = [0.0], [0]
    for outcome in sorted(chances, key=lambda outcome: chances[outcome]):
        if expected[-1] >= 8:
            expected.append(0.0)
            seen.append(0)
        expected[-1] += chances[outcome] * count
        seen[-1] += observed[outcome]
    assert len(expected) > 1
    assert math.isclose(sum(expected), count)
    assert chisquare(seen, expected).pvalue > 1e-3


def drawn_companions(index: SelectionIndex, n: int, times: int, **around: Any) -> Counter[Any]:
    rng = np.random.default_rng(1)
    hits = [draw(index, n, rng, **around) for _ in range(times)]
    return Counter(frozenset(hit.items) - {hit.leader} for hit in hits)


# The distribution of companions


def test_one_companion_comes_with_probability_proportional_to_match_quality(way):
    quality = match_quality(SCORE[0], VARIANCE[0], SCORE, VARIANCE, GAMMA)
    chances = {frozenset({i}): quality[i] / quality[1:].sum() for i in range(1, 8)}
    assert_drawn_from(chances, drawn_companions(index_of(), 2, 1500))


def test_two_companions_come_with_the_probability_of_successive_draws(way):
    chances = set_probabilities(weights(0, SCORE, VARIANCE), range(1, 8), 2)
    assert_drawn_from(chances, drawn_companions(index_of(), 3, 1500))


def test_four_companions_come_with_the_probability_of_successive_draws(way):
    chances = set_probabilities(weights(0, SCORE, VARIANCE), range(1, 8), 4)
    assert_drawn_from(chances, drawn_companions(index_of(), 5, 1500))


def test_successive_probabilities_hold_among_the_candidates_left_by_seen_and_held(way):
    index = index_of(judgments=[0, 0, 0, 8, 0, 8, 9, 0])
    around = {"seen": {2}, "full": index.full_items({3: 1, 5: 2, 6: 1}), "leaders_to_avoid": {0, 6}}
    # 2 is seen, 5 and 6 are full; 3 has room for one more, and of those that do not lead it is the most uncertain.
    chances = set_probabilities(weights(3, SCORE, VARIANCE), [0, 1, 4, 7], 2)
    assert_drawn_from(chances, drawn_companions(index, 3, 1500, **around))


def test_places_left_by_unseen_items_are_filled_from_seen_ones_in_the_same_way(way):
    around = {"seen": {1, 2, 4, 6, 7}, "seen_as_last_resort": True, "full": {6}}
    chances = set_probabilities(weights(0, SCORE, VARIANCE), [1, 2, 4, 7], 2)
    filled = {frozenset({3, 5}) | items: chance for items, chance in chances.items()}
    assert_drawn_from(filled, drawn_companions(index_of(), 5, 1500, **around))


def test_the_distribution_is_the_same_after_many_updates(way):
    rng = np.random.default_rng(7)
    index = index_of(rng.normal(size=8), rng.gamma(1, size=8), rng.integers(0, 14, 8))
    for _ in range(3000):
        some = rng.choice(8, rng.integers(1, 6), replace=False)
        size = len(some)
        index.update(some, rng.normal(0, 2, size), rng.gamma(0.2, size=size) + 1e-6, rng.integers(0, 14, size))
    index.update(range(8), SCORE, VARIANCE, [0] * 8)
    chances = set_probabilities(weights(0, SCORE, VARIANCE), range(1, 8), 2)
    assert_drawn_from(chances, drawn_companions(index, 3, 1500))


@pytest.mark.parametrize(
    ("score", "variance"),
    [
        pytest.param([25, 31, 10, 24.5, 60, -40, 27], [70, 60, 0.4, 3, 69, 0.01, 8], id="trueskill's own scale"),
        pytest.param(
            [0, 1e3, 1000.02, 1000.05, -1000.03, 999.99, -1e3],
            [25, 1, 1, 1, 1, 1, 1],
            id="so far off that every match quality underflows",
        ),
        pytest.param(
            [1e6, 1e6 + 0.01, 1e6 - 0.02, 1e6, 1e6 + 0.2, 0, 1e6 - 0.1],
            [1e-3, 1e-4, 1e-6, 1e-9, 1e-5, 1e-4, 1e-4],
            id="far from 0 and nearly known",
        ),
    ],
)
def test_scores_may_be_any_real_numbers_and_variances_any_above_zero(way, score, variance):
    chances = set_probabilities(weights(0, score, variance), range(1, 7), 2)
    assert_drawn_from(chances, drawn_companions(index_of(score, variance), 3, 1500))


def test_cells_and_formula_agree_on_ten_thousand_items():
    rng = np.random.default_rng(3)
    score, variance = rng.random(10_000), rng.uniform(0.001, 0.08, 10_000)
    score[0], variance[0] = 0.8, 1 / 12
    weight = match_quality(score[0], variance[0], score, variance, GAMMA)[1:]
    parts = np.array_split(np.argsort(np.random.default_rng(4).random(9_999)), 10)
    parts += np.array_split(np.argsort(score[1:]), 20)
    drawn = np.zeros(9_999)
    index = index_of(score, variance)
    for _ in range(4_000):
        hit = draw(index, 2, rng)
        drawn[sum(hit.items) - 1] += 1
    for group in (parts[:10], parts[10:]):
        expected = [weight[part].sum() / weight.sum() * 4_000 for part in group]
        assert chisquare([drawn[part].sum() for part in group], expected).pvalue > 1e-3


def test_match_quality_is_that_of_the_formula_to_the_last_digits():
    inside, items = index_of().companions, list(range(8))
    assert isinstance(inside, companions.Companions)
    for leader in items:
        expected = match_quality(SCORE[leader], VARIANCE[leader], SCORE, VARIANCE, GAMMA)
        assert inside.match_quality_with(leader, items) == pytest.approx(expected, rel=1e-12)


def test_a_large_share_of_seen_items_does_not_bend_the_distribution(monkeypatch):
    monkeypatch.setattr(companions, "MAX_ITEMS_FOR_FULL_PASS", 50)
    rng = np.random.default_rng(5)
    score = np.concatenate([[0.5], np.full(300, 0.5), SCORE[3:7]])
    variance = np.concatenate([[0.08], np.full(300, 0.02), VARIANCE[4:5] * 4])
    index = index_of(score, variance)
    seen = set(range(1, 301))
    counts = Counter(frozenset(draw(index, 3, rng, seen=seen).items) - {0} for _ in range(1500))
    assert_drawn_from(set_probabilities(weights(0, score, variance), range(301, 305), 2), counts)


# The leader


def test_the_most_uncertain_item_leads():
    assert draw(index_of(), 3, np.random.default_rng(0)).leader == 0


def test_an_item_the_annotator_has_scored_neither_leads_nor_accompanies_while_others_remain():
    rng = np.random.default_rng(0)
    hits = [draw(index_of(), 3, rng, seen={0, 5}, seen_as_last_resort=True) for _ in range(200)]
    assert {hit.leader for hit in hits} == {3}
    assert all(not {0, 5} & set(hit.items) for hit in hits)


def test_an_item_whose_judgments_and_leases_reach_the_number_wanted_is_not_asked():
    rng = np.random.default_rng(0)
    index = index_of(judgments=[7, 0, 0, 0, 0, 0, 0, 10])
    hits = [draw(index, 4, rng, full=index.full_items({0: 3, 1: 9})) for _ in range(200)]
    assert {hit.leader for hit in hits} == {5}
    assert set().union(*(hit.items for hit in hits)) == {1, 2, 3, 4, 5, 6}


def test_an_item_with_room_for_one_more_is_asked_again():
    index = index_of(judgments=[7] + [0] * 7)
    assert draw(index, 1, np.random.default_rng(0), full=index.full_items({0: 2})).items == [0]


def test_an_item_that_leads_an_open_hit_does_not_lead_another_but_may_accompany():
    rng = np.random.default_rng(0)
    hits = [draw(index_of(), 4, rng, leaders_to_avoid={0, 5}) for _ in range(200)]
    assert {hit.leader for hit in hits} == {3}
    assert set().union(*(hit.items for hit in hits)) == set(range(8))


def test_the_most_uncertain_candidate_leads_again_when_all_candidates_lead():
    hit = draw(index_of(), 2, np.random.default_rng(0), leaders_to_avoid=set(range(1, 8)), seen={0})
    assert hit.leader == 5


def test_a_seen_item_leads_only_when_no_unseen_one_is_left():
    everything = set(range(8))
    rng = np.random.default_rng(0)
    assert draw(index_of(), 3, rng, seen=everything - {4}, seen_as_last_resort=True).leader == 4
    assert draw(index_of(), 3, rng, seen=everything, seen_as_last_resort=True).leader == 0
    assert draw(index_of(), 3, rng, seen=everything, leaders_to_avoid={0}, seen_as_last_resort=True).leader == 5


@pytest.mark.parametrize("barred", [set(), {1, 2}, {0, 1, 2, 3, 4, 5}])
def test_ties_in_variance_are_broken_anew_and_uniformly_at_every_draw(barred):
    index = index_of([0.5] * 10, [1 / 12] * 9 + [0.05])
    rng = np.random.default_rng(2)
    leaders = Counter(draw(index, 2, rng, seen=barred).leader for _ in range(1500))
    tied = set(range(9)) - barred
    assert_drawn_from({item: 1 / len(tied) for item in tied}, leaders)


def test_the_leader_is_found_when_everything_more_uncertain_is_barred():
    count = 400
    index = index_of(np.linspace(0, 1, count), np.arange(1, count + 1) / 5000)
    draw(index, 2, np.random.default_rng(0), seen=set(range(1, count)))
    hit = draw(index, 5, np.random.default_rng(0), seen=set(range(300, count)), leaders_to_avoid=set(range(250, 300)))
    assert hit.leader == 249


# The HIT


def test_every_order_of_presentation_is_equally_likely():
    rng = np.random.default_rng(4)
    index = index_of(SCORE[:3], VARIANCE[:3])
    orders = Counter(tuple(draw(index, 3, rng).items) for _ in range(1500))
    assert_drawn_from(dict.fromkeys(permutations(range(3)), 1 / 6), orders)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_tiny_campaign_gets_short_hits(way, count):
    hit = draw(index_of(SCORE[:count], VARIANCE[:count]), 5, np.random.default_rng(0))
    assert sorted(hit.items) == list(range(count))
    assert hit.leader == 0


def test_without_leave_to_ask_again_a_hit_is_short_rather_than_repeated(way):
    hit = draw(index_of(), 5, np.random.default_rng(0), seen={0, 1, 2, 3, 4, 5})
    assert sorted(hit.items) == [6, 7]


def test_there_is_no_hit_when_nothing_can_be_asked(way):
    rng = np.random.default_rng(0)
    assert may_draw(index_of(judgments=[10] * 8), 5, rng, seen_as_last_resort=True) is None
    assert may_draw(index_of(), 5, rng, seen=set(range(8))) is None
    assert may_draw(index_of(), 5, rng, full=set(range(8)), seen_as_last_resort=True) is None
    assert may_draw(index_of([], []), 5, rng, seen_as_last_resort=True) is None


def test_an_item_leaves_with_its_last_judgment_and_returns_when_told_so():
    index, rng = index_of(wanted=1), np.random.default_rng(0)
    index.update(range(8), SCORE, VARIANCE, [1] * 8)
    assert may_draw(index, 5, rng) is None
    index.update([2, 6], [0.2, 0.3], [0.01, 0.03], [0, 0])
    assert sorted(draw(index, 5, rng).items) == [2, 6]


def test_the_newest_values_can_be_read():
    index = index_of()
    index.update([3, 3], [0.2, 0.25], [0.02, 0.015], [1, 2])
    assert (index.score[3], index.variance[3], index.judgments[3]) == (0.25, 0.015, 2)


def test_the_callers_arrays_are_left_alone():
    score, variance, judgments = np.array(SCORE), np.array(VARIANCE), np.zeros(8, dtype=int)
    index = SelectionIndex(
        ItemValues(score, variance, judgments),
        SelectionSettings(judgments_per_item=10, items_per_hit=5, gamma=GAMMA),
    )
    index.update([0], [0.9], [0.01], [1])
    assert (score[0], variance[0], judgments[0]) == (0.5, 0.08, 0)


def test_the_same_seed_gives_the_same_hit():
    one, two = (draw(index_of(), 5, np.random.default_rng(9)) for _ in range(2))
    assert one == two


ROWS = st.tuples(
    st.floats(-1e4, 1e4) | st.sampled_from([0.0, 0.5, 1.0]),
    st.floats(1e-9, 1e4) | st.sampled_from([1 / 12, 0.05]),
    st.integers(0, 4),
)
CAMPAIGNS = st.lists(ROWS, min_size=1, max_size=30)
CHANGES = st.lists(st.tuples(st.integers(0, 29), ROWS), max_size=60)


Row = tuple[float, float, int]


def changed_index(rows: list[Row], changes: list[tuple[int, Row]]) -> tuple[SelectionIndex, list[Row]]:
    """Return an index with 3 wanted judgments after these changes, and the rows it should agree with."""
    index = index_of(*zip(*rows, strict=True), wanted=3)
    for number, row in changes:
        item = number % len(rows)
        score, variance, judgments = row
        index.update([item], [score], [variance], [judgments])
        rows[item] = row
    return index, rows


CHANGED = st.builds(changed_index, CAMPAIGNS, CHANGES)


@settings(max_examples=100, deadline=None)
@given(CHANGED)
def test_after_any_updates_all_open_items_lead_by_variance_and_lie_in_one_cell_each_below_its_bound(campaign):
    index, rows = campaign
    assert index.judgments.tolist() == [row[2] for row in rows]
    index.require_consistency()


@pytest.mark.parametrize(
    ("array", "value", "said"),
    [("score", 0.9, "above the bound"), ("variance", 0.3, "found"), ("judgments", 99, "found")],
)
def test_an_arrangement_that_is_not_that_of_the_arrays_is_noticed(array, value, said):
    index = index_of()
    index.require_consistency()
    getattr(index, array)[0] = value
    with pytest.raises(ValueError, match=said):
        index.require_consistency()


PLACES = st.sets(st.integers(0, 29), max_size=30)


@settings(max_examples=200, deadline=None)
@given(
    CHANGED,
    PLACES,
    PLACES,
    st.dictionaries(st.integers(0, 29), st.integers(1, 3)),
    st.booleans(),
)
def test_any_draw_keeps_the_rules(campaign, seen, leading, held, seen_as_last_resort):
    index, rows = campaign
    everything = set(range(len(rows)))
    seen, leading = seen & everything, leading & everything
    held = {item: leases for item, leases in held.items() if item in everything}
    around = {
        "seen": seen,
        "full": index.full_items(held),
        "leaders_to_avoid": leading,
        "seen_as_last_resort": seen_as_last_resort,
    }
    hit = index.draw_hit_or_none(5, **around, rng=np.random.default_rng(0))
    wanted = {item for item in everything if rows[item][2] + held.get(item, 0) < 3}
    pool = (wanted - seen) or (wanted if seen_as_last_resort else set())
    if not pool:
        assert hit is None
        return
    leaders = pool - leading or pool
    assert hit.leader in leaders
    assert rows[hit.leader][1] == max(rows[item][1] for item in leaders)
    assert hit.leader in hit.items
    assert len(hit.items) == len(set(hit.items)) == min(5, len(wanted if seen_as_last_resort else pool))
    assert set(hit.items) <= wanted
    assert set(hit.items) <= pool or pool <= set(hit.items)


def test_many_updates_do_not_make_the_index_grow():
    rng = np.random.default_rng(0)
    index = index_of(rng.random(50), rng.random(50))
    for _ in range(3000):
        index.update([int(rng.integers(1, 50))], rng.normal(0, 100, 1), rng.random(1) / 2, [0])
    index.require_consistency()
    assert isinstance(index.leaders, HighestVarianceLeaders)
    assert isinstance(index.companions, companions.Companions)
    assert index.leaders.variance_bucket_count <= 2 * 50 + 65
    assert index.companions.cell_capacity <= 50 + 16 + 50 // 4 + 16


@settings(max_examples=100, deadline=None)
@given(CAMPAIGNS, CHANGES, st.sampled_from([1, 2, 5]), PLACES)
def test_leaders_come_in_the_same_order_if_few_variances_are_sorted_at_a_time(rows, changes, sorted_values, barred):
    variance = np.array([row[1] for row in rows])
    present = list(range(len(rows)))
    leaders = HighestVarianceLeaders(np.array(present, np.intp), variance, sorted_values=sorted_values)
    rng = np.random.default_rng(0)
    for number, (_, value, absent) in changes:
        item = number % len(rows)
        if item in present:
            leaders.remove(item)
            present.remove(item)
        variance[item] = value
        if not absent:
            leaders.add(item)
            present.append(item)
        leaders.require_consistency(np.array(sorted(present), np.intp))
        candidates = set(present) - barred
        pick = leaders.draw_leader_or_none(set(barred), rng)
        highest = {item for item in candidates if variance[item] == max(variance[list(candidates)])}
        assert (pick is None) if not candidates else pick is not None and pick.item in highest
        assert pick is None or pick.probability == 1 / len(highest)
        leaders.require_consistency(np.array(sorted(present), np.intp))
    assert len(leaders) == len(present)
    excluded = set(barred)
    in_order = []
    for item in leaders.iterate_free_leaders_by_gain(excluded, rng):
        excluded.add(item)
        in_order.append(item)
    assert sorted(in_order) == sorted(set(present) - barred)
    assert variance[in_order].tolist() == sorted(variance[in_order], reverse=True)


def test_items_whose_variance_rises_do_not_make_the_sorted_part_grow():
    variance = np.random.default_rng(0).random(1_000)
    leaders = HighestVarianceLeaders(np.arange(1_000), variance, sorted_values=20)
    for item in range(1_000):
        leaders.remove(item)
        variance[item] += 1
        leaders.add(item)
    leaders.require_consistency(np.arange(1_000))
    assert leaders.variance_bucket_count <= 4 * 20
    assert leaders.draw_leader_or_none(set(), np.random.default_rng(1)) == (int(np.argmax(variance)), 1.0)


class AskedItemByItem(MaskedItems):
    """A set that is never asked about all items at once."""

    def numbers_outside(self, numbers: Any) -> Any:
        raise AssertionError(f"asked about {len(numbers)} items at once")


def test_leaders_of_open_hits_do_not_make_draws_go_through_all_items():
    leaders = HighestVarianceLeaders(np.arange(1_000), 1 - np.arange(1_000) / 1_000, sorted_values=20)
    held = AskedItemByItem(np.arange(1_000) < 3)
    for expected in range(3, 500):
        assert leaders.draw_leader_or_none(held, np.random.default_rng(0)) == (expected, 1.0)
        leaders.remove(expected)
    leaders.require_consistency(np.array([*range(3), *range(500, 1_000)]))


@pytest.mark.parametrize("kind", ["a set", "a mask"])
def test_draws_by_people_who_may_see_no_sorted_item_do_not_make_the_sorted_part_grow(kind):
    variance = np.random.default_rng(0).random(1_000)
    variance[[3, 4]] = 0.001
    leaders = HighestVarianceLeaders(np.arange(1_000), variance, sorted_values=20)

    def all_items_but(*free: int) -> Any:
        barred = [item not in free for item in range(1_000)]
        return MaskedItems(np.array(barred)) if kind == "a mask" else set(np.flatnonzero(barred).tolist())

    for seed in range(20):
        assert leaders.draw_leader_or_none(all_items_but(), np.random.default_rng(seed)) is None
        pick = leaders.draw_leader_or_none(all_items_but(3, 4), np.random.default_rng(seed))
        assert pick is not None
        assert pick.item in {3, 4}
        assert pick.probability == 0.5
        excluded = all_items_but(3, 4)
        in_order = []
        for item in leaders.iterate_free_leaders_by_gain(excluded, np.random.default_rng(seed)):
            excluded.add(item)
            in_order.append(item)
        assert sorted(in_order) == [3, 4]
    leaders.require_consistency(np.arange(1_000))
    assert leaders.variance_bucket_count <= 4 * 20


@pytest.mark.parametrize("rule", ["easl", "scores", "pairs"])
def test_an_item_takes_at_most_60_bytes_even_if_no_two_items_have_the_same_values(rule):
    count = 100_000
    rng = np.random.default_rng(0)
    values = ItemValues(rng.random(count), rng.random(count) / 12, rng.integers(0, 9, count))
    settings_ = SelectionSettings(judgments_per_item=10, items_per_hit=5, gamma=GAMMA)
    tracemalloc.start()
    try:
        index = SELECTION_RULES[rule].make_selection_index(values, settings_)
        assert tracemalloc.get_traced_memory()[0] <= 60 * count
        assert draw(cast("SelectionIndex", index), 5, rng).items
    finally:
        tracemalloc.stop()


# Iterations


def test_the_first_iteration_shows_every_item_once():
    hits = draw_hits_of_first_iteration([0] * 150, judgments_per_item=10, items_per_hit=5, rng=np.random.default_rng(0))
    assert [len(hit.items) for hit in hits] == [5] * 30
    assert sorted(item for hit in hits for item in hit.items) == list(range(150))
    assert all(hit.leader in hit.items for hit in hits)


def test_every_partition_into_hits_is_equally_likely():
    rng = np.random.default_rng(1)
    partitions = Counter(
        frozenset(
            frozenset(hit.items)
            for hit in draw_hits_of_first_iteration([0] * 4, judgments_per_item=1, items_per_hit=2, rng=rng)
        )
        for _ in range(1500)
    )
    assert len(partitions) == 3
    assert_drawn_from(dict.fromkeys(partitions, 1 / 3), partitions)


def test_every_item_of_a_first_hit_is_equally_likely_to_lead_and_to_be_shown_first():
    rng = np.random.default_rng(1)
    hits = [
        draw_hits_of_first_iteration([0] * 3, judgments_per_item=1, items_per_hit=3, rng=rng)[0] for _ in range(1500)
    ]
    pairs = Counter((hit.leader, hit.items[0]) for hit in hits)
    assert_drawn_from(dict.fromkeys(product(range(3), repeat=2), 1 / 9), pairs)


def test_a_short_last_hit_is_filled_with_random_items_that_want_more():
    rng = np.random.default_rng(1)
    judgments = [0, 0, 0, 2, 2, 2, 2]
    for _ in range(200):
        hits = draw_hits_of_first_iteration(judgments, judgments_per_item=3, items_per_hit=3, rng=rng)
        shown = Counter(item for hit in hits for item in hit.items)
        assert set(shown) == set(range(7))
        assert [len(set(hit.items)) for hit in hits] == [3, 3, 3]
        fillers = {item for item, times in shown.items() if times == 2}
        assert len(fillers) == 2
        assert fillers < {0, 1, 2}


def test_fillers_of_the_last_hit_are_uniform():
    rng = np.random.default_rng(3)
    twice: Counter[int] = Counter()
    for _ in range(1500):
        shown = Counter(
            i
            for hit in draw_hits_of_first_iteration([0] * 5, judgments_per_item=9, items_per_hit=3, rng=rng)
            for i in hit.items
        )
        twice[next(item for item, times in shown.items() if times == 2)] += 1
    assert_drawn_from(dict.fromkeys(range(5), 1 / 5), twice)


@pytest.mark.parametrize(("items", "sizes"), [(7, [4, 3]), (11, [4, 4, 3]), (6, [3, 3]), (3, [3])])
def test_where_a_last_hit_cannot_be_filled_all_are_as_equal_as_can_be(items, sizes):
    hits = draw_hits_of_first_iteration(
        [0] * items, judgments_per_item=1, items_per_hit=5, rng=np.random.default_rng(0)
    )
    assert [len(hit.items) for hit in hits] == sizes
    assert sorted(item for hit in hits for item in hit.items) == list(range(items))


def test_the_first_iteration_leaves_out_items_that_have_enough():
    hits = draw_hits_of_first_iteration(
        [0, 1, 2, 0, 1], judgments_per_item=1, items_per_hit=5, rng=np.random.default_rng(0)
    )
    assert [sorted(hit.items) for hit in hits] == [[0, 3]]
    assert (
        draw_hits_of_first_iteration([1, 1], judgments_per_item=1, items_per_hit=5, rng=np.random.default_rng(0)) == []
    )
    assert draw_hits_of_first_iteration([], judgments_per_item=1, items_per_hit=5, rng=np.random.default_rng(0)) == []


def later(
    score: Any = SCORE, variance: Any = VARIANCE, judgments: Any = None, *, seed: int = 0, **options: Any
) -> list[Draw]:
    judgments = [0] * len(score) if judgments is None else judgments
    rng = options.pop("rng", None) or np.random.default_rng(seed)
    return draw_hits_of_later_iteration(
        score,
        variance,
        judgments,
        **({"judgments_per_item": 10, "items_per_hit": 3, "gamma": GAMMA} | options),
        rng=rng,
    )


def test_the_most_uncertain_items_lead_one_hit_each():
    assert [hit.leader for hit in later(hits=3)] == [0, 5, 3]


def test_by_default_an_iteration_has_as_many_hits_as_n_goes_into_the_number_of_items():
    rng = np.random.default_rng(0)
    hits = later(rng.random(150), rng.random(150), items_per_hit=5)
    assert len(hits) == 30
    assert all(len(set(hit.items)) == 5 for hit in hits)
    assert len(later(items_per_hit=5)) == 1
    assert len(later(SCORE[:3], VARIANCE[:3], items_per_hit=5)) == 1


def test_leaders_accompany_no_one_unless_allowed():
    apart = [hit for seed in range(50) for hit in later(hits=3, seed=seed)]
    assert all(set(hit.items) & {0, 5, 3} == {hit.leader} for hit in apart)
    together = [hit for seed in range(50) for hit in later(hits=3, seed=seed, leaders_as_companions=True)]
    assert any(set(hit.items) & {0, 5, 3} != {hit.leader} for hit in together)
    assert all(len(set(hit.items)) == 3 for hit in together)


def test_ties_for_the_last_leader_are_broken_uniformly():
    rng = np.random.default_rng(3)
    variance = [0.08, 0.02, 0.02, 0.02, 0.02]
    leaders = Counter(later(SCORE[:5], variance, hits=2, rng=rng)[1].leader for _ in range(1500))
    assert_drawn_from(dict.fromkeys(range(1, 5), 1 / 4), leaders)


def test_companions_of_an_iteration_come_with_the_probability_of_successive_draws(way):
    rng = np.random.default_rng(3)
    drawn = Counter(frozenset(later(hits=2, rng=rng)[1].items) - {5} for _ in range(1500))
    chances = set_probabilities(weights(5, SCORE, VARIANCE), [1, 2, 3, 4, 6, 7], 2)
    assert_drawn_from(chances, drawn)


def test_leaders_as_companions_come_with_the_probability_of_successive_draws(way):
    rng = np.random.default_rng(3)
    drawn = Counter(frozenset(later(hits=2, leaders_as_companions=True, rng=rng)[1].items) - {5} for _ in range(1500))
    assert_drawn_from(set_probabilities(weights(5, SCORE, VARIANCE), [0, 1, 2, 3, 4, 6, 7], 2), drawn)


def test_an_item_that_wants_one_more_judgment_is_drawn_for_one_hit_and_gone_for_the_next(way):
    rng = np.random.default_rng(6)
    pairs: Counter[tuple[int, int]] = Counter()
    for _ in range(1500):
        first, second = later(judgments=[9] * 8, items_per_hit=2, hits=2, rng=rng)
        pairs[sum(first.items) - 0, sum(second.items) - 5] += 1
    pool = [1, 2, 3, 4, 6, 7]
    of_first, of_second = weights(0, SCORE, VARIANCE), weights(5, SCORE, VARIANCE)
    chances = {
        (a, b): of_first[a] / sum(of_first[i] for i in pool) * of_second[b] / sum(of_second[i] for i in pool if i != a)
        for a, b in permutations(pool, 2)
    }
    assert_drawn_from(chances, pairs)


def test_a_place_that_ran_out_of_items_does_not_hide_the_far_ones(way):
    score = [0, 0.5, 0.01, 1000, 1000.02, 1000.05, 999.97]
    variance = [25, 24, 1, 1, 1, 1, 1]
    rng = np.random.default_rng(8)
    judgments = [0, 0, 9, 0, 0, 0, 0]
    hits = [later(score, variance, judgments, items_per_hit=2, hits=2, rng=rng) for _ in range(1500)]
    assert all(set(first.items) == {0, 2} for first, _ in hits)
    far = Counter(frozenset(second.items) - {1} for _, second in hits)
    weight = weights(0, [0.5, *score[3:]], [24, *variance[3:]])
    assert_drawn_from({frozenset({i}): weight[i - 2] / sum(weight) for i in range(3, 7)}, far)


@settings(max_examples=100, deadline=None)
@given(CAMPAIGNS, st.integers(2, 10), st.integers(1, 40) | st.none(), st.booleans(), st.integers(0, 99))
def test_no_iteration_schedules_an_item_twice_in_a_hit_or_beyond_what_it_wants(rows, n, hits, together, seed):
    score, variance, judgments = zip(*rows, strict=True)
    scheduled = later(
        score,
        variance,
        judgments,
        judgments_per_item=3,
        items_per_hit=n,
        hits=hits,
        leaders_as_companions=together,
        seed=seed,
    )
    room = [max(3 - taken, 0) for taken in judgments]
    shown = Counter(item for hit in scheduled for item in hit.items)
    assert all(times <= room[item] for item, times in shown.items())
    leaders = [hit.leader for hit in scheduled]
    count = max(1, len(rows) // n) if hits is None else hits
    by_variance = sorted((variance[item] for item in range(len(rows)) if room[item]), reverse=True)
    assert [variance[leader] for leader in leaders] == by_variance[: len(leaders)]
    assert len(set(leaders)) == len(leaders) <= count
    left = {i for i in range(len(rows)) if room[i] > shown[i] and (together or i not in leaders)}
    for hit in scheduled:
        assert len(hit.items) == len(set(hit.items)) <= n
        assert hit.leader in hit.items
        # Short only if nobody was left to ask, or to share with a leader who would be alone.
        assert len(hit.items) == n or left <= set(hit.items) or 2 in map(len, (other.items for other in scheduled))
        assert len(hit.items) > 1 or sum(room) - room[hit.leader] == 0 or n == 2 or together


def test_no_more_items_lead_than_find_companions():
    (hit,) = later(SCORE[:3], VARIANCE[:3], hits=9)
    assert sorted(hit.items) == [0, 1, 2]


def test_near_the_end_of_iterations_no_item_is_asked_alone(subtests):
    """With room for one judgment more each, HITs are as few and as equal as they can be."""
    for together in (False, True):
        for open_items in range(2, 24):
            with subtests.test(together=together, open_items=open_items):
                rng = np.random.default_rng(open_items)
                judgments = np.where(np.arange(100) < open_items, 4, 5)
                hits = later(
                    rng.random(100),
                    rng.random(100) + 0.1,
                    judgments,
                    judgments_per_item=5,
                    items_per_hit=5,
                    leaders_as_companions=together,
                    rng=rng,
                )
                sizes = [len(hit.items) for hit in hits]
                assert len(sizes) == math.ceil(open_items / 5)
                assert min(sizes) > 1
                assert sum(sizes) == open_items or together


def test_an_iteration_over_a_finished_campaign_is_empty():
    assert later(judgments=[10] * 8) == []
    assert later([], []) == []


def test_all_sets_of_brute_force_add_up_to_one():
    chances = set_probabilities(weights(0, SCORE, VARIANCE), range(1, 8), 3)
    assert set(chances) == set(map(frozenset, combinations(range(1, 8), 3)))
    assert math.isclose(sum(chances.values()), 1.0)


@given(
    judgments=st.lists(st.integers(0, 3), min_size=4, max_size=8),
    seen=st.sets(st.integers(0, 7)),
    seen_as_last_resort=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=200, deadline=None)
def test_a_hit_leaves_something_to_its_annotator_exactly_if_another_can_be_drawn_after_it(
    judgments: list[int], seen: set[int], seen_as_last_resort: bool, seed: int
) -> None:
    score, variance, seen = SCORE[: len(judgments)], VARIANCE[: len(judgments)], seen & set(range(len(judgments)))
    before, rng = index_of(score, variance, judgments, wanted=3), np.random.default_rng(seed)
    hit = may_draw(before, 3, rng, seen=seen, seen_as_last_resort=seen_as_last_resort)
    if hit is None:
        return
    after = [taken + (item in hit.items) for item, taken in enumerate(judgments)]
    another = may_draw(
        index_of(score, variance, after, wanted=3),
        3,
        rng,
        seen=seen | set(hit.items),
        seen_as_last_resort=seen_as_last_resort,
    )
    assert before.has_open_items_left_after_hit(
        hit.items, seen_items=seen, seen_as_last_resort=seen_as_last_resort
    ) == (another is not None)
