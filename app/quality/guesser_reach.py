"""Number of judgments after which the rule on agreement flags people who guess, given what is usual; pure."""

import math
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
from scipy.special import ndtr

from app.designs.campaign import Campaign
from app.quality.rule_assessments import AssessmentsOfAnnotators
from app.quality.rules.agreement import MIN_COMPARED_JUDGMENTS, MIN_USUAL_CORRELATION, AgreementWithOthers
from app.quality.sequential_limits import ends_of_sequential_correlation_interval
from app.quality.settings import active_rule_choices_by_name
from app.quality.workload import AnnotatorWorkload
from app.text.numbers import format_with_places

ASSUMED_USUAL_AGREEMENT = 0.8  # before the campaign has its own
MAX_JUDGMENTS_TRIED = 10_000
MIN_SHARE_OF_GUESSERS = 0.05
GUESSERS_ERRORS = np.linspace(-3.0, 3.0, 121)  # agreement by chance of people who guess, in standard errors
HALF_OF_GUESSERS, NINE_OF_TEN_GUESSERS = 0.0, 1.28  # their correlations, in standard errors above 0


def sentence_on_judgments_until_guessers_are_flagged_or_empty(
    campaign: Campaign, workload: AnnotatorWorkload, assessments: AssessmentsOfAnnotators
) -> str:
    """Return after how many judgments the rule on agreement flags people who guess, with its limit and the usual
    agreement, and how many one person gives; empty if the rule is off, or for unordered labels.
    """
    rule_choice = active_rule_choices_by_name(campaign).get(AgreementWithOthers.name)
    if rule_choice is None or campaign.design.value_kind == "classes":
        return ""
    known = [
        by_rule[AgreementWithOthers.name].measures.get("usual", math.nan)
        for by_rule in assessments.values()
        if AgreementWithOthers.name in by_rule
    ]
    known = [usual for usual in known if not math.isnan(usual)]
    usual = median(known) if known else ASSUMED_USUAL_AGREEMENT
    given = "With the usual agreement of" if known else "If the usual agreement is"
    beginning = f"{given} {format_with_places(usual, 2)}"
    if usual < MIN_USUAL_CORRELATION:
        return f"{beginning}, people who guess cannot be told from the others."
    limit = float(rule_choice.rule.model_dump()["share_percent"]) / 100 * usual
    half, most = (
        judgments_until_guesser_is_flagged_or_none(campaign, limit, errors_above_zero)
        for errors_above_zero in (HALF_OF_GUESSERS, NINE_OF_TEN_GUESSERS)
    )
    late = f"only after more than {MAX_JUDGMENTS_TRIED:,}"
    sentence = f"{beginning}, half of the people who guess are flagged {f'by {half:,}' if half else late} judgments"
    sentence += f", 9 of 10 {f'by {most:,}' if most else late}." if half else "."
    if workload.max_hits is None:
        return sentence
    given_judgments = workload.max_hits * workload.judgments_per_hit
    share = share_of_guessers_flagged_by(campaign, limit, given_judgments)
    hardly_any = (
        "hardly any such people"
        if share < MIN_SHARE_OF_GUESSERS
        else f"about {max(1, round(10 * share))} of 10 such people"
    )
    caught = "nearly all such people" if share > 1.0 - MIN_SHARE_OF_GUESSERS else hardly_any
    return f"{sentence} One person gives at most {given_judgments:,} here, so the rule flags {caught}."


def share_of_guessers_flagged_by(campaign: Campaign, limit: float, judgments: int) -> float:
    """Return the share of people who guess whose interval is below the limit after so many judgments, 0 to 1.

    Their agreement by chance is about normal on Fisher's scale, with a standard error of 1.
    """
    if judgments < MIN_COMPARED_JUDGMENTS:
        return 0.0
    flagged = [
        errors for errors in GUESSERS_ERRORS if is_guesser_flagged_after(judgments, campaign, limit, float(errors))
    ]
    return float(ndtr(max(flagged))) if flagged else 0.0


def judgments_until_guesser_is_flagged_or_none(
    campaign: Campaign, limit: float, errors_above_zero: float
) -> int | None:
    """Return the number of judgments from which the interval of a guesser's agreement stays below the limit; None if
    `MAX_JUDGMENTS_TRIED` are too few.

    Args:
        campaign: The campaign.
        limit: Agreement, as a correlation, below which the rule flags annotators.
        errors_above_zero: Agreement of the guesser by chance, in standard errors on Fisher's scale.

    """
    return smallest_number_for_which_or_none(
        partial(is_guesser_flagged_after, campaign=campaign, limit=limit, errors_above_zero=errors_above_zero),
        MIN_COMPARED_JUDGMENTS,
        MAX_JUDGMENTS_TRIED,
    )


def is_guesser_flagged_after(judgments: int, campaign: Campaign, limit: float, errors_above_zero: float) -> bool:
    """Return whether the interval of a guesser's agreement is below the limit; the arguments are as above."""
    size, rate = campaign.items_per_hit, 2 * campaign.false_alarms / 1000
    degrees_per_judgment = (size - 1) / size if campaign.design.value_kind == "order" else 1.0
    degrees = max(4, int(judgments * degrees_per_judgment))
    agreement = math.tanh(errors_above_zero / math.sqrt(degrees - 3))
    return ends_of_sequential_correlation_interval(agreement, degrees, rate)[1] < limit


def smallest_number_for_which_or_none(is_enough: Callable[[int], bool], low: int, high: int) -> int | None:
    """Return the smallest number from `low` to `high` that is enough, as all larger ones are; None if none is."""
    if not is_enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle + 1, high)
    return low
