"""What the open HITs of a campaign hold, as a process read it last.

The more HITs are open, the longer it takes to read. So where there are many, what was read serves for a second, with
what this process has leased since. It decides what to ask, nothing else: every lease is checked in the database, and a
process that loses one, or finds nothing to ask, reads anew.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from app.serving.selection import SelectionIndex

MANY = 200  # open HITs; of fewer, what they hold is read for every draw
SECONDS = 1.0


class OpenHits:
    """leases: how many open HITs an item is in. leading: items that lead one. full: items that can be in no other."""

    def __init__(self, leading: Sequence[int], held: Iterable[int], index: SelectionIndex) -> None:
        self.leading = set(leading)
        self.leases = Counter(held)
        self.full = index.full(self.leases)

    def add(self, leader: int, items: Iterable[int], index: SelectionIndex) -> None:
        """One more HIT was leased."""
        self.leading.add(leader)
        self.leases.update(items)
        self.full |= index.full({item: self.leases[item] for item in items})
