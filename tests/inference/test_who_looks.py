"""Annotators who answer at random are told apart from judgments of a few items."""

import numpy as np
import pytest

from app.inference.ratings import attention_mixture
from app.inference.ratings.annotator_evidence import ScoredJudgments


def simulate_judgments(people, noise, rng, careless=()):
    """Let each of the people judge eight of 25 items."""
    items, each = 25, 8
    truth = rng.beta(2, 2, items)
    shown = np.concatenate([rng.permutation(items)[:each] for _ in range(people)])
    who = np.repeat(np.arange(people), each)
    looks = np.clip(truth[shown] + noise * rng.standard_normal(len(shown)), 0, 1)
    scores = np.where(np.isin(who, careless), rng.random(len(shown)), looks)
    return ScoredJudgments.from_arrays(shown, who, scores, items, people)


def test_those_who_answer_at_random_are_found_and_the_noise_is_that_of_the_others():
    found = attention_mixture.fit(simulate_judgments(30, 0.1, np.random.default_rng(1), careless=[3, 7, 20, 29]))
    assert np.flatnonzero(found.at_random > 0.5).tolist() == [3, 7, 20, 29]
    assert found.noise == pytest.approx(0.1, rel=0.15)


def test_nobody_is_suspected_among_people_who_look():
    found = attention_mixture.fit(simulate_judgments(20, 0.15, np.random.default_rng(2)))
    assert found.at_random.max() < 0.5
    assert found.noise == pytest.approx(0.15, rel=0.15)


def test_nobody_agrees_with_themselves():
    """The first one says what they please where nobody else does, twice: that tells nothing of them."""
    alone = ScoredJudgments.from_arrays(
        np.array([0, 0, 1, 2]), np.array([0, 0, 1, 2]), np.array([0.9, 0.9, 0.1, 0.2]), 3, 3
    )
    others = ScoredJudgments.from_arrays(np.array([0, 1, 2]), np.array([0, 1, 2]), np.array([0.9, 0.1, 0.2]), 3, 3)
    assert attention_mixture.fit(alone).at_random == pytest.approx(attention_mixture.fit(others).at_random, abs=0.2)


def test_people_who_all_say_the_same_are_no_error():
    same = attention_mixture.fit(
        ScoredJudgments.from_arrays(np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.full(4, 0.5), 2, 2)
    )
    assert np.isfinite(same.at_random).all()
    assert 0 < same.noise <= 0.01


def test_that_everybody_answers_at_random_is_told():
    people, items = 6, 300
    who, shown = np.repeat(np.arange(people), items), np.tile(np.arange(items), people)
    scores = np.random.default_rng(1).random(people * items)
    found = attention_mixture.fit(ScoredJudgments.from_arrays(shown, who, scores, items, people))
    assert found.at_random.min() > 0.99
    assert np.isfinite(found.noise)
