"""The interface of a selection rule: it draws the items of the next HIT, or of all HITs of an iteration.

The schedule, one HIT at a time or an iteration at once, is a separate setting.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import Protocol, overload

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.selection.item_sets import ItemSet

Counts = npt.NDArray[np.int64]
Statuses = npt.NDArray[np.int8]
DrawReason = tuple[str, float | None]  # a HIT was drawn: its reason, and the probability of its leader
BEGUN_HIT: DrawReason = ("begun", None)


class ItemStatus(IntFlag):
    """Why an item has left the pool, so that no HIT asks about it; 0 for an item in the pool."""

    SETTLED = 1  # released: the goal of the campaign needs no more judgments of it
    GONE = 2  # too many annotators could not judge it


@dataclass(frozen=True)
class Draw:
    """The items of one HIT: numbers 0..N-1, none twice, in the random order in which they are shown.

    Attributes:
        leader: The item that leads the HIT.
        reason: Why it leads, in a word of the rule's.
        probability: The probability of drawing this leader among the candidates then; None where it is not computed.

    """

    leader: int
    items: list[int]
    reason: str
    probability: float | None = None


def make_draw_in_random_order(chosen_items: Sequence[int], rng: np.random.Generator, reason: DrawReason) -> Draw:
    """Return a HIT of these items in random order; the first one leads."""
    return Draw(chosen_items[0], rng.permutation(chosen_items).tolist(), *reason)


@overload
def read_only_union_of_sets(items: set[int], other_items: set[int]) -> set[int]: ...
@overload
def read_only_union_of_sets(items: ItemSet, other_items: ItemSet) -> ItemSet: ...
def read_only_union_of_sets(items: ItemSet, other_items: ItemSet) -> ItemSet:
    """Return the union of two sets, read-only: one of them may be many thousands, and is copied only if it must be."""
    if other_items <= items:
        return items
    return other_items if items <= other_items else items | other_items


class PairFilter(Protocol):
    """Filter of items that are not asked together; draws add leaders without companions to `exhausted_leaders`.

    Within a revision the choice for an annotator only shrinks, so an exhausted leader stays so.
    """

    @property
    def exhausted_leaders(self) -> set[int]: ...

    def items_never_asked_together_with(self, leader: int) -> set[int]:
        """Return the items that are not asked together with this one."""


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """A campaign's settings of selection.

    Attributes:
        judgments_per_item: Judgments that each item wants.
        items_per_hit: Items of a HIT, without those never drawn.
        gamma: How quickly match quality falls with distance.
        hits_per_iteration: None for as many as give each item about one judgment.
        leaders_as_companions: Whether an item that leads a HIT of an iteration may be in another one.
        min_items: The fewest items of an informative answer, without those never drawn.
        never_drawn: The numbers of items that are not drawn, as if they had all judgments.
        best_count: The number of best items, for rules about them.
        threshold: On the scale of the scores, for rules about it.

    """

    judgments_per_item: int
    items_per_hit: int
    gamma: float
    hits_per_iteration: int | None = None
    leaders_as_companions: bool = False
    min_items: int = 1
    never_drawn: tuple[int, ...] = ()
    best_count: int = 10
    threshold: float = 0.5


class ItemValues:
    """Newest values of a campaign's N items.

    Attributes:
        score: (N,), real.
        variance: (N,), > 0.
        judgments: (N,), numbers of judgments.
        status: (N,), the `ItemStatus` of each item.

    """

    def __init__(
        self, score: npt.ArrayLike, variance: npt.ArrayLike, judgments: npt.ArrayLike, status: npt.ArrayLike = 0
    ) -> None:
        """Take the arrays, not copied if their types are right; all items are in the pool if no status is given."""
        self.score: Array = np.asarray(score, np.float64)
        self.variance: Array = np.asarray(variance, np.float64)
        self.judgments: Counts = np.asarray(judgments, np.int64)
        self.status: Statuses = np.full(len(self.score), status, np.int8)

    def judgments_with_undrawn_items_as_full(self, settings: SelectionSettings) -> Counts:
        """Return the judgments, (N,), as if all items that are not drawn had as many as are wanted."""
        filled = np.where(self.status > 0, settings.judgments_per_item, self.judgments)
        filled[[*settings.never_drawn]] = settings.judgments_per_item
        return filled


class Index(Protocol):
    """The `ItemValues` of a campaign, arranged for quick draws.

    It may lag behind the database: it decides what to ask, nothing else.
    """

    score: Array
    variance: Array
    judgments: Counts
    status: Statuses

    @property
    def open_item_count(self) -> int:
        """Number of items that want judgments."""

    def update(
        self,
        numbers: Collection[int],
        score: Collection[float],
        variance: Collection[float],
        judgments: Collection[int],
        status: Collection[int] | None = None,
    ) -> None:
        """Update the values of a few items: sequences of one length. Without `status` it stays as it is."""

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
        """Draw the next HIT for one annotator, within milliseconds for any N.

        Args:
            n: The number of items, at least 1; the HIT is shorter if fewer can be asked.
            seen: Items the annotator has scored; with `seen_as_last_resort`, they are drawn if there are no others.
            full: Items that have all judgments, counting open leases; they are not drawn.
            leaders_to_avoid: Items that lead an open HIT; they lead another only if all candidates do.
            seen_as_last_resort: Whether an annotator may judge an item again, if there are no others.
            initial_items: Items that are in the HIT in any case; the first one leads it.
            pair_filter: Filter of pairs, for HITs of two items without initial items.
            rng: The source of the draw.

        Returns:
            The HIT, or None if there are not enough items.

        """

    def full_items(self, open_leases: Mapping[int, int]) -> set[int]:
        """Return the items that have all judgments, counting those of open leases, given the number of leases by
        item.
        """

    def open_items(self) -> list[int]:
        """Return the items that want judgments, in numerical order. O(N)."""

    def has_open_items_left_after_hit(
        self,
        items: Collection[int],
        *,
        seen_items: Collection[int],
        seen_as_last_resort: bool,
        barred: Collection[int] = (),
        never_asked: npt.NDArray[np.bool_] | None = None,
    ) -> bool:
        """Return whether an annotator can be asked anything after a HIT of these items.

        `barred` are seen items that they are not asked about again, whatever `seen_as_last_resort` says.
        `never_asked` is true at the items that are only for other people.
        """


class Rule(Protocol):
    """A selection rule.

    Attributes:
        name: The key in the registry, stored with a campaign.
        reads_labels: Whether it reads the counts of each item's labels. Only laws that count classes keep them, and
            only for one HIT at a time: such a rule's `make_selection_index` also takes `states`, (N, K), and its index
            has `update_label_posteriors`.
        reads_comparisons: Whether it reads which items won against which others, only for one HIT at a time.
        needs_ordered_scores: Whether it needs scores on a scale, not confidences of labels.
        needs_bounded_scores: Whether that scale must have ends.
        for_systems_only: Whether it is only for systems, which are few.
        matches_by_score: Whether it puts items with similar scores together, which inflates reliability.
        index_bytes_per_item: Memory of its index for one item, at most; less if many of them have the same values.

    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def reads_labels(self) -> bool: ...

    @property
    def reads_comparisons(self) -> bool: ...

    @property
    def needs_ordered_scores(self) -> bool: ...

    @property
    def needs_bounded_scores(self) -> bool: ...

    @property
    def for_systems_only(self) -> bool: ...

    @property
    def matches_by_score(self) -> bool: ...

    @property
    def index_bytes_per_item(self) -> int: ...

    def make_selection_index(self, values: ItemValues, settings: SelectionSettings) -> Index:
        """Return the index for draws of one HIT at a time, with a copy of the values."""

    def schedule_hits_of_iteration(
        self, values: ItemValues, settings: SelectionSettings, *, iteration: int, rng: np.random.Generator
    ) -> list[Draw]:
        """Return the HITs of an iteration, numbered from 0; judgments include those that open HITs hold.

        No item is scheduled beyond the judgments it wants, or asked alone while another could share its HIT.
        """
