"""Queue of items whose labels a researcher may settle: those without a majority first, then the least certain."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from app.analysis.label_tables import fit_dawid_skene_with_cautious_posteriors
from app.analysis.label_votes import count_votes_of_items, has_no_majority
from app.analysis.queue_filter import QueueFilter
from app.analysis.result_types import Answers, Mask, Options
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.labels.dawid_skene import consensus


@dataclass(frozen=True)
class LabelQueue:
    """Votes and estimated labels of N items with K possible labels.

    Attributes:
        votes: Number of annotators who gave each label, (N, K).
        label: Most probable label by Dawid and Skene's model, (N,); -1 where there is none.
        confidence: Probability that this label is right, (N,); NaN where it is unknown.
        is_disputed: Whether an item has two or more votes and no label has more than half of them, (N,).
        worst_first: Numbers of all items, as `sort_items_worst_first` returns them, (N,).
        number_by_id: Number of each item by its id.
        built_at: When the queue was built, in seconds of the process's monotonic clock.

    """

    votes: Integers
    label: Integers
    confidence: Array
    is_disputed: Mask
    worst_first: Integers
    number_by_id: Mapping[str, int]
    built_at: float = field(default_factory=time.monotonic)

    def is_listed(self, shown: QueueFilter, settled_items: Collection[int]) -> Mask:
        """Return whether a filter keeps an item, (N,)."""
        if shown == "disputed":
            return self.is_disputed
        is_settled = np.full(len(self.votes), shown == "all")
        is_settled[[*settled_items]] = True
        return ~is_settled if shown == "open" else is_settled

    def item_numbers(self, shown: QueueFilter, settled_items: Collection[int]) -> Integers:
        """Return the numbers of the items that a filter keeps, the worst first."""
        return self.worst_first[self.is_listed(shown, settled_items)[self.worst_first]]

    def next_open_item_or_none(
        self, shown: QueueFilter, settled_items: Collection[int], after: int | None
    ) -> int | None:
        """Return the next unsettled item of a list after another, from the start again at its end; None if all are
        settled.
        """
        is_open = self.is_listed("open", settled_items) & (self.votes.sum(axis=1) > 0)
        if shown == "disputed":
            is_open &= self.is_disputed
        start = 0 if after is None else int(np.flatnonzero(self.worst_first == after)[0]) + 1
        in_turn = np.roll(self.worst_first, -start)
        found = in_turn[is_open[in_turn]][:1].tolist()
        return found[0] if found else None

    def count_disputed_and_settled(self, settled_items: Collection[int]) -> tuple[int, int]:
        """Return the number of items without a majority, and how many of these are settled."""
        return int(self.is_disputed.sum()), int(self.is_disputed[[*settled_items]].sum())


def sort_items_worst_first(votes: Integers, confidence: Array) -> Integers:
    """Return the numbers of all items: without a majority, then by rising confidence, then by falling entropy of votes,
    (N,).

    Items without votes come last, since there is nothing to settle yet.
    """
    known_confidence = np.where(np.isfinite(confidence), confidence, 0.0)
    is_unjudged = votes.sum(axis=1) == 0
    return np.lexsort((-entropy_of_votes(votes), known_confidence, ~has_no_majority(votes), is_unjudged))


def entropy_of_votes(votes: Integers) -> Array:
    """Return the entropy of each item's votes in bits, (N,); 0 without votes."""
    shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1)
    terms = np.where(shares > 0, shares * np.log2(np.where(shares > 0, shares, 1.0)), 0.0)
    entropy: Array = -terms.sum(axis=1)
    return entropy


def build_label_queue(answers: Answers) -> LabelQueue:
    """Return the queue of a campaign's items; without a fit, labels and confidence are those of the votes.

    All that takes long with many items is computed here, in the thread of the fit.
    """
    votes = count_votes_of_items(answers)
    try:
        label, confidence = consensus(fit_dawid_skene_with_cautious_posteriors(answers, Options().classes))
    except Inestimable:
        label, confidence = plurality_label_and_share(votes)
    return queue_of_estimated_labels(votes, label, confidence, answers.ids)


def queue_of_estimated_labels(votes: Integers, label: Integers, confidence: Array, ids: Sequence[str]) -> LabelQueue:
    """Return the queue of items with these ids; the other parameters are its attributes."""
    return LabelQueue(
        votes,
        label,
        confidence,
        has_no_majority(votes),
        sort_items_worst_first(votes, confidence),
        {item_id: number for number, item_id in enumerate(ids)},
    )


def plurality_label_and_share(votes: Integers) -> tuple[Integers, Array]:
    """Return each item's label with the most votes, (N,), and its share; -1 and NaN without votes or with a tie."""
    most, total = votes.max(axis=1), votes.sum(axis=1)
    is_clear = (most > 0) & ((votes == most[:, None]).sum(axis=1) == 1)
    share = np.where(is_clear, most / np.maximum(total, 1), np.nan)
    return np.where(is_clear, votes.argmax(axis=1), -1), share
