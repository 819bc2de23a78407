"""What a rule of selection is: it draws the items of the next HIT, or of all HITs of an iteration, from what is known.

The schedule, one HIT at a time or an iteration at once, is another choice.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array

Counts = npt.NDArray[np.int64]
DrawReason = tuple[str, float | None]  # a HIT was drawn: its reason, and the probability of its leader
BEGUN_HIT: DrawReason = ("begun", None)

# On top of the judgments of an item that has left the pool, more than anybody wants, so that whoever draws items takes
# it for full; and so many that its own can still be told, and why it left: it is settled, or so many people could not
# judge it.
SETTLED_OFFSET, GONE_OFFSET = 2**29, 2**30


@dataclass(frozen=True)
class Draw:
    """The items of one HIT: numbers 0..N-1, none twice, in the random order in which they are shown.

    reason: why its leader leads, in a word of the rule's. probability: that of drawing this leader when it was drawn,
    among those that came first then; None where nobody works it out.
    """

    leader: int
    items: list[int]
    reason: str
    probability: float | None = None


def shuffle_hit(chosen: Sequence[int], rng: np.random.Generator, reason: DrawReason) -> Draw:
    """A HIT of these items, of which the first leads."""
    return Draw(chosen[0], rng.permutation(chosen).tolist(), *reason)


def union_for_reading(items: set[int], others: set[int]) -> set[int]:
    """The union of two sets, to be read only: one of them may be many thousands, and is copied only if it must be."""
    if others <= items:
        return items
    return others if items <= others else items | others


class PairFilter(Protocol):
    """Which items are not asked beside each other. spent: leaders that had no companion left; draws add to them.

    Within a revision there is ever less to ask of an annotator, so who was spent stays so.
    """

    @property
    def exhausted_leaders(self) -> set[int]: ...

    def items_not_asked_with(self, leader: int) -> set[int]:
        """The items that are not asked beside this one."""


@dataclass(frozen=True, slots=True)
class SelectionSettings:
    """What a campaign says of how it asks.

    wanted: judgments of each item. n: items of a HIT. gamma: how quickly match quality falls with distance. hits: of an
    iteration, None for as many as give each item about one judgment. leaders_as_companions: whether an item that leads
    a HIT of an iteration may be in another one. fewest: of how many items an answer says something. never: the numbers
    of items that are not drawn, as if they had all that is wanted; n and fewest do not count them. best: how many items
    are the best, and threshold, on the scale of the scores: of rules for which they are what matters.
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


class Index(Protocol):
    """A campaign's newest scores, variances and judgments, (N,), arranged for quick draws.

    It may lag behind the database: it decides what to ask, nothing else.
    """

    score: Array
    variance: Array
    judgments: Counts

    def update(
        self,
        numbers: Collection[int],
        score: Collection[float],
        variance: Collection[float],
        judgments: Collection[int],
    ) -> None:
        """Take over new values of a few items: four sequences of one length."""

    def draw(
        self,
        n: int,
        *,
        seen: set[int],
        full: set[int],
        leading: set[int],
        allow_seen: bool,
        initial_items: Sequence[int] = (),
        pair_filter: PairFilter | None = None,
        rng: np.random.Generator,
    ) -> Draw | None:
        """The next HIT of n >= 1 items for one annotator, shorter if fewer can be asked, None if not even the fewest
        can. It must take milliseconds, whatever N is.

        seen: items the annotator has scored; they are taken only with `allow_seen`, once there are no others.
        full: items that open leases and judgments have given all that is wanted; they are not taken.
        leading: items that lead an open HIT; they lead another only if all candidates do.
        begun: items that are in the HIT in any case, whose first one leads it.
        apart: what is not asked beside which leader, of HITs of two items that nobody began.
        """

    def full_items(self, open_leases: Mapping[int, int]) -> set[int]:
        """Of items in so many open leases, those that have or will have all judgments wanted."""

    def open_items(self) -> list[int]:
        """The items that want judgments, in the order of their numbers. O(N)."""

    def has_items_after(
        self, items: Collection[int], *, seen: Collection[int], allow_seen: bool, barred: Collection[int] = ()
    ) -> bool:
        """Whether anything can be asked of an annotator once they have answered a HIT of these items. barred: of the
        seen items those that they are not asked about again, whatever `allow_seen` says.
        """


class Rule(Protocol):
    """A rule of selection. name: the key in `RULES`, stored with a campaign. title: for people.

    reads_labels: whether it reads how often each item got each label. Only laws that count classes keep that, and it is
    known of one HIT at a time: such a rule's `index` takes `states` besides, (N, K), and is told of others by `tell`.
    places: whether it needs scores that say how high items stand, not how sure their labels are; on_scale: and between
    which ends. of_systems: whether it is for systems alone, of which there are few.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def reads_labels(self) -> bool: ...

    @property
    def needs_ordered_scores(self) -> bool: ...

    @property
    def needs_bounded_scores(self) -> bool: ...

    @property
    def for_systems_only(self) -> bool: ...

    def make_index(
        self, score: npt.ArrayLike, variance: npt.ArrayLike, judgments: npt.ArrayLike, settings: SelectionSettings
    ) -> Index:
        """For draws of one HIT at a time. Arrays (N,), copied: real scores, variances > 0, judgments >= 0."""

    def plan_iteration(
        self,
        score: Array,
        variance: Array,
        judgments: Counts,
        settings: SelectionSettings,
        *,
        iteration: int,
        rng: np.random.Generator,
    ) -> list[Draw]:
        """The HITs of an iteration, the first of which is number 0; arrays (N,), judgments with those that open HITs
        hold. No item is planned beyond the judgments it wants, or asked alone while another could be beside it.
        """
