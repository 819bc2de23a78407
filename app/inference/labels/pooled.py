"""Dawid & Skene's model with one matrix of responses for all annotators, from how often each item got each label.

Where annotators are taken to be alike, the counts of an item's labels say all that its labels say, and items with the
same counts are the same to the model: it is fitted to different counts, of which there are few, whatever the number of
items. So it is fast enough to be fitted again while a campaign runs (`dawid_skene` has a matrix for each annotator).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from app.inference.ground.arrays import Array

BELIEVED = 10.0
"""Labels of each class, three of four right, that are taken for given before the first: so that a few labels, whose
items nobody else has seen, do not look as if annotators never erred."""
BELIEVED_ACCURACY = 0.75
STEPS, TOLERANCE = 50, 1e-6


@dataclass(frozen=True, slots=True)
class Pooled:
    """prevalence: (K,), how probable each class is. response: (K, K), [k, l] the probability of label l of an item of
    class k. Both are above 0, and sum to 1 over the last axis.
    """

    prevalence: Array
    response: Array

    def posterior(self, counts: npt.ArrayLike) -> Array:
        """p(k | labels) of items with these counts of labels, (V, K): (V, K), each row sums to 1."""
        log = np.log(self.prevalence) + np.asarray(counts, np.float64) @ np.log(self.response).T
        return np.asarray(np.exp(log - logsumexp(log, axis=1, keepdims=True)))


def before(classes: int) -> Pooled:
    """What is taken for given of so many classes, at least two, before the first label."""
    believed = _believed(classes)
    return Pooled(np.full(classes, 1.0 / classes), believed / believed.sum(axis=1, keepdims=True))


def fit(counts: npt.ArrayLike, items: npt.ArrayLike, *, steps: int = STEPS) -> Pooled:
    """EM to the penalised maximum, from what is taken for given, in at most so many steps.

    counts: (V, K), how often an item got each label, K >= 2. items: (V,), how many items have these counts. A step
    costs O(V K^2). Items without labels say nothing. Raises ValueError for shapes that do not fit or negative numbers.
    """
    counts, items = np.asarray(counts, np.float64), np.asarray(items, np.float64)
    if counts.ndim != 2 or counts.shape[1] < 2 or items.shape != counts.shape[:1]:
        raise ValueError(f"counts must be (V, K) with K >= 2 and items (V,), not {counts.shape} and {items.shape}")
    if not (np.all(counts >= 0.0) and np.all(items >= 0.0)):  # so that NaN fails too
        raise ValueError("counts must not be negative")
    labelled = counts.any(axis=1)
    counts, items = counts[labelled], items[labelled, None]
    found = before(counts.shape[1])
    for _ in range(steps):
        weight = items * found.posterior(counts)
        prevalence = weight.sum(axis=0) + 1.0
        response = weight.T @ counts + _believed(counts.shape[1])
        earlier = found.response
        found = Pooled(prevalence / prevalence.sum(), response / response.sum(axis=1, keepdims=True))
        if np.abs(found.response - earlier).max() < TOLERANCE:
            break
    return found


def _believed(classes: int) -> Array:
    """(K, K) labels, by class and label."""
    wrong = (1.0 - BELIEVED_ACCURACY) / (classes - 1)
    return np.asarray(BELIEVED * (np.full((classes, classes), wrong) + np.eye(classes) * (BELIEVED_ACCURACY - wrong)))
