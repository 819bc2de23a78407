"""Proposal of a HIT for an annotator, and the items that this annotator has seen or holds."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from app.annotation.hits.assignment import AssignmentState
from app.quality.check_positions import PlacedCheck
from app.selection.item_sets import MaskedItems
from app.selection.segments import items_of_hit_with_distinct_outputs


@dataclass(frozen=True)
class HitProposal:
    """Items for one HIT. Only the lease finds out whether they are still free.

    Attributes:
        leader: Item that the rule chose first; None for a HIT of checks.
        items: Items in presentation order.
        reason: Reason for the leader, as in `Draw`.
        probability: Probability of the leader, as in `Draw`.
        iteration: Iteration of the schedule that the HIT is from; None for streaming.
        ordinal: Place in that schedule.
        shared_leader: True if the leader already leads an open HIT, because every candidate does.
        segment: Segment of the outputs, if the items are systems.
        shown_as: For each item the one under which its output is shown; None if each is shown under its own number.
        checks: Checks among the items.

    """

    leader: int | None
    items: list[int]
    reason: str | None
    probability: float | None
    iteration: int | None = None
    ordinal: int | None = None
    shared_leader: bool = False
    segment: int | None = None
    shown_as: list[int] | None = None
    checks: Sequence[PlacedCheck] = ()

    @property
    def visible_items(self) -> list[int]:
        """Items that the page shows: only the first of several with the same output."""
        return items_of_hit_with_distinct_outputs(self.items, self.shown_as)


def items_seen_or_held_in_other_visit(assignment: AssignmentState) -> set[int]:
    """Return the items (for systems: segments) that this annotator has scored or met as checks, or holds in another
    visit.
    """
    return {*assignment.seen_or_met_as_checks, *assignment.held_elsewhere}


def items_never_asked_again(assignment: AssignmentState) -> Collection[int]:
    """Return the items (for systems: segments) that this annotator is never asked about again.

    If items may be shown again, these are the ones that the annotator could not judge. This keeps an annotator from
    being asked about them forever. Items that are only for other people are among them.
    """
    own = (assignment.not_judged or ()) if assignment.repeat_items else assignment.seen_or_met_as_checks
    mask = assignment.items_of_others.mask
    return own if mask is None else MaskedItems(mask) | {*own}


def shuffled_items_with_always_shown(
    assignment: AssignmentState, drawn_items: list[int], rng: np.random.Generator
) -> list[int]:
    """Return all items of a HIT, including those that every HIT shows, in random order."""
    shown = assignment.items_in_every_hit
    return rng.permutation([*drawn_items, *shown]).tolist() if shown else drawn_items
