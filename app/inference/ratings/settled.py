"""How surely a goal is reached by what is known of items' true means: the best ones, sides of a line, an order.

What is believed of an item's true mean is a t distribution with the moderated error of `moderated`, in two ways: around
its mean drawn towards that of all items, as far as their spread says (a Normal prior, Efron & Morris 1975), and around
its mean as it is. A probability that follows from a prior may be looked at after every answer and acted on at any time:
who stops once it is p is right in p of all cases, as far as the prior is that of the items (Berger & Wolpert 1988, the
stopping rule principle). Where items pile up, it is not: then it draws those far away too near. So of the two chances
the smaller one counts. `python -m benchmarks.stopping` measures the error that is left.

Differences of up to `within` do not matter: two items that are alike could be asked about for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import stdtr, stdtrit

from app.inference.ground.arrays import Array, Integers
from app.inference.ratings.moderated import Moderated, between_items, drawn_together

_PLACES = 200  # at which the highest of some items may lie
_HALVINGS, _ROUGH = 20, 3e-4  # of the range in which the best of the others may lie, and of a probability
_AT_ONCE = 10_000  # items, in memory
_TAIL, _NOTHING = 1e-6, 1e-9  # of a probability; the smaller one even a million times
_MANY, _TABLES, _SHARES, _END = 20_000, 100, 2**14 + 1, 15.0  # when shares are read off tables, and what these are
_DRAWS, _SEED = 4_000, 2018  # of orders
FEWEST = 3  # items whose spread says something


@dataclass(frozen=True, slots=True, eq=False)
class Believed:
    """Of N items, (N,) each: where the true mean is believed to be, how sure that is, and the degrees of freedom."""

    centre: Array
    error: Array
    freedom: Array

    def below(self, place: Array | float) -> Array:
        """The probability that each true mean is below a place; places that broadcast with (N,)."""
        errors = (place - self.centre) / self.error
        if errors.size >= _MANY and self.freedom.min() == self.freedom.max():
            return _read_off(errors, _shares(float(self.freedom[0])))
        return np.asarray(stdtr(self.freedom, errors), np.float64)

    def quantile(self, share: float) -> Array:
        """The place below which each true mean is with this probability."""
        alike, which = np.unique(self.freedom, return_inverse=True)  # few, and each takes its time
        quantiles = np.asarray(stdtrit(alike, share), np.float64)
        place: Array = self.centre + self.error * quantiles[which]
        return place

    def of(self, items: Integers) -> "Believed":
        """Those of some items."""
        return Believed(self.centre[items], self.error[items], self.freedom[items])

    @property
    def mirrored(self) -> "Believed":
        """The same with the scale turned round."""
        return Believed(-self.centre, self.error, self.freedom)


@lru_cache(maxsize=_TABLES)
def _shares(freedom: float) -> Array:
    """Of a t distribution, below places whose inverse hyperbolic sines are evenly spread."""
    return np.asarray(stdtr(freedom, np.sinh(np.linspace(-_END, _END, _SHARES))), np.float64)


def _read_off(errors: Array, shares: Array) -> Array:
    """`shares` between its places: a tenth of the time, and right to a thousandth of what is left above."""
    place = (np.arcsinh(errors).clip(-_END, _END) + _END) * ((_SHARES - 1) / (2 * _END))
    before = np.minimum(place.astype(np.intp), _SHARES - 2)
    read: Array = shares[before] + (place - before) * (shares[before + 1] - shares[before])
    return read


def believed(known: Moderated) -> tuple[Believed, ...]:
    """What is believed of all items, with the prior and without; those without a judgment lie as the others do. Empty
    where nothing tells how far annotators differ, or how far items do.
    """
    there = np.isfinite(known.standard_error)
    if there.sum() < FEWEST:
        return ()
    mean, noise = known.mean[there], known.standard_error[there] ** 2
    if (between := between_items(mean, noise)) <= 0:
        return ()
    middle, kept, drawn = drawn_together(mean, noise)
    freedom = np.where(there, known.freedom, known.freedom[there].min())
    errors = [np.full(len(there), np.sqrt(between)) for _ in range(2)]
    centres = [np.full(len(there), middle) for _ in range(2)]
    centres[0][there], errors[0][there] = drawn, np.sqrt(kept * noise)
    centres[1][there], errors[1][there] = mean, np.sqrt(noise)
    return tuple(Believed(centre, error, freedom) for centre, error in zip(centres, errors, strict=True))


def chance_of_best(known: Believed, score: Array, best: int, within: float) -> float:
    """The probability that none of the others is better than one of the `best` highest by score, (N,), by more than
    `within`: wherever the best of the others is, all of the best are above that place.
    """
    order = _parted(score, best)
    if not len(order[1]):
        return 1.0
    mine, others = map(known.of, order)
    low, high = others.quantile(_TAIL).max(), others.quantile(1 - _TAIL / len(others.centre)).max()
    near = others.of(np.flatnonzero(others.quantile(1 - _NOTHING) > low))
    near = near.of(np.argsort(near.freedom, kind="stable"))  # alike in pieces

    def chances(places: Array) -> Array:
        """That all others are below these places, and all of the best above them but for `within`, (2, P)."""
        below = _log_product(near, lambda some: some.below(places[:, None]))
        above = _log_product(mine, lambda some: 1 - some.below(places[:, None] - within))
        return np.exp([below, above])

    highest, above = _where_it_matters(chances, np.array([low, high]))
    return min(1.0, float(np.diff(highest, prepend=0.0) @ _halfway(above)))


def _where_it_matters(chances: Callable[[Array], Array], places: Array) -> Array:
    """The chances at the places and at more between them, in order, (2, P). Both rise or fall all the way, so no more
    than the product of both differences is left open between two places; where that is next to nothing, no place is
    added.
    """
    found = chances(places)
    for _ in range(_HALVINGS):
        rough = np.flatnonzero(np.abs(np.diff(found)).prod(axis=0) > _ROUGH)
        if not len(rough):
            break
        more = (places[rough] + places[rough + 1]) / 2
        places = np.insert(places, rough + 1, more)
        found = np.insert(found, rough + 1, chances(more), axis=1)
    return found


def chances_of_best(known: Believed, score: Array, best: int, within: float) -> Array:
    """Of each item, (N,), the probability that all of the others are below it, if it is one of the `best` highest by
    score, or that all of the best are above it, if it is not; but for differences of `within`.

    Either is enough for it to be where it belongs, and not needed: the probability that it is there is no smaller.
    """
    mine, others = _parted(score, best)
    chances = np.ones(len(score))
    if len(others):
        chances[mine] = _chances_above(known.of(mine), known.of(others), within)
        chances[others] = _chances_above(known.of(others).mirrored, known.of(mine).mirrored, within)
    return chances


def _parted(score: Array, best: int) -> tuple[Integers, Integers]:
    """The numbers of the `best` highest, and of the others."""
    order = np.argsort(-score, kind="stable")
    return order[:best], order[best:]


def _highest(known: Believed) -> tuple[Array, Array]:
    """Places where the highest of some items may lie, and with which probability it lies between a place and the one
    before, (P,) each; at the first, below it.
    """
    low, high = known.quantile(_TAIL).max(), known.quantile(1 - _TAIL / len(known.centre)).max()
    near = known.of(np.flatnonzero(known.below(low) < 1 - _NOTHING))
    places = np.linspace(low, high, _PLACES)
    highest = np.exp(_log_product(near, lambda some: some.below(places[:, None])))
    return places, np.diff(highest, prepend=0.0)


def _halfway(at_places: Array) -> Array:
    """What holds at places, (P,) or (P, n), halfway between each and the one before."""
    return np.concatenate((at_places[:1], (at_places[1:] + at_places[:-1]) / 2))


def _chances_above(known: Believed, others: Believed, within: float) -> Array:
    """Of each item, (n,), the probability that all of the others are below it, but for differences of `within`."""
    places, steps = _highest(others)
    chances = 1 - known.below(places[-1] - within)  # right for those that are above all places, or below
    unsure = np.flatnonzero((known.below(places[0] - within) < 1 - _NOTHING) & (chances < 1 - _NOTHING))
    for start in range(0, len(unsure), _AT_ONCE):
        some = unsure[start : start + _AT_ONCE]
        chances[some] = steps @ _halfway(1 - known.of(some).below(places[:, None] - within))
    return np.minimum(chances, 1.0)


def _log_product(known: Believed, share: Callable[[Believed], Array]) -> Array:
    """The logarithm of the product of items' shares, (n,), some items at a time."""
    total = np.zeros(1)
    with np.errstate(divide="ignore"):
        for start in range(0, len(known.centre), _AT_ONCE):
            some = known.of(np.arange(start, min(start + _AT_ONCE, len(known.centre))))
            total = total + np.log(share(some)).sum(axis=1)
    return total


def chance_of_sides(known: Believed, line: float, within: float) -> float:
    """The probability that all items are on the side of the line on which they are believed to be, but for those that
    are no farther than `within` from it.
    """
    return float(np.prod(chances_of_side(known, line, within)))


def chances_of_side(known: Believed, line: float, within: float) -> Array:
    """The same probability of each item, (N,)."""
    wrong = np.where(known.centre > line, known.below(line - within), 1 - known.below(line + within))
    return 1 - wrong


def chance_of_order(known: Believed, score: Array, within: float) -> float:
    """The probability that no item is better than one of a higher score, (N,), by more than `within`: of orders that
    are drawn, with a seed of its own.
    """
    in_order = known.of(np.argsort(-score, kind="stable"))
    rng = np.random.default_rng(_SEED)
    drawn = in_order.centre + in_order.error * rng.standard_t(in_order.freedom, (_DRAWS, len(score)))
    lowest = np.minimum.accumulate(drawn, axis=1)[:, :-1]
    return float(np.all(drawn[:, 1:] - lowest <= within, axis=1).mean())


def agreement_of_halves(known: Moderated) -> float:
    """Spearman's correlation to be expected between the means of two random halves of the judgments, 0 to 1; 0 where an
    item has none. For Normal scores it follows from Pearson's (Pearson 1907).
    """
    noise = known.standard_error**2
    if len(noise) < FEWEST or not np.isfinite(noise).all():
        return 0.0
    between = max(between_items(known.mean, noise), 0.0)
    pearson = between / (between + 2 * float(noise.mean()))  # a half has half of the judgments, so twice the noise
    return float(6 / np.pi * np.arcsin(pearson / 2))
