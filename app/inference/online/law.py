"""What an online update law is: it reads a posterior, and one HIT changes the posteriors of its items."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import ModeratedMeans

T = TypeVar("T")
StateFloats = list[float]
Columns = tuple[list[float], ...]
"""The numbers of n posteriors, one list of n floats for each number."""


class AnsweredHit(NamedTuple):
    """One answered HIT, as a law takes it: who answered, the items' numbers as presented, and their values.

    values: of a law that reads classes, their numbers from 0 on; of others shares of the scale, in [0, 1], the better
    the higher.
    """

    annotator: int
    items: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class LawParameters:
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
class LawState:
    """What a law knows besides posteriors: lists of floats that mean something to it alone.

    campaign: of the whole campaign, None for a law that knows nothing of the kind. annotators: by their numbers.
    items: by their numbers, a short list that changes with each judgment, and a long one that seldom does, None where
    it is as it was.
    """

    campaign: StateFloats | None = None
    annotators: Mapping[int, StateFloats] = field(default_factory=dict)
    items: Mapping[int, tuple[Sequence[float], Array | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HitChange:
    """What one HIT changed: the posteriors of these items, the HIT's first, as columns; and what the law keeps."""

    items: Sequence[int]
    state: Columns
    law_state: LawState = LawState()


class ReadPosteriors(NamedTuple):
    """Asks for the posteriors of these items, as columns."""

    items: Sequence[int]


class ReadPriors(NamedTuple):
    """Asks for the states that these items began with, a tuple of floats each."""

    items: Sequence[int]


class ReadCampaignState(NamedTuple):
    """Asks for what is kept of the campaign: a list of floats."""


class ReadAnnotatorStates(NamedTuple):
    """Asks for what is kept of these annotators, by number, without those of whom nothing is."""

    annotators: Sequence[int]


class ReadItemHeads(NamedTuple):
    """Asks for the short lists of these items and the lengths of their long ones, without those of which nothing is
    kept.
    """

    items: Sequence[int]


class ReadItemTails(NamedTuple):
    """Asks for the long lists of these items, without those of which nothing is kept."""

    items: Sequence[int]


class ReadNextItems(NamedTuple):
    """Asks for the next `limit` items of which something is kept, from the one after number `last` on and around to it:
    number, short list, length of the long one.
    """

    last: int
    limit: int


class RunInThread(NamedTuple):
    """Asks to go on where nobody waits: some milliseconds of mathematics follow."""


StateQuery = (
    RunInThread
    | ReadPosteriors
    | ReadPriors
    | ReadCampaignState
    | ReadAnnotatorStates
    | ReadItemHeads
    | ReadItemTails
    | ReadNextItems
)
LawStep = Generator[StateQuery, Any, HitChange]
"""One HIT under way: it yields what it must know, is sent the answers, and returns what has changed. Pure, so whoever
keeps a campaign's state, in memory or in a database, takes the same steps to the same bits.
"""

JudgmentWeights = tuple[list[float], list[float]]
"""What each judgment of an item counts for, first to last: weights in [0, 1], and corrected values as the law reads
them.
"""


def resume_law_step(law_step: Generator[StateQuery, Any, T], answer: Any) -> StateQuery | T:
    """What is asked next, once the answer to what was asked before is told, or what came of it all."""
    try:
        return law_step.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


def run_law_step(law_step: Generator[StateQuery, Any, T], answer_query: Callable[[StateQuery], Any]) -> T:
    """What comes of it, for whoever has the answers to all that is asked at hand."""
    query_or_result = resume_law_step(law_step, None)
    while isinstance(query_or_result, StateQuery):
        query_or_result = resume_law_step(law_step, answer_query(query_or_result))
    return query_or_result


class LawBeliefs(Protocol):
    """All that a law believes of a campaign of N items, in memory, as HITs are applied in order.

    state: the posteriors' numbers, (numbers, N).
    """

    state: Array

    def apply_hits(self, hits: Sequence[AnsweredHit]) -> None:
        """Apply HITs. Raises ValueError for what cannot be one; start afresh then."""

    def iterate_changes(self, hits: Sequence[AnsweredHit]) -> Iterator[HitChange]:
        """Apply HITs one by one; what each changed."""

    def copy(self) -> "LawBeliefs":
        """One that goes its own way."""

    def to_law_state(self) -> LawState:
        """What the law knows besides posteriors."""

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""


@dataclass(frozen=True, slots=True)
class PosteriorFamily:
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
    is_valid_prior: Callable[..., bool]
    score: Callable[..., Array]
    variance: Callable[..., Array]
    interval: Callable[..., tuple[Array, Array]]
    density: Callable[..., Array]
    scores_and_variances: Callable[..., tuple[list[float], list[float]]]
    counts_classes: bool = False

    def stack_states(self, states: Sequence[Sequence[float]]) -> Array:
        """States of n items, one by one, as columns, (numbers, n)."""
        return np.array(states, np.float64).reshape(-1, len(self.parameter_names)).T

    def most_counted_class(self, state: Array) -> Integers:
        """Of posteriors that count classes, (K, N), the class of the largest count: (N,) of 0..K-1, -1 where others
        have as many.
        """
        is_tied = (state == state.max(axis=0)).sum(axis=0) > 1
        return np.where(is_tied, -1, state.argmax(axis=0))


class AnnotatorDescription(NamedTuple):
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
    family: PosteriorFamily
    reads: JudgmentKind = "points"
    layout: int = 0
    quick: bool = True
    fit: Callable[[LongJudgments, Tally], ModeratedMeans | None] | None = None

    @property
    def short_title(self) -> str:
        """Its name for people."""
        return self.title.partition(":")[0]

    @abstractmethod
    def initial_beliefs(
        self, priors: Sequence[npt.ArrayLike], parameters: LawParameters, law_state: LawState | None = None
    ) -> LawBeliefs:
        """Before the first HIT. priors: the columns of the items' first states, (N,) each. kept: what is stored of the
        campaign now, if anything: some laws begin as they did then. Raises ValueError for priors that cannot be.
        """

    @abstractmethod
    def step_hit(self, hit: AnsweredHit, parameters: LawParameters) -> LawStep:
        """What one HIT changes, asking for what it needs to know."""

    def for_class_count(self, class_count: int) -> "Law":  # noqa: ARG002  (most laws read none)
        """The law for so many classes."""
        return self

    def describe_annotators(
        self,
        annotator_states: Mapping[int, StateFloats],  # noqa: ARG002  (some laws read it)
        campaign_state: StateFloats,  # noqa: ARG002  (some laws read it)
    ) -> dict[int, AnnotatorDescription]:
        """What the law has learned of each annotator, by number; nothing by most laws.

        annotators, campaign: what is kept of them.
        """
        return {}

    def read_judgment_weights(self, item_number: int) -> Generator[StateQuery, Any, JudgmentWeights] | None:  # noqa: ARG002  (most laws ask nothing)
        """What each judgment of an item counts for now; None where all count alike."""
        return None


def validate_hit_scores(scores: Sequence[float], item_count: int) -> list[float]:
    """The scores of one HIT of `items` items as plain floats, so that no NumPy scalar slows or leaks out.

    Raises ValueError if there are none, not `items` of them, or one is NaN or outside [0, 1].
    """
    if not 0 < len(scores) == item_count:
        raise ValueError(f"a HIT needs one score per item, but has {item_count} items and {len(scores)} scores")
    floats = list(map(float, scores))
    for score in floats:
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"a score must lie between 0 and 1, not {score}")
    return floats


def validate_hit_items(items: Sequence[int], item_count: int) -> None:
    """Raises ValueError unless the items of a HIT are different numbers from 0 to `count` - 1."""
    # Python would take -1 for the last item, and an item shown twice would keep only one of its updates.
    if len(set(items)) != len(items):
        raise ValueError(f"an item is twice in one HIT: {list(items)}")
    if len(items) and not 0 <= min(items) <= max(items) < item_count:
        raise ValueError(f"item numbers must lie between 0 and {item_count - 1}, not {list(items)}")
