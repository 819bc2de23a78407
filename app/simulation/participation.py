"""How many annotators a simulated campaign has in all, and how many HITs each of them may still answer.

A campaign may limit the HITs of one person, and may show no item to anybody twice. Then its people can give so many
judgments and no more.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from app.errors import Invalid, pluralize
from app.inference.ground.arrays import Integers
from app.inference.observations.tally import Tally
from app.selection.registry import selection_settings

DEFAULT_ANNOTATORS_IN_TOTAL = 200  # in all, while nobody has answered twice
MIN_ANNOTATORS_IN_TOTAL = 20  # once somebody has
MAX_NEW_ANNOTATORS = 5_000  # beside those who have answered: hardly anybody of more would answer twice
MAX_ANNOTATORS_INPUT = 100_000


@dataclass(frozen=True, eq=False)
class Participation:
    """Who may answer. number: how many they are. there: the numbers of those who have answered before, (J,), who come
    first. may: how many HITs each of all may answer from now on, (number,); None without a limit.
    """

    annotator_count: int
    known_annotators: Integers
    hits_left: Integers | None

    @property
    def place_by_annotator(self) -> dict[int, int]:
        """Of those who have answered before, by their numbers."""
        return {number: place for place, number in enumerate(self.known_annotators.tolist())}


def hits_done_by_annotator(tally: Tally, items_per_hit: int) -> tuple[Integers, Integers]:
    """The numbers of the annotators who have answered, (J,) in order, and about how many HITs of n items each, (J,)."""
    pairs = tally.annotator_item_counts
    annotators, annotator_index = np.unique(pairs.numbers // len(tally.judgments), return_inverse=True)
    return annotators, -(-np.bincount(annotator_index, pairs.counts, len(annotators)).astype(np.intp) // items_per_hit)


def estimate_participation(
    campaign: Any, tally: Tally, annotator_count: int, *, identities_matter: bool
) -> Participation:
    """Who may answer a campaign, of so many annotators in all. by_law: whether it matters who they are; else they are
    strangers, unless who has answered may answer less than others.
    """
    known_annotators, hits_done = hits_done_by_annotator(tally, selection_settings(campaign).items_per_hit)
    hit_limit = campaign.hits_per_annotator
    if not (identities_matter or hit_limit or not campaign.repeat_items):
        known_annotators = known_annotators[:0]
    annotator_count = max(annotator_count, len(known_annotators))
    if hit_limit is None:
        return Participation(annotator_count, known_annotators, None)
    hit_quota = np.full(annotator_count, float(hit_limit))
    hit_quota[: len(known_annotators)] = np.maximum(0.0, hit_limit - hits_done)
    # Of a sample of the items, a person's part of the HITs may be less than one: so many people have one.
    hits_left = np.diff(np.floor(hit_quota.cumsum() + 1e-6), prepend=0.0).astype(np.intp)
    if identities_matter:
        return Participation(annotator_count, known_annotators, hits_left)
    active = np.flatnonzero(hits_left)
    return Participation(len(active), known_annotators[active[active < len(known_annotators)]], hits_left[active])


def items_seen_by_place(participation: Participation, tally: Tally) -> dict[int, set[int]]:
    """The items that each of those who have answered has seen, by their places."""
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


def annotator_total(campaign: Any, tally: Tally, chosen_count: int | None) -> int:
    """How many annotators a campaign has: as is `said`, or as many as are likely, and enough for its judgments.

    Raises `Invalid` (`too_few_annotators`) where so many cannot give the judgments that it wants.
    """
    hits_done = hits_done_by_annotator(tally, selection_settings(campaign).items_per_hit)[1]
    minimum, reason = minimum_annotators(campaign, tally)
    if chosen_count is None:
        return max(
            minimum,
            chao1_estimate(hits_done)
            if (hits_done > 1).any()
            else max(DEFAULT_ANNOTATORS_IN_TOTAL, chao1_estimate(hits_done)),
        )
    if chosen_count < minimum:
        message = f"Too few annotators: {reason}. Say {minimum:,} or more in all, or nothing."
        raise Invalid(message, code="too_few_annotators")
    return chosen_count


def explain_annotator_total(campaign: Any, tally: Tally, annotator_count: int, chosen_count: int | None) -> str:
    """Where the number of annotators in all comes from, as a sentence."""
    answered = len(hits_done_by_annotator(tally, selection_settings(campaign).items_per_hit)[0])
    if chosen_count is not None:
        return f"This is for {pluralize(annotator_count, 'annotator')} in all."
    so_far = (
        f"{answered:,} {'has' if answered == 1 else 'have'} answered so far" if answered else "nobody has answered yet"
    )
    return (
        f"{pluralize(annotator_count, 'annotator')} in all are supposed; {so_far}. If you know how many come, say it."
    )


def minimum_annotators(campaign: Any, tally: Tally) -> tuple[int, str]:
    """The fewest annotators who can give every item the judgments that it wants, and why no fewer, in words."""
    asking = selection_settings(campaign)
    known_annotators, hits_done = hits_done_by_annotator(tally, asking.items_per_hit)
    missing = np.maximum(0, asking.judgments_per_item - tally.judgments)
    bounds = [(max(1, len(known_annotators)), f"{len(known_annotators):,} have answered")]
    if not campaign.repeat_items:
        annotators_per_item = int((tally.annotators + missing).max())
        bounds.append(
            (
                annotators_per_item,
                f"of an item {pluralize(annotators_per_item, 'judgment')} by different people are wanted",
            )
        )
    if hit_limit := campaign.hits_per_annotator:
        hits = -(-int(missing.sum()) // asking.items_per_hit)
        missing_hits = max(0, hits - int(np.maximum(0, hit_limit - hits_done).sum()))
        reason = f"{pluralize(hits, 'HIT')} are wanted, and each of them may answer {hit_limit:,}"
        bounds.append((len(known_annotators) + -(-missing_hits // hit_limit), reason))
    return max(bounds)


def chao1_estimate(hits_done: Integers) -> int:
    """How many people answer, if those who did answered so many HITs, (J,), by how many did so once and twice (Chao
    1984, "Nonparametric estimation of the number of classes in a population", in the form without bias): the fewest
    that are likely, but `FEWEST_PEOPLE` or more. Where each answered once that grows with the square of their number,
    so `MOST_PEOPLE` more at most.
    """
    once, twice = np.count_nonzero(hits_done == 1), np.count_nonzero(hits_done == 2)
    return max(
        MIN_ANNOTATORS_IN_TOTAL, len(hits_done) + min(MAX_NEW_ANNOTATORS, round(once * (once - 1) / (2 * (twice + 1))))
    )
