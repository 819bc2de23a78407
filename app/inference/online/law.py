"""What an online update law is: it reads a posterior, and one HIT changes the posteriors of its items."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.observations.coarsening import Reads
from app.inference.observations.said import Said
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated import Moderated

T = TypeVar("T")
State = list[float]
Columns = tuple[list[float], ...]
"""The numbers of n posteriors, one list of n floats for each number."""


class Hit(NamedTuple):
    """One answered HIT, as a law takes it: who answered, the items' numbers as presented, and their values.

    values: of a law that reads classes, their numbers from 0 on; of others shares of the scale, in [0, 1], the better
    the higher.
    """

    annotator: int
    items: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the laws can be tuned with; the defaults are those of Sakaguchi & Van Durme 2018, section 5.

    gamma: "skill chain", the width of a judgment's noise on the scale of the scores; finite, > 0.
    epsilon: how near two items must be for a tie to be expected, same scale; finite, >= 0
        (the paper takes > 0).
    tie_margin: two scores that differ by no more are a tie; in [0, 1], 0 means equal scores.
    ties: whether those are ties; otherwise nobody knows which of the two is better.

    Raises ValueError for anything else.
    """

    gamma: float = 0.1
    epsilon: float = 0.1
    tie_margin: float = 0.0
    ties: bool = True

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma < math.inf:
            raise ValueError(f"gamma must be a finite number above 0, not {self.gamma}")
        if not 0.0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon must be a finite number of at least 0, not {self.epsilon}")
        if not 0.0 <= self.tie_margin <= 1.0:
            raise ValueError(f"tie_margin must lie between 0 and 1, not {self.tie_margin}")


@dataclass(frozen=True, slots=True)
class Kept:
    """What a law knows besides posteriors: lists of floats that mean something to it alone.

    campaign: of the whole campaign, None for a law that knows nothing of the kind. annotators: by their numbers.
    items: by their numbers, a short list that changes with each judgment, and a long one that seldom does, None where
    it is as it was.
    """

    campaign: State | None = None
    annotators: Mapping[int, State] = field(default_factory=dict)
    items: Mapping[int, tuple[Sequence[float], Array | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """What one HIT changed: the posteriors of these items, the HIT's first, as columns; and what the law keeps."""

    items: Sequence[int]
    state: Columns
    kept: Kept = Kept()


class Posteriors(NamedTuple):
    """Asks for the posteriors of these items, as columns."""

    items: Sequence[int]


class Priors(NamedTuple):
    """Asks for the states that these items began with, a tuple of floats each."""

    items: Sequence[int]


class OfCampaign(NamedTuple):
    """Asks for what is kept of the campaign: a list of floats."""


class OfAnnotators(NamedTuple):
    """Asks for what is kept of these annotators, by number, without those of whom nothing is."""

    annotators: Sequence[int]


class OfItems(NamedTuple):
    """Asks for the short lists of these items and the lengths of their long ones, without those of which nothing is
    kept.
    """

    items: Sequence[int]


class LongOfItems(NamedTuple):
    """Asks for the long lists of these items, without those of which nothing is kept."""

    items: Sequence[int]


class ItemsAfter(NamedTuple):
    """Asks for the next `limit` items of which something is kept, from the one after number `last` on and around to it:
    number, short list, length of the long one.
    """

    last: int
    limit: int


class TakesLong(NamedTuple):
    """Asks to go on where nobody waits: some milliseconds of mathematics follow."""


Ask = TakesLong | Posteriors | Priors | OfCampaign | OfAnnotators | OfItems | LongOfItems | ItemsAfter
Step = Generator[Ask, Any, Change]
"""One HIT under way: it yields what it must know, is sent the answers, and returns what has changed. Pure, so whoever
keeps a campaign's state, in memory or in a database, takes the same steps to the same bits.
"""

Counted = tuple[list[float], list[float]]
"""What each judgment of an item counts for, first to last: weights in [0, 1], and corrected values as the law reads
them.
"""


def advanced(asking: Generator[Ask, Any, T], told: Any) -> Ask | T:
    """What is asked next, once the answer to what was asked before is told, or what came of it all."""
    try:
        return asking.send(told)
    except StopIteration as end:
        found: T = end.value
        return found


def answered(asking: Generator[Ask, Any, T], answer: Callable[[Ask], Any]) -> T:
    """What comes of it, for whoever has the answers to all that is asked at hand."""
    got = advanced(asking, None)
    while isinstance(got, Ask):
        got = advanced(asking, answer(got))
    return got


class Beliefs(Protocol):
    """All that a law believes of a campaign of N items, in memory, as HITs are applied in order.

    state: the posteriors' numbers, (numbers, N).
    """

    state: Array

    def take(self, hits: Sequence[Hit]) -> None:
        """Apply HITs. Raises ValueError for what cannot be one; start afresh then."""

    def steps(self, hits: Sequence[Hit]) -> Iterator[Change]:
        """Apply HITs one by one; what each changed."""

    def copy(self) -> "Beliefs":
        """One that goes its own way."""

    def kept(self) -> Kept:
        """What the law knows besides posteriors."""

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of distribution that a posterior is, and what its numbers, the state, say.

    name: as people write it before the numbers: "Beta" or "Normal".
    parameter_names: what the numbers are called, in files too: ("alpha", "beta") or ("mu", "sigma2").
    score_name: what the estimate is called, "mode" or "mean".
    default_prior: the numbers every item starts with.
    support: where scores can lie, as (lowest, highest); infinite for an unbounded scale.
    valid_prior(*state): whether these floats may be a start; says False to NaN and infinity.
    counts_classes: whether its numbers are counts of classes and the score is the share of the likeliest class, so that
        there is no scale on which items stand.

    Vectorised, the columns of a state of shape (N,) (or any that broadcast, floats included), answers of that shape:
    score(*state): the estimate on the scale of the scores.
    variance(*state): the uncertainty, in squared units of the score.
    interval(*state, level=0.95): the central interval that holds `level` of the posterior, as (low, high).
    density(*state, x): the posterior's density at `x`, which broadcasts with them, per unit of the score.
    These raise ValueError for a number that cannot be one of this posterior, such as alpha = 0 or NaN.

    estimates(*state): `score` and `variance` of the n posteriors of one HIT, sequences of n floats, as two new lists of
    n plain floats with the same bits, many times faster for a few items. Raises ValueError as they do.
    """

    name: str
    parameter_names: tuple[str, ...]
    score_name: str
    default_prior: tuple[float, ...]
    support: tuple[float, float]
    valid_prior: Callable[..., bool]
    score: Callable[..., Array]
    variance: Callable[..., Array]
    interval: Callable[..., tuple[Array, Array]]
    density: Callable[..., Array]
    estimates: Callable[..., tuple[list[float], list[float]]]
    counts_classes: bool = False

    def columns(self, states: Sequence[Sequence[float]]) -> Array:
        """States of n items, one by one, as columns, (numbers, n)."""
        return np.array(states, np.float64).reshape(-1, len(self.parameter_names)).T

    def likeliest(self, state: Array) -> Integers:
        """Of posteriors that count classes, (K, N), the class of the largest count: (N,) of 0..K-1, -1 where others
        have as many.
        """
        level = (state == state.max(axis=0)).sum(axis=0) > 1
        return np.where(level, -1, state.argmax(axis=0))


class AnnotatorDescribed(NamedTuple):
    """What a law has learned of an annotator, NaN where nothing. at_random: the probability that they answer at random.
    reliability: 0 to 1, the expected correlation of their answers with what items are worth. bias: how much higher they
    score the same items, in scores.
    """

    at_random: float
    reliability: float
    bias: float


@dataclass(frozen=True, slots=True)
class Law(ABC):
    """An online update law: what it keeps per item, and what one HIT does to that.

    name: the key in `laws.ONLINE`, stored with a campaign. title: short words for people.
    assumes: what it takes for granted, one sentence.
    family: what its posteriors are. reads: what kind of values it takes.
    layout: the version of what its `Kept` means, 0 for a law that keeps nothing besides posteriors.
    quick: whether a HIT takes microseconds, so that a long campaign can be replayed while somebody waits.
    fit: scores with errors by what it assumes, from all judgments at once and what they add up to, or None where these
    do not tell; None for a law whose scores are the plain means, or say nothing of errors.
    """

    name: str
    title: str
    assumes: str
    family: Family
    reads: Reads = "points"
    layout: int = 0
    quick: bool = True
    fit: Callable[[Said, Tally], Moderated | None] | None = None

    @property
    def short_title(self) -> str:
        """Its name for people."""
        return self.title.partition(":")[0]

    @abstractmethod
    def begin(self, priors: Sequence[npt.ArrayLike], parameters: Parameters, kept: Kept | None = None) -> Beliefs:
        """Before the first HIT. priors: the columns of the items' first states, (N,) each. kept: what is stored of the
        campaign now, if anything: some laws begin as they did then. Raises ValueError for priors that cannot be.
        """

    @abstractmethod
    def step(self, hit: Hit, parameters: Parameters) -> Step:
        """What one HIT changes, asking for what it needs to know."""

    def of_classes(self, count: int) -> "Law":  # noqa: ARG002  (most laws read none)
        """The law for so many classes."""
        return self

    def described(self, annotators: Mapping[int, State], campaign: State) -> dict[int, AnnotatorDescribed]:  # noqa: ARG002  (some read it)
        """What the law has learned of each annotator, by number; nothing by most laws.

        annotators, campaign: what is kept of them.
        """
        return {}

    def counted(self, item: int) -> Generator[Ask, Any, Counted] | None:  # noqa: ARG002  (most laws ask nothing)
        """What each judgment of an item counts for now; None where all count alike."""
        return None


def checked_scores(scores: Sequence[float], items: int) -> list[float]:
    """The scores of one HIT of `items` items as plain floats, so that no NumPy scalar slows or leaks out.

    Raises ValueError if there are none, not `items` of them, or one is NaN or outside [0, 1].
    """
    if not 0 < len(scores) == items:
        raise ValueError(f"a HIT needs one score per item, but has {items} items and {len(scores)} scores")
    floats = list(map(float, scores))
    for score in floats:
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"a score must lie between 0 and 1, not {score}")
    return floats


def checked_items(items: Sequence[int], count: int) -> None:
    """Raises ValueError unless the items of a HIT are different numbers from 0 to `count` - 1."""
    # Python would take -1 for the last item, and an item shown twice would keep only one of its updates.
    if len(set(items)) != len(items):
        raise ValueError(f"an item is twice in one HIT: {list(items)}")
    if len(items) and not 0 <= min(items) <= max(items) < count:
        raise ValueError(f"item numbers must lie between 0 and {count - 1}, not {list(items)}")
