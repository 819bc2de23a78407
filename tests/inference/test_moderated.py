"""Moderated intervals: by hand, against a plain transcription, by their properties, and by how often they are right."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit
from app.inference.online.trueskill import LAW
from app.inference.ratings.moderated_means import moderated_means_of_tally
from tests.inference.beliefs import posteriors_after


def means_of(judgments, n_items=None, scale=(0.0, 1.0)):
    """Return the means of lists of scores per item, with a different annotator for each judgment."""
    scores = np.array([score for own in judgments for score in own], float)
    items = np.repeat(np.arange(len(judgments)), [len(own) for own in judgments])
    tally = Tally.empty(n_items or len(judgments)).with_judgments_added(items, np.arange(len(items)), scores)
    return moderated_means_of_tally(tally, scale)


def test_by_hand():
    # .2, .4 and .5, .9: SS .02 and .08, pooled .05. m' = 1.1 / 3 and 1.9 / 3, which have the same m'(1 - m'), so that
    # phi m'(1 - m') is .05 too. SS / v are .4 and 1.6: no more apart than by chance, so d0 is 1000; the two items have
    # but 2 degrees of freedom, whose t is 4.30265273.
    found = means_of([[0.2, 0.4], [0.5, 0.9]])
    error = np.sqrt(np.array([50.02, 50.08]) / 1001 / 2)
    assert found.mean == pytest.approx([0.3, 0.7])
    assert found.standard_error == pytest.approx(error)
    assert found.freedom.tolist() == [2.0, 2.0]
    low, high = found.interval()
    assert low == pytest.approx([0.0, 0.7 - 4.30265273 * error[1]])
    assert high == pytest.approx([0.3 + 4.30265273 * error[0], 1.0])


def plainly(judgments):
    """Return (mean, error, freedom) of each item by the formulas of `moderated`, item by item."""
    freedom = [len(own) - 1 for own in judgments]
    squares = [sum((score - np.mean(own)) ** 2 for score in own) for own in judgments]
    several = [k for k in range(len(judgments)) if freedom[k] > 0]
    room = [m * (1 - m) for m in ((sum(own) + 0.5) / (len(own) + 1) for own in judgments)]
    pooled = sum(squares) / sum(freedom)
    phi = sum(squares) / sum(f * r for f, r in zip(freedom, room, strict=True))
    prior = [pooled / 2 + phi * r / 2 for r in room]
    ratios = np.repeat(
        [squares[k] / freedom[k] / prior[k] for k in several], [freedom[k] for k in several]
    )  # so that each counts by its degrees of freedom
    chance = 2 * len(several) / sum(freedom)
    cv2 = max((ratios.var() / ratios.mean() ** 2 - chance) / (1 + chance), 0.001)
    d0 = min(4 + 2 / cv2, 1000)
    return [
        (
            np.mean(own),
            np.sqrt((d0 * prior[k] + squares[k]) / (d0 + freedom[k]) / len(own)),
            min(d0 + freedom[k], sum(freedom)),
        )
        for k, own in enumerate(judgments)
    ]


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_it_is_what_the_formulas_say(spread):
    rng = np.random.default_rng(4)
    noise = 0.1 * np.exp(spread * rng.normal(size=40))
    sizes = rng.integers(1, 7, size=40)
    judgments = [rng.normal(rng.random(), sd, n).clip(0, 1).tolist() for sd, n in zip(noise, sizes, strict=True)]
    found = means_of(judgments)
    columns = np.array(plainly(judgments)).T
    assert np.array([found.mean, found.standard_error, found.freedom]) == pytest.approx(columns)
    assert (found.freedom.max() < 30) == (spread > 0)  # where items differ, less is borrowed from the others


ITEMS = st.lists(st.lists(st.integers(0, 100).map(lambda k: k / 100), min_size=1, max_size=6), min_size=1, max_size=8)


@given(ITEMS)
def test_an_interval_holds_its_mean_and_stays_on_the_scale(judgments):
    found = means_of(judgments)
    low, high = found.interval()
    if np.isnan(found.standard_error).any():
        assert all(len(set(own)) == 1 for own in judgments)
        assert np.isnan(low).all()
        return
    assert (low >= 0).all()
    assert (low <= found.mean + 1e-12).all()
    assert (found.mean <= high + 1e-12).all()
    assert (high <= 1).all()
    assert (found.standard_error > 0).all()


@given(ITEMS)
def test_points_and_shares_tell_the_same(judgments):
    shares, points = (
        means_of(judgments),
        means_of([[100 * score for score in own] for own in judgments], scale=(0.0, 100.0)),
    )
    np.testing.assert_allclose(points.interval(), 100 * np.array(shares.interval()), atol=1e-9)


def test_without_bounds_nothing_is_cut_and_moving_all_scores_moves_the_intervals():
    judgments = [[0.1, 0.2], [0.9, 0.4, 0.3]]
    moved = means_of([[score - 5 for score in own] for own in judgments], scale=None)
    np.testing.assert_allclose(moved.interval(), np.array(means_of(judgments, scale=None).interval()) - 5)
    assert means_of(judgments, scale=None).interval()[0].min() < 0


def test_an_item_judged_once_takes_its_error_from_the_others_and_one_never_judged_has_none():
    found = means_of([[0.4, 0.6], [0.3, 0.5, 0.1], [0.5]], n_items=4)
    assert found.standard_error[2] > found.standard_error[0]
    assert np.isfinite(np.array(found.interval())[:, 2]).all()
    assert np.isnan([found.mean[3], found.standard_error[3], *np.array(found.interval())[:, 3]]).all()


def test_agreement_on_one_item_by_chance_is_no_certainty():
    found = means_of([[0.5, 0.5], [0.2, 0.6], [0.4, 0.9], [0.3, 0.1]])
    low, high = found.interval()
    assert high[0] - low[0] > 0.3


def test_where_no_two_judgments_of_an_item_differ_there_is_no_interval(subtests):
    nothing: list[float] = []
    for judgments in ([[0.5], [0.7]], [[0.1] * 3, [0.7] * 10], [[1.0, 1.0]], [nothing]):
        with subtests.test(judgments=judgments):
            assert np.isnan(means_of(judgments).interval()).all()


def means_by(annotators, n_items=2):
    items, scores = [0, 0, 0, 0, 1, 1], [0.2, 0.6, 0.2, 0.6, 0.3, 0.9]
    return moderated_means_of_tally(Tally.empty(n_items).with_judgments_added(items, annotators, scores))


def test_somebody_who_judges_an_item_again_adds_nothing_to_its_certainty():
    again, once = (
        means_by([0, 1, 0, 1, 0, 1]),
        moderated_means_of_tally(Tally.empty(2).with_judgments_added([0, 0, 1, 1], [0, 1] * 2, [0.2, 0.6, 0.3, 0.9])),
    )
    np.testing.assert_array_equal(again.interval(), once.interval())
    assert means_by([0, 1, 2, 3, 4, 5]).standard_error[0] < again.standard_error[0]
    assert (
        means_by([0, 1, 0, 0, 0, 1]).standard_error[0] > again.standard_error[0]
    )  # three of the four are one person's


def test_a_single_annotator_tells_nothing_of_how_far_annotators_differ():
    assert np.isnan(means_by([0] * 6).interval()).all()


def test_an_interval_of_equal_ends_or_a_level_that_cannot_be_is_refused():
    with pytest.raises(ValueError, match="level"):
        means_of([[0.2, 0.4]]).interval(1.0)


# How often they are right


def crowd(random, items=300, annotators=30, *, bias=0.1, careless=0.0):
    """Return a function from items and annotators to scores of a crowd with biases, widths, uneven noise and random
    answers.
    """
    truth = random.beta(2, 2, items)
    own, width = random.normal(0, bias, annotators), np.exp(random.normal(0, 0.3, annotators))
    noise = 0.15 * np.exp(random.normal(0, 0.4, annotators))
    at_random = random.random(annotators) < careless

    def judge(item, annotator):
        meant = 0.5 + own[annotator] + width[annotator] * (truth[item] - 0.5)
        scores = meant + noise[annotator] * random.normal(size=np.shape(meant))
        scores = np.where(at_random[annotator], random.random(np.shape(meant)), scores)
        return scores.clip(0, 1).round(2)

    return judge


def true_means(judge, items=300, annotators=30):
    everybody = np.meshgrid(np.arange(items), np.arange(annotators), indexing="ij")
    return np.mean([judge(*everybody).mean(axis=1) for _ in range(20)], axis=0)


def ask_annotators(random, judge, per_item, items=300, annotators=30):
    shown = np.repeat(np.arange(items), per_item)
    who = np.concatenate([random.permutation(annotators)[:per_item] for _ in range(items)])
    return shown, who, judge(shown, who)


def test_intervals_hold_the_mean_of_all_annotators_as_often_as_they_say(subtests):
    for per_item in (2, 3, 5):
        for careless in (0.0, 0.15):
            with subtests.test(per_item=per_item, careless=careless):
                hits = []
                for seed in range(6):
                    random = np.random.default_rng(seed)
                    judge = crowd(random, careless=careless)
                    truth = true_means(judge)
                    low, high = moderated_means_of_tally(
                        Tally.empty(300).with_judgments_added(*ask_annotators(random, judge, per_item))
                    ).interval()
                    hits.append((low <= truth) & (truth <= high))
                assert 0.93 < np.mean(hits) < 0.97  # 1800 intervals: a standard error of .005


def test_how_often_other_intervals_are_right_is_told_from_the_judgments_alone():
    told, seen = [], []
    for seed in range(6):
        random = np.random.default_rng(seed)
        judge = crowd(random)
        truth = true_means(judge)
        found = moderated_means_of_tally(Tally.empty(300).with_judgments_added(*ask_annotators(random, judge, 3)))
        for reach in (0.03, 0.08, 0.3):
            low, high = found.mean - reach, found.mean + reach
            told.append(found.expected_coverage_and_width_ratio(low, high)[0])
            seen.append(((low <= truth) & (truth <= high)).mean())
    assert np.reshape(told, (6, 3)).mean(axis=0) == pytest.approx(np.reshape(seen, (6, 3)).mean(axis=0), abs=0.03)


@pytest.mark.parametrize(("bias", "least", "most"), [(0.0, -0.03, 0.03), (0.15, -0.2, -0.05)])
def test_intervals_made_from_orders_hold_the_truth_more_often_than_is_told_where_biases_differ(bias, least, most):
    off = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        truth, strict = random.uniform(0.25, 0.75, 150), random.normal(0, bias, 30)
        hits = [items for _ in range(3) for items in random.permutation(150).reshape(-1, 5)]
        who = np.arange(len(hits)) % 30
        noise = random.normal(0, 0.1, (len(hits), 5))
        scores = (truth[hits] + strict[who, None] + noise).clip(0, 1)
        answers = [*map(AnsweredHit, who.tolist(), np.array(hits).tolist(), scores.tolist())]
        low, high = LAW.family.interval(*posteriors_after(LAW, 150, answers))
        found = moderated_means_of_tally(
            Tally.empty(150).with_judgments_added(np.ravel(hits), np.repeat(who, 5), scores.ravel())
        )
        meant = truth + strict.mean()
        off.append(found.expected_coverage_and_width_ratio(low, high)[0] - ((low <= meant) & (meant <= high)).mean())
    assert least < np.mean(off) < most


def test_other_intervals_are_compared_by_the_chance_that_they_hold_the_truth_and_by_their_width():
    # Means .5 and .3, equal errors e: between them .02 - e^2, so a part k of what is between them is kept.
    found = means_of([[0.49, 0.51], [0.29, 0.31]], n_items=3, scale=None)
    e2 = found.standard_error[0] ** 2
    kept = (0.02 - e2) / 0.02
    low, high = np.array([0.5, 0.3, 0.0]), np.array([0.52, 0.32, 0.0])
    centre = np.array([0.4 + kept * 0.1, 0.4 - kept * 0.1])
    around = stats.t(found.freedom[:2], centre, np.sqrt(kept * e2))
    share, times = found.expected_coverage_and_width_ratio(low, high)
    assert share == pytest.approx(np.mean(around.cdf(high[:2]) - around.cdf(low[:2])))
    own_low, own_high = found.interval()
    assert times == pytest.approx(0.02 / (own_high - own_low)[0])
    assert np.isnan(means_of([[0.5]]).expected_coverage_and_width_ratio(np.zeros(1), np.ones(1))).all()


@given(ITEMS)
def test_an_interval_over_the_whole_scale_holds_the_truth_and_an_empty_one_does_not(judgments):
    found = means_of(judgments)
    all_of_it, nothing = np.ones(len(judgments)), np.zeros(len(judgments))
    if np.isfinite(found.standard_error).all():
        assert found.expected_coverage_and_width_ratio(nothing, all_of_it)[0] == pytest.approx(1.0)
        assert found.expected_coverage_and_width_ratio(nothing, nothing)[0] == pytest.approx(0.0)
