"""The rule for the whole scale: all items as often as each other, and beside each other where they are alike.

To ask about some items more than about others orders them all no better, on simulated and on real scores (`python -m
benchmarks.goals`): the items that annotators differ on most are seldom the ones whose place is least certain. To ask
more about those saves few judgments, and orders real scores worse while there are few (`python -m benchmarks.neyman`).
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from app.inference.ground.arrays import Array
from app.selection.bags import Bag, Bags, Picked
from app.selection.companions import Companions
from app.selection.index import AlgorithmOne, Items, highest
from app.selection.leaders import each_of
from app.selection.rule import Asking, Counts, Draw, in_random_order
from app.selection.wanted import WantedItems, with_nothing_wanted

FEWEST = "fewest_judgments"


class FewestFirst:
    """Items by their judgments: one with the fewest leads, any with the same probability."""

    def __init__(self, items: Items, judgments: Counts) -> None:
        """`items`: numbers of those that may lead; `judgments`: (N,), shared with the caller."""
        self._judgments, self._bags, self._size = judgments, Bags(len(judgments)), len(items)
        items = items[np.argsort(judgments[items], kind="stable")]
        counts, starts = np.unique(judgments[items], return_index=True)
        self._alike: dict[int, Bag] = dict(zip(counts.tolist(), self._bags.fill(items, starts), strict=True))

    def __len__(self) -> int:
        """How many items may lead."""
        return self._size

    def add(self, item: int) -> None:
        """Let an item lead."""
        self._bags.put(item, self._alike.setdefault(self._judgments.item(item), []))
        self._size += 1

    def remove(self, item: int) -> None:
        """No longer let an item lead."""
        count = self._judgments.item(item)
        self._bags.take(item, self._alike[count])
        if not self._alike[count]:
            del self._alike[count]
        self._size -= 1

    def moved(self, item: int, score: float, judgments: int) -> None:
        """Nothing depends on what an item's values were."""

    def draw(self, barred: set[int], rng: np.random.Generator) -> Picked | None:
        """An item with the fewest judgments of those that are not barred, None if all are."""
        for count in sorted(self._alike):
            if (item := self._bags.pick(self._alike[count], barred, rng)) is not None:
                return Picked(item, 1.0 / self._bags.among(self._alike[count], barred))
        return None

    def each(self, barred: set[int], rng: np.random.Generator) -> Iterator[int]:
        """All items that are not barred, as `draw` finds one after another. Whoever asks on has barred the last one."""
        for count in sorted(self._alike):
            yield from each_of(self._bags, self._alike[count], barred, rng)

    def check(self, items: Items) -> None:
        """Raises ValueError unless just these items may lead, each among those of its judgments. For tests."""
        expected = sorted((self._judgments.item(item), item) for item in items.tolist())
        held = sorted((count, item) for count, bag in self._alike.items() for item in bag)
        if held != expected or self._size != len(expected):
            raise ValueError(f"found were {held}, not {expected}")


class AmongFewest:
    """Companions by match quality, of those with the fewest judgments as long as there are such."""

    def __init__(self, items: Items, known: WantedItems, gamma: float) -> None:
        """`items`: numbers of those that may be drawn."""
        self._known, self._gamma = known, gamma
        judgments = known.judgments[items]
        self._alike = {count: self._companions(items[judgments == count]) for count in np.unique(judgments).tolist()}

    def add(self, item: int) -> None:
        """Let an item be drawn."""
        count = self._known.judgments.item(item)
        if count not in self._alike:
            self._alike[count] = self._companions(np.empty(0, np.intp))
        self._alike[count].add(item)

    def remove(self, item: int) -> None:
        """No longer let an item be drawn."""
        count = self._known.judgments.item(item)
        self._alike[count].remove(item)
        if not len(self._alike[count]):
            del self._alike[count]

    def draw(
        self, leader: int, wanted: int, barred: set[int], rng: np.random.Generator, *, beside: Collection[int] = ()
    ) -> list[int]:
        """As `Companions.draw`."""
        drawn: list[int] = []
        for count in sorted(self._alike):
            if len(drawn) < wanted:
                others = (*beside, *drawn, leader)
                drawn += self._alike[count].draw(leader, wanted - len(drawn), barred, rng, beside=others)
        return drawn

    def check(self, items: Items) -> None:
        """Raises ValueError unless just these items may be drawn. For tests."""
        judgments = self._known.judgments[items]
        if sorted(self._alike) != np.unique(judgments).tolist():
            raise ValueError(f"there are companions with {sorted(self._alike)} judgments")
        for count, companions in self._alike.items():
            companions.check(items[judgments == count])

    def _companions(self, items: Items) -> Companions:
        return Companions(items, self._known.score, self._known.variance, self._gamma)


def fewest_first(asking: Asking, items: Items, known: WantedItems) -> tuple[FewestFirst, AmongFewest]:
    """Whoever was asked about least leads, and is beside others like it."""
    return FewestFirst(items, known.judgments), AmongFewest(items, known, asking.gamma)


@dataclass(frozen=True, slots=True)
class EvenRule(AlgorithmOne):
    """Each iteration asks about every item once, or about so many of those that were asked about least."""

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
        if iteration == 0:
            return AlgorithmOne.plan(self, score, variance, judgments, asking, iteration=0, rng=rng)
        judgments = with_nothing_wanted(judgments, asking.never, asking.wanted)
        room = np.flatnonzero(judgments < asking.wanted)
        most = len(room) if asking.hits is None else asking.hits * asking.n
        chosen, probabilities = highest(-judgments.astype(np.float64), room, most, rng)
        asked = dict(zip(chosen, probabilities, strict=True))
        hits = alike_together(chosen, score, variance, asking, rng)
        return [in_random_order(hit, rng, (FEWEST, asked[hit[0]])) for hit in hits if len(hit) >= asking.fewest]


def alike_together(
    items: list[int], score: Array, variance: Array, asking: Asking, rng: np.random.Generator
) -> list[list[int]]:
    """HITs that show each of these items once, led by the first of them that is in none yet; no item is alone if two
    were there.
    """
    companions = Companions(np.array(items, np.intp), score, variance, asking.gamma)
    sizes = iter(even_sizes(len(items), asking.n))
    hits: list[list[int]] = []
    shown: set[int] = set()
    for leader in items:
        if leader not in shown:
            companions.remove(leader)
            others = companions.draw(leader, next(sizes) - 1, set(), rng)
            for item in others:
                companions.remove(item)
            shown.update(others)
            hits.append([leader, *others])
    return hits


def even_sizes(count: int, n: int) -> list[int]:
    """How many items each HIT shows, n at most, where `count` are shown in as few HITs as that takes."""
    hits = -(-count // n)
    return [count // hits + (k < count % hits) for k in range(hits)]


SCORES = EvenRule(
    "scores",
    "Whole scale: all items as often as each other, beside others like them",
    places=True,
    arranged=fewest_first,
    reason=FEWEST,
)
