"""What to ask next: Algorithm 1 of Sakaguchi & Van Durme 2018, one HIT at a time or an iteration at once.

The item one knows least about (highest variance) leads a HIT; its companions are drawn without replacement
with probability proportional to their match quality with it. Pure: arrays and small sets in, item numbers
out. Nothing here is an approximation; `companions` says how a draw is exact and yet costs the same at every
number of items.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.bags import Picked
from app.selection.companions import Companions
from app.selection.leaders import Leaders, Leading
from app.selection.rule import BEGUN, Apart, Asking, Counts, Draw, Why, in_random_order, together
from app.selection.wanted import WantedItems, with_nothing_wanted

Items = npt.NDArray[np.intp]

LEAST_CERTAIN = "least_certain"
FIRST_ROUND = "first_round"
MOST_TRIES = 100  # leaders that a draw tries; whoever waits asks again, and those without companions are known then


class Accompanying(Protocol):
    """Items that may be drawn as companions of a leader; `Companions` says what these do."""

    def add(self, item: int) -> None: ...

    def remove(self, item: int) -> None: ...

    def draw(
        self, leader: int, wanted: int, barred: set[int], rng: np.random.Generator, *, beside: Collection[int] = ()
    ) -> list[int]: ...

    def check(self, items: Items) -> None: ...


Arranged = Callable[[Asking, Items, WantedItems], tuple[Leading, Accompanying]]


def by_variance(asking: Asking, items: Items, known: WantedItems) -> tuple[Leading, Accompanying]:
    """The item of highest variance leads, and its companions come by match quality."""
    return Leaders(items, known.variance), Companions(items, known.score, known.variance, asking.gamma)


class SelectionIndex(WantedItems):
    """One campaign's newest scores, variances and judgments, arranged so that draws are exact and fast.

    A draw costs the same at every number of items. Items that have all judgments they want are kept in the
    arrays alone, so a campaign that nears its end is fast too. The index may lag behind the database: it
    decides what to ask, nothing else.
    """

    def __init__(
        self,
        score: npt.ArrayLike,
        variance: npt.ArrayLike,
        judgments: npt.ArrayLike,
        asking: Asking,
        *,
        arranged: Arranged = by_variance,
        reason: str = LEAST_CERTAIN,
    ) -> None:
        """See `WantedItems`. arranged: the items that want judgments, as they may lead and as they may be beside a
        leader. reason: why leaders lead.
        """
        super().__init__(score, variance, judgments, wanted=asking.wanted, fewest=asking.fewest, never=asking.never)
        self.leaders, self.companions = arranged(asking, np.array(self.open_items(), np.intp), self)
        self._reason = reason

    @property
    def open_count(self) -> int:
        """How many items want judgments."""
        return len(self.leaders)

    def draw(
        self,
        n: int,
        *,
        seen: set[int],
        full: set[int],
        leading: set[int],
        allow_seen: bool,
        begun: Sequence[int] = (),
        apart: Apart | None = None,
        rng: np.random.Generator,
    ) -> Draw | None:
        """The next HIT of n >= 1 items for one annotator, shorter if fewer can be asked, None if not even the fewest
        can.

        seen: items the annotator has scored; they are taken only with `allow_seen`, once there are no others.
        full: items that open leases and judgments have given all that is wanted; they are not taken.
        leading: items that lead an open HIT; they lead another only if all candidates do.
        begun: items that are in the HIT in any case, whose first one leads it.
        apart: what is not asked beside which leader.
        """
        ways = (together(seen, full), full) if allow_seen else (together(seen, full),)
        if apart is not None:
            return self._draw_apart(n, ways, leading, apart, rng)
        chosen = [*begun]
        why: Why = BEGUN
        for barred in ways:
            if not chosen and (leader := self._leader(barred, leading, rng)):
                chosen, why = [leader.item], (self._reason, leader.probability)
            if 0 < len(chosen) < n:
                chosen += self.companions.draw(chosen[0], n - len(chosen), barred, rng, beside=chosen)
        return in_random_order(chosen, rng, why) if chosen and len(chosen) >= self._fewest else None

    def check(self) -> None:
        """Raises ValueError unless the arrangement is that of the arrays. For tests."""
        wanted = np.array(self.open_items(), np.intp)
        self.leaders.check(wanted)
        self.companions.check(wanted)

    def _draw_apart(
        self, n: int, ways: Sequence[set[int]], leading: set[int], apart: Apart, rng: np.random.Generator
    ) -> Draw | None:
        """The first leader who has a companion. Who will never have one again is remembered and not tried again."""
        tried: set[int] = set()
        for barred in ways:
            for leader in self._leaders(barred | apart.spent | tried, leading, rng):
                away = apart.beside(leader) | {leader}
                for also in ways:
                    if others := self.companions.draw(leader, n - 1, also | away, rng):
                        return in_random_order([leader, *others], rng, (self._reason, None))
                if not self.companions.draw(leader, 1, away, rng):
                    apart.spent.add(leader)
                tried.add(leader)
                if len(tried) == MOST_TRIES:
                    return None
        return None

    def _leaders(self, barred: set[int], leading: set[int], rng: np.random.Generator) -> Iterator[int]:
        """From the highest variance down; those that lead an open HIT come last."""
        tried: set[int] = set()
        for kept_back in (leading, set()):
            away = barred | kept_back | tried
            for leader in self.leaders.each(away, rng):
                tried.add(leader)
                away.add(leader)
                yield leader

    def _leader(self, barred: set[int], leading: set[int], rng: np.random.Generator) -> Picked | None:
        leader = self.leaders.draw(together(barred, leading), rng)
        return self.leaders.draw(barred, rng) if leader is None and leading else leader

    def _change(self, item: int, score: float, variance: float, judgments: int) -> None:
        if self._wants(item):
            self.leaders.remove(item)
            self.companions.remove(item)
        before = self.score.item(item), self.judgments.item(item)
        self._set(item, score, variance, judgments)
        self.leaders.moved(item, *before)
        if self._wants(item):
            self.leaders.add(item)
            self.companions.add(item)


def first_iteration(judgments: npt.ArrayLike, *, wanted: int, n: int, rng: np.random.Generator) -> list[Draw]:
    """Cover every item that still wants judgments once: a random partition into HITs of n.

    A short last HIT is filled with random others that want one judgment more than this iteration gives them;
    without such, HITs are as equal as they can be. Judgments: (N,).
    """
    room = wanted - np.asarray(judgments, dtype=np.int64)
    order = rng.permutation(np.flatnonzero(room > 0))
    hits = [order[start : start + n].tolist() for start in range(0, len(order), n)]
    if hits:
        before = order[: -len(hits[-1])]
        spare = rng.permutation(before[room[before] > 1])
        hits[-1] += spare[: n - len(hits[-1])].tolist()
        if len(spare) == 0:
            hits = [hit.tolist() for hit in np.array_split(order, len(hits))]
    return [in_random_order(hit, rng, (FIRST_ROUND, 1.0)) for hit in hits]


def later_iteration(
    score: npt.ArrayLike,
    variance: npt.ArrayLike,
    judgments: npt.ArrayLike,
    *,
    wanted: int,
    n: int,
    hits: int | None = None,
    gamma: float,
    leaders_as_companions: bool = False,
    worth: npt.ArrayLike | None = None,
    reason: str = LEAST_CERTAIN,
    rng: np.random.Generator,
) -> list[Draw]:
    """The items of highest variance lead one HIT each (Algorithm 1, lines 9 to 21), or those of highest `worth`; arrays
    (N,).

    hits: how many, by default N / n rounded down and at least 1, which gives an iteration about one judgment
    per item. Leaders are taken from the items that still want judgments, ties at random. Companions come from
    the items that lead no HIT of this iteration, with `leaders_as_companions` from all others. No item is
    planned beyond the judgments it wants; where that leaves too few companions, fewer items lead and HITs are shorter,
    but no item is asked alone if another one is wanted.
    """
    score, variance = np.asarray(score, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    room = wanted - np.asarray(judgments, dtype=np.int64)
    hits = max(1, len(room) // n) if hits is None else hits
    hits = _leaders_with_companions(room[room > 0], hits, n, leaders_as_companions=leaders_as_companions)
    leaders, probabilities = highest(
        variance if worth is None else np.asarray(worth, np.float64), np.flatnonzero(room > 0), hits, rng
    )
    room[leaders] -= 1
    free = room > 0
    if not leaders_as_companions:
        free[leaders] = False
    companions = Companions(np.flatnonzero(free), score, variance, gamma)
    planned = [[leader, *_plan(companions, leader, n - 1, room, rng)] for leader in leaders]
    _share_with_those_alone(planned)
    return [in_random_order(hit, rng, (reason, p)) for hit, p in zip(planned, probabilities, strict=True)]


def _leaders_with_companions(room: Counts, hits: int, n: int, *, leaders_as_companions: bool) -> int:
    """How many of the open items, which want `room` >= 1 judgments each, can lead a HIT of two items or more.

    At most `hits`, and no more than it takes to ask everything once. Where HITs are of one item, it leads.
    """
    if n == 1:
        return max(1, min(hits, len(room)))
    slots = int(np.minimum(room, hits).sum())
    most = min(hits, math.ceil(slots / n), slots // 2)
    return max(1, most if leaders_as_companions else min(most, len(room) // 2))


def _share_with_those_alone(hits: list[list[int]]) -> None:
    """Whoever was drawn last for the longest HIT goes to a leader for whom nobody was left."""
    for hit in hits:
        if len(hit) == 1:
            longest = max(hits, key=len)
            if len(longest) > 2 and longest[-1] not in hit:
                hit.append(longest.pop())


def highest(worth: Array, items: Items, count: int, rng: np.random.Generator) -> tuple[list[int], list[float]]:
    """The `count` items of highest worth, (N,), ties at random; and for each the probability of being one of them."""
    order = np.lexsort((rng.random(len(items)), -worth[items]))
    chosen = items[order[:count]]
    last: npt.NDArray[np.bool_] = worth[chosen] == worth[chosen[-1:]]
    tied = int(np.count_nonzero(worth[items] == worth[chosen[-1:]]))
    return chosen.tolist(), np.where(last, np.count_nonzero(last) / max(tied, 1), 1.0).tolist()


def _plan(companions: Companions, leader: int, count: int, room: Counts, rng: np.random.Generator) -> list[int]:
    """Companions for one HIT; those that have no room for another are taken out."""
    drawn = companions.draw(leader, count, {leader}, rng) if count else []
    room[drawn] -= 1
    for item in drawn:
        if room.item(item) == 0:
            companions.remove(item)
    return drawn


@dataclass(frozen=True, slots=True)
class AlgorithmOne:
    """Algorithm 1: the first iteration shows every item once, later ones are led by the items of highest variance; or,
    for another goal, by other items.

    places, on_scale, of_systems: as a rule has them. arranged: as a `SelectionIndex` has it. worth: of scores,
    variances and judgments, (N,) each; what is highest leads an iteration first. reason: why.
    """

    name: str = "easl"
    title: str = "Algorithm 1: the least certain item leads, with companions of good match quality"
    reads_labels: bool = False
    places: bool = False
    on_scale: bool = False
    of_systems: bool = False
    arranged: Arranged = by_variance
    worth: Callable[[Asking, Array, Array, Counts], Array] | None = None
    reason: str = LEAST_CERTAIN

    def index(
        self, score: npt.ArrayLike, variance: npt.ArrayLike, judgments: npt.ArrayLike, asking: Asking
    ) -> SelectionIndex:
        """One HIT at a time."""
        return SelectionIndex(score, variance, judgments, asking, arranged=self.arranged, reason=self.reason)

    def plan(
        self,
        score: Array,
        variance: Array,
        judgments: Counts,
        asking: Asking,
        *,
        iteration: int,
        rng: np.random.Generator,
    ) -> list[Draw]:
        """An iteration at once."""
        judgments = with_nothing_wanted(judgments, asking.never, asking.wanted)
        if iteration == 0:
            hits = first_iteration(judgments, wanted=asking.wanted, n=asking.n, rng=rng)
        else:
            hits = later_iteration(
                score,
                variance,
                judgments,
                wanted=asking.wanted,
                n=asking.n,
                hits=asking.hits,
                gamma=asking.gamma,
                leaders_as_companions=asking.leaders_as_companions,
                worth=self.worth and self.worth(asking, score, variance, judgments),
                reason=self.reason,
                rng=rng,
            )
        return [hit for hit in hits if len(hit.items) >= asking.fewest]
