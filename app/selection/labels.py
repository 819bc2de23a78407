"""What to ask next where items get labels: the item whose class is least certain, or of which a label tells most.

Both read the posterior of an item's true class by Dawid & Skene's model, with one matrix of responses for all
annotators (`inference.labels.pooled`): it follows from how often each item got each label, which is what a Dirichlet
posterior counts. A matrix for each annotator would need all answers, and a fit of seconds.

Items with the same counts of labels are alike, so they lie in one bag, and what is computed is computed for each bag.
The matrix is fitted again whenever the labels have become a tenth more.
"""

from bisect import insort
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.ground.information import entropy, mutual_information
from app.inference.labels import pooled
from app.inference.labels.pooled import Pooled
from app.selection.bags import Bag, Bags, Picked
from app.selection.index import AlgorithmOne
from app.selection.leaders import each_of
from app.selection.rule import BEGUN, Apart, Asking, Draw, Why, in_random_order, together
from app.selection.wanted import WantedItems

MORE = 1.1  # times as many labels as at the last fit, until the next one
Labels = tuple[int, ...]
Measure = Callable[[Array, Pooled], Array]


def uncertainty(posterior: Array, model: Pooled) -> Array:  # noqa: ARG001  (others ask)
    """How uncertain the true class is, in bits: posteriors (V, K) give (V,)."""
    return entropy(posterior)


def expected_information(posterior: Array, model: Pooled) -> Array:
    """How far one more label is expected to lower that, in bits: posteriors (V, K) give (V,)."""
    return mutual_information(posterior, model.response)


class LabelIndex(WantedItems):
    """Items by the labels that they got. A draw costs the same at every number of items, and grows with how many
    different counts of labels there are.

    untold: items that were answered since it was told of their labels; until then they count with those they had.
    """

    def __init__(
        self,
        score: npt.ArrayLike,
        variance: npt.ArrayLike,
        judgments: npt.ArrayLike,
        *,
        measure: Measure,
        states: npt.ArrayLike,
        wanted: int,
        fewest: int = 1,
        never: Collection[int] = (),
        reason: str = "entropy",
    ) -> None:
        """See `WantedItems`. states: (N, K), Dirichlet posteriors. reason: why what comes first does."""
        super().__init__(score, variance, judgments, wanted=wanted, fewest=fewest, never=never)
        self.untold: set[int] = set()
        self._measure, self._reason, self._bags = measure, reason, Bags(len(self.score))
        self._labels = whole_labels(states)
        self._alike = Counter(self._labels)  # how many items got these labels, those that want none any more too
        self._open: dict[Labels, Bag] = {}
        items = self.open_items()
        for item in items:
            self._bags.put(item, self._open.setdefault(self._labels[item], []))
        self._size = len(items)
        self._fit()

    @property
    def open_count(self) -> int:
        """How many items want judgments."""
        return self._size

    def tell(self, numbers: Sequence[int], states: npt.ArrayLike) -> None:
        """The posteriors of some items, (n, K). Labels only grow, so of two the one with fewer is older."""
        for item, labels in zip(numbers, whole_labels(states), strict=True):
            self.untold.discard(item)
            if sum(labels) > sum(self._labels[item]):
                self._move(item, labels)
        if self._count() >= MORE * self._fitted_to:
            self._fit()

    def draw(
        self,
        n: int,
        *,
        seen: set[int],
        full: set[int],
        leading: set[int],
        allow_seen: bool,
        begun: Sequence[int] = (),
        apart: Apart | None = None,  # noqa: ARG002  (of pairs that have an order, and labels have none)
        rng: np.random.Generator,
    ) -> Draw | None:
        """The next HIT, as `rule.Index` says: the n items that come first, ties at random."""
        chosen = [*begun]
        why: Why = BEGUN
        unseen = together(seen, full)
        for barred in (unseen, full) if allow_seen else (unseen,):
            if not chosen and (leader := self._first(together(barred, leading), rng) or self._first(barred, rng)):
                chosen, why = [leader.item], (self._reason, leader.probability)
            if chosen:
                away = barred.union(chosen)
                for item in islice(self._each(away, rng), n - len(chosen)):
                    away.add(item)
                    chosen.append(item)
        return in_random_order(chosen, rng, why) if chosen and len(chosen) >= self._fewest else None

    def check(self) -> None:
        """Raises ValueError unless each item that wants judgments lies in the bag of its labels alone. For tests."""
        held = sorted((item, labels) for labels, bag in self._open.items() for item in bag)
        if held != [(item, self._labels[item]) for item in self.open_items()] or len(held) != self._size:
            raise ValueError(f"in bags lie {held}")
        if self._alike != Counter(self._labels) or {labels for _, labels in self._order} != {*self._open}:
            raise ValueError("the counts of labels are not those of the items")

    def _first(self, barred: set[int], rng: np.random.Generator) -> Picked | None:
        """What comes first of what is not barred, ties at random."""
        for _, labels in self._order:
            if (item := self._bags.pick(self._open[labels], barred, rng)) is not None:
                return Picked(item, 1.0 / self._bags.among(self._open[labels], barred))
        return None

    def _each(self, barred: set[int], rng: np.random.Generator) -> Iterator[int]:
        """From what comes first on; whoever asks on has barred the last one."""
        for _, labels in self._order:
            yield from each_of(self._bags, self._open[labels], barred, rng)

    def _change(self, item: int, score: float, variance: float, judgments: int) -> None:
        before = self._wants(item)
        self._set(item, score, variance, judgments)
        self.untold.add(item)
        if before and not self._wants(item):
            self._bags.take(item, self._open[self._labels[item]])
            self._size -= 1

    def _move(self, item: int, labels: Labels) -> None:
        before, self._labels[item] = self._labels[item], labels
        self._alike[labels] += 1
        self._alike[before] -= 1
        if not self._alike[before]:
            del self._alike[before]
        if self._wants(item):
            self._bags.take(item, self._open[before])
            if labels not in self._open:
                self._open[labels] = []
                insort(self._order, self._places([labels])[0])
            self._bags.put(item, self._open[labels])

    def _fit(self) -> None:
        """The model to all labels, and the order of the bags by it."""
        self._model = pooled.fit([*self._alike], [*self._alike.values()])
        self._fitted_to = max(1, self._count())
        self._open = {labels: bag for labels, bag in self._open.items() if bag}
        self._order = sorted(self._places([*self._open]))

    def _places(self, labels: Sequence[Labels]) -> list[tuple[float, Labels]]:
        """Where these bags belong in the order: what is to be asked first has the lowest number."""
        if not labels:
            return []
        worth = self._measure(self._model.posterior(labels), self._model)
        return list(zip((-worth).tolist(), labels, strict=True))

    def _count(self) -> int:
        return sum(items * sum(labels) for labels, items in self._alike.items())


def whole_labels(states: npt.ArrayLike) -> list[Labels]:
    """How often each item got each label, from Dirichlet posteriors, (N, K): what they begin with is less than a label
    of each class, or, if an item comes with more, as good as labels.
    """
    return list(map(tuple, np.floor(np.asarray(states, np.float64)).astype(np.int64).tolist()))


@dataclass(frozen=True, slots=True)
class LabelRule(AlgorithmOne):
    """A rule that reads labels, one HIT at a time."""

    measure: Measure = uncertainty
    reads_labels: bool = True

    def index(  # type: ignore[override]  # it takes the labels, too
        self,
        score: npt.ArrayLike,
        variance: npt.ArrayLike,
        judgments: npt.ArrayLike,
        asking: Asking,
        *,
        states: npt.ArrayLike | None = None,
    ) -> LabelIndex:
        """One HIT at a time; without states nobody has given a label."""
        return LabelIndex(
            score,
            variance,
            judgments,
            measure=self.measure,
            states=np.zeros((len(np.asarray(score)), 2)) if states is None else states,
            wanted=asking.wanted,
            fewest=asking.fewest,
            never=asking.never,
            reason=self.name,
        )


ENTROPY = LabelRule("entropy", "Entropy: the item whose label is least certain", measure=uncertainty)
INFORMATION = LabelRule(
    "information",
    "Information: the item of which one more label is expected to tell most",
    measure=expected_information,
)
