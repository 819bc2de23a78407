"""Items that the open HITs of a campaign hold, as this process last read them.

Reading takes longer the more HITs are open. If there are many, the last read serves for a second, together with the
leases that this process makes meanwhile. It only decides what to ask: the database checks every lease. A request that
loses a race, or would get less than a full HIT, reads the open HITs again.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from app.selection.rule import Index, read_only_union_of_sets

MANY_OPEN_HITS = 200  # with fewer, their items are read for every draw
MAX_OPEN_HITS_AGE_SECONDS = 1.0


class OpenHits:
    """Open HITs of a campaign, counted by item and segment.

    Attributes:
        many: True if the HITs are too many to read them for every draw.
        leading: Items that lead an open HIT.
        leases: Number of open HITs by item.
        segments: Number of open HITs by segment, if the items are systems.
        full: Items that no further HIT may hold.
        nothing_left: True if a draw found no HIT for any annotator.
        read_at: Time of the read, in seconds of the process's clock.
        source: Row that was read.

    """

    def __init__(
        self,
        leaders: Sequence[int],
        held_items: Sequence[int],
        index: Index,
        *,
        read_at: float,
        segments: Sequence[int] = (),
        source: object = None,
    ) -> None:
        self.many = len(leaders) >= MANY_OPEN_HITS
        self.leading = set(leaders)
        self.leases = Counter(held_items)
        self.segments = Counter(segments)
        self.full = index.full_items(self.leases)
        self.nothing_left = False
        self.read_at = read_at
        self.source = source

    def is_fresh(self, now: float) -> bool:
        """Return whether a draw may use this instead of a new read."""
        return self.many and now < self.read_at + MAX_OPEN_HITS_AGE_SECONDS

    def add_hit(self, leader: int, items: Iterable[int], index: Index, segment: int | None = None) -> None:
        """Count a HIT that was just leased."""
        self.full |= self._newly_full_items(items, index)
        self.leases.update(items)
        self.leading.add(leader)
        if segment is not None:
            self.segments[segment] += 1

    def full_items_after_leasing(self, items: Iterable[int], index: Index) -> set[int]:
        """Return the items that are full once `items` are leased as well. Callers must not change the set."""
        return read_only_union_of_sets(self.full, self._newly_full_items(items, index))

    def _newly_full_items(self, items: Iterable[int], index: Index) -> set[int]:
        leases = Counter(items)
        for item in leases:
            leases[item] += self.leases[item]
        return index.full_items(leases)
