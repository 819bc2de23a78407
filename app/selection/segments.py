"""Which segment a HIT shows, where its items are systems: one for which they all have an output, used as little as any.

Pure, and stale as an index may be: it decides what to ask, nothing else.
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
    """The outputs of N systems for S segments, and how often each segment was judged.

    alike: (S, N), for each output the lowest number of the systems whose output for this segment is the same, -1 where
    there is none. uses: (S,), how many answers are about each segment.
    """

    def __init__(
        self, segments: int, systems: int, segment: NumberArray, system: NumberArray, same_as: NumberArray
    ) -> None:
        """segment, system, same_as: (M,), of each output; there are `size` segments."""
        self.first_with_same_output = np.full((segments, systems), NO_OUTPUT, np.int32)
        self.first_with_same_output[segment, system] = same_as
        self.uses = np.zeros(segments, np.int64)
        self.complete = len(segment) == self.first_with_same_output.size
        self.all_differ = bool((same_as == system).all())

    @property
    def systems(self) -> int:
        """How many there are."""
        return self.first_with_same_output.shape[1]

    def update_uses(self, uses: Iterable[tuple[int, int]]) -> None:
        """Take over how often segments were judged: pairs of a number and a count, which only grow."""
        for segment, count in uses:
            self.uses[segment] = max(self.uses[segment], count)

    def systems_without_segment(self, min_outputs: int, required: Collection[int]) -> list[int]:
        """The systems without a segment in which so many outputs differ and those that every HIT `must` show are."""
        is_usable = self._has_outputs_of(required) & (
            count_distinct_outputs(self.first_with_same_output) >= min_outputs
        )
        return np.flatnonzero((self.first_with_same_output[is_usable] == NO_OUTPUT).all(axis=0)).tolist()

    def comparable_segments(
        self, required: Collection[int], others: Collection[int], *, max_others: int, min_outputs: int
    ) -> NumberArray:
        """(S,), for which segments a HIT of all that it `must` show and at most so many `others` can have the outputs
        of the former, and so many different ones.
        """
        of_must, of_all = (
            count_distinct_outputs(self.first_with_same_output[:, [*those]])
            for those in (required, (*required, *others))
        )
        is_comparable: NumberArray = self._has_outputs_of(required) & (
            np.minimum(of_must + max_others, of_all) >= min_outputs
        )
        return is_comparable

    def can_compare(self, wanted: Collection[int], always: Collection[int], *, n: int, min_outputs: int) -> bool:
        """Whether any HIT of n of these systems, and those that are `always` shown, has so many different outputs."""
        return any(
            self.comparable_segments(
                [leader, *always], {*wanted} - {leader}, max_others=n - 1, min_outputs=min_outputs
            ).any()
            for leader in wanted
        )

    def systems_with_same_output(self, segment: int, shown: Iterable[int], others: Iterable[int]) -> set[int]:
        """Of other systems than those that are shown, which have the same output as one of these or of those before."""
        seen_outputs, duplicates = set(self.first_with_same_output[segment, [*shown]].tolist()), set[int]()
        for system in others:
            output = self.first_with_same_output.item(segment, system)
            if output in seen_outputs:
                duplicates.add(system)
            seen_outputs.add(output)
        return duplicates

    def systems_without_fresh_segment(self, seen_segments: Collection[int]) -> set[int]:
        """The systems without an output for another segment than these."""
        if self.complete and len(seen_segments) < len(self.first_with_same_output):
            return set()
        fresh = self._is_not_among(seen_segments)
        return set(np.flatnonzero((self.first_with_same_output[fresh] == NO_OUTPUT).all(axis=0)).tolist())

    def systems_without_output(self, segment: int) -> set[int]:
        """The systems without an output for a segment."""
        return (
            set() if self.complete else set(np.flatnonzero(self.first_with_same_output[segment] == NO_OUTPUT).tolist())
        )

    def pick_segment(
        self,
        systems: Sequence[int],
        required: Collection[int],
        *,
        seen_segments: Collection[int],
        excluded_segments: Collection[int],
        allow_seen: bool,
        open_hits: Mapping[int, int],
        wanted_different: int,
        possible: NumberArray | None = None,
        rng: np.random.Generator,
    ) -> int | None:
        """The segment for a HIT of these systems; None where those that it `must` show have none in common.

        had: the segments that its annotator has had; they are taken only with `again`, once there are no others.
        never: those that they get in no case. leases: how many open HITs show a segment. possible: (S,), those that may
        be taken at all. Of what is left it is one with outputs of as many of the systems as any; of those one with so
        many `different` outputs, as far as there are such; of those one of the least used, at random.
        """
        possible = self._has_outputs_of(required) if possible is None else possible
        if excluded_segments:
            possible = possible & self._is_not_among(excluded_segments)
        fresh = np.flatnonzero(possible & self._is_not_among(seen_segments))
        candidates: NumberArray = fresh if len(fresh) or not allow_seen else np.flatnonzero(possible)
        if not len(candidates):
            return None
        if not self.complete:
            candidates = keep_highest(
                candidates, (self.first_with_same_output[candidates][:, [*systems]] != NO_OUTPUT).sum(axis=1)
            )
        if not self.all_differ:
            candidates = keep_highest(
                candidates,
                np.minimum(
                    count_distinct_outputs(self.first_with_same_output[candidates][:, [*systems]]), wanted_different
                ),
            )
        uses = self.uses.copy()
        for segment, count in open_hits.items():
            if segment < len(uses):
                uses[segment] += count
        return int(rng.choice(keep_highest(candidates, -uses[candidates])))

    def count_different_outputs(self, segment: int, systems: Sequence[int]) -> int:
        """How many different outputs these systems have for a segment."""
        return int(count_distinct_outputs(self.first_with_same_output[[segment]][:, [*systems]])[0])

    def output_representatives(self, segment: int, systems: Sequence[int]) -> list[int] | None:
        """Of each of these systems the first one with the same output; None where all outputs differ."""
        outputs = self.first_with_same_output[segment, [*systems]].tolist()
        first = dict(zip(reversed(outputs), reversed(systems), strict=True))
        return [first[output] for output in outputs] if len(first) < len(systems) else None

    def _has_outputs_of(self, systems: Collection[int]) -> npt.NDArray[np.bool_]:
        """(S,), which segments have outputs of all of these."""
        if self.complete:
            return np.ones(len(self.first_with_same_output), np.bool_)
        has_outputs: npt.NDArray[np.bool_] = np.all(self.first_with_same_output[:, [*systems]] != NO_OUTPUT, axis=1)
        return has_outputs

    def _is_not_among(self, segments: Collection[int]) -> npt.NDArray[np.bool_]:
        """(S,), which segments are none of these, of which others may have joined since."""
        fresh = np.ones(len(self.first_with_same_output), np.bool_)
        fresh[[segment for segment in segments if segment < len(fresh)]] = False
        return fresh


def keep_highest(candidates: NumberArray, values: NumberArray) -> NumberArray:
    """Those with the highest value, (M,) each."""
    return np.compress(values == values.max(), candidates)


def count_distinct_outputs(outputs: NumberArray) -> NumberArray:
    """How many different outputs are in each row of (M, n), (M,)."""
    ordered = np.sort(outputs, axis=1)
    first = np.diff(ordered, axis=1, prepend=NO_OUTPUT) != 0
    counts: NumberArray = (first & (ordered != NO_OUTPUT)).sum(axis=1)
    return counts


def distinct_items(items: Sequence[int], representatives: Sequence[int] | None) -> list[int]:
    """The items of a HIT that are shown: of those with the same output the first. None: all are."""
    return [*items] if representatives is None else [item for item in items if item in representatives]


def spread_to_same_outputs(values: Mapping[K, T], items: Iterable[K], representatives: Iterable[K]) -> dict[K, T]:
    """What was said of some of those that are shown, by the items of the HIT that it holds for."""
    return {item: values[first] for item, first in zip(items, representatives, strict=True) if first in values}


def values_for_all_items(
    values: Mapping[int, T], items: Sequence[int], representatives: Sequence[int] | None
) -> list[T]:
    """What was said of those that are shown, for each item of the HIT."""
    return [values[item] for item in (items if representatives is None else representatives)]
