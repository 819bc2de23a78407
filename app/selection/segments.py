"""Which segment a HIT shows, where its items are systems: one for which they all have an output, used as little as any.

Pure, and stale as an index may be: it decides what to ask, nothing else.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

K = TypeVar("K")
T = TypeVar("T")
Numbers = npt.NDArray[Any]
NONE = -1


class Segments:
    """The outputs of N systems for S segments, and how often each segment was judged.

    alike: (S, N), for each output the lowest number of the systems whose output for this segment is the same, -1 where
    there is none. uses: (S,), how many answers are about each segment.
    """

    def __init__(self, size: int, systems: int, segment: Numbers, system: Numbers, same_as: Numbers) -> None:
        """segment, system, same_as: (M,), of each output; there are `size` segments."""
        self.alike = np.full((size, systems), NONE, np.int32)
        self.alike[segment, system] = same_as
        self.uses = np.zeros(size, np.int64)
        self.complete = len(segment) == self.alike.size
        self.all_differ = bool((same_as == system).all())

    @property
    def systems(self) -> int:
        """How many there are."""
        return self.alike.shape[1]

    def learn(self, uses: Iterable[tuple[int, int]]) -> None:
        """Take over how often segments were judged: pairs of a number and a count, which only grow."""
        for segment, count in uses:
            self.uses[segment] = max(self.uses[segment], count)

    def apart(self, fewest: int, must: Collection[int]) -> list[int]:
        """The systems without a segment in which so many outputs differ and those that every HIT `must` show are."""
        enough = self._with_outputs_of(must) & (distinct(self.alike) >= fewest)
        return np.flatnonzero((self.alike[enough] == NONE).all(axis=0)).tolist()

    def comparable(self, must: Collection[int], others: Collection[int], *, most: int, fewest: int) -> Numbers:
        """(S,), for which segments a HIT of all that it `must` show and at most so many `others` can have the outputs
        of the former, and so many different ones.
        """
        of_must, of_all = (distinct(self.alike[:, [*those]]) for those in (must, (*must, *others)))
        found: Numbers = self._with_outputs_of(must) & (np.minimum(of_must + most, of_all) >= fewest)
        return found

    def can_compare(self, wanted: Collection[int], always: Collection[int], *, n: int, fewest: int) -> bool:
        """Whether any HIT of n of these systems, and those that are `always` shown, has so many different outputs."""
        return any(
            self.comparable([leader, *always], {*wanted} - {leader}, most=n - 1, fewest=fewest).any()
            for leader in wanted
        )

    def doubles(self, segment: int, shown: Iterable[int], others: Iterable[int]) -> set[int]:
        """Of other systems than those that are shown, which have the same output as one of these or of those before."""
        outputs, found = set(self.alike[segment, [*shown]].tolist()), set[int]()
        for system in others:
            output = self.alike.item(segment, system)
            if output in outputs:
                found.add(system)
            outputs.add(output)
        return found

    def used_up(self, had: Collection[int]) -> set[int]:
        """The systems without an output for another segment than these."""
        if self.complete and len(had) < len(self.alike):
            return set()
        fresh = self._without(had)
        return set(np.flatnonzero((self.alike[fresh] == NONE).all(axis=0)).tolist())

    def absent(self, segment: int) -> set[int]:
        """The systems without an output for a segment."""
        return set() if self.complete else set(np.flatnonzero(self.alike[segment] == NONE).tolist())

    def pick(
        self,
        systems: Sequence[int],
        must: Collection[int],
        *,
        had: Collection[int],
        never: Collection[int],
        again: bool,
        leases: Mapping[int, int],
        different: int,
        possible: Numbers | None = None,
        rng: np.random.Generator,
    ) -> int | None:
        """The segment for a HIT of these systems; None where those that it `must` show have none in common.

        had: the segments that its annotator has had; they are taken only with `again`, once there are no others.
        never: those that they get in no case. leases: how many open HITs show a segment. possible: (S,), those that may
        be taken at all. Of what is left it is one with outputs of as many of the systems as any; of those one with so
        many `different` outputs, as far as there are such; of those one of the least used, at random.
        """
        possible = self._with_outputs_of(must) if possible is None else possible
        if never:
            possible = possible & self._without(never)
        fresh = np.flatnonzero(possible & self._without(had))
        found: Numbers = fresh if len(fresh) or not again else np.flatnonzero(possible)
        if not len(found):
            return None
        if not self.complete:
            found = highest(found, (self.alike[found][:, [*systems]] != NONE).sum(axis=1))
        if not self.all_differ:
            found = highest(found, np.minimum(distinct(self.alike[found][:, [*systems]]), different))
        uses = self.uses.copy()
        for segment, count in leases.items():
            if segment < len(uses):
                uses[segment] += count
        return int(rng.choice(highest(found, -uses[found])))

    def different(self, segment: int, systems: Sequence[int]) -> int:
        """How many different outputs these systems have for a segment."""
        return int(distinct(self.alike[[segment]][:, [*systems]])[0])

    def shown_as(self, segment: int, systems: Sequence[int]) -> list[int] | None:
        """Of each of these systems the first one with the same output; None where all outputs differ."""
        outputs = self.alike[segment, [*systems]].tolist()
        first = dict(zip(reversed(outputs), reversed(systems), strict=True))
        return [first[output] for output in outputs] if len(first) < len(systems) else None

    def _with_outputs_of(self, systems: Collection[int]) -> npt.NDArray[np.bool_]:
        """(S,), which segments have outputs of all of these."""
        if self.complete:
            return np.ones(len(self.alike), np.bool_)
        there: npt.NDArray[np.bool_] = np.all(self.alike[:, [*systems]] != NONE, axis=1)
        return there

    def _without(self, had: Collection[int]) -> npt.NDArray[np.bool_]:
        """(S,), which segments are none of these, of which others may have joined since."""
        fresh = np.ones(len(self.alike), np.bool_)
        fresh[[segment for segment in had if segment < len(fresh)]] = False
        return fresh


def highest(found: Numbers, by: Numbers) -> Numbers:
    """Those with the highest value, (M,) each."""
    return np.compress(by == by.max(), found)


def distinct(outputs: Numbers) -> Numbers:
    """How many different outputs are in each row of (M, n), (M,)."""
    row = np.sort(outputs, axis=1)
    first = np.diff(row, axis=1, prepend=NONE) != 0
    counts: Numbers = (first & (row != NONE)).sum(axis=1)
    return counts


def shown_once(items: Sequence[int], shown_as: Sequence[int] | None) -> list[int]:
    """The items of a HIT that are shown: of those with the same output the first. None: all are."""
    return [*items] if shown_as is None else [item for item in items if item in shown_as]


def said_of_all(said: Mapping[K, T], items: Iterable[K], shown_as: Iterable[K]) -> dict[K, T]:
    """What was said of some of those that are shown, by the items of the HIT that it holds for."""
    return {item: said[first] for item, first in zip(items, shown_as, strict=True) if first in said}


def for_all(values: Mapping[int, T], items: Sequence[int], shown_as: Sequence[int] | None) -> list[T]:
    """What was said of those that are shown, for each item of the HIT."""
    return [values[item] for item in (items if shown_as is None else shown_as)]
