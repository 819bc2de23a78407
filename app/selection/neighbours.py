"""The rule for systems that all are to be told apart: the two neighbours that are hardest to tell apart come next.

Between every two that are next to each other in the order of scores lies a line, and what another judgment gains there
is what it gains at any line (`gain`). There are few systems, so all lines are looked at.
"""

from collections.abc import Collection, Iterator

import numpy as np

from app.inference.ground.arrays import Array
from app.selection.bags import Picked
from app.selection.companions import Companions
from app.selection.gain import log_gain
from app.selection.index import AlgorithmOne, Items
from app.selection.rule import Asking, Counts
from app.selection.wanted import WantedItems

NEIGHBOURS = "hardest_neighbours"


def gains(score: Array, variance: Array, judgments: Counts) -> tuple[Array, Items]:
    """What another judgment of each system gains at the line to one of its neighbours, (N,), and which one, (N,): the
    one where it gains more. Alone, a system has no neighbour but itself.
    """
    order = np.argsort(score, kind="stable")
    ranked, spread, asked = score[order], variance[order], judgments[order]
    half = np.diff(ranked) / 2
    ends = np.full(len(order), -np.inf)
    below, above = ends.copy(), ends.copy()
    below[1:] = log_gain(half, spread[1:], asked[1:])
    above[:-1] = log_gain(half, spread[:-1], asked[:-1])
    worth, beside = np.empty(len(order)), np.empty(len(order), np.intp)
    worth[order] = np.maximum(below, above)
    places = np.arange(len(order))
    beside[order] = order[np.clip(np.where(below > above, places - 1, places + 1), 0, len(order) - 1)]
    return worth, beside


class HardestFirst:
    """Systems by what another judgment of them gains."""

    def __init__(self, items: Items, known: WantedItems) -> None:
        self._known, self._open = known, {*items.tolist()}

    def __len__(self) -> int:
        """How many systems may lead."""
        return len(self._open)

    def add(self, item: int) -> None:
        """Let a system lead."""
        self._open.add(item)

    def remove(self, item: int) -> None:
        """No longer let a system lead."""
        self._open.remove(item)

    def moved(self, item: int, score: float, judgments: int) -> None:
        """Gains are worked out anew for each draw."""

    def draw(self, barred: set[int], rng: np.random.Generator) -> Picked | None:
        """The system with most to gain that is not barred, ties at random; None if all are barred."""
        free, worth = self._free(barred)
        if not len(free):
            return None
        first = free[worth == worth.max()]
        return Picked(int(rng.choice(first)), 1.0 / len(first))

    def each(self, barred: set[int], rng: np.random.Generator) -> Iterator[int]:
        """All systems that are not barred, as `draw` finds one after another."""
        free, worth = self._free(barred)
        yield from free[np.lexsort((rng.random(len(free)), -worth))].tolist()

    def neighbour(self, item: int) -> int:
        """Of a system the one that it is hardest to tell apart from."""
        return int(gains(self._known.score, self._known.variance, self._known.judgments)[1][item])

    def may_lead(self, item: int, barred: set[int]) -> bool:
        """Whether a system wants judgments, and is not barred."""
        return item in self._open and item not in barred

    def check(self, items: Items) -> None:
        """Raises ValueError unless just these systems may lead. For tests."""
        if sorted(self._open) != items.tolist():
            raise ValueError(f"{sorted(self._open)} may lead, not {items.tolist()}")

    def _free(self, barred: set[int]) -> tuple[Items, Array]:
        free = np.array(sorted(self._open - barred), np.intp)
        return free, gains(self._known.score, self._known.variance, self._known.judgments)[0][free]


class NeighbourFirst:
    """Companions of a system: its neighbour that it is hardest to tell it from, and others by match quality."""

    def __init__(self, hardest: HardestFirst, others: Companions) -> None:
        """The same systems, as they may lead and be drawn."""
        self._hardest, self._others = hardest, others

    def add(self, item: int) -> None:
        """Let a system be drawn."""
        self._others.add(item)

    def remove(self, item: int) -> None:
        """No longer let a system be drawn."""
        self._others.remove(item)

    def draw(
        self, leader: int, wanted: int, barred: set[int], rng: np.random.Generator, *, beside: Collection[int] = ()
    ) -> list[int]:
        """As `Companions.draw`, but for the neighbour."""
        neighbour = self._hardest.neighbour(leader)
        first = [neighbour] if self._hardest.may_lead(neighbour, {leader, *barred, *beside}) else []
        return first + self._others.draw(leader, wanted - len(first), barred, rng, beside=[*beside, *first])

    def check(self, items: Items) -> None:
        """Raises ValueError unless just these systems may be drawn. For tests."""
        self._others.check(items)


def hardest(asking: Asking, items: Items, known: WantedItems) -> tuple[HardestFirst, NeighbourFirst]:
    """Of two neighbours that are hard to tell apart one leads, and the other is beside it."""
    found = HardestFirst(items, known)
    return found, NeighbourFirst(found, Companions(items, known.score, known.variance, asking.gamma))


SYSTEMS = AlgorithmOne(
    "systems",
    "Neighbours: the two systems that are hardest to tell apart come next",
    places=True,
    of_systems=True,
    arranged=hardest,
    worth=lambda _asking, score, variance, judgments: gains(score, variance, judgments)[0],
    reason=NEIGHBOURS,
)
