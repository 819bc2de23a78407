import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr
from scipy.stats import norm

from app.inference.ground.metrics import spearman
from app.inference.online import trueskill
from app.inference.online.law import AnsweredHit, LawParameters
from app.inference.online.trueskill_aware import (
    DISCRIMINATIONS,
    INITIAL_BELIEF,
    LAW,
    posteriors_belief_and_decided_pairs_after_hit,
    updated_pair_posteriors,
    winner_chance_at_each_discrimination,
)

TYPICAL = [float(a == 1.0) for a in DISCRIMINATIONS]
RANDOM = [float(a == 0.0) for a in DISCRIMINATIONS]
NO_MARGIN = LawParameters(epsilon=0.0)
PRIOR = (0.5, 1 / 12)


def crowd_of_pairs(rng, *, random_annotators, items=60, annotators=15, per_item=12):
    truth, judgments = rng.normal(0, 1.5, items), items * per_item // 2
    first = rng.integers(items, size=judgments)
    second = (first + rng.integers(1, items, size=judgments)) % items
    who = rng.permutation(np.arange(judgments) % annotators)
    chance = np.where(who < random_annotators, 0.5, expit(truth[first] - truth[second]))
    won = rng.random(judgments) < chance
    rows = zip(who.tolist(), first.tolist(), second.tolist(), won.tolist(), strict=True)
    return truth, [AnsweredHit(k, [i, j], [float(win), float(not win)]) for k, i, j, win in rows]


def beliefs_after(law, hits, items, parameters=NO_MARGIN):
    beliefs = law.initial_beliefs([np.full(items, number) for number in PRIOR], parameters)
    beliefs.apply_hits(hits)
    return beliefs


def test_the_first_belief_is_a_distribution_of_mean_about_1_among_the_careful():
    assert math.fsum(INITIAL_BELIEF) == pytest.approx(1.0, abs=1e-12)
    careful = sum(a * share for a, share in zip(DISCRIMINATIONS, INITIAL_BELIEF, strict=True)) / 0.9
    assert careful == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("scores", [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.9, 0.4]])
def test_a_typical_annotator_has_the_updates_of_trueskill(scores):
    parameters = LawParameters(epsilon=0.0) if len(set(scores)) > 1 else LawParameters()
    posteriors = [(0.1 * k, 0.05 + 0.01 * k) for k in range(len(scores))]
    found, _, _ = posteriors_belief_and_decided_pairs_after_hit(posteriors, scores, TYPICAL, parameters)
    means, variances = zip(*posteriors, strict=True)
    expected = trueskill.update(means, variances, scores, parameters)
    np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-12)


def test_random_answers_change_no_item():
    for scores in ([1.0, 0.0], [0.5, 0.5]):
        assert posteriors_belief_and_decided_pairs_after_hit([PRIOR, (0.2, 0.01)], scores, RANDOM, LawParameters())[
            0
        ] == [PRIOR, (0.2, 0.01)]


def test_by_hand_a_first_pair_moves_equal_items_apart_by_the_mean_of_what_each_discrimination_does():
    (winner, loser), after, decided = posteriors_belief_and_decided_pairs_after_hit(
        [PRIOR, PRIOR], [1.0, 0.0], INITIAL_BELIEF, LawParameters()
    )
    # Between equal items everybody has the chance 1/2, so nothing is learned, and v = phi(0) / Phi(0).
    assert after == pytest.approx(INITIAL_BELIEF)
    pull = sum(
        share * a / math.sqrt(0.02 + a * a / 6) * math.sqrt(2 / math.pi)
        for a, share in zip(DISCRIMINATIONS, INITIAL_BELIEF, strict=True)
    )
    assert winner[0] == pytest.approx(0.5 + pull / 12)
    assert loser[0] == pytest.approx(0.5 - pull / 12)
    assert winner[1] == loser[1] < 1 / 12
    assert decided == 1


def test_posteriors_are_the_moments_of_the_exact_posterior_of_a_pair():
    """Sum over a grid of both skills, and over a."""
    i, j, parameters = (0.3, 0.04), (0.6, 0.09), LawParameters(gamma=0.2)
    chances = winner_chance_at_each_discrimination(i, j, parameters)
    belief = np.array(INITIAL_BELIEF) * chances / np.dot(INITIAL_BELIEF, chances)
    found = updated_pair_posteriors(i, j, belief.tolist(), parameters, is_tied=False)
    skill = np.linspace(-2.5, 3.0, 1101)
    density = norm.pdf(skill, i[0], math.sqrt(i[1]))[:, None] * norm.pdf(skill, j[0], math.sqrt(j[1]))
    difference = skill[:, None] - skill
    weight = density * sum(
        share * ndtr(a * difference / math.sqrt(2 * 0.2**2))
        for a, share in zip(DISCRIMINATIONS, INITIAL_BELIEF, strict=True)
    )
    weight /= weight.sum()
    for axis, (mu, sigma2) in enumerate(found):
        marginal = weight.sum(axis=1 - axis)
        assert mu == pytest.approx(marginal @ skill, abs=1e-6)
        assert sigma2 == pytest.approx(marginal @ skill**2 - (marginal @ skill) ** 2, abs=1e-6)


@settings(max_examples=50)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=2),
    st.lists(st.floats(1e-9, 1e6), min_size=2, max_size=2),
    st.sampled_from([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]),
)
def test_variances_never_grow_and_beliefs_stay_distributions(mu, sigma2, scores):
    posteriors = list(zip(mu, sigma2, strict=True))
    found, belief, _ = posteriors_belief_and_decided_pairs_after_hit(
        posteriors, scores, INITIAL_BELIEF, LawParameters()
    )
    assert all(0.0 < after <= before for (_, after), before in zip(found, sigma2, strict=True))
    assert all(math.isfinite(mean) for mean, _ in found)
    assert math.fsum(belief) == pytest.approx(1.0)
    assert min(belief) >= 0.0


def test_the_pairs_of_a_ranking_say_less_about_its_annotator_than_as_many_hits():
    posteriors = [(0.2 * k, 0.01) for k in range(5)]
    turned = [1.0, 0.75, 0.5, 0.25, 0.0]  # against what is known
    _, belief, decided = posteriors_belief_and_decided_pairs_after_hit(posteriors, turned, INITIAL_BELIEF, NO_MARGIN)
    alone: Sequence[float] = INITIAL_BELIEF
    for k in range(5):
        for other in range(k + 1, 5):
            _, alone, _ = posteriors_belief_and_decided_pairs_after_hit(
                [posteriors[k], posteriors[other]], [1.0, 0.0], alone, NO_MARGIN
            )
    assert decided == 10
    assert INITIAL_BELIEF[0] < belief[0] < alone[0]


def test_ties_and_single_items_say_nothing_about_an_annotator():
    for scores in ([0.5, 0.5], [0.3]):
        posteriors = [(0.0, 0.01), (1.0, 0.01)][: len(scores)]
        assert posteriors_belief_and_decided_pairs_after_hit(posteriors, scores, INITIAL_BELIEF, LawParameters())[
            1:
        ] == (list(INITIAL_BELIEF), 0)


def test_who_answers_at_random_is_recognised_and_scores_are_better_than_trueskills():
    gains = []
    for seed in range(6):
        truth, hits = crowd_of_pairs(np.random.default_rng(seed), random_annotators=4)
        aware, plain = (beliefs_after(law, hits, len(truth)) for law in (LAW, trueskill.LAW))
        gains.append(spearman(aware.state[0], truth) - spearman(plain.state[0], truth))
        described = LAW.annotator_description_by_number(aware.annotators, aware.campaign_state)
        chances = [described[k].at_random for k in range(15)]
        assert np.mean(chances[:4]) > 2 * np.mean(chances[4:])
        assert max(chances[4:]) < 0.99
        reliability = [described[k].reliability for k in range(15)]
        assert np.mean(reliability[:4]) < np.mean(reliability[4:])
    assert np.mean(gains) > 0.03


def test_without_random_annotators_scores_are_as_good_as_trueskills():
    gains = []
    for seed in range(6):
        truth, hits = crowd_of_pairs(np.random.default_rng(seed), random_annotators=0)
        aware, plain = (beliefs_after(law, hits, len(truth)) for law in (LAW, trueskill.LAW))
        gains.append(spearman(aware.state[0], truth) - spearman(plain.state[0], truth))
    assert np.mean(gains) > -0.005


def test_the_state_of_an_annotator_is_the_number_of_decided_pairs_and_the_belief():
    beliefs = beliefs_after(LAW, [AnsweredHit(7, [0, 1], [1.0, 0.0]), AnsweredHit(7, [1, 2], [0.5, 0.5])], 3)
    pairs, *belief = beliefs.annotators[7]
    assert pairs == 1.0
    assert math.fsum(belief) == pytest.approx(1.0)
    assert beliefs.law_state_besides_posteriors().campaign == [1.0]
