"""Rules for labels: ask about the item whose class is least certain, or about which a label is most informative.

Both read the posterior of an item's true class by Dawid & Skene's model, with one response matrix for all annotators
(`inference.labels.pooled_dawid_skene`): it follows from the counts of each item's labels, which a Dirichlet posterior
holds. A matrix for each annotator would need all answers, and a fit of seconds.

Items with the same counts of labels are alike, so they share a bucket, and the measure is computed once for each
bucket. The matrix is refitted whenever the number of labels has grown by a tenth.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ground.information import entropy, mutual_information
from app.inference.labels import pooled_dawid_skene
from app.inference.labels.pooled_dawid_skene import PooledModel
from app.selection.buckets import Bucket, Buckets, Pick, make_empty_bucket
from app.selection.index import AlgorithmOne
from app.selection.item_sets import ItemSet
from app.selection.leaders import iterate_bucket_in_random_order
from app.selection.open_items import OpenItems
from app.selection.rule import (
    BEGUN_HIT,
    Draw,
    DrawReason,
    ItemValues,
    PairFilter,
    SelectionSettings,
    make_draw_in_random_order,
    read_only_union_of_sets,
)

REFIT_GROWTH = 1.1  # times as many labels as at the last fit, until the next one
LabelCounts = tuple[int, ...]
ItemMeasure = Callable[[Array, PooledModel], Array]


def true_class_entropy_bits(posterior: Array, model: PooledModel) -> Array:  # noqa: ARG001  (others ask)
    """Entropy of the true class, in bits: posteriors (V, K) give (V,)."""
    return entropy(posterior)


def expected_label_information(posterior: Array, model: PooledModel) -> Array:
    """Expected decrease of that entropy by one more label, in bits: posteriors (V, K) give (V,)."""
    return mutual_information(posterior, model.response)


class LabelIndex(OpenItems):
    """Items by their labels. A draw costs the same at every number of items, and grows with the number of distinct
    counts.

    Items whose newest labels have not arrived yet keep their previous counts.
    """

    def __init__(
        self,
        values: ItemValues,
        settings: SelectionSettings,
        *,
        measure: ItemMeasure,
        states: npt.ArrayLike,
        reason: str,
    ) -> None:
        """Arrange items by their Dirichlet posteriors `states`, (N, K)."""
        super().__init__(values, settings)
        self.items_with_unread_labels: set[int] = set()
        self._measure, self._reason, self._bags = measure, reason, Buckets(len(self.score))
        distinct, kind_of_item = distinct_label_counts_and_kind_of_each_posterior(states)
        self._shared_counts = {labels: labels for labels in distinct}  # items that are alike refer to the same tuple
        self._labels: list[LabelCounts] = [*map(distinct.__getitem__, kind_of_item)]
        # How many items got these labels, those that want none any more too.
        self._alike = Counter(dict(zip(distinct, np.bincount(kind_of_item).tolist(), strict=True)))
        items = self.open_item_numbers()
        items = items[np.argsort(kind_of_item[items], kind="stable")]
        kinds, starts = np.unique(kind_of_item[items], return_index=True)
        buckets = self._bags.make_bucket_of_each_run(items, starts)
        self._open: dict[LabelCounts, Bucket] = {
            distinct[kind]: bucket for kind, bucket in zip(kinds.tolist(), buckets, strict=True)
        }
        self._size = len(items)
        self._refit_model()

    @property
    def open_item_count(self) -> int:
        """Number of items that want judgments."""
        return self._size

    def update_label_posteriors(self, item_numbers: Sequence[int], posterior_states: npt.ArrayLike) -> None:
        """Update the posteriors of some items, (n, K). Labels only grow, so the posterior with fewer is older."""
        for item, labels in zip(item_numbers, label_counts_of_each_posterior(posterior_states), strict=True):
            self.items_with_unread_labels.discard(item)
            if sum(labels) > sum(self._labels[item]):
                self._move_item_to_bucket_of_labels(item, self._shared_counts.setdefault(labels, labels))
        if self._count_labels() >= REFIT_GROWTH * self._fitted_to:
            self._refit_model()

    def draw_hit_or_none(
        self,
        n: int,
        *,
        seen: set[int],
        full: ItemSet,
        leaders_to_avoid: set[int],
        seen_as_last_resort: bool,
        initial_items: Sequence[int] = (),
        pair_filter: PairFilter | None = None,  # noqa: ARG002  (of pairs that have an order, and labels have none)
        rng: np.random.Generator,
    ) -> Draw | None:
        """Draw the next HIT, as `rule.Index` says: the n items of highest measure, ties at random."""
        chosen = [*initial_items]
        reason: DrawReason = BEGUN_HIT
        seen_or_full = read_only_union_of_sets(seen, full)
        for barred in (seen_or_full, full) if seen_as_last_resort else (seen_or_full,):
            if not chosen and (
                leader := self._draw_first_item_or_none(read_only_union_of_sets(barred, leaders_to_avoid), rng)
                or self._draw_first_item_or_none(barred, rng)
            ):
                chosen, reason = [leader.item], (self._reason, leader.probability)
            if chosen:
                excluded = barred | {*chosen}
                for item in islice(self._iterate_items(excluded, rng), n - len(chosen)):
                    excluded.add(item)
                    chosen.append(item)
        return make_draw_in_random_order(chosen, rng, reason) if chosen and len(chosen) >= self._fewest else None

    def require_consistency(self) -> None:
        """Raise ValueError unless each item that wants judgments is in the bucket of its labels alone. For tests."""
        held = sorted((item, labels) for labels, bag in self._open.items() for item in bag)
        if held != [(item, self._labels[item]) for item in self.open_items()] or len(held) != self._size:
            raise ValueError(f"the buckets hold {held}")
        if self._alike != Counter(self._labels) or {labels for _, labels in self._order} != {*self._open}:
            raise ValueError("the counts of labels are not those of the items")

    def _draw_first_item_or_none(self, barred: ItemSet, rng: np.random.Generator) -> Pick | None:
        """Return the first item that is not barred, ties at random."""
        for _, labels in self._order:
            if (item := self._bags.pick_item_or_none(self._open[labels], barred, rng)) is not None:
                return Pick(item, 1.0 / self._bags.count_items_not_barred(self._open[labels], barred))
        return None

    def _iterate_items(self, barred: ItemSet, rng: np.random.Generator) -> Iterator[int]:
        """Yield items in order; the caller bars each item before the next one."""
        for _, labels in self._order:
            yield from iterate_bucket_in_random_order(self._bags, self._open[labels], barred, rng)

    def _update_item(self, item: int, score: float, variance: float, judgments: int, status: int) -> None:
        before = self._wants_judgments(item)
        self._store_values(item, score, variance, judgments, status)
        self.items_with_unread_labels.add(item)
        if before and not self._wants_judgments(item):
            self._bags.remove_item(item, self._open[self._labels[item]])
            self._size -= 1

    def _move_item_to_bucket_of_labels(self, item: int, labels: LabelCounts) -> None:
        before, self._labels[item] = self._labels[item], labels
        self._alike[labels] += 1
        self._alike[before] -= 1
        if not self._alike[before]:
            del self._alike[before]
        if self._wants_judgments(item):
            self._bags.remove_item(item, self._open[before])
            if labels not in self._open:
                self._open[labels] = make_empty_bucket()
                insort(self._order, self._sort_key_of_each_bucket([labels])[0])
            self._bags.add_item(item, self._open[labels])

    def _refit_model(self) -> None:
        """Refit the model to all labels, and sort the buckets by it."""
        self._model = pooled_dawid_skene.fit([*self._alike], [*self._alike.values()])
        self._fitted_to = max(1, self._count_labels())
        self._open = {labels: bag for labels, bag in self._open.items() if bag}
        self._order = sorted(self._sort_key_of_each_bucket([*self._open]))

    def _sort_key_of_each_bucket(self, labels: Sequence[LabelCounts]) -> list[tuple[float, LabelCounts]]:
        """Return the sort keys of these buckets: the lowest is asked first."""
        if not labels:
            return []
        worth = self._measure(self._model.posterior(labels), self._model)
        return list(zip((-worth).tolist(), labels, strict=True))

    def _count_labels(self) -> int:
        return sum(items * sum(labels) for labels, items in self._alike.items())


def label_counts_of_each_posterior(states: npt.ArrayLike) -> list[LabelCounts]:
    """Return the counts of each item's labels, from Dirichlet posteriors, (N, K).

    The prior is less than a label of each class, or, if an item comes with more, as good as labels.
    """
    return list(map(tuple, _count_labels_of_each_class(states).tolist()))


def distinct_label_counts_and_kind_of_each_posterior(
    states: npt.ArrayLike,
) -> tuple[list[LabelCounts], npt.NDArray[np.intp]]:
    """Return the different counts of labels among Dirichlet posteriors, (N, K), and the place of each one's, (N,)."""
    counts = _count_labels_of_each_class(states)
    kinds = first = np.zeros(len(counts), np.intp)
    for column in counts.T:
        keys = kinds * (column.max(initial=0) + 1) + column
        _, first, kinds = np.unique(keys, return_index=True, return_inverse=True)
    return [*map(tuple, counts[first].tolist())], kinds


def _count_labels_of_each_class(states: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return np.floor(np.asarray(states, np.float64)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class LabelRule(AlgorithmOne):
    """A rule that reads labels, one HIT at a time."""

    measure: ItemMeasure = true_class_entropy_bits
    reads_labels: bool = True

    def make_selection_index(  # type: ignore[override]  # it takes the labels, too
        self, values: ItemValues, settings: SelectionSettings, *, states: npt.ArrayLike | None = None
    ) -> LabelIndex:
        """Return the index for drawing one HIT at a time; without `states` there are no labels yet."""
        states = np.zeros((len(values.score), 2)) if states is None else states
        return LabelIndex(values, settings, measure=self.measure, states=states, reason=self.name)


ENTROPY_RULE = LabelRule(
    "entropy", "Entropy: ask about the item whose label is least certain", measure=true_class_entropy_bits
)
INFORMATION_RULE = LabelRule(
    "information",
    "Information: ask about the item for which one more label is most informative",
    measure=expected_label_information,
)
