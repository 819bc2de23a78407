"""Rules for the best items and for a threshold: who may lie on either side of the line leads, as in a full pass."""

from collections import Counter
from dataclasses import replace
from math import exp, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.selection.expected_gain import JudgmentNoise, log_gain_at_distance, log_gain_from_posterior
from app.selection.goal_rules import BEST_ITEMS_RULE, THRESHOLD_RULE
from app.selection.rule import ItemStatus, ItemValues, SelectionSettings
from app.selection.threshold_items import NearLineLeaders
from app.selection.threshold_line import BelowBestLine, ThresholdLine
from tests.selection.test_index import assert_drawn_from

ANYBODY = {"seen": set(), "full": set(), "leaders_to_avoid": set(), "seen_as_last_resort": False}
ASKING = SelectionSettings(judgments_per_item=10, items_per_hit=2, gamma=0.1, best_count=2, threshold=0.5)

places = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.5001, 0.75, 1.0]) | st.floats(-40, 40)
spreads = st.sampled_from([0.001, 0.01, 1 / 12, 1.0, 9.0]) | st.floats(1e-6, 1e3)
item = st.tuples(places, spreads, st.integers(0, 3))
statuses = st.sampled_from([0, 0, ItemStatus.SETTLED, ItemStatus.GONE, ItemStatus.SETTLED | ItemStatus.GONE])


def beta(total, n):
    """Return the mode and variance after scores with this sum."""
    a, b = 1 + total, 1 + n - total
    return total / n if n else 0.5, a * b / ((a + b) ** 2 * (a + b + 1)), n


def index_of(rule, rows, asking=ASKING):
    return rule.make_selection_index(ItemValues(*zip(*rows, strict=True)), asking)


def leader(index, rng=None, **around):
    return index.draw_hit_or_none(1, **ANYBODY | around, rng=rng or np.random.default_rng(1)).leader


def test_the_gain_by_the_variance_of_a_posterior_by_hand():
    """phi(d / s) (s - s'), where s'^2 = s^2 (n + 3) / (n + 4)."""
    by_hand = [
        exp(-(0.2**2) / (2 * 0.04)) * 0.2 * (1 - sqrt(5 / 6)),
        exp(-(0.1**2) / (2 * 0.01)) * 0.1 * (1 - sqrt(3 / 4)),
    ]
    gains = np.exp(log_gain_from_posterior(np.array([0.2, -0.1]), np.array([0.04, 0.01]), [2, 0]))
    np.testing.assert_allclose(gains, by_hand, rtol=1e-12)


def test_the_variance_of_a_judgment_is_that_within_items_pooled():
    """The first assumption weighs as ten moves, and is nothing here beside what comes after it."""
    rng = np.random.default_rng(1)
    given = rng.random((200, 5))
    noise, squares = JudgmentNoise(1e-9), ((given - given.mean(axis=1, keepdims=True)) ** 2).sum()
    for scores in given:
        means = np.cumsum(scores) / np.arange(1, 6)
        for n in range(2, 6):
            noise.learn_from_score_move(n, means[n - 1] - means[n - 2])
    assert noise.variance == pytest.approx(squares / (200 * 4 + 10), rel=1e-6)


def test_the_gain_by_that_variance_by_hand():
    """Before the first judgment a variance of .08 is known, and .04 assumed of a judgment."""
    before, after = JudgmentNoise(0.08).error_variances_before_and_after_judgment([0, 1, 4])
    assert before == pytest.approx([0.08, 0.04, 0.01])
    assert after == pytest.approx([0.08 * 0.04 / 0.12, 0.02, 0.008])
    gain = np.exp(log_gain_at_distance(np.array([0.1]), before[2:], after[2:]))
    assert gain == pytest.approx(exp(-(0.1**2) / 0.02) * (sqrt(0.01) - sqrt(0.008)))


def test_of_items_known_alike_the_one_nearest_to_the_line_leads():
    rows = [(0.9, 0.01, 3), (0.8, 0.01, 3), (0.58, 0.01, 3), (0.45, 0.01, 3), (0.1, 0.01, 3)]
    assert leader(index_of(THRESHOLD_RULE, rows)) == 3
    assert leader(index_of(BEST_ITEMS_RULE, rows)) in (1, 2)  # the line is at .69, as far from both


def test_the_least_certain_item_does_not_lead_if_its_place_is_certain():
    rows = [(0.99, 0.004, 3), (0.52, 0.002, 3), (0.48, 0.002, 3), (0.01, 0.004, 3)]
    assert leader(index_of(THRESHOLD_RULE, rows)) in (1, 2)


def test_who_was_never_asked_leads_before_who_was_asked_and_is_as_far_from_the_line():
    rows = [beta(0.5, 1), beta(0, 0), beta(1.0, 2)]
    assert leader(index_of(THRESHOLD_RULE, rows)) == 1


@pytest.mark.parametrize("status", ItemStatus)
def test_an_answer_to_an_item_that_has_left_the_pool_moves_no_leader(status):
    """A HIT that shows it can still be answered. If its move were noise, the item of one judgment would lead."""
    index = index_of(THRESHOLD_RULE, [(0.7, 0.01, 1, 0), (0.5, 0.01, 9, 0), (0.7, 0.01, 4, status)])
    assert leader(index) == 1
    index.update([2], [0.2], [0.01], [5])
    assert leader(index) == 1
    assert index.status[2] == status


@pytest.mark.parametrize("goes", ["at first", "later", "never asked"])
def test_the_line_is_that_of_the_items_that_the_goal_counts(goes):
    """Of all, the second and the third are nearest to the line below the best two; without the first, the next two."""
    asking = replace(ASKING, hits_per_iteration=1, never_drawn=(0,) if goes == "never asked" else ())
    rows = [(score, 0.01, 3, 0) for score in (0.9375, 0.875, 0.75, 0.5, 0.125)]
    gone = [(0.9375, 0.01, 3, ItemStatus.GONE), *rows[1:]]
    index = index_of(BEST_ITEMS_RULE, gone if goes == "at first" else rows, asking)
    seeds = [*map(np.random.default_rng, range(12))]
    if goes == "later":
        assert {leader(index, rng) for rng in seeds} == {1, 2}
        index.update([0], *([value] for value in gone[0]))
    assert {leader(index, rng) for rng in seeds} == {2, 3}
    values = ItemValues(*zip(*(rows if goes == "never asked" else gone), strict=True))
    scheduled = [BEST_ITEMS_RULE.schedule_hits_of_iteration(values, asking, iteration=1, rng=rng) for rng in seeds]
    assert {schedule[0].leader for schedule in scheduled} == {2, 3}


def test_items_alike_lead_as_often_as_each_other():
    index, rng = index_of(THRESHOLD_RULE, [beta(0, 0)] * 6), np.random.default_rng(3)
    drawn = Counter(leader(index, rng, seen={5}) for _ in range(1500))
    assert_drawn_from(dict.fromkeys(range(5), 1 / 5), drawn)


def test_with_fewer_items_than_best_ones_somebody_still_leads():
    for count in (1, 2):
        rows = [beta(0.2 * k, 1) for k in range(count)]
        assert leader(
            index_of(
                BEST_ITEMS_RULE, rows, SelectionSettings(judgments_per_item=3, items_per_hit=1, gamma=0.1, best_count=5)
            )
        ) in range(count)


@given(
    rows=st.lists(st.tuples(places, statuses), min_size=2, max_size=12),
    news=st.lists(st.tuples(st.integers(0, 11), places, statuses), max_size=25),
    k=st.integers(1, 11),
    ranks_near_line=st.integers(1, 12),
)
def test_the_line_below_the_best_is_where_a_sort_finds_it(rows, news, k, ranks_near_line):
    places, statuses = zip(*rows, strict=True)
    values = ItemValues(places, np.ones(len(rows)), np.ones(len(rows)), statuses)
    line = BelowBestLine(values, k, never_drawn=[0], ranks_near_line=ranks_near_line)
    for number, place, status in news:
        item = number % len(rows)
        before = values.score.item(item), values.status.item(item)
        values.score[item], values.status[item] = place, status
        line.update_position_for_item(item, *before)
        best = np.sort(values.score[1:][values.status[1:] < ItemStatus.GONE])[::-1]
        cut = min(k, len(best) - 1)
        if cut > 0:
            assert line.position == (best[cut - 1] + best[cut]) / 2


@pytest.mark.parametrize("rule", [BEST_ITEMS_RULE, THRESHOLD_RULE], ids=lambda rule: rule.name)
@given(rows=st.lists(item, min_size=2, max_size=12), news=st.lists(st.tuples(st.integers(0, 11), item), max_size=12))
def test_leaders_are_those_of_a_full_pass_whatever_changes(rule, rows, news):
    index = index_of(
        rule, rows, SelectionSettings(judgments_per_item=3, items_per_hit=2, gamma=0.1, best_count=2, threshold=0.5)
    )
    for number, values in news:
        index.update([number % len(rows)], *([value] for value in values))
        index.require_consistency()


@given(items=st.lists(item, min_size=1, max_size=60), at=places, barred=st.sets(st.integers(0, 59)))
def test_nobody_who_may_lead_gains_more_than_the_leader(items, at, barred):
    values = ItemValues(*zip(*items, strict=True))
    near = NearLineLeaders(np.arange(len(items)), values, ThresholdLine(at), judgments_per_item=10)
    found = near.draw_leader_or_none(barred, np.random.default_rng(1))
    free = [number for number in range(len(items)) if number not in barred]
    if not free:
        assert found is None
        return
    gains = near.log_gains(np.arange(len(items)))
    assert found is not None
    assert found.item in free
    assert gains[found.item] == pytest.approx(gains[free].max(), rel=1e-9)


@pytest.mark.parametrize("at", [0.5, 0.25])
def test_scores_of_the_same_gain_lead_equally_often_and_so_do_their_items(at):
    """A score that many items have is kept in another way than one of few items; the chance to lead is the same."""
    scores = [0.25] * 40 + [0.75] * 3 + [0.125, 0.875]
    values = ItemValues(scores, np.full(45, 0.01), np.full(45, 3))
    near = NearLineLeaders(np.arange(45), values, ThresholdLine(at), judgments_per_item=10)
    barred, rng = {0, 1, 2, 3, 40}, np.random.default_rng(4)
    picks = [near.draw_leader_or_none(barred, rng) for _ in range(4000)]
    expected = dict.fromkeys(range(4, 40), 1 / 36)
    if at == 0.5:
        expected = dict.fromkeys(range(4, 40), 1 / 72) | dict.fromkeys((41, 42), 1 / 4)
    found = [pick for pick in picks if pick is not None]
    assert {pick.item: pick.probability for pick in found} == pytest.approx(expected)
    assert_drawn_from(expected, Counter(pick.item for pick in found))


def test_all_leaders_of_the_same_gain_come_first_equally_often():
    values = ItemValues([0.25] * 20 + [0.75] * 2, np.full(22, 0.01), np.full(22, 3))
    near = NearLineLeaders(np.arange(22), values, ThresholdLine(0.5), judgments_per_item=10)
    rng = np.random.default_rng(4)
    first = Counter(next(near.iterate_free_leaders_by_gain({0}, rng)) for _ in range(2000))
    assert_drawn_from(dict.fromkeys(range(1, 20), 1 / 38) | dict.fromkeys((20, 21), 1 / 4), first)


def test_companions_are_the_items_that_gain_most_after_the_leader():
    rng = np.random.default_rng(5)
    rows = [(rng.random(), 0.02, int(rng.integers(1, 5))) for _ in range(30)]
    index = index_of(THRESHOLD_RULE, rows)
    gains = index.leaders.log_gains(np.arange(30))
    hit = index.draw_hit_or_none(5, **ANYBODY, rng=rng)
    assert {*hit.items} == {*np.argsort(-gains)[:5].tolist()}
    assert hit.leader == np.argmax(gains)


def test_a_schedule_is_led_by_those_that_gain_most():
    rng = np.random.default_rng(5)
    values = ItemValues(rng.random(40), rng.random(40) / 50 + 0.001, rng.integers(0, 5, 40))
    schedule = THRESHOLD_RULE.schedule_hits_of_iteration(
        values,
        SelectionSettings(judgments_per_item=10, items_per_hit=4, gamma=0.1, threshold=0.3),
        iteration=2,
        rng=rng,
    )
    gains = log_gain_from_posterior(values.score - 0.3, values.variance, values.judgments)
    leaders = {hit.leader for hit in schedule}
    assert min(gains[[*leaders]]) >= max(np.delete(gains, [*leaders]))
