"""Scores that know their annotators: the fit to all judgments, and what it rests on."""

import csv
import gzip
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from app.inference.ground.inestimable import Inestimable
from app.inference.ground.metrics import spearman
from app.inference.ratings import annotator_aware, belief_models
from app.inference.ratings import annotator_beliefs as learning
from app.inference.ratings.annotator_aware import fit
from app.inference.ratings.annotator_beliefs import AnnotatorBeliefs, Crowd
from app.inference.ratings.annotator_evidence import EVIDENCE_SIZE, ScoredJudgments
from app.inference.ratings.annotator_fixed_point import find_fixed_point

RANKME = Path(__file__).parents[2] / "examples" / "data" / "rankme" / "judgments.csv.gz"
COMMON = Crowd(
    0.5,
    0.25,
    np.full(belief_models.RELIABILITY_COUNT, 1 / belief_models.RELIABILITY_COUNT),
    0.2,
    0.3,
    1.0,
    0.2,
    1.0,
    1.0,
)


class Simulated(NamedTuple):
    truth: npt.NDArray[np.float64]
    items: npt.NDArray[np.int64]
    annotators: npt.NDArray[np.int64]
    scores: npt.NDArray[np.float64]
    at_random: npt.NDArray[np.bool_]
    bias: npt.NDArray[np.float64]


def simulated(seed: int, *, share: float = 0.0, each: int = 5, bias: float = 0.15, scale: float = 0.3) -> Simulated:
    """Simulate 150 items judged by `each` of 30 annotators, the last `share` of them at random."""
    rng = np.random.default_rng(seed)
    truth, biases, scales = rng.beta(2, 2, 150), rng.normal(0, bias, 30), np.exp(rng.normal(0, scale, 30))
    noise = 0.15 * np.exp(rng.normal(0, 0.4, 30))
    items = np.repeat(np.arange(150), each)
    annotators = np.concatenate([rng.choice(30, each, replace=False) for _ in range(150)])
    at_random = np.arange(30) >= 30 - round(share * 30)
    y = (
        0.5
        + biases[annotators]
        + scales[annotators] * (truth[items] - 0.5)
        + noise[annotators] * rng.normal(size=len(items))
    )
    y = np.where(at_random[annotators], rng.random(len(items)), y)
    return Simulated(truth, items, annotators, np.round(y.clip(0, 1), 2), at_random, biases)


def mean(items, scores, n_items: int = 150):
    return np.round(np.bincount(items, scores, n_items) / np.bincount(items, minlength=n_items), 9)


def beliefs_of(*, information: float = 1.0, bias: float = 0.0, log_scale: float = 0.0) -> AnnotatorBeliefs:
    one, classes = np.ones(1), np.eye(belief_models.RELIABILITY_COUNT)[1:2]
    return AnnotatorBeliefs(classes, one * information, one, one * 0, one * bias, one * log_scale, one * 0, one * 0)


def scored_judgments(items, annotators, scores) -> ScoredJudgments:
    return annotator_aware.validated_scored_judgments(items, annotators, scores, None, None)


# By hand


def test_a_bias_is_taken_from_the_odds_and_the_ends_stay():
    judgments = scored_judgments([0, 1, 2], [0, 0, 0], [0.0, 0.5, 1.0])
    # A bias of .4 spreads is .1; where y (1 - y) is .2 on average, that is half a logit.
    weight, score = learning.judgment_weights_and_corrected_scores(
        judgments, beliefs_of(bias=0.4), COMMON, trust=1.0, scale_trust=0.0
    )
    assert score == pytest.approx([0, 1 / (1 + np.exp(0.5)), 1])
    assert weight.tolist() == [1, 1, 1]


def test_a_wide_scale_is_drawn_in_around_the_middle():
    judgments = scored_judgments([0, 1, 2], [0, 0, 0], [0.2, 0.5, 1.0])
    _, score = learning.judgment_weights_and_corrected_scores(
        judgments, beliefs_of(log_scale=np.log(2)), COMMON, trust=1.0, scale_trust=1.0
    )
    assert score == pytest.approx([1 / 3, 0.5, 1])  # odds of 1/4 become 1/2


def test_a_judgment_never_counts_for_more_than_one():
    weights = [
        learning.judgment_weights_and_corrected_scores(
            scored_judgments([0], [0], [0.3]), beliefs_of(information=h), COMMON, trust=0.5, scale_trust=0.0
        )[0][0]
        for h in (0.0, 0.5, 1.0, 9.0)
    ]
    assert weights == pytest.approx([0.5, 0.75, 1, 1])


def test_without_trust_a_score_stays_what_it_is_to_the_last_bit():
    judgments = scored_judgments([0, 1], [0, 0], [0.1, 0.7])
    known = beliefs_of(information=0.1, bias=1.0, log_scale=0.5)
    weight, score = learning.judgment_weights_and_corrected_scores(judgments, known, COMMON, trust=0.0, scale_trust=0.0)
    assert weight.tolist() == [1, 1]
    assert score.tolist() == [0.1, 0.7]


def test_the_others_are_heard_without_oneself():
    # Item 0: .2 by annotator 0, .6 and .8 by annotator 1, who judged it twice; item 1: by annotator 0 alone.
    judgments = scored_judgments([0, 0, 0, 1], [0, 1, 1, 0], [0.2, 0.6, 0.8, 0.4])
    known = AnnotatorBeliefs.from_matrix(np.repeat(beliefs_of(information=0.5).to_matrix(), 2, axis=0))
    m, v, plain, weight, *_ = learning.summaries_of_other_judgments_of_item(judgments, known, COMMON)
    assert plain == pytest.approx([0.7, 0.2, 0.2, 0])
    assert weight == pytest.approx([2, 1, 1, 0])
    assert v == pytest.approx([1 / 2, 1 / 1.5, 1 / 1.5, 1])
    assert m == pytest.approx([(0.4 + 1.2) / 2, -1.2 / 1.5, -1.2 / 1.5, 0])


def test_trust_grows_with_the_evidence_that_correcting_helps():
    def trust(*gains: float) -> float:
        totals = np.zeros(learning.TOTALS_SIZE)
        g, w = np.array(gains), np.full(len(gains), 10.0)
        totals[[learning.COMPARED_TOTAL, learning.VOICE_TOTAL]] = w.sum()
        totals[[learning.COMPARED_SQUARES, learning.VOICE_SQUARES]] = (w * w).sum()
        totals[learning.GAINS : learning.GAINS + 3] = (w * g).sum(), (w * w * g).sum(), (w * w * g * g).sum()
        return learning.crowd_from_totals(totals).trust

    # Mean .1, squares .04 over 5, and 6 / (6 - 4) = 3; the squared standard error twice.
    assert trust(0.0, 0.0, 0.1, 0.1, 0.2, 0.2) == pytest.approx(1 - 2 * 3 * 0.04 / 5 / 6 / 0.01)
    assert trust(0.1, 0.1, 0.1, 0.1, 0.1) == pytest.approx(1)
    assert trust(-0.2, 0.2, -0.1, 0.1, 0.1, 0.0) == 0
    assert trust(-0.1, -0.1, -0.1, -0.1, -0.1) == 0
    assert trust(0.3, 0.3, 0.3, 0.3) == 0  # four annotators cannot tell


# An independent oracle


@given(st.integers(1, 6), st.integers(0, 2**32 - 1))
@settings(max_examples=30)
def test_the_likelihood_is_that_of_the_normal_distribution_with_the_bias_integrated_out(n, seed):
    rng = np.random.default_rng(seed)
    y, m, v = rng.random(n), rng.normal(size=n), rng.uniform(0.2, 1)
    evidence = np.zeros((1, EVIDENCE_SIZE))
    evidence[0, :7] = n, y.sum(), (y * y).sum(), m.sum(), (m * m).sum(), (m * y).sum(), n * v
    found, bias, _ = learning.log_likelihood_and_bias_moments(evidence, COMMON)
    for k, s in ((0, 4), (2, 7), (5, 5), (8, 0)):
        r, scale = belief_models.RELIABILITIES[k], np.exp(COMMON.model.log_scale_grid[k, s])
        bias_sd = 0.3 / 0.25 if k == 0 else 0.2
        noise = scale**2 * (1 - r * r * (1 - v)) * np.eye(n)
        centred = (y - 0.5) / 0.25 - scale * r * m
        covariance = noise + bias_sd**2
        expected = multivariate_normal(np.zeros(n), covariance).logpdf(centred) + n / 2 * np.log(2 * np.pi)
        assert found[0, k, s] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert bias[0, k, s] == pytest.approx(bias_sd**2 * np.ones(n) @ np.linalg.solve(covariance, centred))


# Properties

judgments = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 20)), min_size=1, max_size=40)


@given(judgments)
@settings(max_examples=40)
def test_scores_stay_between_the_ends_and_an_item_of_equal_ends_keeps_them(rows):
    items, annotators, points = map(np.array, zip(*rows, strict=True))
    found = fit(items, annotators, points / 20)
    seen = found.estimable
    assert ((found.score[seen] >= 0) & (found.score[seen] <= 1)).all()
    assert (found.weight <= np.bincount(items) + 1e-12).all()
    for item in np.flatnonzero(seen):
        if (end := np.unique(points[items == item])).tolist() in ([0], [20]):
            assert found.score[item] == end[0] / 20
    assert np.isnan(found.score[~seen]).all()


@given(judgments, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_the_order_of_judgments_and_the_numbers_of_annotators_do_not_matter(rows, random):
    items, annotators, points = map(np.array, zip(*rows, strict=True))
    order = random.sample(range(len(rows)), len(rows))
    new_number = np.array(random.sample(range(5), 5))
    again = fit(items[order], new_number[annotators[order]], points[order] / 20, n_annotators=5)
    found = fit(items, annotators, points / 20, n_annotators=5)
    assert again.score == pytest.approx(found.score, abs=1e-6, nan_ok=True)
    assert again.reliability[new_number] == pytest.approx(found.reliability, abs=1e-6, nan_ok=True)


# Recovery


def test_one_of_twelve_who_clicks_at_random_is_called_random_or_nearly_so():
    rng = np.random.default_rng(0)
    truth, chosen = rng.normal(size=60), rng.integers(0, 5, 60)
    careful = np.digitize(0.9 * truth + 0.45 * rng.normal(size=(11, 60)), [-1.2, -0.4, 0.4, 1.2])
    labels = np.vstack([careful, chosen])
    found = fit(np.tile(np.arange(60), 12), np.repeat(np.arange(12), 60), labels.ravel() / 4)
    assert found.random[-1] < 0.9  # 60 answers do not tell a reliability of 0 from one of .2
    assert found.random_or_nearly[-1] > 0.99
    assert found.random_or_nearly[:-1].max() < 0.01


def test_random_annotators_and_biases_are_found():
    data = simulated(1, share=0.3, each=10)
    found = fit(data.items, data.annotators, data.scores)
    assert found.reliability[data.at_random].max() < found.reliability[~data.at_random].min()
    assert found.annotator_weight[data.at_random].mean() < 0.1
    assert found.annotator_weight[~data.at_random].mean() > 0.6
    careful = ~data.at_random
    assert np.corrcoef(found.bias[careful], data.bias[careful])[0, 1] > 0.9
    assert found.trust > 0.9


@pytest.mark.parametrize("share", [0.15, 0.3])
def test_with_random_annotators_5_judgments_tell_what_the_mean_of_10_does(share):
    five = [simulated(seed, share=share) for seed in range(6)]
    ten = [simulated(seed, share=share, each=10) for seed in range(6)]
    aware = np.mean([spearman(fit(d.items, d.annotators, d.scores).score, d.truth) for d in five])
    plain = np.mean([spearman(mean(d.items, d.scores), d.truth) for d in ten])
    assert aware >= plain - 0.003  # of six runs; the benchmark shows a hundred


@pytest.mark.parametrize(("each", "bias"), [(1, 0.15), (2, 0.0), (3, 0.15), (5, 0.0)])
def test_with_careful_annotators_it_is_no_worse_than_the_mean(each, bias):
    campaigns = [simulated(seed, each=each, bias=bias, scale=2 * bias) for seed in range(6)]
    gains = [
        spearman(np.round(fit(d.items, d.annotators, d.scores).score, 9), d.truth)
        - spearman(mean(d.items, d.scores), d.truth)
        for d in campaigns
    ]
    assert np.mean(gains) > -0.005


def test_trust_can_be_given_where_the_judgments_are_no_sure_sign():
    data = simulated(2, each=3, bias=0.0, scale=0.0)
    sure, fully = (fit(data.items, data.annotators, data.scores, trust=trust) for trust in (None, 0.99))
    assert sure.trust < fully.trust == 0.99
    assert fully.annotator_weight[fully.annotator_estimable].min() < 0.9
    untouched = fit(data.items, data.annotators, data.scores, trust=0.0).score
    np.testing.assert_allclose(untouched, mean(data.items, data.scores), atol=1e-9)


@pytest.mark.parametrize("trust", [-0.1, 1.0, np.nan])
def test_a_trust_that_is_no_share_is_refused(trust):
    with pytest.raises(ValueError, match="trust must be at least 0 and less than 1"):
        fit([0], [0], [0.5], trust=trust)


def test_who_always_says_0_is_not_taken_for_precise():
    data = simulated(4, each=5)
    scores = np.where(data.annotators == 0, 0.0, data.scores)
    found = fit(data.items, data.annotators, scores)
    assert found.annotator_weight[0] < np.median(found.annotator_weight)


# On real judgments


def arms(criterion: str):
    with gzip.open(RANKME, "rt", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["criterion"] == criterion]
    for arm in sorted({row["arm"] for row in rows}):
        own = [row for row in rows if row["arm"] == arm]
        points = np.array([float(row["score"]) for row in own])
        scores = (points - 1) / 5 if "likert" in arm else (points / 100).clip(0, 1)
        annotators = np.unique([row["annotator"] for row in own], return_inverse=True)[1]
        yield np.array([int(row["item"]) for row in own]), annotators, scores


def test_on_real_judgments_it_loses_nothing_and_wins_back_half_of_what_random_annotators_cost():
    data = list(arms("informativeness"))
    means = [mean(items, scores, 300) for items, _, scores in data]
    found = []
    for k, (items, annotators, scores) in enumerate(data):
        oracle = np.mean([other - other.mean() for j, other in enumerate(means) if j != k], axis=0)
        people = annotators.max() + 1
        for seed in range(2):
            rng = np.random.default_rng(seed)
            replaced = rng.permutation(people) < round(0.3 * people)
            spoilt = np.where(replaced[annotators], rng.random(len(scores)).round(2), scores)
            found.append(
                [
                    spearman(means[k], oracle),
                    spearman(np.round(fit(items, annotators, scores).score, 9), oracle),
                    spearman(mean(items, spoilt, 300), oracle),
                    spearman(np.round(fit(items, annotators, spoilt).score, 9), oracle),
                ]
            )
    plain, aware, plain_spoilt, aware_spoilt = np.array(found).T
    assert (aware - plain).min() > -0.005
    lost, won = (plain - plain_spoilt).mean(), (aware_spoilt - plain_spoilt).mean()
    assert won > lost / 2


# Where it ends


def hundred_items(arm, seed):
    """Return two random judgments of each of 100 random items of an arm."""
    items, annotators, scores = arm
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(items))
    chosen = [order[items[order] == item][:2] for item in rng.permutation(300)[:100]]
    kept = np.concatenate(chosen)
    who = np.unique(annotators[kept], return_inverse=True)[1]
    return scored_judgments(np.repeat(np.arange(100), 2), who, scores[kept])


@pytest.mark.parametrize("criterion", ["informativeness", "quality"])
def test_a_fit_ends_where_it_stays_and_where_other_starts_end(criterion):
    """With two judgments per item changes get small long before the end, and on one of these arms grow again."""
    for seed, arm in enumerate(arms(criterion)):
        judgments = hundred_items(arm, seed)
        end = find_fixed_point(judgments, max_rounds=1000, tolerance=1e-7)
        assert end.residual <= 1e-7
        further = find_fixed_point(judgments, max_rounds=5000, tolerance=1e-10, starts=[0.3, 20.0])
        assert further.residual <= 1e-10
        np.testing.assert_allclose(end.beliefs.to_matrix(), further.beliefs.to_matrix(), atol=1e-4)


def test_a_fit_ends_also_where_some_always_say_the_same():
    """They are unreliable, but not certainly random: random answers are never narrower than careful ones."""
    for items, annotators, scores in arms("naturalness"):
        always = np.random.default_rng(0).permutation(annotators.max() + 1) < round(0.3 * (annotators.max() + 1))
        fitted = fit(items, annotators, np.where(always[annotators], 0.5, scores))
        assert fitted.converged
        assert fitted.random[always].min() > 0.95


# What cannot be estimated


def test_no_judgments_no_scores():
    with pytest.raises(Inestimable, match="no judgments") as refused:
        fit([], [], [])
    assert refused.value.code == "no_judgments"


def test_one_annotator_gets_plain_scores_and_nothing_is_said_of_them():
    found = fit([0, 1, 1], [0, 0, 0], [0.3, 0.2, 0.6], n_items=3, n_annotators=2)
    assert found.score[:2] == pytest.approx([0.3, 0.4])
    assert found.trust == 0
    for of_annotators in (found.reliability, found.random, found.annotator_weight, found.bias, found.scale):
        assert np.isnan(of_annotators).all()
    assert found.estimable.tolist() == [True, True, False]
    assert np.isnan(found.score[2])
    assert np.isnan(found.standard_error[2])
    assert found.notes[0] == "1 of 3 items have no judgment and no score."
    assert "no one to compare them with" in found.notes[1]


def test_one_judgment_each_tells_no_standard_error():
    found = fit([0, 1], [0, 1], [0.3, 0.9])
    assert found.score == pytest.approx([0.3, 0.9])
    assert np.isnan(found.standard_error).all()
    assert "fewer than 3 items that others have judged too" in found.notes[0]


def test_when_all_say_the_same_the_scores_are_that():
    found = fit(np.repeat(np.arange(6), 4), np.tile(np.arange(4), 6), np.full(24, 0.4))
    assert found.score == pytest.approx(np.full(6, 0.4))
    assert found.standard_error == pytest.approx(np.zeros(6), abs=1e-9)
    assert found.trust == 0
    assert "it uses plain means" in found.notes[-1]


def test_groups_that_share_no_items_are_scored_side_by_side():
    rng = np.random.default_rng(3)
    items, annotators = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20) + np.repeat([0, 3], 30)
    found = fit(items, annotators, rng.random(60))
    assert np.isfinite(found.score).all()


def test_of_what_did_not_settle_the_best_is_shown_with_a_note():
    data = simulated(1)
    found = fit(data.items, data.annotators, data.scores, max_iterations=3)
    assert not found.converged
    assert np.isfinite(found.score).all()
    assert "had not converged after 3 rounds" in found.notes[0]
    assert "settled" not in " ".join(fit(data.items, data.annotators, data.scores).notes)


@pytest.mark.parametrize("score", [-0.1, 1.1, np.nan])
def test_scores_outside_the_scale_are_refused(score):
    with pytest.raises(ValueError, match="score"):
        fit([0], [0], [score])


def test_the_standard_error_is_that_of_a_weighted_mean():
    # No trust: weights 1. Squares around the means .3 and .6: .02 + .02, with 4 - 2 degrees of freedom.
    found = fit([0, 0, 1, 1], [0, 1, 0, 1], [0.2, 0.4, 0.5, 0.7])
    assert found.trust == 0
    assert found.standard_error == pytest.approx(np.sqrt([0.02 / 2, 0.02 / 2]))


def test_somebody_who_is_far_too_mild_but_goes_with_the_others_is_not_said_to_answer_at_random():
    accused, biases = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth, bias = rng.beta(2, 2, 40), np.r_[0.3, rng.normal(0, 0.05, 9)]
        items = np.repeat(np.arange(40), 5)
        annotators = np.concatenate([rng.choice(10, 5, replace=False) for _ in range(40)])
        y = 0.2 + 0.6 * truth[items] + bias[annotators] + rng.normal(0, 0.17, 200)
        found = fit(items, annotators, y.clip(0, 1).round(2))
        accused.append(found.random[0] > 0.5)
        biases.append(found.bias[0])
    assert np.mean(accused) <= 0.1
    assert np.mean(biases) == pytest.approx(0.25, abs=0.05)
