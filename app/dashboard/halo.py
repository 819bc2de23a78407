"""Halo between criteria: how far annotators judge criteria apart, updated as answers come in, and in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.inference.agreement.halo import HaloSums, is_strong_halo
from app.inference.observations.judgment_kinds import READABLE_KINDS
from app.inference.online.law import AnsweredHit
from app.text.numbers import format_with_places


def can_estimate_halo(criterion: Criterion[Campaign]) -> bool:
    """Return whether there are several criteria, and an answer about an item concerns that item alone.

    In a ranking, the answer about an item depends on the other items of its HIT, too.
    """
    return criterion.campaign.has_criteria and "points" in READABLE_KINDS[criterion.design.value_kind]


@dataclass(frozen=True)
class HaloState:
    """Sums over the first `answers` answers, with values on 0 to 1."""

    sums: HaloSums
    answers: int = 0

    @property
    def nbytes(self) -> int:
        return self.sums.nbytes


def merge_criteria_hits(hits_by_criterion: Sequence[AnsweredHit]) -> AnsweredHit:
    """Merge the same HIT by each criterion into one: its values by the first criterion, then by the next."""
    first = hits_by_criterion[0]
    return AnsweredHit(first.annotator, first.items, [value for hit in hits_by_criterion for value in hit.values])


def halo_state_after_hits(state: HaloState, hits: Sequence[AnsweredHit]) -> HaloState:
    """Add these HITs, as `merge_criteria_hits` makes them, with values on 0 to 1."""
    judged = [hit for hit in hits if hit.items]
    extended = replace(state, answers=state.answers + len(hits))
    if not judged:
        return extended
    items = np.concatenate([hit.items for hit in judged])
    values = np.hstack([np.reshape(hit.values, (-1, len(hit.items))) for hit in judged])
    return replace(extended, sums=state.sums.with_judgments_added(items, values))


class HaloTexts(NamedTuple):
    """Sentence about the correlation of criteria, and a warning; empty where there is nothing to say."""

    correlation_text: str = ""
    warning: str = ""


def halo_texts(state: HaloState, criterion_names: Sequence[str]) -> HaloTexts:
    """Return texts on the two criteria that correlate most, with a warning of those that are hardly judged apart."""
    halo, mean_correlation = state.sums.halo_matrix, state.sums.mean_correlation_matrix
    pairs = [
        (float(halo[k, m]), k, m) for k, m in combinations(range(len(criterion_names)), 2) if np.isfinite(halo[k, m])
    ]
    if not pairs:
        return HaloTexts()
    value, k, m = max(pairs)
    comparison = "" if len(criterion_names) == 2 else "; no other pair correlates more"
    correlation_text = (
        f"“{criterion_names[k]}” and “{criterion_names[m]}”: item means correlate "
        f"{format_with_places(mean_correlation[k, m], 2)}, judgments within items "
        f"{format_with_places(value, 2)}{comparison}."
    )
    halo_pairs = [
        f"“{criterion_names[k]}” and “{criterion_names[m]}”"
        for value, k, m in pairs
        if is_strong_halo(value, state.sums.shared_judgment_count)
    ]
    if not halo_pairs:
        return HaloTexts(correlation_text)
    warning = (
        f"Halo: {'; '.join(halo_pairs)} are hardly judged separately. Annotators who score an item higher on one "
        "criterion also score it higher on the other."
    )
    return HaloTexts(correlation_text, warning)
