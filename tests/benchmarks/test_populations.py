"""The simulated annotators named after data are what a fit to these data gives."""

from dataclasses import asdict

import numpy as np
import pytest

from app.simulation.annotators import POPULATIONS, Population
from benchmarks.annotator_aware import MLQE
from benchmarks.populations import (
    JudgmentsOfPeople,
    figures_of_answers,
    fit_population,
    load_mlqe_judgments,
    simulate_answers,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("languages", MLQE)
def test_they_are_as_the_data_say(languages):
    numbers = {
        name: value
        for name, value in asdict(fit_population(load_mlqe_judgments(languages))).items()
        if name != "careless"
    }
    stored = {name: value for name, value in asdict(POPULATIONS[f"mlqe-{languages}"]).items() if name != "careless"}
    assert numbers == pytest.approx(stored, abs=0.0006)


def test_a_fit_finds_what_made_the_answers():
    true = Population(bias_sd=0.08, log_scale_sd=0.0, noise=0.1, log_noise_sd=0.0, to_5=0.2, to_10=0.3)
    rng = np.random.default_rng(1)
    people = true.draw_habits(30, rng)
    truth = rng.uniform(0.3, 0.7, 400)
    scores = np.concatenate([one.draw_scores_for_items(truth, 0, rng) for one in people])
    found = fit_population(JudgmentsOfPeople(np.tile(np.arange(400), 30), np.repeat(np.arange(30), 400), scores))
    assert found.bias_sd == pytest.approx(np.std([one.bias for one in people], ddof=1), rel=0.1)
    assert found.noise == pytest.approx(0.1, rel=0.1)
    assert (found.to_5, found.to_10) == pytest.approx((0.2, 0.3), abs=0.02)


def test_people_differ_as_those_with_many_judgments_do():
    """A newcomer with five answers is no evidence of how much people differ."""
    rng = np.random.default_rng(3)
    truth, biases = rng.uniform(0.3, 0.7, 400), np.array([-0.1, -0.05, 0.0, 0.05, 0.1])
    scores = np.concatenate([truth + bias + 0.05 * rng.normal(size=400) for bias in biases])
    items, people = np.tile(np.arange(400), 5), np.repeat(np.arange(5), 400)
    alone = fit_population(JudgmentsOfPeople(items, people, scores))
    newcomers = JudgmentsOfPeople(np.r_[items, np.arange(5)], np.r_[people, np.full(5, 5)], np.r_[scores, np.zeros(5)])
    assert fit_population(newcomers).bias_sd == pytest.approx(alone.bias_sd, rel=0.05)


def test_how_simulated_answers_look_comes_near_to_real_ones():
    judged = load_mlqe_judgments("ro-en")
    real, simulated = (
        figures_of_answers(judged),
        figures_of_answers(simulate_answers(POPULATIONS["mlqe-ro-en"], judged, 1)),
    )
    assert simulated == pytest.approx(real, abs=0.05)
