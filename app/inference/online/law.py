"""What an online update law is: it reads a posterior, and one HIT changes the posteriors of its items."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array

Columns = tuple[list[float], list[float]]
"""The two parameters of n posteriors, as two lists of n floats."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """What the laws can be tuned with; the defaults are those of Sakaguchi & Van Durme 2018, section 5.

    gamma: "skill chain", the width of a judgment's noise on the scale of the scores; finite, > 0.
    epsilon: how near two items must be for a tie to be expected, same scale; finite, >= 0
        (the paper takes > 0).
    tie_margin: two scores that differ by no more are a tie; in [0, 1], 0 means equal scores.

    Raises ValueError for anything else.
    """

    gamma: float = 0.1
    epsilon: float = 0.1
    tie_margin: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma < math.inf:
            raise ValueError(f"gamma must be a finite number above 0, not {self.gamma}")
        if not 0.0 <= self.epsilon < math.inf:
            raise ValueError(f"epsilon must be a finite number of at least 0, not {self.epsilon}")
        if not 0.0 <= self.tie_margin <= 1.0:
            raise ValueError(f"tie_margin must lie between 0 and 1, not {self.tie_margin}")


class Interval(Protocol):
    """The central interval of posteriors, as (lower ends, upper ends)."""

    def __call__(self, a: npt.ArrayLike, b: npt.ArrayLike, /, level: float = 0.95) -> tuple[Array, Array]:
        """Arrays that broadcast, 0 < level < 1; raises ValueError otherwise."""


@dataclass(frozen=True, slots=True)
class Law:
    """An online update law: the meaning of its two numbers per item, and what one HIT does to them.

    name: the key in `online.ONLINE`, stored with a campaign.
    title: short words for people.
    parameter_names: what the two numbers are called, in files too: ("alpha", "beta") or ("mu", "sigma2").
    family: what distribution a posterior is, as people write it before its two numbers: "Beta" or "Normal".
    score_name: what the estimate is called, "mode" or "mean".
    default_prior: the two numbers every item starts with.
    support: where scores can lie, as (lowest, highest); infinite for an unbounded scale.
    valid_prior(a, b): whether two floats may be a start; says False to NaN and infinity.

    Vectorised, `a` and `b` of shape (N,) (or any that broadcast, floats included), each answer of that shape:
    score(a, b): the estimate on the scale of the scores.
    variance(a, b): the uncertainty, in squared units of the score.
    interval(a, b, level=0.95): the central interval that holds `level` of the posterior, as (low, high).
    density(a, b, x): the posterior's density at `x`, which broadcasts with them, per unit of the score.
    These raise ValueError for a parameter that cannot be one of this posterior, such as alpha = 0 or NaN.

    estimates(a, b): `score` and `variance` of the n posteriors of one HIT, sequences of n floats, as two new lists of n
    plain floats with the same bits, many times faster for a few items. Raises ValueError as they do.

    update(a, b, scores, parameters): one HIT of n >= 1 items, sequences of n floats in presentation order,
    scores in [0, 1]; answers two new lists of n plain floats and leaves its arguments alone.
    Raises ValueError for lengths that differ, an empty HIT, a score that is NaN or outside [0, 1], or a
    posterior that cannot be. None: the law also learns about annotators, and `annotator_aware_online` is its update.

    update_all(a, b, items, scores): only of a law that moves an item by its own scores alone: all judgments of many
    HITs at once, changing the arrays `a` and `b`, (N,), with the bits of one `update` after another. items, scores:
    (T,) in the order of the HITs. It checks nothing.
    """

    name: str
    title: str
    parameter_names: tuple[str, str]
    family: str
    score_name: str
    default_prior: tuple[float, float]
    support: tuple[float, float]
    valid_prior: Callable[[float, float], bool]
    score: Callable[[npt.ArrayLike, npt.ArrayLike], Array]
    variance: Callable[[npt.ArrayLike, npt.ArrayLike], Array]
    interval: Interval
    density: Callable[[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike], Array]
    estimates: Callable[[Sequence[float], Sequence[float]], Columns]
    update: Callable[[Sequence[float], Sequence[float], Sequence[float], Parameters], Columns] | None
    update_all: Callable[[Array, Array, npt.NDArray[np.intp], Array], None] | None = None


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
