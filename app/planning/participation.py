"""Participation: how many annotators a simulated campaign has in all, and how many HITs each may still answer.

A campaign may limit the HITs of one annotator, and may show no item twice to the same one. Then its annotators can give
a limited number of judgments.
"""

from dataclasses import dataclass

import numpy as np

from app.designs.campaign import Campaign
from app.errors import Invalid, pluralize
from app.inference.ground.arrays import Integers
from app.inference.observations.tally import Tally
from app.planning.forecast_defaults import DEFAULT_ANNOTATORS_IN_TOTAL

MIN_ANNOTATORS_IN_TOTAL = 20  # once an annotator has
MAX_NEW_ANNOTATORS = 5_000  # in addition to those who have answered; of more, hardly any would answer twice


@dataclass(frozen=True, eq=False)
class Participation:
    """Annotators who may answer.

    Attributes:
        known_annotators: Numbers of those who have answered before, (J,); they come first.
        hits_left: How many HITs each may still answer, (annotator_count,); None without a limit.

    """

    annotator_count: int
    known_annotators: Integers
    hits_left: Integers | None

    @property
    def place_by_annotator(self) -> dict[int, int]:
        """Places of the annotators who have answered before, by their numbers."""
        return {number: place for place, number in enumerate(self.known_annotators.tolist())}


def annotator_numbers_and_done_hit_counts(tally: Tally, items_per_hit: int) -> tuple[Integers, Integers]:
    """Return the numbers of the annotators who have answered, (J,) in order, and about how many HITs each answered,
    (J,).
    """
    pairs = tally.annotator_item_counts
    annotators, annotator_index = np.unique(pairs.numbers // len(tally.judgments), return_inverse=True)
    return annotators, -(-np.bincount(annotator_index, pairs.counts, len(annotators)).astype(np.intp) // items_per_hit)


def participation_with_hits_left(
    campaign: Campaign, tally: Tally, annotator_count: int, *, identities_matter: bool
) -> Participation:
    """Return who may answer a campaign that has `annotator_count` annotators in all.

    Args:
        campaign: Settings of the campaign.
        tally: Its judgments.
        annotator_count: Number of annotators in all.
        identities_matter: False if all annotators may be treated as new, unless those who have answered have fewer HITs
        left than others.

    """
    known_annotators, hits_done = annotator_numbers_and_done_hit_counts(
        tally, campaign.selection_settings.items_per_hit
    )
    hit_limit = campaign.hits_per_annotator
    if not (identities_matter or hit_limit or not campaign.repeat_items):
        known_annotators = known_annotators[:0]
    annotator_count = max(annotator_count, len(known_annotators))
    if hit_limit is None:
        return Participation(annotator_count, known_annotators, None)
    hit_quota = np.full(annotator_count, float(hit_limit))
    hit_quota[: len(known_annotators)] = np.maximum(0.0, hit_limit - hits_done)
    # In a sample of the items an annotator may have less than one HIT left: then only some annotators have one.
    hits_left = np.diff(np.floor(hit_quota.cumsum() + 1e-6), prepend=0.0).astype(np.intp)
    if identities_matter:
        return Participation(annotator_count, known_annotators, hits_left)
    active = np.flatnonzero(hits_left)
    return Participation(len(active), known_annotators[active[active < len(known_annotators)]], hits_left[active])


def items_seen_by_annotator_place(participation: Participation, tally: Tally) -> dict[int, set[int]]:
    """Return the items that each annotator who has answered has seen, by place."""
    places, items_by_place = participation.place_by_annotator, dict[int, set[int]]()
    annotators, items = (
        np.divmod(tally.annotator_item_counts.numbers, len(tally.judgments))
        if places
        else (participation.known_annotators, participation.known_annotators)
    )
    for annotator, item in zip(annotators.tolist(), items.tolist(), strict=True):
        if annotator in places:
            items_by_place.setdefault(places[annotator], set()).add(item)
    return items_by_place


def chosen_or_likely_annotator_count_or_refuse(campaign: Campaign, tally: Tally, chosen_count: int | None) -> int:
    """Return the number of a campaign's annotators: the chosen one, or a likely one that suffices for its judgments.

    Raises `Invalid` (`too_few_annotators`) if the chosen number cannot give the judgments that the campaign wants.
    """
    hits_done = annotator_numbers_and_done_hit_counts(tally, campaign.selection_settings.items_per_hit)[1]
    minimum, reason = min_annotator_count_and_reason(campaign, tally)
    if chosen_count is None:
        return max(
            minimum,
            estimate_annotator_count_by_chao1(hits_done)
            if (hits_done > 1).any()
            else max(DEFAULT_ANNOTATORS_IN_TOTAL, estimate_annotator_count_by_chao1(hits_done)),
        )
    if chosen_count < minimum:
        message = f"Too few annotators: {reason}. Enter {minimum:,} or more, or leave the number empty."
        raise Invalid(message, code="too_few_annotators")
    return chosen_count


def sentence_on_origin_of_annotator_count(
    campaign: Campaign, tally: Tally, annotator_count: int, chosen_count: int | None
) -> str:
    """Return a sentence on where the number of annotators comes from."""
    answered = len(annotator_numbers_and_done_hit_counts(tally, campaign.selection_settings.items_per_hit)[0])
    if chosen_count is not None:
        return f"Planned for {pluralize(annotator_count, 'annotator')}."
    so_far = (
        f"{answered:,} {'has' if answered == 1 else 'have'} answered so far" if answered else "no one has answered yet"
    )
    return f"Assumes {pluralize(annotator_count, 'annotator')}; {so_far}. Enter the number if you know it."


def min_annotator_count_and_reason(campaign: Campaign, tally: Tally) -> tuple[int, str]:
    """Return the fewest annotators who can give every item the judgments that it wants, and the reason in words."""
    asking = campaign.selection_settings
    known_annotators, hits_done = annotator_numbers_and_done_hit_counts(tally, asking.items_per_hit)
    missing = np.maximum(0, asking.judgments_per_item - tally.judgments)
    bounds = [(max(1, len(known_annotators)), f"{len(known_annotators):,} have answered")]
    if not campaign.repeat_items:
        annotators_per_item = int((tally.annotators + missing).max())
        bounds.append(
            (
                annotators_per_item,
                f"an item needs {pluralize(annotators_per_item, 'judgment')} by different people",
            )
        )
    if hit_limit := campaign.hits_per_annotator:
        hits = -(-int(missing.sum()) // asking.items_per_hit)
        missing_hits = max(0, hits - int(np.maximum(0, hit_limit - hits_done).sum()))
        reason = f"the campaign needs {pluralize(hits, 'more task')}, and each annotator may answer {hit_limit:,}"
        bounds.append((len(known_annotators) + int(-(-missing_hits // hit_limit)), reason))
    return max(bounds)


def estimate_annotator_count_by_chao1(hits_done: Integers) -> int:
    """Estimate how many people answer in all, from how many answered once and twice.

    This is the estimator of Chao (1984, "Nonparametric estimation of the number of classes in a population"), in the
    form without bias: the fewest that are likely, but at least `MIN_ANNOTATORS_IN_TOTAL`. If all answered once, it
    grows with the square of their number, so at most `MAX_NEW_ANNOTATORS` are added.

    Args:
        hits_done: Number of HITs of each annotator who answered, (J,).

    """
    once, twice = np.count_nonzero(hits_done == 1), np.count_nonzero(hits_done == 2)
    return max(
        MIN_ANNOTATORS_IN_TOTAL, len(hits_done) + min(MAX_NEW_ANNOTATORS, round(once * (once - 1) / (2 * (twice + 1))))
    )
