"""What a campaign's page says where posteriors count classes, and how often each class was given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.dashboard.history import PosteriorHistory
from app.inference.ground.arrays import Integers
from app.inference.online.law import PosteriorFamily

NO_LABEL_LEADS = "no label leads"


def leading_labels(classes: Sequence[str], class_numbers: Integers) -> list[str]:
    """The likeliest label of each item, as `Family.likeliest` has them."""
    return [NO_LABEL_LEADS if which < 0 else classes[which] for which in class_numbers.tolist()]


@dataclass(frozen=True)
class LabelCount:
    """How often a label was given to an item, as a share of all too, and what share the posterior expects; both 0 to 1,
    the latter None where it counts no classes.
    """

    label: str
    times: int
    share: float
    expected: float | None


def count_item_labels(
    classes: Sequence[str], values: Sequence[float], family: PosteriorFamily, state: Sequence[float]
) -> list[LabelCount]:
    """Each label of an item with these judgments, in the order of the labels; none where values are no classes."""
    times = np.bincount(np.array(values, np.intp), minlength=len(classes)) if len(classes) else np.zeros(0)
    expected = [number / sum(state) for number in state] if family.counts_classes else [None] * len(classes)
    shares = times / max(len(values), 1)
    return [LabelCount(*one) for one in zip(classes, map(int, times), shares.tolist(), expected, strict=True)]


def leading_label_counts(
    classes: Sequence[str], family: PosteriorFamily, history: PosteriorHistory
) -> list[Any] | None:
    """How many of the judged items each label is the likeliest of, then in how many no label leads; None where the law
    counts no classes.
    """
    if not family.counts_classes:
        return None
    likeliest = family.most_counted_class(history.state)[history.judgments > 0]
    items = np.bincount(likeliest + 1, minlength=len(classes) + 1).tolist()
    return [*([label, count] for label, count in zip(classes, items[1:], strict=True)), [NO_LABEL_LEADS, items[0]]]
