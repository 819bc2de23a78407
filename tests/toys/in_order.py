"""Selection rule that asks about the items with the fewest judgments, in the order of their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.selection.index import SelectionIndex
from app.selection.item_sets import ItemSet
from app.selection.rule import Draw, ItemValues, PairFilter, SelectionSettings


class InOrderIndex(SelectionIndex):
    def draw_hit_or_none(
        self,
        n: int,
        *,
        seen: set[int],
        full: ItemSet,
        leaders_to_avoid: set[int],
        seen_as_last_resort: bool,
        initial_items: Sequence[int] = (),
        pair_filter: PairFilter | None = None,
        rng: np.random.Generator,
    ) -> Draw | None:
        for barred in (seen | full, full) if seen_as_last_resort else (seen | full,):
            free = [item for item in range(len(self.judgments)) if self.leaves(item) and item not in barred]
            if free:
                others = sorted(
                    {*free} - {*initial_items},
                    key=lambda item: (item in leaders_to_avoid, self.judgments.item(item), item),
                )
                return shuffled([*initial_items, *others][:n], rng)
        return shuffled([*initial_items], rng) if initial_items else None

    def leaves(self, item: int) -> bool:
        return item not in self.full_items({item: 0})


def shuffled(items: list[int], rng: np.random.Generator) -> Draw:
    return Draw(items[0], rng.permutation(items).tolist(), "in_order", 1.0)


@dataclass(frozen=True)
class InOrder:
    name: str = "in_order"
    title: str = "In order: the items with the fewest judgments"
    reads_labels: bool = False
    reads_comparisons: bool = False
    needs_ordered_scores: bool = False
    needs_bounded_scores: bool = False
    for_systems_only: bool = False
    matches_by_score: bool = False
    index_bytes_per_item: int = 60

    def make_selection_index(self, values: ItemValues, settings: SelectionSettings) -> InOrderIndex:
        return InOrderIndex(values, settings)

    def schedule_hits_of_iteration(
        self, values: ItemValues, settings: SelectionSettings, *, iteration: int, rng: np.random.Generator
    ) -> list[Draw]:
        wanted = np.flatnonzero(
            values.judgments_with_undrawn_items_as_full(settings) < settings.judgments_per_item
        ).tolist()
        hits = [
            wanted[start : start + settings.items_per_hit] for start in range(0, len(wanted), settings.items_per_hit)
        ]
        return [shuffled(items, rng) for items in hits]


IN_ORDER = InOrder()
