"""The pure course: exact at every point, and the same however the responses come in pieces."""

import numpy as np
import pytest

from app.dashboard.course import EARLY, MOST_POINTS, begun, followed, precision
from app.inference.online import ONLINE, Parameters, Replay

PARAMETERS = Parameters()
ITEMS = 7


def hits_of(count, *, size=3, seed=1):
    rng = np.random.default_rng(seed)
    return [
        (rng.choice(ITEMS, size, replace=False).tolist(), (rng.integers(0, 101, size) / 100).tolist())
        for _ in range(count)
    ]


def who(hits):
    """Who answered each: three people in turn."""
    return [k % 3 for k in range(len(hits))]


def replay(law, hits):
    after = Replay(law, start(law).a, start(law).b, PARAMETERS)
    after.take(hits, who(hits))
    return after.a, after.b


def start(law):
    a, b = law.default_prior
    return begun(law, np.full(ITEMS, a), np.full(ITEMS, b))


def same(one, two):
    return all(
        np.array_equal(vars(one)[name], vars(two)[name], equal_nan=True) for name in ("a", "b", "judgments")
    ) and (
        (one.answers, one.step, one.typical) == (two.answers, two.step, two.typical)
        and np.array_equal(one.early_a, two.early_a, equal_nan=True)
        and np.array_equal(one.early_b, two.early_b, equal_nan=True)
    )


@pytest.mark.parametrize("law", ONLINE.values(), ids=ONLINE.keys())
def test_posteriors_are_those_of_the_replay_bit_for_bit(law):
    hits = hits_of(150)
    course = followed(start(law), law, hits, PARAMETERS, annotators=who(hits))
    a, b = replay(law, hits)
    assert np.array_equal(course.a, a)
    assert np.array_equal(course.b, b)
    assert course.judgments.sum() == 450


@pytest.mark.parametrize("law", ONLINE.values(), ids=ONLINE.keys())
def test_earlier_posteriors_are_those_of_a_replay_that_ends_there(law):
    hits = hits_of(40)
    course = followed(start(law), law, hits, PARAMETERS, annotators=who(hits))
    for number in range(ITEMS):
        seen = [k for k, (items, _) in enumerate(hits) if number in items]
        for judgments, a, b in course.early(number):
            until = hits[: seen[judgments - 1] + 1]
            replayed = replay(law, until)
            assert (a, b) == (replayed[0][number], replayed[1][number])
        assert [judgments for judgments, *_ in course.early(number)] == [k for k in EARLY if k < len(seen)]


def test_of_an_item_nobody_judged_there_is_nothing_earlier():
    law = ONLINE["easl"]
    assert start(law).early(0) == []
    once = followed(start(law), law, [([0, 1], [0.2, 0.4])], PARAMETERS)
    assert once.early(0) == []  # the first judgment is the present one
    assert followed(once, law, [([0, 2], [0.2, 0.4])], PARAMETERS).early(0) == [(1, 1.2, 1.8)]


@pytest.mark.parametrize("count", [0, 1, 59, 60, 61, 119, 120, 121, 500])
def test_the_same_course_in_any_pieces(count):
    law, hits = ONLINE["easl"], hits_of(count)
    whole = followed(start(law), law, hits, PARAMETERS, annotators=who(hits))
    one_by_one = start(law)
    for hit in hits:
        one_by_one = followed(one_by_one, law, [hit], PARAMETERS)
    assert same(whole, one_by_one)
    cut = followed(followed(start(law), law, hits[:73], PARAMETERS, total=count), law, hits[73:], PARAMETERS)
    assert same(whole, cut)
    assert len(whole.typical) <= MOST_POINTS


@pytest.mark.parametrize("law", ONLINE.values(), ids=ONLINE.keys())
def test_every_point_is_the_precision_of_the_posteriors_of_that_moment(law):
    hits = hits_of(130)
    points = followed(start(law), law, hits, PARAMETERS, annotators=who(hits)).points(law)
    assert [answers for answers, _ in points] == [*range(0, 129, 4), 130]
    for answers, value in points:
        assert value == precision(law.variance(*replay(law, hits[:answers])))


def test_going_on_leaves_the_course_before_as_it_was():
    law = ONLINE["easl"]
    before = followed(start(law), law, hits_of(10), PARAMETERS)
    kept = followed(start(law), law, hits_of(10), PARAMETERS)
    followed(before, law, hits_of(80, seed=2), PARAMETERS)
    assert same(before, kept)


def test_precision_is_half_the_median_interval_in_points():
    assert precision(np.array([0.0001, 0.0025, 0.04])) == pytest.approx(9.8, abs=0.001)
