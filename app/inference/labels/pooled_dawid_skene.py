"""Dawid & Skene's model with one response matrix for all annotators, from the counts of each item's labels.

If annotators are assumed alike, the counts of an item's labels contain all information, and items with the same counts
are the same to the model: it is fitted to distinct counts, which are few, whatever the number of items. So it is fast
enough to be refitted while a campaign runs (`dawid_skene` has a matrix for each annotator).
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from app.inference.ground.arrays import Array

PRIOR_LABELS_PER_CLASS = 10.0
"""Pseudo-labels of each class, three of four right, before the first label: so that a few labels, each the only one of
its item, do not look as if annotators never erred.
"""
PRIOR_ACCURACY = 0.75
MAX_POOLED_EM_STEPS, RESPONSE_TOLERANCE = 50, 1e-6


@dataclass(frozen=True, slots=True)
class PooledModel:
    """Prevalence and response matrix of all annotators together; both above 0, with sum 1 over the last axis.

    Attributes:
        prevalence: (K,), the probability of each class.
        response: (K, K), [k, l] the probability of label l for an item of class k.

    """

    prevalence: Array
    response: Array

    def posterior(self, counts: npt.ArrayLike) -> Array:
        """Return p(k | labels) of items with these counts of labels, (V, K): (V, K), each row sums to 1."""
        log = np.log(self.prevalence) + np.asarray(counts, np.float64) @ np.log(self.response).T
        return np.asarray(np.exp(log - scipy.special.logsumexp(log, axis=1, keepdims=True)))


def initial_pooled_model(class_count: int) -> PooledModel:
    """Return the model before the first label, for at least two classes."""
    prior_counts = _pseudo_label_count_matrix(class_count)
    return PooledModel(np.full(class_count, 1.0 / class_count), prior_counts / prior_counts.sum(axis=1, keepdims=True))


def fit(counts: npt.ArrayLike, item_counts: npt.ArrayLike, *, max_steps: int = MAX_POOLED_EM_STEPS) -> PooledModel:
    """Run EM to the penalised maximum from the initial model, in at most `max_steps` steps.

    A step costs O(V K^2). Items without labels contribute nothing. Raises ValueError for shapes that do not fit or
    negative numbers.

    Args:
        counts: (V, K), how often an item got each label, K >= 2.
        item_counts: (V,), how many items have these counts.
        max_steps: The largest number of steps.

    """
    counts, item_counts = np.asarray(counts, np.float64), np.asarray(item_counts, np.float64)
    if counts.ndim != 2 or counts.shape[1] < 2 or item_counts.shape != counts.shape[:1]:
        raise ValueError(
            f"counts must be (V, K) with K >= 2 and items (V,), not {counts.shape} and {item_counts.shape}"
        )
    if not (np.all(counts >= 0.0) and np.all(item_counts >= 0.0)):  # so that NaN fails too
        raise ValueError("counts must not be negative")
    has_labels = counts.any(axis=1)
    counts, item_counts = counts[has_labels], item_counts[has_labels, None]
    model = initial_pooled_model(counts.shape[1])
    for _ in range(max_steps):
        weight = item_counts * model.posterior(counts)
        prevalence = weight.sum(axis=0) + 1.0
        response = weight.T @ counts + _pseudo_label_count_matrix(counts.shape[1])
        earlier_response = model.response
        model = PooledModel(prevalence / prevalence.sum(), response / response.sum(axis=1, keepdims=True))
        if np.abs(model.response - earlier_response).max() < RESPONSE_TOLERANCE:
            break
    return model


def _pseudo_label_count_matrix(class_count: int) -> Array:
    """Return the pseudo-labels (K, K), by class and label."""
    wrong = (1.0 - PRIOR_ACCURACY) / (class_count - 1)
    return np.asarray(
        PRIOR_LABELS_PER_CLASS
        * (np.full((class_count, class_count), wrong) + np.eye(class_count) * (PRIOR_ACCURACY - wrong))
    )
