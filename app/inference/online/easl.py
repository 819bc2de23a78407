"""EASL: an item's scores are added up in a Beta posterior (Sakaguchi & Van Durme 2018, section 4)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from app.inference.ground.arrays import Array
from app.inference.online import beta as beta_posterior
from app.inference.online.item_law import ItemLaw
from app.inference.online.law import Columns, LawParameters, validated_scores_of_hit_as_floats


def update(
    alpha: Sequence[float],
    beta: Sequence[float],
    scores: Sequence[float],
    parameters: LawParameters,  # noqa: ARG001 - every law is called alike; this one has nothing to tune
) -> Columns:
    """Apply one HIT: alpha += s (24), beta += 1 - s (25), each item by its own score s in [0, 1].

    Sequences of n >= 1 floats in presentation order; returns two new lists of n floats. From Beta(1, 1) the mode after
    m scores is their mean, and the variance knows only their number and mean, not whether annotators agree. Raises
    ValueError for lengths that differ, an empty HIT, a score that is NaN or outside [0, 1], or an alpha or beta that is
    not finite and above 0.
    """
    alphas, betas = beta_posterior.to_beta_float_lists(alpha, beta)
    floats = validated_scores_of_hit_as_floats(scores, len(alphas))
    return (
        [a + s for a, s in zip(alphas, floats, strict=True)],
        [b + (1.0 - s) for b, s in zip(betas, floats, strict=True)],
    )


def add_scores_in_place(alpha: Array, beta: Array, items: npt.NDArray[np.intp], scores: Array) -> None:
    """Apply (24) and (25) for all judgments of many HITs, in place; see `ItemLaw`."""
    # `at` adds one number after another, in order, so that sums round as they do in `update`.
    np.add.at(alpha, items, scores)
    np.add.at(beta, items, 1.0 - scores)


LAW = ItemLaw(
    name="easl",
    title="EASL: scores add to a Beta posterior",
    assumes="Each score adds to the two counts of its item’s Beta posterior; annotators are assumed to be alike.",
    family=beta_posterior.BETA,
    update=update,
    update_in_place=add_scores_in_place,
)
