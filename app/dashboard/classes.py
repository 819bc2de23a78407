"""Labels on the dashboard: the likeliest label of each item, and how often each label was given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.dashboard.history import PosteriorHistory
from app.inference.ground.arrays import Integers
from app.inference.online.law import PosteriorFamily

NO_LABEL_LEADS = "no label leads"


def labels_of_leading_classes(classes: Sequence[str], class_numbers: Integers) -> list[str]:
    """Return the likeliest label of each item, by its number in `PosteriorFamily.most_counted_class_of_each_item`."""
    return [NO_LABEL_LEADS if number < 0 else classes[number] for number in class_numbers.tolist()]


@dataclass(frozen=True)
class LabelCount:
    """How often annotators gave a label to an item.

    Attributes:
        times: How often it was given.
        share: Share of all judgments of the item, 0 to 1.
        expected: Share that the posterior expects, 0 to 1; None where the law counts no classes.

    """

    label: str
    times: int
    share: float
    expected: float | None


def label_counts_of_item(
    classes: Sequence[str], values: Sequence[float], family: PosteriorFamily, state: Sequence[float]
) -> list[LabelCount]:
    """Count the labels that an item got, in the order of the labels; an empty list where values are not classes."""
    times = np.bincount(np.array(values, np.intp), minlength=len(classes)) if len(classes) else np.zeros(0)
    expected = [number / sum(state) for number in state] if family.counts_classes else [None] * len(classes)
    shares = times / max(len(values), 1)
    return [LabelCount(*fields) for fields in zip(classes, map(int, times), shares.tolist(), expected, strict=True)]


def judged_item_counts_per_leading_label_or_none(
    classes: Sequence[str], family: PosteriorFamily, history: PosteriorHistory
) -> list[Any] | None:
    """Count the judged items by their likeliest label; the last row counts those in which no label leads.

    Return None where the law counts no classes.
    """
    if not family.counts_classes:
        return None
    likeliest = family.most_counted_class_of_each_item(history.state)[history.judgments > 0]
    items = np.bincount(likeliest + 1, minlength=len(classes) + 1).tolist()
    return [*([label, count] for label, count in zip(classes, items[1:], strict=True)), [NO_LABEL_LEADS, items[0]]]
