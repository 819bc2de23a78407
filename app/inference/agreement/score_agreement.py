"""Agreement of scores: correlations between annotators, and between two halves of the judgments."""

from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.inference.agreement.annotator_pairs import LEAST_SHARED, PerPair, mean_over_pairs, sharing
from app.inference.agreement.coefficient import Agreement, measured
from app.inference.ground.arrays import Array, Integers, quotient
from app.inference.ground.bootstrap import DRAWS
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.ground.weighted_correlation import NUMBERS_HELD, MeanRanks, pearson, spearman
from app.inference.observations.judgments import Judgments, compared

WORTH_TELLING = 0.01
"""Of a correlation, which is shown to two places."""

SPLITS = 20
"""How often the judgments are split: the mean over more of them changes by less than the interval's own error."""

BETWEEN = (
    "How far two annotators put items in the same {what}, where 0 is not at all and 1 entirely. It does not see that "
    "one is stricter or uses less of the scale; it is low where the items hardly differ, and it cannot tell who is "
    "right, since annotators who share a mistake correlate as well."
)
HALVES = (
    "How far scores made from one half of each item's judgments put items in the same order as scores from the other "
    "half, {how}. It tells whether repeating the work with annotators of this kind would give the same order, not "
    "whether that order is right: what all annotators get wrong is in both halves."
)
AS_IT_IS = "as it is, so it speaks of half the judgments that there are"
STEPPED_UP = "stepped up to all the judgments that there are by the formula of Spearman and Brown"


def correlation(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    kind: Literal["spearman", "pearson"] = "spearman",
    n_items: int | None = None,
    n_annotators: int | None = None,
    least_shared: int = LEAST_SHARED,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """The correlation of two annotators on the items both judged, averaged over all pairs of them, in [-1, 1].

    items, annotators: (T,) integers from 0; scores: (T,) finite numbers. Pairs with fewer than `least_shared` shared
    items, or where one gave one score throughout, are left out; the others count by the number of items they share.
    Time and memory grow with the number of pairs of judgments. Raises ValueError for arrays that cannot be,
    `Inestimable` (`one_annotator`, `no_shared_items`, `too_few_shared_items`, `all_the_same`).
    """
    if least_shared < 2:
        raise ValueError(f"a correlation needs at least 2 shared items, not {least_shared}")
    judgments = compared(items, annotators, scores, n_items=n_items, n_annotators=n_annotators)
    shared = sharing(judgments, least_shared)
    x, y = judgments.values[shared.first], judgments.values[shared.second]
    first, second = (MeanRanks.of(values, shared.pair) for values in (x, y))
    shared_items = shared.per_item()

    def of_order(weights: Array) -> Array:
        return spearman(first, second, np.ascontiguousarray(weights.T)[shared.items]).T

    def of_proportions(weights: Array) -> Array:
        return pearson(x, y, weights[:, shared.items], shared.starts)

    correlated = of_order if kind == "spearman" else of_proportions

    def between(weights: Array) -> PerPair:
        return PerPair(correlated(weights), weights @ shared_items)

    found = mean_over_pairs(
        between,
        judgments,
        shared,
        BETWEEN.format(what="order" if kind == "spearman" else "proportions"),
        undefined="one of the two gave the same score throughout",
        draws=draws,
        level=level,
        rng=rng,
        cells_per_draw=NUMBERS_HELD * len(x),
    )
    lost = lost_by_few(found.value, np.bincount(shared.pair)) if kind == "spearman" else 0.0
    if lost < WORTH_TELLING:
        return found
    sentence = f"Orders of so few items correlate less than those of many, here by about {lost:.2f}. The interval does "
    return replace(found, notes=(*found.notes, Note("few_items_a_pair", sentence + "not allow for that.")))


def lost_by_few(value: float, shared: npt.ArrayLike) -> float:
    """By how much Spearman's correlation lies below that of many items, in the mean over pairs of annotators who share
    so many items, (P,), each weighted by them.

    The mean of Spearman's correlation of n items is ((n - 2) rho + 3 tau) / (n + 1) (Moran 1948); tau is that of normal
    scores with this rho, of which `value` is taken for an estimate.
    """
    tau = 2 / np.pi * np.arcsin(2 * np.sin(np.pi * value / 6))
    sizes = np.asarray(shared, np.float64)
    return float(np.average(3 * (value - tau) / (sizes + 1), weights=sizes))


def split_half(
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    scores: npt.ArrayLike,
    *,
    n_items: int | None = None,
    n_annotators: int | None = None,
    spearman_brown: bool = False,
    splits: int = SPLITS,
    draws: int = DRAWS,
    level: float = 0.95,
    rng: np.random.Generator,
) -> Agreement:
    """Spearman between the items' means over two random halves of their judgments, averaged over splits, in [-1, 1].

    items, annotators: (T,) integers from 0; scores: (T,) finite numbers. Of an odd number of judgments a random half
    gets one more. spearman_brown: step the correlation r of the halves up to that of all judgments, 2 r / (1 + r)
    (Spearman 1910, Brown 1910); the sentence says which it is. The interval uses the same splits as the value.
    Raises ValueError for arrays that cannot be, `Inestimable` (`one_annotator`, `no_shared_items`,
    `too_few_shared_items` if fewer than 3 items have two judgments, `all_the_same`).
    """
    if splits < 1:
        raise ValueError(f"there must be at least 1 split, not {splits}")
    judgments = compared(items, annotators, scores, n_items=n_items, n_annotators=n_annotators)
    if judgments.n_items < 3:
        raise Inestimable("Fewer than 3 items have two judgments, too few for an order.", code="too_few_shared_items")
    whole = np.zeros(judgments.n_items, dtype=np.intp)
    halves = [[MeanRanks.of(mean, whole) for mean in half_means(judgments, rng)] for _ in range(splits)]

    def between(weights: Array) -> Array:
        of_items = np.ascontiguousarray(weights.T)
        r = np.mean([spearman(first, second, of_items)[0] for first, second in halves], axis=0)
        return quotient(2.0 * r, 1.0 + r) if spearman_brown else r

    sentence = HALVES.format(how=STEPPED_UP if spearman_brown else AS_IT_IS)
    undefined = "In a half of the judgments all items have the same mean, so they have no order."
    # Items drawn twice tie, which costs a correlation near 1 more than its interval is wide.
    return measured(
        between,
        judgments,
        sentence,
        draws=draws,
        level=level,
        rng=rng,
        undefined=undefined,
        cells_per_draw=NUMBERS_HELD * judgments.n_items,
        centred=True,
    )


def half_means(judgments: Judgments, rng: np.random.Generator) -> tuple[Array, Array]:
    """The means of each item's judgments in two halves drawn at random, (I,) each."""
    order = np.lexsort((rng.random(len(judgments.items)), judgments.items))
    before = np.cumsum(judgments.per_item) - judgments.per_item
    place = np.arange(len(order)) - before[judgments.items] + rng.integers(2, size=judgments.n_items)[judgments.items]
    values = judgments.values[order]
    first, second = (_means(judgments.items, values, place % 2 == half, judgments.n_items) for half in (0, 1))
    return first, second


def _means(items: Integers, values: Array, chosen: npt.NDArray[np.bool_], n_items: int) -> Array:
    total = np.bincount(items[chosen], weights=values[chosen], minlength=n_items)
    return total / np.bincount(items[chosen], minlength=n_items)
