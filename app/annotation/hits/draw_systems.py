"""Draw of a HIT about systems: systems by the campaign's rule, and a segment that distinguishes their outputs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.annotation.hits.assignment import AssignmentState
from app.annotation.hits.campaign_index import CampaignIndex
from app.annotation.hits.hit_proposal import HitProposal, shuffled_items_with_always_shown
from app.selection.rule import Draw
from app.selection.segments import SegmentIndex


@dataclass(frozen=True)
class SystemsDraw:
    """Inputs of a draw for one annotator.

    Attributes:
        assignment: The annotator's assignment.
        campaign_index: The campaign's index, whose items are systems.
        full_items: Systems that get no more HITs now.
        leading_items: Leaders of open HITs.
        leases_by_segment: Number of open HITs of each segment.
        segments_seen: Segments that the annotator has seen, or that are kept for later HITs.
        hit_size: Number of systems to draw, besides those that are always shown.
        rng: The source of the draw.
        wanted_segment: The only segment that the HIT may show; None for any.

    """

    assignment: AssignmentState
    campaign_index: CampaignIndex
    full_items: set[int]
    leading_items: set[int]
    leases_by_segment: Mapping[int, int]
    segments_seen: set[int]
    hit_size: int
    rng: np.random.Generator
    wanted_segment: int | None = None

    @property
    def segments(self) -> SegmentIndex:
        assert self.campaign_index.segments is not None  # noqa: S101  (the items are systems)
        return self.campaign_index.segments

    @property
    def min_systems(self) -> int:
        return self.assignment.selection_settings.min_items + len(self.assignment.always_shown)

    def propose_hit_or_none(self) -> HitProposal | None:
        """Draw systems by the campaign's rule, and the wanted segment, else one that the annotator has not seen.

        A leader is skipped if no segment distinguishes its outputs from those of other systems.
        """
        if self.wanted_segment is not None and self.wanted_segment >= self.segments.segment_count:
            return None  # it has joined since
        skipped_leaders = set[int]()
        exhausted_systems = (
            self.segments.systems_without_unseen_segment(self.segments_seen)
            if self.wanted_segment is None
            else self.segments.systems_without_output(self.wanted_segment)
        )
        for _ in range(self.segments.system_count):
            draw = self.campaign_index.index.draw_hit_or_none(
                self.hit_size,
                seen=exhausted_systems,
                full=self.full_items | skipped_leaders,
                leaders_to_avoid=self.leading_items,
                seen_as_last_resort=self.assignment.repeat_items and self.wanted_segment is None,
                rng=self.rng,
            )
            if draw is None:
                return None
            if (systems_and_segment := self.choose_systems_and_segment_or_none(draw)) is not None:
                items, segment = systems_and_segment
                return HitProposal(
                    draw.leader,
                    items,
                    draw.reason,
                    None if skipped_leaders else draw.probability,
                    shared_leader=draw.leader in self.leading_items,
                    segment=segment,
                    shown_as=self.segments.first_equal_system_of_each_or_none(segment, items),
                )
            skipped_leaders.add(draw.leader)
        return None

    def choose_systems_and_segment_or_none(self, draw: Draw) -> tuple[list[int], int] | None:
        """Return the systems of a HIT in presentation order, and its segment; None if no segment is informative.

        Drawn systems without an output for the segment are replaced by others that have one, and systems with the same
        output by others with a different one.
        """
        always_shown = self.assignment.always_shown
        systems = [*draw.items, *always_shown]
        segment = self.pick_segment_or_none(
            systems, [draw.leader, *always_shown], wanted_different=max(self.min_systems, min(2, len(systems)))
        )
        if segment is None:
            return None
        absent_systems = self.segments.systems_without_output(segment)
        present_systems = [
            draw.leader,
            *(item for item in draw.items if item not in absent_systems and item != draw.leader),
        ]
        drawn: Draw | None = draw
        if len(present_systems) < len(draw.items):
            drawn = self.draw_further_systems_or_none(present_systems, excluded_systems=absent_systems)
        if (
            drawn is None
            or self.segments.count_different_outputs(segment, [*drawn.items, *always_shown]) < self.min_systems
        ):
            return self.draw_differing_systems_and_segment_or_none(draw.leader)
        return shuffled_items_with_always_shown(self.assignment, drawn.items, self.rng), segment

    def draw_differing_systems_and_segment_or_none(self, leader: int) -> tuple[list[int], int] | None:
        """Return systems with pairwise different outputs in presentation order, and their segment.

        The result is None only if no HIT with this leader is informative.
        """
        required_systems = [leader, *self.assignment.always_shown]
        others = [
            item for item in self.campaign_index.index.open_items() if item != leader and item not in self.full_items
        ]
        segment = self.pick_segment_or_none(
            [*required_systems, *others],
            required_systems,
            wanted_different=self.min_systems,
            possible_segments=self.segments.mask_of_comparable_segments(
                required_systems, others, max_others=self.hit_size - 1, min_outputs=self.min_systems
            ),
        )
        if segment is None:
            return None
        excluded_systems = self.segments.systems_without_output(
            segment
        ) | self.segments.systems_with_already_shown_output(
            segment, required_systems, self.rng.permutation(others).tolist()
        )
        drawn = self.draw_further_systems_or_none([leader], excluded_systems=excluded_systems)
        return (
            None
            if drawn is None
            else (shuffled_items_with_always_shown(self.assignment, drawn.items, self.rng), segment)
        )

    def pick_segment_or_none(
        self,
        systems: Sequence[int],
        required_systems: Sequence[int],
        *,
        wanted_different: int,
        possible_segments: npt.NDArray[np.bool_] | None = None,
    ) -> int | None:
        """Pick the segment for a HIT of these systems, as `SegmentIndex.pick_segment_or_none` does."""
        return self.segments.pick_segment_or_none(
            systems,
            required_systems,
            seen_segments=self.segments_seen,
            excluded_segments=self.assignment.not_judged or (),
            wanted_segment=self.wanted_segment,
            seen_as_last_resort=self.assignment.repeat_items,
            open_hit_counts=self.leases_by_segment,
            wanted_different=wanted_different,
            possible_segments=possible_segments,
            rng=self.rng,
        )

    def draw_further_systems_or_none(
        self, initial_systems: Sequence[int], *, excluded_systems: set[int]
    ) -> Draw | None:
        """Draw systems to fill up a HIT of these."""
        return self.campaign_index.index.draw_hit_or_none(
            self.hit_size,
            seen=excluded_systems,
            full=self.full_items,
            leaders_to_avoid=set(),
            seen_as_last_resort=False,
            initial_items=initial_systems,
            rng=self.rng,
        )
