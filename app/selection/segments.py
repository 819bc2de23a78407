"""Choice of the segment of a HIT of systems: one for which all have an output, and these were judged the least.

Pure, and possibly stale as an index may be: it decides what to ask, nothing else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K")
T = TypeVar("T")
NumberArray = npt.NDArray[Any]
NO_OUTPUT = -1


class SegmentIndex:
    """The outputs of N systems for S segments, and how often each output was judged.

    Attributes:
        alike: (S, N), for each output the lowest number of the systems with the same output for this segment, -1 where
        there is none.
        uses: (S, N), the number of answers about each output.

    """

    def __init__(
        self, segments: int, systems: int, segment: NumberArray, system: NumberArray, same_as: NumberArray
    ) -> None:
        """Build the index from the outputs' columns segment, system and same_as, (M,) each."""
        self.first_with_same_output = np.full((segments, systems), NO_OUTPUT, np.int32)
        self.first_with_same_output[segment, system] = same_as
        self.uses = np.zeros((segments, systems), np.int32)
        self.complete = len(segment) == self.first_with_same_output.size
        self.all_differ = bool((same_as == system).all())

    @property
    def system_count(self) -> int:
        return self.first_with_same_output.shape[1]

    @property
    def segment_count(self) -> int:
        return self.first_with_same_output.shape[0]

    def update_output_judgment_counts(self, outputs_with_count: Iterable[tuple[int, int, int]]) -> None:
        """Update how often outputs were judged: a segment, a system and a count, which only grows."""
        for segment, system, count in outputs_with_count:
            self.uses[segment, system] = max(self.uses[segment, system], count)

    def systems_without_usable_segment(self, min_outputs: int, required_systems: Collection[int]) -> list[int]:
        """Return systems without a segment that has this many different outputs, including those of the required
        systems.
        """
        is_usable = self._mask_of_segments_with_outputs_of(required_systems) & (
            count_distinct_outputs_of_each_row(self.first_with_same_output) >= min_outputs
        )
        return np.flatnonzero((self.first_with_same_output[is_usable] == NO_OUTPUT).all(axis=0)).tolist()

    def mask_of_comparable_segments(
        self, required_systems: Collection[int], other_systems: Collection[int], *, max_others: int, min_outputs: int
    ) -> NumberArray:
        """Return the segments, (S,), that a HIT of all required and at most `max_others` other systems can show.

        Such a segment has outputs of all required systems, and enough different outputs.
        """
        of_must, of_all = (
            count_distinct_outputs_of_each_row(self.first_with_same_output[:, [*those]])
            for those in (required_systems, (*required_systems, *other_systems))
        )
        is_comparable: NumberArray = self._mask_of_segments_with_outputs_of(required_systems) & (
            np.minimum(of_must + max_others, of_all) >= min_outputs
        )
        return is_comparable

    def can_any_segment_compare_systems(
        self, wanted_systems: Collection[int], always_shown_systems: Collection[int], *, n: int, min_outputs: int
    ) -> bool:
        """Return whether any HIT of n of these systems, and those always shown, has this many different outputs."""
        return any(
            self.mask_of_comparable_segments(
                [leader, *always_shown_systems], {*wanted_systems} - {leader}, max_others=n - 1, min_outputs=min_outputs
            ).any()
            for leader in wanted_systems
        )

    def systems_with_already_shown_output(
        self, segment: int, shown_systems: Iterable[int], other_systems: Iterable[int]
    ) -> set[int]:
        """Return the other systems that have the same output as a shown or a previous one."""
        seen_outputs, duplicates = set(self.first_with_same_output[segment, [*shown_systems]].tolist()), set[int]()
        for system in other_systems:
            output = self.first_with_same_output.item(segment, system)
            if output in seen_outputs:
                duplicates.add(system)
            seen_outputs.add(output)
        return duplicates

    def systems_without_unseen_segment(self, seen_segments: Collection[int]) -> set[int]:
        """Return the systems without an output for another segment than these."""
        if self.complete and len(seen_segments) < len(self.first_with_same_output):
            return set()
        fresh = self._mask_of_segments_not_among(seen_segments)
        return set(np.flatnonzero((self.first_with_same_output[fresh] == NO_OUTPUT).all(axis=0)).tolist())

    def systems_without_output(self, segment: int) -> set[int]:
        return (
            set() if self.complete else set(np.flatnonzero(self.first_with_same_output[segment] == NO_OUTPUT).tolist())
        )

    def pick_segment_or_none(
        self,
        systems: Sequence[int],
        required_systems: Collection[int],
        *,
        seen_segments: Collection[int],
        excluded_segments: Collection[int],
        seen_as_last_resort: bool,
        open_hit_counts: Mapping[int, int],
        wanted_different: int,
        possible_segments: NumberArray | None = None,
        wanted_segment: int | None = None,
        rng: np.random.Generator,
    ) -> int | None:
        """Pick the segment for a HIT of these systems.

        Preferred, in this order, are segments with outputs of the most systems, with enough different outputs, with the
        fewest judgments of these outputs, and with the fewest of all outputs; ties at random.

        Args:
            systems: The systems of the HIT.
            required_systems: Systems that the HIT must show.
            seen_segments: The annotator's segments; with `seen_as_last_resort`, they are picked if there are no others.
            excluded_segments: Segments that are never picked for the annotator.
            seen_as_last_resort: Whether an annotator may see a segment again.
            open_hit_counts: Number of open HITs of each segment.
            wanted_different: The preferred number of different outputs.
            possible_segments: (S,), the segments that may be picked at all.
            wanted_segment: The only segment that may be picked; None for any.
            rng: The source of the pick.

        Returns:
            The segment; None if the required systems have none in common.

        """
        possible_segments = (
            self._mask_of_segments_with_outputs_of(required_systems) if possible_segments is None else possible_segments
        )
        if wanted_segment is not None:
            possible_segments = possible_segments & self._mask_of_one_segment(wanted_segment)
        if excluded_segments:
            possible_segments = possible_segments & self._mask_of_segments_not_among(excluded_segments)
        fresh = np.flatnonzero(possible_segments & self._mask_of_segments_not_among(seen_segments))
        candidates: NumberArray = fresh if len(fresh) or not seen_as_last_resort else np.flatnonzero(possible_segments)
        if not len(candidates):
            return None
        if not self.complete:
            candidates = candidates_of_highest_value(
                candidates, (self.first_with_same_output[candidates][:, [*systems]] != NO_OUTPUT).sum(axis=1)
            )
        if not self.all_differ:
            candidates = candidates_of_highest_value(
                candidates,
                np.minimum(
                    count_distinct_outputs_of_each_row(self.first_with_same_output[candidates][:, [*systems]]),
                    wanted_different,
                ),
            )
        for counted in (np.array(systems), np.arange(self.system_count)):
            uses = self._expected_uses(candidates, counted, open_hit_counts, len(systems))
            candidates = candidates_of_highest_value(candidates, -uses)
        return int(rng.choice(candidates))

    def count_different_outputs(self, segment: int, systems: Sequence[int]) -> int:
        """Return how many different outputs these systems have for a segment."""
        return int(count_distinct_outputs_of_each_row(self.first_with_same_output[[segment]][:, [*systems]])[0])

    def first_equal_system_of_each_or_none(self, segment: int, systems: Sequence[int]) -> list[int] | None:
        """Return the first system with the same output for each of these systems; None where all outputs differ."""
        outputs = self.first_with_same_output[segment, [*systems]].tolist()
        first = dict(zip(reversed(outputs), reversed(systems), strict=True))
        return [first[output] for output in outputs] if len(first) < len(systems) else None

    def _expected_uses(
        self, segments: NumberArray, systems: NumberArray, open_hit_counts: Mapping[int, int], hit_size: int
    ) -> NumberArray:
        """Return how often outputs of these systems will have been judged for each segment, once open HITs are.

        Open HITs are known by their segment alone: each counts for a system as often as a HIT shows it on average.
        """
        open_hits = np.array([open_hit_counts.get(segment, 0) for segment in segments.tolist()])
        uses: NumberArray = self.uses[np.ix_(segments, systems)].sum(axis=1)
        return uses + open_hits * len(systems) * hit_size / self.system_count

    def _mask_of_segments_with_outputs_of(self, systems: Collection[int]) -> npt.NDArray[np.bool_]:
        """Return which segments have outputs of all of these systems, (S,)."""
        if self.complete:
            return np.ones(len(self.first_with_same_output), np.bool_)
        has_outputs: npt.NDArray[np.bool_] = np.all(self.first_with_same_output[:, [*systems]] != NO_OUTPUT, axis=1)
        return has_outputs

    def _mask_of_one_segment(self, segment: int) -> npt.NDArray[np.bool_]:
        """Return a mask of this segment alone, (S,)."""
        mask = np.zeros(len(self.first_with_same_output), np.bool_)
        mask[segment] = True
        return mask

    def _mask_of_segments_not_among(self, segments: Collection[int]) -> npt.NDArray[np.bool_]:
        """Return which segments are none of these, (S,); these may include newer segments."""
        fresh = np.ones(len(self.first_with_same_output), np.bool_)
        fresh[[segment for segment in segments if segment < len(fresh)]] = False
        return fresh


def candidates_of_highest_value(candidates: NumberArray, values: NumberArray) -> NumberArray:
    """Return the candidates with the highest value, (M,) each."""
    return np.compress(values == values.max(), candidates)


def count_distinct_outputs_of_each_row(outputs: NumberArray) -> NumberArray:
    """Return how many different outputs are in each row of (M, n), (M,)."""
    ordered = np.sort(outputs, axis=1)
    first = np.diff(ordered, axis=1, prepend=NO_OUTPUT) != 0
    counts: NumberArray = (first & (ordered != NO_OUTPUT)).sum(axis=1)
    return counts


def items_of_hit_with_distinct_outputs(items: Sequence[int], representatives: Sequence[int] | None) -> list[int]:
    """Return the items of a HIT that are shown: the first of those with the same output. None: all are."""
    return [*items] if representatives is None else [item for item in items if item in representatives]


def value_by_item_with_equal_outputs_filled_in(
    values: Mapping[K, T], items: Iterable[K], representatives: Iterable[K]
) -> dict[K, T]:
    """Return the values of the shown items for all items of the HIT with the same output."""
    return {item: values[first] for item, first in zip(items, representatives, strict=True) if first in values}


def value_of_each_item_by_its_shown_item(
    values: Mapping[int, T], items: Sequence[int], representatives: Sequence[int] | None
) -> list[T]:
    """Return the value of each item of the HIT, in order, given the values of the shown items."""
    return [values[item] for item in (items if representatives is None else representatives)]
