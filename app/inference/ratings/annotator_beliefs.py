"""Beliefs about annotators from their answers: reliability, bias and scale, and how far to apply them.

The judgment y of annotator j on item i, in [0, 1], is read as

    y = centre + spread * (bias_j + scale_j * (r_j * t_i + sqrt(1 - r_j^2) * noise)),   t_i and noise ~ N(0, 1),

r_j being the correlation of j's answers with the items' values. An annotator with r = 0 answers at random. Careful
annotators have biases and scales near each other, random ones any; how near, how many are random and how reliability is
spread is estimated from all answers (empirical Bayes, expectation-maximisation). Each annotator is compared with the
consensus of the OTHERS on the same items (belief propagation), so agreeing with oneself counts for nothing, and an
annotator who always says 0 gives no evidence of being precise.

The beliefs are applied to the scores only as far as this helps. A judgment is corrected in two ways:

- its weight is at most 1, and lower the less informative its annotator is;
- its odds y / (1 - y) are divided by the annotator's bias, and brought to the common scale. The ends of the scale stay
  fixed: 0 stays 0 and 1 stays 1 for every annotator. Sliders have piles at their ends, and adding a bias would rank the
  items of such a pile by their annotators.

Whether that helps is measured: do annotators agree more (correlation with the consensus of the others, which carries no
bias of their own) when the others are corrected than when they are averaged? With a mean gain d over annotators of
standard error e, the corrections are applied to the part max(0, 1 - 2 e^2 / d^2) (the positive part of James & Stein's
factor, with e^2 taken twice): no evidence, no correction, and the score is the plain mean. Where there is nothing to
correct, a correction by chance then costs little; where there is, hardly less is gained.

This method is the project's own; no paper describes it. All arrays are float64; "items" and "annotators" are numbers
from 0; a judgment is one entry of arrays of equal length.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy

from app.inference.ground.arrays import Array, Mask, portable_exp, portable_log
from app.inference.ratings.annotator_evidence import (
    BIAS_CORRECTED_MEAN,
    COMPARED,
    CORRECTED_MEAN,
    MEAN_KIND_COUNT,
    MIN_EVIDENCE_JUDGMENTS,
    MOMENT_COUNT,
    PLAIN_MEAN,
    YY,
    N,
    ScoredJudgments,
    Y,
    correlation_with_mean_of_others,
)
from app.inference.ratings.belief_models import (
    INFORMATION_BY_RELIABILITY,
    ITEM_CENTRED_MODEL,
    JUDGMENT_CENTRED_MODEL,
    RELIABILITIES,
    RELIABILITY_COUNT,
    BeliefModel,
)

_RANDOM_BIAS_SD, _ODD_SHARE, _ODD_SCALE_SD = 0.3, 0.1, 1.0

# Prior before the first answer, as a number of pseudo-annotators or pseudo-judgments of each kind.
_PRIOR_RANDOM, _PRIOR_CAREFUL, _PRIOR_SD, _PRIOR_JUDGMENTS = 0.25, 2.0, 0.1, 2.0
_PRIOR_SHARES: Final = np.r_[_PRIOR_RANDOM, np.full(RELIABILITY_COUNT - 1, _PRIOR_CAREFUL / (RELIABILITY_COUNT - 1))]
_PRIOR_CENTRE, _PRIOR_SPREAD, _PRIOR_HEADROOM = 0.5, 0.25, 0.15

_CAUTION = 2.0  # times the squared standard error of a gain must be outdone before it is trusted at all
_MIN_EFFECTIVE_ANNOTATORS = 4.0  # annotators, to tell whether correcting them helps
_MAX_LOGIT_BIAS = 4.0  # in logits: a slider of 101 steps tells no more apart
_ANNOTATORS_PER_BLOCK = 4096  # annotators, whose grids are held at once
_ZERO_WEIGHT = 1e-9  # a sum of weights that is but the rounding of a difference

# Columns of the totals over annotators, after those of the classes.
JUDGMENT_TOTAL, SCORE_TOTAL, SCORE_SQUARES, OWN_SQUARES, ACTIVE_TOTAL, BIAS2, SCALE2, INFORMATION_TOTAL = range(
    RELIABILITY_COUNT, RELIABILITY_COUNT + 8
)
COMPARED_TOTAL, COMPARED_SQUARES, VOICE_TOTAL, VOICE_SQUARES = range(RELIABILITY_COUNT + 8, RELIABILITY_COUNT + 12)
GAINS: Final = RELIABILITY_COUNT + 12
TOTALS_SIZE: Final = GAINS + 6


@dataclass(frozen=True, slots=True)
class Crowd:
    """Parameters that all annotators share.

    Attributes:
        centre: The mean score, in scores.
        spread: The standard deviation within an annotator, in scores.
        shares: (CLASSES,) how common each reliability is; sums to 1.
        bias_sd: The standard deviation of careful annotators' biases, in spreads.
        scale_sd: The standard deviation of the logarithm of their scales.
        typical_information: The mean information of a judgment.
        headroom: The mean of y (1 - y): how far a bias of one logit moves a score.
        trust: How far weights and biases are applied, 0 to 1.
        scale_trust: How far scales are applied, beyond that.
        mean_bias: The mean bias over all judgments, in spreads; biases are relative to it.
        model: What is assumed about annotators.

    """

    centre: float
    spread: float
    shares: Array
    bias_sd: float
    scale_sd: float
    typical_information: float
    headroom: float
    trust: float
    scale_trust: float
    mean_bias: float = 0.0
    model: BeliefModel = ITEM_CENTRED_MODEL


@dataclass(frozen=True, slots=True)
class CrowdLevel:
    """Sums from which the level of scores and of biases follows under `ITEM_CENTRED_MODEL`.

    Attributes:
        item_means: Sum over the judged items of their mean scores.
        items: Number of the judged items.
        biases: Sum over all judgments of their annotators' biases, in spreads.

    """

    item_means: float = 0.0
    items: float = 0.0
    biases: float = 0.0

    def mean_bias(self, judgment_count: float) -> float:
        """Return the mean bias over all judgments, in spreads."""
        return self.biases / (judgment_count + _PRIOR_JUDGMENTS)


@dataclass(frozen=True, slots=True)
class AnnotatorBeliefs:
    """Beliefs about each annotator, arrays of one length A.

    Attributes:
        classes: (A, CLASSES) probability of each reliability.
        information: Expected precision that a judgment adds to t, >= 0.
        slope: With offset: a judgment y estimates t as `slope * (y - centre) / spread - offset`, times its precision.
        bias: In spreads, as of a careful annotator.
        log_scale: As of a careful annotator.
        bias2: Expected square of the bias, times the probability of being careful.
        scale2: Expected square of the log scale, likewise.

    """

    classes: Array
    information: Array
    slope: Array
    offset: Array
    bias: Array
    log_scale: Array
    bias2: Array
    scale2: Array

    def to_matrix(self) -> Array:
        """Return one row per annotator, (A, CLASSES + 7)."""
        rest = (self.information, self.slope, self.offset, self.bias, self.log_scale, self.bias2, self.scale2)
        return np.column_stack([self.classes, *rest])

    @classmethod
    def from_matrix(cls, rows: Array) -> "AnnotatorBeliefs":
        """Return the beliefs from the result of `to_matrix`."""
        return cls(rows[:, :RELIABILITY_COUNT], *rows[:, RELIABILITY_COUNT:].T)

    @property
    def expected_reliability(self) -> Array:
        """Expected correlation of an annotator's answers with the items' values, 0 to 1."""
        reliability: Array = (self.classes * RELIABILITIES).sum(axis=1)
        return reliability


def crowd_from_totals(totals: Array, level: CrowdLevel | None = None) -> Crowd:
    """Return the crowd from the sum of all annotators' contributions.

    Args:
        totals: The sum (TOTALS,) of all `annotator_contributions`; zeros before any answer.
        level: The level of scores and biases, under `ITEM_CENTRED_MODEL`; None under `JUDGMENT_CENTRED_MODEL`.

    """
    judgments = totals[JUDGMENT_TOTAL] + _PRIOR_JUDGMENTS
    shares = totals[:RELIABILITY_COUNT] + _PRIOR_SHARES
    shares = np.maximum(shares, 1e-9)  # sums that were added to and taken from can end a hair below 0
    careful = max(float(totals[1:RELIABILITY_COUNT].sum()), 0.0) + _PRIOR_CAREFUL
    within = max(totals[SCORE_SQUARES] - totals[OWN_SQUARES], 0.0) + _PRIOR_JUDGMENTS * _PRIOR_SPREAD**2
    prior_square = _PRIOR_CAREFUL * _PRIOR_SD**2
    headroom = totals[SCORE_TOTAL] - totals[SCORE_SQUARES] + _PRIOR_JUDGMENTS * _PRIOR_HEADROOM
    mean_information = totals[INFORMATION_TOTAL] / totals[JUDGMENT_TOTAL] if totals[JUDGMENT_TOTAL] else 0.0
    score_total, score_count = (
        (totals[SCORE_TOTAL], totals[JUDGMENT_TOTAL]) if level is None else (level.item_means, level.items)
    )
    return Crowd(
        centre=float((score_total + _PRIOR_JUDGMENTS * _PRIOR_CENTRE) / (score_count + _PRIOR_JUDGMENTS)),
        spread=float(np.sqrt(within / max(judgments - totals[ACTIVE_TOTAL], 1.0))),
        shares=shares / shares.sum(),
        bias_sd=float(np.sqrt((max(totals[BIAS2], 0.0) + prior_square) / careful)),
        scale_sd=float(np.sqrt((max(totals[SCALE2], 0.0) + prior_square) / careful)),
        typical_information=float(max(mean_information, 1e-9)),
        headroom=float(max(headroom / judgments, 0.01)),
        trust=_james_stein_factor_of_gain(totals, 0),
        scale_trust=_james_stein_factor_of_gain(totals, 1),
        mean_bias=0.0 if level is None else level.mean_bias(float(totals[JUDGMENT_TOTAL])),
        model=JUDGMENT_CENTRED_MODEL if level is None else ITEM_CENTRED_MODEL,
    )


def _james_stein_factor_of_gain(totals: Array, gain_number: int) -> float:
    """Positive part of James & Stein's factor for one of the two mean gains; 0 for about four annotators or fewer.

    The standard error of a mean over few annotators may be far too small by chance, so its square is multiplied by k /
    (k - 4), k the effective number of annotators by their judgments.
    """
    voices, voices2 = totals[VOICE_TOTAL], totals[VOICE_SQUARES]
    first, second, square = totals[GAINS + 3 * gain_number : GAINS + 3 * gain_number + 3]
    effective = totals[COMPARED_TOTAL] ** 2 / totals[COMPARED_SQUARES] if totals[COMPARED_SQUARES] > 0.0 else 0.0
    if effective <= _MIN_EFFECTIVE_ANNOTATORS or first <= 0.0 or voices2 > 0.99 * voices * voices:
        return 0.0
    mean = first / voices
    variance = max(square - 2.0 * mean * second + mean * mean * voices2, 0.0) / (voices * voices - voices2)
    return float(
        max(0.0, 1.0 - _CAUTION * variance * effective / (effective - _MIN_EFFECTIVE_ANNOTATORS) / (mean * mean))
    )


def estimate_annotator_beliefs(evidence: Array, crowd: Crowd) -> AnnotatorBeliefs:
    """Return the beliefs from `evidence`, (A, EVIDENCE) or its first COMPARED columns; without evidence, those of the
    crowd.
    """
    return _estimate_beliefs_in_blocks_of_annotators(
        evidence,
        lambda block: _annotator_beliefs_from_grid(
            *_log_probabilities_and_bias_moments(block, crowd), crowd.model.log_scale_grid
        ),
    )


def log_probability_of_answers(evidence: Array, crowd: Crowd) -> float:
    """Return the log-probability of each annotator's answers given the others', added up over those who answered."""
    answered = evidence[evidence[:, N] > 0.0]
    blocks = (
        _log_probabilities_and_bias_moments(answered[k : k + _ANNOTATORS_PER_BLOCK], crowd)[0]
        for k in range(0, len(answered), _ANNOTATORS_PER_BLOCK)
    )
    return float(sum(scipy.special.logsumexp(block, axis=(1, 2)).sum() for block in blocks))


def annotator_beliefs_for_display(evidence: Array, crowd: Crowd) -> AnnotatorBeliefs:
    """Return beliefs for people to read: here a few careful annotators may be as far from the others as random ones
    are.

    A very strict annotator who agrees with the others is odd and not random. Scores are made without odd annotators:
    where agreement is weak, random ones would pass for them, and estimates would not settle. Answers near those of the
    others are never called random, even if everyone gives nearly the same answer to everything. All editions of the law
    are shown by the present model.
    """
    crowd = replace(crowd, model=ITEM_CENTRED_MODEL)
    wide_crowd = replace(crowd, bias_sd=_RANDOM_BIAS_SD / crowd.spread, scale_sd=_ODD_SCALE_SD)

    def describe_block(block: Array) -> AnnotatorBeliefs:
        (alike, *more), (odd, *odd_more) = (
            _log_probabilities_and_bias_moments(block, crowd),
            _log_probabilities_and_bias_moments(block, wide_crowd),
        )
        log_weight = np.concatenate([alike + math.log(1.0 - _ODD_SHARE), odd + math.log(_ODD_SHARE)], axis=2)
        bias, bias_variance = (np.concatenate(pair, axis=2) for pair in zip(more, odd_more, strict=True))
        log_weight[_mask_of_annotators_near_others(block), 0] = -np.inf
        return _annotator_beliefs_from_grid(log_weight, bias, bias_variance, np.tile(crowd.model.log_scale_grid, 2))

    return _estimate_beliefs_in_blocks_of_annotators(evidence, describe_block)


def _mask_of_annotators_near_others(evidence: Array) -> Mask:
    """Return whether each annotator is less than half as far from the others' mean as even answers would be, (A,).

    Distances are root mean squares. An even answer u has the expected square E(u - c)^2 = 1/3 - c + c^2.
    """
    w, _, yy, c, cc, yc = evidence[:, COMPARED + 1 : COMPARED + 1 + MOMENT_COUNT].T
    squared_distance, squared_distance_if_even = yy - 2.0 * yc + cc, w / 3.0 - c + cc
    is_near: Mask = np.logical_and(w >= MIN_EVIDENCE_JUDGMENTS, squared_distance < squared_distance_if_even / 4.0)
    return is_near


def _estimate_beliefs_in_blocks_of_annotators(
    evidence: Array, estimate: Callable[[Array], AnnotatorBeliefs]
) -> AnnotatorBeliefs:
    """Apply `estimate` to blocks of annotators, so that the grids of all of them need not be held at once."""
    blocks = [
        estimate(evidence[k : k + _ANNOTATORS_PER_BLOCK])
        for k in range(0, max(len(evidence), 1), _ANNOTATORS_PER_BLOCK)
    ]
    return AnnotatorBeliefs.from_matrix(np.concatenate([block.to_matrix() for block in blocks]))


def _log_probabilities_and_bias_moments(evidence: Array, crowd: Crowd) -> tuple[Array, Array, Array]:
    """Return log-probabilities of answers, reliability and scale, up to a constant, and mean and variance of the bias.

    The bias is integrated out exactly; each array is (A, CLASSES, S).
    """
    log_likelihood, bias, bias_variance = log_likelihood_and_bias_moments(evidence, crowd)
    return log_likelihood + portable_log(crowd.shares)[:, None] + _log_prior_on_scale_grid(crowd), bias, bias_variance


def _annotator_beliefs_from_grid(
    log_weight: Array, bias: Array, bias_variance: Array, log_scale: Array
) -> AnnotatorBeliefs:
    """Return the posterior over a grid of reliability and scale; log_scale (CLASSES, S), the others (A, CLASSES, S)."""
    weight = portable_exp(log_weight - log_weight.max(axis=(1, 2), keepdims=True))
    weight /= weight.sum(axis=(1, 2), keepdims=True)
    careful_weight = weight[:, 1:]
    as_careful = careful_weight / np.maximum(careful_weight.sum(axis=(1, 2), keepdims=True), 1e-300)
    classes = weight.sum(axis=2)
    slope_weight = weight * (RELIABILITIES / (1.0 - RELIABILITIES**2))[:, None] / portable_exp(log_scale)
    return AnnotatorBeliefs(
        classes=classes,
        information=(classes * INFORMATION_BY_RELIABILITY).sum(axis=1),
        slope=slope_weight.sum(axis=(1, 2)),
        offset=(slope_weight * bias).sum(axis=(1, 2)),
        bias=(as_careful * bias[:, 1:]).sum(axis=(1, 2)),
        log_scale=(as_careful * log_scale[1:]).sum(axis=(1, 2)),
        bias2=(careful_weight * (bias[:, 1:] ** 2 + bias_variance[:, 1:])).sum(axis=(1, 2)),
        scale2=(careful_weight * log_scale[1:] ** 2).sum(axis=(1, 2)),
    )


def log_likelihood_and_bias_moments(evidence: Array, crowd: Crowd) -> tuple[Array, Array, Array]:
    """Return the log-likelihood of the answers given m and v, and the mean and variance of the bias; each (A, CLASSES,
    S).

    Given the others, y has mean bias + scale r m and variance scale^2 (1 - r^2 (1 - v)), v taken at its mean.
    """
    n, y, yy, m, mm, my, v = (evidence[:, column, None, None] for column in range(7))
    d = (y - n * crowd.centre) / crowd.spread
    dd = (yy - 2.0 * crowd.centre * y + n * crowd.centre**2) / crowd.spread**2
    dm = (my - crowd.centre * m) / crowd.spread
    r = RELIABILITIES[:, None]
    precision = 1.0 / (1.0 - r * r * (1.0 - v / np.maximum(n, 1.0)))
    scale = portable_exp(crowd.model.log_scale_grid)
    slope = scale * r
    residual = d - slope * m
    residual2 = np.maximum(dd - 2.0 * slope * dm + slope * slope * mm, 0.0)
    prior_sd = np.r_[_RANDOM_BIAS_SD / crowd.spread, np.full(RELIABILITY_COUNT - 1, crowd.bias_sd)][:, None]
    prior_precision = np.array([math.pow(sd, -2) for sd in prior_sd[:, 0]])[:, None]
    bias_precision = precision * n / scale**2 + prior_precision
    bias = precision * residual / scale**2 / bias_precision
    log_likelihood = (
        n * (0.5 * portable_log(precision) - crowd.model.log_scale_grid)
        - 0.5 * precision * residual2 / scale**2
        + 0.5 * bias * bias * bias_precision
        - 0.5 * portable_log(bias_precision * prior_sd**2)
    )
    return log_likelihood, bias, 1.0 / bias_precision


def _log_prior_on_scale_grid(crowd: Crowd) -> Array:
    """Return log-probabilities of the grid of scales: even for random answers, normal around 0 for careful ones."""
    grid = crowd.model.log_scale_grid
    log_density = np.where(np.arange(RELIABILITY_COUNT)[:, None] == 0, 0.0, -0.5 * (grid / crowd.scale_sd) ** 2)
    log_prior = log_density + portable_log(crowd.model.step_widths)
    normalised: Array = log_prior - portable_log(portable_exp(log_prior).sum(axis=1, keepdims=True))
    return normalised


def judgment_weights_and_corrected_scores(
    judgments: ScoredJudgments, beliefs: AnnotatorBeliefs, crowd: Crowd, *, trust: float, scale_trust: float
) -> tuple[Array, Array]:
    """Return each judgment's weight in (0, 1] and corrected score in [0, 1].

    The corrections are applied to the part `trust`, that of scale to the part `trust * scale_trust`.
    """
    weight = 1.0 + trust * (np.minimum(beliefs.information / crowd.typical_information, 1.0) - 1.0)
    if trust == 0.0:  # the scores are to be the very scores, not their logits turned back
        return weight[judgments.annotators], judgments.scores
    bias = trust * logit_bias_of_each_annotator(beliefs, crowd)
    scale = portable_exp(trust * scale_trust * beliefs.log_scale)
    shift = bias + scipy.special.logit(crowd.centre) * (1.0 - scale)
    inside = (judgments.scores > 0.0) & (judgments.scores < 1.0)
    corrected_logits = (
        scipy.special.logit(np.where(inside, judgments.scores, 0.5)) - shift[judgments.annotators]
    ) / scale[judgments.annotators]
    return weight[judgments.annotators], np.where(inside, scipy.special.expit(corrected_logits), judgments.scores)


def logit_bias_of_each_annotator(beliefs: AnnotatorBeliefs, crowd: Crowd) -> Array:
    """Return each annotator's bias on the logit scale, where it moves a score by bias * y (1 - y); (A,)."""
    relative_bias = beliefs.bias - crowd.mean_bias
    return np.clip(relative_bias * crowd.spread / crowd.headroom, -_MAX_LOGIT_BIAS, _MAX_LOGIT_BIAS)


def summaries_of_other_judgments_of_item(judgments: ScoredJudgments, beliefs: AnnotatorBeliefs, crowd: Crowd) -> Array:
    """Summarise the other annotators' judgments of the same item, for each judgment; (OTHERS, J).

    m and v are mean and variance of t; then the mean score and its weight, plain, corrected for bias, and for scale
    too. Without others: m = 0, v = 1, mean score and weight 0.
    """
    columns = [*standardised_mean_and_variance_of_others(judgments, beliefs, crowd)]
    for trust, scale_trust in ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0)):
        weight, score = judgment_weights_and_corrected_scores(
            judgments, beliefs, crowd, trust=trust, scale_trust=scale_trust
        )
        total = judgments.sum_of_others_on_item_of_each_judgment(weight)
        has_others = total > _ZERO_WEIGHT
        mean = judgments.sum_of_others_on_item_of_each_judgment(weight * score) / np.where(has_others, total, 1.0)
        columns += [np.where(has_others, mean, 0.0), np.where(has_others, total, 0.0)]
    return np.array(columns)


def standardised_mean_and_variance_of_others(
    judgments: ScoredJudgments, beliefs: AnnotatorBeliefs, crowd: Crowd
) -> tuple[Array, Array]:
    """Return mean and variance of t by the other annotators' judgments of the same item, for each judgment; (J,)
    each.
    """
    standardised_scores = (judgments.scores - crowd.centre) / crowd.spread
    weighted_votes = beliefs.slope[judgments.annotators] * standardised_scores - beliefs.offset[judgments.annotators]
    precision = 1.0 + np.maximum(
        judgments.sum_of_others_on_item_of_each_judgment(beliefs.information[judgments.annotators]), 0.0
    )
    return judgments.sum_of_others_on_item_of_each_judgment(weighted_votes) / precision, 1.0 / precision


def annotator_contributions(evidence: Array, beliefs: AnnotatorBeliefs, typical_information: float) -> Array:
    """Return each annotator's contribution to the totals, (A, TOTALS); 0 for an annotator without judgments.

    `typical_information` is the mean information of a judgment so far.
    """
    enough = evidence[:, COMPARED] >= MIN_EVIDENCE_JUDGMENTS
    compared_count = np.where(enough, evidence[:, COMPARED], 0.0)
    voice = compared_count * np.minimum(beliefs.information / typical_information, 1.0)
    agreements = [
        correlation_with_mean_of_others(moments)
        for moments in np.split(evidence[:, COMPARED + 1 :], MEAN_KIND_COUNT, axis=1)
    ]
    columns = [compared_count, compared_count * compared_count, voice, voice * voice]
    for before, after in ((PLAIN_MEAN, BIAS_CORRECTED_MEAN), (BIAS_CORRECTED_MEAN, CORRECTED_MEAN)):
        gain = agreements[after] - agreements[before]
        columns += [voice * gain, voice * voice * gain, voice * voice * gain * gain]
    return np.column_stack(
        [crowd_contributions(evidence, beliefs), np.column_stack(columns) * (evidence[:, N, None] > 0.0)]
    )


def crowd_contributions(evidence: Array, beliefs: AnnotatorBeliefs) -> Array:
    """Return the part of `annotator_contributions` that describes the crowd, (A, HEARD), without the agreement."""
    n, y, yy = (evidence[:, column] for column in (N, Y, YY))
    has_answered = n > 0.0
    columns = [
        n,
        y,
        yy,
        y**2 / np.maximum(n, 1.0),
        has_answered,
        beliefs.bias2,
        beliefs.scale2,
        n * beliefs.information,
    ]
    return np.column_stack([beliefs.classes, *columns]) * has_answered[:, None]
