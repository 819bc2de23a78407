"""The rule for telling all systems apart: the two neighbours that are hardest to tell apart come next.

A line separates every two neighbours in the order of scores, and the gain of another judgment there is that at any line
(`expected_gain`). There are few systems, so all lines are examined.
"""

from collections.abc import Collection, Iterator

import numpy as np

from app.inference.ground.arrays import Array
from app.selection.buckets import Pick
from app.selection.companions import Companions
from app.selection.expected_gain import log_gain_from_posterior
from app.selection.index import AlgorithmOne, ItemNumbers
from app.selection.item_sets import ItemSet
from app.selection.open_items import OpenItems
from app.selection.rule import ItemValues, SelectionSettings

HARDEST_NEIGHBOURS = "hardest_neighbours"


def gain_and_hardest_neighbour_of_each_system(values: ItemValues) -> tuple[Array, ItemNumbers]:
    """Return the gain of another judgment of each system at the line to one of its neighbours, (N,), and that
    neighbour, (N,).

    It is the neighbour with the higher gain. A single system has no neighbour but itself.
    """
    order = np.argsort(values.score, kind="stable")
    ranked, spread, ranked_judgments = values.score[order], values.variance[order], values.judgments[order]
    half = np.diff(ranked) / 2
    ends = np.full(len(order), -np.inf)
    below, above = ends.copy(), ends.copy()
    below[1:] = log_gain_from_posterior(half, spread[1:], ranked_judgments[1:])
    above[:-1] = log_gain_from_posterior(half, spread[:-1], ranked_judgments[:-1])
    worth, neighbour = np.empty(len(order)), np.empty(len(order), np.intp)
    worth[order] = np.maximum(below, above)
    places = np.arange(len(order))
    neighbour[order] = order[np.clip(np.where(below > above, places - 1, places + 1), 0, len(order) - 1)]
    return worth, neighbour


class HardestNeighbourLeaders:
    """Systems by the gain of another judgment of them."""

    def __init__(self, items: ItemNumbers, index: OpenItems) -> None:
        self._known, self._open = index, {*items.tolist()}

    def __len__(self) -> int:
        """Number of systems that may lead."""
        return len(self._open)

    def add(self, item: int) -> None:
        """Allow a system to lead."""
        self._open.add(item)

    def remove(self, item: int) -> None:
        """Stop a system from leading."""
        self._open.remove(item)

    def record_value_change(self, item: int, old_score: float, old_judgments: int, old_status: int) -> None:
        """Do nothing: gains are recomputed for each draw."""

    def draw_leader_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return the system of highest gain that is not barred, ties at random; None if all are barred."""
        free, worth = self._leading_systems_and_gains(barred)
        if not len(free):
            return None
        first = free[worth == worth.max()]
        return Pick(int(rng.choice(first)), 1.0 / len(first))

    def iterate_free_leaders_by_gain(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield all systems that are not barred, in the order of `draw_leader_or_none`."""
        free, worth = self._leading_systems_and_gains(barred)
        yield from free[np.lexsort((rng.random(len(free)), -worth))].tolist()

    def hardest_neighbour(self, item: int) -> int:
        """Return the neighbour from which a system is hardest to tell apart."""
        return int(gain_and_hardest_neighbour_of_each_system(self._known)[1][item])

    def can_system_lead_hit(self, item: int, barred: ItemSet) -> bool:
        """Return whether a system wants judgments, and is not barred."""
        return item in self._open and item not in barred

    def require_consistency(self, items: ItemNumbers) -> None:
        """Raise ValueError unless just these systems may lead. For tests."""
        if sorted(self._open) != items.tolist():
            raise ValueError(f"{sorted(self._open)} may lead, not {items.tolist()}")

    def _leading_systems_and_gains(self, barred: ItemSet) -> tuple[ItemNumbers, Array]:
        free = np.array(sorted(self._open - barred), np.intp)
        return free, gain_and_hardest_neighbour_of_each_system(self._known)[0][free]


class NeighbourCompanions:
    """Companions of a system: its hardest neighbour, and others by match quality."""

    def __init__(self, leaders: HardestNeighbourLeaders, others: Companions) -> None:
        """Combine the pools of the same systems, as leaders and as companions."""
        self._hardest, self._others = leaders, others

    def add(self, item: int) -> None:
        """Allow a system to be drawn."""
        self._others.add(item)

    def remove(self, item: int) -> None:
        """Stop a system from being drawn."""
        self._others.remove(item)

    def draw_companions(
        self, leader: int, count: int, barred: ItemSet, rng: np.random.Generator, *, chosen_items: Collection[int] = ()
    ) -> list[int]:
        """Draw the hardest neighbour, then as `Companions.draw_companions` does."""
        neighbour = self._hardest.hardest_neighbour(leader)
        first = [neighbour] if self._hardest.can_system_lead_hit(neighbour, barred | {leader, *chosen_items}) else []
        return first + self._others.draw_companions(
            leader, count - len(first), barred, rng, chosen_items=[*chosen_items, *first]
        )

    def require_consistency(self, items: ItemNumbers) -> None:
        """Raise ValueError unless just these systems may be drawn. For tests."""
        self._others.require_consistency(items)


def make_hardest_neighbour_leaders_and_companions(
    settings: SelectionSettings, items: ItemNumbers, open_items: OpenItems
) -> tuple[HardestNeighbourLeaders, NeighbourCompanions]:
    """Make pools in which one of the two systems that are hardest to tell apart leads, with the other as
    companion.
    """
    leaders = HardestNeighbourLeaders(items, open_items)
    return leaders, NeighbourCompanions(
        leaders, Companions(items, open_items.score, open_items.variance, settings.gamma)
    )


SYSTEMS_RULE = AlgorithmOne(
    "systems",
    "Neighbours: compare the two systems that are hardest to tell apart",
    needs_ordered_scores=True,
    for_systems_only=True,
    make_pools=make_hardest_neighbour_leaders_and_companions,
    leader_worth=lambda _settings, values: gain_and_hardest_neighbour_of_each_system(values)[0],
    index_bytes_per_item=400,  # systems are few, and are kept in sets of Python objects
    reason=HARDEST_NEIGHBOURS,
)
