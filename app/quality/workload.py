"""Work of one annotator in a campaign, and the gold and attention items that it contains; pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import Any

import numpy as np
from scipy.special import bdtr, gammaln

from app.designs.campaign import Campaign
from app.errors import pluralize
from app.inference.ground.arrays import Array
from app.quality.checks import number_of_checks_per_hit

CHECK_KINDS = ("gold", "attention")  # kinds of checks, and names of the rules about them
NEGLIGIBLE = 1e-9
CHECKS_STREAM = 1  # keeps this random number apart from others of the same seed and annotator


@dataclass(frozen=True)
class AnnotatorWorkload:
    """Most work that one person may do in a campaign; None where it is unlimited or not known yet.

    Attributes:
        max_hits: HITs of one person.
        max_checks: HITs with a check of each kind that one person can meet; empty while unknown.
        checks_percent: Share of HITs that show a check, in percent.
        is_visit_fixed: Whether the campaign limits the HITs of one person. Then this share of them shows checks, at
            random places; otherwise each HIT shows checks with this probability.

    """

    max_hits: int | None
    judgments_per_hit: int
    max_checks: Mapping[str, int]
    checks_percent: float
    is_visit_fixed: bool = False

    @property
    def may_meet_all_checks(self) -> bool:
        """Whether one person may do more HITs than there are HITs with checks that they have not met."""
        return bool(self.max_checks) and (self.max_hits is None or self.max_hits > sum(self.max_checks.values()))

    @property
    def meets_all_checks(self) -> bool:
        """Whether everyone who does all their HITs meets all checks."""
        total = sum(self.max_checks.values())
        return self.is_visit_fixed and 0 < total <= (self.max_hits or 0) * self.checks_percent / 100


def largest_workload_of_one_annotator(
    campaign: Campaign, item_count: int | None, check_counts: Mapping[str, int] | None
) -> AnnotatorWorkload:
    """Return the most work of one person.

    Args:
        campaign: The campaign.
        item_count: Number of items; None while unknown.
        check_counts: Number of checks of each kind; None while unknown.

    """
    limits = [campaign.hits_per_annotator]
    judgments_per_hit = campaign.items_per_hit - len(campaign.design.always_shown)
    if not campaign.repeat_items and campaign.segment_count:
        limits.append(campaign.segment_count)
    elif not campaign.repeat_items and item_count is not None:
        limits.append(ceil(item_count / judgments_per_hit))
    max_hits = min((int(limit) for limit in limits if limit is not None), default=None)
    max_checks = (
        {}
        if check_counts is None
        else {kind: check_counts.get(kind, 0) // number_of_checks_per_hit(campaign) for kind in CHECK_KINDS}
    )
    return AnnotatorWorkload(
        max_hits,
        judgments_per_hit,
        max_checks,
        campaign.checks_percent or 0.0,
        is_visit_fixed=campaign.hits_per_annotator is not None,
    )


def distribution_of_hits_with_checks(workload: AnnotatorWorkload) -> Array:
    """Return the probability that 0, 1, ... of one person's HITs show checks, up to all checks; the HITs must be
    limited.
    """
    hits, share, total = workload.max_hits or 0, workload.checks_percent / 100, sum(workload.max_checks.values())
    counts = np.arange(total + 1)
    if workload.is_visit_fixed:
        distances: Array = np.abs(counts - mean_count_of_hits_with_checks(hits, workload.checks_percent, total))
        return np.clip(1.0 - distances, 0.0, None)
    at_most = np.where(counts < min(total, hits), bdtr(np.minimum(counts, hits), hits, share), 1.0)
    probabilities: Array = np.diff(at_most, prepend=0.0)
    return probabilities


def mean_count_of_hits_with_checks(max_hits: int, checks_percent: float, total: int) -> float:
    """Return how many of the `max_hits` of one person show checks on average; at most `total`, then they met all."""
    return min(max_hits * checks_percent / 100, total)


def count_of_hits_with_checks_of_annotator(mean: float, campaign_seed: int, annotator_id: int) -> int:
    """Return how many HITs of this annotator show checks: the mean, rounded up or down by a hash of seed and annotator,
    so that it stays the same at each of their HITs.
    """
    return floor(mean + np.random.default_rng((campaign_seed, annotator_id, CHECKS_STREAM)).random())


def distribution_of_checks_met(workload: AnnotatorWorkload, kind: str) -> Array:
    """Return the probability that one person meets 0, 1, ... checks of a kind; their HITs must be limited.

    Each check is as likely as any other to be among those that the person meets.
    """
    total, available = sum(workload.max_checks.values()), workload.max_checks.get(kind, 0)
    probabilities = np.zeros(available + 1)
    for count, probability in enumerate(distribution_of_hits_with_checks(workload)):
        if probability > NEGLIGIBLE:
            probabilities += probability * probabilities_of_drawn_counts(available, total - available, count)
    return probabilities


def probabilities_of_drawn_counts(wanted: int, unwanted: int, drawn: int) -> Array:
    """Return the hypergeometric probability that 0, 1, ..., `wanted` of the drawn ones are wanted ones."""
    counts = np.arange(wanted + 1)
    is_possible = (counts <= drawn) & (drawn - counts <= unwanted)
    possible = counts[is_possible]
    logs = log_choose(wanted, possible) + log_choose(unwanted, drawn - possible) - log_choose(wanted + unwanted, drawn)
    probabilities = np.zeros(wanted + 1)
    probabilities[is_possible] = np.exp(logs)
    return probabilities


def log_choose(number: int, chosen: Any) -> Any:
    """Return the logarithm of the number of ways to choose `chosen` of a number of things."""
    return gammaln(number + 1) - gammaln(chosen + 1) - gammaln(number - chosen + 1)


def expected_check_count_or_none(workload: AnnotatorWorkload, kind: str) -> float | None:
    """Return how many checks of a kind one person meets on average; None if their HITs are unlimited."""
    if workload.max_hits is None:
        return None
    total = sum(workload.max_checks.values())
    if not total:
        return 0.0
    probabilities = distribution_of_hits_with_checks(workload)
    return float(probabilities @ np.arange(total + 1)) * workload.max_checks.get(kind, 0) / total


def average_share_of_hits_with_checks(workload: AnnotatorWorkload) -> float:
    """Return the average share of one person's HITs that show checks, 0 to 1."""
    if not workload.max_hits or not workload.max_checks:
        return workload.checks_percent / 100
    probabilities = distribution_of_hits_with_checks(workload)
    return float(probabilities @ np.arange(len(probabilities))) / workload.max_hits


def sentence_on_checks_met_by_one_person_or_empty(workload: AnnotatorWorkload) -> str:
    """Return how many checks one person meets, as a sentence; empty if the campaign has none or HITs are unlimited."""
    expected = {kind: expected_check_count_or_none(workload, kind) for kind in CHECK_KINDS}
    meets = [f"{number:.1f} {kind} items" for kind, number in expected.items() if number]
    if not meets:
        return ""
    hits = pluralize(workload.max_hits or 0, "task")
    if workload.meets_all_checks:
        all_checks = " and ".join(
            pluralize(count, f"{kind} item") for kind, count in workload.max_checks.items() if count
        )
        return f"Everyone who does {hits} sees {'all ' * (sum(workload.max_checks.values()) > 1)}{all_checks}."
    return f"With {hits} per person, one person sees {' and '.join(meets)} on average."


def number_of_checks_one_person_meets_text(workload: AnnotatorWorkload, kind: str) -> str:
    """Return how many checks of a kind one person meets, such as "about 0.9", or "at most 3" if HITs are unlimited."""
    expected = expected_check_count_or_none(workload, kind)
    if expected is None:
        return f"at most {workload.max_checks.get(kind, 0):,}"
    kinds = sum(count > 0 for count in workload.max_checks.values())
    is_exact = workload.is_visit_fixed and float(expected).is_integer() and (kinds == 1 or workload.meets_all_checks)
    return f"{expected:g}" if is_exact else f"about {round(expected, 1):g}"
