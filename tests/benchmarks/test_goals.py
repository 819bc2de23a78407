"""The table of what goals cost, in small."""

from functools import partial

import numpy as np
import pytest

from app.experiments.simulated_arms import share_on_right_side_of_median
from benchmarks.goals import (
    CHECKS_PER_JUDGMENT,
    MLQE,
    StudySource,
    judgments_until_goal,
    load_mlqe_scores,
    make_annotators_with_habits,
    make_replayed_study,
    make_similar_annotators,
    share_of_top_items_found,
    simulate_goal_figures,
)

pytestmark = pytest.mark.slow

SIMULATED = StudySource("alike", partial(make_similar_annotators, 0.0))


@pytest.mark.parametrize(
    "data", [SIMULATED, StudySource("own", partial(make_annotators_with_habits, 0.3))], ids=lambda data: data.name
)
@pytest.mark.parametrize("rule", ["even", "scores", "best"])
def test_the_more_is_asked_the_more_of_the_best_are_found(data, rule):
    found = np.mean(
        [simulate_goal_figures(data, rule, "easl", share_of_top_items_found, seed) for seed in range(3)], axis=0
    )
    assert found.shape == (20,)
    assert found[0] < found[9] < found[-1] <= 1


def test_near_the_line_asking_pays():
    runs = [
        [simulate_goal_figures(SIMULATED, rule, "easl", share_on_right_side_of_median, seed) for seed in range(4)]
        for rule in ("even", "threshold")
    ]
    even, threshold = np.mean(runs, axis=1)
    assert threshold[9] > even[9]


def test_real_scores_are_asked_as_they_were_given():
    people, truth = make_replayed_study(load_mlqe_scores(MLQE[0]), np.random.default_rng(1))
    said = people.draw_scores_of_annotator(0, [7], np.random.default_rng(2))
    assert truth.shape == (150,)
    assert said * 100 == pytest.approx(np.round(said * 100))


def test_a_goal_is_met_where_the_mean_of_the_runs_first_reaches_it():
    courses = np.array([[0.1, 0.4, 0.6, 0.9], [0.1, 0.2, 0.6, 0.9]])
    assert judgments_until_goal(courses, 0.3) == 2 / CHECKS_PER_JUDGMENT
    assert judgments_until_goal(courses, 0.95) == np.inf
