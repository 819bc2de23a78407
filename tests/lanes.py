"""The order of tests in a run with several processes."""

from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


def order_for_processes(slow: Sequence[Item], quick: Sequence[Item], processes: int) -> list[Item]:
    """Order tests so that half of the processes begin with the slow ones while the others run quick ones.

    Slow tests mostly wait: for servers, clusters and faults. pytest-xdist gives each process an equal part of the list,
    and a process that is done takes from the end of another's part.
    """
    total, beginners = len(slow) + len(quick), max(1, processes // 2)
    ordered: list[Item] = []
    for place in range(processes):
        own = _share(slow, place, beginners) if place < beginners else []
        room = max(0, total * (place + 1) // processes - len(ordered) - len(own))
        ordered += [*own, *quick[:room]]
        quick = quick[room:]
    return ordered


def _share(items: Sequence[Item], place: int, places: int) -> Sequence[Item]:
    return items[len(items) * place // places : len(items) * (place + 1) // places]
