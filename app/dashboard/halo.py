"""How far criteria are judged apart: kept up with as answers come in, and in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from app.designs.registry import design_of
from app.drawing import written
from app.inference.agreement.halo import HaloSums, is_much
from app.inference.observations.coarsening import REACHES
from app.inference.online.law import Hit


def can_tell(campaign: Any) -> bool:
    """Whether there are several criteria, and what is said of an item is said of it alone: an order tells of its
    company, too.
    """
    return bool(campaign.criteria) and "points" in REACHES[design_of(campaign).yields]


@dataclass(frozen=True)
class HaloSoFar:
    """After so many answers: what their values add up to, on 0 to 1."""

    sums: HaloSums
    answers: int = 0

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes


def in_one(by_criterion: Sequence[Hit]) -> Hit:
    """A HIT by all criteria together: its values by the first, then by the next."""
    first = by_criterion[0]
    return Hit(first.annotator, first.items, [value for hit in by_criterion for value in hit.values])


def followed(past: HaloSoFar, hits: Sequence[Hit]) -> HaloSoFar:
    """After these HITs too, as `in_one` has them, with values on 0 to 1."""
    judged = [hit for hit in hits if hit.items]
    after = replace(past, answers=past.answers + len(hits))
    if not judged:
        return after
    items = np.concatenate([hit.items for hit in judged])
    values = np.hstack([np.reshape(hit.values, (-1, len(hit.items))) for hit in judged])
    return replace(after, sums=past.sums.after(items, values))


class HaloWords(NamedTuple):
    """What is said of all criteria, and a warning; empty where there is nothing to say."""

    known: str = ""
    warning: str = ""


def words(past: HaloSoFar, names: Sequence[str]) -> HaloWords:
    """Of the two criteria that move together most, and of those that were hardly judged apart."""
    within, of_means, judgments = past.sums.within, past.sums.of_means, past.sums.shared
    pairs = [(float(within[k, m]), k, m) for k, m in combinations(range(len(names)), 2) if np.isfinite(within[k, m])]
    if not pairs:
        return HaloWords()
    value, k, m = max(pairs)
    most = "" if len(names) == 2 else "; no other two correlate more"
    known = (
        f"“{names[k]}” and “{names[m]}”: item means correlate {written(of_means[k, m], 2)}, judgments within items "
        f"{written(value, 2)}{most}."
    )
    alike = [f"“{names[k]}” and “{names[m]}”" for value, k, m in pairs if is_much(value, judgments)]
    if not alike:
        return HaloWords(known)
    warning = (
        f"Halo: {'; '.join(alike)} are hardly judged apart. Whoever finds an item better than others do by one finds "
        "it better by the other, too."
    )
    return HaloWords(known, warning)
