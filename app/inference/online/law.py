"""The interface of an online update law: it reads a posterior, and one HIT changes the posteriors of its items."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array, Integers
from app.inference.observations.judgment_kinds import JudgmentKind
from app.inference.observations.long_judgments import LongJudgments
from app.inference.observations.tally import Tally
from app.inference.online.state_queries import Querying
from app.inference.ratings.moderated_means import ModeratedMeans

StateFloats = list[float]
Columns = tuple[list[float], ...]
"""The numbers of n posteriors, one list of n floats for each number."""


class AnsweredHit(NamedTuple):
    """One answered HIT as a law reads it: the annotator, the items' numbers as presented, and their values.

    `values` are numbers of classes from 0 for a law that reads classes; otherwise shares of the scale in [0, 1], higher
    is better.
    """

    annotator: int
    items: Sequence[int]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class LawParameters:
    """Parameters of the laws; the defaults are those of Sakaguchi & Van Durme 2018, section 5.

    Attributes:
        gamma: "skill chain", the width of a judgment's noise on the scale of the scores; finite, > 0.
        epsilon: How near two items must be for a tie to be expected, same scale; finite, >= 0 (the paper takes > 0).
        tie_margin: Two scores that differ by no more are a tie; in [0, 1], 0 means equal scores.
        ties: Whether those are ties; otherwise it is unknown which of the two is better.

    Raises:
        ValueError: A parameter is out of range.

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
    """State of a law besides posteriors: lists of floats that only the law interprets.

    Attributes:
        campaign: State of the whole campaign, None for a law without such state.
        annotators: States by annotator number.
        items: States by item number: a short list that changes with each judgment, and a long one that seldom does,
            None
        where it is unchanged.

    """

    campaign: StateFloats | None = None
    annotators: Mapping[int, StateFloats] = field(default_factory=dict)
    items: Mapping[int, tuple[Sequence[float], Array | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HitChange:
    """Changes by one HIT: the posteriors of these items, the HIT's first, as columns; and the law's state."""

    items: Sequence[int]
    state: Columns
    law_state: LawState = LawState()


JudgmentWeights = tuple[list[float], list[float]]
"""Weight of each judgment of an item, first to last, in [0, 1], and the corrected values as the law reads them."""


class LawBeliefs(Protocol):
    """All beliefs of a law about a campaign of N items, in memory, as HITs are applied in order.

    `state` holds the posteriors' numbers, (numbers, N).
    """

    state: Array

    def apply_hits(self, hits: Sequence[AnsweredHit]) -> None:
        """Apply HITs. Raises ValueError for an invalid HIT; the beliefs are then unusable."""

    def apply_hits_and_iterate_changes(self, hits: Sequence[AnsweredHit]) -> Iterator[HitChange]:
        """Apply HITs one by one, and yield what each changed."""

    def copy(self) -> "LawBeliefs":
        """Return an independent copy."""

    def law_state_besides_posteriors(self) -> LawState:
        """Return the law's state besides posteriors."""

    @property
    def nbytes(self) -> int:
        """Approximate memory, in bytes."""


@dataclass(frozen=True, slots=True)
class PosteriorFamily:
    """A family of distributions for posteriors, and the meaning of their numbers, the state.

    Vectorised functions take the columns of a state of shape (N,) (or any that broadcast, floats included) and return
    that shape. They raise ValueError for a number that is invalid in this family, such as alpha = 0 or NaN.

    Attributes:
        name: The family's name before the numbers: "Beta" or "Normal".
        parameter_names: The names of the numbers, in files too: ("alpha", "beta") or ("mu", "sigma2").
        score_name: The name of the estimate, "mode" or "mean".
        default_prior: The numbers every item starts with.
        support: The range of scores, as (lowest, highest); infinite for an unbounded scale.
        is_valid_prior: is_valid_prior(*state), whether these floats may be a prior; False for NaN and infinity.
        score: score(*state), the estimate on the scale of the scores.
        variance: variance(*state), the uncertainty, in squared units of the score.
        interval: interval(*state, level=0.95), the central interval that holds `level` of the posterior, as (low,
            high).
        density: density(*state, x), the posterior's density at `x`, which broadcasts with them, per unit of the score.
        scores_and_variances: scores_and_variances(*state), `score` and `variance` of the n posteriors of one HIT,
        sequences of n floats, as two new lists of n plain floats with the same bits, many times faster for a few items.
        counts_classes: Whether its numbers are counts of classes and the score is the share of the likeliest class, so
        that items have no position on a scale.

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

    def columns_of_item_states(self, states: Sequence[Sequence[float]]) -> Array:
        """Return states of n items, one by one, as columns, (numbers, n)."""
        return np.array(states, np.float64).reshape(-1, len(self.parameter_names)).T

    def most_counted_class_of_each_item(self, state: Array) -> Integers:
        """Return the class of the largest count of each posterior, given (K, N): (N,) of 0..K-1, -1 for a tie."""
        is_tied = (state == state.max(axis=0)).sum(axis=0) > 1
        return np.where(is_tied, -1, state.argmax(axis=0))


class AnnotatorDescription(NamedTuple):
    """A law's beliefs about an annotator, NaN where unknown.

    Attributes:
        at_random: The probability that they answer at random.
        reliability: 0 to 1, the expected correlation of their answers with the true values of items.
        bias: How much higher than the crowd, the mean over all judgments, they score the same items, in scores.

    """

    at_random: float
    reliability: float
    bias: float


@dataclass(frozen=True, slots=True)
class Law(ABC):
    """An online update law: the state per item, and how one HIT changes it.

    Attributes:
        name: The key in `laws.ONLINE`, stored with a campaign.
        title: A short name for people.
        assumes: The law's assumptions, one sentence.
        family: The family of its posteriors.
        reads: The kind of values that it reads.
        layout: The version of the meaning of its `LawState`, 0 for a law that keeps nothing besides posteriors.
        newest_edition: The number of the edition that new campaigns get. A campaign keeps the edition with which it
            began, so that its posteriors stay those of its replay.
        quick: Whether a HIT takes microseconds, so that a long campaign can be replayed while a user waits.
        fit: Scores with errors under its assumptions, from all judgments at once and their tally, or None where these
            do
        not suffice; None for a law whose scores are the plain means, or say nothing of errors.

    """

    name: str
    title: str
    assumes: str
    family: PosteriorFamily
    reads: JudgmentKind = "points"
    layout: int = 0
    newest_edition: int = 1
    quick: bool = True
    fit: Callable[[LongJudgments, Tally], ModeratedMeans | None] | None = None

    @property
    def short_title(self) -> str:
        """The law's name for people, without details."""
        return self.title.partition(":")[0]

    @abstractmethod
    def initial_beliefs(
        self, priors: Sequence[npt.ArrayLike], parameters: LawParameters, law_state: LawState | None = None
    ) -> LawBeliefs:
        """Return the beliefs before the first HIT.

        Args:
            priors: The columns of the items' priors, (N,) each.
            parameters: The law's parameters.
            law_state: The stored state of the campaign now, if it keeps its edition of the law; None for the newest
                edition.

        Raises:
            ValueError: A prior is invalid.

        """

    @abstractmethod
    def hit_change_querying_state(self, hit: AnsweredHit, parameters: LawParameters) -> Querying[HitChange]:
        """Compute the changes by one HIT, yielding `state_queries` for the state that it needs."""

    def law_edition_number(self, campaign_state: StateFloats | None) -> int:  # noqa: ARG002  (most laws have one edition)
        """Return the edition of a campaign that has this state."""
        return self.newest_edition

    def law_with_class_count(self, class_count: int) -> "Law":  # noqa: ARG002  (most laws read none)
        """Return the law for this number of classes."""
        return self

    def annotator_description_by_number(
        self,
        annotator_states: Mapping[int, StateFloats],  # noqa: ARG002  (some laws read it)
        campaign_state: StateFloats,  # noqa: ARG002  (some laws read it)
    ) -> dict[int, AnnotatorDescription]:
        """Describe each annotator by number, given the stored states; most laws describe none."""
        return {}

    def judgment_weights_querying_state_or_none(self, item_number: int) -> Querying[JudgmentWeights] | None:  # noqa: ARG002  (most laws ask nothing)
        """Return the present weight of each judgment of an item; None where all count alike."""
        return None


def validated_scores_of_hit_as_floats(scores: Sequence[float], item_count: int) -> list[float]:
    """Return the scores of one HIT of `item_count` items as plain floats, so that no NumPy scalar slows or leaks out.

    Raises ValueError if there are none, not `item_count` of them, or one is NaN or outside [0, 1].
    """
    if not 0 < len(scores) == item_count:
        raise ValueError(f"a task needs one score per item, but has {item_count} items and {len(scores)} scores")
    floats = list(map(float, scores))
    for score in floats:
        if not 0.0 <= score <= 1.0:
            raise ValueError(f"a score must lie between 0 and 1, not {score}")
    return floats


def refuse_repeated_or_unknown_hit_items(items: Sequence[int], item_count: int) -> None:
    """Raise ValueError unless the items of a HIT are different numbers from 0 to `item_count` - 1."""
    # Python would take -1 for the last item, and an item shown twice would keep only one of its updates.
    if len(set(items)) != len(items):
        raise ValueError(f"an item is twice in one task: {list(items)}")
    if len(items) and not 0 <= min(items) <= max(items) < item_count:
        raise ValueError(f"item numbers must lie between 0 and {item_count - 1}, not {list(items)}")
