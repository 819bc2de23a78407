"""Intervals of the prevalence of classes: the items are drawn again, and Dawid-Skene is fitted to each draw."""

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit, ndtri

from app.inference.ground.arrays import Array, valid_interval_level_or_raise
from app.inference.ground.validation import index_array_and_count_or_raise, refuse_columns_of_unequal_length
from app.inference.labels import latent_classes
from app.inference.labels.dawid_skene import DawidSkeneResult
from app.inference.labels.latent_classes import ClassParameters, LabelMatrix, StopRule

_DRAW_STOP_RULE = StopRule(tolerance=1e-3, max_iterations=100)
_MIN_SHARE = 1e-6  # smaller shares are as good as none


def ends_of_bootstrap_prevalence_intervals(
    result: DawidSkeneResult,
    items: npt.ArrayLike,
    annotators: npt.ArrayLike,
    labels: npt.ArrayLike,
    *,
    smoothing: float = 0.01,
    draws: int = 100,
    level: float = 0.95,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Return the ends of the interval of each class, (K,) each, for the population that the items are a sample from.

    Every fit starts from the parameters of `result`, so that classes keep their meaning. The interval is Normal on the
    scale of log odds, so that it stays in (0, 1), with the spread of the draws.

    Args:
        result: A fit to the labels.
        items: (n,) the labels of the fit, as given to it.
        annotators: (n,).
        labels: (n,).
        smoothing: The amount that the fit added to each count.
        draws: The number of draws.
        level: The level of the interval.
        rng: The source of the draws.

    Raises:
        ValueError: An array is invalid or has a number that the result does not have.

    """
    items, _ = index_array_and_count_or_raise("items", items, len(result.estimable))
    annotators, n_annotators = index_array_and_count_or_raise("annotators", annotators, len(result.response))
    labels, n_labels = index_array_and_count_or_raise("labels", labels, len(result.prevalence))
    refuse_columns_of_unequal_length(items=items, annotators=annotators, labels=labels)
    is_used = result.estimable_annotators[annotators]
    row = (np.cumsum(result.estimable) - 1)[items[is_used]]
    label_matrix = latent_classes.make_label_matrix(row, annotators[is_used], labels[is_used], n_annotators, n_labels)
    response = np.where(np.isnan(result.response), result.typical_response, result.response)
    start = ClassParameters(result.prevalence, response)
    added = ClassParameters(np.full(n_labels, smoothing), np.full((n_labels, n_labels), smoothing))
    n_rows = int(np.count_nonzero(result.estimable))
    drawn: list[Array] = []
    for _ in range(draws):
        counts = label_matrix.counts[rng.integers(n_rows, size=n_rows)]
        matrix = LabelMatrix(counts, n_annotators, n_labels)
        climb = latent_classes.run_accelerated_em(start, matrix, added, _DRAW_STOP_RULE)
        drawn.append(climb.end.parameters.prevalence)
    reach = ndtri((1.0 + valid_interval_level_or_raise(level)) / 2.0) * np.std(
        _clipped_log_odds(np.array(drawn)), axis=0
    )
    middle = _clipped_log_odds(result.prevalence)
    return expit(middle - reach), expit(middle + reach)


def _clipped_log_odds(shares: Array) -> Array:
    values: Array = logit(shares.clip(_MIN_SHARE, 1.0 - _MIN_SHARE))
    return values
