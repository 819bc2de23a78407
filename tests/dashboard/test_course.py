"""The pure course: posteriors exact at every point, and the same however the responses come in pieces."""

import numpy as np
import pytest

from app.dashboard.course import EARLY, begun, followed
from app.inference.online.laws import ONLINE, Parameters, Replay

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
    arrays = ("a", "b", "judgments", "early_a", "early_b")
    return one.answers == two.answers and all(
        np.array_equal(vars(one)[name], vars(two)[name], equal_nan=True) for name in arrays
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


@pytest.mark.parametrize("count", [0, 1, 72, 73, 74, 200])
def test_the_same_course_in_any_pieces(count):
    law, hits = ONLINE["easl"], hits_of(count)
    whole = followed(start(law), law, hits, PARAMETERS, annotators=who(hits))
    one_by_one = start(law)
    for hit in hits:
        one_by_one = followed(one_by_one, law, [hit], PARAMETERS)
    assert same(whole, one_by_one)
    assert same(whole, followed(followed(start(law), law, hits[:73], PARAMETERS), law, hits[73:], PARAMETERS))


def test_going_on_leaves_the_course_before_as_it_was():
    law = ONLINE["easl"]
    before = followed(start(law), law, hits_of(10), PARAMETERS)
    kept = followed(start(law), law, hits_of(10), PARAMETERS)
    followed(before, law, hits_of(80, seed=2), PARAMETERS)
    assert same(before, kept)
