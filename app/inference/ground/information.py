"""Information of a categorical label, in bits (Passonneau & Carpenter 2014, section 2.2.2)."""

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array


def entropy(distribution: npt.ArrayLike) -> Array:
    """Entropy H[Z] = -sum_k p(k) log2 p(k): (..., K) that sum to 1 give (...), in [0, log2(K)]; NaN stays NaN."""
    bits: Array = scipy.special.entr(np.asarray(distribution, dtype=np.float64)).sum(axis=-1) / np.log(2.0)
    return bits


def mutual_information(distribution: npt.ArrayLike, response: npt.ArrayLike) -> Array:
    """Expected decrease of the entropy of a class Z by a label Y: I[Z; Y] = H[Z] - sum_l p(l) H[Z | Y = l].

    Computed as the equal H[Y] - sum_k p(k) H[Y | Z = k], which needs no array of shape (..., K, L).

    Args:
        distribution: (..., K), the probability of each class.
        response: (..., K, L), [k, l] the probability of label l when the class is k. The leading axes broadcast.

    Returns:
        Bits, from 0 to H[Z], with the leading axes. NaN stays NaN.

    """
    distribution, response = np.asarray(distribution, dtype=np.float64), np.asarray(response, dtype=np.float64)
    remaining_entropy = (distribution * entropy(response)).sum(axis=-1)
    information: Array = entropy(np.einsum("...k,...kl->...l", distribution, response)) - remaining_entropy
    return np.maximum(information, 0.0)  # the difference of equals may round to below 0
