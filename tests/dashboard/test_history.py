"""The pure course: posteriors exact at every point, and the same however the responses come in pieces."""

import numpy as np

from app.dashboard import history
from app.dashboard.history import EARLY_JUDGMENTS, PosteriorHistory, posterior_history_after_hits
from app.inference.online.law import AnsweredHit, Law
from tests.inference.beliefs import initial_beliefs, posteriors_after
from tests.laws import SCORE_LAWS

ITEMS = 7


def hits_of(count, *, size=3, seed=1):
    """Return HITs that three people answer in turn."""
    rng = np.random.default_rng(seed)
    return [
        AnsweredHit(k % 3, rng.choice(ITEMS, size, replace=False).tolist(), (rng.integers(0, 101, size) / 100).tolist())
        for k in range(count)
    ]


def start(law: Law) -> PosteriorHistory:
    return history.initial_history(initial_beliefs(law, ITEMS))


def same(one, two):
    pairs = ((one.state, two.state), (one.judgments, two.judgments), (one.early_states, two.early_states))
    return one.answers == two.answers and all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def test_posteriors_are_those_of_the_replay_bit_for_bit(subtests):
    for law in SCORE_LAWS.values():
        with subtests.test(law=law):
            hits = hits_of(150)
            history = posterior_history_after_hits(start(law), hits)
            assert np.array_equal(history.state, posteriors_after(law, ITEMS, hits))
            assert history.judgments.sum() == 450


def test_earlier_posteriors_are_those_of_a_replay_that_ends_there(subtests):
    for law in SCORE_LAWS.values():
        with subtests.test(law=law):
            hits = hits_of(40)
            history = posterior_history_after_hits(start(law), hits)
            for number in range(ITEMS):
                seen = [k for k, hit in enumerate(hits) if number in hit.items]
                for judgments, state in history.early_judgment_counts_and_states_of_item(number):
                    until = hits[: seen[judgments - 1] + 1]
                    assert state == posteriors_after(law, ITEMS, until)[:, number].tolist()
                assert [judgments for judgments, _ in history.early_judgment_counts_and_states_of_item(number)] == [
                    k for k in EARLY_JUDGMENTS if k < len(seen)
                ]


def test_of_an_item_nobody_judged_there_is_nothing_earlier():
    law = SCORE_LAWS["easl"]
    assert start(law).early_judgment_counts_and_states_of_item(0) == []
    once = posterior_history_after_hits(start(law), [AnsweredHit(0, [0, 1], [0.2, 0.4])])
    assert once.early_judgment_counts_and_states_of_item(0) == []  # the first judgment is the present one
    assert posterior_history_after_hits(
        once, [AnsweredHit(1, [0, 2], [0.2, 0.4])]
    ).early_judgment_counts_and_states_of_item(0) == [(1, [1.2, 1.8])]


def test_the_same_course_in_any_pieces(subtests):
    for count in (0, 1, 72, 73, 74, 200):
        for law in SCORE_LAWS.values():
            with subtests.test(count=count, law=law):
                hits = hits_of(count)
                whole = posterior_history_after_hits(start(law), hits)
                one_by_one = start(law)
                for hit in hits:
                    one_by_one = posterior_history_after_hits(one_by_one, [hit])
                assert same(whole, one_by_one)
                assert same(
                    whole, posterior_history_after_hits(posterior_history_after_hits(start(law), hits[:73]), hits[73:])
                )


def test_going_on_leaves_the_course_before_as_it_was(subtests):
    for law in SCORE_LAWS.values():
        with subtests.test(law=law):
            before = posterior_history_after_hits(start(law), hits_of(10))
            kept = posterior_history_after_hits(start(law), hits_of(10))
            posterior_history_after_hits(before, hits_of(80, seed=2))
            assert same(before, kept)
