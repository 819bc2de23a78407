"""What is proposed to be asked of an annotator, and what they have seen of it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from app.annotation.hits.assignment import AssignmentState
from app.quality.check_positions import PlacedCheck
from app.selection.segments import distinct_items


@dataclass(frozen=True)
class HitProposal:
    """Items for one HIT; whether they are still free is for the lease to find out. reason, probability: as `Draw` has
    them.
    """

    leader: int | None
    items: list[int]
    reason: str | None
    probability: float | None
    iteration: int | None = None
    ordinal: int | None = None
    shared_leader: bool = False  # drawn although it leads an open HIT, because every candidate does
    segment: int | None = None  # where the items are systems, that of the outputs that are shown
    shown_as: list[int] | None = None  # of each item the one under which its output is shown; None: its own
    checks: Sequence[PlacedCheck] = ()

    @property
    def visible_items(self) -> list[int]:
        """The items of which something is shown: of those with the same output the first."""
        return distinct_items(self.items, self.shown_as)


def seen_or_held_items(assignment: AssignmentState) -> set[int]:
    """The items that this annotator has scored, or holds in another visit; where items are systems, the segments."""
    return {*assignment.seen, *assignment.held_elsewhere}


def items_never_repeated(assignment: AssignmentState) -> Collection[int]:
    """The items that this annotator is not asked about again, whatever is left: where items are shown again, those that
    they could not judge. So nobody is asked for ever about these; where items are systems, the segments.
    """
    return (assignment.not_judged or ()) if assignment.repeat_items else assignment.seen


def presentation_order(assignment: AssignmentState, drawn_items: list[int], rng: np.random.Generator) -> list[int]:
    """All items of a HIT in the random order in which they are shown."""
    return (
        rng.permutation([*drawn_items, *assignment.always_shown]).tolist() if assignment.always_shown else drawn_items
    )
