"""Rule that pools several signs of carelessness into one test, so that a short visit can be enough.

Each sign is an event that a careful annotator shows in at most a known share of its cases, whatever came before. The
Bayes factor of a sign (`sequential_limits.log_bayes_factor`) is then a martingale, or falls on average. Half is staked
on each sign and half is kept: the product of (1 + factor) / 2 over all signs is a martingale, too, and exceeds
1 / `false_alarm_rate` with a probability of at most `false_alarm_rate`, however often it is looked at (Ville 1939). A
sign that does not show costs at most a factor of 2, so it cannot hide the others.

The signs of one HIT are read one after the other: its time, its checks, and its values. “Whatever came before” includes
those that were read earlier.
"""

import math
from itertools import count
from math import nan
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import Field
from typing_extensions import override

from app.errors import pluralize
from app.inference.ground.arrays import Array, Integers
from app.inference.observations.judgment_kinds import JudgmentKind
from app.quality.behaviour import AnnotatorBehaviour
from app.quality.rule import (
    MISSED_RATE,
    AssessmentState,
    Percent,
    QualityRule,
    RuleAssessment,
    RuleRequirement,
    share_as_percent,
)
from app.quality.rules.ends_or_middle import has_answer_scale_ends_and_middle
from app.quality.rules.straight_lining import SAME_VALUE_TOLERANCE
from app.quality.sequential_limits import is_event_share_above_limit, log_bayes_factor

MIN_OTHERS_WITH_SIGNS = 2  # the contrast between items says much already, so a few others suffice
MIN_CASES = 10  # with fewer, an annotator does not say what is usual
MIN_CONTRAST = 0.2  # of the scale: items that the others place that far apart are clearly different
CHANCE_OF_REVERSAL = 0.5
MAX_FAST_SHARE = 0.5
FAST_SHARE_OF_USUAL = 1 / 3
CAREFUL_GOLD_FAILURES, CAREFUL_ATTENTION_FAILURES = 0.2, 0.05
REPEAT_TOLERANCE = 0.05  # of the scale
MEASURES = ("repeated in the task", "repeated", "reversed", "seconds")


class Sign(NamedTuple):
    """A sign of carelessness: how often it occurred, and the logarithm of its Bayes factor against a careful person.

    `is_excluded` says whether it occurred too rarely for someone who does not care.
    """

    name: str
    events: int
    cases: int
    log_factor: float
    sentence: str
    is_excluded: bool = False


class PooledSigns(QualityRule):
    """Finds annotators whose checks, pace and values together are too careless for an accident."""

    name: ClassVar[str] = "signs"
    title: ClassVar[str] = "Signs of carelessness"
    condition: ClassVar[str] = (
        "failed checks, speed and values together suggest carelessness; repeated values count only from "
        "{least_percent} % of the answers to clearly different items"
    )
    explanation: ClassVar[str] = (
        "Pools failed gold and attention items, tasks in less than a third of the usual time, the same value for items "
        "that the others place clearly apart, and pairs of such items in reversed order. It works for short visits and "
        "with two or more others. An annotator who sees all items differently from the others can look careless."
    )

    least_percent: Percent = Field(
        default=30, title="Repeated values, at least (%)",
        description="A lower share of repeated values for clearly different items does not count as a sign.",
    )  # fmt: skip

    def measure_for_comparison(self, behaviour: AnnotatorBehaviour) -> tuple[float, ...]:
        """Return the `MEASURES`: the shares of repeated values in a task and overall and of reversed pairs, and the
        median seconds.
        """
        seconds = behaviour.seconds[~np.isnan(behaviour.seconds)]
        counts = (
            count_repeated_and_comparable_values(behaviour, within_hits=True),
            count_repeated_and_comparable_values(behaviour, within_hits=False),
            count_reversed_and_ordered_pairs(behaviour),
        )
        shares = [events / cases if cases >= MIN_CASES else nan for events, cases in counts]
        return (*shares, float(np.median(seconds)) if len(seconds) else nan)

    @override
    def supports_answers(self, answer_kind: JudgmentKind, class_count: int) -> bool:
        """Return whether the answers are on a scale."""
        return has_answer_scale_ends_and_middle(answer_kind, class_count)

    @override
    def least_work_requirement(self, answer_kind: JudgmentKind, false_alarm_rate: float) -> RuleRequirement:
        """Return the number of judgments that suffices if all have the same value and the others' never do."""
        max_share, limit = self.max_repeated_share(0.0), -math.log(false_alarm_rate)
        factors = ((n, log_of_mean_given_logs(log_bayes_factor(n, n, max_share), 0.0)) for n in count(1))
        repeats = next(n for n, factor in factors if log_bayes_factor_with_half_stake_kept(factor) >= limit)
        return RuleRequirement(
            1 + repeats, "judgment", 1 + MIN_CASES, "anyone who always gives the same value", MIN_OTHERS_WITH_SIGNS
        )

    @override
    def assess_annotator(
        self, behaviour: AnnotatorBehaviour, other_measures: Array, false_alarm_rate: float
    ) -> RuleAssessment:
        """Flag the annotator if all signs together are too strong for an accident. Nothing is found if the values
        exclude both an annotator who repeats values and one who gives them at random.
        """
        if not self.supports_answers(behaviour.answer_kind, behaviour.class_count):
            return RuleAssessment("unknown", "The answers are not on a scale with ends and a middle.")
        signs = self.signs_with_enough_cases(behaviour, np.reshape(other_measures, (-1, len(MEASURES))))
        log_evidence = sum(log_bayes_factor_with_half_stake_kept(sign.log_factor) for sign in signs)
        if log_evidence < -math.log(false_alarm_rate):
            excluded = {sign.name for sign in signs if sign.is_excluded}
            state: AssessmentState = "fine" if {"repeated", "reversed"} <= excluded else "unknown"
            seen = "; ".join(sign.sentence for sign in signs if sign.cases)
            return RuleAssessment(state, f"{seen or 'Nothing to compare with yet'}.")
        shown = sorted((sign for sign in signs if sign.log_factor > 0), key=lambda sign: -sign.log_factor)
        measures = {sign.name: float(sign.events) for sign in shown} | {"evidence": log_evidence}
        return RuleAssessment("flagged", f"{'; '.join(sign.sentence for sign in shown)}.", measures)

    def signs_with_enough_cases(self, behaviour: AnnotatorBehaviour, other_measures: Array) -> list[Sign]:
        """Return all signs that can be judged. `other_measures` is (O, 4), in the order of `MEASURES`."""
        usual = [median_or_nan_if_too_few(other_measures[:, place]) for place in range(len(MEASURES))]
        signs = [
            sign_from_results_of_checks("gold", behaviour.gold_met, CAREFUL_GOLD_FAILURES),
            sign_from_results_of_checks("attention", behaviour.attention_met, CAREFUL_ATTENTION_FAILURES),
        ]
        if not (math.isnan(usual[0]) and math.isnan(usual[1])):
            signs.append(self.stronger_repetition_sign(behaviour, usual[0], usual[1]))
        if not math.isnan(usual[2]):
            signs.append(sign_of_reversed_pairs(behaviour, usual[2]))
        if not math.isnan(usual[3]):
            signs.append(sign_of_hasty_hits(behaviour, usual[3]))
        return signs

    def stronger_repetition_sign(
        self, behaviour: AnnotatorBehaviour, usual_in_hits: float, usual_overall: float
    ) -> Sign:
        """Return how often clearly different items got the same value, in a HIT or overall, whichever tells more.

        The mean of the two Bayes factors is a martingale, too, although both read the same values.
        """
        in_hits, overall = (
            self.repetition_sign_of_values(behaviour, usual, within_hits=within_hits)
            for usual, within_hits in ((usual_in_hits, True), (usual_overall, False))
        )
        stronger = max(in_hits, overall, key=lambda sign: sign.log_factor)
        return stronger._replace(
            log_factor=log_of_mean_given_logs(in_hits.log_factor, overall.log_factor),
            is_excluded=overall.is_excluded and (in_hits.is_excluded or not in_hits.cases),
        )

    def repetition_sign_of_values(
        self, behaviour: AnnotatorBehaviour, usual_share: float, *, within_hits: bool
    ) -> Sign:
        """Return how often the value of a clearly different item was repeated; no case without a usual share."""
        events, cases = (
            (0, 0)
            if math.isnan(usual_share)
            else count_repeated_and_comparable_values(behaviour, within_hits=within_hits)
        )
        max_share = 0.99 if math.isnan(usual_share) else self.max_repeated_share(usual_share)
        factor = log_bayes_factor_or_zero(events, cases, max_share)
        items = "clearly different items" + (" of a task" if within_hits else "")
        usual = "" if math.isnan(usual_share) else f" (usual: {share_as_percent(usual_share)})"
        return Sign(
            "repeated",
            events,
            cases,
            factor,
            f"{events} of {cases} times the same answer to {items}{usual}",
            is_event_share_above_limit(cases - events, cases, 1.0 - max_share, MISSED_RATE),
        )

    def max_repeated_share(self, usual_share: float) -> float:
        """Return the largest share of a careful annotator: a third of the way from the usual share to all."""
        return min(max(self.least_percent / 100, (1.0 + 2.0 * usual_share) / 3.0), 0.99)


def log_bayes_factor_or_zero(event_count: int, case_count: int, max_share: float) -> float:
    """Logarithm of the Bayes factor against a careful annotator, 0 without a case."""
    return log_bayes_factor(event_count, case_count, max_share) if case_count else 0.0


def log_of_mean_given_logs(first: float, second: float) -> float:
    """Logarithm of the mean of two numbers that are given as logarithms."""
    return float(np.logaddexp(first, second)) - math.log(2.0)


def log_bayes_factor_with_half_stake_kept(factor: float) -> float:
    """Logarithm of (1 + factor) / 2, given the factor as a logarithm: half of the stake was kept."""
    return log_of_mean_given_logs(0.0, factor)


def median_or_nan_if_too_few(values: Array) -> float:
    """Median of the known values, NaN below `MIN_OTHERS_WITH_SIGNS`."""
    known = values[~np.isnan(values)]
    return float(np.median(known)) if len(known) >= MIN_OTHERS_WITH_SIGNS else nan


def sign_from_results_of_checks(kind: str, was_met: npt.NDArray[np.bool_], max_share: float) -> Sign:
    """Return how many checks of a kind were failed."""
    failed = int((~was_met).sum())
    return Sign(
        kind,
        failed,
        len(was_met),
        log_bayes_factor_or_zero(failed, len(was_met), max_share),
        f"failed {failed} of {len(was_met)} {kind} items",
    )


def sign_of_hasty_hits(behaviour: AnnotatorBehaviour, usual_seconds: float) -> Sign:
    """Return how many HITs took less than a third of the usual time."""
    seconds = behaviour.seconds[~np.isnan(behaviour.seconds)]
    fast = int((seconds < FAST_SHARE_OF_USUAL * usual_seconds).sum())
    usual_text = f"{usual_seconds:.0f} s" if usual_seconds >= 10 else f"{usual_seconds:.1f} s"
    sentence = f"{fast} of {pluralize(len(seconds), 'task')} in less than a third of the usual time ({usual_text})"
    return Sign("fast", fast, len(seconds), log_bayes_factor_or_zero(fast, len(seconds), MAX_FAST_SHARE), sentence)


def sign_of_reversed_pairs(behaviour: AnnotatorBehaviour, usual_share: float) -> Sign:
    """Return how many pairs of clearly different items were put in the reversed order.

    A careful annotator may reverse up to half-way from the usual share to chance.
    """
    events, cases = count_reversed_and_ordered_pairs(behaviour)
    max_share = (max(usual_share, 0.01) + CHANCE_OF_REVERSAL) / 2 if usual_share < CHANCE_OF_REVERSAL else 0.99
    sentence = (
        f"{events} of {cases} times the reversed order of clearly different items (usual: "
        f"{share_as_percent(usual_share)})"
    )
    factor = log_bayes_factor_or_zero(events, cases, max_share)
    is_excluded = is_event_share_above_limit(cases - events, cases, 1.0 - CHANCE_OF_REVERSAL, MISSED_RATE)
    return Sign("reversed", events, cases, factor, sentence, is_excluded)


def smallest_clear_difference_of_means(behaviour: AnnotatorBehaviour) -> float:
    """Return from which difference of the others' means on two items are clearly different: two labels at least."""
    return max(MIN_CONTRAST, 2.0 / (behaviour.class_count - 1) if behaviour.class_count > 1 else 0.0)


def count_repeated_and_comparable_values(behaviour: AnnotatorBehaviour, *, within_hits: bool) -> tuple[int, int]:
    """Return how many judgments repeat the value of the earlier item that the others place farthest away, and how many
    judgments have such an item that is clearly different.

    Only the others' values choose the earlier item, so a careful annotator repeats its value by accident alone.
    """
    judged = behaviour.other_judge_counts > 0
    own, others, hit = behaviour.share[judged], behaviour.others_share[judged], behaviour.hit[judged]
    if len(own) < 2:
        return 0, 0
    step = 10.0 * hit if within_hits else 0.0  # more than the scale, so that a running maximum begins again in each HIT
    highest, lowest = (indices_of_running_maximum(values + step)[:-1] for values in (others, -others))
    is_high_farther = np.abs(others[highest] - others[1:]) >= np.abs(others[lowest] - others[1:])
    farthest = np.where(is_high_farther, highest, lowest)
    is_clear = np.abs(others[farthest] - others[1:]) >= smallest_clear_difference_of_means(behaviour)
    if within_hits:
        is_clear &= hit[farthest] == hit[1:]
    is_same = np.abs(own[farthest] - own[1:]) <= REPEAT_TOLERANCE
    return int((is_clear & is_same).sum()), int(is_clear.sum())


def indices_of_running_maximum(values: Array) -> Integers:
    """Return for each place the index of the largest value up to there, the first one of several, (J,)."""
    running = np.maximum.accumulate(values)
    is_new = np.diff(running, prepend=-np.inf) > 0
    return np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0)).astype(np.intp)


def count_reversed_and_ordered_pairs(behaviour: AnnotatorBehaviour) -> tuple[int, int]:
    """Return how many pairs of clearly different items are in the reversed order, and how many have different values.

    Each judgment is in one pair only, with the one before or after it, so that one odd answer counts once.
    """
    judged = behaviour.other_judge_counts > 0
    length = int(judged.sum()) // 2 * 2
    own, others = behaviour.share[judged][:length], behaviour.others_share[judged][:length]
    own_difference, others_difference = own[1::2] - own[::2], others[1::2] - others[::2]
    is_clear = np.abs(others_difference) >= smallest_clear_difference_of_means(behaviour)
    is_case = is_clear & (np.abs(own_difference) > SAME_VALUE_TOLERANCE)
    return int((is_case & (own_difference * others_difference < 0)).sum()), int(is_case.sum())
