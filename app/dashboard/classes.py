"""What a campaign's page says where posteriors count classes, and how often each class was given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.dashboard.course import Course
from app.inference.ground.arrays import Integers
from app.inference.online.law import Family

LEVEL = "no label leads"


def leading(classes: Sequence[str], likeliest: Integers) -> list[str]:
    """The likeliest label of each item, as `Family.likeliest` has them."""
    return [LEVEL if which < 0 else classes[which] for which in likeliest.tolist()]


@dataclass(frozen=True)
class Given:
    """How often a label was given to an item, as a share of all too, and what share the posterior expects; both 0 to 1,
    the latter None where it counts no classes.
    """

    label: str
    times: int
    share: float
    expected: float | None


def given(classes: Sequence[str], values: Sequence[float], family: Family, state: Sequence[float]) -> list[Given]:
    """Each label of an item with these judgments, in the order of the labels; none where values are no classes."""
    times = np.bincount(np.array(values, np.intp), minlength=len(classes)) if len(classes) else np.zeros(0)
    expected = [number / sum(state) for number in state] if family.counts_classes else [None] * len(classes)
    shares = times / max(len(values), 1)
    return [Given(*one) for one in zip(classes, map(int, times), shares.tolist(), expected, strict=True)]


def figures(classes: Sequence[str], family: Family, course: Course) -> list[Any] | None:
    """How many of the judged items each label is the likeliest of, then in how many no label leads; None where the law
    counts no classes.
    """
    if not family.counts_classes:
        return None
    likeliest = family.likeliest(course.state)[course.judgments > 0]
    items = np.bincount(likeliest + 1, minlength=len(classes) + 1).tolist()
    return [*([label, count] for label, count in zip(classes, items[1:], strict=True)), [LEVEL, items[0]]]
