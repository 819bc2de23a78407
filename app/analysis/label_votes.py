"""Votes of annotators for the labels of items, and which items have no majority."""

import numpy as np

from app.analysis.result_types import Answers, Mask
from app.inference.ground.arrays import Integers

MIN_JUDGMENTS_TO_COMPARE_LABELS = 2


def count_votes_of_items(answers: Answers) -> Integers:
    """Return how often each label was given to each item, (N, K)."""
    counts = np.zeros((answers.n_items, len(answers.classes)), int)
    np.add.at(counts, (answers.item, answers.value.astype(int)), 1)
    return counts


def has_no_majority(votes: Integers) -> Mask:
    """Return whether an item has two or more votes and no label has more than half of them, (N,)."""
    total = votes.sum(axis=1)
    is_disputed: Mask = (total >= MIN_JUDGMENTS_TO_COMPARE_LABELS) & (2 * votes.max(axis=1) <= total)
    return is_disputed
