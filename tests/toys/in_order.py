"""The items with the fewest judgments, in the order of their numbers."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.index import SelectionIndex
from app.selection.rule import Asking, Counts, Draw


class InOrderIndex(SelectionIndex):
    """No chance at all."""

    def draw(self, n, *, seen, full, leading, allow_seen, begun=(), rng):
        for barred in (seen | full, full) if allow_seen else (seen | full,):
            free = [item for item in range(len(self.judgments)) if self.leaves(item) and item not in barred]
            if free:
                others = sorted({*free} - {*begun}, key=lambda item: (self.judgments[item], item))
                chosen = [*begun, *others][:n]
                return Draw(chosen[0], chosen)
        return Draw(begun[0], [*begun]) if begun else None

    def leaves(self, item: int) -> bool:
        return item not in self.full({item: 0})


@dataclass(frozen=True)
class InOrder:
    name: str = "in_order"
    title: str = "In order: the items with the fewest judgments"

    def index(
        self, score: npt.ArrayLike, variance: npt.ArrayLike, judgments: npt.ArrayLike, asking: Asking
    ) -> InOrderIndex:
        return InOrderIndex(score, variance, judgments, wanted=asking.wanted, gamma=asking.gamma)

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
        wanted = np.flatnonzero(judgments < asking.wanted).tolist()
        hits = [wanted[start : start + asking.n] for start in range(0, len(wanted), asking.n)]
        return [Draw(items[0], items) for items in hits]


IN_ORDER = InOrder()
