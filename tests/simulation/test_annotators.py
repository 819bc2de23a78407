"""Simulated annotators do what their parameters say, recovered from what they answer."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.simulation.annotators import (
    CARELESS_KINDS,
    POPULATION_TITLES,
    POPULATIONS,
    HabitAnnotators,
    Habits,
    Population,
    ReplayedAnnotators,
    similarity_to_most_similar_other,
)

MIDDLE = np.full(4000, 0.5)


def rng(seed=1):
    return np.random.default_rng(seed)


def spread_values(n, *, around=0.5):
    """Return true values that are far from each other and from the ends."""
    return np.linspace(0.2, 0.8, n) + around - 0.5


def test_who_has_no_habits_says_the_truth_but_for_noise():
    said = np.array([Habits(noise=0.1).draw_scores_for_items(np.array([0.4]), 0, rng(k))[0] for k in range(800)])
    assert said.mean() == pytest.approx(0.4, abs=0.01)
    assert said.std() == pytest.approx(0.1, rel=0.08)


def test_bias_and_scale_are_a_line_through_the_middle():
    truth = spread_values(3)
    seen = Habits(bias=0.05, scale=0.5, noise=0.0).draw_scores_for_items(truth, 0, rng())
    assert seen == pytest.approx(np.round(0.55 + 0.5 * (truth - 0.5), 2))


def test_who_shuns_the_ends_keeps_as_far_away_from_both():
    said = Habits(noise=0.0, end_aversion=0.2).draw_scores_for_items(np.array([0.0, 0.5, 1.0]), 0, rng())
    assert said == pytest.approx([0.1, 0.5, 0.9])


def test_rounding_is_as_frequent_as_said():
    said = np.round(100 * Habits(noise=0.2, to_5=0.3, to_10=0.4).draw_scores_for_items(MIDDLE, 0, rng())).astype(int)
    tens, fives = np.mean(said % 10 == 0), np.mean(said % 10 == 5)
    assert tens == pytest.approx(0.4 + 0.3 / 2 + 0.3 / 10, abs=0.03)
    assert fives == pytest.approx(0.3 / 2 + 0.3 / 10, abs=0.03)


@pytest.mark.parametrize(
    ("habits", "done", "times"),
    [
        (Habits(noise=0.1, fatigue=0.5), 100, 1.5),
        (Habits(noise=0.1, fatigue=0.5), 0, 1.0),
        (Habits(noise=0.1, learning=1.0), 0, 2.0),
        (Habits(noise=0.1, learning=1.0), 5, 1 + np.exp(-1)),
        (Habits(noise=0.1, context=0.6), 0, 0.4),  # all are the same here
    ],
)
def test_noise_changes_with_what_was_done_and_with_what_stands_beside(habits, done, times):
    assert habits.values_as_perceived_by_annotator(MIDDLE, done, rng()).std() == pytest.approx(0.1 * times, rel=0.05)


def test_nearness_by_hand():
    assert similarity_to_most_similar_other(np.array([0.3, 0.4, 0.9])) == pytest.approx(
        [np.exp(-0.5), np.exp(-0.5), np.exp(-12.5)]
    )
    assert similarity_to_most_similar_other(np.array([0.3])) == [0.0]


@pytest.mark.parametrize("how", CARELESS_KINDS)
def test_who_does_not_look_says_the_same_whatever_is_true(how):
    people = [Habits(careless=how, bias=0.3)] * 2
    low, high = (
        HabitAnnotators(people, np.full(200, truth)).draw_scores_of_annotator(0, range(200), rng())
        for truth in (0.1, 0.9)
    )
    assert low.tolist() == high.tolist()


def test_each_kind_of_carelessness_is_its_own():
    random, line, middle = (Habits(careless=how).draw_scores_for_items(MIDDLE, 0, rng()) for how in CARELESS_KINDS)
    assert random.std() == pytest.approx(np.sqrt(1 / 12), rel=0.05)
    assert len(set(line.tolist())) == 1
    assert np.abs(middle - 0.5).max() < 0.1


@given(
    habits=st.builds(
        Habits,
        bias=st.floats(-1, 1),
        scale=st.floats(0, 3),
        noise=st.floats(0, 1),
        end_aversion=st.floats(0, 1),
        to_5=st.floats(0, 0.5),
        to_10=st.floats(0, 0.5),
        fatigue=st.floats(0, 2),
        learning=st.floats(0, 2),
        context=st.floats(0, 1),
        careless=st.none() | st.sampled_from(CARELESS_KINDS),
    ),
    truth=st.lists(st.floats(0, 1), min_size=1, max_size=8),
    done=st.integers(0, 500),
)
def test_whatever_the_habits_an_answer_is_on_the_steps_of_the_slider(habits, truth, done):
    said = habits.draw_scores_for_items(np.array(truth), done, rng())
    assert said.shape == (len(truth),)
    assert ((said >= 0) & (said <= 1)).all()
    assert said * 100 == pytest.approx(np.round(said * 100))


def test_a_crowd_is_as_its_parameters_say():
    crowd = Population(
        bias_sd=0.1, log_scale_sd=0.3, noise=0.2, log_noise_sd=0.4, careless={"random": 0.2, "middle": 0.1}
    )
    people = crowd.draw_habits(1000, rng())
    assert np.std([one.bias for one in people]) == pytest.approx(0.1, rel=0.1)
    assert np.std(np.log([one.scale for one in people])) == pytest.approx(0.3, rel=0.1)
    assert np.median([one.noise for one in people]) == pytest.approx(0.2, rel=0.1)
    assert np.std(np.log([one.noise for one in people])) == pytest.approx(0.4, rel=0.1)
    assert Counter(one.careless for one in people) == {None: 700, "random": 200, "middle": 100}


def test_who_repeats_real_scores_says_each_as_often_as_it_was_given():
    people = ReplayedAnnotators([[0.1, 0.1, 0.7], [0.5]])
    said = Counter(people.draw_scores_of_annotator(3, [0], rng(k)).item() for k in range(900))
    assert set(said) == {0.1, 0.7}
    assert said[0.1] == pytest.approx(600, abs=60)
    assert people.draw_scores_of_annotator(0, [1, 1], rng()).tolist() == [0.5, 0.5]
    assert people.truth == pytest.approx([0.3, 0.5])


def test_every_crowd_that_is_like_real_people_has_a_title_for_the_forms():
    assert POPULATION_TITLES.keys() == POPULATIONS.keys()
