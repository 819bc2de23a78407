"""How much a categorical label tells, in bits (Passonneau & Carpenter 2014, section 2.2.2)."""

import numpy as np
import numpy.typing as npt
from scipy.special import entr

from app.inference.ground.arrays import Array


def entropy(distribution: npt.ArrayLike) -> Array:
    """H[Z] = -sum_k p(k) log2 p(k): (..., K) that sum to 1 give (...), in [0, log2(K)]; NaN stays NaN."""
    bits: Array = entr(np.asarray(distribution, dtype=np.float64)).sum(axis=-1) / np.log(2.0)
    return bits


def mutual_information(distribution: npt.ArrayLike, response: npt.ArrayLike) -> Array:
    """I[Z; Y] = H[Z] - sum_l p(l) H[Z | Y = l]: how far a label Y is expected to lower the entropy of a class Z.

    distribution: (..., K), how probable each class is. response: (..., K, L), [k, l] the probability of label l when
    the class is k. The leading axes broadcast; the answer has them: bits, from 0 to H[Z]. NaN stays NaN.
    Computed as the same H[Y] - sum_k p(k) H[Y | Z = k], which needs nothing of shape (..., K, L).
    """
    distribution, response = np.asarray(distribution, dtype=np.float64), np.asarray(response, dtype=np.float64)
    remaining_entropy = (distribution * entropy(response)).sum(axis=-1)
    information: Array = entropy(np.einsum("...k,...kl->...l", distribution, response)) - remaining_entropy
    return np.maximum(information, 0.0)  # the difference of equals may round to below 0
