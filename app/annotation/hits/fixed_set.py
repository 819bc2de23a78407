"""The fixed set of items that every annotator judges once, next to the items that the rule draws.

With `first`, an annotator judges the set before any other item, in HITs that are the same for everyone. With `mixed`,
each HIT has one item of the set until the annotator has judged all of it.
"""

from collections.abc import Collection

import numpy as np

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.hit_proposal import HitProposal, items_seen_or_held_in_other_visit
from app.selection.rule import Draw

FIXED_SET_REASON = "fixed_set"
MIXED_PROBABILITY = 0.5  # of an item of the set, in HITs of one item


def unjudged_fixed_items(assignment: AssignmentState, judged_items: Collection[int]) -> list[int]:
    """Return the items of the fixed set that are not among these, in the order of the set."""
    return [item for item in assignment.always_shown if item not in judged_items] if assignment.has_fixed_set else []


def choose_fixed_items(assignment: AssignmentState, hit_size: int, rng: np.random.Generator) -> list[int]:
    """Return the items of the fixed set that the next HIT of n items shows; empty if the annotator has judged all."""
    items = unjudged_fixed_items(assignment, items_seen_or_held_in_other_visit(assignment))
    if not items or hit_size < 1:
        return []
    if assignment.fixed_set == "first":
        return items[:hit_size]
    return [int(rng.choice(items))] if hit_size > 1 or rng.random() < MIXED_PROBABILITY else []


def proposal_filled_up_from_fixed_set_or_none(
    assignment: AssignmentState, fixed_items: list[int], hit_size: int, rng: np.random.Generator
) -> HitProposal | None:
    """Return a HIT of items of the fixed set alone, filled with others of the set; None if these are too few."""
    others = unjudged_fixed_items(assignment, {*items_seen_or_held_in_other_visit(assignment), *fixed_items})
    items = [*fixed_items, *others][:hit_size]
    if len(items) < max(1, assignment.fewest_items):
        return None
    return HitProposal(items[0], rng.permutation(items).tolist(), FIXED_SET_REASON, None)


def proposal_with_fixed_items(
    draw: Draw, fixed_items: list[int], rng: np.random.Generator, *, shared_leader: bool
) -> HitProposal:
    """Return a HIT of drawn items and items of the fixed set, in random order."""
    items = rng.permutation([*draw.items, *fixed_items]).tolist()
    return HitProposal(draw.leader, items, draw.reason, draw.probability, shared_leader=shared_leader)
