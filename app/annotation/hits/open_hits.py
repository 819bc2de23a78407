"""What the open HITs of a campaign hold, as a process read it last.

The more HITs are open, the longer it takes to read. So where there are many, what was read serves for a second, with
what this process leases meanwhile. It decides what to ask, nothing else: every lease is checked in the database. Who
loses one, or would get less than a whole HIT by what is remembered, has it read anew.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from app.selection.rule import Index, union_for_reading

MANY_OPEN_HITS = 200  # of fewer, what they hold is read for every draw
MAX_OPEN_HITS_AGE_SECONDS = 1.0


class OpenHits:
    """leading: the items that lead one. leases: how many hold an item. full: the items that no other one may hold.
    segments: how many show a segment, where the items are systems. nothing_left: whether a draw found nothing that
    anybody could be asked.

    read_at: in seconds, by the process's clock.
    """

    def __init__(
        self,
        leaders: Sequence[int],
        held_items: Sequence[int],
        index: Index,
        *,
        read_at: float,
        segments: Sequence[int] = (),
    ) -> None:
        self.many = len(leaders) >= MANY_OPEN_HITS
        self.leading = set(leaders)
        self.leases = Counter(held_items)
        self.segments = Counter(segments)
        self.full = index.full_items(self.leases)
        self.nothing_left = False
        self.read_at = read_at

    def is_fresh(self, now: float) -> bool:
        """Whether this need not be read anew."""
        return self.many and now < self.read_at + MAX_OPEN_HITS_AGE_SECONDS

    def add_hit(self, leader: int, items: Iterable[int], index: Index, segment: int | None = None) -> None:
        """One more HIT was leased."""
        self.full |= self._newly_full_items(items, index)
        self.leases.update(items)
        self.leading.add(leader)
        if segment is not None:
            self.segments[segment] += 1

    def full_items_after(self, items: Iterable[int], index: Index) -> set[int]:
        """The items that are full once these are leased, too; to be read only."""
        return union_for_reading(self.full, self._newly_full_items(items, index))

    def _newly_full_items(self, items: Iterable[int], index: Index) -> set[int]:
        leases = Counter(items)
        for item in leases:
            leases[item] += self.leases[item]
        return index.full_items(leases)
