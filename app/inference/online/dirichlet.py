"""Dirichlet: labels are counted for each class, and the likeliest class is the one with the largest share.

The shares p_1..p_K in which all annotators would give an item its labels have a Dirichlet(a_1, ..., a_K) posterior,
conjugate to labels drawn by these shares (Gelman et al., "Bayesian Data Analysis", section 3.4). A label of class k
adds 1 to a_k. Every item begins with 1 / K for each of K classes: as much as one label in all, whatever K is (Perks
1947; Berger, Bernardo & Sun 2015, "Overall objective priors"). With 1 for each, ten labels of thirty that all agree
would make a share of .28; so it is .91.

The target is a class, not a position on a scale. So the score is how sure the class is: the posterior mean share of the
likeliest class, 1 / K before the first label, near 1 for an item on which all agree.

The variance is that of all shares together, the trace of their covariance matrix. With A = a_1 + ... + a_K and means
m_k = a_k / A it is

    V = sum_k m_k (1 - m_k) / (A + 1) = (1 - sum_k m_k^2) / (A + 1).

It measures what a label can still tell: the mutual information of the next label and the shares with Gini's index 1 -
sum p^2 in place of Shannon's entropy, (1 - sum m_k^2) - E(1 - sum p_k^2) = V. So Algorithm 1, led by the item of the
largest variance, asks next about the item whose next label tells most. Two alternatives fail. The variance of the
likeliest share alone grows with the first label where there are six classes or more, so that unjudged items would come
last. The entropy of the mean shares stays large for an item on which annotators will always be divided, and it would be
asked about forever: in simulations with some such items it finds fewer true classes than chance.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, reduce

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import beta
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Columns, PosteriorFamily


def is_valid_dirichlet_prior(*counts: float) -> bool:
    """Return whether Dirichlet(counts) may be a prior: each count within the limits of a Beta's alpha."""
    return len(counts) > 1 and all(beta.is_valid_beta_prior(count, count) for count in counts)


def score(*counts: npt.ArrayLike) -> Array:
    """The posterior mean share of the likeliest class, from 1 / K to 1."""
    columns = _to_count_arrays(counts)
    return reduce(np.maximum, columns) / reduce(np.add, columns)


def variance(*counts: npt.ArrayLike) -> Array:
    """The sum of the variances of all shares, in (0, 1)."""
    columns = _to_count_arrays(counts)
    total = reduce(np.add, columns)
    # Not as 1 - sum m^2, which loses digits where one class has nearly all.
    gini = reduce(np.add, [(column / total) * ((total - column) / total) for column in columns])
    return np.asarray(gini / (total + 1.0))


def interval(*counts: npt.ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """The central interval of the likeliest class's share, whose posterior is Beta(a, A - a)."""
    return beta.interval(*_beta_parameters_of_likeliest_class(counts), level=level)


def density(*counts_then_x: npt.ArrayLike) -> Array:
    """The density of the likeliest class's share at x, which comes last."""
    *counts, x = counts_then_x
    return beta.density(*_beta_parameters_of_likeliest_class(counts), x)


def lists_of_dirichlet_scores_and_variances(*counts: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return `score` and `variance` of the posteriors of one HIT, as two lists of plain floats with the same bits."""
    scores_and_variances = [
        _likeliest_class_share_and_variance(item) for item in zip(*_to_count_float_lists(counts), strict=True)
    ]
    return [score for score, _ in scores_and_variances], [variance for _, variance in scores_and_variances]


def update(*counts_labels_parameters: object) -> Columns:
    """Apply one HIT: a_k += 1 for each item's own label k.

    The arguments are K sequences of n >= 1 floats, n labels 0..K-1, and parameters, which this law does not use;
    returns K new lists of n floats. Raises ValueError for lengths that differ, an empty HIT, an invalid label, or a
    count that is not finite and above 0.
    """
    *counts, labels, _ = counts_labels_parameters
    columns = _to_count_float_lists(counts)
    for place, label in enumerate(_integer_labels_of_hit_or_raise(labels, len(columns[0]), len(columns))):
        columns[label][place] += 1.0
    return tuple(columns)


def add_label_counts_in_place(*counts_items_labels: Array) -> None:
    """Apply all labels of many HITs in place; see `ItemLaw`."""
    *counts, items, labels = counts_items_labels
    for label, column in enumerate(counts):
        # One after another, so that sums round as they do in `update`.
        np.add.at(column, items[labels == label], 1.0)


def _integer_labels_of_hit_or_raise(labels: object, item_count: int, class_count: int) -> list[int]:
    """Return the labels of one HIT as whole numbers."""
    label_numbers = [float(label) for label in labels]  # type: ignore[attr-defined]  # a sequence
    if not 0 < len(label_numbers) == item_count:
        raise ValueError(f"a task needs one label per item, but has {item_count} items and {len(label_numbers)} labels")
    for label in label_numbers:
        if label not in range(class_count):
            raise ValueError(f"a label must be a whole number from 0 to {class_count - 1}, not {label}")
    return [int(label) for label in label_numbers]


def _likeliest_class_share_and_variance(counts: tuple[float, ...]) -> tuple[float, float]:
    total = reduce(operator.add, counts)  # not `sum`, which rounds otherwise
    gini = reduce(operator.add, [(count / total) * ((total - count) / total) for count in counts])
    return max(counts) / total, gini / (total + 1.0)


def _beta_parameters_of_likeliest_class(counts: Sequence[npt.ArrayLike]) -> tuple[Array, Array]:
    """Return the Beta marginal of the likeliest class's share."""
    columns = _to_count_arrays(counts)
    largest_count = reduce(np.maximum, columns)
    return largest_count, reduce(np.add, columns) - largest_count


def _to_count_float_lists(counts: Sequence[object]) -> list[list[float]]:
    """Return the posteriors of one HIT as plain floats, a new list for each class."""
    columns: list[list[float]] = [list(map(float, column)) for column in counts]  # type: ignore[call-overload]  # sequences
    if len({len(column) for column in columns}) > 1:
        raise ValueError("a posterior has one count for each class")
    for column in columns:
        for count in column:
            if not 0.0 < count < math.inf:
                raise ValueError(f"counts must be finite and above 0, not {count}")
    return columns


def _to_count_arrays(counts: Sequence[npt.ArrayLike]) -> list[Array]:
    columns = [np.asarray(column, dtype=np.float64) for column in counts]
    for column in columns:
        # Written so that NaN fails too.
        if not np.all((column > 0.0) & (column < np.inf)):
            raise ValueError("counts must be finite and above 0")
    return list(np.broadcast_arrays(*columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class DirichletLaw(ItemLaw):
    """The law `dirichlet` for some number of classes; the one in the registry is for two."""

    def law_with_class_count(self, class_count: int) -> "DirichletLaw":
        """Return the law for this number of classes, at least two."""
        return make_dirichlet_law(class_count)

    def mask_of_accepted_values(self, values: Array) -> npt.NDArray[np.bool_]:
        """Return which values are numbers of its classes."""
        return np.isin(values, np.arange(len(self.family.parameter_names)))


@cache
def make_dirichlet_law(class_count: int) -> DirichletLaw:
    """Return the law for this number of classes. Raises ValueError for fewer than two."""
    if class_count < 2:
        raise ValueError(f"there must be two classes at least, not {class_count}")
    return DirichletLaw(
        name="dirichlet",
        title="Dirichlet: counts the labels of each class",
        assumes="Each label adds to the count of its class in its item’s Dirichlet posterior; annotators are assumed "
        "to be alike.",
        family=PosteriorFamily(
            name="Dirichlet",
            parameter_names=tuple(f"class_{k}" for k in range(1, class_count + 1)),
            score_name="share",
            default_prior=(1.0 / class_count,) * class_count,
            support=(0.0, 1.0),
            is_valid_prior=is_valid_dirichlet_prior,
            score=score,
            variance=variance,
            interval=interval,
            density=density,
            scores_and_variances=lists_of_dirichlet_scores_and_variances,
            counts_classes=True,
        ),
        reads="classes",
        update=update,
        update_in_place=add_label_counts_in_place,
    )


LAW = make_dirichlet_law(2)
