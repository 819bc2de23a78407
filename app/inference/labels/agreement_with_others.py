"""Agreement of each annotator's labels with the other annotators' labels of the same items."""

import numpy as np

from app.inference.ground.arrays import Array, Integers
from app.inference.ground.validation import sum_values_of_each_number


def equal_label_share_of_each_annotator(
    item: Integers, annotator: Integers, label: Integers, *, n_annotators: int, n_labels: int
) -> Array:
    """Return the share of equal labels among all pairs of an own label and another annotator's label of the same item.

    Args:
        item: Item of each judgment, (J,), numbered from 0.
        annotator: Annotator of each judgment, (J,), 0 to n_annotators - 1.
        label: Label of each judgment, (J,), 0 to n_labels - 1.
        n_annotators: Number of annotators, A.
        n_labels: Number of labels.

    Returns:
        The shares, (A,); NaN for an annotator none of whose items another one labelled.

    """
    item_label = item * n_labels + label
    annotator_item, annotator_item_label = (
        np.unique(of * n_annotators + annotator, return_inverse=True)[1] for of in (item, item_label)
    )
    equal_by_others = np.bincount(item_label)[item_label] - np.bincount(annotator_item_label)[annotator_item_label]
    by_others = np.bincount(item)[item] - np.bincount(annotator_item)[annotator_item]
    total = sum_values_of_each_number(annotator, by_others.astype(np.float64), n_annotators)
    equal = sum_values_of_each_number(annotator, equal_by_others.astype(np.float64), n_annotators)
    return equal / np.where(total > 0, total, np.nan)
