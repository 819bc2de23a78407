"""Information of a comparison: how much its outcome is expected to tell about the scores, in bits.

The outcome of a comparison is certain to the degree that the scores are far apart (Thurstone's Case V: the first item
wins with probability Phi(x), x the difference of the scores in units of the noise). For x ~ Normal(m, v) the mutual
information of the outcome and the scores is h(Phi(m / sqrt(1 + v))) - E[h(Phi(x))], h the entropy of a coin in bits
(BALD, "Bayesian active learning by disagreement": Houlsby, Huszar, Ghahramani & Lengyel 2011). With their
h(Phi(x)) = exp(-x^2 / (pi ln 2)), both terms have a closed form, which is within 0.003 bits of the integral.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # its module is slow to import, and most processes rank no pairs
    from app.inference.preferences.joint_thurstone import JointScores


ENTROPY_WIDTH = math.pi * math.log(2.0) / 2.0  # variance of the Normal density that has the shape of h(Phi(x))
ROWS_PER_BLOCK = 32  # of pairs that are examined at once
MAX_DISTANCE = 12.0  # in units of the noise: a comparison of items as far apart tells nothing
NEIGHBOUR_DISTANCES = (
    1,
    2,
    3,
    5,
    8,
    13,
)  # places between them in the order of scores, of pairs that are examined first

ItemNumbers = npt.NDArray[np.intp]
Floats = npt.NDArray[np.floating]


def comparison_information(distance: Floats, variance: Floats) -> Floats:
    """Return the mutual information of a comparison's outcome and the scores, in bits.

    Arrays that broadcast: the mean of the difference of the two scores, and its variance >= 0, in units of the noise.
    It grows with the variance, and falls with the distance. Single precision stays so.
    """
    square = np.square(distance) * np.float32(-0.5 / ENTROPY_WIDTH)
    share = np.float32(ENTROPY_WIDTH) / (variance + np.float32(ENTROPY_WIDTH))
    outcome_entropy = np.exp(square / (variance + np.float32(1.0)))
    information: Floats = outcome_entropy - np.sqrt(share) * np.exp(square * share)
    return information


def most_informative_pair_of_items(joint: "JointScores", items: ItemNumbers) -> tuple[int, int]:
    """Return the two of at least two items whose comparison tells the most.

    Pairs that are too far apart to tell more than the best neighbours, whatever their variance, are not examined.
    """
    order = items[np.argsort(joint.mean[items], kind="stable")]
    means = joint.mean[order].astype(np.float32)
    best, pair = -1.0, (0, 1)
    for places in NEIGHBOUR_DISTANCES:
        if places < len(order):
            variance = joint.difference_variance[order[:-places], order[places:]]
            information = comparison_information(means[places:] - means[:-places], variance)
            if (highest := float(information.max())) > best:
                best, pair = highest, (int(information.argmax()), int(information.argmax()) + places)
    reach = distance_where_information_falls_below(best, float(joint.difference_variance.max()))
    ends = np.searchsorted(means, means + np.float32(reach), side="right")
    for start in range(0, len(order) - 1, ROWS_PER_BLOCK):
        rows = slice(start, start + ROWS_PER_BLOCK)
        columns = slice(start + 1, int(ends[rows][-1]))
        if columns.stop > columns.start:
            variance = joint.difference_variance[order[rows, None], order[columns]]
            information = comparison_information(means[rows, None] - means[columns], variance)
            if (highest := float(information.max())) > best:
                row, column = divmod(int(information.argmax()), columns.stop - columns.start)
                best, pair = highest, (start + row, start + 1 + column)
    return int(order[pair[0]]), int(order[pair[1]])


def distance_where_information_falls_below(information: float, variance: float) -> float:
    """Return a distance from which on no comparison of at most this variance tells more than `information`, in bits."""
    distances = np.linspace(0.0, MAX_DISTANCE, 300)
    too_far = comparison_information(distances, np.array(variance)) < information
    return float(distances[too_far.argmax()]) if too_far.any() else math.inf


def items_that_add_most_information(
    information_with: Callable[[int], Floats], chosen_items: Sequence[int], candidates: ItemNumbers, count: int
) -> list[int]:
    """Return up to `count` of the candidates: one after another, the one whose comparisons tell the most in total.

    Args:
        information_with: Function of an item that returns the information of comparing it with each candidate.
        chosen_items: Items that each addition is compared with, and with the earlier additions.
        candidates: Numbers of other items.
        count: How many are added at most.

    """
    total = np.zeros(len(candidates))
    for item in chosen_items:
        total += information_with(item)
    added: list[int] = []
    while len(added) < min(count, len(candidates)):
        place = int(total.argmax())
        added.append(int(candidates[place]))
        total += information_with(added[-1])
        total[place] = -math.inf
    return added
