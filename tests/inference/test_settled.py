"""The chance that a goal is reached: by hand, against draws, by its properties, and by how often it is right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.inference.observations.tally import Tally
from app.inference.online.law import LawParameters
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings.goal_probabilities import (
    BelievedMeans,
    beliefs_about_means_with_and_without_prior,
    chance_all_on_believed_side,
    chance_best_are_highest,
    chance_order_is_right,
    expected_split_half_correlation,
    item_chances_of_believed_side,
    item_chances_of_right_side_of_best,
)
from app.inference.ratings.moderated_means import ModeratedMeans, moderated_means_of_tally
from app.selection.registry import SELECTION_RULES
from app.selection.rule import SelectionSettings
from app.simulation.annotators import HabitAnnotators, Population
from app.simulation.campaign import SimulatedCampaign

MANY = 1e9  # degrees of freedom, with which t is Normal


def beliefs(centre, error, freedom=MANY):
    size = len(centre)
    return BelievedMeans(np.array(centre), np.full(size, error), np.full(size, freedom))


def test_by_hand_of_two_items():
    # The difference of two Normals that are .1 apart is Normal with an error of .1: Phi(1) = .8413, and with
    # differences of .1 that do not matter Phi(2) = .9772.
    two = beliefs([0.6, 0.5], 0.1 / np.sqrt(2))
    assert chance_best_are_highest(two, two.centre, 1, 0.0) == pytest.approx(0.8413, abs=2e-4)
    assert chance_best_are_highest(two, two.centre, 1, 0.1) == pytest.approx(0.9772, abs=2e-4)
    assert chance_order_is_right(two, two.centre, 0.0) == pytest.approx(0.8413, abs=0.02)
    # Each on its side of .55 with Phi(.7071) = .7602.
    assert chance_all_on_believed_side(two, 0.55, 0.0) == pytest.approx(0.7602**2, abs=1e-4)


def test_as_draws_of_all_true_means_say(subtests):
    for best in (1, 5, 19):
        for within in (0.0, 0.05):
            with subtests.test(best=best, within=within):
                rng = np.random.default_rng(best)
                known = BelievedMeans(rng.normal(0.5, 0.1, 20), rng.uniform(0.01, 0.05, 20), np.full(20, 8.0))
                score = known.centre + rng.normal(0, 0.01, 20)
                drawn = known.centre + known.error * rng.standard_t(8, (40_000, 20))
                order = np.argsort(-score)
                right = drawn[:, order[best:]].max(axis=1) <= drawn[:, order[:best]].min(axis=1) + within
                assert chance_best_are_highest(known, score, best, within) == pytest.approx(right.mean(), abs=0.012)
                sides = np.where(known.centre > 0.5, drawn >= 0.5 - within, drawn <= 0.5 + within).all(axis=1)
                assert chance_all_on_believed_side(known, 0.5, within) == pytest.approx(sides.mean(), abs=0.012)


@pytest.mark.parametrize(("freedom", "first"), [(5.0, 0.8), (1000.0, 0.56)])
def test_of_very_many_others_that_are_alike_the_best_one_is_a_power(freedom, first):
    # All others are below a place with the probability of one of them to the power of their number.
    others, best = 25_000, stats.t(freedom, loc=first, scale=0.02)
    known = BelievedMeans(np.r_[first, np.full(others, 0.5)], np.full(others + 1, 0.02), np.full(others + 1, freedom))
    place = np.linspace(0.5, 1.5, 20_001)
    highest = np.exp(-others * stats.t(freedom, loc=0.5, scale=0.02).sf(place))
    expected = np.diff(highest) @ best.sf((place[1:] + place[:-1]) / 2 - 0.05)
    assert 0.2 < expected < 0.98
    assert chance_best_are_highest(known, known.centre, 1, 0.05) == pytest.approx(expected, abs=5e-4)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1))
def test_a_chance_grows_with_what_does_not_matter(size, seed):
    rng = np.random.default_rng(seed)
    known = BelievedMeans(rng.random(size), rng.uniform(0.01, 0.2, size), rng.uniform(3, 50, size))
    for chance in (
        lambda within: chance_best_are_highest(known, known.centre, 1 + seed % size, within),
        lambda within: chance_all_on_believed_side(known, 0.5, within),
        lambda within: chance_order_is_right(known, known.centre, within),
    ):
        found = [chance(within) for within in (0.0, 0.1, 0.5)]
        assert 0 <= found[0] <= found[1] + 1e-3 <= found[2] + 2e-3 <= 1 + 2e-3


def test_the_best_of_all_items_are_settled_whatever_is_known():
    assert chance_best_are_highest(beliefs([0.1, 0.9], 1.0), np.array([0.1, 0.9]), 2, 0.0) == 1.0


def test_nothing_is_believed_as_long_as_nobody_disagreed_or_items_do_not_differ():
    alike = Tally.empty(4).with_judgments_added([0, 1, 2, 3], [0, 1, 2, 3], [0.5, 0.5, 0.5, 0.5])
    assert beliefs_about_means_with_and_without_prior(moderated_means_of_tally(alike)) == ()
    noise = Tally.empty(3).with_judgments_added([0, 0, 1, 1, 2, 2], range(6), [0.1, 0.9, 0.2, 0.8, 0.15, 0.85])
    assert beliefs_about_means_with_and_without_prior(moderated_means_of_tally(noise)) == ()


def test_an_item_without_a_judgment_lies_where_the_others_lie():
    some = Tally.empty(4).with_judgments_added([0, 0, 1, 1, 2, 2], range(6), [0.1, 0.2, 0.5, 0.6, 0.8, 0.9])
    for found in beliefs_about_means_with_and_without_prior(moderated_means_of_tally(some)):
        assert found.centre[3] == pytest.approx(found.centre[:3].mean(), abs=0.03)
        assert found.error[3] > 3 * found.error[:3].max()


def test_without_the_prior_means_stay_where_they_are():
    known = moderated_means_of_tally(
        Tally.empty(3).with_judgments_added([0, 0, 1, 1, 2, 2], range(6), [0.1, 0.2, 0.5, 0.6, 0.8, 0.9])
    )
    drawn, plain = beliefs_about_means_with_and_without_prior(known)
    assert plain.centre.tolist() == known.mean.tolist()
    assert np.all(np.abs(drawn.centre - drawn.centre.mean()) < np.abs(plain.centre - plain.centre.mean()) + 1e-3)
    assert np.all(drawn.error < plain.error)


def test_halves_that_are_expected_to_agree_do():
    rng = np.random.default_rng(4)
    truth = rng.normal(0.5, 0.15, 4_000)
    scores = truth[:, None] + rng.normal(0, 0.15, (4_000, 8))
    first, second = scores[:, :4].mean(axis=1), scores[:, 4:].mean(axis=1)
    ranks = [np.argsort(np.argsort(half)) for half in (first, second)]
    error = scores.std(axis=1, ddof=1) / np.sqrt(8)
    known = ModeratedMeans(scores.mean(axis=1), error, np.full(4_000, 7.0), None)
    assert expected_split_half_correlation(known) == pytest.approx(stats.pearsonr(*ranks).statistic, abs=0.02)
    assert (
        expected_split_half_correlation(ModeratedMeans(known.mean, np.full(4_000, np.nan), known.freedom, None)) == 0.0
    )


def stopped(seed):
    """Return whether the best 3 of 12 are right when they first seem settled, checked after every HIT."""
    rng = np.random.default_rng(seed)
    people = HabitAnnotators(Population(bias_sd=0.05, noise=0.1).draw_habits(40, rng), rng.beta(2, 2, 12))
    asking = SelectionSettings(judgments_per_item=60, items_per_hit=4, gamma=0.1, best_count=3)
    mine = SimulatedCampaign(SELECTION_RULES["best"], ONLINE_LAWS["easl"], asking, LawParameters(), 12, rng)
    tally = Tally.empty(12)
    for hit in mine.iterate_hits_while_answering_them(people):
        tally = tally.with_judgments_added(hit.items, [hit.annotator] * 4, hit.values)
        known = beliefs_about_means_with_and_without_prior(moderated_means_of_tally(tally))
        if known and all(chance_best_are_highest(one, mine.score, 3, 0.05) >= 0.95 for one in known):
            order = np.argsort(-mine.score)
            return people.true_values[order[3:]].max() <= people.true_values[order[:3]].min() + 0.05
    return None


def test_who_stops_when_it_is_likely_enough_is_right_as_often():
    ends = [stopped(seed) for seed in range(60)]
    right = [end for end in ends if end is not None]
    assert len(right) >= 55
    assert np.mean(right) >= 0.9  # .95 but for one campaign in 20 at a time: 54 of 60 or more with probability .97


def test_of_each_item_by_hand():
    # Of two items the one is above the other, for both with the same probability, Phi(1).
    two = beliefs([0.6, 0.5], 0.1 / np.sqrt(2))
    assert item_chances_of_right_side_of_best(two, two.centre, 1, 0.0) == pytest.approx([0.8413, 0.8413], abs=2e-4)
    assert item_chances_of_believed_side(two, 0.55, 0.0) == pytest.approx([0.7602, 0.7602], abs=1e-4)
    # .1 and .05 from the line with an error of .05, and .05 that does not matter: Phi(3) and Phi(2).
    assert item_chances_of_believed_side(beliefs([0.6, 0.45], 0.05), 0.5, 0.05) == pytest.approx(
        [0.99865, 0.97725], abs=1e-5
    )


def test_of_each_item_as_draws_of_all_true_means_say(subtests):
    for best in (1, 5, 19):
        for within in (0.0, 0.05):
            with subtests.test(best=best, within=within):
                rng = np.random.default_rng(best)
                known = BelievedMeans(rng.normal(0.5, 0.1, 20), rng.uniform(0.01, 0.05, 20), np.full(20, 8.0))
                drawn = known.centre + known.error * rng.standard_t(8, (40_000, 20))
                order = np.argsort(-known.centre)
                mine, others = order[:best], order[best:]
                above, below = np.ones((2, 40_000, 20), bool)
                above[:, mine] = drawn[:, mine] >= drawn[:, others].max(axis=1)[:, None] - within
                below[:, others] = drawn[:, others] <= drawn[:, mine].min(axis=1)[:, None] + within
                found = item_chances_of_right_side_of_best(known, known.centre, best, within)
                assert found == pytest.approx((above & below).mean(axis=0), abs=0.012)
                # Being among the best is no less likely: others may be above, as long as they are few.
                fewest = np.sort(drawn, axis=1)[:, [-best - 1, -best]]
                there = np.where(
                    np.isin(np.arange(20), mine), drawn >= fewest[:, [0]] - within, drawn <= fewest[:, [1]] + within
                )
                assert np.all(found <= there.mean(axis=0) + 0.012)


def test_that_all_items_are_settled_is_less_likely_than_that_each_is():
    known = beliefs([0.1, 0.2, 0.5, 0.6, 0.9], 0.1, 5)
    assert (
        chance_best_are_highest(known, known.centre, 2, 0.05)
        <= item_chances_of_right_side_of_best(known, known.centre, 2, 0.05).min()
    )
    assert chance_all_on_believed_side(known, 0.4, 0.05) == pytest.approx(
        np.prod(item_chances_of_believed_side(known, 0.4, 0.05))
    )
    assert item_chances_of_right_side_of_best(known, known.centre, 5, 0.0).tolist() == [1.0] * 5
