"""Implied pairs: how many pairs annotators' own answers imply, updated as answers come in, and in words."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field

from app.errors import pluralize
from app.inference.online.law import AnsweredHit
from app.inference.preferences.implied_pairs import Implications, ImpliedCounts


@dataclass(frozen=True)
class ImpliedState:
    """Implied pairs of each annotator after `answers` answers."""

    answers: int = 0
    orders: Mapping[int, Implications] = field(default_factory=dict)

    @property
    def nbytes(self) -> int:
        return sum(order.nbytes for order in self.orders.values())

    @property
    def tally(self) -> ImpliedCounts:
        """Counts over all annotators."""
        return sum((order.tally for order in self.orders.values()), ImpliedCounts())


def implied_state_after_hits(state: ImpliedState, hits: Sequence[AnsweredHit]) -> ImpliedState:
    """Return the state after these HITs of two items too, with values as shares of a scale; `state` is not changed."""
    changed = {
        annotator: deepcopy(state.orders[annotator]) if annotator in state.orders else Implications()
        for annotator in {hit.annotator for hit in hits}
    }
    for hit in hits:
        changed[hit.annotator].add_answer(hit.items, hit.values)
    return ImpliedState(state.answers + len(hits), {**state.orders, **changed})


def sentence_on_skipped_and_contradicted_pairs(tally: ImpliedCounts) -> str:
    """Return a sentence on how many pairs were saved, and how often implied pairs are wrong."""
    saved = f"{pluralize(tally.not_asked, 'pair')} skipped, because annotators’ own answers imply them."
    if (interval := tally.contradicted_share_and_interval_or_none()) is None:
        return f"{saved} None has been asked as a check yet."
    share, low, high = (f"{100 * value:.0f}" for value in interval)
    return (
        f"{saved} Of {tally.asked_anyway:,} asked as a check, {share} % were answered differently "
        f"(95 % interval {low} to {high} %)."
    )
